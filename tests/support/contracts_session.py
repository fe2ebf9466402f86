"""A client of a real server with the contracts toolset and its embedded engine, in a separate project.

    @in_loop
    async def test(tmp_path):
        async with Session(tmp_path) as session:
            await session.data("compile", sources={"src/Counter.sol": COUNTER})

    @on_stage                       # the fixture `stage` of the file: a server and its chain, for all tests
    async def test(stage):
        await stage.deploy()

Linux only where it looks for programs: it reads /proc.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable, Coroutine
from functools import wraps
from pathlib import Path
from typing import Any

from fastrpc import Client

SERVER = [sys.executable, "-m", "fastrpc", "serve", "fastrpc.tools.contracts"]
SECONDS = 100


class Session:
    """A client of a separate server, in a project folder. `variables` are added to its environment.

    PATH ends with a folder that is not there: it marks the programs to which no other variable is given."""

    def __init__(self, folder: Path, server: list[str] | None = None, **variables: str) -> None:
        env = {**os.environ, "FASTRPC_STATE_DIR": str(folder / "state"), **variables}
        env["PATH"] += f":{folder}/mark"
        self.client = Client(server or SERVER, cwd=str(folder), env=env)

    async def __aenter__(self) -> Session:
        await self.client.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self.client.__aexit__(*error)

    @property
    def pid(self) -> int:
        """The server's."""
        process: Any = self.client._transport.process  # type: ignore[union-attr]
        assert process.pid > 0
        found: int = process.pid
        return found

    async def data(self, verb: str, **arguments: Any) -> dict[str, Any]:
        """What a verb that succeeds returns."""
        result = await self.client.call_tool(f"tachyon_{verb}", arguments)
        assert not result.is_error, result.text
        envelope = json.loads(result.text)
        assert envelope == result.structured
        assert envelope["ok"] is True
        found: dict[str, Any] = envelope["data"]
        return found

    async def error(self, verb: str, **arguments: Any) -> dict[str, Any]:
        """How a verb that fails does so."""
        result = await self.client.call_tool(f"tachyon_{verb}", arguments)
        assert result.is_error, result.text
        envelope = json.loads(result.text)
        assert (envelope["ok"], envelope["tool"]) == (False, f"tachyon_{verb}")
        found: dict[str, Any] = envelope["error"]
        return found

    async def deploy(self, key: str, value: Any = 7, **more: Any) -> dict[str, Any]:
        """Deploy Counter, whose constructor takes one value, or another contract to the local chain."""
        given = {"contract": "Counter", "constructor_args": [value], **more}
        return await self.data("deploy", idempotency_key=key, chain_id="local", **given)


class Stage:
    """A server with contracts that were compiled, for tests which leave no state behind that others see.

    `key` is an idempotency key that no test has used yet.
    """

    def __init__(self, folder: Path, sources: dict[str, str]) -> None:
        self.folder = folder
        self.key = ""
        self._sources = sources
        self._keys = 0
        self._loop = asyncio.new_event_loop()

    def __enter__(self) -> Stage:
        self.session = Session(self.folder)
        self.run(self.session.__aenter__())
        self.run(self.session.data("compile", sources=self._sources))
        return self

    def __exit__(self, *error: Any) -> None:
        self.run(self.session.__aexit__(*error))
        self._loop.close()

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        self._keys += 1
        self.key = f"key-{self._keys}"
        self._loop.run_until_complete(asyncio.wait_for(coroutine, SECONDS))

    async def deploy(self, suffix: str = "", value: Any = 7, **more: Any) -> dict[str, Any]:
        """Deploy Counter, or another contract, with the test's key, or one of its own that ends so."""
        return await self.session.deploy(self.key + suffix, value, **more)


def on_stage(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test's coroutine on the stage of its file."""

    @wraps(test)
    def run(stage: Stage, **given: Any) -> None:
        stage.run(test(stage=stage, **given))

    return run


def in_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test's coroutine in a separate event loop, within a time."""

    @wraps(test)
    def run(**given: Any) -> None:
        asyncio.run(asyncio.wait_for(test(**given), SECONDS))

    return run


def processes_in(folder: Path) -> list[int]:
    """The processes that were started for a folder: its path is their working directory, or in their
    variables."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        if int(entry) == os.getpid():
            continue
        try:
            place = os.readlink(f"/proc/{entry}/cwd")
            with open(f"/proc/{entry}/environ", "rb") as file:
                variables = file.read()
        except OSError:
            continue
        if place.startswith(str(folder)) or os.fsencode(folder) in variables:
            found.append(int(entry))
    return found
