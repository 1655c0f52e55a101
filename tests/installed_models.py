"""Models of the default catalogue, as a configuration has them. They are on this machine; this starts nothing."""

from antiphon.packages import default_models_root

DEFAULT = {
    "piper-en-joe": ("piper", "tts"),
    "whisper-tiny-en": ("whisper", "asr"),
    "whisper-base": ("whisper", "asr"),
    "speaker-turns": ("speaker_clustering", "diar"),
    "pocketsphinx-align": ("pocketsphinx", "align"),
    "silero-vad": ("silero_vad", "vad"),
}
"""The family and the task of each package."""


def installed_folder(package: str) -> str:
    """Where a package lies; raises AssertionError where it does not."""
    folder = default_models_root() / package
    assert folder.is_dir(), f"antiphon models install {package}"
    return str(folder)


def installed_model(package: str, name: str | None = None, **fields: object) -> dict[str, object]:
    """The registration of a package under its own name or another; one thread a call unless a field says so."""
    family, task = DEFAULT[package]
    told = {"id": name or package, "family": family, "task": task, "path": installed_folder(package)}
    return {**told, "threads": 1, **fields}
