"""Live audio gone wrong: the chunks of a body, the frames of a WebSocket, and the events of a realtime session."""

import base64
import struct

from fuzz_dice import EXTREMES, Dice, blind, chance, dice_for
from fuzz_json import Json, Obj, changed, obj, odd, text_of
from fuzz_shots import Shot

LIVE, REALTIME = b"/v1/audio/transcriptions/live", b"/v1/realtime"
END_OF_SESSION = b"the-end-of-this-shot"
"""The id of a realtime client's last event; the error that answers it comes after all that was before."""

_KEY = b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
_HANDSHAKE = (b"Host: localhost", b"Upgrade: websocket", b"Connection: Upgrade", _KEY, b"Sec-WebSocket-Version: 13")
_QUERY = {
    b"model": (b"asr", b"asr", b"asr", b"diar", b"tts", b"nobody", b"", b"%ff", b"%00", b"a" * 5000),
    b"sample_rate": (b"8000", b"0", b"-1", b"1", b"999", b"768001", b"1e4", b"9" * 30, b"abc", b"", b"%D9%A3", b"1.0"),
    b"channels": (b"1", b"2", b"32", b"33", b"0", b"-1", b"1000000", b"x", b""),
    b"sample_format": (b"s16le", b"f32le", b"mulaw", b"alaw", b"S16LE", b"u8", b"", b"%00", b"a" * 3000),
    b"language": (b"en", b"", b"auto", b"klingon", b"%ff", b"a" * 3000, b"EN-us", b"%ED%A0%80"),
    b"prompt": (b"words", b"", b"%00", b"%ff", b"a" * 30_000, b"%ED%A0%80", b"%0d%0a"),
    b"busy_timeout_ms": (b"60000", b"-1", b"x", b"9" * 30, b""),
    b"run_timeout_ms": (b"60000", b"-1", b"1.5", b""),
    b"intent": (b"transcription", b"conversation", b"%ff"),
}  # fmt: skip
_HEARS = obj(model="asr", language="en", prompt="words")
_INPUT = obj(format=obj(type="audio/pcmu"), transcription=_HEARS, turn_detection=None)
_EVENTS: tuple[Obj, ...] = (
    obj(type="input_audio_buffer.append", audio=base64.b64encode(bytes(960)).decode()),
    obj(type="input_audio_buffer.append", audio=base64.b64encode(bytes(7)).decode(), event_id="mine"),
    obj(type="input_audio_buffer.commit"),
    obj(type="input_audio_buffer.clear"),
    obj(type="session.update", session=obj(type="transcription", audio=obj(input=_INPUT))),
    obj(
        type="session.update",
        session=obj(type="transcription", audio=obj(input=obj(turn_detection=obj(type="server_vad", threshold=0.5)))),
    ),
    obj(
        type="transcription_session.update",
        session=obj(input_audio_format="g711_alaw", input_audio_transcription=obj(model="asr"), turn_detection=None),
    ),
    obj(type="response.create"),
)  # fmt: skip


def live_shot(seed: int) -> Shot:
    """Raw samples in a chunked body."""
    dice = dice_for("live", seed)
    lines = [
        b"POST %s?%s HTTP/1.1" % (LIVE, _query(dice)),
        b"Host: localhost",
        b"Connection: close",
        b"Transfer-Encoding: chunked",
    ]
    pieces = _sound_pieces(dice)
    chunks = [b"%x\r\n%s\r\n" % (len(it), it) for it in pieces if it]
    if chance(dice, 0.85):
        chunks.append(b"0\r\n\r\n")
    if chunks and chance(dice, 0.3):
        at = dice.randrange(len(chunks))
        sizes = (
            b"0",
            b"-1",
            b"g",
            b"",
            b"ffffffff",
            b"ffffffffffffffff",
            b"7fffffffffffffff",
            b"1;x=y",
            b"0" * 50 + b"2",
            b"3",
        )
        chunks[at] = dice.choice(sizes) + b"\r\n" + chunks[at].partition(b"\r\n")[2]
    body = b"".join(chunks)
    if chance(dice, 0.2):
        body = blind(body, dice)
    if chance(dice, 0.05):
        lines[-1] = b"Content-Length: %d" % len(body)
    return Shot(b"\r\n".join((*lines, b"", b"")) + body, stays=chance(dice, 0.9))


def socket_shot(seed: int) -> Shot:
    """Raw samples in the frames of a WebSocket."""
    dice = dice_for("socket", seed)
    messages = [(2, it) for it in _sound_pieces(dice)]
    ends: tuple[tuple[int, bytes], ...] = (
        (2, b""),
        (1, b'{"type": "end"}'),
        (1, bytes(odd(dice))),
        (1, text_of(changed(obj(type="end"), dice))),
        (8, b"\3\xe8"),
    )
    frames = [_frame(opcode, data, dice) for opcode, data in (*messages, dice.choice(ends))]
    data = _opening(LIVE, dice) + _damaged(frames, dice)
    return Shot(data, stays=chance(dice, 0.9))


