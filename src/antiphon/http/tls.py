"""The certificate of a listener that speaks HTTPS: two files become what asyncio wants, or a line that says why not."""

import ssl

from antiphon.vocabulary.errors import ConfigError


def tls_context(cert: str, key: str) -> ssl.SSLContext:
    """Read a certificate, which its issuers' may follow, and its private key, both in PEM form.

    It is a server's side of TLS 1.2 or newer that offers HTTP/1.1. Raises ConfigError, which names the files, for
    files that cannot be read, that hold something else, or that do not belong together.
    """

    def refuse_passphrase() -> str:
        raise ConfigError(
            f"tls_key: wanted a key without a passphrase; {key!r} has one"
        )  # OpenSSL would ask on the terminal

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(
        "ECDHE+AESGCM:ECDHE+CHACHA20"
    )  # those of TLS 1.2 that Mozilla calls intermediate; 1.3 has its own
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(cert, key, password=refuse_passphrase)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise ConfigError(f"tls_key: the key in {key!r} does not belong to the certificate in {cert!r}") from error
        raise ConfigError(
            f"tls_cert, tls_key: wanted a certificate and its key in PEM form in {cert!r} and {key!r}"
        ) from error
    except OSError as error:
        raise ConfigError(f"tls_cert, tls_key: {cert!r} and {key!r} cannot be read: {error.strerror}") from error
    return context
