"""The compiled core against its plain-Python twin: the same verdict for every line, the same lines for
every chunking (scorecard A2, and the pairs of bytes of A3).

20,000 generated documents in all, some 10 seconds. Each test's id holds its seed; FASTRPC_SEED=N takes
another one, FASTRPC_DOCUMENTS=N another number of documents. A line on which the two differ is cut down
to a short one before it is shown.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from typing import Any

import pytest
from support import twin
from support.message_generator import Generator

framer = pytest.importorskip("fastrpc._core.framer", reason="the compiled core is not built")
message = pytest.importorskip("fastrpc._core.message", reason="the compiled core is not built")

SEED = int(os.environ.get("FASTRPC_SEED", "1"))
DOCUMENTS = int(os.environ.get("FASTRPC_DOCUMENTS", "20000"))
PARTS = 20
SEEDS = [pytest.param(f"{SEED}.{part}", id=f"seed={SEED}.{part}") for part in range(PARTS)]

READER = message.Message()  # one for all lines: what an earlier line left behind must not show


def compiled(line: bytes) -> twin.Verdict:
    """Say of `line` what the compiled core says."""
    READER.read(line)
    if READER.kind in ("request", "notification"):
        return twin.Verdict(READER.kind, READER.id, READER.method, READER.params, READER.error_code)
    shown_id = READER.id if READER.kind in ("broken", "invalid", "response") else None
    return twin.Verdict(READER.kind, shown_id, error_code=READER.error_code, answered_id=READER.answered_id)


def difference(left: Any, right: Any, path: str = "$") -> str:
    """Say where two values differ in value or type, doubles to the last bit; "" if they do not."""
    if type(left) is not type(right):
        return f"{path}: {type(left)} and {type(right)}"
    if isinstance(left, float):
        left, right = struct.pack("<d", left), struct.pack("<d", right)
    pairs: list[tuple[Any, Any, Any]] = []
    if isinstance(left, dict) and left.keys() == right.keys():
        pairs = [(key, left[key], right[key]) for key in left]
    elif isinstance(left, list | tuple) and len(left) == len(right):
        pairs = list(zip(range(len(left)), left, right, strict=True))
    elif left != right:
        return f"{path}: {left!r} and {right!r}"
    found = (difference(ours, theirs, f"{path}[{key!r}]") for key, ours, theirs in pairs)
    return next(filter(None, found), "")


def differ(line: bytes) -> bool:
    return difference(compiled(line), twin.judge(line)) != ""


def shortened(line: bytes, fails: Callable[[bytes], bool]) -> bytes:
    """Cut pieces out of `line`, large ones first, as long as it still fails."""
    size = len(line)
    while size:
        at = 0
        while at < len(line):
            shorter = line[:at] + line[at + size :]
            if shorter and fails(shorter):
                line = shorter
            else:
                at += size
        size //= 2
    return line


def assert_alike(line: bytes) -> None:
    if not differ(line):
        return
    short = shortened(line, differ)
    ours, theirs = compiled(short), twin.judge(short)
    where = difference(ours, theirs)
    pytest.fail(f"{short!r}\ncompiled {ours}\ntwin     {theirs}\n{where}"[:3000], pytrace=False)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_compiled_core_and_the_twin_read_every_line_alike(seed: str) -> None:
    generator = Generator(seed)
    for _ in range(DOCUMENTS // PARTS):
        assert_alike(generator.line())


@pytest.mark.long
@pytest.mark.parametrize("seed", SEEDS)
def test_the_compiled_core_and_the_twin_read_every_body_alike(seed: str) -> None:
    generator = Generator(f"body {seed}")
    for _ in range(DOCUMENTS // PARTS):
        assert_alike(generator.body())


@pytest.mark.parametrize("space", [b"\n", b"\r\n", b"\n\n  ", b" \n", b"\t\n\r ", b"\n" * 100])
@pytest.mark.parametrize("id", [b"7", b'"seven"', b"18446744073709551616", b'"\\u0037"'])
def test_white_space_around_an_id_is_no_part_of_it(id: bytes, space: bytes) -> None:
    for body in (
        b'{"jsonrpc":"2.0","method":"ping","id":%b%b%b}',
        b'{"id":%b%b%b,"jsonrpc":"2.0","method":"ping"}',
        b'{"id":%b%b%b,"jsonrpc":"2.0","method":"tools/call","params":{"name":"a","arguments":{"a":[1]}}}',
        b'{"jsonrpc":"2.0","method":"ping","params":[],"id":%b%b%b}',
        b'{"jsonrpc":"2.0","result":{},"id":%b%b%b}',
        b'{"jsonrpc":"2.0","method":"ping","params":{"n":18446744073709551616},"id":%b%b%b}',
    ):
        READER.read(body % (space, id, space))
        assert READER.id == id
        assert_alike(body % (space, id, space))


@pytest.mark.parametrize("seed", SEEDS)
def test_any_chunking_of_a_stream_gives_the_same_lines(seed: str) -> None:
    generator = Generator(f"chunks {seed}")
    for _ in range(20):
        lines = [generator.line() for _ in range(25)]
        stream = generator.stream(lines)
        limit = generator.pick((twin.MAX_LINE, 4096, 300, 20, 1))
        cutter = framer.Framer(max_line=limit)
        found = [line for chunk in generator.chunks(stream) for line in cutter.feed(chunk)]
        assert found + cutter.finish() == twin.frames(stream, limit)


@pytest.mark.parametrize("space", [b"", b"\r", b"\n", b" \r\n\t"])
@pytest.mark.parametrize("seed", SEEDS[:4])
def test_a_batch_falls_into_elements_that_are_read_as_they_would_be_alone(seed: str, space: bytes) -> None:
    generator = Generator(f"batch {seed}")
    for _ in range(100):
        texts = [
            text for text in (generator.message() for _ in range(5)) if twin.judge(text).kind != "broken"
        ]
        line = space + b"[" + b",".join(space + text + space for text in texts) + b"]" + space
        if not texts or twin.judge(line).kind == "broken":
            continue
        READER.read(line)
        assert READER.kind == "batch"
        assert READER.elements() == [text.strip(twin.WHITE_SPACE) for text in texts]


@pytest.mark.long
@pytest.mark.parametrize("place", ["value", "key", "method", "id", "between"])
def test_every_pair_of_bytes_is_refused_or_carried_exactly(place: str) -> None:
    templates = {
        "value": b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"","arguments":{"":"%b"}}}',
        "key": b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"%b":1}}}',
        "method": b'{"jsonrpc":"2.0","id":1,"method":"%b"}',
        "id": b'{"jsonrpc":"2.0","id":"%b","method":"ping"}',
        "between": b'{"jsonrpc":"2.0","id":1,%b"method":"ping"}',
    }
    template = templates[place]
    step = 1 if place == "value" else 7  # every pair once in full, a seventh of them elsewhere
    for pair in range(0, 65536, step):
        line = template % pair.to_bytes(2, "big")
        if b"\n" not in line:
            assert_alike(line)


@pytest.mark.parametrize("levels", [1, 126, 127, 128, 129, 130, 1000, 100_000])
@pytest.mark.parametrize("inner", [b"", b"1", b"1e400", b"18446744073709551616"])
def test_depth_is_judged_alike_with_and_without_numbers_that_take_the_slow_way(
    levels: int, inner: bytes
) -> None:
    for opened, closed in ((b"[", b"]"), (b'{"a":', b"}")):
        value = opened * levels + (inner or b"0") + closed * levels
        if not inner:
            value = (opened * levels)[: -len(opened) + 1] + closed * levels
        assert_alike(value)
        assert_alike(b'{"jsonrpc":"2.0","id":1,"method":"a","params":{"arguments":' + value + b"}}")


def test_a_message_of_every_kind_after_a_message_of_every_kind_is_read_alike() -> None:
    kinds = [
        b'{"jsonrpc":"2.0","id":"a\\u0000","method":"tools/call","params":{"name":"x","arguments":{"a":[1]}}}',
        b'{"jsonrpc":"2.0","id":18446744073709551616,"method":"tools/call","params":{"name":"y"}}',
        b'{"jsonrpc":"2.0","method":"notifications/initialized"}',
        b'{"jsonrpc":"2.0","id":7,"result":{}}',
        b'{"jsonrpc":"2.0","id":7,"result":[18446744073709551616]}',
        b'{"jsonrpc":"1.0","id":"kept","method":"ping"}',
        b'{"jsonrpc":"2.0","id":8,"method":"ping","params":[]}',
        b'{"method":"ping"}',
        b"[1]",
        b"[18446744073709551616]",
        b"3",
        b"{",
        b"[" * 200,
    ]
    for before in kinds:
        for line in kinds:
            READER.read(before)
            assert_alike(line)
