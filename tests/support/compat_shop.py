"""A server in the way of FastMCP, for the tests of clients that were written for other frameworks."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable
from pathlib import Path
from types import ModuleType
from typing import Any

from fastrpc.compat import FastMCP

SHOP = '''
import asyncio
import os
from dataclasses import dataclass

from fastrpc.compat import Context, FastMCP, Image, ToolError

mcp = FastMCP("shop", instructions="Ask for prices.", version="1.5", list_page_size=4)

@dataclass
class Price:
    amount: int
    currency: str = "EUR"

@dataclass
class Colour:
    colour: str

@mcp.tool
def price(name: str) -> Price:
    """The price of a thing."""
    return Price(len(name))

@mcp.tool
def fail() -> str:
    """Fails."""
    raise ToolError("no luck")

@mcp.tool
def picture() -> Image:
    """A picture."""
    return Image(data=b"abc", format="png")

@mcp.tool
async def steps(ctx: Context) -> str:
    """Reports and logs."""
    await ctx.report_progress(1, 2, "half")
    await ctx.info("careful")
    await ctx.report_progress(2, 2)
    return "done"

@mcp.tool
async def choose(ctx: Context) -> str:
    """Asks the user."""
    answer = await ctx.elicit("Which colour?", schema=Colour)
    return answer.data.colour if answer.action == "accept" else answer.action

@mcp.tool
async def think(ctx: Context) -> str:
    """Asks the model."""
    return (await ctx.sample("Say hello")).text

@mcp.tool
async def places(ctx: Context) -> list[str]:
    """Asks for the roots."""
    return [str(root.uri) for root in await ctx.list_roots()]

@mcp.tool
async def wait() -> str:
    """Takes long."""
    await asyncio.sleep(60)
    return "never"

@mcp.tool
def variables() -> list[str]:
    """Names of variables."""
    return sorted(name for name in os.environ if name in ("HOME", "GIVEN", "KEPT_BACK"))

@mcp.tool
def process() -> int:
    """Its id."""
    return os.getpid()

@mcp.tool
async def change(ctx: Context) -> str:
    """Tells of a change."""
    await ctx.session.send_tool_list_changed()
    return "changed"

@mcp.resource("docs://guide")
def guide() -> str:
    """A guide."""
    return "read me"

@mcp.resource("docs://{page}/raw")
def page(page: str) -> str:
    """A page."""
    return page

@mcp.prompt
def review(code: str, language: str = "python") -> str:
    """Reviews."""
    return f"Review {code}"

@mcp.completion()
async def complete(ref, argument, context):
    return [name for name in ("perl", "python") if name.startswith(argument.value)]

if __name__ == "__main__":
    mcp.run()
'''


def script_in(folder: Path) -> Path:
    """Write the server into a folder, and return its path."""
    path = folder / "shop.py"
    path.write_text(SHOP)
    return path


def run(conversation: Awaitable[Any]) -> Any:
    return asyncio.run(asyncio.wait_for(conversation, 60))


def in_memory() -> FastMCP:
    """The server as an object of this process."""
    shop = ModuleType("shop_in_memory")
    sys.modules[shop.__name__] = shop  # where dataclasses look up their annotations
    exec(SHOP, vars(shop))
    server: FastMCP = vars(shop)["mcp"]
    return server
