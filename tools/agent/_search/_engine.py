"""What a search engine is: how to ask it, and how to read its page into hits or into the reason for none.

A page is judged in this order: its status; its hits; its own text for "nothing found"; the signs of a
captcha. A page with none of these has changed its structure. That is an error and not an empty result, so
that it is noticed. Costs nothing to import; the first page of HTML imports lxml.
"""

from __future__ import annotations

from .._in_thread import in_thread
from . import _text, _urls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

    Fetch = Callable[["Request"], Awaitable["Page"]]

MOST_HITS = 20  # taken from one engine

# Signs of a page that asks for a person. What begins with // is XPath, the rest is visible text.
BLOCKED = (
    "captcha",
    "unusual traffic",
    "automated queries",
    "not a robot",
    "are you a robot",
    "are you human",
    "verify you are human",
    "checking your browser",
    "access denied",
    "//form[contains(@action, 'captcha') or contains(@action, 'challenge')]",
    "//iframe[contains(@src, 'captcha')]",
    "//script[contains(@src, 'captcha') or contains(@src, 'challenges.cloudflare.com')]",
)


class Blocked(Exception):
    """The engine refuses programs, or so many requests."""


class Failed(Exception):
    """The engine did not answer as it should: because of its server, the network or the structure of its
    page."""


class Unreachable(Failed):
    """No connection was made, because of the engine or of the local network."""


class Request:
    """One request: the parameters are the query of a GET, the form of a POST."""

    __slots__ = ("cookies", "headers", "method", "parameters", "url")

    def __init__(
        self,
        url: str,
        parameters: dict[str, str] | None = None,
        *,
        method: str = "GET",
        headers: dict[str, str] | None = None,
        cookies: dict[str, str] | None = None,
    ) -> None:
        self.url = url
        self.parameters = parameters or {}
        self.method = method
        self.headers = headers or {}
        self.cookies = cookies or {}


class Page:
    """An engine's answer; `url` is the engine's own address, even if a stand-in has answered."""

    __slots__ = ("body", "headers", "status", "url")

    def __init__(self, url: str, status: int, headers: dict[str, str], body: bytes) -> None:
        self.url = url
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def text(self) -> str:
        """The body as text: in the header's charset if Python knows it, else as UTF-8."""
        charset = self.headers.get("content-type", "").rpartition("charset=")[2].strip("\"' ;")
        try:
            return self.body.decode(charset or "utf-8", "replace")
        except LookupError:
            return self.body.decode("utf-8", "replace")


class Hit:
    """One result of one engine, cleaned: no line breaks, no markup, an address of http or https."""

    __slots__ = ("snippet", "title", "url")

    def __init__(self, title: str, url: str, snippet: str) -> None:
        self.title = title
        self.url = url
        self.snippet = snippet

    def __repr__(self) -> str:
        return f"Hit({self.title!r}, {self.url!r}, {self.snippet!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Hit) and (self.title, self.url, self.snippet) == (
            other.title,
            other.url,
            other.snippet,
        )

    __hash__ = None  # type: ignore[assignment]


class Engine:
    """One engine: how to ask it (`request`) and how to read its page (`rows`)."""

    name = ""
    domain = ""  # requests and redirects stay on it and its subdomains
    captcha_addresses: tuple[str, ...] = ()  # a redirect to an address that contains one of these is a block
    nothing: tuple[str, ...] = ()  # the engine's own signs of "no results", as in BLOCKED
    blocked: tuple[str, ...] = ()  # its signs of a block, besides BLOCKED

    def missing(self) -> str:
        """Return why this engine cannot be asked with these settings; empty if it can."""
        return ""

    def request(self, query: str) -> Request:
        raise NotImplementedError

    def rows(self, page: Page) -> list[tuple[str, str, str]] | None:
        """Return title, address and snippet of each result, unchanged. None or nothing: no results could be
        recognised in the page. Raises Blocked, or any exception for a broken page."""
        raise NotImplementedError

    def has_no_results(self, page: Page, query: str) -> bool:
        """Return whether a page says that it has no results. Raises Blocked for a captcha."""
        raise NotImplementedError

    async def ask(self, query: str, fetch: Fetch) -> list[Hit]:
        """Return the engine's results. Raises Blocked or Failed. Pages are parsed on a thread."""
        page = await fetch(self.request(query))
        return await in_thread(self.read, page, query)

    def read(self, page: Page, query: str) -> list[Hit]:
        """Return the hits of a page. Raises Blocked or Failed."""
        self.check_status(page)
        hits = tidy(self.rows(page) or [], page.url)
        if hits or self.has_no_results(page, query):
            return hits
        raise Failed("a page without results that does not say so: perhaps its form has changed")

    def check_status(self, page: Page) -> None:
        if page.status in (401, 403, 429, 451):
            raise Blocked(f"HTTP {page.status}")
        if page.status != 200:
            raise Failed(f"HTTP {page.status}")


