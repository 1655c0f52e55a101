"""What a server said to a shot, and what of that is wrong. It knows what docs/api.md declares, and no way to ask.

An answer is right whatever it says, if it is declared and no fault of the server's: a fuzzer does not know what a
damaged file should sound like.
"""

import io
import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import cast

import httpx
from websockets.frames import CloseCode, Frame, Opcode
from websockets.protocol import Protocol, Side

from fuzz_shots import Shot
from refusals import refusal_in

_API = Path(__file__).parents[1] / "docs" / "api.md"
_GOOD = frozenset({101, 200, 202})
_SERVER_FAULTS = frozenset(
    {"internal_error", "engine_error", "load_failed", "worker_died", "run_timeout", "shutting_down"}
)
_DECODER_BROKE = ("the audio could not be decoded", "to decode it takes more memory")
"""What is answered where no reader found a fault but the process that decodes failed or died."""


@cache
def declared() -> frozenset[tuple[int, str | None]]:
    """The statuses and codes of docs/api.md's table of errors."""
    rows = re.findall(r"^\| (\d{3}) \| `\w+` \| (.*?) \|", _API.read_text(encoding="utf-8"), re.MULTILINE)
    found = {(int(status), code) for status, codes in rows for code in re.findall(r"`(\w+)`", codes) or [None]}
    assert (400, None) in found
    assert (503, "server_busy") in found
    return frozenset(cast("set[tuple[int, str | None]]", found))


def faults_of(shot: Shot, received: bytes) -> Iterator[str]:
    """What is wrong with all that came back, in words; nothing where all is right."""
    if shot.to_wyoming:
        yield from _faults_of_events(received)
        return
    source, answers = _Source(received), 0
    while source.tell() < len(received):
        try:
            answer = _answer(source)
        except (HTTPException, ValueError) as error:
            if shot.stays:
                yield f"the answer is no whole HTTP: {error!r} in {received[-300:]!r}"
            return
        answers += 1
        yield from _faults_of_answer(answer)
        if answer.status_code == 101:
            yield from _faults_of_frames(received[source.tell() :])
            return
        if shot.data.startswith(b"HEAD "):
            return
    if shot.is_whole and answers != 1:
        yield f"{answers} answers to one request"


class _Source(io.BytesIO):
    """What was received, for http.client to read one answer after another from."""

    def makefile(self, _mode: str) -> "_Source":
        return self

    def close(self) -> None:
        """It is read on after an answer's end."""


def _answer(source: _Source) -> httpx.Response:
    read = HTTPResponse(source)  # type: ignore[arg-type]  # it asks a socket for makefile and nothing else
    read.begin()
    if read.status == 101:
        return httpx.Response(101)
    content = read.read()
    fields = [(name, value) for name, value in read.getheaders() if name.lower() != "transfer-encoding"]
    return httpx.Response(read.status, headers=fields, content=content)


def _faults_of_answer(answer: httpx.Response) -> Iterator[str]:
    status, kind = answer.status_code, answer.headers.get("content-type", "")
    if status < 400:
        if status not in _GOOD:
            yield f"the status {status} is not declared"
        if kind == "application/json":
            yield from _faults_of_json(answer.text)
        elif kind.startswith("text/event-stream"):
            yield from _faults_of_stream(answer.text)
        return
    try:
        refusal = refusal_in(answer)
    except (AssertionError, ValueError, KeyError, TypeError) as error:
        yield f"the error {status} is not in its shape ({error!r}): {answer.text[:300]!r}"
        return
    if (status, refusal.code) not in declared():
        yield f"{status} {refusal.code} is not declared: {refusal.message}"
    yield from _faults_of_error({"message": refusal.message, "code": refusal.code})


def _faults_of_error(error: Mapping[str, object]) -> Iterator[str]:
    if error.get("code") in _SERVER_FAULTS:
        yield f"the server takes the fault upon itself: {error}"
    if any(it in str(error.get("message")) for it in _DECODER_BROKE):
        yield f"a decoder broke: {error}"


def _faults_of_json(text: str) -> Iterator[str]:
    try:
        content = json.loads(text, parse_constant=_refuse_constant)
    except ValueError as error:
        yield f"what is said to be JSON is not ({error}): {text[:300]!r}"
        return
    if isinstance(content, dict) and isinstance(content.get("error"), dict):
        yield from _faults_of_error(content["error"])


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


def _faults_of_stream(text: str) -> Iterator[str]:
    events = [line.removeprefix("data: ") for line in text.split("\n") if line.startswith("data: ")]
    for said in events:
        if said != "[DONE]":
            yield from _faults_of_json(said)
    if not events or (events[-1] != "[DONE]" and '"type":"error"' not in events[-1]):
        yield f"the events have no end: {events[-1:]}"


def _faults_of_frames(data: bytes) -> Iterator[str]:
    frames = Protocol(Side.CLIENT, max_size=None)
    frames.receive_data(data)
    for frame in frames.events_received():
        if not isinstance(frame, Frame) or frame.opcode is not Opcode.TEXT:
            continue
        text = bytes(frame.data).decode()
        yield from _faults_of_json(text)
    if frames.parser_exc is not None:
        yield f"the frames are wrong: {frames.parser_exc!r}"
    if frames.close_rcvd is not None and frames.close_rcvd.code == CloseCode.INTERNAL_ERROR:
        yield f"the WebSocket was closed with {frames.close_rcvd}"


def _faults_of_events(data: bytes) -> Iterator[str]:
    while b"\n" in data:
        line, _, data = data.partition(b"\n")
        try:
            event = json.loads(line, parse_constant=_refuse_constant)
            sizes = [event.get("data_length") or 0, event.get("payload_length") or 0]
        except (ValueError, AttributeError) as error:
            yield f"this is no event ({error}): {line[:300]!r}"
            return
        content = {
            **(event.get("data") or {}),
            **(json.loads(data[: sizes[0]] or b"{}") if len(data) >= sizes[0] else {}),
        }
        data = data[sum(sizes) :]
        if event["type"] == "error":
            text = str(content.get("text"))
            yield from _faults_of_error({"message": text, "code": content.get("code")})
            if not text.isprintable() or "Traceback" in text:
                yield f"the error is not fit to be shown: {text!r}"
