"""Voice presets, default request options and the voice library's folder: which values they take."""

import math
from collections.abc import Callable
from pathlib import Path

import pytest

from antiphon.config import ServerConfig, load_config, model_registration
from antiphon.vocabulary.errors import InvalidRequest
from antiphon.vocabulary.spec import LiveLimits
from antiphon.vocabulary.states import Isolation
from antiphon.vocabulary.terms import NO_TERMS, LibraryVoice, Terms, VoiceFile

Load = Callable[..., ServerConfig]
Refusal = Callable[..., str]


@pytest.fixture
def clip(home: Path) -> Path:
    file = home / "clips" / "me.wav"
    file.parent.mkdir()
    file.write_bytes(b"RIFF")
    return file


def test_a_preset_keeps_every_field_that_it_is_given(load_model: Load, clip: Path) -> None:
    presets = {
        "calm": {"voice": "joe", "language": "English", "speed": 0.8, "seed": 7, "options": {"noise_w": 0}},
        "me": {"voice_ref": {"path": "clips/me.wav"}, "reference_text": "It is me."},
        "alice": {"voice_ref": "alice"},
        "plain": {},
    }
    (registration,) = load_model(voice_presets=presets, default_voice_preset="calm").registrations()
    assert registration.default_voice_preset == "calm"
    assert registration.voice_presets == {
        "calm": Terms("joe", language="en", seed=7, named={"speed": 0.8}, options={"noise_w": 0}),
        "me": Terms(reference=VoiceFile(str(clip)), reference_text="It is me."),
        "alice": Terms(reference=LibraryVoice("alice")),
        "plain": NO_TERMS,
    }


def test_the_natural_speed_of_a_preset_asks_nothing_of_the_model(load_model: Load) -> None:
    (registration,) = load_model(voice_presets={"p": {"speed": 1}}).registrations()
    assert registration.voice_presets["p"].named == {"speed": None}


def test_default_request_options_are_a_language_a_seed_and_options(load_model: Load) -> None:
    (registration,) = load_model(
        default_request_options={"language": "de-AT", "seed": 3, "beam_size": 5, "deep": {"x": [1]}}
    ).registrations()
    assert registration.default_request_options == Terms(
        language="de", seed=3, options={"beam_size": 5, "deep": {"x": [1]}}
    )


@pytest.mark.parametrize("field", ["default_voice_preset", "default_request_options"])
def test_null_is_the_same_as_leaving_it_out(load_model: Load, field: str) -> None:
    assert load_model(**{field: None}).registrations() == load_model().registrations()


OPTIONS_WANTED = "wanted an object of JSON values with finite numbers"
REFERENCE_WANTED = 'wanted the name of a voice of the library, or {"path": ...} of a recording'
BAD_PRESETS = {
    "voice": ({"voice": 7}, ".p.voice: wanted the name of a voice; found 7"),
    "no voice": ({"voice": ""}, ".p.voice: wanted the name of a voice; found ''"),
    "speed": ({"speed": 5}, ".p.speed: wanted a number from 0.25 to 4; found 5"),
    "speed in quotes": ({"speed": "1"}, ".p.speed: wanted a number from 0.25 to 4; found '1'"),
    "true": ({"speed": True}, ".p.speed: wanted a number from 0.25 to 4; found true"),
    "seed": ({"seed": -1}, ".p.seed: wanted an integer from 0 to 2^63 - 1; found -1"),
    "options": ({"options": []}, f".p.options: {OPTIONS_WANTED}; found a list"),
    "nan": ({"options": {"x": math.nan}}, f".p.options: {OPTIONS_WANTED}; found NaN or infinity"),
    "unknown": ({"sped": 2}, ".p.sped: unknown field; did you mean speed?"),
    "reference": ({"voice_ref": {"data": "UklGRg=="}}, f".p.voice_ref: {REFERENCE_WANTED}"),
    "two references": ({"voice_ref": {"path": "models", "name": "x"}}, f".p.voice_ref: {REFERENCE_WANTED}"),
    "no preset": (7, ".p: wanted an object that describes a voice preset; found 7"),
}


