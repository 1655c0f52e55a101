"""Voices, presets and recordings over real sockets, in both isolations: API-08, SEC-01 and TTS-10 among them."""

import base64
import os

import pytest

from audio_assets import tone, wav_bytes
from conformance_client import eventually
from controlled_server import CLIP, TASK_RUN, controlled_server
from isolated_server import state_of
from refusals import assert_refused, assert_unharmed
from server_process import HANG_GUARD_S

LOAD, VOICES = "/v1/models/load", "/v1/audio/voices"
TASK_STREAM, TASK_BATCH = "/v1/tasks/stream", "/v1/tasks/batch"
RECORDING = wav_bytes(tone(300, 0.25, 8000), 8000)
HEARD = {"rate": 16_000, "channels": 1, "frames": 4000}
"""The recording as an engine of 16 kHz hears it."""
PRESETS = {
    "calm": {"voice": "bryn", "speed": 0.5, "seed": 3, "options": {"pitch": 1}},
    "alloy": {"voice": "alba"},
    "twin": {"voice_ref": "alice"},
    "file": {"voice_ref": {"path": "clips/alice.wav"}, "reference_text": "From a file."},
}


@pytest.fixture(scope="module", params=["thread", "process"])
def server(request, tmp_path_factory):
    """The models `tts`, which imitates voices and has presets, and `asr`; recordings in `voices` and `clips`."""
    folder = tmp_path_factory.mktemp(request.param)
    for name in ("voices", "clips"):
        (folder / name).mkdir()
        (folder / name / "alice.wav").write_bytes(RECORDING)
    (folder / "voices" / "alice.txt").write_text("It is Alice.")
    settings = {"isolation": request.param, "models_root": "root", "ui_management": True}
    roots = {"voice_dir": "voices", "allowed_audio_roots": ["clips"]}
    with controlled_server(folder, parallel=True, **settings, **roots) as server:
        checkpoint = server.checkpoints["tts"]
        checkpoint.set("voices", "alba bryn")
        checkpoint.set("options", "speed pitch reference_text=text")
        checkpoint.set("languages", "en de")
        checkpoint.set("clones")
        yield server


@pytest.fixture
def presets(server):
    """The model `tts` with its presets, registered as at first in each test."""
    registered(server)
    return server


def register(server, **fields):
    path = str(server.checkpoints["tts"].path)
    body = {"id": "tts", "family": "controlled", "task": "tts", "path": path, "slots": 2, **fields}
    return server.client.post(LOAD, json=body)


def presets_of(server):
    """The presets, with the path that a client must know where the server runs elsewhere."""
    file = {"voice_ref": {"path": str(server.process.folder / "clips" / "alice.wav")}}
    return {**PRESETS, "file": {**PRESETS["file"], **file}}


def registered(server, **fields):
    fields = {"voice_presets": presets_of(server), **fields}
    assert register(server, **fields).json() == {"id": "tts", "loaded": True}


def terms(server, text):
    """What the engine was last told of a request beside its text."""
    return server.checkpoints["tts"].events("run", text)[-1].terms


def spoken(server, text, **fields):
    answer = server.speak(text, **fields)
    assert answer.status_code == 200, answer.text
    return terms(server, text)


def loads(server):
    return len(server.checkpoints["tts"].events("load"))


# Presets


def test_a_preset_says_what_the_request_leaves_open(presets):
    assert spoken(presets, "calm", voice="calm") == {
        "voice": "bryn",
        "seed": 3,
        "options": {"speed": 0.5, "pitch": 1},
    }
    own = {"speed": 1, "seed": 0, "options": {"pitch": 2}}
    assert spoken(presets, "calm, as I say", voice="calm", **own) == {"voice": "bryn", "options": {"pitch": 2}}


def test_a_preset_goes_before_a_voice_of_openais_that_has_its_name(presets):
    assert spoken(presets, "alloy", voice="alloy") == {"voice": "alba"}
    assert spoken(presets, "ash", voice="ash") == {"voice": "bryn"}


def test_presets_hold_for_streams_tasks_and_each_of_a_batch(presets):
    spoken(presets, "a stream", voice="calm", stream_format="audio")
    task = {"model": "tts", "request": {"text": "a task", "voice": "calm"}}
    assert presets.client.post(TASK_RUN, json=task).status_code == 200
    streamed = {"model": "tts", "request": {"text": "a streamed task", "voice": "calm"}}
    assert presets.client.post(TASK_STREAM, json=streamed).status_code == 200
    requests = [{"text": "first", "voice": "calm"}, {"text": "second", "seed": 5}, {"text": "third", "voice": "alba"}]
    assert presets.client.post(TASK_BATCH, json={"model": "tts", "requests": requests}).status_code == 200

    calm = {"voice": "bryn", "seed": 3, "options": {"speed": 0.5, "pitch": 1}}
    assert [terms(presets, text) for text in ("a stream", "a task", "a streamed task", "first")] == [calm] * 4
    assert [terms(presets, text) for text in ("second", "third")] == [{"seed": 5}, {"voice": "alba"}]


