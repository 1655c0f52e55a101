"""Piper voices (VITS as ONNX, phonemes from espeak-ng) as a text to speech family."""

from antiphon_adapters.piper.adapter import PiperAdapter

__all__ = ["PiperAdapter"]
