"""The names of the package fastmcp, whatever module of it they are imported from.

``from fastrpc.compat.fastmcp import FastMCP, Context`` in a file that was written for FastMCP 2 to 4. Names
are imported when they are first used. docs/compat.md says what works, what differs and why.
"""

from __future__ import annotations

from fastrpc.lazy_names import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc.compat.auth.access import AccessToken, get_access_token
    from fastrpc.compat.auth.checks import (
        AuthCheck,
        AuthContext,
        AuthMiddleware,
        AuthorizationError,
        InsufficientScopeError,
        require_roles,
        require_scopes,
        restrict_tag,
        run_auth_checks,
    )
    from fastrpc.compat.auth.introspection import IntrospectionTokenVerifier
    from fastrpc.compat.auth.jwt_verifier import BearerAuthProvider, JWTVerifier
    from fastrpc.compat.auth.key_pair import RSAKeyPair
    from fastrpc.compat.auth.provider import AuthProvider, MultiAuth, RemoteAuthProvider, TokenVerifier
    from fastrpc.compat.auth.remote_providers import (
        AuthKitProvider,
        KeycloakAuthProvider,
        ScalekitProvider,
        SupabaseProvider,
    )
    from fastrpc.compat.auth.static import DebugTokenVerifier, StaticTokenVerifier
    from fastrpc.compat.client.fastmcp_client import CallToolResult, Client, ElicitResult, MessageHandler
    from fastrpc.compat.client.transports import (
        BearerAuth,
        ClientTransport,
        FastMCPTransport,
        MCPConfig,
        MCPConfigTransport,
        NodeStdioTransport,
        NpxStdioTransport,
        PythonStdioTransport,
        RemoteMCPServer,
        SSETransport,
        StdioMCPServer,
        StdioTransport,
        StreamableHttpTransport,
        UvStdioTransport,
        UvxStdioTransport,
        infer_transport,
    )
    from fastrpc.compat.components.app_metadata import (
        UI_EXTENSION_ID,
        UI_MIME_TYPE,
        AppConfig,
        ResourceCSP,
        ResourcePermissions,
    )
    from fastrpc.compat.components.mixin import MCPMixin, mcp_prompt, mcp_resource, mcp_tool
    from fastrpc.compat.components.objects import (
        BinaryResource,
        DirectoryResource,
        FileResource,
        FunctionResource,
        Prompt,
        PromptArgument,
        Resource,
        ResourceTemplate,
        TextResource,
    )
    from fastrpc.compat.components.standalone import (
        prompt,
        resource,
        tool,
    )
    from fastrpc.compat.components.tools import (
        ArgTransform,
        FunctionTool,
        Tool,
        ToolTransformConfig,
        TransformedTool,
        forward,
        forward_raw,
    )
    from fastrpc.compat.components.versions import (
        VersionSpec,
    )
    from fastrpc.compat.context import AcceptedElicitation, CancelledElicitation, Context, DeclinedElicitation
    from fastrpc.compat.dependencies import (
        CurrentAccessToken,
        CurrentContext,
        CurrentFastMCP,
        CurrentHeaders,
        CurrentRequest,
        Dependency,
        Depends,
        OptionalCurrentContext,
        Progress,
        TokenClaim,
        get_context,
        get_server,
    )
    from fastrpc.compat.errors import (
        DisabledError,
        McpError,
        NotFoundError,
        NotOffered,
        PromptError,
        ResourceError,
        ValidationError,
    )
    from fastrpc.compat.errors import ToolFailure as ToolError
    from fastrpc.compat.http.headers import get_http_headers, get_http_request
    from fastrpc.compat.lifespans import (
        ComposedLifespan,
        ContextManagerLifespan,
        Lifespan,
        lifespan,
    )
    from fastrpc.compat.loggers import configure_logging, get_logger
    from fastrpc.compat.middleware.base import CallNext, Middleware, MiddlewareContext
    from fastrpc.compat.middleware.caching import (
        CallToolSettings,
        GetPromptSettings,
        ListPromptsSettings,
        ListResourcesSettings,
        ListToolsSettings,
        ReadResourceSettings,
        ResponseCachingMiddleware,
    )
    from fastrpc.compat.middleware.error_handling import ErrorHandlingMiddleware, RetryMiddleware
    from fastrpc.compat.middleware.logging import LoggingMiddleware, StructuredLoggingMiddleware
    from fastrpc.compat.middleware.ping import PingMiddleware
    from fastrpc.compat.middleware.rate_limiting import (
        RateLimitError,
        RateLimitingMiddleware,
        SlidingWindowRateLimitingMiddleware,
    )
    from fastrpc.compat.middleware.response_limiting import ResponseLimitingMiddleware
    from fastrpc.compat.middleware.timing import DetailedTimingMiddleware, TimingMiddleware
    from fastrpc.compat.middleware.tool_injection import (
        PromptToolMiddleware,
        ResourceToolMiddleware,
        ToolInjectionMiddleware,
    )
    from fastrpc.compat.openapi_descriptions import format_description_with_responses
    from fastrpc.compat.providers.base import (
        AggregateProvider,
        Provider,
    )
    from fastrpc.compat.providers.filesystem import (
        FileSystemProvider,
    )
    from fastrpc.compat.providers.local import (
        LocalProvider,
    )
    from fastrpc.compat.providers.mounted import (
        FastMCPProvider,
    )
    from fastrpc.compat.providers.skills import (
        ClaudeSkillsProvider,
        CodexSkillsProvider,
        CopilotSkillsProvider,
        CursorSkillsProvider,
        GeminiSkillsProvider,
        GooseSkillsProvider,
        OpenCodeSkillsProvider,
        SkillInfo,
        SkillProvider,
        SkillsDirectoryProvider,
        VSCodeSkillsProvider,
    )
    from fastrpc.compat.proxies import create_proxy
    from fastrpc.compat.server import FastMCP
    from fastrpc.compat.server_settings import settings
    from fastrpc.compat.transforms.as_tools import (
        PromptsAsTools,
        ResourcesAsTools,
    )
    from fastrpc.compat.transforms.base import (
        CatalogTransform,
        GetPromptNext,
        GetResourceNext,
        GetResourceTemplateNext,
        GetToolNext,
        Transform,
    )
    from fastrpc.compat.transforms.namespace import (
        Namespace,
    )
    from fastrpc.compat.transforms.search import (
        BaseSearchTransform,
        BM25SearchTransform,
        RegexSearchTransform,
        serialize_tools_for_output_json,
        serialize_tools_for_output_markdown,
    )
    from fastrpc.compat.transforms.selecting import (
        VersionFilter,
        Visibility,
        is_enabled,
    )
    from fastrpc.compat.transforms.tool_transform import (
        ToolTransform,
    )
    from fastrpc.compat.upstream_providers import (
        FastMCPProxy,
        OpenAPIProvider,
        ProxyClient,
        ProxyProvider,
        StatefulProxyClient,
    )
    from fastrpc.compat.values import (
        AssistantMessage,
        Audio,
        File,
        Image,
        Message,
        PromptResult,
        ResourceContent,
        ResourceResult,
        ToolResult,
        UserMessage,
    )
    from fastrpc.errors import DefinitionError as InvalidSignature
    from fastrpc.errors import ToolError as FastMCPError
    from fastrpc.openapi import MCPType, RouteMap

