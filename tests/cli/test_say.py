"""What `antiphon say` writes into which file."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from antiphon.cli import app
from antiphon.cli.say import format_of
from antiphon.ports.codec import AudioFormat


@pytest.mark.parametrize("audio_format", AudioFormat)
def test_a_files_suffix_names_its_format(audio_format):
    assert format_of(Path(f"a.b.{audio_format.upper()}")) is audio_format


@pytest.mark.parametrize(
    ("name", "audio_format"),
    [("-", AudioFormat.WAV), ("speech", AudioFormat.WAV), ("a.ogg", AudioFormat.OPUS), ("a.oga", AudioFormat.OPUS)],
)
def test_what_names_no_format_is_a_wav_and_ogg_is_opus(name, audio_format):
    assert format_of(Path(name)) is audio_format


def test_a_suffix_of_another_format_is_refused_before_anything_is_loaded(tmp_path):
    done = CliRunner().invoke(app, ["say", "hello", "-o", str(tmp_path / "a.m4a"), "--models-root", str(tmp_path)])
    assert done.exit_code == 1
    assert "no format goes by .m4a" in done.stderr
    assert not (tmp_path / "a.m4a").exists()
