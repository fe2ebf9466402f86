"""Notifications of changed lists and resources, and subscriptions to them (MCP: list changes, subscriptions).

Up to 2025-11-25 a session is notified of changed lists once it is ready, and of the resources to which it has
subscribed. In 2026-07-28 only streams are: requests that are held open (`ChangeNotifications.listening`),
each with a filter. Every message on a stream carries its id.

Several changes of a list in one turn of the event loop cause one notification. Nothing here runs before the
first change or the first stream. All functions are to be called on the connection's own thread.
"""

from __future__ import annotations

from fastrpc._core.encoder import dumps
from fastrpc.engine.messages import id_value
from fastrpc.errors import InvalidParams, InvalidRequest, Overloaded, ProtocolError
from fastrpc.protocol.lifecycle import READY, bytes_of_uri
from fastrpc.protocol.uri_template import normal
from fastrpc.protocol.versions import STATELESS, SUBSCRIPTION_KEY
from fastrpc.quotas import ENTRY_BYTES, SESSION_BYTES, Quota

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc.engine.change_notifications import ChangeNotifications
    from fastrpc.engine.dispatcher import Dispatcher
    from fastrpc.engine.request import Request
    from fastrpc.engine.runtime import Runtime

LISTS = {
    "tool": "tools",
    "resource": "resources",
    "template": "resources",
    "provider": "resources",
    "prompt": "prompts",
}
"""The list that contains each kind of entry. Completions are in none."""

UPDATED = "notifications/resources/updated"

STREAM_BYTES = 4096
"""About what a stream takes besides its URIs."""


# --- changes ------------------------------------------------------------------------------------------


def list_changed(changes: ChangeNotifications, kind: str) -> None:
    """Notify the client, after this turn of the loop, that a list has changed."""
    name = LISTS.get(kind)
    if name is None:
        return
    due = bool(changes.changed_lists)
    changes.changed_lists[name] = None
    if due:
        return
    if changes.connection.loop is not None:
        changes.connection.loop.call_soon(send_changes, changes)
    else:
        changes.connection.call_in_loop(lambda: send_changes(changes))


def send_changes(changes: ChangeNotifications) -> None:
    """Send the notifications of changed lists that are due."""
    names, changes.changed_lists = changes.changed_lists, {}
    session = changes.session
    for name in names:
        method = f"notifications/{name}/list_changed"
        if session.state == READY and name in session.offered:
            changes.outbound.notify(method)
        for request in list(changes.listening.values()):
            if request.params["notifications"].get(f"{name}ListChanged"):
                send(changes, request, method)


def resource_updated(changes: ChangeNotifications, uri: str, rest: dict[str, Any] | None = None) -> None:
    """Notify the client that a resource has changed, if it has subscribed to it and the resource exists for
    it: a stream may name any URI, and what exists may have changed since. `rest`: other members of the
    params, as another server has sent them."""
    session, meant = changes.session, normal(uri)
    in_session = session.state == READY and meant in session.subscriptions
    streams = [
        request
        for request in changes.listening.values()
        if meant in request.params["notifications"].get("resourceSubscriptions", ())
    ]
    if not (in_session or streams):
        return
    from fastrpc.methods.resources import check_watched, hides_at

    runtime, principal = changes.runtime, changes.connection.principal
    try:
        check_watched(runtime, principal, uri, STATELESS)  # a guard may have allowed it before
    except ProtocolError:
        return
    if hides_at(runtime, principal, uri):
        return
    rest = rest or {}
    if in_session:
        changes.outbound.notify(UPDATED, {**rest, "uri": session.subscriptions[meant]})
    others = {name: value for name, value in rest.items() if name != "_meta"}
    for request in streams:
        params = {**others, "uri": request.params["notifications"]["resourceSubscriptions"][meant]}
        send(changes, request, UPDATED, dumps(params)[1:-1] + b",", rest.get("_meta"))


def send(
    changes: ChangeNotifications,
    request: Request,
    method: str,
    members: bytes = b"",
    meta: dict[str, Any] | None = None,
) -> None:
    """Send a notification on the stream that a request has opened."""
    others = dumps(meta)[1:-1] + b"," if meta else b""
    text = b'"_meta":{%b"%b":%b}' % (others, SUBSCRIPTION_KEY.encode(), request.id)
    changes.outbound.send_line(
        b'{"jsonrpc":"2.0","method":"%b","params":{%b%b}}' % (method.encode(), members, text)
    )


# --- streams ------------------------------------------------------------------------------------------


