"""The hot step against the twin: whatever way a call takes through the strict pass, shapes, simdjson or
the dispatcher, the tool is handed exactly what the line says, and the answer has its id's exact text.

Messages come in runs of one client's habit (order of members, white space, `_meta`), with other values each
time, because shapes are learned from runs; some are damaged, so that a shape meets its look-alikes. As
bodies of POSTs they hold newlines, too, where a client's habit has them.
"""

from __future__ import annotations

import array
import fcntl
import json
import os
import random
import sys
import termios
import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest
from support import twin

from fastrpc._core.connection import Connection
from fastrpc._core.plan import REQUIRED, Plan
from fastrpc._core.stream import END, Stream, release_signals

SEED = int(os.environ.get("FASTRPC_SEED", "1"))
LINES = int(os.environ.get("FASTRPC_DOCUMENTS", "20000"))
PARTS = 10
ABSENT = "absent"  # the default of every parameter
STATELESS = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
METAS: list[Any] = [
    None,
    None,
    None,
    {},
    {"traceparent": "00-ab"},
    STATELESS,
    {**STATELESS, "x": 1},
    {"progressToken": 1},
]


class Recorder:
    """A connection with one tool of three parameters; keeps what the tool and the dispatcher were handed."""

    def __init__(self) -> None:
        self.connection = Connection((b'"}],"isError":false}}\n',) * 4, (b'"}],"modern":true}}\n',) * 4)
        self.connection.dispatcher = self.connection.delegate = self.responses = self
        self.connection.open = True
        parameters = [(name, "json", ABSENT, False) for name in ("a", "b", "text")]
        plan = Plan(None, "tool", self.tool, parameters, inline=True, adaptive=False)
        self.connection.take_plans({"tool": plan})
        self.seen: list[Any] = []
        self.called: tuple[Any, ...] | None = None
        self.dispatched: str | None = None

    def tool(self, a: Any, b: Any, text: Any) -> str:
        self.called = (a, b, text)
        self.seen.append(self.called)
        return "ok"

    def dispatch(self, message: Any) -> None:
        self.dispatched = message.kind
        self.seen.append(message.kind)
        self.params = message.params

    def line_too_long(self) -> None:
        self.seen.append("too long")

    def on_client_idle(self) -> bool:
        return False

    def feed(self, line: bytes) -> bytes:
        self.called = self.dispatched = None
        self.connection.receive(line)
        return self.connection.output.take()


