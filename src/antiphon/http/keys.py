"""The keys that callers bring: whose they are, and who may manage with one. It knows headers; no route."""

import hmac
from collections.abc import Iterable, Iterator
from hashlib import sha256

from starlette.requests import HTTPConnection
from starlette.types import Scope

from antiphon.service.models import ModelService
from antiphon.vocabulary.errors import Forbidden, Unauthenticated

_SUBPROTOCOL = "openai-insecure-api-key."
"""What OpenAI's clients in browsers put before their key, among the subprotocols: pages cannot set a header there."""


class KeyRing:
    """Some keys, as their digests: neither what it shows nor how long it compares tells a key, or its length."""

    def __init__(self, keys: Iterable[str]) -> None:
        self._digests = tuple(_digest(key.encode()) for key in keys)

    def __bool__(self) -> bool:
        return bool(self._digests)

    def opens_for(self, scope: Scope) -> bool:
        """Whether the caller brought one of them; each is compared, whichever is right."""
        brought = _digest(_bearer_token(scope) or _subprotocol_token(scope))
        matches = [hmac.compare_digest(brought, digest) for digest in self._digests]
        return any(matches)


class ManagementDoor:
    """Lets callers through to the routes that change what is served: with one of `admin_keys`, if there are any.

    `api_keys` are the ordinary ones, whose callers are told that theirs is not enough.
    """

    def __init__(self, models: ModelService, admin_keys: KeyRing, api_keys: KeyRing) -> None:
        self._models = models
        self._admin_keys = admin_keys
        self._api_keys = api_keys

    def admit(self, asked: HTTPConnection) -> None:
        """Raise Forbidden or Unauthenticated; to be called before a body is read, and before anything is looked up."""
        self._models.require_management()
        if not self._admin_keys or self._admin_keys.opens_for(asked.scope):
            return
        if self._api_keys.opens_for(asked.scope):
            raise Forbidden("this key may not manage; an admin key of this server is wanted")
        raise Unauthenticated("an admin key of this server is wanted, as `Authorization: Bearer KEY`")


def values(scope: Scope, name: bytes) -> Iterator[bytes]:
    """What the header holds, each time that it stands there; Starlette's Headers takes several times as long."""
    return (value for key, value in scope["headers"] if key == name)


def _digest(key: bytes) -> bytes:
    return sha256(key).digest()


def _bearer_token(scope: Scope) -> bytes:
    scheme, _, token = next(values(scope, b"authorization"), b"").partition(b" ")
    return token.strip() if scheme.lower() == b"bearer" else b""


def _subprotocol_token(scope: Scope) -> bytes:
    offers = (offer for offer in scope.get("subprotocols", ()) if offer.startswith(_SUBPROTOCOL))
    return next(offers, "").removeprefix(_SUBPROTOCOL).encode()
