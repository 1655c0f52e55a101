"""Rule G over every kind of bad request: the error's shape, nothing told of the server, and the server unharmed."""

import base64
import json
import socket
from urllib.parse import urlsplit

import pytest

import audio_assets
from conformance_client import eventually
from controlled_server import CLIP, SPEECH, TASK_RUN, TRANSCRIPTIONS
from refusals import assert_refused, assert_unharmed
from server_process import HANG_GUARD_S

CLIP_BASE64 = base64.b64encode(CLIP).decode()
BOUNDARY = "aBoundaryOfTheTest"
FORM = {"content-type": f"multipart/form-data; boundary={BOUNDARY}"}
JSON = {"content-type": "application/json"}


def part(name, content, filename=None, headers=b""):
    named = f'; filename="{filename}"'.encode() if filename is not None else b""
    return b'--%s\r\nContent-Disposition: form-data; name="%s"%s\r\n%s\r\n%s\r\n' % (
        BOUNDARY.encode(), name.encode(), named, headers, content,
    )  # fmt: skip


END = f"--{BOUNDARY}--\r\n".encode()


def form(*parts, end=END):
    return b"".join(parts) + end


MODEL, FILE = part("model", b"asr"), part("file", CLIP, "a.wav")


def speech(**fields):
    return {"url": SPEECH, "json": {"model": "tts", "input": "a refusal", **fields}}


def speech_raw(content):
    return {"url": SPEECH, "content": content, "headers": JSON}


def transcription(content, headers=FORM):
    return {"url": TRANSCRIPTIONS, "content": content, "headers": headers}


def transcription_json(**fields):
    return {"url": TRANSCRIPTIONS, "json": {"model": "asr", "audio": CLIP_BASE64, **fields}}


def with_field(name, value):
    return transcription(form(MODEL, FILE, part(name, value)))


def task(**fields):
    return {"url": TASK_RUN, "json": {"model": "tts", "request": {"text": "a refusal"}, **fields}}


DEEP = b'{"model": "tts", "input": ' + b"[" * 10_000 + b"]" * 10_000 + b"}"

