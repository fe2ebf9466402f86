"""The strict plain-Python twin of fastrpc's compiled core: its oracle in tests, and its documentation.

It promises the same verdict for every message, a line or a body, as `fastrpc._core.message`, and the same
lines for every stream of bytes as `fastrpc._core.framer`. It shares no code with fastrpc and parses with
nothing but the two patterns below. It is slow (some microseconds a byte) and is not shipped.

A document is JSON as RFC 8259 has it, and in addition:

* UTF-8 only, without a byte order mark. White space is space, tab, carriage return and newline. A line
  of stdio holds no newline, since that ends it; the body of a POST may hold any number.
* At most 128 levels of arrays and objects over the whole message; an empty one is a level.
* Surrogates come in pairs: an escaped lone one is refused, a raw one is no UTF-8.
* Integers are exact up to 4,300 digits; more are refused. A number with a fraction or an exponent is
  a double; one beyond the largest double is refused, one below the smallest is 0.0. ``-0`` is the
  integer 0, ``-0.0`` the double.
* The last of several equal keys counts, except in the envelope, where they are refused.

The one rule that it leaves out: a message with more than a million arrays and objects is invalid.

What is not that is *broken*, -32700. A document is then judged as a JSON-RPC message in this order:

1. An array is a *batch*, an empty one *invalid*; anything else but an object is *invalid*.
2. ``jsonrpc``, ``id``, ``method``, ``params``, ``result`` and ``error`` come once, however their keys are
   escaped: else *invalid*. Keys that only look like these (other case, NUL behind) are other keys, and
   other keys are ignored.
3. ``jsonrpc`` is "2.0"; ``id``, where there is one, is a string or an integer (``1.0`` is none,
   but for a message without ``method``: some peers answer ``1.0`` to 1);
   ``method``, where there is one, is a string and comes without ``result`` and ``error``: else *invalid*.
4. With ``method`` and ``id`` it is a *request*, with ``method`` alone a *notification*, with ``result`` or
   ``error`` a *response*, with none of them *invalid*.
5. ``params``, where a request or a notification has them, are an object: else *invalid* with -32602; and
   ``name``, ``arguments``, ``_meta`` come once in them: else *invalid*. A response's are not looked at.

*Broken* and *invalid* are refused under the message's id where that can be read (JSON-RPC 2.0, section 5),
else under null. What has the form of an answer is refused under null: its id is one of the refuser's own. Two
kinds are never answered, because JSON-RPC 2.0 allows no answer to them: what has ``method`` (a string) and
no ``id`` member is a notification's shape, and *ignored* when it is wrong elsewhere; what has no ``method``
but ``result`` or ``error`` is a response's shape, and its id may be null, as in every answer to a line
that could not be read.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

MAX_DEPTH = 128
MAX_INTEGER_DIGITS = 4300
MAX_LINE = 16 * 1024 * 1024

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
INVALID_PARAMS = -32602

ENVELOPE = frozenset({"jsonrpc", "id", "method", "params", "result", "error"})
PARAMS = frozenset({"name", "arguments", "_meta"})

WHITE_SPACE = b" \t\r\n"
NUMBER = re.compile(rb"(-?(?:0|[1-9][0-9]*))(\.[0-9]+)?([eE][+-]?[0-9]+)?")
PLAIN_CHARACTERS = re.compile(rb'[^"\\\x00-\x1f]*')
LITERALS: tuple[tuple[bytes, bool | None], ...] = ((b"true", True), (b"false", False), (b"null", None))
ESCAPES = {
    ord('"'): '"',
    ord("\\"): "\\",
    ord("/"): "/",
    ord("b"): "\b",
    ord("f"): "\f",
    ord("n"): "\n",
    ord("r"): "\r",
    ord("t"): "\t",
}


class Broken(ValueError):
    """The line is no document. `at` is the byte where that was seen."""

    def __init__(self, expected: str, at: int) -> None:
        super().__init__(f"expected {expected} at byte {at}")
        self.at = at


class Member(NamedTuple):
    """One member of an object; `text` is its value as it came."""

    key: str
    value: Any
    text: bytes


class Object(NamedTuple):
    """An object with all its members in order, equal keys included."""

    members: tuple[Member, ...]

    def last(self) -> dict[str, Any]:
        return {member.key: member.value for member in self.members}


class Verdict(NamedTuple):
    """What `fastrpc._core.message.Message` says of a line, under the same names."""

    kind: str
    id: bytes | None = None
    method: str | None = None
    params: dict[str, Any] | None = None
    error_code: int = 0
    answered_id: bytes | None = None


# --- the document ------------------------------------------------------------------------------


class Parser:
    """Reads one document. Each method begins at `position` and leaves it behind what it has read."""

    def __init__(self, line: bytes) -> None:
        self.line = line
        self.position = 0

    def document(self) -> Any:
        value = self.value(depth=0)
        if self.peek() is not None:
            raise Broken("the end of the line", self.position)
        return value

    def peek(self) -> int | None:
        """Skip white space and return the byte behind it, None at the end."""
        while self.position < len(self.line) and self.line[self.position] in WHITE_SPACE:
            self.position += 1
        return self.line[self.position] if self.position < len(self.line) else None

    def take(self, character: str) -> bool:
        """Skip white space; step over `character` if it comes next."""
        found = self.peek() == ord(character)
        self.position += found
        return found

    def expect(self, character: str) -> None:
        if not self.take(character):
            raise Broken(f"'{character}'", self.position)

    def value(self, depth: int) -> Any:
        following = self.peek()
        if following == ord("{"):
            return self.object(depth + 1)
        if following == ord("["):
            return self.array(depth + 1)
        if following == ord('"'):
            return self.string()
        for literal, value in LITERALS:
            if self.line.startswith(literal, self.position):
                self.position += len(literal)
                return value
        return self.number()

    def object(self, depth: int) -> Object:
        self.enter("{", depth)
        if self.take("}"):
            return Object(())
        members = []
        while True:
            self.peek()
            key = self.string()
            self.expect(":")
            self.peek()
            start = self.position
            value = self.value(depth)
            members.append(Member(key, value, self.line[start : self.position]))
            if self.take("}"):
                return Object(tuple(members))
            self.expect(",")

    def array(self, depth: int) -> list[Any]:
        self.enter("[", depth)
        if self.take("]"):
            return []
        values = []
        while True:
            values.append(self.value(depth))
            if self.take("]"):
                return values
            self.expect(",")

    def enter(self, bracket: str, depth: int) -> None:
        self.expect(bracket)
        if depth > MAX_DEPTH:
            raise Broken(f"at most {MAX_DEPTH} levels", self.position)

    def number(self) -> int | float:
        found = NUMBER.match(self.line, self.position)
        if found is None:
            raise Broken("a value", self.position)
        integer, fraction, exponent = found.groups()
        if fraction is None and exponent is None:
            if len(integer.lstrip(b"-")) > MAX_INTEGER_DIGITS:
                raise Broken(f"at most {MAX_INTEGER_DIGITS} digits", self.position)
            self.position = found.end()
            return int(integer)
        number = float(found.group())
        if number in (float("inf"), float("-inf")):
            raise Broken("a number that a double can hold", self.position)
        self.position = found.end()
        return number

    def string(self) -> str:
        if self.position >= len(self.line) or self.line[self.position] != ord('"'):
            raise Broken("a string", self.position)
        self.position += 1
        pieces = []
        while True:
            pieces.append(self.plain_characters())
            if self.position >= len(self.line) or self.line[self.position] < 0x20:
                raise Broken("a character or the string's end", self.position)
            if self.line[self.position] == ord('"'):
                self.position += 1
                return "".join(pieces)
            pieces.append(self.escape())

    def plain_characters(self) -> str:
        found = PLAIN_CHARACTERS.match(self.line, self.position)
        assert found is not None  # it matches the empty string
        start, self.position = self.position, found.end()
        try:
            return found.group().decode("utf-8", "strict")
        except UnicodeDecodeError as error:
            raise Broken("UTF-8", start + error.start) from None

    def escape(self) -> str:
        start = self.position
        letter = self.line[start + 1 : start + 2]
        if letter != b"u":
            self.position += 2
            if not letter or letter[0] not in ESCAPES:
                raise Broken("an escape", start)
            return ESCAPES[letter[0]]
        unit = self.code_unit()
        if 0xD800 <= unit <= 0xDBFF:
            low = self.code_unit()
            if not 0xDC00 <= low <= 0xDFFF:
                raise Broken("the second of two surrogates", start + 6)
            return chr(0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00))
        if 0xDC00 <= unit <= 0xDFFF:
            raise Broken("the first of two surrogates", start)
        return chr(unit)

    def code_unit(self) -> int:
        r"""Read ``\uXXXX``."""
        text = self.line[self.position : self.position + 6]
        if re.fullmatch(rb"\\u[0-9a-fA-F]{4}", text) is None:
            raise Broken("four hexadecimal digits", self.position)
        self.position += 6
        return int(text[2:], 16)


def plain(value: Any) -> Any:
    """Turn a parsed value into what Python has for it; the last of equal keys counts."""
    if isinstance(value, Object):
        return {key: plain(inner) for key, inner in value.last().items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    return value


def parse(line: bytes) -> Any:
    """Return the value of one document, or raise `Broken`."""
    return plain(Parser(line).document())


# --- the message -------------------------------------------------------------------------------


def judge(line: bytes) -> Verdict:
    """Say what one line is."""
    try:
        document = Parser(line).document()
    except Broken:
        id, is_answer = broken_envelope(line)
        return refusal("broken", PARSE_ERROR, id, is_answer)
    if isinstance(document, list) and document:
        return Verdict("batch")
    return judge_message(document)


def judge_message(document: Any) -> Verdict:
    """Say what one parsed document, or one element of a batch, is."""
    if not isinstance(document, Object):
        return Verdict("invalid", error_code=INVALID_REQUEST)
    message = document.last()
    request_id = readable_id(document)
    is_answer = "method" not in message and ("result" in message or "error" in message)
    fault = envelope_fault(document, message, request_id, is_answer)
    if is_answer and not fault:
        return Verdict("response", request_id)
    fault = fault or params_fault(message)
    if fault and "id" not in message and isinstance(message.get("method"), str):
        return Verdict("ignored")
    if fault:
        return refusal("invalid", fault, request_id, is_answer)
    kind = "request" if "id" in message else "notification"
    params = plain(message["params"]) if "params" in message else None
    return Verdict(kind, request_id, message["method"], params)


def refusal(kind: str, code: int, id: bytes | None, is_answer: bool) -> Verdict:
    """Refuse what is no message: under no id if it is an answer, whose id is one of the refuser's own."""
    if is_answer:
        return Verdict(kind, None, error_code=code, answered_id=id)
    return Verdict(kind, id, error_code=code)


