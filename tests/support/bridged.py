"""A client of a real server whose contracts toolset is bridged to a stand-in engine, in a separate folder.

    @in_loop
    async def test(tmp_path):
        async with HttpEngine() as engine, Bridged(tmp_path, engine.url) as session:
            assert (await session.data("chain_list"))["chains"]

    @on_stage                       # the fixture `stage` of the file: both are there, for all of its tests
    async def test(stage):
        await stage.session.data("chain_list")

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
from support.standin_engine import CHAIN, COUNTER_SOURCE
from support.standin_http import HttpEngine

SERVER = [sys.executable, "-m", "fastrpc", "serve", "fastrpc.tools.contracts"]
PREFIX = "FASTRPC_CONTRACTS_"
SECONDS = 60
ADDRESS = "0x" + "11" * 20
TOKEN = "token-0123456789-abcdef"
SOURCES = {"src/Counter.sol": COUNTER_SOURCE}
READS: dict[str, dict[str, Any]] = {
    "chain_list": {},
    "artifact_get": {"name": "Counter"},
    "registry_lookup": {"idempotency_key": "k", "chain_id": CHAIN},
    "simulate": {"to": ADDRESS, "chain_id": CHAIN},
    "call": {"to": ADDRESS, "chain_id": CHAIN, "data": "0x3fa4f245", "simulate_only": True},
}
"""Calls that only read, and their arguments."""


def in_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test's coroutine in a separate event loop, within a time."""

    @wraps(test)
    def run(**given: Any) -> None:
        asyncio.run(asyncio.wait_for(test(**given), SECONDS))

    return run


def environment(folder: Any, engine: str, **settings: str) -> dict[str, str]:
    """The variables of a server that is bridged to an engine, without those of this process."""
    ours = {f"{PREFIX}{name.upper()}": value for name, value in settings.items()}
    return {"FASTRPC_STATE_DIR": os.path.join(folder, "state"), f"{PREFIX}ENGINE": engine, **ours}


class Session:
    """What tests call through a client of the toolset."""

    def __init__(self, client: Client) -> None:
        self.client = client

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


class Bridged(Session):
    """A session with a separate server; an empty `engine` is named by the `options` alone."""

    def __init__(self, folder: Any, engine: str, *options: str, **settings: str) -> None:
        env = {**os.environ, **environment(folder, engine, **settings)}
        command = [*SERVER, *options]
        super().__init__(Client(command, cwd=str(folder), env=env, timeout_seconds=SECONDS))

    async def __aenter__(self) -> Bridged:
        await self.client.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self.client.close()

    @property
    def pid(self) -> int:
        """The server's process."""
        process: Any = self.client._transport.process  # type: ignore[union-attr]
        return int(process.pid)

    def kill(self) -> None:
        """End the server as nothing else does."""
        os.kill(self.pid, signal.SIGKILL)


def deployment(key: str = "k") -> dict[str, Any]:
    """Valid arguments of tachyon_deploy."""
    return {"idempotency_key": key, "chain_id": CHAIN, "contract": "Counter", "constructor_args": [7]}


class Stage:
    """A stand-in and a server that is bridged to it, for tests which leave no state behind that others see.

    `key` is an idempotency key that no test has used yet.
    """

    def __init__(self, folder: Any) -> None:
        self.engine = HttpEngine()
        self.key = ""
        self._folder = folder
        self._keys = 0
        self._loop = asyncio.new_event_loop()

    def __enter__(self) -> Stage:
        self._loop.run_until_complete(self.engine.__aenter__())
        self.session = Bridged(self._folder, self.engine.url)
        self._loop.run_until_complete(self.session.__aenter__())
        return self

    def __exit__(self, *error: Any) -> None:
        self._loop.run_until_complete(self.session.client.close())
        self._loop.run_until_complete(self.engine.__aexit__())
        self._loop.close()

    def run(self, test: Coroutine[Any, Any, None]) -> None:
        """Run a test, with an engine that nothing has been asked of and that answers all."""
        self._loop.run_until_complete(asyncio.wait_for(self._prepared(test), SECONDS))

    async def _prepared(self, test: Coroutine[Any, Any, None]) -> None:
        self._keys += 1
        self.key = f"key-{self._keys}"
        self.engine.forget()
        # A test that has failed may have left the engine in disrepute, for some seconds.
        while not (await self.session.envelope("chain_list"))["ok"]:
            await asyncio.sleep(0.2)
        self.engine.forget()
        await test

    async def deploy(self, suffix: str = "", **other: Any) -> dict[str, Any]:
        """The envelope of a deployment with the test's key, or one of its own that ends so."""
        return await self.session.deploy(self.key + suffix, **other)


def on_stage(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test's coroutine on the stage of its file."""

    @wraps(test)
    def run(stage: Stage, **given: Any) -> None:
        stage.run(test(stage=stage, **given))

    return run
