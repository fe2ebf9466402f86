"""A server that runs as a child process with pipes: started, watched, ended.

It runs below a reaper like every program of `fastrpc.processes`: however this process ends, the program and
its children end too. Works on the running event loop only. Who reads and writes the pipes is a subclass's
business: `fastrpc.client.stdio` has them read by compiled code.
"""

from __future__ import annotations

import asyncio
import os
import time

from fastrpc.processes import _payload, close_watched, kill_unsupervised, reapers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

EOF_SECONDS = 1.0  # seconds that it may take to end after it has closed a pipe, on a busy machine too
LEAVE_SECONDS = 0.5  # seconds that it may take to end after its input was closed
GRACE_SECONDS = 0.2  # seconds between SIGTERM and SIGKILL
LAST_SECONDS = 0.3  # seconds to wait after SIGKILL
NOT_FOUND = 127  # the exit code of a shell for a command that does not exist
NO_PROGRAM = 126  # and for one that cannot be run
LOST = "its supervisor was killed"

# A reaper gives its program one pipe for both outputs, and passes a third descriptor: standard error is
# redirected to that one.
SHELL = ("/bin/sh", "-c", 'exec "$0" "$@" 2>&3 3>&-')


def not_found(started: tuple[str, str | None, Mapping[str, str] | None]) -> str:
    """Return that a command does not exist; "" for one that exists and has ended with that exit code."""
    from shutil import which

    command, cwd, env = started
    path = (os.environ if env is None else env).get("PATH")

    def exists(word: str) -> bool:
        if os.path.dirname(word):
            return os.path.exists(os.path.join(cwd or ".", word))
        return which(word, path=path) is not None

    if exists(command):
        return ""
    said = f"the command {command!r:.200} does not exist"
    first, *rest = _words(command) or [""]
    if rest and exists(first):
        said += f"; arguments belong in args: command {first!r:.80}, args {rest!r:.200}"
    elif first != command and exists(first):
        said += f"; without blanks and quotation marks around it: {first!r:.80}"
    return f"{said} (exit code {NOT_FOUND})"


def _words(command: str) -> list[str]:
    from shlex import split

    try:
        return split(" ".join(command.split()))
    except ValueError:  # a quotation mark without another
        return command.split()


def not_executable(started: tuple[str, str | None, Mapping[str, str] | None]) -> str:
    """Return why a command cannot be run; "" for one that can, and has ended with that exit code."""
    command, cwd, _ = started
    path = os.path.join(cwd or ".", command)
    if os.path.isdir(path):
        return f"the command {command!r:.200} is a folder (exit code {NO_PROGRAM})"
    if not os.path.exists(path) or os.access(path, os.X_OK):
        return ""
    return (
        f"the command {command!r:.200} is not executable: make it so (chmod +x), or name what runs it "
        f"(exit code {NO_PROGRAM})"
    )


