"""The registered models: one stable record each, never erased while anyone may hold it."""

from collections.abc import Iterator
from dataclasses import dataclass

from antiphon.residency.lifecycle import Step, next_state
from antiphon.vocabulary.errors import InvariantError, ModelNotFound
from antiphon.vocabulary.spec import Capability, Registration, SessionFacts
from antiphon.vocabulary.states import ModelState


@dataclass(frozen=True, slots=True)
class Metadata:
    """What a model is registered as, with what its files say that it can do: one value, so that they always match."""

    registration: Registration
    capability: Capability


class Entry:
    """What is known of one model. Units: `last_used` in monotonic seconds: the end of its last lease or load.

    `facts` are those of the published pool's sessions, and None while none is published: so a reader that finds facts
    may use the pool.
    """

    __slots__ = ("_metadata", "facts", "last_error", "last_used", "state")

    def __init__(self, registration: Registration, capability: Capability, now: float) -> None:
        self._metadata = Metadata(registration, capability)
        self.state = ModelState.UNLOADED
        self.facts: SessionFacts | None = None
        self.last_used = now
        self.last_error: str | None = None

    @property
    def id(self) -> str:
        """The id that the model is registered under."""
        return self._metadata.registration.spec.id

    @property
    def metadata(self) -> Metadata:
        """What was committed last; another object after every commit, so its identity tells whether there was one."""
        return self._metadata

    @property
    def registration(self) -> Registration:
        """What the model is registered as."""
        return self._metadata.registration

    @property
    def capability(self) -> Capability:
        """What the model's files say that it can do."""
        return self._metadata.capability

    def commit(self, registration: Registration, capability: Capability) -> None:
        """Replace what is known of the model, whole and in one assignment (ops.reconfiguring.status).

        Raises InvariantError for a registration of another id: an entry is one model's for ever.
        """
        if registration.spec.id != self.id:
            raise InvariantError(f"the entry of {self.id} cannot become {registration.spec.id}")
        self._metadata = Metadata(registration, capability)

    def take(self, step: Step) -> None:
        """Change the state as the table says; an illegal step raises and changes nothing."""
        self.state = next_state(self.state, step)

    def __repr__(self) -> str:
        return f"<Entry {self.id} {self.state}>"


class Registry:
    """Entries by id, in the order of their registration."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}

    def insert(self, entry: Entry) -> None:
        """Publish a new entry; raises InvariantError for an id that is taken."""
        if entry.id in self._entries:
            raise InvariantError(f"model {entry.id} is registered already")
        self._entries[entry.id] = entry

    def find(self, model_id: str) -> Entry:
        """Look an entry up; raises ModelNotFound."""
        try:
            return self._entries[model_id]
        except KeyError:
            raise ModelNotFound(f"there is no model {model_id!r}", param="model") from None

    def __iter__(self) -> Iterator[Entry]:
        return iter(tuple(self._entries.values()))

    def __len__(self) -> int:
        return len(self._entries)
