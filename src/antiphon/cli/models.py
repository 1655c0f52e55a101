"""`antiphon models`: list, install, remove and verify model packages; it shows what `antiphon.packages` decides."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from antiphon.cli.ending import ended_in_order
from antiphon.cli.faults import one_line_errors
from antiphon.cli.terminal import echo
from antiphon.packages import (
    Catalogue,
    Installer,
    Package,
    PackageState,
    Phase,
    Progress,
    catalogue_of,
    default_models_root,
)
from antiphon.vocabulary.errors import PackageError

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

app = typer.Typer(help="List, install, remove and verify model packages.", no_args_is_help=True)

ModelsRoot = Annotated[
    Path | None,
    typer.Option(
        "--models-root", help="Where models live. Default: $ANTIPHON_MODELS_ROOT, else the user's data folder."
    ),
]
SomeIds = Annotated[list[str] | None, typer.Argument(metavar="ID...", help="Package ids, as `list` shows them.")]


@app.command("list")
def list_packages(models_root: ModelsRoot = None) -> None:
    """Show every package of the catalogue, and the installed ones that are not in it."""
    with one_line_errors():
        installer = _installer(models_root)
        catalogue = catalogue_of(installer.models_root)
        rows: list[tuple[str, ...]] = [("ID", "TASK", "FAMILY", "DOWNLOAD", "INSTALLED", "STATE", "LICENCE")]
        rows += [_row(package, installer) for package in catalogue.packages]
        known = {package.id for package in catalogue.packages}
        rows += [_foreign_row(id_, installer) for id_ in installer.installed() if id_ not in known]
        echo(f"models root: {installer.models_root}")
        for line in _aligned(rows):
            echo(line)


@app.command()
def install(
    ids: SomeIds = None,
    *,
    default: Annotated[bool, typer.Option("--default", help="Every package marked as default.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Every package of the catalogue.")] = False,
    models_root: ModelsRoot = None,
) -> None:
    """Download, verify and install packages; what is installed and intact is left alone."""
    with one_line_errors(), ended_in_order():
        installer = _installer(models_root)
        packages = _chosen(catalogue_of(installer.models_root), ids or [], default=default, everything=everything)
        with _progress_display(packages) as show:
            folders = [installer.install(package, show) for package in packages]
        for folder in folders:
            echo(f"{folder.name}: installed in {folder}")


@app.command()
def remove(
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="Package ids, as `list` shows them.")],
    models_root: ModelsRoot = None,
) -> None:
    """Remove installed packages."""
    with one_line_errors():
        installer = _installer(models_root)
        for package_id in ids:
            installer.remove(package_id)
            echo(f"{package_id}: removed")


@app.command()
def verify(ids: SomeIds = None, models_root: ModelsRoot = None) -> None:
    """Read every file of the installed packages and compare it with its recorded SHA-256; exits 1 at any fault."""
    with one_line_errors():
        installer = _installer(models_root)
        chosen = ids or installer.installed()
        if not chosen:
            echo("no package is installed")
        faults = {package_id: installer.verify(package_id) for package_id in chosen}
    for package_id, found in faults.items():
        if not found:
            echo(f"{package_id}: intact")
        for fault in found:
            echo(f"{package_id}: {fault}", err=True)
    if any(faults.values()):
        raise typer.Exit(1)


def _installer(models_root: Path | None) -> Installer:
    return Installer(models_root or default_models_root())


def _chosen(catalogue: Catalogue, ids: Sequence[str], *, default: bool, everything: bool) -> tuple[Package, ...]:
    if sum((bool(ids), default, everything)) != 1:
        raise typer.BadParameter("name package ids, or --default, or --all: one of them")
    if everything:
        return catalogue.packages
    if default:
        return catalogue.defaults()
    return tuple(catalogue.find(package_id) for package_id in dict.fromkeys(ids))


def _row(package: Package, installer: Installer) -> tuple[str, ...]:
    sizes = (_megabytes(package.download_bytes), _megabytes(package.size_bytes))
    return (package.id, package.task, package.family, *sizes, _state(package, installer), package.licence)


def _state(package: Package, installer: Installer) -> str:
    state = installer.state(package)
    if state is PackageState.ABSENT:
        return "default" if package.default else "-"
    return state


def _foreign_row(package_id: str, installer: Installer) -> tuple[str, ...]:
    try:
        manifest = installer.manifest(package_id)
    except PackageError:
        return (package_id, "-", "-", "-", "-", "damaged", "-")
    size = _megabytes(sum(file.size_bytes for file in (*manifest.files, *manifest.converted)))
    return (package_id, manifest.task, manifest.family, "-", size, "not in the catalogue", manifest.licence)


def _megabytes(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:.1f} MB"


def _aligned(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


@contextmanager
def _progress_display(packages: Sequence[Package]) -> Iterator[Callable[[Progress], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Lines().show
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Bars(*columns, console=console) as bars:
        tasks = {package.id: bars.add_task(f"{package.id}: waiting", total=None, start=False) for package in packages}
        sizes = {package.id: package.size_bytes for package in packages}
        yield lambda progress: _advance(bars, tasks[progress.package_id], progress, sizes[progress.package_id])


def _advance(bars: "Bars", task: "TaskID", progress: Progress, size_bytes: int) -> None:
    description = f"{progress.package_id}: {progress.phase}"
    if progress.phase is Phase.DONE:
        bars.update(task, description=description, total=size_bytes, completed=size_bytes)
    elif progress.total_bytes:
        bars.start_task(task)
        bars.update(task, description=description, total=progress.total_bytes, completed=progress.done_bytes)
    else:
        bars.update(task, description=description)


class _Lines:
    """Progress where no terminal shows it: one line at the start of each phase."""

    def __init__(self) -> None:
        self._last: tuple[str, Phase] | None = None

    def show(self, progress: Progress) -> None:
        current = (progress.package_id, progress.phase)
        if current == self._last:
            return
        self._last = current
        size = f" {_megabytes(progress.total_bytes)}" if progress.total_bytes else ""
        echo(f"{progress.package_id}: {progress.phase}{size}", err=True)
