"""Echo in the shapes of W12, for the peers in Python: FastMCP and the official SDK share one way to write it.

Each is the source of `benchmarks/servers/shapes.py` as one writes it with these: a plain function where
fastrpc's is one (they hand it to a thread), a coroutine where that is one. For a name that is not below,
`echo` is the plain one.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from mcp.types import TextContent
from pydantic import BaseModel

NOTES = 16  # resources, of which a client reads any


class Echo(BaseModel):
    """What a tool returns."""

    text: str


def app_of(shape: str, kind: Any, context: type, tool_error: type[Exception]) -> Any:
    """Return a server, of a class of the SDK's, whose `echo` is of this shape."""
    app = kind("bench")
    echo = echoes(context, tool_error).get(shape, plain)
    app.tool(name="echo", description="Return the text.")(echo)
    if shape == "resource":
        for number in range(NOTES):
            app.resource(f"bench://notes/{number}")(reader(number))
    elif shape == "prompt":
        app.prompt(name="echo", description="Ask for the text.")(plain)
    return app


def plain(text: str) -> str:
    return text


def reader(number: int) -> Callable[[], str]:
    def read() -> str:
        return f"This is note {number}"

    return read


def echoes(Context: type, ToolError: type[Exception]) -> dict[str, Callable[..., Any]]:
    """The functions by shape, with the SDK's own classes."""

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

    return {
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
