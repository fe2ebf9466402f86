"""What the answer to a request for a page is: HTML, text, PDF, a redirect, an error, a download.

Judges status and headers, for the browser (its `Fetch.requestPaused` events) and for plain HTTP alike, and
writes the texts of refusals. No I/O.
"""

from __future__ import annotations

from http import HTTPStatus

from .. import _web_address as web_address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

HTML = ("text/html", "application/xhtml+xml")
TEXT = (
    "application/json",
    "application/javascript",
    "application/x-javascript",
    "application/ecmascript",
    "application/xml",
    "application/yaml",
    "application/x-yaml",
    "application/toml",
    "application/x-sh",
    "application/x-python",
    "application/sql",
    "application/graphql",
    "application/x-ndjson",
    "application/rtf",
    "image/svg+xml",
)
NEVER_TEXT = ("image/", "audio/", "video/", "font/", "multipart/")
CHALLENGE_SERVERS = ("cloudflare", "ddos-guard", "akamaighost", "datadome", "imperva", "sucuri")
CHALLENGE_STATUS = (403, 429, 503)

FAILURES = {
    "ERR_NAME_NOT_RESOLVED": "its host is unknown",
    "ERR_CONNECTION_REFUSED": "the connection was refused",
    "ERR_CONNECTION_RESET": "the connection was cut",
    "ERR_CONNECTION_CLOSED": "the connection was closed without an answer",
    "ERR_EMPTY_RESPONSE": "the connection was closed without an answer",
    "ERR_CONNECTION_TIMED_OUT": "the connection timed out",
    "ERR_TIMED_OUT": "the connection timed out",
    "ERR_ADDRESS_UNREACHABLE": "its address cannot be reached",
    "ERR_INTERNET_DISCONNECTED": "there is no network",
    "ERR_NETWORK_CHANGED": "the network changed",
    "ERR_TOO_MANY_REDIRECTS": "it redirects without end",
    "ERR_UNSAFE_PORT": "browsers refuse this port",
    "ERR_UNSAFE_REDIRECT": "it redirects to an address that is not http or https, which is refused",
    "ERR_UNKNOWN_URL_SCHEME": "it leads to an address that is not http or https, which is refused",
    "ERR_DISALLOWED_URL_SCHEME": "it leads to an address that is not http or https, which is refused",
    "ERR_INVALID_URL": "its address is not valid",
    "ERR_INVALID_HTTP_RESPONSE": "the answer is not HTTP",
    "ERR_HTTP_RESPONSE_CODE_FAILURE": "the answer is an error without a page",
    "ERR_CONTENT_DECODING_FAILED": "the answer is damaged",
    "ERR_CONTENT_LENGTH_MISMATCH": "the answer is incomplete",
    "ERR_INCOMPLETE_CHUNKED_ENCODING": "the answer is incomplete",
    "ERR_BLOCKED_BY_RESPONSE": "its answer forbids the browser to show it",
    "ERR_PROXY_CONNECTION_FAILED": "the proxy cannot be reached",
    "ERR_TUNNEL_CONNECTION_FAILED": "the proxy refused it",
}


class Refused(Exception):
    """A sentence for the caller that says why the answer has no content."""


def headers_of(event: dict[str, Any]) -> dict[str, str]:
    return {header["name"].lower(): header["value"] for header in event.get("responseHeaders") or ()}


def media_type(event: dict[str, Any]) -> str:
    return headers_of(event).get("content-type", "").partition(";")[0].strip().lower()


def is_html(event: dict[str, Any]) -> bool:
    """Whether the browser treats it as HTML; without a type the browser sniffs the data."""
    headers = headers_of(event)
    if headers.get("content-disposition", "").strip().lower().startswith("attachment"):
        return False
    return media_type(event) in ("", *HTML)


def is_text(media: str) -> bool:
    return (media.startswith("text/") and media not in ("text/event-stream", "text/html")) or (
        media in TEXT or media.endswith(("+json", "+xml", "+yaml"))
    )


def is_pdf(media: str) -> bool:
    return media in ("application/pdf", "application/x-pdf")


