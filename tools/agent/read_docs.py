"""The tool ReadDocs: returns a web page as Markdown, text or HTML, read by a headless browser.

Without a browser it reads by plain HTTP and says so. A long page comes in parts: the page is cached for the
calls that continue it. A call ends before the client's time-out. For callers over HTTP only public addresses
are read (`_reach`). `_browser` and `_fetch` load a page, `_documents` converts it to Markdown.
"""

from __future__ import annotations

import time

from fastrpc import Context, ToolError, ToolResult, tool

from . import _settings, _text
from ._result import result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated, Any, Literal

    from .._reach import Reach
    from ._page_cache import Page
else:
    from fastrpc.typing_forms import Annotated, Literal

SPARE_SECONDS = 5.0  # for closing the page and for the conversion
LONGEST_SECONDS = 120.0  # where the client has no time-out
LONGEST_WAIT_MS = 45_000
TITLE_SHOWN = 300
CUT_SEARCH = 0.5  # a part may end at a paragraph in its second half
JOINERS = "\u200d\ufe0e\ufe0f"


@tool(name="ReadDocs", effect="network", task="allowed", after_seconds=5)
async def read_docs(
    url: Annotated[str, "The URL to fetch"],
    ctx: Context,
    format: Annotated[
        Literal["text", "html", "markdown"] | None, "Output format: text, html, or markdown"
    ] = None,
    wait_ms: Annotated[int | None, "Wait time for page load in ms"] = None,
    offset: Annotated[int | None, "Go on at this character of a page that was read"] = None,
) -> ToolResult:
    """Fetch URL content as markdown via headless browser"""
    from .. import _reach
    from . import _page_cache, _web_address

    address = _web_address.address_of(url)
    wanted = format or "markdown"
    if wait_ms is not None and wait_ms < 0:
        raise ToolError(
            f"wait_ms: expected 0 to {LONGEST_WAIT_MS} milliseconds, got {_text.quoted(wait_ms)}."
        )
    if offset is not None and offset < 0:
        raise ToolError(f"offset: expected 0 or more, got {_text.quoted(offset)}.")
    reach = _reach.of(ctx)
    drawer = (
        "" if reach.networks is None else f"{','.join(reach.networks)} "
    )  # a caller who may reach less does not get the copy of one who may reach more
    page = _page_cache.get(drawer + address, wanted) if offset else None
    notes = []
    if page is None:
        page = await _read(address, wanted, wait_ms, reach, ctx)
        _page_cache.put({drawer + address, drawer + page.facts["url"]}, page)
        if offset:
            notes.append("[no copy of the page was left: it was read again and may have changed]")
    longest = _longest_wait_ms()
    if wait_ms is not None and wait_ms > longest:
        notes.append(f"[wait_ms {wait_ms} is taken as {longest}, the longest]")
    return _part(page, offset or 0, notes)


def _seconds() -> float:
    """Return how long loading may take."""
    patience = _settings.PATIENCE_SECONDS.read()
    return max(patience - SPARE_SECONDS, patience / 2) if patience else LONGEST_SECONDS


def _left(deadline: float) -> float:
    """Return how many seconds a conversion may take: the rest of the time for loading, and most of the
    spare."""
    return max(deadline - time.monotonic(), 0) + min(SPARE_SECONDS, _seconds()) * 0.8


def _longest_wait_ms() -> int:
    return min(LONGEST_WAIT_MS, int(max(_seconds() - 5, 1) * 1000))


# --- reading --------------------------------------------------------------------------------------------


async def _read(address: str, format: str, wait_ms: int | None, reach: Reach, ctx: Context) -> Page:
    from . import _browser, _fetch, _web_address

    deadline = time.monotonic() + _seconds()
    if wait_ms is not None:
        wait_ms = min(wait_ms, _longest_wait_ms())
    _report(ctx, 1, "reading " + _web_address.shorten(_web_address.shown(address), 200))
    notes = []
    try:
        facts, data = await _browser.load(
            address,
            deadline,
            wait_ms=wait_ms,
            reach=reach,
            on_start=lambda: _report(ctx, 2, "starting the browser"),
        )
        facts["via"] = "browser"
    except _browser.NoBrowser as error:
        _report(ctx, 3, "reading without a browser")
        facts, data = await _fetch.load(address, deadline, networks=reach.networks)
        facts["via"] = "http"
        notes.append(f"[read by plain HTTP, scripts did not run: {error}]")
    facts["format"] = format
    facts["url"] = _web_address.shown(facts["url"])
    _report(ctx, 4, "converting the page")
    return await _convert(facts, data, notes, deadline)


