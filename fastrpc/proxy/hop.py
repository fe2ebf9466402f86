"""What a proxy carries on, and what belongs to one of its two connections alone.

``_meta`` (a trace, a tenant's key), and members that no version of MCP names, go on in both directions: in
requests, results, the server's own requests, progress reports, log messages, cancellations and updates of
resources; so do notifications that no version names. Each connection has its own progress tokens, envelope
(MCP 2026-07-28), lists, subscriptions, log levels, tasks and states of repeated requests.
`_core/carried_meta.h` does the same for calls that are forwarded as bytes.
"""

from __future__ import annotations

from fastrpc.protocol.versions import HOP_KEYS, HOP_PARAMS, LATEST_SESSION_VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container
    from typing import Any

    from fastrpc.context import Context

HOP_RESULT = frozenset(("_meta", "resultType", "task", "inputRequests", "requestState"))
"""The same of a result."""
ELICITED = "notifications/elicitation/complete"
"""The person has done what a URL was for (MCP 2025-11-25 alone)."""
IMPLEMENTATION = ("name", "version", "title", "description", "websiteUrl", "icons")
"""Members of `Implementation` (MCP) that are forwarded to clients."""
OWN_NOTIFICATIONS = frozenset(
    f"notifications/{name}"
    for name in (
        *("initialized", "cancelled", "progress", "message", "tasks/status", "roots/list_changed"),
        *("tools/list_changed", "prompts/list_changed", "resources/list_changed", "resources/updated"),
        *("elicitation/complete", "subscriptions/acknowledged"),
    )
)
"""Notifications that MCP knows: each connection has its own. All others go on."""
REFERENCES = ("ref", "argument", "context")
"""Objects in the params of a completion, whose own members are replaced one by one."""


def server_info_of(info: Any, otherwise: dict[str, Any]) -> dict[str, Any]:
    """Return the known members of a `serverInfo` (MCP: Implementation), `otherwise` if it is invalid."""
    if not isinstance(info, dict) or not all(isinstance(info.get(name), str) for name in ("name", "version")):
        return otherwise
    return {name: info[name] for name in IMPLEMENTATION if name in info}


def carried_meta(meta: object) -> dict[str, Any]:
    """Return what of a ``_meta`` goes on."""
    if not isinstance(meta, dict):
        return {}
    return {key: value for key, value in meta.items() if key not in HOP_KEYS}


def with_carried_meta(params: dict[str, Any]) -> dict[str, Any]:
    """Return the params of a message with what of their ``_meta`` goes on."""
    if "_meta" not in params:
        return params
    meta = carried_meta(params["_meta"])
    others = {name: value for name, value in params.items() if name != "_meta"}
    return {**others, "_meta": meta} if meta else others


def request_params(context: Context, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return the params of the upstream request for a call: `params`, and what its client has sent besides.

    A handler may read a resource for a call of another method: only the ``_meta`` of that goes on.
    """
    channel: Any = context._channel
    if channel is None:
        return params
    request = channel.request
    sent = dict(params)
    if request.method == method:
        for name, value in request.params.items():
            if name in REFERENCES and isinstance(value, dict) and name in sent:
                sent[name] = {**value, **sent[name]}
            elif name not in sent and name not in HOP_PARAMS:
                sent[name] = value
    meta = carried_meta(request.meta)
    if meta:
        sent["_meta"] = meta
    return sent


def others_of(received: dict[str, Any], names: Container[str]) -> dict[str, Any]:
    """Return the members of a result or an entry besides those with these names."""
    return {name: value for name, value in received.items() if name not in names and name not in HOP_RESULT}


def rest_of(result: dict[str, Any], *names: str) -> dict[str, Any]:
    """Return the members of a result besides those with these names, ``_meta`` included, that go on."""
    rest = others_of(result, names)
    meta = carried_meta(result.get("_meta"))
    return {**rest, "_meta": meta} if meta else rest


def cancellation(context: Context | None) -> dict[str, Any]:
    """Return what the client of a call has said when it cancelled, as far as it goes on."""
    channel: Any = None if context is None else context._channel
    said = None if channel is None else channel.request.cancellation
    return with_carried_meta(said or {})


def report_progress(context: Context, params: dict[str, Any]) -> None:
    """Send the client of a call a progress report of the upstream. Raises KeyError, TypeError, ValueError."""
    channel: Any = context._channel
    if context.asks_no_progress or channel is None or context.cancelled:
        return
    report = {"progress": params["progress"], **with_carried_meta(params)}
    report.pop("progressToken", None)
    channel.progress({name: value for name, value in report.items() if value is not None})


def pass_on(context: Context, method: str, params: dict[str, Any]) -> None:
    """Send the client of a call a notification of the upstream that MCP does not know."""
    channel: Any = context._channel
    if channel is not None:
        channel.send(method, with_carried_meta(params))


def elicited(context: Context, params: dict[str, Any]) -> None:
    """Tell the client of a call that the person has done what the URL in a request was for."""
    channel: Any = context._channel
    if channel is not None and context.protocol_version == LATEST_SESSION_VERSION:
        channel.send(ELICITED, with_carried_meta(params))


def log(context: Context, params: dict[str, Any]) -> None:
    """Send the client of a call a log message of the upstream. Raises ValueError for an unknown level."""
    channel: Any = context._channel
    if channel is None or context.cancelled:
        return
    rest = with_carried_meta(params)
    others = {name: value for name, value in rest.items() if name not in ("level", "data", "logger")}
    channel.log(params.get("level", "info"), params["data"], params.get("logger"), others)