def test_the_default_preset_and_the_default_options_come_last(server):
    defaults = {"language": "de", "seed": 8, "pitch": 4, "speed": 2}
    registered(server, default_voice_preset="calm", default_request_options=defaults)

    assert spoken(server, "nothing said") == {
        "voice": "bryn",
        "language": "de",
        "seed": 3,
        "options": {"speed": 0.5, "pitch": 1},
    }
    assert spoken(server, "some said", voice="alba", language="en", options={"pitch": 9}) == {
        "voice": "alba",
        "language": "en",
        "seed": 3,
        "options": {"speed": 0.5, "pitch": 9},
    }
    assert "language" not in spoken(server, "to be detected", language="auto")


def test_default_options_hold_for_transcripts_too(server):
    checkpoint = server.checkpoints["asr"]
    checkpoint.set("options", "temperature beam_size")
    body = {"id": "asr", "family": "controlled", "task": "asr", "path": str(checkpoint.path), "slots": 2}
    defaults = {"language": "de", "beam_size": 5, "temperature": 1}
    assert server.client.post(LOAD, json={**body, "default_request_options": defaults}).status_code == 200

    assert server.transcribe(prompt="left open").status_code == 200
    assert server.transcribe(prompt="said", language="en", temperature="0", seed="4").status_code == 200

    assert [checkpoint.events("run", text)[-1].terms for text in ("left open", "said")] == [
        {"language": "de", "options": {"beam_size": 5, "temperature": 1}},
        {"language": "en", "seed": 4, "options": {"beam_size": 5}},
    ]


@pytest.mark.parametrize(
    "fields",
    [
        {"voice_presets": {"calm": {"speed": 2}}},
        {"default_voice_preset": "calm"},
        {"default_request_options": {"pitch": 7}},
        {"voice_presets": {}},
        {"busy_timeout_ms": 12_345, "pinned": True, "aliases": ["tts-1"], "run_timeout_ms": 60_000},
    ],
    ids=str,
)
def test_a_change_of_presets_or_policy_loads_nothing(presets, fields):
    before = loads(presets)
    registered(presets, **fields)
    assert spoken(presets, "it still speaks") == spoken(presets, "and again")
    assert loads(presets) == before


def test_a_request_before_the_change_has_the_old_presets_and_one_after_it_the_new_ones(presets):
    before, checkpoint = loads(presets), presets.checkpoints["tts"]
    with checkpoint.held("run"):
        running = [presets.later(f"running {number}", voice="calm") for number in range(2)]
        checkpoint.wait_for("run", 1, "running 0")
        checkpoint.wait_for("run", 1, "running 1")
        queued = presets.later("queued", voice="calm")
        waiting_for(presets, 1)
        changed = {"calm": {"voice": "alba", "seed": 4}}
        registering = presets.threads.submit(registered, presets, voice_presets=changed)
        waiting_for(presets, 2)
        behind = presets.later("behind", voice="calm")
        waiting_for(presets, 3)
    for call in (*running, queued, behind):
        assert call.result(HANG_GUARD_S).status_code == 200
    registering.result(HANG_GUARD_S)

    assert [terms(presets, text).get("seed") for text in ("running 0", "running 1", "queued", "behind")] == [3, 3, 3, 4]
    assert loads(presets) == before


def waiting_for(server, count):
    """Return once so many wait at the model."""
    eventually(lambda: state_of(server)["waiting"], lambda waiting: waiting == count, f"{count} wait")


