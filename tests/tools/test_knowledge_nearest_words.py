"""The nearest word of one that nothing has: the same in both kinds of databases, in several scripts, and of
the reader's own."""

from __future__ import annotations

import pytest
from fastrpc.tools.knowledge._extraction import Extracted, passages
from fastrpc.tools.knowledge._search.question import read
from fastrpc.tools.knowledge._search.spelling import is_one_edit, one_edit_away
from fastrpc.tools.knowledge._search.words import terms
from fastrpc.tools.knowledge._store import word_index
from fastrpc.tools.knowledge._store.documents import Documents
from fastrpc.tools.knowledge._store.entries import Entries, Reader
from hypothesis import given
from hypothesis import strategies as st
from support.knowledge_entries import ADA, BOB, write

pytest_plugins = ["support.postgres", "support.entries_store"]


def nearest(store: Entries, question: str, reader: Reader = ADA) -> dict[str, str]:
    return store.nearest(reader, read(question), "all")


def test_the_nearest_word_is_one_of_the_readers(store: Entries) -> None:
    write(store, "harbour harbours")
    write(store, "harbor arbour", BOB)
    assert nearest(store, "harbous") == {"harbous": "harbour"}
    assert nearest(store, "harbo") == {"harbo": "harbour"}
    assert nearest(store, "harbo", BOB) == {"harbo": "harbor"}
    assert nearest(store, "harb harbourss xarbour", BOB) == {}
    assert nearest(store, "harbour") == {}
    assert nearest(store, "harbour", Reader("eve", "")) == {}


@pytest.mark.parametrize(
    ("word", "wrong"),
    [
        ("deadline", "deadlne"),
        ("deadline", "deadlime"),
        ("deadline", "daedline"),
        ("deadline", "deadlinee"),
        ("deadline", "deadl"),
        ("protocol", "protoc0l"),
        ("привет", "превет"),
        ("καλημερα", "καλμερα"),
        ("المشروع", "المشروغ"),
        ("smørrebrød", "smørebrød"),
    ],
)
def test_one_edit_or_a_beginning_leads_to_the_word_that_was_meant(
    store: Entries, word: str, wrong: str
) -> None:
    write(store, f"Of the {word}, and other things.")
    assert list(nearest(store, wrong).values()) == terms(word)


def test_the_nearest_word_of_documents_is_one_of_the_readers(store: Entries) -> None:
    documents = Documents(store.database)
    for reader, word in ((ADA, "harbour"), (BOB, "harbors")):
        document, _ = documents.begin(reader, f"{word}.md", word.encode(), [])
        extracted = Extracted([word], markdown=[word], media_type="text/markdown")
        documents.finish(document.number, extracted, passages(extracted))
    assert documents.nearest(ADA, read("harbor")) == {"harbor": "harbour"}
    assert documents.nearest(BOB, read("harbor")) == {"harbor": "harbors"}


def test_one_edit_is_nearer_than_a_beginning(store: Entries, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_index, "MOST_LIKE_ROWS", 3)
    for number in range(9):
        write(store, f"planetarium {number}")
    write(store, "planets")
    write(store, "plenet")
    assert nearest(store, "planet") == {"planet": "plenet"}


def edits(word: str, letters: str) -> set[str]:
    """All words that are one edit away, by these letters."""
    found = {word[:at] + word[at + 1 :] for at in range(len(word))}
    found |= {
        word[:at] + each + word[at + more :]
        for at in range(len(word) + 1)
        for each in letters
        for more in (0, 1)
    }
    found |= {word[:at] + word[at + 1] + word[at] + word[at + 2 :] for at in range(len(word) - 1)}
    return found - {word}


@given(st.text("abc", max_size=6), st.text("abc", max_size=6))
def test_one_edit_is_a_letter_more_or_less_or_another_or_two_that_change_places(
    word: str, other: str
) -> None:
    assert is_one_edit(word, other) is (other in edits(word, "abc"))


@given(st.text("abz0", min_size=1, max_size=6))
def test_all_words_that_are_one_edit_away_are_asked_for(word: str) -> None:
    found = one_edit_away(word)
    assert found >= {each for each in edits(word, "abcz09") if each.startswith(word[0])}
    assert all(is_one_edit(word, each) and each[0] == word[0] for each in found)
