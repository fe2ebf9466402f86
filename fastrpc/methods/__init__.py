"""The methods that a client may call, one file a feature, and the table of all.

A feature's file has a function for each of its methods. A new feature is a new file and its lines here. The
module itself is passed to the engine (`fastrpc.engine.ports.Features`): besides the table it has the
functions by which handlers and changed lists reach the client. Each feature but the tools is imported by the
first request that needs it.

Where a rule is (files of this package by their names, others from `fastrpc/` on):

* which method exists in which version, and what a server must have for it: `__init__.py`
* what a feature answers, and the encoder of its results: its file: `tools.py`, `resources.py`,
  `prompts.py`, `completion.py`, `logging.py`, `subscriptions.py`
"""

from __future__ import annotations

from fastrpc.methods import lifecycle, tools
from fastrpc.protocol.versions import SESSION_VERSIONS, STATELESS, TASKS, VERSIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

    from fastrpc.engine.dispatcher import Dispatcher
    from fastrpc.engine.ports import ResultEncoder
    from fastrpc.engine.request import Request

    Serve = Callable[[Dispatcher, Request], "bytes | None"]


def _later(feature: str, name: str) -> Callable[..., Any]:
    """A function of a module in this package, or of another one of fastrpc, which its first call imports."""
    home = f"fastrpc.{feature}" if "." in feature else f"fastrpc.methods.{feature}"

    def call(*values: Any) -> Any:
        return getattr(__import__(home, fromlist=[name]), name)(*values)

    return call


class Method:
    """A request method: the versions that have it, and the function that serves it.

    `serve` returns the result as JSON text, or None when it will answer later. `needs` names the property
    of `ServerDescription` that says whether this server has anything for the method; without it all have.
    Of a method that lists entries, `member` is the result's name for them, and `entries` returns those that a
    request's principal sees.
    """

    __slots__ = ("entries", "member", "needs", "serve", "versions")

    def __init__(
        self,
        versions: tuple[str, ...],
        serve: Serve,
        needs: str = "",
        member: str = "",
        entries: Callable[[Request], Awaitable[list[Any]]] | None = None,
    ) -> None:
        self.versions = versions
        self.serve = serve
        self.needs = needs
        self.member = member
        self.entries = entries


def _list_of(registry: str, member: str, needs: str) -> Method:
    """The method that lists the entries of a registry, in the order in which they were added."""

    def serve(dispatcher: Dispatcher, request: Request) -> bytes:
        from fastrpc.protocol.pagination import cursor_of

        runtime, cursor = dispatcher.runtime, cursor_of(request.params)
        entries = getattr(runtime.registries, registry)
        return runtime.pages.of_registry(member, entries, request.version, cursor, dispatcher.principal)

    async def listed(request: Request) -> list[Any]:
        runtime = request.dispatcher.runtime
        return runtime.filters.entries_for(
            request.dispatcher.principal, getattr(runtime.registries, registry)
        )

    return Method(VERSIONS, serve, needs, member, listed)


TOOL_RESULTS = tools.ToolResultEncoder

METHODS: dict[str, Method] = {
    "initialize": Method(SESSION_VERSIONS, lifecycle.initialize),
    "ping": Method(SESSION_VERSIONS, lifecycle.ping),
    "server/discover": Method((STATELESS,), lifecycle.discover),
    "tools/list": Method(VERSIONS, tools.list_tools, member="tools", entries=tools.listed_tools),
    "tools/call": Method(VERSIONS, tools.call_tool),
    "resources/list": Method(
        VERSIONS,
        _later("resources", "list_resources"),
        "has_resources",
        "resources",
        _later("resources", "listed_resources"),
    ),
    "resources/templates/list": _list_of("templates", "resourceTemplates", "has_resources"),
    "resources/read": Method(VERSIONS, _later("resources", "read_resource"), "has_resources"),
    "resources/subscribe": Method(SESSION_VERSIONS, _later("resources", "subscribe"), "has_resources"),
    "resources/unsubscribe": Method(SESSION_VERSIONS, _later("resources", "unsubscribe"), "has_resources"),
    "prompts/list": _list_of("prompts", "prompts", "has_prompts"),
    "prompts/get": Method(VERSIONS, _later("prompts", "get_prompt"), "has_prompts"),
    "completion/complete": Method(VERSIONS, _later("completion", "complete"), "has_completions"),
    "logging/setLevel": Method(SESSION_VERSIONS, _later("logging", "set_level")),
    "subscriptions/listen": Method((STATELESS,), _later("subscriptions", "listen")),
    "tasks/get": Method((*TASKS, STATELESS), _later("tasks", "get"), "has_tasks"),
    "tasks/result": Method(TASKS, _later("tasks", "result"), "has_tasks"),
    "tasks/list": Method(TASKS, _later("tasks", "list_tasks"), "has_task_list"),
    "tasks/cancel": Method((*TASKS, STATELESS), _later("tasks", "cancel"), "has_tasks"),
    "tasks/update": Method((STATELESS,), _later("tasks", "update"), "has_tasks"),
}

NOTIFICATIONS: dict[str, Callable[[Dispatcher, dict[str, Any]], object]] = {
    "notifications/initialized": lifecycle.initialized,
    "notifications/cancelled": lifecycle.cancelled,
    "notifications/roots/list_changed": lifecycle.roots_changed,
}
"""Notifications that are handled. All others are ignored."""


def encoder_of(method: str) -> ResultEncoder:
    """Return what makes the results of a method that calls tools, resources or prompts."""
    if method == "resources/read":
        from fastrpc.methods.resources import ContentsEncoder

        return ContentsEncoder
    if method == "prompts/get":
        from fastrpc.methods.prompts import PromptEncoder

        return PromptEncoder
    return TOOL_RESULTS


# --- what handlers and changes need of the features (`fastrpc.engine.ports.Features`) -----------------------

log = _later("logging", "log")
read_resource = _later("resources", "read_inside")
ask = _later("client_requests.pending", "ask")
once = _later("client_requests.request_state", "once")
input_required = _later("client_requests.pending", "input_required")
take_request_state = _later("client_requests.request_state", "memory_of")

list_changed = _later("subscriptions", "list_changed")
resource_updated = _later("subscriptions", "resource_updated")
end_stream = _later("subscriptions", "end")
call_as_task = _later("tasks", "call")
check_task_listener = _later("tasks", "check_listener")
watched_tasks = _later("tasks", "watched")
task_changed = _later("tasks", "changed")
