"""A peer that sends faster than it is read, without end: signals, time limits and other work have their turn.

What it sends may be blank lines, which are none, or lines that are no messages. The client's part without an
event loop, and the server over standard input and output, before there is a loop and in it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
from support.waiting import SECONDS

from fastrpc._core.client_stream import ClientStream
from fastrpc.errors import RequestTimeout

FAR_BEYOND = 10.0
"""Seconds after which a sender gives up, so that a reader that looks at nothing else ends, too late."""
SERVER = """
import os, signal
signal.signal(signal.SIGTERM, lambda *_: os._exit(0))  # until it serves
from fastrpc import Server

Server("flooded").run()
"""
# Its stream reads what never ends, in a loop that has something else to do: to end.
IN_A_LOOP = """
import asyncio, os
from fastrpc import Server
from fastrpc._core.stream import Stream

async def run():
    connection = Server("flooded").connect().connection
    sink = os.open(os.devnull, os.O_WRONLY)
    stream = Stream(connection, 0, sink, 1024, None)
    loop = asyncio.get_running_loop()
    ended = loop.create_future()
    loop.call_soon(ended.set_result, None)
    stream.attach(loop, print)
    await ended

asyncio.run(run())
"""


@pytest.mark.parametrize("text", [b"\n", b"rubbish\n", b'{"jsonrpc":"2.0","method":"notifications/x"}\n'])
def test_a_time_limit_without_an_event_loop_ends_whatever_else_comes(text: bytes) -> None:
    """Reading a chunk makes another one come, so there is always something to read."""
    source, end = os.pipe()
    os.set_blocking(source, False)
    stream = ClientStream()
    came: list[bytes] = []
    chunk = text * (4096 // len(text)) + b"{}\n"
    gives_up = time.monotonic() + FAR_BEYOND

    def refill(*_: Any) -> None:
        if (not came or came[-1] == b"{}") and time.monotonic() < gives_up:
            os.write(end, chunk)

    def unreadable(line: bytes) -> None:
        came.append(line)
        refill()

    stream.on_unreadable = unreadable
    stream.on_notification = lambda message: None
    stream.open(source, os.open(os.devnull, os.O_WRONLY | os.O_NONBLOCK))
    pending = stream.call("tool", None, 0.2)
    refill()
    while not stream.wait(pending):
        pass
    with pytest.raises(RequestTimeout):
        pending.result()
    assert time.monotonic() < gives_up  # another chunk would still have come
    stream.detach()
    os.close(source)
    os.close(end)


@contextlib.contextmanager
def reading_zeros(program: str) -> Iterator[subprocess.Popen[bytes]]:
    """A program whose standard input always has more, and never a whole line."""
    with open("/dev/zero", "rb") as zeros:
        process = subprocess.Popen([sys.executable, "-c", program], stdin=zeros, stdout=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_a_signal_ends_a_server_whose_client_never_stops_sending() -> None:
    with reading_zeros(SERVER) as process:
        time.sleep(2)  # it serves by now, most probably
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS) == 0


def test_a_loop_goes_on_while_its_stream_reads_what_never_ends() -> None:
    with reading_zeros(IN_A_LOOP) as process:
        assert process.wait(SECONDS) == 0
