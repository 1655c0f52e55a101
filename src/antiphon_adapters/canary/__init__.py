"""NeMo Canary models (exported to ONNX, run by onnx-asr) as a family that transcribes and translates."""

from antiphon_adapters.canary.adapter import CanaryAdapter

__all__ = ["CanaryAdapter"]
