"""The browser's life: warm, shared, killed, idle, cancelled, gone when the server goes; and what it draws."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import stat
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fastrpc.tools.agent import _browser
from fastrpc.tools.agent._browser import folder as browser_folder
from fastrpc.tools.agent.read_docs import read_docs
from support import chromium, stdio
from support.child_processes import reaper_below, reapers
from support.chromium import ARTICLE, Reader, facts_of
from support.waiting import SECONDS, eventually
from support.web_server import Visit, Web

from fastrpc import Context, ToolError, processes

pytestmark = pytest.mark.long

# --- the browser's life ---------------------------------------------------------------------------------


def kill(pid: int) -> None:
    """Kill a process of the browser's, unless it has ended with another one already."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def one_browser(folder: str) -> None:
    """Wait until there is one: the former may take a moment to end."""
    eventually(lambda: len(browsers(folder)) == 1)


def browsers(folder: str) -> set[int]:
    found = chromium.processes_in(folder)
    return {
        pid for pid, command in found.items() if "--user-data-dir" in command and "--type=" not in command
    }


def endless(gone: list[float]) -> Callable[[Visit], None]:
    """A page without an end; `gone` says when its reader has left."""

    def answer(visit: Visit) -> None:
        visit.begin()
        try:
            visit.for_ever(b"<p>more</p>", 0.02)
        finally:
            gone.append(time.monotonic())

    return answer


def test_the_browser_stays_warm_and_pages_share_it(
    browser_loop: chromium.Loop, web: Web, shelter: str
) -> None:
    """ReadDocs: the browser starts on first use and is kept warm."""
    url = web.page("/", f"<main>{ARTICLE}</main>")

    async def many() -> list[Any]:
        return await asyncio.gather(*[read_docs(url, Context()) for _ in range(6)])

    browser_loop.run(read_docs(url, Context()))
    before = browsers(shelter)
    assert len(browser_loop.run(many())) == 6
    assert browsers(shelter) == before
    assert len(before) == 1


@pytest.fixture
def open_page(browser_loop: chromium.Loop, web: Web) -> Iterator[str]:
    """A page that is being read until the test ends."""
    begun, over = threading.Event(), threading.Event()

    def answer(visit: Visit) -> None:
        begun.set()
        over.wait(SECONDS)
        visit.respond(f"<main>{ARTICLE}</main>")

    async def ask() -> asyncio.Task[Any]:
        return asyncio.ensure_future(read_docs(url, Context()))

    async def answered(call: asyncio.Task[Any]) -> None:
        await call

    url = web.answer("/open", answer)
    call = browser_loop.run(ask())
    assert begun.wait(SECONDS)
    yield url
    over.set()
    browser_loop.run(answered(call))


def test_no_page_of_the_browsers_own_is_loaded_beside_the_one_that_is_read(
    open_page: str, shelter: str
) -> None:
    """A window of a Chromium with WebUI popups loads two more pages for its address bar: half a second of
    computing for each page that is read."""
    chromium.need(whole=True)
    commands = chromium.processes_in(shelter).values()
    assert any("--type=renderer" in command for command in commands)
    assert not [command for command in commands if "top-chrome" in command]


def test_all_that_playwright_switches_off_is_off(open_page: str, shelter: str) -> None:
    """The browser obeys the last list alone: ours must have what is in playwright's."""
    (pid,) = browsers(shelter)
    lists = re.findall(r"--disable-features=(\S+)", chromium.processes_in(shelter)[pid])
    assert len(lists) == 2
    theirs, ours = (set(names.split(",")) for names in lists)
    assert theirs - ours == set()


def test_more_pages_than_the_limit_wait(browser_loop: chromium.Loop, web: Web) -> None:
    """The first pages are held until as many are open as may be, and then for as long as one more would take
    to come."""
    running, most = 0, 0

    def answer(visit: Visit) -> None:
        nonlocal running, most
        with web.lock:
            running += 1
            most = max(most, running)
        eventually(lambda: most >= _browser.PAGES_AT_ONCE)
        time.sleep(0.5)
        with web.lock:
            running -= 1
        visit.respond("<main>hi</main>")

    url = web.answer("/", answer)

    async def many() -> Any:
        await asyncio.gather(*[read_docs(f"{url}?{number}", Context()) for number in range(9)])

    browser_loop.run(many())
    assert most == _browser.PAGES_AT_ONCE


@pytest.mark.parametrize("victim", ["--user-data-dir", "playwright/driver", "_browser.worker"])
def test_a_browser_that_was_killed_is_started_anew(read: Reader, web: Web, shelter: str, victim: str) -> None:
    url = web.page("/", ARTICLE, "Tides")
    read(url)
    for pid, command in chromium.processes_in(shelter).items():
        if victim in command and "--type=" not in command:
            kill(pid)
    if victim != "playwright/driver":  # whose end is seen by the next page
        eventually(lambda: all(browser.ended for browser in _browser._browsers.values()))
    assert facts_of(read(url))["via"] == "browser"
    one_browser(shelter)


