"""What a callback raises stops no reader: each callback of the compiled readers raises once, between messages
that have nothing to do with it; these are all answered, and the one at hand fails by its id.

`Stream` and `ClientConnection` are the server's readers, `ClientStream` the client's. The proxy's, and those
over HTTP: `integration/test_reader_faults_http.py`.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from support.planted_faults import replace_method

from fastrpc import Server, tracebacks
from fastrpc._core.client_stream import LONGEST_LINE, ClientStream
from fastrpc._core.connection import Connection
from fastrpc._core.stream import END, Stream
from fastrpc.errors import ClientError
from fastrpc.transports.base import Connections

COUNT = 6


class Planted(Exception):
    """What the callbacks raise."""


class Once:
    """Calls `function`, but raises instead at the call number `at`."""

    def __init__(self, function: Callable[..., Any], at: int = 1, error: BaseException | None = None) -> None:
        self.function = function
        self.left = at
        self.error = error or Planted("planted")

    def __call__(self, *values: Any, **named: Any) -> Any:
        self.left -= 1
        if self.left == 0:
            raise self.error
        return self.function(*values, **named)

    @property
    def has_raised(self) -> bool:
        return self.left <= 0


@pytest.fixture(autouse=True)
def reported(monkeypatch: pytest.MonkeyPatch) -> list[BaseException]:
    """What is logged."""
    errors: list[BaseException] = []
    monkeypatch.setattr(tracebacks, "report", lambda what, error: errors.append(error))
    return errors


# --- the server's readers ---------------------------------------------------------------------------------


def server() -> Server:
    app = Server("t")

    @app.tool(run="inline")
    def echo(text: str) -> str:
        return text

    @app.tool(run="inline")
    def wrapped(text: str) -> dict[str, str]:
        return {"text": text}

    @app.tool(run="thread")
    def thread(text: str) -> str:
        return text

    @app.tool
    async def waits(text: str) -> str:
        await asyncio.sleep(0)
        return text

    return app


def call(id: int, tool: str) -> bytes:
    params = {"name": tool, "arguments": {"text": f"t{id}"}}
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).encode() + b"\n"


INITIALIZE = (
    b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
    b'"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}\n'
    b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
)


def check(answers: list[dict[str, Any]], fails: bool) -> None:
    """Each id is answered exactly once, and at most one with an error, which is ours."""
    assert sorted(answer["id"] for answer in answers) == list(range(COUNT))
    errors = [answer["error"]["code"] for answer in answers if "error" in answer]
    assert errors == ([-32603] if fails else []), answers


class Place:
    """Where something is planted in a server's connection, and whether a call fails by it."""

    def __init__(self, name: str, tool: str = "echo", fails: bool = True, plant: Any = None) -> None:
        self.name = name
        self.tool = tool
        self.fails = fails
        self._plant = plant

    def plant(self, connection: Connection, monkeypatch: pytest.MonkeyPatch) -> Once:
        once: Once
        if self._plant is not None:
            once = self._plant(connection)
        else:
            once = replace_method(monkeypatch, connection.dispatcher, self.name, Once)
        return once


def in_flush(connection: Connection) -> Once:
    connection.flush = once = Once(connection.flush)
    return once


SERVER_PLACES = [
    Place("dispatch"),
    Place("take_plans", "waits"),
    Place("call_bound", "thread"),
    Place("call_returned", "thread"),
    Place("check_idle", "waits", fails=False),
]


def named(places: list[Place]) -> list[Any]:
    return [pytest.param(place, id=f"{place.name}-{place.tool}") for place in places]


class Pipes:
    """A server's stream between two pipes, in a running loop."""

    def __init__(self, trace: Any = None) -> None:
        self.input, self.client_output = os.pipe()
        self.client_input, self.output = os.pipe()
        for descriptor in (self.input, self.output, self.client_input):
            os.set_blocking(descriptor, False)
        self.dispatcher: Any = server().connect()
        self.connection: Connection = self.dispatcher.connection
        self.stream = Stream(self.connection, self.input, self.output, 1 << 16, trace)

    def write(self, data: bytes) -> None:
        os.write(self.client_output, data)

    def close(self) -> None:
        for descriptor in (self.input, self.output, self.client_input, self.client_output):
            os.close(descriptor)

    async def answers(self, count: int = COUNT) -> list[dict[str, Any]]:
        """Read until `count` answers have come."""
        data = b""
        while data.count(b"\n") < count:
            await asyncio.sleep(0)
            try:
                data += os.read(self.client_input, 1 << 20)
            except BlockingIOError:
                pass
        return [json.loads(line) for line in data.splitlines()]


@pytest.fixture
def pipes() -> Iterator[Pipes]:
    pipes = Pipes()
    yield pipes
    pipes.close()


