"""What a line may hold, tried on the real server: scorecard A1, A3, A4, A5.

After each line comes a request that must still be answered. Nothing here measures time: that a test
ends within its limit is the statement.
"""

from __future__ import annotations

import json
import math
import random
from typing import Any

import pytest
from support import twin
from support.json_cases import ACCEPTED_OF_UNDEFINED, BLANK, cases, is_accepted
from support.stdio import decode
from support.wire_conversation import Conversation, echo_line, echoed, error_of, id_text


def parse_error(line: bytes) -> tuple[int, bytes]:
    """What a broken line gets: under its id, where that can be read."""
    return -32700, twin.judge(line).id or b"null"


def identical(left: Any, right: Any) -> bool:
    """Equal, integers and doubles told apart, zeros by their sign."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(identical(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(identical, left, right))
    if isinstance(left, float):
        return left == right and math.copysign(1, left) == math.copysign(1, right)
    return bool(left == right)


def shortened(text: str) -> str:
    """A parameter as a test's id."""
    return text if len(text) <= 30 else f"{text[:8]}…{text[-4:]} ({len(text)})"


# --- A1: JSONTestSuite -------------------------------------------------------------------------


def test_each_case_of_jsontestsuite_as_a_whole_line(wire: Conversation, data_folder: str) -> None:
    wrong = []
    for name, line in cases(data_folder):
        if name in BLANK:
            assert wire.exchange(line, answered=False) is None
            continue
        found = wire.error(line)  # no case is a request, so what is accepted is an invalid request
        verdict = twin.judge(line)
        expected = (-32600, verdict.id or b"null") if is_accepted(name) else parse_error(line)
        if found != expected:
            wrong.append((name, found, expected))
    assert wrong == []


def test_each_case_of_jsontestsuite_as_the_arguments_of_a_call(wire: Conversation, data_folder: str) -> None:
    wrong = []
    for name, case in cases(data_folder):
        call = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":'
        answer = wire.exchange(call + case + b"}}")
        assert answer is not None
        if not is_accepted(name):
            right = "error" in decode(answer) and error_of(answer) == parse_error(call + case + b"}}")
        elif isinstance(twin.parse(case), dict):
            right = "result" in decode(answer)  # whether the tool likes these arguments is its business
        else:
            right = error_of(answer) == (-32602, b"7")
        if not right:
            wrong.append((name, answer[:200]))
    assert wrong == []


def test_each_accepted_case_of_jsontestsuite_reaches_a_tool_unchanged(
    wire: Conversation, data_folder: str
) -> None:
    accepted = [(name, case) for name, case in cases(data_folder) if is_accepted(name)]
    assert len(accepted) == 95 + len(ACCEPTED_OF_UNDEFINED)
    for name, case in accepted:
        answer = wire.exchange(echo_line(case))
        assert answer is not None
        assert identical(echoed(answer), twin.parse(case)), (name, answer)


# --- A3: bytes -----------------------------------------------------------------------------------

PLACES = {
    "value": echo_line(b'"%b"'),
    "key": echo_line(b'{"%b":1}'),
    "method": b'{"jsonrpc":"2.0","id":5,"method":"%b"}',
    "id": b'{"jsonrpc":"2.0","id":"%b","method":"ping"}',
    # A long integer takes the line to another reader, which must be as strict.
    "value beside a long integer": echo_line(b'[18446744073709551616,"%b"]'),
    "key beside a long integer": echo_line(b'{"%b":18446744073709551616}'),
}


def assert_refused_or_carried(wire: Conversation, place: str, inserted: list[bytes]) -> None:
    """Send each of `inserted` in that place, all in one go; the twin says which are no JSON."""
    lines = [PLACES[place] % piece for piece in inserted]
    wire.server.send(b"".join(line + b"\n" for line in lines))
    for line, piece in zip(lines, inserted, strict=True):
        answer = wire.server.line()
        assert b"\xef\xbf\xbd" not in answer or b"\xef\xbf\xbd" in piece or b"ufffd" in piece, (piece, answer)
        verdict = twin.judge(line)
        if verdict.kind == "broken":
            assert error_of(answer) == parse_error(line), (piece, answer)
        elif place == "method":
            assert error_of(answer) == (-32601, b"5"), (piece, answer)
        elif place == "id":
            assert id_text(answer) == b'"' + piece + b'"'
            assert decode(answer)["result"] == {}
        else:
            assert verdict.params is not None
            assert identical(echoed(answer), verdict.params["arguments"]["value"]), (piece, answer)


