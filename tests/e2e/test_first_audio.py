"""A long text is heard from its first sentence, while the engine is still far from its last."""

from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import pytest

from engine_server import SPEECH
from server_process import HANG_GUARD_S

pytestmark = pytest.mark.engine

FIRST = "The first sentence is short."
BOOK = FIRST + " And then a long book follows it." * 2900
MIXED = (
    "1. Dr. Smith met J. R. Miller at 10:30 a.m.\nApples\nPears\n“Wait... what?” he said. "
    "We went along the river, and over the hill, and through the dark wood, and past the old mill, "
    "and across the bridge, and into the town, and up the stairs, "
    "and out on the roof, and saw the sea, and the ships on it, and nobody spoke."
)


def blocks_of(engines, stack: ExitStack, text: str) -> Iterator[bytes]:
    """A stream over a connection of its own, of which nothing is read yet; it ends with the last reference to it."""
    client = stack.enter_context(httpx.Client(base_url=engines.process.url, timeout=HANG_GUARD_S))
    body = {"model": "piper", "input": text, "stream_format": "audio", "response_format": "pcm"}
    answer = stack.enter_context(client.stream("POST", SPEECH, json=body))
    assert answer.status_code == 200
    return answer.iter_raw()


def leases(engines) -> int:
    models = engines.client.get("/v1/status").json()["models"]
    return len(next(model for model in models if model["id"] == "piper")["leases"])


def test_the_first_sentence_arrives_while_the_engine_is_at_work_on_the_book(engines):
    alone = engines.speak(FIRST, response_format="pcm").content

    with ExitStack() as stack:
        blocks, heard = blocks_of(engines, stack, BOOK), b""
        while len(heard) < len(alone):
            heard += next(blocks)
        assert leases(engines) >= 1  # an engine that another test has left may still be at its last sentence

    assert heard[: len(alone)] == alone


def test_readers_who_stop_hold_the_engine_and_one_who_leaves_lets_it_go(engines):
    """Each book is an hour and a half of speech: a slot is only free soon if the rest of its book is never made."""
    with ExitStack() as reader, ExitStack() as leaver:
        books = [blocks_of(engines, stack, BOOK) for stack in (reader, leaver)]
        assert all(map(next, books))
        assert leases(engines) == 2  # both slots: the next request waits in the queue

        leaver.close()

        assert engines.speak("The next.", busy_timeout_ms=30_000).status_code == 200
        assert leases(engines) == 1


def test_a_stream_is_the_whole_answer_however_its_text_is_cut(engines):
    whole = engines.speak(MIXED, response_format="pcm", speed=4).content
    assert engines.speak(MIXED, response_format="pcm", speed=4, stream_format="audio").content == whole
