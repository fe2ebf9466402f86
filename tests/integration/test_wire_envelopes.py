"""JSON that is not a proper message, in every protocol version, on the real server: scorecard A6.

Ids, malformed envelopes, batches, the examples of JSON-RPC 2.0 section 7, ids in flight.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from support.protocol import SESSION_VERSIONS, STATELESS
from support.stdio import decode, encode, serve
from support.wire_conversation import SERVER, VERSIONS, Conversation, error_of, id_text, talk

INVALID, PARAMS, PARSE = -32600, -32602, -32700


@pytest.fixture(scope="module", params=VERSIONS)
def shared(request: pytest.FixtureRequest) -> Iterator[Conversation]:
    with talk(request.param) as conversation:
        yield conversation


@pytest.fixture
def wire(shared: Conversation) -> Conversation:
    shared.settle()  # what a failed test has left unread
    return shared


# --- malformed envelopes ---------------------------------------------------------------------------

NO_IDS = (
    "null", "true", "false", "1.0", "1.5", "-0.0", "1e2", "1E400", "0.0", "[]", "[1]", "{}", '{"id":1}',
    "1e0", "18446744073709551616.0",
)  # fmt: skip
NO_STRINGS = ("1", "null", "true", "[]", '["ping"]', "{}", "1.5")
NO_VERSIONS = (
    '"1.0"', '"2"', '"2.0 "', '""', "2.0", "2", "null", "true", '["2.0"]', '{"2.0":1}', '"2.0\\u0000"',
)  # fmt: skip
NO_PARAMS = ("[]", "[1,2]", "null", "true", "1", '"text"', "1.5", "[{}]")


def malformed() -> Iterator[tuple[str, int | None, str]]:
    """Yield lines, the code of the error each deserves (None: silence), and the id it is answered under."""
    for value in NO_IDS:
        code = PARSE if value == "1E400" else INVALID
        yield f'{{"jsonrpc":"2.0","id":{value},"method":"ping"}}', code, "null"
    for value in NO_STRINGS:
        yield f'{{"jsonrpc":"2.0","id":3,"method":{value}}}', INVALID, "3"
        yield f'{{"jsonrpc":"2.0","method":{value}}}', INVALID, "null"
    for value in NO_VERSIONS:
        yield f'{{"jsonrpc":{value},"id":"v","method":"ping"}}', INVALID, '"v"'
        yield f'{{"jsonrpc":{value},"method":"ping"}}', None, ""
    for value in NO_PARAMS:
        yield f'{{"jsonrpc":"2.0","id":4,"method":"tools/list","params":{value}}}', PARAMS, "4"
        yield f'{{"jsonrpc":"2.0","id":4,"method":"no/such/method","params":{value}}}', PARAMS, "4"
        yield f'{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{value}}}', None, ""
    for value in (
        "null",
        "true",
        "false",
        "0",
        "1.5",
        '"text"',
        '""',
        "18446744073709551616",
        "{}",
        '{"a":1}',
    ):
        yield value, INVALID, "null"
    yield '{"id":5}', INVALID, "5"
    yield '{"id":5,"method":"ping"}', INVALID, "5"
    yield '{"method":"ping"}', None, ""
    yield '{"jsonrpc":"2.0"}', INVALID, "null"
    yield '{"jsonrpc":"2.0","id":5}', INVALID, "5"
    yield '{"jsonrpc":"2.0","id":"5","params":{}}', INVALID, '"5"'
    yield '{"jsonrpc":"2.0","params":{}}', INVALID, "null"
    yield '{"jsonrpc":"2.0","id":5,"method":"ping","result":{}}', INVALID, "5"
    yield '{"jsonrpc":"2.0","id":5,"method":"ping","error":{"code":1,"message":""}}', INVALID, "5"
    yield '{"jsonrpc":"2.0","method":"ping","result":{}}', None, ""
    yield '{"jsonrpc":"2.0","id":5,"id":6,"method":"ping"}', INVALID, "null"
    yield '{"jsonrpc":"2.0","id":5,"result":{}}', None, ""
    yield '{"jsonrpc":"2.0","id":5,"error":{"code":1,"message":""}}', None, ""
    yield '{"jsonrpc":"2.0","id":5,"result":null}', None, ""
    yield '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what an unread line gets"}}', None, ""
    yield '{"jsonrpc":"2.0","method":"notifications/no/such"}', None, ""
    yield '{"jsonrpc":"2.0","method":"no/such/method","params":{}}', None, ""
    yield '{"jsonrpc":"2.0","method":""}', None, ""
    yield '{"jsonrpc":"2.0","id":5,"method":"ping"', PARSE, "5"
    yield '{"jsonrpc":"2.0","id":5,"method":"ping"}}', PARSE, "5"
    yield "{'jsonrpc':'2.0','id':5,'method':'ping'}", PARSE, "null"
    yield '{"jsonrpc":"2.0","id":5,"method":"ping",}', PARSE, "5"
    yield '{"jsonrpc":"2.0","id":5,"method":"ping"} {}', PARSE, "5"


def test_there_are_about_a_hundred_malformed_envelopes() -> None:
    lines = [line for line, _, _ in malformed()]
    assert len(lines) == len(set(lines)) > 100


@pytest.mark.parametrize("case", [pytest.param(case, id=case[0]) for case in malformed()])
def test_a_malformed_envelope_gets_the_right_code_or_silence(
    wire: Conversation, case: tuple[str, int | None, str]
) -> None:
    line, code, request_id = case
    answer = wire.exchange(line.encode(), answered=code is not None)
    if code is not None:
        assert answer is not None
        assert error_of(answer) == (code, request_id.encode())


def test_a_parse_error_says_what_and_at_which_byte(wire: Conversation) -> None:
    for line in (b'{"jsonrpc":"2.0","id":1 x', b"\xff\xfe", b"[" * 200, b'{"a":"\x01"}', b'{"a":NaN}'):
        message = decode(wire.exchange(line) or b"")["error"]["message"]
        assert "byte" in message or "NaN" in message, (line, message)
        assert len(message) < 300


# --- ids -------------------------------------------------------------------------------------------

IDS = (
    "0", "1", "-1", "-0", "9007199254740993", "9223372036854775808", "18446744073709551616", "1" * 400,
    "-" + "7" * 4300, '"1"', '""', '" "', '"\\u0000"', '"\\u0041"', '"é\\n"', '"\\ud83d\\ude00"', '"😀"',
    '"null"', '"\\/"',
    '"' + "k" * 1_000_000 + '"', '"' + "\\u00e9" * 150_000 + '"',
)  # fmt: skip


@pytest.mark.parametrize(
    "text", IDS, ids=lambda text: text if len(text) < 30 else f"{text[:4]}… ({len(text)})"
)
def test_an_id_comes_back_with_its_exact_text(wire: Conversation, text: str) -> None:
    line = wire.request("ID", "tools/list").replace(b'"ID"', text.encode(), 1)
    answer = wire.exchange(line)
    assert answer is not None
    assert "result" in decode(answer)
    assert id_text(answer) == text.encode()


HOLD = {"name": "hold", "arguments": {}}


def let_go(wire: Conversation) -> None:
    """Have the calls of `hold` answered, behind the answer to this."""
    wire.server.send(wire.request("let go", "tools/call", {"name": "let_go", "arguments": {}}))
    assert decode(wire.server.line())["id"] == "let go"


def test_an_id_comes_back_with_its_exact_text_under_every_error(wire: Conversation) -> None:
    for text in (b"-0", b'"\\u0000"', b"18446744073709551616"):
        for method, code in ((b'"no/such"', -32601), (b"7", INVALID), (b'"tools/call"', PARAMS)):
            line = wire.request("ID", "METHOD").replace(b'"ID"', text, 1).replace(b'"METHOD"', method)
            assert wire.error(line) == (code, text)


def test_a_number_and_a_string_are_two_ids_in_flight(wire: Conversation) -> None:
    wire.server.send(wire.request(1, "tools/call", HOLD) + wire.request("1", "tools/call", HOLD))
    let_go(wire)
    answers = [wire.server.line() for _ in range(2)]
    assert sorted(map(id_text, answers)) == [b'"1"', b"1"]
    assert all("result" in decode(answer) for answer in answers)


def test_an_id_in_flight_is_refused_and_the_first_is_unharmed(wire: Conversation) -> None:
    ids: list[Any] = [1, "a", 2**64, "", -1]
    echo = {"name": "echo", "arguments": {"value": 1}}
    for request_id in ids:
        wire.server.send(wire.request(request_id, "tools/call", HOLD))
    for request_id in ids:
        wire.server.send(wire.request(request_id, "tools/call", HOLD))
        wire.server.send(wire.request(request_id, "tools/call", echo))
        wire.server.send(wire.request(request_id, "tools/list"))
        answers = [wire.server.line() for _ in range(3)]
        assert [error_of(answer) for answer in answers] == [(INVALID, encode(request_id).strip())] * 3
    let_go(wire)
    last = [decode(wire.server.line()) for _ in ids]
    assert {message["id"] for message in last} == set(ids)
    assert all(message["result"]["content"][0]["text"] == "held" for message in last)
    for request_id in ids:  # an id that has been answered is free
        assert "result" in decode(wire.exchange(wire.request(request_id, "tools/call", echo)) or b"")


def test_two_spellings_of_one_id_are_one_id_in_flight(wire: Conversation) -> None:
    spellings = ((r'"\u0061"', '"a"'), ('"b"', r'"\u0062"'), (r'"\/"', '"/"'), ('"é"', r'"\u00e9"'))
    hold = wire.request("ID", "tools/call", HOLD)
    echo = wire.request("ID", "tools/call", {"name": "echo", "arguments": {"value": 1}})
    for first, _ in spellings:
        wire.server.send(hold.replace(b'"ID"', first.encode()))
    for _, second in spellings:
        wire.server.send(echo.replace(b'"ID"', second.encode()))
        assert error_of(wire.server.line()) == (INVALID, second.encode())
    let_go(wire)
    answers = [wire.server.line() for _ in spellings]
    assert {id_text(answer) for answer in answers} == {first.encode() for first, _ in spellings}
    assert all("result" in decode(answer) for answer in answers)


# --- batches ---------------------------------------------------------------------------------------

BATCH_VERSION = "2025-03-26"


@pytest.mark.parametrize("version", [version for version in VERSIONS if version != BATCH_VERSION])
@pytest.mark.parametrize("line", [b"[]", b"[1,2,3]", b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', b"[[]]"])
def test_a_batch_is_one_invalid_request_outside_2025_03_26(version: str, line: bytes) -> None:
    with talk(version) as wire:
        assert wire.error(line) == (INVALID, b"null")
        assert wire.error(line.replace(b"1", b"18446744073709551616")) == (INVALID, b"null")


@pytest.fixture(scope="module")
def batches() -> Iterator[Conversation]:
    with talk(BATCH_VERSION) as conversation:
        yield conversation


def outcome(message: Any) -> tuple[Any, Any]:
    """Return a response's id and its error code, or "result"."""
    return message["id"], message["error"]["code"] if "error" in message else "result"


