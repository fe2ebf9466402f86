"""Texts in and out against the standard library: beyond ASCII, with escapes, at every place of a block.

A text is read three ways, since three pieces of code do it: by simdjson, by the strict pass, and by the
shape that the pass has learned. What comes out must be the very str that `json.loads` makes, its kind (the
bytes a character takes) too: a str in too wide a kind equals no other. Half a surrogate pair is refused
on either side. All is generated, in a few seconds; hypothesis says how to repeat what it finds.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastrpc._core.connection import Connection
from fastrpc._core.encoder import OutputBuffer, quoted
from fastrpc._core.message import Message
from fastrpc._core.plan import REQUIRED, Plan

LINE = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"tool","arguments":{"text":"%b"}}}'
ANSWER = b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":'
TAIL = b'"}]}}\n'
PIECE = 16 * 1024  # of a long text that the encoder escapes at a time

# Where the number of bytes or the kind changes, and what has the low byte of something that is escaped.
BOUNDS = [0x20, 0x22, 0x2F, 0x5C, 0x7E, 0x7F, 0x80, 0xBF, 0xFF, 0x100, 0x122, 0x15C, 0x7FF, 0x800, 0x2222]
BOUNDS += [0x7FFF, 0x8000, 0x8022, 0xD7FF, 0xE000, 0xFF22, 0xFFFF, 0x10000, 0x10022, 0x8005C, 0x10FFFF]
SURROGATES = range(0xD800, 0xE000)


class Reader:
    """Reads texts as they are in a line, in all three ways."""

    def __init__(self) -> None:
        self.message = Message()
        self.steady = self.connect()
        self.changing = self.connect()
        self.turn = 0
        self.text: Any = None

    def connect(self) -> Connection:
        connection = Connection((TAIL,) * 4, (TAIL,) * 4)
        connection.dispatcher = self
        connection.open = True
        plan = Plan(None, "tool", self.tool, [("text", "str", REQUIRED, False)], inline=True, adaptive=False)
        connection.take_plans({"tool": plan})
        return connection

    def tool(self, text: str) -> str:
        self.text = text
        return text

    def dispatch(self, message: Message) -> None:
        self.text = message.kind

    def read(self, raw: bytes) -> list[str | None]:
        """What each way makes of the text `raw`: None if the line is refused."""
        line = LINE % raw
        self.message.read(line)
        params: Any = self.message.params
        found = [params["arguments"]["text"] if self.message.kind == "request" else None]
        self.turn = (self.turn + 1) % 7  # no line has the shape of the one before
        found.append(self.called(self.changing, line[:-1] + b" " * self.turn + b"}"))
        self.called(self.steady, LINE % b"")
        found.append(self.called(self.steady, line))
        return found

    def called(self, connection: Connection, line: bytes) -> str | None:
        """The text that the tool was called with."""
        self.text = None
        connection.receive(line)
        if connection.output.take().startswith(ANSWER):
            return str(self.text)
        assert self.text == "broken"
        return None


READER = Reader()


def loaded(raw: bytes) -> str | None:
    """What the standard library makes of it, if it is JSON and no half of a surrogate pair is in it."""
    try:
        text = json.loads(b'"%b"' % raw)
        text.encode()
    except ValueError:
        return None
    return str(text)


def kind(text: str | None) -> int:
    """The size of a new str of this one's kind; a str that others hold may hold its UTF-8 too."""
    return 0 if text is None else sys.getsizeof(text * 2)


def check_reading(raw: bytes) -> None:
    expected = loaded(raw)
    for found in READER.read(raw):
        assert found == expected, raw
        assert hash(found) == hash(expected), raw
        assert kind(found) == kind(expected), raw


def check_writing(text: str) -> None:
    expected = json.dumps(text, ensure_ascii=False).encode()
    output = OutputBuffer()
    output.text(b"1", text, TAIL)
    assert output.take() == ANSWER + expected[:-1] + TAIL, text
    assert quoted(text) == expected, text


def check(text: str) -> None:
    """Write and read a text, read it spelled in ASCII too."""
    check_writing(text)
    check_reading(quoted(text)[1:-1])
    check_reading(json.dumps(text)[1:-1].encode())


def spellings(code: int) -> Iterator[bytes]:
    """The ways to write one character."""
    yield quoted(chr(code))[1:-1]
    pair = [code] if code < 0x10000 else [0xD7C0 + (code >> 10), 0xDC00 + (code & 0x3FF)]
    yield b"".join(b"\\u%04x" % half for half in pair)
    yield b"".join(b"\\u%04X" % half for half in pair)
    if code == ord("/"):
        yield b"\\/"


def test_every_character_is_read_and_written() -> None:
    codes = [code for code in range(sys.maxunicode + 1) if code not in SURROGATES]
    for start in range(0, len(codes), 100):
        check("".join(map(chr, codes[start : start + 100])))


