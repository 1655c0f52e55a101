"""What an ONNX file says of itself: its inputs, its outputs, its metadata. It reads no weights and needs no library.

Format: protocol buffers (https://protobuf.dev/programming-guides/encoding), the messages of
https://github.com/onnx/onnx/blob/main/onnx/onnx.proto. Whatever is not asked for is skipped, however large.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from antiphon.vocabulary.errors import ConfigError
from antiphon_adapters.files import open_regular

MAX_TEXT_BYTES = 2**20
"""The longest name or piece of metadata that is read."""

_VARINT, _FIXED_64, _BYTES, _FIXED_32 = 0, 1, 2, 5
_MODEL_GRAPH, _MODEL_METADATA = 7, 14
_GRAPH_INPUT, _GRAPH_OUTPUT = 11, 12
_VALUE_NAME, _VALUE_TYPE = 1, 2
_TENSOR, _TENSOR_SHAPE, _SHAPE_DIMENSION, _DIMENSION_SIZE = 1, 2, 1, 1
_ENTRY_KEY, _ENTRY_VALUE = 1, 2


@dataclass(frozen=True, slots=True)
class OnnxHeader:
    """The tensors of a graph by name, each with its shape; None is a size that varies."""

    inputs: Mapping[str, tuple[int | None, ...]]
    outputs: Mapping[str, tuple[int | None, ...]]
    metadata: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Field:
    """One field of a message: its number, and where in the file its value is."""

    number: int
    start: int
    end: int


def read_header(file: Path) -> OnnxHeader:
    """Read the header of the ONNX file; raises ConfigError, naming it, for a file that is none."""
    try:
        with open_regular(file) as data:
            return _Reader(data).header(file.stat().st_size)
    except OSError as exc:
        raise ConfigError(f"{file.name} cannot be read") from exc
    except ValueError as exc:
        raise ConfigError(f"{file.name} is not an ONNX file") from exc


class _Reader:
    """Walks the messages of one file; raises ValueError where they are none."""

    def __init__(self, data: BinaryIO) -> None:
        self._data = data

    def header(self, size: int) -> OnnxHeader:
        inputs: dict[str, tuple[int | None, ...]] = {}
        outputs: dict[str, tuple[int | None, ...]] = {}
        metadata: dict[str, str] = {}
        for field in self._fields(0, size):
            if field.number == _MODEL_METADATA:
                entry = {part.number: part for part in self._fields(field.start, field.end)}
                metadata[self._text(entry.get(_ENTRY_KEY))] = self._text(entry.get(_ENTRY_VALUE))
            elif field.number == _MODEL_GRAPH:
                for part in self._fields(field.start, field.end):
                    if part.number in (_GRAPH_INPUT, _GRAPH_OUTPUT):
                        tensors = inputs if part.number == _GRAPH_INPUT else outputs
                        name, shape = self._tensor(part)
                        tensors[name] = shape
        return OnnxHeader(inputs, outputs, metadata)

    def _tensor(self, value: _Field) -> tuple[str, tuple[int | None, ...]]:
        parts = {part.number: part for part in self._fields(value.start, value.end)}
        shape = parts.get(_VALUE_TYPE)
        for number in (_TENSOR, _TENSOR_SHAPE):
            shape = shape and next((it for it in self._fields(shape.start, shape.end) if it.number == number), None)
        dimensions = [] if shape is None else self._fields(shape.start, shape.end)
        return self._text(parts.get(_VALUE_NAME)), tuple(
            self._size(dimension) for dimension in dimensions if dimension.number == _SHAPE_DIMENSION
        )

    def _size(self, dimension: _Field) -> int | None:
        for field in self._fields(dimension.start, dimension.end):
            if field.number == _DIMENSION_SIZE:
                self._data.seek(field.start)
                return self._varint()
        return None

    def _text(self, field: _Field | None) -> str:
        if field is None:
            return ""
        if field.end - field.start > MAX_TEXT_BYTES:
            raise ValueError("a text is too long")
        self._data.seek(field.start)
        return self._data.read(field.end - field.start).decode("utf-8")

    def _fields(self, start: int, end: int) -> Iterator[_Field]:
        """The fields of the message between two places; who takes them may read elsewhere meanwhile."""
        while start < end:
            self._data.seek(start)
            key = self._varint()
            match key & 7:
                case kind if kind == _VARINT:
                    begin = self._data.tell()
                    self._varint()
                    start = self._data.tell()
                case kind if kind == _BYTES:
                    size = self._varint()
                    begin = self._data.tell()
                    start = begin + size
                case kind if kind in (_FIXED_32, _FIXED_64):
                    begin = self._data.tell()
                    start = begin + (4 if kind == _FIXED_32 else 8)
                case _:
                    raise ValueError("a field has no known kind")
            if start > end:
                raise ValueError("a field ends behind its message")
            yield _Field(key >> 3, begin, start)

    def _varint(self) -> int:
        """An integer of 7 bits a byte, the lowest first, at most 64 in all."""
        value = 0
        for shift in range(0, 64, 7):
            byte = self._data.read(1)
            if not byte:
                break
            value |= (byte[0] & 127) << shift
            if byte[0] < 128:
                return value
        raise ValueError("an integer has no end")
