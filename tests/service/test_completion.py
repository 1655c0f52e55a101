"""What a request leaves open, completed by its model's presets and defaults; and what of these is refused."""

import pytest

from antiphon.runtime.api import BoundModel
from antiphon.service.completion import (
    SpeechTerms,
    asked_language,
    completed,
    completed_request,
    require_presets,
    require_terms,
)
from antiphon.service.voice_library import VoiceLibrary
from antiphon.vocabulary.audio import Pcm
from antiphon.vocabulary.errors import InvalidRequest
from antiphon.vocabulary.spec import Capability, ModelSpec, OptionSpec, Registration
from antiphon.vocabulary.tasks import Mode, Task, TaskRequest
from antiphon.vocabulary.terms import ANY_LANGUAGE, NO_TERMS, LibraryVoice, Terms, VoiceFile, at_speed

SPEC = ModelSpec(id="m", family="controlled", path="/models/m", task=Task.TTS)
OPTIONS = (
    OptionSpec("speed", "number", "a factor", minimum=0.5, maximum=2),
    OptionSpec("pitch", "number", "how high"),
    OptionSpec("reference_text", "string", "what is said"),
)
CLIP = Pcm.from_bytes(bytes(400), 8000)
PRESETS = {
    "low": Terms("bryn", seed=1, options={"pitch": 1}),
    "fast": Terms(named=at_speed(2)),
    "alloy": Terms("bryn"),
    "clone": Terms(reference=LibraryVoice("alice"), reference_text="Alice."),
}


def registered(default=None, defaults=NO_TERMS, **presets):
    return Registration(
        SPEC, voice_presets=presets or PRESETS, default_voice_preset=default, default_request_options=defaults
    )


def model(registration, *, clones=True):
    capability = Capability(
        frozenset({Task.TTS}),
        frozenset({Mode.OFFLINE}),
        16_000,
        1,
        options=OPTIONS,
        voices=("alba", "bryn"),
        languages=("en", "de"),
        clones=clones,
    )
    return BoundModel(registration, capability)


@pytest.fixture
def library(tmp_path, wav):
    for name in ("alice", "bryn"):
        (tmp_path / f"{name}.wav").write_bytes(wav(800).read())
    (tmp_path / "alice.txt").write_text("It is Alice.")
    return VoiceLibrary(str(tmp_path))


def test_without_presets_and_defaults_a_request_is_what_it_says():
    own = Terms("alba", language="en", seed=4, options={"pitch": 2})
    assert completed(Registration(SPEC), own) == own


def test_what_goes_first_is_the_request_then_its_preset_then_the_default_one_then_the_defaults():
    layers = {
        "own": Terms("named", options={"a": 1}),
        "named": Terms(seed=2, options={"a": 2, "b": 2}),
        "default": Terms("bryn", language="de", seed=3, options={"a": 3, "b": 3, "c": 3}),
        "defaults": Terms(language="en", seed=4, options={"a": 4, "b": 4, "c": 4, "d": 4}),
    }
    registration = registered("other", layers["defaults"], named=layers["named"], other=layers["default"])
    assert completed(registration, layers["own"]) == Terms(
        "bryn", language="de", seed=2, options={"a": 1, "b": 2, "c": 3, "d": 4}
    )


def test_the_seed_0_and_the_natural_speed_of_a_request_are_said_and_not_left_open():
    registration = registered("low", Terms(seed=9, options={"speed": 2}))
    terms = completed(registration, Terms(seed=0, named=at_speed(1.0)))
    assert terms.seed == 0
    assert terms.options == {"pitch": 1, "speed": None}


def test_a_field_of_its_own_goes_before_the_option_of_that_name():
    assert Terms(named=at_speed(2), options={"speed": 0.5}).all_options == {"speed": 2}


def test_a_voice_puts_the_recording_of_a_preset_out_of_force_and_a_recording_its_voice():
    voice = completed(registered("clone"), Terms("alba"))
    assert (voice.voice, voice.reference, voice.reference_text) == ("alba", None, None)
    cloned = completed(registered("low"), Terms(reference=CLIP))
    assert (cloned.voice, cloned.reference, cloned.seed) == (None, CLIP, 1)


def test_a_recording_beside_the_name_of_a_preset_is_spoken_as_that_preset_says():
    terms = completed(registered(), Terms("low", reference=CLIP))
    assert (terms.voice, terms.reference, terms.options) == (None, CLIP, {"pitch": 1})


def test_a_preset_that_says_no_voice_leaves_that_to_the_default_preset():
    assert completed(registered("low"), Terms("fast")).voice == "bryn"


@pytest.mark.parametrize(("said", "meant"), [(None, None), ("", None), ("auto", ANY_LANGUAGE), ("de-AT", "de")])
def test_a_language_may_be_left_open_or_to_be_detected(said, meant):
    assert asked_language(said) == meant


async def test_detection_goes_before_a_default_language():
    bound = model(registered(None, Terms(language="de")))
    assert (await completed_request(bound, TaskRequest(), Terms(language=ANY_LANGUAGE))).language is None
    assert (await completed_request(bound, TaskRequest(), NO_TERMS)).language == "de"


async def test_options_that_are_as_the_model_has_them_do_not_reach_it():
    bound = model(registered("fast"))
    assert (await completed_request(bound, TaskRequest(), NO_TERMS)).options == {"speed": 2}
    assert (await completed_request(bound, TaskRequest(), Terms(named=at_speed(1)))).options == {}


