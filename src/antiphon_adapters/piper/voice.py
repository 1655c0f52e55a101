"""A loaded voice: the shared ONNX Runtime sessions and its speller. It knows no requests and no slots."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from antiphon.text.sentences import pieces
from antiphon_adapters.files import read_json
from antiphon_adapters.piper.ending import Ending, Stage
from antiphon_adapters.piper.phonemes import MAX_IDS, Speller, Utterance, utterances
from antiphon_adapters.piper.seeding import NOISE_PER_ID, noise_feed, read_seeded
from antiphon_adapters.piper.voice_files import VoiceFiles

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from onnxruntime import InferenceSession


@dataclass(frozen=True, slots=True)
class Delivery:
    """How to speak.

    `length_scale` above 1 is slower; the noises vary sound and rhythm; `speaker` is None where the graph knows but one.
    """

    length_scale: float
    noise_scale: float
    noise_w: float
    speaker: int | None
    seed: int


@dataclass(frozen=True, slots=True)
class Voice:
    """Immutable weights: its methods may run on several threads at once, and equal calls answer equal bytes.

    Where there is an `ending`, the graph is what comes before it, and `hands` threads may run that for one call.
    """

    files: VoiceFiles
    graph: "InferenceSession"
    ending: Ending | None
    hands: int
    speller: Speller
    phonemes: frozenset[str]
    noise_inputs: tuple[str, ...]

    @classmethod
    def load(cls, files: VoiceFiles, threads: int, *, auto: bool = False) -> Self:
        """Read the weights, to run each call on `threads` threads; `auto`: only those calls that are alone.

        Raises LoadFailed for a graph whose noise cannot be seeded.
        """
        from piper import PiperVoice
        from piper.config import PiperConfig

        seeded = read_seeded(str(files.graph), cut=auto)
        ending = None
        if isinstance(seeded.graph, bytes):
            graph = _session(seeded.graph, 1 if auto else threads)
        else:
            graph = _session(seeded.graph.front, 1)
            stages = (Stage(_session(stage.data, 1), stage.windows) for stage in seeded.graph.stages)
            ending = Ending(seeded.graph.inputs, tuple(stages))
        config = PiperConfig.from_dict(read_json(files.config, dict))
        return cls(
            files=files,
            graph=graph,
            ending=ending,
            hands=threads,
            speller=PiperVoice(session=graph, config=config),
            phonemes=frozenset(config.phoneme_id_map),
            noise_inputs=seeded.noise_inputs,
        )

    def utterances(self, text: str, length_scale: float) -> Iterator[Utterance]:
        """Spell the text lazily; slow speech gets shorter sequences, so that a run's memory keeps its bound."""
        max_ids = int(min(MAX_IDS, 2 * MAX_IDS / max(length_scale, 0.01)))
        sentences = pieces(text, self.files.language)
        return utterances(self.speller, self.phonemes.__contains__, sentences, max_ids)

    def speak(self, ids: list[int], delivery: Delivery, index: int, *, alone: bool = True) -> "NDArray[np.float32]":
        """Synthesise one sequence, the `index`-th of its request; `alone` says that no other call is at work.

        Returns mono samples, shape [n], as loud as the graph makes them.
        """
        import numpy as np

        noise_size = int(len(ids) * NOISE_PER_ID * max(1.0, delivery.length_scale))
        feed = {
            "input": np.array([ids], np.int64),
            "input_lengths": np.array([len(ids)], np.int64),
            "scales": np.array([delivery.noise_scale, delivery.length_scale, delivery.noise_w], np.float32),
            **noise_feed(self.noise_inputs, delivery.seed, index, noise_size),
        }
        if delivery.speaker is not None:
            feed["sid"] = np.array([delivery.speaker], np.int64)
        answers = self.graph.run(None, feed)
        if self.ending is not None:
            return self.ending.sound(answers, self.hands if alone else 1)
        return np.asarray(answers[0], np.float32).reshape(-1)


def _session(graph: bytes, threads: int) -> "InferenceSession":
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    # It keeps what it was made from, to be made anew with other providers: here, a second copy of the weights.
    session._model_bytes = None  # noqa: SLF001 (there is no other way, and another version just keeps it)
    return session
