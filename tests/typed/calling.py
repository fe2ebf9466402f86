"""A client of servers as users write it; a checker must accept it, but for the lines that say error."""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import assert_type

from fastrpc import CallResult, Client, ClientError, ConnectionLost, RemoteError, Server
from fastrpc.client import Described, PromptResult, ReadResult, SyncClient

app = Server("shop")


@dataclass
class Price:
    amount: int


async def in_a_loop() -> None:
    async with Client(["python", "server.py"], cwd="/tmp", env={"A": "b"}, timeout_seconds=5.0) as client:
        assert_type(client, Client)
        assert_type(await client.call_tool("price", {"name": "a"}), CallResult)
        assert_type(await client.call_tool("price", {"name": "a"}, as_type=Price), Price)
        assert_type(await client.list_tools(), "list[Described]")
        async for tool in client.iter_tools():
            assert_type(tool, Described)
        assert_type(await client.read_resource("docs://guide"), ReadResult)
        assert_type(await client.get_prompt("review", {"code": "a"}), PromptResult)
        await client.call_tool("price", name="a")  # error
        await client.call_tol("price")  # error


def without_a_loop() -> None:
    with Client.sync(app, version="2026-07-28", roots=["file:///tmp"], log_level="info") as client:
        assert_type(client, SyncClient)
        assert_type(client.call_tool("price"), CallResult)
        assert_type(client.call_tool("price", as_type=Price), Price)
        for tool in client.iter_tools():
            assert_type(tool, Described)
    Client.sync(app, tokn="secret")  # error
    Client(app, log_level="warn")  # error


def errors() -> None:
    try:
        without_a_loop()
    except RemoteError as error:
        assert_type(error.code, int)
    except ConnectionLost as error:
        assert_type(error.exit_code, "int | None")
    except ClientError:
        pass
