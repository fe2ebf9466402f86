"""echo.py with every tool as a coroutine, as servers that wait for others write them.

`python echo_async.py PORT TOKEN` serves it over HTTP.
"""

import sys

from fastrpc import Server

app = Server("bench")


@app.tool
async def echo(text: str) -> str:
    """Return the text."""
    return text


@app.tool
async def add(a: int, b: int) -> int:
    """Return the sum of two integers."""
    return a + b


@app.tool
async def payload(object: dict) -> dict:
    """Return the object."""
    return object


@app.tool
async def sleep(ms: int) -> str:
    """Wait for so many milliseconds."""
    import asyncio  # here, so that this file imports nothing but fastrpc when it starts

    await asyncio.sleep(ms / 1000)
    return f"slept {ms} ms"


if __name__ == "__main__":
    if len(sys.argv) > 2:
        app.run(http=f"127.0.0.1:{sys.argv[1]}", token=sys.argv[2])
    else:
        app.run()
