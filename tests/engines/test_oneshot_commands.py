"""The commands that need no server, on the installed models: what they print, and how they fail."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from antiphon.cli import app
from antiphon.vocabulary.audio import Pcm
from audio_assets import wav_bytes

pytestmark = pytest.mark.engine

TEXT = "There is a small garden behind the house."


@pytest.fixture
def sentence(tmp_path: Path, spoken: Callable[[str], Pcm]) -> str:
    """A spoken sentence as a sound file."""
    file = tmp_path / "sentence.wav"
    file.write_bytes(wav_bytes(np.frombuffer(spoken(TEXT).samples.cast("B"), np.float32)))
    return str(file)


def antiphon(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def test_vad_prints_a_line_for_each_stretch_of_speech(sentence: str) -> None:
    done = antiphon("vad", sentence)
    assert done.exit_code == 0, done.output
    start, end, label = done.stdout.rstrip("\n").split("\t")
    assert (label, float(start) < 0.5 < float(end)) == ("speech", True)


def test_vad_writes_json_to_a_file(sentence: str, tmp_path: Path) -> None:
    output = tmp_path / "speech.json"
    done = antiphon("vad", sentence, "--format", "json", "--padding-ms", "0", "-o", str(output))
    assert (done.exit_code, done.stdout) == (0, "")
    told = json.loads(output.read_text(encoding="utf-8"))
    assert told["sample_rate"] == 16_000
    (segment,) = told["segments"]
    assert segment["start"] == round(segment["start_sample"] / 16_000, 3)


def test_diarize_prints_a_line_for_each_turn(sentence: str) -> None:
    done = antiphon("diarize", sentence)
    assert done.exit_code == 0, done.output
    start, end, speaker = done.stdout.rstrip("\n").split("\t")
    assert (speaker, float(start) < 0.5 < float(end)) == ("SPEAKER_00", True)


def test_diarize_heeds_a_number_of_speakers_and_writes_rttm(sentence: str) -> None:
    done = antiphon("diarize", sentence, "--speakers", "2", "--format", "rttm")
    lines = [line.split() for line in done.stdout.splitlines()]
    assert {line[7] for line in lines} == {"SPEAKER_00", "SPEAKER_01"}
    assert {line[1] for line in lines} == {"sentence"}


def test_transcribe_tells_speakers_apart_with_a_second_model(sentence: str) -> None:
    done = antiphon("transcribe", sentence, "--model", "whisper-tiny-en", "--format", "diarized_json")
    assert done.exit_code == 0, done.output
    (segment,) = json.loads(done.stdout)["segments"]
    assert (segment["speaker"], segment["text"]) == ("SPEAKER_00", TEXT)


def test_transcribe_writes_english_for_what_is_taken_for_german(sentence: str) -> None:
    asked = ("transcribe", sentence, "--model", "whisper-base", "--language", "de", "--format", "verbose_json")
    told = json.loads(antiphon(*asked, "--translate").stdout)
    assert (told["task"], told["language"], told["text"]) == ("translate", "english", TEXT)


def test_align_places_every_word_in_a_process_of_its_own(sentence: str) -> None:
    done = antiphon("align", sentence, TEXT)
    assert done.exit_code == 0, done.output
    assert [line.split("\t")[2] for line in done.stdout.splitlines()] == TEXT.split()


def test_align_reads_its_text_from_a_file_and_writes_json(sentence: str, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text(TEXT, encoding="utf-8")
    done = antiphon("align", sentence, "--text-file", str(text), "--format", "json")
    words = json.loads(done.stdout)["words"]
    assert [word["word"] for word in words] == TEXT.split()
    assert all(word["start"] < word["end"] for word in words)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["vad", "missing.wav"], "missing.wav: No such file"),
        (["vad", "{sentence}", "--threshold", "2"], "threshold must be from 0.05 to 0.95"),
        (["vad", "{sentence}", "--model", "whisper-base"], "no model 'whisper-base' for vad is installed"),
        (["vad", "{sentence}", "-o", "no/such/folder"], "no/such/folder: No such file"),
        (["transcribe", "{sentence}", "-m", "whisper-tiny-en", "--translate"], "'whisper-tiny-en' cannot translate"),
        (["transcribe", "{sentence}", "--translate", "-f", "diarized_json"], "diarized_json has no translation"),
        (
            ["transcribe", "{sentence}", "-f", "diarized_json", "--diarization-model", "silero-vad"],
            "no model 'silero-vad' for diar is installed; installed for it: speaker-turns",
        ),
        (["say", "Hello.", "-o", "-", "--voice-ref", "missing.wav"], "missing.wav: No such file"),
        (["say", "Hello.", "-o", "-", "--voice-ref", "{sentence}"], "cannot speak as a recording does"),
        (["align", "{sentence}"], "either TEXT or --text-file"),
        (["align", "{sentence}", "a zyxxy garden"], "how these sound: 'zyxxy'"),
        (["align", "{sentence}", "--text-file", "{sentence}"], "it is not UTF-8"),
    ],
)
def test_what_cannot_be_done_is_one_line(sentence: str, arguments: list[str], complaint: str) -> None:
    done = antiphon(*(argument.format(sentence=sentence) for argument in arguments))
    assert done.exit_code == 1
    assert done.stdout == ""
    assert complaint in done.stderr
    assert done.stderr.count("\n") == 1
