"""What the engines are given: fixed sentences, and the clips that are made of them."""

from antiphon.bench.lab import Lab, configured
from antiphon.bench.load import Connection, form_request, json_request

CLIENTS = 8
NOOP = json_request("/v1/tasks/run", {"model": "null", "request": {"text": "nothing to do"}})
"""A request that has nothing to do."""
SENTENCES = (
    "The harbour lay quiet before the storm.",
    "She wrote the address on an envelope.",
    "A narrow path leads down to the bridge.",
    "The winter had begun early this year.",
    "The library opens at nine on Mondays.",
    "He counted the coins twice and left.",
    "The children looked for snails outside.",
    "Our train was late, so we had coffee.",
)
"""Of one length, some two seconds of speech, so that no caller is left alone for long with the last of them."""


def speech_request(model: str, text: str) -> bytes:
    """A request that has a sentence spoken."""
    return json_request("/v1/audio/speech", {"model": model, "input": text})


def stream_request(model: str, text: str) -> bytes:
    """A request that has a text spoken as a stream of samples, without a header before them."""
    fields = {"model": model, "input": text, "stream_format": "audio", "response_format": "pcm"}
    return json_request("/v1/audio/speech", fields)


def transcription_request(model: str, clip: bytes) -> bytes:
    """A request that has a clip transcribed."""
    return form_request("/v1/audio/transcriptions", {"model": model}, clip)


def clips_of(lab: Lab) -> list[bytes]:
    """As many clips as a turn has, spoken by Piper in a server that is gone afterwards."""
    voice = lab.installed("piper")
    with lab.another() as studio:
        return spoken(studio.serve([configured(voice)], parallel=False).url, voice.id)[: lab.scale.clips]


def spoken(url: str, model: str) -> list[bytes]:
    """Every sentence as a WAV file."""
    with Connection(url) as connection:
        return [connection.call(speech_request(model, text)) for text in SENTENCES]
