"""onnx-asr's Canary, which can be told to stop. Importing this module imports the engine: only `load` may."""

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Self

import numpy as np
import onnxruntime
from onnx_asr.models.nemo import NemoConformerAED
from onnx_asr.preprocessors.numpy_preprocessor import NemoPreprocessorNumpy
from onnx_asr.resolver import Resolver

from antiphon_adapters.canary.model_files import FEATURE_SIZES, ModelFiles

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from onnx_asr.asr import TimestampedResult


class Abandoned(Exception):
    """Whoever asked has left."""


class CanaryEngine(NemoConformerAED):
    """Immutable weights: `transcribe` may run on several threads at once, and equal calls answer alike.

    onnx-asr keeps nothing between two calls: its arrays are the call's own, and an ONNX Runtime session takes any
    number of runs at a time. Made without onnx-asr's loader, which opens seven more sessions for rates that never come.
    """

    def __init__(self, files: ModelFiles, threads: int) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        # Given a folder that is there and no name of a repository, this looks nowhere else.
        resolver = Resolver(NemoConformerAED, local_dir=files.folder, offline=True)
        super().__init__(
            resolver.resolve_model(quantization=files.quantization),
            NemoPreprocessorNumpy,
            {"sess_options": options, "providers": ["CPUExecutionProvider"]},
        )
        self._hear_as_the_encoder_does()
        self._is_abandoned: Callable[[], bool] = lambda: False

    def transcribe(
        self, samples: "NDArray[np.float32]", is_abandoned: Callable[[], bool], **prompt: str | bool | None
    ) -> "TimestampedResult":
        """Write down mono speech at 16 kHz, shape [n], greedily; `prompt` is `language`, `target_language` and `pnc`.

        Raises Abandoned before the next token once `is_abandoned` says so.
        """
        # A call of its own over the same weights: what may stop it is nobody else's.
        call = self._call(is_abandoned)
        lengths = np.array([len(samples)], np.int64)
        return next(call.recognize_batch(samples[None], lengths, **prompt))

    def _hear_as_the_encoder_does(self) -> None:
        """Make as many features as the graph takes, whatever the configuration says or leaves out."""
        shapes = {tensor.name: tensor.shape for tensor in self._encoder.get_inputs()}
        size = shapes["audio_signal"][1]
        if size in FEATURE_SIZES:
            self.config = {**self.config, "features_size": size}
            self._preprocessor = NemoPreprocessorNumpy(self._preprocessor_name)

    def _call(self, is_abandoned: Callable[[], bool]) -> Self:
        call = copy.copy(self)
        call._is_abandoned = is_abandoned  # noqa: SLF001 (it is of this class)
        return call

    def _decode(
        self,
        input_ids: "NDArray[np.int64]",
        encoder_embeddings: "NDArray[np.float32]",
        encoder_mask: "NDArray[np.int64]",
        decoder_mems: "NDArray[np.float32]",
    ) -> "tuple[NDArray[np.float32], NDArray[np.float32]]":
        """Decode one token."""
        if self._is_abandoned():
            raise Abandoned
        return super()._decode(input_ids, encoder_embeddings, encoder_mask, decoder_mems)
