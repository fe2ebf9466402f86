"""What a running call has: here what its client has answered, as objects with the originals' attributes; in
the modules the SDK's session, the client's model that calls functions, and content as typed blocks.

Answers are of the SDK's own classes where the program has imported ``mcp.types`` (`fastrpc.compat.models`).
"""

from __future__ import annotations

from typing import Any

from fastrpc.compat.errors import NotOffered
from fastrpc.compat.models import has_types, typed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fastrpc.client_requests.elicitation import ElicitResult
    from fastrpc.client_requests.sampling import Sample
    from fastrpc.context import Context as PlainContext

_CONTENT = {
    "audio": "AudioContent",
    "image": "ImageContent",
    "text": "TextContent",
    "tool_result": "ToolResultContent",
    "tool_use": "ToolUseContent",
}


def not_offered(owner: str, name: str, alternatives: dict[str, str]) -> AttributeError:
    """Return the error for an unsupported name, with the alternative if there is one."""
    if name in alternatives:
        return NotOffered(f"fastrpc.compat: {owner} has no {name}; {alternatives[name]}")
    return AttributeError(f"fastrpc.compat: {owner} has no {name}")


class AnswerMembers:
    """A JSON object. Its members can be read as attributes, by their names or in snake case, and as items."""

    def __init__(self, members: dict[str, Any]) -> None:
        self._members = members

    def __getattr__(self, name: str) -> Any:
        first, *others = name.split("_")
        camel = first + "".join(other.capitalize() for other in others)
        for known in (name, camel):
            if known in self.__dict__["_members"]:
                return members_of(self._members[known])
        raise AttributeError(name)

    def __getitem__(self, name: str) -> Any:
        return self._members[name]

    def __contains__(self, name: object) -> bool:
        return name in self._members

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def get(self, name: str, default: Any = None) -> Any:
        """Return a member's JSON value."""
        return self._members.get(name, default)

    def model_dump(self, **options: Any) -> dict[str, Any]:
        """Return the members. Options of pydantic's method have no effect."""
        return dict(self._members)

    def __repr__(self) -> str:
        return f"Members({self._members!r})"


class RequestMeta(dict[str, Any]):
    """The ``_meta`` of a request: a dict, as in SDK 2 and FastMCP 4, with the attributes and the methods of a
    model, as in SDK 1."""

    def __getattr__(self, name: str) -> Any:
        if name in ("progressToken", "progress_token"):  # which the model always has
            return self.get("progressToken", self.get("progress_token"))
        if name not in self:
            raise AttributeError(name)
        return members_of(self[name])

    @property
    def model_extra(self) -> dict[str, Any]:
        """The members that MCP does not name."""
        return {
            name: value for name, value in self.items() if name not in ("progressToken", "progress_token")
        }

    def model_dump(self, **options: Any) -> dict[str, Any]:
        """Return the members. Options of pydantic's method have no effect."""
        return dict(self)


def members_of(value: Any) -> Any:
    if isinstance(value, dict):
        return AnswerMembers(value)
    return [members_of(item) for item in value] if isinstance(value, list) else value


def block_object(block: dict[str, Any]) -> Any:
    """Return a content block as an object."""
    name = _CONTENT.get(block.get("type", ""))
    return typed(name, block) if name and has_types() else members_of(block)


def roots_object(roots: Any) -> list[Any]:
    """Return the client's roots as objects; a root without a name has None."""
    if has_types():
        return [typed("Root", root) for root in roots]
    return [AnswerMembers({"name": None, **root}) for root in roots]


class Sampled:
    """The answer of the client's model: `text`, and the parts of the result under both frameworks' names.

    `result`: the text, or the value of the type that was wanted. `history`: the messages of the conversation.
    """

    role = "assistant"

    def __init__(self, sample: Sample, result: Any = None, history: Any = ()) -> None:
        self.text: str = sample.text
        self.result: Any = sample.text if result is None else result
        blocks = [block_object(block) for block in sample.content]
        self.content: Any = blocks[0] if len(blocks) == 1 else blocks
        self.model = sample.model
        self.stop_reason = self.stopReason = sample.stop_reason
        self.history: list[Any] = list(history)


def message_result(sample: Sample) -> Any:
    """Return the SDK's CreateMessageResult where the program has imported its types."""
    if not has_types():
        return Sampled(sample)
    is_one = len(sample.content) == 1 and sample.content[0].get("type") in ("text", "image", "audio")
    members = {
        "role": "assistant",
        "content": sample.content[0] if is_one else sample.content,
        "model": sample.model,
    }
    if sample.stop_reason is not None:
        members["stopReason"] = sample.stop_reason
    return typed("CreateMessageResult" if is_one else "CreateMessageResultWithTools", members)


async def visited(
    inner: PlainContext, message: str, url: str, elicitation_id: str | None
) -> ElicitResult[None]:
    """Have the person open a URL. `elicitation_id` is what ``notifications/elicitation/complete`` names."""
    from fastrpc.client_requests.elicitation import Visit

    return await inner._ask_one(Visit(message, url, elicitation_id), None)
