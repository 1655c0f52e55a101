"""Where snapshots come from: one server, asked over HTTP. It keeps no connection, so a server may come and go."""

import json
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection, IncompleteRead
from urllib.parse import SplitResult, urlsplit

from antiphon.config.keys import fits_a_head
from antiphon.status.errors import NoServer, Refused
from antiphon.status.snapshot import Snapshot, snapshot_of
from antiphon.vocabulary.errors import ConfigError

_OK, _SERVER_AT_FAULT = 200, 500


@dataclass(frozen=True, slots=True)
class Answers:
    """What a server answered to both questions, as it came, and what it means."""

    status: bytes
    snapshot: Snapshot


class StatusSource:
    """Asks the server at `url`, an http or https address that may have a path in front of `/v1`.

    Units: `timeout_s` seconds, for each step of an answer. Raises ConfigError for what is no such address, or no key.
    """

    def __init__(self, url: str, api_key: str | None, timeout_s: float = 10.0) -> None:
        self.url = url.rstrip("/")
        self._parts = _split(url)
        self._timeout_s = timeout_s
        if api_key is not None and not fits_a_head(api_key):
            raise ConfigError("wanted an API key of visible ASCII characters")  # it is not said what was found
        self._headers = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}

    def ask(self) -> Answers:
        """Ask now. Raises NoServer where nobody answers, Refused where the answer is no status."""
        status, models = self.get("/v1/status"), self.get("/v1/models")
        try:
            return Answers(status, snapshot_of(status, models))
        except (ValueError, RecursionError) as error:
            raise Refused(f"{self.url}: what answers there is no antiphon: {error}") from error

    def get(self, path: str) -> bytes:
        """The body of an answer with the status 200. Raises as `ask` does; a 5xx may pass, so it is NoServer."""
        try:
            with closing(self._connection()) as connection:
                connection.request("GET", self._parts.path.rstrip("/") + path, headers=self._headers)
                response = connection.getresponse()
                body = response.read()
        except (OSError, IncompleteRead, UnicodeError) as error:  # the last: a name that cannot be looked up
            raise NoServer(f"{self.url}: {_reason(error)}") from error
        except HTTPException as error:
            raise Refused(f"{self.url}: no HTTP is spoken there ({type(error).__name__})") from error
        if response.status != _OK:
            fault = NoServer if response.status >= _SERVER_AT_FAULT else Refused
            raise fault(f"{self.url}: {response.status}: {_message(body) or response.reason}")
        return body

    def _connection(self) -> HTTPConnection:
        kind = HTTPSConnection if self._parts.scheme == "https" else HTTPConnection
        return kind(self._parts.hostname or "", self._parts.port, timeout=self._timeout_s)


def _split(url: str) -> SplitResult:
    wanted = f"wanted an address like http://127.0.0.1:8080; found {url!r}"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ConfigError(wanted) from error
    if parts.scheme not in {"http", "https"} or not parts.hostname or port == 0 or parts.username is not None:
        raise ConfigError(wanted)
    if not fits_a_head("/" + parts.path) or parts.query or parts.fragment:
        raise ConfigError(wanted)
    return parts


def _reason(error: Exception) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error) or type(error).__name__


def _message(body: bytes) -> str | None:
    """What an error in OpenAI's shape says."""
    try:
        return str(json.loads(body)["error"]["message"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
