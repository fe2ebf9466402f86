"""The options of public functions, and enumerations of values, as types.

For type checkers only: not imported at run time. At run time the function refuses unknown options, with the
error that its docstring names; with these `TypedDict`s, mypy and pyright report them earlier. The docstring
that each type names describes its options.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from os import PathLike
from typing import Any, Literal, Protocol, TypedDict

from fastrpc.tool_style import ToolStyle

Run = Literal["auto", "inline", "thread"]
Place = Run | Literal["process"] | Executor
"""Where a tool's function may run."""
Effect = Literal["read", "write", "network", "exec"]
Risk = Literal["none", "low", "medium", "high", "critical"]
TaskSupport = Literal["allowed", "required"]
ItemKind = Literal["tool", "resource", "resource_template", "prompt"]
"""The kinds of entries in lists."""
CacheScope = Literal["public", "private"]
Role = Literal["user", "assistant"]
LogLevel = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
"""The levels of MCP's log messages (utilities: logging), RFC 5424's severities."""
Action = Literal["accept", "decline", "cancel"]
"""The actions with which a person answers a form (MCP: ElicitResult)."""

Texts = list[str] | tuple[str, ...]
"""Several texts. Not `Sequence[str]`, which a single text is, too: that is always a mistake."""

# ---------------------------------------------------------------------------- JSON objects of MCP


class _IconSource(TypedDict):
    src: str


class Icon(_IconSource, total=False):
    """An icon (MCP: Icon). `src` is an https or data URI; `sizes` are texts such as ``48x48`` or ``any``."""

    mimeType: str
    sizes: list[str]
    theme: Literal["light", "dark"]


class ToolAnnotations(TypedDict, total=False):
    """Hints about a tool's behaviour (MCP: ToolAnnotations)."""

    title: str
    readOnlyHint: bool
    destructiveHint: bool
    idempotentHint: bool
    openWorldHint: bool


class ContentAnnotations(TypedDict, total=False):
    """Hints about a block of content or a resource (MCP: Annotations). See `fastrpc.content.Content`."""

    audience: Role | Sequence[Role] | None
    priority: float | None
    last_modified: datetime | str | None
    lastModified: datetime | str | None


class ContentHints(TypedDict, total=False):
    """See `fastrpc.content.Content`."""

    annotations: ContentAnnotations | None
    meta: dict[str, Any] | None


# ------------------------------------------------------------------------ what a server offers


class CallOptions(TypedDict, total=False):
    """How the calls of a function run. See `fastrpc.definitions.handler.Handler`."""

    run: Run
    timeout_seconds: float | None
    max_running: int | None


class _Titled(TypedDict, total=False):
    name: str | None
    title: str | None
    description: str | None
    icons: list[Icon] | None
    meta: dict[str, Any] | None


class _Described(CallOptions, _Titled, total=False):
    pass


class ToolOptions(_Titled, total=False):
    """See `fastrpc.tool`."""

    run: Place
    timeout_seconds: float | None
    max_running: int | None
    max_memory: int | None
    effect: Effect | None
    risk: Risk | None
    task: TaskSupport | None
    after_seconds: float | None
    resumable: bool
    input_schema: dict[str, Any] | None
    documents: Mapping[str, Any] | None
    json_schema_extra: dict[str, Any] | None
    annotations: ToolAnnotations | None
    structured: bool | Literal["wrapped"]
    style: ToolStyle
    costs: Mapping[str, float] | None


class PromptOptions(_Described, total=False):
    """See `fastrpc.definitions.prompt.Prompt`."""


class TemplateOptions(_Described, total=False):
    """See `fastrpc.definitions.resource.ResourceTemplate`."""

    mime_type: str | None
    annotations: ContentAnnotations | None
    ttl: float | None
    cache_scope: CacheScope | None


class ResourceOptions(TemplateOptions, total=False):
    """See `fastrpc.definitions.resource.Resource`."""

    size: int | None


class ProviderOptions(CallOptions, total=False):
    """See `fastrpc.definitions.resource.Provider`."""

    mime_type: str | None
    ttl: float | None
    cache_scope: CacheScope | None


# ----------------------------------------------------------------------------------- a server


class ServerSettings(TypedDict, total=False):
    """See `fastrpc.Server`: the options that other frameworks lack, or have in the same form."""

    title: str | None
    description: str | None
    website_url: str | None
    page_size: int
    max_in_flight: int
    max_batch: int
    threads: int
    ttl_ms: int
    cache_scope: CacheScope
    lifespan: Callable[[Any], AbstractAsyncContextManager[object]] | None
    extensions: dict[str, dict[str, Any]] | None
    experimental: dict[str, Any] | None


class ServerOptions(ServerSettings, total=False):
    """See `fastrpc.Server`."""

    version: str
    icons: list[Icon] | None
    instructions: str | None


class _ProxyOptions(ServerOptions, total=False):
    name: str
    start_seconds: float


class CommandProxyOptions(_ProxyOptions, total=False):
    """`fastrpc.Server.proxy` with a command."""

    cwd: str | None
    env: dict[str, str] | None


class UrlProxyOptions(_ProxyOptions, total=False):
    """`fastrpc.Server.proxy` with a URL."""

    token: str | Callable[[], str] | None
    auth: Any
    headers: Mapping[str, str] | None
    tls_ca: str | None
    protocol_version: str | None


class AsgiOptions(TypedDict, total=False):
    """See `fastrpc.Server.asgi`, and docs/http.md."""

    token: str | Iterable[str] | Callable[[str], str | Awaitable[str | None] | None] | None
    token_file: str | PathLike[str] | None
    token_sources: Iterable[Any] | None
    auth_servers: Texts | None
    resource: str | None
    audience: str | None
    scopes: Texts | None
    principal_of: Callable[[str, Mapping[str, Any], Iterable[str]], str] | None
    auth: None
    hosts: Texts
    loopback: bool
    origins: Texts
    max_body: int
    max_bodies: int
    max_sessions: int
    sessions_per_caller: int
    session_idle_seconds: float
    keep_alive_seconds: float
    health: bool


class HttpOptions(AsgiOptions, total=False):
    """See `fastrpc.Server.run`, with ``http=``."""

    workers: int
    notice_seconds: float
    tls_cert: str | PathLike[str] | None
    tls_key: str | PathLike[str] | None
    secret: str | None
    secret_file: str | PathLike[str] | None
    access_log: str | PathLike[str] | None
    access_log_format: Literal["text", "json"]


# -------------------------------------------------------------------------------- asking a client


class Descriptor(Protocol):
    """What describes itself as an entry of ``tools/list``: a `fastrpc.definitions.tool.Tool`."""

    def descriptor(self, version: str) -> dict[str, Any]: ...


class SamplingOptions(TypedDict, total=False):
    """See `fastrpc.Context.sample`."""

    system_prompt: str | None
    temperature: float | None
    stop_sequences: Texts | None
    model_preferences: str | Texts | dict[str, Any] | None
    include_context: Literal["none", "thisServer", "allServers"] | None
    metadata: dict[str, Any] | None
    tools: Sequence[dict[str, Any] | Descriptor] | None
    tool_choice: Literal["auto", "required", "none"] | dict[str, Any] | None


class _RootAddress(TypedDict):
    uri: str


class Root(_RootAddress, total=False):
    """A folder that a client works in (MCP: Root)."""

    name: str
    _meta: dict[str, Any]
