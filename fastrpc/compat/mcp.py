"""The names of the official SDK (package mcp), whatever module of it they are imported from; not its types.

``from fastrpc.compat.mcp import FastMCP, Context`` in a file that was written for the SDK 1.x or 2.x. The
types of the protocol stay in ``mcp.types``. Names are imported when they are first used. docs/compat.md says
what works, what differs and why.
"""

from __future__ import annotations

from fastrpc.compat.names import load as _load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc.compat.apps import UI_EXTENSION_ID as EXTENSION_ID
    from fastrpc.compat.apps import UI_MIME_TYPE as APP_MIME_TYPE
    from fastrpc.compat.auth.access import AccessToken, get_access_token
    from fastrpc.compat.auth.provider import TokenVerifier
    from fastrpc.compat.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
    from fastrpc.compat.client.callbacks import ClientRequestContext
    from fastrpc.compat.client.endpoints import StdioServerParameters
    from fastrpc.compat.client.extensions import (
        ClaimContext,
        ClientExtension,
        NotificationBinding,
        ResultClaim,
        advertise,
    )
    from fastrpc.compat.client.group import (
        ClientSessionGroup,
        ClientSessionParameters,
        SseServerParameters,
        StreamableHttpParameters,
    )
    from fastrpc.compat.client.sdk_client import Client, create_connected_server_and_client_session
    from fastrpc.compat.client.sessions import (
        ClientSession,
        sse_client,
        stdio_client,
        streamable_http_client,
        streamablehttp_client,
    )
    from fastrpc.compat.client.subscriptions import (
        ListenNotSupportedError,
        Subscription,
        SubscriptionLost,
        listen,
    )
    from fastrpc.compat.components.app_metadata import ResourceCSP as ResourceCsp
    from fastrpc.compat.components.app_metadata import ResourcePermissions
    from fastrpc.compat.components.function_metadata import ArgModelBase, FuncMetadata, func_metadata
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
        ResourceSecurity,
        ResourceSecurityError,
    )
    from fastrpc.compat.components.tools import Tool
    from fastrpc.compat.context import AcceptedElicitation, CancelledElicitation, Context, DeclinedElicitation
    from fastrpc.compat.errors import (
        MCPDeprecationWarning,
        McpError,
        NoBackChannelError,
        NotOffered,
        ResourceError,
        ResourceNotFoundError,
        UrlElicitationRequiredError,
        ValidationError,
    )
    from fastrpc.compat.errors import McpError as MCPError
    from fastrpc.compat.errors import ToolFailure as ToolError
    from fastrpc.compat.highlevel.catalogue import ToolManager
    from fastrpc.compat.http.parts import (
        EventId,
        EventMessage,
        EventStore,
        StreamId,
        TransportSecuritySettings,
    )
    from fastrpc.compat.http.transports import (
        SseServerTransport,
        StreamableHTTPASGIApp,
        StreamableHTTPSessionManager,
    )
    from fastrpc.compat.lowlevel.context import ServerSession
    from fastrpc.compat.lowlevel.options import (
        InitializationOptions,
        NotificationOptions,
        ReadResourceContents,
        stdio_server,
    )
    from fastrpc.compat.lowlevel.running_request import request_ctx
    from fastrpc.compat.lowlevel.server import Server
    from fastrpc.compat.names.utilities import configure_logging, get_logger
    from fastrpc.compat.sdk2.apps import Apps, client_supports_apps
    from fastrpc.compat.sdk2.cache_hints import CACHEABLE_METHODS, CacheHint
    from fastrpc.compat.sdk2.extensions import (
        Extension,
        MethodBinding,
        ResourceBinding,
        ToolBinding,
        require_client_extension,
    )
    from fastrpc.compat.sdk2.request_state import InvalidRequestState, RequestStateSecurity
    from fastrpc.compat.sdk2.resolvers import Elicit, ElicitationResult, ListRoots, Resolve, Sample
    from fastrpc.compat.sdk2.subscription_events import (
        SUBSCRIPTION_ID_META_KEY,
        InMemorySubscriptionBus,
        ListenHandler,
        PromptsListChanged,
        ResourcesListChanged,
        ResourceUpdated,
        ServerEvent,
        SubscriptionBus,
        ToolsListChanged,
    )
    from fastrpc.compat.server import MCPServer
    from fastrpc.compat.server import SdkFastMCP as FastMCP
    from fastrpc.compat.values import AssistantMessage, Audio, Image, Message, UserMessage
    from fastrpc.errors import DefinitionError as InvalidSignature
    from fastrpc.errors import ToolError as FastMCPError
    from fastrpc.errors import ToolError as MCPServerError

