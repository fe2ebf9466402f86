"""Runs programs for tools, with bounded output and time limits, and leaves no process behind.

        done = await processes.run(["git", "status"], timeout_ms=5000)
        done.exit_code, done.output.head

Between this process and each program runs a small C program, the reaper (`fastrpc/_core/reaper.c`). It ends
all descendants of the program however the call or the server ends; on Linux also children in other sessions.
A reaper whose program has left no process is reused. Starting a program costs about as much as posix_spawn.
Works on the running asyncio or uvloop loop, for coroutines only, not for threads. See docs/processes.md.
Shells and the text for users are left to the tools.
"""

from __future__ import annotations

import asyncio
import os
import signal as signals
import time

from fastrpc.processes import reapers
from fastrpc.processes.output import FILE_LIMIT, MEMORY_LIMIT, Output, OutputFile
from fastrpc.processes.reapers import ProgramError, ReaperLostError
from fastrpc.processes.variables import encoded, encoded_environment, environment, inherited

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = [
    "FILE_LIMIT",
    "MEMORY_LIMIT",
    "Child",
    "Output",
    "OutputFile",
    "Process",
    "ProgramError",
    "ReaperLostError",
    "close",
    "environment",
    "run",
    "start",
]

DRAIN_SECONDS = 0.1  # seconds that output is read after the program has ended
GRACE_SECONDS = 1.0  # seconds between SIGTERM and SIGKILL
STUBBORN_SECONDS = 2.0  # seconds after SIGKILL; a process that still runs is then reported
READ_SIZE = 64 * 1024
WATCH_SECONDS = 0.003  # seconds; before, output is read once, at the end; a shell takes 1.2 ms
DISCARD_PAUSE = 0.02  # seconds between two reads of output that is discarded
REQUEST_LIMIT = 16 * 1024 * 1024

ENDED_WITH_REAPER = (
    "The supervisor of this program was killed; the program was ended with it, and so was everything that it "
    "had started."
)
OUTLIVED_REAPER = (
    "The supervisor of this program was killed; the program was ended with it, but not everything that it "
    "had started could be ended."
)
NOT_SURE = (
    "All supervisors of this program were killed; what was found of its processes was ended, others may "
    "still run."
)


class Child:
    """A process that a program has left running."""

    def __init__(self, pid: int, name: str) -> None:
        self.pid = pid
        self.name = name

    def __repr__(self) -> str:
        return f"Child({self.pid}, {self.name!r})"


