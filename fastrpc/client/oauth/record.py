"""What is known of a login, and of the answer that makes one necessary. No I/O.

A `LoginRecord` is all that a refresh needs after a restart: besides the tokens the client as it was
registered, and the metadata of both servers.
"""

from __future__ import annotations

import json
import re
import time
from urllib.parse import urlsplit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ssl import SSLContext
    from typing import Any, Protocol

    class LoginTarget(Protocol):
        """The MCP server."""

        url: str
        shown: str

        @property
        def is_local(self) -> bool: ...

        def hide(self, text: str) -> str:
            """Return a text with the secrets removed."""

        def add_secret(self, secret: str) -> None:
            """Remove this too, from now on."""

        def tls_for_all(self) -> SSLContext | None:
            """Return TLS settings for the authorization server; None for the default."""


LEEWAY_SECONDS = 10.0
"""A token is refreshed so long before it expires, or a tenth of its life: it has to last until the server has
read it."""


KEPT: dict[str, tuple[type, ...]] = {
    "tokens": (dict, type(None)),
    "expires_at": (float, int, type(None)),
    "client": (dict, type(None)),
    "redirect_port": (int,),
    "resource": (dict, type(None)),
    "metadata": (dict, type(None)),
    "authorization_server": (str, type(None)),
}
"""The members of a record that are kept, and their types."""


LONGEST_LIFE = 10 * 365 * 24 * 3600
"""Seconds; a token that claims to last longer is taken to last so long."""


def life_of(expires_in: object) -> int | None:
    """Return for how many seconds a token is good by an answer of the token endpoint (RFC 6749, 5.1); None if
    that does not say it: what is no number of seconds to come is left out, and the server has to refuse."""
    if isinstance(expires_in, str) and expires_in.isascii() and expires_in.isdigit():
        expires_in = float(expires_in[:400])
    if isinstance(expires_in, bool) or not isinstance(expires_in, (int, float)) or not expires_in >= 1:
        return None
    return int(min(expires_in, LONGEST_LIFE))


def key_of(url: str, identity: str) -> str:
    """Return the key of the record of a server and the client `identity`, without what a query may hold."""
    from hashlib import sha256

    parts = urlsplit(url)
    digest = sha256(f"{url} {identity}".encode()).hexdigest()[:16]
    return f"{parts.scheme}://{parts.netloc}{parts.path} {digest}"


class LoginRecord:
    """What is known of a login. All of it but `was_shown` is kept in the store."""

    def __init__(self) -> None:
        self.tokens: dict[str, Any] | None = None
        """The answer of the token endpoint (RFC 6749, 5.1)."""
        self.expires_at: float | None = None
        """In seconds since the epoch; None if the answer does not say."""
        self.client: dict[str, Any] | None = None
        """The client as it was registered (RFC 7591)."""
        self.redirect_port = 0
        """With which port it was registered."""
        self.resource: dict[str, Any] | None = None
        """The metadata of the MCP server (RFC 9728)."""
        self.metadata: dict[str, Any] | None = None
        """That of the authorization server (RFC 8414)."""
        self.authorization_server: str | None = None
        self.was_shown = False
        """Whether a person has been shown a login."""

    @property
    def access_token(self) -> str | None:
        return None if self.tokens is None else self.tokens.get("access_token")

    @property
    def is_expired(self) -> bool:
        if self.expires_at is None:
            return False
        life = life_of((self.tokens or {}).get("expires_in")) or 0
        return time.time() >= self.expires_at - min(LEEWAY_SECONDS, life / 10)

    @property
    def can_refresh(self) -> bool:
        return bool(self.tokens and self.tokens.get("refresh_token"))

    def text(self) -> str:
        return json.dumps({name: getattr(self, name) for name in KEPT})

    @classmethod
    def read(cls, text: str) -> LoginRecord:
        """Return the record of a text. Raises ValueError."""
        members = json.loads(text)
        if not isinstance(members, dict):
            raise ValueError("no object")
        record = cls()
        for name, kinds in KEPT.items():
            value = members.get(name, getattr(record, name))
            if not isinstance(value, kinds):
                raise ValueError(f"{name} has a wrong type")
            setattr(record, name, value)
        return record


LONGEST_CHALLENGE = 8 * 1024
"""Characters of a challenge that are read."""
PARAMETER = re.compile(r'(?<![\w-])\w{1,64}=(?:"[^"]*"|[^\s,"]+)')


class AuthorizationRefusal:
    """An answer with status 401 or 403. `token`: the one that was refused, or None."""

    def __init__(self, status: int, challenge: str | None, token: str | None) -> None:
        self.status = status
        self.challenge = None if challenge is None else challenge[:LONGEST_CHALLENGE]
        self.token = token
        self.may_refresh = status == 401 and token is not None
        """Whether a refresh may help; else a login has to."""
        self.parameters = PARAMETER.findall(self.challenge or "")
        """The parameters of the challenge (RFC 6750, 3), as they came."""

    def _parameter(self, name: str) -> str:
        for part in self.parameters:
            key, _, value = part.partition("=")
            if key == name:
                return str(value.strip('"'))
        return ""

    @property
    def scopes(self) -> list[str]:
        """The scopes that the server wants."""
        return self._parameter("scope").split()

    @property
    def wants_scopes(self) -> bool:
        """Whether the token is good but for its scopes (MCP, authorization: scope challenge handling)."""
        return self.status == 403 and self._parameter("error") == "insufficient_scope"
