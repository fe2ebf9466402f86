"""The dashboard's page of callers: tokens are made, rotated, revoked; what each may do is worked out."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.dashboard_browser import Browser
from support.pages_read import elements_that_no_page_has

from fastrpc import Server
from fastrpc.dashboard.app import Dashboard
from fastrpc.dashboard.view import Sources
from fastrpc.guard.audit.log import AuditLog
from fastrpc.guard.callers.token_text import digest_of
from fastrpc.guard.callers.tokens import CallerTokens, live_tokens
from fastrpc.guard.editing import PolicyEditor
from fastrpc.storage.database import Database
from fastrpc.transports.http.guard import AccessRules

pytest_plugins = ["support.guard_database", "support.guarded_dashboard"]
Visit = Callable[..., Browser]
Recorded = Callable[[], list[dict[str, Any]]]
TOKEN = re.compile(r"frpc_[a-z0-9]+_[A-Za-z0-9_-]+")
HOSTILE = "\"><script>alert(1)</script><img src=x onerror=alert(2)>' onfocus=alert(3) {{7*7}}"
ACTIONS = ("/callers", "/callers/tokens/{id}/rotate", "/callers/tokens/{id}/revoke")


@pytest.fixture
def tokens(database: Database) -> CallerTokens:
    return CallerTokens(database)


def once_of(browser: Browser) -> str:
    found = re.search(r'name="once" value="([^"]+)"', browser.get("/callers").text)
    assert found is not None
    return found[1]


def text_of(page: str) -> str:
    """Return the words of a page, without its elements."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


# --- tokens -----------------------------------------------------------------------------------------------


def test_a_token_is_made_and_its_text_is_shown_on_that_page_alone(
    visit: Visit, tokens: CallerTokens, database: Database, recorded: Recorded
) -> None:
    browser = visit("grace")
    typed = {"owner": "ada", "class": "agent", "scopes": "files:read files:write", "expires": "30d"}
    made = browser.send("/callers", once=once_of(browser), **typed)
    text = TOKEN.search(made.text)
    assert text is not None
    (record,) = tokens.list()
    assert (record.owner, record.caller_class) == ("ada", "agent")
    assert record.scopes == ("files:read", "files:write")
    assert record.expires_at == pytest.approx(record.created_at + 30 * 86400, abs=5)
    with database.reading() as connection:
        assert live_tokens(connection, record.created_at)[0][1] == digest_of(text[0].encode())
    assert made.headers["cache-control"] == "no-store"
    for path in ("/callers", f"/callers/tokens/{record.id}"):
        page = browser.get(path).text
        assert record.id in page
        assert text[0] not in page
    (done,) = recorded()
    assert (done["actor"], done["action"], done["target"]) == ("grace", "token.create", record.id)
    assert (done["outcome"], done["owner"], done["of_class"]) == ("ok", "ada", "agent")


def test_a_form_that_is_sent_twice_makes_one_token(visit: Visit, tokens: CallerTokens) -> None:
    browser = visit()
    once = once_of(browser)
    assert browser.send("/callers", owner="ada", once=once).status_code == 200
    browser.get("/callers")
    again = browser.send("/callers", owner="ada", once=once)
    assert (again.status_code, "was sent already" in again.text) == (409, True)
    assert len(tokens.list()) == 1


@pytest.mark.parametrize(
    ("field", "typed", "said"),
    [
        ("owner", "", "expected at most 200"),
        ("owner", "a:b", "expected at most 200"),
        ("class", "no spaces", "expected letters"),
        ("scopes", 'files"read', "expected visible ASCII"),
        ("expires", "soon", "expected a time such as 30d"),
        ("expires", "2001-01-01", "is over"),
    ],
)
def test_a_value_that_does_not_fit_is_said_beside_its_field_and_nothing_typed_is_lost(
    visit: Visit, tokens: CallerTokens, field: str, typed: str, said: str
) -> None:
    browser = visit()
    fields = {"owner": "ada", "class": "agent", "scopes": "files:read", "expires": "1d", field: typed}
    answer = browser.send("/callers", once=once_of(browser), **fields)
    assert answer.status_code == 400
    sentence = re.search(rf'id="wrong-{field}"><bdi>([^<]*)', answer.text)
    assert sentence is not None
    assert said in html.unescape(sentence[1])
    for name, value in fields.items():
        assert f'name="{name}" value="{html.escape(value)}"'.replace("&quot;", "&#34;") in answer.text
    assert tokens.list() == []


