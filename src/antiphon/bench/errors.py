"""Why there is nothing to measure."""

from antiphon.vocabulary.errors import AntiphonError


class BenchError(AntiphonError):
    """A measurement could not be made: a process did not start, or an answer was not the one that was asked for."""


class NotInstalledError(BenchError):
    """A case needs an engine or a model that is not there; the other cases go on."""
