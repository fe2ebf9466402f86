"""Over HTTP: more calls at once than connections are kept for, and what raises while one of them is served.

A call that ends may close its connection, where enough idle ones are kept; and what an application's parts
raise concerns one request alone.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.http_client import Serving
from support.http_server import tool_server
from support.in_memory import SECONDS, with_client
from support.planted_faults import replace_method

pytest.importorskip("httptools", reason="the client's side of HTTP stands on it: pip install httptools")

from fastrpc import Client, Server, proxy
from fastrpc.errors import RemoteError, RequestTimeout
from fastrpc.protocol.versions import LATEST_SESSION_VERSION, STATELESS
from fastrpc.testing import Client as InMemoryClient

# `together` answers when `of` calls have come, the last one first.
TOGETHER = """
import asyncio
from fastrpc import Server

app = Server("behind")
waiting = []

@app.tool
async def together(number: int, of: int) -> dict[str, int]:
    waiting.append(asyncio.get_running_loop().create_future())
    mine = waiting[-1]
    if len(waiting) == of:
        for each in reversed(waiting):
            each.set_result(None)
        waiting.clear()
    await mine
    return {"number": number}
"""
THROUGH_PROXY = """
import sys
from fastrpc import Server
app = Server.proxy([sys.executable, given["behind"]])
"""
FEW_KEPT = {"transports.http.exchange.IDLE_EXCHANGES": 2, "transports.http.sessions.EXCHANGES_KEPT": 2}


async def _rounds(url: str, version: str) -> list[list[int]]:
    """Make 2, 6 and 10 calls at once, after one that has the exchanges learn the tool."""
    numbers = []
    async with Client(url, version=version, timeout_seconds=30) as client:
        for count in (2, 2, 6, 10, 6):
            results = await asyncio.gather(
                *[client.call_tool("together", {"number": at, "of": count}) for at in range(count)]
            )
            numbers.append([result.structured["number"] for result in results])
    return numbers


@pytest.mark.parametrize("version", [STATELESS, LATEST_SESSION_VERSION])
@pytest.mark.parametrize("through", ["proxy", "itself"])
def test_calls_beyond_the_connections_that_are_kept_are_all_answered(
    tmp_path: Path, through: str, version: str
) -> None:
    behind = tmp_path / "behind.py"
    behind.write_text(TOGETHER + '\nif __name__ == "__main__":\n    app.run()\n')
    tools = THROUGH_PROXY if through == "proxy" else TOGETHER
    command = tool_server(tools, patch=FEW_KEPT, options={"auth": None}, behind=str(behind))
    with Serving(command=command) as server:
        numbers = asyncio.run(_rounds(f"http://127.0.0.1:{server.port}/mcp", version))
        assert numbers == [list(range(count)) for count in (2, 2, 6, 10, 6)]
        assert server.stop() == 0
        assert "Traceback" not in server.stderr


RAISING = """
import asyncio
from fastrpc import Server
from fastrpc.transports.http.exchange import ExchangePool
from fastrpc.engine.connection_delegate import ConnectionDelegate
from fastrpc.engine.dispatcher import Dispatcher
from fastrpc.engine.requests_in_flight import RequestsInFlight
from fastrpc.engine.responses import ResponseWriter

app = Server("raising")

@app.tool
async def waits(number: int) -> int:
    await asyncio.sleep(0)
    return number

@app.tool(run="thread")
def thread(number: int) -> int:
    return number

@app.tool(run="inline")
def quick(number: int) -> dict[str, int]:
    return {"number": number}

kind, name = given["raises"]
kinds = {"delegate": ConnectionDelegate, "requests": RequestsInFlight, "responses": ResponseWriter}
kind = {"exchanges": ExchangePool, "dispatcher": Dispatcher, **kinds}[kind]
original = getattr(kind, name)
left = [given["after"]]

def raising(self, *values, **named):
    left[0] -= 1
    if left[0] == 0:
        raise RuntimeError("planted")
    return original(self, *values, **named)

