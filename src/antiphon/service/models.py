"""The models themselves: which there are, how they stand, and bringing them in and out of memory."""

from collections.abc import Callable, Mapping, Sequence

from antiphon.runtime.api import Foresight, MemoryChange, ModelStatus, ModelView, Runtime, Strategy, Unloaded
from antiphon.vocabulary.errors import Forbidden, ModelNotFound
from antiphon.vocabulary.spec import DamagedModel, Registration


class ModelService:
    """Shows and manages models.

    `damaged` were left out at the start. `management` says whether clients may manage at all; `parse` validates the
    fields of a registration.
    """

    def __init__(
        self,
        runtime: Runtime,
        parse: Callable[[Mapping[str, object]], Registration],
        *,
        management: bool,
        damaged: Sequence[DamagedModel] = (),
    ) -> None:
        self._runtime = runtime
        self._parse = parse
        self._management = management
        self._damaged = damaged

    def views(self) -> tuple[ModelView, ...]:
        """All models."""
        return self._runtime.views()

    def view(self, model_id: str) -> ModelView:
        """One model; raises ModelNotFound."""
        return self._runtime.view(model_id)

    def status(self) -> tuple[ModelStatus, ...]:
        """All models with their leases and queues, at one moment."""
        return self._runtime.status()

    def damaged(self) -> Sequence[DamagedModel]:
        """The installed models that the server left out at its start, but for those that were registered since."""
        registered = {view.registration.spec.id for view in self._runtime.views()}
        return [it for it in self._damaged if it.id not in registered]

    def awaited(self) -> tuple[str, ...]:
        """The models that the server is to load at its start and has not loaded yet; raises ShuttingDown at its end."""
        return self._runtime.awaited()

    def require_management(self) -> None:
        """Raise Forbidden where clients may not manage (rule.management_forbidden)."""
        if not self._management:
            raise Forbidden("management is off; start the server with --ui-management to allow it")

    async def load(
        self,
        model_id: str,
        fields: Mapping[str, object],
        busy_timeout_ms: int | None,
        strategy: Strategy = Strategy.REPLACE,
    ) -> ModelView:
        """Register a model, or replace its whole registration, and load it.

        Without any field but the id, a registered model is loaded as it is. Raises ModelNotFound if there is no such
        model to load, and InvalidRequest for fields that are no registration.
        """
        registration = self._registration(model_id, fields)
        if registration is None:
            return await self._runtime.load(model_id, busy_timeout_ms)
        return await self._runtime.register(registration, busy_timeout_ms, strategy)

    async def foresee_load(
        self,
        model_id: str,
        fields: Mapping[str, object],
        busy_timeout_ms: int | None,
        strategy: Strategy = Strategy.REPLACE,
    ) -> Foresight:
        """Report what `load` would do."""
        registration = self._registration(model_id, fields)
        return await self._runtime.foresee_load(model_id, registration, strategy, busy_timeout_ms)

    def foresee_nothing(self) -> Foresight:
        """Tell what a call would do that touches no model."""
        return self._runtime.foresee_unload_many(())[0]

    async def unload(
        self, model_id: str, busy_timeout_ms: int | None, *, force: bool = False
    ) -> tuple[ModelView, MemoryChange | None]:
        """Unload a model after all earlier work on it, and report its memory; `force` stops that work instead.

        Raises ModelNotFound.
        """
        return await self._runtime.unload(model_id, busy_timeout_ms, force=force)

    def foresee_unload(self, model_id: str, busy_timeout_ms: int | None) -> Foresight:
        """Report what `unload` would do; raises ModelNotFound."""
        return self._runtime.foresee_unload(model_id, busy_timeout_ms)

    async def unload_many(self, model_ids: Sequence[str] | None, *, force: bool = False) -> Unloaded:
        """Unload several models, all when None; unknown ids are reported and fail nothing."""
        return await self._runtime.unload_many(model_ids, force=force)

    def foresee_unload_many(self, model_ids: Sequence[str] | None) -> tuple[Foresight, Unloaded]:
        """Report what `unload_many` would do."""
        return self._runtime.foresee_unload_many(model_ids)

    def _registration(self, model_id: str, fields: Mapping[str, object]) -> Registration | None:
        """The registration that the fields make; None where there are none, and the model is known."""
        if fields:
            return self._parse({"id": model_id, **fields})
        try:
            self._runtime.view(model_id)
        except ModelNotFound as unknown:
            hint = "to register it, send its family, path and task"
            raise ModelNotFound(f"{unknown.message}; {hint}", param="id") from unknown
        return None
