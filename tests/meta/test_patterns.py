"""Every regular expression takes time in proportion to its text, whoever has written that text.

All expressions in the sources are found (`support.pattern_uses`), and each is tried with 100 KB of the texts
that it should find hardest (`support.pattern_attacks`), by the methods with which it is applied. One that is
quadratic takes minutes for some of them; the bar is far above what a linear one takes, in processor time.
An expression that is exempt is below, with the reason; so does one that is made when the program runs.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from functools import cache
from types import FrameType
from typing import Any

import pytest
from support.pattern_attacks import attacks
from support.pattern_uses import ROOT, Use, uses

from fastrpc import redaction
from fastrpc.guard.shell import masking

pytestmark = pytest.mark.long

SIZE = 100_000
SECONDS = 1.0  # of the processor; linear ones take 1 to 50 ms

EXEMPT: dict[str, str] = {}
"""Expressions that meet no text of others, and why."""

MADE_AT_RUN_TIME = {
    "fastrpc/cli/_client_files.py:_prune_copies": "a literal name, on names of the user's own copies",
    "fastrpc/cli/_client_formats.py:TomlClient._take": "literal names, on the user's own configuration",
    "fastrpc/cli/_client_formats.py:YamlClient._take": "literal names, on the user's own configuration",
    "fastrpc/cli/_repl_completion.py:ReplCompleter._of_template": "on the word that the user types",
    "fastrpc/client_requests/forms.py:_check_text": "the author's, whose form it is",
    "fastrpc/guard/policy/patterns.py:Patterns.__init__": "globs by fnmatch: tried below",
    "fastrpc/guard/shell/masking.py:WORDS": "a table, tried below",
    "fastrpc/openapi/routes.py:RouteMap.__init__": "the author's, on paths of the author's document",
    "fastrpc/redaction.py:PATTERNS": "a table, tried below",
    "fastrpc/transports/http/endpoints.py:EndpointFront.__init__": "the server's paths, without groups",
    "fastrpc/unicode_forms.py:normal_form": "runs of one class of characters",
}


class Late(Exception):
    """It has taken too long."""


def found() -> Iterator[Use]:
    yield from uses()
    for number, (pattern, _) in enumerate(redaction.PATTERNS):
        yield Use(f"fastrpc/redaction.py:PATTERNS[{number}]", pattern, frozenset({"sub"}))
    for number, (pattern, _) in enumerate(masking.WORDS):
        yield Use(f"fastrpc/guard/shell/masking.py:WORDS[{number}]", pattern, frozenset({"sub"}))
    yield Use("fastrpc/_core/message.pyx", re.compile(rb'"\xff([-0-9]+)"'), frozenset({"sub"}))


@cache
def every_use() -> dict[str, Use]:
    """All of them by name: looked for when a test wants them, not where tests are only found."""
    return {use.key: use for use in found()}


@pytest.fixture
def bounded() -> Iterator[None]:
    def late(number: int, frame: FrameType | None) -> None:
        raise Late

    before = signal.signal(signal.SIGVTALRM, late)
    yield
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    signal.signal(signal.SIGVTALRM, before)


def apply(pattern: re.Pattern[Any], method: str, text: str | bytes) -> None:
    """Apply an expression. Raises Late."""
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        if method in ("sub", "subn"):
            pattern.sub("" if isinstance(text, str) else b"", text)
        elif method == "finditer":
            for _ in pattern.finditer(text):
                pass
        else:
            getattr(pattern, method)(text)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def hardest(use: Use) -> str:
    """Return what takes too long; "" if nothing does."""
    assert use.pattern is not None
    for text in attacks(use.pattern, SIZE):
        for method in sorted(use.methods):
            try:
                apply(use.pattern, method, text)
            except Late:
                return f"{use.key}: {method} of {text[:60]!r}…{text[-8:]!r}"
    return ""


@pytest.mark.alone
@pytest.mark.timeout(1200)
@pytest.mark.usefixtures("bounded")
def test_no_text_of_100_kb_is_hard_for_any_expression() -> None:
    tried = [use for key, use in every_use().items() if use.pattern is not None and key not in EXEMPT]
    assert len(tried) > 150
    assert [each for each in map(hardest, tried) if each] == []


def test_what_is_made_at_run_time_is_listed_with_its_reason() -> None:
    assert {key for key, use in every_use().items() if use.pattern is None} == {*MADE_AT_RUN_TIME}
    assert {*EXEMPT} <= {*every_use()}, "an exemption of what is not there any more"


def test_compiled_sources_have_no_other_expressions() -> None:
    lines = [
        line.strip()
        for path in sorted((ROOT / "fastrpc").rglob("*.pyx"))
        for line in path.read_text().splitlines()
        if re.search(r"\bre\.[a-z]+\(", line)
    ]
    assert all(r"""re.sub(rb'"\xff([-0-9]+)"'""" in line for line in lines), lines


@pytest.mark.alone
@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize("glob", ["*a*a*a*a*b", "*" * 50 + "b", "?*?*?*b", "*.*.*.*.example.com"])
def test_globs_are_not_hard_either(glob: str) -> None:
    from fastrpc.compat.http.guard import _matches
    from fastrpc.globs import matches
    from fastrpc.guard.policy.patterns import Patterns

    for text in ("a" * SIZE, "." * SIZE, "a." * (SIZE // 2)):
        for match in (
            Patterns([glob]).match,
            lambda text: matches(text, glob),
            lambda text: _matches(text, glob),
        ):
            signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
            match(text)
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)


@pytest.mark.parametrize(
    ("pattern", "method"),
    [(r"\w+=(?:\"[^\"]*\"|[^\s,]+)", "findall"), (r"[ \t]+\n", "sub"), (r"<[^>]*>", "sub")],
)
@pytest.mark.alone
@pytest.mark.usefixtures("bounded")
def test_an_expression_that_is_hard_is_found(pattern: str, method: str) -> None:
    assert hardest(Use("here", re.compile(pattern, re.MULTILINE | re.DOTALL), frozenset({method})))
