"""The fuzzers themselves: a seed names one input, and the files that they start from are in order."""

import io
import subprocess
import sys
from pathlib import Path

import pytest

from antiphon.audio.decode import DecodeLimits, decode
from fuzz_audio import MOST_BYTES, corpus, damaged_file
from fuzz_parts import parts_of
from fuzz_stage import TARGETS
from server_process import HANG_GUARD_S

COMMAND = Path(__file__).parents[1] / "fuzz_run.py"


@pytest.mark.parametrize("target", TARGETS)
def test_a_seed_names_one_input_and_another_seed_another(target):
    shot_of = TARGETS[target].shot_of
    assert [shot_of(seed) for seed in range(20)] == [shot_of(seed) for seed in range(20)]
    assert len({shot_of(seed).data for seed in range(20)}) > 15


def test_the_corpus_is_the_same_whenever_it_is_made():
    assert corpus.__wrapped__() == corpus()


def test_an_input_is_the_same_in_another_process(tmp_path):
    command = [sys.executable, str(COMMAND), "audio", "--first", "7", "--write", str(tmp_path / "shot")]
    subprocess.run(command, check=True, timeout=HANG_GUARD_S)
    assert (tmp_path / "shot").read_bytes() == TARGETS["audio"].shot_of(7).data


@pytest.mark.parametrize("name", corpus())
def test_a_file_of_the_corpus_is_decoded_and_has_parts_that_do_not_pass_its_end(name):
    data = corpus()[name]
    assert decode(io.BytesIO(data), DecodeLimits(max_seconds=1)).duration_s == pytest.approx(0.3, abs=0.15)
    parts = parts_of(data)
    assert len(parts) > 1
    assert all(0 <= it.start <= it.body <= it.end <= len(data) for it in parts)


def test_no_damaged_file_grows_without_end():
    assert max(len(damaged_file(seed)) for seed in range(300)) <= MOST_BYTES