def outcomes(answer: bytes | None) -> Counter[tuple[Any, Any]]:
    """Return what each response of a batch says; their order is free."""
    messages = decode(answer or b"")
    assert isinstance(messages, list), messages
    return Counter(map(outcome, messages))


def ping(request_id: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "method": "ping"}


def call(request_id: Any, tool: str, **arguments: Any) -> dict[str, Any]:
    return {
        "jsonrpc": "2.0",
        "id": request_id,
        "method": "tools/call",
        "params": {"name": tool, "arguments": arguments},
    }


def batch(*elements: Any) -> bytes:
    return encode(list(elements))


def test_a_batch_is_answered_by_one_array(batches: Conversation) -> None:
    line = batch(
        ping(1),
        ping("1"),
        call(2, "echo", value=1),
        call(3, "wait", seconds=0.1),
        {"jsonrpc": "2.0", "id": 4},
    )
    assert outcomes(batches.exchange(line)) == Counter(
        [
            ("1", "result"),
            (1, "result"),
            (2, "result"),
            (3, "result"),
            (4, INVALID),
        ]
    )


def test_notifications_and_responses_in_a_batch_are_not_answered(batches: Conversation) -> None:
    silent = [
        {"jsonrpc": "2.0", "method": "notifications/no/such"},
        {"jsonrpc": "1.0", "method": "no/such"},
        {"jsonrpc": "2.0", "id": 77, "result": {}},
    ]
    assert batches.exchange(batch(*silent), answered=False) is None
    assert outcomes(batches.exchange(batch(*silent, ping(1), *silent))) == Counter([(1, "result")])


