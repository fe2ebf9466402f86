"""`ResponseCachingMiddleware`: keeps results of calls and lists in memory for a time.

Results are kept by principal, method and arguments; errors are not kept. A hit costs the JSON of the
arguments and a look-up. Other stores than this process's memory are not offered.
"""

from __future__ import annotations

from collections import OrderedDict
from time import monotonic

from fastrpc.compat.errors import NotOffered
from fastrpc.compat.interception.results import replaced, seen_prompt_result, seen_resource_result
from fastrpc.compat.interception.results import seen_tool_result as seen_tool
from fastrpc.compat.middleware.base import Middleware, MiddlewareContext
from fastrpc.compat.values import PromptResult, ResourceResult
from fastrpc.content import Contents
from fastrpc.content import ToolResult as PlainResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from fastrpc.compat.middleware.base import CallNext

HOUR = 3600
FIVE_MINUTES = 300
MEGABYTE = 1024 * 1024
MOST_ENTRIES = 10_000
MOST_BYTES = 64 * MEGABYTE
"""Results that are kept, and what they and their requests take as JSON; for one more the oldest go."""


class SharedMethodSettings(dict[str, "Any"]):
    """Settings of one method: ``ttl`` in seconds, ``enabled``."""


class ListToolsSettings(SharedMethodSettings):
    """Settings of ``tools/list``."""


class ListResourcesSettings(SharedMethodSettings):
    """Settings of ``resources/list``."""


class ListPromptsSettings(SharedMethodSettings):
    """Settings of ``prompts/list``."""


class CallToolSettings(SharedMethodSettings):
    """Settings of ``tools/call``; ``included_tools`` and ``excluded_tools`` say whose results are kept."""


class ReadResourceSettings(SharedMethodSettings):
    """Settings of ``resources/read``."""


class GetPromptSettings(SharedMethodSettings):
    """Settings of ``prompts/get``."""


class Counter:
    """How often something was done: `count`, of look-ups `hit` and `miss` too."""

    def __init__(self) -> None:
        self.count = self.hit = self.miss = 0


class CollectionStatistics:
    """What was done with the results of one method."""

    def __init__(self) -> None:
        self.get = Counter()
        self.put = Counter()

    @property
    def count(self) -> int:
        return self.get.count + self.put.count


class ResponseCachingStatistics:
    """The statistics of each method; None: it was never asked for."""

    def __init__(self, methods: dict[str, CollectionStatistics]) -> None:
        self.list_tools = methods.get("tools/list")
        self.list_resources = methods.get("resources/list")
        self.list_prompts = methods.get("prompts/list")
        self.read_resource = methods.get("resources/read")
        self.get_prompt = methods.get("prompts/get")
        self.call_tool = methods.get("tools/call")