def _report(ctx: Context, step: int, message: str) -> None:
    if ctx.wants_progress:
        ctx.progress(step, total=5, message=message)


async def _convert(facts: dict[str, Any], data: bytes, notes: list[str], deadline: float) -> Page:
    from . import _documents, _fetch
    from ._browser import answers
    from ._in_thread import in_thread
    from ._page_cache import Page

    is_html = facts.pop("html", False)
    title = facts.pop("title", "")
    scripts = facts.pop("scripts", "")
    media = facts["content_type"].partition(";")[0].strip().lower()
    if is_html:
        in_utf8 = facts["via"] == "browser"  # whatever encoding the page declares
        html = data.decode("utf-8", "replace") if in_utf8 else _fetch.text_of(data, facts["content_type"])
        title, text = await _from_html(facts, title, html, scripts, deadline)
    elif answers.is_pdf(media) or data.startswith(b"%PDF-"):
        document = await _documents.pdf_text(data, _left(deadline))
        title, text = document.title, document.text
    else:
        text = await in_thread(_fetch.text_of, data, facts["content_type"])
        text = text.replace("\r\n", "\n").replace("\0", "\ufffd")
    return Page(" ".join(title.split()), text.strip("\n"), facts, notes)


async def _from_html(
    facts: dict[str, Any], title: str, html: str, scripts: str, deadline: float
) -> tuple[str, str]:
    """Return title and main content of a page. Raises ToolError for a page that only checks the visitor."""
    import re

    from . import _challenges, _documents
    from ._browser import answers

    address = facts["url"]
    document = await _documents.convert(html, address, facts["format"], _left(deadline))
    title = title or document.title
    shown = document.text
    if facts["format"] == "html" and len(shown) < 10 * _challenges.SHORT:
        shown = re.sub(r"<[^<>]*>", " ", shown)
    if _challenges.is_challenge(title, html, scripts, shown):
        raise ToolError(
            f"{answers.show(address)} answered {facts['status']} with a challenge page that checks its "
            "visitors (captcha or browser check), not with content."
        )
    if not 200 <= facts["status"] < 300:
        raise ToolError(answers.status_refused(address, facts["status"]))
    return title, document.text


# --- showing --------------------------------------------------------------------------------------------


def _part(page: Page, offset: int, notes: list[str]) -> ToolResult:
    """Return as much of a page as a result holds, from an offset on."""
    from ._web_address import shorten

    total = len(page.text)
    if offset and offset >= total:
        got = _text.quoted(offset)
        raise ToolError(f"offset: expected less than {total}, the characters of the page; got {got}.")
    title = shorten(page.title, TITLE_SHOWN) or "(no title)"
    head = "\n".join([title, shorten(page.facts["url"]), *page.notes, *notes])
    end = offset + _cut(page.text[offset:], head)
    more = end if end < total else None
    lines = [head, "", page.text[offset:end].strip("\n") or "[the page has no text]"]
    if more is not None:
        lines.append(f"\n[characters {offset} to {end} of {total}; offset {end} goes on]")
    elif offset:
        lines.append(f"\n[characters {offset} to {total} of {total}: the end]")
    facts = {
        **page.facts,
        "title": page.title,
        "offset": offset,
        "next_offset": more,
        "total_characters": total,
    }
    return result("\n".join(lines), facts)


def _cut(text: str, head: str) -> int:
    """Return how much of a text fits below its head: to the end of a paragraph, else of a line."""
    characters, tokens = _text.limits()
    characters = max(characters - len(head), 300)
    tokens = max(tokens - _text.tokens_of(head), 100)
    length = _text.prefix_length(text, characters, tokens)
    if length >= len(text):
        return len(text)
    for mark in ("\n\n", "\n", " "):
        end = text.rfind(mark, int(length * CUT_SEARCH), length)
        if end >= 0:
            return end + len(mark)
    return _whole_character(text, length)


def _whole_character(text: str, end: int) -> int:
    """Move a cut back so that it does not split a character from its marks and joiners."""
    import unicodedata

    for place in range(end, max(end - 40, 1), -1):
        after, before = text[place], text[place - 1]
        if not unicodedata.combining(after) and after not in JOINERS and before != "\u200d":
            return place
    return end
