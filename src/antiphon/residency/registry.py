"""The registered models: one stable record each, never erased while anyone may hold it."""

from collections.abc import Iterator
from dataclasses import dataclass

from antiphon.residency.lifecycle import Step, next_state
from antiphon.vocabulary.errors import InvalidRequest, InvariantError, ModelNotFound
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
    """Entries by id, in the order of their registration. Ids and aliases are names of one kind: each is one model's.

    Aliases are read from the entries themselves, so that they change in the step that commits a registration.
    """

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._claims: list[Registration] = []

    def insert(self, entry: Entry) -> None:
        """Publish a new entry; raises InvariantError for a name that is taken."""
        for name in entry.registration.names:
            if self._named(name) is not None:
                raise InvariantError(f"there is a model {name} already")
        self._entries[entry.id] = entry

    def find(self, name: str) -> Entry:
        """Look an entry up by its id or an alias; raises ModelNotFound."""
        entry = self._named(name)
        if entry is None:
            raise ModelNotFound(f"there is no model {name!r}", param="model")
        return entry

    def require_free(self, registration: Registration) -> None:
        """Raise InvalidRequest where a name of the registration is, or is about to be, another model's."""
        for name in registration.names:
            owner = self._owner_of(name, besides=registration.spec.id)
            if owner is not None:
                param = "id" if name == registration.spec.id else "aliases"
                raise InvalidRequest(f"{name!r} is a name of the model {owner!r}", param=param)

    def claim(self, registration: Registration) -> None:
        """Keep its names from others until `unclaim`, while it is carried out; raises InvalidRequest."""
        self.require_free(registration)
        self._claims.append(registration)

    def unclaim(self, registration: Registration) -> None:
        """It is committed, or will not be."""
        self._claims.remove(registration)

    def __iter__(self) -> Iterator[Entry]:
        return iter(tuple(self._entries.values()))

    def __len__(self) -> int:
        return len(self._entries)

    def _named(self, name: str) -> Entry | None:
        entry = self._entries.get(name)
        return entry or next((it for it in self._entries.values() if name in it.registration.aliases), None)

    def _owner_of(self, name: str, besides: str) -> str | None:
        """The id of another model that has the name, or has claimed it."""
        entry = self._named(name)
        if entry is not None and entry.id != besides:
            return entry.id
        claims = (it.spec.id for it in self._claims if name in it.names)
        return next((model_id for model_id in claims if model_id != besides), None)
