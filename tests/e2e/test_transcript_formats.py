"""Every format of a transcript and a translation, from real engines, as the official `openai` client takes it."""

import re

import numpy as np
import openai
import pytest

from audio_assets import wav_bytes
from engine_server import TRANSCRIPTIONS, words_of

pytestmark = pytest.mark.engine

SILENCE = wav_bytes(np.zeros(6 * 16_000, np.float32))
OPENAI_ENDS_IT = pytest.mark.filterwarnings("ignore:deprecated:DeprecationWarning")
"""The client warns that OpenAI will end its translations; here they stay."""

TIME = r"\d\d:\d\d:\d\d"


def test_srt_and_vtt_hold_what_was_said(openai_client, engines, base):
    def heard(response_format):
        return openai_client.audio.transcriptions.create(
            model="whisper", file=("a.wav", base), response_format=response_format
        )

    srt, vtt = heard("srt"), heard("vtt")

    number, times, text = srt.rstrip("\n").split("\n")
    assert (number, words_of(text)) == ("1", words_of(engines.SENTENCE))
    assert re.fullmatch(rf"{TIME},\d\d\d --> {TIME},\d\d\d", times)
    header, cue = vtt.rstrip("\n").split("\n\n")
    assert (header, cue) == ("WEBVTT", f"{times.replace(',', '.')}\n{text}")


def test_every_word_has_a_speaker_in_diarized_json(openai_client, engines, base):
    heard = openai_client.audio.transcriptions.create(
        model="whisper", file=("a.wav", base), response_format="diarized_json", chunking_strategy="auto"
    )

    assert type(heard) is openai.types.audio.TranscriptionDiarized
    assert words_of(heard.text) == words_of(engines.SENTENCE)
    assert words_of(" ".join(it.text for it in heard.segments)) == words_of(engines.SENTENCE)
    assert {it.speaker for it in heard.segments} == {"SPEAKER_00"}
    edges = [edge for it in heard.segments for edge in (it.start, it.end)]
    assert edges == sorted(edges)
    assert edges[-1] <= heard.duration


@OPENAI_ENDS_IT
def test_what_is_taken_for_german_is_translated_into_english(openai_client, engines, base):
    """Whisper writes German for English speech that it is told to be German, unless it is to translate."""
    german = openai_client.audio.transcriptions.create(model="multilingual", file=("a.wav", base), language="de")

    english = openai_client.audio.translations.create(
        model="whisper-1", file=("a.wav", base), response_format="verbose_json", extra_body={"language": "de"}
    )

    assert words_of(german.text) != words_of(engines.SENTENCE)
    assert type(english) is openai.types.audio.TranslationVerbose
    assert words_of(english.text) == words_of(engines.SENTENCE)
    assert english.language == "english"


@OPENAI_ENDS_IT
def test_a_model_of_english_alone_does_not_translate(openai_client, base):
    with pytest.raises(openai.BadRequestError) as caught:
        openai_client.audio.translations.create(model="whisper", file=("a.wav", base))
    assert caught.value.param == "model"


@pytest.mark.parametrize("model", ["whisper", "multilingual"])
def test_silence_is_empty_in_every_format(engines, model):  # AUD-13
    def heard(response_format, **fields):
        return engines.transcribe(SILENCE, model=model, response_format=response_format, **fields)

    verbose = heard("verbose_json", **{"timestamp_granularities[]": ["word", "segment"]}).json()

    assert heard("json").json()["text"] == ""
    assert (heard("srt").text, heard("vtt").text) == ("", "WEBVTT\n\n")
    assert (verbose["text"], verbose["segments"], verbose["words"]) == ("", [], [])
    assert heard("diarized_json").json()["segments"] == []


@pytest.mark.parametrize("model", ["whisper", "multilingual", "turns"])
def test_silence_has_empty_lists_in_its_details(engines, model):  # AUD-13
    answer = engines.client.post(f"{TRANSCRIPTIONS}/details", data={"model": model}, files={"file": SILENCE}).json()

    assert (answer["segments"], answer["words"], answer["speaker_turns"]) == ([], [], [])


def test_details_have_each_word_in_samples(engines, base):
    form = {"model": "whisper"}
    answer = engines.client.post(f"{TRANSCRIPTIONS}/details", data=form, files={"file": base}).json()

    assert words_of(" ".join(it["text"] for it in answer["words"])) == words_of(engines.SENTENCE)
    assert all(0 <= it["start_sample"] <= it["end_sample"] for it in answer["words"])
    assert (answer["language"], answer["sample_rate"]) == ("en", 16_000)
