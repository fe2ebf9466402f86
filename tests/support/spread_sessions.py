"""Two hosts behind nginx, each a server with two workers, and clients whose requests are spread over both.

    with Spread(folder, url_of_the_store) as spread:
        spread.open_sessions(100)
        with spread.load() as load: ...
        load.check()

A host is a server on a port of loopback; both share a key and a database. Every session belongs to one client
over HTTP of 2025-11-25. Nothing is tried twice: an answer that is not right is a failure.
"""

from __future__ import annotations

import json
import os
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from support.http_client import Serving, Session, Stream, ask, request
from support.ports import free_port
from support.reverse_proxies import HOST, Front, reverse_proxy
from support.waiting import SECONDS, eventually

KEY = "a-key-that-all-the-servers-have-and-no-one-else"
NOTICE_SECONDS = 4.0
WORKERS = 2
UPDATED = "notifications/resources/updated"
TICKS = os.sysconf("SC_CLK_TCK")

TOOLS = """
import os
from fastrpc import Server

app = Server("spread")

@app.tool(run="inline")
def echo(text: str) -> str:
    return text

@app.tool(run="inline")
def who() -> str:
    return str(os.getpid())

@app.resource("docs://guide")
def guide() -> str:
    return "guide"

@app.tool(run="inline")
def change(revision: int) -> str:
    app.resource_updated("docs://guide", {"revision": revision})
    return "changed"
"""


class Spread:
    """The hosts and what is in front of them."""

    def __init__(self, folder: Path, store: str, hosts: int = 2, workers: int = WORKERS) -> None:
        self.sessions: list[Session] = []
        self._folder = folder
        self._workers = workers
        self._environment = {
            "FASTRPC_SHARED": store,
            "FASTRPC_SECRET": KEY,
            "FASTRPC_STATE_DIR": str(folder / "state"),
        }
        self._ports = [free_port() for _ in range(hosts)]
        self._stack = ExitStack()
        self.hosts: list[Serving] = []
        self.front: Front
        (folder / "tools.py").write_text(TOOLS)

    def __enter__(self) -> Spread:
        with ExitStack() as stack:
            self.hosts = [stack.enter_context(self._serve(port)) for port in self._ports]
            self.front = stack.enter_context(
                reverse_proxy("nginx", self._folder, *self._ports, deployed=True)
            )
            eventually(lambda: self.front.stateless_request("tools/list", {}).status == 200)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def _serve(self, port: int) -> Serving:
        options = (
            "--workers",
            str(self._workers),
            "--allow-host",
            HOST,
            "--notice-seconds",
            str(NOTICE_SECONDS),
        )
        place = f"127.0.0.1:{port}"
        return Serving(
            "serve", "tools.py", "--http", place, *options, folder=self._folder, **self._environment
        )

    def open_sessions(self, count: int) -> None:
        self.sessions += [self.front.session() for _ in range(count)]

    def restart(self) -> None:
        """End the hosts one after the other, each replaced at its port."""
        for number, port in enumerate(self._ports):
            self.hosts[number].kill()
            assert self.hosts[number].wait() == 0
            self.hosts[number] = self._stack.enter_context(self._serve(port))

    def processor_seconds(self) -> float:
        """Return what the hosts' processes have used."""
        from support.http_client import children

        used = 0
        for host in self.hosts:
            for pid in (host.pid, *children(host.pid)):
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                used += int(fields[11]) + int(fields[12])
        return used / TICKS

    def load(self, clients: int = 4, listeners: int = 0, updates_a_second: float = 0.0) -> Load:
        return Load(self, clients, listeners, updates_a_second)


class Listener:
    """A client that has subscribed, and listens again when its stream ends."""

    def __init__(self, front: Front, session: Session) -> None:
        self._front = front
        self._session = session
        self._ended = False
        self._last = ""
        self.heard: list[tuple[int, int]] = []
        """On which of its streams it heard of which revision; -1: it may have missed some."""
        self.streams = 0
        answer = session.send(request("resources/subscribe", {"uri": "docs://guide"}, 3))
        assert answer.json["result"] == {}, answer.body
        self._connection = front.connection()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        eventually(lambda: self.streams)

    def _run(self) -> None:
        while not self._ended:
            try:
                self._listen()
            except (OSError, AssertionError, ValueError, AttributeError):
                time.sleep(0.05)  # nginx has not noticed yet

    def _listen(self) -> None:
        self._connection = self._front.connection()
        self._connection.connect()
        socket_of = self._connection.sock
        assert isinstance(socket_of, socket.socket)
        socket_of.settimeout(None)
        headers = {"Last_Event_ID": self._last} if self._last else {}
        stream = Stream(
            self._front, "GET", "/mcp", None, self._connection, **headers, **self._session.headers()
        )
        self.streams += 1
        for line in stream.response:
            text = line.decode().rstrip("\r\n")
            if text.startswith("id: "):
                self._last = text[4:]
            elif text.startswith("data: {"):
                message = json.loads(text[6:])
                if message.get("method") == UPDATED:
                    self.heard.append((self.streams, message["params"].get("revision", -1)))

    def revisions(self) -> set[int]:
        return {revision for _, revision in self.heard}

    def close(self) -> None:
        self._ended = True
        sock = self._connection.sock
        if sock is not None:
            sock.close()