@pytest.mark.parametrize("place", sorted(PLACES))
def test_every_single_byte_is_refused_or_carried_exactly(wire: Conversation, place: str) -> None:
    pieces = [bytes((byte,)) for byte in range(256) if byte != ord("\n")]
    assert_refused_or_carried(wire, place, [*pieces, *(b"x" + piece + b"y" for piece in pieces)])
    assert wire.settle() == []


@pytest.mark.parametrize("place", sorted(PLACES))
def test_every_escape_is_refused_or_carried_exactly(wire: Conversation, place: str) -> None:
    letters = [b"\\" + bytes((byte,)) for byte in range(256) if byte != ord("\n")]
    units = [
        b"\\u%04x" % unit for unit in (*range(256), 0x2028, 0xD7FF, 0xE000, 0xFEFF, 0xFFFD, 0xFFFE, 0xFFFF)
    ]
    surrogates = [
        b"\\ud800", b"\\udbff", b"\\udc00", b"\\udfff", b"\\ud800\\ud800", b"\\udc00\\ud800",
        b"\\ud800\\u0041", b"\\ud800\\n", b"\\ud800x", b"x\\udc00", b"\\uD83D\\uDE00", b"\\ud800\\udc00",
        b"\\udbff\\udfff",
    ]  # fmt: skip
    raw = [
        b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xed\xa0\xbd\xed\xb8\x80", b"\xc0\x80", b"\xe0\x80\xaf",
        b"\xf0\x80\x80\xaf", b"\xf4\x8f\xbf\xbf", b"\xf4\x90\x80\x80", b"\xef\xbf\xbd", b"\xef\xbf\xbe",
        b"\xef\xbb\xbf", b"\xff\xfea\x00",
        b"\xe2\x80\xa8", b"\xc2\x85", "😀é中".encode(), b"\xf0\x9f\x98", b"\xc3", b"\x00", b"a\x00b", b"\x7f",
    ]  # fmt: skip
    assert_refused_or_carried(wire, place, [*letters, *units, *surrogates, *raw])
    assert wire.settle() == []


@pytest.mark.parametrize("place", sorted(PLACES))
@pytest.mark.parametrize("seed", [1, 2])
def test_random_bytes_are_refused_or_carried_exactly(wire: Conversation, place: str, seed: int) -> None:
    chooser = random.Random(f"{seed} {place}")
    pieces = [
        b"".join(
            chooser.choice(
                (bytes((chooser.randrange(256),)), "é中😀"[chooser.randrange(3)].encode(), b"\\u00e9")
            )
            for _ in range(chooser.randint(1, 8))
        ).replace(b"\n", b"")
        for _ in range(500)
    ]
    assert_refused_or_carried(wire, place, [piece for piece in pieces if b'"' not in piece])
    assert wire.settle() == []


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig"])
def test_a_line_in_another_encoding_is_broken(wire: Conversation, encoding: str) -> None:
    line = '{"jsonrpc":"2.0","id":1,"method":"ping"}'.encode(encoding)
    assert wire.error(line) == parse_error(line)


# --- A4: depth, numbers, size ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("opened", "inner", "closed"),
    [(b"[", b"", b"]"), (b"[", b"1", b"]"), (b'{"a":', b"{}", b"}"), (b"[", b"1e5", b"]")],
)
@pytest.mark.parametrize("levels", [127, 128, 129, 130, 100_000])
def test_128_levels_are_read_and_129_are_not(
    wire: Conversation, levels: int, opened: bytes, inner: bytes, closed: bytes
) -> None:
    around = 3 + (inner == b"{}")  # the message, params and arguments are levels; an empty object is one
    value = opened * (levels - around) + inner + closed * (levels - around)
    answer = wire.exchange(echo_line(value))
    assert answer is not None
    if levels <= 128:
        assert identical(echoed(answer), twin.parse(value))
    else:
        assert error_of(answer) == parse_error(echo_line(value))


@pytest.mark.parametrize(
    "text",
    [
        "9007199254740991", "9007199254740992", "9007199254740993", "-9007199254740993",
        "9223372036854775807",
        "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "18446744073709551615",
        "18446744073709551616", "-18446744073709551616", "1" * 400, "7" * 4299, "7" * 4300, "-" + "7" * 4300,
        "0", "-0", "-0.0", "0.1", "1.0", "1e2", "5e-324", "1.7976931348623157e308", "1e-400", "0e99999",
        "-1e-400", "1." + "0" * 5000, "123456789012345678901234567890.5",
    ],
    ids=shortened,
)  # fmt: skip
def test_a_number_reaches_a_tool_and_comes_back_exactly(wire: Conversation, text: str) -> None:
    answer = wire.exchange(echo_line(text.encode()))
    assert answer is not None
    assert identical(echoed(answer), twin.parse(text.encode()))