def in_loop(coroutine: Any) -> Any:
    return asyncio.run(asyncio.wait_for(coroutine, 60))


@pytest.mark.parametrize("place", named(SERVER_PLACES))
def test_a_stream_answers_all_lines_but_the_one_that_raises(
    pipes: Pipes, place: Place, reported: list[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def serve() -> None:
        loop = asyncio.get_running_loop()
        pipes.dispatcher.loop_runs(loop)
        pipes.stream.attach(loop, lambda reason: None)
        pipes.write(INITIALIZE)
        await pipes.answers(1)
        once = place.plant(pipes.connection, monkeypatch)
        pipes.write(b"".join(call(id, place.tool) for id in range(COUNT)))
        check(await pipes.answers(), place.fails)
        assert once.has_raised
        assert reported == [once.error]

    in_loop(serve())


@pytest.mark.parametrize("direction", [b"<", b">"])
def test_a_trace_that_raises_loses_no_line_and_repeats_none(
    direction: bytes, reported: list[BaseException]
) -> None:
    once = Once(lambda *values: None)
    pipes = Pipes(lambda way, data: once(way, data) if way == direction else None)
    try:
        pipes.write(INITIALIZE + b"".join(call(id, "echo") for id in range(1, COUNT)))
        os.close(pipes.client_output)
        pipes.client_output = os.dup(pipes.client_input)
        assert pipes.stream.run() == END
        answers = [json.loads(line) for line in os.read(pipes.client_input, 1 << 20).splitlines()]
    finally:
        pipes.close()
    check(answers, fails=False)
    assert reported == [once.error]


@pytest.mark.parametrize("name", ["dispatch", "line_too_long"])
def test_a_stream_without_a_loop_goes_on_after_what_raises(
    pipes: Pipes, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    too_long = b'"' + b"x" * (1 << 16) + b'"\n' if name == "line_too_long" else b""
    lines = b"".join(call(id, "wrapped") for id in range(2, COUNT))
    ping = b'{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"info"}}\n'
    at = 1 if too_long else 3  # the two of the handshake come before
    replace_method(monkeypatch, pipes.dispatcher, name, lambda method: Once(method, at))
    os.set_blocking(pipes.client_output, False)
    pipes.write(INITIALIZE + ping)
    assert pipes.stream is not None
    if too_long:
        os.write(pipes.client_output, too_long[: 1 << 15])
    pipes.write(lines)
    os.close(pipes.client_output)
    pipes.client_output = os.dup(pipes.client_input)
    assert pipes.stream.run() == END
    answers = [json.loads(line) for line in os.read(pipes.client_input, 1 << 20).splitlines()]
    if not too_long:
        check(answers, fails=True)


def test_functions_for_the_loop_and_the_end_of_a_stream_stop_nothing(
    pipes: Pipes, reported: list[BaseException]
) -> None:
    called: list[str] = []
    once = Once(lambda: None)
    end = Once(lambda reason: None)

    async def serve() -> None:
        pipes.stream.call_in_loop(once)
        pipes.stream.call_in_loop(lambda: called.append("the other"))
        pipes.dispatcher.loop_runs(asyncio.get_running_loop())
        pipes.stream.attach(asyncio.get_running_loop(), end)
        pipes.write(INITIALIZE + b"".join(call(id, "echo") for id in range(1, COUNT)))
        check(await pipes.answers(), fails=False)
        os.close(pipes.client_output)
        pipes.client_output = os.dup(pipes.client_input)
        while not end.has_raised:
            await asyncio.sleep(0)

    in_loop(serve())
    assert called == ["the other"]
    assert reported == [once.error, end.error]


@pytest.mark.parametrize(
    "place", [*named(SERVER_PLACES), pytest.param(Place("flush", "waits", False, in_flush))]
)
def test_a_transport_of_ones_own_goes_on_after_what_raises(
    place: Place, reported: list[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[bytes] = []

    async def serve() -> None:
        connections = Connections(lambda: app.connect().connection)
        client = connections.open(written.append)
        client.feed_data(INITIALIZE)
        written.clear()
        once = place.plant(client._connection, monkeypatch)
        client.feed_data(b"".join(call(id, place.tool) for id in range(COUNT)))
        await client.wait_idle()
        client.flush()
        answers = [json.loads(line) for data in written for line in data.splitlines()]
        check(answers, place.fails)
        assert reported == [once.error]
        client.close()

    app = server()
    in_loop(serve())


def test_a_transport_that_cannot_write_once_is_asked_again(reported: list[BaseException]) -> None:
    written: list[bytes] = []
    app = server()

    async def serve() -> None:
        client = Connections(lambda: app.connect().connection).open(Once(written.append, 2))
        client.feed_data(INITIALIZE)
        client.feed_data(call(1, "echo"))  # which is lost
        client.feed_data(call(2, "echo") + call(3, "echo"))
        client.close()

    in_loop(serve())
    assert [json.loads(line)["id"] for line in b"".join(written).splitlines()] == [0, 2, 3]
    assert [str(error) for error in reported] == ["planted"]


# --- the client's reader ----------------------------------------------------------------------------------


def result(id: int) -> bytes:
    return b'{"jsonrpc":"2.0","id":%d,"result":{"content":[],"isError":false}}\n' % id


TRIGGERS = {
    "on_request": b'{"jsonrpc":"2.0","id":"s","method":"ping"}\n',
    "on_notification": b'{"jsonrpc":"2.0","method":"notifications/message","params":{}}\n',
    "on_unreadable": b"nonsense\n",
}


class Peer:
    """A client's stream between two pipes, in a running loop, with `COUNT` requests sent."""

    def __init__(self) -> None:
        self.input, self.server_output = os.pipe()
        self.server_input, self.output = os.pipe()
        for descriptor in (self.input, self.output, self.server_input):
            os.set_blocking(descriptor, False)
        self.stream = ClientStream(LONGEST_LINE)
        for name in (*TRIGGERS, "on_end"):
            setattr(self.stream, name, lambda *values: None)
        self.stream.open(self.input, self.output)
        self.futures: list[asyncio.Future[Any]] = []

    def begin(self) -> None:
        loop = asyncio.get_running_loop()
        self.stream.attach(loop)
        for _ in range(COUNT):
            self.futures.append(loop.create_future())
            self.stream.request("tools/call", {}, self.futures[-1], is_call=True)

    def close(self) -> None:
        self.stream.detach()
        for descriptor in (self.input, self.output, self.server_input, self.server_output):
            os.close(descriptor)


@pytest.fixture
def peer() -> Iterator[Peer]:
    peer = Peer()
    yield peer
    peer.close()


@pytest.mark.parametrize("name", TRIGGERS)
def test_a_client_reads_on_after_what_a_callback_raises(
    peer: Peer, name: str, reported: list[BaseException]
) -> None:
    once = Once(lambda *values: None)
    setattr(peer.stream, name, once)

    async def read() -> None:
        peer.begin()
        os.write(peer.server_output, result(1) + TRIGGERS[name] + b"".join(map(result, range(2, COUNT + 1))))
        await asyncio.gather(*peer.futures)
        peer.stream.flush()

    in_loop(read())
    assert reported == [once.error]
    if name == "on_request":  # whose sender waits
        sent = [json.loads(line) for line in os.read(peer.server_input, 1 << 20).splitlines()]
        assert sent[-1]["id"] == "s"
        assert sent[-1]["error"]["code"] == -32603


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit()])
def test_a_client_that_is_interrupted_reads_on_when_its_loop_does(peer: Peer, error: BaseException) -> None:
    peer.stream.on_notification = Once(lambda message: None, error=error)
    loop = asyncio.new_event_loop()
    try:

        async def read() -> None:
            peer.begin()
            os.write(
                peer.server_output,
                result(1) + TRIGGERS["on_notification"] + b"".join(map(result, range(2, COUNT + 1))),
            )
            await asyncio.gather(*peer.futures)

        task = loop.create_task(read())
        with pytest.raises(type(error)):
            loop.run_until_complete(task)
        loop.run_until_complete(asyncio.wait_for(task, 60))
    finally:
        peer.stream.detach()
        loop.close()


def test_an_end_that_raises_leaves_no_response_unread(peer: Peer, reported: list[BaseException]) -> None:
    peer.stream.on_end = once = Once(lambda end: None)

    async def read() -> None:
        peer.begin()
        os.write(peer.server_output, b"".join(map(result, range(1, COUNT + 1))))
        os.close(peer.server_output)
        peer.server_output = os.dup(peer.server_input)
        await asyncio.gather(*peer.futures)
        while not once.has_raised:
            await asyncio.sleep(0)

    in_loop(read())
    assert reported == [once.error]


def test_all_requests_of_a_lost_connection_fail_though_an_error_cannot_be_made(peer: Peer) -> None:
    async def read() -> list[Any]:
        peer.begin()
        peer.stream.fail_all(Once(lambda request: ClientError("lost")))
        return await asyncio.gather(*peer.futures, return_exceptions=True)

    errors = in_loop(read())
    assert [type(error) for error in errors] == [Planted] + [ClientError] * (COUNT - 1)


def test_a_future_that_raises_fails_its_request_alone(peer: Peer) -> None:
    async def read() -> None:
        peer.begin()
        broken: Any = asyncio.get_running_loop().create_future()

        class Future:
            done = staticmethod(lambda: broken.done())
            set_result = staticmethod(Once(broken.set_result))
            set_exception = staticmethod(broken.set_exception)

        request = peer.stream.request("ping", {}, Future())  # type: ignore[arg-type]
        os.write(peer.server_output, result(COUNT + 1) + b"".join(map(result, range(1, COUNT + 1))))
        await asyncio.gather(*peer.futures)
        assert isinstance(request.error, Planted)
        with pytest.raises(Planted):
            await broken

    in_loop(read())


def test_a_carrier_that_raises_fails_its_request_alone() -> None:
    async def send() -> None:
        loop = asyncio.get_running_loop()
        stream = ClientStream()
        stream.attach(loop)
        carried: list[bytes] = []
        stream.carry = Once(lambda request, params: carried.append(stream.take()), at=2)
        futures = [loop.create_future() for _ in range(3)]
        stream.request("ping", {}, futures[0])
        with pytest.raises(Planted):
            stream.request("ping", {}, futures[1])
        stream.carry = Once(lambda request, params: carried.append(stream.take()))
        with pytest.raises(Planted):
            stream.call("echo", {})
        stream.request("ping", {}, futures[2])
        assert list(stream.pending) == [1, 4]
        stream.receive_message(result(1).strip())
        stream.receive_message(result(4).strip())
        await futures[0]
        await futures[2]

    in_loop(send())


# --- what ends a task or the program, in a client's callback ---------------------------------------------

ENDING = [asyncio.CancelledError(), KeyboardInterrupt(), SystemExit()]
IDS = ["cancelled", "interrupt", "exit"]


@contextmanager
def passed_on(error: BaseException, reported: list[BaseException]) -> Iterator[None]:
    """The caller gets what ends the program; CancelledError is logged: it would cancel the caller's task."""
    if isinstance(error, asyncio.CancelledError):
        yield
        assert reported == [error]
    else:
        with pytest.raises(type(error)):
            yield
        assert reported == []


def unconnected() -> ClientStream:
    """A client's stream whose messages are handed to `receive_message`, as over HTTP."""
    stream = ClientStream()
    for name in (*TRIGGERS, "on_end"):
        setattr(stream, name, lambda *values: None)
    stream.carry = lambda request, params: None
    return stream


@pytest.mark.parametrize("error", ENDING, ids=IDS)
@pytest.mark.parametrize("name", TRIGGERS)
def test_a_message_whose_callback_ends_something_concerns_no_task_of_the_transport(
    name: str, error: BaseException, reported: list[BaseException]
) -> None:
    stream = unconnected()
    setattr(stream, name, Once(lambda *values: None, error=error))
    with passed_on(error, reported):
        stream.receive_message(TRIGGERS[name].rstrip())
    sent = [json.loads(line) for line in stream.take().splitlines()]
    assert [message["error"]["code"] for message in sent] == ([-32603] if name == "on_request" else [])


@pytest.mark.parametrize("error", ENDING, ids=IDS)
def test_the_rest_of_a_batch_is_read_after_a_callback_that_ends_something(
    error: BaseException, reported: list[BaseException]
) -> None:
    stream = unconnected()
    stream.on_notification = Once(lambda message: None, error=error)
    requests = [stream.request("tools/call", {}, is_call=True) for _ in range(2)]
    elements = [result(1), TRIGGERS["on_notification"], result(2)]
    with passed_on(error, reported):
        stream.receive_message(b"[" + b",".join(element.rstrip() for element in elements) + b"]")
    assert [request.done for request in requests] == [True, True]


@pytest.mark.parametrize("error", [*ENDING, StopIteration()], ids=[*IDS, "iteration"])
def test_every_request_of_a_lost_connection_fails_with_an_error_whatever_making_it_raises(
    peer: Peer, error: BaseException
) -> None:
    make = Once(lambda request: ClientError("lost"), at=2, error=error)
    escapes = isinstance(error, (KeyboardInterrupt, SystemExit))

    async def read() -> list[Any]:
        peer.begin()
        if escapes:
            with pytest.raises(type(error)):
                peer.stream.fail_all(make)
        else:
            peer.stream.fail_all(make)
        return await asyncio.wait_for(asyncio.gather(*peer.futures, return_exceptions=True), 60)

    errors = in_loop(read())
    assert [type(each) for each in errors] == [ClientError] * COUNT
    assert type(error).__name__ in str(errors[1])


@pytest.mark.parametrize("error", ENDING, ids=IDS)
def test_the_end_of_the_input_is_reported_though_the_callback_for_its_last_line_ends_something(
    peer: Peer, error: BaseException, reported: list[BaseException]
) -> None:
    ends: list[str] = []
    peer.stream.on_end = ends.append
    peer.stream.on_unreadable = Once(lambda line: None, error=error)
    os.write(peer.server_output, b'{"cut')
    os.close(peer.server_output)
    peer.server_output = os.dup(peer.server_input)
    peer.stream.read_rest()
    with passed_on(error, reported):
        peer.stream.read_rest()  # now the end
    assert ends == ["its output"]
