"""A conversation with a server through the client in memory, or one request to it, in whatever version."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fastrpc import Server
from fastrpc.testing import Client, RemoteError
from fastrpc.versions import LATEST_LEGACY, MODERN, VERSIONS

SECONDS = 60.0  # a server behind may be a process that has to be started

every_version = pytest.mark.parametrize("version", VERSIONS)


def with_client(app: Server, conversation: Any, version: str = LATEST_LEGACY, **options: Any) -> Any:
    """Run a coroutine function with a client of `app`, and return what it returns."""

    async def run() -> Any:
        async with Client(app, version=version, **options) as client:
            return await conversation(client)

    return asyncio.run(asyncio.wait_for(run(), SECONDS))


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