REFUSALS = {
    # Texts that hold nothing to say (TTS-01)
    "text_empty": (speech(input=""), 400, "input", None),
    "text_of_spaces": (speech(input=" \t "), 400, "input", None),
    "text_of_newlines": (speech(input="\n\r\n"), 400, "input", None),
    "text_of_zero_width": (speech(input="\u200b\u200d\ufeff"), 400, "input", None),
    "text_with_nul": (speech(input="a\0b"), 400, "input", None),
    "text_of_surrogate": (speech_raw(b'{"model": "tts", "input": "\\ud800"}'), 400, "input", None),
    "text_of_bad_utf8": (speech_raw(b'{"model": "tts", "input": "\xff\xfe"}'), 400, None, None),
    "text_missing": (speech_raw(b'{"model": "tts"}'), 400, "input", None),
    "text_of_number": (speech(input=7), 400, "input", None),
    "text_too_long": (speech(input="a" * 100_001), 413, "input", "too_large"),
    # Bodies
    "body_empty": (speech_raw(b""), 400, None, None),
    "body_with_a_key_twice": (speech_raw(b'{"model": "tts", "input": "a", "input": "b"}'), 400, "input", None),
    "body_with_a_nested_key_twice": (
        {"url": TASK_RUN, "content": b'{"model": "tts", "request": {"text": "a", "text": "b"}}', "headers": JSON},
        400, "request.text", None,
    ),
    "body_no_json": (speech_raw(b"model=tts"), 400, None, None),
    "body_array": (speech_raw(b"[]"), 400, None, None),
    "body_null": (speech_raw(b"null"), 400, None, None),
    "body_deep": (speech_raw(DEEP), 400, None, None),
    "body_too_large": (speech_raw(b" " * 9_800_000 + b"{}"), 413, None, "too_large"),
    # Fields (API-08, TTS-07, TTS-08)
    "model_missing": (speech_raw(b'{"input": "x"}'), 400, "model", None),
    "model_null": (speech(model=None), 400, "model", None),
    "model_unknown": (speech(model="nobody"), 404, "model", "model_not_found"),
    "model_for_another_task": (speech(model="asr"), 400, "model", None),
    "voice_unknown": (speech(voice="no such+male1"), 400, "voice", None),
    "voice_a_path": (speech(voice="../../../../etc/passwd"), 400, "voice", None),
    "voice_a_number": (speech(voice=1), 400, "voice", None),
    "speed_0": (speech(speed=0), 400, "speed", None),
    "speed_negative": (speech(speed=-1), 400, "speed", None),
    "speed_too_low": (speech(speed=0.24), 400, "speed", None),
    "speed_too_high": (speech(speed=4.01), 400, "speed", None),
    "speed_text": (speech(speed="1.0"), 400, "speed", None),
    "speed_bool": (speech(speed=True), 400, "speed", None),
    "speed_nan": (speech_raw(b'{"model": "tts", "input": "x", "speed": NaN}'), 400, "speed", None),
    "speed_infinite": (speech_raw(b'{"model": "tts", "input": "x", "speed": Infinity}'), 400, "speed", None),
    "speed_that_the_model_lacks": (speech(speed=2.0), 400, "speed", None),
    "format_ogg": (speech(response_format="ogg"), 400, "response_format", None),
    "format_m4a": (speech(response_format="m4a"), 400, "response_format", None),
    "format_json_in_a_stream": (
        speech(response_format="json", stream_format="sse"), 400, "response_format", None
    ),
    "format_empty": (speech(response_format=""), 400, "response_format", None),
    "format_null": (speech(response_format=None), 400, "response_format", None),
    "stream_format_unknown": (speech(stream_format="ws"), 400, "stream_format", None),
    "seed_negative": (speech(seed=-1), 400, "seed", None),
    "seed_fraction": (speech(seed=1.5), 400, "seed", None),
    "option_unknown": (speech(options={"pitch": 1}), 400, "options.pitch", None),
    "options_no_object": (speech(options=[]), 400, "options", None),
    "wait_negative": (speech(busy_timeout_ms=-1), 400, "busy_timeout_ms", None),
    "wait_text": (speech(busy_timeout_ms="5"), 400, "busy_timeout_ms", None),
    "wait_in_query": ({**speech(), "params": {"busy_timeout_ms": "x"}}, 400, "busy_timeout_ms", None),
    # Forms (AUD-09, API-09)
    "form_without_file": (transcription(form(MODEL)), 400, "file", None),
    "form_of_two_files": (transcription(form(MODEL, FILE, FILE)), 400, "file", None),
    "form_with_the_file_as_text": (transcription(form(MODEL, part("file", b"hello"))), 400, "file", None),
    "form_without_model": (transcription(form(FILE)), 400, "model", None),
    "form_of_two_models": (transcription(form(MODEL, part("model", b"x"), FILE)), 400, "model", None),
    "form_with_an_empty_model": (transcription(form(part("model", b""), FILE)), 400, "model", None),
    "form_with_an_unknown_model": (
        transcription(form(part("model", b"nobody"), FILE)), 404, "model", "model_not_found"
    ),
    "form_for_a_model_that_speaks": (transcription(form(part("model", b"tts"), FILE)), 400, "model", None),
    "form_without_its_end": (transcription(form(MODEL, FILE, end=b"")), 400, None, None),
    "form_of_bare_line_feeds": (transcription(form(MODEL, FILE).replace(b"\r\n", b"\n")), 400, None, None),
    "form_without_boundary": (
        transcription(form(MODEL, FILE), {"content-type": "multipart/form-data"}), 400, None, None
    ),
    "form_of_2000_fields": (transcription(form(MODEL, FILE, *[part("x", b"y")] * 2000)), 400, None, None),
    "form_of_a_field_of_5_mb": (with_field("prompt", b"p" * 5_000_000), 413, "prompt", "too_large"),
    "form_urlencoded": (
        transcription(b"model=asr&file=x", {"content-type": "application/x-www-form-urlencoded"}),
        415, None, "unsupported_media_type",
    ),
    "form_of_text_plain": (
        transcription(form(MODEL, FILE), {"content-type": "text/plain"}), 415, None, "unsupported_media_type"
    ),
    # Fields of transcriptions (API-01, API-04, API-05)
    "language_unknown": (with_field("language", b"xx"), 400, "language", None),
    "language_no_utf8": (with_field("language", b"\xff"), 400, "language", None),
    "transcript_format_unknown": (with_field("response_format", b"xml"), 400, "response_format", None),
    "transcript_with_speakers_and_no_model_for_them": (
        with_field("response_format", b"diarized_json"), 400, "diarization_model", None
    ),
    "granularity_unknown": (
        with_field("timestamp_granularities[]", b"phoneme"), 400, "timestamp_granularities", None
    ),
    "temperature_text": (with_field("temperature", b"hot"), 400, "temperature", None),
    "temperature_nan": (with_field("temperature", b"nan"), 400, "temperature", None),
    "temperature_too_high": (with_field("temperature", b"1.1"), 400, "temperature", None),
    "stream_text": (with_field("stream", b"perhaps"), 400, "stream", None),
    "form_wait_text": (with_field("busy_timeout_ms", b"soon"), 400, "busy_timeout_ms", None),
    # JSON bodies that carry audio
    "audio_and_model_missing": ({"url": TRANSCRIPTIONS, "json": {}}, 400, "model", None),
    "audio_missing": ({"url": TRANSCRIPTIONS, "json": {"model": "asr"}}, 400, "audio", None),
    "audio_no_base64": (transcription_json(audio="!"), 400, "audio", None),
    "audio_of_no_sound": (transcription_json(audio=base64.b64encode(b"hello").decode()), 400, "audio", None),
    "audio_empty": (transcription_json(audio=""), 400, "audio", None),
    "audio_of_two_kinds": (transcription_json(audio={"data": "", "path": "a"}), 400, "audio", None),
    "audio_of_no_kind": (transcription_json(audio={}), 400, "audio", None),
    "audio_at_a_path": (transcription_json(audio={"path": "/etc/hostname"}), 403, "audio.path", None),
    "json_language_unknown": (transcription_json(language="xx"), 400, "language", None),
    # Tasks
    "task_without_request": ({"url": TASK_RUN, "json": {"model": "tts"}}, 400, "request", None),
    "task_without_text": (task(request={}), 400, "request.text", None),
    "task_with_an_unknown_model": (task(model="nobody"), 404, "model", "model_not_found"),
    "task_with_an_unknown_option": (
        task(request={"text": "x", "options": {"pitch": 1}}), 400, "request.options.pitch", None
    ),
    "task_with_an_unknown_language": (task(request={"text": "x", "language": "xx"}), 400, "request.language", None),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSALS)