class HtmlEngine(Engine):
    """An engine with a page for people: `item` finds the results, the other expressions are relative to
    one."""

    item = ""
    title = ""
    address = ""
    snippet = ""

    def rows(self, page: Page) -> list[tuple[str, str, str]] | None:
        from ._markup import first, text_of

        return [
            (text_of(item, self.title), first(item, self.address), text_of(item, self.snippet))
            for item in self.tree(page).xpath(self.item)[: 3 * MOST_HITS]
        ]

    def has_no_results(self, page: Page, query: str) -> bool:
        from ._markup import shows

        tree = self.tree(page)
        if shows(tree, self.nothing, query):
            return True
        if shows(tree, self.blocked + BLOCKED, query):
            raise Blocked("a page that asks for a person")
        return False

    def tree(self, page: Page) -> Any:
        from ._markup import parse

        return parse(page.text)


class JsonEngine(Engine):
    """An engine that answers with JSON. An answer that is not JSON asks for a person, or is broken."""

    def data(self, page: Page) -> Any:
        import json

        try:
            return json.loads(page.text)
        except ValueError:
            if any(sign in page.text[:20_000].lower() for sign in BLOCKED if not sign.startswith("//")):
                raise Blocked("a page that asks for a person") from None
            raise Failed("not JSON") from None

    def has_no_results(self, page: Page, query: str) -> bool:
        return self.rows(page) == []


def tidy(rows: list[tuple[str, str, str]], base: str) -> list[Hit]:
    """Return the hits among rows: cleaned, with whole addresses without redirects, each address once."""
    hits: list[Hit] = []
    seen: set[str] = set()
    for title, address, snippet in rows:
        url = _urls.shown(address, base)
        if not url or (key := _urls.canonical(url)) in seen:
            continue
        seen.add(key)
        hits.append(Hit(_text.plain(title, _text.TITLE) or url, url, _text.plain(snippet, _text.SNIPPET)))
        if len(hits) == MOST_HITS:
            break
    return hits


def language_of(text: str) -> str:
    """Return the language of a text as far as its script shows: "ar", "ru" …, else "en"."""
    for character in text:
        code = ord(character)
        if code >= 0x370:
            for language, first, last in SCRIPTS:
                if first <= code <= last:
                    return (
                        "ja"
                        if language == "zh" and any("\u3040" <= c <= "\u30ff" for c in text)
                        else language
                    )
    return "en"


SCRIPTS = (
    ("el", 0x370, 0x3FF),
    ("ru", 0x400, 0x52F),
    ("hy", 0x530, 0x58F),
    ("he", 0x590, 0x5FF),
    ("ar", 0x600, 0x77F),
    ("hi", 0x900, 0x97F),
    ("bn", 0x980, 0x9FF),
    ("ta", 0xB80, 0xBFF),
    ("th", 0xE00, 0xE7F),
    ("ka", 0x10A0, 0x10FF),
    ("ja", 0x3040, 0x30FF),
    ("zh", 0x4E00, 0x9FFF),
    ("ko", 0xAC00, 0xD7AF),
)
