"""The opening of a WebSocket: from the head of a request to the scope of its application, or to why there is none.

RFC 6455 is checked by the `websockets` library; compression is never agreed on, so no message grows when it is read.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

import httptools
from starlette.types import Scope
from websockets.datastructures import Headers
from websockets.http11 import Request
from websockets.server import ServerProtocol

from antiphon.http.server.refusals import Fields
from antiphon.vocabulary.errors import InvalidRequest

_WEBSOCKET_SCHEMES = {"http": "ws", "https": "wss"}


class Upgrade:
    """A request that may become a WebSocket. Raises InvalidRequest for one that is no proper handshake."""

    def __init__(self, http_scope: Mapping[str, Any], url: bytes) -> None:  # a scope holds what it likes
        try:
            parsed = httptools.parse_url(url)
        except httptools.HttpParserError as error:
            raise InvalidRequest("the request is not HTTP") from error
        fields = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in http_scope["headers"]]
        headers = Headers(fields)
        opening = ServerProtocol()
        response = opening.accept(Request(url.decode("latin-1"), headers))
        if response.status_code != 101:
            raise InvalidRequest(f"the WebSocket cannot be opened: {opening.handshake_exc}"[:200])
        self._agreed = response.headers
        root: str = http_scope["root_path"]
        offers = ",".join(headers.get_all("Sec-WebSocket-Protocol")).split(",")
        self.scope: Scope = {
            **http_scope,
            "type": "websocket",
            "asgi": {**http_scope["asgi"], "spec_version": "2.4"},
            "scheme": _WEBSOCKET_SCHEMES[http_scope["scheme"]],
            "path": root + unquote(parsed.path.decode("ascii")),
            "raw_path": root.encode("ascii") + parsed.path,
            "query_string": parsed.query or b"",
            "subprotocols": [offer.strip() for offer in offers if offer.strip()],
            "extensions": {"websocket.http.response": {}},
        }
        del self.scope["method"]

    def accepted(self) -> Fields:
        """The fields of the answer that agrees."""
        return [(name.lower().encode(), value.encode()) for name, value in self._agreed.raw_items()]
