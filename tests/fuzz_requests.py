"""Requests that are hardly HTTP/1.1: lines, fields, lengths and chunks changed, several requests in one, TLS, noise."""

import json

from fuzz_dice import Dice, blind, chance, dice_for
from fuzz_shots import Shot, head

_SPEECH = json.dumps({"model": "tts", "input": "a text"}).encode()
_TARGETS = (b"/health", b"/v1/models", b"/v1/models/tts", b"/v1/status", b"/v1/audio/voices?model=tts", b"/nowhere")
_METHODS = (
    b"get", b"G\xcbT", b"GE T", b"", b"PRI", b"CONNECT", b"TRACE", b"OPTIONS", b"PUT", b"DELETE", b"PATCH", b"QUERY",
    b"M-SEARCH", b"X" * 5000, b"GET\0", b"POST",
)  # fmt: skip
_ODD_TARGETS = (
    b"*", b"", b"health", b"//health", b"/../health", b"/v1/models/%00", b"/v1/models/%ff%fe", b"/v1/models/\xff",
    b"/v1/models/" + b"a" * 60_000, b"http://localhost/health", b"http://[::1/health", b"localhost:80",
    b"/health?" + b"a=b&" * 5000, b"/health#x", b"/he alth", b"/%", b"/%zz", b"/v1/models/..%2f..%2fetc",
    b"/\r\nX: y", b"http://a@b:99999/health", b"/v1/audio/voices?model=%ff&model=%00", b"/" + b"%2f" * 900,
    b"http://localhost:-1/", b"http://\xe9/", b"/docs", b"/openapi.json", b"/docs/oauth2-redirect",
    b"/v1/models/org%2ftts", b"/v1/models/",
)  # fmt: skip
_VERSIONS = (
    b"HTTP/1.0",
    b"HTTP/0.9",
    b"HTTP/2.0",
    b"HTTP/1.1 ",
    b"HTTP/9.9",
    b"http/1.1",
    b"",
    b"HTTP/1.",
    b"HTTQ/1.1",
    b"HTTP/1.1\0",
    b"HTTP/11",
)
_FIELDS = (
    b"Content-Length: 5", b"Content-Length: -1", b"Content-Length: +5", b"Content-Length: 0x5",
    b"Content-Length: 5, 5", b"Content-Length: ", b"Content-Length: 99999999999999999999999",
    b"Content-Length: 9223372036854775807", b"Content-Length: 10737418240", b"Content-Length: 1_0",
    b"Content-Length: \xd9\xa3", b"Transfer-Encoding: chunked", b"Transfer-Encoding: identity",
    b"Transfer-Encoding: chunked, chunked", b"Transfer-Encoding: gzip, chunked", b"Transfer-Encoding:\x0bchunked",
    b"Transfer-Encoding : chunked", b"Transfer-Encoding: xchunked", b"Host: other.example", b"Host:", b"Host: \xff",
    b"Host: localhost:99999", b"Host: [::1]", b"Host: [::1", b"Origin: http://evil.example", b"Origin: null",
    b"Origin: \xff", b"Expect: 100-continue", b"Expect: 200-ok", b"Upgrade: websocket", b"Connection: Upgrade",
    b"Connection: \xff", b"Upgrade: h2c", b"Connection: close, keep-alive", b"Authorization: Bearer \xff",
    b"Authorization: " + b"B" * 9000, b"X: " + b"y" * 70_000, b" folded", b"\tfolded", b"No colon", b": no name",
    b"X\0: y", b"X: \0", b"X: a\rb", b"X: a\nb", b"X(: y", b"X\xff: y", b"Content-Type: \xff",
    b"Access-Control-Request-Method: POST", b"Range: bytes=0-", b"Sec-WebSocket-Key: x", b"Sec-WebSocket-Version: 13",
    b"Keep-Alive: \xff",
)  # fmt: skip
_SIZES = (
    b"0", b"-1", b"g", b"", b" 5", b"5 ", b"+5", b"0x5", b"ffffffff", b"7fffffffffffffff", b"ffffffffffffffff",
    b"1" + b"0" * 16, b"0" * 40 + b"5", b"5;" + b"e" * 70_000, b"5;a=b", b'5;a="\xff"', b"5\0", b"5\n", b"1" * 3000,
)  # fmt: skip
_NOISE = (
    b"\x16\x03\x01\x02\0\x01\0\1\xfc\3\3" + bytes(64), b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\r\n" * 4000,
    b"\0" * 4000, b"SSH-2.0-x\r\n", b"HTTP/1.1 200 OK\r\n\r\n", b"GET /health\r\n\r\n", b"{}\n", b"\xff" * 100,
    b" GET /health HTTP/1.1\r\n\r\n", b"\r\nGET /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"PROXY TCP4 1 1 1 1\r\n",
)  # fmt: skip


