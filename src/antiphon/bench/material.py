"""What the engines are given: fixed sentences, and the clips that are made of them."""

from antiphon.bench.load import Connection, json_request

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


def spoken(url: str, model: str) -> list[bytes]:
    """Every sentence as a WAV file."""
    with Connection(url) as connection:
        return [connection.call(speech_request(model, text)) for text in SENTENCES]
