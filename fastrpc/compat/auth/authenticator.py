"""Has fastrpc's check of bearer tokens call a verifier: the source of tokens, the challenge, the metadata.

A verifier is called for each request, except a `JWTVerifier` that no subclass has changed: what it says of a
token holds for at most a minute, so that the token's next requests take the fast path. The principal is what
a token says of client, issuer and subject: a client that has refreshed its token keeps its sessions.
"""

from __future__ import annotations

from hashlib import sha256
from time import monotonic, time
from typing import Any

from fastrpc import diagnostics
from fastrpc.compat.auth.access import access_token_of
from fastrpc.compat.auth.jwt_verifier import JWTVerifier
from fastrpc.compat.auth.provider import (
    REASONS,
    AuthProvider,
    MultiAuth,
    RemoteAuthProvider,
    is_unchanged,
    prepared,
    verified,
)
from fastrpc.transports.http.auth import Authenticator
from fastrpc.transports.http.guard import Admission, Refused
from fastrpc.transports.http.token_source import InsufficientScope, InvalidToken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

KEPT_SECONDS = 60.0
KEPT = 1024


class VerifiedTokens:
    """The tokens that a verifier accepts. `scopes` are those that each must have; `resource`, if given, is
    the URL that each must name."""

    def __init__(self, verifier: Any, scopes: Iterable[str] = (), resource: str | None = None) -> None:
        self._verifier = verifier
        self._scopes = frozenset(scopes)
        self._resource = resource
        inner = verifier
        while isinstance(inner, RemoteAuthProvider) and is_unchanged(inner):
            inner = inner.token_verifier
        self._keeps = type(inner) is JWTVerifier
        self._kept: dict[bytes, Admission] = {}

    def known(self, token: bytes) -> Admission | None:
        if not self._keeps:
            return None
        admission = self._kept.get(sha256(token).digest())
        if admission is None or admission.until is None or monotonic() >= admission.until:
            return None
        return admission

    async def _verified(self, token: str) -> tuple[Any, int]:
        """Return what is known of a token, and which of several verifiers says so."""
        if isinstance(self._verifier, MultiAuth) and is_unchanged(self._verifier):
            return await self._verifier.find(token)
        return await verified(self._verifier, token), 0

    async def find(self, token: bytes) -> Admission | None:
        """Return the principal of a token. Raises InvalidToken, InsufficientScope, and Refused."""
        try:
            found, number = await self._verified(token.decode("ascii"))
            if found is None:
                return None
            access = access_token_of(found)
        except REASONS:
            raise
        except Exception as error:  # the message may contain the token, as that of KeyError does
            name = type(self._verifier).__name__
            diagnostics.write("error", f"auth: {name}.verify_token raised {type(error).__name__}")
            raise Refused(500, "Internal error; see the server's log", -32603) from None
        seconds = KEPT_SECONDS
        if access.expires_at:
            seconds = min(seconds, access.expires_at - time())
            if seconds <= 0:
                raise InvalidToken("the token has expired")
        if self._resource is not None and _plain(access.resource) != _plain(self._resource):
            raise InvalidToken("the token is for another resource")
        if not self._scopes.issubset(access.scopes):
            raise InsufficientScope
        until = monotonic() + seconds if self._keeps else 0.0
        admission = Admission(principal_of(access, number), until, access)
        if self._keeps:
            if len(self._kept) >= KEPT:
                self._kept.clear()
            self._kept[sha256(token).digest()] = admission
        return admission


def authenticator_of(verifier: Any, path: str) -> Authenticator:
    """Return the `Authenticator` for the MCP endpoint at `path`. Raises UsageError."""
    if isinstance(verifier, AuthProvider):
        verifier.set_mcp_path(path)
    prepared(verifier)
    scopes = list(getattr(verifier, "required_scopes", None) or ())
    issuers = list(getattr(verifier, "issuers", ()))
    resource = verifier.resource_url(path) if issuers else None
    return Authenticator(
        [VerifiedTokens(verifier, scopes)],
        resource=resource,
        issuers=issuers,
        scopes=scopes,
        metadata=getattr(verifier, "metadata", None),
    )


def authenticator_for(provider: Any, path: str) -> Authenticator:
    """Return the `Authenticator` for the MCP endpoint at `path` that calls ``verify_token`` of a FastMCP
    provider."""
    provider.set_mcp_path(path)
    scopes = list(provider.required_scopes or ())
    servers = getattr(provider, "authorization_servers", None)
    issuer = getattr(provider, "issuer_url", None) or provider.base_url
    resource = provider.base_url and (getattr(provider, "resource_base_url", None) or provider.base_url)
    return Authenticator(
        [VerifiedTokens(provider, scopes)],
        resource=None if resource is None else f"{str(resource).rstrip('/')}/{path.lstrip('/')}",
        issuers=[str(each) for each in servers or filter(None, (issuer,))],
        scopes=scopes,
        metadata={"scopes_supported": list(getattr(provider, "scopes_supported", None) or scopes)},
    )


def routes_beside(provider: Any, path: str) -> list[Any]:
    """Return the Starlette routes of a FastMCP provider, without the protected resource metadata (RFC 9728),
    which the `Authenticator` serves."""
    found = provider.get_routes(mcp_path=path)
    return [
        route
        for route in found
        if not getattr(route, "path", "").startswith("/.well-known/oauth-protected-resource")
    ]


def authenticator_with(verifier: Any, settings: Any) -> Authenticator:
    """Return the authenticator of a server with the official SDK's `AuthSettings`. Raises UsageError."""
    prepared(verifier)
    scopes = list(settings.required_scopes or ())
    url = None if settings.resource_server_url is None else str(settings.resource_server_url)
    validates = getattr(settings, "validate_token_resource", None)
    return Authenticator(
        [VerifiedTokens(verifier, scopes, url if validates else None)],
        resource=url,
        issuers=[str(settings.issuer_url)] if url is not None else (),
        scopes=scopes,
    )


def principal_of(access: Any, verifier: int = 0) -> str:
    """Return the principal of a token: its client, what is known of issuer and subject, and which of several
    verifiers knows it, unless that is the first. No two have the same."""
    from urllib.parse import quote

    claims = getattr(access, "claims", None) or {}
    subject = getattr(access, "subject", None) or claims.get("sub")
    parts = [access.client_id, claims.get("iss") or "", subject or "", verifier or ""]
    return "#".join([quote(str(part), safe="/:@") for part in parts]).rstrip("#")


def _plain(url: str | None) -> str:
    """Return a URL as it is compared: scheme and host in lower case, without a final slash."""
    scheme, separator, rest = str(url or "").partition("://")
    authority, slash, path = rest.partition("/")
    return f"{scheme.lower()}{separator}{authority.lower()}{slash}{path}".rstrip("/")
