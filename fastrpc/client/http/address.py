"""The address of a remote server and the credentials for it, validated before anything is sent.

Messages contain no secrets: `Remote.hide` removes them from a text, and a URL is shown without the parts that
may contain one. The only I/O is reading a certificate file; requests are sent by `fastrpc.client.http.wire`.
"""

from __future__ import annotations

from importlib.util import find_spec
from urllib.parse import urlsplit

from fastrpc.client.urls import is_local_host, shown
from fastrpc.errors import Reworded
from fastrpc.redaction import MASK, SHORTEST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from ssl import SSLContext
    from typing import Literal

    from fastrpc.client.oauth import OAuth

OURS = (
    "accept",
    "connection",
    "content-length",
    "content-type",
    "host",
    "last-event-id",
    "transfer-encoding",
)
"""Headers that the protocol reserves, in addition to those that begin with ``mcp-``."""

TOKEN_CHARACTERS = "!#$%&'*+-.^_`|~"


class Remote:
    """A server at a URL.

    `token`: the bearer token, sent as ``Authorization: Bearer``; a string, or a function that returns one and
    is called for each request. `auth`: ``"oauth"`` or an `OAuth` object, for tokens by OAuth. `headers`:
    additional request headers. `tls_ca`: a file of CA certificates to trust instead of the default ones.
    Raises ValueError, and ImportError where httptools is not installed.
    """

    OPTIONS = ("auth", "headers", "tls_ca", "token")

    def __init__(
        self,
        url: str,
        *,
        token: str | Callable[[], str] | None = None,
        auth: Literal["oauth"] | OAuth | None = None,
        headers: Mapping[str, str] | None = None,
        tls_ca: str | None = None,
    ) -> None:
        self.url = url
        self.host, self.shown = _checked(url)
        if find_spec("httptools") is None:
            raise ImportError("a URL needs httptools: pip install 'fastrpc-mcp[http]'")
        self.headers = dict(headers or {})
        self._token = token
        for name, value in self.headers.items():
            _check_header(name, value)
        words = [word for value in self.headers.values() for word in (value, *value.split())]
        self._secrets = [word for word in words if len(word) >= SHORTEST]
        if token is not None:
            if any(name.lower() == "authorization" for name in self.headers):
                raise ValueError("token and an Authorization header exclude each other")
            if not callable(token):
                _check_token(token)
        self.auth: OAuth | None = None
        """What gets and renews tokens, besides `credentials`."""
        if auth is not None:
            from fastrpc.client.oauth import auth_of

            if self.has_token:
                raise ValueError("auth excludes token and an Authorization header")
            self.auth = auth_of(auth)
        self.tls: SSLContext | None = None
        """TLS settings for `tls_ca`; None for the default trust store."""
        self._tls_ca = tls_ca
        if tls_ca is not None:
            self.tls = _trusting(tls_ca)

    @property
    def is_local(self) -> bool:
        """Whether the host is this machine."""
        return is_local_host(self.host)

    @property
    def is_open_to_listeners(self) -> bool:
        """Whether the credentials are sent without encryption over a network."""
        secret = self._token is not None or self.auth is not None or bool(self.headers)
        return secret and not self.is_local and self.url.lower().startswith("http:")

    @property
    def login_seconds(self) -> float:
        """How long a person may take to log in, if one has to; else 0."""
        return 0.0 if self.auth is None or not self.auth.needs_person else self.auth.login_seconds

    def credentials(self) -> dict[str, str]:
        """Return the headers with the credentials. Raises ValueError for an invalid token."""
        if self._token is None:
            return self.headers
        token = self._token() if callable(self._token) else self._token
        _check_token(token)
        if token not in self._secrets:
            self._secrets.append(token)
        return {**self.headers, "Authorization": f"Bearer {token}"}

    def add_secret(self, secret: str) -> None:
        """Remove this from texts too, and from the log."""
        from fastrpc import redaction

        redaction.hide(secret)
        if len(secret) >= SHORTEST and secret not in self._secrets:
            self._secrets.append(secret)

    def tls_for_all(self) -> SSLContext | None:
        """Return TLS settings for servers that belong to this one, which may have public certificates:
        `tls_ca` besides the default ones. None without `tls_ca`."""
        if self._tls_ca is None:
            return None
        from ssl import create_default_context

        settings = create_default_context()
        settings.load_verify_locations(cafile=self._tls_ca)
        return settings

    @property
    def has_token(self) -> bool:
        return self._token is not None or any(name.lower() == "authorization" for name in self.headers)

    def hide(self, text: str) -> str:
        """Return a text with the credentials removed."""
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        return text


def _checked(url: str) -> tuple[str, str]:
    """Return the host of a URL, and the URL as it may be shown. Raises ValueError."""
    with Reworded(ValueError, ValueError, "the URL is invalid: "):
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    if parts.scheme.lower() not in ("http", "https") or not host:
        raise ValueError(f"expected an http or https URL with a host, got {shown(url)!r:.200}")
    if parts.username is not None or parts.password is not None:
        raise ValueError("the URL contains a user name or a password; use token= or headers= instead")
    if not url.isascii() or not url.isprintable() or " " in url:
        raise ValueError("the URL contains invalid characters")
    return host, shown(url)


def _trusting(path: str) -> SSLContext:
    from ssl import SSLError, create_default_context

    from fastrpc.regular_files import check_regular

    try:
        check_regular(path)
        return create_default_context(cafile=path)
    except SSLError:
        raise ValueError(f"tls_ca={path!r:.200}: the file contains no certificate") from None
    except OSError as error:
        raise ValueError(f"tls_ca={path!r:.200}: {error.strerror}") from None


def is_header_name(text: str) -> bool:
    """Whether a text is a valid header name (RFC 9110, 5.6.2: tokens)."""
    return bool(text) and all(c.isascii() and (c.isalnum() or c in TOKEN_CHARACTERS) for c in text)


def _check_header(name: str, value: str) -> None:
    if not isinstance(name, str) or not isinstance(value, str):
        raise ValueError("headers: expected a dict of str to str")
    if not is_header_name(name):
        raise ValueError(f"headers: {name!r:.80} is not a valid header name")
    if name.lower() in OURS or name.lower().startswith("mcp-"):
        raise ValueError(f"headers: {name} is set by the protocol")
    if not value.isascii() or not value.isprintable():
        raise ValueError(f"headers: the value of {name} must be printable ASCII")


def _check_token(token: object) -> None:
    """Raise ValueError for a token that cannot be a header value. The message does not contain it."""
    if not isinstance(token, str):
        raise ValueError(f"token: expected a str, got {type(token).__name__}")
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise ValueError("token: expected printable ASCII without spaces")
