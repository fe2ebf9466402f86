"""What a text is indexed by, and what a question asks: folding, terms, stems, and the forms of a question."""

from __future__ import annotations

import pytest
from fastrpc.tools.knowledge._search.folding import folded
from fastrpc.tools.knowledge._search.question import MOST_TERMS, read
from fastrpc.tools.knowledge._search.words import stem, stems, terms
from hypothesis import given
from hypothesis import strategies as st
from support.knowledge_entries import pieces


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Café's menu", ["the", "cafe", "s", "menu"]),
        ("STRASSE Straße straße", ["strasse"] * 3),
        ("ﬁnal １２ ١٢ १२", ["final", "12", "12", "12"]),
        ("المُؤتَمَر الـــدولي", ["الموتمر", "الدولي"]),
        ("أحمد إحمد آحمد احمد", ["احمد"] * 4),
        ("مدرسة مدرسه", ["مدرسه"] * 2),
        ("مستشفى مستشفي", ["مستشفي"] * 2),
        ("会议室 A", ["会", "议", "室", "a"]),
        ("カタカナ ｶﾀｶﾅ", ["カ", "タ", "カ", "ナ"] * 2),
        ("회의를", ["회", "의", "를"]),
        ("ё е", ["е", "е"]),
        ("ΟΔΟΣ οδός", ["οδοσ", "οδοσ"]),
        ("का प्रयोग", ["का", "प्रयोग"]),
        ("snake_case", ["snake", "case"]),
        ("…—!", []),
    ],
)
def test_what_is_spelled_differently_and_means_the_same_is_the_same_term(
    text: str, expected: list[str]
) -> None:
    assert terms(text) == expected


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("meeting meetings", ["meet", "meet"]),
        ("المكتبات مكتبة", ["مكتب", "مكتب"]),
        ("книги книга", ["книг", "книг"]),
        ("会议", ["会", "议"]),
        ("2026", ["2026"]),
    ],
)
def test_forms_of_a_word_have_one_stem(words: str, expected: list[str]) -> None:
    assert stems(terms(words)) == expected


@given(st.text())
def test_folding_again_changes_nothing(text: str) -> None:
    assert folded(folded(text)) == folded(text)


@given(st.text())
def test_terms_of_a_term_are_the_term(text: str) -> None:
    for term in terms(text):
        assert terms(term) == [term]
        assert stem(term)


def stands_in(part: tuple[str, ...], whole: list[str]) -> bool:
    return any(tuple(whole[at : at + len(part)]) == part for at in range(len(whole)))


@given(st.lists(st.one_of(pieces, st.text(max_size=20)), max_size=5).map(" ".join))
def test_a_text_is_found_by_each_of_its_words_and_each_of_them_in_quotes(text: str) -> None:
    """Whatever the script and the length: what a question asks of the index is there."""
    indexed = terms(text)
    for piece in text.split():
        for question in (read(piece), read(f'"{piece}"')):
            assert all(stands_in(each, indexed) for each in question.phrases), piece
            assert all(stands_in(each, stems(indexed)) for each in question.stems), piece
            assert all(any(term.startswith(each) for term in indexed) for each in question.prefixes), piece


@given(st.text())
def test_no_term_can_be_an_operator(text: str) -> None:
    """FTS5 and tsvectors are handed terms between quotes, which none of them has."""
    for term in terms(text):
        assert not set(term) & set("\"'\\ :*^()\n\0")


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("when is the deadline", ([("deadlin",)], [], [], [])),
        ("the", ([("the",)], [], [], [])),
        ('"project deadline" notes', ([("note",)], [("project", "deadline")], [], [])),
        ("notes -draft", ([("note",)], [], [], [("draft",)])),
        ('notes -"first draft"', ([("note",)], [], [], [("first", "draft")])),
        ("inform*", ([], [], ["inform"], [])),
        ("会议", ([("会", "议")], [], [], [])),
        ("会议室", ([("会", "议"), ("议", "室")], [], [], [])),
        ("楼", ([("楼",)], [], [], [])),
        ("state-of-art", ([("state",), ("art",)], [], [], [])),
        ("minus -5", ([("minus",), ("5",)], [], [], [])),
        ("a - b", ([("b",)], [], [], [])),
    ],
)
def test_a_question_is_read(text: str, facts: tuple[object, ...]) -> None:
    found = read(text)
    assert (found.stems, found.phrases, found.prefixes, found.without) == facts
    assert found.fields == []


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("tag:Work", [("tag", "work")]),
        ('tag:"two words"', [("tag", "two words")]),
        ("before:2026-05", [("before", 1777593600.0)]),
        ("after:1970-01-02", [("after", 86400.0)]),
        ("after:1970-01-01T00:01Z", [("after", 60.0)]),
        ("category:fact source:mail", [("category", "fact"), ("source", "mail")]),
    ],
)
def test_fields_are_understood(text: str, fields: list[tuple[str, object]]) -> None:
    assert read(text).fields == fields


@pytest.mark.parametrize(
    "text", ["before:noon", "before:2026-13-01", "tag: x", "before:99999999999-1", "other:x"]
)
def test_what_is_no_field_is_words(text: str) -> None:
    found = read(text)
    assert found.fields == []
    assert found.stems


@given(st.text(alphabet=st.sampled_from("ab\"-*:()^~ \n\0tag:before:ORAND会ا'\\"), max_size=200))
def test_every_text_is_a_question(text: str) -> None:
    read(text)


@pytest.mark.parametrize(
    ("kind", "asked"),
    [
        ("phrases", [f'"red {number}"' for number in range(1000)]),
        ("prefixes", [f"red{number}*" for number in range(1000)]),
        ("without", [f"-red{number}" for number in range(1000)]),
        ("fields", [f"tag:red{number}" for number in range(1000)]),
        ("stems", [f"red{number}" for number in range(1000)]),
        ("words", [f"red{number}" for number in range(1000)]),
    ],
)
def test_a_question_asks_for_the_first_of_each_kind_and_for_none_of_them_twice(
    kind: str, asked: list[str]
) -> None:
    assert getattr(read(" ".join(asked)), kind) == getattr(read(" ".join(asked[:MOST_TERMS])), kind)
    assert len(getattr(read(" ".join(asked)), kind)) == MOST_TERMS
    assert len(getattr(read(" ".join([asked[0]] * 100)), kind)) == 1


def test_a_phrase_is_as_long_as_its_first_terms() -> None:
    (phrase,) = read('"' + "red " * 1000 + '"').phrases
    assert phrase == ("red",) * MOST_TERMS
