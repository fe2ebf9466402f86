"""Mojeek, which has an independent index, as ddgs reads it."""

from __future__ import annotations

from ._ddgs import DdgsEngine


class Mojeek(DdgsEngine):
    name = module = "mojeek"
    domain = "mojeek.com"
    captcha_addresses = ("/captcha",)
    nothing = ("no pages found", "no results found")


ENGINE = Mojeek()