__all__ = [
    "UI_EXTENSION_ID",
    "UI_MIME_TYPE",
    "AcceptedElicitation",
    "AccessToken",
    "AggregateProvider",
    "AppConfig",
    "ArgTransform",
    "AssistantMessage",
    "Audio",
    "AuthCheck",
    "AuthContext",
    "AuthKitProvider",
    "AuthMiddleware",
    "AuthProvider",
    "AuthorizationError",
    "BM25SearchTransform",
    "BaseSearchTransform",
    "BearerAuth",
    "BearerAuthProvider",
    "BinaryResource",
    "CallNext",
    "CallToolResult",
    "CallToolSettings",
    "CancelledElicitation",
    "CatalogTransform",
    "ClaudeSkillsProvider",
    "Client",
    "ClientTransport",
    "CodexSkillsProvider",
    "ComposedLifespan",
    "Context",
    "ContextManagerLifespan",
    "CopilotSkillsProvider",
    "CurrentAccessToken",
    "CurrentContext",
    "CurrentFastMCP",
    "CurrentHeaders",
    "CurrentRequest",
    "CursorSkillsProvider",
    "DebugTokenVerifier",
    "DeclinedElicitation",
    "Dependency",
    "Depends",
    "DetailedTimingMiddleware",
    "DirectoryResource",
    "DisabledError",
    "ElicitResult",
    "ErrorHandlingMiddleware",
    "FastMCP",
    "FastMCPError",
    "FastMCPProvider",
    "FastMCPProxy",
    "FastMCPTransport",
    "File",
    "FileResource",
    "FileSystemProvider",
    "FunctionResource",
    "FunctionTool",
    "GeminiSkillsProvider",
    "GetPromptNext",
    "GetPromptSettings",
    "GetResourceNext",
    "GetResourceTemplateNext",
    "GetToolNext",
    "GooseSkillsProvider",
    "Image",
    "InsufficientScopeError",
    "IntrospectionTokenVerifier",
    "InvalidSignature",
    "JWTVerifier",
    "KeycloakAuthProvider",
    "Lifespan",
    "ListPromptsSettings",
    "ListResourcesSettings",
    "ListToolsSettings",
    "LocalProvider",
    "LoggingMiddleware",
    "MCPConfig",
    "MCPConfigTransport",
    "MCPMixin",
    "MCPType",
    "McpError",
    "Message",
    "MessageHandler",
    "Middleware",
    "MiddlewareContext",
    "MultiAuth",
    "Namespace",
    "NodeStdioTransport",
    "NotFoundError",
    "NotOffered",
    "NpxStdioTransport",
    "OpenAPIProvider",
    "OpenCodeSkillsProvider",
    "OptionalCurrentContext",
    "PingMiddleware",
    "Progress",
    "Prompt",
    "PromptArgument",
    "PromptError",
    "PromptResult",
    "PromptToolMiddleware",
    "PromptsAsTools",
    "Provider",
    "ProxyClient",
    "ProxyProvider",
    "PythonStdioTransport",
    "RSAKeyPair",
    "RateLimitError",
    "RateLimitingMiddleware",
    "ReadResourceSettings",
    "RegexSearchTransform",
    "RemoteAuthProvider",
    "RemoteMCPServer",
    "Resource",
    "ResourceCSP",
    "ResourceContent",
    "ResourceError",
    "ResourcePermissions",
    "ResourceResult",
    "ResourceTemplate",
    "ResourceToolMiddleware",
    "ResourcesAsTools",
    "ResponseCachingMiddleware",
    "ResponseLimitingMiddleware",
    "RetryMiddleware",
    "RouteMap",
    "SSETransport",
    "ScalekitProvider",
    "SkillInfo",
    "SkillProvider",
    "SkillsDirectoryProvider",
    "SlidingWindowRateLimitingMiddleware",
    "StatefulProxyClient",
    "StaticTokenVerifier",
    "StdioMCPServer",
    "StdioTransport",
    "StreamableHttpTransport",
    "StructuredLoggingMiddleware",
    "SupabaseProvider",
    "TextResource",
    "TimingMiddleware",
    "TokenClaim",
    "TokenVerifier",
    "Tool",
    "ToolError",
    "ToolInjectionMiddleware",
    "ToolResult",
    "ToolTransform",
    "ToolTransformConfig",
    "Transform",
    "TransformedTool",
    "UserMessage",
    "UvStdioTransport",
    "UvxStdioTransport",
    "VSCodeSkillsProvider",
    "ValidationError",
    "VersionFilter",
    "VersionSpec",
    "Visibility",
    "configure_logging",
    "create_proxy",
    "format_description_with_responses",
    "forward",
    "forward_raw",
    "get_access_token",
    "get_context",
    "get_http_headers",
    "get_http_request",
    "get_logger",
    "get_server",
    "infer_transport",
    "is_enabled",
    "lifespan",
    "mcp_prompt",
    "mcp_resource",
    "mcp_tool",
    "prompt",
    "require_roles",
    "require_scopes",
    "resource",
    "restrict_tag",
    "run_auth_checks",
    "serialize_tools_for_output_json",
    "serialize_tools_for_output_markdown",
    "settings",
    "tool",
]