def test_a_batch_may_hold_numbers_of_any_size(batches: Conversation) -> None:
    line = batch(call(2**64, "echo", value=2**70), ping(10**30))
    assert outcomes(batches.exchange(line)) == Counter([(2**64, "result"), (10**30, "result")])


def test_elements_that_are_no_messages_are_answered_one_by_one(batches: Conversation) -> None:
    assert outcomes(batches.exchange(batch([ping(1)], {}, None, 1, ping(2)))) == Counter(
        [
            (2, "result"),
            *[(None, INVALID)] * 4,
        ]
    )


def test_initialize_inside_a_batch_is_refused(batches: Conversation) -> None:
    params = {
        "protocolVersion": BATCH_VERSION,
        "capabilities": {},
        "clientInfo": {"name": "a", "version": "1"},
    }
    request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    assert outcomes(batches.exchange(batch(request, ping(2)))) == Counter([(1, INVALID), (2, "result")])


def test_two_equal_ids_in_flight_in_one_batch_are_distinguished(batches: Conversation) -> None:
    line = batch(call(1, "wait", seconds=0.2), call(1, "echo", value=1))
    assert outcomes(batches.exchange(line)) == Counter([(1, INVALID), (1, "result")])


# --- JSON-RPC 2.0, section 7 -------------------------------------------------------------------------
# The fifteen examples of the specification as MCP answers them: it knows none of their methods, and its
# params are objects only. "Alone" is how every version but 2025-03-26 answers a batch.