class Load:
    """Clients that call at random in random sessions, without a pause, inside a ``with`` block."""

    def __init__(self, spread: Spread, clients: int, listeners: int, updates_a_second: float) -> None:
        self.calls = 0
        self.failures: list[str] = []
        self.revisions: list[int] = []
        self.answered: Counter[str] = Counter()
        self.seconds = 0.0
        self.slowest = 0.0
        """Seconds of the longest call."""
        self.processor_seconds = 0.0
        self._spread = spread
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self.listeners = [Listener(spread.front, session) for session in spread.sessions[:listeners]]
        work: list[Callable[[], None]] = [self._keep_calling] * clients
        if updates_a_second:
            self._pause = 1 / updates_a_second
            work.append(self._keep_changing)
        self._threads = [threading.Thread(target=self._run, args=(each,)) for each in work]

    def __enter__(self) -> Load:
        self._begun = time.monotonic()
        self._used = self._spread.processor_seconds()
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(2 * SECONDS)
        self.seconds = time.monotonic() - self._begun
        self.processor_seconds = self._spread.processor_seconds() - self._used
        if exception == (None, None, None) and self.listeners and self.revisions:
            self._wait_for_listeners()
        for listener in self.listeners:
            listener.close()

    def _wait_for_listeners(self) -> None:
        """Give what was announced the time to arrive."""
        last = self.revisions[-1]
        try:
            eventually(lambda: all(last in each.revisions() for each in self.listeners))
        except AssertionError:
            pass  # `check` says so

    def _run(self, work: Callable[[], None]) -> None:
        while not self._stop.is_set():
            try:
                work()
            except Exception as error:
                self.failures.append(f"{work.__name__}: {error!r}")

    def _keep_calling(self) -> None:
        connection = self._spread.front.connection()
        try:
            while not self._stop.is_set():
                self._call(connection)
        finally:
            connection.close()

    def _call(self, connection: Any) -> None:
        """Send one request at random, and check its answer."""
        chance = random.random()
        session = random.choice(self._spread.sessions)
        text = f"{chance} of {session.id[:8]}"
        if chance < 0.8:
            found = self._ask(
                connection, session, "tools/call", {"name": "echo", "arguments": {"text": text}}
            )
            assert found["content"] == [{"type": "text", "text": text}], found
        elif chance < 0.9:
            found = self._ask(connection, session, "tools/list", {})
            assert [tool["name"] for tool in found["tools"]] == ["echo", "who", "change"], found
        else:
            found = self._ask(connection, session, "tools/call", {"name": "who", "arguments": {}})
            with self._lock:
                self.answered[found["content"][0]["text"]] += 1
        with self._lock:
            self.calls += 1

    def _ask(self, connection: Any, session: Session, method: str, params: Any) -> Any:
        headers = self._spread.front.headers(**session.headers())
        began = time.monotonic()
        answer = ask(connection, "POST", "/mcp", request(method, params, 9), headers)
        self.slowest = max(self.slowest, time.monotonic() - began)
        assert answer.status == 200, (answer.status, answer.body)
        assert answer.json["id"] == 9, answer.body
        return answer.json["result"]

    def _keep_changing(self) -> None:
        connection = self._spread.front.connection()
        try:
            while not self._stop.is_set():
                revision = len(self.revisions)
                session = random.choice(self._spread.sessions)
                arguments = {"name": "change", "arguments": {"revision": revision}}
                found = self._ask(connection, session, "tools/call", arguments)
                assert found["content"] == [{"type": "text", "text": "changed"}], found
                self.revisions.append(revision)
                time.sleep(self._pause)
        finally:
            connection.close()

    # --- what must hold -----------------------------------------------------------------------------------

    def check(self, *, restarted: bool = False, store_away: bool = False) -> None:
        """Raise AssertionError unless all answers were right, and every listener has heard once of every
        update; if the hosts were restarted, or their store was away, of every one or that it may have missed
        some. A listener that has moved to another host may hear there of an update of which it has heard
        before, but on no stream twice."""
        assert self.failures == [], (self.failures, self._spread.front.log())
        assert self.calls > 0
        for listener in self.listeners:
            heard = Counter(each for each in listener.heard if each[1] >= 0)
            assert not heard or max(heard.values()) == 1, heard
            missing = {*self.revisions} - listener.revisions()
            if not restarted:
                assert listener.streams == 1
            if not restarted and not store_away:
                assert not missing, (
                    f"{len(missing)} of {len(self.revisions)} not heard: {sorted(missing)[:9]}"
                )
                assert len(listener.heard) <= len(self.revisions) + 1  # it has subscribed at the other host
                continue
            assert listener.streams > 1 or not restarted
            if missing:
                after = [heard for heard in listener.heard if heard[1] == -1 or heard[1] > max(missing)]
                assert after, f"{len(missing)} updates were missed, and nothing said so"

    @property
    def rate(self) -> float:
        """Calls a second."""
        return self.calls / self.seconds

    @property
    def cost(self) -> float:
        """Seconds of processors that the hosts used for a call, if none was restarted."""
        return self.processor_seconds / self.calls

    def __str__(self) -> str:
        heard = sum(len(each.heard) for each in self.listeners)
        return (
            f"{self.calls} calls in {self.seconds:.1f} s ({self.rate:.0f} a second, answered by "
            f"{len(self.answered)} processes); {len(self.revisions)} updates, heard {heard} times by "
            f"{len(self.listeners)} listeners; {len(self.failures)} failures; the longest call "
            f"{self.slowest:.2f} s"
        )
