"""One server as the users of these programs set it up: OpenAI's names for its models, and a voice with speakers."""

import json
from dataclasses import dataclass
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest

from antiphon.testing import ControlledCheckpoint
from server_process import HANG_GUARD_S, running_server
from tiny_piper import build_voice


@dataclass(frozen=True, slots=True)
class Answer:
    """What a client gets: the status, the headers in lower case, and the body."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self):
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class ClientServer:
    """The server's address, and its models' checkpoints: `speaker` (tts-1), `listener` (whisper-1)."""

    url: str
    speaker: ControlledCheckpoint
    listener: ControlledCheckpoint

    def send(self, method, path, headers, body=b""):
        """Send exactly these headers besides Host; a body in pieces goes out chunked."""
        address = urlsplit(self.url)
        connection = HTTPConnection(address.hostname, address.port, timeout=HANG_GUARD_S)
        chunked = not isinstance(body, bytes)
        fields = {**headers, **({"Transfer-Encoding": "chunked"} if chunked else {})}
        try:
            connection.request(method, path, body, fields, encode_chunked=chunked)
            answer = connection.getresponse()
            return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
        finally:
            connection.close()


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """It answers mp3 where a request does not say, as OpenAI's API does."""
    folder = tmp_path_factory.mktemp("clients")
    models = [
        {"id": "speaker", "family": "controlled", "path": "speaker", "task": "tts", "aliases": ["tts-1"]},
        {"id": "listener", "family": "controlled", "path": "listener", "task": "asr", "aliases": ["whisper-1"]},
        {"id": "duet", "family": "piper", "path": "duet", "task": "tts"},
    ]
    speaker, listener = (ControlledCheckpoint(folder / name) for name in ("speaker", "listener"))
    build_voice(folder / "duet", speakers=2)
    with running_server(folder, {"models": models, "lazy_load": True, "speech_format": "mp3"}) as process:
        yield ClientServer(process.url, speaker, listener)