@pytest.mark.parametrize("name", BAD_PRESETS)
def test_a_preset_that_cannot_be_is_refused_in_one_line_that_names_the_field(
    load_model: Load, refusal: Refusal, name: str
) -> None:
    preset, said = BAD_PRESETS[name]
    assert refusal(load_model, voice_presets={"p": preset}) == f"server.json: models[0].voice_presets{said}"


def test_a_recording_that_is_not_there_is_refused(load_model: Load, refusal: Refusal) -> None:
    line = refusal(load_model, voice_presets={"p": {"voice_ref": {"path": "none.wav"}}})
    assert line.startswith("server.json: models[0].voice_presets.p.voice_ref: wanted an existing file or folder")


def test_a_language_that_nobody_knows_is_refused(load_model: Load, refusal: Refusal) -> None:
    line = refusal(load_model, voice_presets={"p": {"language": "klingon"}})
    assert line.startswith("server.json: models[0].voice_presets.p.language: language 'klingon' is not known")
    line = refusal(load_model, default_request_options={"language": "klingon"})
    assert line.startswith("server.json: models[0].default_request_options.language: language 'klingon' is not known")


@pytest.mark.parametrize("name", ["", "x" * 201, "a\nb"], ids=["empty", "long", "two lines"])
def test_a_preset_without_a_proper_name_is_refused(load_model: Load, refusal: Refusal, name: str) -> None:
    assert refusal(load_model, voice_presets={name: {}}).startswith("server.json: models[0].voice_presets: wanted ")


def test_a_default_that_is_no_preset_is_refused(load_model: Load, refusal: Refusal) -> None:
    line = refusal(load_model, voice_presets={"calm": {}}, default_voice_preset="clam")
    assert line == (
        "server.json: models[0].default_voice_preset: wanted the name of one of the voice_presets; found 'clam'"
    )


@pytest.mark.parametrize(
    ("defaults", "said"),
    [
        ([], f": {OPTIONS_WANTED}; found a list"),
        ({"seed": -1}, ".seed: wanted an integer from 0 to 2^63 - 1; found -1"),
        ({"x": math.inf}, f": {OPTIONS_WANTED}; found NaN or infinity"),
    ],
    ids=["a list", "seed", "infinity"],
)
def test_default_request_options_that_cannot_be_are_refused(
    load_model: Load, refusal: Refusal, defaults: object, said: str
) -> None:
    line = refusal(load_model, default_request_options=defaults)
    assert line == f"server.json: models[0].default_request_options{said}"


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"voice_presets": {"p": {"speed": 9}}}, "voice_presets.p.speed"),
        ({"voice_presets": {"p": {"options": 1}}}, "voice_presets.p.options"),
        ({"voice_presets": []}, "voice_presets"),
        ({"default_voice_preset": "p"}, "default_voice_preset"),
        ({"default_request_options": {"seed": "1"}}, "default_request_options.seed"),
    ],
    ids=str,
)
def test_a_client_that_registers_learns_the_field_by_its_dotted_name(
    home: Path, fields: dict[str, object], param: str
) -> None:
    model = {"id": "a", "family": "controlled", "path": str(home / "models/a"), "task": "tts", **fields}
    with pytest.raises(InvalidRequest) as caught:
        model_registration(
            model, parallel_jobs=False, device="cpu", lazy_load=True, isolation=Isolation.THREAD, live=LiveLimits()
        )
    assert caught.value.param == param


def test_the_voice_library_is_a_folder_that_exists(load: Load, refusal: Refusal, home: Path, clip: Path) -> None:
    assert load({"voice_dir": "clips"}).voice_dir == str(home / "clips")
    assert refusal(load, {"voice_dir": "none"}).startswith("server.json: voice_dir: wanted an existing folder")
    assert refusal(load, {"voice_dir": str(clip)}).startswith("server.json: voice_dir: wanted a folder")


def test_a_voice_dir_of_a_flag_starts_at_the_working_folder(
    home: Path, clip: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "server.json").write_text("{}")
    monkeypatch.chdir(home)
    config = load_config(home / "server.json", parallel_jobs=False, overrides={"voice_dir": "clips"})
    assert config.voice_dir == str(home / "clips")
