"""Tells pages that check the visitor first ("checking your browser") from content.

Such a page has a title or a script that is typical of these services, and hardly any text. An article about
them has more text.
"""

from __future__ import annotations

SHORT = 2_000  # characters of text; a challenge has less

TITLES = (
    "just a moment",
    "attention required! | cloudflare",
    "checking your browser",
    "ddos-guard",
    "please wait while your request is being verified",
    "please wait... | cloudflare",
    "one moment, please",
    "verifying your connection",
    "verify you are human",
    "are you a robot",
    "robot or human",
    "robot check",
    "pardon our interruption",
    "human verification",
    "security check",
    "security checkpoint",
    "bot verification",
    "client challenge",
    "access to this page has been denied",
    "captcha",
)
TEXTS = (
    "checking your browser",
    "checking if the site connection is secure",
    "verify you are human",
    "verifying you are human",
    "verify that you are human",
    "verify that you are not a robot",
    "confirm you are a human",
    "confirm you are human",
    "prove you are human",
    "prove you're not a robot",
    "prove you are not a robot",
    "i'm not a robot",
    "needs to review the security of your connection",
    "unusual traffic from your computer network",
    "enable javascript and cookies to continue",
    "making sure you're not a bot",
    "complete the captcha",
    "solve the captcha",
)
MARKS = (
    "_cf_chl_opt",
    "cf-challenge",
    "cf_chl_",
    "/cdn-cgi/challenge-platform/h/",
    "geo.captcha-delivery.com",
    "px-captcha",
    "_incapsula_resource",
    "awswafcookiedomainlist",
    "gokuprops",
    "/.within.website/x/cmd/anubis",
    "ddos-guard/js-challenge",
    "sgcaptcha",
)
WIDGETS = ("g-recaptcha", "h-captcha", "cf-turnstile", "captcha-container")
WIDGET_SHORT = 400


def is_challenge(title: str, html: str, scripts: str, text: str) -> bool:
    """Whether a page admits visitors only after a check. `text` is what it shows; `scripts` are those that
    `html` lacks."""
    if len(text) > SHORT:
        return False
    title, text = title.strip().lower(), text.lower().replace("\u2019", "'")
    if title.startswith(TITLES) or any(sign in text for sign in TEXTS):
        return True
    html = (html + scripts).lower()
    if any(mark in html for mark in MARKS):
        return True
    return len(text) < WIDGET_SHORT and any(widget in html for widget in WIDGETS)
