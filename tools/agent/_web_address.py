"""Web addresses in the forms that callers write and that results show.

Only http and https are accepted. Pure text work: no name is looked up, and other modules decide who may be
reached.
"""

from __future__ import annotations

from fastrpc import ToolError

SCHEMES = ("http", "https")
LONGEST = 16_384
SHOWN = 1_000
LOCAL_HOSTS = ("localhost", "127.", "[::1]")


def address_of(text: str) -> str:
    """Return the address that the caller means. Without a scheme it is https; on this machine, http.

    Raises ToolError for anything but an http or https address.
    """
    text = text.strip()
    if len(text) > LONGEST:
        raise ToolError(f"url: expected at most {LONGEST} characters, got {len(text)}.")
    if not text or any(ord(character) < 32 or ord(character) == 127 for character in text):
        raise ToolError(f"url: expected an http or https address, got {shorten(ascii(text), 80)}.")
    text = text.replace(" ", "%20")
    scheme, rest = _split(text)
    if scheme not in SCHEMES:
        raise ToolError(
            f"url: expected an http or https address, got {shorten(ascii(shown(text)), 80)}: "
            f"{scheme}: is refused."
        )
    rest = rest.lstrip("/\\")  # which is how browsers read it
    if not rest or rest[0] in "?#:@":
        raise ToolError(f"url: expected an address with a host, got {shorten(ascii(shown(text)), 80)}.")
    return f"{scheme}://{rest}"


def _split(text: str) -> tuple[str, str]:
    """Return scheme and rest; `example.com/x` and `localhost:8000` have none."""
    if text.startswith("//"):
        return "https", text
    before, colon, after = text.partition(":")
    if not colon or not before.isascii() or not before.replace("+", "").replace("-", "").isalnum():
        named = False
    else:
        port = after.partition("/")[0].partition("?")[0].partition("#")[0]
        named = not (before.lower() == "localhost" and port.isdigit())
    if named:
        return before.lower(), after
    local = text.lower().startswith(LOCAL_HOSTS)
    return ("http" if local else "https"), "//" + text


def is_web(address: str) -> bool:
    """Whether an address in a browser's form is one that may be read."""
    return address.partition(":")[0].lower() in SCHEMES


def made_of(host: str, port: int) -> str:
    """Return the address of a host and port, in its shortest form."""
    if ":" in host:
        host = f"[{host}]"
    scheme = "https" if port == 443 else "http"
    return f"{scheme}://{host}" if port in (80, 443) else f"{scheme}://{host}:{port}"


def place_of(address: str) -> tuple[str, int]:
    """Return host and port of an address in a browser's form; an empty host if it has none."""
    scheme, _, rest = shown(address).partition("//")
    end = min((place for place in map(rest.find, "/?#") if place >= 0), default=len(rest))
    host, colon, port = rest[:end].rpartition(":")
    if not colon or not port.isdecimal():
        host, port = rest[:end], "443" if scheme == "https:" else "80"
    return host.strip("[]"), int(port)


def shown(address: str) -> str:
    """Return an address in the form for results: without user name and password."""
    scheme, separator, rest = address.partition("//")
    if not separator or ":" not in scheme:
        return address
    end = min((place for place in map(rest.find, "/?#\\") if place >= 0), default=len(rest))
    host = rest[:end].rpartition("@")[2]
    return f"{scheme}//{host}{rest[end:]}"


def shorten(text: str, limit: int = SHOWN) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
