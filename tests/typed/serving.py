"""How a server is served, what is behind it, and the client for tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Any

from typing_extensions import assert_type

from starlette.applications import Starlette
from starlette.routing import Mount
from fastrpc import FastrpcError, ProtocolError, Server
from fastrpc.transports.base import ClientConnection, Connections, Transport
from fastrpc.client import Described
from fastrpc.testing import CallResult, Client, CompletionResult, Listening, PromptResult, ReadResult

app = Server("shop")


def principal_of(token: str) -> str | None:
    return token or None


async def principal_from_far(token: str) -> str | None:
    return token or None


def serve(address: str | None) -> None:
    app.run()
    app.run(drain_seconds=2, trace="trace.log", stats=True)
    app.run(http="127.0.0.1:8000", token_file="token", workers=2, hosts=["mcp.example.com"])
    app.run(http=address, auth=None)
    app.run(transport=Socket(), drain_seconds=2)
    app.run(transport="stdio")  # error
    app.run(transport=Socket(), http="127.0.0.1:8000")  # error
    app.run(http=address, auth=None, access_log="-", access_log_format="json")
    app.run(http=address, auth=None, access_log_format="xml")  # error
    app.run(htpp="127.0.0.1:8000")  # error
    app.run(http=8000)  # error
    app.run(workers=2)  # error
    app.run(http="127.0.0.1:8000", worker=2)  # error
    app.run(http="127.0.0.1:8000", hosts="mcp.example.com")  # error
    app.run(http="127.0.0.1:8000", auth="none")  # error
    app.run("127.0.0.1:8000")  # error
    app.rnu()  # error


class Socket(Transport):
    remote = False

    async def start(self, connections: Connections) -> None:
        connection = connections.open(print, principal="ada")
        assert_type(connection, ClientConnection)
        connection.feed_data(b"{}")
        connection.feed_data("{}")  # error
        connections.open()  # error


class Startless(Transport):
    pass


async def served() -> None:
    await app.serve(Socket(), drain_seconds=2, trace="trace.log")
    await app.serve(Startless())  # error
    await app.serve(Socket)  # error
    await app.serve(Socket(), drian_seconds=2)  # error


def mounted() -> None:
    asgi = app.asgi(token="a-token-of-16-characters-or-more", hosts=["mcp.example.com"])
    life: AbstractAsyncContextManager[None] = asgi.lifespan()
    app.asgi(token=principal_of)
    app.asgi(token=principal_from_far)
    app.asgi(auth=None, max_body=1000)
    Starlette(routes=[Mount("/", app=asgi)], lifespan=asgi.lifespan)
    app.asgi(tokn="a-token-of-16-characters-or-more")  # error
    app.asgi(token=5)  # error
    app.asgi(workers=2)  # error
    app.asgi(auth=False)  # error
    asgi.lifespn()  # error
    life.enter()  # error


def behind() -> None:
    assert_type(Server.proxy(["python", "behind.py"], name="behind", cwd="/", start_seconds=5), Server)
    assert_type(Server.proxy("https://example.com/mcp", token="secret", page_size=5), Server)
    Server.proxy(["python", "behind.py"], token="secret")  # error
    Server.proxy("https://example.com/mcp", cwd="/")  # error
    Server.proxy("https://example.com/mcp", tokn="secret")  # error
    Server.proxy(5)  # error


async def tested() -> None:
    async with Client(app, version="2025-11-25", on_elicit={"name": "Ada"}, log_level="debug") as client:
        assert_type(client, Client)
        result = await client.call("word_count", text="two words", on_progress=print)
        assert_type(result, CallResult)
        assert_type(result.text, str)
        assert_type(result.is_error, bool)
        result.txt  # error
        assert_type(await client.tools(), "list[Described]")
        assert_type(await client.read("docs://guide"), ReadResult)
        assert_type(await client.prompt("review", code="a"), PromptResult)
        assert_type(await client.complete("review", "language", "py"), CompletionResult)
        assert_type(client.listen(tools=True), Listening)
        await client.set_level("warning")
        await client.set_level("warn")  # error
        await client.call()  # error
        client.set_roots(["file:///tmp", {"uri": "file:///home", "name": "home"}])
        client.set_roots([{"url": "file:///tmp"}])  # error


async def answers(params: dict[str, Any]) -> bool:
    return True


def clients() -> AsyncIterator[Client]:
    Client(app, on_elicit=lambda params: {"name": params["message"]})
    Client(app, on_elicit=answers, on_sample="said", roots=["file:///tmp"])
    Client(app, on_elicit="accepted")  # error
    Client(app, on_sample=5)  # error
    Client(app, on_ellicit=None)  # error
    Client("shop")  # error
    raise NotImplementedError


def errors(error: FastrpcError) -> None:
    if isinstance(error, ProtocolError):
        assert_type(error.code, int)
    error.code  # error
    ProtocolError()  # error
