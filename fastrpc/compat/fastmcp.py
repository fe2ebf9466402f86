"""The names of the package fastmcp, whatever module of it they are imported from.

``from fastrpc.compat.fastmcp import FastMCP, Context`` in a file that was written for FastMCP 2 to 4. Names
are imported when they are first used. docs/compat.md says what works, what differs and why.
"""

from __future__ import annotations

from fastrpc.compat.names import load as _load
from fastrpc.compat.names.homes import HOMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc.compat.apps import UI_EXTENSION_ID, UI_MIME_TYPE
    from fastrpc.compat.apps.provider import FastMCPApp
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
        AppConfig,
        PrefabAppConfig,
        ResourceCSP,
        ResourcePermissions,
        app_config_to_meta_dict,
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
    from fastrpc.compat.components.resource_security import (
        DEFAULT_RESOURCE_SECURITY,
        INHERIT_SECURITY,
        InheritSecurity,
        ResourceSecurity,
        ResourceSecurityError,
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
    from fastrpc.compat.functions.dependencies import (
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
    from fastrpc.compat.highlevel.lifespans import (
        ComposedLifespan,
        ContextManagerLifespan,
        Lifespan,
        lifespan,
    )
    from fastrpc.compat.highlevel.settings import settings
    from fastrpc.compat.http.headers import get_http_headers, get_http_request
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
    from fastrpc.compat.names.installed import (
        Approval,
        Auth0MCPProvider,
        Auth0Provider,
        AWSCognitoProvider,
        AWSCognitoTokenVerifier,
        AzureJWTVerifier,
        AzureProvider,
        Choice,
        ClerkProvider,
        ClerkTokenVerifier,
        CodeMode,
        DescopeProvider,
        DiscordProvider,
        DiscordTokenVerifier,
        DiscoveryToolFactory,
        FileUpload,
        FormInput,
        GenerativeUI,
        GetSchemas,
        GetTags,
        GetToolCatalog,
        GitHubProvider,
        GitHubTokenVerifier,
        GoogleProvider,
        GoogleTokenVerifier,
        HuggingFaceProvider,
        HuggingFaceTokenVerifier,
        IdentityAssertion,
        InMemoryOAuthProvider,
        ListTools,
        MontySandboxProvider,
        OAuthProvider,
        OAuthProxy,
        OCIProvider,
        OIDCProxy,
        PropelAuthProvider,
        SandboxProvider,
        Search,
        SearchFn,
        ToolDetailLevel,
        WorkOSProvider,
        WorkOSTokenVerifier,
    )
    from fastrpc.compat.names.utilities import (
        configure_logging,
        format_description_with_responses,
        get_logger,
    )
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
    from fastrpc.compat.providers.upstream import (
        FastMCPProxy,
        OpenAPIProvider,
        ProxyClient,
        ProxyProvider,
        StatefulProxyClient,
    )
    from fastrpc.compat.server import FastMCP, create_proxy
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
    "DEFAULT_RESOURCE_SECURITY",
    "INHERIT_SECURITY",
    "UI_EXTENSION_ID",
    "UI_MIME_TYPE",
    "AWSCognitoProvider",
    "AWSCognitoTokenVerifier",
    "AcceptedElicitation",
    "AccessToken",
    "AggregateProvider",
    "AppConfig",
    "Approval",
    "ArgTransform",
    "AssistantMessage",
    "Audio",
    "Auth0MCPProvider",
    "Auth0Provider",
    "AuthCheck",
    "AuthContext",
    "AuthKitProvider",
    "AuthMiddleware",
    "AuthProvider",
    "AuthorizationError",
    "AzureJWTVerifier",
    "AzureProvider",
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
    "Choice",
    "ClaudeSkillsProvider",
    "ClerkProvider",
    "ClerkTokenVerifier",
    "Client",
    "ClientTransport",
    "CodeMode",
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
    "DescopeProvider",
    "DetailedTimingMiddleware",
    "DirectoryResource",
    "DisabledError",
    "DiscordProvider",
    "DiscordTokenVerifier",
    "DiscoveryToolFactory",
    "ElicitResult",
    "ErrorHandlingMiddleware",
    "FastMCP",
    "FastMCPApp",
    "FastMCPError",
    "FastMCPProvider",
    "FastMCPProxy",
    "FastMCPTransport",
    "File",
    "FileResource",
    "FileSystemProvider",
    "FileUpload",
    "FormInput",
    "FunctionResource",
    "FunctionTool",
    "GeminiSkillsProvider",
    "GenerativeUI",
    "GetPromptNext",
    "GetPromptSettings",
    "GetResourceNext",
    "GetResourceTemplateNext",
    "GetSchemas",
    "GetTags",
    "GetToolCatalog",
    "GetToolNext",
    "GitHubProvider",
    "GitHubTokenVerifier",
    "GoogleProvider",
    "GoogleTokenVerifier",
    "GooseSkillsProvider",
    "HuggingFaceProvider",
    "HuggingFaceTokenVerifier",
    "IdentityAssertion",
    "Image",
    "InMemoryOAuthProvider",
    "InheritSecurity",
    "InsufficientScopeError",
    "IntrospectionTokenVerifier",
    "InvalidSignature",
    "JWTVerifier",
    "KeycloakAuthProvider",
    "Lifespan",
    "ListPromptsSettings",
    "ListResourcesSettings",
    "ListTools",
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
    "MontySandboxProvider",
    "MultiAuth",
    "Namespace",
    "NodeStdioTransport",
    "NotFoundError",
    "NotOffered",
    "NpxStdioTransport",
    "OAuthProvider",
    "OAuthProxy",
    "OCIProvider",
    "OIDCProxy",
    "OpenAPIProvider",
    "OpenCodeSkillsProvider",
    "OptionalCurrentContext",
    "PingMiddleware",
    "PrefabAppConfig",
    "Progress",
    "Prompt",
    "PromptArgument",
    "PromptError",
    "PromptResult",
    "PromptToolMiddleware",
    "PromptsAsTools",
    "PropelAuthProvider",
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
    "ResourceSecurity",
    "ResourceSecurityError",
    "ResourceTemplate",
    "ResourceToolMiddleware",
    "ResourcesAsTools",
    "ResponseCachingMiddleware",
    "ResponseLimitingMiddleware",
    "RetryMiddleware",
    "RouteMap",
    "SSETransport",
    "SandboxProvider",
    "ScalekitProvider",
    "Search",
    "SearchFn",
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
    "ToolDetailLevel",
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
    "WorkOSProvider",
    "WorkOSTokenVerifier",
    "app_config_to_meta_dict",
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

_ALIASES = {
    "FastMCPError": "ToolError",
    "ToolError": "ToolFailure",
    "InvalidSignature": "DefinitionError",
}
"""Names of classes that have another name here."""

_MODULE_ALTERNATIVES: dict[str, str] = {}
"""Names that are not supported, and the alternatives."""


if not TYPE_CHECKING:  # a checker is to find a name that is misspelled

    def __getattr__(name: str) -> object:
        return _load(globals(), HOMES, _ALIASES, name)
