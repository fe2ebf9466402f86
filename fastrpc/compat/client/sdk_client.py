"""`Client` of the official SDK 2.x, and the sessions with a server in memory that its tests use.

    async with Client(mcp) as client:
        result = await client.call_tool("add", {"a": 1, "b": 2})

Both are a `ClientSession`; the server is one of this package, in this event loop, or what
`fastrpc.compat.client.endpoints` leads to. Nothing is cached here: each list is a request.
"""

from __future__ import annotations

from contextlib import asynccontextmanager

from fastrpc.compat.client.endpoints import endpoint_of
from fastrpc.compat.client.sessions import ClientSession
from fastrpc.compat.errors import NotOffered
from fastrpc.protocol.versions import LATEST_SESSION_VERSION, VERSIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable
    from datetime import timedelta
    from types import TracebackType
    from typing import Any

    from typing_extensions import Self

    from fastrpc.compat.client.extensions import ClientExtension

_PRIOR = "fastrpc.compat: Client has no prior_discover; the server is asked when the client connects"


class Client(ClientSession):
    """A client of `server`: a server object, a URL, `StdioServerParameters`, or the streams of this package.

    `mode`: ``auto`` for the latest version of both sides, ``legacy`` for the versions with a handshake, or
    the version 2026-07-28. Callbacks and time limits are those of `ClientSession`. `cache`,
    `raise_exceptions` and `input_required_max_rounds` have no effect. Connects when entered. Raises
    ValueError for another mode, and NotOffered for what has no equivalent.
    """

    def __init__(
        self,
        server: Any,
        *,
        raise_exceptions: bool = False,
        mode: str = "auto",
        cache: object = None,
        input_required_max_rounds: int = 10,
        prior_discover: object = None,
        extensions: Iterable[ClientExtension] | None = None,
        **options: Any,
    ) -> None:
        if prior_discover is not None:
            raise NotOffered(_PRIOR)
        if mode not in ("auto", "legacy", *VERSIONS):
            raise ValueError(f"mode: expected auto, legacy or a protocol version, got {mode!r:.60}")
        if extensions:
            from fastrpc.compat.client.extensions import Extensions

            options["extensions"] = Extensions(extensions)
        super().__init__(endpoint_of(server), **options)
        self.server = server
        self.mode = mode

    async def __aenter__(self) -> Self:
        version = {"auto": None, "legacy": LATEST_SESSION_VERSION}.get(self.mode, self.mode)
        await self.connect(version)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
        await self._endpoint.close()

    @property
    def session(self) -> ClientSession:
        """The session: this object. Raises RuntimeError before it is connected."""
        if self._client_or_none is None:
            raise RuntimeError("the client is not connected: use it with async with")
        return self

    def listen(self, **wanted: Any) -> Any:
        """Open a stream of changes: ``async with client.listen(tools_list_changed=True) as changes``. The
        options are those of `fastrpc.compat.client.subscriptions.listen`."""
        from fastrpc.compat.client.subscriptions import listen

        return listen(self, **wanted)

    # The lists of 2.x take other options than those of its session.

    async def list_tools(
        self, cursor: str | None = None, *, meta: Any = None, cache_mode: str = "use", params: Any = None
    ) -> Any:
        """Return one page of the tools, a ListToolsResult."""
        return await super().list_tools(cursor, params=_with_meta(params, meta))

    async def list_resources(
        self, cursor: str | None = None, *, meta: Any = None, cache_mode: str = "use", params: Any = None
    ) -> Any:
        """Return one page of the resources, a ListResourcesResult."""
        return await super().list_resources(cursor, params=_with_meta(params, meta))

    async def list_resource_templates(
        self, cursor: str | None = None, *, meta: Any = None, cache_mode: str = "use", params: Any = None
    ) -> Any:
        """Return one page of the templates, a ListResourceTemplatesResult."""
        return await super().list_resource_templates(cursor, params=_with_meta(params, meta))

    async def list_prompts(
        self, cursor: str | None = None, *, meta: Any = None, cache_mode: str = "use", params: Any = None
    ) -> Any:
        """Return one page of the prompts, a ListPromptsResult."""
        return await super().list_prompts(cursor, params=_with_meta(params, meta))

    async def read_resource(
        self, uri: Any, *, meta: dict[str, Any] | None = None, cache_mode: str = "use", **rounds: Any
    ) -> Any:
        """Read a resource and return a ReadResourceResult."""
        return await super().read_resource(uri, meta=meta, **rounds)


def _with_meta(params: Any, meta: Any) -> Any:
    return params if meta is None else {"_meta": dict(meta)}


@asynccontextmanager
async def create_connected_server_and_client_session(
    server: Any,
    read_timeout_seconds: timedelta | float | None = None,
    sampling_callback: Any = None,
    list_roots_callback: Any = None,
    logging_callback: Any = None,
    message_handler: Any = None,
    client_info: Any = None,
    raise_exceptions: bool = False,
    elicitation_callback: Any = None,
) -> AsyncIterator[ClientSession]:
    """Yield an initialized session with a server object in this event loop, as 1.x of the SDK does for tests.

    `raise_exceptions` has no effect: an exception of a handler is an error of its request.
    """
    endpoint = endpoint_of(server)
    session = ClientSession(
        endpoint,
        endpoint,
        read_timeout_seconds=read_timeout_seconds,
        sampling_callback=sampling_callback,
        elicitation_callback=elicitation_callback,
        list_roots_callback=list_roots_callback,
        logging_callback=logging_callback,
        message_handler=message_handler,
        client_info=client_info,
    )
    try:
        async with session:
            await session.initialize()
            yield session
    finally:
        await endpoint.close()
