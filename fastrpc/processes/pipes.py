"""A program with pipes both ways, spoken to line by line: how a proxy keeps the server behind it.

It stands below a reaper like every program of `fastrpc.processes`: however this process ends, it and its
children end too. Its standard error is this process's own. Works on the running event loop and only
there. What the lines mean is left to `fastrpc.proxy.peer`.
"""

from __future__ import annotations

import asyncio
import os
import time

from fastrpc.processes import _payload, end_unwatched, reapers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

READ_SIZE = 64 * 1024
LONGEST_LINE = 64 * 1024 * 1024
"""A program that writes more without a newline is ended."""
EOF_SECONDS = 0.3  # between the end of its output and the assumption that it does not end by itself
LEAVE_SECONDS = 0.5  # how long it may take to end once its input has
GRACE_SECONDS = 0.2  # between SIGTERM and SIGKILL
LAST_SECONDS = 0.3  # how long the end of SIGKILL is awaited
LOST = "its supervisor was killed"

# A reaper gives its program one pipe for both outputs, and lets it have a third descriptor: that is where
# standard error goes instead.
SHELL = ("/bin/sh", "-c", 'exec "$0" "$@" 2>&3 3>&-')


class Pipes:
    """A program that runs. `on_line` gets each line of its output, `on_end`, once, why there is no more."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: str | None,
        env: Mapping[str, str] | None,
        on_line: Callable[[bytes], object],
        on_end: Callable[[str], object],
    ) -> None:
        """Start it. Raises `ProgramError`; a program that is not found ends at once with exit code 127."""
        self.loop = asyncio.get_running_loop()
        self.pid = 0
        """As long as it runs, where the kernel does not end it with its reaper; else 0."""
        self.gone: asyncio.Future[None] = self.loop.create_future()
        """Done when nobody is left."""
        self._on_line = on_line
        self._on_end: Callable[[str], object] | None = on_end
        self._unread = bytearray()
        self._searched = 0
        self._unsent = bytearray()
        self._began = time.monotonic()
        self._lost = False
        payload, counts = _payload([*SHELL, *command], cwd, env)
        flags = reapers.HAS_STDIN | reapers.HAS_SCRIPT
        self._output, theirs_out = os.pipe()
        theirs_in, self._input = os.pipe()
        try:
            given = (theirs_out, theirs_in, 2)
            self._reaper: reapers.Reaper | None = reapers.ask(flags, counts, payload, given)
        except BaseException:
            os.close(self._output)
            os.close(self._input)
            raise
        finally:
            os.close(theirs_out)
            os.close(theirs_in)
        self._reaper.watcher = self
        for descriptor in (self._output, self._input):
            os.set_blocking(descriptor, False)
        self.loop.add_reader(self._output, self._readable)

    # --- writing --------------------------------------------------------------------------------------

    def write(self, line: bytes) -> None:
        """Send a line, its newline included; in vain if the program is gone."""
        if self._input < 0:
            return
        waiting = bool(self._unsent)
        self._unsent += line
        if not waiting:
            self._flush()

    def _flush(self) -> None:
        try:
            while self._unsent:
                del self._unsent[: os.write(self._input, self._unsent)]
        except BlockingIOError:
            self.loop.add_writer(self._input, self._writable)
        except OSError:
            self._close_input()

    def _writable(self) -> None:
        self.loop.remove_writer(self._input)
        self._flush()

    def _close_input(self) -> None:
        if self._input >= 0:
            if not self.loop.is_closed():
                self.loop.remove_writer(self._input)
            os.close(self._input)
            self._input = -1
            self._unsent.clear()

    # --- reading --------------------------------------------------------------------------------------

    def _readable(self) -> None:
        """Take in one piece; the loop comes back for the next, after everybody else."""
        try:
            data = os.read(self._output, READ_SIZE)
        except BlockingIOError:
            return
        if not data:
            self._close_output()
            self.loop.call_later(EOF_SECONDS, self._end, "it has closed its output")
            return
        self._take(data)

    def _take(self, data: bytes) -> None:
        self._unread += data
        start = 0
        while (end := self._unread.find(b"\n", self._searched)) >= 0:
            line = bytes(self._unread[start:end])
            start = self._searched = end + 1
            if line.strip():
                self._on_line(line)
        del self._unread[:start]
        self._searched = len(self._unread)
        if self._searched > LONGEST_LINE:
            self._end(f"it has written a line of more than {LONGEST_LINE} bytes")

    def _close_output(self) -> None:
        if self._output >= 0:
            if not self.loop.is_closed():
                self.loop.remove_reader(self._output)
            os.close(self._output)
            self._output = -1

    # --- what the reaper says -------------------------------------------------------------------------

    def heard(self, report: bytes) -> None:
        kind, pid, code, nobody = reapers.REPORT.unpack_from(report)[:4]
        if kind == reapers.STARTED:
            self.pid = pid
        elif kind == reapers.EXITED:
            self.pid = 0
            self._read_rest()
            if nobody:
                self._nobody_left()
            how = f"it was ended by signal {-code}" if code < 0 else f"it ended with exit code {code}"
            self._end(LOST if self._lost else how)
        elif kind == reapers.LOST:
            self._lost = True  # the end of all is awaited before it is said
            self.loop.call_later(LAST_SECONDS + GRACE_SECONDS, self._end, LOST)
        elif kind == reapers.GONE:
            self._nobody_left()
            if self._lost:
                self._end(LOST)
        elif kind == reapers.FAILED:
            self._nobody_left()
            self._end(f"it cannot be started: {os.strerror(code)}")

    def _read_rest(self) -> None:
        for _ in range(64):
            if self._output < 0:
                return
            try:
                data = os.read(self._output, READ_SIZE)
            except BlockingIOError:
                return
            if not data:
                return
            self._take(data)

    def _nobody_left(self) -> None:
        reaper, self._reaper = self._reaper, None
        if reaper is not None:
            reaper.release()
        if not self.gone.done():
            self.gone.set_result(None)

    def lost(self) -> None:
        """All that watched over it were killed, and the program with them, here if not by the kernel."""
        self._reaper = None
        end_unwatched(self.pid, self._output, time.monotonic() - self._began)
        self._nobody_left()
        self._end(LOST)

    def abandoned(self) -> None:
        """The loop is gone, the reaper goes."""
        self._close_input()
        self._close_output()

    # --- the end --------------------------------------------------------------------------------------

    def _end(self, reason: str) -> None:
        """There will be no more lines: say so, and end the processes that are left."""
        self._close_input()
        self._close_output()
        on_end, self._on_end = self._on_end, None
        if self._reaper is not None:
            self._reaper.wake_up()
            self._reaper.request(reapers.TERMINATE, grace_ms=int(GRACE_SECONDS * 1000))
        if on_end is not None:
            on_end(reason)

    async def terminate(self, grace_seconds: float) -> bool:
        """End it now; return whether nobody is left."""
        self._end("it was ended")
        await asyncio.wait({self.gone}, timeout=grace_seconds + LAST_SECONDS)
        return self.gone.done()

    async def leave(self) -> None:
        """Let it end by itself, for half a second; then end it."""
        self._close_input()
        if not self.gone.done():
            await asyncio.wait({self.gone}, timeout=LEAVE_SECONDS)
        await self.terminate(GRACE_SECONDS)
