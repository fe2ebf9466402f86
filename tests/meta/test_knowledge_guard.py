"""The guard of search in the knowledge toolset: what it lets pass, what it stops, and that both searchers of
each of its stores answer for the same rows."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.append(os.path.join(REPOSITORY, "benchmarks"))

guard = pytest.importorskip("knowledge_guard", reason="the benchmarks are not here")


def nothing(owner: str, question: str) -> object:
    return None


@pytest.mark.parametrize(
    ("ratios", "held"),
    [((1.4,), True), ((1.6, 1.5), True), ((2.0, 1.6, 1.2), True), ((1.6, 1.7, 1.51, 1.0), False)],
)
def test_what_is_over_the_bar_three_times_fails(
    monkeypatch: pytest.MonkeyPatch, ratios: tuple[float, ...], held: bool
) -> None:
    left = iter(ratios)
    monkeypatch.setattr(guard, "ratio", lambda *of: (1.0, 1.0, next(left)))
    assert guard.holds("owners", [""], nothing, nothing) is held


@pytest.mark.parametrize("slower", ["of_owners", "of_lengths"])
def test_each_store_has_to_hold(monkeypatch: pytest.MonkeyPatch, slower: str) -> None:
    for name in ("of_owners", "of_lengths"):
        monkeypatch.setattr(guard, name, lambda folder, count, name=name: ([name], nothing, nothing))
    monkeypatch.setattr(guard, "ratio", lambda owners, *of: (1.0, 1.0, 2.0 if owners == [slower] else 1.0))
    assert guard.main([]) == 1
    monkeypatch.setattr(guard, "ratio", lambda owners, *of: (1.0, 1.0, 1.0))
    assert guard.main([]) == 0


def test_both_searchers_find_what_the_owner_has_and_no_more(tmp_path: Path) -> None:
    owners, *both = guard.of_owners(str(tmp_path), 300)
    assert owners == ["owner0", "owner1", "owner2"]
    for ask in both:
        for at, owner in enumerate(owners):
            found = ask(owner, "How do I open a file?")
            assert found, owner
            assert {int(id) // guard.EACH for id in found} == {at}


def test_entries_have_the_lengths_of_notes() -> None:
    lengths = [len(text.split()) for _, _, text in guard.of_all_lengths(2000)]
    assert sorted(lengths)[1000] < 110
    assert max(lengths) > 500
    assert list(guard.of_all_lengths(50)) == list(guard.of_all_lengths(50))
