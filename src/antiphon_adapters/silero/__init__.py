"""The Silero detector of speech: the family `silero_vad`, and the parts of it that other engines listen with."""

from antiphon_adapters.silero.adapter import SileroVadAdapter

__all__ = ["SileroVadAdapter"]
