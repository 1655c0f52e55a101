"""The end of a voice's graph is cut off and speaks in windows: the same bytes as whole, on any number of threads."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import ModelProto

from antiphon.vocabulary.spec import ModelSpec
from antiphon.vocabulary.tasks import Mode, TaskRequest
from antiphon_adapters.piper.cutting import Cut, cut_ending
from antiphon_adapters.piper.ending import MAX_WINDOW, MIN_WINDOW, Ending, Stage
from antiphon_adapters.piper.seeding import read_seeded
from antiphon_adapters.piper.session import PiperSession
from antiphon_adapters.piper.voice import Delivery, Voice
from antiphon_adapters.piper.voice_files import read_voice
from tiny_ending import CHANNELS, HOP, build_ending_graph
from tiny_piper import build_graph

CPU = ["CPUExecutionProvider"]
HANDS = 7
LONG = (
    "We walked along the river until the sun went down, and nobody knew where the old map had come from; it had rained."
)
THREE = (
    "The train to the city leaves in ten minutes. The children laughed at the funny story. Put it on the table, please."
)


@dataclass
class Counting:
    """An ONNX Runtime session that notes each run."""

    session: onnxruntime.InferenceSession
    runs: list[int] = field(default_factory=list)
    threads: list[str] = field(default_factory=list)

    def run(self, outputs: None, feed: dict[str, NDArray[np.float32]]) -> list[NDArray[np.float32]]:
        self.threads.append(threading.current_thread().name)
        self.runs.append(max(it.shape[-1] for it in feed.values() if it.ndim))
        return self.session.run(outputs, feed)


def parts_of(graph: ModelProto) -> tuple[onnxruntime.InferenceSession, Ending]:
    cut = cut_ending(graph)
    assert cut is not None
    front, *sessions = (
        onnxruntime.InferenceSession(data, providers=CPU) for data in (cut.front, *(it.data for it in cut.stages))
    )
    stages = tuple(Stage(session, it.windows) for session, it in zip(sessions, cut.stages, strict=True))
    return front, Ending(cut.inputs, stages)


def counted_first(ending: Ending) -> tuple[Ending, Counting]:
    """The ending with its first stage counted."""
    first, *others = ending.stages
    counting = Counting(first.session)
    return replace(ending, stages=(replace(first, session=counting), *others)), counting


def frames_of(count: int) -> NDArray[np.float32]:
    return np.random.default_rng(count).standard_normal((1, CHANNELS, count), np.float32)


# Any graph with such an end.


def test_the_parts_answer_as_the_whole_does() -> None:
    graph, frames = build_ending_graph(), frames_of(50)
    front, ending = parts_of(graph)
    (whole,) = onnxruntime.InferenceSession(graph.SerializeToString(), providers=CPU).run(None, {"frames": frames})
    assert ending.sound(front.run(None, {"frames": frames}), 1).tobytes() == whole.tobytes()
    assert [it.windows.rate for it in ending.stages] == [HOP, HOP]


def test_no_value_depends_on_a_frame_beyond_the_margin() -> None:
    _, ending = parts_of(build_ending_graph())
    frames, margin = frames_of(60), sum(it.windows.margin for it in ending.stages)
    plain = ending.sound([frames], 1)
    for at in (0, 20, 59):
        touched = frames.copy()
        touched[:, :, at] += 1
        (changed,) = np.nonzero(ending.sound([touched], 1) != plain)
        assert changed[0] // HOP >= at - margin
        assert changed[-1] // HOP <= at + margin
    assert margin <= 8  # it is near what the convolutions say, so windows overlap by little


@pytest.mark.parametrize("speaker", [False, True])
def test_windows_joined_are_the_whole(speaker: bool) -> None:
    front, ending = parts_of(build_ending_graph(speaker=speaker))
    frames = frames_of(4 * MIN_WINDOW + 3)
    answers = front.run(None, {"frames": frames, **({"speaker": frames[:, :, :1]} if speaker else {})})
    whole, joined = (ending.sound(answers, hands) for hands in (1, 4))
    assert np.allclose(joined, whole, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("frames", "hands", "runs"),
    [
        (2 * MIN_WINDOW - 1, 8, 1),
        (2 * MIN_WINDOW, 8, 2),
        (2 * MIN_WINDOW, 1, 1),
        (6 * MIN_WINDOW, 4, 4),
        (2 * MIN_WINDOW + 1, 1, 2),
        (100 * MIN_WINDOW, 4, 50),
    ],
)
def test_a_window_is_neither_short_nor_long_and_there_are_no_more_than_threads_and_length_need(
    frames: int, hands: int, runs: int
) -> None:
    _, ending = parts_of(build_ending_graph())
    ending, counting = counted_first(ending)
    ending.sound([frames_of(frames)], hands)
    assert len(counting.runs) == runs
    assert sum(counting.runs) >= frames
    assert max(counting.runs) <= MAX_WINDOW + 2 * ending.stages[0].windows.margin


@pytest.mark.parametrize(
    "graph",
    [
        build_graph(),
        build_ending_graph(stride=2),
        build_ending_graph(same=False),
        build_ending_graph(peeks=True),
    ],
    ids=["no convolution", "a stride", "frames lost at the ends", "an output of the insides"],
)
def test_another_end_is_not_cut_off(graph: ModelProto) -> None:
    assert cut_ending(graph) is None


# The installed voice.


@pytest.fixture(scope="module")
def voice(piper_spec: ModelSpec) -> Voice:
    """A voice whose lone calls take seven threads."""
    return Voice.load(read_voice(piper_spec.path), HANDS, auto=True)


@pytest.fixture(scope="module")
def whole(piper_spec: ModelSpec) -> Voice:
    """The voice uncut, on one thread."""
    return Voice.load(read_voice(piper_spec.path), 1)


@pytest.fixture
def counted(voice: Voice) -> Iterator[tuple[PiperSession, Counting]]:
    """A session over the voice, and what the first stage of its ending was asked."""
    assert voice.ending is not None
    ending, counting = counted_first(voice.ending)
    session = PiperSession(replace(voice, ending=ending), Mode.OFFLINE)
    yield session, counting
    session.close()


def sound_of(session: PiperSession, request: TaskRequest) -> bytes:
    audio = session.run(request).audio
    assert audio is not None
    return audio.samples.tobytes()


@pytest.mark.engine
@pytest.mark.parametrize(("count", "seed"), [(5, 0), (60, 1), (66, 2), (90, 3), (140, 4), (220, 5)])
def test_speech_of_any_length_is_the_same_on_any_number_of_threads(
    voice: Voice, whole: Voice, count: int, seed: int
) -> None:
    ids = next(voice.utterances(LONG, 1.0)).ids
    ids = ids[:count] + ids[-2:]
    delivery = Delivery(0.9, 0.667, 0.8, None, seed)
    expected = whole.speak(ids, delivery, 0).tobytes()
    assert voice.speak(ids, delivery, 0, alone=False).tobytes() == expected
    for hands in (2, 3, HANDS):
        assert replace(voice, hands=hands).speak(ids, delivery, 0).tobytes() == expected


@pytest.mark.engine
@pytest.mark.parametrize(("text", "seed"), [(THREE, 0), (LONG, 7)])
def test_a_request_sounds_the_same_alone_and_among_others(voice: Voice, whole: Voice, text: str, seed: int) -> None:
    request = TaskRequest(text=text, seed=seed)
    expected = sound_of(PiperSession(whole, Mode.OFFLINE), request)
    session = PiperSession(voice, Mode.OFFLINE)
    assert [
        sound_of(session, replace(request, at_work=lambda: 1)),
        sound_of(session, replace(request, at_work=lambda: 2)),
    ] == [expected] * 2


@pytest.mark.engine
def test_the_threads_are_chosen_anew_for_each_sentence(counted: tuple[PiperSession, Counting]) -> None:
    session, counting = counted
    others = iter([1, 3, 1])
    runs = []

    def at_work() -> int:
        runs.append(len(counting.runs))
        return next(others)

    session.run(TaskRequest(text=THREE, at_work=at_work))
    ends = [*runs[1:], len(counting.runs)]
    first, second, third = (set(counting.threads[start:end]) for start, end in zip(runs, ends, strict=True))
    assert second == {threading.current_thread().name}
    assert first - second  # how many threads share the windows depends on how fast each of them is
    assert third - second


@pytest.mark.engine
def test_the_weights_are_held_once(piper_spec: ModelSpec) -> None:
    path = str(read_voice(piper_spec.path).graph)
    whole, cut = (read_seeded(path, cut=cut).graph for cut in (False, True))
    assert isinstance(whole, bytes)
    assert isinstance(cut, Cut)
    assert len(cut.front) + sum(len(stage.data) for stage in cut.stages) <= 1.01 * len(whole)


SLOWEST_LONG_RUN = """
import sys
from pathlib import Path
from antiphon_adapters.piper.session import OPTIONS
from antiphon_adapters.piper.voice import Delivery, Voice
from antiphon_adapters.piper.voice_files import read_voice

def peak_bytes():
    line = next(it for it in Path("/proc/self/status").read_text().splitlines() if it.startswith("VmHWM"))
    return int(line.split()[1]) * 1024

voice = Voice.load(read_voice(Path(sys.argv[1])), 2, auto=True)
slowest = 1 / next(it.minimum for it in OPTIONS if it.name == "speed")
before = peak_bytes()
utterance = max(voice.utterances("abcdefghij" * 100, slowest), key=lambda it: len(it.ids))
voice.speak(utterance.ids, Delivery(slowest, 0.667, 0.8, None, 0), 0)
print(peak_bytes() - before)
"""


@pytest.mark.engine
def test_the_longest_run_takes_little_memory(piper_spec: ModelSpec) -> None:
    command = [sys.executable, "-c", SLOWEST_LONG_RUN, str(piper_spec.path)]
    grown = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert grown <= 300 * 2**20  # run whole it is about 700 MiB
