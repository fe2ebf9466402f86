"""The handlers of a client: of the server's requests (elicitation, sampling, roots) and of notifications.

A handler of requests is a value, or a function of the request's params, synchronous or asynchronous. The same
handlers serve every protocol version. No I/O here.
"""

from __future__ import annotations

from fastrpc.errors import MethodNotFound, RemoteError
from fastrpc.protocol.versions import ELICITATION, RICH_INPUT_REQUESTS, STATELESS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from typing import Any, TypeAlias, TypeVar

    from fastrpc.options import Action, Root

    Given = TypeVar("Given")
    Handler: TypeAlias = Given | Callable[[dict[str, Any]], Given | Awaitable[Given]]
    """A result, or a function of the request's params that returns it, synchronous or asynchronous."""
    Elicited = dict[str, Any] | bool | Action | None
    Sampled = str | dict[str, Any] | list[dict[str, Any]]
    Roots = Sequence[str | Root]
    OnNotification = Callable[[dict[str, Any]], object]
    """A function of a notification's params, synchronous or asynchronous."""

ACTIONS = ("accept", "decline", "cancel")


class Handlers:
    """The handlers of one client. `on_elicit`: None for a client without the capability `elicitation`."""

    def __init__(
        self,
        on_elicit: Any = None,
        on_sample: Any = None,
        roots: Any = None,
        on_log: OnNotification | None = None,
        on_progress: OnNotification | None = None,
        on_notification: OnNotification | None = None,
    ) -> None:
        self.on_elicit = on_elicit
        self.on_sample = on_sample
        self.roots = roots
        self.on_notification = on_notification
        self.by_method = {"notifications/message": on_log, "notifications/progress": on_progress}
        """The handler of each of these notifications, or None."""

    def capabilities(self, version: str) -> dict[str, Any]:
        """Return the client capabilities that the handlers provide, in the form of a version."""
        found: dict[str, Any] = {}
        if self.roots is not None:
            found["roots"] = {} if version == STATELESS else {"listChanged": True}
        if self.on_sample is not None:
            found["sampling"] = {"tools": {}} if version in RICH_INPUT_REQUESTS else {}
        if self.on_elicit is not None and version in ELICITATION:
            found["elicitation"] = {"form": {}, "url": {}} if version in RICH_INPUT_REQUESTS else {}
        return found

    async def answer(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Return the result of a request. Raises RemoteError, and the exceptions of handlers."""
        if method == "ping":
            return {}
        if method == "elicitation/create" and self.on_elicit is not None:
            return elicited(await value_from(self.on_elicit, params))
        if method == "sampling/createMessage" and self.on_sample is not None:
            return sampled(await value_from(self.on_sample, params))
        if method == "roots/list" and self.roots is not None:
            return {"roots": rooted(await value_from(self.roots, params))}
        raise RemoteError({"code": MethodNotFound.code, "message": f"{method}: the client has no handler"})


async def value_from(handler: Any, params: dict[str, Any]) -> Any:
    """Return the handler itself if it is a value, else the value that the function returns."""
    if not callable(handler):
        return handler
    value = handler(params)
    return await value if hasattr(value, "__await__") else value


def elicited(value: Any) -> dict[str, Any]:
    """Return the ElicitResult of a dict (an accepted form), True (one without fields), False, which declines,
    or None, which cancels."""
    if isinstance(value, dict):
        return {"action": "accept", "content": value}
    for meant, action in ((True, "accept"), (False, "decline"), (None, "cancel")):
        if value is meant or (isinstance(value, str) and value == action):
            return {"action": action}
    raise ValueError(f"on_elicit: expected a dict, True, False, None or one of {ACTIONS}, got {value!r:.200}")


def sampled(value: Any) -> dict[str, Any]:
    """Return a CreateMessageResult made of a text or of content; a dict with a role is the whole result."""
    if isinstance(value, dict) and "role" in value:
        return {"model": "unknown", **value}
    content = {"type": "text", "text": value} if isinstance(value, str) else value
    return {"role": "assistant", "content": content, "model": "unknown", "stopReason": "endTurn"}


def rooted(roots: Any) -> list[dict[str, Any]]:
    """Return the Roots of a list; a str in it is the URI of one."""
    if isinstance(roots, (str, bytes, dict)) or not hasattr(roots, "__iter__"):
        raise ValueError(f"roots: expected a list of URIs, got {roots!r:.200}")
    return [{"uri": root} if isinstance(root, str) else root for root in roots]
