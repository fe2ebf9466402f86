"""However a response is cut into packets, the client reads the same out of it: right ones and broken ones.

Responses are made from right ones by framing, interim responses and compression, and some are then changed
byte by byte. The connection is fed in process, without a socket. FASTRPC_RESPONSES says how many are tried,
FASTRPC_SEED which.
"""

from __future__ import annotations

import asyncio
import gzip
import os
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

pytest.importorskip("httptools", reason="the client's side of HTTP stands on it: pip install httptools")

from fastrpc.client.http.connection import HttpConnection, Response

SEED = int(os.environ.get("FASTRPC_SEED", "1"))
RESPONSES = int(os.environ.get("FASTRPC_RESPONSES", "300"))


class Transport:
    """What a connection needs of asyncio's, without a socket."""

    def __init__(self) -> None:
        self.is_closed = False
        self.is_paused = False

    def get_extra_info(self, name: str) -> Any:
        return self

    def fileno(self) -> int:
        return -1

    def write(self, data: bytes) -> None:
        pass

    def writelines(self, parts: Any) -> None:
        pass

    def abort(self) -> None:
        self.is_closed = True

    close = abort

    def is_closing(self) -> bool:
        return self.is_closed

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False


def chunks(body: bytes, size: int) -> bytes:
    parts = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


@st.composite
def responses(draw: st.DrawFn) -> bytes:
    """A response as a server could send it."""
    interim = b"HTTP/1.1 100 Continue\r\n\r\n" * draw(st.integers(0, 2))
    status = draw(st.sampled_from([200, 202, 204, 304, 400, 401, 500]))
    version = draw(st.sampled_from([b"1.0", b"1.1"]))
    kind = draw(st.sampled_from([b"application/json", b"text/event-stream; charset=utf-8", b"text/html"]))
    body = draw(st.sampled_from([b"", b"{}", b'{"id":1,"result":{}}', b"data: 1\n\n" * 9, b"\r\n\r\n0\r\n"]))
    head = b"HTTP/%b %d Said\r\nContent-Type: %b\r\nMcp-Session-Id: one\r\n" % (version, status, kind)
    if draw(st.booleans()):
        head += b"content-encoding: gzip\r\n"
        body = gzip.compress(body, mtime=0)
    if draw(st.booleans()):
        head += b"connection: " + draw(st.sampled_from([b"close", b"keep-alive"])) + b"\r\n"
    framing = draw(st.sampled_from(["length", "chunks", "end"]))
    if status in (204, 304):
        return interim + head + b"\r\n"
    if framing == "length":
        return interim + head + b"content-length: %d\r\n\r\n" % len(body) + body
    if framing == "chunks":
        return interim + head + b"transfer-encoding: chunked\r\n\r\n" + chunks(body, draw(st.integers(1, 9)))
    return interim + head + b"\r\n" + body


@st.composite
def broken(draw: st.DrawFn) -> bytes:
    """A response with some bytes changed, left out or put in."""
    data = bytearray(draw(responses()))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, max(0, len(data) - 1)))
        new = draw(
            st.sampled_from([b"", b"\r", b"\n", b"\r\n", b"0", b"9", b":", b" ", b"\0", b"\xff", b"zz"])
        )
        data[at : at + draw(st.integers(0, 2))] = new
    return bytes(data)


def read(parts: list[bytes], before: bytes = b"") -> tuple[Any, ...] | None:
    """What a client reads out of a response in these packets, and then the end of the connection; None if the
    connection cannot be used again after the response `before`."""
    loop = asyncio.new_event_loop()
    try:
        idle: list[HttpConnection] = []
        connection = HttpConnection(loop, idle.append, lambda _: None)
        transport = Transport()
        connection.connection_made(transport)
        if before:
            connection.send(b"POST / HTTP/1.1\r\n\r\n", b"{}", Response(lambda _: None))
            connection.data_received(before)
            if not idle or transport.is_closed:
                return None
            idle.clear()
        settled: list[Response] = []
        response = Response(settled.append)
        connection.send(b"POST / HTTP/1.1\r\n\r\n", b"{}", response)
        for part in parts:
            if part and not transport.is_closed:
                connection.data_received(part)
        connection.connection_lost(None)
        assert settled == [response]
        assert len(idle) <= 1
        if not response.is_complete:
            return False, type(response.error)
        assert response.error is None
        head = response.status, response.reason, response.kind, response.has_special_headers
        return True, *head, response.headers, response.body()
    finally:
        loop.close()


@given(broken(), st.lists(st.integers(0, 400), max_size=12))
@seed(SEED)
@settings(max_examples=RESPONSES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_the_packets_of_a_response_do_not_change_it(data: bytes, cuts: list[int]) -> None:
    whole = read([data])
    assert read([data[at:to] for at, to in pairwise([0, *sorted(cuts), len(data)]) if at < to]) == whole
    assert read([bytes([byte]) for byte in data]) == whole


@st.composite
def common(draw: st.DrawFn) -> bytes:
    """A response of the kind whose head may come again, and some that look like one."""
    interim = draw(st.sampled_from([b"", b"", b"HTTP/1.1 100 Continue\r\n\r\n"]))
    kind = draw(st.sampled_from([b"application/json", b"application/json", b"text/event-stream"]))
    body = draw(st.sampled_from([b"{}", b"[]", b"null", b"\r\n\r\n", b'{"id":1,"result":{}}']))
    lines = [b"HTTP/1.1 200 OK", b"Content-Type: " + kind]
    lines += draw(st.sampled_from([[], [b"connection: close"], [b"set-cookie: a=b"], [b"x: y"]]))
    if draw(st.integers(0, 5)) == 0:
        return interim + b"\r\n".join([*lines, b"transfer-encoding: chunked", b"", b""]) + chunks(body, 2)
    end = draw(st.sampled_from([b"\r\n", b"\r\n", b"\n"]))
    return interim + end.join([*lines, b"content-length: %d" % len(body), b"", b""]) + body


@given(common(), common(), st.lists(st.integers(0, 200), max_size=8), st.booleans(), st.binary(max_size=3))
@seed(SEED)
@settings(max_examples=RESPONSES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_response_means_the_same_after_another_one_with_the_same_head_or_not(
    before: bytes, other: bytes, cuts: list[int], is_same: bool, more: bytes
) -> None:
    data = (before if is_same else other) + more
    parts = [data[at:to] for at, to in pairwise([0, *sorted(cuts), len(data)]) if at < to]
    again = read(parts, before)
    assert again is None or again == read(parts)


def test_a_head_that_comes_again_is_not_parsed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    headers: list[bytes] = []
    on_header = HttpConnection.on_header

    def noting(self: HttpConnection, name: bytes, value: bytes) -> None:
        headers.append(name)
        on_header(self, name, value)

    monkeypatch.setattr(HttpConnection, "on_header", noting)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    first, same, other = head % 2 + b"{}", head % 2 + b"[]", head % 4 + b"null"
    for before, data, count in ((b"", first, 2), (first, same, 2), (first, other, 4)):
        headers.clear()
        complete = read([data], before)
        assert complete is not None
        assert (complete[-1], len(headers)) == (data.partition(b"\r\n\r\n")[2], count)
