"""One request to a server in memory, in whatever version: for tests that need no longer conversation."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fastrpc import Server
from fastrpc.testing import Client, RemoteError
from fastrpc.versions import MODERN, VERSIONS

every_version = pytest.mark.parametrize("version", VERSIONS)


def with_client(app: Server, conversation: Any, version: str = MODERN) -> Any:
    """Run a coroutine function with a client of `app`."""

    async def run() -> Any:
        async with Client(app, version=version) as client:
            return await conversation(client)

    return asyncio.run(asyncio.wait_for(run(), 30))


def ask(app: Server, method: str, params: dict[str, Any] | None = None, version: str = MODERN) -> Any:
    """Return the result of one request."""
    return with_client(app, lambda client: client.request(method, params), version)


def read(app: Server, uri: str, version: str = MODERN) -> list[dict[str, Any]]:
    contents: list[dict[str, Any]] = ask(app, "resources/read", {"uri": uri}, version)["contents"]
    return contents


def refusal(app: Server, method: str, params: dict[str, Any], version: str = MODERN) -> RemoteError:
    with pytest.raises(RemoteError) as caught:
        ask(app, method, params, version)
    return caught.value
