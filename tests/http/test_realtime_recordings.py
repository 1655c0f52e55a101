"""What a recording of a Realtime session holds of the budget of all bodies."""

import asyncio
from contextlib import closing

import pytest

from antiphon.http.held_bodies import BodyBudget, BodyShare
from antiphon.http.realtime.commits import Gathered
from antiphon.http.realtime.sound import PCM
from antiphon.vocabulary.errors import ServerBusy

MIB = 1024 * 1024
CHUNK = bytes(MIB // 2)


def test_a_recording_that_moves_to_a_file_counts_as_one():
    async def check():
        budget = BodyBudget(limit_bytes=16 * MIB, limit_files=1)
        with closing(Gathered(PCM, BodyShare(budget).beside())) as first:
            first.add(CHUNK)
            assert budget.held_files == 0, "it is in memory"
            first.add(CHUNK)
            first.add(CHUNK)
            assert budget.held_files == 1
            with closing(Gathered(PCM, BodyShare(budget).beside())) as second:
                second.add(CHUNK)
                for _ in range(3):
                    with pytest.raises(ServerBusy, match="temporary files"):
                        second.add(CHUNK)
                assert second.size_bytes == len(CHUNK)
                assert budget.held_bytes == 4 * len(CHUNK), "what was refused is not counted"
                first.close()
                second.add(CHUNK)
                assert (budget.held_files, budget.held_bytes) == (1, 2 * len(CHUNK))
        assert (budget.held_files, budget.held_bytes) == (0, 0)

    asyncio.run(check())


def test_a_recording_for_which_there_are_no_bytes_counts_one_file_however_often_it_is_tried():
    async def check():
        budget = BodyBudget(limit_bytes=MIB // 2, limit_files=4)
        with closing(Gathered(PCM, BodyShare(budget).beside())) as recording:
            recording.add(CHUNK)
            for _ in range(3):
                with pytest.raises(ServerBusy, match="max_pending_body_mb"):
                    recording.add(CHUNK)
            assert (budget.held_files, budget.held_bytes) == (1, len(CHUNK))
        assert (budget.held_files, budget.held_bytes) == (0, 0)

    asyncio.run(check())
