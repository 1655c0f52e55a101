"""Ray is an extra: nothing imports it unless it is used, and who has it not is told."""

import json
import subprocess
import sys

from server_process import antiphon

WITHOUT = "import sys; sys.modules['ray'] = None; from antiphon.cli import main; main()"
IMPORTED = (
    "import sys, antiphon.cli, antiphon.cli.scale, antiphon.bootstrap;"
    "print([name for name in ('ray', 'aiohttp') if name in sys.modules])"
)


def python(program, *arguments):
    return subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False)


def test_a_server_that_is_not_scaled_out_imports_neither_ray_nor_its_client():
    assert python(IMPORTED).stdout == "[]\n"


def test_the_command_without_the_extra_is_one_line():
    ended = python(WITHOUT, "scale")
    assert (ended.returncode, ended.stderr) == (1, "antiphon: scale-out needs Ray Serve: install antiphon[ray]\n")


def test_an_address_at_which_nobody_listens_is_one_line(tmp_path):
    (tmp_path / "tts").mkdir()
    model = {"id": "tts", "family": "controlled", "path": "tts", "task": "tts"}
    (tmp_path / "server.json").write_text(json.dumps({"models": [model]}))
    ended = antiphon("scale", "--config", "server.json", "--ray-address", "127.0.0.1:1", cwd=tmp_path)
    assert ended.returncode == 1
    assert ended.stderr.startswith("antiphon: no Ray cluster can be reached at 127.0.0.1:1: ")
    assert ended.stderr.count("\n") == 1
