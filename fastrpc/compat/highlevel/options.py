"""The supported options of FastMCP and of the official SDK's high-level server, as types.

For type checkers: no module imports this at run time. Unsupported options are not listed, so that a checker
reports them, as `NotOffered` does at run time. docs/compat.md has the table.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypedDict

from fastrpc.compat.auth.checks import AuthCheck
from fastrpc.compat.auth.provider import AuthProvider
from fastrpc.compat.auth.settings import AuthSettings
from fastrpc.options import (
    CacheScope,
    CallOptions,
    ContentAnnotations,
    Effect,
    HttpOptions,
    Icon,
    ServerSettings,
    ToolAnnotations,
)


class PydanticModel(Protocol):
    """A pydantic model, for example of ``mcp.types``."""

    @property
    def model_dump(self) -> Callable[..., Any]: ...


class VerifiesTokens(Protocol):
    """A token verifier."""

    def verify_token(self, token: str) -> Awaitable[Any]: ...


class _CompatOptions(ServerSettings, total=False):
    """Every compat server. The last ones have no effect."""

    version: str | float | None
    icons: Sequence[Icon | PydanticModel] | None
    tools: Iterable[object] | None
    resources: Iterable[object] | None
    mask_error_details: bool | None
    include_tags: Iterable[str] | None
    exclude_tags: Iterable[str] | None
    tool_serializer: Callable[[Any], str] | None
    experimental_capabilities: dict[str, Any] | None
    list_page_size: int | None
    cache_ttl: float | None

    cache_hints: object
    client_log_level: object
    dereference_schemas: object
    include_fastmcp_meta: object
    request_state_security: object
    resource_prefix_format: object
    resource_security: object
    session_state_store: object
    strict_input_validation: object
    subscriptions: object
    host: str | None
    port: int | None
    mount_path: str | None
    sse_path: str | None
    message_path: str | None
    streamable_http_path: str | None
    json_response: bool | None
    stateless_http: bool | None
    max_request_body_size: int | None
    session_idle_timeout: float | None
    max_sessions: int | None
    retry_interval: int | None
    transport_security: object
    uvicorn_config: dict[str, Any] | None
    debug: bool | None
    log_level: str | None

    auth: AuthProvider | AuthSettings | None
    token_verifier: VerifiesTokens | None
    auth_server_provider: object

    event_store: object
    dependencies: object
    on_duplicate: object
    on_duplicate_prompts: object
    on_duplicate_resources: object
    on_duplicate_tools: object
    warn_on_duplicate_prompts: object
    warn_on_duplicate_resources: object
    warn_on_duplicate_tools: object


class FastMCPOptions(_CompatOptions, total=False):
    """`fastrpc.compat.FastMCP`."""

    providers: Sequence[object] | None
    transforms: Sequence[object] | None
    tool_transformations: Mapping[str, object] | None
    tasks: bool | None
    middleware: Sequence[Callable[..., Any]] | None


class MCPServerOptions(_CompatOptions, total=False):
    """`fastrpc.compat.MCPServer`."""

    instructions: str | None


class _CompatDescribed(CallOptions, total=False):
    title: str | None
    description: str | None
    icons: Sequence[Icon | PydanticModel] | None
    meta: dict[str, Any] | None
    tags: Iterable[str] | None
    version: str | int | None
    enabled: bool | None
    auth: AuthCheck | list[AuthCheck] | None
    task: object
    app: object


class CompatToolOptions(_CompatDescribed, total=False):
    """`FastMCP.tool` and `FastMCP.add_tool`."""

    annotations: ToolAnnotations | PydanticModel | None
    output_schema: dict[str, Any] | bool | None
    exclude_args: Sequence[str] | None
    serializer: Callable[[Any], str] | None
    structured_output: bool | None
    run_in_thread: bool | None
    timeout: float | None
    effect: Effect | None
    input_schema: dict[str, Any] | None
    json_schema_extra: dict[str, Any] | None


class CompatResourceOptions(_CompatDescribed, total=False):
    """`FastMCP.resource`."""

    name: str | None
    mime_type: str | None
    annotations: ContentAnnotations | PydanticModel | None
    size: int | None
    security: object
    ttl: float | None
    cache_scope: CacheScope | None


class CompatPromptOptions(_CompatDescribed, total=False):
    """`FastMCP.prompt` and `FastMCP.add_prompt`."""


class FormOptions(TypedDict, total=False):
    """`Context.elicit`: accepted, without effect."""

    response_title: str | None
    response_description: str | None


class _ServedOptions(TypedDict, total=False):
    host: str | None
    mount_path: str | None
    sse_path: str | None
    message_path: str | None
    streamable_http_path: str | None
    retry_interval: int | None
    transport_security: object
    host_origin_protection: bool | Literal["auto"] | None
    allowed_hosts: Sequence[str] | None
    allowed_origins: Sequence[str] | None
    max_request_body_size: int | None
    session_idle_timeout: float | Literal["auto"] | None
    event_store: object


class HttpAppOptions(_ServedOptions, total=False):
    """`FastMCP.http_app`. The last one has no effect: see docs/compat.md."""

    max_sessions: int | None
    debug: bool | None


class StreamableAppOptions(HttpAppOptions, total=False):
    """`FastMCP.streamable_http_app`."""

    middleware: Sequence[Any] | None
    json_response: bool | None
    stateless_http: bool | None


class RunOptions(HttpOptions, _ServedOptions, total=False):
    """`FastMCP.run`. The last one has no effect."""

    http: str | None
    drain_seconds: float | None
    trace: str | None
    stats: bool
    port: int | None
    path: str | None
    middleware: Sequence[Any] | None
    json_response: bool | None
    stateless_http: bool | None
    stateless: bool | None
    uvicorn_config: dict[str, Any] | None
    sockets: Sequence[Any] | None
    debug: bool | None
    log_level: str | None
    show_banner: object
