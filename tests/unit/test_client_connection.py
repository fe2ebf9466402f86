"""The client's own HTTP/1.1: what servers may write, what they must not, and connections used again."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest
from support.loop_clock import LoopClock
from support.raw_web import OK, Gone, Line, RawWeb

pytest.importorskip("httptools", reason="the client's side of HTTP stands on it: pip install httptools")

from fastrpc.client.http import connection, pool, wire
from fastrpc.client.http.address import Remote
from fastrpc.client.http.events import Events
from fastrpc.client.http.wire import Wire, header_lines
from fastrpc.errors import ConnectionLost, HttpStatusError, InvalidAnswer
from fastrpc.transports.loop import new_loop

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
POST: dict[str, str] = {"content-type": "application/json"}
LONG = b'{"text":"' + b"x" * 700_000 + b'"}'

Play = Callable[[Line], Awaitable[None]]


def run(conversation: Coroutine[Any, Any, Any], loop: asyncio.AbstractEventLoop | None = None) -> Any:
    loop = loop or asyncio.new_event_loop()
    try:
        return loop.run_until_complete(asyncio.wait_for(conversation, 30))
    finally:
        loop.close()


@pytest.fixture(params=["asyncio", "uvloop"])
def loop(request: pytest.FixtureRequest) -> asyncio.AbstractEventLoop:
    if request.param == "asyncio":
        return asyncio.new_event_loop()
    pytest.importorskip("uvloop")
    return new_loop()


async def post(wire: Wire, body: bytes = b"{}") -> bytes:
    async with wire.send("POST", POST, body) as answer:
        return await answer.body()


def saying(*parts: bytes) -> Play:
    """A server that answers each connection's first request with these bytes, and closes."""

    async def play(line: Line) -> None:
        await line.request()
        await line.pieces(list(parts))

    return play


def again(*answers: bytes) -> Play:
    """A server that answers each request with the next of these, then with `OK`."""
    waiting = list(answers)

    async def play(line: Line) -> None:
        while True:
            await line.request()
            line.say(waiting.pop(0) if waiting else OK)

    return play


def body_of(*parts: bytes, loop: asyncio.AbstractEventLoop | None = None) -> bytes:
    """The body that a client makes of what a server writes. Raises what the client raises."""

    async def conversation() -> bytes:
        async with RawWeb(saying(*parts)) as server:
            wire = Wire(Remote(server.url))
            try:
                return await post(wire)
            finally:
                await wire.close()

    found: bytes = run(conversation(), loop)
    return found


# --- what a server may write ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parts",
    [
        [HEAD + b"content-length: 7\r\n\r\n", b'{"a":1}'],
        [HEAD + b"Content-Length: 7\r\n\r\n" + b'{"a":1}'],
        [bytes([byte]) for byte in HEAD + b"content-length: 7\r\n\r\n" + b'{"a":1}'],
        [HEAD + b"transfer-encoding: chunked\r\n\r\n3\r\n", b'{"a\r\n4;', b'x=y\r\n":1}\r\n0\r\n\r\n'],
        [HEAD + b"transfer-encoding: chunked\r\n\r\n7\r\n" + b'{"a":1}\r\n0\r\nlast: one\r\n\r\n'],
        [HEAD + b"\r\n", b'{"a"', b":1}"],
        [HEAD + b"connection: close\r\n\r\n", b'{"a":1}'],
        [b"HTTP/1.0 200 Fine\r\ncontent-type: application/json; charset=utf-8\r\n\r\n" + b'{"a":1}'],
        [b"HTTP/1.1 200\r\nCONTENT-TYPE: Application/JSON\r\ncontent-length: 7\r\n\r\n" + b'{"a":1}'],
        [b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nlink: </x>\r\n\r\n", HEAD, b'\r\n{"a":1}'],
        [HEAD + b"content-encoding: identity\r\ncontent-length: 7\r\n\r\n" + b'{"a":1}'],
        [HEAD + b"content-length: 7\r\n\r\n" + b'{"a":1}' + b"HTTP/1.1 200 OK\r\n\r\nwhat nobody asked for"],
    ],
)
def test_a_body_is_read_however_it_is_framed(parts: list[bytes], loop: asyncio.AbstractEventLoop) -> None:
    assert body_of(*parts, loop=loop) == b'{"a":1}'


