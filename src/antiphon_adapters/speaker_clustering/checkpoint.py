"""Reads the tensors of a PyTorch checkpoint without PyTorch, and without running anything that it says.

Format: what `torch.save` wrote before version 1.6 (torch/serialization.py, `_legacy_save`): five pickles, which are a
magic number, a version, facts of the machine, the object and the keys of its storages; then each storage, a count of
elements as i64 and the elements, little-endian.
"""

import pickle
import struct
from collections import OrderedDict
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from antiphon.vocabulary.errors import ConfigError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAGIC = 0x1950A86A20F9469CFC6C
ELEMENTS = {"FloatStorage": "<f4", "DoubleStorage": "<f8", "LongStorage": "<i8", "IntStorage": "<i4"}
MAX_ELEMENTS = 2**28


@dataclass(frozen=True, slots=True)
class _Tensor:
    """A view of the storage of this key, in elements."""

    storage: str
    offset: int
    shape: tuple[int, ...]


def read_tensors(file: Path, member: str) -> "dict[str, NDArray[np.float32]]":
    """The tensors in the dictionary `member` of a checkpoint's dictionary, by name, as f32.

    Raises ConfigError for what is no such file, and for one that asks for anything but tensors of plain numbers.
    """
    try:
        with file.open("rb") as stream:
            return _read(stream, member)
    except (
        pickle.UnpicklingError,
        EOFError,
        struct.error,
        LookupError,
        ValueError,
        TypeError,
        AttributeError,
    ) as error:
        raise ConfigError(f"{file.name} is no checkpoint that can be read: {error}") from error


def _read(stream: BinaryIO, member: str) -> "dict[str, NDArray[np.float32]]":
    kinds: dict[str, str] = {}
    magic, _version, _machine, checkpoint, keys = (_Unpickler(stream, kinds).load() for _ in range(5))
    if magic != MAGIC:
        raise ValueError("the magic number is another")
    tensors = {str(name): it for name, it in checkpoint[member].items() if isinstance(it, _Tensor)}
    wanted = {tensor.storage for tensor in tensors.values()}
    storages = {key: found for key in keys if (found := _read_storage(stream, kinds[key], key in wanted)) is not None}
    return {name: _view(tensor, storages) for name, tensor in tensors.items()}


def _read_storage(stream: BinaryIO, kind: str, is_wanted: bool) -> "NDArray[np.float32] | None":
    import numpy as np

    (count,) = struct.unpack("<q", stream.read(8))
    if not 0 <= count <= MAX_ELEMENTS:
        raise ValueError("a storage has no sensible length")
    elements = np.dtype(ELEMENTS[kind])
    data = stream.read(count * elements.itemsize)
    return np.frombuffer(data, elements, count).astype(np.float32) if is_wanted else None


def _view(tensor: _Tensor, storages: "dict[str, NDArray[np.float32]]") -> "NDArray[np.float32]":
    elements = storages[tensor.storage][tensor.offset : tensor.offset + prod(tensor.shape)]
    return elements.reshape(tensor.shape)


def _rebuilt(storage: str, offset: int, shape: tuple[int, ...], stride: tuple[int, ...], *_: object) -> _Tensor:
    """Stand in for `torch._utils._rebuild_tensor_v2`, for tensors that lie in one piece."""
    contiguous = tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))
    if tuple(stride) != contiguous or offset < 0 or any(length < 0 for length in shape):
        raise pickle.UnpicklingError("a tensor does not lie in one piece")
    return _Tensor(storage, offset, tuple(shape))


class _Unpickler(pickle.Unpickler):
    """Knows three names and calls nothing else: a pickle may ask for any function. It notes the storages' kinds."""

    def __init__(self, stream: BinaryIO, kinds: dict[str, str]) -> None:
        super().__init__(stream)
        self._kinds = kinds

    def find_class(self, module: str, name: str) -> object:
        match module, name:
            case "collections", "OrderedDict":
                return OrderedDict
            case "torch._utils", "_rebuild_tensor_v2":
                return _rebuilt
            case "torch", kind if kind in ELEMENTS:
                return kind
        raise pickle.UnpicklingError(f"it asks for {module}.{name}")

    def persistent_load(self, pid: object) -> str:
        match pid:
            case ("storage", str(kind), str(key), *_):
                self._kinds[key] = kind
                return key
        raise pickle.UnpicklingError("it refers to something that is no storage")
