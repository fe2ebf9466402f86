"""URLs of servers: their origins, their parts as requests hold them, and how they are shown. Pure.

`shown` leaves out what may be secret. Which URLs a client accepts is left to `fastrpc.client.http.address`.
"""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import quote, urlsplit

PORTS = {"http": 80, "https": 443}
IN_PATHS = "!$%&'()*+,-./:;=@[\\]^_|~"
"""What stays as it is in a path, besides letters and digits; "%" since it may encode something already."""
IN_QUERIES = IN_PATHS + "?`{}"


class Origin(NamedTuple):
    """A scheme, a host and a port (RFC 9110, 4.3.1): the same origin is the same server."""

    scheme: str
    host: str
    port: int


def origin_of(url: str) -> Origin:
    """Return the origin of an http or https URL. Raises ValueError."""
    parts = urlsplit(url)
    scheme, host = parts.scheme.lower(), parts.hostname
    if scheme not in PORTS or not host:
        raise ValueError("expected an http or https URL with a host")
    return Origin(scheme, host, PORTS[scheme] if parts.port is None else parts.port)


def authority(origin: Origin, always_port: bool = False) -> str:
    """Return host and port as the header Host has them: without the scheme's own port, unless wanted."""
    host = f"[{origin.host}]" if ":" in origin.host else origin.host
    if origin.port == PORTS[origin.scheme] and not always_port:
        return host
    return f"{host}:{origin.port}"


def request_target(url: str) -> str:
    """Return path and query of a URL as they are in a request (RFC 9112, 3.2.1)."""
    parts = urlsplit(url)
    query = f"?{quote(parts.query, IN_QUERIES)}" if parts.query else ""
    return (quote(parts.path, IN_PATHS) or "/") + query


def is_local_host(host: str) -> bool:
    """Whether a host is this machine: a loopback address, or a name for one (RFC 6761, 6.3)."""
    from ipaddress import ip_address

    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def shown(url: str) -> str:
    """Return a URL without user name, password, query and fragment, which may contain secrets."""
    parts = urlsplit(url)
    place = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{place}{parts.path}"