def deflated(data: bytes, bits: int) -> bytes:
    made = zlib.compressobj(wbits=bits)
    return made.compress(data) + made.flush()


@pytest.mark.parametrize("data", [b'{"a":1}', LONG])
@pytest.mark.parametrize("framing", ["length", "chunks", "end"])
@pytest.mark.parametrize(
    ("encoding", "encode"),
    [
        ("gzip", gzip.compress),
        ("X-GZIP", gzip.compress),
        ("deflate", zlib.compress),
        ("deflate", lambda data: deflated(data, -15)),
    ],
)
def test_a_body_that_is_compressed_unasked_is_read_too(
    encoding: str, encode: Callable[[bytes], bytes], framing: str, data: bytes
) -> None:
    sent = encode(data)
    head = HEAD + f"content-encoding: {encoding}\r\n".encode()
    if framing == "chunks":
        body = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (sent[:5], sent[5:]))
        assert body_of(head + b"transfer-encoding: chunked\r\n\r\n", body, b"0\r\n\r\n") == data
    else:
        length = b"content-length: %d\r\n" % len(sent) if framing == "length" else b""
        assert body_of(head + length + b"\r\n", sent[:7], sent[7:]) == data


def test_a_large_body_is_read_whole(loop: asyncio.AbstractEventLoop) -> None:
    assert body_of(HEAD + b"content-length: %d\r\n\r\n" % len(LONG), LONG, loop=loop) == LONG


def test_a_large_request_is_written_whole(loop: asyncio.AbstractEventLoop) -> None:
    async def play(line: Line) -> None:
        body = await line.request()
        line.say(HEAD + b"content-length: %d\r\n\r\n" % len(body) + body)

    async def conversation() -> None:
        async with RawWeb(play) as server:
            wire = Wire(Remote(server.url))
            assert await post(wire, LONG) == LONG
            await wire.close()

    run(conversation(), loop)


# --- what a server must not write -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "error", "reason"),
    [
        (b"", ConnectionLost, "closed by the server"),
        (b"HTTP/1.1 200 OK\r\ncontent-le", ConnectionLost, "closed by the server"),
        (HEAD + b"content-length: 9\r\n\r\n{", ConnectionLost, "closed by the server"),
        (HEAD + b"transfer-encoding: chunked\r\n\r\n9\r\n{", ConnectionLost, "closed by the server"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", ConnectionLost, "is not HTTP"),
        (HEAD + b"content-length: 2\r\ncontent-length: 3\r\n\r\n{}", ConnectionLost, "is not HTTP"),
        (HEAD + b"content-length: two\r\n\r\n{}", ConnectionLost, "is not HTTP"),
        (
            HEAD + b"content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n{}",
            ConnectionLost,
            "is not HTTP",
        ),
        (HEAD + b"transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n", ConnectionLost, "is unknown"),
        (HEAD + b"transfer-encoding: chunked\r\n\r\nzz\r\n\r\n", ConnectionLost, "is not HTTP"),
        (b"HTTP/1.1 101 OK\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n", ConnectionLost, "another protocol"),
        (HEAD + b"x: " + b"y" * 500_000, ConnectionLost, "its head is longer than 131072 bytes"),
        (HEAD + b"x: y\r\n" * 100_000, ConnectionLost, "its head is longer than 131072 bytes"),
        (b"HTTP/1.1 100 \r\n\r\n" * 30_000, ConnectionLost, "its head is longer than 131072 bytes"),
        (
            HEAD + b"transfer-encoding: chunked\r\n\r\n0\r\nx: " + b"y" * 900_000,
            ConnectionLost,
            "its head is longer than 131072 bytes",
        ),
        (HEAD + b"content-encoding: br\r\ncontent-length: 2\r\n\r\n{}", InvalidAnswer, "'br', which was not"),
        (HEAD + b"content-encoding: gzip\r\ncontent-length: 2\r\n\r\n{}", InvalidAnswer, "is not valid gzip"),
        (
            HEAD + b"content-encoding: gzip\r\n\r\n" + gzip.compress(LONG)[:-9],
            InvalidAnswer,
            "its body in gzip is cut off",
        ),
    ],
)
def test_what_is_no_response_is_reported_in_a_sentence(
    said: bytes, error: type[Exception], reason: str
) -> None:
    with pytest.raises(error, match=reason) as told:
        body_of(said)
    assert len(str(told.value)) < 300


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
@pytest.mark.parametrize("status", [200, 500])
def test_a_body_over_the_limit_is_not_kept(
    monkeypatch: pytest.MonkeyPatch, status: int, encoding: str
) -> None:
    monkeypatch.setattr(wire, "LONGEST_BODY", 300_000)
    limit = 300_000 if status == 200 else wire.LAST_WORDS
    body = LONG if encoding == "identity" else gzip.compress(LONG)
    head = HEAD.replace(b"200", b"%d" % status) + f"content-encoding: {encoding}\r\n\r\n".encode()
    with pytest.raises(InvalidAnswer, match=f"longer than {limit} bytes"):
        body_of(head, body)