def broken_envelope(line: bytes) -> tuple[bytes | None, bool]:
    """Return the id that can be read of a line that is not a document, and whether it has the form of an
    answer.

    Values of the outermost object are stepped over, whatever is in them, as long as strings and brackets end.
    The id counts if it is sound, the only one, and followed by a comma or the end of the object.
    """
    ids: list[bytes] = []
    names: set[str] = set()
    at = _behind_space(line, 3 if line.startswith(b"\xef\xbb\xbf") else 0)
    following = b"{"
    while line[at : at + 1] == following:
        following = b","
        key_at = _behind_space(line, at + 1)
        key_end = _behind_string(line, key_at)
        at = -1 if key_end is None else _behind_space(line, key_end)
        if key_end is None or line[at : at + 1] != b":":
            break
        name = _sound(line[key_at:key_end])
        names.add(name if isinstance(name, str) else "")
        value_at = _behind_space(line, at + 1)
        value_end = _behind_value(line, value_at)
        if value_end is None:
            break
        at = _behind_space(line, value_end)
        if name == "id" and line[at : at + 1] in (b",", b"}"):
            ids.append(line[value_at:value_end])
    is_answer = "method" not in names and bool(names & {"result", "error"})
    is_readable = len(ids) == 1 and type(_sound(ids[0])) in (str, int)
    return ids[0] if is_readable else None, is_answer


