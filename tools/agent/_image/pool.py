"""The processes that decode images for ReadImage: two at a time, reused for half a minute, never trusted.

Each runs `image_worker` below a reaper of `fastrpc.processes`, so that it ends however the call or the server
ends. It receives an open descriptor through a Unix socket and sends back a few facts and at most `limit`
bytes, which this module validates. A process that refuses a file, breaks, or takes too long is ended; the
next file gets a fresh one.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
import sys

from fastrpc import ToolError, processes

from ..._process_limits import environment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fastrpc.processes import Process

WORKERS = 2
IDLE_SECONDS = 30.0
START_SECONDS = 20.0
EXIT_SECONDS = 5.0  # for a worker to end after it has closed its socket
TEXT_LIMIT = 200
OUTPUT_LIMIT = 16 * 1024  # of the output of libraries; only a failed start shows it

ORDER = struct.Struct("=QQIII")  # as in image_worker
ANSWER = struct.Struct("=BII")
DONE, UNKNOWN, BROKEN, TOO_LARGE, NO_MEMORY = 1, 2, 3, 4, 5
SLOW, CRASHED = 6, 7  # outcomes that no worker reports

PIXELS = 100  # megapixels, the most that are decoded
ABSTRACT = sys.platform == "linux"  # sockets with a name outside of the file system
INSTALL = "ReadImage needs Pillow; install it with: pip install 'fastrpc-mcp[tools]'"

# The worker may import from two folders beside the standard library, and only while it starts.
BOOTSTRAP = "import sys; sys.path += sys.argv[3:]; import image_worker; image_worker.main()"


class Picture:
    """An image to be sent, and the facts of the original."""

    __slots__ = (
        "data", "form", "frames", "height", "original_form", "original_height", "original_width", "passed",
        "turn", "width",
    )  # fmt: skip

    def __init__(self, facts: bytes, data: bytes) -> None:
        """Parse a worker's facts. Raises ValueError."""
        original, *numbers, form, width, height, passed = facts.decode("ascii").split(" ")
        if original not in MIME_OF or form not in SENT or not data:
            raise ValueError(original)
        self.original_form = original
        self.original_width, self.original_height, self.frames, self.turn = map(int, numbers)
        self.form = form
        self.width, self.height = int(width), int(height)
        self.passed = passed == "1"
        self.data = data


MIME_OF = {
    "PNG": "image/png",
    "JPEG": "image/jpeg",
    "GIF": "image/gif",
    "WEBP": "image/webp",
    "BMP": "image/bmp",
    "TIFF": "image/tiff",
    "ICO": "image/x-icon",
    "PPM": "image/x-portable-anymap",
}
SENT = ("PNG", "JPEG", "GIF", "WEBP")


class Refused(Exception):
    """A file is not shown: `kind` says why, the text is the worker's detail."""

    def __init__(self, kind: int, text: str = "") -> None:
        super().__init__(text)
        self.kind = kind


class Worker:
    """One process, and the socket to it."""

    def __init__(self, process: Process, channel: socket.socket) -> None:
        self.process = process
        self.channel = channel
        self.timer: asyncio.TimerHandle | None = None

    def end(self) -> None:
        """End it now, whatever it is doing."""
        if self.timer is not None:
            self.timer.cancel()
        self.channel.close()
        self.process.terminate_soon(0.0)

    def waits(self) -> bool:
        """Whether it waits for a file. One that has died has closed the socket, even if the loop has not been
        notified yet. If its reaper has died, the notice may never come."""
        if self.process.ended or self.process.gone:
            return False
        try:
            self.channel.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            pass
        return False

    async def examine(self, descriptor: int, order: bytes, limit: int) -> Picture:
        """Send it a file to decode. Raises Refused."""
        loop = asyncio.get_running_loop()
        try:
            socket.send_fds(self.channel, [order], [descriptor])
            kind, text_size, size = ANSWER.unpack(await self._receive(loop, ANSWER.size))
            if text_size > TEXT_LIMIT or size > limit:
                raise ValueError(size)
            text = await self._receive(loop, text_size)
            if kind != DONE:
                raise Refused(kind, _readable(text))
            return Picture(text, await self._receive(loop, size))
        except (ValueError, struct.error):
            raise Refused(CRASHED, "nonsense") from None
        except (OSError, EOFError):
            raise await self._post_mortem() from None

    async def _post_mortem(self) -> Refused:
        """Return the reason for which the worker has closed its socket."""
        try:
            await asyncio.wait_for(self.process.wait(), EXIT_SECONDS)
        except (ToolError, asyncio.TimeoutError):
            pass
        if self.process.signal == "SIGXCPU":
            return Refused(SLOW)
        code = self.process.exit_code
        return Refused(CRASHED, self.process.signal or ("nonsense" if code is None else f"exit code {code}"))

    async def _receive(self, loop: asyncio.AbstractEventLoop, size: int) -> bytes:
        received = bytearray()
        while len(received) < size:
            piece = await loop.sock_recv(self.channel, min(size - len(received), 1 << 18))
            if not piece:
                raise EOFError
            received += piece
        return bytes(received)