def looks_readable(media: str, data: bytes) -> bool:
    """Whether data of a type that says nothing (such as application/octet-stream) is a PDF or text."""
    if media.startswith(NEVER_TEXT) or not data:
        return False
    if data.startswith(b"%PDF-"):
        return True
    if b"\0" in data or media == "text/html":
        return False
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        return len(data) - error.start < 4 and len(data) > 4  # cut within a character
    return True


def redirect_of(event: dict[str, Any]) -> str:
    """Return the target of a redirect; empty for another answer."""
    if event.get("responseStatusCode") not in (301, 302, 303, 307, 308):
        return ""
    location = headers_of(event).get("location", "").strip()
    if not location:
        return ""
    from urllib.parse import urljoin

    try:
        return urljoin(str(event["request"]["url"]), location)
    except ValueError:
        return location


def facts_of(event: dict[str, Any]) -> dict[str, Any]:
    return {
        "url": event["request"]["url"],
        "status": event["responseStatusCode"],
        "content_type": headers_of(event).get("content-type", ""),
    }


def refusal_of(event: dict[str, Any]) -> str:
    """Return the sentence about an answer without content; empty if it has content."""
    status = event["responseStatusCode"]
    if 200 <= status < 300 and status not in (204, 205):
        return ""
    if may_be_challenge(event):
        return ""  # its script may admit the browser; the final page is judged by its status and its text
    return status_refused(event["request"]["url"], status)


def may_be_challenge(event: dict[str, Any]) -> bool:
    """Whether an error page comes from a service that checks browsers first."""
    headers = headers_of(event)
    if "cf-mitigated" in headers:
        return True
    server = headers.get("server", "").lower()
    return (
        event["responseStatusCode"] in CHALLENGE_STATUS
        and is_html(event)
        and any(name in server for name in CHALLENGE_SERVERS)
    )


def status_refused(address: str, status: int) -> str:
    try:
        phrase = " " + HTTPStatus(status).phrase
    except ValueError:
        phrase = ""
    return f"{show(address)} answered {status}{phrase}."


def redirect_refused(target: str) -> str:
    scheme = target.partition(":")[0][:40]
    return f"The page redirects to an address of {scheme}:, and only http and https are read."


def went_to(address: str) -> str:
    scheme = address.partition(":")[0][:40]
    if scheme == "chrome-error":
        return "The page went on to an address that could not be loaded."
    return f"The page went on to an address of {scheme}:, and only http and https are read."


def unreached(address: str, reason: str) -> str:
    """Return the sentence about an address that the egress proxy did not reach, by the reason that it
    gave."""
    from fastrpc import egress_proxy

    if reason == egress_proxy.NOT_PUBLIC:
        why = "is not a public address, and only those may be read here (FASTRPC_REACH)"
    elif reason == egress_proxy.NOT_A_WEB_PORT:
        why = "has a port that is not for web pages; 80, 443 and those from 1024 up may be read here"
    elif reason == egress_proxy.NOT_RESOLVED:
        why = "is an unknown host"
    else:
        why = "cannot be reached"
    place = web_address.made_of(*web_address.place_of(address)).partition("//")[2]
    return f"The page could not be loaded: {web_address.shorten(place, 200)} {why}."


def download_refused(event: dict[str, Any]) -> str:
    media = media_type(event) or "no stated type"
    hint = " ReadImage reads image files." if media.startswith("image/") else ""
    return f"{show(event['request']['url'])} is a download ({media}), not a page or text.{hint}"


def too_large(limit: int) -> str:
    return f"The page is larger than {limit // 1024**2} MiB."


def failure(message: str) -> str:
    """Return a sentence for the browser's error text of a failed navigation."""
    name = message.partition("net::")[2].partition(" ")[0].strip()
    if name.startswith(("ERR_CERT", "ERR_SSL")):
        return f"The page could not be loaded: its certificate or encryption is not valid ({name})."
    reason = FAILURES.get(name)
    if reason is not None:
        return f"The page could not be loaded: {reason}."
    if not name:
        return "The page could not be loaded: the browser refuses its address."
    return f"The page could not be loaded ({name})."


def refresh_seconds(content: str) -> float | None:
    """Return after how long a page refreshes itself (`<meta http-equiv=refresh>`)."""
    first = content.strip().replace(",", ";").partition(";")[0].strip()
    try:
        return max(0.0, float(first))
    except ValueError:
        return None


def show(address: str) -> str:
    return web_address.shorten(web_address.shown(address), 300)
