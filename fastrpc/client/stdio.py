"""Runs a server as a child process and exchanges messages with it over pipes (MCP, stdio transport).

The compiled stream reads and writes the pipes. The process runs below a reaper (`fastrpc.processes`): however
this process ends, the server and its children end too. The server's standard error is forwarded to that of
this process, so many bytes a second; its last lines are included in the error that reports the server's exit.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from time import monotonic

from fastrpc import diagnostics
from fastrpc._core.client_stream import ClientStream
from fastrpc.client.transport import ConnectionTransport
from fastrpc.errors import ConnectionLost, FastrpcError, Reworded
from fastrpc.processes import close_watched, environment
from fastrpc.processes.server_process import NOT_FOUND, ServerProcess
from fastrpc.redaction import masked_output

LAST_WORDS = 4096
"""The most bytes of standard error that an error includes."""
LAST_LINES = 10
LAST_WORDS_BEGIN = "; its last output on standard error:"
"""Separates the reason and these lines in the message of an error."""
READ_SIZE = 16 * 1024
BURST = 1024 * 1024
"""The most bytes of standard error that are forwarded at once, after a pause."""
RATE = 64 * 1024
"""Bytes of it that are forwarded a second in the long run, so that no server fills our log."""
REST_READS = 64
"""So often what is left on standard error is read at the end: 1 MiB, which is all that a pipe holds."""
LOOK_SECONDS = 30.0
"""How often it is looked whether a server reads its input that is full; the first time is logged."""
STALLED_SECONDS = 600.0
"""A server that has read nothing of it for so long is ended: a call's time limit, unless another is set."""


class Stdio(ConnectionTransport):
    """The transport to a server that is started with `command`.

    `env`: variables to add to this process's environment, from which fastrpc's own secrets are removed.
    `stderr`: whether the server's standard error is forwarded to that of this process.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stderr: bool = True,
    ) -> None:
        self.shown = command[0]
        self._command = command
        self._cwd = cwd
        self._env = env
        self._shows_stderr = stderr
        self.process: HeardProcess | None = None
        """Once it has been started."""

    async def open(self, stream: ClientStream, on_lost: Callable[[ConnectionLost], object]) -> None:
        with Reworded(FastrpcError, ConnectionLost, f"{self.shown} cannot be started: "):
            self.process = HeardProcess(
                self._command,
                self._cwd,
                self.environment(),
                stream,
                lambda reason: on_lost(self._lost(reason)),
                shows_stderr=self._shows_stderr,
            )

    def _lost(self, reason: str) -> ConnectionLost:
        lines = self.last_lines
        shown = "".join(f"\n  {line}" for line in lines)
        return ConnectionLost(
            f"the connection to the server {self.shown} is lost: {reason}"
            f"{LAST_WORDS_BEGIN if shown else ''}{shown}",
            exit_code=self.exit_code,
            stderr="\n".join(lines),
        )

    @property
    def last_lines(self) -> list[str]:
        return [] if self.process is None else self.process.last_lines

    @property
    def exit_code(self) -> int | None:
        """The exit code of the server, after it has exited; negative for a signal."""
        return None if self.process is None else self.process.exit_code

    @property
    def pid(self) -> int:
        return 0 if self.process is None else self.process.pid

    def environment(self) -> dict[str, str]:
        """Return the environment of the server."""
        return environment(self._env)

    async def close(self) -> None:
        if self.process is not None:
            self.process.on_end = None
            await self.process.leave()


class ForwardedErrors:
    """Writes a server's standard error to ours, at most `BURST` bytes at once and `RATE` bytes a second; what
    goes beyond is left out, to the end of a line, and one record says so. `name`: the server's, there."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._allowed: float = BURST
        self._counted_at = monotonic()
        self._is_over = False
        self._is_in_line = False  # in the middle of one that is left out
        self._has_said_so = False

    def write(self, data: bytes) -> bool:
        """Write a piece, or leave it out; False if the reader of our standard error is gone."""
        now = monotonic()
        self._allowed = min(BURST, self._allowed + (now - self._counted_at) * RATE)
        self._counted_at = now
        if len(data) > self._allowed:
            return self._leave_out(data)
        if self._is_over:
            self._is_over = False
            data = data[data.find(b"\n") + 1 :] if self._is_in_line else data
        self._allowed -= len(data)
        return diagnostics.write_text(data.decode(errors="replace"))

    def _leave_out(self, data: bytes) -> bool:
        is_read = True
        if not self._is_over:
            self._is_over = True
            end = data[: data.find(b"\n") + 1] or b"\n"
            is_read = diagnostics.write_text(end.decode(errors="replace"))
        self._is_in_line = not data.endswith(b"\n")
        if not self._has_said_so:
            self._has_said_so = True
            words = f"writes more than {RATE:,} bytes a second to standard error: not all of it is shown"
            diagnostics.write("warning", f"the server {self._name} {words}")
        return is_read


