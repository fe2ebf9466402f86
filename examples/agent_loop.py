"""An agent's loop: a tool is called ten thousand times, and what is asked next depends on the answer.

Run with `python examples/agent_loop.py`, for another number of calls with that number behind it. The server
is this file too, in a process of its own. Prints what the calls cost with fastrpc's client, without an event
loop and in one, and what the same loop costs with the official client where the package `mcp` is installed.
"""

import asyncio
import os
import sys
import time

from fastrpc import Client, Server

app = Server("library", version="1.0")
SERVER = [sys.executable, os.path.abspath(__file__), "serve"]
FIRST, PAGES = 1, 9973


@app.tool(effect="read")
def follow(page: int) -> int:
    """Return the page that a page refers to."""
    return (page * 7 + 3) % PAGES


def without_loop(calls: int) -> float:
    """Follow so many references and return how many seconds that took."""
    with Client.sync(SERVER) as client:
        begun, page = time.perf_counter(), FIRST
        for _ in range(calls):
            page = int(client.call_tool("follow", {"page": page}).text)
        seconds = time.perf_counter() - begun
    check(page, calls)
    return seconds


async def in_loop(calls: int) -> float:
    """The same in an event loop."""
    async with Client(SERVER) as client:
        begun, page = time.perf_counter(), FIRST
        for _ in range(calls):
            page = int((await client.call_tool("follow", {"page": page})).text)
        seconds = time.perf_counter() - begun
    check(page, calls)
    return seconds


async def with_official_client(calls: int) -> float:
    """The same with the official client. Raises ImportError where it is not installed."""
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client
    from mcp.types import TextContent

    server = StdioServerParameters(command=SERVER[0], args=SERVER[1:], env=dict(os.environ))
    async with stdio_client(server) as (answers, requests), ClientSession(answers, requests) as session:
        await session.initialize()
        begun, page = time.perf_counter(), FIRST
        for _ in range(calls):
            block = (await session.call_tool("follow", {"page": page})).content[0]
            assert isinstance(block, TextContent)
            page = int(block.text)
        seconds = time.perf_counter() - begun
    check(page, calls)
    return seconds


def check(page: int, calls: int) -> None:
    """Whether the last page is the one that so many references lead to."""
    expected = FIRST
    for _ in range(calls):
        expected = follow(expected)
    assert page == expected, f"expected page {expected}, got {page}"


def show(client: str, calls: int, seconds: float) -> None:
    each = seconds / calls * 1e6
    print(f"{client:<28} {calls:,} calls in {seconds:.2f} s, {each:,.0f} µs each", flush=True)


def main(calls: int) -> None:
    show("fastrpc, no event loop:", calls, without_loop(calls))
    show("fastrpc, in an event loop:", calls, asyncio.run(in_loop(calls)))
    try:
        show("the official client:", calls, asyncio.run(with_official_client(calls)))
    except ImportError:
        print("The official client is not installed and left out; `pip install mcp` brings it.")


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        app.run()
    else:
        main(int(sys.argv[1]) if sys.argv[1:] else 10_000)
