"""Addresses to serve HTTP at, from their text to sockets that listen: ``HOST:PORT`` and ``unix:/path``.

A name may have several addresses (``localhost`` is 127.0.0.1 and ::1): all get the same port. Port 0
lets the system choose. Several workers get separate sockets, among which Linux spreads the connections evenly
(measured: one shared socket gave one worker of four between 1 and 62 of 64 connections, separate ones between
11 and 25). Only its owner can connect to a Unix socket. Accepting is left to `server`.
"""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
import stat
import struct
import sys

from fastrpc.errors import UsageError
from fastrpc.unix_sockets import SocketFolder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Place = tuple[socket.AddressFamily, tuple[Any, ...]]

BACKLOG = 2048
TRIES = 10  # a port that the system chose for one address may be taken on the next

SO_ATTACH_FILTER = 26
WITHOUT_SYN = (
    (0x30, 0, 0, 13),  # load the byte of the TCP header with the flags
    (0x54, 0, 0, 0x12),  # keep SYN (2) and ACK (16)
    (0x15, 0, 1, 0x02),  # if it is SYN alone
    (0x06, 0, 0, 0),  # drop the segment
    (0x06, 0, 0, 0xFFFF),  # otherwise keep it
)
"""Instructions of classic BPF: code, jumps if true and if false, value (Linux: linux/filter.h)."""


class Address:
    """An address to listen on. `path` is set for a Unix socket, `host` and `port` otherwise."""

    def __init__(self, host: str = "", port: int = 0, path: str | None = None) -> None:
        self.host = host
        self.port = port
        self.path = path

    @classmethod
    def read(cls, text: str) -> Address:
        """Parse an address. Raises UsageError."""
        if text.startswith("unix:"):
            path = text[5:]
            if not path or "\0" in path:
                raise UsageError(f"http: expected unix:PATH, got {text!r:.120}")
            return cls(path=os.path.abspath(path))
        host, colon, port = text.rpartition(":")
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
        elif ":" in host:
            colon = ""  # an IPv6 address without its brackets: which colon is the port's?
        if not (colon and host and port.isascii() and port.isdigit() and len(port) < 6 and int(port) < 65536):
            number = text.lstrip(":")
            hint = f"; did you mean 127.0.0.1:{number}?" if number.isdigit() and len(number) < 6 else ""
            raise UsageError(f"http: expected HOST:PORT, [IPV6]:PORT or unix:PATH, got {text!r:.120}{hint}")
        return cls(host, int(port))

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        if self.path is not None or self.host.lower() == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def is_any(self) -> bool:
        """Whether it means all addresses of this machine, and so cannot be the address of a URL."""
        return self.path is not None or self.host in ("0.0.0.0", "::")

    def url(self, port: int, *, tls: bool = False, path: str = "/mcp") -> str:
        """Return the URL of the endpoint, as people write it."""
        if self.path is not None:
            return f"unix:{self.path} {path}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if tls else 'http'}://{host}:{port}{path}"


def listen(address: Address, workers: int = 1) -> list[list[socket.socket]]:
    """Return, for each worker, the sockets that it listens at. Raises UsageError."""
    if address.path is not None:
        return [[_listen_at_path(address.path)]] * workers
    try:
        found = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except OSError as error:
        raise UsageError(f"http: {address.host:.100}: {error.strerror or error}") from None
    except UnicodeError:
        raise UsageError(f"http: {address.host:.100}: not a host name") from None
    places: list[Place] = list(dict.fromkeys((family, place) for family, _, _, _, place in found))
    for attempt in range(TRIES):
        try:
            return _listen_at_all(places, workers)
        except OSError as error:
            if address.port != 0 or error.errno != errno.EADDRINUSE or attempt == TRIES - 1:
                shown = address.url(address.port, path="")
                raise UsageError(f"http: {shown}: {os.strerror(error.errno or 0)}") from None
    raise AssertionError("the last attempt raises")


def _listen_at_all(places: list[Place], workers: int) -> list[list[socket.socket]]:
    """Listen at each place that the system has, on one port, for each worker. Raises OSError."""
    sockets = _bound(places)
    if workers > 1 and sys.platform == "linux":
        # Only a socket without SO_REUSEPORT detects that another program has the port.
        own = [(found.family, found.getsockname()) for found in sockets]
        _close(sockets)
        sets = [_bound(own, shared=True) for _ in range(workers)]
    else:
        sets = [sockets] * workers
    for found in {found for sockets in sets for found in sockets}:
        found.setblocking(False)
    return sets


def _bound(places: list[Place], *, shared: bool = False) -> list[socket.socket]:
    """Return a socket that listens at each place that the system has, all on one port. Raises OSError."""
    sockets: list[socket.socket] = []
    missing: OSError | None = None
    port = 0
    for family, place in places:
        address = (place[0], place[1] or port, *place[2:])
        try:
            found = socket.create_server(address, family=family, backlog=BACKLOG, reuse_port=shared)
        except OSError as error:
            if error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                missing = error  # localhost without IPv6
                continue
            _close(sockets)
            raise
        sockets.append(found)
        port = found.getsockname()[1]
    if not sockets:
        raise missing or OSError(errno.EADDRNOTAVAIL, "no address")
    return sockets


def _close(sockets: list[socket.socket]) -> None:
    for found in sockets:
        found.close()


def ignore_new_connections(listener: socket.socket) -> bool:
    """Have the system ignore attempts to connect to a listening TCP socket from now on, while the connections
    that have begun before are established and accepted. False where the system cannot do that.

    Who tries it meanwhile tries again after a second, and is refused when the socket is closed. This is a
    classic BPF program (Linux: SO_ATTACH_FILTER), which drops segments with SYN and without ACK.
    """
    if sys.platform != "linux" or listener.family == socket.AF_UNIX:
        return False
    from array import array

    program = array("B", b"".join(struct.pack("HBBI", *instruction) for instruction in WITHOUT_SYN))
    try:
        listener.setsockopt(
            socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("HP", len(WITHOUT_SYN), program.buffer_info()[0])
        )
    except OSError:
        return False
    return True


def _listen_at_path(path: str) -> socket.socket:
    """Listen at a path, with access for the owner only; a stale socket is replaced. Raises UsageError."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        folder, name = os.path.split(path)
        with SocketFolder(folder) as reached:
            address = reached.address(name)
            if _is_left_behind(address):
                os.unlink(path)
            listener.bind(address)
        listener.listen(BACKLOG)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        raise UsageError(f"http: unix:{path:.120}: {error.strerror}") from None
    finally:
        os.umask(before)
    return listener


def _is_left_behind(address: str) -> bool:
    try:
        if stat.S_ISSOCK(os.lstat(address).st_mode):
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
                probe.connect(address)
    except ConnectionRefusedError:
        return True
    except OSError:
        pass
    return False
