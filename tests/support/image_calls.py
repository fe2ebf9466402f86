"""Calls ReadImage as a function, and takes its results apart: for the tests of that tool."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import io
import os
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from fastrpc.tools.agent.read_image import read_image
from PIL import Image

from fastrpc import ToolError, ToolResult, content, processes

MIB = 1024 * 1024
EDGE = 1568


_kept: asyncio.AbstractEventLoop | None = None


@contextlib.contextmanager
def one_worker() -> Iterator[None]:
    """Have all calls meanwhile run in one event loop, which keeps its worker: to start one takes longer than
    to decode a small image. For tests that change nothing of how it is started."""
    global _kept
    _kept = asyncio.new_event_loop()
    try:
        yield
    finally:
        _kept.run_until_complete(processes.close())
        _kept.close()
        _kept = None


def run(work: Callable[[], Awaitable[Any]]) -> Any:
    """Return what a coroutine function returns; but within `one_worker` the processes that it has started are
    gone by then."""
    if _kept is not None:
        return _kept.run_until_complete(asyncio.wait_for(work(), 60))

    async def whole() -> Any:
        try:
            return await work()
        finally:
            await processes.close()
            await asyncio.sleep(0.01)

    return asyncio.run(asyncio.wait_for(whole(), 60))


def see(path: str) -> ToolResult:
    result: ToolResult = run(lambda: read_image(path))
    return result


def shown(data: bytes, name: str = "image.png") -> ToolResult:
    """The result of a file with these bytes."""
    with open(name, "wb") as file:
        file.write(data)
    return see(os.path.abspath(name))


def refusal(path: str) -> str:
    with pytest.raises(ToolError) as caught:
        see(path)
    return str(caught.value)


async def attempt(path: str) -> tuple[ToolResult | None, str]:
    """The result, or what is said instead."""
    try:
        return await read_image(path), ""
    except ToolError as error:
        return None, str(error)


def refused(data: bytes, name: str = "image.png") -> str:
    with open(name, "wb") as file:
        file.write(data)
    return refusal(os.path.abspath(name))


def block(result: ToolResult) -> content.Image:
    assert isinstance(result.content, list)
    image, text = result.content
    assert isinstance(image, content.Image)
    assert isinstance(text, str)
    return image


def line(result: ToolResult) -> str:
    assert isinstance(result.content, list)
    return str(result.content[1])


def picture(result: ToolResult) -> Image.Image:
    image = Image.open(io.BytesIO(block(result).data))
    image.load()
    return image


def facts(result: ToolResult) -> dict[str, Any]:
    found: dict[str, Any] = (result.meta or {})["fastrpc/facts"]
    return found


def fits(result: ToolResult) -> bool:
    """Whether an image is one that a chat can bear."""
    return len(base64.b64encode(block(result).data)) <= 5 * MIB and max(picture(result).size) <= EDGE
