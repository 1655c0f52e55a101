"""Who may call: with a key, and from which web pages. It knows headers and addresses; no model, and one route."""

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address
from socket import gethostname

from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from antiphon.http.envelope import error_response
from antiphon.http.keys import KeyRing, values
from antiphon.vocabulary.errors import Forbidden, Unauthenticated

OPEN_PATHS = frozenset({"/", "/health", "/health/ready"})
"""What is answered without a key: whoever watches over the server has none, and the page asks its reader for one."""

PAGE_PREFIX = "/page/"
"""Below it are the files of the page, which are as open as itself."""

ANY_ORIGIN = "*"

SUBPROTOCOL = "realtime"
"""What a WebSocket speaks that names its protocol: a browser that names one must be told that it is taken."""

_AUTHORITY = re.compile(r"(?:\[(?P<six>[0-9a-f:.]+)(?:%[a-z0-9._%-]+)?\]|(?P<name>[a-z0-9._-]+))(?::[0-9]*)?")
_PRIVATE_SUFFIXES = (".local", ".localhost", ".internal", ".home.arpa", ".lan")
"""Nobody on the Internet can have a name below these: RFC 6761, 6762 and 8375, ICANN's reservation of .internal, and
.lan, which many routers use and no registry sells."""

_WEB_ORIGIN = re.compile(r"https?://(?P<authority>[^/]+)")


@dataclass(frozen=True, slots=True)
class AccessRules:
    """What is asked of a caller.

    Without `api_keys` no key is asked for but by management, which asks for one of the `admin_keys`, if there are any.
    `cors_origins` are the origins whose pages may call and read the answers. `local_names` are the names under which a
    server that only this machine can reach is addressed; None asks for none. `network_names` are those of a server that
    others can reach and that asks for no API key, beside names that cannot lead elsewhere; None asks for none.
    """

    api_keys: tuple[str, ...] = field(default=(), repr=False)
    cors_origins: tuple[str, ...] = ()
    local_names: frozenset[str] | None = None
    admin_keys: tuple[str, ...] = field(default=(), repr=False)
    network_names: frozenset[str] | None = None

    @property
    def accepted_keys(self) -> tuple[str, ...]:
        """The keys of which a caller must bring one, if there are any: an admin key is an API key, too."""
        return (*self.api_keys, *self.admin_keys) if self.api_keys else ()


def local_names(host: str, address: str) -> frozenset[str] | None:
    """The names of a server that only its own machine can reach, the loopback addresses aside; None for any other.

    `host` is what it was told to listen on, `address` the numeric address that this led to.
    """
    return frozenset({"localhost", host.lower()}) if _is_loopback(address) else None


def network_names(host: str) -> frozenset[str]:
    """The names of a server that its network can reach: what it was told to listen on, and the machine's own name.

    The machine is not looked up anywhere: that could take seconds, and others could answer.
    """
    return frozenset({host.lower(), gethostname().lower()})


def is_open(path: str) -> bool:
    """Whether a path is answered without a key."""
    return path in OPEN_PATHS or path.startswith(PAGE_PREFIX)


def agreed_subprotocol(scope: Scope) -> str | None:
    """What a WebSocket of this scope is accepted with; never what carries a key."""
    return SUBPROTOCOL if SUBPROTOCOL in scope.get("subprotocols", ()) else None


def install_access(app: FastAPI, rules: AccessRules) -> None:
    """Ask this of every request, before its body is read and before its route is looked for."""
    if rules.accepted_keys:
        app.add_middleware(RequireKey, keys=KeyRing(rules.accepted_keys))
    if rules.cors_origins:  # around the key: a preflight never has one, and a page must be able to read a refusal
        app.add_middleware(
            _Cors,
            allow_origins=rules.cors_origins,
            allow_methods=("GET", "HEAD", "POST"),
            allow_headers=("*",),
            expose_headers=("Retry-After", "Server-Timing", "X-Request-Id"),
            allow_private_network=True,
        )
    app.add_middleware(RefuseForeignPages, rules=rules)


