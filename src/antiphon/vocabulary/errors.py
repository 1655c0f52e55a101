"""The errors of the domain: each type says whose fault it was, none knows HTTP."""

from typing import ClassVar


class AntiphonError(Exception):
    """An error with a message that is fit for the person who sent the request: no path, no traceback."""

    code: ClassVar[str | None] = None

    def __init__(self, message: str, *, param: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.param = param


class InvalidRequest(AntiphonError):
    """The caller asked for something that cannot be; `param` names the field."""


class TooLarge(AntiphonError):
    """A body, an audio or a text is over its limit."""

    code = "too_large"


class UnsupportedMediaType(AntiphonError):
    """The body is of a type that the route does not read."""

    code = "unsupported_media_type"


class RequestTimeout(AntiphonError):
    """A request did not arrive in time."""

    code = "request_timeout"


class ClientLeft(AntiphonError):
    """Whoever sends the audio or takes the answer has gone: there is nobody to see this."""

    code = "client_left"


class Unauthenticated(AntiphonError):
    """The caller did not say who it is."""


class Forbidden(AntiphonError):
    """The caller may not do this here."""


class ModelNotFound(AntiphonError):
    """No model is registered under this id."""

    code = "model_not_found"


class ServerBusy(AntiphonError):
    """The wait for a slot ended, or was hopeless from the start. Units: `retry_after_s` seconds."""

    code = "server_busy"

    def __init__(self, message: str, *, retry_after_s: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class InsufficientMemory(ServerBusy):
    """There is no memory for what was asked, and no idle model to free some."""

    code = "insufficient_memory"


class OutOfResources(ServerBusy):
    """The operating system had no disk space, file descriptors or memory left for this."""

    code = "out_of_resources"


class WorkerDied(ServerBusy):
    """The process that the engine ran in has ended; the next request finds a new one."""

    code = "worker_died"


class RunTimeout(AntiphonError):
    """The engine made no progress for longer than the run may take."""

    code = "run_timeout"


class ShuttingDown(AntiphonError):
    """The server takes no new work, or has given up what it had not finished."""

    code = "shutting_down"

    def __init__(self, message: str = "the server is shutting down", *, param: str | None = None) -> None:
        super().__init__(message, param=param)


class Starting(AntiphonError):
    """The server has not brought into memory yet what it is to have there from its start."""

    code = "starting"


class EngineError(AntiphonError):
    """The engine failed at a request that was in order."""

    code = "engine_error"


class LoadFailed(AntiphonError):
    """The model could not be brought into memory; the next request may try again."""

    code = "load_failed"


class UnsupportedSlots(LoadFailed):
    """The model cannot serve as many slots as it is registered with."""


class PartialChange(AntiphonError):
    """Of several servers that were told to change, some did and some did not."""

    code = "partial_change"


class ConfigError(AntiphonError):
    """The configuration cannot be served; the message names the file and the field."""


class PackageError(AntiphonError):
    """A model package could not be installed, verified or removed."""


class PackageNotFound(PackageError):
    """Neither a catalogue nor the models root has a package of this id."""

    code = "package_not_found"


class ListenerBroken(AntiphonError):
    """One of the ways into the server broke while it served."""


class InvariantError(AssertionError):
    """antiphon itself broke one of its rules; the state is left as it was."""