@pytest.mark.parametrize("value", ["a\r\nb: c", "a\nb", "a\0", "\x7f", "a\x1b"])
def test_a_value_that_would_end_its_header_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match="header x: its value contains a control character"):
        header_lines({"x": value})


def test_values_beyond_ascii_go_back_as_they_came() -> None:
    async def play(line: Line) -> None:
        await line.request()
        line.say(b"HTTP/1.1 200 OK\r\nmcp-session-id: \xc3\xa4\xff\r\ncontent-length: 0\r\n\r\n")

    async def conversation() -> None:
        async with RawWeb(play) as server:
            wire = Wire(Remote(server.url))
            async with wire.send("POST", POST, b"{}") as answer:
                id = answer.header("mcp-session-id")
            assert id is not None
            assert header_lines({"x": id}) == b"x: \xc3\xa4\xff\r\n"
            await wire.close()

    run(conversation())


# --- connections that are used again --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "connections"),
    [
        (OK, 1),
        (b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n", 1),
        (b"HTTP/1.1 202 Accepted\r\ncontent-length: 5\r\n\r\nhello", 1),
        (b"HTTP/1.1 204 No Content\r\n\r\n", 1),
        (HEAD + b"transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 1),
        (b"HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 0\r\n\r\n", 1),
        (b"HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n", 2),
        (HEAD + b"connection: close\r\ncontent-length: 2\r\n\r\n{}", 2),
        (OK + OK, 2),  # what came unasked is no one's answer
        (b"HTTP/1.1 202 Accepted\r\ncontent-length: 10\r\n\r\nhello", 2),  # no one waits for the rest
    ],
)
def test_a_connection_is_used_again_where_that_is_right(
    answer: bytes, connections: int, loop: asyncio.AbstractEventLoop
) -> None:
    async def conversation() -> None:
        async with RawWeb(again(answer, answer)) as server:
            wire = Wire(Remote(server.url))
            for _ in range(2):
                async with wire.send("POST", POST, b"{}"):
                    pass
            assert len(server.lines) == connections
            assert await post(wire) == b"{}"
            await wire.close()

    run(conversation(), loop)


def test_a_connection_that_the_server_has_closed_is_not_used_again(loop: asyncio.AbstractEventLoop) -> None:
    """Even if the loop has not run since: the server has closed it while this thread did something else."""

    async def play(line: Line) -> None:
        await line.request()
        line.say(OK)

    async def conversation() -> None:
        async with RawWeb(play) as server:
            wire = Wire(Remote(server.url))
            for number in range(3):
                assert await post(wire) == b"{}"
                await server.lines[number].closed.wait()
            assert len(server.lines) == 3
            await wire.close()

    run(conversation(), loop)


def test_what_comes_on_an_idle_connection_ends_it() -> None:
    async def play(line: Line) -> None:
        await line.request()
        line.say(OK)
        await line.request()

    async def conversation() -> None:
        async with RawWeb(play) as server:
            wire = Wire(Remote(server.url))
            assert await post(wire) == b"{}"
            server.lines[0].say(OK)
            await server.lines[0].closed.wait()
            assert await post(wire) == b"{}"
            assert len(server.lines) == 2
            await wire.close()

    run(conversation())


def test_requests_at_once_have_a_connection_each_which_are_kept_for_some_time(
    monkeypatch: pytest.MonkeyPatch, loop: asyncio.AbstractEventLoop
) -> None:
    monkeypatch.setattr(pool, "MOST_IDLE", 8)
    together = asyncio.Event()

    async def conversation() -> None:
        async def play(line: Line) -> None:
            while True:
                await line.request()
                if len(server.lines) == 10:
                    together.set()
                await together.wait()
                line.say(OK)

        async with RawWeb(play) as server:
            wire = Wire(Remote(server.url))
            assert await asyncio.gather(*(post(wire) for _ in range(10))) == [b"{}"] * 10
            assert await asyncio.gather(*(post(wire) for _ in range(8))) == [b"{}"] * 8
            assert len(server.lines) == 10
            kept = [line for line in server.lines if not line.closed.is_set()]
            monkeypatch.setattr(pool, "IDLE_SECONDS", 0.0)
            assert await post(wire) == b"{}"
            assert len(server.lines) == 11
            for line in kept:
                await line.closed.wait()
            await wire.close()

    run(conversation(), loop)


def test_what_is_idle_for_too_long_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "IDLE_SECONDS", 0.05)

    async def conversation() -> None:
        async with RawWeb(again()) as server:
            wire = Wire(Remote(server.url))
            await asyncio.gather(post(wire), post(wire))
            for line in server.lines:
                await line.closed.wait()
            await wire.close()

    run(conversation())


