"""NVIDIA's streaming diarizers (Sortformer v2 and v2.1, Nemotron-3, exported to ONNX) as a family."""

from antiphon_adapters.nemotron_diar.adapter import NemotronDiarAdapter

__all__ = ["NemotronDiarAdapter"]
