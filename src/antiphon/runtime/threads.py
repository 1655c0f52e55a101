"""How many threads a call of a model has: what was asked for, as far as its engine offers it, else what was audited."""

from dataclasses import replace

from antiphon.config import usable_cores
from antiphon.runtime.audit import audited_auto_threads
from antiphon.vocabulary.errors import ConfigError
from antiphon.vocabulary.spec import Capability, Registration


def with_threads(registration: Registration, capability: Capability) -> Registration:
    """The registration with `auto` where it names no number and the audit list has that validated.

    Raises ConfigError (param "threads") where it asks for `auto` and the engine does not offer it.
    """
    spec = registration.spec
    if spec.auto_threads and not capability.auto_threads:
        raise ConfigError(
            f"model {spec.id!r}: threads is auto, and {spec.family} cannot choose for each call; name a number",
            param="threads",
        )
    if registration.threads_asked or not capability.auto_threads or not audited_auto_threads(spec):
        return registration
    return replace(registration, spec=replace(spec, threads=usable_cores(), auto_threads=True))