ALONE = (INVALID, b"null")
EXAMPLES: list[tuple[str, str, Any]] = [
    ("by position", '{"jsonrpc": "2.0", "method": "subtract", "params": [42, 23], "id": 1}', (PARAMS, b"1")),
    ("swapped", '{"jsonrpc": "2.0", "method": "subtract", "params": [23, 42], "id": 2}', (PARAMS, b"2")),
    (
        "named parameters",
        '{"jsonrpc": "2.0", "method": "subtract", "params": {"subtrahend": 23, "minuend": 42}, "id": 3}',
        (-32601, b"3"),
    ),
    (
        "named in another order",
        '{"jsonrpc": "2.0", "method": "subtract", "params": {"minuend": 42, "subtrahend": 23}, "id": 4}',
        (-32601, b"4"),
    ),
    ("a notification", '{"jsonrpc": "2.0", "method": "update", "params": [1,2,3,4,5]}', None),
    ("a notification without parameters", '{"jsonrpc": "2.0", "method": "foobar"}', None),
    ("an unknown method", '{"jsonrpc": "2.0", "method": "foobar", "id": "1"}', (-32601, b'"1"')),
    ("broken JSON", '{"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz]', (PARSE, b"null")),
    ("no request object", '{"jsonrpc": "2.0", "method": 1, "params": "bar"}', (INVALID, b"null")),
    (
        "a broken batch",
        """[{"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"},
            {"jsonrpc": "2.0", "method"]""",
        (PARSE, b"null"),
    ),
    ("an empty batch", "[]", (INVALID, b"null")),
    ("a batch of rubbish", "[1]", [(None, INVALID)]),
    ("a batch of more rubbish", "[1,2,3]", [(None, INVALID)] * 3),
    (
        "a batch",
        """[{"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"},
            {"jsonrpc": "2.0", "method": "notify_hello", "params": [7]},
            {"jsonrpc": "2.0", "method": "subtract", "params": [42,23], "id": "2"},
            {"foo": "boo"},
            {"jsonrpc": "2.0", "method": "foo.get", "params": {"name": "myself"}, "id": "5"},
            {"jsonrpc": "2.0", "method": "get_data", "id": "9"}]""",
        [("1", PARAMS), ("2", PARAMS), ("5", -32601), ("9", -32601), (None, INVALID)],
    ),
    (
        "a batch of notifications",
        """[{"jsonrpc": "2.0", "method": "notify_sum", "params": [1,2,4]},
            {"jsonrpc": "2.0", "method": "notify_hello", "params": [7]}]""",
        [],
    ),
]  # fmt: skip