__all__ = [
    "APP_MIME_TYPE",
    "CACHEABLE_METHODS",
    "DEFAULT_RESOURCE_SECURITY",
    "EXTENSION_ID",
    "SUBSCRIPTION_ID_META_KEY",
    "AcceptedElicitation",
    "AccessToken",
    "Apps",
    "ArgModelBase",
    "AssistantMessage",
    "Audio",
    "AuthSettings",
    "BinaryResource",
    "CacheHint",
    "CancelledElicitation",
    "ClaimContext",
    "Client",
    "ClientExtension",
    "ClientRegistrationOptions",
    "ClientRequestContext",
    "ClientSession",
    "ClientSessionGroup",
    "ClientSessionParameters",
    "Context",
    "DeclinedElicitation",
    "DirectoryResource",
    "Elicit",
    "ElicitationResult",
    "EventId",
    "EventMessage",
    "EventStore",
    "Extension",
    "FastMCP",
    "FastMCPError",
    "FileResource",
    "FuncMetadata",
    "FunctionResource",
    "Image",
    "InMemorySubscriptionBus",
    "InitializationOptions",
    "InvalidRequestState",
    "InvalidSignature",
    "ListRoots",
    "ListenHandler",
    "ListenNotSupportedError",
    "MCPDeprecationWarning",
    "MCPError",
    "MCPServer",
    "MCPServerError",
    "McpError",
    "Message",
    "MethodBinding",
    "NoBackChannelError",
    "NotOffered",
    "NotificationBinding",
    "NotificationOptions",
    "Prompt",
    "PromptArgument",
    "PromptsListChanged",
    "ReadResourceContents",
    "RequestStateSecurity",
    "Resolve",
    "Resource",
    "ResourceBinding",
    "ResourceCsp",
    "ResourceError",
    "ResourceNotFoundError",
    "ResourcePermissions",
    "ResourceSecurity",
    "ResourceSecurityError",
    "ResourceTemplate",
    "ResourceUpdated",
    "ResourcesListChanged",
    "ResultClaim",
    "RevocationOptions",
    "Sample",
    "Server",
    "ServerEvent",
    "ServerSession",
    "SseServerParameters",
    "SseServerTransport",
    "StdioServerParameters",
    "StreamId",
    "StreamableHTTPASGIApp",
    "StreamableHTTPSessionManager",
    "StreamableHttpParameters",
    "Subscription",
    "SubscriptionBus",
    "SubscriptionLost",
    "TextResource",
    "TokenVerifier",
    "Tool",
    "ToolBinding",
    "ToolError",
    "ToolManager",
    "ToolsListChanged",
    "TransportSecuritySettings",
    "UrlElicitationRequiredError",
    "UserMessage",
    "ValidationError",
    "advertise",
    "client_supports_apps",
    "configure_logging",
    "create_connected_server_and_client_session",
    "func_metadata",
    "get_access_token",
    "get_logger",
    "listen",
    "request_ctx",
    "require_client_extension",
    "sse_client",
    "stdio_client",
    "stdio_server",
    "streamable_http_client",
    "streamablehttp_client",
]

