"""Batches of MCP 2025-03-26: how many messages they may have, and who else is served while they are read."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Coroutine
from itertools import pairwise
from typing import Any

import pytest
from support.http_server import InProcess, in_process
from support.in_memory import connected
from support.protocol import message

from fastrpc import Server
from fastrpc.engine import batches
from fastrpc.engine.batches import Batch

VERSION = "2025-03-26"
SECONDS = 30.0
CLIENT = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


@pytest.fixture
def in_small_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """One element a turn, however quick they are."""
    monkeypatch.setattr(batches, "TURN_SECONDS", -1.0)


def ping(id: Any) -> dict[str, Any]:
    return message("ping", id=id)


def note(id: Any) -> dict[str, Any]:
    return message("tools/call", {"name": "note", "arguments": {"id": str(id)}}, id)


def cancelling(id: Any) -> dict[str, Any]:
    return message("notifications/cancelled", {"requestId": id})


class Noting:
    """A server that notes which calls it has run."""

    def __init__(self, **options: Any) -> None:
        self.app = Server("batches", **options)
        self.noted: list[str] = []

        @self.app.tool(run="inline")
        def note(id: str) -> str:
            self.noted.append(id)
            return id


class Peer(Noting):
    """A client in memory of such a server."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)

        @self.app.tool
        async def hold(id: str) -> str:
            await asyncio.sleep(SECONDS)
            return id

        self.lines: list[Any] = []
        self.transport = connected(
            self.app.connect().connection, lambda line: self.lines.append(json.loads(line))
        )
        self.send(message("initialize", CLIENT, "first"))
        self.send(message("notifications/initialized"))
        self.lines.clear()

    def send(self, sent: Any) -> None:
        self.transport.send(sent if isinstance(sent, bytes) else json.dumps(sent).encode())

    async def answer(self) -> Any:
        """Return the next line that has come, or comes."""
        while not self.lines:
            await asyncio.sleep(0)
        return self.lines.pop(0)


def within(conversation: Callable[[Peer], Coroutine[Any, Any, None]], **options: Any) -> None:
    async def run() -> None:
        peer = Peer(**options)
        try:
            await asyncio.wait_for(conversation(peer), SECONDS)
        finally:
            peer.transport.disconnect()

    asyncio.run(run())


# --- how many ---------------------------------------------------------------------------------------------


def test_a_batch_of_too_many_messages_is_one_error_that_says_how_many() -> None:
    peer = Peer()
    peer.send([ping(id) for id in range(100)])
    (answers,) = peer.lines
    assert [answer["id"] for answer in answers] == list(range(100))
    peer.lines.clear()
    peer.send([ping(id) for id in range(101)])
    (refused,) = peer.lines
    assert refused == {
        "jsonrpc": "2.0",
        "id": None,
        "error": {
            "code": -32600,
            "message": "Invalid request: a batch of 101 messages; expected at most 100",
            "data": {"maxBatch": 100},
        },
    }


def test_the_bound_is_the_servers() -> None:
    peer = Peer(max_batch=2)
    peer.send([ping(1), ping(2)])
    peer.send([ping(1), ping(2), ping(3)])
    assert [answer["id"] for answer in peer.lines[0]] == [1, 2]
    assert peer.lines[1]["error"]["data"] == {"maxBatch": 2}


@pytest.mark.parametrize("element", [b"0", b"{}", b"[]", b"123456789012345678901234567890"])
def test_no_element_of_too_large_a_batch_is_looked_at(
    element: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Batch, "read", lambda *given: pytest.fail("an element was taken"))
    peer = Peer()
    peer.send(b"[" + b",".join([element] * 200_000) + b"]")
    (refused,) = peer.lines
    assert refused["error"]["message"].startswith("Invalid request: a batch of 200,000 messages;")


# --- turns ------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("in_small_turns")
def test_the_loop_has_its_turn_between_the_elements() -> None:
    async def conversation(peer: Peer) -> None:
        async def tick() -> None:
            while True:
                peer.noted.append("tick")
                await asyncio.sleep(0)

        ticking = asyncio.ensure_future(tick())
        peer.send([note(id) for id in range(5)])
        answers = await peer.answer()
        ticking.cancel()
        assert [answer["id"] for answer in answers] == list(range(5))
        assert [noted for noted in peer.noted if noted != "tick"] == list("01234")
        places = [peer.noted.index(str(id)) for id in range(5)]
        assert all("tick" in peer.noted[begin:end] for begin, end in pairwise(places))

    within(conversation)


