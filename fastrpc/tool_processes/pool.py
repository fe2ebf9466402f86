"""`Processes`: the processes that run tools for this server, and which one makes a call.

A process runs one call at a time, of the tools of one module with the same limit of memory. So many run at
once; further calls wait in order. A call that is cancelled, or whose time limit has passed, ends its process
and all that this has started; the next call starts another. In event loops alone.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys

from fastrpc import diagnostics
from fastrpc.client.asynchronous import AsyncClient
from fastrpc.content import Block, ToolResult
from fastrpc.engine.results import WRAP_MARK, takes_blocks
from fastrpc.errors import ClientError, ConnectionLost, InvalidParams, RemoteError, ToolError
from fastrpc.json_encoding import UnencodableResult, to_json
from fastrpc.protocol.versions import SERVER_KEY, STATELESS
from fastrpc.tool_processes.wire import RAISED, wire_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc.context import Context
    from fastrpc.definitions.tool import Tool

    Home = tuple[str, str, int]
    """How a process finds its module, ``module`` or ``file`` and which one, and its limit of memory."""

MOST = max(4, os.cpu_count() or 1)
"""Processes of one event loop."""
IDLE_SECONDS = 60.0
START_SECONDS = 60.0
FOREVER_SECONDS = 1e8
"""The server's own time limits apply (`timeout_seconds`)."""
START = """\
import sys
sys.path[:] = sys.argv.pop(1).split(":")
from fastrpc.tool_processes.child import main
main()"""
# The server's own path: `python -m` would look for modules in the working directory first.


class RaisedThere(Exception):
    """The traceback of an exception that a process has reported."""

    def __init__(self, trace: str) -> None:
        super().__init__(trace)
        self.trace = trace

    def __str__(self) -> str:
        return f"\n{self.trace}"


class ProcessResult(ToolResult):
    """The result that a process has made; it has checked it, too."""

    __slots__ = ()

    is_checked = False


class Processes:
    """The processes of this server, by event loop: the `fastrpc.definitions.offloaded.Runner`."""

    def __init__(self) -> None:
        self._pools: dict[asyncio.AbstractEventLoop, ToolPool] = {}

    async def call(self, tool: Tool, arguments: dict[str, Any], context: Context | None) -> Any:
        """Call a tool's function; return its result. Raises ToolError, and the exceptions of the function
        under the names of their classes."""
        loop = asyncio.get_running_loop()
        pool = self._pools.get(loop)
        if pool is None:
            self._pools = {each: known for each, known in self._pools.items() if not each.is_closed()}
            pool = self._pools[loop] = ToolPool()
        return await pool.call(tool, arguments, context)

    async def leave(self) -> None:
        """End the processes that wait for calls of this event loop."""
        pool = self._pools.pop(asyncio.get_running_loop(), None)
        if pool is not None:
            await pool.leave()


class ToolPool:
    """The processes of one event loop. `idle`: those that wait for a call, the longest first."""

    def __init__(self) -> None:
        self.idle: list[ToolProcess] = []
        self._busy = 0
        self._places = asyncio.Semaphore(MOST)
        self._ending: set[asyncio.Task[None]] = set()

    async def call(self, tool: Tool, arguments: dict[str, Any], context: Context | None) -> Any:
        function: Any = tool.function
        name = wire_name(function.__qualname__, tool.name)
        try:
            to_json(arguments)
        except (UnencodableResult, UnicodeEncodeError) as error:
            raise ToolError(f"{tool.name}: an argument cannot be sent to a process: {error}") from None
        async with self._places:
            self._busy += 1
            process: ToolProcess | None = None
            try:
                process = self._take(home_of(tool))
                found = await process.call(name, arguments, context)
            except asyncio.CancelledError:
                if process is not None and not process.started.done():  # it will be ready for the next call
                    self._put_back(process)
                    process = None
                raise
            except ConnectionLost as error:
                raise ToolError(f"{tool.name}: {_why(error, process)}") from None
            except RemoteError as error:
                raise ToolError(f"{tool.name}: {_why_not_called(error, tool)}") from None
            except ClientError as error:
                raise ToolError(f"{tool.name}: its process did not answer as expected: {error}") from None
            else:
                if not found.ends_process:
                    self._put_back(process)
                    process = None
            finally:
                self._busy -= 1
                if process is not None:
                    self._end(process)
        return found.value(tool)

    def _take(self, home: Home) -> ToolProcess:
        """Return an idle process for a module, or a new one, for which another may have to end."""
        for process in reversed(self.idle):
            if process.home == home:
                self.idle.remove(process)
                if process.is_connected or not process.started.done():
                    return process
                self._end(process)
        while self.idle and len(self.idle) + self._busy > MOST:
            self._end(self.idle.pop(0))
        return ToolProcess(home)

    def _put_back(self, process: ToolProcess) -> None:
        process.uses += 1
        self.idle.append(process)
        asyncio.get_running_loop().call_later(IDLE_SECONDS, self._end_idle, process, process.uses)

    def _end_idle(self, process: ToolProcess, uses: int) -> None:
        if process in self.idle and process.uses == uses:
            self.idle.remove(process)
            self._end(process)

    def _end(self, process: ToolProcess) -> None:
        task = asyncio.ensure_future(process.end())
        self._ending.add(task)  # the loop itself holds tasks only weakly
        task.add_done_callback(self._ending.discard)

    async def leave(self) -> None:
        """End the idle processes, and wait for those that are ending."""
        while self.idle:
            self._end(self.idle.pop())
        if self._ending:
            await asyncio.wait(list(self._ending))


