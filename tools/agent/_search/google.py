"""Google: both of its pages, with and without scripts.

To programs it mostly shows a captcha or a page that wants scripts. ddgs has an engine for it but has
switched it off.
"""

from __future__ import annotations

from . import _urls
from ._engine import HtmlEngine, Request, language_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._engine import Page

# the nearest box around a title, on either page
BOX = (
    "ancestor::div[contains(@class, 'Gx5Zad') or contains(@class, 'MjjYud')"
    " or contains(concat(' ', @class, ' '), ' g ')][1]"
)


class Google(HtmlEngine):
    name = "google"
    domain = "google.com"
    captcha_addresses = ("/sorry", "consent.google.")
    nothing = ("did not match any documents", "no results found for")
    blocked = (
        "//noscript//*[contains(@href, 'enablejs') or contains(@content, 'enablejs')]",
        "//form[contains(@action, 'consent.google')]",
        "enable javascript",
        "having trouble accessing google search",
    )

    item = "//a[@href and .//h3]"
    title = "(.//h3)[1]"
    address = "./@href"
    snippet = f"({BOX}//*[contains(@class, 's3v9rd') or contains(@class, 'VwiC3b') or @data-sncf])[1]"

    def request(self, query: str) -> Request:
        parameters = {
            "q": query,
            "hl": language_of(query),
            "ie": "utf8",
            "oe": "utf8",
            "gbv": "1",
            "num": "10",
        }
        return Request("https://www.google.com/search", parameters, cookies={"CONSENT": "YES+"})

    def rows(self, page: Page) -> list[tuple[str, str, str]] | None:
        found = super().rows(page) or []
        return [row for row in found if not _own(_urls.shown(row[1], page.url))]


def _own(url: str) -> bool:
    """Whether an address is part of the search itself: pictures, further results, advertisements."""
    return url.startswith(("https://www.google.com/search", "https://www.google.com/aclk"))


ENGINE = Google()
