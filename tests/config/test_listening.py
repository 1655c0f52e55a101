"""The fields about who may call, over what, and how slowly: keys, origins, certificates and more listeners."""

from collections.abc import Callable
from pathlib import Path

import pytest

from antiphon.config import ServerConfig

Load = Callable[..., ServerConfig]
Refusal = Callable[..., str]
SECRET = "a secret of the operator"


@pytest.mark.parametrize("keys", [[SECRET], SECRET, [], [""], ["naïve"], [1], {SECRET: SECRET}, None, ["ok", "a\tb"]])
def test_keys_that_no_header_can_carry_are_refused_and_not_repeated(load: Load, refusal: Refusal, keys: object) -> None:
    line = refusal(load, {"api_keys": keys})
    assert line.startswith("server.json: api_keys")
    assert line.endswith("wanted a list of 1 or more API keys, each of 1 or more visible ASCII characters")


def test_a_flag_with_an_unfit_key_is_named_as_it_is_written(load: Load, refusal: Refusal) -> None:
    assert refusal(load, {}, api_keys=[SECRET]).startswith(
        "--api-key or ANTIPHON_API_KEYS: wanted a list of 1 or more API keys, "
    )


def test_keys_do_not_show_where_a_configuration_is_shown(load: Load) -> None:
    config = load({"api_keys": ["a-secret"]})
    assert config.api_keys == ("a-secret",)
    assert "a-secret" not in f"{config!r} {config}"


@pytest.mark.parametrize("field", ["api_keys", "admin_keys"])
def test_a_file_holds_one_key_a_line_beside_those_of_the_configuration(load: Load, home: Path, field: str) -> None:
    (home / "keys.txt").write_text("# of the kitchen\n\n  first \r\nsecond")
    config = load({field: ["own"], f"{field}_file": "keys.txt"})
    assert getattr(config, field) == ("own", "first", "second")
    assert "first" not in repr(config)


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", "holds none"),
        (b"# nothing yet\n\n", "holds none"),
        (b"good\ntwo words\n", "line 2 of"),
        ("näive\n".encode(), "line 1 of"),
        (b"a\0b\n", "line 1 of"),
        (b"k" * 65537, "of at most 65536 bytes"),
    ],
)
def test_a_file_without_keys_is_refused_and_not_repeated(
    load: Load, refusal: Refusal, home: Path, content: bytes, fault: str
) -> None:
    (home / "keys.txt").write_bytes(content)
    line = refusal(load, {"api_keys_file": "keys.txt"})
    assert line.startswith("server.json: api_keys_file: wanted a file with one key a line") or "line" in fault
    assert fault in line
    assert not any(secret in line for secret in ("good", "two words", "ve\n", "kkk"))


def test_a_file_of_keys_that_is_none_is_refused(load: Load, refusal: Refusal, home: Path) -> None:
    assert refusal(load, {"admin_keys_file": "none"}).startswith(
        "server.json: admin_keys_file: wanted an existing file"
    )
    assert refusal(load, {"admin_keys_file": "models"}).endswith("cannot be read: Is a directory")
    assert refusal(load, {}, api_keys_file=str(home)).startswith("--api-keys-file: wanted a file with one key a line")


def test_a_key_of_a_listener_does_not_show(load: Load) -> None:
    config = load({"listeners": [{"kind": "wyoming", "api_key": "a-secret"}]})
    assert config.listeners[0].options() == {"api_key": "a-secret"}
    assert "a-secret" not in repr(config)


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


def test_host_names_are_compared_in_lower_case(load: Load) -> None:
    assert load({"allowed_hosts": ["Speech.Example"]}).allowed_hosts == ("speech.example",)


@pytest.mark.parametrize("name", ["", "speech.example:8080", "https://speech.example", "*", "a b", "späch.example"])
def test_what_is_no_host_name_is_refused(load: Load, refusal: Refusal, name: str) -> None:
    line = refusal(load, {"allowed_hosts": [name]})
    assert line == f"server.json: allowed_hosts: wanted a list of host names, without ports; found {name!r}"
