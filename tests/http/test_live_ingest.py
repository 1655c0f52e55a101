"""Live audio within its limits: what a client may take its time over, and what not; in virtual time."""

import asyncio
from contextlib import closing

import pytest

from antiphon.audio.raw import RawFormat, SampleFormat
from antiphon.http.live_ingest import live_pieces
from antiphon.testing.virtual import VirtualLoop
from antiphon.vocabulary.errors import ClientLeft, RequestTimeout, TooLarge
from antiphon.vocabulary.spec import LiveLimits

RAW = RawFormat(SampleFormat.S16LE, 16_000, 1)
LIMITS = LiveLimits(idle_timeout_s=2, total_timeout_s=10, max_body_bytes=1000)
NO_LIMITS = LiveLimits(idle_timeout_s=0, total_timeout_s=0, max_body_bytes=0)


def speaker(*pieces):
    """Says bytes after so many seconds each; the end is None, and an error is one."""
    said = iter(pieces)

    async def hear():
        after_s, piece = next(said)
        await asyncio.sleep(after_s)
        if isinstance(piece, Exception):
            raise piece
        return piece

    return hear


def heard(*pieces, limits=LIMITS, engine_s=0.0):
    """How many frames are heard of each piece, by an engine that takes this long over each."""

    async def listen():
        frames = []
        async for pcm in live_pieces(speaker(*pieces), RAW, lambda: limits):
            frames.append(pcm.frames)
            await asyncio.sleep(engine_s)
        return frames

    loop = VirtualLoop()
    with closing(loop):
        return loop.run(listen())


def test_pieces_are_heard_as_they_come_and_a_cut_frame_goes_with_the_next():
    assert heard((0, b"\0" * 3), (1, b"\0"), (1, b"\0" * 4), (0, None)) == [1, 1, 2]


def test_a_frame_that_is_cut_off_at_the_end_is_dropped():
    assert heard((0, b"\0" * 5), (0, None)) == [2]


def test_silence_of_less_than_the_limit_is_waited_for():
    assert heard((1.9, b"\0\0"), (1.9, b"\0\0"), (1.9, None)) == [1, 1]


def test_a_client_that_says_nothing_for_too_long_is_refused():
    with pytest.raises(RequestTimeout, match="no audio came for 2 s"):
        heard((0, b"\0\0"), (2.1, b"\0\0"))


def test_messages_without_audio_are_no_sign_of_life():
    with pytest.raises(RequestTimeout, match="no audio"):
        heard(*[(1, b"")] * 5)


def test_a_client_that_goes_on_for_too_long_is_refused():
    with pytest.raises(RequestTimeout, match="took longer than 10 s"):
        heard(*[(1, b"\0\0")] * 20)


def test_the_time_that_an_engine_takes_is_no_idleness_of_the_client():
    assert heard((0, b"\0\0"), (1, b"\0\0"), (0, None), engine_s=4) == [1, 1]


def test_more_audio_than_there_may_be_is_refused():
    with pytest.raises(TooLarge, match="1000 bytes"):
        heard((0, b"\0" * 600), (0, b"\0" * 402))


def test_without_limits_nothing_is_refused():
    pieces = [(3600, b"\0" * 600)] * 3
    assert heard(*pieces, (3600, None), limits=NO_LIMITS) == [300, 300, 300]


def test_what_the_connection_raises_is_raised():
    with pytest.raises(ClientLeft):
        heard((0, b"\0\0"), (0, ClientLeft("gone")))