@pytest.mark.parametrize(
    "text",
    [
        "7" * 4301, "-" + "7" * 4301, "1" * 1_000_000, "1e400", "-1e400", "1e99999999999999999999", "NaN",
        "Infinity", "-Infinity", "01", "-", "1.", ".5", "+1", "0x10", "1e", "1_0", "1" * 400 + ".",
        "1" * 400 + "e400",
    ],
    ids=shortened,
)  # fmt: skip
def test_a_number_that_is_none_or_too_large_is_broken(wire: Conversation, text: str) -> None:
    line = echo_line(text.encode())
    assert wire.error(line) == parse_error(line)


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(b'{"' + b"k" * 1_000_000 + b'":1}', id="a key of 1 MB"),
        pytest.param(
            b"{" + b",".join(b'"key %d":%d' % (i, i) for i in range(100_000)) + b"}", id="100,000 keys"
        ),
        pytest.param(b"{" + b",".join([b'"same":1'] * 100_000) + b"}", id="one key 100,000 times"),
        pytest.param(b"[" + b",".join([b"0"] * 1_000_000) + b"]", id="a million numbers"),
        pytest.param(b"[" + b",".join([b"[]"] * 500_000) + b"]", id="half a million empty arrays"),
        pytest.param(b'"' + b"\\u0041" * 333_333 + b'"', id="2 MB of escapes"),
        pytest.param(b'"' + b"\\\\" * 1_000_000 + b'"', id="2 MB of backslashes"),
        pytest.param(b'"' + "é".encode() * 1_000_000 + b'"', id="2 MB of two-byte characters"),
        pytest.param(b" " * 2_000_000 + b"1", id="2 MB of white space"),
        pytest.param(b"[" + b",".join([b"18446744073709551616"] * 90_000) + b"]", id="2 MB of long integers"),
    ],
)
def test_two_megabytes_of_one_thing_are_read(wire: Conversation, value: bytes) -> None:
    answer = wire.exchange(echo_line(value))
    assert answer is not None
    assert identical(echoed(answer), json.loads(value))  # the twin would take seconds


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b"[" * 2_000_000, id="brackets"),
        pytest.param(b'{"":' * 500_000, id="braces"),
        pytest.param(b'"' * 1_999_999, id="quotes"),
        pytest.param(b"\\" * 2_000_000, id="backslashes"),
        pytest.param(b"\xff" * 2_000_000, id="no UTF-8"),
        pytest.param(b"\x00" * 2_000_000, id="NUL"),
        pytest.param(b"," * 2_000_000, id="commas"),
        pytest.param(b"-" * 2_000_000, id="minus signs"),
        pytest.param(b'["' + b"a" * 2_000_000, id="an open string"),
        pytest.param(b"[" + b"1e400," * 333_333 + b"1", id="numbers beyond a double"),
        pytest.param(b"9" * 2_000_000, id="digits"),
        pytest.param(echo_line(b"9" * 2_000_000 + b".5e"), id="a long rubbish number"),
    ],
)
def test_two_megabytes_of_rubbish_are_one_parse_error(wire: Conversation, line: bytes) -> None:
    assert wire.error(line) == parse_error(line)


# --- A5: look-alikes and duplicates --------------------------------------------------------------

GOOD: dict[str, bytes] = {"jsonrpc": b'"2.0"', "id": b"9", "method": b'"ping"', "params": b"{}"}
CALL = {"name": b'"echo"', "arguments": b'{"value":1}', "_meta": b"{}"}


def members(pairs: list[tuple[bytes, bytes]]) -> bytes:
    return b"{" + b",".join(b'"' + key + b'":' + value for key, value in pairs) + b"}"


def escaped(key: str, at: int) -> bytes:
    return (key[:at] + f"\\u{ord(key[at]):04x}" + key[at + 1 :]).encode()


def as_call(params: bytes) -> bytes:
    return members([(b"jsonrpc", b'"2.0"'), (b"id", b"9"), (b"method", b'"tools/call"'), (b"params", params)])


