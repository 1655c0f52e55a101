"""The reader of a model's small files: what is there in place of a file costs neither time nor memory."""

import os

import pytest

from antiphon.vocabulary.errors import ConfigError
from antiphon_adapters import files
from antiphon_adapters.files import open_regular, read_json, read_text, require_regular


def test_a_fifo_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "config.json")

    for read in (open_regular, read_text, require_regular):
        with pytest.raises(ConfigError, match=r"^config\.json is not a regular file$"):
            read(tmp_path / "config.json")


def test_a_device_without_an_end_is_refused(tmp_path):
    (tmp_path / "config.json").symlink_to("/dev/zero")

    with pytest.raises(ConfigError, match="not a regular file"):
        read_text(tmp_path / "config.json")


def test_a_file_over_the_limit_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MAX_TEXT_BYTES", 2**20)
    with (tmp_path / "config.json").open("wb") as file:
        file.truncate(2**20 + 1)

    with pytest.raises(ConfigError, match=r"^config\.json is larger than 1 MiB$"):
        read_text(tmp_path / "config.json")


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"[" * 200_000, "config.json is nested too deeply"),
        (b'{"a":' * 200_000, "config.json is nested too deeply"),
        (b"\xff", "config.json is not UTF-8 text"),
        (b"{", "config.json is not JSON"),
        (b"[]", "config.json must hold an object"),
        (None, "config.json is missing"),
    ],
)
def test_what_is_no_object_is_refused_by_its_name(tmp_path, content, fault):
    if content is not None:
        (tmp_path / "config.json").write_bytes(content)

    with pytest.raises(ConfigError) as caught:
        read_json(tmp_path / "config.json", dict)
    assert caught.value.message == fault
