"""Texts that a regular expression may find hard, made of the expression itself.

For each part that repeats without a bound: a beginning that leads there, the part again and again, and an end
that does not fit; the beginning again and again, which a search tries from each; and what two parts that
repeat have in common. These are the worst cases of expressions that are quadratic or worse. The parser is
Python's own; what an expression says that it does not know (a look-ahead's condition, say) is left out.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from itertools import islice
from typing import Any

if sys.version_info >= (3, 11):
    from re import _constants as constants
    from re import _parser as parser
else:
    import sre_constants as constants
    import sre_parse as parser

LONG = 64  # repetitions from which a bound is none
ENDS = ("", "\0")
BETWEEN = ("", "\n", " ")
"""What is between beginnings: of a line, of a word."""
CATEGORIES = {
    constants.CATEGORY_DIGIT: "0",
    constants.CATEGORY_WORD: "a",
    constants.CATEGORY_SPACE: " ",
    constants.CATEGORY_NOT_DIGIT: "a",
    constants.CATEGORY_NOT_WORD: " ",
    constants.CATEGORY_NOT_SPACE: "a",
}
OTHERS = "a0 -.:=/'\"<>&%\\\n\t_,;()[]{}éAZ|~$#@!"


def attacks(pattern: re.Pattern[Any], size: int) -> Iterator[str | bytes]:
    """Return texts of about so many characters, of the kind that the pattern takes."""
    for text in texts(pattern, size):
        if isinstance(pattern.pattern, bytes):
            yield text.encode("latin-1", "replace")
        else:
            yield text


def texts(pattern: re.Pattern[Any], size: int) -> Iterator[str]:
    tree = parser.parse(pattern.pattern, pattern.flags)
    found = list(islice(dict.fromkeys(repeats(tree, "")), 20))
    pumps = list(dict.fromkeys(pump for _, pump in found if pump))
    begins = list(dict.fromkeys(begin for begin, _ in found))[:4]
    for begin, pump in found:
        if pump:
            for end in ENDS:
                yield begin + pump * (size // len(pump)) + end
    for begin in begins:
        for pump in ("", *pumps[:3]):
            unit = begin + pump
            for between in BETWEEN if unit else ():
                yield (between + unit) * (size // len(between + unit))
    for one in pumps[:3]:
        for two in pumps[:3]:
            if one != two:
                yield one * (size // 2 // len(one)) + two * (size // 2 // len(two)) + "\0"
                yield (one + two) * (size // (len(one) + len(two))) + "\0"
    whole = sample(tree)
    for between in BETWEEN if whole else ():
        yield (between + whole) * (size // len(between + whole))
        yield (between + whole[:-1]) * (size // len(between + whole))


def repeats(tree: Any, begin: str) -> Iterator[tuple[str, str]]:
    """Each part that repeats without a bound, with a text that leads to it."""
    for op, value in tree:
        if op in (constants.MAX_REPEAT, constants.MIN_REPEAT) or op is getattr(
            constants, "POSSESSIVE_REPEAT", None
        ):
            least, most, body = value
            if most >= LONG:
                for character in characters(body):
                    yield begin, character
            yield from repeats(body, begin)
            begin += sample(body) * max(least, 1 if most else 0)
            continue
        if op is constants.SUBPATTERN:
            yield from repeats(value[-1], begin)
        elif op is constants.BRANCH:
            for branch in value[1]:
                yield from repeats(branch, begin)
        elif op in (constants.ASSERT, constants.ASSERT_NOT):
            yield from repeats(value[1], begin)
            continue
        elif op is getattr(constants, "ATOMIC_GROUP", None):
            yield from repeats(value, begin)
        begin += sample([(op, value)])


def characters(body: Any) -> Iterator[str]:
    """Some texts that the body of a repetition matches."""
    yield sample(body)
    if len(body) == 1 and body[0][0] in (constants.IN, constants.ANY, constants.NOT_LITERAL):
        yield from [each for each in OTHERS if matches(body, each)][:5]


def matches(body: Any, text: str) -> bool:
    op, value = body[0]
    if op is constants.ANY:
        return text != "\n"
    if op is constants.NOT_LITERAL:
        return ord(text) != value
    return one_of(value, text)


def one_of(choices: Any, text: str) -> bool:
    negated = choices[0][0] is constants.NEGATE
    for op, value in choices:
        if (
            (op is constants.LITERAL and ord(text) == value)
            or (op is constants.RANGE and value[0] <= ord(text) <= value[1])
            or (op is constants.CATEGORY and in_category(value, text))
        ):
            return not negated
    return negated


def in_category(category: Any, text: str) -> bool:
    kind = str(category).rpartition("_")[2].lower()
    sign = {"digit": "d", "word": "w", "space": "s"}[kind]
    return re.match("\\" + (sign.upper() if "_NOT_" in str(category) else sign), text) is not None


def sample(tree: Any) -> str:
    """Return a short text that a part matches, or nearly."""
    text = ""
    for op, value in tree:
        if op is constants.LITERAL:
            text += chr(value)
        elif op is constants.IN:
            text += next((each for each in OTHERS if one_of(value, each)), None) or first_of(value)
        elif op is constants.NOT_LITERAL:
            text += next(each for each in OTHERS if ord(each) != value)
        elif op is constants.ANY:
            text += "a"
        elif op is constants.CATEGORY:
            text += CATEGORIES[value]
        elif op is constants.SUBPATTERN:
            text += sample(value[-1])
        elif op is constants.BRANCH:
            text += sample(value[1][0])
        elif op in (constants.MAX_REPEAT, constants.MIN_REPEAT) or op is getattr(
            constants, "POSSESSIVE_REPEAT", None
        ):
            text += sample(value[2]) * min(max(value[0], 1), 8)
        elif op is getattr(constants, "ATOMIC_GROUP", None):
            text += sample(value)
    return text


def first_of(choices: Any) -> str:
    for op, value in choices:
        if op is constants.LITERAL:
            return chr(value)
        if op is constants.RANGE:
            return chr(value[0])
    return "\u2028"
