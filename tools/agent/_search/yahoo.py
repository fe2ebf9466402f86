"""Yahoo, as ddgs reads it. In Europe it may ask for consent first, which counts as a block."""

from __future__ import annotations

from ._ddgs import DdgsEngine


class Yahoo(DdgsEngine):
    name = module = "yahoo"
    domain = "yahoo.com"
    captcha_addresses = ("consent.yahoo.com", "guce.yahoo.com", "/captcha")
    nothing = ("we did not find results for", "no results found")
    blocked = ("//form[contains(@class, 'consent-form')]",)


ENGINE = Yahoo()
