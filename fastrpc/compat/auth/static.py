"""Verifiers for development and tests: `StaticTokenVerifier` and `DebugTokenVerifier`."""

from __future__ import annotations

from hashlib import sha256
from hmac import compare_digest
from time import time
from typing import Any

from fastrpc import diagnostics
from fastrpc.compat.auth.access import AccessToken
from fastrpc.compat.auth.provider import Checking, TokenVerifier
from fastrpc.redaction import hide
from fastrpc.transports.http.token_source import InvalidToken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable


class StaticTokenVerifier(Checking, TokenVerifier):
    """Tokens from the configuration: of each a dict with `client_id`, `scopes`, `expires_at`, `sub` and other
    claims. They are compared by their digests, in constant time, and masked in all output.

    `tokens` may be changed later.
    """

    def __init__(
        self, tokens: dict[str, dict[str, Any]], required_scopes: Iterable[str] | None = None
    ) -> None:
        super().__init__(required_scopes=required_scopes)
        self.tokens = tokens

    def prepare(self) -> None:
        for token in self.tokens:
            hide(token)

    async def check(self, token: str) -> AccessToken | None:
        digest = _digest(token)
        found: dict[str, Any] | None = None
        for known, claims in self.tokens.items():
            if compare_digest(digest, _digest(known)):  # all are compared: the time reveals nothing
                found = claims
        if not found:
            return None
        expires = found.get("expires_at")
        if expires is not None and expires < time():
            raise InvalidToken("the token has expired")
        scopes = list(found.get("scopes") or ())
        self.check_scopes(scopes)
        return AccessToken(
            token=token,
            client_id=found["client_id"],
            scopes=scopes,
            expires_at=expires,
            subject=found.get("sub"),
            claims=found,
        )


def _digest(token: str) -> bytes:
    return sha256(token.encode("utf-8", "surrogateescape")).digest()


class DebugTokenVerifier(Checking, TokenVerifier):
    """Accepts the tokens for which a function returns a true value; without one, every token.

    All of them are one client. A function that raises accepts none.
    """

    def __init__(
        self,
        validate: Callable[[str], bool | Awaitable[bool]] | None = None,
        client_id: str = "debug-client",
        scopes: list[str] | None = None,
        required_scopes: Iterable[str] | None = None,
    ) -> None:
        super().__init__(required_scopes=required_scopes)
        self.validate = validate
        self.client_id = client_id
        self.scopes = scopes or []

    async def check(self, token: str) -> AccessToken | None:
        if not token.strip():
            return None
        if self.validate is not None:
            try:
                valid: Any = self.validate(token)
                if hasattr(valid, "__await__"):
                    valid = await valid
            except Exception as error:  # the message may contain the token
                diagnostics.write("error", f"DebugTokenVerifier: validate raised {type(error).__name__}")
                return None
            if not valid:
                return None
        self.check_scopes(self.scopes)
        return AccessToken(token=token, client_id=self.client_id, scopes=self.scopes, claims={"token": token})
