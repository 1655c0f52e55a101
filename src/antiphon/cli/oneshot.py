"""One request to one model in this very process, for the commands that need no server; it never has slots."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from antiphon.vocabulary.errors import ConfigError
from antiphon.vocabulary.tasks import Task

if TYPE_CHECKING:
    from antiphon.bootstrap import Assembly

ModelOption = Annotated[
    str | None, typer.Option("--model", "-m", help="An installed model's id; the first by default.")
]
ModelsRootOption = Annotated[Path | None, typer.Option("--models-root", help="Where models live.")]
OutputOption = Annotated[Path | None, typer.Option("--output", "-o", help="A file; stdout by default.")]


@asynccontextmanager
async def one_model(
    task: Task, model_id: str | None, models_root: Path | None
) -> AsyncIterator[tuple["Assembly", str]]:
    """Assemble a server of one model, without its HTTP; yields it and the model's id, and frees the model at the end.

    Raises ConfigError where no installed model is for the task, or none has this id.
    """
    from antiphon.bootstrap import assemble, installed_config
    from antiphon.runtime.discovery import AdapterFinder

    installed = installed_config(models_root, {"isolation": "thread"}, parallel_jobs=False)
    fitting = [model for model in installed.models if model.task is task and model_id in (None, model.id)]
    if not fitting:
        known = ", ".join(model.id for model in installed.models if model.task is task) or "none"
        wanted = f"no model {model_id!r}" if model_id else "no model"
        raise ConfigError(f"{wanted} for {task} is installed; installed for it: {known}")
    config = installed.model_copy(update={"models": (fitting[0],)})
    assembly = assemble(config, AdapterFinder(), parallel_jobs=False)
    try:
        yield assembly, fitting[0].id
    finally:
        await assembly.close()
