"""``fastrpc dev FILE``: serves a file while it is being written.

The client's pipe stays while the servers behind it come and go: at a change of the file, or of a module
beside it, a new one is started, and takes over once it answers. One that does not (a syntax error) says why
on standard error, and the old one goes on. The client hears by ``list_changed`` that there is something new;
calls in flight are answered with an error. Standard error shows each message. One thread, one `poll` loop;
what a session is stands in `_dev_session`, how a message is shown in `_dev_wire`.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time

from fastrpc.cli import parser, say
from fastrpc.cli._client import server_command
from fastrpc.cli._dev_session import ENDED, PROBE, RELOADED, Session, kinds_of, read
from fastrpc.cli._dev_wire import FROM_CLIENT, TO_CLIENT, shown
from fastrpc.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

EXAMPLES = """\
  fastrpc dev my_tools.py                                   what a client starts instead of serve
  claude mcp add mine -- fastrpc dev /path/to/my_tools.py   for example
"""
LOOK_SECONDS = 0.3  # between two looks at the files
START_SECONDS = 30.0  # for a new server to answer
END_SECONDS = 10.0  # for the last answers, once the client has closed its end
LEAVE_SECONDS = 2.0  # between the request to end and the kill
LONG_ENOUGH_SECONDS = 1.0  # a server that lived longer is started again when it ends by itself
READ_SIZE = 1 << 16
UNSENT_LIMIT = 1 << 20  # bytes that may wait for a reader before the other side is read no further
FILE_LIMIT = 5000


def main(arguments: list[str]) -> int:
    """Serve until the client is gone; return 0, 1 if the file could not be served at all."""
    options = parser("dev", "FILE", EXAMPLES)
    options.add_argument("file", metavar="FILE", help="file.py, or file.py:attribute")
    target = options.parse(arguments).file
    path = target if os.path.isfile(target) else target.rpartition(":")[0]
    if not os.path.isfile(path):
        raise UsageError(f"{target}: no such file; dev takes file.py or file.py:attribute")
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _leave)
    return Supervisor(target, os.path.abspath(path)).serve()


def _leave(number: int, frame: object) -> None:
    raise SystemExit(128 + number)


class Server:
    """A server process and what is on its way to it and from it."""

    def __init__(self, target: str) -> None:
        # Without a written cache no edit can hide behind a file of the same second and size. The key is for
        # all servers of a session the same: what one has signed, the next can read.
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        environment.setdefault("FASTRPC_SECRET", _SECRET)
        self.began = time.monotonic()
        self.process = subprocess.Popen(
            server_command([target]), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
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
        """Take in what there is; False at the end."""
        data = os.read(self.output, READ_SIZE)
        self.received += data
        return bool(data)

    def leave(self) -> None:
        """Ask the process to end; `gone` says when it has."""
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
    """Keeps the client's pipe, and a server behind it."""

    def __init__(self, target: str, path: str) -> None:
        self.target = target
        self.path = path
        self.session = Session()
        self.server: Server | None = None  # the one that serves
        self.candidate: Server | None = None  # the one that is being started
        self.leaving: list[Server] = []
        self.served = False
        self.client_is_there = True
        self.ends_at = 0.0
        self.from_client = bytearray()
        self.to_client = bytearray()
        self.held: list[bytes] = []  # lines that came while there was no server
        self.files = files_beside(path)
        self.looks_at = time.monotonic() + LOOK_SECONDS
        self.changed = ""

    def serve(self) -> int:
        """Relay until the client is gone and all is answered."""
        if os.isatty(0):
            say(f"fastrpc: serving {self.target} again at each change; waiting for an MCP client on stdin")
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
                server.leave()
                self.leaving.append(server)
        while not all(server.gone() for server in self.leaving):
            time.sleep(0.01)

    # --- the loop -----------------------------------------------------------------------------------------

    def step(self) -> None:
        """Wait for what happens next, at most until the next look at the files, and deal with it."""
        ready = self.wait()
        if 1 in ready and not self.write(1, self.to_client):
            self.to_client.clear()
            self.client_left()
        if 0 in ready and self.client_is_there:
            self.read_client()
        for server in (self.server, self.candidate):
            if server is not None:
                self.serve_one(server, ready)
        if time.monotonic() >= self.looks_at:
            self.look()

    def wait(self) -> set[int]:
        """Return the descriptors that can be read or written without waiting."""
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
        seconds = max(0.0, min(LOOK_SECONDS, self.looks_at - time.monotonic()))
        return {descriptor for descriptor, _ in watched.poll(seconds * 1000 + 1)}

    def write(self, descriptor: int, data: bytearray) -> bool:
        """Write what a pipe that is ready takes without waiting; False if nobody reads it."""
        try:
            del data[: os.write(descriptor, data[: select.PIPE_BUF])]
        except OSError:
            return False
        return True

    def serve_one(self, server: Server, ready: set[int]) -> None:
        """Pass on what goes to a server and what comes from it."""
        if server.input in ready and server.unsent and not self.write(server.input, server.unsent):
            server.unsent.clear()
        if not self.client_is_there and server is self.server and not server.unsent:
            server.close_input()
        if server.output not in ready:
            return
        goes_on = server.read()
        for line in taken_lines(server.received):
            if server is self.candidate:
                self.candidate_says(line)
            elif server is self.server:
                self.server_says(line)
        if not goes_on:
            self.ended(server)

    # --- the client -----------------------------------------------------------------------------------

    def read_client(self) -> None:
        data = os.read(0, READ_SIZE)
        if not data:
            self.client_left()
            return
        self.from_client += data
        for line in taken_lines(self.from_client):
            if line.strip():
                self.client_says(line)

    def client_left(self) -> None:
        self.client_is_there = False
        self.ends_at = time.monotonic() + END_SECONDS
        if self.candidate is not None and self.server is not None:
            self.dismiss(self.candidate)
            self.candidate = None

    def client_says(self, line: bytes) -> None:
        say(shown(FROM_CLIENT, read(line)))
        if self.server is None and self.candidate is None:
            self.hold(line)
            return
        if self.server is None:
            self.held.append(line)
            return
        forwarded = self.session.from_client(line)
        if forwarded is not None:
            self.server.unsent += forwarded.rstrip(b"\n") + b"\n"

    def hold(self, line: bytes) -> None:
        """There is no server, and will be none before the file changes: only a handshake can wait."""
        message = read(line)
        if isinstance(message, dict) and message.get("method") in ("initialize", "server/discover"):
            self.held.append(line)
            return
        self.session.from_client(line)
        self.tell(self.session.give_up(f"{self.target} cannot be served as it is; see standard error"))

    def tell(self, lines: list[bytes]) -> None:
        """Send the client what does not come from a server."""
        for line in lines:
            say(shown(TO_CLIENT, read(line)))
            self.to_client += line

    # --- the servers ------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start a server, which takes over once it answers."""
        if self.candidate is not None:
            self.dismiss(self.candidate)
        self.candidate = Server(self.target)
        self.candidate.unsent += self.session.probe()

    def candidate_says(self, line: bytes) -> None:
        message = read(line)
        if not isinstance(message, dict) or message.get("id") != PROBE or self.candidate is None:
            return
        candidate, self.candidate = self.candidate, None
        result = message.get("result")
        if isinstance(result, dict):
            candidate.capabilities = result.get("capabilities", {})
        self.take_over(candidate)

    def take_over(self, candidate: Server) -> None:
        """Let a server that has shown that it serves take the place of the last one."""
        old, self.server, self.served = self.server, candidate, True
        kinds = kinds_of(candidate.capabilities)
        if old is not None:
            kinds |= kinds_of(old.capabilities)
            self.hear_out(old)
            self.dismiss(old)
            self.tell(self.session.give_up(RELOADED))
        for line in self.session.replay():
            candidate.unsent += line
        if self.changed:
            say(f"-- {self.changed} changed; reloaded in {candidate.age * 1000:.0f} ms")
            self.tell(self.session.changes(kinds))
            self.changed = ""
        held, self.held = self.held, []
        for line in held:
            forwarded = self.session.from_client(line)
            if forwarded is not None:
                candidate.unsent += forwarded.rstrip(b"\n") + b"\n"

    def hear_out(self, server: Server) -> None:
        """Pass on what a server has said already."""
        readable = select.poll()
        readable.register(server.output, select.POLLIN)
        while readable.poll(0) and server.read():
            for line in taken_lines(server.received):
                self.server_says(line)

    def dismiss(self, server: Server) -> None:
        server.leave()
        self.leaving.append(server)

    def server_says(self, line: bytes) -> None:
        forwarded = self.session.from_server(line)
        if forwarded is None:
            return
        asked = self.session.answered
        message = read(forwarded)
        if asked is None:
            say(shown(TO_CLIENT, message))
        else:
            say(shown(TO_CLIENT, message, asked.message, time.perf_counter() - asked.began))
        self.to_client += forwarded.rstrip(b"\n") + b"\n"

    def ended(self, server: Server) -> None:
        """A server has closed its output: it is over with it."""
        self.dismiss(server)
        if server is self.candidate:
            self.candidate = None
            before = "the last version goes on" if self.server is not None else "waiting for a change"
            say(f"-- {self.target} cannot be served, as said above; {before}")
            if self.server is None:
                held, self.held = self.held, []
                for line in held:
                    self.hold(line)
            return
        self.server = None
        self.tell(self.session.give_up(ENDED))
        if self.client_is_there:
            again = server.age >= LONG_ENOUGH_SECONDS
            say(f"-- the server has ended; {'starting another' if again else 'waiting for a change'}")
            if again and self.candidate is None:
                self.start()

    # --- the files ----------------------------------------------------------------------------------------

    def look(self) -> None:
        """See whether a file has changed, and whether those who leave have gone."""
        self.looks_at = time.monotonic() + LOOK_SECONDS
        self.leaving = [server for server in self.leaving if not server.gone()]
        candidate = self.candidate
        if candidate is not None and candidate.age > START_SECONDS:
            say(f"-- {self.target} did not answer within {START_SECONDS:g} s")
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
    """Take the whole lines out of what has come."""
    end = data.rfind(b"\n", max(0, len(data) - READ_SIZE))  # what came before has been searched
    if end < 0:
        return []
    lines = bytes(data[:end]).split(b"\n")
    del data[: end + 1]
    return lines


def files_beside(path: str) -> dict[str, tuple[int, int]]:
    """Return the time and size of a file, of the modules in its folder, and of the packages there."""
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
                continue  # gone since it was listed
    return found
