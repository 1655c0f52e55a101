"""A key that appears twice in a JSON object is refused and named, on every route and socket that reads JSON."""

import base64
import json

import pytest

from antiphon.runtime.aside import LOOP_BYTES
from controlled_server import CLIP, SPEECH, TASK_RUN, TRANSCRIPTIONS
from refusals import assert_refused, assert_unharmed
from server_process import HANG_GUARD_S
from websocket_clients import connect

AUDIO = base64.b64encode(CLIP).decode()
LARGE = "x" * LOOP_BYTES


def with_twice(fields: dict[str, object], path: str) -> bytes:
    """The fields as JSON in which the member at this dotted path is there twice, with different values."""
    *outer, name = path.split(".")
    holder = fields
    for part in outer:
        holder = holder.setdefault(part, {})
    holder["@"] = "once more"
    holder.setdefault(name, 1)
    return json.dumps(fields).replace('"@"', json.dumps(name)).encode()


BODIES = [
    (SPEECH, {"model": "tts", "input": "a refusal"}, "model"),
    (SPEECH, {"model": "tts", "input": "a refusal"}, "input"),
    (SPEECH, {"model": "tts"}, "model"),  # and no input: the key is what is said
    (SPEECH, {"model": "tts", "input": 5}, "options.deep"),
    (SPEECH, {"model": "tts", "input": "a refusal", "unknown": {}}, "unknown.key"),
    (TASK_RUN, {"model": "tts", "request": {"text": "a refusal"}}, "request.text"),
    (TASK_RUN, {"model": "tts", "request": {"text": "a refusal"}}, "request"),
    ("/v1/tasks/stream", {"model": "tts", "request": {"text": "a refusal"}}, "request.text"),
    ("/v1/tasks/batch", {"model": "tts", "requests": [{"text": "a refusal"}]}, "requests"),
    (TRANSCRIPTIONS, {"model": "asr", "audio": AUDIO}, "audio"),
    (TRANSCRIPTIONS, {"model": "asr", "audio": AUDIO}, "options.a"),
    ("/v1/audio/translations", {"model": "asr", "audio": AUDIO}, "model"),
    (f"{TRANSCRIPTIONS}/details", {"model": "asr", "audio": AUDIO}, "model"),
    ("/v1/models/load", {"id": "asr"}, "id"),
    ("/v1/models/load", {"id": "asr"}, "options.a"),
    ("/v1/models/unload", {"id": "asr"}, "id"),
    ("/v1/tasks/unload_models", {"model_ids": ["asr"]}, "model_ids"),
]


@pytest.mark.parametrize("large", [False, True], ids=["small", "large"])
@pytest.mark.parametrize(("path", "fields", "param"), BODIES, ids=[f"{path} {param}" for path, _, param in BODIES])
def test_a_key_that_appears_twice_is_refused_and_named(parallel_server, path, fields, param, large):
    fields = json.loads(json.dumps(fields)) | ({"padding": LARGE} if large else {})
    body = with_twice(fields, param)
    answer = parallel_server.client.post(path, content=body, headers={"content-type": "application/json"})
    assert "appears more than once" in assert_refused(answer, 400, param).message
    assert_unharmed(parallel_server.process, parallel_server.client, lambda: parallel_server.speak("next"))


def test_a_key_that_appears_twice_in_a_small_body_of_the_page_is_refused_and_named(parallel_server):
    body = b'{"path": "models", "path": "others"}'
    answer = parallel_server.client.post(
        "/v1/ui/models_root", content=body, headers={"content-type": "application/json"}
    )
    assert "appears more than once" in assert_refused(answer, 400, "path").message


def socket_to(server, path):
    return connect(server.process.url.replace("http", "ws") + path)


def test_a_realtime_event_in_which_a_key_appears_twice_is_answered_and_changes_nothing(parallel_server):
    with socket_to(parallel_server, "/v1/realtime?intent=transcription") as socket:
        assert json.loads(socket.recv(HANG_GUARD_S))["type"] == "session.created"
        for event, param in [
            (b'{"type": "input_audio_buffer.clear", "type": "input_audio_buffer.commit"}', "type"),
            (b'{"type": "session.update", "session": {"type": "transcription", "type": "realtime"}}', "session.type"),
            (b'{"type": "input_audio_buffer.append", "audio": "%s", "audio": ""}' % (b"A" * LOOP_BYTES), "audio"),
        ]:
            socket.send(event.decode())
            error = json.loads(socket.recv(HANG_GUARD_S))
            assert (error["type"], error["error"]["param"]) == ("error", param)
            assert "appears more than once" in error["error"]["message"]
        socket.send('{"type": "input_audio_buffer.clear"}')
        assert json.loads(socket.recv(HANG_GUARD_S))["type"] == "input_audio_buffer.cleared"


def test_a_live_message_in_which_a_key_appears_twice_is_refused_and_named(parallel_server):
    with socket_to(parallel_server, f"{TRANSCRIPTIONS}/live?model=asr") as socket:
        socket.send('{"type": "end", "type": "end"}')
        error = json.loads(socket.recv(HANG_GUARD_S))
    assert (error["type"], error["error"]["param"]) == ("error", "type")
    assert "appears more than once" in error["error"]["message"]
