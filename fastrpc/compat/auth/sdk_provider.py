"""An authorization server that was written for the official SDK (`auth_server_provider=`).

The SDK's own routes serve its logins, registrations and tokens, beside MCP; fastrpc verifies the tokens by
its ``load_access_token``. The SDK, Starlette and pydantic, which such a program uses anyway, are imported
when the server is served over HTTP.
"""

from __future__ import annotations

from typing import Any

from fastrpc.compat.auth.provider import TokenVerifier


class ProviderTokenVerifier(TokenVerifier):
    """Verifies the tokens that an authorization server has issued itself. Raises TypeError for another
    object."""

    def __init__(self, provider: Any) -> None:
        if not callable(getattr(provider, "load_access_token", None)):
            kind = type(provider).__name__
            raise TypeError(f"auth_server_provider: expected an object with load_access_token, got {kind}")
        super().__init__()
        self.provider = provider

    async def verify_token(self, token: str) -> Any:
        return await self.provider.load_access_token(token)


def official(settings: Any) -> Any:
    """Return `AuthSettings` as the SDK's own model, which spells URLs as its metadata does. Raises
    ValueError."""
    from mcp.server.auth import settings as models

    if isinstance(settings, models.AuthSettings):
        return settings
    members = {name: value for name, value in vars(settings).items() if value not in (None, False)}
    for option, model in (
        ("client_registration_options", models.ClientRegistrationOptions),
        ("revocation_options", models.RevocationOptions),
    ):
        if option in members:
            members[option] = model(**vars(members[option]))
    members["validate_token_resource"] = bool(settings.validate_token_resource)
    return models.AuthSettings(**{"resource_server_url": None, **members})


def routes_of(provider: Any, settings: Any) -> list[Any]:
    """Return the SDK's routes of Starlette for an authorization server with these `AuthSettings`.

    Raises ValueError for an address that is not https, nor of this machine.
    """
    from mcp.server.auth.routes import create_auth_routes

    names = (
        "issuer_url",
        "service_documentation_url",
        "client_registration_options",
        "revocation_options",
        "identity_assertion_enabled",
    )
    found: Any = {name: getattr(settings, name, None) for name in names}
    if not found["identity_assertion_enabled"]:
        del found["identity_assertion_enabled"]  # the SDK 1.x has not got it
    return list(create_auth_routes(provider, **found))