def test_a_token_is_rotated_with_an_overlap(visit: Visit, tokens: CallerTokens, recorded: Recorded) -> None:
    old, _ = tokens.create("ada", "agent")
    browser = visit("grace")
    browser.get(f"/callers/tokens/{old.id}")
    wrong = browser.send(f"/callers/tokens/{old.id}/rotate", overlap="an hour")
    assert (wrong.status_code, "expected a time" in wrong.text) == (400, True)
    assert 'value="an hour"' in wrong.text
    made = browser.send(f"/callers/tokens/{old.id}/rotate", overlap="1h")
    assert TOKEN.search(made.text)
    former, new = tokens.get(old.id), tokens.list()[1]
    assert new.rotated_from == old.id
    assert former.expires_at == pytest.approx(new.created_at + 3600, abs=5)
    browser.get(f"/callers/tokens/{old.id}")
    again = browser.send(f"/callers/tokens/{old.id}/rotate")
    assert (again.status_code, "it was rotated already" in again.text) == (409, True)
    outcomes = [(each["actor"], each["action"], each["target"], each["outcome"]) for each in recorded()]
    done = ("grace", "token.rotate", old.id)
    assert outcomes == [(*done, "ok"), (*done, "error")]


def test_a_token_is_revoked_and_the_page_says_that_it_may_do_nothing(
    visit: Visit, tokens: CallerTokens, recorded: Recorded
) -> None:
    record, _ = tokens.create("ada", "agent")
    browser = visit("grace")
    browser.get("/callers")
    assert browser.send(f"/callers/tokens/{record.id}/revoke").status_code == 303
    assert tokens.get(record.id).revoked_at is not None
    page = text_of(browser.get(f"/callers/tokens/{record.id}").text)
    assert "revoked" in page
    assert "it may do nothing" in page
    (done,) = recorded()
    assert (done["actor"], done["action"], done["owner"]) == ("grace", "token.revoke", "ada")


@pytest.mark.parametrize("role", ["viewer", "approver"])
def test_only_an_administrator_changes_tokens(
    visit: Visit, tokens: CallerTokens, recorded: Recorded, role: str
) -> None:
    record, _ = tokens.create("ada", "agent")
    browser = visit("vera", role)
    for path in ("/callers", f"/callers/tokens/{record.id}"):
        page = browser.get(path).text
        assert record.id in page
        assert 'method="post" action="/dashboard/callers' not in page
    for path in ACTIONS:
        answer = browser.send(path.replace("{id}", record.id), owner="eve", once="x")
        assert (answer.status_code, "Only an administrator" in answer.text) == (403, True)
    assert tokens.list() == [record]
    assert recorded() == []


@pytest.mark.parametrize("changed", [{"origin": "https://evil.example"}, {"origin": None}, {"token": ""}])
def test_a_form_of_another_site_changes_no_token(
    visit: Visit, tokens: CallerTokens, changed: dict[str, Any]
) -> None:
    record, _ = tokens.create("ada", "agent")
    browser = visit()
    once = once_of(browser)
    for path in ACTIONS:
        answer = browser.send(path.replace("{id}", record.id), owner="eve", once=once, **changed)
        assert answer.status_code == 403
    assert tokens.list() == [record]


def test_a_token_that_is_not_there_is_said_to_be_unknown(visit: Visit) -> None:
    browser = visit()
    for answer in (
        browser.get("/callers/tokens/nothing"),
        browser.send("/callers/tokens/nothing/revoke"),
        browser.send("/callers/tokens/nothing/rotate"),
        browser.get("/callers/classes/nothing"),
    ):
        assert answer.status_code == 404


