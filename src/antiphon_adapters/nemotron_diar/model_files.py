"""A streaming diarizer on disk: which file it is, and what it says of itself. It reads no weights and no engine.

Formats: the exports of https://huggingface.co/altunenes/parakeet-rs, whose metadata has bare names, and of
https://huggingface.co/christopherthompson81/nemotron3_diarization_onnx, whose metadata has a prefix.
"""

import base64
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path

from antiphon.vocabulary.errors import ConfigError
from antiphon.vocabulary.tasks import OptionValue
from antiphon_adapters.files import require_regular
from antiphon_adapters.nemotron_diar.onnx_header import OnnxHeader, read_header
from antiphon_adapters.nemotron_diar.profile import GENERATIONS, Generation, Outputs, Schedule

MELS = 128
EMBEDDING_SIZE = 512
"""That of all models so far, for an export that does not tell."""

MAX_EMBEDDING_SIZE = 16_384
"""Far above any model's: the cache of speakers is as wide."""

MAX_FRAMES = 10_000
"""The most that any part of a schedule may have, in frames of 80 ms: 800 s."""

SCHEDULED = ("chunk_len", "right_context", "fifo_len", "spkcache_len", "spkcache_update_period")
"""What `session_options` may change of a model's schedule."""

INPUTS = ("chunk", "chunk_lengths", "spkcache", "spkcache_lengths", "fifo", "fifo_lengths")
EMBEDDINGS = "chunk_pre_encode_embs"

_PREFIX = "vernacula.diar."
_METADATA: Mapping[str, tuple[str, ...]] = {
    **{name: (name, _PREFIX + name) for name in SCHEDULED},
    "right_context": ("right_context", f"{_PREFIX}chunk_right_context"),
    "sil_frames": ("spkcache_sil_frames_per_spk", f"{_PREFIX}spkcache_sil_frames_per_spk"),
}


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """One model. Shapes: `silence` [embedding_size], for a generation that learned it, else empty."""

    graph: Path
    generation: Generation
    outputs: Outputs
    schedule: Schedule
    speakers: int
    embedding_size: int
    silence: tuple[float, ...]
    weight_bytes: int


def read_model(path: str, session_options: Mapping[str, OptionValue]) -> ModelFiles:
    """Find and read the model at `path`: the folder of one .onnx file, or that file itself.

    Raises ConfigError, naming the file, for anything that is no such model, and for options that it cannot take.
    """
    graph = _find_graph(Path(path))
    header = read_header(graph)
    generation, outputs = _generation(graph.name, header)
    _require_shapes(graph.name, header)
    speakers = next(iter(header.outputs[outputs.preds][-1:]), None) or generation.speakers
    embedding_size = header.inputs["spkcache"][2] or EMBEDDING_SIZE
    if embedding_size > MAX_EMBEDDING_SIZE:
        raise ConfigError(f"{graph.name}: the size of spkcache must be at most {MAX_EMBEDDING_SIZE}")
    schedule = _schedule(graph.name, header.metadata, generation.schedule)
    schedule = _changed(schedule, session_options)
    _check(schedule, speakers)
    beside = graph.with_name(f"{graph.name}.data")
    return ModelFiles(
        graph,
        generation,
        outputs,
        schedule,
        speakers,
        embedding_size,
        silence=_silence(graph.name, header.metadata, embedding_size) if generation.learns_silence else (),
        weight_bytes=graph.stat().st_size + (beside.stat().st_size if beside.is_file() else 0),
    )


def _find_graph(path: Path) -> Path:
    if path.is_file() and path.suffix == ".onnx":
        return path
    graphs = sorted(path.glob("*.onnx")) if path.is_dir() else []
    if len(graphs) != 1:
        raise ConfigError(f"a diarization model is one .onnx file or the folder of one; found {len(graphs) or 'none'}")
    return require_regular(graphs[0])


def _generation(name: str, header: OnnxHeader) -> tuple[Generation, Outputs]:
    """Tell the kind of model by the names of its outputs."""
    if missing := [tensor for tensor in INPUTS if tensor not in header.inputs]:
        raise ConfigError(f"{name} is no streaming diarizer: it has no input {missing[0]}")
    for generation in GENERATIONS:
        for outputs in generation.outputs:
            if {outputs.preds, outputs.told, EMBEDDINGS} <= header.outputs.keys():
                return generation, outputs
    raise ConfigError(f"{name} is no streaming diarizer: its outputs are {', '.join(sorted(header.outputs)) or 'none'}")


def _require_shapes(name: str, header: OnnxHeader) -> None:
    for tensor in ("chunk", "spkcache", "fifo"):
        if len(header.inputs[tensor]) != 3 or header.inputs[tensor][1] is not None:
            raise ConfigError(f"{name} has a fixed size of {tensor}; an export with dynamic axes is needed")
    if header.inputs["chunk"][2] not in (MELS, None):
        raise ConfigError(f"{name} must take {MELS} mel features")


def _schedule(name: str, metadata: Mapping[str, str], default: Schedule) -> Schedule:
    found: dict[str, int] = {}
    for field, keys in _METADATA.items():
        for key in keys:
            if key in metadata:
                try:
                    found[field] = int(metadata[key])
                except ValueError as exc:
                    raise ConfigError(f"{name}: its metadata's {key} must be an integer") from exc
    return replace(default, **found)


def _changed(schedule: Schedule, options: Mapping[str, OptionValue]) -> Schedule:
    if unknown := sorted(set(options) - set(SCHEDULED)):
        raise ConfigError(f"unknown session_options {', '.join(unknown)}; there are {', '.join(SCHEDULED)}")
    changes: dict[str, int] = {}
    for name, value in options.items():
        if isinstance(value, bool) or not isinstance(value, int):
            raise ConfigError(f"session_options.{name} must be an integer")
        changes[name] = value
    return replace(schedule, **changes)


def _check(schedule: Schedule, speakers: int) -> None:
    least = {"chunk_len": 1, "spkcache_update_period": 1, "spkcache_len": speakers * (1 + schedule.sil_frames)}
    for field in fields(schedule):
        value, lowest = getattr(schedule, field.name), least.get(field.name, 0)
        if not lowest <= value <= MAX_FRAMES:
            raise ConfigError(f"the schedule's {field.name} must be from {lowest} to {MAX_FRAMES}; it is {value}")


def _silence(name: str, metadata: Mapping[str, str], size: int) -> tuple[float, ...]:
    """What a silent frame is to the model; zeros where an export does not tell."""
    try:
        if (text := metadata.get("learnable_sil_emb")) is not None:
            silence = tuple(float(number) for number in text.split(","))
        elif (text := metadata.get(f"{_PREFIX}learnable_sil_emb_f32le_b64")) is not None:
            silence = struct.unpack(f"<{size}f", base64.b64decode(text, validate=True))
        else:
            return (0.0,) * size
    except (ValueError, struct.error) as exc:
        raise ConfigError(f"{name}: its metadata's silence embedding cannot be read") from exc
    if len(silence) != size or not all(map(math.isfinite, silence)):
        raise ConfigError(f"{name}: its metadata's silence embedding must have {size} numbers")
    return silence
