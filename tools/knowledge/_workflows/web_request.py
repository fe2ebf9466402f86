"""HTTP requests of workflows, to addresses that their caller may reach (`tools._reach`), through an egress
proxy if that is not everything.

A request is bounded in time, its answer in size. Redirects are followed only for GET and HEAD, each through
the same proxy. The caller's headers and query are sent only to the host that the caller names. The first
request imports httpx.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from fastrpc import ToolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    import httpx

    from ..._reach import Reach

LARGEST = 1024 * 1024
LONGEST_ADDRESS = 8192
REDIRECTS = 5
REPEATABLE = ("GET", "HEAD", "OPTIONS", "PUT", "DELETE")
"""Methods that may be repeated (RFC 9110, 9.2.2)."""
CONNECTIONS = 4  # of one request to its proxy: one at a time, and those that are just ending
SHOWN = 300


class Answer(NamedTuple):
    """An answer with a status below 400. `body` is the value of its JSON, else the text."""

    status: int
    headers: dict[str, str]
    body: Any


class Order(NamedTuple):
    """A request. A `body` that is a text or bytes is sent unchanged, anything else as JSON; None: no body."""

    method: str
    url: str
    headers: Mapping[str, str] = {}
    query: Mapping[str, Any] = {}
    body: Any = None


class ErrorStatus(ToolError):
    """An answer with a status of 400 or above."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


async def send(order: Order, reach: Reach, seconds: float, largest: int = LARGEST) -> Answer:
    """Send a request. Raises ToolError if it gets no answer, and ErrorStatus for an answer that reports a
    failure."""
    try:
        import httpx
    except ImportError:
        raise ToolError('url: requests need httpx: pip install "fastrpc-mcp[workflows]"') from None
    from fastrpc.time_limit import TimeLimit

    try:
        with TimeLimit(seconds):
            return await _within_reach(order, reach, largest)
    except TimeoutError:
        raise ToolError(f"url: no answer, or not all of it, within {seconds:g} s.") from None
    except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
        raise ToolError(f"url: {_reason(error)}.") from None


async def _within_reach(order: Order, reach: Reach, largest: int) -> Answer:
    if reach.networks is None:
        return await _sent(order, None, largest)
    from fastrpc.egress_proxy import EgressProxy

    async with EgressProxy(allow=reach.networks, connections=CONNECTIONS) as proxy:
        try:
            return await _sent(order, proxy.url_with_password, largest)
        except Exception:
            if not proxy.refusals:
                raise
            (host, port), reason = proxy.refusals.popitem()  # the last one, where the redirects ended
        raise ToolError(f"url: {host}:{port} may not be reached: {reason}.")


async def _sent(order: Order, proxy: str | None, largest: int) -> Answer:
    import httpx

    url = _address(order.url)
    if order.query:
        url = url.copy_merge_params({name: str(each) for name, each in order.query.items()})
    headers = {"accept-encoding": "identity", "user-agent": "fastrpc", **_headers(order)}
    content = _content(order.body, headers)
    async with httpx.AsyncClient(timeout=None, proxy=proxy, trust_env=proxy is None) as client:
        for _ in range(REDIRECTS + 1):
            request = client.build_request(order.method, url, headers=headers, content=content)
            response = await client.send(request, stream=True)
            try:
                if not response.is_redirect:
                    return await _answer(response, largest)
            finally:
                await response.aclose()
            if order.method not in ("GET", "HEAD"):
                raise ToolError(f"url: {response.status_code}: only GET and HEAD follow redirects.")
            after = _address(str(url.join(response.headers["location"])))
            if (after.scheme, after.host, after.port) != (url.scheme, url.host, url.port):
                headers = {"accept-encoding": "identity", "user-agent": "fastrpc"}
            url = after
    raise ToolError(f"url: more than {REDIRECTS} redirects.")


def _address(text: str) -> httpx.URL:
    """Return an address that may be requested. Raises ToolError, and InvalidURL."""
    import httpx

    if len(text) > LONGEST_ADDRESS:
        raise ToolError(f"url: expected at most {LONGEST_ADDRESS:,} characters, got {len(text):,}.")
    url = httpx.URL(text)
    if url.scheme not in ("http", "https") or not url.host:
        raise ToolError(f"url: expected an http or https address, got {text!r:.80}.")
    if url.userinfo:
        raise ToolError("url: expected no user and password in it: send them as a header.")
    return url


def _headers(order: Order) -> dict[str, str]:
    found = {}
    for name, value in order.headers.items():
        if name.lower() in ("host", "content-length", "transfer-encoding", "connection", "accept-encoding"):
            raise ToolError(f"headers: {name} is not the caller's to say.")
        if not name.isascii() or not name.replace("-", "").replace("_", "").isalnum():
            raise ToolError(f"headers: expected a name, got {name!r:.80}.")
        if not value.isprintable():
            raise ToolError(f"headers.{name}: expected printable characters.")
        found[name.lower()] = value
    return found


def _content(body: Any, headers: dict[str, str]) -> bytes | None:
    """Return the bytes of a body, and set the headers that describe them."""
    if body is None:
        return None
    if isinstance(body, bytes | str):
        headers.setdefault("content-type", "text/plain; charset=utf-8")
        return body if isinstance(body, bytes) else body.encode()
    headers.setdefault("content-type", "application/json")
    return json.dumps(body, ensure_ascii=False).encode()


async def _answer(response: httpx.Response, largest: int) -> Answer:
    if "content-encoding" in response.headers:
        raise ToolError("url: the answer is compressed, which was not requested.")
    data = bytearray()
    async for piece in response.aiter_raw():
        data += piece
        if len(data) > largest:
            raise ToolError(f"url: expected an answer of at most {largest:,} bytes.")
    media = response.headers.get("content-type", "")
    text = data.decode(response.charset_encoding or "utf-8", "replace")
    if response.is_error:
        raise ErrorStatus(
            response.status_code,
            f"url: the answer is {response.status_code} {response.reason_phrase}: {text:.{SHOWN}}",
        )
    kept = {
        name: response.headers[name]
        for name in ("content-type", "etag", "link", "location", "retry-after")
        if name in response.headers
    }
    return Answer(response.status_code, kept, _parsed(text) if "json" in media.partition(";")[0] else text)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise ToolError("url: the answer is not JSON, although its Content-Type says so.") from None


def _no_number(name: str) -> Any:
    raise ValueError(name)


def _reason(error: Exception) -> str:
    """Return a text for a failure; never the address, which may hold a secret."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
        cause = cause.__cause__ or cause.__context__
    return f"the connection failed ({type(error).__name__})"
