"""The in-memory client's side of a question: what it says it can be asked, and what it answers.

A handler is a value, or a function of the question's params, async or not. What it gives is put into the
form that the protocol wants. How a question comes and an answer goes is the client's affair.
"""

from __future__ import annotations

from fastrpc.testing.results import RemoteError
from fastrpc.versions import MODERN, VERSIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ELICITATION = VERSIONS[2:]
"""Versions in which a client can be asked to fill in a form."""

MODES = VERSIONS[3:]
"""Versions that tell forms from web pages, and in which a model may be handed tools."""

ACTIONS = ("accept", "decline", "cancel")


class Answers:
    """Answers a server's questions by the handlers that the test gave."""

    def __init__(self, on_elicit: Any = None, on_sample: Any = None, roots: Any = None) -> None:
        self.on_elicit = on_elicit
        self.on_sample = on_sample
        self.roots = roots

    def capabilities(self, version: str) -> dict[str, Any]:
        """Return what a client with these handlers can do, in the form of a version."""
        found: dict[str, Any] = {}
        if self.roots is not None:
            found["roots"] = {} if version == MODERN else {"listChanged": True}
        if self.on_sample is not None:
            found["sampling"] = {"tools": {}} if version in MODES else {}
        if self.on_elicit is not None and version in ELICITATION:
            found["elicitation"] = {"form": {}, "url": {}} if version in MODES else {}
        return found

    async def answer(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Return the result of a question. Raises RemoteError, and whatever a handler raises."""
        if method == "ping":
            return {}
        if method == "elicitation/create" and self.on_elicit is not None:
            return elicited(await said(self.on_elicit, params))
        if method == "sampling/createMessage" and self.on_sample is not None:
            return sampled(await said(self.on_sample, params))
        if method == "roots/list" and self.roots is not None:
            return {"roots": [rooted(root) for root in await said(self.roots, params)]}
        raise RemoteError({"code": -32601, "message": f"{method}: the test gave no handler for it"})


async def said(handler: Any, params: dict[str, Any]) -> Any:
    """Return what a handler says: itself, or what it returns."""
    if not callable(handler):
        return handler
    value = handler(params)
    return await value if hasattr(value, "__await__") else value


def elicited(value: Any) -> dict[str, Any]:
    """A dict is what the form was filled in with; True a yes without a form; None, False a cancel, a no."""
    if isinstance(value, dict):
        return {"action": "accept", "content": value}
    action = {True: "accept", False: "decline", None: "cancel"}.get(value, value)
    if action not in ACTIONS:
        raise ValueError(f"on_elicit: expected a dict, True, False, None or one of {ACTIONS}, got {value!r}")
    return {"action": action}


def sampled(value: Any) -> dict[str, Any]:
    """A text is what the model says; a dict with a role is the whole result; other content is wrapped."""
    if isinstance(value, dict) and "role" in value:
        return {"model": "test", **value}
    content = {"type": "text", "text": value} if isinstance(value, str) else value
    return {"role": "assistant", "content": content, "model": "test", "stopReason": "endTurn"}


def rooted(root: Any) -> dict[str, Any]:
    """A text is a folder's address."""
    return {"uri": root} if isinstance(root, str) else root