class Habit:
    """How one client writes its calls; with `newlines`, as bodies of POSTs that may hold some."""

    def __init__(self, chance: random.Random, newlines: bool = False) -> None:
        self.chance = chance
        self.newlines = newlines
        self.order = chance.sample(["jsonrpc", "id", "method", "params"], 4)
        self.inner = chance.sample(["name", "arguments", "_meta"], 3)
        self.names = chance.sample(["a", "b", "text", "other"], chance.randint(0, 4))
        over_lines = [(",\n", ":"), ("\r\n,", ":\n")] if newlines else []
        self.separators = chance.choice([(",", ":"), (", ", ": "), (" ,\t", ":"), *over_lines])
        self.indent = chance.choice([0, 2, "\t", None, None, None]) if newlines else None
        self.meta_space = "\n" * chance.choice([0, 0, 1, 64, 65, 66, 900]) if newlines else ""
        self.escapes = chance.random() < 0.3
        self.meta = chance.choice(METAS)
        self.text_ids = chance.random() < 0.3

    def line(self) -> bytes:
        chance = self.chance
        arguments = {name: self.value() for name in self.names}
        params = {"name": "tool", "arguments": arguments, "_meta": self.meta}
        inner = {name: params[name] for name in self.inner if params[name] is not None}
        number = chance.choice([0, 1, 7, 10**17, 10**18, 2**63, chance.randint(0, 10**6), -5])
        message = {"jsonrpc": "2.0", "id": f"é{number}" if self.text_ids else number}
        message |= {"method": "tools/call", "params": inner}
        ordered = {name: message[name] for name in self.order}
        line = self.encoded(ordered).encode()
        start, key, rest = line.partition(b'"_meta"%b{' % self.separators[1].encode())
        line = start + key + self.meta_space.encode() + rest if key else line
        if chance.random() < 0.15:
            line = self.damaged(line)
        return line

    def value(self) -> Any:
        chance = self.chance
        plain = [
            "",
            "plain",
            "x" * chance.randint(0, 40),
            "é漢🎉",
            'q"\\',
            0,
            -1,
            17,
            10**18,
            10**20,
            -(2**63),
            True,
            False,
            None,
        ]
        return chance.choice([*plain, *plain, 1.5, [1], {"k": "v"}])

    def damaged(self, line: bytes) -> bytes:
        chance = self.chance
        at = chance.randrange(len(line))
        damaged = chance.choice(
            [
                line[:at],
                line[:at] + line[at + 1 :],
                line[:at] + bytes([chance.randrange(256)]) + line[at + 1 :],
                line[:at]
                + chance.choice([b'"', b"\\", b",", b"}", b" ", b"0", b"\x00", b"\xff"])
                + line[at:],
                line + chance.choice([b" ", b"}", b"x", b"\t\r"]),
                line[: line.find(b'"_meta"') + chance.randint(0, 80)],
                line.replace(b'"a":', b'"b":'),
                line.replace(b'"id":', b'"id": ', 1),
                *(
                    self.doubled(line, name)
                    for name in ("jsonrpc", "id", "method", "params", "name", "_meta")
                ),
            ]
        )
        return damaged if self.newlines else damaged.replace(b"\n", b"")

    def doubled(self, line: bytes, name: str) -> bytes:
        """The line with a member twice, its value the same or another."""
        message = json.loads(line)
        holder = message if name in message else message.get("params", {})
        if name not in holder:
            return line
        value = self.chance.choice([holder[name], None, {}])
        key, colon = json.dumps(name), self.separators[1]
        one = (key + colon + self.encoded(holder[name])).encode()
        return line.replace(one, one + b"," + (key + colon + self.encoded(value)).encode(), 1)

    def encoded(self, value: Any) -> str:
        return json.dumps(value, separators=self.separators, ensure_ascii=self.escapes, indent=self.indent)


def is_call(verdict: twin.Verdict) -> bool:
    """May the connection answer this by itself?"""
    params = verdict.params
    if verdict.kind != "request" or verdict.method != "tools/call" or not isinstance(params, dict):
        return False
    return params.get("name") == "tool" and isinstance(params.get("arguments", {}), dict)


def expected(verdict: twin.Verdict) -> tuple[Any, ...]:
    arguments = verdict.params.get("arguments", {})
    return tuple(arguments.get(name, ABSENT) for name in ("a", "b", "text"))


def check(recorder: Recorder, line: bytes) -> bool:
    """Feed a line; return whether the tool was called by the connection itself."""
    verdict = twin.judge(line)
    output = recorder.feed(line)
    if recorder.called is None:
        assert recorder.dispatched == verdict.kind, line
        if verdict.kind == "request":
            assert repr(recorder.params) == repr(verdict.params), line
        assert output == b""
        return False
    assert is_call(verdict), line
    assert repr(recorder.called) == repr(expected(verdict)), line
    assert output.startswith(b'{"jsonrpc":"2.0","id":' + (verdict.id or b"?") + b',"result":'), line
    meta = verdict.params.get("_meta") or {}
    assert output.endswith(b'"modern":true}}\n') == (meta.get(next(iter(STATELESS))) == "2026-07-28"), line
    return True


@pytest.mark.parametrize("part", range(PARTS), ids=lambda part: f"seed={SEED}.{part}")
def test_a_tool_is_handed_what_the_line_says(part: int) -> None:
    chance = random.Random(f"{SEED}.{part}")
    recorder = Recorder()
    called = 0
    left = LINES // PARTS
    while left > 0:
        habits = [Habit(chance, newlines=True) for _ in range(chance.choice([1, 1, 1, 2]))]
        for _ in range(chance.randint(1, 60)):
            called += check(recorder, chance.choice(habits).line())
            left -= 1
    assert called > LINES // PARTS // 3, "the generator hardly makes calls any more"


