"""The default listener: HTTP on a socket that is ours, until it is told to stop."""

from antiphon.http.server.listener import HttpServer
from antiphon.http.server.sockets import address_of, bind, listen, resolve

__all__ = ["HttpServer", "address_of", "bind", "listen", "resolve"]
