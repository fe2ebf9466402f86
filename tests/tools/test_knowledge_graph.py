"""memory.traverse: what texts name, and what is reached from it, in both kinds of databases."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from fastrpc.tools.knowledge._entities import MOST, entities_in, key_of
from fastrpc.tools.knowledge._store import graph, moving
from fastrpc.tools.knowledge._store.entries import Entries, Reader
from hypothesis import given, settings
from hypothesis import strategies as st
from support.guarded_folder import variables
from support.knowledge_entries import ADA, BOB, write

from fastrpc import Client

pytest_plugins = ["support.postgres", "support.entries_store"]

SERVE = [sys.executable, "-m", "fastrpc", "serve", "fastrpc.tools.knowledge"]


def walk(
    store: Entries, entity: str, depth: int = 1, reader: Reader = ADA, limit: int = 100
) -> tuple[dict[str, int], list[str]]:
    """Return the distance of each entity, and the contents of the entries."""
    nodes, found = graph.traverse(store.database, reader, entity, depth, limit)
    return {node.name: node.distance for node in nodes}, [entry.content for entry in found]


# --- what a text names --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The project deadline is 14 May; Ada runs the meetings.", "date:05-14 unsure:Ada"),
        (
            "Yesterday Ada Lovelace met Dr. Grace Hopper at the Bank of Japan in Tokyo.",
            "person:Ada_Lovelace person:Grace_Hopper organisation:Bank_of_Japan place:Tokyo",
        ),
        ("My wife Anna likes tea.", "person:Anna"),
        ("Project Apollo begins. We use the Borealis project.", "project:Apollo project:Borealis"),
        ("Ludwig van Beethoven was born in Bonn.", "name:Ludwig_van_Beethoven place:Bonn"),
        (
            "The University of Oxford and Acme Inc signed.",
            "organisation:University_of_Oxford organisation:Acme_Inc",
        ),
        ("Meeting notes are here. Deadlines slip.", "unsure:Meeting unsure:Deadlines"),
        ("Python is fast. I like Python.", "name:Python"),
        ("NASA said so, and PyPI is down.", "name:NASA name:PyPI"),
        ("Call Bob. Ask him.", "name:Bob"),
        ("Ada is here. I met Ada.", "name:Ada"),
        ("Meet at Fifth Avenue. It will rain.", "place:Fifth_Avenue"),
        ("Die Besprechung ist mit Frau Müller in Berlin.", "person:Müller place:Berlin"),
        ("会议 [[项目凤凰]] 2026年5月14日", "topic:项目凤凰 date:2026-05-14"),
        ("اللقاء في [[المكتبة]] 2026-05", "topic:المكتبة date:2026-05"),
        ("See [[Borealis|the plan]] by March 3rd, 2026.", "topic:Borealis date:2026-03-03"),
        ("On 31.02.2026, 1/2/3 and 30.4.2026", "date:2026-04-30"),
        ("THE WHOLE TEXT IS LOUD AND LONG", ""),
    ],
)
def test_what_a_text_names(text: str, expected: str) -> None:
    found = {f"{each.kind}:{each.name.replace(' ', '_')}" for each in entities_in(text)}
    assert found == set(expected.split())


@pytest.mark.parametrize(
    "spellings",
    [
        ("Ada Lovelace", " ada  lovelace ", "ADA LOVELACE"),
        ("14 May 2026", "May 14th, 2026", "2026-05-14", "14.5.2026", "2026年5月14日", "٢٠٢٦-٠٥-١٤"),
        ("the Borealis", "Borealis"),
        ("Zürich", "zurich"),
    ],
)
def test_spellings_of_a_name_are_one(spellings: tuple[str, ...]) -> None:
    assert len({key_of(each) for each in spellings}) == 1


@settings(deadline=None)
@given(st.text(st.sampled_from("Aa B.é会م[]|'-5 \n"), max_size=99), st.lists(st.text(max_size=9), max_size=3))
def test_any_text_names_each_thing_once_and_a_bounded_number(text: str, tags: list[str]) -> None:
    found = entities_in(text * 20, tags)
    assert len({each.key for each in found}) == len(found) <= MOST
    assert all(each.key and each.name for each in found)


# --- the graph ----------------------------------------------------------------------------------------


def test_a_walk_goes_from_entry_to_entry_as_far_as_its_depth(store: Entries) -> None:
    write(store, "Ada Lovelace works on the Borealis project.")
    write(store, "The Borealis project is in Oslo.")
    write(store, "Jan Berg lives in Oslo.")
    write(store, "Jan Berg likes tea with Mary Smith.")
    near, texts = walk(store, "ada lovelace")
    assert near == {"Ada Lovelace": 0, "Borealis": 1}
    assert texts == ["Ada Lovelace works on the Borealis project.", "The Borealis project is in Oslo."]
    assert walk(store, "Ada Lovelace", 2)[0] == {**near, "Oslo": 2}
    assert walk(store, "Ada Lovelace", 3)[0] == {**near, "Oslo": 2, "Jan Berg": 3}
    assert walk(store, "Lovelace")[0] == near
    assert walk(store, "Love") == ({}, [])
    assert len(walk(store, "Oslo", 3, limit=2)[0]) == len(walk(store, "Oslo", 3, limit=2)[1]) == 2


def test_a_tag_and_a_date_are_entities(store: Entries) -> None:
    write(store, "the launch is on 14 May 2026", tags=["work"])
    write(store, "whatever else", tags=["work"])
    entities, texts = walk(store, "2026-05-14")
    assert entities == {"2026-05-14": 0, "work": 1}
    assert texts == ["the launch is on 14 May 2026", "whatever else"]


def test_a_word_that_begins_a_sentence_is_a_name_where_some_entry_is_sure_of_it(store: Entries) -> None:
    write(store, "Oslo is cold. Dinner was in Rome.")
    assert walk(store, "Rome")[0] == {"Rome": 0}
    assert walk(store, "oslo")[0] == {"Oslo": 0, "Rome": 1}
    sure = write(store, "She lives in Oslo.")
    assert walk(store, "Rome")[0] == {"Rome": 0, "Oslo": 1}
    store.forget(ADA, sure.id)
    write(store, "He lives in Oslo.", BOB)
    assert walk(store, "Rome")[0] == {"Rome": 0}


def test_forgetting_an_entry_takes_its_entities_along(store: Entries) -> None:
    first = write(store, "Ada Lovelace knows Jan Berg.")
    write(store, "Jan Berg is here.")
    assert store.forget(ADA, first.id)
    assert walk(store, "Ada Lovelace") == ({}, [])
    assert walk(store, "Jan Berg") == ({"Jan Berg": 0}, ["Jan Berg is here."])
    store.forget_all(ADA, "all")
    assert walk(store, "Jan Berg") == ({}, [])
    assert moving.problems(store.database) == []


def test_what_is_superseded_comes_last_and_says_so(store: Entries) -> None:
    old = write(store, "Ada Lovelace lives in Oslo.")
    write(store, "Oslo is cold.")
    new = write(store, "Ada Lovelace lives in Rome.", supersedes=old.id)
    found = graph.traverse(store.database, ADA, "Ada Lovelace", 1, 10)[1]
    assert [entry.superseded_by for entry in found] == [None, None, new.id]


def test_an_entry_that_is_written_again_with_a_tag_is_reached_by_it(store: Entries) -> None:
    write(store, "one", tags=["a"])
    write(store, "one", tags=["b"])
    assert walk(store, "a")[0] == {"a": 0, "b": 1}


def test_the_kind_of_an_entity_is_what_most_entries_say(store: Entries) -> None:
    for text in ("We met near Borealis.", "It is Borealis.", "We like the Borealis project."):
        write(store, text)
    write(store, "I left the Borealis project.")
    nodes, _ = graph.traverse(store.database, ADA, "Borealis", 1, 10)
    assert [(node.name, node.kind, node.count) for node in nodes] == [("Borealis", "project", 4)]


def test_entries_that_are_imported_and_indexed_anew_are_in_the_graph(store: Entries) -> None:
    record = moving.Record("Ada Lovelace knows Jan Berg.", "fact", "", ["work"], "")
    moving.add(store.database, "ada", [record])
    expected = {"Ada Lovelace": 0, "Jan Berg": 1, "work": 1}
    assert walk(store, "Ada Lovelace")[0] == expected
    assert moving.reindex(store.database) == 1
    assert walk(store, "Ada Lovelace")[0] == expected


def test_no_one_walks_through_what_is_anothers(store: Entries) -> None:
    write(store, "Ada Lovelace knows Jan Berg.")
    write(store, "Jan Berg knows Mary Smith.", BOB)
    write(store, "Jan Berg knows Tom Brown.", Reader("ada", "other"), scope="agent")
    assert walk(store, "Ada Lovelace", 3)[0] == {"Ada Lovelace": 0, "Jan Berg": 1}
    assert walk(store, "Mary Smith", 3) == ({}, [])


def test_memory_traverse_as_it_is_served(tmp_path: Path) -> None:
    with Client.sync(SERVE, env=variables(tmp_path)) as client:
        written = client.call_tool("memory.write", {"content": "My friend Ada Lovelace works in Oslo."})
        done = client.call_tool("memory.traverse", {"entity": "Oslo"})
        assert done.text.startswith("Oslo [place] in 1\n  Ada Lovelace [person] in 1\n\nmem_")
        assert [each["kind"] for each in done.structured["entities"]] == ["place", "person"]
        assert done.structured["entries"][0]["id"] == written.structured["id"]
        assert client.call_tool("memory.traverse", {"entity": "Rome"}).text == "Nothing names Rome."
        for more, message in (({"entity": " "}, "entity: expected a name"), ({"depth": 4}, "depth: ")):
            refused = client.call_tool("memory.traverse", {"entity": "Oslo", **more})
            assert refused.is_error
            assert message in refused.text
