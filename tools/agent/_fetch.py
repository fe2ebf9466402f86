"""Reads pages by plain HTTP, where the browser is missing, and decodes bytes to text.

Scripts do not run. Redirects are followed to http and https only, at most twenty. A body is read up to a
limit while it arrives. A call that may not reach everything (`_reach`) uses a separate egress proxy. The
first fetch imports httpx.
"""

from __future__ import annotations

import asyncio
import os
import time

from fastrpc import ToolError

from . import _web_address as web_address
from ._browser import answers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import httpx

BYTES = 20 * 1024**2
REDIRECTS = 20
CONNECTIONS = 8  # of one call to its proxy: one at a time, and those that are just closing
HEADERS = {
    "accept": "text/html,application/xhtml+xml,application/xml;q=0.9,text/markdown;q=0.9,*/*;q=0.8",
    "accept-language": "en-US,en;q=0.9",
    "user-agent": "Mozilla/5.0 (compatible; fastrpc)",
}
META_SEARCHED = 4096
WINDOWS_LATIN = "windows-1252"
LATIN = ("iso-8859-1", "latin1", "us-ascii", "ascii")  # browsers read the Windows one for all of them


async def load(
    address: str, deadline: float, *, limit: int = BYTES, networks: tuple[str, ...] | None = None
) -> tuple[dict[str, Any], bytes]:
    """Read a page: its facts (`url`, `status`, `content_type`; `html` where it is HTML) and its bytes.

    `deadline` is of `time.monotonic`. `networks`, if given, may be reached besides public addresses. Raises
    ToolError for an answer without content, and for an address that may not be reached.
    """
    if networks is None:
        return await _load(address, deadline, limit, None)
    from fastrpc.egress_proxy import EgressProxy

    async with EgressProxy(allow=networks, connections=CONNECTIONS) as proxy:
        try:
            return await _load(address, deadline, limit, proxy.url_with_password)
        except ToolError:
            if not proxy.refusals:
                raise
            (host, port), reason = proxy.refusals.popitem()  # the last one, where the redirects ended
        raise ToolError(answers.unreached(web_address.made_of(host, port), reason))


async def _load(address: str, deadline: float, limit: int, proxy: str | None) -> tuple[dict[str, Any], bytes]:
    try:
        import httpx
    except ImportError:
        raise ToolError(
            'There is neither a browser nor httpx to read pages with: pip install "fastrpc-mcp[tools]".'
        ) from None
    seconds = max(1.0, deadline - time.monotonic())
    try:
        return await asyncio.wait_for(_read(httpx.AsyncClient, address, limit, proxy), seconds)
    except (asyncio.TimeoutError, httpx.TimeoutException):
        raise ToolError(f"The page did not answer or was not complete within {seconds:.0f} s.") from None
    except httpx.TooManyRedirects:
        raise ToolError("The page could not be loaded: it redirects without end.") from None
    except httpx.InvalidURL:
        raise ToolError("The page could not be loaded: its address is not valid.") from None
    except (httpx.HTTPError, UnicodeError) as error:
        raise ToolError(f"The page could not be loaded: {_reason(error)}.") from None


async def _read(
    make_client: type[httpx.AsyncClient], address: str, limit: int, proxy: str | None
) -> tuple[dict[str, Any], bytes]:
    client = make_client(
        headers=HEADERS,
        timeout=None,
        proxy=proxy,
        http2=_has_http2(),
        follow_redirects=True,
        max_redirects=REDIRECTS,
        event_hooks={"response": [_check_redirect]},
    )
    async with client, client.stream("GET", address) as response:
        return await _answer(response, _event(response), limit)


async def _check_redirect(response: httpx.Response) -> None:
    target = answers.redirect_of(_event(response))
    if target and not web_address.is_web(target):
        raise ToolError(answers.redirect_refused(target))


def _event(response: httpx.Response) -> dict[str, Any]:
    """Return an answer in the form of the browser's event, so that both are judged alike."""
    return {
        "request": {"url": web_address.shown(str(response.url))},
        "responseStatusCode": response.status_code,
        "responseHeaders": [{"name": name, "value": value} for name, value in response.headers.items()],
    }


async def _answer(
    response: httpx.Response, event: dict[str, Any], limit: int
) -> tuple[dict[str, Any], bytes]:
    refusal = answers.refusal_of(event)
    if refusal:
        raise ToolError(refusal)
    data = await _body(response, event, limit)
    facts = answers.facts_of(event)
    if answers.is_html(event):
        facts["html"] = True
    return facts, data


async def _body(response: httpx.Response, event: dict[str, Any], limit: int) -> bytes:
    media = answers.media_type(event)
    known = answers.is_html(event) or answers.is_text(media) or answers.is_pdf(media)
    data = bytearray()
    async for piece in response.aiter_bytes():
        data += piece
        if not known and not answers.looks_readable(media, bytes(data[: 64 * 1024])):
            raise ToolError(answers.download_refused(event))
        known = known or len(data) >= 64 * 1024
        if len(data) > limit:
            raise ToolError(answers.too_large(limit))
    return bytes(data)


def _has_http2() -> bool:
    from importlib.util import find_spec

    return find_spec("h2") is not None


def _reason(error: Exception) -> str:
    """Return the system's text for a failure; never the address, which may hold a password."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno is not None:
            words = os.strerror(cause.errno) if cause.errno > 0 else cause.strerror or ""
            return words[:1].lower() + words[1:]
        cause = cause.__cause__ or cause.__context__
    return f"the connection failed ({type(error).__name__})"


def text_of(data: bytes, content_type: str) -> str:
    """Decode text or HTML: by its byte order mark, its header, its own declaration, as UTF-8, as Windows
    Latin."""
    for mark, name in ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")):
        if data.startswith(mark):
            return data[len(mark) :].decode(name, "replace")
    named = _parameter(content_type, "charset") or _named_inside(data[:META_SEARCHED])
    if named:
        try:
            return data.decode(WINDOWS_LATIN if named.lower() in LATIN else named, "replace")
        except LookupError:
            pass  # an unknown name
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode(WINDOWS_LATIN, "replace")


def _parameter(content_type: str, name: str) -> str:
    for part in content_type.split(";")[1:]:
        key, _, value = part.partition("=")
        if key.strip().lower() == name:
            return value.strip().strip("\"'")
    return ""


def _named_inside(head: bytes) -> str:
    import re

    found = re.search(
        rb"<meta[^>]{0,200}charset\s{0,20}=[\s\"']{0,20}([A-Za-z0-9_.:-]+)", head, re.IGNORECASE
    )
    if found is None:
        found = re.match(rb"<\?xml[^>]{0,200}encoding\s*=\s*[\"']([A-Za-z0-9_.:-]+)", head.lstrip())
    return found[1].decode("ascii") if found is not None else ""