def realtime_shot(seed: int) -> Shot:
    """The events of a realtime session."""
    dice = dice_for("realtime", seed)
    events: list[Json] = [dice.choice(_EVENTS) for _ in range(dice.randrange(1, 8))]
    said = [text_of(changed(it, dice) if chance(dice, 0.4) else it) for it in events]
    frames = [_frame(1 if chance(dice, 0.95) else 2, it, dice) for it in said]
    opening = _opening(REALTIME, dice, is_odd=chance(dice, 0.1))
    if chance(dice, 0.2):
        return Shot(opening + _damaged(frames, dice), stays=False)
    last = _frame(1, b'{"type": "fuzz", "event_id": "%s"}' % END_OF_SESSION, dice)
    return Shot(opening + b"".join((*frames, last)), marker=END_OF_SESSION)


def _sound_pieces(dice: Dice) -> list[bytes]:
    """Samples cut anywhere; odd bytes too."""
    sizes = (0, 1, 2, 3, 7, 320, 3201, 20_000)
    return [dice.choice((bytes, dice.randbytes))(dice.choice(sizes)) for _ in range(dice.randrange(6))]


def _query(dice: Dice) -> bytes:
    given = {b"model": b"asr"}
    for _ in range(dice.choice((0, 1, 1, 2, 4))):
        name = dice.choice(list(_QUERY))
        given[name] = dice.choice(_QUERY[name])
    fields = [name + b"=" + value for name, value in given.items()]
    if chance(dice, 0.05):
        fields.append(dice.choice((b"model=asr", b"&&=", b"%ff=%fe", b"a=b&" * 2000)))
    return b"&".join(fields)


def _opening(path: bytes, dice: Dice, *, is_odd: bool = True) -> bytes:
    fields = list(_HANDSHAKE)
    if is_odd and chance(dice, 0.1):
        odd_fields = (
            b"Sec-WebSocket-Key: x", b"Sec-WebSocket-Version: 8", b"Sec-WebSocket-Extensions: permessage-deflate",
            b"Sec-WebSocket-Protocol: realtime,\xff", b"Sec-WebSocket-Protocol: realtime", b"Connection: close",
            b"Upgrade: h2c", b"Content-Length: 5", _KEY, b"Sec-WebSocket-Extensions: ;;\xff",
            b"OpenAI-Beta: realtime=v1", b"Sec-WebSocket-Protocol: openai-beta.realtime-v1",
            b"Origin: http://evil.example", b"Sec-WebSocket-Key: \xff",
        )  # fmt: skip
        at = dice.randrange(len(fields))
        fields[at : at + dice.randrange(2)] = [dice.choice(odd_fields)]
    query = _query(dice) if is_odd else b"model=asr"
    return b"\r\n".join((b"GET %s?%s HTTP/1.1" % (path, query), *fields, b"", b""))


def _frame(opcode: int, data: bytes, dice: Dice, *, first: int | None = None, length: int | None = None) -> bytes:
    """A frame of a client; `first` is its first byte and `length` what it claims, where those are to be odd."""
    mask, size = dice.randbytes(4), len(data) if length is None else length
    if size < 126:
        said = struct.pack(">B", 0x80 | size)
    elif size < 1 << 16:
        said = struct.pack(">BH", 0xFE, size)
    else:
        said = struct.pack(">BQ", 0xFF, size)
    stretched = (mask * (len(data) // 4 + 1))[: len(data)]
    masked = (int.from_bytes(data, "big") ^ int.from_bytes(stretched, "big")).to_bytes(len(data), "big")
    return bytes([0x80 | opcode if first is None else first]) + said + mask + masked


def _damaged(frames: list[bytes], dice: Dice) -> bytes:
    """Frames in a row, some of which break a rule."""
    frames = list(frames)
    for _ in range(dice.choice((0, 1, 1, 2, 4))):
        at = dice.randrange(len(frames) + 1)
        frames.insert(at, _odd_frame(dice))
    data = b"".join(frames)
    match dice.randrange(8):
        case 0:
            return blind(data, dice)
        case 1:
            return data[: dice.randrange(len(data) + 1)]
        case _:
            return data


def _odd_frame(dice: Dice) -> bytes:
    content = dice.choice((b"", b"x", b"\xff\xfe", bytes(200), b"\3\xe8", b"\0\1", b"\x0f\xa0" + b"\xff" * 10, b"{}"))
    match dice.randrange(6):
        case 0:
            return _frame(0, content, dice, first=dice.randrange(256))
        case 1:
            top = (1 << 63, (1 << 64) - 1, 1 << 31, 0x100000, 126, 125)
            return _frame(2, content, dice, length=dice.choice((*top, *EXTREMES)))
        case 2:
            return bytes([0x82, len(content)]) + content  # without a mask
        case 3:
            return (
                b"\x82"
                + dice.choice((b"\xfe\0\1", b"\xff" + bytes(7) + b"\1", b"\xff" + b"\x80" + bytes(7)))
                + bytes(4)
                + b"x"
            )
        case 4:
            return b"".join(
                _frame(0, b"x", dice, first=it) for it in dice.choices((0x01, 0x02, 0x00, 0x80, 0x89, 0x88), k=4)
            )
        case _:
            return _frame(dice.choice((8, 9, 10)), content * dice.choice((1, 1, 40)), dice)
