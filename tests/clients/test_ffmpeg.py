"""ffmpeg itself, as people pipe it: it reads what is spoken, writes what is transcribed, and sends what is live."""

import json
import subprocess

import httpx
import imageio_ffmpeg
import pytest

import audio_assets
from live_client import live_client
from server_process import HANG_GUARD_S

FFMPEG = imageio_ffmpeg.get_ffmpeg_exe()
FRAMES = 1600
"""What the controlled engine speaks: 0.1 s at 16 kHz."""

PCM = ["-f", "s16le", "-ar", "16000", "-ac", "1"]
JSON = "Content-Type: application/json\r\n"
SLACK = {"wav": 0, "flac": 0, "pcm": 0, "mp3": 2 * 1152, "opus": 960, "aac": 4 * 1024}
"""How many frames more there may be: what an encoder puts around the sound, and cannot say."""


def ffmpeg(*arguments, stdin=b""):
    """What it writes to its standard output; it must find no fault."""
    command = [FFMPEG, "-hide_banner", "-loglevel", "error", *arguments]
    done = subprocess.run(command, input=stdin, capture_output=True, timeout=HANG_GUARD_S, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout


def speech(name, **fields):
    return {"model": "tts-1", "input": "for ffmpeg", "response_format": name, **fields}


@pytest.mark.parametrize("fields", [{}, {"stream_format": "audio"}], ids=["whole", "stream"])
@pytest.mark.parametrize("name", SLACK)
def test_it_reads_what_is_spoken_from_a_pipe(server, name, fields):
    spoken = httpx.post(f"{server.url}/v1/audio/speech", json=speech(name, **fields), timeout=HANG_GUARD_S).content

    frames = len(ffmpeg(*(PCM if name == "pcm" else []), "-i", "pipe:0", *PCM, "pipe:1", stdin=spoken)) // 2

    assert FRAMES <= frames <= FRAMES + SLACK[name]


@pytest.mark.parametrize("name", ["wav", "mp3"])
def test_it_asks_for_a_stream_itself(server, name):
    body = json.dumps(speech(name, stream_format="audio")).encode().hex()
    post = ["-method", "POST", "-headers", JSON, "-post_data", body]
    # ffmpeg 9 calls the end of any chunked body an input/output error where it wants the connection closed.
    asked = [*post, "-multiple_requests", "1", "-i", f"{server.url}/v1/audio/speech"]

    assert len(ffmpeg(*asked, *PCM, "pipe:1")) // 2 >= FRAMES


@pytest.mark.parametrize(
    "form",
    [["wav"], ["wav", "-c:a", "pcm_mulaw"], ["w64"], ["au"], ["caf"], ["mp3"], ["flac"], ["adts"], ["matroska"],
     ["webm", "-c:a", "libopus"], ["ogg", "-c:a", "libvorbis"], ["ogg", "-c:a", "libopus"],
     ["mp4", "-movflags", "frag_keyframe+empty_moov"]],  # what it writes as aiff to a pipe it cannot read itself
    ids=" ".join,
)  # fmt: skip
def test_what_it_writes_to_a_pipe_is_transcribed(server, form):
    tone = audio_assets.wav_bytes(audio_assets.tone(440, 0.5, 48_000), 48_000)
    file = ffmpeg("-i", "pipe:0", "-f", *form, "pipe:1", stdin=tone)

    answer = httpx.post(
        f"{server.url}/v1/audio/transcriptions",
        data={"model": "whisper-1", "response_format": "verbose_json"},
        files={"file": ("pipe", file)},
        timeout=HANG_GUARD_S,
    )

    assert answer.status_code == 200, answer.text
    assert answer.json()["duration"] == pytest.approx(0.5, abs=0.08)


def test_what_it_writes_as_raw_samples_is_heard_live(server):
    tone = audio_assets.wav_bytes(audio_assets.tone(440, 0.5, 48_000), 48_000)

    with live_client(server.url, model="whisper-1", sample_rate=16_000, prompt="from ffmpeg") as client:
        client.say(ffmpeg("-i", "pipe:0", *PCM, "pipe:1", stdin=tone))
        client.end()
        *_, done, _ = client.events()

    assert done["type"] == "transcript.text.done"
    assert done["text"].endswith("|from ffmpeg")
