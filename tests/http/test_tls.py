"""Certificates that cannot be served are refused at the start, in one line that names the files."""

import ssl

import pytest

from antiphon.http.tls import tls_context
from antiphon.vocabulary.errors import ConfigError
from tls_files import TlsFiles


@pytest.fixture
def files(tmp_path):
    return TlsFiles(tmp_path)


def refusal(cert, key):
    with pytest.raises(ConfigError) as caught:
        tls_context(str(cert), str(key))
    assert caught.value.message.isprintable()
    return caught.value.message


def test_a_certificate_and_its_key_are_taken(files):
    cert, key = files.certificate()
    assert tls_context(str(cert), str(key)).minimum_version == ssl.TLSVersion.TLSv1_2


def test_the_key_of_another_certificate_is_refused(files):
    (cert, _), (_, key) = files.certificate("one"), files.certificate("two")
    assert refusal(cert, key) == f"tls_key: the key in '{key}' does not belong to the certificate in '{cert}'"


def test_a_key_behind_a_passphrase_is_refused_and_not_asked_for(files):
    cert, key = files.certificate()
    assert refusal(cert, files.locked(key)).startswith("tls_key: wanted a key without a passphrase; ")


@pytest.mark.parametrize("broken", [0, 1], ids=["certificate", "key"])
def test_what_is_no_pem_is_refused(files, broken):
    pair = files.certificate()
    pair[broken].write_text("nothing of the kind")
    assert (
        refusal(*pair)
        == f"tls_cert, tls_key: wanted a certificate and its key in PEM form in '{pair[0]}' and '{pair[1]}'"
    )


def test_the_two_files_in_each_others_place_are_refused(files):
    cert, key = files.certificate()
    assert "PEM form" in refusal(key, cert)


def test_a_folder_or_a_missing_file_is_refused(files, tmp_path):
    cert, key = files.certificate()
    assert refusal(tmp_path, key).endswith("cannot be read: Is a directory")
    assert refusal(cert, tmp_path / "none").endswith("cannot be read: No such file or directory")
