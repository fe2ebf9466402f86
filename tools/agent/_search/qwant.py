"""Qwant: the interface that its own page uses (JSON). ddgs has no engine for it."""

from __future__ import annotations

from ._engine import Blocked, Failed, JsonEngine, Request
from ._markup import without_tags

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._engine import Page

TOO_MANY, CAPTCHA = 24, 27  # error codes of the interface


class Qwant(JsonEngine):
    name = "qwant"
    domain = "qwant.com"
    captcha_addresses = ("captcha",)

    def request(self, query: str) -> Request:
        return Request(
            "https://api.qwant.com/v3/search/web",
            {
                "q": query,
                "count": "10",
                "offset": "0",
                "locale": "en_US",
                "device": "desktop",
                "safesearch": "1",
            },
            headers={"Accept": "application/json", "Referer": "https://www.qwant.com/"},
        )

    def rows(self, page: Page) -> list[tuple[str, str, str]] | None:
        answer = self.data(page)
        try:
            data = answer["data"]
            if answer["status"] != "success":
                if data.get("error_code") in (TOO_MANY, CAPTCHA):
                    raise Blocked(f"error {data['error_code']} of the interface")
                raise Failed(f"error {data.get('error_code')} of the interface")
            return [
                (without_tags(item["title"]), item["url"], without_tags(item.get("desc") or ""))
                for row in data["result"]["items"]["mainline"]
                if row["type"] == "web"
                for item in row["items"]
            ]
        except (KeyError, TypeError, AttributeError):
            return None


ENGINE = Qwant()
