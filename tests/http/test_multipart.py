"""Forms are received whole or refused: no cut file, no name as a path, no file that outlives its form."""

import asyncio
import gc
import os
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.requests import ClientDisconnect, Request

from antiphon.http.multipart import MAX_PARAMETERS, SPILL_BYTES, Form, FormLimits, read_form
from antiphon.vocabulary.errors import AntiphonError, InvalidRequest, TooLarge, UnsupportedMediaType

BOUNDARY = "edge"
TYPE = f"multipart/form-data; boundary={BOUNDARY}"
LIMITS = FormLimits(body_bytes=8 * 1024 * 1024, files=100)
WAVE = b"RIFF\x00\r\n--edg\r\nWAVE"
"""Bytes that hold a line end and most of a boundary."""


def part(disposition: str, content: bytes, *headers: str) -> bytes:
    lines = [f"--{BOUNDARY}", f"Content-Disposition: {disposition}", *headers, "", ""]
    return "\r\n".join(lines).encode() + content + b"\r\n"


def text(name: str, content: str | bytes) -> bytes:
    return part(f'form-data; name="{name}"', content if isinstance(content, bytes) else content.encode())


def file(content: bytes = WAVE, disposition: str = 'filename="a.wav"', *headers: str) -> bytes:
    return part(f'form-data; name="file"; {disposition}'.rstrip("; "), content, *headers)


def whole(*parts: bytes) -> bytes:
    return b"".join(parts) + f"--{BOUNDARY}--\r\n".encode()


def request_of(*pieces: bytes | None, content_type: str | None = TYPE) -> Request:
    """A request whose body arrives in these pieces; None is a client that leaves."""
    last = len(pieces) - 1
    messages = iter(
        {"type": "http.disconnect"}
        if piece is None
        else {"type": "http.request", "body": piece, "more_body": at < last}
        for at, piece in enumerate(pieces)
    )

    async def receive():
        return next(messages)

    headers = [(b"content-type", content_type.encode("latin-1"))] if content_type is not None else []
    return Request({"type": "http", "method": "POST", "path": "/", "headers": headers}, receive)


def receive(*pieces: bytes | None, limits: FormLimits = LIMITS, content_type: str | None = TYPE) -> Form:
    return asyncio.run(read_form(request_of(*pieces, content_type=content_type), limits))


def refusal(body: bytes, kind: type[AntiphonError] = InvalidRequest, **options) -> AntiphonError:
    with pytest.raises(kind) as caught:
        receive(body, **options)
    return caught.value


def open_files() -> int:
    gc.collect()
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 (names alone)


def test_a_form_gives_its_texts_and_its_file():
    body = whole(text("model", "whisper"), file(WAVE, 'filename="a.wav"', "Content-Type: audio/wav; codecs=1"))
    with receive(body) as form:
        (upload,) = form.files("file")
        assert form.one("model") == "whisper"
        assert (upload.filename, upload.content_type, upload.size_bytes) == ("a.wav", "audio/wav; codecs=1", len(WAVE))
        assert upload.body.read() == WAVE


def test_a_form_may_arrive_byte_by_byte():
    body = b"\r\n" + whole(text("model", "whisper"), file()) + b"epilogue"
    with receive(*(body[at : at + 1] for at in range(len(body)))) as form:
        assert form.one("model") == "whisper"
        assert form.files("file")[0].body.read() == WAVE


@pytest.mark.parametrize(
    ("disposition", "headers", "filename"),
    [
        ('filename="blob"', [], "blob"),
        ('filename="upload"', ["Content-Type: application/octet-stream"], "upload"),
        ('filename=""', ["Content-Type: application/octet-stream"], None),
        ("", ["Content-Type: audio/wav"], None),
        ("", ["Content-Type: text/plain"], None),
        ("", [], None),
    ],
)
def test_a_file_field_is_a_file_whatever_its_headers_say(disposition, headers, filename):
    with receive(whole(file(WAVE, disposition, *headers))) as form:
        (upload,) = form.files("file")
        assert upload.filename == filename
        assert upload.body.read() == WAVE
        assert form.values("file") == []


