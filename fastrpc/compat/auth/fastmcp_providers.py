"""FastMCP's authorization servers and what verifies their tokens: its own classes, of the installed package.

They are proxies of a company's login (GitHub, Google, Azure, …) that issue tokens of their own. Their routes
are served beside MCP, and fastrpc asks their ``verify_token``; nothing of FastMCP's server runs. Imported
when a name is first used, which takes as long as in FastMCP; without FastMCP using one raises NotOffered.
"""

from __future__ import annotations

from fastrpc.compat.swap.originals import part_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Auth0MCPProvider: Any
    Auth0Provider: Any
    AWSCognitoProvider: Any
    AWSCognitoTokenVerifier: Any
    AzureJWTVerifier: Any
    AzureProvider: Any
    ClerkProvider: Any
    ClerkTokenVerifier: Any
    DescopeProvider: Any
    DiscordProvider: Any
    DiscordTokenVerifier: Any
    GitHubProvider: Any
    GitHubTokenVerifier: Any
    GoogleProvider: Any
    GoogleTokenVerifier: Any
    HuggingFaceProvider: Any
    HuggingFaceTokenVerifier: Any
    IdentityAssertion: Any
    InMemoryOAuthProvider: Any
    OAuthProvider: Any
    OAuthProxy: Any
    OCIProvider: Any
    OIDCProxy: Any
    PropelAuthProvider: Any
    WorkOSProvider: Any
    WorkOSTokenVerifier: Any

_PROVIDERS = {
    "auth0": ("Auth0MCPProvider", "Auth0Provider"),
    "aws": ("AWSCognitoProvider", "AWSCognitoTokenVerifier"),
    "azure": ("AzureJWTVerifier", "AzureProvider"),
    "clerk": ("ClerkProvider", "ClerkTokenVerifier"),
    "descope": ("DescopeProvider",),
    "discord": ("DiscordProvider", "DiscordTokenVerifier"),
    "github": ("GitHubProvider", "GitHubTokenVerifier"),
    "google": ("GoogleProvider", "GoogleTokenVerifier"),
    "huggingface": ("HuggingFaceProvider", "HuggingFaceTokenVerifier"),
    "in_memory": ("InMemoryOAuthProvider",),
    "oci": ("OCIProvider",),
    "propelauth": ("PropelAuthProvider",),
    "workos": ("WorkOSProvider", "WorkOSTokenVerifier"),
}
_HOME_OF = {
    "IdentityAssertion": "fastmcp.server.auth.identity_assertion",
    "OAuthProvider": "fastmcp.server.auth.auth",
    "OAuthProxy": "fastmcp.server.auth.oauth_proxy",
    "OIDCProxy": "fastmcp.server.auth.oidc_proxy",
    **{
        name: f"fastmcp.server.auth.providers.{module}"
        for module, names in _PROVIDERS.items()
        for name in names
    },
}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return part_of(_HOME_OF[name], name)
