"""The compiled stream in an event loop: it says once that the input is over, however the end comes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fastrpc import Server
from fastrpc._core.stream import BROKEN, END, Stream


class Turns:
    """An event loop that does what it is asked to when a test says so."""

    def __init__(self) -> None:
        self.soon: list[Callable[[], object]] = []
        self.readers: dict[int, Callable[[], object]] = {}
        self.writers: dict[int, Callable[[], object]] = {}

    def call_soon(self, function: Callable[[], object], *values: Any) -> None:
        self.soon.append(function)

    def add_reader(self, descriptor: int, function: Callable[[], object]) -> None:
        self.readers[descriptor] = function

    def remove_reader(self, descriptor: int) -> None:
        del self.readers[descriptor]

    def add_writer(self, descriptor: int, function: Callable[[], object]) -> None:
        self.writers[descriptor] = function

    def remove_writer(self, descriptor: int) -> None:
        del self.writers[descriptor]


class Pipes:
    """A server's stream between two pipes, in `Turns`."""

    def __init__(self) -> None:
        app = Server("t")

        @app.tool(run="inline")
        def echo(text: str, times: int) -> str:
            return text * times

        self.input, self.client_output = os.pipe()
        self.client_input, self.output = os.pipe()
        for descriptor in (self.input, self.output, self.client_input):
            os.set_blocking(descriptor, False)
        self.dispatcher = app.connect()
        self.stream = Stream(self.dispatcher.connection, self.input, self.output, 1 << 24)
        self.loop: Any = Turns()
        self.ends: list[int] = []
        self.stream.attach(self.loop, self.ends.append)

    def close_input(self) -> None:
        os.close(self.client_output)
        self.client_output = -1

    def read(self) -> bytes:
        try:
            return os.read(self.client_input, 1 << 20)
        except BlockingIOError:
            return b""


@pytest.fixture
def pipes() -> Iterator[Pipes]:
    pipes = Pipes()
    yield pipes
    for descriptor in (pipes.input, pipes.output, pipes.client_input, pipes.client_output):
        if descriptor >= 0:
            os.close(descriptor)


CALL = (
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":'
    b'{"text":"xxxxxxxxxx","times":300000},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
    b'"io.modelcontextprotocol/clientCapabilities":{}}}}'
)


def test_a_turn_that_was_due_when_the_input_ended_does_not_say_so_again(pipes: Pipes) -> None:
    pipes.close_input()
    for _ in range(3):  # the reader of the loop, and a turn that was put off
        pipes.stream.turn()
    assert pipes.ends == [END]


def test_output_that_breaks_after_the_end_is_reported_too(pipes: Pipes) -> None:
    pipes.close_input()
    pipes.stream.turn()
    os.close(pipes.client_input)
    pipes.client_input = -1
    pipes.dispatcher.connection.output.line(b"late")
    pipes.stream.flush()
    pipes.stream.flush()
    assert pipes.ends == [END, BROKEN]


def test_the_end_is_said_when_the_answer_to_a_last_line_without_a_newline_has_drained(pipes: Pipes) -> None:
    os.write(pipes.client_output, CALL)
    pipes.close_input()
    pipes.stream.turn()
    assert pipes.ends == []  # the answer is larger than the pipe
    came = b""
    for _ in range(10_000):
        came += pipes.read()
        if pipes.output in pipes.loop.writers:
            pipes.loop.writers[pipes.output]()
        elif not pipes.stream.unsent:
            break
    came += pipes.read()
    assert came.endswith(b"}\n")
    assert len(came) > 3_000_000
    assert pipes.ends == [END]