_HOMES = {
    "fastrpc.compat.apps": ("UI_EXTENSION_ID", "UI_MIME_TYPE"),
    "fastrpc.compat.http.transports": (
        "SseServerTransport",
        "StreamableHTTPASGIApp",
        "StreamableHTTPSessionManager",
    ),
    "fastrpc.compat.client.group": (
        "ClientSessionGroup",
        "ClientSessionParameters",
        "SseServerParameters",
        "StreamableHttpParameters",
    ),
    "fastrpc.compat.client.callbacks": ("ClientRequestContext",),
    "fastrpc.compat.components.app_metadata": (
        "ResourceCSP",
        "ResourcePermissions",
    ),
    "fastrpc.compat.sdk2.apps": ("Apps", "client_supports_apps"),
    "fastrpc.compat.sdk2.extensions": (
        "Extension",
        "MethodBinding",
        "ResourceBinding",
        "ToolBinding",
        "require_client_extension",
    ),
    "fastrpc.compat.sdk2.request_state": (
        "InvalidRequestState",
        "RequestStateSecurity",
    ),
    "fastrpc.compat.components.resource_security": (
        "DEFAULT_RESOURCE_SECURITY",
        "ResourceSecurity",
        "ResourceSecurityError",
    ),
    "fastrpc.compat.sdk2.subscription_events": (
        "InMemorySubscriptionBus",
        "ListenHandler",
        "PromptsListChanged",
        "ResourceUpdated",
        "ResourcesListChanged",
        "SUBSCRIPTION_ID_META_KEY",
        "ServerEvent",
        "SubscriptionBus",
        "ToolsListChanged",
    ),
    "fastrpc.compat.client.subscriptions": (
        "ListenNotSupportedError",
        "Subscription",
        "SubscriptionLost",
        "listen",
    ),
    "fastrpc.compat.client.extensions": (
        "ClaimContext",
        "ClientExtension",
        "NotificationBinding",
        "ResultClaim",
        "advertise",
    ),
    "fastrpc.compat.http.parts": (
        "EventId",
        "EventMessage",
        "EventStore",
        "StreamId",
        "TransportSecuritySettings",
    ),
    "fastrpc.compat.sdk2.cache_hints": (
        "CACHEABLE_METHODS",
        "CacheHint",
    ),
    "fastrpc.compat.names.utilities": (
        "configure_logging",
        "get_logger",
    ),
    "fastrpc.compat.highlevel.catalogue": ("ToolManager",),
    "fastrpc.compat.components.tools": ("Tool",),
    "fastrpc.compat.components.function_metadata": (
        "ArgModelBase",
        "FuncMetadata",
        "func_metadata",
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
    "fastrpc.compat.lowlevel.running_request": ("request_ctx",),
    "fastrpc.compat.lowlevel.server": ("Server",),
    "fastrpc.compat.lowlevel.context": ("ServerSession",),
    "fastrpc.compat.lowlevel.options": (
        "InitializationOptions",
        "NotificationOptions",
        "ReadResourceContents",
        "stdio_server",
    ),
    "fastrpc.compat.client.sdk_client": ("Client", "create_connected_server_and_client_session"),
    "fastrpc.compat.auth.access": ("AccessToken", "get_access_token"),
    "fastrpc.compat.auth.provider": ("TokenVerifier",),
    "fastrpc.compat.auth.settings": ("AuthSettings", "ClientRegistrationOptions", "RevocationOptions"),
    "fastrpc.compat.context": (
        "AcceptedElicitation",
        "CancelledElicitation",
        "Context",
        "DeclinedElicitation",
    ),
    "fastrpc.compat.client.endpoints": ("StdioServerParameters",),
    "fastrpc.compat.sdk2.resolvers": (
        "Elicit",
        "ElicitationResult",
        "ListRoots",
        "Resolve",
        "Sample",
    ),
    "fastrpc.compat.errors": (
        "MCPDeprecationWarning",
        "McpError",
        "NoBackChannelError",
        "NotOffered",
        "ResourceError",
        "ToolFailure",
        "ResourceNotFoundError",
        "UrlElicitationRequiredError",
        "ValidationError",
    ),
    "fastrpc.compat.server": (
        "MCPServer",
        "SdkFastMCP",
    ),
    "fastrpc.compat.client.sessions": (
        "ClientSession",
        "sse_client",
        "stdio_client",
        "streamable_http_client",
        "streamablehttp_client",
    ),
    "fastrpc.compat.values": (
        "AssistantMessage",
        "Audio",
        "Image",
        "Message",
        "UserMessage",
    ),
    "fastrpc.errors": ("DefinitionError", "ToolError"),
}
_ALIASES = {
    "APP_MIME_TYPE": "UI_MIME_TYPE",
    "EXTENSION_ID": "UI_EXTENSION_ID",
    "FastMCP": "SdkFastMCP",
    "FastMCPError": "ToolError",
    "InvalidSignature": "DefinitionError",
    "MCPError": "McpError",
    "MCPServerError": "ToolError",
    "ResourceCsp": "ResourceCSP",
    "ToolError": "ToolFailure",
}
"""Names of classes that have another name here."""

_MODULE_ALTERNATIVES: dict[str, str] = {}
"""Names that are not supported, and the alternatives."""


if not TYPE_CHECKING:  # a checker is to find a name that is misspelled

    def __getattr__(name: str) -> object:
        return _load(globals(), _HOMES, _ALIASES, name)
