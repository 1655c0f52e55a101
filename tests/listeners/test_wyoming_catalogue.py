"""Which model a Wyoming request means, and what is told of them all."""

import pytest
from starlette.responses import JSONResponse

from antiphon.listeners.in_process import InProcessApp
from antiphon.listeners.wyoming.catalogue import Catalogue
from antiphon.vocabulary.errors import InvalidRequest, ModelNotFound
from antiphon.vocabulary.tasks import Task

MODELS = [
    {"id": "english", "family": "a", "task": "asr", "languages": ["en"], "voices": [], "more": 1},
    {"id": "all", "family": "b", "task": "asr", "languages": ["en", "de"], "aliases": ["whisper-1"]},
    {"id": "any", "family": "b", "task": "asr", "languages": []},
    {"id": "voice", "family": "c", "task": "tts", "languages": ["en"], "voices": ["anna", "ben"]},
    {"id": "whisper-1", "family": "b", "task": "asr", "languages": ["en", "de"], "alias_of": "all"},
]


def catalogue(models=MODELS, asr_model=None, tts_model=None):
    async def app(scope, receive, send):
        await JSONResponse({"data": models})(scope, receive, send)

    return Catalogue(InProcessApp(app), asr_model, tts_model)


@pytest.mark.parametrize(
    ("preferred", "name", "language", "chosen"),
    [
        (None, None, None, "english"),
        (None, None, "de-DE", "all"),
        (None, None, "auto", "english"),
        (None, None, "fr", "any"),
        (None, "unheard of", "de", "unheard of"),
        ("all", None, "en", "all"),
        ("english", None, "de", "all"),
        ("unheard of", None, None, "english"),
        ("whisper-1", None, None, "all"),
    ],
)
async def test_a_model_is_chosen_by_its_name_then_by_its_language(preferred, name, language, chosen):
    assert await catalogue(asr_model=preferred).choose(Task.ASR, name, language) == chosen


async def test_a_language_that_no_model_knows_is_left_to_the_first_to_refuse():
    assert await catalogue(MODELS[:2]).choose(Task.ASR, None, "fr") == "english"


async def test_a_language_that_does_not_exist_is_refused():
    with pytest.raises(InvalidRequest, match="klingon"):
        await catalogue().choose(Task.ASR, None, "klingon")


async def test_a_server_without_such_a_model_says_so():
    with pytest.raises(ModelNotFound, match="speech recognition"):
        await catalogue([]).choose(Task.ASR, None, None)


async def test_what_there_is_no_model_for_is_not_offered():
    info = await catalogue(MODELS[3:]).info()
    assert info.asr == []
    (voice,) = info.tts[0].voices
    assert (voice.name, voice.languages, [it.name for it in voice.speakers]) == ("voice", ["en"], ["anna", "ben"])


async def test_the_preferred_model_is_told_of_first():
    info = await catalogue(asr_model="any").info()
    assert [model.name for model in info.asr[0].models] == ["any", "english", "all"]
