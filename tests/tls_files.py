"""Certificates for tests, made by an authority that lives as long as a test does."""

import ssl
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)


@dataclass(frozen=True)
class TlsFiles:
    """A certificate of 127.0.0.1 with its key, and files that do not go with it. `folder` exists."""

    folder: Path

    @cached_property
    def _authority(self) -> trustme.CA:
        return trustme.CA()

    def certificate(self, name: str = "cert") -> tuple[Path, Path]:
        """Make a certificate and its key; another name gives another pair."""
        cert, key = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        made = self._authority.issue_cert("127.0.0.1", "localhost")
        made.private_key_pem.write_to_path(key)
        for part in made.cert_chain_pems:
            part.write_to_path(cert, append=True)
        return cert, key

    def authority(self) -> Path:
        """The file of who vouches for the certificates, for programs that take one."""
        file = self.folder / "authority.pem"
        self._authority.cert_pem.write_to_path(file)
        return file

    def locked(self, key: Path) -> Path:
        """The same key behind a passphrase."""
        opened = load_pem_private_key(key.read_bytes(), None)
        locked = key.with_suffix(".locked")
        form = (Encoding.PEM, PrivateFormat.TraditionalOpenSSL, BestAvailableEncryption(b"secret"))
        locked.write_bytes(opened.private_bytes(*form))
        return locked

    def client(self) -> ssl.SSLContext:
        """What a client needs to trust the certificates of these files."""
        context = ssl.create_default_context()
        self._authority.configure_trust(context)
        return context
