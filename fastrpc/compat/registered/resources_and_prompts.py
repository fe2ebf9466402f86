"""Resources, templates and prompts as the program sees them that has registered them (`live_component`).

``(await mcp.get_prompt("ask")).description = "…"``, ``(await mcp.get_resource(uri)).tags.add("new")``. Costs
nothing until a program asks for one.
"""

from __future__ import annotations

from copy import copy
from functools import update_wrapper

from fastrpc.compat.components.objects import (
    FunctionResource,
    Prompt,
    PromptArgument,
    ResourceTemplate,
    describe_arguments,
)
from fastrpc.compat.components.tools import described_meta
from fastrpc.compat.functions import adapted
from fastrpc.compat.functions.contents_meta import with_meta
from fastrpc.compat.registered import LiveComponent
from fastrpc.compat.registered.tags import Tags
from fastrpc.compat.values import checked_annotations, plain, prompt_value, resource_value
from fastrpc.definitions.handler import is_async

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Registered(LiveComponent):
    """What a server has as a resource, a template or a prompt. `entry` is its definition."""

    entry: Any

    def _follow(self, server: Any, shown: Any, declared: Any) -> None:
        """Be the object of what a server has: with the attributes of `shown`, made of its entry, and the
        function that was given."""
        self.__dict__.update(vars(shown))
        self.__dict__["tags"] = Tags(self.__dict__["tags"], self._tags_changed)
        function = self.entry.function if declared is None else declared
        self.__dict__.update(fn=function, _declared=function)
        self.__dict__["_server"] = server

    def _write(self, name: str, value: Any) -> None:
        entry, server = self.entry, self._server
        if name in ("description", "title", "mime_type", "size"):
            setattr(entry, name, value)
        elif name == "icons":
            entry.icons = plain(value)
        elif name == "annotations":
            entry.annotations = checked_annotations(plain(value)) or {}
        elif name == "tags":
            entry.meta = described_meta(self)
        elif name == "meta":
            entry.meta = described_meta(self)
            if self._kind in server.dialect.meta_in_contents:
                self._call(self.__dict__["fn"])  # whose results have it
        elif name == "arguments":
            describe_arguments(entry, value or ())
        elif name == "auth":
            server._restrict(self._kind, entry.key, value)
        elif name == "enabled":
            offer = server.enable if value else server.disable
            offer(names={entry.key}, components={self._kind})
        elif name == "fn":
            self._call(value)
        elif name == "name" and self._kind != "prompt":  # which is found by its name
            entry.name = value

    def _call(self, function: Callable[..., Any]) -> None:
        """Call another function, with the parameters of the one that was declared."""
        declared: Any = self.__dict__["_declared"]

        def call(*values: Any, **named: Any) -> Any:
            return function(*values, **named)

        wrapped = declared if function is declared else update_wrapper(call, declared)
        server, former = self._server, self.entry
        convert = prompt_value if self._kind == "prompt" else resource_value
        meta = self.__dict__["meta"]
        changed = copy(former)
        changed.function = adapted(with_meta(wrapped, meta, server.dialect, self._kind), server, convert)
        changed.is_async = is_async(changed.function)
        self.__dict__["entry"] = changed
        self._serve_instead(former, changed)


class RegisteredResource(Registered, FunctionResource):
    """The object of a resource."""

    _kind, _plain = "resource", FunctionResource

    async def read(self) -> Any:
        value = self.entry.function()
        return await value if hasattr(value, "__await__") else value


class RegisteredTemplate(Registered, ResourceTemplate):
    """The object of a template."""

    _kind, _plain = "template", ResourceTemplate

    async def read(self, arguments: dict[str, Any]) -> Any:
        value = self.entry.function(**arguments)
        return await value if hasattr(value, "__await__") else value


class RegisteredArgument(PromptArgument):
    """An argument of a prompt's object."""

    _changed: Any = None

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if self._changed is not None:
            self._changed()

    def __deepcopy__(self, memo: dict[int, Any]) -> PromptArgument:
        found = PromptArgument(self.name, self.description, self.required)
        found._others = self._others
        return found


class RegisteredPrompt(Registered, Prompt):
    """The object of a prompt."""

    _kind, _plain = "prompt", Prompt

    def _follow(self, server: Any, shown: Any, declared: Any) -> None:
        super()._follow(server, shown, declared)
        self.__dict__["arguments"] = [self._argument(each) for each in shown.arguments or ()]

    def _argument(self, argument: PromptArgument) -> PromptArgument:
        found = RegisteredArgument.__new__(RegisteredArgument)
        found.__dict__.update(vars(argument), _changed=self._arguments_changed)
        return found

    def _arguments_changed(self) -> None:
        self.arguments = self.__dict__["arguments"]

    async def render(self, arguments: dict[str, Any] | None = None) -> Any:
        value = self.entry.function(**(arguments or {}))
        return await value if hasattr(value, "__await__") else value


REGISTERED: dict[str, type[Registered]] = {
    "resource": RegisteredResource,
    "template": RegisteredTemplate,
    "prompt": RegisteredPrompt,
}


def registered(server: Any, kind: str, shown: Any, declared: Any) -> Any:
    """Return the object of what a server has: `shown`, made of its entry, and the function that was given."""
    found: Any = REGISTERED[kind].__new__(REGISTERED[kind])
    found._follow(server, shown, declared)
    return found
