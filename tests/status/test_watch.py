"""Looking again and again: a server that goes and comes back."""

import pytest

from antiphon.status.errors import NoServer, Refused
from antiphon.status.snapshot import Snapshot
from antiphon.status.source import Answers
from antiphon.status.watch import Look, looks

FIRST, SECOND = (Answers(status, Snapshot(())) for status in (b"1", b"2"))


class Scripted:
    """Answers in order, or raises; `events` has the asks and the pauses."""

    def __init__(self, *script):
        self.script = list(script)
        self.events = []

    def ask(self):
        self.events.append("ask")
        found = self.script.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    def pause(self):
        self.events.append("pause")

    def seen(self, count):
        all_looks = looks(self, self.pause)
        return [next(all_looks) for _ in range(count)]


def test_a_lost_server_is_told_of_with_what_was_known_and_found_again():
    source = Scripted(FIRST, NoServer("gone"), NoServer("gone"), SECOND)

    assert source.seen(4) == [Look(FIRST), Look(FIRST, "gone"), Look(FIRST, "gone"), Look(SECOND)]
    assert source.events == ["ask", "pause", "ask", "pause", "ask", "pause", "ask"]


def test_a_server_that_is_not_there_yet_is_waited_for():
    assert Scripted(NoServer("not yet"), FIRST).seen(2) == [Look(None, "not yet"), Look(FIRST)]


def test_a_refusal_ends_it():
    with pytest.raises(Refused):
        Scripted(FIRST, Refused("a key is wanted")).seen(2)
