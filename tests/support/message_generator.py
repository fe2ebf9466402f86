"""A seeded generator of messages of every method, and of what a hostile or broken peer makes of them.

`Generator(seed).line()` returns bytes without a newline, as stdio carries them; `body()` returns what a POST
may carry: newlines between tokens, and documents laid out over many lines. About half are well-formed
JSON-RPC, most of the others differ from that in one place, the rest is damaged at random. The same seed
gives the same messages on every Python version. It imports nothing of fastrpc and gives no verdicts:
those are the twin's.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from typing import TypeVar

METHODS = (
    "initialize",
    "ping",
    "server/discover",
    "tools/list",
    "tools/call",
    "resources/list",
    "resources/read",
    "prompts/get",
    "completion/complete",
    "logging/setLevel",
    "notifications/initialized",
    "notifications/cancelled",
    "notifications/progress",
    "no/such/method",
    "",
    "ping\x00",
    "PING",
)
ENVELOPE_KEYS = ("jsonrpc", "id", "method", "params", "result", "error")
PARAMS_KEYS = ("name", "arguments", "_meta", "cursor", "protocolVersion", "requestId", "uri")


def words(text: str) -> list[str]:
    """The entries of a table that is written as text, one blank between two."""
    return text.split(" ")


INTEGERS = (
    *words("0 -0 1 -1 9 10 2147483648 4294967296 9007199254740991 9007199254740992 9007199254740993"),
    *words("-9007199254740993 9223372036854775807 9223372036854775808 -9223372036854775808"),
    *words("-9223372036854775809 18446744073709551615 18446744073709551616 -18446744073709551616"),
    *("1" + "0" * 40, "-" + "9" * 399, "7" * 4299, "7" * 4300, "-" + "7" * 4300, "7" * 4301),
)
DOUBLES = (
    *words("0.0 -0.0 0e0 -0e-0 1.0 1.5 -1.5 0.1 3.141592653589793 1e2 1E+2 1e-2 8.41e21 9.5e-3"),
    *words("5e-324 4.9e-324 2e-324 2.2250738585072011e-308 2.2250738585072014e-308 1e-400 -1e-400"),
    *words("1.7976931348623157e308 1.7976931348623158e308 1.7976931348623159e308 -1.7976931348623159e308"),
    *words("1e308 1e309 -1e309 1e400 -1e400 1e99999999999999999999 0e99999999999999999999"),
    *words("1e-99999999999999999999 123456789012345678901234567890.5 9007199254740993.0"),
    *words("7205759403792793200001e-5 0.0e400 -0.0e-400 9007199254740993e0 18446744073709551616.0"),
    *("0." + "0" * 400 + "1", "1" + "0" * 400 + ".0", "1" + "0" * 400 + "e-400"),
    *("1" * 4400 + "e-4300", "0." + "3" * 5000, "1" + "0" * 308 + ".0", "0." + "0" * 330 + "1e331"),
)
NOT_NUMBERS = (
    *words("01 -01 00 1. .5 -.5 +1 1e 1e+ 1.e1 0x10 1_000 --1 - 1e1.5 0.1.2 ١ 1e400x -a 1a 1\x00"),
    *words("NaN Infinity -Infinity nan inf -NaN -inf 1f 1L 1e+-1 0e 0.e1 -0. 00.0 -00"),
    *("- 1", "1 2", "1" * 30 + "x", "9" * 25 + ".", "0" + "9" * 25, "-0" + "9" * 25, "9" * 400 + "e"),
)
NOT_VALUES = words("True nul nulll tru falsee undefined 'a'  , : } ] /**/1 \\ #1 //")
CHARACTERS = (
    *("a", "Z", " ", "/", "~", "\x7f", "\x80", "é", "ß", "\u0600", "\u2028", "\u2029", "\ufeff", "\ufffd"),
    *("\ufffe", "\uffff", "\ud7ff", "\ue000", "中", "😀", "\U00010000", "\U0010ffff"),
)
ESCAPES = (
    *words(r"\" \\ \/ \b \f \n \r \t \u0000 \u0022 \u005c \u00e9 \u00E9 \u2028 \ufeff \uFFFF"),
    *words(r"\ud83d\ude00 \uD800\uDC00 \udbff\udfff \u0020 \u007f \ud7ff \ue000"),
)
BAD_ESCAPES = (
    *words(r"\x41 \u12 \u00g0 \U00000041 \ud800 \udc00 \ud800\ud800 \udc00\ud800 \ud800x \ud800\n"),
    *words(r"\ud83d\u0041 \ud83du\de00 \v \' \0 \a \ \u \u+123 \u-123 \u0x41 \dbff\udfff \ud83d\\ude00"),
)
BAD_BYTES = (
    *(b"\x00", b"\x01", b"\x08", b"\x0b", b"\x0c", b"\x1f", b"\t", b"\r", b"\x80", b"\xbf", b"\xc0\x80"),
    *(b"\xc1\xbf", b"\xc3", b"\xe0\x80\x80", b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xed\xa0\xbd\xed\xb8\x80"),
    *(b"\xef\xbb\xbf", b"\xf0\x80\x80\x80", b"\xf0\x9f\x98", b"\xf4\x90\x80\x80", b"\xf8\x88\x80\x80\x80"),
    *(b"\xfe", b"\xff", b"\xff\xfe", b'"', b"\\", b"\xe2\x80", b"\xc3\x28"),
)
WHITE_SPACE = (" ", "  ", "\t", "\r", " \t\r ")
NEWLINES = ("\n", "\n\n", "\r\n", "\n  ", " \n\t", "\n" * 70)
INDENTS = (b"", b"  ", b"    ", b"\t")
NOT_WHITE_SPACE = (b"\x0b", b"\x0c", b"\x00", b"\xc2\xa0", b"\xe2\x80\xa8", b"\xef\xbb\xbf", b"\x1e", b"\x85")
SYNTAX = (b" ", *b'{ } [ ] , : " \\ 0 - e . null {} [] ""'.split())
NESTED = (b"", b"1", b"[]", b"{}", b'"[[["', b"1e400", b"[", b"18446744073709551616", b"-0.0")

TOKENS = re.compile(rb'"(?:[^"\\]|\\.)*"?|[{}\[\],:]|[^"{}\[\],:]+', re.DOTALL)

Choice = TypeVar("Choice")


def laid_out(document: bytes, indent: bytes, newline: bytes = b"\n") -> bytes:
    """Return a document with a line for each member and element, whether or not it is valid JSON.

    What is in strings stays as it is.
    """
    pieces = []
    depth = 0
    for token in TOKENS.findall(document):
        if token in (b"{", b"["):
            depth += 1
            pieces.append(token + newline + indent * depth)
        elif token in (b"}", b"]"):
            depth = max(depth - 1, 0)
            pieces.append(newline + indent * depth + token)
        elif token == b",":
            pieces.append(token + newline + indent * depth)
        else:
            pieces.append(token + b" " if token == b":" else token)
    return b"".join(pieces)


class Generator:
    """Messages in an endless row; `random` is its only state."""

    def __init__(self, seed: int | str) -> None:
        self.random = random.Random(f"fastrpc {seed}")
        self.white_space = WHITE_SPACE

    def line(self) -> bytes:
        """Return one message as a line, without a newline."""
        return self.perhaps_damaged(self.document()).replace(b"\n", b"\r")

    def body(self) -> bytes:
        """Return one message as the body of a POST: with newlines in half of them."""
        kind = self.random.random()
        if kind < 0.5:
            return self.perhaps_damaged(self.document())
        self.white_space = WHITE_SPACE + NEWLINES
        try:
            document = self.document()
        finally:
            self.white_space = WHITE_SPACE
        return self.perhaps_damaged(document if kind < 0.7 else self.laid_out(document))

    def laid_out(self, document: bytes) -> bytes:
        """Return a document over many lines, with one of the usual indents."""
        return laid_out(document, self.pick(INDENTS), self.pick((b"\n", b"\n", b"\r\n")))

    def perhaps_damaged(self, message: bytes) -> bytes:
        if self.chance(0.25):
            message = self.damaged(message)
        return b"\xef\xbb\xbf" + message if self.chance(0.005) else message

    def stream(self, lines: list[bytes]) -> bytes:
        """Join lines as peers do: with CR LF at times, with blank lines between, the last at times open."""
        pieces = []
        for line in lines:
            pieces.append(line + self.pick((b"\n", b"\n", b"\n", b"\r\n", b"\n\n", b"\n \t\r\n")))
        stream = b"".join(pieces)
        return stream.rstrip(b"\n") if self.chance(0.3) else stream

    def chunks(self, stream: bytes) -> list[bytes]:
        """Cut a stream anywhere; the pieces are of very different size, some of them empty."""
        chunks, position = [], 0
        longest = self.pick((1, 3, 17, 100, 1000, 70_000))
        while position < len(stream):
            size = self.random.randint(0 if self.chance(0.1) else 1, longest)
            chunks.append(stream[position : position + size])
            position += size
        return chunks

    # --- documents ---

    def document(self) -> bytes:
        kind = self.random.random()
        if kind < 0.50:
            return self.message()
        if kind < 0.80:
            return self.odd_message()
        if kind < 0.88:
            return self.pad(self.value(0))
        if kind < 0.94:
            return self.nested()
        return b"[" + b",".join(self.odd_message() for _ in range(self.random.randint(0, 3))) + b"]"

    def message(self) -> bytes:
        """A well-formed request, notification or response, its members in any order."""
        members = [("jsonrpc", self.text("2.0")), ("method", self.text(self.pick(METHODS)))]
        if self.chance(0.8):
            members.append(("id", self.request_id()))
        if self.chance(0.7):
            members.append(("params", self.params()))
        if self.chance(0.08):
            members = [("jsonrpc", b'"2.0"'), ("id", self.request_id()), ("result", self.value(1))]
        if self.chance(0.1):
            members.append((self.look_alike(self.pick(ENVELOPE_KEYS)), self.value(1)))
        if self.chance(0.7):
            self.random.shuffle(members)
        return self.pad(self.object(members))

    def odd_message(self) -> bytes:
        """A message with one or two members missing, repeated, misspelt or of the wrong type."""
        members = [
            ("jsonrpc", b'"2.0"'),
            ("id", self.request_id()),
            ("method", self.text(self.pick(METHODS))),
            ("params", self.params()),
        ]
        for _ in range(self.random.randint(1, 2)):
            at = self.random.randrange(len(members)) if members else 0
            oddity = self.random.randrange(6)
            if oddity == 0 and members:
                del members[at]
            elif oddity == 1 and members:
                members[at] = (members[at][0], self.value(2))
            elif oddity == 2 and members:
                members.insert(self.random.randint(0, len(members)), (members[at][0], self.value(2)))
            elif oddity == 3 and members:
                members[at] = (self.look_alike(members[at][0]), members[at][1])
            elif oddity == 4:
                members.append((self.pick(ENVELOPE_KEYS), self.value(2)))
            else:
                others = [member for member in members if member[0] != "params"]
                members = [*others[:at], ("params", self.params(repeat=True)), *others[at:]]
        return self.pad(self.object(members))

    def request_id(self) -> bytes:
        if self.chance(0.5):
            return str(self.random.randint(0, 1000)).encode()
        if self.chance(0.5):
            return self.pick(INTEGERS).encode()
        if self.chance(0.8):
            return self.string()
        return self.pick((b"null", b"true", b"1.0", b"1e2", b"-0.0", b"[]", b"{}", b"[1]", b'{"id":1}'))

    def params(self, repeat: bool = False) -> bytes:
        """The params of any method; with `repeat`, one key of them twice."""
        if self.chance(0.04):
            return self.value(2)
        members = [("name", self.string()), ("arguments", self.value(2))]
        if self.chance(0.5):
            members[1] = ("arguments", self.object([(self.key(), self.value(3)) for _ in range(4)]))
        for _ in range(self.random.randint(0, 2)):
            members.append((self.look_alike(self.pick(PARAMS_KEYS)), self.value(2)))
        if self.chance(0.3):
            members.append(("_meta", self.object([("progressToken", self.request_id())])))
        if self.chance(0.5):
            self.random.shuffle(members)
        members = members[: self.random.randint(int(repeat), len(members))]
        if repeat:
            members.insert(self.random.randint(0, len(members)), (self.pick(members)[0], self.value(2)))
        return self.object(members)

    def look_alike(self, key: str) -> str:
        change = self.random.randrange(8)
        changes = (key.upper(), key.title(), key + "\x00", "\x00" + key, key[:-1], key + " ", key + "s", key)
        return changes[change]

    def nested(self) -> bytes:
        """Arrays and objects around the depth limit, bare or as the arguments of a call."""
        levels = self.random.choice((1, 2, 64, 120, 123, 124, 125, 126, 127, 128, 129, 130, 200, 1100))
        opened, closed = [], []
        for _ in range(levels):
            array = self.chance(0.5)
            opened.append(b"[" if array else b'{"' + self.pick((b"a", b"id", b"\\u0061", b"")) + b'":')
            closed.append(b"]" if array else b"}")
        inner = self.pick(NESTED)
        if not inner and opened[-1] != b"[":
            opened[-1] = b"{"
        value = b"".join(opened) + inner + b"".join(reversed(closed))
        if self.chance(0.5):
            return value
        if self.chance(0.5):
            value = b'{"name":"a","arguments":' + value + b"}"
        return b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":' + value + b"}"

    # --- values ---

    def value(self, depth: int) -> bytes:
        kind = self.random.random()
        if kind < 0.25 or (depth > 5 and kind < 0.5):
            return self.string()
        if kind < 0.5 or depth > 5:
            return self.number()
        if kind < 0.7:
            return self.pick((b"true", b"false", b"null"))
        if kind < 0.705:
            return self.pick((*NOT_VALUES, *NOT_NUMBERS)).encode()
        size = self.random.randint(0, 4)
        if kind < 0.85:
            inner = b",".join(self.pad(self.value(depth + 1)) for _ in range(size))
            return b"[" + self.space() + inner + b"]"
        return self.object([(self.key(), self.value(depth + 1)) for _ in range(size)])

    def object(self, members: list[tuple[str, bytes]]) -> bytes:
        pieces = [self.pad(self.text(key)) + b":" + self.pad(value) for key, value in members]
        return b"{" + self.space() + b",".join(pieces) + b"}"

    def key(self) -> str:
        if self.chance(0.6):
            return self.pick(("a", "b", "text", "value", "", "é", "😀", "\x00"))
        return self.pick(PARAMS_KEYS + ENVELOPE_KEYS)

    def number(self) -> bytes:
        kind = self.random.random()
        if kind < 0.3:
            return str(self.random.randint(-(10**6), 10**6)).encode()
        if kind < 0.4:
            return str(self.random.getrandbits(self.random.randint(50, 130)) - (1 << 60)).encode()
        if kind < 0.5:
            return repr(self.random.uniform(-1, 1) * 10.0 ** self.random.randint(-320, 308)).encode()
        if kind < 0.6:
            digits = str(self.random.getrandbits(self.random.randint(8, 300)))
            return f"{digits}.{digits[::-1]}e{self.random.randint(-400, 400)}".encode()
        return self.pick(INTEGERS if kind < 0.8 else DOUBLES).encode()

    def string(self) -> bytes:
        pieces = []
        for _ in range(self.random.choice((0, 1, 2, 5, 20, 70))):
            kind = self.random.random()
            if kind < 0.7:
                pieces.append(b"abcdefgh"[: self.random.randint(1, 8)])
            elif kind < 0.85:
                pieces.append(self.pick(CHARACTERS).encode())
            elif kind < 0.997:
                pieces.append(self.pick(ESCAPES).encode())
            elif kind < 0.9985:
                pieces.append(self.pick(BAD_ESCAPES).encode())
            else:
                pieces.append(self.pick(BAD_BYTES))
        return b'"' + b"".join(pieces) + b'"'

    def text(self, text: str) -> bytes:
        """Write `text` as a JSON string in one of its many spellings."""
        escape_all, escape_some = self.chance(0.03), self.chance(0.1)
        pieces = []
        for character in text:
            must = character in '"\\' or character < " "
            if must or escape_all or (escape_some and self.chance(0.3)):
                pieces.append(self.escaped(character))
            else:
                pieces.append(character.encode())
        return b'"' + b"".join(pieces) + b'"'

    def escaped(self, character: str) -> bytes:
        if character == "/" and self.chance(0.5):
            return b"\\/"
        units = character.encode("utf-16-be")
        form = self.pick(("\\u%02x%02x", "\\u%02X%02X"))
        return b"".join((form % (units[i], units[i + 1])).encode() for i in range(0, len(units), 2))

    def space(self) -> bytes:
        if self.chance(0.001):
            return self.pick(NOT_WHITE_SPACE)
        return self.pick(self.white_space).encode() if self.chance(0.08) else b""

    def pad(self, value: bytes) -> bytes:
        return self.space() + value + self.space()

    # --- damage ---

    def damaged(self, line: bytes) -> bytes:
        damages: tuple[Callable[[bytes, int], bytes], ...] = (
            lambda line, at: line[:at] + bytes((self.random.randrange(256),)) + line[at + 1 :],
            lambda line, at: line[:at] + bytes((line[at] ^ 1 << self.random.randrange(8),)) + line[at + 1 :],
            lambda line, at: line[:at] + line[at + self.random.randint(1, 4) :],
            lambda line, at: line[:at] + self.pick(SYNTAX) + line[at:],
            lambda line, at: line[:at] + self.pick(BAD_BYTES + NOT_WHITE_SPACE) + line[at:],
            lambda line, at: line[:at],
            lambda line, at: line[:at] + line[self.random.randrange(len(line)) :],
            lambda line, at: line[:at] + self.document() + line[at:],
            lambda line, at: line + self.pick(SYNTAX),
            lambda line, at: line[:at] + self.pick(NOT_NUMBERS + INTEGERS + DOUBLES).encode() + line[at:],
        )
        for _ in range(self.random.choice((1, 1, 1, 2, 4))):
            if line:
                line = self.pick(damages)(line, self.random.randrange(len(line)))
        return line

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def pick(self, choices: Sequence[Choice]) -> Choice:
        return self.random.choice(choices)