def pairs_of(good: dict[str, bytes]) -> list[tuple[bytes, bytes]]:
    return [(key.encode(), value) for key, value in good.items()]


@pytest.mark.parametrize("key", sorted(GOOD))
def test_a_repeated_envelope_member_is_refused(wire: Conversation, key: str) -> None:
    request_id = b"null" if key == "id" else b"9"
    for spelling in (key.encode(), escaped(key, 0), escaped(key, len(key) - 1)):
        for value in (GOOD[key], b'"another"', b"null"):
            for pairs in (
                [*pairs_of(GOOD), (spelling, value)],
                [(spelling, value), *pairs_of(GOOD)],
            ):
                assert wire.error(members(pairs)) == (-32600, request_id), members(pairs)


@pytest.mark.parametrize("key", sorted(CALL))
def test_a_repeated_member_of_params_is_refused(wire: Conversation, key: str) -> None:
    for spelling in (key.encode(), escaped(key, 0), escaped(key, len(key) - 1)):
        for value in (CALL[key], b'"wait"', b'{"seconds":0}'):
            line = as_call(members([*pairs_of(CALL), (spelling, value)]))
            assert wire.error(line) == (-32600, b"9"), line


@pytest.mark.parametrize("result", [b"result", b"error"])
def test_a_message_with_a_method_and_an_answer_is_refused(wire: Conversation, result: bytes) -> None:
    assert wire.error(members([*pairs_of(GOOD), (result, b"{}")])) == (-32600, b"9")


def look_alikes(key: str) -> list[bytes]:
    forms = [
        key.upper(),
        key.title(),
        key + "\\u0000",
        "\\u0000" + key,
        key + " ",
        " " + key,
        key[:-1],
        key + "s",
    ]
    return [form.encode() for form in forms if form != key]


@pytest.mark.parametrize("key", ["jsonrpc", "id", "method"])
def test_a_look_alike_of_an_envelope_member_is_not_honoured(wire: Conversation, key: str) -> None:
    for form in look_alikes(key):
        instead = members([(form if name == key.encode() else name, value) for name, value in pairs_of(GOOD)])
        if key == "id":  # what is left is a notification
            assert wire.exchange(instead, answered=False) is None
        else:
            assert wire.error(instead) == (-32600, b"9"), instead
        beside = members([(form, b'"other"'), *pairs_of(GOOD), (form, b'"other"')])
        answer = wire.exchange(beside)
        assert answer is not None
        assert decode(answer) == {"jsonrpc": "2.0", "id": 9, "result": {}}


@pytest.mark.parametrize("key", ["name", "arguments"])
def test_a_look_alike_of_a_call_member_is_not_honoured(wire: Conversation, key: str) -> None:
    for form in look_alikes(key):
        answer = wire.exchange(as_call(members([*pairs_of(CALL), (form, b'"wait"')])))
        assert answer is not None
        assert echoed(answer) == 1
        instead = [(form if name == key.encode() else name, value) for name, value in pairs_of(CALL)]
        answer = wire.exchange(as_call(members(instead)))
        assert answer is not None
        if key == "name":
            assert error_of(answer) == (-32602, b"9")
        else:  # a call without arguments, which echo cannot do without
            assert decode(answer)["result"]["isError"] is True


def test_a_look_alike_of_params_is_not_honoured(wire: Conversation) -> None:
    for form in look_alikes("params"):
        line = members(
            [
                (b"jsonrpc", b'"2.0"'),
                (b"id", b"9"),
                (b"method", b'"tools/call"'),
                (form, members(pairs_of(CALL))),
            ]
        )
        assert wire.error(line) == (-32602, b"9")


def test_escaped_keys_are_the_keys_they_spell(wire: Conversation) -> None:
    for at in range(2):
        spelt = members([(escaped(key, at), value) for key, value in GOOD.items()])
        assert decode(wire.exchange(spelt) or b"") == {"jsonrpc": "2.0", "id": 9, "result": {}}
        call = as_call(members([(escaped(key, at), value) for key, value in CALL.items()]))
        assert echoed(wire.exchange(call) or b"") == 1


def test_inside_arguments_the_last_of_equal_keys_counts(wire: Conversation) -> None:
    call = as_call(
        members([(b"name", b'"echo"'), (b"arguments", b'{"value":1,"v\\u0061lue":{"a":1,"a":2}}')])
    )
    assert echoed(wire.exchange(call) or b"") == {"a": 2}
