"""SEC-01: what names a file on the server opens nothing outside of the allowed folders, nor tells what is there."""

import os

import pytest

from controlled_server import CLIP, TASK_RUN, TRANSCRIPTIONS
from refusals import assert_refused, assert_unharmed

SAID = "there is no file that may be read at this path"
ROUTES = {
    "transcription": (TRANSCRIPTIONS, "audio.path", lambda audio: {"audio": audio}),
    "task": (TASK_RUN, "request.audio.path", lambda audio: {"request": {"audio": audio}}),
    "stream": ("/v1/tasks/stream", "request.audio.path", lambda audio: {"request": {"audio": audio}}),
    "batch": (
        "/v1/tasks/batch",
        "requests.1.audio.path",
        lambda audio: {"requests": [{"audio": CLIP_PATH}, {"audio": audio}]},
    ),
}
"""Each route that takes audio by its path: how it calls the field, and what its body is besides the model."""

CLIP_PATH = {"path": "clips/clip.wav"}


@pytest.fixture(scope="module")
def clips(parallel_server):
    """The one allowed folder: a clip, a link that leads out, a pipe that nobody writes to, and a folder."""
    folder = parallel_server.process.folder / "clips"
    (folder / "clip.wav").write_bytes(CLIP)
    (folder / "link.wav").symlink_to("/etc/hostname")
    (folder / "folder").mkdir()
    (folder / "way_out").symlink_to("/")
    os.mkfifo(folder / "pipe.wav")
    CLIP_PATH["path"] = str(folder / "clip.wav")
    return folder


OUTSIDE = ["/etc/hostname", "/etc/no-such", "/dev/zero", "/dev/stdin", "/proc/self/environ", "/", "", ".", "~/.bashrc"]
INSIDE = ["../server.json", "../no-such.json", "link.wav", "pipe.wav", "no-such.wav", "folder", "way_out/etc/hostname"]


def asked(server, route, path):
    url, _, body = ROUTES[route]
    return server.client.post(url, json={"model": "asr", **body({"path": path})})


@pytest.mark.parametrize("route", ROUTES)
def test_a_file_below_an_allowed_folder_is_read(parallel_server, clips, route):
    assert asked(parallel_server, route, str(clips / "clip.wav")).status_code == 200


@pytest.mark.parametrize("route", ROUTES)
def test_all_else_is_refused_in_the_same_words_whether_or_not_there_is_a_file(parallel_server, clips, route):
    param = ROUTES[route][1]

    for path in [*OUTSIDE, *(f"{clips}/{name}" for name in INSIDE), "file:///etc/hostname"]:
        refusal = assert_refused(asked(parallel_server, route, path), 403, param=param)
        assert refusal.message == f"{param}: {SAID}"

    assert_unharmed(parallel_server.process, parallel_server.client, parallel_server.transcribe)


@pytest.mark.parametrize("route", ROUTES)
def test_a_path_with_a_nul_is_refused(parallel_server, clips, route):
    assert_refused(asked(parallel_server, route, f"{clips}/clip.wav\0"), 400, param=ROUTES[route][1])


@pytest.mark.parametrize("route", ROUTES)
def test_nothing_is_read_where_no_folder_is_allowed(serial_server, clips, route):
    assert asked(serial_server, route, str(clips / "clip.wav")).status_code == 403


@pytest.mark.parametrize("fields", [{}, {"stream_format": "sse"}], ids=["whole", "stream"])
@pytest.mark.parametrize("path", ["/etc/hostname", "../../../../etc/passwd", "file:///etc/hostname", "clips/clip.wav"])
def test_a_voice_is_a_name_and_no_path(server, path, fields):
    there, not_there = (
        assert_refused(server.speak("a voice", voice=voice, **fields), 400, param="voice").message
        for voice in (path, path + "-no-such")
    )

    assert there.replace(path, "PATH") == not_there.replace(path + "-no-such", "PATH")
