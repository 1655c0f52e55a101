"""Reads the options of one request against the `OptionSpec`s that its engine declared; it knows no engine."""

from collections.abc import Sequence
from dataclasses import dataclass

from antiphon.vocabulary.errors import InvalidRequest
from antiphon.vocabulary.spec import OptionSpec
from antiphon.vocabulary.tasks import OptionValue, TaskRequest


@dataclass(frozen=True, slots=True)
class OptionReader:
    """Typed access to a request's options. Raises InvalidRequest (param: the option's name) for a bad value.

    An option that is absent or null takes its default. Names that were not declared are nobody's business here.
    """

    specs: Sequence[OptionSpec]

    def number(self, request: TaskRequest, name: str, default: float) -> float:
        """A finite number inside the declared range."""
        value = request.options.get(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._refusal(name, "a number")
        return float(self._in_range(name, value))

    def integer(self, request: TaskRequest, name: str, default: int) -> int:
        """A whole number inside the declared range; 3.0 is none."""
        value = request.options.get(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int):
            raise self._refusal(name, "an integer")
        return int(self._in_range(name, value))

    def boolean(self, request: TaskRequest, name: str, *, default: bool) -> bool:
        """True or false; 1 is neither."""
        value: OptionValue = request.options.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self._refusal(name, "true or false")
        return value

    def choice(self, request: TaskRequest, name: str, default: str) -> str:
        """One of the declared words."""
        value = request.options.get(name)
        if value is None:
            return default
        if not isinstance(value, str) or value not in self._spec(name).choices:
            raise self._refusal(name, "one of " + ", ".join(self._spec(name).choices))
        return value

    def _spec(self, name: str) -> OptionSpec:
        return next(spec for spec in self.specs if spec.name == name)

    def _in_range(self, name: str, value: float) -> float:
        spec = self._spec(name)
        low = float("-inf") if spec.minimum is None else spec.minimum
        high = float("inf") if spec.maximum is None else spec.maximum
        # Written so that NaN, which is neither below nor above, is refused too.
        if not low <= value <= high:
            raise self._refusal(name, f"between {low:g} and {high:g}")
        return value

    @staticmethod
    def _refusal(name: str, wanted: str) -> InvalidRequest:
        return InvalidRequest(f"{name} must be {wanted}", param=name)
