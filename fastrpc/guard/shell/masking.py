"""Masks secrets in a text that may be run: in arguments for approvers, and in quotations of the audit log.

A mask must never hide what runs. `fastrpc.redaction` recognises a secret by the text before it, so a caller
could make it hide half of a command: ``TOKEN="$(rm -rf /)"``. Here only words are masked that are certainly
values:

* words of a line that the shell parser has understood completely, and in which no word names a program that
  runs others (`interpreters`): all words are literal, and none is code. Since no list of such programs is
  complete, the masked text is also a single word, or assignments, if a shell parses it once more;
* the user in a text that is a URL, the value in a text that is an assignment, and the members of a text that
  is a JSON document;
* known secrets: those of the environment, and registered ones (`redaction.hide`).

For a name with several meanings, such as ``token``, the form of the value decides (`secret_forms`). Masked
text consists of letters, digits and a few signs that have no meaning to a shell, and does not begin like a
path. All other text is unchanged, even if it contains a secret.
"""

from __future__ import annotations

import json
import re

from fastrpc._core.redaction import may_match
from fastrpc.guard.shell.interpreters import is_interpreter
from fastrpc.guard.shell.parser import commands
from fastrpc.guard.shell.secret_forms import mask_of
from fastrpc.redaction import MASK, NAMES, masked_values

LITERAL = r"[A-Za-z0-9_+=][\w.~+/=:@%^#!-]*"
"""A word that may be masked: it runs nothing in any position."""
WITH_DIGIT = rf"(?=[^\d\s]{{0,256}}\d){LITERAL}"
END = r"(?![^\s\"'])"
NAME = rf"(?:{NAMES}|authorization)(?:[-_]?(?:id|key|value|hash))?s?"
"""A name that ends as the name of a secret: ``--password-command`` names a program."""
HEADER = r"(?:proxy-authorization|authorization|x-api-key|set-cookie|cookie)\s?:\s{0,4}"
SCHEME = r"(?:(?:bearer|basic|token)\s(?=\S)|(?!(?:bearer|basic|token)\s))"
ANY_SCHEME = r"(?:[a-z][\w-]*\s(?=\S))?"
PART = r"[\w.~+/=:@%^#!-]+"
QUOTED_VALUE = rf"{PART}(?:,\s?{PART}|;\s?[\w-]+={PART})*"
"""A header's value in quotes: if another shell parses it, the parts after semicolons are only assignments."""

LONGEST_NAME = 40
"""The maximum number of characters of a name's prefix."""
USER = r"[A-Za-z0-9_+=][\w.~+=:%-]*"

URL = re.compile(r"[a-z][a-z0-9+.-]*://[^\s\"'`$(){};|<>\\]+", re.IGNORECASE)
USER_OF_URL = re.compile(rf"(://){USER}@", re.ASCII)
MEMBER = re.compile(rf'("[\w-]{{0,40}}{NAME}"\s{{0,4}}:\s{{0,4}})"({LITERAL})"', re.IGNORECASE | re.ASCII)
ASSIGNMENT = re.compile(rf"([\w-]{{0,40}}{NAME}=){LITERAL}", re.IGNORECASE | re.ASCII)
WORD = re.compile(LITERAL, re.ASCII)
WORD_WITH_DIGIT = re.compile(WITH_DIGIT, re.ASCII)
SECRET_MEMBER = re.compile(rf"{NAME}\Z", re.IGNORECASE)
SHORT = LITERAL.removesuffix("*") + "{0,2500}"
"""Many words of a line may begin inside others, so the length that is searched from each is bounded."""
SHORT_WITH_DIGIT = WITH_DIGIT.replace(LITERAL, SHORT)


def _masked_value(found: re.Match[str]) -> str:
    """Return a match of a name and the following value, with the value masked."""
    name = found.string[max(0, found.start() - LONGEST_NAME) : found.end(1)]
    return f"{found[1]}{mask_of(name, found[0][len(found[1]) :])}"


WORDS = tuple(
    (re.compile(pattern, re.IGNORECASE | re.ASCII), replacement)
    for pattern, replacement in (
        (rf"(://){USER}@", rf"\1{MASK}@"),
        (rf"([\"'])({HEADER}{ANY_SCHEME}){QUOTED_VALUE}\1", rf"\1\2{MASK}\1"),
        (rf"\b({HEADER}{SCHEME}){SHORT}{END}", rf"\1{MASK}"),
        (rf"\b((?:bearer|basic)\s{{1,4}}){SHORT_WITH_DIGIT}{END}", rf"\1{MASK}"),
        (rf"(?<![^\s\"'])(--?[\w-]{{0,40}}{NAME}(?:=|\s{{1,4}})[\"']?){SHORT}{END}", _masked_value),
        (rf"({NAME}=[\"']?){SHORT_WITH_DIGIT}{END}", _masked_value),
    )
)


def masked_literals(text: str) -> str:
    """Return a text in which secrets are masked that are certainly not run."""
    if may_match(text):
        if URL.fullmatch(text):
            text = USER_OF_URL.sub(rf"\1{MASK}@", text)
        elif (assigned := ASSIGNMENT.fullmatch(text)) is not None:
            text = _masked_value(assigned)
        elif _is_document(text):
            text = MEMBER.sub(lambda found: f'{found[1]}"{mask_of(found[1], found[2])}"', text)
        elif _runs_no_word(text):
            for pattern, replacement in WORDS:
                text = pattern.sub(replacement, text)
    return masked_values(text)


def masked_member(name: str, value: str, *, is_element: bool = False) -> str:
    """Return the value of a member or an argument as `masked_literals` does; with the name of a secret, mask
    the value if it is a word that may be masked. `is_element`: it is an element of a list with that name,
    which may be the words of a command: ``{"tokens": ["rm", "-rf"]}``."""
    is_word = WORD_WITH_DIGIT.fullmatch(value) if is_element else WORD.fullmatch(value)
    if not is_word or not SECRET_MEMBER.search(name):
        return masked_literals(value)
    return masked_values(mask_of(name, value))


def _is_document(text: str) -> bool:
    if text.lstrip()[:1] not in ("{", "["):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _runs_no_word(text: str) -> bool:
    """Whether a shell parser understands a text completely, and no word of it names an interpreter."""
    try:
        found = commands(text)
    except (ImportError, ValueError):  # without tree-sitter nothing is understood
        return False
    if found is None or any(command[0].text == "." for command in found):
        return False
    return not any(is_interpreter(word.text) for command in found for word in command)
