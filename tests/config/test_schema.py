"""CFG-02, CFG-05 and the contract's rules on slots: which values a field takes, and how others are refused."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from antiphon.config import ServerConfig, build_config
from antiphon.ports.codec import AudioFormat
from antiphon.vocabulary.spec import LiveLimits, ModelSpec, Registration
from antiphon.vocabulary.states import Isolation
from antiphon.vocabulary.tasks import Mode, Task

Load = Callable[..., ServerConfig]
Refusal = Callable[..., str]
ID_WANTED = "1 to 200 printable characters, no space at either end, no empty, '.' or '..' part between slashes"
PORT_WANTED = "an integer from 0 to 65535 (0 = any free port)"
CORES = len(os.sched_getaffinity(0))


def test_an_empty_object_takes_every_default(load: Load) -> None:
    assert load({}).model_dump() == {
        "host": "127.0.0.1",
        "port": 8080,
        "device": "cpu",
        "isolation": Isolation.PROCESS,
        "lazy_load": False,
        "busy_timeout_ms": 300_000,
        "run_timeout_ms": 0,
        "cancel_timeout_ms": 60_000,
        "load_timeout_ms": 0,
        "teardown_timeout_ms": 0,
        "slow_reader_timeout_ms": 30_000,
        "max_text_chars": 100_000,
        "speech_format": AudioFormat.WAV,
        "max_audio_seconds": 14_400,
        "max_request_body_bytes": 536_870_912,
        "max_json_body_bytes": 33_554_432,
        "max_pending_body_mb": 1024,
        "max_pending_audio_mb": 1024,
        "max_loaded_models": 0,
        "idle_unload_ms": 0,
        "min_free_memory_mb": 0,
        "residency_wait_ms": 0,
        "ui_management": False,
        "models_root": None,
        "voice_dir": None,
        "allowed_audio_roots": (),
        "api_keys_file": None,
        "admin_keys_file": None,
        "api_keys": (),
        "admin_keys": (),
        "insecure": False,
        "allowed_hosts": (),
        "cors_origins": "",
        "tls_cert": None,
        "tls_key": None,
        "header_timeout_ms": 20_000,
        "body_timeout_ms": 30_000,
        "min_body_bytes_per_s": 4096,
        "send_timeout_ms": 30_000,
        "keep_alive_ms": 75_000,
        "max_connections": 1000,
        "drain_timeout_ms": 30_000,
        "journal": None,
        "journal_max_mb": 64,
        "live_ingest": None,
        "listeners": (),
        "models": (),
    }


def test_a_models_own_limits_are_part_of_its_registration(load_model: Load) -> None:
    limits = {"run_timeout_ms": 1, "load_timeout_ms": 0, "teardown_timeout_ms": 3}
    (registration,) = load_model(**limits).registrations()
    assert {name: getattr(registration, name) for name in limits} == limits


def test_a_model_of_the_required_fields_takes_every_default(load_model: Load, home: Path) -> None:
    spec = ModelSpec(
        "a", "controlled", str(home / "models/a"), Task.TTS, Mode.OFFLINE, 1, "cpu", CORES, {}, {}, Isolation.PROCESS
    )
    assert load_model().registrations() == (Registration(spec, lazy=False, busy_timeout_ms=None),)


def test_a_model_keeps_every_field_that_it_is_given(load_model: Load, home: Path) -> None:
    config = load_model(
        parallel_jobs=True,
        id="org/name:1 xé",
        family="f",
        path="models/b",
        task="asr",
        mode="streaming",
        slots=16,
        lazy=True,
        busy_timeout_ms=0,
        threads=3,
        load_options={"compute_type": "int8"},
        session_options={"nested": {"beams": [1, None, True]}},
        isolation="thread",
    )
    spec = ModelSpec(
        id="org/name:1 xé",
        family="f",
        path=str(home / "models/b"),
        task=Task.ASR,
        mode=Mode.STREAMING,
        slots=16,
        device="cpu",
        threads=3,
        load_options={"compute_type": "int8"},
        session_options={"nested": {"beams": [1, None, True]}},
        isolation=Isolation.THREAD,
    )
    asked = Registration(spec, lazy=True, busy_timeout_ms=0, isolation_asked=True, threads_asked=True)
    assert config.registrations() == (asked,)


@pytest.mark.parametrize(("cores", "slots", "threads"), [(8, 1, 8), (8, 3, 2), (8, 8, 1), (2, 16, 1)])
def test_threads_left_out_are_the_cores_shared_among_the_slots(
    load_model: Load, cores: int, slots: int, threads: int
) -> None:
    (model,) = load_model(parallel_jobs=True, slots=slots).models
    registration = model.to_registration(
        device="cpu", lazy_load=False, isolation=Isolation.THREAD, cores=cores, live=LiveLimits()
    )
    assert registration.spec.threads == threads


def test_threads_auto_are_all_cores_whatever_the_slots(load_model: Load) -> None:
    (model,) = load_model(parallel_jobs=True, slots=4, threads="auto").models
    spec = model.to_registration(
        device="cpu", lazy_load=False, isolation=Isolation.THREAD, cores=8, live=LiveLimits()
    ).spec
    assert (spec.threads, spec.auto_threads) == (8, True)


def test_engines_run_in_processes_unless_the_server_or_the_model_says_otherwise(load: Load) -> None:
    model = {"family": "f", "path": "models/a", "task": "tts"}
    models = [{**model, "id": "quiet"}, {**model, "id": "near", "isolation": "thread"}]
    ours = [it.spec.isolation for it in load({"models": models}).registrations()]
    theirs = [it.spec.isolation for it in load({"isolation": "thread", "models": models}).registrations()]
    assert (ours, theirs) == ([Isolation.PROCESS, Isolation.THREAD], [Isolation.THREAD] * 2)


def test_the_server_decides_device_and_laziness_of_a_model_that_says_nothing(load: Load) -> None:
    model = {"family": "f", "path": "models/a", "task": "tts"}
    config = load(
        {
            "device": "cuda",
            "lazy_load": True,
            "models": [{**model, "id": "quiet"}, {**model, "id": "eager", "lazy": False}],
        }
    )
    assert [(r.spec.id, r.spec.device, r.lazy) for r in config.registrations()] == [
        ("quiet", "cuda", True),
        ("eager", "cuda", False),
    ]


def test_null_means_the_default_where_the_default_is_no_value_of_its_own(load_model: Load) -> None:
    assert load_model(lazy=None, busy_timeout_ms=None, threads=None).registrations() == load_model().registrations()


def test_a_configuration_cannot_be_changed(load: Load) -> None:
    config = load({})
    with pytest.raises(ValidationError, match="frozen"):
        config.port = 1


@pytest.mark.parametrize("slots", [1, 2, None, 0, 17, True, "2", 1.5])
def test_any_slots_without_parallel_jobs_is_refused(load_model: Load, refusal: Refusal, slots: object) -> None:
    line = refusal(load_model, slots=slots)
    assert line == (
        "server.json: models[0].slots: slots needs --parallel-jobs; leave it out, or start with --parallel-jobs"
    )


@pytest.mark.parametrize("slots", [1, 2, 16])
def test_one_to_sixteen_slots_are_taken_with_parallel_jobs(load_model: Load, slots: int) -> None:
    assert load_model(parallel_jobs=True, slots=slots).models[0].slots == slots


@pytest.mark.parametrize(
    ("slots", "found"),
    [(0, "0"), (17, "17"), (-1, "-1"), (True, "true"), ("2", "'2'"), (1.5, "1.5"), (2.0, "2.0"), (None, "null")],
)
def test_other_slots_are_refused_with_parallel_jobs(
    load_model: Load, refusal: Refusal, slots: object, found: str
) -> None:
    line = refusal(load_model, parallel_jobs=True, slots=slots)
    assert line == f"server.json: models[0].slots: wanted an integer from 1 to 16; found {found}"


@pytest.mark.parametrize(
    ("field", "value", "line"),
    [
        ("port", 1.5, f"wanted {PORT_WANTED}; found 1.5"),
        ("port", 70000, f"wanted {PORT_WANTED}; found 70000"),
        ("port", -1, f"wanted {PORT_WANTED}; found -1"),
        ("port", "8080x", f"wanted {PORT_WANTED}; found '8080x'"),
        ("port", "8080", f"wanted {PORT_WANTED}; found '8080'"),
        ("port", True, f"wanted {PORT_WANTED}; found true"),
        ("port", None, f"wanted {PORT_WANTED}; found null"),
        ("port", float("nan"), f"wanted {PORT_WANTED}; found nan"),
        ("port", float("inf"), f"wanted {PORT_WANTED}; found inf"),
        ("host", "", "wanted a host name or an address; found ''"),
        ("host", "a b", "wanted a host name or an address; found 'a b'"),
        ("host", 127, "wanted a host name or an address; found 127"),
        ("device", "CPU", "wanted one of cpu, cuda, vulkan; found 'CPU'"),
        ("lazy_load", 1, "wanted true or false; found 1"),
        ("lazy_load", "false", "wanted true or false; found 'false'"),
        ("ui_management", 0, "wanted true or false; found 0"),
        ("busy_timeout_ms", -1, "wanted whole milliseconds, 0 or more (0 = no bound); found -1"),
        ("run_timeout_ms", -1, "wanted whole milliseconds, 0 or more (0 = no limit); found -1"),
        ("load_timeout_ms", True, "wanted whole milliseconds, 0 or more (0 = no limit); found true"),
        ("teardown_timeout_ms", 1.5, "wanted whole milliseconds, 0 or more (0 = no limit); found 1.5"),
        ("busy_timeout_ms", "5", "wanted whole milliseconds, 0 or more (0 = no bound); found '5'"),
        ("busy_timeout_ms", 2**53, f"wanted whole milliseconds, 0 or more (0 = no bound); found {2**53}"),
        ("max_text_chars", 0, "wanted an integer, 1 or more; found 0"),
        ("speech_format", "ogg", "wanted one of wav, mp3, opus, flac, aac, pcm; found 'ogg'"),
        ("max_audio_seconds", 0.5, "wanted an integer, 1 or more; found 0.5"),
        ("max_request_body_bytes", "512M", "wanted an integer, 1 or more; found '512M'"),
        ("max_pending_audio_mb", False, "wanted an integer, 1 or more; found false"),
        ("models_root", 1, "wanted the path of a folder; found 1"),
        ("allowed_audio_roots", "models", "wanted a list of existing folders; found 'models'"),
        ("models", "a", "wanted a list of models; found 'a'"),
        ("models", {}, "wanted a list of models; found an object"),
        ("models", None, "wanted a list of models; found null"),
    ],
)
def test_a_server_field_of_another_type_or_range_is_refused(
    load: Load, refusal: Refusal, field: str, value: object, line: str
) -> None:
    assert refusal(load, {field: value}) == f"server.json: {field}: {line}"


@pytest.mark.parametrize(
    ("field", "value", "line"),
    [
        ("id", "", f"wanted {ID_WANTED}; found ''"),
        ("id", 1, f"wanted {ID_WANTED}; found 1"),
        ("family", "", "wanted the name of an installed engine family; found ''"),
        ("path", None, "wanted the path of an existing file or folder; found null"),
        ("task", "speech", "wanted one of tts, asr, diar, vad, align; found 'speech'"),
        ("task", True, "wanted one of tts, asr, diar, vad, align; found true"),
        ("mode", "batch", "wanted one of offline, streaming; found 'batch'"),
        ("lazy", "yes", "wanted true or false; found 'yes'"),
        ("busy_timeout_ms", -1, "wanted whole milliseconds, 0 or more (0 = no bound); found -1"),
        ("threads", 0, "wanted an integer from 1 to 1024, or auto; found 0"),
        ("threads", True, "wanted an integer from 1 to 1024, or auto; found true"),
        ("threads", 1.5, "wanted an integer from 1 to 1024, or auto; found 1.5"),
        ("threads", "two", "wanted an integer from 1 to 1024, or auto; found 'two'"),
        ("load_options", [], "wanted an object of JSON values with finite numbers; found a list"),
        (
            "session_options",
            {"deep": [{"x": float("nan")}]},
            "wanted an object of JSON values with finite numbers; found NaN or infinity",
        ),
        (
            "load_options",
            {"x": float("-inf")},
            "wanted an object of JSON values with finite numbers; found NaN or infinity",
        ),
    ],
)
def test_a_model_field_of_another_type_or_range_is_refused(
    load_model: Load, refusal: Refusal, field: str, value: object, line: str
) -> None:
    assert refusal(load_model, **{field: value}) == f"server.json: models[0].{field}: {line}"


@pytest.mark.parametrize("field", ["id", "family", "path", "task"])
def test_a_required_field_that_is_missing_is_named(load: Load, refusal: Refusal, field: str) -> None:
    model = {"id": "a", "family": "f", "path": "models/a", "task": "tts"}
    del model[field]
    assert refusal(load, {"models": [model]}).startswith(f"server.json: models[0].{field}: is missing; wanted ")


def test_a_model_that_is_no_object_is_refused(load: Load, refusal: Refusal) -> None:
    line = refusal(load, {"models": ["models/a"]})
    assert line == "server.json: models[0]: wanted an object that describes a model; found 'models/a'"


def test_an_unknown_server_field_is_refused_with_its_likely_name(load: Load, refusal: Refusal) -> None:
    assert refusal(load, {"Prot": 1}) == "server.json: Prot: unknown field; did you mean port?"


def test_a_field_of_a_later_version_is_unknown(load: Load, refusal: Refusal) -> None:
    line = refusal(load, {"zzz": 0})
    assert line.startswith("server.json: zzz: unknown field; known are host, port, device, ")


def test_a_misspelt_required_field_is_named_before_the_one_that_is_missing(load_model: Load, refusal: Refusal) -> None:
    model = {"id": "a", "famly": "f", "path": "models/a", "task": "tts"}
    line = refusal(lambda: build_config({"models": [model]}, source="-", base=Path("/"), parallel_jobs=False))
    assert line == "-: models[0].famly: unknown field; did you mean family? (and 2 more)"


def test_a_server_field_on_a_model_is_unknown_there(load_model: Load, refusal: Refusal) -> None:
    line = refusal(load_model, port=1)
    assert line.startswith("server.json: models[0].port: unknown field; known are id, family, path, ")


def test_an_unknown_field_with_a_hostile_name_stays_on_one_short_line(load: Load, refusal: Refusal) -> None:
    line = refusal(load, {"\x1b[31m\n" + "x" * 5000: 1})
    assert line.startswith(r"server.json: ['\x1b[31m\nxxx")
    assert len(line) < 1000


def test_a_second_fault_is_counted(load: Load, refusal: Refusal) -> None:
    assert refusal(load, {"port": -1, "lazy_load": 1}).endswith("; found -1 (and 1 more)")


@pytest.mark.parametrize(
    ("first", "second"), [("a", "a"), ("a", "A"), ("Straße", "STRASSE"), ("e\u0301", "\u00e9"), ("", "")]
)
def test_ids_that_are_equal_but_for_case_are_refused(load: Load, refusal: Refusal, first: str, second: str) -> None:
    model = {"family": "f", "task": "tts"}
    line = refusal(load, {"models": [{**model, "id": first, "path": "none"}, {**model, "id": second, "path": "none"}]})
    assert line == (
        f"server.json: models[1].id: wanted an id of its own, case aside; found {second!r}, which models[0] has"
    )


def test_a_model_takes_aliases(load_model: Load) -> None:
    assert load_model(aliases=["tts-1", "org/é"]).registrations()[0].names == ("a", "tts-1", "org/é")


@pytest.mark.parametrize(
    "aliases", [["x", "X"], ["A"], ["a b "], [""], ["x/../y"], [7], "tts-1", [f"{n}" for n in range(65)]]
)
def test_aliases_that_are_no_names_of_their_own_are_refused(
    load_model: Load, refusal: Refusal, aliases: object
) -> None:
    assert refusal(load_model, aliases=aliases).startswith("server.json: models[0].aliases")


@pytest.mark.parametrize(
    ("one", "other", "place"),
    [
        ({"id": "a"}, {"id": "b", "aliases": ["x", "A"]}, "aliases"),
        ({"id": "a", "aliases": ["B"]}, {"id": "b"}, "id"),
        ({"id": "a", "aliases": ["x"]}, {"id": "b", "aliases": ["x"]}, "aliases"),
    ],
)
def test_a_name_of_two_models_is_refused(load: Load, refusal: Refusal, one: dict, other: dict, place: str) -> None:
    model = {"family": "f", "task": "tts", "path": "models/a"}
    line = refusal(load, {"models": [{**model, **one}, {**model, **other}]})
    assert line.startswith(f"server.json: models[1].{place}: wanted ")
    assert line.endswith("which models[0] has")


@pytest.mark.parametrize("model_id", ["a", "org/name:1 xé", "שלום", "a.b", "...", "a?b#c%2F", "x" * 200])
def test_an_id_of_printable_characters_is_taken(load_model: Load, model_id: str) -> None:
    assert load_model(id=model_id).registrations()[0].spec.id == model_id


@pytest.mark.parametrize(
    "model_id",
    [" a", "a ", "a\n", "a\tb", "a\u200b", "\ud800", "x" * 201, "/a", "a/", "a//b", ".", "..", "a/../b", "./a", "/"],
)
def test_an_id_that_would_be_lost_in_a_url_is_refused(load_model: Load, refusal: Refusal, model_id: str) -> None:
    assert refusal(load_model, id=model_id).startswith(f"server.json: models[0].id: wanted {ID_WANTED}; found ")


def test_options_that_are_nested_without_end_are_refused(load_model: Load, refusal: Refusal) -> None:
    nested: Any = []
    for _ in range(500):
        nested = [nested]
    line = refusal(load_model, load_options={"x": nested})
    assert line == (
        "server.json: models[0].load_options: wanted an object of JSON values with finite numbers; found a list"
    )


def test_live_limits_are_the_servers_where_a_model_has_none(load: Load) -> None:
    model = {"id": "a", "family": "controlled", "path": "models/a", "task": "asr"}
    own = {**model, "id": "b", "live_ingest": {"idle_timeout_ms": 0}}
    config = load({"live_ingest": {"idle_timeout_ms": 5000, "max_chunk_bytes": 1000}, "models": [model, own]})
    assert config.live_limits() == LiveLimits(idle_timeout_s=5, max_chunk_bytes=1000)
    assert [it.live for it in config.registrations()] == [
        LiveLimits(idle_timeout_s=5, max_chunk_bytes=1000),
        LiveLimits(idle_timeout_s=0, max_chunk_bytes=1000),
    ]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"max_chunk_bytes": 0}, "max_chunk_bytes: wanted bytes, 1 or more; found 0"),
        ({"idle_timeout_ms": -1}, "idle_timeout_ms: wanted whole milliseconds, 0 or more (0 = no limit); found -1"),
        ({"idle_timeout_s": 1}, "idle_timeout_s: unknown field; did you mean idle_timeout_ms?"),
    ],
    ids=["too small", "negative", "unknown"],
)
def test_a_bad_live_limit_is_named(load: Load, load_model: Load, refusal: Refusal, fields: dict, said: str) -> None:
    assert refusal(load, {"live_ingest": fields}) == f"server.json: live_ingest.{said}"
    assert refusal(load_model, live_ingest=fields) == f"server.json: models[0].live_ingest.{said}"
