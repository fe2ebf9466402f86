"""The smallest server of fastrpc, as a user writes it: what the load client drives."""

from fastrpc import Server

app = Server("bench")


@app.tool
def echo(text: str) -> str:
    """Return the text."""
    return text


@app.tool
def add(a: int, b: int) -> int:
    """Return the sum of two integers."""
    return a + b


@app.tool
def payload(object: dict) -> dict:
    """Return the object."""
    return object


@app.tool
async def sleep(ms: int) -> str:
    """Wait for so many milliseconds."""
    import asyncio  # here, so that this file imports nothing but fastrpc when it starts

    await asyncio.sleep(ms / 1000)
    return f"slept {ms} ms"


@app.tool
def sleep_sync(ms: int) -> str:
    """Wait for so many milliseconds, and keep a thread for it."""
    import time

    time.sleep(ms / 1000)
    return f"slept {ms} ms"


if __name__ == "__main__":
    app.run()