class RequireKey:
    """ASGI middleware: without a key, as `Authorization: Bearer KEY`, nothing but what `is_open` says is answered.

    A WebSocket may bring it as a subprotocol, too.
    """

    def __init__(self, app: ASGIApp, keys: KeyRing) -> None:
        self._app = app
        self._keys = keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or is_open(scope["path"]) or self._keys.opens_for(scope):
            await self._app(scope, receive, send)
        else:
            refusal = Unauthenticated("an API key of this server is wanted, as `Authorization: Bearer KEY`")
            await error_response(refusal)(scope, receive, send)


class RefuseForeignPages:
    """ASGI middleware: pages of other sites get nothing done where a browser would let them.

    A browser on the server's machine can reach a server that only this machine can reach (`names`), whatever page it
    shows. A page whose name was made to lead here (DNS rebinding) is known by its Host header, any other foreign page
    by its Origin, unless that is one of `origins`.

    A browser in the network can reach a server that asks its network for no key (`network_names`). Both headers are
    checked there, too, except for the paths that are open anyway. The server cannot know every name that a network has
    for it, so addresses pass, and names that the public DNS gives to nobody. If the server asks for a key, a foreign
    page has none, and browsers themselves keep it from reading. WebSockets open and can be read whatever CORS says, so
    they are refused to every page that is neither listed nor served under the name that is called.
    """

    def __init__(self, app: ASGIApp, rules: AccessRules) -> None:
        self._app = app
        self._names = rules.local_names
        self._network_names = rules.network_names
        self._origins = rules.cors_origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = None if scope["type"] == "lifespan" else self._refusal(scope)
        if refusal is None:
            await self._app(scope, receive, send)
        else:
            await error_response(refusal)(scope, receive, send)

    def _refusal(self, scope: Scope) -> Forbidden | None:
        is_local = self._names is not None
        is_in_network = self._network_names is not None and not is_open(scope["path"])
        if not is_local and not is_in_network and scope["type"] != "websocket":
            return None
        hosts = [host.decode("latin-1").lower() for host in values(scope, b"host")]
        if is_local and not all(self._is_local(host) for host in hosts):
            return Forbidden(
                "this server is only called by a name of its own machine, such as localhost; allowed_hosts lists others"
            )
        if is_in_network and not all(self._is_in_network(host) for host in hosts):
            return Forbidden(
                "this server asks for no key, so it is only called by its address or a name of its own network;"
                " allowed_hosts lists others"
            )
        if not all(self._is_welcome(origin.decode("latin-1"), hosts) for origin in values(scope, b"origin")):
            return Forbidden("pages of this origin may not call this server; cors_origins lists those that may")
        return None

    def _is_local(self, authority: str) -> bool:
        found = _AUTHORITY.fullmatch(authority)
        if found is None:
            return False
        if found["six"]:
            return _is_loopback(found["six"])
        return found["name"] in (self._names or ()) or _is_loopback(found["name"])

    def _is_in_network(self, authority: str) -> bool:
        found = _AUTHORITY.fullmatch(authority)
        if found is None:
            return False
        name = found["name"]
        return name is None or name in (self._network_names or ()) or _is_address(name) or _is_private(name)

    def _is_welcome(self, origin: str, hosts: Collection[str]) -> bool:
        if ANY_ORIGIN in self._origins or origin in self._origins:
            return True
        page = _WEB_ORIGIN.fullmatch(origin.lower())
        if page is None:
            return False
        if self._names is not None:
            return self._is_local(page["authority"])
        # Behind a proxy the page's own name may be another than the one that is called.
        found = _AUTHORITY.fullmatch(page["authority"])
        is_own = found is not None and found["name"] in (self._network_names or ())
        return is_own or page["authority"] in hosts


class _Cors(CORSMiddleware):
    """Starlette's, but for what it refuses: that is in the shape of all errors."""

    def preflight_response(self, request_headers: Headers) -> Response:
        """Answer a preflight."""
        answer = super().preflight_response(request_headers)
        if answer.status_code < 400:
            return answer
        return error_response(
            Forbidden("pages of this origin may not send such a request; cors_origins lists those that may")
        )


def _is_private(name: str) -> bool:
    """Whether nobody can have the public DNS lead this name somewhere: it has one label, or a suffix of its own."""
    name = name.removesuffix(".")
    return "." not in name or name.endswith(_PRIVATE_SUFFIXES)


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _is_loopback(address: str) -> bool:
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    mapped = parsed.ipv4_mapped if isinstance(parsed, IPv6Address) else None
    return (mapped or parsed).is_loopback
