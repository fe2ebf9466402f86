"""One visit of a page: from the address to its HTML, or to the bytes of what is not HTML.

Runs in the browser's process (`worker`), on a playwright page in a separate context. The answer for the
page's document is checked before the browser uses it, so an error, a download or a PDF never becomes a page.
Images, media and fonts are not loaded. The page is read in an isolated world, where its scripts cannot
interfere. The caller bounds the time; `limit` bounds a document's bytes.
"""

from __future__ import annotations

import asyncio
import time

from .. import _web_address as web_address
from . import answers
from .answers import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

QUIET_SECONDS = 10.0  # how long a page may take to become quiet
IDLE_SECONDS = 0.5  # without a request, then it is quiet
SAME_SECONDS = 0.2  # and its elements have not changed for this long
STATIC_REFRESH_SECONDS = 3.0  # a refresh that is due this soon is waited for
READ_SECONDS = 10.0  # a page that does not answer for so long is stuck in its script
NAVIGATIONS = 20
CHUNK = 256 * 1024
SNIFFED = 64 * 1024
NOT_LOADED = ("Image", "Media", "Font")
ENDLESS = ("websocket", "eventsource", "ping", "media", "image", "font")
PATTERNS = [
    {"resourceType": "Document", "requestStage": "Response"},
    *[{"resourceType": kind, "requestStage": "Request"} for kind in NOT_LOADED],
]

STATE = """(() => {
    const refresh = document.querySelector('meta[http-equiv="refresh" i]');
    return [document.getElementsByTagName("*").length, document.scripts.length,
            refresh ? refresh.content : ""];
})()"""

# Scripts and styles say nothing to a reader and are most of many pages. The content of frames replaces the
# frames, if the page may read it. The content of shadow roots is put where the browser shows it. This happens
# in a document without a window, in which no script of the page runs.
READ = """((limit) => {
    const useless = 'script:not([type^="math/"]), style, link[rel="preload"]';
    const root = document.documentElement;
    if (!root) return [location.href, "", "", ""];
    const scripts = [...document.scripts].slice(0, 40).map(
        (script) => script.src.slice(0, 300) + " " + script.textContent.slice(0, 700)).join("\\n");
    let frames = %d;
    const bringIn = (within, depth) => {
        for (const frame of within.querySelectorAll("iframe, frame")) {
            if (frame.tagName === "IFRAME" && (frame.clientWidth < 3 || frame.clientHeight < 3)) {
                frame.remove();
                continue;
            }
            let body = null;
            try { body = frame.contentDocument && frame.contentDocument.body; } catch (refused) {}
            if (!body || !body.childNodes.length || depth > 3 || --frames < 0) continue;
            bringIn(body, depth + 1);
            for (const element of body.querySelectorAll(useless)) element.remove();
            for (const name of ["href", "src"])
                for (const element of body.querySelectorAll(`[${name}]`))
                    if (typeof element[name] === "string") element.setAttribute(name, element[name]);
            const shown = document.createElement("div");
            for (const node of [...body.childNodes]) shown.append(document.importNode(node, true));
            frame.replaceWith(shown);
        }
    };
    bringIn(document, 1);
    const shadows = [];
    const look = (from) => {
        for (const element of from.querySelectorAll("*"))
            if (element.shadowRoot) { shadows.push(element.shadowRoot); look(element.shadowRoot); }
    };
    look(document);
    for (const element of document.querySelectorAll(useless)) element.remove();
    let html = shadows.length ? root.getHTML({shadowRoots: shadows}) : root.outerHTML;
    if (html.length > limit) return [location.href, document.title, null, ""];
    if (shadows.length) {
        const inert = new DOMParser().parseFromString(html, "text/html");
        let found;
        while ((found = inert.querySelector("template[shadowrootmode]"))) {
            const host = found.parentElement, shown = found.content;
            found.remove();
            for (const slot of shown.querySelectorAll("slot")) {
                const name = slot.getAttribute("name") || "";
                const given = [...host.childNodes].filter(
                    (node) => ((node.getAttribute && node.getAttribute("slot")) || "") === name);
                slot.replaceWith(...(given.length ? given : slot.childNodes));
            }
            for (const element of shown.querySelectorAll(useless)) element.remove();
            host.replaceChildren(shown);
        }
        html = inert.documentElement.outerHTML;
    }
    return [location.href, document.title, html, scripts];
})"""
FRAMES = 50  # of a page whose text is taken; of further ones the address


