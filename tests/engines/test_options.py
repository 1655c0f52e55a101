"""Options are read by their declared types, and a bad value names its option."""

import pytest

from antiphon.vocabulary.errors import InvalidRequest
from antiphon.vocabulary.spec import OptionSpec
from antiphon.vocabulary.tasks import OptionValue, TaskRequest
from antiphon_adapters.options import OptionReader

READER = OptionReader(
    (
        OptionSpec("speed", "number", "", 0.25, 4.0),
        OptionSpec("beams", "integer", "", 1, 10),
        OptionSpec("words", "boolean", ""),
    )
)


def asking(**options: OptionValue) -> TaskRequest:
    return TaskRequest(options=options)


def test_an_absent_or_null_option_takes_its_default() -> None:
    assert READER.number(asking(), "speed", 1.5) == 1.5
    assert READER.integer(asking(beams=None), "beams", 3) == 3
    assert READER.boolean(asking(words=None), "words", default=True) is True


def test_both_ends_of_a_range_are_taken() -> None:
    assert READER.number(asking(speed=0.25), "speed", 1.0) == 0.25
    assert READER.number(asking(speed=4), "speed", 1.0) == 4.0


@pytest.mark.parametrize("value", [0, -1, 0.24, 4.01, 1e9, float("nan"), float("inf"), "1.5", True, [1]])
def test_a_bad_number_is_refused_by_name(value: OptionValue) -> None:
    with pytest.raises(InvalidRequest, match="speed must be") as refusal:
        READER.number(asking(speed=value), "speed", 1.0)
    assert refusal.value.param == "speed"


@pytest.mark.parametrize("value", [0, 11, 3.0, "3", True])
def test_a_bad_integer_is_refused_by_name(value: OptionValue) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        READER.integer(asking(beams=value), "beams", 1)
    assert refusal.value.param == "beams"


@pytest.mark.parametrize("value", [1, 0, "true"])
def test_only_true_and_false_are_booleans(value: OptionValue) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        READER.boolean(asking(words=value), "words", default=False)
    assert refusal.value.param == "words"
