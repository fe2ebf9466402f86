"""Peer: echo in the shapes of W12, with FastMCP: `python shapes.py SHAPE [--http PORT]`.

Each is the source of `benchmarks/servers/shapes.py` as one writes it with FastMCP: a plain function where
fastrpc's is one (FastMCP hands it to a thread), a coroutine where that is one. Of a name that is not below,
the plain echo.
"""

import asyncio
import sys
from collections.abc import Callable

from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from mcp.types import TextContent
from pydantic import BaseModel
from server import serve

NOTES = 16  # resources, of which a client reads any


class Echo(BaseModel):
    """What a tool returns."""

    text: str


def app_of(shape: str) -> FastMCP:
    """Return a server whose `echo` is of this shape."""
    app = FastMCP("bench")
    app.tool(name="echo", description="Return the text.")(ECHOES.get(shape, plain))
    if shape == "resource":
        for number in range(NOTES):
            app.resource(f"bench://notes/{number}")(reader(number))
    elif shape == "prompt":
        app.prompt(name="echo", description="Ask for the text.")(plain)
    return app


def plain(text: str) -> str:
    return text


def with_context(text: str, ctx: Context) -> str:
    return text


async def reporting(text: str, ctx: Context) -> str:  # progress can only be awaited
    await ctx.report_progress(1, 1)
    return text


async def coroutine(text: str) -> str:
    return text


async def waiting(text: str) -> str:
    await asyncio.sleep(0)
    return text


def returning_dict(text: str) -> dict[str, str]:
    return {"text": text}


def returning_model(text: str) -> Echo:
    return Echo(text=text)


def returning_texts(text: str) -> list[TextContent]:
    return [TextContent(text=text), TextContent(text=text)]


def raising_tool_error(text: str) -> str:
    raise ToolError(text)


def raising_value_error(text: str) -> str:
    raise ValueError(text)


def reader(number: int) -> Callable[[], str]:
    def read() -> str:
        return f"This is note {number}"

    return read


ECHOES = {
    "context": with_context,
    "progress": reporting,
    "coroutine": coroutine,
    "waiting": waiting,
    "dict": returning_dict,
    "model": returning_model,
    "texts": returning_texts,
    "tool-error": raising_tool_error,
    "value-error": raising_value_error,
}


if __name__ == "__main__":
    serve(app_of(sys.argv[1]), sys.argv[2:])
