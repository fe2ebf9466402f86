"""What makes expressions for secrets linear lets none through: they find what their plainer forms found."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fastrpc.guard.shell import masking
from fastrpc.redaction import KEY, MASK, PATTERNS

LIST = 2
"""The place of the expression for a list in PATTERNS."""
PLAIN_LIST = (re.compile(rf'({KEY}"\s{{0,4}}:\s{{0,4}})\[[^\]]*\]', re.IGNORECASE), rf'\1["{MASK}"]')
"""Finds lists that end alone, and looks for the end of one that does not from each beginning."""

ASSIGNMENT = 5
"""The place of the expression for an assignment in WORDS."""
PLAIN_ASSIGNMENT = (
    re.compile(
        rf"([\w-]{{0,40}}{masking.NAME}=[\"']?){masking.SHORT_WITH_DIGIT}{masking.END}",
        re.IGNORECASE | re.ASCII,
    ),
    rf"\1{MASK}",
)
"""Takes the whole word before the sign, of which only the end counts."""

NAMES = ["token", "Api-Key", "my_secret_id", "progresstoken", "passwords", "authorization", "credential-hash"]
SIGNS = [
    '"',
    "'",
    "\\",
    ":",
    "=",
    " ",
    "\n",
    ": ",
    '": "',
    '": [',
    '":[',
    "]",
    '"]',
    "[",
    ",",
    "--",
    "-",
    "_",
    "@",
    "://",
]
TEXTS = st.lists(
    st.one_of(
        st.sampled_from(NAMES),
        st.sampled_from(SIGNS),
        st.integers(0, 99).map(lambda number: f"value{number}."),
        st.sampled_from(["ls", "Bearer", "x" * 41, "é", "ſ"]),
    ),
    max_size=30,
).map("".join)


def masked(text: str, table: list[tuple[re.Pattern[str], str]]) -> str:
    for pattern, replacement in table:
        text = pattern.sub(replacement, text)
    return text


def values(text: str) -> set[str]:
    return set(re.findall(r"value\d+", text))


@pytest.mark.long
@settings(max_examples=1500)
@example('"tokens": [value1, "value2')
@example('"a-token": ["value1"], "b-token": ["value2')
@given(TEXTS)
def test_lists_of_secrets_are_masked_whether_they_end_or_not(text: str) -> None:
    plain = [*PATTERNS[:LIST], PLAIN_LIST, *PATTERNS[LIST + 1 :]]
    found, expected = masked(text, PATTERNS), masked(text, plain)
    assert values(found) <= values(expected)
    if text.rfind("[") < text.rfind("]"):
        assert found == expected


def test_a_list_that_was_cut_off_is_masked() -> None:
    assert masked('{"tokens": ["value1", "val', PATTERNS) == '{"tokens": ["****"]'


@settings(max_examples=1500)
@example("my-token=value1 --a-secret=value2 'api_key=value3'")
@example(f"{'x' * 60}token=value1")
@given(TEXTS)
def test_assignments_are_masked_whatever_comes_before_the_name(text: str) -> None:
    words = [(each, how if isinstance(how, str) else r"\1****") for each, how in masking.WORDS]
    plain = [*words[:ASSIGNMENT], PLAIN_ASSIGNMENT, *words[ASSIGNMENT + 1 :]]
    assert masked(text, words) == masked(text, plain)


@pytest.mark.alone
@pytest.mark.parametrize(
    ("plain", "used", "text"),
    [
        (PLAIN_LIST, PATTERNS[LIST], 'tokena" : ['),
        (PLAIN_ASSIGNMENT, masking.WORDS[ASSIGNMENT], "atoken-ids='a-"),
    ],
)
def test_they_take_a_fraction_of_the_time_of_their_plainer_forms(
    plain: tuple[re.Pattern[str], str], used: tuple[re.Pattern[str], str], text: str
) -> None:
    def seconds(pattern: re.Pattern[str], replacement: str) -> float:
        began = time.process_time()
        pattern.sub(replacement, text * 5000)
        return time.process_time() - began

    assert 2 * min(seconds(*used) for _ in range(3)) < min(seconds(*plain) for _ in range(3))