class Process:
    """A program that was started, and its state.

    `output` grows while it runs. `exit_code` and `signal` (such as ``"SIGKILL"``) are both None until it has
    ended; then exactly one of them is set, and `duration_seconds` is the time it ran.
    """

    def __init__(
        self,
        command: Sequence[str],
        cwd: str | None,
        output: Output,
        on_output: Callable[[bytes], object] | None,
        reaper: reapers.Reaper,
    ) -> None:
        self.command = command
        self.cwd = cwd
        self.pid = 0
        self.output = output
        self.exit_code: int | None = None
        self.signal: str | None = None
        self.duration_seconds = 0.0
        self.timed_out = False
        self.children_left = 0
        """The number of processes it left running, as last reported; 0 once all have ended."""
        self.children: list[Child] = []
        """The first 16 of them."""
        self.killed = False
        """Whether SIGKILL was needed."""
        self.error: ProgramError | None = None
        self.gone = False
        """Whether the program and all its descendants have ended. Also True when all supervisors were killed
        and no more can be known: `error` or `children_left` then says so."""
        self.began = time.monotonic()
        self._loop = reaper.loop
        self._reaper: reapers.Reaper | None = reaper
        self.on_output = on_output
        """Called with each chunk of output; may be replaced."""
        self.follow = False
        """Whether output of children is still read after the program has ended."""
        self._pipe = -1
        self._watched = False  # whether the loop reads the pipe
        self._sealed = False  # output is discarded from now on
        self._terminating = False
        self._unsupervised = False  # `gone` is not certain
        self._started: asyncio.Future[None] | None = None
        self._done = asyncio.Event()
        self._all_gone = asyncio.Event()
        self._listed: asyncio.Future[None] | None = None
        self._timers: list[asyncio.TimerHandle] = []

    # --- public ---------------------------------------------------------------------------------------

    @property
    def ended(self) -> bool:
        """Whether the program itself has ended."""
        return self.exit_code is not None or self.signal is not None

    async def wait(self) -> None:
        """Wait until the program has ended and its output is read: at most 0.1 s after its end, although
        children may keep the pipe open. If it is being terminated, until all processes have ended. Raises
        `ProgramError` if the program could not be started or its reaper was lost. The wait can be cancelled;
        the program goes on."""
        await self._done.wait()
        if self.error is not None:
            raise self.error

    async def wait_gone(self) -> None:
        """Wait until the program and all its descendants have ended and all output is read."""
        if not self.gone or self._pipe >= 0:
            await self._all_gone.wait()

    def terminate_soon(self, grace_seconds: float = GRACE_SECONDS) -> None:
        """Send SIGTERM to the program and all its descendants now, and SIGKILL after the grace period. A
        second call can shorten the grace period."""
        if self._reaper is None:
            return
        self._terminating = True
        self._reaper.wake_up()
        self._reaper.request(reapers.TERMINATE, grace_ms=int(grace_seconds * 1000))
        self._after(grace_seconds + STUBBORN_SECONDS, self._give_up)

    async def terminate(self, grace_seconds: float = GRACE_SECONDS) -> bool:
        """End the program and all its descendants; return whether all have ended. That is False only for
        processes that the system cannot end or this process may not signal, and if all supervisors were
        killed."""
        self.terminate_soon(grace_seconds)
        if not self.gone:
            waiting = asyncio.ensure_future(self.wait_gone())
            await asyncio.wait({waiting}, timeout=grace_seconds + STUBBORN_SECONDS)
            waiting.cancel()
        return self.gone and not self._unsupervised

    async def refresh_children(self) -> None:
        """Update `children_left` and `children` (which include the program while it runs)."""
        if self._reaper is None or self.gone:
            return
        if self._listed is None:
            self._listed = self._loop.create_future()
            self._reaper.request(reapers.LIST)
        await asyncio.wait({self._listed}, timeout=STUBBORN_SECONDS)

    # --- reports of the reaper ------------------------------------------------------------------------

    def on_report(self, report: bytes) -> None:
        """Handle a report of the reaper. For fastrpc itself."""
        kind, pid, code, flag, duration_us, killed, alive, listed, _ = reapers.REPORT.unpack_from(report)
        if kind == reapers.STARTED:
            self.pid = pid
            _resolve(self._started)
        elif kind == reapers.EXITED:
            self.pid = pid
            self.duration_seconds = duration_us / 1e6
            if code < 0:
                self.signal = _signal_name(-code)
            else:
                self.exit_code = code
            if flag:  # no process is left
                self._all_ended(killed)
            else:
                self._set_children(report, alive, listed)
            self._read_rest()
            self._watch_pipe()
            if not self._settle():
                self._after(DRAIN_SECONDS, self._drained)
        elif kind == reapers.GONE:
            self._all_ended(killed)
            self._settle()
            if not self.ended:  # its reaper was killed before it could report the end
                self._finish()
            elif self._pipe >= 0:  # another process keeps it open
                self._after(DRAIN_SECONDS, self._drained)
        elif kind == reapers.LOST:
            self._reaper_killed()
        elif kind == reapers.LISTED:
            self.pid = pid or self.pid
            self._set_children(report, alive, listed)
            _resolve(self._listed)
            self._listed = None
        elif kind == reapers.FAILED:
            what = f"The program {self.command[0]} cannot be started"
            if flag:
                what = f"The working directory {self.cwd or os.getcwd()} cannot be entered"
            self.error = ProgramError(f"{what}: {os.strerror(code)}.")
            self._all_ended(0)
            self._finish()

    def _set_children(self, report: bytes, alive: int, listed: int) -> None:
        self.children_left = alive
        names = [
            reapers.CHILD.unpack_from(report, reapers.REPORT.size + number * reapers.CHILD.size)
            for number in range(listed)
        ]
        self.children = [Child(pid, name.rstrip(b"\0").decode("utf-8", "replace")) for pid, name in names]

    def _all_ended(self, killed: int) -> None:
        self.gone = True
        self.killed = bool(killed)
        self.children_left, self.children = 0, []
        reaper, self._reaper = self._reaper, None
        if reaper is not None:
            reaper.release()
        _resolve(self._listed)

    def _reaper_killed(self) -> None:
        """The reaper or its guardian was killed. The other one ends all processes and reports when that is
        done; only then does this object report the end."""
        self._terminating = True
        if not self.ended:
            self.error = ReaperLostError(ENDED_WITH_REAPER)
        self._after(STUBBORN_SECONDS, self._kill_timed_out)

    def _kill_timed_out(self) -> None:
        """SIGKILL was sent to everything below a killed reaper, and some process still runs."""
        if not self.gone and self.error is not None:
            self.error = ReaperLostError(OUTLIVED_REAPER)
        self._give_up()

    def on_lost(self) -> None:
        """All supervisors are gone: the reaper and its guardian were killed together, or the reaper where
        there is no guardian. The processes that can still be found are killed here."""
        self._reaper = None
        known = 0 if self.ended else self.pid
        kill_unsupervised(known, self._pipe, time.monotonic() - self.began)
        left = self.children_left
        if not self.ended:
            self.error = ReaperLostError(NOT_SURE)
        self._all_ended(1)
        self._unsupervised = True
        self.children_left = left  # as last reported
        self._finish()

    def on_loop_closed(self) -> None:
        """Close the pipe, because the event loop was closed. For fastrpc itself."""
        self._close_pipe()

    # --- the end of the program and of its output -----------------------------------------------------

    def _settle(self) -> bool:
        """Finish once the program has ended and no more output can come. Return whether it has finished."""
        if self.ended and (self._pipe < 0 or self._sealed) and (self.gone or not self._terminating):
            self._finish()
        return self._done.is_set()

    def _drained(self) -> None:
        if self._terminating and not self.gone:
            return  # the remaining processes are being ended: wait for that
        self._read_rest()
        self._finish()

    def _give_up(self) -> None:
        """SIGKILL was sent, and some process still runs."""
        if not self.gone:
            self._finish()

    def _finish(self) -> None:
        self._sealed = self._sealed or not self.follow
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        if self.gone:
            self._read_rest()
            self._sealed = True
            self._close_pipe()
            self._all_gone.set()
        _resolve(self._started)
        self._done.set()

    def _after(self, seconds: float, function: Callable[[], object]) -> None:
        self._timers.append(self._loop.call_later(seconds, function))

    def _expire(self) -> None:
        if not self.ended:
            self.timed_out = True
            self.terminate_soon(GRACE_SECONDS)

    # --- output ---------------------------------------------------------------------------------------

    def _watch_pipe(self) -> None:
        if self._pipe >= 0 and not self._watched:
            self._watched = True
            self._loop.add_reader(self._pipe, self._readable)

    def _read_chunk(self) -> bytes | None:
        """Read a chunk, and store it unless output is discarded; None: there is none now, b"": none more."""
        try:
            data = os.read(self._pipe, READ_SIZE)
        except BlockingIOError:
            return None
        if not data:
            self._close_pipe()
        elif not self._sealed:
            self.output.feed(data)
            if self.on_output is not None:
                self.on_output(data)
        return data

    def _readable(self) -> None:
        """Read one chunk; the loop calls again for the next, after other work."""
        data = self._read_chunk()
        if data == b"":
            self._settle()
        elif data is not None and len(data) == READ_SIZE and self._sealed and self._pipe >= 0:
            # A process left behind must not block on a full pipe, but may be slowed down.
            self._loop.remove_reader(self._pipe)
            self._watched = False
            self._loop.call_later(DISCARD_PAUSE, self._watch_pipe)

    def _read_rest(self) -> None:
        """Read what the pipe holds now: at most its capacity, even if the other end goes on writing."""
        for _ in range(16):
            if self._pipe < 0 or self._sealed or not self._read_chunk():
                return

    def _close_pipe(self) -> None:
        self._pipe = close_watched(self._loop, self._pipe)


