"""Two voices at the same time, in mixed formats: all that is spoken is what is spoken alone (QUE-11).

espeak-ng is one object for all voices of a process: phonemes must not mix there.
"""

from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from engine_server import SPEECH
from installed_models import installed_model
from server_process import HANG_GUARD_S, running_server

pytestmark = pytest.mark.engine

VOICES = ("first", "second")
CLIENTS_EACH = 8
WAYS = (
    {"response_format": "wav"},
    {"response_format": "pcm"},
    {"response_format": "pcm", "stream_format": "audio"},
    {"response_format": "mp3"},
    {"response_format": "flac"},
    {"response_format": "opus"},
)
ASKED = [
    (voice, f"The {voice} voice says {thing}.", WAYS[number % len(WAYS)])
    for voice in VOICES
    for number, thing in enumerate(("thorough", "a yacht", "1835", "rough", "a queue", "tough", "a knight", "42%"))
]


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_two_voices_with_eight_clients_each_say_what_they_say_alone(tmp_path, isolation):
    models = [installed_model("piper-en-joe", name, slots=2, lazy=True) for name in VOICES]
    config = {"models": models, "isolation": isolation}
    with (
        running_server(tmp_path, config, "--parallel-jobs") as process,
        httpx.Client(base_url=process.url, timeout=2 * HANG_GUARD_S) as client,
        ThreadPoolExecutor(len(VOICES) * CLIENTS_EACH) as clients,
    ):

        def spoken(asked):
            name, text, way = asked
            answer = client.post(SPEECH, json={"model": name, "input": text, **way})
            assert answer.status_code == 200, answer.text
            return answer.content

        alone = [spoken(asked) for asked in ASKED]
        assert list(clients.map(spoken, ASKED)) == alone