def test_requests_beyond_the_bound_wait_for_their_turn_but_not_those_that_others_depend_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pool, "MOST_CONNECTIONS", 2)
    answered = asyncio.Event()

    async def conversation() -> None:
        async def play(line: Line) -> None:
            while True:
                if await line.request() == b"answer":
                    answered.set()
                else:
                    await answered.wait()
                line.say(OK)

        async def bounded(wire: Wire) -> None:
            async with wire.send("POST", POST, b"call", waits=True) as answer:
                await answer.body()

        async with RawWeb(play) as server:
            wire = Wire(Remote(server.url))
            calls = [asyncio.ensure_future(bounded(wire)) for _ in range(7)]
            while len(server.heads) < 2:
                await asyncio.sleep(0)
            for call in calls[3:5]:  # one that waits may give up
                call.cancel()
            await post(wire, b"answer")
            await asyncio.gather(*calls, return_exceptions=True)
            assert [call.cancelled() for call in calls] == [False, False, False, True, True, False, False]
            assert len(server.lines) == 3
            assert len(server.heads) == 6
            await wire.close()

    run(conversation())


# --- giving up ------------------------------------------------------------------------------------------


def test_giving_a_response_up_closes_its_connection_and_no_other(loop: asyncio.AbstractEventLoop) -> None:
    async def play(line: Line) -> None:
        if await line.request() == b"slow":
            line.say(HEAD + b"content-length: 2\r\n\r\n{")
            await line.gone()
        else:
            line.say(OK)
            await line.request()

    async def conversation() -> None:
        async with RawWeb(play) as server:
            wire = Wire(Remote(server.url))
            slow = asyncio.ensure_future(post(wire, b"slow"))
            while not server.heads:
                await asyncio.sleep(0)
            assert await post(wire) == b"{}"
            slow.cancel()
            await asyncio.wait({slow})
            await server.lines[0].closed.wait()
            assert not server.lines[1].closed.is_set()
            await wire.close()
            await server.lines[1].closed.wait()

    run(conversation(), loop)


