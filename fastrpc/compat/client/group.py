"""`ClientSessionGroup` of the official SDK: the tools, resources and prompts of several servers by name.

Each server has a separate session, connected in this task; nothing is listed again by itself.
"""

from __future__ import annotations

from contextlib import AsyncExitStack

from fastrpc import diagnostics
from fastrpc.compat.client.endpoints import address, endpoint_of
from fastrpc.compat.client.sessions import ClientSession
from fastrpc.compat.errors import McpError
from fastrpc.errors import InvalidParams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any

    from typing_extensions import Self

KINDS = ("prompts", "resources", "tools")


class StreamableHttpParameters:
    """A server at a URL. Time limits are the session's."""

    def __init__(self, url: str, headers: dict[str, Any] | None = None, **limits: object) -> None:
        self.url = url
        self.headers = headers


class SseServerParameters(StreamableHttpParameters):
    """A server at a URL that speaks HTTP with SSE; the transport is found out."""


class ClientSessionParameters:
    """The options of a session: the time limit and the callbacks of `ClientSession`."""

    def __init__(self, **options: Any) -> None:
        self.options = options


class ClientSessionGroup:
    """The servers that were connected. `component_name_hook`: a function of a name and of the server's
    Implementation that returns the name here; without it two equal names are an error."""

    def __init__(
        self,
        exit_stack: AsyncExitStack | None = None,
        component_name_hook: Callable[[str, Any], str] | None = None,
    ) -> None:
        self.prompts: dict[str, Any] = {}
        self.resources: dict[str, Any] = {}
        self.tools: dict[str, Any] = {}
        self._hook = component_name_hook
        self._owner: dict[str, ClientSession] = {}  # by the name of a tool
        self._names: dict[ClientSession, list[tuple[str, str]]] = {}
        self._stacks: dict[ClientSession, AsyncExitStack] = {}
        self._stack = exit_stack or AsyncExitStack()
        self._owns_stack = exit_stack is None

    async def __aenter__(self) -> Self:
        if self._owns_stack:
            await self._stack.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._owns_stack:
            await self._stack.aclose()

    @property
    def sessions(self) -> list[ClientSession]:
        """The sessions of the servers."""
        return list(self._names)

    async def connect_to_server(self, server_params: Any, session_params: Any = None) -> ClientSession:
        """Connect to a server, and take what it offers into the group; return its session. Raises as
        `ClientSession.initialize`, and McpError for a name that is taken."""
        is_remote = isinstance(server_params, StreamableHttpParameters)
        found = address(server_params.url, server_params.headers) if is_remote else endpoint_of(server_params)
        stack = AsyncExitStack()
        try:
            stack.push_async_callback(found.close)
            options = {} if session_params is None else session_params.options
            session = await stack.enter_async_context(ClientSession(found, found, **options))
            await session.initialize()
            await self.connect_with_session(session.server_info, session)
        except BaseException:
            await stack.aclose()
            raise
        self._stacks[session] = await self._stack.enter_async_context(stack)
        return session

    async def connect_with_session(self, server_info: Any, session: ClientSession) -> ClientSession:
        """Take what a connected session's server offers into the group. Raises McpError for a name that is
        taken."""
        found: dict[str, dict[str, Any]] = {}
        for kind in KINDS:
            try:
                result = await getattr(session, f"list_{kind}")()
            except McpError as error:
                diagnostics.write("warning", f"{kind} could not be listed: {error}")
                continue
            found[kind] = {self._name(each.name, server_info): each for each in getattr(result, kind)}
        for kind, entries in found.items():
            taken = sorted(entries.keys() & getattr(self, kind).keys())
            if taken:
                raise McpError(InvalidParams.code, f"{taken} already exist in group {kind}.")
        self._names[session] = [(kind, name) for kind, entries in found.items() for name in entries]
        for kind, entries in found.items():
            getattr(self, kind).update(entries)
        self._owner.update(dict.fromkeys(found.get("tools", ()), session))
        return session

    def _name(self, name: str, server_info: Any) -> str:
        return name if self._hook is None else self._hook(name, server_info)

    async def disconnect_from_server(self, session: ClientSession) -> None:
        """End a session, and take what its server offered out of the group. Raises McpError for another
        session."""
        if session not in self._names:
            raise McpError(InvalidParams.code, "the session is not one of this group")
        for kind, name in self._names.pop(session):
            getattr(self, kind).pop(name, None)
            if kind == "tools":
                self._owner.pop(name, None)
        stack = self._stacks.pop(session, None)
        if stack is not None:
            await stack.aclose()

    async def call_tool(
        self, name: str, arguments: dict[str, Any] | None = None, *given: Any, **options: Any
    ) -> Any:
        """Call a tool by its name in the group; the other options are those of `ClientSession.call_tool`.
        Raises KeyError for an unknown name."""
        return await self._owner[name].call_tool(self.tools[name].name, arguments, *given, **options)
