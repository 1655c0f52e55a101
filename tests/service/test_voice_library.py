"""The folder whose recordings are voices: which files of it are, and how they are opened."""

import errno
import io
import os
from pathlib import Path

import pytest

from antiphon.service.voice_library import NO_LIBRARY, VoiceLibrary
from antiphon.vocabulary.errors import InvalidRequest


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "voices"
    folder.mkdir()
    for name in ("alice.wav", "bob.FLAC", "c.d.mp3"):
        (folder / name).write_bytes(name.encode())
    return folder


@pytest.fixture
def library(folder):
    return VoiceLibrary(str(folder))


def refusal(library, name):
    with pytest.raises(InvalidRequest) as caught:
        library.open(name, "voice_ref")
    assert caught.value.param == "voice_ref"
    return caught.value.message


def test_each_recording_is_a_voice_by_its_name_without_the_ending(library):
    assert library.names() == ("alice", "bob", "c.d")
    with library.open("bob").body as body:
        assert body.read() == b"bob.FLAC"


def test_what_is_put_into_the_folder_is_a_voice_at_once(library, folder):
    assert "carol" not in library
    (folder / "carol.ogg").write_bytes(b"OggS")
    assert "carol" in library
    assert "carol" in library.names()


def test_a_text_beside_a_recording_is_what_is_said_in_it(library, folder):
    (folder / "alice.txt").write_text(" It is Alice.\n", encoding="utf-8")
    (folder / "c.d.txt").write_text("See D.", encoding="utf-8")
    for name, text in (("alice", "It is Alice."), ("bob", None), ("c.d", "See D.")):
        recording = library.open(name)
        recording.body.close()
        assert recording.text == text


def test_a_text_that_cannot_be_read_leaves_the_voice_without_one(library, folder, monkeypatch):
    class Damaged(io.BytesIO):
        """A file on a disk that is breaking."""

        def read(self, _=-1):
            raise OSError(errno.EIO, "Input/output error")

    opened = os.fdopen

    def fdopen(descriptor, mode):
        if Path(f"/proc/self/fd/{descriptor}").readlink().suffix != ".txt":
            return opened(descriptor, mode)
        os.close(descriptor)
        return Damaged()

    (folder / "alice.txt").write_text("It is Alice.", encoding="utf-8")
    monkeypatch.setattr(os, "fdopen", fdopen)
    recording = library.open("alice")
    with recording.body as body:
        assert (body.read(), recording.text) == (b"alice.wav", None)


def test_of_two_recordings_of_one_name_it_is_always_the_same(library, folder):
    (folder / "alice.mp3").write_bytes(b"another")
    assert library.names() == ("alice", "bob", "c.d")
    with library.open("alice").body as body:
        assert body.read() == b"another"


def test_other_files_are_no_voices(library, folder, tmp_path):
    (folder / "notes.txt").write_text("x")
    (folder / ".hidden.wav").write_bytes(b"x")
    (folder / "folder.wav").mkdir()
    os.mkfifo(folder / "pipe.wav")
    (tmp_path / "secret.wav").write_bytes(b"x")
    (folder / "escape.wav").symlink_to(tmp_path / "secret.wav")
    (folder / "loop.wav").symlink_to(folder / "loop.wav")
    (folder / "zero.wav").symlink_to("/dev/zero")
    assert library.names() == ("alice", "bob", "c.d")
    for name in ("notes", ".hidden", "folder", "pipe", "escape", "loop", "zero"):
        assert name not in library
        assert "it has alice, bob, c.d" in refusal(library, name)


def test_a_text_that_leads_out_of_the_folder_is_not_read(library, folder, tmp_path):
    (tmp_path / "secret.txt").write_text("secret")
    (folder / "alice.txt").symlink_to(tmp_path / "secret.txt")
    recording = library.open("alice")
    recording.body.close()
    assert recording.text is None


def test_a_link_within_the_folder_is_a_voice_of_its_own(library, folder):
    (folder / "al.wav").symlink_to("alice.wav")
    with library.open("al").body as body:
        assert body.read() == b"alice.wav"


@pytest.mark.parametrize("name", ["../secret", "/etc/hostname", "alice.wav", "", "a\0b", ".", "..%2fsecret"])
def test_a_name_is_never_taken_for_a_path(library, tmp_path, name):
    (tmp_path / "secret.wav").write_bytes(b"x")
    assert name not in library
    refusal(library, name)


def test_without_a_folder_there_are_no_voices(tmp_path):
    for library in (NO_LIBRARY, VoiceLibrary(str(tmp_path / "gone"))):
        assert library.names() == ()
        assert "it has none" in refusal(library, "alice")
