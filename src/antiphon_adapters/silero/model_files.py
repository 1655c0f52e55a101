"""The Silero network on disk. It reads no weights and no engine."""

from pathlib import Path

from antiphon.vocabulary.errors import ConfigError

NETWORK_NAME = "silero_vad_v6.onnx"


def read_network(path: str) -> Path:
    """Find the network in the folder `path`; raises ConfigError naming the file that is not there."""
    folder = Path(path)
    if not folder.is_dir():
        raise ConfigError(f"this model is a folder with {NETWORK_NAME} in it")
    file = folder / NETWORK_NAME
    if not file.is_file():
        raise ConfigError(f"the model has no {NETWORK_NAME}")
    return file
