"""Speaker turns by clustering voice prints (Resemblyzer's encoder, Silero's detector) as a diarization family."""

from antiphon_adapters.speaker_clustering.adapter import SpeakerClusteringAdapter

__all__ = ["SpeakerClusteringAdapter"]
