"""The models themselves: which there are, and bringing them in and out of memory."""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

from antiphon.runtime.api import ModelView, Runtime
from antiphon.vocabulary.errors import Forbidden, InvalidRequest, ModelNotFound
from antiphon.vocabulary.spec import ModelSpec, Registration

_POLICY_FIELDS = ("lazy", "busy_timeout_ms")


class ModelService:
    """Shows and manages models. `management` says whether clients may manage at all."""

    def __init__(self, runtime: Runtime, *, management: bool) -> None:
        self._runtime = runtime
        self._management = management

    @property
    def parallel(self) -> bool:
        """Whether slots and queues are reported."""
        return self._runtime.parallel

    def views(self) -> tuple[ModelView, ...]:
        """All models."""
        return self._runtime.views()

    def view(self, model_id: str) -> ModelView:
        """One model; raises ModelNotFound."""
        return self._runtime.view(model_id)

    def require_management(self) -> None:
        """Raise Forbidden where clients may not manage (rule.management_forbidden)."""
        if not self._management:
            raise Forbidden("management is off; start the server with --ui-management to allow it")

    async def load(self, model_id: str, given: Mapping[str, object], busy_timeout_ms: int | None) -> ModelView:
        """Load a registered model as it is registered.

        `given` holds the configuration fields that the client named: each must say what is registered already. Raises
        InvalidRequest where one differs, or where no such model is registered.
        """
        self.require_management()
        try:
            registered = self._runtime.view(model_id).registration
        except ModelNotFound as unknown:
            raise InvalidRequest(
                f"{unknown.message}, and models cannot be added while it runs", param="id"
            ) from unknown
        if "slots" in given and not self._runtime.parallel:  # rule.default_rejects_slots
            raise InvalidRequest("slots needs a server started with --parallel-jobs", param="slots")
        _require_unchanged(registered, given)
        return await self._runtime.load(model_id, busy_timeout_ms)

    async def unload(self, model_id: str, busy_timeout_ms: int | None) -> ModelView:
        """Unload a model after all earlier work on it; raises ModelNotFound."""
        self.require_management()
        return await self._runtime.unload(model_id, busy_timeout_ms)


def _require_unchanged(registered: Registration, given: Mapping[str, object]) -> None:
    spec = registered.spec
    current: dict[str, object] = {it.name: getattr(spec, it.name) for it in fields(ModelSpec) if it.name != "device"}
    current |= {name: getattr(registered, name) for name in _POLICY_FIELDS}
    for name, value in given.items():
        if name not in current:
            raise InvalidRequest(f"a model has no field {name[:80]!r}", param=name[:80])
        if not _same(name, value, current[name]):
            raise InvalidRequest(f"{name} cannot be changed while the server runs", param=name)


def _same(name: str, given: object, current: object) -> bool:
    if name == "path" and isinstance(given, str) and isinstance(current, str):
        return Path(given).resolve() == Path(current).resolve()
    return given == current and isinstance(given, bool) == isinstance(current, bool)  # to Python, True is 1
