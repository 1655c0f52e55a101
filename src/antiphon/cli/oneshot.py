"""One request to one model without a server, for the commands that need none; it never has slots."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from antiphon.cli.terminal import write_text
from antiphon.vocabulary.errors import ConfigError
from antiphon.vocabulary.tasks import OptionValue, Task, TaskResult

if TYPE_CHECKING:
    from antiphon.bootstrap import Assembly
    from antiphon.config import ModelConfig

ModelOption = Annotated[
    str | None, typer.Option("--model", "-m", help="An installed model's id; the first by default.")
]
ModelsRootOption = Annotated[Path | None, typer.Option("--models-root", help="Where models live.")]
SoundArgument = Annotated[Path, typer.Argument(help="A sound file of any common kind.")]
OutputOption = Annotated[Path | None, typer.Option("--output", "-o", help="A file; stdout by default.")]


@asynccontextmanager
async def one_model(
    task: Task, model_id: str | None, models_root: Path | None
) -> AsyncIterator[tuple["Assembly", str]]:
    """Do as `models_for` for one model."""
    async with models_for(models_root, (task, model_id)) as (assembly, ids):
        yield assembly, ids[0]


@asynccontextmanager
async def models_for(
    models_root: Path | None, *wanted: tuple[Task, str | None]
) -> AsyncIterator[tuple["Assembly", list[str]]]:
    """Assemble a server of one model for each task, without its HTTP; yields it and the ids, and frees all at the end.

    Raises ConfigError where no installed model is for a task, or none has the id wanted for it.
    """
    from antiphon.bootstrap import assemble, installed_config
    from antiphon.runtime.discovery import AdapterFinder

    installed = installed_config(models_root, {"isolation": "thread"}, parallel_jobs=False)
    chosen = [_chosen(installed.models, task, model_id) for task, model_id in wanted]
    assembly = assemble(installed.model_copy(update={"models": tuple(chosen)}), AdapterFinder(), parallel_jobs=False)
    try:
        yield assembly, [model.id for model in chosen]
    finally:
        await assembly.close()


def _chosen(models: "Sequence[ModelConfig]", task: Task, model_id: str | None) -> "ModelConfig":
    for_task = [model for model in models if model.task is task]
    for model in for_task:
        if model_id in (None, model.id):
            return model
    known = ", ".join(model.id for model in for_task) or "none"
    wanted = f"no model {model_id!r}" if model_id else "no model"
    raise ConfigError(f"{wanted} for {task} is installed; installed for it: {known}")


async def heard(
    task: Task,
    file: Path,
    model: str | None,
    models_root: Path | None,
    *,
    text: str | None = None,
    language: str | None = None,
    options: Mapping[str, OptionValue] | None = None,
) -> TaskResult:
    """What a model finds in a whole recording; an option that is None is left to the model.

    A terminal shows that it is under way. Raises ConfigError, InvalidRequest, LoadFailed, EngineError.
    """
    from rich.console import Console

    from antiphon.service.tasks import Heard, TaskOrder

    given = {name: value for name, value in (options or {}).items() if value is not None}
    console = Console(stderr=True)
    async with one_model(task, model, models_root) as (assembly, model_id):
        order = TaskOrder(model=model_id, text=text, language=language, options=given, busy_timeout_ms=0)
        status = console.status("listening") if console.is_terminal else nullcontext()
        with opened(file) as body, status:
            return await assembly.services.tasks.run(order, Heard(body), lambda done: done.result)


def opened(file: Path) -> BinaryIO:
    """Open a file that the user named; raises ConfigError naming it."""
    try:
        return file.open("rb")
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror}") from error


def write_out(text: str, output: Path | None) -> None:
    """Write the answer to a file, or to stdout."""
    if output is None:
        write_text(text)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{output}: {error.strerror}") from error


def json_line(content: object) -> str:
    """An answer as one line of JSON."""
    return json.dumps(content, ensure_ascii=False, allow_nan=False) + "\n"
