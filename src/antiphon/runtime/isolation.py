"""Which isolation a model gets: what was asked for, as far as its engine can bear it."""

from dataclasses import replace

from antiphon.vocabulary.errors import ConfigError
from antiphon.vocabulary.spec import Capability, Registration
from antiphon.vocabulary.states import Isolation


def isolated(registration: Registration, capability: Capability) -> Registration:
    """The registration with the isolation that the engine needs.

    One that keeps Python's lock gets a process of its own, also where the server's default is a thread. Raises
    ConfigError (param "isolation") where the model's own registration asks for a thread.
    """
    spec = registration.spec
    if not capability.holds_gil or spec.isolation is Isolation.PROCESS:
        return registration
    if registration.isolation_asked:
        raise ConfigError(
            f"model {spec.id!r}: isolation is thread, and {spec.family} needs process: it keeps Python's lock while it"
            " works, and the whole server would stand still",
            param="isolation",
        )
    return replace(registration, spec=replace(spec, isolation=Isolation.PROCESS))