class Pool:
    """The workers of one event loop."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.free = asyncio.Semaphore(WORKERS)
        self.idle: list[Worker] = []

    async def examine(
        self, descriptor: int, size: int, *, limit: int, edge: int, seconds: int, memory: int
    ) -> Picture:
        """Decode a file in an idle worker or a new one; a third call at a time waits for its turn."""
        order = ORDER.pack(size, limit, edge, PIXELS, seconds)
        async with self.free:
            worker = self._take() or await _start(memory)
            try:
                # The worker limits processor time; this is for one that blocks or was stopped.
                picture = await asyncio.wait_for(worker.examine(descriptor, order, limit), seconds * 2)
            except asyncio.TimeoutError:
                worker.end()
                raise Refused(SLOW) from None
            except BaseException:
                worker.end()
                raise
            self._put_back(worker)
            return picture

    def _take(self) -> Worker | None:
        while self.idle:
            worker = self.idle.pop()
            if worker.timer is not None:
                worker.timer.cancel()
            if worker.waits():
                return worker
            worker.end()
        return None

    def _put_back(self, worker: Worker) -> None:
        self.idle.append(worker)
        worker.timer = self.loop.call_later(IDLE_SECONDS, self._retire, worker)

    def _retire(self, worker: Worker) -> None:
        if worker in self.idle:
            self.idle.remove(worker)
            worker.end()


_pool: Pool | None = None


def pool() -> Pool:
    """Return the pool of the running loop."""
    global _pool
    if _pool is None or _pool.loop is not asyncio.get_running_loop():
        for worker in _pool.idle if _pool is not None else ():
            worker.channel.close()  # its loop is closed
        _pool = Pool()
    return _pool


async def _start(memory: int) -> Worker:
    """Start a worker and wait until it has connected. Raises ToolError."""
    import importlib.util

    pillow = importlib.util.find_spec("PIL")
    if pillow is None or not pillow.submodule_search_locations:
        raise ToolError(INSTALL)
    packages = os.path.dirname(next(iter(pillow.submodule_search_locations)))
    here = os.path.dirname(os.path.abspath(__file__))
    folders = [packages, here, os.path.dirname(os.path.dirname(here))]
    listener, address, forget = _listen()
    try:
        process = await processes.start(
            [sys.executable, "-I", "-S", "-c", BOOTSTRAP, address.hex(), str(memory), *folders],
            cwd="/",
            output=processes.Output(OUTPUT_LIMIT),
            env=environment(),
        )
        try:
            return Worker(process, await asyncio.wait_for(_called_by(process, listener), START_SECONDS))
        except BaseException as error:
            process.terminate_soon(0.0)
            if isinstance(error, asyncio.TimeoutError):
                raise ToolError("The process that reads images did not start in time.") from None
            raise
    finally:
        listener.close()
        forget()


async def _called_by(process: Process, listener: socket.socket) -> socket.socket:
    """Return the socket on which the worker, and no other process, has connected."""
    loop = asyncio.get_running_loop()
    ending = asyncio.ensure_future(process.wait())
    calling = asyncio.ensure_future(_accept(loop, listener, process.pid))
    try:
        await asyncio.wait({ending, calling}, return_when=asyncio.FIRST_COMPLETED)
        if calling.done():
            return calling.result()
        said = process.output.head.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise ToolError(f"The process that reads images cannot be started: {said:.300}")
    finally:
        ending.cancel()
        calling.cancel()


def _listen() -> tuple[socket.socket, bytes, Callable[[], None]]:
    """Return a socket to which one worker may connect, its address, and a function that removes the
    address."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.setblocking(False)
    if ABSTRACT:
        listener.bind("")  # the system chooses a name
        listener.listen(1)
        return listener, listener.getsockname(), lambda: None
    import tempfile

    folder = tempfile.mkdtemp(prefix="fastrpc-")  # private to this user
    path = os.path.join(folder, "s")
    listener.bind(path)
    listener.listen(1)

    def forget() -> None:
        os.unlink(path)
        os.rmdir(folder)

    return listener, os.fsencode(path), forget


async def _accept(loop: asyncio.AbstractEventLoop, listener: socket.socket, pid: int) -> socket.socket:
    while True:
        channel, _ = await loop.sock_accept(listener)
        channel.setblocking(False)
        if not ABSTRACT or _caller(channel) == pid:
            return channel
        channel.close()  # any process on the machine can connect to an abstract name


def _caller(channel: socket.socket) -> int:
    """Return the process id of the peer (Linux: SO_PEERCRED)."""
    credentials = channel.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    return int(struct.unpack("=iII", credentials)[0])


def _readable(text: bytes) -> str:
    return "".join(c for c in text.decode("ascii", "replace") if c.isprintable())
