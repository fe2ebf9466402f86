"""The benchmark of the knowledge toolset's search: its questions have answers, its page shows its results."""

from __future__ import annotations

import itertools
import os
import sys

import pytest

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.append(os.path.join(REPOSITORY, "benchmarks"))

import knowledge_search as benchmark  # noqa: E402
import knowledge_searchers  # noqa: E402
from fastrpc.tools.knowledge._search import fusion  # noqa: E402

pytestmark = pytest.mark.long

ENTRIES = benchmark.sections()
QUESTIONS = benchmark.questions()


def test_every_question_is_asked_once_and_names_entries_that_exist() -> None:
    names = {name for name, _, _ in ENTRIES}
    assert len(names) == len(ENTRIES) >= 2000
    assert len({question for question, _ in QUESTIONS}) == len(QUESTIONS) >= 300
    for question, answers in QUESTIONS:
        assert answers, question
        assert answers <= names, question


def test_no_question_is_the_title_of_its_answer() -> None:
    title = {name: text.casefold().rstrip("?") for name, text, _ in ENTRIES}
    for question, answers in QUESTIONS:
        assert question.casefold().rstrip("?") not in {title[name] for name in answers}


def test_entries_for_speed_are_the_same_each_time_and_differ_from_each_other() -> None:
    first = list(benchmark.many(200))
    assert first == list(itertools.islice(benchmark.many(300), 200))
    assert len({text for _, _, text in first}) == 200


def test_the_page_shows_what_was_measured() -> None:
    with open(benchmark.README, encoding="utf-8") as file:
        page = file.read()
    text = benchmark.rendered(benchmark.kept())
    assert text in page, "run: python benchmarks/knowledge_search.py all --write"
    assert benchmark.filled(page, text) == page


def test_what_is_found_now_is_what_was_measured() -> None:
    kept = benchmark.kept()["quality"]
    for name, halves in benchmark.quality(["FTS5", "reference"])["quality"].items():
        for half, found in halves.items():
            assert abs(found["hit@5"] - kept[name][half]["hit@5"]) <= 1, (name, half, found)


def test_the_recipe_finds_more_than_plain_full_text_search_on_both_halves() -> None:
    quality = benchmark.kept()["quality"]
    for half in benchmark.HALVES:
        assert quality["reference"][half]["hit@5"] > quality["FTS5"][half]["hit@5"], half


def test_words_and_meaning_are_fused_as_one_half_had_it_best_and_the_other_bears_out() -> None:
    results = benchmark.kept()
    chosen = results["fusion"]["chosen on"]["tuned"]
    assert chosen["k"] == fusion.K
    assert chosen["weight"] == fusion.MEANING / (fusion.WORDS + fusion.MEANING)
    by_words = results["quality"]["ours"]["held out"]
    for measure in benchmark.MEASURES:
        assert chosen[measure] > by_words[measure], measure


def test_a_question_of_function_words_alone_is_searched_as_it_is() -> None:
    searcher = knowledge_searchers.Reference(":memory:")
    searcher.add([("hamlet", "", "To be, or not to be"), ("other", "", "That is the question")])
    assert searcher.search("to be or", 5) == ["hamlet"]
    assert searcher.search("?!", 5) == []
    searcher.close()


def test_more_of_the_question_counts_for_more_than_one_rare_word() -> None:
    searcher = knowledge_searchers.Reference(":memory:")
    filler = [(f"filler {number}", "", "nothing of the kind is said here") for number in range(40)]
    common = [(f"common {number}", "", "the ferry sails, the harbour waits") for number in range(10)]
    both = ("both", "", "a harbour, a ferry and ropes, paint, tar, salt, a great many nets over the quay")
    searcher.add([*filler, *common, ("rare", "", "zeppelin"), both])
    asked = "ferries in the harbour with a zeppelin and nets"
    assert searcher.search(asked, 1) == ["both"]
    searcher.coverage = 0
    assert searcher.search(asked, 1) == ["rare"]
    searcher.close()
