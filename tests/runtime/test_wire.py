"""Frames, messages and errors as bytes; and both ends of a line, without a process."""

import asyncio
import math
import socket
import struct
import threading
from array import array

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.runtime.wire.channel import Channel
from antiphon.runtime.wire.coding import Decoder, Message, encoded
from antiphon.runtime.wire.faults import MAX_TRACE_CHARS, WorkerTraceback, error_of, failed
from antiphon.runtime.wire.frames import PIECE_BYTES, FrameReader, batches_of
from antiphon.runtime.wire.parcels import Inbox
from antiphon.runtime.wire.signals import Cancel, Grant
from antiphon.vocabulary import errors
from antiphon.vocabulary.audio import Pcm
from antiphon.vocabulary.errors import (
    AntiphonError,
    EngineError,
    InsufficientMemory,
    InvalidRequest,
    InvariantError,
    ServerBusy,
    UnsupportedSlots,
    WorkerDied,
)
from antiphon.worker.line import Line
from runtime_stage import until


class Noted(Message):
    """A message for tests."""

    text: str
    number: int = 0


KINDS = sorted(
    (it for it in vars(errors).values() if isinstance(it, type) and issubclass(it, AntiphonError)),
    key=lambda it: it.__name__,
)


def sound(samples):
    return Pcm(memoryview(array("f", samples)), 16_000)


def written(call, message, sounds=()):
    return b"".join(bytes(buffer) for batch in batches_of(call, message, sounds) for buffer in batch)


def read(inbox, data, sizes):
    """Feed bytes in pieces of about these sizes; the messages with their sounds."""
    came, at = [], 0
    while at < len(data):
        size = min(len(inbox.room()), sizes[len(came) % len(sizes)], len(data) - at)
        inbox.room()[:size] = data[at : at + size]
        at += size
        came += [
            (call, bytes(told), [list(it.samples) for it in parcel.take()])
            for call, told, parcel in inbox.deliveries(size)
        ]
    return came


@given(
    messages=st.lists(
        st.tuples(
            st.integers(0, 2**32 - 1),
            st.binary(max_size=400),
            st.lists(st.lists(st.floats(width=32, allow_nan=False), max_size=50), max_size=3),
        ),
        max_size=6,
    ),
    sizes=st.lists(st.integers(1, 300), min_size=1, max_size=3),
)
def test_messages_and_sounds_arrive_as_they_were_however_they_are_cut(messages, sizes):
    data = b"".join(written(call, told, [sound(it) for it in sounds]) for call, told, sounds in messages)
    assert read(Inbox(), data, sizes) == messages


def test_a_message_larger_than_the_buffer_arrives_and_the_buffer_shrinks_again():
    inbox = Inbox()
    usual = len(inbox.room())
    large = b"x" * (10 * PIECE_BYTES)
    data = written(1, large) + written(2, b"small")
    assert [told for _, told, _ in read(inbox, data, [100_000])] == [large, b"small"]
    assert read(inbox, written(3, b"next"), [100]) == [(3, b"next", [])]
    assert len(inbox.room()) <= usual


def test_sounds_of_calls_that_alternate_stay_apart():
    samples = {call: [float(call)] * (PIECE_BYTES // 2) for call in (1, 2)}
    batches = [list(batches_of(call, b"m", [sound(it)])) for call, it in samples.items()]
    data = b"".join(bytes(buffer) for pair in zip(*batches, strict=True) for batch in pair for buffer in batch)
    assert read(Inbox(), data, [70_000]) == [(call, b"m", [it]) for call, it in samples.items()]


@pytest.mark.parametrize(
    "frame",
    [struct.pack("<IIB", 2**31, 1, 0), struct.pack("<IIB", 1, 1, 9) + b"x", struct.pack("<IIB", 4, 1, 2) + b"1234"],
)
def test_bytes_that_are_no_frame_are_refused(frame):
    with pytest.raises(ValueError, match="a frame of"):
        read(Inbox(), frame, [100])


def test_the_room_for_bytes_is_never_empty():
    reader = FrameReader()
    header = struct.pack("<IIB", 3 * len(reader.room()), 1, 0)
    reader.room()[: len(header)] = header
    assert list(reader.frames(len(header))) == []
    for _ in range(20):
        assert list(reader.frames(min(len(reader.room()), 7000))) == []
        assert len(reader.room())


@pytest.mark.parametrize(
    "message", [Noted("a", 1), Noted("half \ud800 of a pair"), Noted("", 2**64), Noted("", -(2**90)), Noted("[]{}", 91)]
)
def test_a_message_is_the_same_after_its_crossing(message):
    assert Decoder(Noted).decode(memoryview(encoded(message))) == message


def test_numbers_that_are_none_cross():
    class Measured(Message):
        value: float
        huge: int

    for huge in (1, 2**80):
        came = Decoder(Measured).decode(memoryview(encoded(Measured(math.nan, huge))))
        assert math.isnan(came.value)


@pytest.mark.parametrize(
    "data", [b"", b"\xc1", b"[", b"[1]", b"\x92\xa5Grant\x01", msgspec.msgpack.encode(["Noted", 1])]
)
def test_bytes_that_are_no_message_are_refused(data):
    with pytest.raises(ValueError, match="a message that is none"):
        Decoder(Noted).decode(memoryview(data))


@pytest.mark.parametrize("kind", KINDS)
def test_every_domain_error_crosses_as_it_is(kind):
    error = kind("words", retry_after_s=7.0) if issubclass(kind, ServerBusy) else kind("words", param="field")
    came = error_of(failed(error))
    assert type(came) is kind
    assert (came.message, came.param, getattr(came, "retry_after_s", None)) == (
        error.message,
        error.param,
        getattr(error, "retry_after_s", None),
    )
    assert came.__cause__ is None


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (InvariantError("broken"), InvariantError, "broken"),
        (KeyError("x"), EngineError, "the worker failed (KeyError)"),
        (type("UnsupportedSlots", (UnsupportedSlots,), {})("ours"), UnsupportedSlots, "ours"),
        (type("Own", (InsufficientMemory,), {})("ours"), InsufficientMemory, "ours"),
        (type("InvalidRequest", (RuntimeError,), {})("a namesake"), EngineError, "the worker failed (InvalidRequest)"),
    ],
)
def test_any_other_error_crosses_as_the_nearest_that_is_known(error, kind, words):
    came = error_of(failed(error))
    assert (type(came), str(came)) == (kind, words)


