"""Brave Search, as ddgs reads it."""

from __future__ import annotations

from ._ddgs import DdgsEngine


class Brave(DdgsEngine):
    name = module = "brave"
    domain = "search.brave.com"
    captcha_addresses = ("/captcha",)
    nothing = ("//*[@id='no-results']", "no results found", "not many great matches came back")
    blocked = ("//*[contains(@class, 'pow-captcha') or @id='pow-captcha']",)


ENGINE = Brave()