def test_a_bad_request_is_refused_and_harms_nothing(server, name):
    request, status, param, code = REFUSALS[name]

    assert_refused(server.client.post(**request), status, param, code)

    assert_unharmed(server.process, server.client, lambda: server.speak("the next good request"))


@pytest.mark.parametrize("name", ["model_missing", "form_without_model", "form_with_an_empty_model"])
def test_a_request_that_names_no_model_is_told_where_to_find_one(server, name):
    refusal = assert_refused(server.client.post(**REFUSALS[name][0]), 400, param="model")

    assert "GET /v1/models" in refusal.message


@pytest.mark.parametrize("name", audio_assets.bad_audio())
def test_a_file_that_is_no_audio_is_refused_and_harms_nothing(parallel_server, name):
    refused = parallel_server.transcribe(audio_assets.bad_audio()[name])

    assert_refused(refused, 400, param="file")
    assert_unharmed(parallel_server.process, parallel_server.client, parallel_server.transcribe)


@pytest.mark.parametrize("path", ["nothing", "../nothing", "server.json/nothing", "/nothing", "x" * 300])
def test_a_model_at_a_path_that_leads_nowhere_is_refused_without_telling_where_the_server_is(parallel_server, path):
    body = {"id": "new", "family": "controlled", "path": path, "task": "tts"}

    refused = assert_refused(parallel_server.client.post("/v1/models/load", json=body), 400, param="path")

    assert repr(path)[:-1] in refused.message


@pytest.mark.parametrize(
    "raw",
    [
        b"POST /v1/audio/transcriptions HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST /v1/audio/speech HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST /v1/audio/speech HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"\x16\x03\x01\x02\x00 this is TLS\r\n\r\n",
    ],
    ids=["negative_length", "two_lengths", "bad_chunk", "tls"],
)
def test_what_is_no_http_is_refused_in_the_same_shape(server, raw):
    address = urlsplit(server.process.url)
    with socket.create_connection((address.hostname, address.port), timeout=HANG_GUARD_S) as connection:
        connection.sendall(raw)
        head, _, body = b"".join(iter(lambda: connection.recv(65536), b"")).partition(b"\r\n\r\n")

    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"content-type: application/json" in head
    assert set(json.loads(body)["error"]) == {"message", "type", "param", "code"}
    assert_unharmed(server.process, server.client, lambda: server.speak("the next good request"))


FILENAMES = [
    "../../../../tmp/antiphon_pwn.wav", "/tmp/antiphon_pwn.wav", "..\\..\\antiphon_pwn.wav", "a\0b.wav", "x" * 5000,
    "名前 😀.wav", "CON", ".", "-i.wav", "a.wav; rm -rf",
]  # fmt: skip


@pytest.mark.parametrize("filename", FILENAMES, ids=range(len(FILENAMES)))
def test_the_name_of_an_upload_is_never_a_path(parallel_server, filename):  # SEC-04
    content = form(MODEL, part("file", CLIP, filename))

    assert parallel_server.client.post(**transcription(content)).status_code == 200

    names = [path.name for path in parallel_server.process.folder.parent.rglob("*")]
    assert not [name for name in names if "pwn" in name or name in (filename, "CON")]
    assert list(parallel_server.process.temp.iterdir()) == []