def close_watched(loop: asyncio.AbstractEventLoop, descriptor: int) -> int:
    """Close a descriptor that a loop may watch, unless it is -1; return -1."""
    if descriptor >= 0:
        if not loop.is_closed():
            loop.remove_reader(descriptor)
            loop.remove_writer(descriptor)
        os.close(descriptor)
    return -1


def _resolve(future: asyncio.Future[None] | None) -> None:
    if future is not None and not future.done():
        future.set_result(None)


def kill_unsupervised(group: int, pipe: int, age_seconds: float) -> None:
    """Send SIGKILL to what can be found of a program without supervisors: its process group (0: unknown), and
    the processes that write to the pipe (negative: closed) and were started since."""
    from fastrpc.processes import orphans

    try:
        if group:
            os.killpg(group, signals.SIGKILL)
    except OSError:
        pass
    if pipe >= 0:
        orphans.end_writers(pipe, age_seconds)


def _signal_name(number: int) -> str:
    try:
        return signals.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _payload(
    command: Sequence[str],
    cwd: str | None,
    env: Mapping[str, str] | None,
    changes: Mapping[str, str] | None = None,
) -> tuple[bytes, tuple[int, int]]:
    """Return working directory, arguments and environment in the reaper's format."""
    if not command:
        raise ProgramError("The command is empty; expected a program.")
    if cwd is None:
        try:
            folder = os.getcwd()
        except OSError:
            raise ProgramError("The working directory does not exist any more.") from None
    else:
        folder = os.path.abspath(cwd)
    variables, count = inherited(changes) if env is None else encoded_environment(env)
    payload = encoded([folder, *command]) + variables
    if len(payload) > REQUEST_LIMIT:
        raise ProgramError(
            f"Command and environment have {len(payload)} bytes; the limit is {REQUEST_LIMIT}."
        )
    return payload, (len(command), count)