_HOMES = {
    "fastrpc.compat.openapi_descriptions": ("format_description_with_responses",),
    "fastrpc.compat.components.mixin": (
        "MCPMixin",
        "mcp_prompt",
        "mcp_resource",
        "mcp_tool",
    ),
    "fastrpc.compat.client.transports": (
        "BearerAuth",
        "ClientTransport",
        "FastMCPTransport",
        "MCPConfig",
        "MCPConfigTransport",
        "NodeStdioTransport",
        "NpxStdioTransport",
        "PythonStdioTransport",
        "RemoteMCPServer",
        "SSETransport",
        "StdioMCPServer",
        "StdioTransport",
        "StreamableHttpTransport",
        "UvStdioTransport",
        "UvxStdioTransport",
        "infer_transport",
    ),
    "fastrpc.compat.components.app_metadata": (
        "AppConfig",
        "ResourceCSP",
        "ResourcePermissions",
        "UI_EXTENSION_ID",
        "UI_MIME_TYPE",
    ),
    "fastrpc.compat.lifespans": (
        "ComposedLifespan",
        "ContextManagerLifespan",
        "Lifespan",
        "lifespan",
    ),
    "fastrpc.compat.providers.base": (
        "AggregateProvider",
        "Provider",
    ),
    "fastrpc.compat.providers.filesystem": ("FileSystemProvider",),
    "fastrpc.compat.providers.local": ("LocalProvider",),
    "fastrpc.compat.providers.mounted": ("FastMCPProvider",),
    "fastrpc.compat.providers.skills": (
        "ClaudeSkillsProvider",
        "CodexSkillsProvider",
        "CopilotSkillsProvider",
        "CursorSkillsProvider",
        "GeminiSkillsProvider",
        "GooseSkillsProvider",
        "OpenCodeSkillsProvider",
        "SkillInfo",
        "SkillProvider",
        "SkillsDirectoryProvider",
        "VSCodeSkillsProvider",
    ),
    "fastrpc.compat.upstream_providers": (
        "FastMCPProxy",
        "OpenAPIProvider",
        "ProxyClient",
        "ProxyProvider",
        "StatefulProxyClient",
    ),
    "fastrpc.compat.components.standalone": (
        "prompt",
        "resource",
        "tool",
    ),
    "fastrpc.compat.transforms.as_tools": (
        "PromptsAsTools",
        "ResourcesAsTools",
    ),
    "fastrpc.compat.transforms.base": (
        "CatalogTransform",
        "GetPromptNext",
        "GetResourceNext",
        "GetResourceTemplateNext",
        "GetToolNext",
        "Transform",
    ),
    "fastrpc.compat.transforms.namespace": ("Namespace",),
    "fastrpc.compat.transforms.search": (
        "BM25SearchTransform",
        "BaseSearchTransform",
        "RegexSearchTransform",
        "serialize_tools_for_output_json",
        "serialize_tools_for_output_markdown",
    ),
    "fastrpc.compat.transforms.selecting": (
        "VersionFilter",
        "Visibility",
        "is_enabled",
    ),
    "fastrpc.compat.transforms.tool_transform": ("ToolTransform",),
    "fastrpc.compat.components.versions": ("VersionSpec",),
    "fastrpc.compat.loggers": (
        "configure_logging",
        "get_logger",
    ),
    "fastrpc.compat.components.tools": (
        "ArgTransform",
        "FunctionTool",
        "Tool",
        "ToolTransformConfig",
        "TransformedTool",
        "forward",
        "forward_raw",
    ),
    "fastrpc.compat.components.objects": (
        "BinaryResource",
        "DirectoryResource",
        "FileResource",
        "FunctionResource",
        "Prompt",
        "PromptArgument",
        "Resource",
        "ResourceTemplate",
        "TextResource",
    ),
    "fastrpc.compat.proxies": ("create_proxy",),
    "fastrpc.openapi": ("MCPType", "RouteMap"),
    "fastrpc.compat.auth.access": ("AccessToken", "get_access_token"),
    "fastrpc.compat.auth.checks": (
        "AuthCheck",
        "AuthContext",
        "AuthMiddleware",
        "AuthorizationError",
        "InsufficientScopeError",
        "require_roles",
        "require_scopes",
        "restrict_tag",
        "run_auth_checks",
    ),
    "fastrpc.compat.auth.introspection": ("IntrospectionTokenVerifier",),
    "fastrpc.compat.auth.jwt_verifier": ("BearerAuthProvider", "JWTVerifier"),
    "fastrpc.compat.auth.key_pair": ("RSAKeyPair",),
    "fastrpc.compat.auth.provider": ("AuthProvider", "MultiAuth", "RemoteAuthProvider", "TokenVerifier"),
    "fastrpc.compat.auth.remote_providers": (
        "AuthKitProvider",
        "KeycloakAuthProvider",
        "ScalekitProvider",
        "SupabaseProvider",
    ),
    "fastrpc.compat.auth.static": ("DebugTokenVerifier", "StaticTokenVerifier"),
    "fastrpc.compat.context": (
        "AcceptedElicitation",
        "CancelledElicitation",
        "Context",
        "DeclinedElicitation",
    ),
    "fastrpc.compat.dependencies": (
        "CurrentAccessToken",
        "CurrentContext",
        "CurrentFastMCP",
        "CurrentHeaders",
        "CurrentRequest",
        "Dependency",
        "Depends",
        "OptionalCurrentContext",
        "Progress",
        "TokenClaim",
        "get_context",
        "get_server",
    ),
    "fastrpc.compat.http.headers": (
        "get_http_headers",
        "get_http_request",
    ),
    "fastrpc.compat.errors": (
        "DisabledError",
        "McpError",
        "NotFoundError",
        "NotOffered",
        "PromptError",
        "ResourceError",
        "ToolFailure",
        "ValidationError",
    ),
    "fastrpc.compat.client.fastmcp_client": (
        "CallToolResult",
        "Client",
        "ElicitResult",
        "MessageHandler",
    ),
    "fastrpc.compat.middleware.base": ("CallNext", "Middleware", "MiddlewareContext"),
    "fastrpc.compat.middleware.caching": (
        "CallToolSettings",
        "GetPromptSettings",
        "ListPromptsSettings",
        "ListResourcesSettings",
        "ListToolsSettings",
        "ReadResourceSettings",
        "ResponseCachingMiddleware",
    ),
    "fastrpc.compat.middleware.error_handling": (
        "ErrorHandlingMiddleware",
        "RetryMiddleware",
    ),
    "fastrpc.compat.middleware.logging": (
        "LoggingMiddleware",
        "StructuredLoggingMiddleware",
    ),
    "fastrpc.compat.middleware.ping": ("PingMiddleware",),
    "fastrpc.compat.middleware.rate_limiting": (
        "RateLimitError",
        "RateLimitingMiddleware",
        "SlidingWindowRateLimitingMiddleware",
    ),
    "fastrpc.compat.middleware.response_limiting": ("ResponseLimitingMiddleware",),
    "fastrpc.compat.middleware.timing": (
        "DetailedTimingMiddleware",
        "TimingMiddleware",
    ),
    "fastrpc.compat.middleware.tool_injection": (
        "PromptToolMiddleware",
        "ResourceToolMiddleware",
        "ToolInjectionMiddleware",
    ),
    "fastrpc.compat.server": ("FastMCP",),
    "fastrpc.compat.server_settings": ("settings",),
    "fastrpc.compat.values": (
        "AssistantMessage",
        "Audio",
        "File",
        "Image",
        "Message",
        "PromptResult",
        "ResourceContent",
        "ResourceResult",
        "ToolResult",
        "UserMessage",
    ),
    "fastrpc.errors": ("DefinitionError", "ToolError"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
_ALIASES = {
    "FastMCPError": "ToolError",
    "ToolError": "ToolFailure",
    "InvalidSignature": "DefinitionError",
}
"""Names that stand for a class of another name here."""

_MODULE_ALTERNATIVES: dict[str, str] = dict.fromkeys(
    [
        "Auth0Provider",
        "AWSCognitoProvider",
        "AzureProvider",
        "ClerkProvider",
        "DiscordProvider",
        "GitHubProvider",
        "GoogleProvider",
        "HuggingFaceProvider",
        "InMemoryOAuthProvider",
        "OAuthProvider",
        "OAuthProxy",
        "OCIProvider",
        "OIDCProxy",
        "WorkOSProvider",
    ],
    "fastrpc issues no tokens; use RemoteAuthProvider with a verifier, or auth_servers= of docs/http.md",
)
"""Names that are not supported, and the alternatives."""


if not TYPE_CHECKING:  # a checker is to find a name that is misspelled

    def __getattr__(name: str) -> object:
        if name in _MODULE_ALTERNATIVES:
            raise ImportError(f"{__name__} has no {name}; {_MODULE_ALTERNATIVES[name]}")
        if name not in __all__ and name.islower():
            from fastrpc.compat.swap.module_names import submodule

            return submodule(__name__, name)
        return load(globals(), _HOME_OF, name, _ALIASES.get(name))
