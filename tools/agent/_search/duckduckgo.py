"""DuckDuckGo: its page without scripts, as ddgs reads it. It answers robots with 202 and a puzzle."""

from __future__ import annotations

from ._ddgs import DdgsEngine
from ._engine import Blocked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._engine import Page


class DuckDuckGo(DdgsEngine):
    name = module = "duckduckgo"
    domain = "duckduckgo.com"
    region = "wt-wt"  # no region
    captcha_addresses = ("/anomaly",)
    nothing = ("//*[contains(@class, 'no-results')]", "no results found", "no more results")
    blocked = ("//*[contains(@class, 'anomaly-modal')]", "bots use duckduckgo too")

    def check_status(self, page: Page) -> None:
        if page.status == 202:
            raise Blocked("HTTP 202, a puzzle")
        super().check_status(page)


ENGINE = DuckDuckGo()