def test_closing_ends_what_is_on_its_way(loop: asyncio.AbstractEventLoop) -> None:
    async def play(line: Line) -> None:
        await line.request()
        await line.gone()

    async def conversation() -> None:
        async with RawWeb(play) as server:
            wire = Wire(Remote(server.url))
            waiting = asyncio.ensure_future(post(wire))
            while not server.heads:
                await asyncio.sleep(0)
            await wire.close()
            with pytest.raises(ConnectionLost):
                await waiting

    run(conversation(), loop)


def test_a_connection_that_is_silent_for_too_long_is_given_up() -> None:
    async def play(line: Line) -> None:
        await line.request()
        line.say(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: 1\n\n")
        await line.gone()

    async def conversation() -> None:
        clock = LoopClock()
        async with RawWeb(play) as server:
            wire = Wire(Remote(server.url))
            async with wire.send("GET", {}, silent_seconds=15) as answer:
                heard = answer.events(Events(1000))
                assert (await anext(heard)).data == "1"
                clock.advance(15)
                with pytest.raises(ConnectionLost, match="no data for too long"):
                    await anext(heard)
            await wire.close()

    run(conversation())


def test_a_server_that_does_not_take_a_request_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "WRITE_SECONDS", 0.1)

    async def play(line: Line) -> None:
        line.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await asyncio.sleep(20)

    async def conversation() -> None:
        async with RawWeb(play) as server:
            wire = Wire(Remote(server.url))
            with pytest.raises(ConnectionLost, match="the server has not read for 0"):
                await post(wire, b"x" * 20_000_000)
            await wire.close()

    run(conversation())


def test_a_server_may_answer_before_it_has_read_all(loop: asyncio.AbstractEventLoop) -> None:
    async def play(line: Line) -> None:
        line.writer.transport.pause_reading()  # type: ignore[attr-defined]
        line.say(HEAD.replace(b"200 OK", b"413 Too Large") + b"content-length: 2\r\n\r\n{}")
        await asyncio.sleep(20)

    async def conversation() -> None:
        async with RawWeb(play) as server:
            wire = Wire(Remote(server.url))
            async with wire.send("POST", POST, b"x" * 20_000_000) as answer:
                assert answer.status == 413
                assert await answer.body() == b"{}"
            assert wire._pool is not None
            assert wire._pool.take_idle() is None
            await wire.close()

    run(conversation(), loop)