def test_a_kind_that_nobody_knows_is_an_engine_error():
    told = msgspec.structs.replace(failed(InvalidRequest("words")), kind="SystemExit")
    assert type(error_of(told)) is EngineError


def test_the_cause_of_an_error_crosses_as_the_end_of_its_traceback():
    def fail(depth):
        if depth:
            fail(depth - 1)
        raise ZeroDivisionError("the very cause " + "x" * MAX_TRACE_CHARS)

    with pytest.raises(ZeroDivisionError) as caught:
        fail(3)
    error = EngineError("outer")
    error.__cause__ = caught.value
    told = failed(error)
    assert len(told.trace) == MAX_TRACE_CHARS
    assert isinstance(error_of(told).__cause__, WorkerTraceback)


async def connected(receive, lost):
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    channel = Channel(Decoder(Cancel | Grant), receive, lost)
    await asyncio.get_running_loop().create_unix_connection(lambda: channel, sock=ours)
    return channel, theirs


async def test_a_line_that_talks_nonsense_is_closed():
    lost = asyncio.Event()
    _, theirs = await connected(lambda *_: None, lost.set)
    with theirs:
        theirs.sendall(struct.pack("<IIB", 2**31, 1, 0))
        await lost.wait()
        assert theirs.recv(1) == b""


async def test_what_is_sent_after_the_line_was_closed_goes_nowhere():
    lost = asyncio.Event()
    channel, theirs = await connected(lambda *_: None, lost.set)
    theirs.close()
    await lost.wait()
    channel.send(1, Grant(1), [sound([1.0])])
    channel.abort()


async def test_a_small_message_passes_a_large_sound_of_another_call_and_none_of_its_own():
    """Nobody reads at first, so that the sound has to wait."""
    channel, theirs = await connected(lambda *_: None, lambda: None)
    large = sound([0.5] * (8 * PIECE_BYTES))
    channel.send(1, Cancel(1), [large])
    channel.send(1, Cancel(2))
    channel.send(2, Grant(3))
    came = []
    with theirs:
        line = Line(theirs, Decoder(Cancel | Grant))
        reading = threading.Thread(target=lambda: came.extend(zip(range(3), line, strict=False)), daemon=True)
        reading.start()
        await until(lambda: not reading.is_alive())
        channel.abort()
    assert [(call, told) for _, (call, told, _) in came] == [(2, Grant(3)), (1, Cancel(1)), (1, Cancel(2))]
    assert came[1][1][2].take()[0].frames == large.frames


async def test_threads_that_send_large_sounds_take_turns():
    came = []
    done = asyncio.Event()

    def receive(call, told, parcel):
        came.append((call, parcel.take()[0].frames if told == Cancel(0) else told))
        if len(came) == 3:
            done.set()

    channel, theirs = await connected(receive, lambda: None)
    with theirs:
        line = Line(theirs, Decoder(Cancel | Grant))
        large = sound([0.5] * (8 * PIECE_BYTES))
        senders = [
            threading.Thread(target=line.send, args=(1, Cancel(0), [large])),
            threading.Thread(target=line.send, args=(2, Cancel(0), [large])),
            threading.Thread(target=line.send, args=(3, Grant(1))),
        ]
        for sender in senders:
            sender.start()
        await done.wait()
        for sender in senders:
            sender.join()
        channel.abort()
    assert came[0] == (3, Grant(1))
    assert sorted(came[1:]) == [(1, large.frames), (2, large.frames)]


def test_a_sender_whose_server_is_gone_does_not_fail():
    ours, theirs = socket.socketpair()
    ours.close()
    with theirs:
        Line(theirs, Decoder(Cancel)).send(1, Cancel(0), [sound([1.0] * PIECE_BYTES)])


def test_worker_died_is_busy_so_that_clients_come_again():
    assert issubclass(WorkerDied, ServerBusy)
