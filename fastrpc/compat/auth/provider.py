"""`TokenVerifier` and what is made of verifiers: `RemoteAuthProvider` and `MultiAuth`.

A verifier returns an `AccessToken`, or None for a token that is not valid. Those of this package also know
why a token was refused: `verified` raises that, so that a caller gets 403 for a missing scope and not 401.
"""

from __future__ import annotations

from typing import Any

from fastrpc import diagnostics
from fastrpc.compat.auth.access import AccessToken
from fastrpc.transports.http.guard import Refused
from fastrpc.transports.http.token_source import InsufficientScope, InvalidToken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

REASONS = (InvalidToken, InsufficientScope, Refused)
"""Why a token is not accepted, as the verifiers of this package raise it."""


class AuthProvider:
    """What decides about tokens, and where clients get them. `required_scopes`: what each token must have.

    `base_url` is the URL of this server, `resource_base_url` another one for the metadata.
    """

    base_url: Any = None
    resource_base_url: Any = None
    required_scopes: list[str] = []  # noqa: RUF012 - a default for subclasses that do not call __init__
    issuers: list[str] = []  # noqa: RUF012
    """The authorization servers whose tokens are accepted, for the metadata."""

    def __init__(
        self,
        base_url: Any = None,
        required_scopes: Iterable[str] | str | None = None,
        resource_base_url: Any = None,
    ) -> None:
        self.base_url = base_url
        self.resource_base_url = resource_base_url
        self.required_scopes = scopes_from(required_scopes)

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return what is known of a token, None if it is not valid."""
        raise NotImplementedError(f"{type(self).__name__} has no verify_token")

    def set_mcp_path(self, mcp_path: str | None) -> None:
        """Take the path of the endpoint, before the server starts: a subclass may need it."""

    def prepare(self) -> None:
        """Import libraries and read keys, before the server starts. Raises UsageError."""

    @property
    def scopes_supported(self) -> list[str]:
        """The scopes that the metadata names."""
        return self.required_scopes

    @property
    def metadata(self) -> dict[str, Any]:
        """Further members of the protected resource's metadata (RFC 9728, 2)."""
        return {}

    def resource_url(self, path: str) -> str | None:
        """Return the URL of the endpoint at a path of this server, None if its own is not known."""
        base = self.resource_base_url or self.base_url
        return None if base is None else f"{str(base).rstrip('/')}/{path.lstrip('/')}".rstrip("/")


class TokenVerifier(AuthProvider):
    """The base of token verifiers: a subclass has ``async def verify_token(self, token)``."""