def listen(dispatcher: Dispatcher, request: Request) -> None:
    """Open a stream: acknowledge it, and hold its request until it is cancelled or the server ends."""
    if request.batch is not None:
        raise InvalidRequest("subscriptions/listen: not allowed in a batch")
    wanted = _filter_of(request.params)
    uris = frozenset(wanted.get("resourceSubscriptions", ()))
    if "taskIds" in wanted and request.version == STATELESS:
        dispatcher.runtime.features.check_task_listener(dispatcher, request, wanted["taskIds"])
    changes = dispatcher.changes
    if len(changes.listening) >= dispatcher.runtime.calls.limit:
        raise Overloaded(f"Server busy: {len(changes.listening)} streams are open")
    if dispatcher.runtime.filters.is_filtered:
        from fastrpc.methods.resources import check_watched

        for uri in sorted(uris):
            check_watched(dispatcher.runtime, dispatcher.principal, uri, STATELESS)
    quota = _quota_for(dispatcher, request, uris | frozenset(wanted.get("taskIds", ())))
    send_changes(changes)  # earlier changes do not concern this stream
    honoured = _honoured(dispatcher.runtime, wanted)
    request.quota = quota
    request.params = {
        "notifications": {**honoured, "resourceSubscriptions": {normal(uri): uri for uri in uris}}
        if "resourceSubscriptions" in honoured
        else honoured
    }
    send(
        changes,
        request,
        "notifications/subscriptions/acknowledged",
        b'"notifications":' + dumps(honoured) + b",",
    )
    changes.listening[request.key] = request
    for uri in honoured.get("resourceSubscriptions", ()):
        dispatcher.runtime.upstreams.watch(uri, request.client_capabilities)
    # Changes may come from any thread while no message arrives: only a loop sends them in time.
    dispatcher.outbound.begin_loop()


def end(changes: ChangeNotifications, request: Request) -> None:
    """End a stream from the server's side: send the notifications that are due, then answer its request."""
    send_changes(changes)
    changes.stop_listening(request.key)
    ending = changes.runtime.results.ending(STATELESS, {SUBSCRIPTION_KEY: id_value(request.id)})
    request.dispatcher.responses.answer(request, b"{" + ending[1:])


def _quota_for(dispatcher: Dispatcher, request: Request, uris: frozenset[str]) -> Quota:
    """Count the memory of a stream: its URIs and ids. Raises InvalidParams if it is too much, Overloaded if
    all streams and sessions together have too much."""
    quota = Quota(SESSION_BYTES, dispatcher.runtime.quotas.of(dispatcher.principal))
    size = sum(map(bytes_of_uri, uris)) + STREAM_BYTES + 2 * len(request.id)
    if not quota.take(size):
        if size > quota.limit:
            raise InvalidParams(
                f"notifications: more than the {quota.limit} bytes that a stream may have kept"
            )
        raise Overloaded("Server busy: no room to keep the URIs of one more stream")
    return quota


def _filter_of(params: dict[str, Any]) -> dict[str, Any]:
    """Return the filter of a stream (MCP: SubscriptionFilter). Raises InvalidParams."""
    wanted = params.get("notifications")
    if not isinstance(wanted, dict):
        raise InvalidParams(
            f"notifications: {'expected an object' if 'notifications' in params else 'missing'}"
        )
    for name in ("toolsListChanged", "promptsListChanged", "resourcesListChanged"):
        if not isinstance(wanted.get(name, False), bool):
            raise InvalidParams(f"notifications.{name}: expected a boolean")
    uris = wanted.get("resourceSubscriptions", [])
    if isinstance(uris, list) and len(uris) > SESSION_BYTES // ENTRY_BYTES:
        raise InvalidParams(f"notifications.resourceSubscriptions: {len(uris)} are too many")
    if not isinstance(uris, list) or not all(isinstance(uri, str) for uri in uris):
        raise InvalidParams("notifications.resourceSubscriptions: expected a list of strings")
    return wanted


def _honoured(runtime: Runtime, wanted: dict[str, Any]) -> dict[str, Any]:
    """Return the part of a filter that this server supports."""
    offered = runtime.description.capabilities(STATELESS)
    found: dict[str, Any] = {
        f"{name}ListChanged": True
        for name in ("tools", "prompts", "resources")
        if (name in offered or runtime.honours_everything) and wanted.get(f"{name}ListChanged")
    }
    if ("resources" in offered or runtime.honours_everything) and wanted.get("resourceSubscriptions"):
        found["resourceSubscriptions"] = list(dict.fromkeys(wanted["resourceSubscriptions"]))
    if wanted.get("taskIds"):
        found["taskIds"] = list(dict.fromkeys(wanted["taskIds"]))
    return found
