"""Masks secrets in a text that may be run: in what approvers are shown, and in what the audit log quotes.

A mask must never hide what runs. `fastrpc.redaction` recognises a secret by what stands before it, and so may
be made to hide half of a command: ``TOKEN="$(rm -rf /)"``. Here only words are masked that are surely values:

* those of a line that the shell parser has understood as a whole, in which no word names a program that runs
  others (`interpreters`), so that all words are literal, and none is code for somebody else. Since no list of
  such programs is complete, what is masked would be one word, or assignments, if a shell read it once more;
* the user in a text that is one URL, the value in one that is one assignment, and the members of one that is
  one JSON document;
* secrets that are known: of the environment, and those that were registered (`redaction.hide`).

What is masked consists of letters, digits and a few signs that have no meaning to a shell, and does not begin
like a path. All other text stays as it is, with whatever it holds.
"""

from __future__ import annotations

import json
import re

from fastrpc._core.redaction import may_match
from fastrpc.guard.shell.interpreters import is_interpreter
from fastrpc.guard.shell.parser import commands
from fastrpc.redaction import MASK, NAMES, masked_values

LITERAL = r"[A-Za-z0-9_+=][\w.~+/=:@%^#!-]*"
"""What may be masked: it runs nothing, wherever it stands."""
WITH_DIGIT = rf"(?=[^\d\s]{{0,256}}\d){LITERAL}"
END = r"(?![^\s\"'])"
NAME = rf"(?:{NAMES}|authorization)(?:[-_]?(?:id|key|value|hash))?s?"
"""A name that says secret to its end: ``--password-command`` names a program."""
HEADER = r"(?:proxy-authorization|authorization|x-api-key|set-cookie|cookie)\s?:\s{0,4}"
SCHEME = r"(?:(?:bearer|basic|token)\s(?=\S)|(?!(?:bearer|basic|token)\s))"
ANY_SCHEME = r"(?:[a-z][\w-]*\s(?=\S))?"
PART = r"[\w.~+/=:@%^#!-]+"
QUOTED_VALUE = rf"{PART}(?:,\s?{PART}|;\s?[\w-]+={PART})*"
"""A header's value in quotes: what another shell reads behind its semicolons assigns, and runs nothing."""

USER = r"[A-Za-z0-9_+=][\w.~+=:%-]*"

URL = re.compile(r"[a-z][a-z0-9+.-]*://[^\s\"'`$(){};|<>\\]+", re.IGNORECASE)
USER_OF_URL = re.compile(rf"(://){USER}@", re.ASCII)
MEMBER = re.compile(rf'("[\w-]{{0,40}}{NAME}"\s{{0,4}}:\s{{0,4}})"{LITERAL}"', re.IGNORECASE | re.ASCII)
ASSIGNMENT = re.compile(rf"([\w-]{{0,40}}{NAME}=){LITERAL}", re.IGNORECASE | re.ASCII)
WORD = re.compile(LITERAL, re.ASCII)
WORD_WITH_DIGIT = re.compile(WITH_DIGIT, re.ASCII)
SECRET_MEMBER = re.compile(rf"{NAME}\Z", re.IGNORECASE)
SHORT = LITERAL.removesuffix("*") + "{0,2500}"
"""Of the words of a line many may begin in one another: what is looked at from each is bounded."""
SHORT_WITH_DIGIT = WITH_DIGIT.replace(LITERAL, SHORT)
WORDS = tuple(
    (re.compile(pattern, re.IGNORECASE | re.ASCII), replacement)
    for pattern, replacement in (
        (rf"(://){USER}@", rf"\1{MASK}@"),
        (rf"([\"'])({HEADER}{ANY_SCHEME}){QUOTED_VALUE}\1", rf"\1\2{MASK}\1"),
        (rf"\b({HEADER}{SCHEME}){SHORT}{END}", rf"\1{MASK}"),
        (rf"\b((?:bearer|basic)\s{{1,4}}){SHORT_WITH_DIGIT}{END}", rf"\1{MASK}"),
        (rf"(?<![^\s\"'])(--?[\w-]{{0,40}}{NAME}(?:=|\s{{1,4}})[\"']?){SHORT}{END}", rf"\1{MASK}"),
        (rf"({NAME}=[\"']?){SHORT_WITH_DIGIT}{END}", rf"\1{MASK}"),
    )
)


def masked_literals(text: str) -> str:
    """Return a text with those secrets masked that are surely nothing that runs."""
    if may_match(text):
        if URL.fullmatch(text):
            text = USER_OF_URL.sub(rf"\1{MASK}@", text)
        elif (assigned := ASSIGNMENT.fullmatch(text)) is not None:
            text = f"{assigned[1]}{MASK}"
        elif _is_document(text):
            text = MEMBER.sub(rf'\1"{MASK}"', text)
        elif _runs_no_word(text):
            for pattern, replacement in WORDS:
                text = pattern.sub(replacement, text)
    return masked_values(text)


def masked_member(name: str, value: str, *, is_element: bool = False) -> str:
    """Return the value of a member or an argument as `masked_literals` does: a name that says secret is
    reason enough to mask it, if it is a word that may be masked. `is_element`: of a list of that name, which
    may be the words of a command: ``{"tokens": ["rm", "-rf"]}``."""
    is_word = WORD_WITH_DIGIT.fullmatch(value) if is_element else WORD.fullmatch(value)
    return MASK if is_word and SECRET_MEMBER.search(name) else masked_literals(value)


def _is_document(text: str) -> bool:
    if text.lstrip()[:1] not in ("{", "["):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _runs_no_word(text: str) -> bool:
    """Whether a shell parser understands a text as a whole, and no word of it names an interpreter."""
    try:
        found = commands(text)
    except (ImportError, ValueError):  # without tree-sitter nothing is understood
        return False
    if found is None or any(command[0].text == "." for command in found):
        return False
    return not any(is_interpreter(word.text) for command in found for word in command)
