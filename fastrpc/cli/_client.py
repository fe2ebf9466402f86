"""A small stdio client: starts a server process and uses MCP over its pipes, with time limits.

For `call`, `demo` and `selftest`, which need a real session. One thread with one `select` loop: it reads
while it writes, so that two full pipes cannot block each other. Answers are parsed by the standard library's
json, so that fastrpc does not check itself. Not a general client: it knows one handshake (`initialize`), and
answers the server's requests only with `on_question`.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time

from fastrpc.errors import FastrpcError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType
    from typing import Any

    from fastrpc.settings import Setting

PROTOCOL = "2025-11-25"
START_SECONDS = 30.0
END_SECONDS = 10.0
READ_SIZE = 1 << 18


class ConversationFailed(FastrpcError):
    """The server ended, did not answer in time, or sent an invalid answer. `exit_code` is set if it ended."""

    exit_code: int | None = None


class Answer:
    """The answer to a request: `result` or `error` as received, and the time it took in seconds."""

    __slots__ = ("error", "result", "seconds")

    def __init__(self, message: dict[str, Any], seconds: float) -> None:
        self.result: dict[str, Any] = message.get("result") or {}
        self.error: dict[str, Any] | None = message.get("error")
        self.seconds = seconds

    @property
    def is_error(self) -> bool:
        return bool(self.result.get("isError"))

    @property
    def facts(self) -> dict[str, Any]:
        facts: dict[str, Any] = self.result.get("_meta", {}).get("fastrpc/facts", {})
        return facts

    def text(self) -> str:
        """Return the content as text; a block that is not text is named instead."""
        return "\n".join(_block_text(block) for block in self.result.get("content", ()))


def _block_text(block: dict[str, Any]) -> str:
    if block.get("type") == "text":
        return str(block.get("text", ""))
    size = len(block.get("data", ""))
    kind = block.get("mimeType", "")
    if not size:
        return json.dumps(block, ensure_ascii=False)
    return f"[{block.get('type')} {kind}, {size:,} characters of base64]"


# ``python -m`` would look for modules in the working directory first, which may be untrusted.
START = """\
import sys
sys.path[:] = filter(None, sys.path)
from fastrpc.__main__ import main
sys.exit(main())"""


def server_command(arguments: list[str]) -> list[str]:
    """Return the command line of ``fastrpc serve`` with this interpreter."""
    return [sys.executable, "-c", START, "serve", *arguments]


def sheltered_environment(
    names: Iterable[str], folder: str, settings: Iterable[Setting] = ()
) -> dict[str, str]:
    """Return this process's environment with all tools switched on and the state folder `folder`, for a
    session that is independent of the user's switches and state. `settings` are those of the toolset: flags
    that are on by default are set to on."""
    from fastrpc.settings import switch

    switches = {switch("TOOL_", name): "1" for name in names}
    for setting in settings:
        if setting.kind == "flag" and setting.default is True and not setting.name.endswith("*"):
            switches[setting.name] = "1"
    return {**os.environ, **switches, "TOOLS": "1", "FASTRPC_STATE_DIR": folder}


class Client:
    """A server process and the session with it. Use it in a ``with`` block, which ends both.

    `environment` replaces the process environment; `stderr` is a descriptor for the server's standard error
    (default: this process's own). `capabilities` are the client capabilities to declare.
    """

    def __init__(
        self,
        arguments: list[str],
        *,
        environment: dict[str, str] | None = None,
        stderr: int | None = None,
        capabilities: dict[str, Any] | None = None,
    ) -> None:
        self.capabilities = capabilities or {}
        self.started = time.perf_counter()
        self.process = subprocess.Popen(
            server_command(arguments),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env=environment,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.input = self.process.stdin.fileno()
        self.output = self.process.stdout.fileno()
        os.set_blocking(self.input, False)
        os.set_blocking(self.output, False)
        self.received = b""
        self.last_id = 0
        self.on_notification: Callable[[dict[str, Any]], None] | None = None
        self.on_question: Callable[[dict[str, Any]], dict[str, Any]] | None = None
        """Called with each request of the server; returns its result."""

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except ConversationFailed:
            if error is None:
                raise

    # --- the session ---

    def initialize(self) -> Answer:
        """Run the handshake; the time counts from the start of the process. Raises ConversationFailed."""
        from fastrpc.version import __version__

        params = {
            "protocolVersion": PROTOCOL,
            "capabilities": self.capabilities,
            "clientInfo": {"name": "fastrpc-cli", "version": __version__},
        }
        answer = self.request("initialize", params, START_SECONDS)
        if answer.error is not None:
            raise ConversationFailed(f"the server refused the handshake: {answer.error.get('message')}")
        answer.seconds = time.perf_counter() - self.started
        self.notify("notifications/initialized")
        return answer

    def list_tools(self) -> list[dict[str, Any]]:
        """Return the descriptors of all tools, from all pages. Raises ConversationFailed."""
        tools: list[dict[str, Any]] = []
        params: dict[str, Any] = {}
        while True:
            answer = self.request("tools/list", params, START_SECONDS)
            if answer.error is not None:
                raise ConversationFailed(f"tools/list: {answer.error.get('message')}")
            tools += answer.result["tools"]
            cursor = answer.result.get("nextCursor")
            if cursor is None:
                return tools
            params = {"cursor": cursor}

    def request(self, method: str, params: dict[str, Any] | None = None, limit: float = 60.0) -> Answer:
        """Send a request and return its answer, which may be an error. Raises ConversationFailed."""
        sent = time.perf_counter()
        return self.wait_for(self.begin(method, params), sent, limit)

    def begin(self, method: str, params: dict[str, Any] | None = None) -> int:
        """Send a request and return its id without waiting."""
        self.last_id += 1
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": self.last_id, "method": method}
        if params is not None:
            message["params"] = params
        self.send(encode(message))
        return self.last_id

    def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = params
        self.send(encode(message))

    def wait_for(self, request_id: int, sent: float, limit: float) -> Answer:
        """Wait for one answer; other messages go to `take`. Raises ConversationFailed."""
        deadline = time.monotonic() + limit
        while True:
            message = self._next_message(deadline)
            if message.get("id") == request_id and "method" not in message:
                return Answer(message, time.perf_counter() - sent)
            self.take(message)

    def listen(self, seconds: float) -> dict[str, Any]:
        """Wait for the next notification or request of the server, handle it, and return it. Raises
        ConversationFailed."""
        message = self._next_message(time.monotonic() + seconds)
        self.take(message)
        return message

    def take(self, message: dict[str, Any]) -> None:
        """Pass a notification to `on_notification` and a request to `on_question`. Raises ConversationFailed
        for any other message."""
        if "method" in message and "id" not in message:
            if self.on_notification is not None:
                self.on_notification(message)
        elif "method" in message and self.on_question is not None:
            answer = {"jsonrpc": "2.0", "id": message["id"], "result": self.on_question(message)}
            self.send(encode(answer))
        else:
            raise ConversationFailed(f"a message nobody asked for: {json.dumps(message)[:200]}")

    # --- bytes ---

    def send(self, data: bytes, limit: float = 60.0) -> None:
        self.exchange(data, 0, limit)

    def exchange(self, data: bytes, lines: int, limit: float = 60.0) -> list[bytes]:
        """Write `data` while reading, until all is written and `lines` more lines have arrived; return those
        lines. With 0 lines, what arrives is kept for later. Raises ConversationFailed."""
        deadline = time.monotonic() + limit
        view = memoryview(data)
        parts = [self.received]
        missing = lines - self.received.count(b"\n")
        while view or missing > 0:
            readable, writable = self._select(bool(view), deadline)
            if readable:
                part = self._read()
                missing -= part.count(b"\n")
                parts.append(part)
            if writable:
                view = view[self._write(view) :]
        *complete, rest = b"".join(parts).split(b"\n", lines)
        self.received = rest
        return complete

    def _next_message(self, deadline: float) -> dict[str, Any]:
        (line,) = self.exchange(b"", 1, deadline - time.monotonic())
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            raise ConversationFailed(f"the server wrote what is no message: {line[:200]!r}")
        return message

    def _select(self, writing: bool, deadline: float) -> tuple[bool, bool]:
        seconds = deadline - time.monotonic()
        readable, writable, _ = select.select(
            [self.output], [self.input] if writing else [], [], max(0.0, seconds)
        )
        if not readable and not writable:
            raise ConversationFailed("the server did not answer in time")
        return bool(readable), bool(writable)

    def _read(self) -> bytes:
        part = os.read(self.output, READ_SIZE)
        if not part:
            raise self._ended()
        return part

    def _write(self, view: memoryview) -> int:
        try:
            return os.write(self.input, view)
        except BlockingIOError:
            return 0
        except BrokenPipeError:
            raise self._ended() from None

    def _ended(self) -> ConversationFailed:
        try:
            code = self.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            return ConversationFailed("the server closed its output and still runs")
        how = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
        error = ConversationFailed(f"the server ended ({how})")
        error.exit_code = code
        return error

    # --- closing ---

    def close(self) -> int:
        """Close the server's input, wait until it ends, and return its exit code. A server that does not end
        is killed. Raises ConversationFailed in that case."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.close()
        except OSError:
            pass
        try:
            self._read_to_end(time.monotonic() + END_SECONDS)
            return self.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            raise ConversationFailed(f"the server did not end within {END_SECONDS:g} s") from None
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            self.process.stdout.close()

    def _read_to_end(self, deadline: float) -> None:
        """Read what the server still writes: it must not block on a full pipe while it ends."""
        if self.process.stdout is None or self.process.stdout.closed:
            return
        while (seconds := deadline - time.monotonic()) > 0:
            readable, _, _ = select.select([self.output], [], [], seconds)
            if not readable or not os.read(self.output, READ_SIZE):
                return


def encode(message: dict[str, Any]) -> bytes:
    """Return a message as one line."""
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
