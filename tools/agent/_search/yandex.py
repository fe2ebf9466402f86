"""Yandex: the page that it makes for searches on other sites, which needs no scripts, and its usual page.

ddgs has an engine for it but has switched it off.
"""

from __future__ import annotations

from ._engine import Blocked, HtmlEngine, Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._engine import Page


class Yandex(HtmlEngine):
    name = "yandex"
    domain = "yandex.com"
    captcha_addresses = ("showcaptcha",)
    nothing = (
        "//*[contains(@class, 'misspell__message') or contains(@class, 'EmptySearchResults')]",
        "no results found",
        "nothing found",
        "ничего не нашлось",
        "ничего не найдено",
    )
    blocked = ("//*[contains(@class, 'CheckboxCaptcha') or contains(@class, 'SmartCaptcha')]",)

    item = "//li[contains(@class, 'serp-item')]"
    title = "(.//a[contains(@class, 'title-link') or contains(@class, 'OrganicTitle-Link')])[1]"
    address = f"{title}/@href"
    snippet = "(.//*[contains(@class, 'b-serp-item__text') or contains(@class, 'OrganicTextContentSpan')])[1]"

    def request(self, query: str) -> Request:
        return Request("https://yandex.com/search/site/", {"text": query, "web": "1", "searchid": "2450531"})

    def check_status(self, page: Page) -> None:
        if page.headers.get("x-yandex-captcha"):
            raise Blocked("a captcha")
        super().check_status(page)


ENGINE = Yandex()
