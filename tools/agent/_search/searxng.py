"""An instance of SearXNG, by the address in FASTRPC_SEARXNG_URL; its settings must allow the format JSON."""

from __future__ import annotations

from urllib.parse import urlsplit

from .. import _settings
from ._engine import JsonEngine, Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._engine import Page

STAND_IN = "https://searxng.invalid"  # a reserved name (RFC 2606), which only a stand-in answers


class Searxng(JsonEngine):
    name = "searxng"
    captcha_addresses = ("captcha",)

    def missing(self) -> str:
        address = _settings.SEARXNG_URL.read()
        if not address:
            return "" if _settings.SEARCH_ADDRESS.read() else "not set"
        parts = urlsplit(address)
        return "" if parts.scheme in ("http", "https") and parts.hostname else "bad address"

    def request(self, query: str) -> Request:
        base = _settings.SEARXNG_URL.read() or STAND_IN
        return Request(
            f"{base.rstrip('/')}/search",
            {"q": query, "format": "json"},
            headers={"Accept": "application/json"},
        )

    def rows(self, page: Page) -> list[tuple[str, str, str]] | None:
        answer = self.data(page)
        try:
            return [(found["title"], found["url"], found.get("content") or "") for found in answer["results"]]
        except (KeyError, TypeError, AttributeError):
            return None


ENGINE = Searxng()
