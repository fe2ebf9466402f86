"""Wikipedia: the search of its public interface (MediaWiki), in the language of the query.

ddgs asks, in two requests, for the one article whose title begins like the query. This engine finds ten by
their text in one request.
"""

from __future__ import annotations

from urllib.parse import quote, urlsplit

from ._engine import Failed, JsonEngine, Request, language_of
from ._markup import without_tags

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._engine import Page


class Wikipedia(JsonEngine):
    name = "wikipedia"
    domain = "wikipedia.org"

    def request(self, query: str) -> Request:
        return Request(
            f"https://{language_of(query)}.wikipedia.org/w/api.php",
            {
                "action": "query",
                "format": "json",
                "formatversion": "2",
                "list": "search",
                "srprop": "snippet",
                "srlimit": "10",
                "srsearch": query[:300],  # the interface takes no more
            },
            headers={"Accept": "application/json"},
        )

    def rows(self, page: Page) -> list[tuple[str, str, str]] | None:
        answer = self.data(page)
        try:
            if "error" in answer:
                raise Failed(f"error {str(answer['error']['code'])[:40]!r} of the interface")
            host = urlsplit(page.url).hostname
            return [
                (
                    found["title"],
                    f"https://{host}/wiki/{quote(found['title'].replace(' ', '_'), safe='/:()!,*~-._')}",
                    without_tags(found["snippet"]),
                )
                for found in answer["query"]["search"]
            ]
        except (KeyError, TypeError, AttributeError):
            return None


ENGINE = Wikipedia()
