"""`RemoteAuthProvider` for some services: where their keys are, and what their tokens say of themselves.

Clients log in at the service, which they find by this server's metadata. Its own metadata is not repeated at
this server, where only clients of versions before 2025-06-18 look for it.
"""

from __future__ import annotations

from typing import Any

from fastrpc.compat.auth.jwt_verifier import JWTVerifier
from fastrpc.compat.auth.provider import RemoteAuthProvider

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class AuthKitProvider(RemoteAuthProvider):
    """WorkOS AuthKit. Its tokens are for this server's URL (RFC 8707), unless `token_verifier` decides."""

    def __init__(
        self,
        *,
        authkit_domain: Any,
        base_url: Any,
        required_scopes: Iterable[str] | str | None = None,
        token_verifier: Any = None,
        **options: Any,
    ) -> None:
        self.authkit_domain = _bare(authkit_domain)
        self._is_bound = token_verifier is None
        if token_verifier is None:
            token_verifier = JWTVerifier(
                jwks_uri=f"{self.authkit_domain}/oauth2/jwks",
                issuer=self.authkit_domain,
                required_scopes=required_scopes,
            )
        super().__init__(token_verifier, [self.authkit_domain], base_url, **options)

    def set_mcp_path(self, mcp_path: str | None) -> None:
        super().set_mcp_path(mcp_path)
        if self._is_bound:
            self.token_verifier.audience = self.resource_url(mcp_path or "")


class KeycloakAuthProvider(RemoteAuthProvider):
    """A realm of Keycloak. Its tokens need the scope ``openid``, unless others are given."""

    def __init__(
        self,
        *,
        realm_url: Any,
        base_url: Any,
        required_scopes: Iterable[str] | str | None = None,
        audience: str | list[str] | None = None,
        token_verifier: Any = None,
    ) -> None:
        self.realm_url = _bare(realm_url)
        if token_verifier is None:
            token_verifier = JWTVerifier(
                jwks_uri=f"{self.realm_url}/protocol/openid-connect/certs",
                issuer=self.realm_url,
                audience=audience,
                required_scopes=["openid"] if required_scopes is None else required_scopes,
            )
        super().__init__(token_verifier, [self.realm_url], base_url)


class ScalekitProvider(RemoteAuthProvider):
    """Scalekit: the tokens of an environment for the resource `resource_id`."""

    def __init__(
        self,
        *,
        environment_url: Any,
        resource_id: str,
        base_url: Any = None,
        mcp_url: Any = None,
        client_id: str | None = None,
        required_scopes: Iterable[str] | str | None = None,
        token_verifier: Any = None,
        **options: Any,
    ) -> None:
        if not (base_url or mcp_url):
            raise ValueError("ScalekitProvider: base_url is missing")
        self.environment_url = _bare(environment_url)
        self.resource_id = resource_id
        issuer = f"{self.environment_url}/resources/{resource_id}"
        if token_verifier is None:
            token_verifier = JWTVerifier(
                jwks_uri=f"{self.environment_url}/keys",
                issuer=[self.environment_url, issuer],
                audience=resource_id,
                required_scopes=required_scopes,
            )
        super().__init__(token_verifier, [issuer], base_url or mcp_url, **options)


class SupabaseProvider(RemoteAuthProvider):
    """Supabase Auth. Its tokens do not name their server: one for another of the project is accepted."""

    def __init__(
        self,
        *,
        project_url: Any,
        base_url: Any,
        auth_route: str = "/auth/v1",
        algorithm: str = "ES256",
        required_scopes: Iterable[str] | str | None = None,
        token_verifier: Any = None,
        **options: Any,
    ) -> None:
        self.project_url = _bare(project_url)
        self.auth_route = auth_route.strip("/")
        issuer = f"{self.project_url}/{self.auth_route}"
        if token_verifier is None:
            token_verifier = JWTVerifier(
                jwks_uri=f"{issuer}/.well-known/jwks.json",
                issuer=issuer,
                algorithm=algorithm,
                audience="authenticated",
                required_scopes=required_scopes,
            )
        super().__init__(token_verifier, [issuer], base_url, **options)


def _bare(url: Any) -> str:
    return str(url).rstrip("/")
