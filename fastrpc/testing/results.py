"""What the in-memory client returns: results with attributes for their parts, and the error for an error
response.

`raw` is the result as received. Nothing here communicates with a server.
"""

from __future__ import annotations

from fastrpc.errors import FastrpcError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class RemoteError(FastrpcError):
    """The server answered with a JSON-RPC error: `code`, `message`, `data`.

    A handler of the client (``on_elicit=`` …) may raise it to answer the server with an error.
    """

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(f"{error.get('message')} ({error.get('code')})")
        self.code: int = error.get("code", 0)
        self.message: str = error.get("message", "")
        self.data: Any = error.get("data")


class Result:
    """A result: `raw` as received, and its ``_meta`` as `meta`."""

    def __init__(self, raw: dict[str, Any]) -> None:
        self.raw = raw
        self.meta: dict[str, Any] = raw.get("_meta", {})

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.raw!r})"


class CallResult(Result):
    """The result of a tool call: `content` blocks, `structured`, `is_error`, `meta`; `raw` as received."""

    def __init__(self, raw: dict[str, Any]) -> None:
        super().__init__(raw)
        self.content: list[dict[str, Any]] = raw["content"]
        self.structured: Any = raw.get("structuredContent")
        self.is_error: bool = raw.get("isError", False)

    @property
    def text(self) -> str:
        """All text blocks, joined by newlines."""
        return text_of(self.content)


class ReadResult(Result):
    """The content of a resource: `contents`, each with its ``uri`` and a ``text`` or a ``blob``."""

    def __init__(self, raw: dict[str, Any]) -> None:
        super().__init__(raw)
        self.contents: list[dict[str, Any]] = raw["contents"]

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
        self.messages: list[dict[str, Any]] = raw["messages"]
        self.description: str | None = raw.get("description")

    @property
    def text(self) -> str:
        """The texts of all messages, joined by newlines."""
        return text_of([message["content"] for message in self.messages])


class CompletionResult(Result):
    """The completions of an argument: `values`, their `total` number, and whether there are more."""

    def __init__(self, raw: dict[str, Any]) -> None:
        super().__init__(raw)
        completion = raw["completion"]
        self.values: list[str] = completion["values"]
        self.total: int | None = completion.get("total")
        self.has_more: bool = completion.get("hasMore", False)


def text_of(content: list[dict[str, Any]]) -> str:
    """Return the text blocks of a content list, joined by newlines."""
    return "\n".join(block["text"] for block in content if block["type"] == "text")
