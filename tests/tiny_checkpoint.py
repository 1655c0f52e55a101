"""Checkpoints as `torch.save` wrote them before version 1.6, made without torch, good ones and others."""

import pickle
import struct
import sys
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

MAGIC = 0x1950A86A20F9469CFC6C


class FloatStorage:
    """Stands in for torch's, by name alone."""


class _Tensor:
    def __init__(self, key: str, array: NDArray[np.float32], **wrong: object) -> None:
        stride = tuple(int(np.prod(array.shape[axis + 1 :])) for axis in range(array.ndim))
        self.arguments = {"key": key, "offset": 0, "shape": array.shape, "stride": stride, **wrong}

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        it = self.arguments
        storage = _Key(it["key"])
        return _rebuild_tensor_v2, (storage, it["offset"], it["shape"], it["stride"], False, OrderedDict())


class _Key:
    def __init__(self, key: object) -> None:
        self.key = key


def _rebuild_tensor_v2() -> None:
    """Stands in for torch's, by name alone."""


class _Pickler(pickle.Pickler):
    def persistent_id(self, obj: object) -> object:
        return ("storage", FloatStorage, obj.key, "cpu", 0, None) if isinstance(obj, _Key) else None


def checkpoint(
    tensors: Mapping[str, NDArray[np.float32]], *, magic: int = MAGIC, extra: object = None, **wrong: object
) -> bytes:
    """A file whose `model_state` has these tensors; `wrong` goes into how each lies, `extra` beside the state."""
    file = BytesIO()
    keys = {name: str(number) for number, name in enumerate(tensors)}
    state = OrderedDict((name, _Tensor(keys[name], array, **wrong)) for name, array in tensors.items())
    with _torch():
        for part in (magic, 1001, {"little_endian": True}, {"step": 1, "model_state": state, "extra": extra}):
            _Pickler(file, 2).dump(part)
    pickle.dump(list(keys.values()), file, 2)
    for array in tensors.values():
        file.write(struct.pack("<q", array.size) + array.astype("<f4").tobytes())
    return file.getvalue()


@contextmanager
def _torch() -> Iterator[None]:
    """A module by that name for as long as a pickle is written: names are looked up there."""
    torch, utils = ModuleType("torch"), ModuleType("torch._utils")
    for module, known in ((torch, FloatStorage), (utils, _rebuild_tensor_v2)):
        setattr(module, known.__name__, known)
        known.__module__ = module.__name__
    sys.modules.update({"torch": torch, "torch._utils": utils})
    try:
        yield
    finally:
        del sys.modules["torch"], sys.modules["torch._utils"]
