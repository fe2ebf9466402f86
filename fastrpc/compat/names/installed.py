"""Classes of the installed FastMCP that a swapped server uses as they are: ready interfaces, `CodeMode`, and
authorization servers with the verifiers of their tokens.

Interfaces and `CodeMode` run on fastrpc's providers and transforms. The authorization servers issue tokens
after a login at GitHub, Google and others: fastrpc serves their routes beside MCP and calls their
``verify_token``; no server of FastMCP runs. A name is imported when it is first used, which takes as long as
in FastMCP. Without FastMCP its use raises NotOffered.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


PARTS: dict[str, tuple[str, ...]] = {
    "fastmcp.apps.approval": ("Approval",),
    "fastmcp.apps.choice": ("Choice",),
    "fastmcp.apps.file_upload": ("FileUpload",),
    "fastmcp.apps.form": ("FormInput",),
    "fastmcp.apps.generative": ("GenerativeUI",),
    "fastmcp.experimental.transforms.code_mode": (
        "CodeMode",
        "DiscoveryToolFactory",
        "GetSchemas",
        "GetTags",
        "GetToolCatalog",
        "ListTools",
        "MontySandboxProvider",
        "SandboxProvider",
        "Search",
        "SearchFn",
        "ToolDetailLevel",
    ),
    "fastmcp.server.auth.auth": ("OAuthProvider",),
    "fastmcp.server.auth.identity_assertion": ("IdentityAssertion",),
    "fastmcp.server.auth.oauth_proxy": ("OAuthProxy",),
    "fastmcp.server.auth.oidc_proxy": ("OIDCProxy",),
    "fastmcp.server.auth.providers.auth0": ("Auth0MCPProvider", "Auth0Provider"),
    "fastmcp.server.auth.providers.aws": ("AWSCognitoProvider", "AWSCognitoTokenVerifier"),
    "fastmcp.server.auth.providers.azure": ("AzureJWTVerifier", "AzureProvider"),
    "fastmcp.server.auth.providers.clerk": ("ClerkProvider", "ClerkTokenVerifier"),
    "fastmcp.server.auth.providers.descope": ("DescopeProvider",),
    "fastmcp.server.auth.providers.discord": ("DiscordProvider", "DiscordTokenVerifier"),
    "fastmcp.server.auth.providers.github": ("GitHubProvider", "GitHubTokenVerifier"),
    "fastmcp.server.auth.providers.google": ("GoogleProvider", "GoogleTokenVerifier"),
    "fastmcp.server.auth.providers.huggingface": ("HuggingFaceProvider", "HuggingFaceTokenVerifier"),
    "fastmcp.server.auth.providers.in_memory": ("InMemoryOAuthProvider",),
    "fastmcp.server.auth.providers.oci": ("OCIProvider",),
    "fastmcp.server.auth.providers.propelauth": ("PropelAuthProvider",),
    "fastmcp.server.auth.providers.workos": ("WorkOSProvider", "WorkOSTokenVerifier"),
}
"""The names, by the module of FastMCP that has them."""


def __getattr__(name: str) -> Any:
    for module, names in PARTS.items():
        if name in names:
            from fastrpc.compat.names.originals import part_of

            return part_of(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