@pytest.mark.parametrize(
    "content",
    [
        form(MODEL, part("file", CLIP, "blob")),
        form(MODEL, part("file", CLIP, "upload", b"Content-Type: application/octet-stream\r\n")),
        form(MODEL, part("file", CLIP, "Recording-06.09 23:21.webm", b"Content-Type: audio/webm; codecs=opus\r\n")),
        form(MODEL, part("file", CLIP, "")),
        form(MODEL, part("file", CLIP)),
        form(FILE, MODEL),
    ],
    ids=["no_part_type", "octet_stream", "another_name_and_type", "empty_name", "no_name", "file_first"],
)
def test_a_file_is_known_by_its_bytes_whatever_its_part_says(server, content):
    assert server.client.post(**transcription(content)).status_code == 200


@pytest.mark.parametrize("name", audio_assets.good_audio_variants(audio_assets.tone(440, 0.5, 48_000), 48_000))
def test_every_accepted_container_is_decoded(parallel_server, name):
    file = audio_assets.good_audio_variants(audio_assets.tone(440, 0.5, 48_000), 48_000)[name]

    answer = parallel_server.transcribe(file, response_format="verbose_json")

    assert answer.status_code == 200, answer.text
    assert answer.json()["duration"] == pytest.approx(0.5, abs=0.08)


def test_no_answer_holds_a_number_that_json_has_not(parallel_server):
    sound = audio_assets.tone(440, 0.5)
    sound[:100] = float("nan")
    sound[100:200] = float("inf")
    file = audio_assets.wav_bytes(sound, bits=32, tag=audio_assets.FLOAT)

    answer = parallel_server.transcribe(file, response_format="verbose_json")

    assert answer.status_code in (200, 400)
    json.loads(answer.text, parse_constant=pytest.fail)


@pytest.mark.parametrize("route", [TRANSCRIPTIONS, "/v1/batches/transcriptions"])
def test_an_upload_that_is_named_as_a_file_leaves_that_file_alone(parallel_server, route):
    there = parallel_server.process.folder / "there.wav"
    there.write_bytes(b"what was there")

    for name in (str(there), "there.wav", "../there.wav", f"{parallel_server.process.temp}/../there.wav"):
        content = form(MODEL, part("file", CLIP * 100, name))  # too long for memory
        answer = parallel_server.client.post(route, content=content, headers=FORM)
        assert answer.status_code == 200, answer.text

    assert there.read_bytes() == b"what was there"
    assert list(parallel_server.process.temp.iterdir()) == []


BAD = list(audio_assets.bad_audio().values())
LISTENING = {
    "a form": lambda file: transcription(form(MODEL, part("file", file))),
    "a form for a stream": lambda file: transcription(form(MODEL, part("file", file), part("stream", b"true"))),
    "a batch": lambda file: {
        **transcription(form(MODEL, FILE, part("file", file))), "url": "/v1/batches/transcriptions"
    },
    "JSON": lambda file: transcription_json(audio=base64.b64encode(file).decode()),
    "a task": lambda file: task(model="asr", request={"audio": base64.b64encode(file).decode()}),
    "a task for a stream": lambda file: {
        **task(model="asr", request={"audio": base64.b64encode(file).decode()}), "url": "/v1/tasks/stream"
    },
}  # fmt: skip


@pytest.mark.parametrize("way", LISTENING)
def test_a_file_that_is_no_audio_is_refused_while_every_slot_is_busy(parallel_server, way):
    checkpoint = parallel_server.checkpoints["asr"]
    with checkpoint.held("run"):
        running = [parallel_server.threads.submit(parallel_server.transcribe) for _ in range(2)]
        eventually(lambda: parallel_server.model("asr")["active_slots"], lambda it: it == 2, "two at work")
        for file in BAD:
            answer = parallel_server.client.post(**LISTENING[way](file))
            assert (answer.status_code, set(answer.json())) == (400, {"error"}), answer.text
            assert answer.json()["error"]["param"] in ("file", "audio", "request.audio")
    assert [it.result().status_code for it in running] == [200, 200]
    assert_unharmed(parallel_server.process, parallel_server.client, parallel_server.transcribe)


@pytest.mark.parametrize(
    ("name", "told"),
    [("utf-7''+2AA-.wav", "\ud800.wav"), ("idna''a.wav", None), ("UTF-8''%ff.wav", "\ufffd.wav")],
)
def test_a_name_that_is_no_text_is_told_again_as_far_as_it_can_be(parallel_server, name, told):
    named = b'--%s\r\nContent-Disposition: form-data; name="file"; filename*=%s\r\n\r\n%s\r\n'
    content = form(MODEL, named % (BOUNDARY.encode(), name.encode(), CLIP))

    answer = parallel_server.client.post("/v1/batches/transcriptions", content=content, headers=FORM)

    assert answer.status_code == 200
    found = json.loads(answer.text.partition("\n")[0].removeprefix("data: "))
    assert (found["type"], found["filename"]) == ("batch.transcription.result", told)
