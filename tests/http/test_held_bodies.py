"""The budget of all bodies: what counts, for how long, and who is refused when it is used up."""

import pytest

from antiphon.http.held_bodies import FREE_BYTES, BodyBudget, BodyShare
from antiphon.vocabulary.errors import ServerBusy

KIB = 1024


@pytest.fixture
def budget():
    return BodyBudget(limit_bytes=1000 * KIB, limit_files=2)


def test_the_first_bytes_of_each_body_are_free(budget):
    for _ in range(100):
        BodyShare(budget).add(FREE_BYTES)
    assert budget.held_bytes == 0


def test_what_goes_beyond_them_counts_however_it_comes(budget):
    at_once, in_pieces = BodyShare(budget), BodyShare(budget)
    at_once.add(FREE_BYTES + 100)
    for _ in range(100):
        in_pieces.add(FREE_BYTES // 100 + 1)
    assert budget.held_bytes == 100 + 100 * (FREE_BYTES // 100 + 1) - FREE_BYTES


def test_the_budget_may_be_used_up_and_no_byte_more_is_taken(budget):
    first, second = BodyShare(budget), BodyShare(budget)
    first.add(FREE_BYTES + 1000 * KIB)
    second.add(FREE_BYTES)
    with pytest.raises(ServerBusy, match="max_pending_body_mb") as refusal:
        second.add(1)
    assert refusal.value.retry_after_s == 5
    assert budget.held_bytes == 1000 * KIB


def test_a_share_that_goes_back_makes_room_and_goes_back_once(budget):
    first, second = BodyShare(budget), BodyShare(budget)
    first.add(FREE_BYTES + 1000 * KIB)
    first.release()
    first.release()
    assert budget.held_bytes == 0
    second.add(FREE_BYTES + 1000 * KIB)
    assert budget.held_bytes == 1000 * KIB


def test_a_body_that_is_refused_is_counted_no_more(budget):
    share = BodyShare(budget)
    share.add(FREE_BYTES + 900 * KIB)
    with pytest.raises(ServerBusy), share.kept():
        share.add(200 * KIB)
    assert budget.held_bytes == 0


def test_files_are_counted_for_all_requests_together(budget):
    first, second = BodyShare(budget), BodyShare(budget)
    first.add_file()
    second.add_file()
    with pytest.raises(ServerBusy, match="temporary files"):
        first.add_file()
    second.release()
    first.add_file()
    assert budget.held_files == 2
    first.release()
    assert budget.held_files == 0


def test_an_application_without_a_budget_counts_nothing():
    share = BodyShare(None)
    share.add(2**40)
    share.add_file()
    share.release()
