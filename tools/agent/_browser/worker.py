"""The process in which playwright drives the browser: `python -m fastrpc.tools.agent._browser.worker`.

The server starts it below a reaper (`fastrpc.processes`), so playwright's driver and the browser end with it,
however it ends. The server itself does not import playwright and answers calls while this process starts. The
process connects to the socket ``s`` in its working directory and starts the browser that the first frame
names. It then serves requests, each in a separate browser context, so nothing carries over. Where the browser
may not reach everything, it goes through an egress proxy in this process. Only this process and playwright's
driver know the proxy's password. When the server closes the connection or the browser dies, everything ends
and the directory, which was made for it, is removed.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from base64 import b64encode

from . import wire
from .answers import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from fastrpc.egress_proxy import EgressProxy

SOCKET = "s"
FOLDER = os.getcwd()
RENDERER_BYTES = 1024**3
ALL_BYTES = 4 * 1024**3
WATCH_SECONDS = 0.25
CLOSE_SECONDS = 5.0
# For the address bar of each window, even a headless one, recent versions of Chromium load two internal
# pages. These take two thirds of the processor time of reading a small page.
OWN_PAGES = ("WebUIOmniboxPopup", "WebUIOmniboxAimPopup")
# Of several --disable-features the browser obeys the last, which is this one. It repeats what playwright 1.56
# to 1.65 switches off.
OFF_FOR_PLAYWRIGHT = (
    "AcceptCHFrame",
    "AimEnabled",
    "AutoDeElevate",
    "AvoidCorsURLLoaderRestartOnRedirect",
    "AvoidUnnecessaryBeforeUnloadCheckSync",
    "DestroyProfileOnBrowserClose",
    "DialMediaRouteProvider",
    "GlobalMediaControls",
    "HttpsFirstBalancedModeAutoEnable",
    "HttpsUpgrades",
    "LensOverlay",
    "MediaRouter",
    "NetworkTimeServiceQuerying",
    "OptimizationHints",
    "PaintHolding",
    "PreconnectToSearch",
    "RenderDocument",
    "TcpPortRandomizationWin",
    "ThirdPartyStoragePartitioning",
    "Translate",
    "msEdgeUpdateLaunchServicesPreferredVersion",
    "msForceBrowserSignIn",
)
ARGUMENTS = (
    "--disable-3d-apis",
    "--no-pings",
    "--disable-remote-fonts",
    f"--disable-features={','.join(OWN_PAGES + OFF_FOR_PLAYWRIGHT)}",
)
SANDBOX_SIGNS = ("sandbox", "namespace", "zygote", "running as root")

# An SVG as an image: no scripts, no external resources. White, since many are black on transparent.
PICTURE = """<!doctype html><style>*{margin:0;padding:0}body{background:#fff;overflow:hidden}
img{display:block}</style><img src="data:image/svg+xml;base64,%s">"""
RESIZE = "(image, {width, height}) => { image.width = width; image.height = height; }"
SMALLEST_PICTURE = 512


class Worker:
    """The browser, and its open requests."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._browser: Any = None
        self._playwright: Any = None
        self._proxy: EgressProxy | None = None
        self._tasks: dict[int, asyncio.Task[None]] = {}

    def take(self, head: dict[str, Any], body: bytes) -> None:
        if head["do"] == "cancel":
            task = self._tasks.get(head["id"])
            if task is not None:
                task.cancel()
            return
        task = asyncio.ensure_future(self._serve(head, body))
        self._tasks[head["id"]] = task
        task.add_done_callback(lambda _: self._tasks.pop(head["id"], None))

    async def _serve(self, head: dict[str, Any], body: bytes) -> None:
        answer: dict[str, Any]
        data = b""
        try:
            if head["do"] == "start":
                answer = await self._start(head)
            elif head["do"] == "page":
                answer, data = await self._page(head)
            else:
                answer, data = {}, await self._picture(head, body)
        except Refused as refusal:
            answer = {"refused": str(refusal)}
        except Exception as error:
            answer = {"failed": f"{type(error).__name__}: {error}"}
        self._writer.write(wire.encode({"id": head["id"], **answer}, data))
        await self._writer.drain()

    # --- the browser ------------------------------------------------------------------------------------

    async def _start(self, head: dict[str, Any]) -> dict[str, Any]:
        from playwright.async_api import Error, async_playwright

        if head["networks"] is not None:
            from fastrpc.egress_proxy import EgressProxy

            self._proxy = await EgressProxy(allow=head["networks"]).start()
        self._playwright = await async_playwright().start()
        sandbox = head["sandbox"] != "off" and os.geteuid() != 0
        why = "the browser refuses to run as root with it" if head["sandbox"] != "off" else "switched off"
        if not sandbox and head["sandbox"] == "must":
            return {"failed": "its sandbox must be on, and the browser refuses to run as root with it"}
        try:
            self._browser = await self._launch(head["executable"], sandbox)
        except Error as error:
            text = str(error).lower()
            if not sandbox or head["sandbox"] == "must" or not any(sign in text for sign in SANDBOX_SIGNS):
                return {"failed": _first_line(str(error))}
            sandbox, why = False, "the system refuses it"
            try:
                self._browser = await self._launch(head["executable"], sandbox)
            except Error as again:
                return {"failed": _first_line(str(again))}
        self._browser.on("disconnected", lambda _: leave(3))
        asyncio.ensure_future(self._watch_memory()).add_done_callback(lambda _: leave(4))
        return {"version": self._browser.version, "sandbox": sandbox, "why": "" if sandbox else why}

    async def _launch(self, executable: str, sandbox: bool) -> Any:
        return await self._playwright.chromium.launch(
            executable_path=executable,
            chromium_sandbox=sandbox,
            args=[*ARGUMENTS, *(self._proxy.browser_flags if self._proxy is not None else ())],
            proxy=self._proxy.browser_proxy if self._proxy is not None else None,
            ignore_default_args=["--disable-popup-blocking"],
            handle_sigint=False,
            timeout=30_000,
        )

    async def _watch_memory(self) -> None:
        """End a page's process that uses too much memory; end everything if all of it together does."""
        while True:
            await asyncio.sleep(WATCH_SECONDS if self._tasks else 4 * WATCH_SECONDS)
            if not os.path.isdir("/proc/self/fd"):
                continue
            total = 0
            for pid, size in _sizes_below(os.getpid()).items():
                total += size
                if size > RENDERER_BYTES and _is_renderer(pid):
                    os.kill(pid, signal.SIGKILL)
            if total > ALL_BYTES:
                leave(5)

    async def _close(self, context: Any) -> None:
        """Close a context. A browser that fails to do so is broken."""
        try:
            await asyncio.wait_for(context.close(), CLOSE_SECONDS)
        except asyncio.TimeoutError:
            leave(6)
        except Exception:
            pass  # it is closed already

    # --- requests ---------------------------------------------------------------------------------------

    async def _page(self, head: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        from .visit import Visit

        context = await self._browser.new_context(
            accept_downloads=False, service_workers="block", permissions=[]
        )
        closing = None
        try:
            unreached = self._proxy.refusals if self._proxy is not None else {}
            visit = Visit(await context.new_page(), head["url"], head["limit"], unreached)
            try:
                answer = await asyncio.wait_for(visit.read(head["wait_ms"]), head["seconds"])
            except asyncio.TimeoutError:
                raise Refused(f"The page {visit.stage()} within {head['seconds']:.0f} s.") from None
        finally:
            closing = asyncio.ensure_future(self._close(context))
            await asyncio.shield(closing)
        data = answer.pop("data", None)
        if data is None:
            data = answer.pop("html").encode("utf-8", "replace")
            answer["html"] = True
        return answer, data

    async def _picture(self, head: dict[str, Any], svg: bytes) -> bytes:
        context = await self._browser.new_context(
            accept_downloads=False, service_workers="block", java_script_enabled=False, offline=True
        )
        try:
            return await asyncio.wait_for(self._draw(context, svg, head["longest_edge"]), head["seconds"])
        except asyncio.TimeoutError:
            raise Refused(f"The picture was not drawn within {head['seconds']:.0f} s.") from None
        finally:
            await asyncio.shield(asyncio.ensure_future(self._close(context)))

    async def _draw(self, context: Any, svg: bytes, longest_edge: int) -> bytes:
        page = await context.new_page()
        crashed = asyncio.Event()
        page.on("crash", lambda _: crashed.set())

        async def draw() -> bytes:
            await page.set_content(PICTURE % b64encode(svg).decode(), wait_until="load", timeout=0)
            image = page.locator("img")
            width, height = await image.evaluate("image => [image.naturalWidth, image.naturalHeight]")
            if not width or not height:
                raise Refused("The SVG cannot be drawn: it is damaged, or not an SVG.")
            wanted = min(longest_edge, max(width, height, SMALLEST_PICTURE))
            factor = wanted / max(width, height)
            size = {"width": max(1, round(width * factor)), "height": max(1, round(height * factor))}
            await page.set_viewport_size(size)
            await image.evaluate(RESIZE, size)
            picture: bytes = await page.screenshot(type="png", clip={"x": 0, "y": 0, **size}, timeout=0)
            return picture

        drawing, crash = asyncio.ensure_future(draw()), asyncio.ensure_future(crashed.wait())
        try:
            await asyncio.wait({drawing, crash}, return_when=asyncio.FIRST_COMPLETED)
            if crashed.is_set():
                raise Refused("The SVG took more memory than it may, or crashed the browser.")
            return drawing.result()
        finally:
            drawing.cancel()
            crash.cancel()


def _first_line(message: str) -> str:
    """Return the relevant line of playwright's error for a failed start."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    reasons = [
        line for line in lines if any(sign in line for sign in ("FATAL", "ERROR:", "error while loading"))
    ]
    return (reasons or lines or ["no reason is known"])[0][:300]


def _sizes_below(ancestor: int) -> dict[int, int]:
    """Return the resident bytes of the descendants of a process."""
    parents: dict[int, int] = {}
    sizes: dict[int, int] = {}
    page = os.sysconf("SC_PAGE_SIZE")
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        parents[int(name)], sizes[int(name)] = int(fields[1]), int(fields[21]) * page
    below = {ancestor}
    grown = True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in below} - below
        below |= more
        grown = bool(more)
    return {pid: sizes[pid] for pid in below if pid in sizes}


def _is_renderer(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return b"--type=renderer" in file.read()
    except OSError:
        return False


def leave(code: int) -> NoReturn:
    """End at once, with driver and browser, and remove the folder: no other process may do it."""
    import shutil

    for pid in _sizes_below(os.getpid()) if os.path.isdir("/proc/self/fd") else ():
        if pid != os.getpid():
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass  # removed already
    for _ in range(5):
        shutil.rmtree(FOLDER, ignore_errors=True)
        if not os.path.exists(FOLDER):
            break
        time.sleep(0.02)  # a dying process has written to it
    os._exit(code)


async def work() -> None:
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, leave, 0)
    reader, writer = await asyncio.open_unix_connection(SOCKET)
    worker = Worker(writer)
    frames = wire.Reader()
    while True:
        data = await reader.read(1 << 20)
        if not data:
            leave(0)
        for head, body in frames.feed(data):
            worker.take(head, body)


if __name__ == "__main__":
    sys.path[:] = [entry for entry in sys.path if entry != FOLDER]
    asyncio.run(work())
