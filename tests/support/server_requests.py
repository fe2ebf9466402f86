"""Clients for the tests of questions: one that answers by itself, one that is made to, and their servers."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from typing import Any

from fastrpc import Context, Server
from fastrpc._core.client_stream import ClientStream
from fastrpc.client.session import Session
from fastrpc.client_requests.pending import requests_of
from fastrpc.protocol.versions import STATELESS
from fastrpc.testing import Client
from support.in_memory import with_client
from support.protocol import EVERYTHING


@dataclasses.dataclass
class Booking:
    name: str
    guests: int = 2


def text_of(app: Server, tool: str, **options: Any) -> str:
    async def conversation(client: Client) -> str:
        return (await client.call(tool)).text

    return str(with_client(app, conversation, **options))


def one_question(ask: Any) -> Server:
    """Return a server whose tool `ask` shows what a question came to."""
    app = Server("t")

    async def asks(ctx: Context) -> str:
        return repr(await ask(ctx))

    app.add_tool(asks, name="ask")
    return app


class Raw(Client):
    """A client that answers nothing by itself: what is asked of it waits in `asked`."""

    def __init__(self, server: Server, **options: Any) -> None:
        super().__init__(server, capabilities=EVERYTHING, **options)
        self.asked: list[dict[str, Any]] = []

    def _new_session(self, stream: ClientStream) -> Session:
        session = super()._new_session(stream)
        stream.on_request = self.asked.append
        return session

    def answer(self, id: Any, **members: Any) -> None:
        self._session.stream.send(json.dumps({"jsonrpc": "2.0", "id": id, **members}).encode())

    async def question(self, count: int = 1) -> dict[str, Any]:
        while len(self.asked) < count:
            await asyncio.sleep(0)
        return self.asked[count - 1]


def with_raw(app: Server, conversation: Any, **options: Any) -> Any:
    async def run() -> Any:
        async with Raw(app, **options) as client:
            return await conversation(client)

    return asyncio.run(asyncio.wait_for(run(), 30))


def questions_of(app: Server) -> Any:
    """Return the table of the server's only connection."""
    (dispatcher,) = app.runtime.dispatchers
    return requests_of(dispatcher.session)


def cancelled(client: Client) -> list[Any]:
    return [
        m["params"]["requestId"] for m in client.notifications if m["method"] == "notifications/cancelled"
    ]


async def retry(client: Client, result: dict[str, Any], responses: Any, **params: Any) -> dict[str, Any]:
    """Send the tool's call again with answers and the state of a result."""
    state = {"requestState": result["requestState"]} if result else {}
    return await client.request("tools/call", {"name": "ask", "inputResponses": responses, **state, **params})


def accepted(value: Any) -> dict[str, Any]:
    return {"action": "accept", "content": {"value": value}}


def with_stateless_client(app: Server, conversation: Any, **options: Any) -> Any:
    return with_raw(app, conversation, version=STATELESS, **options)