def test_quick_elements_share_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "TURN_SECONDS", SECONDS)  # so that they are quick on a busy machine, too

    async def conversation(peer: Peer) -> None:
        peer.send([ping(1), ping(2), message("notifications/x")])
        assert len(peer.lines) == 1

    within(conversation)


@pytest.mark.usefixtures("in_small_turns")
def test_other_calls_of_the_connection_are_answered_between_the_elements() -> None:
    async def conversation(peer: Peer) -> None:
        peer.send([note(id) for id in range(5)])
        peer.send(ping("meanwhile"))
        assert (await peer.answer())["id"] == "meanwhile"
        assert peer.noted == ["0"]
        assert len(await peer.answer()) == 5

    within(conversation)


@pytest.mark.usefixtures("in_small_turns")
def test_a_request_that_was_not_read_yet_can_be_cancelled() -> None:
    async def conversation(peer: Peer) -> None:
        peer.send([note(0), cancelling(2), note(1), note(2), note(3)])
        peer.send(cancelling(3))
        answers = await peer.answer()
        assert [answer["id"] for answer in answers] == [0, 1, 2]  # its own element came too early to mean 2
        assert peer.noted == ["0", "1", "2"]

    within(conversation)


@pytest.mark.usefixtures("in_small_turns")
def test_a_call_in_flight_is_cancelled_by_a_later_element_and_the_rest_answered() -> None:
    async def conversation(peer: Peer) -> None:
        hold = message("tools/call", {"name": "hold", "arguments": {"id": "a"}}, "a")
        peer.send([hold, ping(1), cancelling("a"), ping(2)])
        assert [answer["id"] for answer in await peer.answer()] == [1, 2]

    within(conversation)


@pytest.mark.usefixtures("in_small_turns")
def test_an_id_of_an_earlier_element_in_flight_is_refused() -> None:
    async def conversation(peer: Peer) -> None:
        hold = message("tools/call", {"name": "hold", "arguments": {"id": "a"}}, "a")
        peer.send([hold, ping("a"), message("initialize", CLIENT, "i"), cancelling("a")])
        assert [answer["error"]["code"] for answer in await peer.answer()] == [-32600, -32600]

    within(conversation)


@pytest.mark.usefixtures("in_small_turns")
def test_what_was_not_read_when_the_connection_closes_is_not_served() -> None:
    async def conversation(peer: Peer) -> None:
        peer.send([note(id) for id in range(5)])
        peer.transport.disconnect()
        for _ in range(20):
            await asyncio.sleep(0)
        assert (peer.noted, peer.lines) == (["0"], [])

    within(conversation)


