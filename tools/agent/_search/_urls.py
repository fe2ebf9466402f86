"""Addresses of results: without an engine's redirect, without tracking, and in one form for comparison.

`shown` is for readers, `canonical` only a key: for it, http and https, with and without ``www.``, with and
without a slash at the end are one page. Imports urllib.parse; no name is looked up.
"""

from __future__ import annotations

import re
from urllib.parse import parse_qs, unquote, urljoin, urlsplit, urlunsplit

LONGEST = 2_000

UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
KEPT = UNRESERVED | frozenset("!$&'()*+,;=:@/?[]|")
PORTS = {"http": 80, "https": 443}

# parameters that say where a reader came from, and do not select the page
_tracking = re.compile(
    r"(?:utm_|mtm_|hsa_|oly_|guce_|_hs)\w*|(?:fb|g|d|y|ys|tw|tt)clid|gclsrc|msclkid|mkt_tok|[gw]braid"
    r"|li_fat_id|igshid|igsh|epik|mc_[ce]id|srsltid|ref_(?:src|url)|vero_id|wickedid|_ga|_gl|guccounter|s_kwcid"
)
_piece = re.compile(r"%[0-9A-Fa-f]{2}|.", re.DOTALL)


def shown(address: str, base: str) -> str:
    """Return the target address of a link, ready to be shown; empty if it is not http or https."""
    try:
        url = unwrap(urljoin(base, address.strip()))
        parts = urlsplit(url)
        if parts.scheme not in PORTS or not parts.hostname or parts.username is not None or url == base:
            return ""
        parts.port  # noqa: B018  a port that is no number raises here
    except ValueError:
        return ""
    fragment = parts.fragment.partition(":~:")[0]  # a text that an engine wants highlighted
    url = urlunsplit(parts._replace(query=_without_tracking(parts.query), fragment=fragment))
    if not url.isprintable() or " " in url or any("\ud800" <= c <= "\udfff" for c in url):
        url = "".join(c if c.isprintable() and c != " " else _escaped(c) for c in url)
    return url if len(url) <= LONGEST else ""


def unwrap(url: str) -> str:
    """Return the target of a redirect of a search engine; without a redirect the address itself."""
    while True:
        target = _target(url)
        if not target.startswith(("http://", "https://")) or len(target) >= len(url):
            return url
        url = target


def _target(url: str) -> str:
    """Return the target of an engine's redirect; empty for any other address."""
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").removeprefix("www.")
    except ValueError:
        return ""
    if host == "bing.com" and parts.path.startswith("/ck/a"):
        return _from_base64(_parameter(parts.query, "u")[2:])
    if host.startswith("google.") and parts.path == "/url":
        return _parameter(parts.query, "q") or _parameter(parts.query, "url")
    if host == "duckduckgo.com" or host.endswith(".duckduckgo.com"):
        return _parameter(parts.query, "uddg")
    if host.endswith("search.yahoo.com") and "/RU=" in parts.path:
        return unquote(re.split(r"/R[KS]=", parts.path.partition("/RU=")[2])[0])
    return ""


def _parameter(query: str, name: str) -> str:
    try:
        return parse_qs(query).get(name, [""])[0].strip()
    except ValueError:
        return ""


def _from_base64(text: str) -> str:
    from base64 import urlsafe_b64decode

    try:
        return urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
    except ValueError:
        return ""


def canonical(url: str) -> str:
    """Return a key that is equal for two addresses of the same page. It is idempotent."""
    while (simpler := _simpler(url)) != url:
        url = simpler
    return url


def _simpler(url: str) -> str:
    url = unwrap(url.strip())
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return url
    if parts.scheme not in PORTS or not host:
        return url
    host = _host(host)
    if port is not None and port != PORTS[parts.scheme]:
        host = f"{host}:{port}"
    path = _percent(parts.path).rstrip("/")
    query = _percent(_without_tracking(parts.query))
    # in some single-page applications a fragment that begins like a path selects the page
    fragment = _percent(parts.fragment) if parts.fragment.startswith(("/", "!")) else ""
    return urlunsplit(("https", host, path, query, fragment))


def _host(host: str) -> str:
    host = host.lower().rstrip(".")
    if not host.isascii():
        try:
            host = host.encode("idna").decode().lower()
        except UnicodeError:
            pass
    if ":" in host:
        return f"[{host}]"
    rest = host.removeprefix("www.")
    return rest if "." in rest else host


def _without_tracking(query: str) -> str:
    if not query:
        return ""
    parts = query.split("&")
    return "&".join(
        part for part in parts if part and not _tracking.fullmatch(part.partition("=")[0].lower())
    )


def _percent(text: str) -> str:
    """Return a part of an address with its characters escaped in one form (RFC 3986, 6.2.2)."""
    return "".join(map(_normal, _piece.findall(text)))


def _normal(piece: str) -> str:
    if len(piece) == 3:
        character = chr(int(piece[1:], 16))
        return character if character in UNRESERVED else piece.upper()
    return piece if piece in KEPT else _escaped(piece)


def _escaped(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "replace"))
