"""A model's lifecycle as a table; the diagram in docs/lifecycle.md is generated from it."""

from enum import StrEnum

from antiphon.vocabulary.errors import InvariantError
from antiphon.vocabulary.states import ModelState

_UNLOADED, _LOADING, _READY = ModelState.UNLOADED, ModelState.LOADING, ModelState.READY
_RECONFIGURING, _UNLOADING = ModelState.RECONFIGURING, ModelState.UNLOADING


class Step(StrEnum):
    """What happens to a model."""

    LOAD = "load"
    """A load begins, under an admitted request or an exclusive lease."""
    PUBLISH = "publish"
    """The whole pool is built and becomes usable."""
    ADOPT = "adopt"
    """A pool that was built beside the first becomes usable, although the first was unloaded meanwhile."""
    FAIL = "fail"
    """Nothing usable was built; what the model is registered as stays."""
    RETIRE = "retire"
    """The pool is out of use; its memory is yet to be freed."""
    DESTROY = "destroy"
    """The pool's sessions and weights are gone."""
    RECONFIGURE = "reconfigure"
    """An exclusive lease begins to replace what a loaded model is registered as; an unloaded one just loads."""
    PRESERVE = "preserve"
    """The working pool stays: the replacement was refused before anything changed, or needs no other pool."""


TRANSITIONS: dict[tuple[ModelState, Step], ModelState] = {
    (_UNLOADED, Step.LOAD): _LOADING,
    (_LOADING, Step.PUBLISH): _READY,
    (_LOADING, Step.FAIL): _UNLOADED,
    (_UNLOADED, Step.ADOPT): _READY,
    (_READY, Step.RETIRE): _UNLOADING,
    (_UNLOADING, Step.DESTROY): _UNLOADED,
    (_READY, Step.RECONFIGURE): _RECONFIGURING,
    (_RECONFIGURING, Step.PRESERVE): _READY,
    (_RECONFIGURING, Step.PUBLISH): _READY,
    (_RECONFIGURING, Step.FAIL): _UNLOADED,
}


def next_state(state: ModelState, step: Step) -> ModelState:
    """Where a step leads; raises InvariantError for one that the table does not know."""
    try:
        return TRANSITIONS[state, step]
    except KeyError as unknown:
        raise InvariantError(f"a model that is {state} cannot {step}") from unknown


def diagram() -> str:
    """The table as a Mermaid state diagram."""
    edges = [f"    {before} --> {after}: {step}" for (before, step), after in TRANSITIONS.items()]
    return "\n".join(["stateDiagram-v2", "    [*] --> unloaded", *edges])
