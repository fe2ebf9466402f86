"""The supported options of FastMCP and of the official SDK's high-level server, as types.

For type checkers: no module imports this at run time. Unsupported options are not listed, so that a checker
reports them, as `NotOffered` does at run time. docs/compat.md has the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypedDict

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


class Model(Protocol):
    """A pydantic model, for example of ``mcp.types``."""

    @property
    def model_dump(self) -> Callable[..., Any]: ...


class FastMCPOptions(ServerSettings, total=False):
    """`fastrpc.compat.FastMCP`. The last ones have no effect."""

    version: str | float | None
    icons: Sequence[Icon | Model] | None
    tools: Iterable[Callable[..., object]] | None
    list_page_size: int | None
    cache_ttl: float | None

    debug: object
    dependencies: object
    log_level: object
    on_duplicate: object
    on_duplicate_prompts: object
    on_duplicate_resources: object
    on_duplicate_tools: object
    warn_on_duplicate_prompts: object
    warn_on_duplicate_resources: object
    warn_on_duplicate_tools: object


class _Described(CallOptions, total=False):
    title: str | None
    description: str | None
    icons: Sequence[Icon | Model] | None
    meta: dict[str, Any] | None
    tags: Iterable[str] | None
    enabled: bool | None


class ToolOptions(_Described, total=False):
    """`FastMCP.tool` and `FastMCP.add_tool`."""

    annotations: ToolAnnotations | Model | None
    structured_output: bool | None
    run_in_thread: bool | None
    timeout: float | None
    effect: Effect | None
    input_schema: dict[str, Any] | None
    json_schema_extra: dict[str, Any] | None


class ResourceOptions(_Described, total=False):
    """`FastMCP.resource`."""

    name: str | None
    mime_type: str | None
    annotations: ContentAnnotations | Model | None
    size: int | None
    ttl: float | None
    cache_scope: CacheScope | None


class PromptOptions(_Described, total=False):
    """`FastMCP.prompt` and `FastMCP.add_prompt`."""


class FormOptions(TypedDict, total=False):
    """`Context.elicit`: accepted, without effect."""

    response_title: str | None
    response_description: str | None


class RunOptions(HttpOptions, total=False):
    """`FastMCP.run`. The last two have no effect."""

    http: str | None
    drain_seconds: float | None
    trace: str | None
    stats: bool
    show_banner: object
    log_level: object
