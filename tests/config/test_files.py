"""CFG-05: a file that is no configuration is refused in one line that names it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from antiphon.config import ServerConfig, load_config

Refusal = Callable[..., str]
GOOD = b'{\n "host": "127.0.0.1",\n "port": 0,\n "models": []\n}'

TOML = """
port = 0
[[models]]
id = "é"
family = "f"
path = "models/a"
task = "asr"
load_options.beams = [1, 2.5]
"""


@pytest.fixture
def refused_file(home: Path, refusal: Refusal) -> Callable[[str, bytes], str]:
    def refused_file(name: str, content: bytes) -> str:
        (home / name).write_bytes(content)
        return refusal(load_config, home / name, parallel_jobs=False)

    return refused_file


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("a.json", b"\xef\xbb\xbf" + GOOD, "a.json: starts with a byte order mark; save it as UTF-8 without one"),
        ("a.toml", b"\xef\xbb\xbfport = 0", "a.toml: starts with a byte order mark; save it as UTF-8 without one"),
        ("a.json", "é".encode("latin-1"), "a.json: is not UTF-8 text (byte 0)"),
        ("a.toml", b"\xff\xfep\0o\0", "a.toml: is not UTF-8 text (byte 0)"),
        ("a.json", b"", "a.json: is empty; wanted a configuration"),
        ("a.json", b" \n\t", "a.json: is empty; wanted a configuration"),
        ("a.toml", b"\n", "a.toml: is empty; wanted a configuration"),
        ("a.json", b"[]", "a.json: wanted an object at the top; found a list"),
        ("a.json", b'"text"', "a.json: wanted an object at the top; found 'text'"),
        ("a.json", b"null", "a.json: wanted an object at the top; found null"),
        (
            "a.json",
            b'{"port": 1,}',
            "a.json: is not valid JSON: Expecting property name enclosed in double quotes at line 1, column 12",
        ),
        ("a.json", b'{"port": 1} x', "a.json: is not valid JSON: Extra data at line 1, column 13"),
        (
            "a.json",
            b'{"port": 1, "host": "x", "port": 2}',
            "a.json: is not valid JSON: the key 'port' appears more than once in an object",
        ),
        (
            "a.json",
            b'{"models": [{"id": "a", "id": "b"}]}',
            "a.json: is not valid JSON: the key 'id' appears more than once in an object",
        ),
        (
            "a.toml",
            b"port = 1\nport = 2\n",
            "a.toml: is not valid TOML: Cannot overwrite a value (at line 2, column 9): 'port'",
        ),
        (
            "a.toml",
            b"[port",
            "a.toml: is not valid TOML: Expected ']' at the end of a table declaration (at end of document)",
        ),
        ("a.yaml", b"port: 1", "a.yaml: wanted a file name that ends in .json or .toml"),
    ],
)
def test_a_file_that_is_no_configuration_is_refused(
    refused_file: Callable[[str, bytes], str], name: str, content: bytes, line: str
) -> None:
    assert refused_file(name, content) == line


@pytest.mark.parametrize("name", ["a.json", "a.toml"])
def test_a_deeply_nested_file_is_refused(refused_file: Callable[[str, bytes], str], name: str) -> None:
    opening = b'{"port":' if name == "a.json" else b"port = "
    assert refused_file(name, opening + b"[" * 100_000).startswith(f"{name}: is nested too deeply")


def test_an_integer_of_too_many_digits_is_refused(refused_file: Callable[[str, bytes], str]) -> None:
    assert refused_file("a.json", b'{"port": ' + b"9" * 5000 + b"}").startswith("a.json: is not valid JSON: Exceeds")


def test_an_integer_too_long_to_be_shown_is_measured_instead(refused_file: Callable[[str, bytes], str]) -> None:
    line = refused_file("a.toml", b"port = 0x1" + b"0" * 5000)
    assert line == "a.toml: port: wanted an integer from 0 to 65535 (0 = any free port); found an integer of 20001 bits"


def test_a_file_over_four_mebibytes_is_refused(refused_file: Callable[[str, bytes], str]) -> None:
    line = refused_file("a.json", b" " * (4 * 1024 * 1024 + 1))
    assert line == "a.json: wanted a configuration of at most 4194304 bytes"


def test_a_device_that_never_ends_is_not_read_to_its_end(home: Path, refusal: Refusal) -> None:
    (home / "endless.json").symlink_to("/dev/zero")
    assert "at most 4194304 bytes" in refusal(load_config, home / "endless.json", parallel_jobs=False)


def test_a_missing_file_is_refused(home: Path, refusal: Refusal) -> None:
    line = refusal(load_config, home / "none.json", parallel_jobs=False)
    assert line == "none.json: cannot be read: No such file or directory"


def test_a_folder_in_the_place_of_the_file_is_refused(home: Path, refusal: Refusal) -> None:
    (home / "folder.json").mkdir()
    line = refusal(load_config, home / "folder.json", parallel_jobs=False)
    assert line == "folder.json: cannot be read: Is a directory"


def test_a_name_that_no_file_can_have_is_refused(refusal: Refusal) -> None:
    line = refusal(load_config, Path("a\0\n.json"), parallel_jobs=False)
    assert line == r"'a\x00\n.json': cannot be read: embedded null byte"


def test_json_and_toml_make_the_same_configuration(home: Path, load: Callable[..., ServerConfig]) -> None:
    data = {
        "port": 0,
        "models": [{"id": "é", "family": "f", "path": "models/a", "task": "asr", "load_options": {"beams": [1, 2.5]}}],
    }
    (home / "server.toml").write_text(TOML, encoding="utf-8")
    assert load_config(home / "server.toml", parallel_jobs=False) == load(data)


def test_the_ending_may_be_in_capitals(home: Path) -> None:
    (home / "SERVER.JSON").write_text(json.dumps({"port": 0}))
    assert load_config(home / "SERVER.JSON", parallel_jobs=False).port == 0


@pytest.mark.parametrize("line", [b'"SECRET', b"  SECRET", b'api_keys = ["SECRET"] x', b"'SECRET==' = ["])
def test_a_broken_line_is_never_repeated_with_its_value(refused_file: Callable[[str, bytes], str], line: bytes) -> None:
    assert "SECRET" not in refused_file("a.toml", b"port = 1\napi_keys = [\n" + line + b"\n")
    assert "SECRET" not in refused_file("a.toml", b"port = 1\n" + line + b"\n")