def request_shot(seed: int) -> Shot:
    """What a peer sends that does not speak HTTP well."""
    dice = dice_for("request", seed)
    if chance(dice, 0.05):
        data = dice.choice(_NOISE) if chance(dice, 0.5) else dice.randbytes(dice.randrange(300))
    else:
        data = b"".join(_request(dice) for _ in range(dice.choice((1, 1, 1, 1, 2, 3, 40))))
    if chance(dice, 0.3):
        data = blind(data, dice)
    if chance(dice, 0.1):
        data = data[: dice.randrange(len(data) + 1)]
    return Shot(data, stays=chance(dice, 0.8))


def _request(dice: Dice) -> bytes:
    match dice.randrange(6):
        case 0 | 1:
            lines, body = _lines(b"GET", dice.choice(_TARGETS)), b""
        case 2 | 3:
            lines, body = _lines(b"POST", b"/v1/audio/speech", b"Content-Length: %d" % len(_SPEECH)), _SPEECH
        case 4:
            lines, body = _lines(b"POST", b"/v1/audio/speech", b"Transfer-Encoding: chunked"), _chunked(dice)
        case _:
            lines, body = _lines(b"OPTIONS", b"/v1/models", b"Access-Control-Request-Method: POST"), b""
    if chance(dice, 0.3):
        lines[0] = dice.choice(_METHODS) + lines[0][lines[0].index(b" ") :]
    if chance(dice, 0.3):
        method, _, version = lines[0].rpartition(b" ")[0].partition(b" ")[0], b"", lines[0].rpartition(b" ")[2]
        lines[0] = b" ".join((method, dice.choice(_ODD_TARGETS), version))
    if chance(dice, 0.15):
        lines[0] = lines[0].rpartition(b" ")[0] + b" " + dice.choice(_VERSIONS)
    for _ in range(dice.choice((0, 0, 1, 1, 2, 5))):
        lines.insert(dice.randrange(1, len(lines) + 1), dice.choice(_FIELDS))
    if chance(dice, 0.05):
        lines += [b"X-%d: y" % at for at in range(dice.choice((100, 8000)))]
    ending = b"\r\n" if chance(dice, 0.93) else dice.choice((b"\n", b"\r", b"\r\r\n"))
    return ending.join((*lines, b"", b"")) + body


def _lines(method: bytes, target: bytes, *fields: bytes) -> list[bytes]:
    """The lines of a request after which others may come, but for some that say that it is the last."""
    return [it for it in head(method, target, *fields).split(b"\r\n") if it and it != b"Connection: close"]


def _chunked(dice: Dice) -> bytes:
    pieces = [_SPEECH[at : at + 9] for at in range(0, len(_SPEECH), 9)]
    lines = [[b"%x" % len(it), it] for it in (*pieces, b"")]
    for _ in range(dice.choice((0, 1, 1, 2))):
        dice.choice(lines)[0] = dice.choice(_SIZES)
    if chance(dice, 0.2):
        lines[-1][1] = dice.choice((b"X: y", b"Content-Length: 9", b"\xff: \xff", b"X: " + b"y" * 70_000))
    end = dice.choice((b"\n", b"", b"\r\r\n")) if chance(dice, 0.1) else b"\r\n"
    return b"".join(size + end + piece + end for size, piece in lines)
