"""What the dashboard shows of the knowledge toolset: each person's own memory, documents and runs; what is
forgotten, by whom; and that no text of an agent becomes markup."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import httpx
import pytest
from fastrpc.tools.knowledge import _personal
from fastrpc.tools.knowledge._extraction.extracted import Extracted
from fastrpc.tools.knowledge._extraction.passages import passages
from fastrpc.tools.knowledge._store import current, current_documents
from fastrpc.tools.knowledge._store.entries import Reader
from support.dashboard import RecordedActions
from support.dashboard_browser import FORM_TOKEN, HOSTILE, Browser
from support.dashboard_chromium import check, choose
from support.guarded_folder import fastrpc, variables
from support.http_server import HttpProcess
from support.knowledge_entries import write
from support.pages_read import Elements
from support.workflows import TOOLSET, called, workflow

from fastrpc import Client
from fastrpc.dashboard.access import SignInStore
from fastrpc.dashboard.app import Dashboard
from fastrpc.dashboard.graph import placed
from fastrpc.dashboard.pages import knowledge as knowledge_page
from fastrpc.dashboard.view import Sources
from fastrpc.storage.database import Database
from fastrpc.transports.http.guard import AccessRules

pytest_plugins = ["support.guard_database", "support.dashboard"]
NOTED: Any = RecordedActions()
Visit = Callable[..., Browser]
ADA = Reader("ada", "agent")


@pytest.fixture
def visit(database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Visit:
    """Returns the browser of a person who has signed in, at a server with the knowledge toolset."""
    monkeypatch.setenv("FASTRPC_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("FASTRPC_KNOWLEDGE_DATABASE", f"sqlite:///{tmp_path}/knowledge.sqlite3")
    NOTED.said.clear()
    sources = Sources(
        lambda: database,
        "shop",
        audit=NOTED,
        knowledge=_personal.Personal,
    )
    dashboard = Dashboard(sources, AccessRules(None))

    def visit(person: str = "ada", role: str = "administrator") -> Browser:
        browser = Browser(dashboard)
        assert browser.sign_in(SignInStore(database).make_link(person, role)).status_code == 303
        return browser

    return visit


def stored(name: str, *pages: str, tags: tuple[str, ...] = (), reader: Reader = ADA) -> str:
    """Store a document with these pages; return its id."""
    store = current_documents()
    document, _ = store.begin(reader, name, "".join(pages).encode(), tags)
    extracted = Extracted(list(pages))
    assert store.finish(document.number, extracted, passages(extracted)) is not None
    return document.id


# --- memory -----------------------------------------------------------------------------------------------


def test_a_person_sees_the_entries_of_all_their_agents_and_none_of_others(visit: Visit) -> None:
    browser = visit()
    write(current(), "The deadline is in May.", tags=["work"])
    write(current(), "Only the reviewer knows.", Reader("ada", "reviewer"), scope="agent")
    other = write(current(), "Bob likes tea.", Reader("bob", "agent"))
    page = browser.get("/knowledge").text
    assert "The deadline is in May." in page
    assert "Only the reviewer knows." in page
    assert "Bob likes tea." not in page
    assert browser.get(f"/knowledge/entries/{other.id}").status_code == 404
    browser.get("/knowledge")
    answer = browser.send(f"/knowledge/entries/{other.id}/forget", confirmed="yes")
    assert answer.status_code == 404
    assert current().read(Reader("bob", "agent"), other.id) is not None


def test_a_query_finds_entries_and_says_which_other_word_was_searched(visit: Visit) -> None:
    browser = visit()
    write(current(), "The deadline is in May.")
    write(current(), "Tea is in the cupboard.")
    page = browser.get("/knowledge?q=deadline").text
    assert "in May" in page
    assert "cupboard" not in page
    assert 'value="deadline"' in page
    assert "nearest: deadline" in browser.get("/knowledge?q=deadlne").text
    assert "Nothing is here" in browser.get("/knowledge?q=zebra").text
    assert browser.get("/knowledge?q=%ED%A0%80%FF%07").status_code == 200


def test_many_entries_are_paged_each_once(visit: Visit) -> None:
    browser = visit()
    for number in range(60):
        write(current(), f"fact {number}")
        write(current(), f"fact {number} of bob", Reader("bob", "agent"))
    seen: list[str] = []
    path = "/knowledge"
    while True:
        page = browser.get(path).text
        seen += re.findall(r'aria-labelledby="of-(mem_\w+)"', page)
        older = re.search(r'href="\?after=([\w-]+)"', page)
        if older is None:
            break
        path = f"/knowledge?after={older[1]}"
    assert len(seen) == len(set(seen)) == 60
    assert browser.get("/knowledge?after=123").status_code == 404
    assert visit("bob").get(path).status_code == 404  # a cursor is of its owner


def test_an_entry_is_forgotten_after_a_confirmation_and_it_is_recorded_who_did_it(visit: Visit) -> None:
    browser = visit("ada", "approver")
    entry = write(current(), "Forget me.")
    path = f"/knowledge/entries/{entry.id}"
    assert "Forget me." in browser.get(path).text
    asked = browser.send(f"{path}/forget")
    assert "cannot be undone" in asked.text
    assert current().read(ADA, entry.id) is not None
    assert NOTED.said == []
    assert browser.send(f"{path}/forget", confirmed="yes").headers["location"] == "/dashboard/knowledge"
    assert current().read(ADA, entry.id) is None
    what = ("ada", "memory.forget", entry.id)
    assert [(*what, "begun"), (*what, "ok")] == NOTED.said
    browser.get("/knowledge")
    assert browser.send(f"{path}/forget", confirmed="yes").status_code == 404


def test_what_cannot_be_recorded_is_not_done(visit: Visit, monkeypatch: pytest.MonkeyPatch) -> None:
    browser = visit()
    entry = write(current(), "Keep me.")
    browser.get("/knowledge")

    monkeypatch.setattr(NOTED, "is_full", True)
    answer = browser.send(f"/knowledge/entries/{entry.id}/forget", confirmed="yes")
    assert (answer.status_code, "nothing was changed" in answer.text) == (503, True)
    assert current().read(ADA, entry.id) is not None


def test_a_viewer_sees_and_forgets_nothing(visit: Visit) -> None:
    viewer = visit("ada", "viewer")
    entry, document = write(current(), "Here to stay."), stored("a.txt", "one page")
    for path, action in (
        (f"/knowledge/entries/{entry.id}", "forget"),
        (f"/knowledge/documents/{document}", "delete"),
    ):
        assert f"/{action}" not in viewer.get(path).text
        answer = viewer.send(f"{path}/{action}", confirmed="yes")
        assert (answer.status_code, "may look" in answer.text) == (403, True)
    assert current().read(ADA, entry.id) is not None
    assert current_documents().get(ADA, document) is not None


@pytest.mark.parametrize("changed", [{"origin": "https://evil.example"}, {"token": ""}, {"token": "0" * 64}])
def test_a_form_that_these_pages_have_not_made_forgets_nothing(visit: Visit, changed: dict[str, str]) -> None:
    browser = visit()
    entry, document = write(current(), "Here to stay."), stored("a.txt", "one page")
    browser.get("/knowledge")
    for path in (f"/knowledge/entries/{entry.id}/forget", f"/knowledge/documents/{document}/delete"):
        assert browser.send(path, confirmed="yes", **changed).status_code == 403
    assert current().read(ADA, entry.id) is not None
    assert current_documents().get(ADA, document) is not None


# --- documents --------------------------------------------------------------------------------------------


def test_documents_are_listed_searched_read_by_page_and_deleted(visit: Visit) -> None:
    browser = visit()
    id = stored("trip.txt", "The hotel is in Rome.", "The train leaves at nine.", tags=("trip",))
    page = browser.get("/knowledge/documents").text
    assert "trip.txt" in page
    assert "2 pages" in page
    found = browser.get("/knowledge/documents?q=train").text
    assert "Page 2" in found
    assert "leaves at nine" in found
    assert "Rome" not in found
    whole = browser.get(f"/knowledge/documents/{id}").text
    assert "Rome" in whole
    assert "leaves at nine" in whole
    assert "Rome" not in browser.get(f"/knowledge/documents/{id}?page=2").text
    assert visit("bob").get(f"/knowledge/documents/{id}").status_code == 404
    browser.get("/knowledge")
    assert "cannot be undone" in browser.send(f"/knowledge/documents/{id}/delete").text
    assert current_documents().get(ADA, id) is not None
    browser.send(f"/knowledge/documents/{id}/delete", confirmed="yes")
    assert current_documents().get(ADA, id) is None
    assert NOTED.said[-1] == ("ada", "document.delete", id, "ok")


def test_a_long_document_goes_on_where_its_page_was_cut(visit: Visit) -> None:
    browser = visit()
    words = " ".join(f"word{number}" for number in range(12_000))
    id = stored("long.txt", words)
    text, path = "", f"/knowledge/documents/{id}"
    for _ in range(10):
        page = browser.get(path).text
        text += re.findall(r'<p class="prose" dir="auto">(.*?)</p>', page, re.DOTALL)[0]
        more = re.search(r'href="/dashboard(/knowledge/documents/\w+\?page=1&amp;offset=\d+)"', page)
        if more is None:
            break
        path = more[1].replace("&amp;", "&")
    assert text == words


# --- runs -------------------------------------------------------------------------------------------------

NODES = [
    {"id": "find", "type": "action.skill", "config": {"tool": "memory.search"}},
    {"id": "new", "type": "logic.if_else", "config": {"condition": "true"}},
    {"id": "keep", "type": "action.skill", "config": {"tool": "memory.write"}},
    {"id": "drop", "type": "data.transform", "config": {"template": 1}},
    {"id": "each", "type": "logic.loop", "config": {"times": 2, "body": ["note"]}},
    {"id": "note", "type": "action.skill", "config": {"tool": "memory.write"}},
]
FLOW = workflow("seen", *NODES, edges="find>new new>keep:true new>drop:false keep>each")
STEPS = [("find", "completed"), ("new", "completed"), ("keep", "completed"), ("each", "failed"),
         ("each[0].note", "completed"), ("each[1].note", "failed")]  # fmt: skip


def steps(*pairs: tuple[str, str], **values: Any) -> list[dict[str, Any]]:
    usual = {"input": None, "output": None, "error": "", "started_at": 1.0, "ended_at": 2.0}
    return [{"node": node, "state": state, **usual, **values} for node, state in pairs]


def test_steps_are_placed_after_all_that_lead_to_them_and_do_not_overlap() -> None:
    graph = placed(FLOW, steps(*STEPS))
    at = {box.id: box for box in graph.boxes}
    order = ["find", "new", "keep", "each", "note"]
    assert [at[id].x for id in order] == sorted({at[id].x for id in order})
    assert at["drop"].x == at["keep"].x
    places = {(box.x, box.y) for box in graph.boxes}
    assert len(places) == len(NODES)
    assert all(0 <= box.x <= graph.width - 190 and 0 <= box.y <= graph.height - 56 for box in graph.boxes)
    assert {(line.source.id, line.target.id, line.when, line.is_body) for line in graph.lines} == {
        ("find", "new", "", False), ("new", "keep", "true", False), ("new", "drop", "false", False),
        ("keep", "each", "", False), ("each", "note", "", True),
    }  # fmt: skip
    assert (at["note"].state, at["note"].times, at["drop"].state) == ("failed", 2, "")
    mirrored = {box.id: box.x for box in placed(FLOW, [], is_mirrored=True).boxes}
    assert [mirrored[id] for id in order] == sorted({mirrored[id] for id in order}, reverse=True)


def test_a_graph_of_nothing_or_with_a_cycle_is_placed_too() -> None:
    assert placed({}, []).boxes == []
    ring = {"nodes": NODES[:2], "edges": [{"from": "find", "to": "new"}, {"from": "new", "to": "find"}]}
    assert len(placed(ring, []).boxes) == 2


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A run that the toolset returns, which a test may change."""
    found = {
        "id": "seen:1", "workflow": "seen", "state": "failed", "started_at": 1.0, "ended_at": 2.0,
        "input": {"place": "Rome"}, "output": None, "error": "each: nothing", "definition": FLOW,
        "step_count": len(STEPS), "steps": steps(*STEPS),
    }  # fmt: skip
    monkeypatch.setattr(_personal.Personal, "run", lambda self, id: found)
    monkeypatch.setattr(_personal.Personal, "runs", lambda self, offset: [found] * (26 if offset < 25 else 1))
    return found


