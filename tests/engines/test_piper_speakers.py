"""A request names a speaker by name or number, and an unknown one is refused before anything is spoken (TTS-10)."""

from collections.abc import Callable
from pathlib import Path

import pytest

from antiphon.vocabulary.errors import InvalidRequest
from antiphon.vocabulary.spec import ModelSpec
from antiphon.vocabulary.tasks import Task, TaskRequest
from antiphon_adapters.piper import PiperAdapter
from antiphon_adapters.piper.session import PiperSession

BuildVoice = Callable[..., Path]


def session_over(folder: Path) -> PiperSession:
    session = PiperAdapter().load(ModelSpec("tiny", "piper", str(folder), Task.TTS)).open_session()
    assert isinstance(session, PiperSession)
    return session


def sound_of(session: PiperSession, voice: str | None) -> bytes:
    request = TaskRequest(text="hello", voice=voice, options={"noise_scale": 0, "noise_w": 0})
    session.prepare(request)
    audio = session.run(request).audio
    assert audio is not None
    return audio.samples.tobytes()


def test_speakers_sound_different(tiny_voice: BuildVoice) -> None:
    session = session_over(tiny_voice(speakers=3))
    assert len({sound_of(session, f"speaker{number}") for number in range(3)}) == 3


def test_no_voice_is_the_default_speaker(tiny_voice: BuildVoice) -> None:
    session = session_over(tiny_voice(speakers=3, default_speaker_id=1))
    assert sound_of(session, None) == sound_of(session, "speaker1")
    assert sound_of(session, "default") == sound_of(session, "speaker1")


def test_a_speaker_may_be_named_by_number(tiny_voice: BuildVoice) -> None:
    session = session_over(tiny_voice(speakers=3))
    assert sound_of(session, "2") == sound_of(session, "speaker2")


@pytest.mark.parametrize("voice", ["3", "x", "-1", "", "speaker3"])
def test_an_unknown_speaker_is_refused_with_those_that_exist(tiny_voice: BuildVoice, voice: str) -> None:
    session = session_over(tiny_voice(speakers=3))
    with pytest.raises(InvalidRequest, match="default, tiny, speaker0, speaker1, speaker2") as refusal:
        session.prepare(TaskRequest(text="hello", voice=voice))
    assert refusal.value.param == "voice"


def test_a_voice_of_one_speaker_takes_no_number(tiny_voice: BuildVoice) -> None:
    session = session_over(tiny_voice())
    assert sound_of(session, "tiny") == sound_of(session, None)
    with pytest.raises(InvalidRequest, match=r"voice must be one of default, tiny$"):
        session.prepare(TaskRequest(text="hello", voice="1"))


def test_a_long_list_of_speakers_is_told_in_part(tiny_voice: BuildVoice) -> None:
    session = session_over(tiny_voice(speakers=100))
    with pytest.raises(InvalidRequest, match=r"and 82 more$"):
        session.prepare(TaskRequest(text="hello", voice="x"))
