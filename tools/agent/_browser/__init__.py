"""The headless browser of the tools: started at the first use, kept running between uses, ended when idle.

It runs in a separate process (`worker`), below a reaper, and so ends with the server, however the server
ends. This module starts it, forwards requests to it and bounds them; it does not import playwright. At most
four pages load at a time; more wait. The first use takes about a second, later ones only what the page takes.
The next use after a browser has died starts a new one. Calls that may reach everything and calls that may not
(`_reach`) use separate browsers. The browser of the latter connects through an egress proxy and keeps its
sandbox.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time

from fastrpc import ToolError, processes
from fastrpc.unix_sockets import SocketFolder

from ..._reach import Reach
from .. import _settings
from .._stderr import write_line
from . import wire
from .folder import Folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

EVERYTHING = Reach()
WORKER = f"{__package__}.worker"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MAC = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
START_SECONDS = 30.0
RETRY_SECONDS = 30.0  # after a failed start, no other is tried for so long
PAGES_AT_ONCE = 4
LATE_SECONDS = 8.0  # a request must be over so long after its own limit
PAGE_BYTES = 20 * 1024**2
SVG_BYTES = 10 * 1024**2
SVG_SECONDS = 20.0
SANDBOX_HINT = "; only FASTRPC_BROWSER_SANDBOX=0 lets others use a browser without it"
NOT_FOR_THE_BROWSER = ("DEBUG", "PWDEBUG", "NODE_OPTIONS", "DISPLAY", "WAYLAND_DISPLAY")


class NoBrowser(Exception):
    """The browser is missing or does not start; the text says why."""


class KilledAtStart(NoBrowser):
    """Something killed its process while it started, or the reaper of it; another one may start."""


class Broken(Exception):
    """The browser no longer works; another one may."""


class Browser:
    """One browser's process, and its open requests."""

    def __init__(self, executable: str, reach: Reach) -> None:
        self.loop = asyncio.get_running_loop()
        self.executable = executable
        self.reach = reach
        self.ended = False
        self._slots = asyncio.Semaphore(PAGES_AT_ONCE)
        self._users = 0
        self._idle: asyncio.TimerHandle | None = None
        self._answers: dict[int, asyncio.Future[tuple[dict[str, Any], bytes]]] = {}
        self._last_id = 0
        self._transport: asyncio.WriteTransport | None = None
        self._process: processes.Process | None = None
        self._folder: Folder | None = None
        self._seeing_out: asyncio.Future[None] | None = None  # the loop itself holds tasks only weakly
        self._connected: asyncio.Future[None] = self.loop.create_future()
        self.started: asyncio.Future[None] = asyncio.ensure_future(self._start())
        self.started.add_done_callback(self._after_start)

    # --- its lifetime -------------------------------------------------------------------------------------

    async def _start(self) -> None:
        _check_playwright()
        try:
            self._folder = folder = Folder()
            with SocketFolder(folder.path) as place:
                listener = await self.loop.create_unix_server(lambda: _Wire(self), place.address("s"))
        except OSError as error:
            raise NoBrowser(f"no folder for it can be made: {error.strerror or error}") from None
        try:
            self._process = await processes.start(
                [sys.executable, "-m", WORKER],
                cwd=folder.path,
                env=_environment(folder.path),
                output=processes.Output(64 * 1024),
            )
            self._process.follow = True
            self._seeing_out = asyncio.ensure_future(self._see_out(self._process, folder))
            await asyncio.wait({self._connected}, timeout=START_SECONDS)
        except processes.ReaperLostError as error:
            raise KilledAtStart(str(error).rstrip(".")) from None
        except processes.ProgramError as error:
            raise NoBrowser(str(error).rstrip(".")) from None
        finally:
            listener.close()
        if not self._connected.done() or self.ended:
            await self._check_not_killed()
            raise NoBrowser(f"its process did not start{self._last_words()}")
        sandbox = _sandbox(self.reach)
        head = {
            "do": "start",
            "executable": self.executable,
            "sandbox": sandbox,
            "networks": self.reach.networks,
        }
        try:
            answer, _ = await self._request(head, b"", 2 * START_SECONDS)
        except (ToolError, Broken):
            await self._check_not_killed()
            raise NoBrowser(f"it ended while it started{self._last_words()}") from None
        if "failed" in answer:
            needed = sandbox == "must" and "sandbox" in answer["failed"].lower()
            hint = SANDBOX_HINT if needed and self.reach.others else ""
            raise NoBrowser(f"{self.executable} does not start: {answer['failed']}{hint}")
        if not answer["sandbox"]:
            _warn_once(f"the browser runs without its sandbox: {answer['why']}")

    async def _check_not_killed(self) -> None:
        """Raise KilledAtStart if the process has ended and did not do so by itself."""
        if self._process is None or not self.ended:
            return
        try:
            await self._process.wait()
        except processes.ReaperLostError as error:
            raise KilledAtStart(str(error).rstrip(".")) from None
        if self._process.signal is not None:
            raise KilledAtStart(f"its process was ended by {self._process.signal}")

    def _after_start(self, started: asyncio.Future[None]) -> None:
        if started.cancelled() or started.exception() is not None:
            self.end()

    def _last_words(self) -> str:
        if self._process is None:
            return ""
        lines = self._process.output.head.decode("utf-8", "replace").strip().splitlines()
        return f": {lines[-1][:300]}" if lines else ""

    async def _see_out(self, process: processes.Process, folder: Folder) -> None:
        """Clean up after the process has ended, for whatever reason."""
        try:
            await process.wait()
        except processes.ProgramError:
            pass
        self.end()
        await process.wait_gone()
        folder.remove()

    def end(self) -> None:
        """End it. Pending requests fail with an error that says so."""
        self.ended = True
        if self._idle is not None:
            self._idle.cancel()
        if self._transport is not None:
            self._transport.close()
        if self._process is None:
            if self._folder is not None:
                self._folder.remove()
        else:
            self._process.terminate_soon(0.3)
        if not self._connected.done():
            self._connected.set_result(None)
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(ToolError("The browser ended while it read the page."))

    # --- its socket ---------------------------------------------------------------------------------------

    def connected(self, transport: asyncio.WriteTransport) -> None:
        if self._transport is not None or self.ended:
            transport.close()
            return
        self._transport = transport
        self._connected.set_result(None)

    def lost(self, transport: asyncio.WriteTransport) -> None:
        if transport is self._transport:
            self.end()

    def on_message(self, head: dict[str, Any], body: bytes) -> None:
        answer = self._answers.get(head.pop("id"))
        if answer is not None and not answer.done():
            answer.set_result((head, body))

    def _send(self, head: dict[str, Any], body: bytes = b"") -> None:
        assert self._transport is not None
        self._transport.write(wire.encode(head, body))

    async def _request(
        self, head: dict[str, Any], body: bytes, seconds: float
    ) -> tuple[dict[str, Any], bytes]:
        """Send a request and return its answer. If the answer does not come in time, the whole browser is
        ended."""
        self._last_id += 1
        id = self._last_id
        answer = self._answers[id] = self.loop.create_future()
        try:
            if self.ended:
                raise Broken("it ended before the request")
            self._send({**head, "id": id}, body)
            await asyncio.wait({answer}, timeout=seconds)
            if not answer.done():
                self.end()
            result: tuple[dict[str, Any], bytes] = answer.result()
            return result
        except asyncio.CancelledError:
            if not self.ended:
                self._send({"do": "cancel", "id": id})
            raise
        finally:
            del self._answers[id]

    async def ask(self, head: dict[str, Any], body: bytes, deadline: float) -> tuple[dict[str, Any], bytes]:
        """Send the browser a request, with a `deadline` (of `time.monotonic`). Raises ToolError, Broken."""
        self._users += 1
        if self._idle is not None:
            self._idle.cancel()
        try:
            await self._a_slot(deadline)
            try:
                seconds = max(1.0, deadline - time.monotonic())
                answer, data = await self._request({**head, "seconds": seconds}, body, seconds + LATE_SECONDS)
            finally:
                self._slots.release()
        finally:
            self._users -= 1
            if not self._users and not self.ended:
                idle = _settings.BROWSER_IDLE_SECONDS.read()
                self._idle = self.loop.call_later(idle, self.end)
        if "refused" in answer:
            raise ToolError(answer["refused"])
        if "failed" in answer:
            self.end()
            raise Broken(answer["failed"])
        return answer, data

    async def _a_slot(self, deadline: float) -> None:
        waiting = asyncio.ensure_future(self._slots.acquire())
        try:
            await asyncio.wait({waiting}, timeout=max(0.0, deadline - time.monotonic()))
            if not waiting.done():
                raise ToolError(f"{PAGES_AT_ONCE} pages are being read already; none ended in time.")
        except BaseException:
            if waiting.done() and not waiting.cancelled():
                self._slots.release()
            waiting.cancel()
            raise


