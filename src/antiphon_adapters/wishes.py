"""What a registration may ask of an engine that does one task, on the CPU: refused in one way. It reads no file."""

from antiphon.vocabulary.errors import ConfigError
from antiphon.vocabulary.spec import ModelSpec
from antiphon.vocabulary.tasks import Task


def require_task_on_cpu(spec: ModelSpec, task: Task, because: str) -> None:
    """Raise ConfigError for another task, `because` saying why, or another device."""
    if spec.task is not task:
        raise ConfigError(f"model '{spec.id}': task must be {task}, {because}")
    if spec.device != "cpu":
        raise ConfigError(f"model '{spec.id}': device must be cpu")


def require_no_options(spec: ModelSpec, engine: str) -> None:
    """Raise ConfigError for any load or session option, of an engine that takes none."""
    for field, given in (("load_options", spec.load_options), ("session_options", spec.session_options)):
        if given:
            raise ConfigError(f"model '{spec.id}': unknown {field} {', '.join(sorted(given))}; {engine} takes none")