BAD = {
    "voice": ({"voice_presets": {"p": {"voice": "coco"}}}, "voice_presets.p.voice"),
    "option": ({"voice_presets": {"p": {"options": {"beams": 1}}}}, "voice_presets.p.options.beams"),
    "range": ({"voice_presets": {"p": {"options": {"pitch": 101}}}}, "voice_presets.p.options.pitch"),
    "language": ({"voice_presets": {"p": {"language": "fr"}}}, "voice_presets.p.language"),
    "library": ({"voice_presets": {"p": {"voice_ref": "bob"}}}, "voice_presets.p.voice_ref"),
    "path": ({"voice_presets": {"p": {"voice_ref": {"path": "/dev/zero"}}}}, "voice_presets.p.voice_ref"),
    "unknown": ({"voice_presets": {"p": {"loud": True}}}, "voice_presets.p.loud"),
    "default": ({"default_voice_preset": "nobody"}, "default_voice_preset"),
    "default option": ({"default_request_options": {"beams": 1}}, "default_request_options.beams"),
    "default voice": ({"default_request_options": {"voice": "alba"}}, "default_request_options.voice"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_preset_that_the_model_cannot_follow_is_refused_and_changes_nothing(presets, name):
    fields, param = BAD[name]
    before = loads(presets)

    assert_refused(register(presets, **{"voice_presets": presets_of(presets), **fields}), 400, param=param)
    assert_refused(register(presets, **fields, dry_run=True), 400, param=param)

    assert spoken(presets, "as before", voice="calm")["seed"] == 3
    assert loads(presets) == before


# The list


def test_the_voices_of_a_model_are_its_presets_its_own_and_the_library(presets):
    answer = presets.client.get(VOICES, params={"model": "tts"}).json()

    kinds = {"calm": "preset", "alloy": "preset", "twin": "preset", "file": "preset", "alba": "model", "bryn": "model"}
    assert answer == {
        "model": "tts",
        "default_preset": None,
        "voices": [{"id": name, "name": name, "kind": kind} for name, kind in (kinds | {"alice": "library"}).items()],
    }
    assert presets.model()["voices"] == ["alba", "bryn", "calm", "alloy", "twin", "file"]


def test_a_preset_of_a_voices_name_is_listed_once(server):
    registered(server, voice_presets={"alba": {"voice": "bryn"}}, default_voice_preset="alba")

    answer = server.client.get(VOICES, params={"model": "tts"}).json()

    assert answer["default_preset"] == "alba"
    assert [(it["id"], it["kind"]) for it in answer["voices"]] == [
        ("alba", "preset"),
        ("bryn", "model"),
        ("alice", "library"),
    ]
    assert spoken(server, "by its name", voice="alba") == {"voice": "bryn"}


def test_without_a_model_the_voices_of_all_that_speak_are_listed_with_those_who_know_them(presets):
    voices = presets.client.get(VOICES).json()["voices"]

    assert {it["id"] for it in voices} == {*PRESETS, "alba", "bryn", "alice"}
    assert all(it["models"] == ["tts"] and it["name"] == it["id"] for it in voices)


def test_the_voices_of_an_unknown_model_are_not_found_and_those_of_a_listener_none(server):
    assert_refused(server.client.get(VOICES, params={"model": "nobody"}), 404, param="model", code="model_not_found")
    assert server.client.get(VOICES, params={"model": "asr"}).json()["voices"] == []


def test_the_list_waits_for_no_model(presets):
    with presets.checkpoints["tts"].held("run"):
        running = presets.later("in the engine")
        presets.checkpoints["tts"].wait_for("run", text="in the engine")
        assert presets.client.get(VOICES).status_code == 200
        assert presets.client.get(VOICES, params={"model": "tts"}).status_code == 200
    assert running.result(HANG_GUARD_S).status_code == 200


# Recordings


def encoded(data):
    return {"data": base64.b64encode(data).decode()}


def path_of(server, folder, name="alice.wav"):
    return {"path": str(server.process.folder / folder / name)}


@pytest.mark.parametrize("source", ["data", "voice_dir", "allowed root", "name"])
@pytest.mark.parametrize("fields", [{}, {"stream_format": "sse"}], ids=["whole", "stream"])
def test_a_recording_reaches_the_engine_at_its_rate_wherever_it_comes_from(presets, source, fields):
    references = {
        "data": encoded(RECORDING),
        "voice_dir": path_of(presets, "voices"),
        "allowed root": path_of(presets, "clips"),
        "name": "alice",
    }
    text = f"like {source} {len(fields)}"
    said = {"options": {"reference_text": "It is Alice."}} if source == "name" else {}
    assert spoken(presets, text, voice_ref=references[source], **fields) == {"voice_ref": HEARD, **said}


def test_a_voice_of_the_library_goes_by_its_name_and_through_presets(presets):
    alice = {"voice_ref": HEARD, "options": {"reference_text": "It is Alice."}}
    assert spoken(presets, "by voice", voice="alice") == alice
    assert spoken(presets, "by preset", voice="twin") == alice
    assert spoken(presets, "by file", voice="file") == {**alice, "options": {"reference_text": "From a file."}}
    told = spoken(presets, "with a text", voice_ref=encoded(RECORDING), reference_text="Mine.")
    assert told["options"] == {"reference_text": "Mine."}


def test_tasks_and_batches_take_recordings(presets):
    task = {"text": "a task like her", "voice_ref": encoded(RECORDING)}
    assert presets.client.post(TASK_RUN, json={"model": "tts", "request": task}).status_code == 200
    batch = [{"text": "batch 0"}, {"text": "batch 1", "voice_ref": "alice"}, {"text": "batch 2", "voice": "twin"}]
    assert presets.client.post(TASK_BATCH, json={"model": "tts", "requests": batch}).status_code == 200
    heard = [terms(presets, text).get("voice_ref") for text in ("a task like her", "batch 0", "batch 1", "batch 2")]
    assert heard == [HEARD, None, HEARD, HEARD]


def test_a_model_that_cannot_imitate_refuses_a_recording(presets):
    for reference in (encoded(RECORDING), "alice", path_of(presets, "clips")):
        refused = presets.speak("like her", model="org/tts one", voice_ref=reference)
        assert_refused(refused, 400, param="voice_ref")
    task = {"text": "x", "voice_ref": "alice"}
    refused = presets.client.post(TASK_RUN, json={"model": "org/tts one", "request": task})
    assert_refused(refused, 400, param="request.voice_ref")
    assert_refused(presets.speak("like her", model="org/tts one", voice="alice"), 400, param="voice")
    assert_unharmed(presets.process, presets.client, lambda: presets.speak("the next"))


REFUSED = {
    "no audio": (encoded(b"certainly no audio"), "voice_ref"),
    "a cut header": (encoded(CLIP[:20]), "voice_ref"),
    "no base64": ({"data": "%%%"}, "voice_ref.data"),
    "nothing": ({}, "voice_ref"),
    "both": ({"data": "", "path": ""}, "voice_ref"),
    "no such name": ("bob", "voice_ref"),
    "a path as a name": ("../../etc/hostname", "voice_ref"),
    "a url": ("file:///etc/hostname", "voice_ref"),
    "a number": (7, "voice_ref"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_recording_that_cannot_be_heard_is_refused_and_harms_nothing(presets, name):
    reference, param = REFUSED[name]

    assert_refused(presets.speak("like whom?", voice_ref=reference), 400, param=param)
    task = {"model": "tts", "request": {"text": "like whom?", "voice_ref": reference}}
    assert_refused(presets.client.post(TASK_RUN, json=task), 400, param=f"request.{param}")

    assert_unharmed(presets.process, presets.client, lambda: presets.speak("the next"))


def test_a_path_that_may_not_be_read_is_refused_in_the_same_words_whether_or_not_it_is_there(presets):
    folder = presets.process.folder
    (folder / "secret.wav").write_bytes(RECORDING)
    links = {"escape.wav": folder / "secret.wav", "zero.wav": "/dev/zero"}
    for name, target in links.items():
        (folder / "voices" / name).unlink(missing_ok=True)
        (folder / "voices" / name).symlink_to(target)
    pipe = folder / "voices" / "pipe.wav"
    pipe.unlink(missing_ok=True)
    os.mkfifo(pipe)
    paths = [
        "/etc/hostname",
        "/dev/zero",
        str(folder / "secret.wav"),
        str(folder / "no such.wav"),
        str(folder / "voices" / ".." / "secret.wav"),
        str(folder / "voices" / "no such.wav"),
        str(folder / "voices"),
        str(pipe),
        *(str(folder / "voices" / name) for name in links),
    ]

    refusals = {
        assert_refused(presets.speak("like whom?", voice_ref={"path": path}), 403, param="voice_ref.path").message
        for path in paths
    }

    assert len(refusals) == 1
    for name in ("escape", "zero", "pipe"):
        assert_refused(presets.speak("like whom?", voice=name), 400, param="voice")
        assert_refused(presets.speak("like whom?", voice_ref=name), 400, param="voice_ref")
    assert_unharmed(presets.process, presets.client, lambda: presets.speak("the next"))


def test_a_broken_recording_of_the_library_is_refused_as_a_voice_and_frees_its_slot(presets):
    broken = presets.process.folder / "voices" / "broken.wav"
    broken.write_bytes(b"certainly no audio")
    try:
        assert_refused(presets.speak("like whom?", voice="broken"), 400, param="voice")
        assert_refused(presets.speak("like whom?", voice="broken", stream_format="sse"), 400, param="voice")
    finally:
        broken.unlink()
    assert_unharmed(presets.process, presets.client, lambda: presets.speak("the next"))