class Checking(AuthProvider):
    """The base of the providers of this package, which implement `check`."""

    async def check(self, token: str) -> Any:
        """Return what is known of a token, None if nothing is.

        Raises InvalidToken, InsufficientScope, and Refused if it cannot be found out now.
        """
        raise NotImplementedError

    async def load_access_token(self, token: str) -> AccessToken | None:
        """Return what is known of a token, None if it is not valid, or cannot be checked."""
        try:
            found: AccessToken | None = await self.check(token)
        except REASONS:
            return None
        return found

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return what is known of a token, None if it is not valid, or without a required scope."""
        return await self.load_access_token(token)

    def check_scopes(self, scopes: Iterable[str]) -> None:
        """Raise InsufficientScope unless all required ones are among these."""
        if not set(self.required_scopes) <= set(scopes):
            raise InsufficientScope


class RemoteAuthProvider(Checking):
    """A verifier, and the authorization servers that issue its tokens: clients find them by the metadata of
    this server (RFC 9728). Raises TypeError for what is no verifier."""

    def __init__(
        self,
        token_verifier: Any,
        authorization_servers: Iterable[Any],
        base_url: Any,
        scopes_supported: list[str] | None = None,
        resource_base_url: Any = None,
        resource_name: str | None = None,
        resource_documentation: Any = None,
    ) -> None:
        check_verifier("RemoteAuthProvider: token_verifier", token_verifier)
        super().__init__(base_url, getattr(token_verifier, "required_scopes", None), resource_base_url)
        self.token_verifier = token_verifier
        self.authorization_servers = list(authorization_servers)
        self.issuers = [str(server) for server in self.authorization_servers]
        self.resource_name = resource_name
        self.resource_documentation = resource_documentation
        self._scopes_supported = scopes_supported

    async def check(self, token: str) -> Any:
        return await verified(self.token_verifier, token)

    def set_mcp_path(self, mcp_path: str | None) -> None:
        if isinstance(self.token_verifier, AuthProvider):
            self.token_verifier.set_mcp_path(mcp_path)

    def prepare(self) -> None:
        prepared(self.token_verifier)

    @property
    def scopes_supported(self) -> list[str]:
        if self._scopes_supported is not None:
            return self._scopes_supported
        return getattr(self.token_verifier, "scopes_supported", None) or self.required_scopes

    @property
    def metadata(self) -> dict[str, Any]:
        members = {
            "scopes_supported": self.scopes_supported or None,
            "resource_name": self.resource_name,
            "resource_documentation": self.resource_documentation and str(self.resource_documentation),
        }
        return {name: value for name, value in members.items() if value is not None}


class MultiAuth(Checking):
    """Several verifiers: a token is valid if one of them says so, `server` first. One that raises is passed
    over. Raises TypeError for what is no verifier, ValueError for none at all."""

    def __init__(
        self,
        *,
        server: Any = None,
        verifiers: Any = None,
        base_url: Any = None,
        resource_base_url: Any = None,
        required_scopes: Iterable[str] | str | None = None,
    ) -> None:
        given = [] if verifiers is None else verifiers
        self.server = server
        self.verifiers = list(given) if isinstance(given, (list, tuple)) else [given]
        self._sources = [source for source in (server, *self.verifiers) if source is not None]
        if not self._sources:
            raise ValueError("MultiAuth: expected a server or a verifier")
        for source in self._sources:
            check_verifier("MultiAuth", source)
        if required_scopes is None:
            required_scopes = getattr(server, "required_scopes", None)
        super().__init__(
            base_url or getattr(server, "base_url", None),
            required_scopes,
            resource_base_url or getattr(server, "resource_base_url", None),
        )
        self.issuers = list(getattr(server, "issuers", ()))

    async def check(self, token: str) -> Any:
        return (await self.find(token))[0]

    async def find(self, token: str) -> tuple[Any, int]:
        """Return what the first verifier that accepts a token knows of it, and which one that is; raise the
        first reason if none does. One that fails is passed over."""
        reason: Exception | None = None
        for number, source in enumerate(self._sources):
            try:
                found = await verified(source, token)
            except REASONS as error:
                reason = reason or error
            except Exception as error:  # the message may contain the token
                diagnostics.write(
                    "error", f"MultiAuth: {type(source).__name__} raised {type(error).__name__}"
                )
            else:
                if found is not None:
                    return found, number
        if reason is not None:
            raise reason
        return None, 0

    def set_mcp_path(self, mcp_path: str | None) -> None:
        for source in self._sources:
            if isinstance(source, AuthProvider):
                source.set_mcp_path(mcp_path)

    def prepare(self) -> None:
        for source in self._sources:
            prepared(source)

    @property
    def metadata(self) -> dict[str, Any]:
        return getattr(self.server, "metadata", None) or {}


async def verified(verifier: Any, token: str) -> Any:
    """Return what a verifier knows of a token, None if it is not valid. Raises InvalidToken,
    InsufficientScope, Refused, and what a verifier of the user's raises."""
    return await (verifier.check(token) if is_unchanged(verifier) else verifier.verify_token(token))


def is_unchanged(verifier: Any) -> bool:
    """Return whether a verifier is of this package, and no subclass has changed what it decides."""
    kind = type(verifier)
    return (
        isinstance(verifier, Checking)
        and kind.verify_token is Checking.verify_token
        and kind.load_access_token is Checking.load_access_token
    )


def prepared(verifier: Any) -> None:
    """Have a verifier prepare itself; one that is not of this package may have nothing to do."""
    if isinstance(verifier, AuthProvider):
        verifier.prepare()


def check_verifier(where: str, verifier: Any) -> None:
    """Raise TypeError for an object without ``verify_token``."""
    if not callable(getattr(verifier, "verify_token", None)):
        raise TypeError(f"{where}: expected an object with verify_token, got {type(verifier).__name__}")


def scopes_from(given: Iterable[str] | str | None) -> list[str]:
    """Return scopes that may be a list, or a text with spaces or commas between them."""
    if given is None:
        return []
    return given.replace(",", " ").split() if isinstance(given, str) else list(given)
