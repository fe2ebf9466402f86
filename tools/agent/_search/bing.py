"""Bing: its page for people. ddgs has an engine for it but has switched it off."""

from __future__ import annotations

from ._engine import HtmlEngine, Request, language_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._engine import Page


class Bing(HtmlEngine):
    name = "bing"
    domain = "bing.com"
    captcha_addresses = ("/challenge", "/captcha")
    nothing = ("//li[contains(@class, 'b_no')]", "there are no results for")
    blocked = ("//*[@id='b_captcha']", "solve the challenge below", "one last step")

    item = "//ol[@id='b_results']/li[contains(concat(' ', @class, ' '), ' b_algo ')]"
    title = "(.//h2/a)[1]"
    address = "(.//h2/a)[1]/@href"
    snippet = (
        "(.//div[contains(@class, 'b_caption')]//p | ./p)[1]"
        "//text()[not(ancestor::span[contains(@class, 'algoSlug')])]"
    )

    def request(self, query: str) -> Request:
        return Request("https://www.bing.com/search", {"q": query, "setlang": language_of(query)})

    def rows(self, page: Page) -> list[tuple[str, str, str]] | None:
        found = super().rows(page) or []
        return [row for row in found if "bing.com/aclick" not in row[1]]  # advertisements


ENGINE = Bing()
