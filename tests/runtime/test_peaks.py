"""What models were seen to take is kept between starts."""

import asyncio
import json
from pathlib import Path

import pytest

from antiphon.runtime.peaks import MAX_PEAKS, PEAKS_FILE, PeakMemory
from antiphon.testing import ControlledCheckpoint
from antiphon.vocabulary.spec import ModelSpec


@pytest.fixture
def spec(tmp_path: Path) -> ModelSpec:
    return ControlledCheckpoint(tmp_path / "model").spec()


def kept(path: Path, peaks: PeakMemory) -> PeakMemory:
    """What another start reads of what this one has written."""
    if peaks._writer is not None:
        asyncio.run(peaks._writer.call(lambda: None))  # after what it has to write
    peaks.close()
    return PeakMemory(path)


def test_a_model_that_was_never_measured_has_no_peak(spec):
    assert PeakMemory().of(spec) == 0


def test_only_the_highest_use_is_remembered(spec):
    peaks = PeakMemory()
    for used in (5, 9, 7):
        peaks.learn(spec, used)
    assert peaks.of(spec) == 9


def test_it_is_remembered_by_the_next_start(tmp_path, spec):
    peaks = PeakMemory(tmp_path / PEAKS_FILE)
    peaks.learn(spec, 9)
    assert kept(tmp_path / PEAKS_FILE, peaks).of(spec) == 9
    assert sorted(it.name for it in tmp_path.iterdir()) == [PEAKS_FILE, "model"]


def test_a_model_whose_files_or_options_changed_is_another(tmp_path, spec):
    peaks = PeakMemory()
    peaks.learn(spec, 9)
    assert peaks.of(ControlledCheckpoint(tmp_path / "model").spec(slots=2)) == 0
    (tmp_path / "model" / "weights").touch()
    (tmp_path / "model").touch()
    assert peaks.of(spec) == 0


@pytest.mark.parametrize("text", ["", "{", "[]", '{"a": "b", "c": true, "d": -1}', "\xff", "[" * 100_000])
def test_a_broken_file_is_as_good_as_none(tmp_path, spec, text):
    (tmp_path / PEAKS_FILE).write_text(text, "latin-1")
    peaks = PeakMemory(tmp_path / PEAKS_FILE)
    assert peaks.of(spec) == 0
    peaks.learn(spec, 9)
    assert kept(tmp_path / PEAKS_FILE, peaks).of(spec) == 9


def test_where_the_folder_is_missing_nothing_is_kept_and_nothing_fails(tmp_path, spec):
    peaks = PeakMemory(tmp_path / "none" / PEAKS_FILE)
    peaks.learn(spec, 9)
    assert peaks.of(spec) == 9
    assert not (tmp_path / "none").exists()


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path, spec, caplog):
    (tmp_path / PEAKS_FILE).mkdir()
    peaks = PeakMemory(tmp_path / PEAKS_FILE)
    peaks.learn(spec, 9)
    kept(tmp_path / PEAKS_FILE, peaks)
    assert "could not be kept" in caplog.text
    assert sorted(it.name for it in tmp_path.iterdir()) == [PEAKS_FILE, "model"]


def test_no_more_models_are_remembered_than_the_limit_allows(tmp_path, spec):
    (tmp_path / PEAKS_FILE).write_text(json.dumps({str(number): 1 for number in range(MAX_PEAKS)}))
    peaks = PeakMemory(tmp_path / PEAKS_FILE)
    peaks.learn(spec, 9)
    kept(tmp_path / PEAKS_FILE, peaks)
    remembered = json.loads((tmp_path / PEAKS_FILE).read_text())
    assert len(remembered) == MAX_PEAKS
    assert "0" not in remembered