def test_many_tokens_are_shown_in_pages_each_once_the_newest_first(
    visit: Visit, tokens: CallerTokens
) -> None:
    ids = [tokens.create(f"owner-{n}", "agent")[0].id for n in range(120)]
    browser = visit()
    seen: list[str] = []
    for number in (1, 2, 3):
        page = browser.get(f"/callers?page={number}").text
        seen += re.findall(r'aria-labelledby="of-(\w+)"', page)
    assert sorted(seen) == sorted(ids)
    assert "page=4" not in page
    for odd in ("0", "-1", "x", "99", "٣", "9" * 5000):
        assert browser.get(f"/callers?page={odd}").status_code == 200


def test_without_an_audit_log_the_servers_log_says_who_did_what(
    visit: Visit, tokens: CallerTokens, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    record, _ = tokens.create("ada", "agent")
    browser = visit("grace", at=Dashboard(Sources(lambda: database), AccessRules(None)))
    browser.send(f"/callers/tokens/{record.id}/revoke")
    said = caplog.text
    assert "actor=grace" in said
    assert f"target={record.id}" in said


def test_in_mode_strict_nothing_is_done_that_cannot_be_recorded(
    visit: Visit, tokens: CallerTokens, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record, _ = tokens.create("ada", "agent")
    log = AuditLog(str(tmp_path / "strict"), mode="strict")
    browser = visit("grace", at=Dashboard(Sources(lambda: database, audit=log), AccessRules(None)))
    with monkeypatch.context() as broken:
        broken.setattr(log, "_failure", "No space left on device")
        answer = browser.send(f"/callers/tokens/{record.id}/revoke")
        assert (answer.status_code, "nothing was changed" in answer.text) == (503, True)
        assert tokens.get(record.id).revoked_at is None
    browser.get("/callers")
    assert browser.send(f"/callers/tokens/{record.id}/revoke").status_code == 303
    log.close()
    (segment,) = Path(log.folder).glob("*.jsonl")
    lines = [each for each in map(json.loads, segment.open()) if each.get("category") == "dashboard"]
    assert [each["outcome"] for each in lines] == ["begun", "ok"]


# --- what each may do -------------------------------------------------------------------------------------


def card_of(page: str, name: str) -> str:
    found = re.search(
        rf'<article class="card" aria-label="{re.escape(name)}">(.*?)</article>', page, re.DOTALL
    )
    assert found is not None, name
    return text_of(found[1])


def test_what_a_token_may_do_is_worked_out_with_what_decides_it(visit: Visit, tokens: CallerTokens) -> None:
    record, _ = tokens.create("ada", "agent")
    page = visit().get(f"/callers/tokens/{record.id}").text
    assert "May use 2 of 4 tools" in page
    search, order = card_of(page, "search"), card_of(page, "order")
    assert "allowed" in search
    assert "in the list expose.tools : search" in search
    assert "in the list classes.agent.tools : search" in search
    assert "60/minute" in search
    assert "Risk by the effect read" in search
    assert "asks a person, unless a rule about its arguments decides otherwise" in order
    assert "approvals.from = high" in order
    assert "10 calls/day: order" in order
    assert "small-orders : args.count > 10 → deny" in order
    added = card_of(page, "docs_add")
    assert "hidden" in added
    assert "not in the list classes.agent.tools" in added
    assert "low" in added
    assert "Risk by risk.docs_*" in added
    assert "in the list expose.prompts : greet" in card_of(page, "greet")


def test_a_rule_that_refuses_a_class_is_named(visit: Visit, tokens: CallerTokens) -> None:
    tokens.create("gus", "guest")
    browser = visit()
    assert "May use 0 of 4 tools" in text_of(browser.get("/callers").text)
    page = browser.get("/callers/classes/guest").text
    search = card_of(page, "search")
    assert "refused" in search
    assert "Rule no-guests : guests look only" in search
    assert "in the list expose.tools : search" in search


def test_a_table_for_one_caller_counts_on_the_page_of_its_token(
    visit: Visit, tokens: CallerTokens, policy: Path
) -> None:
    record, _ = tokens.create("ada", "agent")
    policy.write_text(policy.read_text() + '\n[callers.ada]\ntools = ["search"]\n')
    page = visit().get(f"/callers/tokens/{record.id}").text
    assert "May use 1 of 4 tools" in page
    assert "not in the list callers.ada.tools" in card_of(page, "order")


def test_a_process_without_tools_shows_the_lists_and_one_without_a_file_says_so(
    visit: Visit, tokens: CallerTokens, database: Database, policy: Path
) -> None:
    record, _ = tokens.create("ada", "agent")
    alone = Dashboard(Sources(lambda: database, policy=PolicyEditor(str(policy))), AccessRules(None))
    browser = visit(at=alone)
    for path in (f"/callers/tokens/{record.id}", "/callers/classes/agent"):
        page = text_of(browser.get(path).text)
        assert "does not know the server's tools" in page
        assert "expose.tools search , order , docs_*" in page
        assert "classes.agent.tools search , order" in page
    browser = visit(at=Dashboard(Sources(lambda: database), AccessRules(None)))
    for path in ("/callers", f"/callers/tokens/{record.id}", "/callers/classes/agent"):
        assert "does not know the guard's file" in html.unescape(browser.get(path).text)


def test_a_file_with_a_mistake_is_said_and_the_tokens_are_shown(
    visit: Visit, tokens: CallerTokens, policy: Path
) -> None:
    record, _ = tokens.create("ada", "agent")
    policy.write_text("[expose]\ntools = 3\n")
    browser = visit()
    for path in ("/callers", f"/callers/tokens/{record.id}"):
        page = browser.get(path).text
        assert record.id in page
        assert "guard.toml, line 2: expose.tools" in page


# --- attacks ----------------------------------------------------------------------------------------------


def test_no_name_becomes_an_element_or_an_attribute(
    visit: Visit, tokens: CallerTokens, shop: Server, policy: Path
) -> None:
    owner = HOSTILE.replace(":", "").replace("#", "")
    record, _ = tokens.create(owner, "agent", ["<script>alert(1)</script>"])
    shop.add_resource("docs://<script>/x", lambda: "x", name=HOSTILE)
    quoted = HOSTILE.replace('"', '\\"')
    policy.write_text(
        f'[expose]\ntools = ["{quoted}", "search"]\nresources = ["docs://<script>/x", "<img src=x>*"]\n'
        f'[classes."{quoted}"]\ntools = []\n'
        f'[[rules]]\nwhen = "true"\nthen = "deny"\nreason = "{quoted}"\n'
    )
    browser = visit(owner)
    pages = [
        browser.get("/callers").text,
        browser.get(f"/callers/tokens/{record.id}").text,
        browser.send("/callers", owner=HOSTILE, scopes=HOSTILE, expires=HOSTILE, once=HOSTILE).text,
        browser.send("/callers", owner=HOSTILE, scopes=HOSTILE, once=once_of(browser)).text,
        browser.send(f"/callers/tokens/{record.id}/rotate", overlap=HOSTILE).text,
    ]
    links = re.findall(r'href="/dashboard(/callers/classes/[^"]*)"', pages[0])
    assert len(links) == 4
    pages += [browser.get(html.unescape(link)).text for link in links]
    for page in pages:
        assert elements_that_no_page_has(page) == []
        assert "<h1>" in page
    assert "&lt;script&gt;" in pages[1]


def test_a_deceptive_owner_is_made_visible(visit: Visit, tokens: CallerTokens) -> None:
    record, _ = tokens.create("p\u0430ypal", "agent")
    browser = visit()
    for path in ("/callers", f"/callers/tokens/{record.id}"):
        page = browser.get(path).text
        assert "p\u0430ypal" not in page
        assert "<mark>\\u0430</mark>" in page
