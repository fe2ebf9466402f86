"""The oracle itself: the twin against JSONTestSuite and against a strict use of the standard library.

What the differential tests prove is worth as much as the twin is right.
"""

from __future__ import annotations

import json
import random
from typing import Any, NoReturn

import pytest
from support import twin
from support.json_cases import cases, is_accepted
from support.message_generator import Generator


def accepts(document: bytes) -> bool:
    try:
        twin.parse(document)
    except twin.Broken:
        return False
    return True


def test_the_twin_decides_every_case_of_jsontestsuite(data_folder: str) -> None:
    assert [name for name, line in cases(data_folder) if accepts(line) != is_accepted(name)] == []


class Pairs(list[tuple[str, Any]]):
    """An object as the standard library met it: a key that is overwritten is still to be judged."""


def strict(document: bytes) -> Any:
    """Read with the standard library, closing the gaps that it is known for. Raises ValueError."""

    def refuse(name: str) -> NoReturn:
        raise ValueError(name)

    def real(text: str) -> float:
        number = float(text)
        return refuse(text) if number in (float("inf"), float("-inf")) else number

    def checked(value: Any, depth: int = 1) -> Any:
        if isinstance(value, str):
            value.encode("utf-8")  # raises for a lone surrogate
            return value
        if isinstance(value, Pairs | list) and depth > 128:
            raise ValueError("depth")
        if isinstance(value, Pairs):
            return {checked(key): checked(inner, depth + 1) for key, inner in value}
        return [checked(inner, depth + 1) for inner in value] if isinstance(value, list) else value

    if document.startswith(b"\xef\xbb\xbf"):
        raise ValueError("byte order mark")
    text = document.decode("utf-8")
    return checked(json.loads(text, parse_constant=refuse, parse_float=real, object_pairs_hook=Pairs))


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_the_twin_reads_documents_as_a_strict_standard_library_does(seed: int) -> None:
    generator = Generator(f"strict {seed}")
    for _ in range(2500):
        document = generator.line()
        try:
            expected = repr(strict(document))
        except (ValueError, RecursionError):
            assert not accepts(document), document
        else:
            assert repr(twin.parse(document)) == expected, document


@pytest.mark.parametrize(
    ("line", "kind", "code", "request_id"),
    [
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"}', "request", 0, b"1"),
        (b'{"jsonrpc":"2.0","id":-0,"method":"ping"}', "request", 0, b"-0"),
        (b'{"jsonrpc":"2.0","id":"\\u0000","method":"ping"}', "request", 0, b'"\\u0000"'),
        (b'{"jsonrpc":"2\\u002e0","i\\u0064": 1 ,"method":"ping"}', "request", 0, b"1"),
        (b'{"jsonrpc":"2.0","method":"ping"}', "notification", 0, None),
        (b'{"jsonrpc":"2.0","method":"ping","params":[]}', "ignored", 0, None),
        (b'{"jsonrpc":"1.0","method":"ping"}', "ignored", 0, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', "invalid", -32602, b"1"),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":null}', "invalid", -32602, b"1"),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"name":1,"name":1}}', "invalid", -32600, b"1"),
        (b'{"jsonrpc":"2.0","id":1,"id":1,"method":"ping"}', "invalid", -32600, None),
        (b'{"jsonrpc":"2.0","id":1.0,"method":"ping"}', "invalid", -32600, None),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', "invalid", -32600, None),
        (b'{"jsonrpc":"2.0","id":1,"method":1}', "invalid", -32600, b"1"),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","result":1}', "invalid", -32600, b"1"),
        (b'{"jsonrpc":"2.0","id":1}', "invalid", -32600, b"1"),
        (b'{"jsonrpc":"2.0","id":1,"result":{}}', "response", 0, b"1"),
        (b'{"jsonrpc":"2.0","id":null,"error":{}}', "response", 0, None),
        (b'{"jsonrpc":"2.0","id":true,"error":{}}', "invalid", -32600, None),
        (b"[]", "invalid", -32600, None),
        (b"[[]]", "batch", 0, None),
        (b"1", "invalid", -32600, None),
        (b"{}", "invalid", -32600, None),
        (b"", "broken", -32700, None),
        (b"{", "broken", -32700, None),
        (b'{"id":1,"method":"ping","params":{"x":"\\ud83d"}}', "broken", -32700, b"1"),
        (b'{"method":"ping","params":[NaN, 1e999, {"id":2}],"id":"a"}', "broken", -32700, b'"a"'),
        (b'{"method":"ping","params":"\xff","\\u0069d":-3}', "broken", -32700, b"-3"),
        (b'{"method":"ping","params":' + b"[" * 300 + b"]" * 300 + b',"id":1}', "broken", -32700, b"1"),
        (b'{"id":1,"method":"ping"', "broken", -32700, b"1"),
        (b'{"id":1,"method":"ping"} {"id":2}', "broken", -32700, b"1"),
        (b'{"id":1', "broken", -32700, None),
        (b'{"id":1,"id":1,"x":NaN}', "broken", -32700, None),
        (b'{"id":"\\ud83d","method":"ping"}', "broken", -32700, None),
        (b'{"id":1.5,"x":NaN}', "broken", -32700, None),
        (b'{"params":{"id":1],"id":2}', "broken", -32700, None),
        (b'[{"id":1,"x":NaN}]', "broken", -32700, None),
        (b'{"id":1,"result":NaN}', "broken", -32700, None),
    ],
)
def test_the_twin_judges_a_message_as_the_table_says(
    line: bytes, kind: str, code: int, request_id: bytes | None
) -> None:
    verdict = twin.judge(line)
    assert (verdict.kind, verdict.error_code, verdict.id) == (kind, code, request_id)


def test_the_generator_gives_the_same_lines_for_the_same_seed_and_lines_of_every_kind() -> None:
    first, second = Generator("same"), Generator("same")
    lines = [first.line() for _ in range(500)]
    assert lines == [second.line() for _ in range(500)]
    assert not any(b"\n" in line for line in lines)
    kinds = {twin.judge(line).kind for line in lines}
    assert kinds == {"request", "notification", "response", "batch", "ignored", "invalid", "broken"}


def test_random_bytes_are_cut_into_lines_at_newlines_only() -> None:
    chooser = random.Random(1)
    for _ in range(200):
        stream = bytes(chooser.choice(b"ab \t\r\n\n\x0b\x85") for _ in range(60))
        lines = twin.frames(stream, max_line=5)
        assert [line for line in lines if line] == [
            line for line in stream.split(b"\n") if len(line) <= 5 and line.strip(b" \t\r")
        ]