@pytest.mark.parametrize("part", range(4), ids=lambda part: f"seed={SEED}.{part}")
def test_a_stream_in_any_pieces_says_what_single_lines_say(part: int, tmp_path: Any) -> None:
    """Known lines are read before their end is known: no piece, limit or look-alike may change an answer."""
    chance = random.Random(f"{SEED}.stream.{part}")
    limit = (110, 140, 200, 1 << 20)[part]
    lines = []
    for _ in range(LINES // 400):
        habit = Habit(chance)
        lines += [line for line in (habit.line() for _ in range(chance.randint(1, 30))) if line.strip()]
    single = Recorder()
    expected = b""
    for line in lines:
        if len(line) <= limit:
            expected += single.feed(line)
        else:
            single.line_too_long()
    streamed = Recorder()
    assert stream(streamed, lines, limit, chance, tmp_path / "answers") == expected
    assert streamed.seen == single.seen
    assert sum(type(each) is tuple for each in streamed.seen) > len(lines) // 30


def stream(recorder: Recorder, lines: list[bytes], limit: int, chance: random.Random, answers: Any) -> bytes:
    """Feed lines through pipes in random pieces; return what was answered."""
    data = b"\n".join(lines) + chance.choice([b"", b"\n"])
    out, into = os.pipe()
    os.set_blocking(out, False)

    def feed() -> None:
        at = 0
        while at < len(data):
            size = chance.choice([1, 2, 7, 63, 64, 65, 200, 1000, 5000, 0, 0])
            if size == 0:  # all but the newline
                size = max(data.find(b"\n", at) - at, 1)
            at += os.write(into, data[at : at + size])
            if chance.random() < 0.5:
                wait_until_read(out)
        os.close(into)

    with open(answers, "wb") as file:
        pump = Stream(recorder.connection, out, file.fileno(), limit)
        feeder = threading.Thread(target=feed)
        feeder.start()
        try:
            assert pump.run() == END
        finally:
            release_signals()
            feeder.join()
            os.close(out)
    return answers.read_bytes()


def wait_until_read(pipe: int) -> None:
    waiting = array.array("i", [1])
    until = time.monotonic() + 5
    while waiting[0] and time.monotonic() < until:
        time.sleep(0)
        fcntl.ioctl(pipe, termios.FIONREAD, waiting)


def test_arguments_that_do_not_fit_plainly_are_bound_again_from_the_whole_of_them() -> None:
    recorder = Recorder()
    handed = []

    def binder(arguments: Any) -> Any:
        handed.append(arguments)
        return ["b", "o", "u"] if arguments else "a: required, missing"

    tool = SimpleNamespace(signature=SimpleNamespace(binder=binder))
    parameters = [(name, "str", REQUIRED, False) for name in ("a", "b", "text")]
    plan = Plan(tool, "tool", recorder.tool, parameters, inline=True, adaptive=False)
    recorder.connection.take_plans({"tool": plan})
    given = [{"a": 1}, {"a": None, "b": "é\n"}, {"b": "x"}, {"a": "x", "c": [2.5]}, {"a": 10**17}]
    for arguments in given * 2:
        line = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"tool","arguments":%s}}'
        assert b'"text":"ok"' in recorder.feed((line % json.dumps(arguments)).encode())
        assert recorder.called == ("b", "o", "u")
    assert handed == given * 2
    assert b"a: required, missing" in recorder.feed((line % "{}").encode())
    assert (recorder.called, recorder.dispatched) == (None, None)


