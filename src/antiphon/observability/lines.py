"""How the log is written: what was logged becomes a line, in JSON or for people. What is logged others decide.

A line of a log can hold a name that somebody made up to look like another line. So whatever is not printable is written
as an escape, in either form. What belongs to a request has its id. More fields come as `extra={"fields": {...}}`.
"""

import json
import logging
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

import msgspec

from antiphon.observability.records import CURRENT
from antiphon.vocabulary.printable import printable

_DATE = "%Y-%m-%d %H:%M:%S"
_PLAIN = re.compile(r"[^\s\"=\\]+")


class JsonLines(logging.Formatter):
    """One JSON object a line: time (UTC), level, logger, message, the fields, and the traceback of an exception."""

    def format(self, record: logging.LogRecord) -> str:
        """Write one."""
        content: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_fields(record),
        }
        if trace := self._trace(record):
            content["exception"] = trace
        try:
            line = msgspec.json.encode(content).decode()
        except UnicodeEncodeError:  # half of a surrogate pair, as a file's name may have it
            line = json.dumps(content)
        return printable(line)

    def _trace(self, record: logging.LogRecord) -> str:
        return "" if record.exc_info is None else self.formatException(record.exc_info)


class PrettyLines(logging.Formatter):
    """Time (local), level, logger, message, then the fields; a traceback follows in lines that begin with spaces."""

    def format(self, record: logging.LogRecord) -> str:
        """Write one."""
        when = self.formatTime(record, _DATE)
        fields = "".join(f" {name}={_plain(value)}" for name, value in _fields(record).items())
        lines = [f"{when}.{record.msecs:03.0f} {record.levelname} {record.name}: {record.getMessage()}{fields}"]
        if record.exc_info is not None:
            lines += [f"    {line}" for line in self.formatException(record.exc_info).splitlines()]
        return "\n".join(map(printable, lines))


FORMATS: Mapping[str, Callable[[], logging.Formatter]] = {"pretty": PrettyLines, "json": JsonLines}
"""The forms by the names that users know."""


def log_lines(level: str, formatter: logging.Formatter) -> None:
    """Write everything from this level on to stderr; call it once, before anything is logged."""
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False  # no line has them
    out = logging.StreamHandler()
    out.setFormatter(formatter)
    logging.basicConfig(level=level, handlers=[out])


def _fields(record: logging.LogRecord) -> dict[str, object]:
    """What was given beside the message, and whose request it is."""
    fields: dict[str, object] = dict(getattr(record, "fields", {}))
    request = CURRENT.get()
    if request is not None and "request_id" not in fields:
        fields["request_id"] = request.id
    return fields


def _plain(value: object) -> str:
    """A value as people read it; in quotes where one could not see its end."""
    text = str(value)
    if not isinstance(value, str):
        return text
    return text if _PLAIN.fullmatch(text) else json.dumps(text)