def test_a_text_in_a_file_field_is_a_file_too():
    with receive(whole(text("file", "hello"))) as form:
        assert form.files("file")[0].body.read() == b"hello"


@pytest.mark.parametrize(
    ("disposition", "filename"),
    [
        ('filename="../../../../tmp/pwn.wav"', "../../../../tmp/pwn.wav"),
        ('filename="/tmp/pwn.wav"', "/tmp/pwn.wav"),
        ('filename="..\\..\\pwn.wav"', "..\\..\\pwn.wav"),
        ('filename="a\0b.wav"', "a\0b.wav"),
        ('filename="' + "x" * 5000 + '.wav"', "x" * 5000 + ".wav"),
        ('filename="名前 😀.wav"', "名前 😀.wav"),
        ('filename="CON"', "CON"),
        ('filename="."', "."),
        ('filename="-i.wav"', "-i.wav"),
        ('filename="a;b|c$(id).wav"', "a;b|c$(id).wav"),
        ('filename="say \\"hi\\".wav"', 'say "hi".wav'),
        ("filename=plain.wav", "plain.wav"),
        ("filename*=UTF-8''%E5%90%8D.wav", "名.wav"),
        ("filename=plain.wav; filename*=UTF-8''other.wav", "plain.wav"),
        ("filename*=no-such-charset''a.wav", "a.wav"),
        ("filename*=broken", "broken"),
        ("filename*=idna''a.wav", None),
        ("filename*=undefined''a.wav", None),
        ("filename*=a\0b''a.wav", None),
        ("filename*" + "9" * 5000 + "=a.wav", None),
    ],
)
def test_a_filename_is_text_and_makes_no_file(disposition, filename, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with receive(whole(file(bytes(SPILL_BYTES + 1), disposition))) as form:
        assert form.files("file")[0].filename == filename
        assert list(tmp_path.iterdir()) == []
    assert not Path("/tmp/pwn.wav").exists()


def test_a_filename_that_is_no_utf8_is_taken_with_replacements():
    disposition = b'--edge\r\nContent-Disposition: form-data; name="file"; filename="\xff.wav"\r\n\r\n'
    with receive(whole(disposition + WAVE + b"\r\n")) as form:
        assert form.files("file")[0].filename == "�.wav"


@pytest.mark.parametrize("size_bytes", [0, 1, SPILL_BYTES, SPILL_BYTES + 1, 3 * SPILL_BYTES])
def test_a_file_of_any_size_is_kept_whole(size_bytes):
    content = (bytes(range(256)) * (size_bytes // 256 + 1))[:size_bytes]
    body = whole(file(content))
    with receive(*(body[at : at + 65_536] for at in range(0, len(body), 65_536))) as form:
        (upload,) = form.files("file")
        assert upload.size_bytes == size_bytes
        assert upload.body.read() == content


def test_files_and_values_keep_their_order():
    parts = [text("word[]", "one"), file(b"1"), text("word[]", "two"), file(b"2")]
    with receive(whole(*parts)) as form:
        assert form.values("word[]") == ["one", "two"]
        assert [upload.body.read() for upload in form.files("file")] == [b"1", b"2"]


def test_a_field_that_takes_one_value_is_refused_when_it_has_two():
    with receive(whole(text("model", "a"), text("model", "b"))) as form, pytest.raises(InvalidRequest) as caught:
        form.one("model")
    assert caught.value.param == "model"


def test_an_absent_field_has_its_default_and_no_values():
    with receive(whole()) as form:
        assert form.one("model") is None
        assert form.one("model", "default") == "default"
        assert form.values("model") == []
        assert form.files("file") == []


def test_an_empty_text_is_no_absent_one():
    with receive(whole(text("language", ""))) as form:
        assert form.one("language", "default") == ""


@pytest.mark.parametrize("content", [b"\xff\xfe", "é".encode("latin-1"), b"a\0b"])
def test_a_text_that_is_no_text_is_refused_when_it_is_asked_for(content):
    with receive(whole(text("prompt", content), text("model", "m"))) as form:
        assert form.one("model") == "m"
        with pytest.raises(InvalidRequest) as caught:
            form.one("prompt")
    assert caught.value.param == "prompt"


def test_only_the_fields_that_are_named_as_files_are_files():
    limits = FormLimits(body_bytes=1000, file_fields=frozenset({"voice"}))
    body = whole(part('form-data; name="voice"', b"v"), part('form-data; name="prompt"; filename="p.txt"', b"p"))
    with receive(body, limits=limits) as form:
        assert form.files("voice")[0].body.read() == b"v"
        assert form.one("prompt") == "p"


def test_a_form_with_too_many_fields_is_refused():
    body = whole(*(text(f"field{at}", "v") for at in range(2000)))
    assert refusal(body).message == "the form has more than 100 fields"


def test_a_form_may_have_as_many_fields_as_its_limit():
    with receive(whole(*(text(f"field{at}", "v") for at in range(100)))) as form:
        assert form.one("field99") == "v"


def test_a_text_over_the_limit_is_too_large_and_named():
    assert refusal(whole(text("prompt", "x" * 5_000_000)), TooLarge).param == "prompt"


def test_the_limit_of_texts_is_for_all_of_them_together():
    limits = FormLimits(body_bytes=1000, text_bytes=10)
    with receive(whole(text("a", "12345"), text("b", "67890")), limits=limits) as form:
        assert form.one("b") == "67890"
    assert refusal(whole(text("a", "12345"), text("b", "678901")), TooLarge, limits=limits).param == "b"


def test_a_body_over_the_limit_is_too_large():
    refusal(whole(file(bytes(1000))), TooLarge, limits=FormLimits(body_bytes=1000))


@pytest.mark.parametrize(
    "headers",
    [["X-Long: " + "x" * 9000], ["X" * 9000 + ": long"], [f"X-{at}: many" for at in range(17)]],
    ids=["long value", "long name", "many"],
)
def test_part_headers_over_their_limits_are_refused(headers):
    assert refusal(whole(file(WAVE, 'filename="a.wav"', *headers))).message.startswith("the form is malformed: ")


@pytest.mark.parametrize(
    "content_type",
    [None, "", "application/json", "application/x-www-form-urlencoded", "multipart/mixed; boundary=edge"],
)
def test_a_body_that_is_no_form_is_told_what_is_wanted(content_type):
    assert "multipart/form-data" in refusal(b"{}", UnsupportedMediaType, content_type=content_type).message


@pytest.mark.parametrize("parameters", ["", ";", "; boundary", "; boundary=", '; boundary=""', "; bound=edge"])
def test_a_form_without_a_boundary_is_refused(parameters):
    error = refusal(whole(file()), content_type="multipart/form-data" + parameters)
    assert error.message == "the content type multipart/form-data lacks its boundary"


@pytest.mark.parametrize("piece", [";x", '";', "a=b;", "filename*0=a;"])
def test_a_header_of_very_many_parameters_is_refused(piece):
    told = f"the form is malformed: a header has more than {MAX_PARAMETERS} parameters"
    many = piece * (MAX_PARAMETERS + 1)
    assert refusal(whole(file(WAVE, many))).message == told
    assert refusal(whole(file(WAVE)), content_type=f"multipart/form-data; boundary=edge; {many}").message == told


def test_a_header_may_have_as_many_parameters_as_its_limit():
    name = ";" * (MAX_PARAMETERS - 2)
    with receive(whole(file(WAVE, f'filename="{name}"'))) as form:
        assert form.files("file")[0].filename == name


def test_a_boundary_of_absurd_length_is_refused():
    refusal(whole(file()), content_type="multipart/form-data; boundary=" + "x" * 300)


def test_a_boundary_may_be_quoted():
    with receive(whole(text("a", "b")), content_type='Multipart/Form-Data; charset=utf-8; boundary="edge"') as form:
        assert form.one("a") == "b"


@pytest.mark.parametrize("missing", range(1, 60, 3))
def test_a_form_that_is_cut_is_refused_wherever_it_is_cut(missing):
    body = whole(text("model", "whisper"), file())
    assert refusal(body[: -2 - missing]).message == "the form is cut: it ends before its closing boundary"


def test_an_empty_body_is_a_cut_form():
    assert refusal(b"").message == "the form is cut: it ends before its closing boundary"


@pytest.mark.parametrize(
    "body",
    [
        whole(text("model", "whisper"), file()).replace(b"\r\n", b"\n"),
        b"model=whisper",
        whole(b"--edge\r\nContent-Type: audio/wav\r\n\r\nRIFF\r\n"),
        whole(b"--edge\r\n\r\nRIFF\r\n"),
        whole(text("model", "whisper"), b"--edge\r\n\r\nRIFF\r\n"),
        whole(part("form-data", WAVE)),
        whole(part('form-data; name=""', WAVE)),
        whole(part('form-data; filename="a.wav"', WAVE)),
        whole(part('attachment; name="file"', WAVE)),
        whole(part("", WAVE)),
        whole(part("form-data; name*=UTF-8''file", WAVE)),
        whole(b'--edge\r\nContent-Disposition: form-data; name="\xff"\r\n\r\nRIFF\r\n'),
        whole(b"--edge\r\nContent Disposition: form-data\r\n\r\nRIFF\r\n"),
        whole(b"--edge\r\n: form-data\r\n\r\nRIFF\r\n"),
    ],
    ids=[
        "line feeds only",
        "urlencoded",
        "no disposition",
        "no header",
        "no header after a good part",
        "no name",
        "empty name",
        "a filename alone",
        "attachment",
        "empty disposition",
        "extended name",
        "a name in another charset",
        "a space in a header's name",
        "a header without a name",
    ],
)
def test_a_malformed_form_is_refused(body):
    assert refusal(body).message.startswith("the form is malformed: ")


def test_a_client_that_leaves_in_the_middle_is_no_form():
    with pytest.raises(ClientDisconnect):
        receive(whole(file())[:-20], None)


LARGE = file(bytes(SPILL_BYTES + 1))


@pytest.mark.parametrize(
    "pieces",
    [[LARGE], [LARGE, None], [whole(LARGE, file(bytes(9_000_000)))], [LARGE, b"--edge\n"]],
    ids=["cut", "left", "too large", "malformed"],
)
def test_no_file_outlives_a_form_that_failed(pieces):
    before = open_files()
    for _ in range(3):
        with pytest.raises((AntiphonError, ClientDisconnect)):
            receive(*pieces)
    assert open_files() == before


def test_no_file_outlives_a_reception_that_was_cancelled():
    async def cancelled() -> None:
        spilled = asyncio.Event()

        async def receive():
            if spilled.is_set():
                await asyncio.Event().wait()
            spilled.set()
            return {"type": "http.request", "body": LARGE, "more_body": True}

        request = Request({"type": "http", "headers": [(b"content-type", TYPE.encode())]}, receive)
        reception = asyncio.create_task(read_form(request, LIMITS))
        await spilled.wait()
        reception.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reception

    before = open_files()
    asyncio.run(cancelled())
    assert open_files() == before


def test_no_file_outlives_its_form():
    before = open_files()
    with receive(whole(LARGE, file())) as form:
        uploads = form.files("file")
        assert open_files() == before + 1
    assert open_files() == before
    assert [upload.body.closed for upload in uploads] == [True, True]


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.data())
def test_no_body_makes_anything_but_a_form_or_a_refusal(data):
    body = bytearray(whole(text("model", "whisper"), file(WAVE, "filename*=UTF-8''a.wav", "Content-Type: audio/wav")))
    for _ in range(data.draw(st.integers(0, 4))):
        at = data.draw(st.integers(0, len(body) - 1))
        body[at : at + data.draw(st.integers(0, 3))] = data.draw(
            st.one_of(
                st.binary(max_size=4), st.sampled_from([b"\r\n", b"--edge", b"--edge--", b"*0*=", b'"', b";", b"\0"])
            )
        )
    split = data.draw(st.integers(0, len(body)))
    with suppress(AntiphonError), receive(bytes(body[:split]), bytes(body[split:])) as form:
        form.values("model")
