"""The dashboard's pages, asked as a browser without scripts asks: what they show, decide and refuse."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from support import dashboard_browser
from support.dashboard_browser import BASE, HOSTILE, Browser, question
from support.pages_read import Elements

from fastrpc.dashboard import access
from fastrpc.dashboard.access import SignInStore
from fastrpc.dashboard.app import Dashboard
from fastrpc.dashboard.pages import approvals as approvals_page
from fastrpc.dashboard.view import Sources
from fastrpc.guard.approvals.store import (
    COMMAND_LINE,
    Approval,
    ApprovalDecision,
    ApprovalStore,
)
from fastrpc.storage.database import Database
from fastrpc.transports.http.guard import AccessRules

pytest_plugins = ["support.guard_database", "support.dashboard"]
Ask = Callable[..., Approval]
Visit = Callable[..., Browser]


# --- signing in -------------------------------------------------------------------------------------------


def test_without_a_session_each_page_leads_to_the_form_and_a_part_of_a_page_does_so_too(
    dashboard: Dashboard,
) -> None:
    browser = Browser(dashboard)
    paths = [route.path for page in dashboard.pages for route in page.routes if route.role is not None]
    assert len(paths) > 5
    for path in paths:
        answer = browser.get(path.replace("{id}", "ap_x"))
        if answer.status_code == 405:  # a form's
            answer = browser.send(path.replace("{id}", "ap_x"))
            assert (answer.status_code, "Your session has ended" in answer.text) == (401, True), path
            assert 'href="/dashboard/enter"' in answer.text, path
            continue
        assert (answer.status_code, answer.headers["location"]) == (303, "/dashboard/enter"), path
    part = browser.get("/", **{"hx-request": "true"})
    assert (part.status_code, part.headers["hx-redirect"]) == (401, "/dashboard/enter")
    assert browser.get("/events").status_code == 401


def test_a_link_signs_one_browser_in_and_no_other(dashboard: Dashboard, database: Database) -> None:
    code = SignInStore(database).make_link("ada", "viewer")
    first, second = Browser(dashboard), Browser(dashboard)
    assert first.sign_in(f"{BASE}/dashboard/enter#{code}").status_code == 303
    assert "ada" in first.get("/").text
    again = second.sign_in(code)
    assert again.status_code == 403
    assert "has been used" in again.text
    assert second.get("/").status_code == 303


def test_a_link_and_a_session_end_with_their_time(
    dashboard: Dashboard, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "LINK_SECONDS", -1.0)
    assert Browser(dashboard).sign_in(SignInStore(database).make_link("ada", "viewer")).status_code == 403
    monkeypatch.undo()
    monkeypatch.setattr(access, "SESSION_SECONDS", -1.0)
    browser = Browser(dashboard)
    assert browser.sign_in(SignInStore(database).make_link("ada", "viewer")).status_code == 303
    assert browser.get("/").status_code == 303


def test_whoever_signs_out_is_out_in_all_that_have_the_cookie(visit: Visit, dashboard: Dashboard) -> None:
    browser = visit()
    thief = Browser(dashboard)
    thief.cookies.update(browser.cookies)
    assert thief.get("/").status_code == 200
    browser.get("/")
    assert browser.send("/leave").headers["location"] == "/dashboard/enter"
    assert thief.get("/").status_code == 303


def test_the_database_has_neither_codes_nor_tokens(visit: Visit, database: Database) -> None:
    code = SignInStore(database).make_link("ada", "viewer")
    browser = visit()
    with open(database.path, "rb") as file, open(f"{database.path}-wal", "rb") as log:
        stored = file.read() + log.read()
    for secret in (code, *browser.cookies.values()):
        assert len(secret) > 30
        assert secret.encode() not in stored


def test_the_cookie_is_for_these_pages_alone_and_no_script_reads_it(
    dashboard: Dashboard, database: Database
) -> None:
    answer = Browser(dashboard).sign_in(SignInStore(database).make_link("ada", "viewer"))
    attributes = {part.strip().lower() for part in answer.headers["set-cookie"].split(";")[1:]}
    assert {"httponly", "samesite=strict", "path=/dashboard"} <= attributes


@pytest.mark.parametrize(
    ("base", "is_secure"),
    [("http://mcp.example.com", True), ("https://127.0.0.1:8700", True), (BASE, False)],
)
def test_away_from_this_machine_browsers_send_the_cookie_by_tls_alone(
    database: Database, monkeypatch: pytest.MonkeyPatch, base: str, is_secure: bool
) -> None:
    monkeypatch.setattr(dashboard_browser, "BASE", base)
    rules = AccessRules(None, hosts=["mcp.example.com"])
    browser = Browser(Dashboard(Sources(lambda: database, "shop"), rules))
    answer = browser.sign_in(SignInStore(database).make_link("ada", "viewer"))
    assert answer.status_code == 303
    attributes = {part.strip().lower() for part in answer.headers["set-cookie"].split(";")[1:]}
    assert ("secure" in attributes) == is_secure


# --- deciding ---------------------------------------------------------------------------------------------


def test_a_call_is_approved_once_or_for_an_hour_and_the_person_is_noted(
    visit: Visit, ask: Ask, store: ApprovalStore
) -> None:
    browser, once, often = visit("ada"), ask(), ask("sell")
    assert browser.send(f"/approvals/{once.id}/approve").status_code == 303
    assert browser.send(f"/approvals/{often.id}/approve", **{"for": "hour"}).status_code == 303
    first, second = store.get(once.id), store.get(often.id)
    assert (first.state, first.uses_left) == ("approved", 1)
    assert (first.decided_by, first.channel) == ("ada", "dashboard")
    assert second.uses_left > 1000
    assert second.valid_until is not None
    assert second.decided_at is not None
    assert second.valid_until - second.decided_at == pytest.approx(3600)


def test_a_rejection_has_a_reason_which_the_page_shows(visit: Visit, ask: Ask, store: ApprovalStore) -> None:
    browser, waiting = visit(), ask()
    browser.send(f"/approvals/{waiting.id}/reject", comment="not on Fridays")
    assert (store.get(waiting.id).state, store.get(waiting.id).comment) == ("rejected", "not on Fridays")
    assert "not on Fridays" in browser.get(f"/approvals/{waiting.id}").text


def test_what_somebody_else_decided_meanwhile_is_said_and_what_was_typed_is_kept(
    visit: Visit, ask: Ask, store: ApprovalStore
) -> None:
    browser, waiting = visit(), ask()
    browser.get(f"/approvals/{waiting.id}")
    store.decide(waiting.id, ApprovalDecision(True, "bob", COMMAND_LINE))
    answer = browser.send(f"/approvals/{waiting.id}/reject", comment="typed with care")
    assert answer.status_code == 409
    assert f"{waiting.id} is approved by bob" in answer.text
    assert store.get(waiting.id).decided_by == "bob"
    assert "typed with care" in answer.text
    answer = browser.send(f"/approvals/{waiting.id}/edit", arg_place='"typed too"', confirmed="yes")
    assert (answer.status_code, "typed too" in answer.text) == (409, True)


def test_a_form_that_is_sent_twice_decides_once(visit: Visit, ask: Ask, store: ApprovalStore) -> None:
    browser, waiting = visit(), ask()
    answers = [browser.send(f"/approvals/{waiting.id}/approve").status_code for _ in range(2)]
    assert answers == [303, 303]
    assert store.get(waiting.id).uses_left == 1


def test_changed_arguments_are_shown_before_they_are_approved(
    visit: Visit, ask: Ask, store: ApprovalStore
) -> None:
    browser = visit()
    waiting = ask("order", {"item": "cup", "count": 20}, may_edit=True)
    path = f"/approvals/{waiting.id}/edit"
    wrong = browser.send(path, arg_count="2,0", arg_item='"cup"')
    assert wrong.status_code == 400
    assert "expected JSON" in wrong.text
    assert ">2,0</textarea>" in wrong.text
    same = browser.send(path, arg_count="20", arg_item='"cup"')
    assert (same.status_code, "Nothing is changed" in same.text) == (400, True)
    shown = browser.send(path, arg_count="2", arg_item='"cup"')
    assert "Approve with these changes" in shown.text
    assert store.get(waiting.id).state == "waiting"
    browser.send(path, arg_count="2", arg_item='"cup"', confirmed="yes")
    decided = store.get(waiting.id)
    assert (decided.state, json.loads(decided.edited_arguments or "")) == ("approved", {"count": 2})


def test_a_critical_call_is_not_approved_by_the_person_who_makes_it(
    visit: Visit, ask: Ask, store: ApprovalStore
) -> None:
    browser = visit("ada")
    waiting = ask(caller="ada#1", owner="ada", risk="critical")
    page = browser.get("/").text
    assert "another person must approve it" in page
    assert f"{waiting.id}/approve" not in page
    assert browser.send(f"/approvals/{waiting.id}/approve").status_code == 403
    assert store.get(waiting.id).state == "waiting"


def test_a_viewer_sees_and_does_not_decide(visit: Visit, ask: Ask, store: ApprovalStore) -> None:
    viewer, waiting = visit("vera", "viewer"), ask()
    page = viewer.get("/").text
    assert waiting.id in page
    for action in ("approve", "reject", "edit"):
        assert f"/{action}" not in page
        answer = viewer.send(f"/approvals/{waiting.id}/{action}", comment="no")
        assert (answer.status_code, "may look" in answer.text) == (403, True)
    assert store.get(waiting.id).state == "waiting"


def test_an_unknown_approval_is_said_to_be_unknown(visit: Visit) -> None:
    browser = visit()
    for answer in (browser.get("/approvals/ap_nothing"), browser.send("/approvals/ap_nothing/approve")):
        assert answer.status_code == 404
        assert "ap_nothing" in answer.text


# --- what is shown ----------------------------------------------------------------------------------------


def test_a_call_that_is_too_long_for_the_list_is_approved_only_where_all_of_it_is_shown(
    visit: Visit, ask: Ask
) -> None:
    end = "the very end"
    waiting = ask("send", {"text": "x" * approvals_page.LONGEST_IN_LIST + end})
    browser = visit()
    page = browser.get("/").text
    assert end not in page
    assert f"{waiting.id}/approve" not in page
    whole = browser.get(f"/approvals/{waiting.id}").text
    assert end in whole
    assert f"{waiting.id}/approve" in whole


@pytest.mark.parametrize(
    ("hidden", "shown"),
    [
        ("rm \u202e-rf", "<mark>\\u202e</mark>"),
        ("a\u200bb", "<mark>\\u200b</mark>"),
        ("p\u0430ypal", "<mark>\\u0430</mark>"),
        ("line\u2028break", "<mark>\\u2028</mark>"),
    ],
)
def test_characters_that_deceive_are_escaped_and_marked(
    visit: Visit, ask: Ask, hidden: str, shown: str
) -> None:
    waiting = ask("run", {"command": hidden})
    browser = visit()
    for path in ("/", f"/approvals/{waiting.id}"):
        page = browser.get(path).text
        assert hidden not in page
        assert shown in page


def test_a_backslash_that_was_sent_is_not_taken_for_an_escape(visit: Visit, ask: Ask) -> None:
    ask("run", {"command": "\\u202e"})
    assert "<mark>" not in visit().get("/").text


def test_ten_thousand_that_wait_are_shown_in_pages_each_once_the_newest_first(
    visit: Visit, store: ApprovalStore, database: Database
) -> None:
    from sqlalchemy import insert

    from fastrpc.guard.approvals.store import new_approval
    from fastrpc.storage.schema import approvals

    now = store.clock()
    rows = [
        vars(new_approval(question(arguments={"n": n}, timeout_seconds=1e6), now - n // 3))
        for n in range(10_000)
    ]
    with database.changing() as connection:
        connection.execute(insert(approvals), rows)
    browser = visit()
    page = browser.get("/")
    assert "Waiting: 10000" in page.text
    assert len(page.text) < 150_000
    seen: list[str] = []
    for _ in range(4):
        seen += re.findall(r'<article class="card" id="(ap_\w+)"', page.text)
        older = re.search(r'href="\?after=(ap_\w+)"', page.text)
        assert older is not None
        page = browser.get(f"/?after={older[1]}")
    times = {row["id"]: row["asked_at"] for row in rows}
    assert len(set(seen)) == len(seen) == 4 * approvals_page.ON_A_PAGE
    assert [times[each] for each in seen] == sorted(times.values(), reverse=True)[: len(seen)]


# --- attacks ----------------------------------------------------------------------------------------------


def test_no_text_of_a_caller_becomes_an_element_or_an_attribute(
    visit: Visit, ask: Ask, store: ApprovalStore
) -> None:
    plain = ask("tool", {"place": "x"}, may_edit=True)
    hostile = ask(
        HOSTILE,
        {HOSTILE: HOSTILE, "list": [HOSTILE]},
        caller=HOSTILE,
        owner=HOSTILE,
        caller_class=HOSTILE,
        server=HOSTILE,
        rule=HOSTILE,
        reason=HOSTILE,
        extra_params=json.dumps({"_meta": HOSTILE}),
        may_edit=True,
    )
    browser = visit(HOSTILE)
    store.decide(ask("x", {}).id, ApprovalDecision(False, HOSTILE, HOSTILE[:20], comment=HOSTILE))
    pages = {
        path: browser.get(path).text
        for path in (
            "/",
            "/decided",
            f"/approvals/{hostile.id}",
            f"/approvals/{plain.id}",
            f"/?after={hostile.id}",
        )
    }
    pages["edit"] = browser.send(
        f"/approvals/{hostile.id}/edit",
        **{f"arg:{HOSTILE}": HOSTILE, "arg:list": '["' + HOSTILE.replace('"', "'") + '"]'},
    ).text
    typed = json.dumps([HOSTILE, HOSTILE])
    pages["confirm"] = browser.send(f"/approvals/{hostile.id}/edit", **{"arg:list": typed}).text
    assert "Approve with these changes" in pages["confirm"]
    for path, page in pages.items():
        elements = Elements(page).found
        scripts = [attributes for tag, attributes in elements if tag == "script"]
        assert all((each.get("src") or "").startswith("/dashboard/static/") for each in scripts), path
        assert not [tag for tag, _ in elements if tag in ("img", "iframe", "object", "style", "base")], path
        names = {name for _, attributes in elements for name in attributes}
        assert not [name for name in names if name.startswith("on")], (path, names)
    assert "&lt;script&gt;" in pages["/"]
    assert "{{7*7}}" in pages["/"]


@pytest.mark.parametrize(
    "changed",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": None},
        {"origin": f"{BASE}.evil.example"},
        {"token": ""},
        {"token": "0" * 64},
    ],
)
def test_a_form_that_these_pages_have_not_made_decides_nothing(
    visit: Visit, ask: Ask, store: ApprovalStore, changed: dict[str, Any]
) -> None:
    browser, waiting = visit(), ask()
    assert browser.send(f"/approvals/{waiting.id}/approve", **changed).status_code == 403
    assert store.get(waiting.id).state == "waiting"


def test_the_token_of_another_session_is_refused(visit: Visit, ask: Ask, store: ApprovalStore) -> None:
    browser, other, waiting = visit("ada"), visit("bob"), ask()
    found = re.search(r'name="form_token" value="(\w+)"', other.last)
    assert found is not None
    answer = browser.send(f"/approvals/{waiting.id}/approve", token=found[1])
    assert (answer.status_code, "another session" in answer.text) == (403, True)


def test_a_get_decides_nothing(visit: Visit, ask: Ask, store: ApprovalStore) -> None:
    browser, waiting = visit(), ask()
    assert browser.get(f"/approvals/{waiting.id}/approve").status_code == 405
    assert store.get(waiting.id).state == "waiting"


def test_a_session_that_was_there_before_signing_in_is_not_the_one_after(
    dashboard: Dashboard, database: Database
) -> None:
    browser = Browser(dashboard)
    browser.cookies.set("fastrpc_dashboard", "chosen-by-an-attacker", path="/dashboard")
    browser.sign_in(SignInStore(database).make_link("ada", "viewer"))
    attacker = Browser(dashboard)
    attacker.cookies.set("fastrpc_dashboard", "chosen-by-an-attacker", path="/dashboard")
    assert attacker.get("/").status_code == 303


def test_every_response_forbids_frames_scripts_from_elsewhere_and_guessing_types(
    visit: Visit, dashboard: Dashboard
) -> None:
    signed_in, stranger = visit(), Browser(dashboard)
    answers = [
        signed_in.get("/"),
        signed_in.get("/nowhere"),
        signed_in.get("/static/dashboard.js"),
        signed_in.send("/approvals/ap_x/approve"),
        stranger.get("/"),
        stranger.get("/enter"),
        stranger.get("/events"),
        stranger.get("/", host="evil.example"),
    ]
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "cache-control" in answer.headers


def test_a_host_that_is_not_this_servers_is_refused(visit: Visit) -> None:
    browser = visit()
    assert browser.get("/", host="evil.example").status_code == 421


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static/..%2fapp.py",
        "/static//etc/passwd",
        "/static/%00",
    ],
)
def test_the_static_files_are_those_of_their_folder(visit: Visit, path: str) -> None:
    answer = visit().get(path)
    assert answer.status_code in (303, 400, 404)
    assert "fastrpc" not in answer.text


@pytest.mark.parametrize(
    "back",
    ["https://evil.example/", "//evil.example", "/dashboard/\\evil", "/dashboard/\r\nx: y", "javascript:1"],
)
def test_the_choice_of_a_language_leads_back_to_these_pages_alone(visit: Visit, back: str) -> None:
    answer = visit().send("/choose", back=back, language="ar")
    assert (answer.status_code, answer.headers["location"]) == (303, "/dashboard/")


def test_a_form_that_is_too_long_is_refused(visit: Visit, ask: Ask) -> None:
    browser, waiting = visit(), ask()
    assert browser.send(f"/approvals/{waiting.id}/reject", comment="x" * 2_000_000).status_code == 413


# --- languages --------------------------------------------------------------------------------------------


def test_a_language_is_chosen_by_a_click_or_taken_from_the_browser(
    visit: Visit, dashboard: Dashboard
) -> None:
    browser = visit()
    assert '<html lang="en" dir="ltr"' in browser.get("/").text
    assert browser.send("/choose", back="/dashboard/decided", language="ar").headers["location"] == (
        "/dashboard/decided"
    )
    assert '<html lang="ar" dir="rtl"' in browser.get("/").text
    stranger = Browser(dashboard)
    assert 'lang="ar"' in stranger.get("/enter", **{"accept-language": "fr;q=1, ar-EG;q=0.9"}).text