class _Wire(asyncio.Protocol):
    """Passes the data of the socket to its browser."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._frames = wire.Reader()
        self._transport: Any = None  # uvloop's are no asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._browser.connected(self._transport)

    def data_received(self, data: bytes) -> None:
        for head, body in self._frames.feed(data):
            self._browser.on_message(head, body)

    def connection_lost(self, error: Exception | None) -> None:
        self._browser.lost(self._transport)


_browsers: dict[Reach, Browser] = {}
_refusal: tuple[float, str, str] = (0.0, "", "")  # until when, for which setting, why
_warned = False


def find() -> str:
    """Return the browser's path. Raises NoBrowser."""
    import shutil

    chosen: str = _settings.BROWSER.read()
    if chosen:
        found = shutil.which(chosen)
        if found is None:
            raise NoBrowser(f"FASTRPC_BROWSER names {chosen}, which is not a program")
        return os.path.abspath(found)
    for name in (*NAMES, MAC) if sys.platform == "darwin" else NAMES:
        found = shutil.which(name)
        if found is not None:
            return os.path.abspath(found)
    raise NoBrowser("no Chromium or Chrome is installed, and FASTRPC_BROWSER names none")


def _check_playwright() -> None:
    from importlib.util import find_spec

    if find_spec("playwright") is None:
        raise NoBrowser('playwright is not installed: pip install "fastrpc-mcp[tools]"')


