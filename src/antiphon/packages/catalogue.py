"""The model packages that exist: where each comes from and what it must be; nothing here touches a network or a model.

The catalogue is `catalogue.toml` beside this module, and a file of that name in the models root. Sources are told apart
by their scheme: `wheel:` and `hub:`.
"""

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import TypeAlias

from antiphon.packages.tables import Table
from antiphon.vocabulary.errors import PackageError, PackageNotFound
from antiphon.vocabulary.tasks import Mode, Task

_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_SHA256 = re.compile(r"[0-9a-f]{64}")
CATALOGUE_NAME = "catalogue.toml"
MAX_CATALOGUE_BYTES = 4 * 1024 * 1024
"""Room for thousands of packages; another file that is there instead is not read to its end."""

_HUB = re.compile(r"hub:(?P<name>[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)@(?P<revision>[0-9a-f]{40})", re.ASCII)
_TAG = re.compile(r"(?P<python>cp\d+)-(?P<abi>cp\d+|abi3|none)-(?P<platform>[a-z0-9_]+)")
_WHEEL = re.compile(r"wheel:(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)==(?P<version>[A-Za-z0-9][A-Za-z0-9.+!]*)")


@dataclass(frozen=True, slots=True)
class WheelTag:
    """What a wheel was built for, as its name says it: `cp311-cp311-manylinux2014_x86_64`."""

    python: str
    abi: str
    platform: str


@dataclass(frozen=True, slots=True)
class WheelSource:
    """A wheel of a package index, pinned to one file by its SHA-256. Units: `size_bytes` is what is downloaded.

    `tag` says which wheel of a version that has several, whatever machine this is: nothing of it is run here.
    """

    name: str
    version: str
    sha256: str
    size_bytes: int
    tag: WheelTag | None = None

    @property
    def uri(self) -> str:
        """The source as the catalogue writes it."""
        return f"wheel:{self.name}=={self.version}"


@dataclass(frozen=True, slots=True)
class HubFile:
    """A file of a repository: its `path` there, and the `name` that it is downloaded under, which is no path."""

    path: str
    name: str
    sha256: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class HubSource:
    """Files of a model hub's repository OWNER/NAME, pinned to one commit and each to its SHA-256."""

    name: str
    revision: str
    files: tuple[HubFile, ...]

    @property
    def uri(self) -> str:
        """The source as the catalogue writes it."""
        return f"hub:{self.name}@{self.revision}"

    @property
    def size_bytes(self) -> int:
        """What is downloaded."""
        return sum(file.size_bytes for file in self.files)

    def name_of(self, file: "PackageFile") -> str:
        """The name that a package's file is downloaded under."""
        return next(it.name for it in self.files if (it.path, it.sha256) == (file.parts[0].member, file.sha256))


Source: TypeAlias = WheelSource | HubSource


@dataclass(frozen=True, slots=True)
class Part:
    """A member of a source, by its exact name: of a wheel, or a whole file of a hub's repository."""

    source: str
    member: str


