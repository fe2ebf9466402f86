"""Startpage, as ddgs reads it: its first page holds a token that the search must send."""

from __future__ import annotations

from ._ddgs import DdgsEngine


class Startpage(DdgsEngine):
    name = module = "startpage"
    domain = "startpage.com"
    welcome = "https://www.startpage.com/"
    captcha_addresses = ("/sp/captcha", "/captcha")
    nothing = ("//*[contains(@class, 'no-results')]", "there are no results", "no results found")
    blocked = ("suspicious activity",)


ENGINE = Startpage()