@pytest.mark.parametrize(
    "arguments",
    ['{"a":"x","a":"%s"}', '{"a":"x","\\u0061":"%s"}', '{"a":[1],"a":"%s"}', '{"b":"x","a":"x","a":"%s"}'],
)
def test_the_last_of_two_equal_arguments_counts(arguments: str) -> None:
    recorder = Recorder()
    line = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"tool","arguments":%s}}'
    before = None
    for number in range(20):  # like lines may be read another way than the first
        recorder.feed((line % arguments % f"text {number}").encode())
        assert recorder.called == (f"text {number}", "x" if "b" in arguments else ABSENT, ABSENT)
        references = sys.getrefcount(recorder.called[0])
        assert before in (None, references)
        before = references


@pytest.mark.parametrize("cut", [b"", b"{", b"{" + b"\n" * 70, b"{" + b"\n" * 899])
def test_a_body_cut_short_inside_a_known_meta_is_broken(cut: bytes) -> None:
    """Read on behind the body's end, its memory, which `make sanitize` sees: newlines go on where it ends."""
    line = (
        b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"tool","arguments":{},"_meta":%b}}'
    )
    for meta in (b"{" + b"\n" * 900 + b"}", b"{}" + b"\n" * 60):
        recorder = Recorder()
        for number in range(3):
            recorder.feed(line % (number, meta))
            assert recorder.called == (ABSENT, ABSENT, ABSENT)
        assert recorder.feed(line[: line.rindex(b"%b")] % 4 + cut) == b""
        assert (recorder.called, recorder.dispatched) == (None, "broken")
        recorder.feed(line % (5, meta))
        assert recorder.called == (ABSENT, ABSENT, ABSENT)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\n\n", b"\n}", b"\n" + b"x" * 70, b"\n\0"])
def test_a_newline_after_a_known_call_ends_no_body(end: bytes) -> None:
    recorder = Recorder()
    line = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"tool","arguments":{"a":%d}}}'
    for number in range(3):
        recorder.feed(line % (number, number))
        check(recorder, line % (number, number) + end)
        assert (recorder.called is None) == bool(end.strip())
        check(recorder, line % (number, number) + end + line % (number, number))
        assert (recorder.called, recorder.dispatched) == (None, "broken")


def test_of_two_equal_versions_in_a_meta_the_last_counts() -> None:
    recorder = Recorder()
    line = (
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"tool","_meta":'
        b'{"io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/protocolVersion":%b,'
        b'"io.modelcontextprotocol/protocolVersion":%b}}}'
    )
    for first, last in ((b"5", b'"2026-07-28"'), (b'"2026-07-28"', b"5"), (b'"2026-07-28"', b"null")):
        recorder.feed(line % (first, last))
        assert (recorder.called is not None) == (last == b'"2026-07-28"')


def test_an_empty_line_is_not_like_the_one_before_it() -> None:
    recorder = Recorder()
    for number in range(3):
        recorder.feed(b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"tool"}}' % number)
        assert recorder.called == (ABSENT, ABSENT, ABSENT)
    assert recorder.feed(b"") == b""
    assert (recorder.called, recorder.dispatched) == (None, "broken")


def test_a_shape_that_names_no_tool_calls_none() -> None:
    recorder = Recorder()
    line = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%b","arguments":{"a":%d}}}'
    for name in (b"tool", b"nobody", b"tool", b"tool"):
        for number in range(5):
            recorder.feed(line % (number, name, number))
            if name == b"tool":
                assert recorder.called == (number, ABSENT, ABSENT)
            else:
                assert (recorder.called, recorder.dispatched) == (None, "request")


def test_a_shape_outlives_neither_its_tool_nor_its_plan() -> None:
    recorder = Recorder()
    line = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"tool","arguments":{"a":1}}}'
    for number in range(3):
        recorder.feed(line % number)
    recorder.connection.take_plans({})
    recorder.feed(line % 4)
    assert (recorder.called, recorder.dispatched) == (None, "request")
    plan = Plan(None, "tool", "other {}".format, [("a", "int", REQUIRED, False)], inline=True, adaptive=False)
    recorder.connection.take_plans({"tool": plan})
    assert b"other 1" in recorder.feed(line % 5)
