"""Cuts the source of a rule into tokens: names, literals with their values, operators.

One pass, without backtracking, over at most 4 KiB. Literals are decoded here, escapes included; the parser
handles the order of tokens. Comments (``//``) and white space are dropped.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from fastrpc.errors import excerpt
from fastrpc.guard.cel.errors import RuleError, RuleSyntaxError

LONGEST_SOURCE = 4096

TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n\f]+|//[^\n]*)
    |(?P<double>[0-9]*\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+)
    |(?P<int>0[xX][0-9a-fA-F]+|[0-9]+)
    |(?P<string>(?P<prefix>[bBrR]{0,2})(?P<quote>\"{3}|'{3}|\"|'))
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<operator>&&|\|\||[=!<>]=|[<>+\-*/%!?:.,()\[\]{}])""",
    re.VERBOSE,
)
DOUBLED = {"&": "&&", "|": "||", "=": "=="}
"""Characters that are an operator when doubled."""

ESCAPE = re.compile(
    r"\\(?:x([0-9a-fA-F]{2})|X([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.)|$)",
    re.DOTALL,
)
SIMPLE_ESCAPES = dict(zip("abfnrtv\\?\"'`", "\a\b\f\n\r\t\v\\?\"'`", strict=True))


class Token(NamedTuple):
    kind: str
    """``int``, ``double``, ``string``, ``name``, ``operator`` or, after the last one, ``end``."""
    text: str
    """Its source; that of a string includes the quotes, so that it equals no operator."""
    value: Any
    """The value of a literal. The range of an int is not yet checked, since a ``-`` may precede it."""
    start: int
    end: int


def tokens_of(source: str) -> list[Token]:
    """Return the tokens of a source, the last of which is the ``end``; raise `RuleSyntaxError`."""
    if len(source) > LONGEST_SOURCE:
        message = f"a rule has at most {LONGEST_SOURCE:,} characters, this one has {len(source):,}"
        raise RuleSyntaxError.at(source, 0, message)
    found = []
    at = 0
    while at < len(source):
        match = TOKEN.match(source, at)
        if match is None:
            raise _unknown(source, at)
        token = _token(source, match)
        if token is not None:
            found.append(token)
        at = match.end() if token is None else token.end
    found.append(Token("end", "", None, len(source), len(source)))
    return found


def _token(source: str, match: re.Match[str]) -> Token | None:
    kind, text = match.lastgroup or "", match[0]
    if kind == "space":
        return None
    if match["string"]:
        return _string(source, match)
    value: Any = text
    if kind in ("int", "double"):
        value = _number(source, match, kind)
    return Token(kind, text, value, match.start(), match.end())


def _number(source: str, match: re.Match[str], kind: str) -> int | float:
    text, end = match[0], match.end()
    if source[end : end + 1] in ("u", "U"):
        message = f"rules have no unsigned ints: write {excerpt(text)}"
        raise RuleSyntaxError.at(source, match.start(), message)
    if re.match(r"[A-Za-z0-9_]", source[end : end + 1]):
        raise RuleSyntaxError.at(source, match.start(), "this number is followed by a letter")
    if kind == "int":
        return int(text, 16 if text[:2] in ("0x", "0X") else 10)
    value = float(text)
    if value == float("inf"):
        raise RuleSyntaxError.at(source, match.start(), "this double is too large")
    return value


def _string(source: str, match: re.Match[str]) -> Token:
    prefix, quote, start = match["prefix"].lower(), match["quote"], match.start()
    if "b" in prefix:
        raise RuleSyntaxError.at(source, start, "rules have no bytes: write a string, without the b")
    if len(prefix) > 1:
        raise RuleSyntaxError.at(source, start, f"there is no such prefix of a string: {match['prefix']}")
    is_raw = prefix == "r"
    end = _end_of_string(source, match.end(), quote, is_raw)
    if end is None:
        raise RuleSyntaxError.at(source, start, f"this string does not end: where is its {quote}?")
    body = source[match.end() : end - len(quote)]
    value = body if is_raw else _unescaped(source, body, match.end())
    return Token("string", source[start:end], value, start, end)


def _end_of_string(source: str, at: int, quote: str, is_raw: bool) -> int | None:
    """Return the offset after the closing quotes; None if there are none (single ones: on this line)."""
    while at < len(source):
        if source.startswith(quote, at):
            return at + len(quote)
        if source[at] == "\\" and not is_raw:
            at += 1
        elif source[at] in "\r\n" and len(quote) == 1:
            return None
        at += 1
    return None


def _unescaped(source: str, body: str, start: int) -> str:
    def decoded(match: re.Match[str]) -> str:
        *digits, octal, single = match.groups()
        code = next((int(each, 16) for each in digits if each), None)
        if octal:
            code = int(octal, 8)
        if code is not None and code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF:
            return chr(code)
        if single in SIMPLE_ESCAPES:
            return SIMPLE_ESCAPES[single]
        what = "no character has that code" if code is not None else "there is no such escape"
        hint = "" if code is not None else '; a backslash is written \\\\ or r"\\"'
        raise RuleSyntaxError.at(source, start + match.start(), f"{excerpt(match[0])}: {what}{hint}")

    return ESCAPE.sub(decoded, body)


def _unknown(source: str, at: int) -> RuleError:
    character = source[at]
    hint = f"; did you mean {DOUBLED[character]}?" if character in DOUBLED else ""
    return RuleSyntaxError.at(source, at, f"{character!r}: there is no such character in a rule{hint}")
