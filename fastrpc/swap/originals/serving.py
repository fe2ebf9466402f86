"""Serves a low-level server of an original: `change_server` replaces the ``run`` of its class.

``Server.run`` over the streams of ``stdio_server`` enters the server's lifespan and has fastrpc's transport
serve `ServedOriginal` over standard input and output. Any other use of ``run`` is the original's own.
"""

from __future__ import annotations

from fastrpc.compat.lowlevel.methods import ListedTool, ListedToolsRuntime, ToolChecks
from fastrpc.engine.visibility import ServerDescription
from fastrpc.server import Server as PlainServer
from fastrpc.swap.originals.methods import OriginalMethods
from fastrpc.swap.originals.stdio import LateInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

    from fastrpc.swap.originals.interfaces import Original

    Call = Callable[[dict[str, Any], Any], Awaitable[Any]]


def change_server(module: Any) -> bool:
    """Replace ``run`` of the original's class `Server`; return whether that is of a known release."""
    from fastrpc.swap.originals import sdk1, sdk2

    if sdk1.is_known(module):
        sdk1.change_context(module)
        make: Any = sdk1.Sdk1Server
    elif sdk2.is_known(module):
        make = sdk2.Sdk2Server
    else:
        return False
    original_run = module.Server.run

    async def run(
        self: Any,
        read_stream: Any,
        write_stream: Any,
        initialization_options: Any = None,
        *values: Any,
        **options: Any,
    ) -> None:
        given = any(values) or any(options.values())  # raise_exceptions, stateless
        if isinstance(read_stream, LateInput) and not given and make.is_served(self):
            await serve(self, make(self, initialization_options), read_stream)
        else:
            await original_run(self, read_stream, write_stream, initialization_options, *values, **options)

    run.__doc__ = original_run.__doc__
    module.Server.run = run
    return True


async def serve(server: Any, original: Original, read_stream: LateInput) -> None:
    """Serve one client over standard input and output, within the lifespan of the original's server."""
    from fastrpc.compat.stdio import serve_stdio

    read_stream.streams.is_taken = True
    async with server.lifespan(server) as state:
        original.state = state
        served = ServedOriginal(original)
        original.find_plain_tools()
        await serve_stdio(served)


class ServedOriginal(PlainServer):
    """The server that the engine serves in the place of an original."""

    def __init__(self, original: Original) -> None:
        self.original = original
        super().__init__(original.info["name"], version=original.info["version"])
        self.instructions = original.instructions
        original.add_tools = self._add_tools

    @property
    def info(self) -> dict[str, Any]:
        return self.original.info

    @property
    def runtime(self) -> OriginalRuntime:
        runtime: Any = self._runtime
        if runtime is None:
            runtime = self._runtime = OriginalRuntime(self, OriginalMethods(self.original))
            self._set_around(runtime)
        found: OriginalRuntime = runtime
        return found

    def _add_tools(self, tools: list[tuple[str, Call]]) -> None:
        """Have the compiled connection call functions for tools, in the place of those of the same names."""
        added = [ListedTool(call, {"name": name}, ToolChecks({}, False)) for name, call in tools]
        self.original.planned.update(name for name, _ in tools)
        self.runtime.replace_tools([name for name, _ in tools if name in self.registries.tools], added)


class OriginalDescription(ServerDescription):
    """What a server declares is what its original does."""

    def capabilities(self, version: str) -> dict[str, Any]:
        original: Original = self._state.server.original
        return original.capabilities(version)

    def info_of(self, version: str) -> dict[str, Any]:
        return self.info


class OriginalRuntime(ListedToolsRuntime):
    """The runtime of a `ServedOriginal`."""

    description_type = OriginalDescription
