"""Why a validation could not be made, or its evidence not be read."""

from antiphon.vocabulary.errors import AntiphonError


class ValidationError(AntiphonError):
    """There is nothing to compare: a model, an input or the one-slot reference is missing."""


class EvidenceError(AntiphonError):
    """An evidence file cannot be read, or does not say what it claims."""


class NoAnswer(AntiphonError):
    """A server gave no whole answer: a connection broke, or nothing came in time."""
