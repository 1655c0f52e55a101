"""What the engines are given: fixed sentences, and the clips that are made of them."""

from antiphon.bench.load import Connection, json_request

SENTENCES = (
    "The harbour lay quiet while the last of the fishing boats came in from the north.",
    "She wrote the address on the back of an envelope and slid it across the table.",
    "A narrow path leads from the old mill to the bridge, and from there into the woods.",
    "Nobody in the village could remember a winter that had begun as early as this one.",
    "The library opens at nine in the morning and closes long after the shops have shut.",
    "He counted the coins twice, put them in his pocket, and walked towards the station.",
    "When the rain had stopped, the children ran outside to look for snails in the grass.",
    "Our train was late, so we had coffee and watched the pigeons under the iron roof.",
)
"""Of one length, about five seconds of speech, so that no caller is left alone for long with the last of them."""


def speech_request(model: str, text: str) -> bytes:
    """A request that has a sentence spoken."""
    return json_request("/v1/audio/speech", {"model": model, "input": text})


def spoken(url: str, model: str) -> list[bytes]:
    """Every sentence as a WAV file."""
    with Connection(url) as connection:
        return [connection.call(speech_request(model, text)) for text in SENTENCES]