def _sound(text: bytes) -> Any:
    """Return the value of a text that is a document, else None."""
    try:
        return Parser(text).document()
    except Broken:
        return None


def _behind_space(line: bytes, at: int) -> int:
    while at < len(line) and line[at] in WHITE_SPACE:
        at += 1
    return at


def _behind_string(line: bytes, at: int) -> int | None:
    found = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL).match(line, at)
    return None if found is None else found.end()


def _behind_value(line: bytes, at: int) -> int | None:
    if line[at : at + 1] == b'"':
        return _behind_string(line, at)
    if line[at : at + 1] not in (b"{", b"["):
        scalar = re.compile(rb'[^{}\[\]",: \t\r\n\0]+').match(line, at)
        return None if scalar is None else scalar.end()
    open_levels = []
    while at < len(line):
        character = line[at : at + 1]
        if character == b'"':
            end = _behind_string(line, at)
            if end is None:
                return None
            at = end
            continue
        if character in (b"{", b"["):
            open_levels.append(character)
        elif character in (b"}", b"]"):
            opened = open_levels.pop()
            if len(open_levels) < MAX_DEPTH and opened + character not in (b"{}", b"[]"):
                return None
        at += 1
        if not open_levels:
            return at
    return None


def envelope_fault(
    document: Object, message: dict[str, Any], request_id: bytes | None, is_answer: bool
) -> int:
    """Rules 2 to 4: return the error's code, 0 for a request, a notification or a response."""
    right = not repeats(document, ENVELOPE) and message.get("jsonrpc") == "2.0"
    if is_answer:
        right = right and (request_id is not None or message.get("id") is None)
    else:
        right = right and (request_id is not None or "id" not in message)
        right = right and isinstance(message.get("method"), str)
        right = right and "result" not in message and "error" not in message
    return 0 if right else INVALID_REQUEST


