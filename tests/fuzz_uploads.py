"""Uploads: damaged sound files in forms that are in order, and forms that are not around a sound that is."""

import base64

import audio_assets
from fuzz_audio import damage
from fuzz_dice import Dice, blind, chance, dice_for
from fuzz_json import odd
from fuzz_shots import EDGE, FORM_TYPE, Shot, form, head, part, post

TRANSCRIPTIONS, ALIGNMENTS = b"/v1/audio/transcriptions", b"/v1/audio/alignments"
BATCH, TASK = b"/v1/batches/transcriptions", b"/v1/tasks/run"

_MOST_BYTES = 2 * 1024 * 1024
"""No part is repeated beyond this."""

_SOUND = audio_assets.wav_bytes(audio_assets.tone(440, 0.05))
_FORMATS = (b"json", b"text", b"verbose_json")
_TEXTS = (
    b"", b" ", b"\0", b"a\0b", b"\xff\xfe", b"\xed\xa0\x80", b"x" * 5000, b"\xf0\x9f\x98\x80", b"nan", b"inf", b"-1",
    b"1e999", b"0x1", b"9" * 40, b"true", b"[]", b"{}", b"null", b"--" + EDGE, b"\r\n--fuzzEdg", b"../../etc/passwd",
    b"a\r\nb", b"\xc2\xa0", b"\xd9\xa3",
)  # fmt: skip
_FIELDS = (
    b"prompt", b"language", b"model", b"seed", b"stream", b"temperature", b"options", b"response_format", b"text",
    b"busy_timeout_ms", b"timestamp_granularities[]", b"file", b"x" * 300,
)  # fmt: skip
_FILENAMES = (
    b"../../../../tmp/fuzz_pwn.wav", b"/tmp/fuzz_pwn.wav", b"..\\..\\fuzz_pwn.wav", b"C:\\fuzz_pwn.wav", b"a\0b.wav",
    b"x" * 5000, b".", b"..", b"CON", b"-i.wav", b"a.wav; rm -rf", b'a\\".wav', b"%2e%2e%2ffuzz_pwn", b"\xff\xfe.wav",
    b"\xe5\x90\x8d.wav", b"blob", b"", b"a\tb", b"file:///etc/passwd", b"http://127.0.0.1:9/a",
    b"antiphon_marker.wav", b"server.json", b"~/.ssh/id_rsa", b"a;name=b",
)  # fmt: skip
_DISPOSITIONS = (
    b'form-data; name="file"; filename="a.wav"', b"form-data; name=file; filename=a.wav",
    b'form-data; filename="a.wav"', b"form-data", b"", b'attachment; name="file"', b'form-data; name=""',
    b'form-data; name="file"; name="model"', b"form-data; name*=UTF-8''file",
    b"form-data; name=file; filename*=UTF-8''%e2%82%ac%ff.wav",
    b"form-data; name=file; filename*0=a; filename*1*=%00; filename*2=c",
    b"form-data; name=file; filename*0*=UTF-8''%41; filename*999999999=b", b'FORM-DATA; NAME="file"',
    b'form-data;name="file";;;=;a', b"x" * 9000, b"form-data; name=file; filename*=nosuchcharset''a",
    b"form-data; name=file; filename*=utf-16''%00", b"form-data; name=file; filename*=rot13''a",
    b"form-data; name=file; filename*=a'b'c'd", b'form-data; name="file', b'form-data; name="\xff"',
    b'form-data; name="fi\0le"', b"form-data; name=file; filename*=idna''xn--%ff",
    b"form-data; name=file; filename*=utf-7''+2AA-", b"form-data; name=file; filename*=a\0b''c",
    b"form-data; name=file; filename*" + b"9" * 5000 + b"=x", b"form-data; name=file; " + b'";' * 4000,
    b"form-data; name=file" + b";" * 8000, b"form-data; name=file; filename*=''",
    b"form-data; name=file; filename*=hex''%30", b'\xff; name="file"',
)  # fmt: skip
_FURTHER = (
    b"Content-Type: audio/wav", b"Content-Type: multipart/mixed; boundary=inner",
    b"Content-Transfer-Encoding: base64", b"Content-Type: \xff", b"Content-Length: 99999999999",
    b"Content-Encoding: gzip", b"X: " + b"y" * 7000, b"X" * 7000 + b": y", b"No colon here", b": no name",
    b" folded: a", b"Content-Disposition: form-data; name=again", b"X:\0", b"X:" + b" " * 3000,
)  # fmt: skip
_TYPES = (
    b"multipart/form-data", b"multipart/form-data; boundary=", b'multipart/form-data; boundary=""',
    b"multipart/form-data; boundary=other", b'Multipart/Form-Data; boundary="fuzzEdge"; charset=utf-16',
    b"multipart/mixed; boundary=fuzzEdge", b"application/x-www-form-urlencoded",
    b"multipart/form-data; boundary=" + b"x" * 300, b"multipart/form-data; boundary=fuzzEdge; boundary=other",
    b"application/json", b"", b"multipart/form-data; boundary*=utf-8''fuzzEdge",
    b"multipart/form-data; boundary=fuzz\xff", b"application/vnd.a+json", b"text/plain",
    b"multipart/form-data; boundary=fuzzEdge" + b"; a=b" * 2000,
    b"multipart/form-data; boundary*0=fuzz; boundary*1=Edge",
)  # fmt: skip


