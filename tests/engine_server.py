"""A real server of real engines, as tests call it. It asserts nothing."""

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import ClassVar

import httpx

from server_process import ServerProcess

SPEECH = "/v1/audio/speech"
TRANSCRIPTIONS = "/v1/audio/transcriptions"


@dataclass(frozen=True, slots=True)
class EngineServer:
    """The models `piper`, `whisper` and `multilingual`; `threads` make requests that overlap."""

    SENTENCE: ClassVar[str] = "The weather is nice today, and we will walk to the river."

    process: ServerProcess
    client: httpx.Client
    threads: ThreadPoolExecutor

    def speak(self, text: str, **fields: object) -> httpx.Response:
        """Have `text` spoken, as a WAV file unless the fields say otherwise."""
        return self.client.post(SPEECH, json={"model": "piper", "input": text, **fields})

    def transcribe(self, file: bytes, name: str = "a.wav", **fields: object) -> httpx.Response:
        """Have a file transcribed by the English model, unless the fields name another."""
        return self.client.post(TRANSCRIPTIONS, data={"model": "whisper", **fields}, files={"file": (name, file)})


def words_of(text: str) -> str:
    """A text's words alone: lower case, no punctuation."""
    return " ".join(re.findall(r"[a-z0-9']+", text.lower()))
