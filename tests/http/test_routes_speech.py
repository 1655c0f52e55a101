"""`POST /v1/audio/speech` over real sockets, with the controlled engine."""

import base64
import json
import socket
import wave
from io import BytesIO

import httpx
import pytest

from antiphon.audio.decode import DecodeLimits, decode
from controlled_server import SPEECH
from refusals import assert_refused
from server_process import HANG_GUARD_S

FRAMES = 1600
"""What the controlled engine answers: 0.1 s at 16 kHz."""


def events_of(text):
    """The JSON of each server-sent event; the end mark stays as it is."""
    lines = [block.removeprefix("data: ") for block in text.split("\n\n") if block]
    return [line if line == "[DONE]" else json.loads(line) for line in lines]


def streamed(server, text, **fields):
    """A stream's status, headers and pieces; the connection must end as HTTP says it ends."""
    with server.client.stream("POST", SPEECH, json={"model": "tts", "input": text, **fields}) as answer:
        return answer.status_code, answer.headers, b"".join(answer.iter_bytes())


def raw(request):
    """A request as its bytes."""
    head = [f"{request.method} {request.url.path} HTTP/1.1", *(f"{k}: {v}" for k, v in request.headers.items())]
    return "\r\n".join([*head, "", ""]).encode() + request.content


def decoded(body):
    return decode(BytesIO(body), DecodeLimits(max_seconds=60))


@pytest.fixture
def speech(server):
    """The samples of any answer, as 16-bit PCM."""
    return server.speak("the sound", response_format="pcm").content


def test_wav_is_the_default_and_carries_true_sizes(server, speech):
    answer = server.speak("a wav")

    assert (answer.status_code, answer.headers["content-type"]) == (200, "audio/wav")
    assert int(answer.headers["content-length"]) == len(answer.content)
    assert int.from_bytes(answer.content[4:8], "little") == len(answer.content) - 8
    with wave.open(BytesIO(answer.content)) as sound:
        assert (sound.getnchannels(), sound.getsampwidth(), sound.getframerate()) == (1, 2, 16_000)
        assert (sound.getnframes(), sound.readframes(FRAMES)) == (FRAMES, speech)


def test_pcm_is_samples_alone(server):
    answer = server.speak("a pcm", response_format="pcm")

    assert answer.headers["content-type"].startswith("audio/pcm")
    assert len(answer.content) == 2 * FRAMES
    assert b"RIFF" not in answer.content


ENCODED = {
    "mp3": ("audio/mpeg", b"\xff\xf3"),
    "opus": ("audio/opus", b"OggS"),
    "flac": ("audio/flac", b"fLaC"),
    "aac": ("audio/aac", b"\xff\xf1"),
}
"""Each compressed format's type, and how its files begin."""


@pytest.mark.parametrize("name", ENCODED)
def test_what_is_asked_for_is_what_comes_and_what_the_type_says(server, name):
    answer = server.speak("compressed", response_format=name)

    content_type, magic = ENCODED[name]
    assert (answer.status_code, answer.headers["content-type"]) == (200, content_type)
    assert int(answer.headers["content-length"]) == len(answer.content)
    assert answer.content.startswith(magic)


@pytest.mark.parametrize("name", ENCODED)
def test_a_raw_stream_is_one_file_of_its_format_to_its_last_page(server, name):
    status, headers, body = streamed(server, "compressed", stream_format="audio", response_format=name)

    content_type, magic = ENCODED[name]
    assert (status, headers["content-type"]) == (200, content_type)
    assert body.startswith(magic)
    assert decoded(body).duration_s >= FRAMES / 16_000 - 1e-3


@pytest.mark.parametrize("name", ["wav", "pcm", *ENCODED])
def test_the_deltas_of_a_stream_are_what_the_raw_stream_is(server, name):
    *deltas, _, _ = events_of(streamed(server, "deltas", stream_format="sse", response_format=name)[2].decode())

    joined = b"".join(base64.b64decode(delta["audio"]) for delta in deltas)
    assert joined == streamed(server, "deltas", stream_format="audio", response_format=name)[2]


def test_json_holds_a_wav(server):
    answer = server.speak("as json", response_format="json")

    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    assert set(answer.json()) == {"audio", "timing"}
    assert base64.b64decode(answer.json()["audio"], validate=True) == server.speak("as json").content


def test_an_answer_says_where_its_time_went(server):
    timing = server.speak("timed").headers["server-timing"]

    assert [part.split(";")[0] for part in timing.split(", ")] == ["queue", "load", "run"]


def test_a_raw_stream_is_one_wav_of_unknown_length(server, speech):
    status, headers, body = streamed(server, "raw", stream_format="audio")

    assert (status, headers["content-type"], headers["transfer-encoding"]) == (200, "audio/wav", "chunked")
    assert (body[:4], body.count(b"RIFF"), body[44:]) == (b"RIFF", 1, speech)
    assert [part.split(";")[0] for part in headers["server-timing"].split(", ")] == ["queue", "load"]


