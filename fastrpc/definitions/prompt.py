"""Definitions of prompts: what ``@app.prompt`` creates, and the messages that a prompt returns.

A prompt is a function with typed arguments. Clients send strings only, so a number, a flag or a choice is
parsed from its text, a list or an object from its JSON. A `Prompt` is validated when it is decorated, and
costs no import for plain types. Calling it and encoding its result are left to `fastrpc.methods.prompts`.
"""

from __future__ import annotations

from fastrpc.definitions.handler import DescribedHandler, is_unbound_method
from fastrpc.protocol.versions import known

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from typing_extensions import Unpack

    from fastrpc.content import Content
    from fastrpc.options import PromptOptions, Role

ROLES = ("user", "assistant")


class Message:
    """One message of a prompt: its role (``user`` or ``assistant``) and its content.

    `content` is a text, a content helper such as `fastrpc.Image`, or a content block as a dict. Raises
    ValueError for any other role.
    """

    __slots__ = ("content", "role")

    def __init__(self, role: Role, content: str | Content | dict[str, Any]) -> None:
        if role not in ROLES:
            raise ValueError(f"role: expected user or assistant, got {role!r:.40}")
        self.role: Role = role
        self.content = content

    def __repr__(self) -> str:
        return f"Message({self.role!r}, {self.content!r})"


class Prompt(DescribedHandler):
    """A function that returns the messages of a prompt. Raises `DefinitionError` for an invalid definition.

    `name`, `title`, `description`, `icons` and `meta` are sent to clients; name and description default to
    the function's own. The other options are those of `Handler`.

    `failure_prefix` begins the error for an exception that is not a ToolError, followed by the exception's
    text; None: clients do not receive that text. `missing_prefix` begins the error for arguments that are
    missing, followed by their names; None: it has fastrpc's words.
    """

    kind = "prompt"

    def __init__(self, function: Callable[..., Any], **options: Unpack[PromptOptions]) -> None:
        super().__init__(function, **options)
        self.failure_prefix: str | None = None
        self.missing_prefix: str | None = None
        if not isinstance(self.name, str) or not self.name or self.name == "<lambda>":
            raise self.error("cannot be a prompt's name, which is a text; give name=")
        if is_unbound_method(self.function):
            raise self.error("is a method; decorate the method of an object, app.prompt(thing.method)")
        self.describe_early()

    def descriptor(self, version: str) -> dict[str, Any]:
        """Return the prompt's entry in ``prompts/list``, with the members that a protocol version has."""
        entry = {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "arguments": self.arguments(version) or None,
            "icons": self.icons,
            "_meta": self.meta or None,
        }
        return known("Prompt", entry, version)

    def arguments(self, version: str) -> list[dict[str, Any]]:
        """Return the PromptArgument of each argument: name, description, whether it is required."""
        return [
            known(
                "PromptArgument",
                {
                    "name": parameter.name,
                    "title": parameter.schema.get("title"),
                    "description": parameter.schema.get("description"),
                    "required": parameter.required,
                },
                version,
            )
            for parameter in self.signature.parameters
        ]
