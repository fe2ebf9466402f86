"""A real fastrpc server as a process over real pipes, for tests: talk lines or bytes, within time limits.

    with serve("from fastrpc import Server\\n…") as server:
        server.initialize("2025-11-25")
        assert server.request("ping")["result"] == {}
        server.send(b'{"jsonrpc":')            # raw bytes, as they are
        answers = server.answers(3)
        server.close_stdin()
        assert server.wait() == 0

Nothing here waits longer than its `seconds`; what takes longer raises `TimedOut`, which shows the
server's stderr. While bytes are sent, what the server writes is taken in, so that two full pipes never
wait for each other; `send(…, reading=False)` leaves it in the pipe. Standard error goes to a file and is
there at any time as `server.stderr`. The process is killed at the end of the block, whatever happened.
Python's standard library only; nothing of fastrpc is imported.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

from support.protocol import SESSION_VERSIONS, envelope, tool_call
from support.waiting import SECONDS as SECONDS  # a bar on time is another test's business

STATELESS_META = envelope()


class TimedOut(AssertionError):
    """The server did not do in time what was waited for."""


def encode(message: Any) -> bytes:
    """Return one message as one line, newline included."""
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def decode(line: bytes) -> Any:
    """Read a line that a server wrote: strictly, since duplicates and NaN would be its fault."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        assert len(members) == len(pairs), f"a key stands twice in {line[:200]!r}"
        return members

    def refuse(name: str) -> NoReturn:
        raise AssertionError(f"{name} in {line[:200]!r}")

    return json.loads(line.decode("utf-8"), object_pairs_hook=unique, parse_constant=refuse)