def test_all_fifteen_examples_of_the_specification_are_there() -> None:
    assert len(EXAMPLES) == 15


@pytest.mark.parametrize(
    ("line", "expected"), [pytest.param(*example[1:], id=example[0]) for example in EXAMPLES]
)
def test_an_example_of_the_json_rpc_specification(wire: Conversation, line: str, expected: Any) -> None:
    data = line.replace("\n", " ").encode()
    if wire.version == STATELESS and isinstance(expected, tuple) and expected[0] == -32601:
        expected = (INVALID, expected[1])  # without that version's envelope it waits for a handshake
    if isinstance(expected, list) and wire.version != BATCH_VERSION:
        expected = ALONE
    answer = wire.exchange(data, answered=expected not in (None, []))
    if isinstance(expected, tuple):
        assert error_of(answer or b"") == expected
    elif expected:
        assert outcomes(answer) == Counter(expected)


# --- before the handshake ----------------------------------------------------------------------------


@pytest.mark.parametrize("asked", ["2026-07-28", "2024-10-07", "1.0", "", "2025-11-25 "])
def test_an_unknown_version_is_answered_with_the_latest_that_has_a_handshake(asked: str) -> None:
    with serve(SERVER) as server:
        params = {"protocolVersion": asked, "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
        assert server.request("initialize", params)["result"]["protocolVersion"] == SESSION_VERSIONS[-1]


@pytest.mark.parametrize("version", SESSION_VERSIONS)
def test_a_known_version_is_answered_with_itself(version: str) -> None:
    with serve(SERVER) as server:
        assert server.initialize(version)["protocolVersion"] == version


def test_a_request_before_initialize_is_refused_and_ping_is_not() -> None:
    with serve(SERVER) as server:
        assert server.request("ping")["result"] == {}
        for method in ("tools/list", "tools/call", "no/such/method"):
            answer = server.request(method, {"name": "echo", "arguments": {"value": 1}})
            assert answer["error"]["code"] == INVALID
            assert "initialize" in answer["error"]["message"]
        server.send(b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]\n')
        assert error_of(server.line()) == (INVALID, b"null")
        server.initialize()
        assert server.call("echo", value=1)["content"]


def test_requests_of_2026_07_28_are_served_before_and_after_a_handshake() -> None:
    with serve(SERVER) as server:
        stateless_request = Conversation(server, STATELESS)
        for behind in (False, True):
            if behind:
                server.initialize("2024-11-05")
            answer = decode(
                stateless_request.exchange(stateless_request.request(1, "server/discover")) or b""
            )
            assert answer["result"]["resultType"] == "complete"
            assert STATELESS in answer["result"]["supportedVersions"]
            listed = decode(stateless_request.exchange(stateless_request.request(2, "tools/list")) or b"")
            assert listed["result"]["resultType"] == "complete"
            incomplete = stateless_request.request(4, "tools/list").replace(b'clientCapabilities"', b'other"')
            assert stateless_request.error(incomplete) == (PARAMS, b"4")
            unknown = stateless_request.request(5, "tools/list").replace(STATELESS.encode(), b"2999-01-01")
            assert stateless_request.error(unknown) == (-32022, b"5")
            assert stateless_request.error(b'{"jsonrpc":"2.0","id":6,"method":"server/discover"}') == (
                PARAMS,
                b"6",
            )
            for method in ("initialize", "ping", "logging/setLevel", "no/such"):
                assert stateless_request.error(stateless_request.request(3, method)) == (-32601, b"3")
