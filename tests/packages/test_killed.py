"""An install that is killed, and two at once: nobody ever sees half a package."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from antiphon.packages import Installer, Phase, Progress
from antiphon.packages.publication import publish

DRIVER = Path(__file__).with_name("killed_install.py")
OLD = ["tiny-voice", ["wheel:tiny-one==1.0.0", "wheel:tiny-two==1.0.0"], []]
NEW = ["tiny-voice", ["wheel:tiny-one==2.0.0", "wheel:tiny-two==2.0.0"], []]


def attempts(catalogue: str, shelf: Path, work: Path, *before: Path) -> list[dict[str, object]]:
    """Kill an install at each of its steps."""
    work.mkdir()
    (work / "catalogue.toml").write_text(catalogue)
    command = [sys.executable, str(DRIVER), str(work / "catalogue.toml"), str(shelf), str(work), *map(str, before)]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return [json.loads(line) for line in lines]


def test_a_first_install_killed_at_any_step_shows_all_or_nothing(workshop, as_catalogue, tmp_path: Path) -> None:
    catalogue = as_catalogue(workshop.package("2.0.0"))

    lines = attempts(catalogue, workshop.shelf.folder, tmp_path / "work")

    assert all(line["visible"] in ([], [NEW]) for line in lines)
    assert {len(line["visible"]) for line in lines if line["event"]} == {0, 1}, "both sides of the rename were reached"
    assert {"os.rename", "fcntl.flock", "os.mkdir", "os.rmdir"} <= {line["event"] for line in lines}
    assert all(line["repaired"] == [NEW] and line["left"] == ["tiny-voice"] for line in lines)


def test_a_replacement_killed_at_any_step_shows_the_old_or_the_new(workshop, as_catalogue, tmp_path: Path) -> None:
    Installer(tmp_path / "before", workshop.shelf.copy).install(workshop.package("1.0.0"))
    catalogue = as_catalogue(workshop.package("2.0.0"))

    lines = attempts(catalogue, workshop.shelf.folder, tmp_path / "work", tmp_path / "before")

    seen = [line["visible"] for line in lines if line["event"]]
    assert all(visible in ([OLD], [NEW]) for visible in seen)
    assert [OLD] in seen
    assert [NEW] in seen
    assert all(line["repaired"] == [NEW] and line["left"] == ["tiny-voice"] for line in lines)


class HalfServer(ThreadingHTTPServer):
    """Serves a shelf over HTTP; the first wheel asked for stops half way until `go_on` is set, and then breaks off."""

    daemon_threads = True

    def __init__(self, shelf: Path) -> None:
        super().__init__(("127.0.0.1", 0), HalfRequest)
        self.shelf = shelf
        self.half_sent = threading.Event()
        self.go_on = threading.Event()


class HalfRequest(BaseHTTPRequestHandler):
    """One request; the base class fixes the name of `do_GET`."""

    server: HalfServer

    def do_GET(self) -> None:
        wheel = self.server.shelf / self.path.rpartition("/")[2]
        listing = "".join(f'<a href="/{path.name}">{path.name}</a>' for path in self.server.shelf.iterdir())
        content = wheel.read_bytes() if wheel.suffix == ".whl" else listing.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html" if wheel.suffix != ".whl" else "application/octet-stream")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if wheel.suffix == ".whl" and not self.server.half_sent.is_set():
            self.wfile.write(content[: len(content) // 2])
            self.server.half_sent.set()
            self.server.go_on.wait()
        else:
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the base class's name)
        """Say nothing."""


@contextmanager
def half_server(shelf: Path) -> Iterator[HalfServer]:
    with HalfServer(shelf) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.go_on.set()
            server.shutdown()
            thread.join()


def test_an_install_killed_while_pip_downloads_shows_nothing_and_can_be_repeated(
    workshop, as_catalogue, models_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = workshop.package()
    (tmp_path / "catalogue.toml").write_text(as_catalogue(package))
    program = (
        "import sys; from pathlib import Path; from antiphon.packages.catalogue import parse_catalogue; "
        "from antiphon.packages import Installer; "
        "Installer(Path(sys.argv[2])).install(parse_catalogue(Path(sys.argv[1]).read_text()).packages[0])"
    )
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    installer = Installer(models_root)
    with half_server(workshop.shelf.folder) as server:
        monkeypatch.setenv("PIP_FIND_LINKS", f"http://127.0.0.1:{server.server_port}/")
        command = [sys.executable, "-c", program, str(tmp_path / "catalogue.toml"), str(models_root)]
        with subprocess.Popen(command, env=dict(os.environ)) as doomed:
            assert server.half_sent.wait(60)
            doomed.kill()
        assert installer.installed() == []
        assert [entry.name.partition(".")[2].partition("-")[0] for entry in models_root.glob(".staging-*")] == [
            "staging"
        ]

        installer.install(package)

    assert installer.verify(package.id) == []


def test_a_second_install_waits_for_the_first_and_finds_its_work_done(workshop, models_root: Path) -> None:
    package = workshop.package()
    fetched: list[str] = []
    first_fetches, second_waits = threading.Event(), threading.Event()

    def fetch(source, folder, on_bytes) -> Path:
        fetched.append(source.name)
        first_fetches.set()
        assert second_waits.wait(60)
        return workshop.shelf.copy(source, folder, on_bytes)

    def second_heard(progress: Progress) -> None:
        phases.append(progress.phase)
        if progress.phase is Phase.WAITING:
            second_waits.set()

    phases: list[Phase] = []
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(Installer(models_root, fetch).install, package)
        assert first_fetches.wait(60)
        second = threads.submit(Installer(models_root, fetch).install, package, second_heard)
        assert first.result(60) == second.result(60)

    assert fetched == ["tiny-one", "tiny-two"]
    assert phases == [Phase.WAITING, Phase.CHECKING, Phase.DONE]


def test_an_install_leaves_the_staging_folder_of_a_live_one_alone_and_sweeps_a_dead_ones(
    workshop, models_root: Path
) -> None:
    live, other = workshop.package(package_id="live"), workshop.package(package_id="other")
    (models_root / ".staging-dead.x" / "package").mkdir(parents=True)
    installer = Installer(models_root, workshop.shelf.copy)

    def install_other_meanwhile(progress: Progress) -> None:
        if progress.phase is Phase.PUBLISHING:
            installer.install(other)

    installer.install(live, install_other_meanwhile)

    assert installer.installed() == ["live", "other"]
    assert installer.verify("live") == []
    assert not list(models_root.glob(".staging-*"))


def test_a_file_system_that_cannot_exchange_folders_still_replaces(tmp_path: Path) -> None:
    for name in ("new", "target"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "which").write_text(name)

    publish(tmp_path / "new", tmp_path / "target", tmp_path / "aside", swap=lambda one, other: False)

    assert (tmp_path / "target" / "which").read_text() == "new"
    assert (tmp_path / "aside" / "which").read_text() == "target"