def test_a_batch_is_read_to_its_end_when_the_input_ends() -> None:
    program = (
        "from fastrpc import Server; from fastrpc.engine import batches\n"
        "batches.TURN_SECONDS = -1.0\n"
        "app = Server('t')\n"
        "@app.tool\n"
        "async def later() -> str:\n    return 'later'\n"
        "app.run()\n"
    )
    later = message("tools/call", {"name": "later"}, "late")
    sent = [message("initialize", CLIENT, "first"), later, [ping(id) for id in range(50)]]
    done = subprocess.run(
        [sys.executable, "-c", program],
        input="".join(json.dumps(each) + "\n" for each in sent).encode(),
        capture_output=True,
        timeout=60,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0
    assert [len(line) for line in lines if isinstance(line, list)] == [50]


# --- over HTTP --------------------------------------------------------------------------------------------


class Web:
    """A server that notes what it has run, in this loop, and who asks it."""

    def __init__(self, server: InProcess, noted: list[str]) -> None:
        self.ask = server.ask
        self.noted = noted

    async def session(self) -> str:
        _, _, headers = await self.ask("POST", "/mcp", message("initialize", CLIENT, "first"))
        id: str = headers[b"mcp-session-id"].decode()
        return id


def over_http(conversation: Callable[[Web], Coroutine[Any, Any, None]], **options: Any) -> None:
    async def run() -> None:
        noting = Noting(**options)
        async with in_process(noting.app, auth=None) as server:
            await asyncio.wait_for(conversation(Web(server, noting.noted)), SECONDS)

    asyncio.run(run())


@pytest.mark.usefixtures("in_small_turns")
@pytest.mark.parametrize("with_session", [True, False])
def test_other_requests_are_answered_while_a_batch_is_read(with_session: bool) -> None:
    async def conversation(web: Web) -> None:
        headers = {"mcp_session_id": await web.session()} if with_session else {}
        begun = asyncio.ensure_future(web.ask("POST", "/mcp", [note(id) for id in range(50)], **headers))
        while not web.noted:
            await asyncio.sleep(0)
        assert (await web.ask("GET", "/healthz"))[0] == 200
        assert (await web.ask("POST", "/mcp", ping("p"), **headers))[1]["id"] == "p"
        assert len(web.noted) < 50
        status, answers, _ = await begun
        assert (status, [answer["id"] for answer in answers]) == (200, list(range(50)))

    over_http(conversation)


@pytest.mark.usefixtures("in_small_turns")
@pytest.mark.parametrize("with_session", [True, False])
def test_a_batch_without_a_request_is_accepted_when_it_has_been_read(with_session: bool) -> None:
    async def conversation(web: Web) -> None:
        headers = {"mcp_session_id": await web.session()} if with_session else {}
        body = [message("notifications/x"), {"jsonrpc": "2.0", "id": 1, "result": {}}] * 5
        assert (await web.ask("POST", "/mcp", body, **headers))[:2] == (202, None)

    over_http(conversation)


@pytest.mark.usefixtures("in_small_turns")
def test_a_request_that_was_not_read_yet_can_be_cancelled_by_another_post() -> None:
    async def conversation(web: Web) -> None:
        headers = {"mcp_session_id": await web.session()}
        begun = asyncio.ensure_future(web.ask("POST", "/mcp", [note(id) for id in range(50)], **headers))
        while not web.noted:
            await asyncio.sleep(0)
        assert (await web.ask("POST", "/mcp", cancelling(49), **headers))[0] == 202
        assert [answer["id"] for answer in (await begun)[1]] == list(range(49))

    over_http(conversation)


@pytest.mark.usefixtures("in_small_turns")
def test_requests_that_were_not_read_when_the_session_ends_are_answered_with_an_error() -> None:
    async def conversation(web: Web) -> None:
        headers = {"mcp_session_id": await web.session()}
        begun = asyncio.ensure_future(web.ask("POST", "/mcp", [note(id) for id in range(50)], **headers))
        while not web.noted:
            await asyncio.sleep(0)
        assert (await web.ask("DELETE", "/mcp", **headers))[0] == 200
        _, answers, _ = await begun
        assert [answer["id"] for answer in answers] == list(range(50))
        errors = [answer["error"]["message"] for answer in answers if "error" in answer]
        assert len(web.noted) + len(errors) == 50
        assert set(errors) == {"The session has ended"}

    over_http(conversation)


def test_a_batch_of_too_many_messages_is_refused_over_http() -> None:
    async def conversation(web: Web) -> None:
        status, error, _ = await web.ask("POST", "/mcp", b"[" + b"0," * 500_000 + b"0]")
        assert (status, error["error"]["code"], error["error"]["data"]) == (400, -32600, {"maxBatch": 7})
        status, error, _ = await web.ask("POST", "/mcp", [ping(id) for id in range(8)])
        assert error["error"]["message"] == "Invalid request: a batch of 8 messages; expected at most 7"
        assert (await web.ask("POST", "/mcp", [ping(id) for id in range(7)]))[0] == 200

    over_http(conversation, max_batch=7)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_what_must_not_be_answered_is_accepted_in_2026_07_28(version: str) -> None:
    """Wrong, and without an id: JSON-RPC 2.0, section 4.1. It was neither answered nor ended."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = b'{"name":"a","name":"b","_meta":%b}' % json.dumps(meta).encode()
    body = b'{"jsonrpc":"%b","method":"tools/call","params":%b}' % (version.encode(), params)

    async def conversation(web: Web) -> None:
        headers = {"mcp_protocol_version": "2026-07-28", "mcp_method": "tools/call", "mcp_name": "b"}
        assert (await web.ask("POST", "/mcp", body, **headers))[:2] == (202, None)
        assert (await web.ask("POST", "/mcp", body))[:2] == (202, None)

    over_http(conversation)
