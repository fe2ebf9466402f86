"""What is said of a broken line: a fault, at the byte where the plain-Python twin finds it too.

Most broken lines are generated, some are named: one for each thing that can be wrong.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import Any

import pytest
from support import twin
from support.message_generator import Generator

from fastrpc._core.message import Message

READER = Message()
REPEATS = 20

# Where the twin names another byte: behind the bracket, at the line's end, at the second escape.
TWINS_PLACES = {
    "more than 128 levels of nesting": lambda at, line: at + 1,
    "unterminated string starting": lambda at, line: len(line),
    "a \\u escape of half a surrogate pair": lambda at, line: (
        at + 6 * (line[at + 2 : at + 4].lower() < b"dc")
    ),
}


def fault_of(line: bytes) -> tuple[str, int]:
    READER.read(line)
    assert READER.kind == "broken"
    found = re.fullmatch(r"(.+) at byte (\d+)", READER.error or "")
    assert found is not None, (READER.error, line)
    return found[1], int(found[2])


def twins_fault(line: bytes) -> int | None:
    try:
        twin.parse(line)
    except twin.Broken as broken:
        return broken.at
    return None


@pytest.mark.long
@pytest.mark.parametrize("seed", [pytest.param(seed, id=f"seed={seed}") for seed in range(REPEATS)])
def test_the_byte_of_a_fault_is_where_the_twin_finds_it(seed: int) -> None:
    generator = Generator(f"faults {seed}")
    for _ in range(1000):
        line = generator.line()
        expected = twins_fault(line)
        if expected is not None:
            reason, at = fault_of(line)
            place = TWINS_PLACES.get(reason, lambda at, line: at)
            assert place(at, line) == expected, (reason, at, line)


@pytest.mark.parametrize(
    ("line", "reason", "at"),
    [
        (b"", "expecting value", 0),
        (b"[1,]", "expecting value", 3),
        (b"nul", "expecting value", 0),
        (b"[1 2]", "expecting ',' delimiter", 3),
        (b'{"a":1', "expecting ',' delimiter", 6),
        (b'{"a" 1}', "expecting ':' delimiter", 5),
        (b"{1:2}", "expecting property name enclosed in double quotes", 1),
        (b'{"a":1,}', "expecting property name enclosed in double quotes", 7),
        (b"1 2", "extra data", 2),
        (b'{"a":\n1}\n]', "extra data", 9),
        (b"01", "extra data", 1),
        (b"[1.]", "expecting ',' delimiter", 2),
        (b"[NaN]", "expecting value", 1),
        (b'["a', "unterminated string starting", 1),
        (b'["a\nb"]', "a control character in a string", 3),
        (b'["\\x"]', "an invalid escape", 2),
        (b'["\\u12g4"]', "an invalid \\uXXXX escape", 2),
        (b'["\\ud800"]', "a \\u escape of half a surrogate pair", 2),
        (b'["\\udc00"]', "a \\u escape of half a surrogate pair", 2),
        (b'["abc\xff"]', "not UTF-8", 5),
        (b'["\xed\xa0\x80"]', "not UTF-8", 2),
        (b"\xef\xbb\xbf[]", "a byte order mark", 0),
        (b"[" * 129 + b"]" * 129, "more than 128 levels of nesting", 128),
        (b"[1e309]", "a number beyond the range of a double", 1),
        (b"[0.00018e312]", "a number beyond the range of a double", 1),
        (b"[" + b"7" * 4301 + b"]", "an integer of more than 4300 digits", 1),
    ],
)
def test_each_fault_has_its_words(line: bytes, reason: str, at: int) -> None:
    assert fault_of(line) == (reason, at)


def test_words_take_no_part_of_the_line() -> None:
    READER.read(b'{"secret":"' + b"x" * 1000)
    assert READER.error == "unterminated string starting at byte 10"


# --- integers beyond 64 bits ------------------------------------------------------------------------------

BIG = 10**30


def call(arguments: bytes, id: bytes = b"7", meta: bytes = b"{}") -> bytes:
    return (
        b'{"jsonrpc":"2.0","id":%b,"method":"tools/call","params":{"name":"a","arguments":%b,"_meta":%b}}'
        % (id, arguments, meta)
    )


@pytest.mark.parametrize("text", ["a", '"', "\\", "\x7f", "?", "ÿ", '\x7f"?', "?1", '"?5?"'])
def test_texts_beside_a_large_integer_stay_what_they_are(text: str) -> None:
    value: Any = {"before": text, text: [BIG, -BIG, {"n": BIG}, text], "after": text}
    READER.read(call(json.dumps(value, ensure_ascii=False).encode()))
    assert READER.params == {"name": "a", "arguments": value, "_meta": {}}
    assert READER.param("arguments") == value


def test_an_id_of_any_length_keeps_its_text() -> None:
    for id in (str(BIG), str(-BIG), str(2**64), str(-(2**63) - 1), "7" * 4300):
        READER.read(call(b"{}", id.encode()))
        assert (READER.kind, READER.id) == ("request", id.encode())


@pytest.mark.parametrize(
    "place", [b"[1,%b,2]", b'{"%b":1}', b"{%b:1}", b"[1 %b]", b"[%bx]", b"[0%b]", b"[%b.]"]
)
def test_a_large_integer_makes_no_line_right_that_is_wrong_without(place: bytes) -> None:
    line = place % str(BIG).encode()
    READER.read(line)
    assert READER.kind == twin.judge(line).kind


def test_a_meta_with_a_large_integer_is_not_taken_for_the_next_one() -> None:
    """The likely line's _meta is compared with the last one's bytes; those of a marked copy are no line's."""
    READER.read(call(b"{}", meta=b'{"n":%d}' % BIG))
    assert READER.meta == {"n": BIG}
    READER.read(call(b"{}", meta=b'{"n":"\xff%d\xff"}' % BIG))
    assert READER.kind == "broken"