async def start(
    command: Sequence[str],
    *,
    cwd: str | None = None,
    env: Mapping[str, str] | None = None,
    changes: Mapping[str, str] | None = None,
    stdin: bytes | None = None,
    script: bytes | None = None,
    timeout_ms: int | None = None,
    output: Output | None = None,
    on_output: Callable[[bytes], object] | None = None,
    confirmed: bool = True,
) -> Process:
    """Start a program, found along PATH, in its own session, and return when it runs.

    It inherits only descriptors 0 to 2: standard input is /dev/null or contains `stdin`; standard output and
    standard error go to `output` (by default a new `Output`), and each chunk also to `on_output`. `script` is
    readable as descriptor 3. `cwd` defaults to this process's own, `env` to `environment(changes)`. After
    `timeout_ms` the program and all its descendants are ended. Raises `ProgramError` if it cannot be started.
    With `confirmed=False` it returns sooner: `wait` then raises that error, and `pid` may still be 0.
    """
    payload, counts = _payload(command, cwd, env, changes)
    flags = reapers.TELL_START if confirmed else 0
    reaper, reading = _handed_over(payload, counts, stdin, script, flags)
    process = Process(command, cwd, Output() if output is None else output, on_output, reaper)
    reaper.watcher = process
    os.set_blocking(reading, False)  # this end of the pipe belongs to this process alone
    process._pipe = reading
    process._after(WATCH_SECONDS, process._watch_pipe)
    if timeout_ms is not None:
        process._after(timeout_ms / 1000, process._expire)
    if not confirmed:
        return process
    process._started = process._loop.create_future()
    try:
        await process._started
    except asyncio.CancelledError:
        process.terminate_soon()
        raise
    if process.error is not None:
        await process.wait()  # raises it, once all have ended
    return process


async def run(
    command: Sequence[str],
    *,
    cwd: str | None = None,
    env: Mapping[str, str] | None = None,
    changes: Mapping[str, str] | None = None,
    stdin: bytes | None = None,
    script: bytes | None = None,
    timeout_ms: int | None = None,
    output: Output | None = None,
    on_output: Callable[[bytes], object] | None = None,
) -> Process:
    """Run a program until it ends, and return it; for parameters and errors see `start`.

    Children that it leaves running continue, as `children_left` says, until they end or `close` ends them;
    after a timeout none is left. If the calling task is cancelled, the program and all its descendants
    receive SIGTERM at once and SIGKILL a second later, while the cancellation continues.
    """
    process = await start(
        command,
        cwd=cwd,
        env=env,
        changes=changes,
        stdin=stdin,
        script=script,
        timeout_ms=timeout_ms,
        output=output,
        on_output=on_output,
        confirmed=False,
    )
    try:
        await process.wait()
    except asyncio.CancelledError:
        process.terminate_soon()
        raise
    return process


def _handed_over(
    payload: bytes, counts: tuple[int, int], stdin: bytes | None, script: bytes | None, flags: int
) -> tuple[reapers.Reaper, int]:
    """Send a program to a reaper, which reports the outcome later. Return it, and the pipe of the output."""
    reading, writing = os.pipe()
    descriptors = [writing]
    try:
        if stdin is not None:
            descriptors.append(reapers.anonymous_file(stdin))
            flags |= reapers.HAS_STDIN
        if script is not None:
            descriptors.append(reapers.anonymous_file(script))
            flags |= reapers.HAS_SCRIPT
        return reapers.ask(flags, counts, payload, descriptors), reading
    except BaseException:
        os.close(reading)
        raise
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


async def close(grace_seconds: float = 0.3) -> None:
    """End all programs and reapers; for the end of the server, or of a test.

    If this is interrupted, or the process ends first, the reapers do the same by themselves.
    """
    loop = asyncio.get_running_loop()
    watchers = [reaper.watcher for reaper in reapers.busy if reaper.loop is loop]
    waiting = [asyncio.ensure_future(watcher.terminate(grace_seconds)) for watcher in watchers if watcher]
    if waiting:
        await asyncio.wait(waiting)
    await reapers.end_all()
