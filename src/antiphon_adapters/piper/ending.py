"""The end of a voice's graph, loaded: it makes sound of frames, also in windows on several threads. It knows no text.

ONNX Runtime's own threads would speed it up as well, but they divide matrices, and so round, differently for each
number of them; windows do not (docs/engines/piper.md). `cutting.py` says where the end begins.
"""

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from onnxruntime import InferenceSession

    Values = NDArray[np.float32]

MIN_WINDOW = 65
"""The fewest frames of a window: matrices of fewer columns are summed in another order, and round otherwise."""

MAX_WINDOW = 2 * MIN_WINDOW
"""The most frames of a window, about 1.5 s of speech. What a stage holds grows with it: the longest run at a quarter of
the speed took about 700 MiB whole, and takes 190 MiB in windows of this size."""


@dataclass(frozen=True, slots=True)
class Windows:
    """What a stage takes and gives, by name, and how it can be given in parts: there are `rate` outputs a frame.

    An output depends on no frame that is more than `margin` away from its own.
    """

    inputs: tuple[str, ...]
    output: str
    rate: int
    margin: int


@dataclass(frozen=True, slots=True)
class Stage:
    """A stretch of the graph that leaves as one value; several threads may run it at once."""

    session: "InferenceSession"
    windows: Windows

    def run(self, values: "Mapping[str, Values]", frames: int, edges: Sequence[int], crew: Executor | None) -> "Values":
        """Run it over `frames` whole, or in windows between these edges, on the threads of a `crew` if there is one.

        Every value is [1, channels, n], with `n` a multiple of the frames, or has a last axis of 1 or no axis.
        """
        import numpy as np

        if not edges:
            return self._answer({name: values[name] for name in self.windows.inputs})
        parts = (map if crew is None else crew.map)(partial(self._window, values, frames), edges, edges[1:])
        return np.concatenate(list(parts), axis=-1)

    def _window(self, values: "Mapping[str, Values]", frames: int, start: int, end: int) -> "Values":
        """The outputs of some frames: computed with their surroundings, whose outputs are dropped."""
        margin, rate = self.windows.margin, self.windows.rate
        first, last = max(0, start - margin), min(frames, end + margin)
        part = {name: _between(values[name], frames, first, last) for name in self.windows.inputs}
        return self._answer(part)[..., (start - first) * rate : (end - first) * rate]

    def _answer(self, values: "Mapping[str, Values]") -> "Values":
        import numpy as np

        (answer,) = self.session.run(None, dict(values))
        return np.asarray(answer, np.float32)


@dataclass(frozen=True, slots=True)
class Ending:
    """The stages in their order, and what the graph before them answers."""

    inputs: tuple[str, ...]
    stages: tuple[Stage, ...]

    def sound(self, answers: "Sequence[Values]", hands: int) -> "Values":
        """Make the sound of what the rest of the graph answered, on `hands` threads at most.

        Returns mono samples, shape [n], the same bits for any number of `hands`.
        """
        values = dict(zip(self.inputs, answers, strict=True))
        frames = max(it.shape[-1] for it in answers if it.ndim)
        count = _windows(frames, hands) if all(_fits(it, frames) for it in answers) else 1
        if count < 2:
            return self._through(values, frames, (), None)
        edges = [frames * number // count for number in range(count + 1)]
        if hands == 1:
            return self._through(values, frames, edges, None)
        with ThreadPoolExecutor(min(hands, count), "antiphon-piper-window") as crew:
            return self._through(values, frames, edges, crew)

    def _through(
        self, values: "dict[str, Values]", frames: int, edges: Sequence[int], crew: Executor | None
    ) -> "Values":
        for stage in self.stages:
            values[stage.windows.output] = stage.run(values, frames, edges, crew)
        return values[self.stages[-1].windows.output].reshape(-1)


def _windows(frames: int, hands: int) -> int:
    """How many windows to cut so many frames into: one for each hand, and more where they would be too large."""
    return max(min(hands, frames // MIN_WINDOW), math.ceil(frames / MAX_WINDOW))


def _fits(value: "Values", frames: int) -> bool:
    """Whether a value has something for each frame, or is the same everywhere."""
    return _is_everywhere(value) or (value.ndim == 3 and value.shape[-1] == frames)


def _is_everywhere(value: "Values") -> bool:
    return value.ndim == 0 or value.shape[-1] == 1


def _between(value: "Values", frames: int, first: int, last: int) -> "Values":
    import numpy as np

    if _is_everywhere(value):
        return value
    rate = value.shape[-1] // frames
    return np.ascontiguousarray(value[..., first * rate : last * rate])