def test_integers_are_read_whatever_the_interpreters_own_limit_is() -> None:
    program = (
        "import sys; from fastrpc._core.message import Message; message = Message();"
        "digits = '123456789' * 477; "
        'line = \'{"jsonrpc":"2.0","id":1,"method":"a","params":{"n":[%s,-%s]}}\' % (digits, digits);'
        "message.read(line.encode()); found = message.params['n']; sys.set_int_max_str_digits(0);"
        "assert [str(n) for n in found] == [digits, '-' + digits]"
    )
    done = subprocess.run([sys.executable, "-X", "int_max_str_digits=640", "-c", program], timeout=60)
    assert done.returncode == 0


# --- too much at once -------------------------------------------------------------------------------------

MILLION = 1_000_000


@pytest.mark.parametrize("element", [b"[]", b"{}"])
def test_a_message_of_more_than_a_million_arrays_and_objects_is_refused(element: bytes) -> None:
    def with_elements(count: int) -> bytes:
        return call(b'{"a":[' + b",".join([element] * count) + b"]}")

    READER.read(with_elements(MILLION - 5))  # beside the message, params, arguments, _meta and the array
    assert (READER.kind, READER.error_code) == ("request", 0)
    READER.read(with_elements(MILLION - 4))
    assert (READER.kind, READER.error_code, READER.id) == ("invalid", -32600, b"7")
    assert READER.error == "more than 1,000,000 arrays and objects in a message"


def test_what_wants_no_answer_gets_none_when_it_is_too_much() -> None:
    value = b"[" + b",".join([b"[]"] * MILLION) + b"]"
    READER.read(b'{"jsonrpc":"2.0","method":"notifications/a","params":{"a":%b}}' % value)
    assert READER.kind == "ignored"
    READER.read(b'{"jsonrpc":"2.0","id":1,"result":{"a":%b}}' % value)
    assert READER.kind == "ignored"
    READER.read(value)
    assert (READER.kind, READER.id) == ("invalid", None)
