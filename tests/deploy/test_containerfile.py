"""What can be said of the image without building it: its files are here, its commands are understood here."""

import json
import re
import subprocess
import sys
import tomllib

import pytest

from antiphon.packages import shipped_catalogue
from deploy_files import DEPLOY, ROOT, instructions, parsed
from server_process import running_server

FILE = instructions((DEPLOY / "Containerfile").read_text(encoding="utf-8"))


def rests(name):
    return [it.rest for it in FILE if it.name == name]


def the_words(name):
    (found,) = [it for it in FILE if it.name == name]
    return found.words()


def test_what_it_copies_is_here_or_in_the_stage_before():
    copied = [it for it in FILE if it.name == "COPY" and "--from=" not in it.rest]
    sources = [source for it in copied for source in it.words()[:-1]]

    assert "src" in sources
    assert [source for source in sources if not (ROOT / source).exists()] == []
    assert re.search(r"--from=(\w+)", next(rest for rest in rests("COPY") if "--from" in rest))[1] == "build"
    assert rests("FROM")[0].endswith(" AS build")


def test_it_runs_a_command_that_antiphon_understands_as_somebody_else_than_root():
    program, *words = [*the_words("ENTRYPOINT"), *the_words("CMD")]
    told = parsed(words)

    assert (program, words[0]) == ("antiphon", "serve")
    assert rests("EXPOSE") == [str(told["port"])]
    assert rests("USER") == ["antiphon"]
    assert [rest for rest in rests("RUN") if " antiphon" in rest and "useradd" in rest]


def test_its_extras_are_those_of_the_default_models():
    wanted = {package.family.replace("_", "-") for package in shipped_catalogue().defaults()}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    extras = set(re.findall(r"--extra ([\w-]+)", rests("ARG")[0]))
    assert extras == wanted
    assert extras <= set(project["optional-dependencies"])


def test_it_installs_the_uv_that_everything_else_is_made_with():
    pinned = re.search(r"^UV_VERSION := (\S+)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)[1]

    assert [rest for rest in rests("RUN") if rest.endswith(f"uv=={pinned}")]


def test_the_models_live_where_the_volume_is():
    assert rests("VOLUME") == ["/models"]
    assert any("ANTIPHON_MODELS_ROOT=/models" in rest.split() for rest in rests("ENV"))


@pytest.fixture
def health_check():
    """Runs the program of the health check against a port, and returns its exit code."""
    program, *arguments = json.loads(rests("HEALTHCHECK")[0].partition("CMD ")[2])
    assert program == "python"

    def check(url):
        code = [argument.replace("http://127.0.0.1:8080", url) for argument in arguments]
        return subprocess.run([sys.executable, *code], capture_output=True, check=False).returncode

    return check


def test_the_health_check_passes_without_a_key_while_the_server_answers_and_fails_after(tmp_path, health_check):
    with running_server(tmp_path, {"api_keys": ["secret"]}) as server:
        assert health_check(server.url) == 0
    assert health_check(server.url) == 1
