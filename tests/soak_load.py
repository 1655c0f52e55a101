"""The kinds of requests of the soak, and the answer that each must get. It knows no clock and no rate."""

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from installed_models import installed_model
from websocket_clients import connect

SENTENCES = (
    "The committee met on Tuesday to talk about the new bridge over the river.",
    "Nobody had expected that so many people would come.",
    "It will take two years, and cost more than they had hoped. Then everybody went home.",
)
PACKAGES = {
    "piper": "piper-en-joe",
    "whisper": "whisper-tiny-en",
    "turns": "speaker-turns",
    "voice": "silero-vad",
}
_BLOCK_BYTES = 32_000


def configuration(journal: Path) -> dict[str, object]:
    """A server of these models, two slots each, each in a process of its own."""
    models = [installed_model(package, name, slots=2) for name, package in PACKAGES.items()]
    return {"isolation": "process", "models": models, "journal": str(journal), "ui_management": True}


@dataclass(frozen=True, slots=True)
class Traffic:
    """Sends requests to one server. `clips` are what its voice made of the sentences, as files."""

    client: httpx.Client
    url: str
    clips: tuple[bytes, ...] = field(repr=False, default=())

    @classmethod
    def at(cls, client: httpx.Client, url: str) -> "Traffic":
        """With clips that the server speaks for it now."""
        bare = cls(client, url)
        return cls(client, url, tuple(bare.speak(n, response_format="wav").content for n in range(len(SENTENCES))))

    def speak(self, n: int, **fields: object) -> httpx.Response:
        """Have a sentence spoken."""
        asked = {"model": "piper", "input": SENTENCES[n % len(SENTENCES)], **fields}
        return self.client.post("/v1/audio/speech", json=asked)

    def hear(self, n: int, **fields: object) -> httpx.Response:
        """Have a clip transcribed."""
        file = self.clips[n % len(self.clips)]
        data = {"model": "whisper", **fields}
        return self.client.post("/v1/audio/transcriptions", data=data, files={"file": ("a.wav", file)})

    def leave(self, n: int) -> int:
        """Begin to read a stream of speech, and hang up."""
        asked = {"model": "piper", "input": " ".join(SENTENCES), "seed": n, "stream_format": "audio"}
        with self.client.stream("POST", "/v1/audio/speech", json=asked) as answer:
            next(answer.iter_raw())
            return answer.status_code

    def stream(self, n: int) -> int:
        """Read a stream of events to its end."""
        answer = self.speak(n, stream_format="sse", response_format="pcm")
        return answer.status_code if answer.text.endswith("data: [DONE]\n\n") else 0

    def live(self, n: int) -> int:
        """Speak a clip into a WebSocket, and wait for all its words."""
        address = f"{self.url.replace('http', 'ws')}/v1/audio/transcriptions/live?model=whisper&sample_rate=22050"
        with connect(address) as socket:
            samples = self.clips[n % len(self.clips)][44:]
            for start in range(0, len(samples), _BLOCK_BYTES):
                socket.send(samples[start : start + _BLOCK_BYTES])
            socket.send(json.dumps({"type": "end"}))
            last = [json.loads(message)["type"] for message in socket][-1]
            return 101 if last == "transcript.text.done" else 0

    def detect(self, n: int) -> httpx.Response:
        """Ask where somebody speaks."""
        audio = base64.b64encode(self.clips[n % len(self.clips)]).decode()
        return self.client.post("/v1/tasks/run", json={"model": "voice", "request": {"audio": audio}})


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of request: how often it is sent among the others, how, and the status that it must get."""

    share: int
    send: Callable[[Traffic, int], httpx.Response | int]
    status: int = 200

    def is_right(self, traffic: Traffic, n: int) -> bool:
        """Send one, and tell whether it got its answer."""
        answer = self.send(traffic, n)
        return (answer if isinstance(answer, int) else answer.status_code) == self.status


KINDS: Mapping[str, Kind] = {
    "speech, wav": Kind(6, lambda it, n: it.speak(n)),
    "speech, mp3": Kind(3, lambda it, n: it.speak(n, response_format="mp3", seed=n)),
    "speech, events": Kind(3, Traffic.stream),
    "speech, left": Kind(2, Traffic.leave),
    "transcription": Kind(6, Traffic.hear),
    "transcription, words": Kind(
        2, lambda it, n: it.hear(n, response_format="verbose_json", **{"timestamp_granularities[]": "word"})
    ),
    "transcription, events": Kind(2, lambda it, n: it.hear(n, stream="true")),
    "transcription, live": Kind(1, Traffic.live, 101),
    "who says what": Kind(2, lambda it, n: it.hear(n, response_format="diarized_json")),
    "voice activity": Kind(2, Traffic.detect),
    "no audio": Kind(
        1,
        lambda it, _: it.client.post("/v1/audio/transcriptions", data={"model": "whisper"}, files={"file": b"no"}),
        400,
    ),
    "no such model": Kind(1, lambda it, n: it.speak(n, model="none"), 404),
    "status": Kind(4, lambda it, _: it.client.get("/v1/status")),
    "reload": Kind(
        0, lambda it, _: it.client.post("/v1/models/unload", json={"id": "turns"})
    ),  # the next that needs it loads it again
}