def audio_shot(seed: int) -> Shot:
    """A damaged sound file, mostly in a form for a transcript."""
    dice = dice_for("audio", seed)
    file = damage(dice)
    upload = part(b"file", file, b"a.wav")
    match dice.randrange(20):
        case 0 | 1:
            return post(ALIGNMENTS, FORM_TYPE, form([part(b"model", b"align"), part(b"text", b"a word"), upload]))
        case 2:
            return post(BATCH, FORM_TYPE, form([part(b"model", b"asr"), upload, part(b"file", damage(dice), b"b.wav")]))
        case 3 | 4:
            audio = base64.b64encode(file)
            return post(TASK, b"application/json", b'{"model": "diar", "request": {"audio": "%s"}}' % audio)
        case 5:
            return post(TRANSCRIPTIONS, FORM_TYPE, form([part(b"model", b"asr"), part(b"stream", b"true"), upload]))
        case _:
            kind = part(b"response_format", dice.choice(_FORMATS))
            return post(TRANSCRIPTIONS, FORM_TYPE, form([part(b"model", b"asr"), kind, upload]))


def form_shot(seed: int) -> Shot:
    """A form that is wrong in some way."""
    dice = dice_for("form", seed)
    target = dice.choice((TRANSCRIPTIONS, TRANSCRIPTIONS, ALIGNMENTS, BATCH))
    parts = _parts(target, dice)
    for _ in range(dice.choice((0, 1, 1, 1, 2, 3))):
        _change(parts, dice)
    body, kind = form(parts), FORM_TYPE
    match dice.randrange(16):
        case 0:
            kind = dice.choice(_TYPES)
        case 1:
            body = body.replace(b"\r\n", b"\n")
        case 2:
            body = dice.choice((b"preamble", b"\r\n", b"\r\n" * 500, b"--fuzzEdg\r\n", b"\xff" * 3000)) + body
        case 3:
            body += dice.choice((b"epilogue", b"\r\n" * 500, body, bytes(3000)))
        case 4:
            body = b"".join(parts) + dice.choice(
                (b"", b"--fuzzEdge", b"--fuzzEdge-", b"--fuzzEdge--", b"--fuzzEdge\r\n")
            )
        case 5 | 6 | 7:
            body = blind(body, dice)
        case 8:
            body = body[: dice.randrange(len(body) + 1)]
        case _:
            pass
    target += _query(dice)
    fields = (b"Content-Type: " + kind, b"Content-Length: %d" % len(body))
    if chance(dice, 0.15):
        return Shot(
            head(b"POST", target, fields[0], b"Transfer-Encoding: chunked") + _in_chunks(body, dice), is_whole=True
        )
    if chance(dice, 0.05):
        return Shot(head(b"POST", target, *fields) + body[: dice.randrange(len(body) + 1)], stays=False)
    return Shot(head(b"POST", target, *fields) + body, is_whole=True)


def _parts(target: bytes, dice: Dice) -> list[bytes]:
    """The parts of a form that is in order."""
    fields = {b"model": b"align" if target == ALIGNMENTS else b"asr", b"language": b"en", b"busy_timeout_ms": b"60000"}
    if target == ALIGNMENTS:
        fields[b"text"] = b"a word"
    else:
        fields |= {b"response_format": dice.choice(_FORMATS), b"timestamp_granularities[]": b"word", b"seed": b"7"}
        fields |= {b"prompt": b"a prompt", b"stream": dice.choice((b"true", b"false"))}
    names = [name for name in fields if name in (b"model", b"text") or chance(dice, 0.6)]
    parts = [part(name, fields[name]) for name in names]
    parts.insert(dice.randrange(len(parts) + 1), part(b"file", _SOUND, b"a.wav"))
    return parts


def _change(parts: list[bytes], dice: Dice) -> None:
    at = dice.randrange(len(parts)) if parts else 0
    match dice.randrange(10) if parts else 9:
        case 0:
            del parts[at]
        case 1:
            parts[at : at + 1] = [parts[at]] * min(dice.choice((2, 3, 120, 3000)), _MOST_BYTES // len(parts[at]))
        case 2:
            dice.shuffle(parts)
        case 3 | 4:
            parts[at] = part(b"file", _SOUND, dice.choice(_FILENAMES))
        case 5:
            parts[at] = _with_headers(b"Content-Disposition: " + dice.choice(_DISPOSITIONS), content=_SOUND)
        case 6:
            given = b'Content-Disposition: form-data; name="file"; filename="a"'
            parts[at] = _with_headers(
                given, *[dice.choice(_FURTHER) for _ in range(dice.choice((1, 2, 20)))], content=_SOUND
            )
        case 7:
            parts[at] = part(b"file", b"--inner\r\n\r\n" + _SOUND + b"\r\n--inner--\r\n", b"a")
        case _:
            content = dice.choice(_TEXTS) if chance(dice, 0.7) else bytes(odd(dice))
            parts.append(part(dice.choice(_FIELDS), content))


def _with_headers(*headers: bytes, content: bytes) -> bytes:
    return b"--%s\r\n%s\r\n\r\n%s\r\n" % (EDGE, b"\r\n".join(headers), content)


def _query(dice: Dice) -> bytes:
    queries = (
        b"busy_timeout_ms=x",
        b"busy_timeout_ms=%00",
        b"run_timeout_ms=-1",
        b"%ff=%ff",
        b"a=b&" * 500,
        b"=",
        b"busy_timeout_ms=60000",
    )
    return b"?" + dice.choice(queries) if chance(dice, 0.1) else b""


def _in_chunks(body: bytes, dice: Dice) -> bytes:
    sizes = (1, 7, 100, 4096)
    pieces, at = [], 0
    while at < len(body):
        piece = body[at : at + (dice.choice(sizes) if len(body) < 20_000 else 16_384)]
        pieces.append(b"%x\r\n%s\r\n" % (len(piece), piece))
        at += len(piece)
    return b"".join(pieces) + b"0\r\n\r\n"
