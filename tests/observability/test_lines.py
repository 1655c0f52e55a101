"""The log's lines: each record is one, whatever somebody made up to stand in it."""

import json
import logging

import pytest

from antiphon.observability.lines import FORMATS
from antiphon.observability.records import CURRENT, RequestRecord

FORGED = "x\n2026-01-01 00:00:00.000 INFO antiphon.models: forged"
UNSEEN = ["\n", "\r", "\r\n", "\x1b[31m", "\x9b31m", "\x7f", "\x85", "\u2028", "\u202e", "\0"]


def written(form, message, *arguments, error=None, fields=None):
    """One record as it is written."""
    exc_info = None if error is None else (type(error), error, error.__traceback__)
    record = logging.LogRecord("a.logger", logging.INFO, "", 0, message, arguments, exc_info)
    if fields is not None:
        record.fields = fields
    return FORMATS[form]().format(record)


@pytest.fixture(params=["pretty", "json"])
def form(request):
    return request.param


@pytest.fixture
def request_record():
    token = CURRENT.set(RequestRecord("the-request"))
    yield
    CURRENT.reset(token)


@pytest.mark.parametrize("unseen", UNSEEN)
def test_a_message_is_one_line_whatever_is_in_it(form, unseen):
    line = written(form, "GET %s", f"/a{unseen}b", fields={"route": f"c{unseen}d"})
    assert line.isprintable()


def test_no_line_of_a_traceback_looks_like_a_record():
    line, *trace = written("pretty", "it broke", error=ValueError(FORGED)).splitlines()
    assert line.endswith("INFO a.logger: it broke")
    assert trace
    assert all(it.startswith("    ") for it in trace)


def test_json_holds_what_was_logged_as_it_was():
    content = json.loads(written("json", "GET %s", FORGED, error=ValueError("why"), fields={"status": 200}))
    assert content["message"] == f"GET {FORGED}"
    assert (content["level"], content["logger"], content["status"]) == ("info", "a.logger", 200)
    assert content["time"].endswith("+00:00")
    assert content["exception"].endswith("ValueError: why")


@pytest.mark.parametrize("odd", ["\ud800", "caf\u00e9", "\U0001f600", 'quo"te', "back\\slash"])
def test_no_text_is_too_odd_for_json(odd):
    assert json.loads(written("json", "%s", odd))["message"] == odd


@pytest.mark.parametrize(
    ("value", "shown"),
    [("plain", "plain"), (12.5, "12.5"), (True, "True"), ("", '""'), ("two words", '"two words"'),
     ("a=b", '"a=b"'), ('say "so"', '"say \\"so\\""'), ("a\nb", '"a\\nb"')],
)  # fmt: skip
def test_people_see_where_a_field_ends(value, shown):
    assert written("pretty", "said", fields={"name": value}).endswith(f"a.logger: said name={shown}")


def test_a_line_of_a_request_has_its_id(form, request_record):
    assert "the-request" in written(form, "in the middle of it")


def test_a_line_of_no_request_has_no_id(form):
    assert "request_id" not in written(form, "on its own")