class HeardProcess(ServerProcess):
    """A server process whose pipes are attached to a stream. Its standard error is read, forwarded if
    `shows_stderr`, and its end kept. `on_end` is called with the reason if it exits before `leave`."""

    def __init__(
        self,
        command: Sequence[str],
        cwd: str | None,
        env: Mapping[str, str] | None,
        stream: ClientStream,
        on_end: Callable[[str], object],
        *,
        name: str | None = None,
        shows_stderr: bool = True,
    ) -> None:
        """Start it. Raises ProgramError. `name`: in messages, by default the command."""
        self.name = name or command[0]
        self.on_end: Callable[[str], object] | None = on_end
        self._stream = stream
        self._look: asyncio.TimerHandle | None = None
        """Looks whether the server reads its input, while that is full."""
        self._shows_stderr = shows_stderr
        self._forwarding = ForwardedErrors(self.name)
        self._last_words = b""
        self._errors, theirs = os.pipe()
        os.set_blocking(self._errors, False)
        try:
            super().__init__(command, cwd=cwd, env=env, stderr=theirs)
        except BaseException:
            os.close(self._errors)
            raise
        finally:
            os.close(theirs)
        stream.on_end = self.has_closed
        stream.on_full = self._input_is_full
        stream.open(self.output, self.input, self._errors)
        self.loop.add_reader(self._errors, self._read_errors)

    def read_rest(self) -> None:
        self._stream.read_rest()
        self._read_rest_of_errors()

    def close_input(self) -> None:
        if self._look is not None:
            self._look.cancel()
            self._look = None
        if self.input >= 0:
            self._stream.detach_sink()
        super().close_input()

    def close_output(self) -> None:
        self._stream.detach()
        super().close_output()

    def _input_is_full(self) -> None:
        if self._look is None:
            self._look_later(0, self._stream.backlog[0])

    def _look_later(self, looks: int, sent: int) -> None:
        self._look = self.loop.call_later(LOOK_SECONDS, self._look_at_input, looks, sent)

    def _look_at_input(self, looks: int, sent: int) -> None:
        """Log that the server has not read for `LOOK_SECONDS`, and end it when that was often enough."""
        self._look = None
        sent_now, unsent = self._stream.backlog
        if not unsent:
            return
        looks = looks + 1 if sent_now == sent else 0
        seconds = looks * LOOK_SECONDS
        if seconds >= STALLED_SECONDS:
            self.end(f"it has not read its input for {seconds:g} s")
            return
        if looks == 1:
            words = f"has not read its input for {seconds:g} s: {unsent:,} bytes wait"
            diagnostics.write("warning", f"the server {self.name} {words}")
        self._look_later(looks, sent_now)

    def _read_errors(self) -> bool:
        """Read a piece of standard error, forward it, and keep the last bytes; return whether there may be
        more. The loop calls again for the next piece, after other work."""
        try:
            data = os.read(self._errors, READ_SIZE)
        except BlockingIOError:
            return False
        if not data:
            self._close_errors()
            return False
        self._last_words = (self._last_words + data)[-LAST_WORDS:]
        if self._shows_stderr and not self._forwarding.write(data):
            self._shows_stderr = False  # the reader of ours is gone
        return True

    def _read_rest_of_errors(self) -> None:
        """Read the present content of standard error, even if a remaining process still writes to it."""
        for _ in range(REST_READS):
            if self._errors < 0 or not self._read_errors():
                return

    def _close_errors(self) -> None:
        self._errors = close_watched(self.loop, self._errors)

    def ended(self, reason: str) -> None:
        self._read_rest_of_errors()
        self._close_errors()
        on_end, self.on_end = self.on_end, None
        if on_end is not None:
            on_end(reason)

    @property
    def last_lines(self) -> list[str]:
        """The last lines of its standard error, secrets masked; of a command that does not exist, none: what
        was to start it wrote them. A line that is cut is left out: its rest may be that of a secret."""
        if self.exit_code == NOT_FOUND:
            return []
        whole = self._last_words
        if len(whole) == LAST_WORDS and b"\n" in whole[:-1]:
            whole = whole[whole.index(b"\n") + 1 :]
        return masked_output(whole.decode(errors="replace")).splitlines()[-LAST_LINES:]

    def on_loop_closed(self) -> None:
        super().on_loop_closed()
        self._close_errors()

    async def leave(self, seconds: float = 2.0) -> None:
        await super().leave(seconds)
        await asyncio.sleep(0)
        self._close_errors()