def test_a_raw_stream_of_pcm_has_no_header(server, speech):
    assert streamed(server, "raw pcm", stream_format="audio", response_format="pcm")[2] == speech


def test_an_event_stream_has_deltas_then_done_then_the_end_mark(server, speech):
    status, headers, body = streamed(server, "events", stream_format="sse", response_format="pcm")

    assert (status, headers["content-type"]) == (200, "text/event-stream")
    *deltas, done, end = events_of(body.decode())
    assert {delta["type"] for delta in deltas} == {"speech.audio.delta"}
    assert b"".join(base64.b64decode(delta["audio"]) for delta in deltas) == speech
    assert (done["type"], set(done["timing"]), end) == (
        "speech.audio.done",
        {"queue_ms", "load_ms", "run_ms"},
        "[DONE]",
    )


def test_a_fault_in_mid_stream_is_an_error_event_and_no_done(server):
    with server.steered("stream.fail"):
        status, _, body = streamed(server, "events that fail", stream_format="sse")

    *deltas, error = events_of(body.decode())
    assert status == 200
    assert {delta["type"] for delta in deltas} == {"speech.audio.delta"}
    assert (error["type"], error["error"]["code"]) == ("error", "engine_error")


def test_a_raw_stream_that_fails_is_visibly_cut(server):
    with server.steered("stream.fail"), pytest.raises(httpx.RemoteProtocolError, match="incomplete"):
        streamed(server, "raw that fails", stream_format="audio")


@pytest.mark.parametrize("stream_format", ["sse", "audio"])
def test_a_fault_before_the_stream_is_an_answer_of_its_own(server, stream_format):
    with server.steered("prepare.fail"):
        refused = server.speak("early", stream_format=stream_format)

    assert_refused(refused, 500, code="engine_error")


@pytest.mark.parametrize("stream_format", ["sse", "audio"])
def test_after_a_stream_that_failed_the_slot_is_free(parallel_server, stream_format):
    with parallel_server.steered("stream.fail"):
        try:
            streamed(parallel_server, "it fails", stream_format=stream_format)
        except httpx.RemoteProtocolError:
            assert stream_format == "audio"

    assert parallel_server.model()["active_slots"] == 0


def test_who_saw_the_end_of_a_stream_finds_the_slot_free(parallel_server):
    with parallel_server.steered("reset.hold") as checkpoint:
        ended = parallel_server.threads.submit(streamed, parallel_server, "to the end", stream_format="sse")
        checkpoint.wait_for("ran", text="to the end")
        checkpoint.release("reset")
        assert ended.result(HANG_GUARD_S)[2].endswith(b"[DONE]\n\n")

    assert parallel_server.model()["active_slots"] == 0


@pytest.mark.parametrize("stream_format", ["sse", "audio"])
def test_a_client_that_leaves_in_mid_stream_frees_the_slot(server, stream_format):
    text = f"left {stream_format}"
    with server.steered(f"stream.hold.{text}") as checkpoint, server.steered("run.cancellable"):
        with server.client.stream(
            "POST", SPEECH, json={"model": "tts", "input": text, "stream_format": stream_format}
        ) as answer:
            assert answer.status_code == 200
            checkpoint.wait_for("stream", text=text)
        checkpoint.wait_for("ran", text=text)  # the hold is still there: only the client's leaving ended it

    assert server.speak("the next", busy_timeout_ms=30_000).status_code == 200


@pytest.mark.parametrize("fields", [{}, {"stream_format": "sse"}])
def test_a_client_that_leaves_a_running_request_ends_it(server, fields):
    text = f"left running {len(fields)}"
    request = httpx.Request("POST", server.process.url + SPEECH, json={"model": "tts", "input": text, **fields})
    with server.steered(f"run.hold.{text}") as checkpoint, server.steered("run.cancellable"):
        with socket.create_connection((request.url.host, request.url.port), timeout=HANG_GUARD_S) as leaver:
            leaver.sendall(raw(request))
            checkpoint.wait_for("run", text=text)
        checkpoint.wait_for("ran", text=text)  # the hold is still there: only the client's leaving ended it

    assert server.speak("the next", busy_timeout_ms=30_000).status_code == 200


def test_equal_requests_get_equal_bytes(server):
    assert server.speak("twice").content == server.speak("twice").content


@pytest.mark.parametrize("name", ["WAV", "Pcm"])
def test_a_format_is_known_in_any_case_of_its_letters(server, name):
    assert server.speak("loud", response_format=name).status_code == 200


@pytest.mark.parametrize(
    "fields", [{"speed": None, "voice": None, "seed": 7}, {"voice": ""}, {"speed": 1}, {"instructions": "whisper"}]
)
def test_fields_that_ask_for_nothing_are_taken(server, fields):
    assert server.speak("plain", **fields).status_code == 200
