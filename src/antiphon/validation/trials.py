"""The steps of one fresh start: each asks, looks, and says what it found. It knows no reference.

Order: a first lazy load under a cold wave, warm waves, bad requests beside good ones, unload and reload, a targeted and
a bulk unload while an entry loads for the first time, and at the end everything unloaded.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from antiphon.validation.during_load import DuringLoad
from antiphon.validation.errors import NoAnswer
from antiphon.validation.evidence import CheckName, Memory, Start, Verdict
from antiphon.validation.memory import PeakWatch, unbacked_tree_bytes
from antiphon.validation.questions import Deck, Question
from antiphon.validation.reference import is_refusal
from antiphon.validation.site import Entry, Site, Standing
from antiphon.validation.verdicts import Finding, Seen, Trouble, failed
from antiphon.validation.waves import Wave, ask_together
from antiphon.vocabulary.states import ModelState

_QUIET_LOOKS = 200
_LOOK_EVERY_S = 0.02


@dataclass(frozen=True, slots=True)
class StartReport:
    """One start: what was found, and its numbers."""

    findings: tuple[Finding, ...]
    start: Start


class Trial:
    """One start under way. Questions come from `deck`, bad requests are `refused`."""

    def __init__(self, site: Site, deck: Deck, refused: Sequence[Question], waves: int, tries: int) -> None:
        self._site = site
        self._deck = deck
        self._refused = refused
        self._warm_waves = waves
        self._tries = tries
        self._wave_size = max(2, site.slots + 1)
        self._waves = 0
        self._answers = 0
        self._most_active_slots = 0
        self._quiet_bytes: list[int] = []
        self._watch = PeakWatch(site.pid)

    def run(self, on_step: Callable[[CheckName], None]) -> StartReport:
        """Take every step; one that finds a server which does not answer is a failed check, and the next is tried."""
        steps: Mapping[CheckName, Callable[[], Finding]] = {
            CheckName.COLD: self._cold,
            CheckName.WARM: self._warm,
            CheckName.OVERLAP: self._overlap,
            CheckName.INVALID: self._invalid,
            CheckName.RELOAD: self._reload,
            CheckName.UNLOAD_IN_LOAD: self._unload_in_load,
            CheckName.BULK_UNLOAD_IN_LOAD: self._bulk_unload_in_load,
        }
        findings = []
        with self._watch:
            before_bytes = self._watch.read()
            for name, step in steps.items():
                on_step(name)
                findings.append(_attempted(name, step))
            after_bytes = self._watch.read()
        memory = Memory(before_bytes, self._watch.peak_bytes, after_bytes, tuple(self._quiet_bytes))
        return StartReport(tuple(findings), Start(self._waves, self._answers, self._most_active_slots, memory))

    def _cold(self) -> Finding:
        """The first requests of all, while nothing is loaded."""
        state = self._site.standing(Entry.MODEL).state
        troubles = [] if state is ModelState.UNLOADED else [failed(f"the model was {state} before the first request")]
        wave, answers = self._asked(Entry.MODEL, self._hand())
        if not any(it.state is ModelState.LOADING for it in wave.standings):
            troubles.append(Trouble(Verdict.UNVERIFIED, "the load was over before it was seen"))
        return Finding(CheckName.COLD, answers, (*troubles, *_troubles(wave)))

    def _warm(self) -> Finding:
        """The longest question on every slot at once, then mixed ones, each second wave reversed."""
        answers: list[Seen] = []
        troubles: list[Trouble] = []
        hands = [[self._deck.longest()] * self._wave_size, *(self._hand() for _ in range(self._warm_waves))]
        for questions in hands:
            wave, found = self._together(Entry.MODEL, questions)
            answers += found
            troubles += _troubles(wave)
            self._watch.read()
            self._quiet_bytes.append(unbacked_tree_bytes(self._site.pid))
        return Finding(CheckName.WARM, tuple(answers), tuple(troubles))

    def _overlap(self) -> Finding:
        """Whether the server ever showed every slot at work at once, of a loaded model."""
        most, slots = self._most_active_slots, self._site.slots
        if most >= slots:
            return Finding(CheckName.OVERLAP)
        reason = f"{most} of {slots} slots were seen at work at once"
        return Finding(CheckName.OVERLAP, (), (Trouble(Verdict.UNVERIFIED, reason),))

    def _invalid(self) -> Finding:
        """Bad requests in the midst of good ones: refused, and nothing else is different."""
        good = self._hand()
        half = len(good) // 2
        mixed = [*good[:half], *self._refused, *good[half:]]
        wave, answers = self._asked(Entry.MODEL, mixed)
        healthy, troubles = [], []
        for question, answer, found in zip(mixed, wave.answers, answers, strict=True):
            if question not in self._refused:
                healthy.append(found)
            elif isinstance(answer, NoAnswer) or not is_refusal(answer):
                troubles.append(failed(f"{question.name} was not refused"))
        if not self._refused:
            troubles.append(Trouble(Verdict.UNVERIFIED, "one slot refuses no bad request"))
        if not self._becomes(Entry.MODEL, lambda standing: standing.is_quiet and standing.loaded):
            troubles.append(failed("bad requests left slots or waiters behind"))
        return Finding(CheckName.INVALID, tuple(healthy), tuple(troubles))

    def _reload(self) -> Finding:
        """Out of memory, back again, and the answers are still the same."""
        troubles = []
        if self._site.unload(Entry.MODEL).get("loaded") is not False or self._site.standing(Entry.MODEL).loaded:
            troubles.append(failed("the model was loaded after its unload"))
        if self._site.load(Entry.MODEL).get("loaded") is not True:
            troubles.append(failed("the model was not loaded after its load"))
        wave, answers = self._together(Entry.MODEL, self._hand())
        return Finding(CheckName.RELOAD, answers, (*troubles, *_troubles(wave)))

    def _unload_in_load(self) -> Finding:
        """An unload of a model that loads for the first time waits for the requests before it."""
        meanwhile = DuringLoad(lambda: self._site.unload(Entry.TARGETED), self._wave_size)
        answers, troubles = self._unloaded_in_load(Entry.TARGETED, meanwhile)
        if meanwhile.told is not None and meanwhile.told.get("loaded") is not False:
            troubles.append(failed("the unload said that the model is loaded"))
        _, after = self._asked(Entry.TARGETED, self._deck.hand(1))
        self._site.unload(Entry.TARGETED)
        return Finding(CheckName.UNLOAD_IN_LOAD, (*answers, *after), tuple(troubles))

    def _bulk_unload_in_load(self) -> Finding:
        """A bulk unload of a model that is ready and one that loads for the first time."""
        self._site.load(Entry.MODEL)
        meanwhile = DuringLoad(lambda: self._site.unload_many(Entry.MODEL, Entry.BULK), self._wave_size)
        answers, troubles = self._unloaded_in_load(Entry.BULK, meanwhile)
        if meanwhile.told is not None:
            unloaded = meanwhile.told.get("unloaded")
            if not isinstance(unloaded, list) or sorted(unloaded) != sorted((Entry.MODEL, Entry.BULK)):
                troubles.append(failed(f"the bulk unload said {dict(meanwhile.told)}"))
        if self._site.standing(Entry.MODEL).loaded:
            troubles.append(failed("a model was loaded after the bulk unload of it"))
        return Finding(CheckName.BULK_UNLOAD_IN_LOAD, answers, tuple(troubles))

    def _unloaded_in_load(self, entry: Entry, meanwhile: DuringLoad) -> tuple[tuple[Seen, ...], list[Trouble]]:
        with meanwhile:
            wave, answers = self._asked(entry, self._hand(), meanwhile.look)
        troubles = [*_troubles(wave), *meanwhile.troubles()]
        if meanwhile.told is not None and not self._becomes(
            entry, lambda standing: standing.state is ModelState.UNLOADED and not standing.loaded
        ):
            troubles.append(failed("the model was loaded after the unload of it"))
        return answers, troubles

    def _hand(self) -> list[Question]:
        return self._deck.hand(self._wave_size)

    def _together(self, entry: Entry, questions: Sequence[Question]) -> tuple[Wave, tuple[Seen, ...]]:
        """Ask a wave; again where an answer came before all of it was out. Every answer counts."""
        answers: tuple[Seen, ...] = ()
        for _ in range(self._tries):
            wave, found = self._asked(entry, questions)
            answers += found
            if wave.together:
                break
        return wave, answers

    def _asked(
        self, entry: Entry, questions: Sequence[Question], on_standing: Callable[[Standing], None] | None = None
    ) -> tuple[Wave, tuple[Seen, ...]]:
        wave, answers = ask_together(self._site, entry, questions, on_standing)
        self._waves += 1
        self._answers += len(answers)
        self._most_active_slots = max(self._most_active_slots, wave.most_active_slots)
        return wave, answers

    def _becomes(self, entry: Entry, wanted: Callable[[Standing], bool]) -> bool:
        """Whether an entry comes to stand so within a few seconds: a lease may outlive its answer for a moment."""
        pause = threading.Event()
        for _ in range(_QUIET_LOOKS):
            if wanted(self._site.standing(entry)):
                return True
            pause.wait(_LOOK_EVERY_S)
        return False


def _attempted(name: CheckName, step: Callable[[], Finding]) -> Finding:
    try:
        return step()
    except NoAnswer as fault:
        return Finding(name, (), (failed(fault.message),))


def _troubles(wave: Wave) -> list[Trouble]:
    if wave.together:
        return []
    return [Trouble(Verdict.UNVERIFIED, "an answer came before all requests of a wave were out")]