@pytest.mark.parametrize(
    ("terms", "param"),
    [
        (Terms(options={"beams": 1}), "in.beams"),
        (Terms(named={"speed": 9}), "speed"),
        (Terms(language="fr"), "language"),
    ],
)
def test_what_a_request_says_itself_is_refused_by_its_own_name(terms, param):
    with pytest.raises(InvalidRequest) as caught:
        require_terms(model(registered("low")), terms, "in.")
    assert caught.value.param == param


async def spoken(stage, library, registration, own, **capability):
    terms = SpeechTerms(stage.codec, library)
    return await terms.completed_request(model(registration, **capability), TaskRequest(text="x"), own)


async def test_a_preset_named_as_openais_voice_goes_before_it(stage, library):
    assert (await spoken(stage, library, registered(), Terms("alloy"))).voice == "bryn"
    assert (await spoken(stage, library, Registration(SPEC), Terms("alloy"))).voice == "alba"


async def test_a_voice_of_the_library_is_decoded_and_comes_with_its_text(stage, library):
    request = await spoken(stage, library, registered(), Terms("alice"))
    assert (request.voice, request.voice_ref.frames, request.options) == (None, 800, {"reference_text": "It is Alice."})


async def test_a_voice_of_the_model_goes_before_one_of_the_library(stage, library):
    request = await spoken(stage, library, registered(), Terms("bryn"))
    assert (request.voice, request.voice_ref) == ("bryn", None)


async def test_a_preset_may_name_a_recording_and_what_is_said_in_it(stage, library, tmp_path):
    request = await spoken(stage, library, registered(), Terms("clone"))
    assert (request.voice_ref.rate, request.options["reference_text"]) == (8000, "Alice.")
    file = registered(file=Terms(reference=VoiceFile(str(tmp_path / "alice.wav"))))
    assert (await spoken(stage, library, file, Terms("file"))).voice_ref.frames == 800


async def test_a_model_that_cannot_imitate_knows_no_voice_of_the_library(stage, library):
    with pytest.raises(InvalidRequest, match=r"the model has alba, bryn, low, fast, alloy, clone$") as caught:
        await spoken(stage, library, registered(), Terms("alice"), clones=False)
    assert caught.value.param == "voice"
    with pytest.raises(InvalidRequest) as caught:
        await spoken(stage, library, registered(), Terms(reference=CLIP), clones=False)
    assert caught.value.param == "voice_ref"


async def test_an_unknown_voice_is_refused_with_those_of_the_library(stage, library):
    with pytest.raises(InvalidRequest, match=r"clone, alice$"):
        await spoken(stage, library, registered(), Terms("coco"))


async def test_a_recording_of_the_library_that_is_none_is_refused_as_a_voice(stage, library, tmp_path):
    (tmp_path / "broken.wav").write_bytes(b"certainly no audio")
    with pytest.raises(InvalidRequest, match="recording cannot be used") as caught:
        await spoken(stage, library, registered(), Terms("broken"))
    assert caught.value.param == "voice"


async def test_a_recording_of_a_preset_that_has_gone_is_refused_as_a_voice(stage, library, tmp_path):
    gone = registered(p=Terms(reference=VoiceFile(str(tmp_path / "gone.wav"))))
    with pytest.raises(InvalidRequest, match="recording cannot be used") as caught:
        await SpeechTerms(stage.codec, library).completed_request(model(gone), TaskRequest(), Terms("p"))
    assert caught.value.param == "voice"


def test_presets_that_the_model_can_follow_are_taken(library):
    require_presets(model(registered("low", Terms(language="de", options={"speed": 0.5}))), library)


@pytest.mark.parametrize(
    ("preset", "param"),
    [
        (Terms("coco"), "voice"),
        (Terms(language="fr"), "language"),
        (Terms(named=at_speed(3)), "speed"),
        (Terms(options={"beams": 1}), "options.beams"),
        (Terms(reference=LibraryVoice("nobody")), "voice_ref"),
        (Terms(reference=VoiceFile("/dev/zero")), "voice_ref"),
        (Terms(reference=VoiceFile("/nowhere/at/all.wav")), "voice_ref"),
    ],
    ids=str,
)
def test_a_preset_that_the_model_cannot_follow_is_refused_where_it_stands(library, preset, param):
    with pytest.raises(InvalidRequest) as caught:
        require_presets(model(registered(p=preset)), library)
    assert caught.value.param == f"voice_presets.p.{param}"
    assert caught.value.message.startswith(f"voice_presets.p.{param}: ")


@pytest.mark.parametrize("terms", [Terms(reference=LibraryVoice("alice")), Terms("alice")])
def test_a_preset_that_imitates_is_refused_of_a_model_that_cannot(library, terms):
    with pytest.raises(InvalidRequest):
        require_presets(model(registered(p=terms), clones=False), library)


@pytest.mark.parametrize(
    ("defaults", "param"),
    [
        (Terms(language="fr"), "language"),
        (Terms(options={"beams": 1}), "beams"),
        (Terms(options={"speed": 9}), "speed"),
    ],
)
def test_defaults_that_the_model_cannot_follow_are_refused_where_they_stand(library, defaults, param):
    with pytest.raises(InvalidRequest) as caught:
        require_presets(model(registered(None, defaults)), library)
    assert caught.value.param == f"default_request_options.{param}"
