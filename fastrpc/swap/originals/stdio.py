"""Takes the place of ``mcp.server.stdio.stdio_server``: its streams are opened when something reads or writes
them.

``Server.run`` as `fastrpc.swap.originals.serving` changes it does neither: it has fastrpc read standard input
and write standard output. For any other reader the streams are those of the original, opened by its own
function.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def change_stdio(module: Any) -> bool:
    """Replace ``stdio_server`` in the original's module; return whether it has one."""
    original = getattr(module, "stdio_server", None)
    if original is None:
        return False

    def stdio_server(*files: Any, **named: Any) -> Any:
        given = [file for file in (*files, *named.values()) if file is not None]
        if given or not runs_asyncio():
            return original(*files, **named)
        return LateStreams(original)

    stdio_server.__doc__ = original.__doc__
    stdio_server.__wrapped__ = original  # type: ignore[attr-defined]
    module.stdio_server = stdio_server
    return True


def runs_asyncio() -> bool:
    """Whether the running event loop is asyncio's."""
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class LateStreams:
    """The context manager that yields the two streams."""

    def __init__(self, original: Any) -> None:
        self.original = original
        self.is_taken = False
        """Whether fastrpc serves standard input and output: from then on nothing else may open them."""
        self._holder: Any = None
        self._end: Any = None

    async def __aenter__(self) -> tuple[LateInput, LateOutput]:
        return LateInput(self), LateOutput(self)

    async def __aexit__(self, *exception: object) -> None:
        if self._holder is not None:
            self._end.set()
            await self._holder

    async def opened(self) -> Any:
        """Return the original's two streams; the first call opens them. Raises RuntimeError if fastrpc serves
        standard input."""
        import asyncio

        if self.is_taken:
            raise RuntimeError(
                "fastrpc reads standard input: the streams of stdio_server cannot be read, too"
            )
        if self._holder is None:
            self._end = asyncio.Event()
            self._streams: Any = asyncio.get_running_loop().create_future()
            self._holder = asyncio.ensure_future(self._hold())
        return await asyncio.shield(self._streams)

    async def _hold(self) -> None:
        """Keep the original's streams open, in one task: its task group must be left where it was entered."""
        async with self.original() as streams:
            self._streams.set_result(streams)
            await self._end.wait()
            for stream in streams:
                await stream.aclose()


class _LateStream:
    def __init__(self, streams: LateStreams, index: int) -> None:
        self.streams = streams
        self._index = index

    async def _stream(self) -> Any:
        return (await self.streams.opened())[self._index]

    async def __aenter__(self) -> Any:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the stream, if it has been opened."""
        if self.streams._holder is not None:
            await (await self._stream()).aclose()


class LateInput(_LateStream):
    """The stream of messages from the client."""

    def __init__(self, streams: LateStreams) -> None:
        super().__init__(streams, 0)

    async def receive(self) -> Any:
        """Return the next message, as the original's stream does."""
        return await (await self._stream()).receive()

    def __aiter__(self) -> LateInput:
        return self

    async def __anext__(self) -> Any:
        return await (await self._stream()).__anext__()


class LateOutput(_LateStream):
    """The stream of messages to the client."""

    def __init__(self, streams: LateStreams) -> None:
        super().__init__(streams, 1)

    async def send(self, message: Any) -> None:
        """Send a message, as the original's stream does."""
        await (await self._stream()).send(message)
