"""Where the runtime tells what happened; whoever listens must neither block nor raise."""

from typing import Protocol

from antiphon.vocabulary.states import ModelState


class Observer(Protocol):
    """Hears of every change of a model's state and of every fault that the runtime absorbed."""

    def transitioned(self, model_id: str, before: ModelState, after: ModelState) -> None: ...
    def failed(self, model_id: str, what: str, error: BaseException) -> None: ...