class ServerProcess:
    """A running program, and our ends of its pipes: `input` to write to, `output` to read, both non-blocking;
    -1 once they are closed. `exit_code`: once it has ended, negative for a signal."""

    def __init__(
        self, command: Sequence[str], *, cwd: str | None, env: Mapping[str, str] | None, stderr: int = 2
    ) -> None:
        """Start the program. Raises `ProgramError`; a program that is not found ends at once with exit code
        127. `stderr`: the descriptor that is its standard error."""
        self.loop = asyncio.get_running_loop()
        self.pid = 0
        """The program's pid from the reaper's report of its start until it has ended; else 0."""
        self.exit_code: int | None = None
        self.gone: asyncio.Future[None] = self.loop.create_future()
        """Done when all processes have ended."""
        self._has_ended = False
        self._closed: set[str] = set()
        """Which of its pipes the program has closed."""
        self._began = time.monotonic()
        self._lost = False
        self._started = command[0], cwd, env
        payload, counts = _payload([*SHELL, *command], cwd, env)
        flags = reapers.HAS_STDIN | reapers.HAS_SCRIPT | reapers.TELL_START
        self.output, theirs_out = os.pipe()
        theirs_in, self.input = os.pipe()
        try:
            given = (theirs_out, theirs_in, stderr)
            self._reaper: reapers.Reaper | None = reapers.ask(flags, counts, payload, given)
        except BaseException:
            os.close(self.output)
            os.close(self.input)
            raise
        finally:
            os.close(theirs_out)
            os.close(theirs_in)
        self._reaper.watcher = self
        for descriptor in (self.output, self.input):
            os.set_blocking(descriptor, False)

    # --- for subclasses -------------------------------------------------------------------------------

    def read_rest(self) -> None:
        """Read what the program, which has ended, has left in its output."""
        raise NotImplementedError

    def ended(self, reason: str) -> None:
        """The program, or its output, has ended. Called once."""
        raise NotImplementedError

    def close_input(self) -> None:
        self.input = close_watched(self.loop, self.input)

    def close_output(self) -> None:
        self.output = close_watched(self.loop, self.output)

    def has_closed(self, pipe: str) -> None:
        """The program has closed "its input" or "its output": soon the exit code is known, or the program
        still runs, which nothing can use any more, and is ended."""
        if not self._closed:
            self.loop.call_later(EOF_SECONDS, self._end_without_pipes)
        self._closed.add(pipe)

    def _end_without_pipes(self) -> None:
        self.end(f"it closed {' and '.join(sorted(self._closed))} and still runs")

    # --- reports of the reaper ------------------------------------------------------------------------

    def on_report(self, report: bytes) -> None:
        kind, pid, code, flag = reapers.REPORT.unpack_from(report)[:4]
        if kind == reapers.STARTED:
            self.pid = pid
        elif kind == reapers.EXITED:
            self.pid = 0
            self.exit_code = code
            self.read_rest()
            if flag:  # no process is left
                self._all_ended()
            how = f"it was ended by signal {-code}" if code < 0 else f"it ended with exit code {code}"
            if code == NOT_FOUND:
                how = not_found(self._started) or how
            elif code == NO_PROGRAM:
                how = not_executable(self._started) or how
            self.end(LOST if self._lost else how)
        elif kind == reapers.LOST:
            self._lost = True  # `ended` is called when all processes have ended
            self.loop.call_later(LAST_SECONDS + GRACE_SECONDS, self.end, LOST)
        elif kind == reapers.GONE:
            self._all_ended()
            if self._lost:
                self.end(LOST)
        elif kind == reapers.FAILED:
            self._all_ended()
            self.end(f"it cannot be started: {os.strerror(code)}")

    def _all_ended(self) -> None:
        reaper, self._reaper = self._reaper, None
        if reaper is not None:
            reaper.release()
        if not self.gone.done():
            self.gone.set_result(None)

    def on_lost(self) -> None:
        """All supervisors were killed; the program was killed by the kernel, or is killed here."""
        self._reaper = None
        kill_unsupervised(self.pid, self.output, time.monotonic() - self._began)
        self._all_ended()
        self.end(LOST)

    def on_loop_closed(self) -> None:
        """The loop was closed, and the reaper ends."""
        self.close_input()
        self.close_output()

    # --- closing --------------------------------------------------------------------------------------

    def end(self, reason: str) -> None:
        """Close the pipes, call `ended`, and end the remaining processes."""
        self.close_input()
        self.close_output()
        if self._reaper is not None:
            self._reaper.wake_up()
            self._reaper.request(reapers.TERMINATE, grace_ms=int(GRACE_SECONDS * 1000))
        if not self._has_ended:
            self._has_ended = True
            self.ended(reason)

    async def terminate(self, grace_seconds: float) -> bool:
        """End the processes; return whether all have ended."""
        self.end("it was ended")
        await asyncio.wait({self.gone}, timeout=grace_seconds + LAST_SECONDS)
        return self.gone.done()

    async def leave(self, seconds: float = LEAVE_SECONDS) -> None:
        """Close the input, wait so long for the program to end, then end it."""
        self.close_input()
        if not self.gone.done():
            await asyncio.wait({self.gone}, timeout=seconds)
        await self.terminate(GRACE_SECONDS)