setattr(kind, name, raising)
"""


async def _failed_calls(url: str, tool: str, version: str, count: int) -> list[BaseException]:
    """Connect, make calls at once, and return what failed: the handshake, or calls."""
    try:
        async with Client(url, version=version, timeout_seconds=30) as client:
            calls = [client.call_tool(tool, {"number": at}) for at in range(count)]
            results = await asyncio.gather(*calls, return_exceptions=True)
    except RemoteError as error:
        return [error]
    assert len(results) == count
    return [each for each in results if isinstance(each, BaseException)]


@pytest.mark.parametrize("version", [STATELESS, LATEST_SESSION_VERSION])
@pytest.mark.parametrize(
    ("raises", "tool"),
    [
        (("exchanges", "put_back"), "waits"),
        (("requests", "check_idle"), "waits"),
        (("delegate", "open_call"), "waits"),
        (("dispatcher", "dispatch"), "thread"),
        (("delegate", "call_bound"), "thread"),
        (("responses", "call_returned"), "thread"),
        (("delegate", "call_ended"), "quick"),
        (("dispatcher", "take_plans"), "quick"),
    ],
)
def test_what_raises_once_over_http_fails_one_call_at_most(
    raises: tuple[str, str], tool: str, version: str
) -> None:
    command = tool_server(RAISING, options={"auth": None}, raises=raises, after=8)
    with Serving(command=command) as server:
        url = f"http://127.0.0.1:{server.port}/mcp"
        # How many of the first requests reach the planted fault depends on how many connections they share.
        failed = [
            each for count in (40, 10, 10) for each in asyncio.run(_failed_calls(url, tool, version, count))
        ]
        assert len(failed) <= 1, failed
        assert not failed or isinstance(failed[0], RemoteError), failed  # by its id, not by a time limit
        assert server.stop() == 0


# --- the proxy's reader -----------------------------------------------------------------------------------

WRAPPED = """
import asyncio
from fastrpc import ProtocolError, Server

app = Server("behind")

@app.tool
async def wrapped(number: int, fails: bool = False) -> dict[str, int]:
    await asyncio.sleep(0)
    if fails:
        raise ProtocolError("no")
    return {"number": number}

app.run()
"""
COUNT = 6


class Once:
    """Calls `function`, but raises at its first call."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.has_raised = False

    def __call__(self, *values: Any) -> Any:
        if self.has_raised:
            return self.function(*values)
        self.has_raised = True
        raise RuntimeError("planted")


@pytest.fixture
def behind(tmp_path: Path) -> list[str]:
    program = tmp_path / "behind.py"
    program.write_text(WRAPPED)
    return [sys.executable, str(program)]


async def _calls(clients: list[Any], **more: Any) -> list[Any]:
    calls = [client.call_tool("wrapped", {"number": at, **more}) for at, client in enumerate(clients)]
    return await asyncio.gather(*calls, return_exceptions=True)


def _failed(results: list[Any]) -> list[Any]:
    return [each for each in results if isinstance(each, BaseException) or each.is_error]


@pytest.mark.parametrize("version", [STATELESS, LATEST_SESSION_VERSION])
@pytest.mark.parametrize("name", ["tool_result_of", "translated"])
def test_a_proxy_forwards_all_answers_but_the_one_that_raises(
    monkeypatch: pytest.MonkeyPatch, behind: list[str], name: str, version: str
) -> None:
    once = Once(getattr(proxy, name))
    monkeypatch.setattr(proxy, name, once)

    async def use(client: Any) -> None:
        await client.list_tools()
        results = await _calls([client] * COUNT, fails=name == "translated")
        assert once.has_raised or name == "tool_result_of"  # results of its own version pass as they are
        answered = [each for each in results if not isinstance(each, RequestTimeout)]
        assert len(answered) == COUNT
        assert len(_failed(results)) <= (COUNT if name == "translated" else 1)

    with_client(Server.proxy(behind), use, version)


@pytest.mark.parametrize("name", ["check_idle", "call_ended", "flush", "send"])
def test_what_one_connection_raises_concerns_no_other_of_a_proxy(
    behind: list[str], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def use() -> None:
        through = Server.proxy(behind)
        async with InMemoryClient(through) as first, InMemoryClient(through) as second:
            for client in (first, second):
                await client.list_tools()
                await client.call_tool("wrapped", {"number": 0})
            dispatcher: Any = next(iter(through.runtime.dispatchers))
            if name in ("flush", "send"):
                place = dispatcher.connection
                setattr(place, name, Once(getattr(place, name) or place.flush))
            else:
                replace_method(monkeypatch, dispatcher, name, Once)
            results = await _calls([first, second] * COUNT)
            assert len(_failed(results)) <= 1

    asyncio.run(asyncio.wait_for(use(), SECONDS))
