"""How bytes become lines, in the compiled framer alone and on the real server: scorecard B1.

However a stream is cut, the same bytes come out.
"""

from __future__ import annotations

import os
import random

import pytest
from support import twin
from support.protocol import SESSION_VERSIONS
from support.stdio import decode, encode, serve
from support.wire_conversation import SERVER, Conversation, echo_line, echoed, error_of, id_text

framer = pytest.importorskip("fastrpc._core.framer", reason="the compiled core is not built")

SEED = int(os.environ.get("FASTRPC_SEED", "1"))
TEXTS = ("", "x", "é😀", "a\u2028b\u2029c\x85d\ufeff", "tab\tcr\rnl\n", "longer " * 30, '{"id":1}')


def messages(count: int, seed: int = SEED) -> list[bytes]:
    """Return calls, pings and blank lines as a client may send them, without their newlines."""
    chooser = random.Random(seed)
    lines = []
    for number in range(count):
        request_id = chooser.choice((number, str(number)))
        value = chooser.choice(TEXTS)
        params = {"name": "echo", "arguments": {"value": value}}
        request = {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params}
        lines.append(encode(request).rstrip(b"\n") + chooser.choice((b"", b"", b"\r", b" \t")))
        if chooser.random() < 0.1:
            lines.append(chooser.choice((b"", b"\r", b" \t \r")))
    return lines


# --- the framer alone --------------------------------------------------------------------------------


def cut(stream: bytes, at: list[int], limit: int = twin.MAX_LINE) -> list[bytes | None]:
    """Feed a framer the pieces of `stream` between the places in `at`."""
    cutter = framer.Framer(max_line=limit)
    found: list[bytes | None] = []
    for start, end in zip([0, *at], [*at, len(stream)], strict=True):
        found += cutter.feed(stream[start:end])
    found += cutter.finish()
    return found


@pytest.mark.parametrize("ending", [b"\n", b""])
def test_200_messages_cut_at_every_byte_give_the_same_lines(ending: bytes) -> None:
    stream = b"\n".join(messages(200)) + ending
    expected = twin.frames(stream)
    assert len(expected) == 200
    for at in range(len(stream) + 1):
        assert cut(stream, [at]) == expected, at


def test_200_messages_fed_byte_by_byte_give_the_same_lines() -> None:
    stream = b"\n".join(messages(200))
    assert cut(stream, list(range(1, len(stream)))) == twin.frames(stream)


def test_1000_random_chunkings_give_the_same_lines() -> None:
    chooser = random.Random(SEED)
    stream = b"\n".join(messages(200))
    for _ in range(1000):
        at = sorted(chooser.choices(range(len(stream) + 1), k=chooser.randint(0, 60)))
        limit = chooser.choice((twin.MAX_LINE, 300, 150, 90, 1))
        assert cut(stream, at, limit) == twin.frames(stream, limit), (at, limit)


@pytest.mark.parametrize("limit", [1, 2, 63, 64, 65, 1000, 65_535, 65_536, 65_537, 200_000])
def test_a_line_of_the_limit_is_handed_out_and_one_more_byte_is_not(limit: int) -> None:
    stream = b"a" * limit + b"\n" + b"b" * (limit + 1) + b"\nc\n" + b"d" * (3 * limit) + b"\n" + b"e" * limit
    expected = [b"a" * limit, None, b"c", None, b"e" * limit]
    assert twin.frames(stream, limit) == expected
    for at in (
        [],
        [limit],
        [limit + 1],
        [2 * limit + 2],
        [2 * limit + 3],
        [1, limit, 2 * limit],
        [len(stream) - 1],
    ):
        assert cut(stream, at, limit) == expected, at


def test_a_line_over_the_limit_is_reported_once_and_at_the_byte_that_passes_it() -> None:
    cutter = framer.Framer(max_line=10)
    assert cutter.feed(b"x" * 10) == []
    assert cutter.feed(b"x") == [None]
    assert cutter.feed(b"x" * 100) == []
    assert cutter.feed(b"x\n") == []
    assert cutter.feed(b"next\n") == [b"next"]
    assert cutter.feed(b"y" * 11) == [None]
    assert cutter.finish() == []