class Process:
    """A server that runs. `stdin` and `stdout` are our ends of its pipes, None once closed."""

    watch: Callable[[], Any] | None = None
    """Called for each server of fastrpc's; what it returns sees all bytes, `sent` and `received`."""

    def __init__(self, process: subprocess.Popen[bytes], stderr_path: str) -> None:
        self.process = process
        self.stdin = process.stdin.fileno() if process.stdin else None
        self.stdout = process.stdout.fileno() if process.stdout else None
        self.stderr_path = stderr_path
        self.received = bytearray()  # read from the server, not yet handed out
        self.ended = False  # its stdout has reached the end
        self.last_id = 0
        self.watcher: Any = None
        for descriptor in (self.stdin, self.stdout):
            if descriptor is not None:
                os.set_blocking(descriptor, False)  # our ends only: each end of a pipe has its own flags

    # --- bytes ---

    def send(self, data: bytes, seconds: float = SECONDS, reading: bool = True) -> None:
        """Write all of `data` as it is."""
        deadline = time.monotonic() + seconds
        view = memoryview(data)
        while view:
            if self.stdin is None:
                raise AssertionError("standard input is closed")
            self._await("to take bytes", deadline, self.stdin, reading)
            with contextlib.suppress(BlockingIOError):
                written = os.write(self.stdin, view)
                if self.watcher is not None:
                    self.watcher.sent(bytes(view[:written]))
                view = view[written:]

    def receive(self, seconds: float = SECONDS) -> bytes:
        """Return the bytes that have arrived, at least one; b"" at the end of the stream."""
        deadline = time.monotonic() + seconds
        while not self.received and not self.ended:
            self._await("to write", deadline, None, True)
        data = bytes(self.received)
        self.received.clear()
        return data

    def line(self, seconds: float = SECONDS) -> bytes:
        """Return the next line without its newline."""
        deadline = time.monotonic() + seconds
        searched = 0
        while (end := self.received.find(b"\n", searched)) < 0:
            searched = len(self.received)
            if self.ended:
                raise AssertionError(f"stdout ended after {bytes(self.received)!r}{self._epilogue()}")
            self._await("to write a line", deadline, None, True)
        line = bytes(self.received[:end])
        del self.received[: end + 1]
        return line

    def rest(self, seconds: float = SECONDS) -> bytes:
        """Return everything up to the end of the server's stdout."""
        deadline = time.monotonic() + seconds
        while not self.ended:
            self._await("to close its stdout", deadline, None, True)
        data = bytes(self.received)
        self.received.clear()
        return data

    def _await(self, what: str, deadline: float, writing: int | None, reading: bool) -> None:
        """Wait until `writing` takes bytes or until some were read."""
        watched = select.poll()
        if writing is not None:
            watched.register(writing, select.POLLOUT)
        if reading and self.stdout is not None and not self.ended:
            watched.register(self.stdout, select.POLLIN)
        ready = watched.poll(max(0.0, deadline - time.monotonic()) * 1000)
        if not ready:
            raise TimedOut(
                f"waited for the server {what}; {len(self.received)} bytes at hand{self._epilogue()}"
            )
        if any(descriptor == self.stdout for descriptor, _ in ready):
            self._take_in()

    def _take_in(self) -> None:
        assert self.stdout is not None
        with contextlib.suppress(BlockingIOError):
            data = os.read(self.stdout, 1 << 20)
            self.received += data
            self.ended = not data
            if self.watcher is not None:
                self.watcher.received(data)

    # --- messages ---

    def send_message(self, *messages: Any) -> None:
        """Write messages as lines, all at once."""
        self.send(b"".join(map(encode, messages)))

    def answers(self, count: int, seconds: float = SECONDS) -> list[Any]:
        """Return the next `count` messages in the order in which they came."""
        deadline = time.monotonic() + seconds
        return [decode(self.line(deadline - time.monotonic())) for _ in range(count)]

    def answer(self, seconds: float = SECONDS) -> Any:
        """Return the next message."""
        return self.answers(1, seconds)[0]

    def ask(self, method: str, params: Any = None, request_id: Any = None) -> Any:
        """Send a request without waiting; return its id."""
        if request_id is None:
            self.last_id += 1
            request_id = self.last_id
        message = {"jsonrpc": "2.0", "id": request_id, "method": method}
        self.send_message(message if params is None else {**message, "params": params})
        return request_id

    def request(self, method: str, params: Any = None, seconds: float = SECONDS) -> Any:
        """Send a request and return its answer; notifications before it are passed over."""
        request_id = self.ask(method, params)
        deadline = time.monotonic() + seconds
        while True:
            message = self.answer(deadline - time.monotonic())
            if "method" not in message:
                assert message.get("id") == request_id, f"expected the answer to {request_id}, got {message}"
                return message

    def call(self, tool: str, seconds: float = SECONDS, **arguments: Any) -> Any:
        """Call a tool and return the result; an error is a failure."""
        message = self.request("tools/call", {"name": tool, "arguments": arguments}, seconds)
        assert "result" in message, message
        return message["result"]

    def notify(self, method: str, params: Any = None) -> None:
        message = {"jsonrpc": "2.0", "method": method}
        self.send_message(message if params is None else {**message, "params": params})

    def initialize(self, version: str = SESSION_VERSIONS[-1], **capabilities: Any) -> Any:
        """Do the handshake; return the result of `initialize`."""
        client = {"name": "test", "version": "1"}
        answer = self.request(
            "initialize", {"protocolVersion": version, "capabilities": capabilities, "clientInfo": client}
        )
        assert answer["result"]["protocolVersion"] == version, answer
        self.notify("notifications/initialized")
        return answer["result"]

    def assert_silent(self, seconds: float = 0.2) -> None:
        """Fail if the server writes anything within `seconds`."""
        try:
            data = self.receive(seconds)
        except TimedOut:
            return
        raise AssertionError(f"expected nothing, got {data!r}{self._epilogue()}")

    # --- the process ---

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def returncode(self) -> int | None:
        """The exit code; minus the signal's number if a signal ended it; None while it runs."""
        return self.process.poll()

    @property
    def stderr(self) -> str:
        with open(self.stderr_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def close_stdin(self) -> None:
        if self.process.stdin is not None:
            self.process.stdin.close()
        self.stdin = None

    def close_stdout(self) -> None:
        """Stop reading for good: the server's next write meets EPIPE."""
        if self.process.stdout is not None:
            self.process.stdout.close()
        self.stdout, self.ended = None, True

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        self.process.kill()

    def wait(self, seconds: float = SECONDS) -> int:
        """Take in what is still written until the process has ended; return its exit code."""
        deadline = time.monotonic() + seconds
        while self.process.poll() is None:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimedOut(f"the server still runs{self._epilogue()}")
            # Its end shows at its stdout at once, unless a child holds that open: look again soon.
            if (
                self.stdout is None
                or self.ended
                or not select.select([self.stdout], [], [], min(left, 0.01))[0]
            ):
                time.sleep(min(left, 0.002))
            else:
                self._take_in()
        return self.process.returncode

    def _epilogue(self) -> str:
        return f"\nexit code {self.process.poll()}, stderr:\n{self.stderr[-4000:]}"

    def _end(self) -> None:
        self.process.kill()
        self.process.wait()
        self.close_stdin()
        self.close_stdout()


@contextlib.contextmanager
def serve(
    target: str | None = None,
    *options: str,
    environment: Mapping[str, str | None] | None = None,
    command: Sequence[str] | None = None,
    folder: str | None = None,
    stdin: Any = subprocess.PIPE,
    stdout: Any = subprocess.PIPE,
    **popen: Any,
) -> Iterator[Process]:
    """Start ``python -m fastrpc serve [options] [target]``, yield it as a `Process`, kill it afterwards.

    `target` is a file's path, a module's name, or the source text of a server (anything with a newline
    in it), which is written to a separate file. `environment` adds variables (None takes one away),
    `command` replaces the whole command line, `folder` is the working folder, and `stdin` and `stdout`
    may be descriptors or files instead of pipes. Everything else goes to `subprocess.Popen`.
    """
    with tempfile.TemporaryDirectory(prefix="fastrpc-test-") as own:
        if target is not None and "\n" in target:
            target = write_source(own, target)
        if command is None:
            command = [
                sys.executable,
                "-m",
                "fastrpc",
                "serve",
                *options,
                *([] if target is None else [target]),
            ]
        variables: dict[str, str | None] = {**os.environ, **(environment or {})}
        stderr_path = os.path.join(own, "stderr")
        with open(stderr_path, "wb") as stderr:
            process = subprocess.Popen(
                command,
                bufsize=0,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                cwd=folder,
                env={name: value for name, value in variables.items() if value is not None},
                **popen,
            )
        server = Process(process, stderr_path)
        if Process.watch is not None and list(command[1:3]) == ["-m", "fastrpc"]:
            server.watcher = Process.watch()
        try:
            yield server
        finally:
            server._end()
            print(server.stderr, end="", file=sys.stderr)  # pytest shows it beside a failure


def no_frame_is_torn(server: Process, signal_number: int, count: int = 200) -> None:
    """Have so many long texts echoed while as many signals come: each answer is whole, and in its order."""
    text = "x" * 20_000
    lines = b"".join(encode(tool_call(id, "echo", text=text)) for id in range(count))
    sender = threading.Thread(target=server.send, args=(lines,), kwargs={"reading": False})
    sender.start()
    answers = []
    for _ in range(count):
        server.signal(signal_number)
        answers += server.answers(1)
    sender.join()
    assert [answer["id"] for answer in answers] == list(range(count))
    assert all(len(answer["result"]["content"][0]["text"]) == len(text) for answer in answers)


def write_source(folder: str, source: str) -> str:
    """Write the source of a server to a separate file; return its path."""
    path = os.path.join(folder, "server.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(source)
    return path
