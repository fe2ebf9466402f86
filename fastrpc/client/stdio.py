"""Runs a server as a child process and carries its messages over pipes (MCP, stdio transport).

The pipes are read and written by the compiled stream. The process runs below a reaper (`fastrpc.processes`):
however this process ends, the server and its children end too. What the server writes to its standard error
goes to ours, and its last lines into the error that tells of its end.
"""

from __future__ import annotations

import asyncio
import os

from fastrpc import diagnostics
from fastrpc.client.transport import Transport
from fastrpc.errors import ConnectionLost, FastrpcError
from fastrpc.processes import environment
from fastrpc.processes.server_process import ServerProcess
from fastrpc.redaction import masked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fastrpc._core.client_stream import ClientStream

LAST_WORDS = 4096
"""Bytes of its standard error that an error shows, at most."""
LAST_LINES = 10
LAST_WORDS_BEGIN = "; the last that it wrote to its standard error:"
"""Between an error's reason and these lines, in its message."""
READ_SIZE = 16 * 1024


class Stdio(Transport):
    """The transport to a server that is started with `command`.

    `env`: variables besides those of this process, without fastrpc's own secrets. `stderr`: whether what the
    server writes there goes to our standard error.
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
        self._process: _Process | None = None

    async def open(self, stream: ClientStream, on_lost: Callable[[ConnectionLost], object]) -> None:
        try:
            self._process = _Process(
                self._command,
                self._cwd,
                self.environment(),
                stream,
                on_lost,
                shows_stderr=self._shows_stderr,
            )
        except FastrpcError as error:
            raise ConnectionLost(f"{self.shown} cannot be started: {error}") from None

    @property
    def exit_code(self) -> int | None:
        """That of the server, once it has ended; negative for a signal."""
        return None if self._process is None else self._process.exit_code

    def environment(self) -> dict[str, str]:
        """Return all variables of the process."""
        return environment(self._env)

    async def close(self) -> None:
        if self._process is not None:
            self._process.on_end = None
            await self._process.leave()


class PipedProcess(ServerProcess):
    """A server that is a child process, its pipes attached to a stream. `on_end` is called with the reason if
    it ends by itself."""

    def __init__(
        self,
        command: Sequence[str],
        cwd: str | None,
        env: Mapping[str, str] | None,
        stream: ClientStream,
        on_end: Callable[[str], object],
        *,
        stderr: int = 2,
        errors: int = -1,
    ) -> None:
        """Start it. Raises ProgramError. `stderr`: the descriptor that is its standard error; `errors`: our
        end of that, if the loop reads it."""
        super().__init__(command, cwd=cwd, env=env, stderr=stderr)
        self.on_end: Callable[[str], object] | None = on_end
        self._stream = stream
        stream.on_end = self.output_ended
        stream.open(self.output, self.input, errors)

    def read_rest(self) -> None:
        self._stream.read_rest()

    def close_output(self) -> None:
        self._stream.detach()
        super().close_output()

    def ended(self, reason: str) -> None:
        on_end, self.on_end = self.on_end, None
        if on_end is not None:
            on_end(reason)


class _Process(PipedProcess):
    """The server, whose standard error is read here."""

    def __init__(
        self,
        command: Sequence[str],
        cwd: str | None,
        env: Mapping[str, str],
        stream: ClientStream,
        on_lost: Callable[[ConnectionLost], object],
        *,
        shows_stderr: bool,
    ) -> None:
        self._name = command[0]
        self._on_lost = on_lost
        self._shows_stderr = shows_stderr
        self._last_words = b""
        self._errors, theirs = os.pipe()
        os.set_blocking(self._errors, False)
        try:
            super().__init__(command, cwd, env, stream, self._tell_of_end, stderr=theirs, errors=self._errors)
        except BaseException:
            os.close(self._errors)
            raise
        finally:
            os.close(theirs)
        self.loop.add_reader(self._errors, self._read_errors)

    def read_rest(self) -> None:
        super().read_rest()
        self._read_errors()

    def _read_errors(self) -> None:
        """Read what the server has written to its standard error, keep the end of it, and pass it on."""
        while self._errors >= 0:
            try:
                data = os.read(self._errors, READ_SIZE)
            except BlockingIOError:
                return
            if not data:
                self._close_errors()
                return
            self._last_words = (self._last_words + data)[-LAST_WORDS:]
            if self._shows_stderr and not diagnostics.write_text(data.decode(errors="replace")):
                self._shows_stderr = False  # nobody reads ours

    def _close_errors(self) -> None:
        if self._errors >= 0:
            if not self.loop.is_closed():
                self.loop.remove_reader(self._errors)
            os.close(self._errors)
            self._errors = -1

    def ended(self, reason: str) -> None:
        self._read_errors()
        self._close_errors()
        super().ended(reason)

    def _tell_of_end(self, reason: str) -> None:
        lines = masked(self._last_words.decode(errors="replace")).splitlines()[-LAST_LINES:]
        shown = "".join(f"\n  {line}" for line in lines)
        words = f"{LAST_WORDS_BEGIN}{shown}" if shown else ""
        self._on_lost(
            ConnectionLost(
                f"the server {self._name} is gone: {reason}{words}",
                exit_code=self.exit_code,
                stderr="\n".join(lines),
            )
        )

    def on_loop_closed(self) -> None:
        super().on_loop_closed()
        self._close_errors()

    async def leave(self, seconds: float = 2.0) -> None:
        await super().leave(seconds)
        await asyncio.sleep(0)
        self._close_errors()