@pytest.mark.parametrize("padding", ["", "y" * 3, "y" * 16])
def test_a_single_character_decides_the_kind(padding: str) -> None:
    for code in [*range(0x500), *range(0x500, sys.maxunicode, 0x3FF), *BOUNDS]:
        if code not in SURROGATES:
            check(padding + chr(code) + padding)


@pytest.mark.parametrize("padding", [b"", b"y" * 3, b"y" * 16])
def test_two_characters_in_all_spellings(padding: bytes) -> None:
    for one, other in itertools.product(BOUNDS, BOUNDS):
        for first, second in itertools.product(spellings(one), spellings(other)):
            check_reading(padding + first + padding + second + padding)


@pytest.mark.parametrize("odd", ['"', "\\", "\n", "\0", "\x7f", "\x80", "é", "Ā", "漢", "耀", "🎉"])
def test_one_odd_character_at_every_place(odd: str) -> None:
    for size in range(71):
        for at in range(size + 1):
            for end in ("", "é", "漢", "🎉") if size % 8 == 7 else ("",):
                check("x" * at + odd + "y" * (size - at) + end)


@pytest.mark.parametrize("odd", ['"', "\n", "é", "漢", "🎉"])
def test_one_odd_character_where_a_long_text_is_cut(odd: str) -> None:
    for at in range(PIECE - 20, PIECE + 3):
        for end in ("", "é", "漢", "🎉"):
            check_writing("x" * at + odd + "y" * 40 + end)
            check_writing("x" * at + odd * 40 + end)


@pytest.mark.parametrize("count", [1, 15, 16, 17, 4080, 70_000])
@pytest.mark.parametrize("odd", ["\n", "é", "漢", "🎉", "é ", "да, ", "漢字 x", '"k": ', "é🎉\\"])
def test_the_same_again_and_again(odd: str, count: int) -> None:
    check(odd * count)


def test_what_is_after_a_backslash_is_judged_as_json_has_it() -> None:
    for sample in (b"\\n", b"\\u00e9", b"\\uD83C\\udf89"):
        for at in range(1, len(sample)):
            for byte in range(256):
                if byte not in b'\n"\\':  # a newline ends a line, the others may end the text
                    raw = sample[:at] + bytes([byte]) + sample[at + 1 :]
                    check_reading(raw)
                    check_reading(b"long enough for a whole block: " + raw + b"behind")


def test_half_of_a_surrogate_pair_is_refused() -> None:
    ends = [0xD7FF, 0xD800, 0xDBFF, 0xDC00, 0xDFFF, 0xE000, 0x41]
    for first, second in itertools.product(ends, ends):
        for between in (b"", b" ", b"\\n"):
            check_reading(b"\\u%04x%b\\u%04X" % (first, between, second))
        check_reading(b"\\u%04x" % first)
        check_reading(b"\\u%04x\\n" % first)
    assert READER.read(b"\\ud83c") == [None, None, None]


@pytest.mark.parametrize("wider", ["", "🎉"])
def test_a_text_with_half_of_a_surrogate_pair_is_not_written(wider: str) -> None:
    for at in [*range(40), PIECE - 1, PIECE, PIECE + 20]:
        for half in ("\ud800", "\udbff", "\udc00", "\udfff"):
            for behind in (0, 1, 20, 40):
                output = OutputBuffer()
                output.line(b"before")
                with pytest.raises(UnicodeEncodeError) as raised:
                    output.text(b"1", "x" * at + half + "y" * behind + wider, TAIL)
                assert raised.value.start == at
                assert output.take() == b"before\n"


odd_pieces = st.sampled_from([*'"\\\n/\0éĀ漢🎉\x7f x', "plain " * 4])


@settings(max_examples=300)
@given(st.one_of(st.text(), st.lists(odd_pieces, max_size=80).map("".join)))
def test_any_text_comes_back(text: str) -> None:
    check(text)


raw_pieces = st.one_of(
    st.sampled_from([b"\\n", b'\\"', b"\\\\", b"\\/", b"\\u0041", b"\\u00e9", b"\\u6f22", b"\\uD83C\\uDF89"]),
    st.sampled_from(["é".encode(), "漢".encode(), "🎉".encode(), b"x", b"plain " * 4]),
    st.sampled_from([b"\\ud83c", b"\\udf89", b"\\x", b"\\u12", b"\xff", b"\xc3", b"\x1f", b"\xed\xa0\x80"]),
)


@settings(max_examples=600)
@given(st.lists(raw_pieces, max_size=60), st.booleans())
def test_any_line_is_judged_and_read_like_the_standard_library_does(pieces: list[bytes], good: bool) -> None:
    raw = b"".join(pieces)
    if good and loaded(raw) is None:
        raw = b"".join(piece for piece in pieces if loaded(piece) is not None)
    check_reading(raw)
