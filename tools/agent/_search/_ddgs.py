"""Engines that the library ddgs maintains: its requests and its XPath, over connections of `_network`.

From ddgs come the address, the form, the cookies and headers, the expressions that find results and the
filter for advertisements. These change when an engine changes, and then an update of ddgs repairs them. Its
HTTP client is not used: it blocks a thread, cannot be cancelled, hides status and redirects and reads pages
of any size. Nor is its clean-up of texts, which removes joiners and marks of direction and decodes addresses
until they lead elsewhere. Importing an engine of ddgs imports all of them and primp, about 25 ms together.
"""

from __future__ import annotations

from .._in_thread import in_thread
from ._engine import MOST_HITS, HtmlEngine, Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._engine import Fetch, Hit, Page


class DdgsEngine(HtmlEngine):
    """An engine of ddgs. `region` is ddgs's parameter; `welcome` is a page that ddgs reads before it
    searches."""

    module = ""
    region = "us-en"
    welcome = ""

    async def ask(self, query: str, fetch: Fetch) -> list[Hit]:
        from asyncio import to_thread

        welcome = ""
        if self.welcome:
            page = await fetch(Request(self.welcome))
            self.check_status(page)
            welcome = page.text
        page = await fetch(await to_thread(self.request, query, welcome))
        return await in_thread(self.read, page, query)

    def request(self, query: str, welcome: str = "") -> Request:
        theirs = self._theirs(welcome)
        client = theirs.http_client
        payload = theirs.build_payload(query, self.region, "moderate", None, 1)
        return Request(
            str(theirs.search_url),
            {name: str(value) for name, value in payload.items()},
            method=theirs.search_method,
            headers=dict(theirs.headers_update),
            cookies=client.cookies,
        )

    def rows(self, page: Page) -> list[tuple[str, str, str]] | None:
        theirs = self._theirs()
        rows = []
        for item in self.tree(page).xpath(theirs.items_xpath)[: 3 * MOST_HITS]:
            row = _Row(*("".join(item.xpath(theirs.elements_xpath[key])) for key in ("title", "body")))
            row.href = next((str(href) for href in item.xpath(theirs.elements_xpath["href"]) if href), "")
            if row.href:
                rows += self._without_advertisements(theirs, row)
        return [(row.title, row.href, row.body) for row in rows]

    @staticmethod
    def _without_advertisements(theirs: Any, row: _Row) -> list[_Row]:
        try:
            kept: list[_Row] = theirs.post_extract_results([row])
        except (ValueError, LookupError):
            return []  # an address in a form that ddgs cannot parse: drop this row only
        return kept

    def _theirs(self, welcome: str = "") -> Any:
        """Return ddgs's engine with a recorder in place of its HTTP client."""
        from importlib import import_module

        known = getattr(import_module(f"ddgs.engines.{self.module}"), self.module.capitalize())
        theirs = known.__new__(known)
        theirs.http_client = _Recorder(welcome)
        theirs.results = []
        return theirs


class _Row:
    """A result in the form that ddgs's filters accept, without its clean-up."""

    def __init__(self, title: str, body: str) -> None:
        self.title = title
        self.body = body
        self.href = ""


class _Recorder:
    """Records the request that ddgs would make, and returns the one page that it may ask for."""

    def __init__(self, text: str) -> None:
        self.text = text or "<p></p>"  # ddgs parses it
        self.status_code = 200
        self.cookies: dict[str, str] = {}
        self.client = self

    def set_cookies(self, url: str, cookies: dict[str, str]) -> None:
        self.cookies.update(cookies)

    def headers_update(self, headers: dict[str, str]) -> None:
        pass  # read from the class instead

    def request(self, *arguments: Any, **options: Any) -> _Recorder:
        return self
