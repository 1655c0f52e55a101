"""What the judge of the fuzzers lets pass, and what it does not."""

import json

import pytest
from websockets.frames import Close, Frame, Opcode

from fuzz_judge import declared, faults_of
from fuzz_shots import Shot, post

REQUEST = post(b"/v1/audio/speech", b"application/json", b"{}")
TALK = Shot(b"x")
WYOMING = Shot(b"x", to_wyoming=True)


def answer(status, content=b"", kind="application/json", *fields):
    lines = [f"HTTP/1.1 {status} X", f"content-type: {kind}", f"content-length: {len(content)}", *fields, "", ""]
    return "\r\n".join(lines).encode() + content


def refused(status, message="it is wrong", code=None, *fields, **more):
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": code, **more}
    return answer(status, json.dumps({"error": error}).encode(), "application/json", *fields)


def events(*said):
    return answer(200, "".join(f"data: {it}\n\n" for it in said).encode(), "text/event-stream; charset=utf-8")


def spoken(*frames):
    head = b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n"
    return head + b"".join(it.serialize(mask=False) for it in frames)


def text(content):
    return Frame(Opcode.TEXT, json.dumps(content).encode())


def closed(code):
    return Frame(Opcode.CLOSE, Close(code, "").serialize())


RIGHT = {
    "an answer": (REQUEST, answer(200, b'{"text": "x"}')),
    "a sound": (REQUEST, answer(200, b"RIFF", "audio/wav")),
    "a refusal": (REQUEST, refused(400)),
    "a refusal with a code": (REQUEST, refused(413, code="too_large")),
    "events": (REQUEST, events('{"type":"task.done"}', "[DONE]")),
    "events that end in an error": (REQUEST, events('{"type":"error","error":{"code":"request_timeout"}}')),
    "two answers in a row": (TALK, answer(200, b"{}") + refused(400)),
    "nothing, where nothing is due": (TALK, b""),
    "an interim answer": (REQUEST, b"HTTP/1.1 100 Continue\r\n\r\n" + answer(200, b"{}")),
    "a WebSocket": (TALK, spoken(text({"type": "x"}), closed(1000))),
    "a WebSocket that breaks off": (TALK, spoken(text({"type": "x"}))[:-2]),
    "a pong": (WYOMING, b'{"type": "pong", "data_length": 2}\n{}'),
    "a chunk": (WYOMING, b'{"type": "audio-chunk", "payload_length": 3}\nab\n{"type": "audio-stop"}\n'),
    "an error": (WYOMING, b'{"type": "error", "data": {"text": "no", "code": "too_large"}}\n'),
}

WRONG = {
    "an engine's fault": (REQUEST, refused(500, code="engine_error"), "takes the fault"),
    "a fault of the server's": (REQUEST, refused(500, code="internal_error"), "takes the fault"),
    "a worker that died": (REQUEST, refused(503, "x", "worker_died", "retry-after: 1"), "takes the fault"),
    "a decoder that died": (REQUEST, refused(400, "the audio could not be decoded"), "a decoder broke"),
    "an undeclared status": (REQUEST, refused(418), "418 None is not declared"),
    "an undeclared code": (REQUEST, refused(400, code="odd"), "400 odd is not declared"),
    "an undeclared success": (REQUEST, answer(206, b"{}"), "206 is not declared"),
    "a refusal as a page": (REQUEST, answer(400, b"<html>", "text/html"), "not in its shape"),
    "a refusal as a text": (REQUEST, answer(400, b"Bad Request"), "not in its shape"),
    "a refusal of another shape": (REQUEST, answer(400, b'{"detail": "no"}'), "not in its shape"),
    "a traceback": (REQUEST, refused(400, "Traceback"), "not in its shape"),
    "no retry": (REQUEST, refused(503, "x", "server_busy"), "not in its shape"),
    "NaN": (REQUEST, answer(200, b'{"x": NaN}'), "said to be JSON is not"),
    "no answer": (REQUEST, b"", "0 answers to one request"),
    "two answers": (REQUEST, refused(400) * 2, "2 answers to one request"),
    "a cut answer": (REQUEST, refused(400)[:-5], "no whole HTTP"),
    "no HTTP": (TALK, b"hello", "no whole HTTP"),
    "events without an end": (REQUEST, events('{"type":"task.delta"}'), "have no end"),
    "no events": (REQUEST, events(), "have no end"),
    "a fault in events": (REQUEST, events('{"type":"error","error":{"code":"engine_error"}}'), "takes the fault"),
    "a fault in a WebSocket": (TALK, spoken(text({"type": "error", "error": {"code": "engine_error"}})), "the fault"),
    "a WebSocket that the server breaks": (TALK, spoken(closed(1011)), "closed with"),
    "frames that are none": (TALK, spoken() + b"\xff\xff\xff\xff", "the frames are wrong"),
    "an engine's fault in an event": (WYOMING, b'{"type": "error", "data": {"code": "engine_error"}}\n', "the fault"),
    "no event": (WYOMING, b"[1]\n", "this is no event"),
    "an error of several lines": (WYOMING, b'{"type": "error", "data": {"text": "a\\nb"}}\n', "not fit to be shown"),
}


@pytest.mark.parametrize(("shot", "received"), RIGHT.values(), ids=RIGHT)
def test_what_is_declared_is_right(shot, received):
    assert list(faults_of(shot, received)) == []


@pytest.mark.parametrize(("shot", "received", "fault"), WRONG.values(), ids=WRONG)
def test_what_is_not_is_a_fault(shot, received, fault):
    assert any(fault in it for it in faults_of(shot, received))


def test_what_is_declared_is_what_the_page_says():
    assert {
        (400, None),
        (404, "model_not_found"),
        (404, "package_not_found"),
        (413, "too_large"),
        (503, "server_busy"),
    } <= (declared())
    assert (418, None) not in declared()
