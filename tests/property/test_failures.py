"""What a tool raises, the compiled way against the dispatcher's, which is its oracle: the same answer to the
byte, and the same records, whatever is raised."""

from __future__ import annotations

import logging
import os
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastrpc import Context, Server, ToolError, tracebacks
from fastrpc.engine.connection_delegate import ConnectionDelegate
from fastrpc.errors import ArgumentError, InvalidParams, MissingRequiredClientCapability
from fastrpc.protocol.versions import STATELESS

SECRET = "a-planted-secret"
INITIALIZE = (
    b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
    b'"capabilities":{},"clientInfo":{"name":"x","version":"1"}}}'
)
META = (
    b',"_meta":{"io.modelcontextprotocol/protocolVersion":"%b",'
    b'"io.modelcontextprotocol/clientCapabilities":{}}' % STATELESS.encode()
)


class Refusal(ToolError):
    """Has separate words."""

    def __str__(self) -> str:
        return "in other words"


class Mute(Exception):
    """Cannot be said."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


class Text(str):
    """A text of another type."""


class Odd(Exception):
    """Says a text of another type."""

    def __str__(self) -> str:
        return Text("odd")


class Last(BaseException):
    """No Exception."""


Strange = type("Fehlér", (Exception,), {})
KINDS: list[type[BaseException]] = [
    ToolError, Refusal, MissingRequiredClientCapability, ArgumentError, InvalidParams, ValueError, KeyError,
    OSError, UnicodeError, Mute, Odd, Last, Strange, SystemExit, KeyboardInterrupt, StopIteration,
]  # fmt: skip
VALUES = st.one_of(
    st.text(max_size=20),
    st.characters(categories=["Cs"]),
    st.sampled_from(["", f"it is {SECRET}", "token=s3cret", "Bearer s3cret.x", "é" * 30, "x" * 40_000]),
    st.integers(),
    st.none(),
    st.builds(Text, st.text(max_size=5)),
)
ERRORS = st.tuples(st.sampled_from(KINDS), st.lists(VALUES, max_size=2))


class Raiser:
    """A server with two tools that raise the same: one for the compiled way, one for the dispatcher."""

    def __init__(self) -> None:
        app = Server("t")
        self.error: BaseException = ValueError()

        @app.tool(run="inline", name="failing")
        def failing(text: str) -> str:
            raise self.error

        @app.tool(run="inline", name="oracles")
        def with_context(text: str, context: Context) -> str:
            raise self.error

        self.connection = app.connect().connection
        self.connection.call_in_loop = lambda function: function()
        self.connection.receive(INITIALIZE)
        self.connection.receive(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
        self.connection.output.take()

    def answer(self, tool: bytes, error: BaseException, meta: bytes) -> bytes:
        self.error = error.with_traceback(None)
        params = b'{"name":"%b","arguments":{"text":"x"}%b}' % (tool, meta)
        self.connection.receive(b'{"jsonrpc":"2.0","id":"a-1","method":"tools/call","params":%b}' % params)
        answer: bytes = self.connection.output.take()
        return answer


RAISER = Raiser()


class Records(logging.Handler):
    """Keeps what is logged, by the tool."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: dict[str, list[str]] = {"failing": [], "oracles": []}

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage().partition(", at ")[0]
        for tool, messages in self.messages.items():
            if tool in message:
                messages.append(message.replace(tool, "it"))


@settings(max_examples=400, deadline=None)
@given(st.lists(ERRORS, min_size=1, max_size=4), st.sampled_from([b"", META]))
def test_the_compiled_way_says_what_the_dispatcher_says(
    raised: list[tuple[type[BaseException], list[Any]]], meta: bytes
) -> None:
    records = Records()
    logger = logging.getLogger("fastrpc")
    logger.addHandler(records)
    logger.propagate = False  # a report of pytest cannot hold half a surrogate pair, which these do
    os.environ["MY_TOKEN"] = SECRET
    try:
        for kind, values in raised:
            try:
                error = kind(*values)
            except TypeError:
                continue
            compiled = [RAISER.answer(b"failing", error, meta) for _ in range(3)]
            dispatched = [RAISER.answer(b"oracles", error, meta) for _ in range(3)]
            assert compiled == dispatched
            assert SECRET.encode() not in compiled[0] or isinstance(
                error, ToolError | ArgumentError | InvalidParams
            )
        tracebacks.finish()
    finally:
        del os.environ["MY_TOKEN"]
        logger.propagate = True
        logger.removeHandler(records)
    assert sorted(records.messages["failing"]) == sorted(records.messages["oracles"])


@pytest.mark.parametrize("error", [ToolError("no"), ValueError("no")])
def test_the_likely_failure_does_not_reach_the_dispatcher(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    raiser = Raiser()
    monkeypatch.setattr(ConnectionDelegate, "call_failed", None)
    for _ in range(3):
        assert b'"isError":true' in raiser.answer(b"failing", error, b"")
    tracebacks.finish()
