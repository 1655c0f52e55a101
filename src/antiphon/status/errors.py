"""Why there is no status to show."""

from antiphon.vocabulary.errors import AntiphonError


class NoServer(AntiphonError):
    """Nobody answers at the address now; a server that starts may yet."""


class Refused(AntiphonError):
    """Something answers, and not with a status: a key is wanted, or it is no antiphon."""
