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

    from fastrpc.engine.change_notifications import ChangeNotifications
    from fastrpc.engine.dispatcher import Dispatcher
    from fastrpc.engine.outbound_channel import RequestChannel
    from fastrpc.engine.ports import ResultEncoder
    from fastrpc.engine.request import Request

    Serve = Callable[[Dispatcher, Request], "bytes | None"]


class Method:
    """A request method: the versions that have it, and the function that serves it.

    `serve` returns the result as JSON text, or None when it will answer later. `needs` names the property
    of `ServerDescription` that says whether this server has anything for the method; without it all have.
    `lists` says how the entries of a list are found where something is done with them before they are sent.
    """

    __slots__ = ("lists", "needs", "serve", "versions")

    def __init__(
        self,
        versions: tuple[str, ...],
        serve: Serve,
        needs: str = "",
        lists: ListMethod | None = None,
    ) -> None:
        self.versions = versions
        self.serve = serve
        self.needs = needs
        self.lists = lists


class ListMethod:
    """How the entries of a list are found: `member` is the result's name for them, `feature` and `name` the
    coroutine function that returns those that a request's principal sees."""

    __slots__ = ("_feature", "_name", "member")

    def __init__(self, member: str, feature: str, name: str) -> None:
        self.member = member
        self._feature = feature
        self._name = name

    def entries(self, request: Request) -> Awaitable[list[Any]]:
        from importlib import import_module

        found: Awaitable[list[Any]] = getattr(import_module(f"fastrpc.methods.{self._feature}"), self._name)(
            request
        )
        return found


def _later(feature: str, name: str) -> Serve:
    """A method whose feature is imported by the first request that wants it."""

    def serve(dispatcher: Dispatcher, request: Request) -> bytes | None:
        from importlib import import_module

        result: bytes | None = getattr(import_module(f"fastrpc.methods.{feature}"), name)(dispatcher, request)
        return result

    return serve


TOOL_RESULTS = tools.RESULT_ENCODER

METHODS: dict[str, Method] = {
    "initialize": Method(SESSION_VERSIONS, lifecycle.initialize),
    "ping": Method(SESSION_VERSIONS, lifecycle.ping),
    "server/discover": Method((STATELESS,), lifecycle.discover),
    "tools/list": Method(VERSIONS, tools.list_tools, lists=ListMethod("tools", "tools", "listed_tools")),
    "tools/call": Method(VERSIONS, tools.call_tool),
    "resources/list": Method(
        VERSIONS,
        _later("resources", "list_resources"),
        "has_resources",
        ListMethod("resources", "resources", "listed_resources"),
    ),
    "resources/templates/list": Method(
        VERSIONS,
        _later("resources", "list_templates"),
        "has_resources",
        ListMethod("resourceTemplates", "resources", "listed_templates"),
    ),
    "resources/read": Method(VERSIONS, _later("resources", "read_resource"), "has_resources"),
    "resources/subscribe": Method(SESSION_VERSIONS, _later("resources", "subscribe"), "has_resources"),
    "resources/unsubscribe": Method(SESSION_VERSIONS, _later("resources", "unsubscribe"), "has_resources"),
    "prompts/list": Method(
        VERSIONS,
        _later("prompts", "list_prompts"),
        "has_prompts",
        ListMethod("prompts", "prompts", "listed_prompts"),
    ),
    "prompts/get": Method(VERSIONS, _later("prompts", "get_prompt"), "has_prompts"),
    "completion/complete": Method(VERSIONS, _later("completion", "complete"), "has_completions"),
    "logging/setLevel": Method(SESSION_VERSIONS, _later("logging", "set_level")),
    "subscriptions/listen": Method((STATELESS,), _later("subscriptions", "listen")),
    "tasks/get": Method((*TASKS, STATELESS), _later("tasks", "get"), "has_tasks"),
    "tasks/result": Method(TASKS, _later("tasks", "result"), "has_tasks"),
    "tasks/list": Method(TASKS, _later("tasks", "list_tasks"), "has_tasks"),
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
        from fastrpc.methods.resources import CONTENTS_ENCODER

        return CONTENTS_ENCODER
    if method == "prompts/get":
        from fastrpc.methods.prompts import PROMPT_ENCODER

        return PROMPT_ENCODER
    return TOOL_RESULTS


# --- what a handler does with its client, by its `fastrpc.Context` -----------------------------------------


def log(channel: RequestChannel, level: str, data: Any, logger: str | None, rest: Any = None) -> None:
    """Send a log message, if the client wants its level. Raises ValueError for an unknown level."""
    from fastrpc.methods import logging

    logging.log(channel, level, data, logger, rest)


def ask(channel: RequestChannel, input_requests: dict[str, Any]) -> Awaitable[dict[str, Any]]:
    """Send requests to the client; return its answers by key. See `fastrpc.client_requests`."""
    from fastrpc.client_requests import pending

    return pending.ask(channel, input_requests)


def once(channel: RequestChannel, key: str, function: Callable[[], Any]) -> Any:
    """Call `function` the first time that the call comes here; see `fastrpc.Context.once`."""
    from fastrpc.client_requests import request_state

    return request_state.once(channel.request, key, function)


def read_resource(channel: RequestChannel, uri: str) -> Awaitable[Any]:
    """Read a resource for a handler. Raises ToolError if there is none."""
    from fastrpc.methods import resources

    return resources.read_inside(channel, uri)


# --- requests to the client ---------------------------------------------------------------------------------


def take_request_state(request: Request) -> None:
    """Read the state and the answers that a request brings. Raises InvalidParams."""
    from fastrpc.client_requests.request_state import memory_of

    memory_of(request)


def input_required(request: Request, input_requests: dict[str, dict[str, Any]]) -> bytes:
    """Return the result that carries input requests (MCP 2026-07-28: InputRequiredResult)."""
    from fastrpc.client_requests import pending

    return pending.input_required(request, input_requests)


# --- changes ------------------------------------------------------------------------------------------------


def list_changed(changes: ChangeNotifications, kind: str) -> None:
    """Notify the client that the list of a kind of entries has changed."""
    from fastrpc.methods import subscriptions

    subscriptions.list_changed(changes, kind)


def resource_updated(changes: ChangeNotifications, uri: str, rest: dict[str, Any] | None) -> None:
    """Notify the client that a resource has changed, if it has subscribed to it."""
    from fastrpc.methods import subscriptions

    subscriptions.resource_updated(changes, uri, rest)


def check_task_listener(dispatcher: Dispatcher, request: Request, ids: Any) -> None:
    """Check that a stream may be opened for tasks, by their ids. Raises ProtocolError."""
    from fastrpc.methods import tasks

    tasks.check_listener(dispatcher, request, ids)


def is_task_watched(changes: ChangeNotifications, id: str) -> bool:
    """Whether the client is to be notified of the changes of a task."""
    from fastrpc.methods import tasks

    return tasks.is_watched(changes, id)


def task_changed(changes: ChangeNotifications, record: Any) -> None:
    """Notify the client that a task has changed, if it wants to know."""
    from fastrpc.methods import tasks

    tasks.changed(changes, record)


def end_stream(changes: ChangeNotifications, request: Request) -> None:
    """End a stream of changes from our side, and answer its request."""
    from fastrpc.methods import subscriptions

    subscriptions.end(changes, request)