def test_a_stream_that_no_one_reads_is_not_read_from_the_socket_either(
    loop: asyncio.AbstractEventLoop,
) -> None:
    async def play(line: Line) -> None:
        await line.request()
        line.say(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
        line.writer.transport.set_write_buffer_limits(high=100_000)
        for _ in range(1000):
            line.say(b": " + b"x" * 20_000 + b"\n")
            await line.writer.drain()
        line.say(b"data: end\n\n")

    async def conversation() -> None:
        async with RawWeb(play) as server:
            wire = Wire(Remote(server.url))
            async with wire.send("GET", {}) as answer:
                response = answer._response
                while response.unread <= connection.MOST_UNREAD:
                    await asyncio.sleep(0)
                for _ in range(100):
                    await asyncio.sleep(0)
                assert response.unread <= 2 * connection.MOST_UNREAD
                assert not response.is_complete
                assert [event.data async for event in answer.events(Events(100_000))] == ["end"]
            await wire.close()

    run(conversation(), loop)


# --- where requests go ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("", "/"),
        ("/mcp", "/mcp"),
        ("/mcp?a=b&c=%20d#part", "/mcp?a=b&c=%20d"),
        ("?key=1", "/?key=1"),
        ('/a"b`c{d}', "/a%22b%60c%7Bd%7D"),
        ("/a;b=c/@d:e", "/a;b=c/@d:e"),
    ],
)
def test_the_target_of_a_request_is_the_urls(path: str, target: str) -> None:
    async def conversation() -> None:
        async with RawWeb(again()) as server:
            wire = Wire(Remote(server.url.removesuffix("/mcp") + path, headers={"User-Agent": "mine"}))
            await post(wire)
            await wire.close()
            head = server.heads[0].decode()
            assert head.startswith(f"POST {target} HTTP/1.1\r\nhost: 127.0.0.1:{server.port}\r\n")
            assert "User-Agent: mine\r\n" in head
            assert "user-agent" not in head
            assert "accept-encoding: identity\r\n" in head

    run(conversation())


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ("http://user:word@127.0.0.1:{port}/other", None),
        ("HTTP://127.0.0.1:{port}/other", None),
        ("other", None),
        ("https://127.0.0.1:{port}/other", "which is another origin"),
        ("http://127.0.0.1/other", "which is another origin"),
        ("http://127.0.0.1:{port}x/", "redirects to an invalid URL"),
        ("file:///etc/passwd", "redirects to an invalid URL"),
    ],
)
def test_a_redirect_is_followed_within_the_origin_only(location: str, reason: str | None) -> None:
    async def conversation() -> None:
        async def play(line: Line) -> None:
            await line.request()
            place = location.replace("{port}", str(server.port)).encode()
            line.say(b"HTTP/1.1 308 Moved\r\nlocation: " + place + b"\r\ncontent-length: 0\r\n\r\n")
            await line.request()
            line.say(OK)

        async with RawWeb(play) as server:
            wire = Wire(Remote(server.url))
            if reason is None:
                assert await post(wire) == b"{}"
                assert server.heads[1].startswith(b"POST /other HTTP/1.1\r\n")
                assert b"uthorization" not in server.heads[1]
            else:
                with pytest.raises(HttpStatusError, match=reason):
                    await post(wire)
            await wire.close()

    run(conversation())


def test_cookies_go_back_until_they_expire() -> None:
    """A load balancer may send each request of a session to the same server by one."""
    said = [
        b"set-cookie: route=one; Path=/; HttpOnly\r\nset-cookie: b=2; Max-Age=60\r\n",
        b"set-cookie: route=two\r\nset-cookie: b=; Max-Age=0\r\nset-cookie: nothing\r\n",
        b"",
        b"set-cookie: route=x; expires=Thu, 01 Jan 1970 00:00:00 GMT\r\n",
        b"",
    ]

    async def conversation(headers: dict[str, str]) -> list[str | None]:
        async with RawWeb(again(*(OK.replace(b"\r\n", b"\r\n" + each, 1) for each in said))) as server:
            wire = Wire(Remote(server.url, headers=headers))
            sent = []
            for _ in said:
                assert await post(wire) == b"{}"
                sent.append(server.lines[0].field("cookie"))
            await wire.close()
            return sent

    assert run(conversation({})) == [None, "route=one; b=2", "route=two", "route=two", None]
    assert run(conversation({"Cookie": "mine=1"})) == ["mine=1"] * 5


def test_a_request_at_once_needs_an_idle_connection() -> None:
    async def conversation() -> None:
        async with RawWeb(again()) as server:
            wire = Wire(Remote(server.url, token="tok-of-somebody"))
            settled: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            assert wire.post_at_once(b"", b"{}", settled.set_result, "mine") is None
            await post(wire)
            response = wire.post_at_once(header_lines({"x": "y"}), b"{}", settled.set_result, "mine")
            assert response is not None
            assert await settled is response
            assert (response.status, response.body(), response.context) == (200, b"{}", "mine")
            assert b"\r\nAuthorization: Bearer tok-of-somebody\r\nx: y\r\n" in server.heads[1]
            assert len(server.lines) == 1
            await wire.close()

    run(conversation())


def test_who_is_gone_is_no_line() -> None:
    """The helper's own: a connection that is closed raises Gone in the script."""

    async def conversation() -> None:
        seen: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def play(line: Line) -> None:
            with pytest.raises(Gone):
                await line.request()
            seen.set_result(None)

        async with RawWeb(play) as server:
            _, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.close()
            await seen

    run(conversation())