class Visit:
    """One page that is being read. `unreached` holds the addresses that the egress proxy has refused, if the
    browser goes through one."""

    def __init__(self, page: Any, address: str, limit: int, unreached: Mapping[tuple[str, int], str]) -> None:
        self._page = page
        self._address = address
        self._limit = limit
        self._unreached = unreached
        self._cdp: Any = None
        self._frame = ""
        self._outcome: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._pending: set[Any] = set()
        self._last_traffic = time.monotonic()
        self._navigations = 0
        self._answer: dict[str, Any] = {}
        self._complete = self._ready = self._loaded = False
        self._hands: set[asyncio.Task[None]] = set()

    async def read(self, wait_ms: int | None) -> dict[str, Any]:
        """Return the answer: `url`, `status`, `content_type`, and `title`, `html` and `scripts`, or `data`.

        Raises Refused, with a sentence, if the answer has no content.
        """
        await self._prepare()
        work = asyncio.ensure_future(self._work(wait_ms))
        try:
            await asyncio.wait({work, self._outcome}, return_when=asyncio.FIRST_COMPLETED)
            if self._outcome.done():
                return self._outcome.result()
            return work.result()
        finally:
            work.cancel()
            for task in [work, *self._hands]:
                task.cancel()
            await asyncio.gather(work, return_exceptions=True)

    def stage(self) -> str:
        """Return the stage that the visit has reached, for the sentence about a time-out."""
        if not self._answer:
            return "did not answer"
        return "was not complete" if not self._complete else "did not become readable"

    async def _prepare(self) -> None:
        page = self._page
        self._cdp = await page.context.new_cdp_session(page)
        tree = await self._cdp.send("Page.getFrameTree")
        self._frame = tree["frameTree"]["frame"]["id"]
        self._cdp.on("Fetch.requestPaused", self._on_paused)
        self._cdp.on("Page.domContentEventFired", lambda _: self._reached(True, False))
        self._cdp.on("Page.loadEventFired", lambda _: self._reached(True, True))
        self._cdp.on("Page.frameStoppedLoading", self._on_stopped)
        await self._cdp.send("Page.enable")
        await self._cdp.send("Fetch.enable", {"patterns": PATTERNS})
        page.context.on("page", self._on_popup)
        page.on("request", self._on_request)
        page.on("requestfinished", self._on_request_end)
        page.on("requestfailed", self._on_request_end)
        page.on("crash", lambda _: self._refuse("The page took more memory than it may, or crashed."))

    # --- events of the browser ------------------------------------------------------------------------

    def _refuse(self, sentence: str) -> None:
        if not self._outcome.done():
            self._outcome.set_exception(Refused(sentence))

    def _reached(self, ready: bool, loaded: bool) -> None:
        self._ready, self._loaded = ready, loaded

    def _on_stopped(self, event: dict[str, Any]) -> None:
        if event["frameId"] == self._frame:  # a page that began to navigate elsewhere has no load event
            self._reached(True, True)

    def _on_popup(self, popup: Any) -> None:
        if popup is not self._page:
            self._in_hand(popup.close())

    def _on_request(self, request: Any) -> None:
        if request.resource_type not in ENDLESS:
            self._pending.add(request)
            self._last_traffic = time.monotonic()

    def _on_request_end(self, request: Any) -> None:
        self._pending.discard(request)
        self._last_traffic = time.monotonic()
        if request.is_navigation_request() and request.frame == self._page.main_frame:
            self._complete = True

    def _on_paused(self, event: dict[str, Any]) -> None:
        self._in_hand(self._decide(event))

    def _in_hand(self, coroutine: Any) -> None:
        task = asyncio.ensure_future(_quietly(coroutine))
        self._hands.add(task)
        task.add_done_callback(self._hands.discard)

    async def _decide(self, event: dict[str, Any]) -> None:
        """Continue or abort a request or an answer."""
        id = event["requestId"]
        if event["resourceType"] in NOT_LOADED:
            await self._fail(id, "BlockedByClient")
        elif event["frameId"] != self._frame:
            if answers.is_html(event) or answers.redirect_of(event):
                await self._cdp.send("Fetch.continueRequest", {"requestId": id})
            else:
                await self._fail(id, "BlockedByClient")
        elif await self._takes(event):
            await self._cdp.send("Fetch.continueRequest", {"requestId": id})
        else:
            await self._fail(id, "Aborted")

    async def _fail(self, id: str, reason: str) -> None:
        await self._cdp.send("Fetch.failRequest", {"requestId": id, "errorReason": reason})

    async def _takes(self, event: dict[str, Any]) -> bool:
        """Check the answer for the page's own document; return whether the browser may continue with it."""
        if self._unreached:  # a refusal is an answer of status 403 here, and a failure for https
            address = event["request"]["url"]
            reason = self._unreached.get(web_address.place_of(address))
            if reason is not None:
                self._refuse(answers.unreached(address, reason))
                return False
        if "responseStatusCode" not in event:
            return True  # it failed: the navigation's error says how
        target = answers.redirect_of(event)
        if target:
            if web_address.is_web(target):
                return True
            self._refuse(answers.redirect_refused(target))
            return False
        self._navigations += 1
        if self._navigations > NAVIGATIONS:
            self._refuse("The page keeps redirecting to other pages.")
            return False
        refusal = answers.refusal_of(event)
        if refusal:
            self._refuse(refusal)
            return False
        if answers.is_html(event):
            self._answer = answers.facts_of(event)
            self._complete = self._ready = self._loaded = False
            return True
        await self._take_body(event)
        return False

    async def _take_body(self, event: dict[str, Any]) -> None:
        """Read a document that is not HTML as bytes. A page that starts a download stays a page."""
        media = answers.media_type(event)
        readable = None if answers.is_text(media) or answers.is_pdf(media) else False
        taken = await self._cdp.send("Fetch.takeResponseBodyAsStream", {"requestId": event["requestId"]})
        data = bytearray()
        while True:
            piece = await self._cdp.send("IO.read", {"handle": taken["stream"], "size": CHUNK})
            data += _bytes_of(piece)
            if readable is False and (len(data) >= SNIFFED or piece["eof"]):
                readable = answers.looks_readable(media, bytes(data[:SNIFFED]))
                if not readable:
                    break
            if piece["eof"] or len(data) > self._limit:
                break
        if readable is False:
            if not self._answer:
                self._refuse(answers.download_refused(event))
        elif len(data) > self._limit:
            self._refuse(answers.too_large(self._limit))
        elif not self._outcome.done():
            self._outcome.set_result({**answers.facts_of(event), "data": bytes(data)})

    # --- the HTML --------------------------------------------------------------------------------------

    async def _work(self, wait_ms: int | None) -> dict[str, Any]:
        from playwright.async_api import Error

        try:
            went = await self._cdp.send("Page.navigate", {"url": self._address})
            trouble = went.get("errorText", "")
        except Error as error:
            trouble = str(error)
        if trouble:
            if self._hands:
                await asyncio.wait(set(self._hands))  # one of them may have a more precise error
            raise Refused(answers.failure(trouble))
        while True:
            round = self._navigations
            await self._wait(wait_ms)
            found = await self._look(f"{READ % FRAMES}({self._limit})")
            if found is not None and round == self._navigations:
                return self._page_of(*found)
            wait_ms = None  # it went to another page meanwhile
            await asyncio.sleep(0.05)

    def _page_of(self, address: str, title: str, html: str | None, scripts: str) -> dict[str, Any]:
        if not web_address.is_web(address):
            raise Refused(answers.went_to(address))
        if html is None:
            raise Refused(answers.too_large(self._limit))
        return {**self._answer, "url": address, "title": title, "html": html, "scripts": scripts}

    async def _wait(self, wait_ms: int | None) -> None:
        """Wait as long as asked, or until the page is quiet; in any case until its document is complete."""
        begun = time.monotonic()
        while not self._complete and not self._ready:
            await asyncio.sleep(0.02)
            if time.monotonic() - begun > QUIET_SECONDS:
                await self._look("0")  # is it slow, or stuck in its script?
                begun = time.monotonic()
        if wait_ms is not None:
            await asyncio.sleep(max(0.0, begun + wait_ms / 1000 - time.monotonic()))
            return
        end = begun + QUIET_SECONDS
        while not self._loaded and time.monotonic() < end:
            await asyncio.sleep(0.02)
        if not self._loaded:
            return
        before = await self._look(STATE)
        if before is None:
            return
        refresh = answers.refresh_seconds(before[2])
        if refresh is not None and refresh <= STATIC_REFRESH_SECONDS:
            await asyncio.sleep(refresh)
        elif not before[1]:
            return  # without scripts it does not change
        await self._wait_until_quiet(end)

    async def _wait_until_quiet(self, end: float) -> None:
        before: Any = None
        while time.monotonic() < end:
            quiet_for = time.monotonic() - self._last_traffic
            if self._pending or quiet_for < IDLE_SECONDS:
                await asyncio.sleep(0.05 if self._pending else IDLE_SECONDS - quiet_for)
                continue
            now = await self._look(STATE)
            if now is None or now == before:
                return
            before = now
            await asyncio.sleep(SAME_SECONDS)

    async def _look(self, script: str) -> Any:
        """Evaluate in an isolated world; None if the page navigated away meanwhile."""
        try:
            return await asyncio.wait_for(self._evaluate(script), READ_SECONDS)
        except asyncio.TimeoutError:
            raise Refused("The page does not respond: one of its scripts does not end.") from None

    async def _evaluate(self, script: str) -> Any:
        from playwright.async_api import Error

        try:
            world = await self._cdp.send("Page.createIsolatedWorld", {"frameId": self._frame})
            answer = await self._cdp.send(
                "Runtime.evaluate",
                {
                    "expression": script,
                    "contextId": world["executionContextId"],
                    "returnByValue": True,
                },
            )
        except Error:
            return None
        return answer["result"].get("value")


async def _quietly(coroutine: Any) -> None:
    """Await something, and ignore errors that occur because the page navigated away."""
    from playwright.async_api import Error

    try:
        await coroutine
    except Error:
        pass


def _bytes_of(piece: dict[str, Any]) -> bytes:
    if not piece.get("base64Encoded"):
        return str(piece["data"]).encode("utf-8", "surrogateescape")  # valid text arrives decoded
    import base64

    return base64.b64decode(piece["data"])
