"""The official `openai` client against real engines: what its users write works as it stands."""

import base64
import io
import json
import wave

import jiwer
import openai
import pytest

from engine_server import words_of

pytestmark = pytest.mark.engine


@pytest.fixture
def client(openai_client):
    return openai_client


def speak(client, text, **fields):
    given = {"model": "piper", "voice": "default", "response_format": "wav", "input": text, **fields}
    return client.audio.speech.create(**given)


def test_a_sentence_is_spoken_and_transcribed_back(client, engines):
    spoken = speak(client, engines.SENTENCE)

    heard = client.audio.transcriptions.create(model="whisper", file=("speech.wav", spoken.content))

    assert jiwer.wer(words_of(engines.SENTENCE), words_of(heard.text)) == 0


def test_the_multilingual_model_finds_the_language(client, engines, base):
    heard = client.audio.transcriptions.create(
        model="multilingual", file=("a.wav", base), response_format="verbose_json"
    )

    assert jiwer.wer(words_of(engines.SENTENCE), words_of(heard.text)) == 0
    assert heard.language == "english"


def test_streamed_speech_is_the_whole_speech(client, engines, base):
    with client.audio.speech.with_streaming_response.create(
        model="piper", voice="default", input=engines.SENTENCE, response_format="pcm", stream_format="audio"
    ) as answer:
        pieces = list(answer.iter_bytes())

    assert b"".join(pieces) == base[44:]


def test_a_whole_answer_can_be_read_as_it_comes(client, engines, base, tmp_path):
    with client.audio.speech.with_streaming_response.create(
        model="piper", voice="default", input=engines.SENTENCE, response_format="wav"
    ) as answer:
        answer.stream_to_file(tmp_path / "speech.wav")

    assert (tmp_path / "speech.wav").read_bytes() == base


def test_streamed_events_carry_the_speech(client, engines, base):
    with client.audio.speech.with_streaming_response.create(
        model="piper", voice="default", input=engines.SENTENCE, response_format="pcm", stream_format="sse"
    ) as answer:
        lines = [line for line in answer.iter_lines() if line]

    events = [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]
    assert lines[-1] == "data: [DONE]"
    assert events[-1]["type"] == "speech.audio.done"
    assert b"".join(base64.b64decode(event["audio"]) for event in events[:-1]) == base[44:]


def test_a_streamed_transcript_adds_up(client, base):  # API-02
    whole = client.audio.transcriptions.create(model="whisper", file=("a.wav", base))

    events = list(client.audio.transcriptions.create(model="whisper", file=("a.wav", base), stream=True))

    *deltas, done = events
    assert {event.type for event in deltas} == {"transcript.text.delta"}
    assert done.type == "transcript.text.done"
    assert "".join(event.delta for event in deltas) == done.text == whole.text


def test_verbose_json_has_words_within_the_duration(client, engines, base):  # API-01
    heard = client.audio.transcriptions.create(
        model="whisper",
        file=("a.wav", base),
        response_format="verbose_json",
        timestamp_granularities=["word", "segment"],
    )

    with wave.open(io.BytesIO(base)) as sound:
        assert heard.duration == pytest.approx(sound.getnframes() / sound.getframerate(), abs=0.01)
    assert heard.language == "english"
    assert words_of(" ".join(word.word for word in heard.words)) == words_of(engines.SENTENCE)
    assert words_of(" ".join(segment.text for segment in heard.segments)) == words_of(engines.SENTENCE)
    for item in (*heard.words, *heard.segments):
        assert 0 <= item.start <= item.end <= heard.duration


@pytest.mark.parametrize("name", ["timestamp_granularities[]", "timestamp_granularities"])
def test_words_that_are_asked_for_are_there_however_the_field_is_written(engines, base, name):  # API-01
    heard = engines.transcribe(base, response_format="verbose_json", **{name: "word"}).json()

    assert words_of(" ".join(word["word"] for word in heard["words"])) == words_of(engines.SENTENCE)


def test_text_is_a_plain_string(client, engines, base):
    heard = client.audio.transcriptions.create(model="whisper", file=("a.wav", base), response_format="text")

    assert words_of(heard) == words_of(engines.SENTENCE)
    assert '"' not in heard


@pytest.mark.parametrize("language", ["", "auto", "en", "EN", "en-US", "en_GB", "English"])
def test_a_language_is_known_by_any_of_its_names(client, base, language):
    heard = client.audio.transcriptions.create(
        model="multilingual", file=("a.wav", base), language=language, response_format="verbose_json"
    )

    assert heard.language == "english"


def test_the_models_are_listed(client):
    models = {"piper", "whisper", "multilingual", "turns", "tts-1", "whisper-1"}
    assert {model.id for model in client.models.list()} == models
    assert client.models.retrieve("piper").owned_by == "antiphon"
    assert client.models.retrieve("tts-1").alias_of == "piper"


def test_what_is_written_for_openai_runs_as_it_is(client, engines):
    spoken = client.audio.speech.create(model="tts-1", voice="alloy", input=engines.SENTENCE, response_format="mp3")

    heard = client.audio.transcriptions.create(model="whisper-1", file=("speech.mp3", spoken.content))

    assert jiwer.wer(words_of(engines.SENTENCE), words_of(heard.text)) == 0


def refused(error, call, *arguments, **fields):
    with pytest.raises(error) as caught:
        call(*arguments, **fields)
    return caught.value.type, caught.value.param, caught.value.code


def test_errors_come_as_the_clients_own_classes(client, base):
    transcribe = client.audio.transcriptions.create
    bad, missing = openai.BadRequestError, openai.NotFoundError
    invalid = "invalid_request_error"

    assert refused(bad, speak, client, "Hi.", voice="nobody") == (invalid, "voice", None)
    assert refused(bad, speak, client, "Hi.", speed=9) == (invalid, "speed", None)
    assert refused(bad, speak, client, "Hi.", response_format="mp4") == (invalid, "response_format", None)
    assert refused(bad, speak, client, "  ") == (invalid, "input", None)
    assert refused(missing, speak, client, "Hi.", model="tts-2") == ("not_found_error", "model", "model_not_found")
    assert refused(missing, client.models.retrieve, "tts-2") == ("not_found_error", "model", "model_not_found")
    assert refused(bad, transcribe, model="piper", file=("a.wav", base)) == (invalid, "model", None)
    assert refused(bad, transcribe, model="whisper", file=("a.wav", b"no")) == (invalid, "file", None)
    assert refused(bad, transcribe, model="whisper", file=("a.wav", base), language="xx") == (invalid, "language", None)
    too_long = refused(openai.APIStatusError, speak, client, "a" * 100_001)
    assert too_long == (invalid, "input", "too_large")
