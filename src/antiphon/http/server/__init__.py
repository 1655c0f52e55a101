"""The default listener: HTTP on a socket that is ours, until it is told to stop."""

from antiphon.http.server.limits import ListenerLimits
from antiphon.http.server.listener import Listener
from antiphon.http.server.sockets import address_of, bind

__all__ = ["Listener", "ListenerLimits", "address_of", "bind"]