def test_a_run_is_drawn_with_the_states_as_texts_and_listed_below(visit: Visit, run: dict[str, Any]) -> None:
    browser = visit()
    page = browser.get("/knowledge/runs/seen:1").text
    for node, state in STEPS:
        assert re.search(rf">{re.escape(node)}</code>.*?{state}", page, re.DOTALL)
    assert "Rome" in page
    picture = browser.get("/knowledge/runs/seen:1/picture.svg")
    assert picture.headers["content-type"].startswith("image/svg+xml")
    drawn = ElementTree.fromstring(picture.text)
    texts = ["".join(each.itertext()).strip() for each in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert {"✓ completed", "✕ failed", "✕ failed ×2", "· not reached", "true", "find"} <= set(texts)
    assert "style=" not in picture.text
    assert "<style" not in picture.text
    dark = browser.get("/knowledge/runs/seen:1/picture.svg?theme=dark").text
    assert dark != picture.text
    browser.send("/choose", language="ar", back="/dashboard/knowledge")
    assert "✓ مكتملة" in browser.get("/knowledge/runs/seen:1/picture.svg").text


def test_runs_are_paged(visit: Visit, run: dict[str, Any]) -> None:
    browser = visit()
    first = browser.get("/knowledge/runs").text
    assert first.count("<article") == 25
    assert 'href="?after=25"' in first
    second = browser.get("/knowledge/runs?after=25").text
    assert second.count("<article") == 1
    assert 'href="?after=' not in second
    assert browser.get("/knowledge/runs?after=-1").status_code == 200


# --- attacks ----------------------------------------------------------------------------------------------


def test_no_text_of_an_agent_becomes_an_element_or_an_attribute(visit: Visit, run: dict[str, Any]) -> None:
    browser = visit(HOSTILE)
    reader = Reader(HOSTILE, "agent")
    entry = write(current(), f"{HOSTILE}\n\u202eline", reader, tags=[HOSTILE[:60]], source=HOSTILE)
    document = stored(
        f"{HOSTILE} trip\u202e", HOSTILE, "trip \u202e here", tags=(HOSTILE[:60],), reader=reader
    )
    names = {node["id"]: f"{HOSTILE}{node['id']}" for node in NODES}
    hostile_flow = {
        "nodes": [{**node, "id": names[node["id"]], "config": {}} for node in NODES],
        "edges": [{"from": names["find"], "to": names["new"], "when": HOSTILE}],
    }
    run |= {
        "id": f"seen:{HOSTILE}", "workflow": f"{HOSTILE}\u202e", "state": HOSTILE, "definition": hostile_flow,
        "error": HOSTILE, "output": {HOSTILE: HOSTILE},
        "steps": steps((names["find"], HOSTILE), input=[HOSTILE], error=HOSTILE),
    }  # fmt: skip
    pages = {
        path: browser.get(path)
        for path in (
            "/knowledge",
            "/knowledge?q=" + httpx.QueryParams({"": HOSTILE})[""],
            f"/knowledge/entries/{entry.id}",
            "/knowledge/documents",
            "/knowledge/documents?q=trip",
            f"/knowledge/documents/{document}",
            "/knowledge/runs",
            "/knowledge/runs/x",
            "/knowledge/runs/x/picture.svg",
        )
    }
    pages["forget"] = browser.send(f"/knowledge/entries/{entry.id}/forget")
    for path, answer in pages.items():
        assert answer.status_code == 200, path
        elements = Elements(answer.text).found
        scripts = [attributes for tag, attributes in elements if tag == "script"]
        assert all((each.get("src") or "").startswith("/dashboard/static/") for each in scripts), path
        images = [attributes.get("src") or "" for tag, attributes in elements if tag == "img"]
        assert all(each.startswith("/dashboard/knowledge/runs/") for each in images), path
        assert not [tag for tag, _ in elements if tag in ("iframe", "object", "style", "base")], path
        given = {name for _, attributes in elements for name in attributes}
        assert not [name for name in given if name.startswith("on") or name == "style"], (path, given)
        links = [each.get("href") or "" for tag, each in elements if tag == "a"]
        assert all(each.startswith(("/dashboard", "?after=", "#")) for each in links), (path, links)
        assert "\u202e" not in answer.text, path
        assert not [each for _, each in elements if "<mark>" in str(each)], path
        assert not re.search(r"<title>[^<]*<mark", answer.text), path
    assert "&lt;script&gt;" in pages["/knowledge"].text
    assert "<mark>\\u202e</mark>" in pages[f"/knowledge/documents/{document}"].text
    ElementTree.fromstring(pages["/knowledge/runs/x/picture.svg"].text)


@pytest.mark.parametrize("id", ["%00", "a%00b", "%ED%A0%80", "..%2f..", "%0d%0aset-cookie:x=1", "x" * 5000])
@pytest.mark.parametrize("kind", ["entries", "documents"])
def test_an_id_that_is_none_finds_nothing(visit: Visit, kind: str, id: str) -> None:
    assert visit().get(f"/knowledge/{kind}/{id}").status_code == 404


def test_without_the_toolset_the_page_is_not_in_the_menu_and_says_so(database: Database) -> None:
    browser = Browser(Dashboard(Sources(lambda: database, "shop"), AccessRules(None)))
    browser.sign_in(SignInStore(database).make_link("ada", "administrator"))
    assert "/dashboard/knowledge" not in browser.get("/").text
    answer = browser.get("/knowledge")
    assert (answer.status_code, knowledge_page.NOT_SERVED in answer.text) == (404, True)


# --- a real server ----------------------------------------------------------------------------------------

GUARD = """
[expose]
tools = ["*"]
[[rules]]
tools = ["workflow.create"]
when = "true"
then = "allow"
[audit]
mode = "group"
"""


def test_a_server_of_the_toolset_shows_what_a_token_of_the_same_owner_has_stored(tmp_path: Path) -> None:
    (tmp_path / "guard.toml").write_text(GUARD)
    (tmp_path / "token").write_text(fastrpc(tmp_path, "token", "create", "--owner", "ada").splitlines()[0])
    command = ("serve", TOOLSET, "--http", "127.0.0.1:0", "--guard", "guard.toml", "--dashboard")
    find = {
        "id": "find",
        "type": "action.skill",
        "config": {"tool": "memory.search", "arguments": {"query": "a"}},
    }
    with HttpProcess(*command, folder=tmp_path, environment=variables(tmp_path)) as server:
        origin = f"http://127.0.0.1:{server.port}"
        token = (tmp_path / "token").read_text().strip()
        with Client.sync(f"{origin}/mcp", token=token) as client:
            entry = called(client, "memory.write", content="The deadline is in May.")["id"]
            link = fastrpc(tmp_path, "dashboard", "link", "--as", "ada", "--url", origin).strip()
            with httpx.Client(base_url=f"{origin}/dashboard", headers={"origin": origin}) as browser:
                browser.post("/enter", data={"code": link})
                assert "deadline is in May" in browser.get("/knowledge").text
                called(client, "workflow.create", workflow=workflow("w", find))
                called(client, "workflow.trigger", id="w", wait_seconds=60)
                page = browser.get("/knowledge/runs").text
                assert ">w</code>" in page
                path = re.search(r'href="/dashboard(/knowledge/runs/w[^"]+)"', page)
                assert path is not None
                assert ">find</code>" in browser.get(path[1]).text
                assert "✓ completed" in browser.get(f"{path[1]}/picture.svg").text
                page = browser.get(f"/knowledge/entries/{entry}").text
                form = {"form_token": FORM_TOKEN.findall(page)[0], "confirmed": "yes"}
                assert browser.post(f"/knowledge/entries/{entry}/forget", data=form).status_code == 303
            assert called(client, "memory.search", query="deadline")["count"] == 0
        assert server.stop() == 0
    records = fastrpc(tmp_path, "audit", "search", "--category", "dashboard", "--json")
    found = [json.loads(line) for line in records.splitlines()]
    assert [(each["actor"], each["action"], each["target"], each["outcome"]) for each in found] == [
        ("ada", "memory.forget", entry, "ok")
    ]


@pytest.mark.long
@pytest.mark.timeout(240)
@pytest.mark.parametrize("language", ["en", "ar"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_each_page_of_the_toolset_is_accessible_in_both_languages_and_themes(
    tmp_path: Path, browser: Any, language: str, theme: str
) -> None:
    (tmp_path / "guard.toml").write_text(GUARD)
    (tmp_path / "token").write_text(fastrpc(tmp_path, "token", "create", "--owner", "ada").splitlines()[0])
    command = ("serve", TOOLSET, "--http", "127.0.0.1:0", "--guard", "guard.toml", "--dashboard")
    nodes = [{**node, "id": f"{node['id']}_with_a_name_that_is_rather_long"} for node in (NODES[3], NODES[1])]
    chain = workflow("w", *nodes, edges=f"{nodes[0]['id']}>{nodes[1]['id']}")
    with HttpProcess(*command, folder=tmp_path, environment=variables(tmp_path)) as server:
        origin = f"http://127.0.0.1:{server.port}"
        token = (tmp_path / "token").read_text().strip()
        with Client.sync(f"{origin}/mcp", token=token) as client:
            entry = called(client, "memory.write", content="x" * 400, tags=["work"], source="y" * 80)["id"]
            added = called(client, "document.add", name=f"{'n' * 150}.txt", content="Der Zug fährt ab.")
            called(client, "workflow.create", workflow=chain)
            run = called(client, "workflow.trigger", id="w", wait_seconds=60)["id"]
        page = browser.new_context(bypass_csp=True, viewport={"width": 360, "height": 740}).new_page()
        page.goto(fastrpc(tmp_path, "dashboard", "link", "--as", "ada", "--url", origin).strip())
        page.wait_for_selector("text=No call is here")
        choose(page, language, theme)
        page.click("a[href='/dashboard/knowledge']")
        paths = [f"entries/{entry}", "documents", f"documents/{added['document']['id']}", "documents?q=zug"]
        for path in ("", *paths, "runs", f"runs/{run}"):
            page.goto(f"{origin}/dashboard/knowledge/{path}".rstrip("/"))
            check(page)
        assert page.evaluate("document.querySelector('picture img').naturalWidth") > 400
        page.goto(f"{origin}/dashboard/knowledge/entries/{entry}")
        page.click("button.no")
        page.wait_for_selector("[role=alert]")
        check(page)
