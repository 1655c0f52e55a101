"""Audio that lies in a file is read piece by piece, and what was read does not stay in memory."""

from pathlib import Path

import numpy as np

from antiphon.audio.blocks import blocks_of, samples_of
from antiphon.audio.convert import convert
from antiphon.runtime.wire.frames import batches_of
from antiphon.vocabulary.audio import Pcm
from antiphon.vocabulary.spool import SPILL_BYTES, PcmWriter, let_go, pieces_of

LARGE = SPILL_BYTES // 4 + 1000
"""Samples: more than is kept in memory, and no whole number of pages."""
MIB = 1024 * 1024
FEW_BYTES = SPILL_BYTES // 2
"""The kernel maps more than what is read: up to a large page, on either side."""


def spooled(samples=LARGE, rate=16_000, channels=1):
    with PcmWriter(rate, channels) as writer:
        for start in range(0, samples, MIB):
            writer.write(np.arange(start, min(start + MIB, samples), dtype=np.float32).data)
        return writer.finish()


def mapped_bytes(pcm):
    """How much of a sound's file is in this process's memory."""
    address = samples_of(pcm).__array_interface__["data"][0]
    inside = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        name, _, rest = line.partition(" ")
        if "-" in name and ":" not in name:
            first, last = (int(it, 16) for it in name.split("-"))
            inside = first <= address < last
        elif inside and name == "Rss:":
            return int(rest.split()[0]) * 1024
    raise AssertionError("the sound lies in no mapping")


def test_the_pieces_are_the_sound_in_order_and_none_stays_in_memory():
    pcm = spooled()
    heard = 0
    for piece in pieces_of(pcm, 100_000):
        assert piece[0] == heard
        heard += len(piece)
        assert piece[-1] == heard - 1
        assert mapped_bytes(pcm) < FEW_BYTES
    assert heard == LARGE


def test_what_was_let_go_of_can_be_read_again():
    pcm = spooled()
    assert samples_of(pcm).sum() > 0
    let_go(pcm, 0, LARGE)
    assert mapped_bytes(pcm) == 0
    assert pcm.samples[LARGE - 1] == LARGE - 1


def test_a_sound_in_memory_has_pieces_as_well():
    pcm = spooled(10)
    assert [list(piece) for piece in pieces_of(pcm, 4)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


def test_blocks_hold_whole_frames():
    pcm = spooled(3 * 100_000, channels=3)
    assert all(len(block) % 3 == 0 for block in blocks_of(pcm))
    assert np.array_equal(np.concatenate(list(blocks_of(pcm))), samples_of(pcm))


def test_a_conversion_leaves_neither_side_in_memory():
    pcm = spooled(rate=8_000)
    converted = convert(pcm, 16_000, 1)
    assert converted.frames == 2 * LARGE
    assert mapped_bytes(pcm) < FEW_BYTES
    assert mapped_bytes(converted) < FEW_BYTES


def test_a_sound_that_is_sent_does_not_stay_in_memory():
    pcm = spooled()
    sent = sum(len(part) for batch in batches_of(1, b"", [pcm]) for part in batch)
    assert sent > pcm.samples.nbytes
    assert mapped_bytes(pcm) < FEW_BYTES


def test_a_part_of_a_sound_may_be_read_so_too():
    pcm = spooled()
    part = Pcm(pcm.samples[1000:], pcm.rate)
    assert np.concatenate([np.asarray(piece) for piece in pieces_of(part, 100_000)])[0] == 1000
