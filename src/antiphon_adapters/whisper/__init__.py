"""Whisper models (converted to CTranslate2, run by faster-whisper) as a transcription family."""

from antiphon_adapters.whisper.adapter import WhisperAdapter

__all__ = ["WhisperAdapter"]
