"""Audio that comes by base64 or by a path."""

import base64
import os
import threading
from pathlib import Path
from typing import ClassVar

import pytest

from antiphon.service.audio_source import from_base64, from_path
from antiphon.vocabulary.errors import Forbidden, InvalidRequest

OPEN_FILES = Path("/proc/self/fd")


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "allowed"
    folder.mkdir()
    (folder / "speech.wav").write_bytes(b"RIFF")
    return folder


def refusal(path, root):
    with pytest.raises(Forbidden) as caught:
        from_path(str(path), [str(root)], "audio")
    assert caught.value.param == "audio"
    return caught.value.message


LONG = base64.b64encode(bytes(range(256)) * 4095).decode()
"""More than is decoded at once."""


@pytest.mark.parametrize("data", [b"RIFF", b"", b"a", b"ab", b"abc", bytes(range(256)) * 4096])
async def test_base64_is_decoded(data):
    assert await from_base64(base64.b64encode(data).decode(), "audio") == data


@pytest.mark.parametrize(
    "text",
    [
        *("%%%", "abc", "QUJD\n!", "\u00e9\u00e9\u00e9\u00e9", "data:audio/wav;base64,QUJD", "QQ==QUJD", "QQ="),
        *(f"{LONG}QQ==QUJD", f"QQ=={LONG}", f"{LONG}Q", f"{LONG}\u00e9QUJ", f"\n{LONG}"),
    ],
    ids=lambda text: f"{text[:12]!r}...{text[-8:]!r}",
)
async def test_what_is_no_base64_is_refused(text):
    with pytest.raises(InvalidRequest) as caught:
        await from_base64(text, "request.audio")
    assert caught.value.param == "request.audio"


class Watched(str):
    """Base64 that tells in which threads it was looked at."""

    __slots__ = ()
    threads: ClassVar[set[int]] = set()

    def __getitem__(self, key):
        self.threads.add(threading.get_ident())
        return super().__getitem__(key)


@pytest.mark.parametrize(("text", "aside"), [("QUJD", False), (LONG, True)])
async def test_much_base64_is_decoded_beside_the_loop(text, aside):
    Watched.threads.clear()
    await from_base64(Watched(text), "audio")
    assert (Watched.threads == {threading.get_ident()}) is not aside
    assert len(Watched.threads) == 1


def test_a_file_under_an_allowed_folder_is_opened(root):
    with from_path(str(root / "speech.wav"), [str(root)], "audio") as body:
        assert body.read() == b"RIFF"


def test_a_link_within_an_allowed_folder_is_followed(root):
    (root / "link.wav").symlink_to(root / "speech.wav")
    with from_path(str(root / "link.wav"), [str(root)], "audio") as body:
        assert body.read() == b"RIFF"


def test_an_allowed_folder_that_is_itself_a_link_is_resolved(root, tmp_path):
    (tmp_path / "alias").symlink_to(root)
    with from_path(str(tmp_path / "alias" / "speech.wav"), [str(tmp_path / "alias")], "audio") as body:
        assert body.read() == b"RIFF"


def test_every_refusal_has_the_same_words_whether_or_not_there_is_such_a_file(root, tmp_path):
    outside = tmp_path / "secret.wav"
    outside.write_bytes(b"RIFF")
    (tmp_path / "allowed-not").mkdir()
    (tmp_path / "allowed-not" / "near.wav").write_bytes(b"RIFF")
    (root / "escape.wav").symlink_to(outside)
    (root / "loop.wav").symlink_to(root / "loop.wav")
    (root / "gone.wav").symlink_to(tmp_path / "nothing")
    os.mkfifo(root / "pipe")
    paths = [
        outside,
        tmp_path / "nothing.wav",
        root / "nothing.wav",
        root / ".." / "secret.wav",
        tmp_path / "allowed-not" / "near.wav",
        root / "escape.wav",
        root / "loop.wav",
        root / "gone.wav",
        root / "pipe",
        root,
        root / "speech.wav" / "below",
        root / ("x" * 300),
        "/dev/zero",
        "a\0b",
        "",
        "speech.wav",
    ]
    assert len({refusal(path, root) for path in paths}) == 1


def test_a_refusal_opens_nothing(root):
    before = len(list(OPEN_FILES.iterdir()))
    refusal(root, root)
    assert len(list(OPEN_FILES.iterdir())) == before


def test_without_allowed_folders_every_path_is_refused(root):
    with pytest.raises(Forbidden):
        from_path(str(root / "speech.wav"), [], "audio")


@pytest.fixture
def swapped(root, tmp_path, monkeypatch):
    """A path below a folder of the root; what is given is done once the path has been resolved, before it is opened."""
    (root / "folder").mkdir()
    (root / "folder" / "speech.wav").write_bytes(b"RIFF")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "speech.wav").write_bytes(b"SECRET")
    path = root / "folder" / "speech.wav"
    resolve = Path.resolve

    def swap_after(swap):
        def resolve_and_swap(self, strict=False):
            found = resolve(self, strict)
            if self == path:
                monkeypatch.undo()
                swap(path)
            return found

        monkeypatch.setattr(Path, "resolve", resolve_and_swap)
        return path

    return swap_after


def lead_its_folder_out(path):
    path.parent.rename(path.parent.with_name("was"))
    path.parent.symlink_to(path.parents[2] / "outside")


def lead_it_out(path):
    path.unlink()
    path.symlink_to(path.parents[2] / "outside" / "speech.wav")


def make_it_a_pipe(path):
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize("swap", [lead_its_folder_out, lead_it_out, make_it_a_pipe, Path.unlink])
def test_what_changes_between_the_look_and_the_opening_leads_nowhere(root, swapped, swap):
    path = swapped(swap)
    before = len(list(OPEN_FILES.iterdir()))
    refusal(path, root)
    assert len(list(OPEN_FILES.iterdir())) == before


def test_an_open_file_of_the_server_is_no_way_around_the_folders(root, tmp_path):
    (tmp_path / "secret.wav").write_bytes(b"SECRET")
    with (tmp_path / "secret.wav").open("rb") as secret:
        (root / "link.wav").symlink_to(f"/proc/self/fd/{secret.fileno()}")
        words = {refusal(path, root) for path in (root / "link.wav", f"/proc/self/fd/{secret.fileno()}", "/dev/fd/99")}
    assert words == {refusal(root / "nothing.wav", root)}


def test_a_device_below_an_allowed_folder_is_not_opened():
    assert refusal("/dev/tty", "/dev") == refusal("/dev/no-such", "/dev")
    assert refusal("/dev/zero", "/dev") == refusal("/dev/no-such", "/dev")


def test_a_file_is_found_below_any_of_several_folders(root, tmp_path):
    with from_path(str(root / "speech.wav"), [str(tmp_path / "none"), str(root)], "audio") as body:
        assert body.read() == b"RIFF"
