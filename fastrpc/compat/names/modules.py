"""The modules of the originals whose names `fastrpc.compat` serves, of all their versions that it knows.

FastMCP 2.14 to 4.1; of the official SDK 1.30 and 2.3, what is a server's or a client's. It says what is a
module and what a name where the original is not installed: ``from mcp.server.fastmcp.prompts import base``.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

ORIGINAL_MODULES = ("mcp.types", "mcp.shared", "mcp.os")
"""Modules of the SDK's package itself that are used as they are."""


def _names(package: str, listed: str) -> frozenset[str]:
    """Return the full names of modules that are listed by their parent: ``parent: name name``."""
    found = {package}
    parent = package
    for word in listed.split():
        if word.endswith(":"):
            parent = f"{package}.{word[:-1]}".rstrip(".")
        else:
            found.add(f"{parent}.{word}")
    return frozenset(found)


FASTMCP = _names(
    "fastmcp",
    """
.: apps client decorators dependencies exceptions experimental mcp_config prompts resources server
    settings skills telemetry tools types utilities
apps: app approval choice config file_upload form generative
client: auth caching client dependencies elicitation extension_hooks group logging messages mixins
    oauth_callback progress roots sampling tasks telemetry transports
client.auth: bearer client_credentials oauth
client.mixins: prompts resources skills task_management tools
client.sampling: handlers
client.sampling.handlers: anthropic google_genai openai
client.transports: base config http inference memory sse stdio
experimental: sampling server transforms utilities
experimental.sampling: handlers
experimental.sampling.handlers: openai
experimental.server: openapi
experimental.transforms: code_mode jev_search
experimental.utilities: openapi
prompts: base function_prompt prompt prompt_manager
resources: base function_resource resource resource_manager security template types
server: app apps auth caching completions context dependencies elicitation event_store extensions http
    lifespan low_level middleware mixins openapi providers proxy sampling server
    session_scoped_event_store sessions tasks telemetry transforms
server.auth: auth authorization cimd identity_assertion jwt_issuer middleware oauth_proxy oidc_proxy
    providers redirect_validation ssrf
server.auth.oauth_proxy: consent models proxy ui upstream
server.auth.providers: auth0 aws azure clerk debug descope discord github google huggingface in_memory
    introspection jwt keycloak oci propelauth scalekit supabase workos
server.middleware: authorization caching dereference error_handling logging middleware ping rate_limiting
    response_limiting timing tool_injection
server.mixins: extensions lifespan mcp_operations transport
server.openapi: components routing server
server.providers: addressing aggregate base fastmcp_provider filesystem filesystem_discovery
    local_provider openapi prefab_payload prefab_synthesis proxy skills wrapped_provider
server.providers.local_provider: decorators local_provider
server.providers.local_provider.decorators: prompts resources tools
server.providers.openapi: components provider routing
server.providers.skills: claude_provider directory_provider skill_provider vendor_providers
server.sampling: run sampling_tool
server.tasks: capabilities config context converters elicitation handlers keys notifications protocol
    requests routing subscriptions
server.transforms: catalog namespace prompts_as_tools resources_as_tools search tool_transform
    version_filter visibility
server.transforms.search: base bm25 regex
skills: client extension models
tools: base function_parsing function_tool tool tool_manager tool_transform
utilities: asgi_transport async_utils auth authorization components docstring_parsing exceptions http
    inspect json_schema json_schema_type lifespan logging mcp_config mime openapi pagination prefab
    skills tasks tests timeout token_cache types ui version_check versions
utilities.openapi: director formatters json_schema_converter models parser schemas
""",
)
SDK = _names(
    "mcp",
    """
.: client server shared
client: caching client context experimental extension session session_group sse stdio streamable_http
    subscriptions websocket
client.experimental: task_handlers tasks
server: apps caching connection context elicitation experimental extension fastmcp lowlevel mcpserver
    models request_state runner session sse stdio streamable_http streamable_http_manager subscriptions
    transport_security validation websocket
server.experimental: request_context session_features task_context task_result_handler task_scope
    task_support
server.fastmcp: exceptions prompts resources server tools utilities
server.fastmcp.prompts: base manager
server.fastmcp.resources: base resource_manager templates types
server.fastmcp.tools: base tool_manager
server.fastmcp.utilities: context_injection func_metadata logging types
server.lowlevel: experimental func_inspection helper_types server
server.mcpserver: context exceptions prompts resolve resources server tools utilities
server.mcpserver.prompts: base manager
server.mcpserver.resources: base resource_manager templates types
server.mcpserver.tools: base tool_manager
server.mcpserver.utilities: context_injection func_metadata logging types
shared: exceptions memory
""",
)


def submodule(home: str, name: str) -> ModuleType:
    """Return what an attribute of `home` is where a file uses `home` as the original's package, as in
    ``mcp.server.stdio.stdio_server``: `home` itself for each served module. Raises AttributeError."""
    package = home.rpartition(".")[2]
    below = f"{package}.{name}"
    if package == "mcp" and below in ORIGINAL_MODULES:
        __import__(below)
        return sys.modules[below]
    if not any(known.endswith(f".{name}") for known in FASTMCP | SDK if known.startswith(package)):
        raise AttributeError(f"module {home!r} has no attribute {name!r}")
    return sys.modules[home]
