"""Health and counts of running gateways, served by each on a Unix socket in a private folder of the user.

`Health` collects them. `StatusReporter` is the socket: a separate thread, which answers also while the event
loop is busy, writes one JSON object to each connection and reads nothing. `fastrpc gateway status` calls
`running`: all gateways together have `ANSWER_SECONDS`, so a stopped one does not delay the others, and the
sockets of killed gateways are removed. Over HTTP a gateway offers the same as a resource that is not listed.
"""

from __future__ import annotations

import json
import os
import socket
import stat
from contextlib import suppress
from threading import Thread
from time import monotonic, time

from fastrpc.errors import FastrpcError
from fastrpc.gateway.names import SCHEME
from fastrpc.redaction import masked
from fastrpc.telemetry.statistics import NO_ERRORS
from fastrpc.unix_sockets import SocketFolder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from fastrpc._core.recorder import CallRecord
    from fastrpc.gateway import Gateway
    from fastrpc.gateway.member import GatewayMember
    from fastrpc.server import Server

FOLDER = "gateways"
ENDING = ".sock"
STATUS_URI = f"{SCHEME}://status"
SLOW_SECONDS, ANSWER_SECONDS = 2.0, 5.0
"""The time until a slow gateway is reported, and until it is given up."""
LONGEST_ANSWER = 16 * 1024 * 1024


class Health:
    """Counts the calls of a gateway's servers, and returns their states. `served`: how clients reach it."""

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

    def content(self, *, is_local: bool = False) -> dict[str, Any]:
        """Return the status; if `is_local`, to this user, also the servers' last lines on standard error."""
        self._server.drain_observers()
        members = list(self._gateway.members.values())
        return {
            "pid": os.getpid(),
            "config": self._path,
            "served": self._served,
            "since": round(self._since, 3),
            "servers": [self._content_of(member, is_local) for member in members],
        }

    def _content_of(self, member: GatewayMember, is_local: bool) -> dict[str, Any]:
        state, reason = member.state()
        upstream = member.upstream
        found: dict[str, Any] = {
            "name": member.name,
            "state": state,
            "reason": masked(reason),
            "tools": len(self._gateway.catalogue.tools_of(member)),
            "calls": member.calls,
            "errors": member.errors,
        }
        if upstream is not None:
            found["starts"] = upstream.starts
            found["lastEnd"] = masked(upstream.last_end or "")
            found["since"] = round(upstream.since, 3)
            found["pid"] = upstream.pid or None
            if is_local:
                found["stderr"] = upstream.last_lines
        return found


class StatusReporter:
    """Writes the status of a gateway's servers to each client of a socket, until `close`. Raises OSError if
    the socket cannot be created in the folder."""

    def __init__(self, state_folder: str, health: Health) -> None:
        self._health = health
        folder = os.path.join(state_folder, FOLDER)
        os.makedirs(folder, mode=0o700, exist_ok=True)
        _check(folder)
        # Processes in containers that share the folder may have the same id.
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
                with suppress(OSError):  # the client has disconnected or does not read
                    connection.sendall(json.dumps(self._health.content(is_local=True)).encode())


# --- asking -------------------------------------------------------------------------------------------------


class NoAnswer(FastrpcError):
    """A gateway exists, but does not answer."""


def running(
    state_folder: str,
    path: str | None = None,
    *,
    on_slow: Callable[[int], object] = lambda count: None,
    on_silent: Callable[[NoAnswer], object] | None = None,
) -> list[dict[str, Any]]:
    """Return the statuses of this user's running gateways; with `path`, of those that serve this file.

    `on_slow` is called with the number of gateways that have not answered within `SLOW_SECONDS`. `on_silent`
    is called for each that does not answer at all; without it NoAnswer is raised. Raises OSError for a folder
    that others may write to.
    """
    folder = os.path.join(state_folder, FOLDER)
    if not os.path.isdir(folder):
        return []
    _check(folder)
    found = []
    for content in _asked([os.path.join(folder, name) for name in sorted(os.listdir(folder))], on_slow):
        if isinstance(content, NoAnswer):
            if on_silent is None:
                raise content
            on_silent(content)
        elif path is None or content["config"] == os.path.realpath(path):
            found.append(content)
    return found


def _asked(addresses: list[str], on_slow: Callable[[int], object]) -> list[dict[str, Any] | NoAnswer]:
    """Return the statuses of gateways, in the order of their addresses, without gateways that have ended."""
    began = monotonic()
    questions = [question for each in addresses if each.endswith(ENDING) for question in _question(each)]
    for until in (began + SLOW_SECONDS, began + ANSWER_SECONDS):
        for question in questions:
            question.read(until)
        slow = sum(question.answer is None for question in questions)
        if slow and until < began + ANSWER_SECONDS:
            on_slow(slow)
    return [question.end() for question in questions]


class _Question:
    """A request to a gateway. `answer` is None until the gateway has answered or has failed to."""

    def __init__(self, address: str, connection: socket.socket) -> None:
        self._no_answer = NoAnswer(f"{address}: the gateway does not answer")
        self._connection = connection
        self._data = bytearray()
        self.answer: dict[str, Any] | NoAnswer | None = None

    def read(self, until: float) -> None:
        """Read until that time or the end of the answer."""
        try:
            while self.answer is None:
                self._connection.settimeout(max(0.001, until - monotonic()))
                part = self._connection.recv(1 << 16)
                self._data += part
                if not part:
                    self.answer = json.loads(self._data)
                elif len(self._data) > LONGEST_ANSWER:
                    self.answer = self._no_answer
        except TimeoutError:
            pass
        except (OSError, ValueError):
            self.answer = self._no_answer

    def end(self) -> dict[str, Any] | NoAnswer:
        self._connection.close()
        return self._no_answer if self.answer is None else self.answer


def _question(address: str) -> Iterator[_Question]:
    """Yield a request to a gateway; nothing if the gateway has ended."""
    connection = socket.socket(socket.AF_UNIX)
    question = _Question(address, connection)
    try:
        connection.setblocking(False)
        folder, name = os.path.split(address)
        with SocketFolder(folder) as reached:
            connection.connect(reached.address(name))
    except (ConnectionRefusedError, FileNotFoundError):
        _remove(address)
        connection.close()
        return
    except OSError:  # its backlog is full
        question.answer = question.end()
    yield question


def _check(folder: str) -> None:
    facts = os.lstat(folder)
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.geteuid() or facts.st_mode & 0o022:
        raise PermissionError(1, "is not a folder that only this user may write to", folder)


def _remove(path: str) -> None:
    with suppress(OSError):
        os.unlink(path)
