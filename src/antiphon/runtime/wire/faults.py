"""Errors on the wire: a domain error crosses as its name and its words, and never as code."""

import traceback
from collections.abc import Mapping

from antiphon.runtime.wire.coding import Message
from antiphon.vocabulary import errors
from antiphon.vocabulary.errors import AntiphonError, EngineError, InvariantError, ServerBusy

MAX_TRACE_CHARS = 8000
"""How much of a cause's traceback crosses: its end, where the fault is."""

_KINDS: Mapping[str, type[AntiphonError]] = {
    name: kind for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, AntiphonError)
}


class Failed(Message):
    """A call ended in this error. `trace` is the traceback of its cause, for the log."""

    kind: str
    message: str
    param: str | None = None
    retry_after_s: float = 1.0
    trace: str | None = None


class WorkerTraceback(Exception):
    """Where in the worker an error came from: the cause of the error that crossed."""


def failed(error: BaseException) -> Failed:
    """How an error crosses. A kind that is no domain error of ours crosses as the nearest that is."""
    if isinstance(error, InvariantError):
        return Failed(InvariantError.__name__, str(error), trace=_trace(error))
    if not isinstance(error, AntiphonError):
        told = f"the worker failed ({type(error).__name__})"
        return Failed(EngineError.__name__, told, trace=_trace(error))
    kind = next(it.__name__ for it in type(error).__mro__ if _KINDS.get(it.__name__) is it)
    retry_after_s = error.retry_after_s if isinstance(error, ServerBusy) else 1.0
    cause = error.__cause__
    return Failed(kind, error.message, error.param, retry_after_s, None if cause is None else _trace(cause))


def error_of(failure: Failed) -> Exception:
    """The error that crossed, to be raised; an unknown kind is an EngineError."""
    error = _error_of(failure)
    if failure.trace is not None:
        error.__cause__ = WorkerTraceback(f"in the worker:\n{failure.trace}")
    return error


def _error_of(failure: Failed) -> Exception:
    if failure.kind == InvariantError.__name__:
        return InvariantError(failure.message)
    kind = _KINDS.get(failure.kind, EngineError)
    if issubclass(kind, ServerBusy):
        return kind(failure.message, retry_after_s=failure.retry_after_s)
    return kind(failure.message, param=failure.param)


def _trace(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))[-MAX_TRACE_CHARS:]
