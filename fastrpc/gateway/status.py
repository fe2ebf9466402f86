"""Health and counts of running gateways: each tells them on a Unix socket, in a folder of the user's own.

`Health` knows them. `Report` is the socket: a thread of its own accepts connections and writes one JSON
object to each, so that a gateway whose event loop is busy answers too. Nothing is read. `running` is the side
of `fastrpc gateway status`; it removes the sockets of gateways that were killed. Over HTTP a gateway offers
the same as a resource that is in no list. Secrets in reasons are masked.
"""

from __future__ import annotations

import json
import os
import socket
import stat
from threading import Thread
from time import time

from fastrpc.errors import FastrpcError
from fastrpc.gateway.names import SCHEME
from fastrpc.redaction import masked
from fastrpc.telemetry.statistics import NO_ERRORS
from fastrpc.unix_sockets import SocketFolder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from fastrpc._core.recorder import CallRecord
    from fastrpc.gateway import Gateway
    from fastrpc.gateway.member import Member
    from fastrpc.server import Server

FOLDER = "gateways"
"""In the state folder."""
ENDING = ".sock"
STATUS_URI = f"{SCHEME}://status"
ANSWER_SECONDS = 5.0
LONGEST_ANSWER = 16 * 1024 * 1024


class Health:
    """Counts the calls of a gateway's servers from now on, and tells how the servers are. `served`: how
    clients reach the gateway."""

    def __init__(self, path: str, served: str, server: Server, gateway: Gateway) -> None:
        self._path = os.path.realpath(path)
        self._served = served
        self._server = server
        self._gateway = gateway
        self._since = time()
        server.observe(self._count)

    def _count(self, records: Sequence[CallRecord]) -> None:
        for record in records:
            member = self._gateway.catalogue.owner_of(record.kind, record.name)
            if member is not None:
                member.calls += 1
                member.errors += record.outcome not in NO_ERRORS

    def offer(self) -> None:
        """Offer the resource at `STATUS_URI` to clients."""
        self._server.resources(SCHEME, mime_type="application/json", ttl=0, run="inline")(self)
        for provider in self._server.registries.providers:
            provider.is_exclusive |= provider.scheme == SCHEME

    def read(self, uri: str) -> str | None:
        """Return the content of the resource, as a provider does."""
        return json.dumps(self.content()) if uri == STATUS_URI else None

    def content(self) -> dict[str, Any]:
        """Return what is told."""
        self._server.drain_observers()
        members = list(self._gateway.members.values())
        return {
            "pid": os.getpid(),
            "config": self._path,
            "served": self._served,
            "since": round(self._since, 3),
            "servers": [self._content_of(member) for member in members],
        }

    def _content_of(self, member: Member) -> dict[str, Any]:
        state, reason = member.state()
        upstream = member.upstream
        found: dict[str, Any] = {
            "name": member.name,
            "state": state,
            "reason": masked(reason),
            "tools": self._gateway.catalogue.tools_of(member),
            "calls": member.calls,
            "errors": member.errors,
        }
        if upstream is not None:
            found["starts"] = upstream.starts
            found["lastEnd"] = masked(upstream.last_end or "")
            found["since"] = round(upstream.since, 3)
            found["pid"] = upstream.pid or None
        return found


class Report:
    """Tells how the servers of a gateway are to whoever connects to a socket, until `close`. Raises OSError
    if there can be none in the folder."""

    def __init__(self, state_folder: str, health: Health) -> None:
        self._health = health
        folder = _private(os.path.join(state_folder, FOLDER))
        # Processes in containers may have the same id, and the same folder.
        name = f"{os.getpid()}-{os.urandom(4).hex()}"
        place = os.path.join(folder, name)
        self._address = place + ENDING
        self._socket = socket.socket(socket.AF_UNIX)
        try:
            with SocketFolder(folder) as reached:
                self._socket.bind(reached.address(name))
            os.chmod(place, 0o600)
            self._socket.listen()
            os.rename(place, self._address)  # now: `running` removes a socket that refuses connections
        except BaseException:
            _remove(place)
            self._socket.close()
            raise
        Thread(target=self._serve, name="fastrpc-gateway-status", daemon=True).start()

    def close(self) -> None:
        _remove(self._address)
        self._socket.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:  # closed
                return
            with connection:
                connection.settimeout(ANSWER_SECONDS)
                try:
                    connection.sendall(json.dumps(self._health.content()).encode())
                except OSError:  # it has not waited
                    pass


# --- asking -------------------------------------------------------------------------------------------------


class NoAnswer(FastrpcError):
    """A gateway is there, but does not answer."""


def running(state_folder: str, path: str | None = None) -> list[dict[str, Any]]:
    """Return what the running gateways of this user tell, those for one file if `path` is given. Raises
    NoAnswer, and OSError for a folder that others may write to."""
    folder = os.path.join(state_folder, FOLDER)
    if not os.path.isdir(folder):
        return []
    _check(folder)
    found = []
    for name in sorted(os.listdir(folder)):
        if name.endswith(ENDING):
            content = _asked(folder, name)
            if content is not None and (path is None or content["config"] == os.path.realpath(path)):
                found.append(content)
    return found


def _asked(folder: str, name: str) -> dict[str, Any] | None:
    """Return what a gateway tells at its socket; None if it is gone."""
    path = os.path.join(folder, name)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(ANSWER_SECONDS)
        try:
            with SocketFolder(folder) as reached:
                connection.connect(reached.address(name))
        except (ConnectionRefusedError, FileNotFoundError):
            _remove(path)
            return None
        data = bytearray()
        try:
            while len(data) < LONGEST_ANSWER and (part := connection.recv(1 << 16)):
                data += part
            found: dict[str, Any] = json.loads(data)
        except (OSError, ValueError):
            raise NoAnswer(f"{path}: the gateway does not answer") from None
    return found


def _private(folder: str) -> str:
    """Make a folder that nobody else may use, and return its path. Raises OSError."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    _check(folder)
    return folder


def _check(folder: str) -> None:
    facts = os.lstat(folder)
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.geteuid() or facts.st_mode & 0o022:
        raise PermissionError(1, "is not a folder that this user alone may write to", folder)


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass
