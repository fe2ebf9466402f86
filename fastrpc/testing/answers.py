"""How the in-memory client answers the server's requests, and which capabilities it declares.

A handler is a value, or a function of the request's params, synchronous or not. Its result is converted to
the form of the protocol. Receiving requests and sending answers is left to the client.
"""

from __future__ import annotations

from fastrpc.protocol.versions import MODERN, VERSIONS
from fastrpc.testing.results import RemoteError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ELICITATION = VERSIONS[2:]
"""Versions with elicitation by a form."""

MODES = VERSIONS[3:]
"""Versions with elicitation by URL, and with tools in sampling."""

ACTIONS = ("accept", "decline", "cancel")


class Answers:
    """Answers the server's requests with the handlers of a test."""

    def __init__(self, on_elicit: Any = None, on_sample: Any = None, roots: Any = None) -> None:
        self.on_elicit = on_elicit
        self.on_sample = on_sample
        self.roots = roots

    def capabilities(self, version: str) -> dict[str, Any]:
        """Return the client capabilities that follow from the handlers, in the form of a version."""
        found: dict[str, Any] = {}
        if self.roots is not None:
            found["roots"] = {} if version == MODERN else {"listChanged": True}
        if self.on_sample is not None:
            found["sampling"] = {"tools": {}} if version in MODES else {}
        if self.on_elicit is not None and version in ELICITATION:
            found["elicitation"] = {"form": {}, "url": {}} if version in MODES else {}
        return found

    async def answer(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Return the result for a request. Raises RemoteError, and whatever a handler raises."""
        if method == "ping":
            return {}
        if method == "elicitation/create" and self.on_elicit is not None:
            return elicited(await value_from(self.on_elicit, params))
        if method == "sampling/createMessage" and self.on_sample is not None:
            return sampled(await value_from(self.on_sample, params))
        if method == "roots/list" and self.roots is not None:
            return {"roots": [rooted(root) for root in await value_from(self.roots, params)]}
        raise RemoteError({"code": -32601, "message": f"{method}: the test gave no handler for it"})


async def value_from(handler: Any, params: dict[str, Any]) -> Any:
    """Return a handler that is a value, or what a handler that is a function returns."""
    if not callable(handler):
        return handler
    value = handler(params)
    return await value if hasattr(value, "__await__") else value


def elicited(value: Any) -> dict[str, Any]:
    """Return an ElicitResult: a dict is an accepted form, True accepts a form without fields, False declines,
    None cancels."""
    if isinstance(value, dict):
        return {"action": "accept", "content": value}
    action = {True: "accept", False: "decline", None: "cancel"}.get(value, value)
    if action not in ACTIONS:
        raise ValueError(f"on_elicit: expected a dict, True, False, None or one of {ACTIONS}, got {value!r}")
    return {"action": action}


def sampled(value: Any) -> dict[str, Any]:
    """Return a CreateMessageResult: for a text, for content, or for a dict with a role, which is the whole
    result."""
    if isinstance(value, dict) and "role" in value:
        return {"model": "test", **value}
    content = {"type": "text", "text": value} if isinstance(value, str) else value
    return {"role": "assistant", "content": content, "model": "test", "stopReason": "endTurn"}


def rooted(root: Any) -> dict[str, Any]:
    """Return a Root; a text is its URI."""
    return {"uri": root} if isinstance(root, str) else root