@dataclass(frozen=True, slots=True)
class PackageFile:
    """One file of an installed package: its parts joined in order. `path` is relative to the package's folder."""

    path: str
    sha256: str
    size_bytes: int
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Package:
    """A model that can be installed under its id, which is also the name of its folder."""

    id: str
    summary: str
    family: str
    task: Task
    mode: Mode
    licence: str
    default: bool
    sources: tuple[Source, ...]
    files: tuple[PackageFile, ...]
    converted: tuple[str, ...] = ()
    """The files that the family's adapter makes of those, by its `convert`; none where it loads them as they are."""

    @property
    def download_bytes(self) -> int:
        """What an install downloads."""
        return sum(source.size_bytes for source in self.sources)

    @property
    def size_bytes(self) -> int:
        """What the installed files occupy."""
        return sum(file.size_bytes for file in self.files)


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All packages, in the order of the file."""

    packages: tuple[Package, ...]

    def find(self, package_id: str) -> Package:
        """The package of this id; raises PackageNotFound naming the ids that exist."""
        for package in self.packages:
            if package.id == package_id:
                return package
        known = ", ".join(package.id for package in self.packages)
        raise PackageNotFound(f"there is no package {package_id!r}; the catalogue has {known}", param="id")

    def defaults(self) -> tuple[Package, ...]:
        """The packages that a server without a configuration serves."""
        return tuple(package for package in self.packages if package.default)


def catalogue_of(models_root: Path) -> Catalogue:
    """The shipped catalogue and after it the packages of the root's own file, if there is one.

    Raises PackageError for a file that cannot be read, and for an id that both have.
    """
    file, shipped = models_root / CATALOGUE_NAME, shipped_catalogue()
    try:
        own = parse_catalogue(_read_text(file), str(file))
    except (FileNotFoundError, NotADirectoryError):
        return shipped
    except (OSError, UnicodeDecodeError) as error:
        raise PackageError(f"{file} cannot be read: {error}") from error
    packages = (*shipped.packages, *own.packages)
    _refuse_doubles(f"{file}: id", [package.id for package in packages])
    return Catalogue(packages)


def _read_text(file: Path) -> str:
    if file.exists() and not file.is_file():  # to open a FIFO would wait for a writer
        raise PackageError(f"{file} is not a regular file")
    with file.open("rb") as stream:
        content = stream.read(MAX_CATALOGUE_BYTES + 1)
    if len(content) > MAX_CATALOGUE_BYTES:
        raise PackageError(f"{file} is larger than {MAX_CATALOGUE_BYTES} bytes")
    return content.decode()


@cache
def shipped_catalogue() -> Catalogue:
    """The catalogue that comes with antiphon."""
    return parse_catalogue(files("antiphon.packages").joinpath(CATALOGUE_NAME).read_text(encoding="utf-8"))


def parse_catalogue(text: str, name: str = "the catalogue") -> Catalogue:
    """Read a catalogue; raises PackageError naming the package and the field of the first fault."""
    try:
        document = Table.of(name, tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise PackageError(f"{name} is not TOML: {error}") from error
    except RecursionError as error:
        raise PackageError(f"{name} is nested too deeply") from error
    packages = tuple(_package(table) for table in document.tables("package"))
    _refuse_doubles(f"{name}: id", [package.id for package in packages])
    return Catalogue(packages)


def checked_id(text: str) -> str:
    """Take an id that is safe as the name of a folder; raises PackageError for any other."""
    if not _ID.fullmatch(text):
        raise PackageError(f"{text!r} is no package id: small letters, digits and single hyphens only")
    return text


def checked_path(text: str) -> str:
    """Take a relative path that stays inside its folder; raises PackageError for any other."""
    path = PurePosixPath(text)
    if path.is_absolute() or ".." in path.parts or str(path) != text or "\\" in text or "\0" in text or text == ".":
        raise PackageError(f"{text!r} is no path inside a package")
    return text


def checked_sha256(table: Table) -> str:
    """Take the field `sha256`; raises PackageError for what is no lower-case hexadecimal SHA-256."""
    text = table.text("sha256")
    if not _SHA256.fullmatch(text):
        raise PackageError(f"{table.name}: sha256 must be 64 hexadecimal digits")
    return text


def task_of(table: Table) -> Task:
    """Take the field `task`."""
    text = table.text("task")
    if text not in set(Task):
        raise PackageError(f"{table.name}: task {text!r} does not exist")
    return Task(text)


def mode_of(table: Table) -> Mode:
    """Take the field `mode`."""
    text = table.text("mode")
    if text not in set(Mode):
        raise PackageError(f"{table.name}: mode {text!r} does not exist")
    return Mode(text)


def _package(table: Table) -> Package:
    table = Table(f"package {table.text('id')}", table.fields)
    package_files = tuple(_file(file) for file in table.tables("file"))
    sources = tuple(_source(source, package_files) for source in table.tables("source"))
    _refuse_doubles(f"{table.name}: source", [source.name for source in sources])
    converted = table.texts("converted") if "converted" in table.fields else ()
    _refuse_doubles(f"{table.name}: path", [*(file.path for file in package_files), *map(checked_path, converted)])
    used = {part.source for file in package_files for part in file.parts}
    declared = {source.name for source in sources}
    if used != declared:
        raise PackageError(f"{table.name}: its parts name {sorted(used)}, its sources are {sorted(declared)}")
    return Package(
        id=checked_id(table.text("id")),
        summary=table.text("summary"),
        family=table.text("family"),
        task=task_of(table),
        mode=mode_of(table),
        licence=table.text("licence"),
        default=table.flag("default"),
        sources=sources,
        files=package_files,
        converted=converted,
    )


def _source(table: Table, package_files: Sequence[PackageFile]) -> Source:
    uri = table.text("uri")
    if match := _WHEEL.fullmatch(uri):
        tag = _tag(table) if "tag" in table.fields else None
        return WheelSource(match["name"], match["version"], checked_sha256(table), table.size("size_bytes"), tag)
    if match := _HUB.fullmatch(uri):
        return HubSource(match["name"], match["revision"], tuple(_hub_files(table.name, match["name"], package_files)))
    raise PackageError(f"{table.name}: uri must be wheel:NAME==VERSION or hub:OWNER/NAME@COMMIT, the whole commit")


def _hub_files(place: str, source: str, package_files: Sequence[PackageFile]) -> Iterator[HubFile]:
    """What is to be downloaded from a repository is said by the files that come from it: they have its sizes."""
    for index, file in enumerate(package_files):
        if any(part.source == source for part in file.parts):
            if len(file.parts) > 1:
                raise PackageError(f"{place}: {file.path} must be one whole file of the hub, not joined of parts")
            yield HubFile(checked_path(file.parts[0].member), f"{index}-{file.sha256}", file.sha256, file.size_bytes)


def _tag(table: Table) -> WheelTag:
    match = _TAG.fullmatch(table.text("tag"))
    if match is None:
        raise PackageError(f"{table.name}: tag must be PYTHON-ABI-PLATFORM, such as cp311-cp311-manylinux2014_x86_64")
    return WheelTag(match["python"], match["abi"], match["platform"])


def _file(table: Table) -> PackageFile:
    parts = tuple(Part(part.text("source"), part.text("member")) for part in table.tables("parts"))
    return PackageFile(checked_path(table.text("path")), checked_sha256(table), table.size("size_bytes"), parts)


def _refuse_doubles(name: str, values: list[str]) -> None:
    for value in values:
        if values.count(value) > 1:
            raise PackageError(f"{name} {value!r} appears twice")
