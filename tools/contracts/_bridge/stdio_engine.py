"""An engine that is a child process and speaks MCP over its standard input and output (``stdio:COMMAND``).

Such an engine does one thing at a time. While it compiles, a second child answers lookups. It is started
then, reads the state that the first has written, and is ended when the first is free again. A request is one
line, of up to 1 MiB. The child ends with the server, however the server ends. After a child has died, the
next request starts another one and registers the chains again, since the child keeps them in memory.
"""

from __future__ import annotations

import asyncio
import json

from fastrpc import Client
from fastrpc.errors import ConnectionLost, FastrpcError, InvalidAnswer, InvalidParams, RemoteError
from fastrpc.time_limit import TimeLimit

from .._errors import INVALID_REQUEST, EngineError
from .._verbs import PREFIX
from . import answers
from .connection import Refused, Unreachable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

    Registrations = Callable[[], Awaitable[list[dict[str, Any]]]]

START_SECONDS = 20.0
LONGEST_LINE = 1024 * 1024
FRAME = 1024
"""Bytes of a line besides the arguments."""
QUICK = ("chain_list", "chain_register", "artifact_get", "registry_lookup")
STOPPABLE = ("compile", "test")
"""Verbs without effect if the engine is ended while they run."""


class StdioEngine:
    """The engine that a command starts. `registrations` are the chains that it must know, as parameters of
    chain_register."""

    is_local = True

    def __init__(self, command: list[str], registrations: Registrations) -> None:
        self._command = command
        self._first = _Child(command, registrations)
        self._second: _Child | None = None
        self._told: asyncio.Future[None] | None = None
        self._registrations = registrations

    async def ask(self, verb: str, parameters: dict[str, Any], seconds: float) -> Any:
        """Return the envelope. Raises EngineError, and TimeoutError after `seconds`."""
        size = len(json.dumps(parameters, ensure_ascii=False).encode("utf-8", "surrogatepass"))
        if size > LONGEST_LINE - FRAME:
            name = max(parameters, key=lambda each: len(json.dumps(parameters[each])))
            raise EngineError(
                INVALID_REQUEST,
                f"{name}: this engine takes requests of at most 1 MiB, and this has {size} bytes",
            )
        child = self._first
        if verb in QUICK and child.is_busy:
            if self._second is None:
                self._second = _Child(self._command, self._registrations)
            child = self._second
        try:
            with TimeLimit(seconds):
                found = await child.ask(verb, parameters)
            if verb == "chain_register" and child is not self._first:
                self._told = asyncio.ensure_future(self._tell_first(parameters))
            return found
        except BaseException:
            if verb in STOPPABLE and not child.is_busy:
                await child.close()  # else it would continue to compile, and later requests would wait
            raise
        finally:
            await self._leave_second()

    async def _tell_first(self, chain: dict[str, Any]) -> None:
        """Register a chain with the first child as well, which reads the request as soon as it is free."""
        try:
            await self._first.ask("chain_register", chain)
        except EngineError:
            pass  # it has ended; the next child gets all registered chains

    async def verbs(self) -> set[str]:
        """The names of the tools that the engine lists. Raises EngineError."""
        return await self._first.verbs()

    async def close(self) -> None:
        await self._first.close()
        if self._second is not None:
            await self._second.close()

    async def _leave_second(self) -> None:
        """End the second child when the first is free: its state is that of its start."""
        second = self._second
        if second is not None and not self._first.is_busy and not second.in_flight:
            self._second = None
            await second.close()


class _Child:
    """One process of the engine."""

    def __init__(self, command: list[str], registrations: Registrations) -> None:
        self._client = Client(command, start_seconds=START_SECONDS)
        self._registrations = registrations
        self._opening = asyncio.Lock()
        self._slow = 0
        self.in_flight = 0

    @property
    def is_busy(self) -> bool:
        """Whether it does something for which a lookup would have to wait."""
        return self._slow > 0

    async def ask(self, verb: str, parameters: dict[str, Any]) -> Any:
        slow = verb not in QUICK
        self._slow += slow
        self.in_flight += 1
        try:
            await self._open()
            return await self._call(verb, parameters)
        finally:
            self._slow -= slow
            self.in_flight -= 1

    async def _open(self) -> None:
        async with self._opening:
            if not self._client.is_connected:
                await self._start()

    async def _start(self) -> None:
        try:
            await self._client.close()
            await self._client.connect()
            for chain in await self._registrations():
                await self._call("chain_register", chain)
        except FastrpcError as error:
            raise Unreachable(f"the engine cannot be started: {error}", was_sent=False) from None

    async def verbs(self) -> set[str]:
        await self._open()
        try:
            return {str(tool["name"]) for tool in await self._client.list_tools()}
        except (FastrpcError, KeyError) as error:
            raise answers.protocol_error(f"lists no tools: {error}") from None

    async def _call(self, verb: str, parameters: dict[str, Any]) -> Any:
        try:
            result = await self._client.call_tool(PREFIX + verb, parameters)
        except ConnectionLost as error:
            raise Unreachable(str(error), was_sent=True) from None
        except RemoteError as error:
            raise Refused.of_parameters(error.code, str(error.message)) from None
        except InvalidAnswer as error:
            raise answers.protocol_error(f"cannot be understood: {error}") from None
        text = result.text
        try:
            return answers.parsed(text)
        except EngineError:
            if result.is_error:
                raise Refused.of_parameters(InvalidParams.code, text) from None
            raise

    async def close(self) -> None:
        await self._client.close()
