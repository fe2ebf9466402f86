"""``fastrpc dev FILE``: serves a file while it is being edited.

The client's pipes stay open while server processes are replaced. When the file, or a module beside it,
changes, a new server is started and replaces the old one once it answers. If it does not answer (a syntax
error), it writes the reason to standard error and the old server continues. The client receives
``list_changed`` notifications; pending calls are answered with an error. Each message is shown on standard
error. One thread with one `poll` loop. `_dev_session` has the session's state, `_dev_wire` shows messages.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from shlex import quote
from typing import Any

from fastrpc.cli import parser
from fastrpc.cli._dev_session import ENDED, PROBE, RELOADED, DevSession, kinds_of, read
from fastrpc.cli._dev_wire import FROM_CLIENT, TO_CLIENT, show
from fastrpc.cli._own_server import own_command
from fastrpc.diagnostics import write_line
from fastrpc.errors import UsageError

EXAMPLES = """\
  fastrpc dev my_tools.py                                   what a client starts instead of serve
  claude mcp add mine -- fastrpc dev /path/to/my_tools.py   for example
  fastrpc dev --http 127.0.0.1:8000 my_tools.py             over HTTP, with a view of the calls
"""
CHECK_SECONDS = 0.3  # seconds between two checks of the files
START_SECONDS = 30.0  # seconds for a new server to answer
END_SECONDS = 10.0  # seconds for the last answers, once the client has closed its end and a server runs
LEAVE_SECONDS = 2.0  # seconds between the request to end and SIGKILL
LONG_ENOUGH_SECONDS = 1.0  # seconds; a server that ran longer is restarted when it ends by itself
READ_SIZE = 1 << 16
UNSENT_LIMIT = 1 << 20  # unsent bytes above which the other side is not read
FILE_LIMIT = 5000


def main(arguments: list[str]) -> int:
    """Serve until the client disconnects; return 0, or 1 if the file could never be served."""
    options = parser("dev", "[--http HOST:PORT] FILE", EXAMPLES)
    options.add_argument("file", metavar="FILE", help="file.py, or file.py:attribute")
    options.option("--http HOST:PORT", "serve over HTTP; a terminal shows the calls (extra view)")
    options.option("--plain", "with --http: print a line for each message instead of the view")
    chosen = options.parse(arguments)
    target = chosen.file
    path = target if os.path.isfile(target) else target.rpartition(":")[0]
    if not os.path.isfile(path):
        raise UsageError(f"{target}: no such file; dev takes file.py or file.py:attribute")
    if chosen.http is not None:
        from fastrpc.cli._dev_http import serve

        return serve(target, chosen.http, plain=chosen.plain)
    if chosen.plain:
        raise UsageError("--plain is for HTTP: give --http HOST:PORT too")
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _leave)
    return Supervisor(target, os.path.abspath(path)).serve()


def _leave(number: int, frame: object) -> None:
    raise SystemExit(128 + number)


class DevServer:
    """A server process, and the data on its way to and from it."""

    def __init__(self, target: str) -> None:
        # Without bytecode files, an edit that keeps a file's time and size is not missed. All servers of a
        # session use the same signing key, so each can read what another has signed.
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        environment.setdefault("FASTRPC_SECRET", _SECRET)
        self.began = time.monotonic()
        self.process = subprocess.Popen(
            own_command("serve", [target]), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.input = self.process.stdin.fileno()
        self.output = self.process.stdout.fileno()
        self.unsent = bytearray()
        self.received = bytearray()
        self.capabilities: dict[str, Any] = {}
        self.leaves_at = 0.0

    @property
    def age(self) -> float:
        return time.monotonic() - self.began

    def read(self) -> bool:
        """Read the available data; return False at the end of the output."""
        data = os.read(self.output, READ_SIZE)
        self.received += data
        return bool(data)

    def leave(self) -> None:
        """Ask the process to end; `gone` reports when it has ended."""
        self.close_input()
        if self.process.stdout is not None:
            self.process.stdout.close()
        if self.process.poll() is None:
            self.process.terminate()
        self.leaves_at = time.monotonic() + LEAVE_SECONDS

    def close_input(self) -> None:
        if self.process.stdin is not None:
            self.process.stdin.close()
        self.unsent.clear()

    def gone(self) -> bool:
        if self.process.poll() is not None:
            return True
        if time.monotonic() > self.leaves_at:
            self.process.kill()
        return False


_SECRET = os.urandom(32).hex()


class Supervisor:
    """Owns the client's pipes, and the server that is connected to them."""

    def __init__(self, target: str, path: str) -> None:
        self.target = target
        self.path = path
        self.session = DevSession()
        self.server: DevServer | None = None  # the current server
        self.candidate: DevServer | None = None  # the server that is starting
        self.leaving: list[DevServer] = []
        self.served = False
        self.client_is_there = True
        self.ends_at = 0.0
        self.from_client = bytearray()
        self.to_client = bytearray()
        self.deferred: list[bytes] = []  # lines received while there is no server
        self.files = files_beside(path)
        self.next_check_at = time.monotonic() + CHECK_SECONDS
        self.changed = ""

    def serve(self) -> int:
        """Forward messages until the client has disconnected and all requests are answered."""
        if os.isatty(0):
            write_line(
                f"fastrpc: serving {self.target} again at each change; waiting for an MCP client on stdin.\n"
                "To see and repeat calls at this terminal, serve over HTTP:\n"
                f"  fastrpc dev --http 127.0.0.1:8000 {quote(self.target)}"
            )
        try:
            self.start()
            while not self.over():
                self.step()
            return 0 if self.served else 1
        finally:
            self.stop()

    def over(self) -> bool:
        if self.client_is_there or self.to_client:
            return False
        if self.server is None:
            return self.candidate is None
        return time.monotonic() > self.ends_at

    def stop(self) -> None:
        for server in (self.server, self.candidate):
            if server is not None:
                self.dismiss(server)
        while not all(server.gone() for server in self.leaving):
            time.sleep(0.01)

    # --- event loop -----------------------------------------------------------------------------------

    def step(self) -> None:
        """Wait for the next event, at most until the next check of the files, and handle it."""
        ready = self.wait()
        if 1 in ready and not self.write(1, self.to_client):
            self.to_client.clear()
            self.client_left()
        if 0 in ready and self.client_is_there:
            self.read_client()
        for server in (self.server, self.candidate):
            if server is not None:
                self.serve_one(server, ready)
        if time.monotonic() >= self.next_check_at:
            self.check_files()

    def wait(self) -> set[int]:
        """Return the descriptors that are readable or writable."""
        watched = select.poll()
        if self.client_is_there and (self.server is None or len(self.server.unsent) < UNSENT_LIMIT):
            watched.register(0, select.POLLIN)
        if self.to_client:
            watched.register(1, select.POLLOUT)
        for server in (self.server, self.candidate):
            if server is not None:
                if len(self.to_client) < UNSENT_LIMIT:
                    watched.register(server.output, select.POLLIN)
                if server.unsent:
                    watched.register(server.input, select.POLLOUT)
        seconds = max(0.0, min(CHECK_SECONDS, self.next_check_at - time.monotonic()))
        return {descriptor for descriptor, _ in watched.poll(seconds * 1000 + 1)}

    def write(self, descriptor: int, data: bytearray) -> bool:
        """Write to a pipe what it accepts without blocking; return False if its reader has closed it."""
        try:
            del data[: os.write(descriptor, data[: select.PIPE_BUF])]
        except OSError:
            return False
        return True

    def serve_one(self, server: DevServer, ready: set[int]) -> None:
        """Transfer data to and from one server."""
        if server.input in ready and server.unsent and not self.write(server.input, server.unsent):
            server.unsent.clear()
        if not self.client_is_there and server is self.server and not server.unsent:
            server.close_input()
        if server.output not in ready:
            return
        goes_on = server.read()
        for line in taken_lines(server.received):
            if server is self.candidate:
                self.on_candidate_line(line)
            elif server is self.server:
                self.on_server_line(line)
        if not goes_on:
            self.on_end(server)

    # --- the client -----------------------------------------------------------------------------------

    def read_client(self) -> None:
        data = os.read(0, READ_SIZE)
        if not data:
            self.client_left()
            return
        self.from_client += data
        for line in taken_lines(self.from_client):
            if line.strip():
                self.on_client_line(line)

    def client_left(self) -> None:
        self.client_is_there = False
        self.ends_at = time.monotonic() + END_SECONDS
        if self.candidate is not None and self.server is not None:
            self.dismiss(self.candidate)
            self.candidate = None

    def on_client_line(self, line: bytes) -> None:
        show(FROM_CLIENT, read(line))
        if self.server is not None:
            self.forward(self.server, line)
        elif self.candidate is not None:
            self.deferred.append(line)
        else:
            self.on_line_without_server(line)

    def forward(self, server: DevServer, line: bytes) -> None:
        forwarded = self.session.from_client(line)
        if forwarded is not None:
            server.unsent += forwarded.rstrip(b"\n") + b"\n"

    def on_line_without_server(self, line: bytes) -> None:
        """Answer a line while no server runs or starts before the file changes; only a handshake can wait."""
        message = read(line)
        if isinstance(message, dict) and message.get("method") in ("initialize", "server/discover"):
            self.deferred.append(line)
            return
        self.session.from_client(line)
        self.send_to_client(
            self.session.give_up(f"{self.target} cannot be served as it is; see standard error")
        )

    def send_to_client(self, lines: list[bytes]) -> None:
        """Send the client messages that do not come from a server."""
        for line in lines:
            show(TO_CLIENT, read(line))
            self.to_client += line

    # --- the servers ----------------------------------------------------------------------------------

    def start(self) -> None:
        """Start a server, which becomes the current one once it answers."""
        if self.candidate is not None:
            self.dismiss(self.candidate)
        self.candidate = DevServer(self.target)
        self.candidate.unsent += self.session.probe()

    def on_candidate_line(self, line: bytes) -> None:
        message = read(line)
        if not isinstance(message, dict) or message.get("id") != PROBE or self.candidate is None:
            return
        candidate, self.candidate = self.candidate, None
        result = message.get("result")
        if isinstance(result, dict):
            candidate.capabilities = result.get("capabilities", {})
        self.promote(candidate)

    def promote(self, candidate: DevServer) -> None:
        """Replace the current server by one that has answered."""
        old, self.server, self.served = self.server, candidate, True
        if not self.client_is_there:  # the new server gets time for its answers
            self.ends_at = time.monotonic() + END_SECONDS
        kinds = kinds_of(candidate.capabilities)
        if old is not None:
            kinds |= kinds_of(old.capabilities)
            self.drain(old)
            self.dismiss(old)
            self.send_to_client(self.session.give_up(RELOADED))
        for line in self.session.replay():
            candidate.unsent += line
        if self.changed:
            write_line(f"-- {self.changed} changed; reloaded in {candidate.age * 1000:.0f} ms")
            self.send_to_client(self.session.changes(kinds))
            self.changed = ""
        deferred, self.deferred = self.deferred, []
        for line in deferred:
            self.forward(candidate, line)

    def drain(self, server: DevServer) -> None:
        """Forward what a server has already written."""
        readable = select.poll()
        readable.register(server.output, select.POLLIN)
        while readable.poll(0) and server.read():
            for line in taken_lines(server.received):
                self.on_server_line(line)

    def dismiss(self, server: DevServer) -> None:
        server.leave()
        self.leaving.append(server)

    def on_server_line(self, line: bytes) -> None:
        forwarded = self.session.from_server(line)
        if forwarded is None:
            return
        answered = self.session.answered
        given = () if answered is None else (answered.message, time.perf_counter() - answered.began)
        show(TO_CLIENT, read(forwarded), *given)
        self.to_client += forwarded.rstrip(b"\n") + b"\n"

    def on_end(self, server: DevServer) -> None:
        """Treat a server that has closed its output as ended."""
        self.dismiss(server)
        if server is self.candidate:
            self.candidate = None
            before = "the last version goes on" if self.server is not None else "waiting for a change"
            write_line(f"-- {self.target} cannot be served (see above); {before}")
            if self.server is None:
                deferred, self.deferred = self.deferred, []
                for line in deferred:
                    self.on_line_without_server(line)
            return
        self.server = None
        self.send_to_client(self.session.give_up(ENDED))
        if self.client_is_there:
            again = server.age >= LONG_ENOUGH_SECONDS
            write_line(f"-- the server has ended; {'starting another' if again else 'waiting for a change'}")
            if again and self.candidate is None:
                self.start()

    # --- the files ------------------------------------------------------------------------------------

    def check_files(self) -> None:
        """Check whether a file has changed, and whether ending servers have ended."""
        self.next_check_at = time.monotonic() + CHECK_SECONDS
        self.leaving = [server for server in self.leaving if not server.gone()]
        candidate = self.candidate
        if candidate is not None and candidate.age > START_SECONDS:
            write_line(f"-- {self.target} did not answer within {START_SECONDS:g} s")
            candidate.process.kill()
        if not self.client_is_there:
            return
        files = files_beside(self.path)
        if files != self.files:
            different = sorted({name for name, _ in set(files.items()) ^ set(self.files.items())})
            self.files = files
            self.changed = ", ".join(os.path.basename(name) for name in different[:3])
            self.start()


def taken_lines(data: bytearray) -> list[bytes]:
    """Remove the complete lines from a buffer and return them."""
    end = data.rfind(b"\n", max(0, len(data) - READ_SIZE))  # earlier bytes have been searched
    if end < 0:
        return []
    lines = bytes(data[:end]).split(b"\n")
    del data[: end + 1]
    return lines


def files_beside(path: str) -> dict[str, tuple[int, int]]:
    """Return time and size of a file, of the modules in its folder, and of the packages there."""
    found: dict[str, tuple[int, int]] = {}
    waiting = [os.path.dirname(path)]
    while waiting and len(found) < FILE_LIMIT:
        try:
            entries = list(os.scandir(waiting.pop()))
        except OSError:
            continue
        for entry in entries:
            try:
                if entry.name.endswith(".py") or entry.path == path:
                    facts = entry.stat()
                    found[entry.path] = facts.st_mtime_ns, facts.st_size
                elif entry.is_dir() and os.path.isfile(os.path.join(entry.path, "__init__.py")):
                    waiting.append(entry.path)
            except OSError:
                continue  # removed since it was listed
    return found
