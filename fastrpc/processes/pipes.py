"""A child process that exchanges lines over pipes: how a proxy runs its upstream server.

It runs below a reaper like every program of `fastrpc.processes`: however this process ends, the program and
its children end too. It shares this process's standard error. Works on the running event loop only. The
meaning of the lines is left to `fastrpc.proxy.upstream`.
"""

from __future__ import annotations

import asyncio
import os
import time

from fastrpc.processes import _payload, kill_unsupervised, reapers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

READ_SIZE = 64 * 1024
LONGEST_LINE = 64 * 1024 * 1024
"""Bytes; a program that writes a longer line is ended."""
EOF_SECONDS = 0.3  # seconds that it may take to end after its output has ended
LEAVE_SECONDS = 0.5  # seconds that it may take to end after its input was closed
GRACE_SECONDS = 0.2  # seconds between SIGTERM and SIGKILL
LAST_SECONDS = 0.3  # seconds to wait after SIGKILL
LOST = "its supervisor was killed"

# A reaper gives its program one pipe for both outputs, and passes a third descriptor: standard error is
# redirected to that one.
SHELL = ("/bin/sh", "-c", 'exec "$0" "$@" 2>&3 3>&-')


class Pipes:
    """A running program. `on_line` receives each line of its output; `on_end` is called once with the
    reason."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: str | None,
        env: Mapping[str, str] | None,
        on_line: Callable[[bytes], object],
        on_end: Callable[[str], object],
    ) -> None:
        """Start the program. Raises `ProgramError`; a program that is not found ends at once with exit code
        127."""
        self.loop = asyncio.get_running_loop()
        self.pid = 0
        """The program's pid while it runs, if the kernel does not end it with its reaper; else 0."""
        self.gone: asyncio.Future[None] = self.loop.create_future()
        """Done when all processes have ended."""
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
        """Send a line, including its newline. Does nothing if the program has ended."""
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
        """Read one chunk; the loop calls again for the next, after other work."""
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

    # --- reports of the reaper ------------------------------------------------------------------------

    def on_report(self, report: bytes) -> None:
        kind, pid, code, nobody = reapers.REPORT.unpack_from(report)[:4]
        if kind == reapers.STARTED:
            self.pid = pid
        elif kind == reapers.EXITED:
            self.pid = 0
            self._read_rest()
            if nobody:
                self._all_ended()
            how = f"it was ended by signal {-code}" if code < 0 else f"it ended with exit code {code}"
            self._end(LOST if self._lost else how)
        elif kind == reapers.LOST:
            self._lost = True  # on_end is called when all processes have ended
            self.loop.call_later(LAST_SECONDS + GRACE_SECONDS, self._end, LOST)
        elif kind == reapers.GONE:
            self._all_ended()
            if self._lost:
                self._end(LOST)
        elif kind == reapers.FAILED:
            self._all_ended()
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

    def _all_ended(self) -> None:
        reaper, self._reaper = self._reaper, None
        if reaper is not None:
            reaper.release()
        if not self.gone.done():
            self.gone.set_result(None)

    def on_lost(self) -> None:
        """All supervisors were killed; the program was killed by the kernel, or is killed here."""
        self._reaper = None
        kill_unsupervised(self.pid, self._output, time.monotonic() - self._began)
        self._all_ended()
        self._end(LOST)

    def on_loop_closed(self) -> None:
        """The loop was closed, and the reaper ends."""
        self._close_input()
        self._close_output()

    # --- closing --------------------------------------------------------------------------------------

    def _end(self, reason: str) -> None:
        """The output has ended: call `on_end`, and end the remaining processes."""
        self._close_input()
        self._close_output()
        on_end, self._on_end = self._on_end, None
        if self._reaper is not None:
            self._reaper.wake_up()
            self._reaper.request(reapers.TERMINATE, grace_ms=int(GRACE_SECONDS * 1000))
        if on_end is not None:
            on_end(reason)

    async def terminate(self, grace_seconds: float) -> bool:
        """End the processes; return whether all have ended."""
        self._end("it was ended")
        await asyncio.wait({self.gone}, timeout=grace_seconds + LAST_SECONDS)
        return self.gone.done()

    async def leave(self) -> None:
        """Close the input, wait half a second for the program to end, then end it."""
        self._close_input()
        if not self.gone.done():
            await asyncio.wait({self.gone}, timeout=LEAVE_SECONDS)
        await self.terminate(GRACE_SECONDS)