def params_fault(message: dict[str, Any]) -> int:
    """Rule 5: return the error's code, 0 for params as they should be."""
    if "params" not in message:
        return 0
    if not isinstance(message["params"], Object):
        return INVALID_PARAMS
    return INVALID_REQUEST if repeats(message["params"], PARAMS) else 0


def repeats(value: Object, keys: frozenset[str]) -> bool:
    """Does one of `keys` come more than once?"""
    found = [member.key for member in value.members if member.key in keys]
    return len(found) != len(set(found))


def readable_id(document: Object) -> bytes | None:
    """Return the text of the id: None if there is none, more than one, or one of another type."""
    found = [member for member in document.members if member.key == "id"]
    types = (str, int) if any(member.key == "method" for member in document.members) else (str, int, float)
    if len(found) != 1 or type(found[0].value) not in types:
        return None
    return found[0].text


# --- the lines ---------------------------------------------------------------------------------


def frames(stream: bytes, max_line: int = MAX_LINE) -> list[bytes | None]:
    """Cut a whole stream into lines: None for one over the limit; blank ones are left out.

    Only the newline ends a line, and it is not counted. The last line needs none.
    """
    lines: list[bytes | None] = []
    for line in stream.split(b"\n"):
        if len(line) > max_line:
            lines.append(None)
        elif line.strip(WHITE_SPACE):
            lines.append(line)
    return lines
