"""A server that was written for the official SDK, and one for FastMCP: strict programs stay strict."""

# ruff: noqa: B008 - a dependency is the default of its parameter

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from typing_extensions import assert_type

from fastrpc.compat import fastmcp as fm
from fastrpc.compat.fastmcp import CurrentContext, Depends, get_context, get_http_headers
from fastrpc.compat.mcp import Context, Elicit, FastMCP, MCPServer, McpError
from fastrpc.compat.mcp import Resolv  # error


class ServerSession:
    """Of the SDK."""


class Database:
    def query(self) -> str:
        return ""


@dataclass
class AppContext:
    db: Database


@asynccontextmanager
async def app_lifespan(server: FastMCP[AppContext]) -> AsyncGenerator[AppContext, None]:
    yield AppContext(Database())


mcp = FastMCP[AppContext]("My App", lifespan=app_lifespan)
bare: FastMCP = FastMCP("bare")
second = MCPServer[AppContext]("second")


@mcp.tool()
def query(ctx: Context[ServerSession, AppContext]) -> str:
    assert_type(ctx.request_context.lifespan_context, AppContext)
    return ctx.request_context.lifespan_context.db.query()


@mcp.tool()
async def third(ctx: Context[ServerSession, AppContext, Any]) -> str:
    await ctx.info("hello")
    await ctx.report_progress(1, 2, "half")
    await ctx.session.send_resource_list_changed()
    return ctx.lifespan_context.db.query()


@second.tool()
def one(ctx: Context[AppContext]) -> str:
    return ctx.request_context.lifespan_context.db.query()


@bare.tool()
def none(ctx: Context, x: int) -> str:
    ctx.nothing  # error
    return f"{x} {ctx.request_id}"


def ask(name: str) -> Elicit[AppContext] | str:
    return Elicit("who?", AppContext) if name else name


server = fm.FastMCP("demo")


async def connect() -> Database:
    return Database()


@server.tool
async def depends(x: int, db: Database = Depends(connect), ctx: fm.Context = CurrentContext()) -> str:
    assert_type(Depends(connect), Database)
    if not get_http_headers():
        raise McpError(-32000, get_context().request_id)
    return db.query()


assert_type(query, Any)  # error
