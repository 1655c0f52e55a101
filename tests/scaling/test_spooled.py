"""What the front keeps of a body, and the model that it finds in it."""

import json

import pytest
from starlette.requests import Request

from antiphon.scaling.spooled import MAX_JSON_LOOK_BYTES, MAX_NAME_BYTES, Spool, model_id_in
from antiphon.vocabulary.errors import TooLarge

LIMIT = 64 * 1024 * 1024


def request_of(body, content_type, piece=1000):
    pieces = [body[at : at + piece] for at in range(0, len(body), piece)] or [b""]
    messages = [
        {"type": "http.request", "body": it, "more_body": number < len(pieces)} for number, it in enumerate(pieces, 1)
    ]

    async def receive():
        return messages.pop(0)

    headers = [(b"content-type", content_type.encode())]
    return Request({"type": "http", "method": "POST", "path": "/", "query_string": b"", "headers": headers}, receive)


def form_of(*fields):
    parts = [b'--b\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n' % field for field in fields]
    return b"".join(parts) + b"--b--\r\n"


async def found(body, content_type, piece=1000):
    with Spool() as spool:
        await spool.receive(request_of(body, content_type, piece), LIMIT)
        assert b"".join([block async for block in spool.blocks()]) == body
        return spool.model


@pytest.mark.parametrize("content_type", ["application/json", "application/x-www-form-urlencoded", ""])
async def test_json_names_its_model_whatever_it_says_that_it_is(content_type):
    body = json.dumps({"input": "x", "model": "tts"}).encode()
    assert await found(body, content_type) == "tts"


@pytest.mark.parametrize("body", [b"", b"{", b"[1]", b'{"model": 1}', b"\xff", b"[" * 100_000])
async def test_json_that_is_none_names_no_model(body):
    assert await found(body, "application/json") == ""


async def test_json_that_is_very_long_is_not_looked_into():
    body = json.dumps({"model": "tts", "audio": "A" * MAX_JSON_LOOK_BYTES}).encode()
    assert await found(body, "application/json", 1 << 20) == ""


@pytest.mark.parametrize("piece", [1, 7, 1_000_000])
async def test_a_form_names_its_model_behind_a_file(piece):
    body = form_of((b"file", b"RIFF\r\n--a" * 50), (b"model", b"asr"), (b"language", b"en"))
    assert await found(body, "multipart/form-data; boundary=b", piece) == "asr"


async def test_of_two_models_in_a_form_the_first_counts():
    body = form_of((b"model", b"one"), (b"model", b"two"))
    assert await found(body, "multipart/form-data; boundary=b") == "one"


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (form_of((b"file", b"x")), "multipart/form-data; boundary=b"),
        (form_of((b"model", b"a" * (MAX_NAME_BYTES + 1))), "multipart/form-data; boundary=b"),
        (b"no form", "multipart/form-data; boundary=b"),
        (form_of((b"model", b"asr")), "multipart/form-data"),
        (form_of((b"model", b"asr")), "multipart/form-data" + "; a=b" * 100),
    ],
    ids=["no model", "a long name", "no form", "no boundary", "many parameters"],
)
async def test_a_form_that_cannot_be_read_names_no_model(body, content_type):
    assert await found(body, content_type) == ""


async def test_a_body_over_the_limit_is_refused():
    with Spool() as spool, pytest.raises(TooLarge):
        await spool.receive(request_of(b"x" * 2000, ""), 1999)


def test_a_change_names_the_model_that_it_is_about():
    assert model_id_in(b'{"id": "tts", "path": "x"}') == "tts"
    assert model_id_in(b"no json") == ""
