"""The fields about who may call, over what, and how slowly: keys, origins, certificates and more listeners."""

from collections.abc import Callable
from pathlib import Path

import pytest

from antiphon.config import ServerConfig

Load = Callable[..., ServerConfig]
Refusal = Callable[..., str]
SECRET = "a secret of the operator"


@pytest.mark.parametrize("keys", [[SECRET], SECRET, [""], ["naïve"], [1], {SECRET: SECRET}, None, ["ok", "a\tb"]])
def test_keys_that_no_header_can_carry_are_refused_and_not_repeated(load: Load, refusal: Refusal, keys: object) -> None:
    line = refusal(load, {"api_keys": keys})
    assert line.startswith("server.json: api_keys")
    assert line.endswith("wanted a list of API keys, each of 1 or more visible ASCII characters")


def test_a_flag_with_an_unfit_key_is_named_as_it_is_written(load: Load, refusal: Refusal) -> None:
    assert refusal(load, {}, api_keys=[SECRET]).startswith("--api-key: wanted a list of API keys, ")


def test_keys_do_not_show_where_a_configuration_is_shown(load: Load) -> None:
    config = load({"api_keys": ["a-secret"]})
    assert config.api_keys == ("a-secret",)
    assert "a-secret" not in f"{config!r} {config}"


@pytest.mark.parametrize(
    ("written", "origins"),
    [
        ("", ()),
        ("*", ("*",)),
        (
            "https://a.org, http://b.org:8080,chrome-extension://abc",
            ("https://a.org", "http://b.org:8080", "chrome-extension://abc"),
        ),
    ],
)
def test_origins_are_listed_with_commas(load: Load, written: str, origins: tuple[str, ...]) -> None:
    assert load({"cors_origins": written}).origins() == origins


@pytest.mark.parametrize(
    "written", ["a.org", "https://a.org/", "https://*.org", "https://a.org https://b.org", "*,*", "HTTPS://a.org"]
)
def test_what_no_browser_sends_as_an_origin_is_refused(load: Load, refusal: Refusal, written: str) -> None:
    assert refusal(load, {"cors_origins": written}).startswith("server.json: cors_origins: wanted '', '*', or origins")


def test_certificate_and_key_are_found_from_the_files_folder(load: Load, home: Path) -> None:
    for name in ("cert.pem", "key.pem"):
        (home / name).touch()
    config = load({"tls_cert": "cert.pem", "tls_key": "key.pem"})
    assert (config.tls_cert, config.tls_key) == (str(home / "cert.pem"), str(home / "key.pem"))


def test_certificate_and_key_in_flags_start_at_the_working_folder(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("cert.pem", "key.pem"):
        (tmp_path / name).touch()
    assert load({}, tls_cert="cert.pem", tls_key="key.pem").tls_cert == str(tmp_path / "cert.pem")


@pytest.mark.parametrize("field", ["tls_cert", "tls_key"])
def test_one_of_certificate_and_key_alone_is_refused(load: Load, refusal: Refusal, home: Path, field: str) -> None:
    (home / "one.pem").touch()
    line = refusal(load, {field: "one.pem"})
    assert line == f"server.json: tls_key: tls_cert and tls_key go together; found only {field}"


def test_a_missing_certificate_is_told_once(load: Load, refusal: Refusal, home: Path) -> None:
    (home / "key.pem").touch()
    line = refusal(load, {"tls_cert": "cert.pem", "tls_key": "key.pem"})
    assert line == f"server.json: tls_cert: wanted an existing file or folder; found nothing at '{home}/cert.pem'"


def test_a_listener_keeps_what_it_alone_understands(load: Load, home: Path) -> None:
    (listener,) = load({"listeners": [{"kind": "k", "path": "a.sock", "depth": 3}]}).listeners
    assert listener.kind == "k"
    assert listener.options() == {"path": str(home / "a.sock"), "depth": 3}


@pytest.mark.parametrize(
    ("listeners", "line"),
    [
        ("unix", "listeners: wanted a list of listeners; found 'unix'"),
        (["unix"], "listeners[0]: wanted an object that describes a listener; found 'unix'"),
        ([{"path": "a"}], "listeners[0].kind: is missing; wanted the name of an installed listener"),
        ([{"kind": ""}], "listeners[0].kind: wanted the name of an installed listener; found ''"),
        ([{"kind": "k", "path": 1}], "listeners[0].path: wanted the path of a file; found 1"),
    ],
)
def test_a_listener_that_cannot_be_meant_is_refused(load: Load, refusal: Refusal, listeners: object, line: str) -> None:
    assert refusal(load, {"listeners": listeners}) == f"server.json: {line}"
