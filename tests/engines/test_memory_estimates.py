"""What a model is said to take before it is loaded, against what its process then grows by."""

import json
import subprocess
import sys

import pytest

import weighed_loads

OFF_BY = 2
"""An estimate of memory is worth something when it is not more than this many times off, either way."""


@pytest.mark.engine
@pytest.mark.parametrize("slots", [1, 4])
@pytest.mark.parametrize(
    ("family", "task", "name"),
    [("piper", "tts", "piper-en-joe"), ("whisper", "asr", "whisper-tiny-en")],
    ids=["piper", "whisper"],
)
def test_the_estimate_holds_for_the_first_load_of_a_process_and_for_those_after_it(
    installed, family, task, name, slots
):
    arguments = [weighed_loads.__file__, family, task, installed(name), str(slots)]
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=120, check=True)
    told = json.loads(done.stdout.splitlines()[-1])
    assert len(told["grown"]) == 3
    for grown in told["grown"]:
        assert told["estimate"] / OFF_BY <= grown <= told["estimate"] * OFF_BY, told