class ResponseCachingMiddleware(Middleware):
    """Answers from memory what was answered before: lists for five minutes, calls for an hour, unless their
    settings say otherwise. Results of more than `max_item_size` bytes are not kept. Raises NotOffered for a
    `cache_storage`."""

    def __init__(
        self,
        cache_storage: None = None,
        list_tools_settings: dict[str, Any] | None = None,
        list_resources_settings: dict[str, Any] | None = None,
        list_prompts_settings: dict[str, Any] | None = None,
        read_resource_settings: dict[str, Any] | None = None,
        get_prompt_settings: dict[str, Any] | None = None,
        call_tool_settings: dict[str, Any] | None = None,
        max_item_size: int = MEGABYTE,
    ) -> None:
        if cache_storage is not None:
            raise NotOffered("fastrpc.compat: ResponseCachingMiddleware has no cache_storage; leave it out")
        self.max_item_size = max_item_size
        self._settings: dict[str, dict[str, Any]] = {
            "tools/list": {"ttl": FIVE_MINUTES, **(list_tools_settings or {})},
            "resources/list": {"ttl": FIVE_MINUTES, **(list_resources_settings or {})},
            "prompts/list": {"ttl": FIVE_MINUTES, **(list_prompts_settings or {})},
            "resources/read": {"ttl": HOUR, **(read_resource_settings or {})},
            "prompts/get": {"ttl": HOUR, **(get_prompt_settings or {})},
            "tools/call": {"ttl": HOUR, **(call_tool_settings or {})},
        }
        self._kept: OrderedDict[tuple[str, ...], tuple[float, Any, int]] = OrderedDict()
        self._bytes = 0
        self._statistics: dict[str, CollectionStatistics] = {}

    def statistics(self) -> ResponseCachingStatistics:
        """Return how often results were found and kept."""
        return ResponseCachingStatistics(self._statistics)

    async def _answered(
        self,
        context: MiddlewareContext[Any],
        call_next: CallNext[Any, Any],
        target: str,
        pack: Callable[[Any], Any],
        unpack: Callable[[Any], Any],
    ) -> Any:
        """Return the kept result of a request, or its result now: `pack` makes what is kept of it."""
        method = context.method or ""
        settings = self._settings[method]
        if settings.get("enabled") is False:
            return await call_next(context)
        key = (_principal_of(context), method, target)
        statistics = self._statistics.setdefault(method, CollectionStatistics())
        statistics.get.count += 1
        due, kept, _ = self._kept.get(key, (0.0, None, 0))
        if kept is not None and monotonic() < due:
            statistics.get.hit += 1
            return unpack(kept)
        statistics.get.miss += 1
        packed = pack(await call_next(context))
        size = _size_of(packed)
        if size <= self.max_item_size:
            statistics.put.count += 1
            self._keep(key, monotonic() + settings["ttl"], packed, size + sum(map(len, key)))
        return unpack(packed)

    def _keep(self, key: tuple[str, ...], due: float, packed: Any, size: int) -> None:
        self._bytes += size - self._kept.pop(key, (due, None, 0))[2]
        self._kept[key] = due, packed, size
        while len(self._kept) > MOST_ENTRIES or self._bytes > MOST_BYTES:
            self._bytes -= self._kept.popitem(last=False)[1][2]

    # --- lists ----------------------------------------------------------------------------------------

    async def on_list_tools(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        return await self._answered(context, call_next, "", _copies, _copies)

    async def on_list_resources(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        return await self._answered(context, call_next, "", _copies, _copies)

    async def on_list_prompts(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        return await self._answered(context, call_next, "", _copies, _copies)

    # --- calls ----------------------------------------------------------------------------------------

    async def on_call_tool(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        name, settings = context.message.name, self._settings["tools/call"]
        included, excluded = settings.get("included_tools"), settings.get("excluded_tools")
        if (included and name not in included) or (excluded and name in excluded):
            return await call_next(context)
        return await self._answered(context, call_next, _target_of(context), replaced, seen_tool)

    async def on_read_resource(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        return await self._answered(
            context, call_next, str(context.message.uri), _packed_resource, seen_resource_result
        )

    async def on_get_prompt(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        return await self._answered(
            context, call_next, _target_of(context), _packed_prompt, seen_prompt_result
        )


def _principal_of(context: MiddlewareContext[Any]) -> str:
    return "" if context.fastmcp_context is None else str(context.fastmcp_context.inner.principal)


def _target_of(context: MiddlewareContext[Any]) -> str:
    """Return what is called, with its arguments, as a text."""
    import json

    message = context.message
    arguments = json.dumps(message.arguments, default=repr, sort_keys=True)
    return f"{message.name}\0{arguments}"


def _copies(components: Any) -> list[Any]:
    return [each.model_copy() for each in components]


def _packed_resource(result: Any) -> ResourceResult:
    return ResourceResult([*result.contents], result.meta)


def _packed_prompt(result: Any) -> PromptResult:
    from fastrpc.compat.values import Message

    messages = [Message(_copy_of(each.content), each.role) for each in result.messages]
    return PromptResult(messages, result.description, result.meta)


def _copy_of(content: Any) -> Any:
    return content.model_copy() if hasattr(content, "model_copy") else content


def _size_of(packed: Any) -> int:
    """Return about how many bytes a result has."""
    import json

    return len(json.dumps(packed, default=_parts_of))


def _parts_of(thing: Any) -> Any:
    """Return an object as JSON values, as far as its size needs it."""
    if isinstance(thing, (bytes, bytearray)):
        return "x" * (len(thing) * 4 // 3)
    if hasattr(thing, "model_dump"):
        return thing.model_dump(mode="json")
    if hasattr(thing, "descriptor"):
        return thing.descriptor("")
    if hasattr(thing, "to_block"):
        return thing.to_block()
    if isinstance(thing, PlainResult):
        return [thing.content, thing.structured, thing.meta]
    if isinstance(thing, Contents):
        return [thing.content, thing.meta]
    return vars(thing)
