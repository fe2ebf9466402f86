"""A client of a real server whose contracts toolset is bridged to a stand-in engine, in a folder of its own.

    async with HttpEngine() as engine, Bridged(tmp_path, engine.url) as session:
        assert (await session.data("chain_list"))["chains"]

Further settings of the toolset are named by what comes behind FASTRPC_CONTRACTS: `token`, `engine_seconds`.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any

from fastrpc import Client
from support.standin_engine import CHAIN

SERVER = [sys.executable, "-m", "fastrpc", "serve", "fastrpc.tools.contracts"]
PREFIX = "FASTRPC_CONTRACTS_"
SECONDS = 60
ADDRESS = "0x" + "11" * 20


def in_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test's coroutine in an event loop of its own, within a time."""

    @wraps(test)
    def run(**given: Any) -> None:
        asyncio.run(asyncio.wait_for(test(**given), SECONDS))

    return run


def environment(folder: Any, engine: str, **settings: str) -> dict[str, str]:
    """The variables of a server that is bridged to an engine, without those of this process."""
    ours = {f"{PREFIX}{name.upper()}": value for name, value in settings.items()}
    return {"FASTRPC_STATE_DIR": os.path.join(folder, "state"), f"{PREFIX}ENGINE": engine, **ours}


class Bridged:
    """A client with a server of its own; an empty `engine` is named by the `options` alone."""

    def __init__(self, folder: Any, engine: str, *options: str, **settings: str) -> None:
        env = {**os.environ, **environment(folder, engine, **settings)}
        self.client = Client([*SERVER, *options], cwd=str(folder), env=env, timeout_seconds=SECONDS)

    async def __aenter__(self) -> Bridged:
        await self.client.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self.client.__aexit__(*error)

    @property
    def pid(self) -> int:
        """The server's process."""
        process: Any = self.client._transport._process  # type: ignore[union-attr]
        return int(process.pid)

    def kill(self) -> None:
        """End the server as nothing else does."""
        os.kill(self.pid, signal.SIGKILL)

    async def envelope(self, verb: str, **arguments: Any) -> dict[str, Any]:
        """What a call returns, whether it has failed or not, in the form that it must have."""
        result = await self.client.call_tool(f"tachyon_{verb}", arguments)
        found: dict[str, Any] = json.loads(result.text)
        assert found["ok"] is not result.is_error
        if result.is_error:
            assert (found["tool"], set(found)) == (f"tachyon_{verb}", {"ok", "tool", "error"})
            assert {"code", "message", "retry"} <= set(found["error"])
        else:
            assert found == result.structured
            assert set(found) == {"ok", "data"}
        return found

    async def data(self, verb: str, **arguments: Any) -> dict[str, Any]:
        found = await self.envelope(verb, **arguments)
        assert found["ok"], found
        data: dict[str, Any] = found["data"]
        return data

    async def error(self, verb: str, **arguments: Any) -> dict[str, Any]:
        found = await self.envelope(verb, **arguments)
        assert not found["ok"], found
        error: dict[str, Any] = found["error"]
        return error

    async def deploy(self, key: str = "k", **other: Any) -> dict[str, Any]:
        """The envelope of a deployment of Counter, which is valid but for `other`."""
        return await self.envelope("deploy", **{**deployment(key), **other})


def deployment(key: str = "k") -> dict[str, Any]:
    """Valid arguments of tachyon_deploy."""
    return {"idempotency_key": key, "chain_id": CHAIN, "contract": "Counter", "constructor_args": [7]}