def _sandbox(reach: Reach) -> str:
    """Return ``on`` (which falls back where the system refuses the sandbox), ``must`` or ``off``.

    Where other people choose the pages, only the setting can switch the sandbox off.
    """
    if not _settings.BROWSER_SANDBOX.read():
        return "off"
    asked = os.environ.get(_settings.BROWSER_SANDBOX.name, "").strip()
    return "must" if asked or reach.others else "on"


def _environment(folder: str) -> dict[str, str]:
    """Return the environment for the browser and its driver: everything that they write goes to the
    folder."""
    variables = processes.environment(
        {
            "TMPDIR": folder,
            "XDG_CONFIG_HOME": os.path.join(folder, "config"),
            "XDG_CACHE_HOME": os.path.join(folder, "cache"),
            "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry),
        }
    )
    for name in NOT_FOR_THE_BROWSER:
        variables.pop(name, None)
    return variables


def _warn_once(what: str) -> None:
    global _warned
    if not _warned:
        _warned = True
        write_line(what)


async def _running(reach: Reach, on_start: Callable[[], object] | None = None) -> Browser:
    """Return a running browser; if one is killed while it starts, start another one. Raises NoBrowser."""
    global _refusal
    executable = find()
    until, setting, why = _refusal
    now_set = f"{executable} {_sandbox(reach)}"
    if time.monotonic() < until and setting == now_set:
        raise NoBrowser(why)
    try:
        try:
            return await _started(executable, reach, on_start)
        except KilledAtStart:
            return await _started(executable, reach, on_start)
    except NoBrowser as error:
        _refusal = (time.monotonic() + RETRY_SECONDS, now_set, str(error))
        raise


async def _started(executable: str, reach: Reach, on_start: Callable[[], object] | None) -> Browser:
    """Return the browser that runs, or a new one once it has started. Raises NoBrowser."""
    browser = _browsers.get(reach)
    if browser is not None and not browser.ended and browser.executable != executable:
        browser.end()
    if browser is None or browser.ended or browser.loop is not asyncio.get_running_loop():
        browser = _browsers[reach] = Browser(executable, reach)
    if not browser.started.done() and on_start is not None:
        on_start()
    await asyncio.shield(browser.started)
    return browser


async def _ask(
    head: dict[str, Any],
    body: bytes,
    deadline: float,
    reach: Reach,
    on_start: Callable[[], object] | None = None,
) -> tuple[dict[str, Any], bytes]:
    """Send a request to a browser; if the browser turns out to be broken, repeat it once with a new one."""
    try:
        return await (await _running(reach, on_start)).ask(head, body, deadline)
    except Broken:
        pass
    try:
        return await (await _running(reach, on_start)).ask(head, body, deadline)
    except Broken as error:
        raise ToolError(f"The browser failed: {str(error)[:300]}") from None


async def load(
    address: str,
    deadline: float,
    *,
    wait_ms: int | None = None,
    limit: int = PAGE_BYTES,
    reach: Reach = EVERYTHING,
    on_start: Callable[[], object] | None = None,
) -> tuple[dict[str, Any], bytes]:
    """Read a page in a fresh context. Return its facts (`url`, `status`, `content_type`; where the bytes are
    HTML of UTF-8 `html`, `title`, and the beginnings of its `scripts`) and its bytes.

    `deadline` is of `time.monotonic`. `reach` bounds the page and all that it loads. `on_start` is called if
    the browser has to be started. Raises NoBrowser, and ToolError if the answer has no content.
    """
    head = {"do": "page", "url": address, "wait_ms": wait_ms, "limit": limit}
    return await _ask(head, b"", deadline, reach, on_start)


async def picture_of_svg(data: bytes, longest_edge: int, reach: Reach = EVERYTHING) -> bytes:
    """Return an SVG as a PNG on white, with at most that many pixels on the longest edge; no network, files
    or scripts. `reach` selects the browser. Raises ToolError, also if the browser is missing."""
    if len(data) > SVG_BYTES:
        raise ToolError(f"The SVG has {len(data)} bytes; the limit is {SVG_BYTES}.")
    head = {"do": "svg", "longest_edge": longest_edge}
    try:
        return (await _ask(head, data, time.monotonic() + SVG_SECONDS, reach))[1]
    except NoBrowser as error:
        raise ToolError(f"An SVG needs a browser to be drawn: {error}.") from None


def end() -> None:
    """End the browsers that run."""
    for browser in _browsers.values():
        browser.end()
