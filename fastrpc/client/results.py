"""What a client returns: results with attributes for their parts, and descriptors.

`raw` is the result as received. Nothing here communicates with a server. The result of a tool call is
`fastrpc._core.call_result.CallResult`.
"""

from __future__ import annotations

from fastrpc.errors import InvalidAnswer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Described(dict[str, "Any"]):
    """The descriptor of a tool, a resource, a template or a prompt: the dict as received. Its members are
    also attributes, in snake case too: ``tool.input_schema`` is ``tool["inputSchema"]``. A missing member
    is None."""

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return self[name]
        if name.startswith("__"):
            raise AttributeError(name)
        first, *others = name.split("_")
        return self.get(first + "".join(map(str.capitalize, others)), self.get(f"_{name}"))


class Result:
    """A result: `raw` as received, and its ``_meta`` as `meta`."""

    def __init__(self, raw: dict[str, Any]) -> None:
        self.raw = raw
        self.meta: dict[str, Any] = raw.get("_meta", {})

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.raw!r})"


class ReadResult(Result):
    """The content of a resource: `contents`, each with its ``uri`` and a ``text`` or a ``blob``."""

    def __init__(self, raw: dict[str, Any]) -> None:
        super().__init__(raw)
        self.contents = _objects(raw, "contents", "resources/read")

    @property
    def text(self) -> str:
        """All texts, joined by newlines."""
        return "\n".join(part["text"] for part in self.contents if "text" in part)

    @property
    def data(self) -> bytes:
        """All blobs, decoded and joined."""
        from base64 import b64decode

        return b"".join(b64decode(part["blob"]) for part in self.contents if "blob" in part)


class PromptResult(Result):
    """A prompt: `messages`, each with a ``role`` and its ``content``; `description`."""

    def __init__(self, raw: dict[str, Any]) -> None:
        super().__init__(raw)
        self.messages = _objects(raw, "messages", "prompts/get")
        self.description: str | None = raw.get("description")

    @property
    def text(self) -> str:
        """The texts of all messages, joined by newlines."""
        contents = [message["content"] for message in self.messages]
        return "\n".join(content["text"] for content in contents if content["type"] == "text")


class CompletionResult(Result):
    """The completions of an argument: `values`, their `total` number, and whether there are more."""

    def __init__(self, raw: dict[str, Any]) -> None:
        super().__init__(raw)
        completion = raw.get("completion")
        if not isinstance(completion, dict) or not isinstance(completion.get("values"), list):
            raise InvalidAnswer(f"completion/complete: completion: expected values, got {completion!r:.80}")
        self.values: list[str] = completion["values"]
        self.total: int | None = completion.get("total")
        self.has_more: bool = completion.get("hasMore", False)


def _objects(raw: dict[str, Any], member: str, method: str) -> list[dict[str, Any]]:
    """Return a member that is an array of objects. Raises InvalidAnswer."""
    found = raw.get(member)
    if not isinstance(found, list) or not all(isinstance(part, dict) for part in found):
        raise InvalidAnswer(f"{method}: {member}: expected an array of objects, got {found!r:.80}")
    return found
