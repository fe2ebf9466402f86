"""What a server written for the official SDK's low-level `Server` passes to ``run``, as objects of fastrpc.

`stdio_server` yields two placeholders: fastrpc reads standard input and writes standard output by itself when
``server.run`` receives them. Nothing is imported for these names.
"""

from __future__ import annotations

from fastrpc.compat.errors import NotOffered
from fastrpc.compat.field_types import FieldType, ModelType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any


class NotificationOptions:
    """The lists of which changes are notified, for the declared capabilities."""

    def __init__(
        self, prompts_changed: bool = False, resources_changed: bool = False, tools_changed: bool = False
    ) -> None:
        self.prompts_changed = prompts_changed
        self.resources_changed = resources_changed
        self.tools_changed = tools_changed


class NoTasks(dict):  # type: ignore[type-arg]
    """``server.experimental``, where SDK 1.x has its task methods: a dict without capabilities. Reading any
    other attribute raises NotOffered."""

    def __getattr__(self, name: str) -> Any:
        raise NotOffered(
            f"fastrpc.compat: server.experimental has no {name}; tasks are an extension of the protocol that "
            "fastrpc does not have, report progress"
        )


class InitializationOptions(ModelType):
    """What a server declares to its clients: name, version, capabilities, instructions."""

    model_fields = dict.fromkeys(
        (
            "server_name",
            "server_version",
            "title",
            "description",
            "capabilities",
            "instructions",
            "website_url",
            "icons",
        )
    )
    """The names of the attributes, as pydantic has them."""

    def __init__(
        self,
        server_name: str,
        server_version: str,
        capabilities: Any,
        instructions: str | None = None,
        website_url: str | None = None,
        icons: list[Any] | None = None,
        title: str | None = None,
        description: str | None = None,
    ) -> None:
        self.server_name = server_name
        self.server_version = server_version
        self.title = title
        self.description = description
        self.capabilities = capabilities
        self.instructions = instructions
        self.website_url = website_url
        self.icons = icons


class ReadResourceContents(FieldType):
    """One of the contents that a handler of ``read_resource`` returns."""

    def __init__(
        self, content: str | bytes, mime_type: str | None = None, meta: dict[str, Any] | None = None
    ) -> None:
        self.content = content
        self.mime_type = mime_type
        self.meta = meta


class StandardStream:
    """Stands for standard input or output in ``server.run``: only fastrpc uses it. `descriptor` is that of
    another file, None for the standard one."""

    def __init__(self, file: Any = None) -> None:
        self.descriptor: int | None = None if file is None else descriptor_of(file)

    async def __aenter__(self) -> StandardStream:
        return self

    async def __aexit__(self, *exception: object) -> None:
        return None

    async def aclose(self) -> None:
        """Does nothing: the descriptors are restored when ``server.run`` returns."""


def descriptor_of(file: Any) -> int:
    """Return the descriptor of a file, or of one that anyio has wrapped. Raises NotOffered without one."""
    try:
        return int(getattr(file, "wrapped", file).fileno())
    except (AttributeError, OSError) as error:
        from fastrpc.compat.errors import NotOffered

        raise NotOffered(
            f"fastrpc.compat: stdio_server takes files with a descriptor, not {type(file).__name__}"
        ) from error


class stdio_server:
    """``async with stdio_server() as (read_stream, write_stream)``.

    `stdin` and `stdout` may be other files, which have a descriptor.
    """

    def __init__(self, stdin: Any = None, stdout: Any = None) -> None:
        self._streams = StandardStream(stdin), StandardStream(stdout)

    async def __aenter__(self) -> tuple[StandardStream, StandardStream]:
        return self._streams

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        return None