@pytest.mark.parametrize(
    "separator", ["\r", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029", "\x00", "\ufeff"]
)
def test_nothing_but_the_newline_ends_a_line(separator: str) -> None:
    line = f"a{separator}b".encode()
    for at in range(len(line) + 1):
        assert cut(line + b"\n" + line, [at]) == [line, line]


@pytest.mark.parametrize("blank", [b"", b" ", b"\t", b"\r", b"\r\r \t" * 30_000])
def test_blank_lines_are_skipped(blank: bytes) -> None:
    assert cut(blank + b"\na\n" + blank + b"\n" + blank, []) == [b"a"]


@pytest.mark.parametrize(
    "not_blank", [b"\x00", b"\x0b", b"\x0c", b"\xc2\xa0", b"\xef\xbb\xbf", b"\xe2\x80\xa8"]
)
def test_what_json_does_not_call_white_space_makes_no_blank_line(not_blank: bytes) -> None:
    assert cut(b" " + not_blank + b"\r\n", []) == [b" " + not_blank + b"\r"]


# --- the server --------------------------------------------------------------------------------------


@pytest.mark.long
def test_1000_random_chunkings_of_a_stream_get_the_same_answers(wire: Conversation) -> None:
    chooser = random.Random(SEED)
    lines = messages(5)
    stream = b"\n".join(lines) + b"\n"
    wire.server.send(stream)
    expected = [wire.server.line() for _ in range(5)]
    assert [echoed(answer) for answer in expected] == [
        decode(line)["params"]["arguments"]["value"] for line in twin.frames(stream) if line
    ]
    for _ in range(1000):
        at = sorted(chooser.choices(range(len(stream) + 1), k=chooser.randint(1, 12)))
        for start, end in zip([0, *at], [*at, len(stream)], strict=True):
            wire.server.send(stream[start:end])
            os.sched_yield()  # so that the pieces arrive one by one, mostly
        assert [wire.server.line() for _ in range(5)] == expected, at


def test_a_message_cut_at_every_byte_is_answered_as_a_whole_one(wire: Conversation) -> None:
    line = echo_line("é\u2028😀".join('""').encode()) + b"\r\n"
    for at in range(len(line) + 1):
        wire.server.send(line[:at])
        os.sched_yield()
        wire.server.send(line[at:])
        assert echoed(wire.server.line()) == "é\u2028😀"


@pytest.mark.parametrize("version", SESSION_VERSIONS)
def test_a_session_that_arrives_byte_by_byte_loses_and_reorders_nothing(version: str) -> None:
    """The first bytes are read before the event loop is imported, the last by it."""
    client = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
    wait = {"name": "wait", "arguments": {"seconds": 0}}
    stream = encode({"jsonrpc": "2.0", "id": "i", "method": "initialize", "params": client})
    stream += encode({"jsonrpc": "2.0", "method": "notifications/initialized"})
    for number in range(10):
        stream += echo_line(b"%d" % number, request_id=b"%d" % number) + b"\n"
        if number % 3 == 1:  # the first of these needs the loop
            stream += encode({"jsonrpc": "2.0", "id": f"w{number}", "method": "tools/call", "params": wait})
    with serve(SERVER) as server:
        for at in range(len(stream)):
            server.send(stream[at : at + 1])
        answers = [server.line() for _ in range(14)]
        assert id_text(answers[0]) == b'"i"'
        echoes = [answer for answer in answers[1:] if not id_text(answer).startswith(b'"w')]
        assert [echoed(answer) for answer in echoes] == list(range(10))
        server.close_stdin()
        assert server.rest() == b""
        assert server.wait() == 0


@pytest.mark.parametrize("place", [0, 1, 700, 1999])
def test_a_burst_across_the_start_of_the_loop_loses_and_reorders_nothing(place: int) -> None:
    lines = [echo_line(b"%d" % number, request_id=b"%d" % number) + b"\n" for number in range(2000)]
    wait = {"name": "wait", "arguments": {"seconds": 0.01}}
    lines.insert(place, encode({"jsonrpc": "2.0", "id": "w", "method": "tools/call", "params": wait}))
    with serve(SERVER) as server:
        server.initialize()
        server.send(b"".join(lines))
        answers = [server.line() for _ in range(2001)]
        waited = [answer for answer in answers if id_text(answer) == b'"w"']
        assert len(waited) == 1
        assert "result" in decode(waited[0])
        assert [echoed(answer) for answer in answers if answer not in waited] == list(range(2000))
        server.assert_silent()


def test_carriage_returns_and_blank_lines_are_white_space(wire: Conversation) -> None:
    line = echo_line(b"1")
    for sent in (
        line + b"\r\n",
        b"\r" + line + b"\n",
        b"\n\r\n \t\r\n" + line + b" \t\r\n\n\n",
        b"\r\n" + line + b"\r\r\n",
    ):
        wire.server.send(sent)
        assert echoed(wire.server.line()) == 1
    wire.server.send(line.replace(b",", b"\r,\r") + b"\n")
    assert echoed(wire.server.line()) == 1
    wire.server.assert_silent()


def test_a_bare_carriage_return_does_not_end_a_line(wire: Conversation) -> None:
    answer = wire.exchange(echo_line(b"1") + b"\r" + echo_line(b"2"))
    assert error_of(answer or b"") == (-32700, b'"echo"')


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85", "\ufeff"])
def test_other_line_separators_are_carried_inside_strings_and_refused_outside(
    wire: Conversation, separator: str
) -> None:
    assert echoed(wire.exchange(echo_line(f'"a{separator}b"'.encode())) or b"") == f"a{separator}b"
    answer = wire.exchange(echo_line(b"1") + separator.encode() + echo_line(b"2"))
    assert error_of(answer or b"") == (-32700, b'"echo"')


def test_a_byte_order_mark_is_refused_at_the_start_of_the_stream_and_of_a_line() -> None:
    with serve(SERVER) as server:
        server.send(b"\xef\xbb\xbf" + encode({"jsonrpc": "2.0", "id": 1, "method": "ping"}))
        assert error_of(server.line()) == (-32700, b"1")
        server.initialize()
        server.send(b"\xef\xbb\xbf" + echo_line(b"1") + b"\n")
        assert error_of(server.line()) == (-32700, b'"echo"')


@pytest.mark.parametrize("ending", [b"", b"\r", b" "])
def test_the_last_line_needs_no_newline(ending: bytes) -> None:
    with serve(SERVER) as server:
        server.initialize()
        server.send(echo_line(b"1") + b"\n" + echo_line(b"2") + ending)
        server.close_stdin()
        assert [echoed(line) for line in server.rest().splitlines()] == [1, 2]
        assert server.wait() == 0


def test_a_last_line_that_is_cut_off_is_broken() -> None:
    with serve(SERVER) as server:
        server.initialize()
        server.send(echo_line(b"1")[:-3])
        server.close_stdin()
        assert error_of(server.rest().rstrip(b"\n")) == (-32700, b'"echo"')
        assert server.wait() == 0


def test_a_line_of_the_limit_is_served_and_one_over_it_is_answered_once() -> None:
    with serve(SERVER) as server:
        server.initialize()
        line = echo_line(b"1")
        server.send(line + b" " * (twin.MAX_LINE - len(line)) + b"\n")
        assert echoed(server.line()) == 1
        for over in (1, twin.MAX_LINE):
            server.send(line + b" " * (twin.MAX_LINE - len(line) + over))
            answer = server.line()  # told when the limit is passed, not when the line ends
            assert error_of(answer) == (-32700, b"null")
            server.send(b"x" * 100_000 + b"\n" + line + b"\n")
            assert echoed(server.line()) == 1
        server.assert_silent()