class Found:
    """What a process has answered."""

    def __init__(self, result: dict[str, Any]) -> None:
        self._result = result
        meta = dict(result.get("_meta") or {})
        meta.pop(SERVER_KEY, None)
        self._raised: list[Any] | None = meta.pop(RAISED, None)
        self._meta = meta
        self.ends_process = self._raised is not None and bool(self._raised[4])

    def value(self, tool: Tool) -> Any:
        """Return the value of the tool's function as JSON has it, or its result, where that is more than a
        value. Raises what the function has raised: ToolError, or an exception with the same name."""
        if self._raised is None:
            content: list[Any] = self._result["content"]
            structured: Any = self._result.get("structuredContent")
            if self._meta == WRAP_MARK and not takes_blocks(tool):
                return structured["result"]
            found = ProcessResult(
                [Block(block) for block in content], structured=structured, is_error=self._result["isError"]
            )
            found.meta = self._meta or None
            return found
        kind, text, refused, trace, _ = self._raised
        if refused:
            raise ToolError(text)
        raise type(kind, (Exception,), {})(text) from RaisedThere(trace)


class ToolProcess(AsyncClient):
    """A process that serves the tools of a module."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.uses = 0
        self._context: Context | None = None
        kind, place, memory = home
        super().__init__(
            [sys.executable, "-c", START, ":".join(sys.path), kind, place, str(memory)],
            version=STATELESS,
            timeout_seconds=FOREVER_SECONDS,
            max_seconds=FOREVER_SECONDS,
            start_seconds=START_SECONDS,
            on_log=self._logged,
            log_level="debug",
        )
        self.started = asyncio.ensure_future(self.connect())

    async def call(self, name: str, arguments: dict[str, Any], context: Context | None) -> Found:
        """Make a call. Raises ClientError."""
        await asyncio.shield(self.started)
        self._context = context
        wants_progress = context is not None and context.wants_progress
        params = {"name": name, "arguments": arguments}
        try:
            reports = self._reported if wants_progress else None
            return Found(await self.request("tools/call", params, on_progress=reports))
        finally:
            self._context = None

    def _logged(self, params: dict[str, Any]) -> None:
        if self._context is not None:
            self._context.log(params.get("data"), params.get("level", "info"), params.get("logger"))

    def _reported(self, params: dict[str, Any]) -> None:
        if self._context is not None:
            self._context.progress(params["progress"], params.get("total"), params.get("message"))

    async def end(self) -> None:
        """End the process and all that it has started, now."""
        if not self.started.done():
            self.started.cancel()
        await asyncio.wait([self.started])
        if not self.started.cancelled():
            self.started.exception()  # it was reported, or concerns no call
        process = getattr(self._transport, "process", None)
        if process is not None:
            process.end("its call has ended")
        try:
            await self.close()
        except ClientError as error:
            diagnostics.write("warning", f"a process for tools could not be closed: {error}")


def home_of(tool: Tool) -> Home:
    """Return how a process finds the module of a tool, and its limit of memory."""
    module = sys.modules[tool.function.__module__]
    spec = getattr(module, "__spec__", None)
    if spec is not None:
        return "module", spec.name, tool.max_memory or 0
    return "file", os.path.abspath(str(module.__file__)), tool.max_memory or 0


def _why_not_called(error: RemoteError, tool: Tool) -> str:
    """Return why a process has refused a call."""
    if error.code != InvalidParams.code:
        return f"its process refused the call: {error}"
    module = tool.function.__module__
    return f"its process has no such tool, which the module {module} must define when it is loaded"


def _why(error: ConnectionLost, process: ToolProcess | None) -> str:
    """Return why a call has no answer: its process has ended."""
    if process is None or process.started.exception() is not None:
        return "its process cannot be started; the server's log says why"
    code = error.exit_code
    if code is None:
        return "its process has ended; the next call starts another"
    try:
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
    except ValueError:
        how = f"was ended by signal {-code}"
    return f"its process {how} during the call; the next call starts another"