def test_a_browser_that_ends_before_it_is_asked_is_started_anew(
    read: Reader, web: Web, shelter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_slot = _browser.Browser._a_slot
    ended: list[_browser.Browser] = []

    async def end_first(browser: _browser.Browser, deadline: float) -> None:
        await a_slot(browser, deadline)
        if not ended:
            ended.append(browser)
            browser.end()

    monkeypatch.setattr(_browser.Browser, "_a_slot", end_first)
    assert facts_of(read(web.page("/", ARTICLE, "Tides")))["via"] == "browser"
    assert len(ended) == 1


def test_a_browser_whose_reaper_was_killed_ends_and_is_started_anew(
    read: Reader, web: Web, shelter: str
) -> None:
    url = web.page("/", ARTICLE, "Tides")
    read(url)
    before = set(chromium.processes_in(shelter))
    for guardian in reapers():
        os.kill(reaper_below(guardian), signal.SIGKILL)
    eventually(lambda: not before & set(chromium.processes_in(shelter)))
    eventually(lambda: all(browser.ended for browser in _browser._browsers.values()))
    assert facts_of(read(url))["via"] == "browser"
    one_browser(shelter)


@pytest.mark.parametrize("victim", ["its idle reaper", "_browser.worker"])
def test_a_browser_that_is_killed_while_it_starts_is_started_anew(
    read: Reader, web: Web, shelter: str, victim: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A killed reaper is taken for idle until its guardian reports it; here the guardian does so late."""
    url = web.page("/", ARTICLE, "Tides")
    read(url)
    _end_browsers(read, shelter)
    guardians = reapers()
    start = processes.start
    starts: list[str] = []

    async def killed_at_first(*given: Any, **options: Any) -> processes.Process:
        first = not starts
        starts.append(given[0][-1])
        if first and victim == "its idle reaper":
            for guardian in guardians:
                os.kill(guardian, signal.SIGSTOP)
                os.kill(reaper_below(guardian), signal.SIGKILL)
            asyncio.get_running_loop().call_later(0.2, _continue, guardians)
        process = await start(*given, **options)
        if first and victim != "its idle reaper":
            os.kill(process.pid, signal.SIGKILL)
        return process

    monkeypatch.setattr(processes, "start", killed_at_first)
    assert facts_of(read(url))["via"] == "browser"
    assert starts.count(_browser.WORKER) == 2
    one_browser(shelter)


def _end_browsers(read: Reader, shelter: str) -> None:
    async def end() -> None:
        _browser.end()

    read.loop.run(end())
    chromium.none_left(shelter)
    eventually(lambda: bool(processes.reapers.idle))


def _continue(pids: list[int]) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGCONT)


def test_a_call_whose_browser_dies_fails_with_the_reason(
    browser_loop: chromium.Loop, web: Web, shelter: str
) -> None:
    url = web.answer("/", lambda visit: visit.web.over.wait(20))
    call = asyncio.run_coroutine_threadsafe(read_docs(url, Context()), browser_loop.loop)
    eventually(lambda: web.count("/") > 0)
    for pid in browsers(shelter):
        kill(pid)
    with pytest.raises(ToolError, match="The browser ended while it read the page"):
        call.result(SECONDS)


def test_a_cancelled_call_closes_its_page_at_once(browser_loop: chromium.Loop, web: Web) -> None:
    gone: list[float] = []
    url = web.answer("/", endless(gone))
    call = asyncio.run_coroutine_threadsafe(read_docs(url, Context()), browser_loop.loop)
    eventually(lambda: web.count("/") > 0)
    assert not gone
    call.cancel()
    eventually(lambda: bool(gone))


def test_the_servers_secrets_are_not_in_the_browsers_environment(
    read: Reader, web: Web, shelter: str
) -> None:
    chromium.need(whole=True)
    read(web.page("/", ARTICLE))
    found = chromium.processes_in(shelter)
    assert len(found) > 4
    for pid in found:
        with open(f"/proc/{pid}/environ", "rb") as file:
            assert b"the-secret-of-this-server" not in file.read()


def test_the_profile_is_for_the_users_eyes_only(read: Reader, web: Web, shelter: str) -> None:
    read(web.page("/", ARTICLE))
    (profile,) = [name for name in os.listdir(shelter) if name.startswith(browser_folder.PREFIX)]
    assert stat.S_IMODE(os.stat(os.path.join(shelter, profile)).st_mode) == 0o700


def test_an_idle_browser_is_closed_with_all_that_it_wrote(
    browser_loop: chromium.Loop, web: Web, shelter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ReadDocs: an idle browser is closed."""
    monkeypatch.setenv("FASTRPC_BROWSER_IDLE_SECONDS", "1.5")
    browser_loop.run(read_docs(web.page("/", ARTICLE), Context()))
    assert browsers(shelter)
    chromium.none_left(shelter)
    eventually(lambda: not [name for name in os.listdir(shelter) if name.startswith(browser_folder.PREFIX)])


# --- in the real server --------------------------------------------------------------------------------


@pytest.fixture
def home() -> Iterator[str]:
    """A folder for all that a server and its browser write."""
    chromium.need()
    with chromium.temporary_folder() as path:
        yield path


def serve(home: str, **more: str) -> Any:
    environment = {"TMPDIR": home, "HOME": home, "FASTRPC_STATE_DIR": os.path.join(home, "state"), **more}
    return stdio.serve(environment=environment, folder=home)


def profiles(home: str) -> list[str]:
    return [name for name in os.listdir(home) if name != "state"]


@pytest.mark.alone
@pytest.mark.parametrize("when", ["idle", "reading"])
@pytest.mark.parametrize("end", ["end of input", "SIGTERM", "SIGKILL"])
def test_nothing_outlives_the_server(home: str, web: Web, end: str, when: str) -> None:
    """ReadDocs: the browser is gone with the server, however that ends."""
    url = web.page("/", ARTICLE, "Tides")
    slow = web.answer("/slow", lambda visit: visit.web.over.wait(20))
    with serve(home) as server:
        server.initialize()
        assert server.call("ReadDocs", url=url)["isError"] is False
        if when == "reading":
            server.ask("tools/call", {"name": "ReadDocs", "arguments": {"url": slow}})
            eventually(lambda: web.count("/slow") > 0)
        assert len(chromium.processes_in(home)) > 2  # npm's Chromium has three, others more
        begun = time.monotonic()
        if end == "end of input":
            server.close_stdin()
        else:
            server.signal(signal.SIGTERM if end == "SIGTERM" else signal.SIGKILL)
        code = server.wait()
        took = time.monotonic() - begun
        chromium.none_left(home, 2.0)
        if end == "SIGKILL":
            return  # its folder is gone as well, unless the machine is busy: then the next start removes it
        assert profiles(home) == []
        assert code == 0
        assert took < (1.5 if when == "reading" and end == "end of input" else 0.7)  # C1
        assert "Traceback" not in server.stderr


def test_what_a_killed_server_and_browser_left_is_tidied_by_the_next(home: str, web: Web) -> None:
    url = web.page("/", ARTICLE, "Tides")
    with serve(home) as server:
        server.initialize()
        server.call("ReadDocs", url=url)
        (left,) = profiles(home)
        server.signal(signal.SIGSTOP)  # so that neither can tidy up
        for pid, command in chromium.processes_in(home).items():
            if "_browser.worker" in command:
                kill(pid)
        server.kill()
        server.wait()
    chromium.none_left(home)
    assert profiles(home) == [left]
    with serve(home) as server:
        server.initialize()
        server.call("ReadDocs", url=url)
        (new,) = profiles(home)
        assert new != left
        server.close_stdin()
        assert server.wait() == 0
    assert profiles(home) == []


def test_a_server_that_ends_while_the_browser_starts_leaves_nothing(home: str, web: Web) -> None:
    for delay in (0.05, 0.3, 0.6):
        with serve(home) as server:
            server.initialize()
            server.ask("tools/call", {"name": "ReadDocs", "arguments": {"url": web.url("/")}})
            time.sleep(delay)
            server.signal(signal.SIGTERM)
            assert server.wait() == 0
            chromium.none_left(home)
            assert "Traceback" not in server.stderr
        assert profiles(home) == []


@pytest.mark.alone
def test_a_first_call_reports_progress_and_delays_no_one(home: str, web: Web) -> None:
    """ReadDocs: a first call, which starts the browser, reports progress."""
    with serve(home) as server:
        server.initialize()
        arguments = {"url": web.page("/", ARTICLE, "Tides")}
        params = {"name": "ReadDocs", "arguments": arguments, "_meta": {"progressToken": "p"}}
        request = server.ask("tools/call", params)
        told, late, answered = [], [], False
        while not answered:  # G1: p99 below 50 ms
            begun = time.monotonic()
            probe = server.ask("ping")
            while (message := server.answer()).get("id") != probe:
                if message.get("method") == "notifications/progress":
                    told.append(message["params"]["message"])
                answered = answered or message.get("id") == request
            late.append(time.monotonic() - begun)
            time.sleep(0.005)
        assert "starting the browser" in told
        assert sorted(late)[int(len(late) * 0.99) - 1] < 0.05


def test_a_cancelled_call_is_not_answered_and_its_page_is_closed(home: str, web: Web) -> None:
    """ReadDocs: a cancelled call closes its page."""
    gone: list[float] = []
    with serve(home) as server:
        server.initialize()
        server.call("ReadDocs", url=web.page("/", ARTICLE))
        request = server.ask(
            "tools/call", {"name": "ReadDocs", "arguments": {"url": web.answer("/endless", endless(gone))}}
        )
        eventually(lambda: web.count("/endless") > 0)
        server.notify("notifications/cancelled", {"requestId": request})
        eventually(lambda: bool(gone))
        assert server.request("ping")["result"] == {}


def test_what_the_browser_lacks_of_its_sandbox_is_said_once(home: str, web: Web) -> None:
    """ReadDocs: that the browser runs without its sandbox is said once, on stderr."""
    url = web.page("/", ARTICLE)
    with serve(home, FASTRPC_BROWSER_SANDBOX="0", FASTRPC_BROWSER_IDLE_SECONDS="0") as server:
        server.initialize()
        for _ in range(2):
            assert server.call("ReadDocs", url=url)["_meta"]["fastrpc/facts"]["via"] == "browser"
            chromium.none_left(home)  # so that the second call starts a browser again
        assert server.stderr.count("the browser runs without its sandbox: switched off") == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root is refused the sandbox everywhere")
def test_the_sandbox_gives_way_for_root_unless_it_must_be_on(home: str, web: Web) -> None:
    """ReadDocs: the browser's sandbox is on; it runs without one only where the system refuses it."""
    url = web.page("/", ARTICLE)
    with serve(home) as server:
        server.initialize()
        assert server.call("ReadDocs", url=url)["_meta"]["fastrpc/facts"]["via"] == "browser"
        assert "without its sandbox: the browser refuses to run as root with it" in server.stderr
    with serve(home, FASTRPC_BROWSER_SANDBOX="1") as server:
        server.initialize()
        result = server.call("ReadDocs", url=url)
        assert result["_meta"]["fastrpc/facts"]["via"] == "http"
        assert "its sandbox must be on" in result["content"][0]["text"]
        assert server.stderr == ""


# --- pictures for ReadImage -----------------------------------------------------------------------------


SVG = b'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" %s</svg>'


def test_an_svg_becomes_a_png_of_the_size_asked_for(browser_loop: chromium.Loop) -> None:
    wide = SVG % b'width="4000" height="1000"><rect width="4000" height="1000" fill="red"/>'
    icon = SVG % b'viewBox="0 0 16 8"><path d="M0 0h8v8z"/>'
    assert size_of(browser_loop.run(_browser.picture_of_svg(wide, 1568))) == (1568, 392)
    assert size_of(browser_loop.run(_browser.picture_of_svg(icon, 1568))) == (512, 256)
    assert size_of(browser_loop.run(_browser.picture_of_svg(icon, 100))) == (100, 50)


def size_of(picture: bytes) -> tuple[int, int]:
    assert picture.startswith(b"\x89PNG\r\n\x1a\n")
    return int.from_bytes(picture[16:20], "big"), int.from_bytes(picture[20:24], "big")


def test_an_svg_reaches_neither_network_nor_scripts(browser_loop: chromium.Loop, web: Web) -> None:
    address = web.url("/canary")
    inside = f"""width="50" height="50"><?xml-stylesheet href="{address}"?>
    <style>@import url("{address}"); rect {{ fill: url("{address}#a") }}</style>
    <image href="{address}" width="9" height="9"/><use xlink:href="{address}#b"/><script href="{address}"/>
    <script>fetch("{address}")</script><rect width="9" height="9"/>
    <foreignObject width="9" height="9"><iframe xmlns="http://www.w3.org/1999/xhtml" src="{address}"/>
    </foreignObject>"""
    assert size_of(browser_loop.run(_browser.picture_of_svg(SVG % inside.encode(), 100)))
    time.sleep(0.3)
    assert web.requests == []


@pytest.mark.parametrize(
    "data", [b"", b"words", b"<svg", b'<svg xmlns="http://www.w3.org/2000/svg"><g></svg>']
)
def test_what_is_no_svg_is_refused(browser_loop: chromium.Loop, data: bytes) -> None:
    with pytest.raises(ToolError, match="The SVG cannot be drawn"):
        browser_loop.run(_browser.picture_of_svg(data, 100))


def test_without_a_browser_an_svg_is_refused(
    browser_loop: chromium.Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FASTRPC_BROWSER", "/no/such/browser")
    with pytest.raises(ToolError, match=r"^An SVG needs a browser to be drawn: FASTRPC_BROWSER names"):
        browser_loop.run(_browser.picture_of_svg(b"<svg/>", 100))
