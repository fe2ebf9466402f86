"""Nothing that a person has typed into a page of the dashboard is lost: not by a choice of the language or of
the theme, not by a session that has ended meanwhile, not by an error. No script is needed for that."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from support import whole_dashboard
from support.dashboard_browser import Browser
from support.pages_read import Elements
from support.whole_dashboard import path_of, places, routes

from fastrpc.dashboard.app import Dashboard
from fastrpc.dashboard.view import COOKIE, PageRoute
from fastrpc.guard.approvals.store import Approval, ApprovalStore
from fastrpc.guard.audit.log import AuditLog
from fastrpc.guard.callers.tokens import CallerTokens
from fastrpc.storage.database import Database
from fastrpc.storage.errors import StorageError

pytest_plugins = ["support.guard_database", "support.dashboard"]
dashboard, log = whole_dashboard.dashboard, whole_dashboard.log
Ask = Callable[..., Approval]
Visit = Callable[..., Browser]
TYPED = 'typed with "care" <b>'
POLICY_TEXT = '[expose]\ntools = ["search"]\n# ' + TYPED + "\n"
FORMS = {
    "/enter": {"code": TYPED},
    "/approvals/{id}/reject": {"comment": TYPED},
    "/approvals/{id}/edit": {"arg:place": TYPED, "comment": "a reason"},
    "/callers": {"owner": TYPED, "expires": "soon", "once": "o" * 20},
    "/callers/tokens/{id}/rotate": {"overlap": TYPED},
    "/policy/edit": {"text": POLICY_TEXT, "version": "v"},
    "/policy/check": {"text": POLICY_TEXT, "version": "v"},
    "/policy/preview": {"text": POLICY_TEXT, "version": "v"},
    "/policy/save": {"text": POLICY_TEXT, "version": "v"},
    "/tool": {"tool": "search", "call": "d" * 20, "arg:text": TYPED},
}
"""By route, what a form of it has."""
SEARCHES = {
    "/audit": {"tool": TYPED, "since": "yesterday"},
    "/tools": {"server": "", "find": TYPED},
    "/figures": {"span": "week", "tool": TYPED, "caller": "ada#1"},
    "/knowledge": {"q": TYPED},
    "/knowledge/documents": {"q": TYPED},
}
CHOICE = re.compile(r'<button class="plain" name="(language|theme)" value="(\w+)"([^>]*)>')


@pytest.fixture
def pages(visit: Visit, ask: Ask, log: AuditLog, database: Database) -> dict[str, str]:
    """By route, the path of its form."""
    found = places(visit, lambda: ask(may_edit=True), log, database)
    of_approval, of_token = found["/approvals/{id}"], found["/callers/tokens/{id}"]
    return {
        **found,
        "/approvals/{id}/reject": f"{of_approval}/reject",
        "/approvals/{id}/edit": f"{of_approval}/edit",
        "/callers/tokens/{id}/rotate": f"{of_token}/rotate",
        "/tool": "/tool",
    }


@pytest.fixture
def unchanged(tmp_path: Path, store: ApprovalStore, database: Database, pages: dict[str, str]) -> Any:
    """Returns what a form could change: all of it as it is now."""

    def now() -> tuple[Any, ...]:
        states = [each.state for each in store.page(("waiting", "approved", "rejected"), 100, None).approvals]
        return states, CallerTokens(database).list(), (tmp_path / "guard.toml").read_text()

    return now


def forms(dashboard: Dashboard) -> list[PageRoute]:
    return [route for route in routes(dashboard) if route.again is not None]


def texts_of(page: str) -> list[str]:
    """Return the values of the fields of a page, as a browser has them."""
    values = [each.get("value") or "" for tag, each in Elements(page).found if tag == "input"]
    areas = [
        text.removeprefix("\n") for text in re.findall(r"<textarea[^>]*>(.*?)</textarea>", page, re.DOTALL)
    ]
    return [*values, *map(unescape, areas)]


def test_every_form_in_which_one_types_can_be_shown_again(dashboard: Dashboard) -> None:
    assert {route.path for route in forms(dashboard)} == set(FORMS)


@pytest.mark.parametrize("choice", [{"language": "ar"}, {"theme": "dark"}, {"again": "yes"}])
def test_a_choice_shows_the_form_with_what_was_typed_and_does_nothing(
    visit: Visit, dashboard: Dashboard, pages: dict[str, str], unchanged: Any, choice: dict[str, str]
) -> None:
    before = unchanged()
    for route in forms(dashboard):
        browser, path = visit(), pages.get(route.path, path_of(route))
        answer = browser.send(path, **FORMS[route.path], **choice)
        typed = [text for text in FORMS[route.path].values() if TYPED in text or text == "a reason"]
        if route.path != "/policy/preview":  # the text has another version, so the page says that
            assert answer.status_code == 200, (path, answer.text)
        assert [text for text in typed if text not in texts_of(answer.text)] == [], path
        assert ('lang="ar" dir="rtl"' in answer.text) == ("language" in choice), path
        assert ('data-theme="dark"' in answer.text) == ("theme" in choice), path
        if choice != {"again": "yes"}:
            assert f'lang="{choice.get("language", "en")}"' in browser.get("/enter").text  # it is kept
        assert 'form="typed"' in answer.text, path
        assert unchanged() == before, path


def test_the_buttons_of_every_such_page_send_its_form_to_a_route_that_shows_it(
    visit: Visit, dashboard: Dashboard, pages: dict[str, str]
) -> None:
    """And no button of the header is what the Enter key presses: one of the form's own action is first."""
    got = ["/enter", pages["/approvals/{id}"], "/callers", pages["/callers/tokens/{id}"], "/policy/edit"]
    got += ["/tool?name=search", *SEARCHES]
    browser = visit()
    shows = {pages.get(route.path, path_of(route)) for route in forms(dashboard)}
    for path in got:
        page = browser.get(path).text
        assert page.count('id="typed"') == 1, path
        first = re.search(r'<button[^>]*form="typed"[^>]*>', page)
        assert first is not None, path
        assert first[0] == '<button form="typed" hidden>', path
        found = CHOICE.findall(page)
        assert [name for name, _, _ in found] == ["language", "theme"], path
        for _, _, attributes in found:
            leads = re.search(r'formaction="/dashboard([^"]*)"', attributes)
            assert leads is not None, path
            assert leads[1] in shows or leads[1].startswith(f"/choose?back=/dashboard{path}"), path
            assert 'formmethod="post"' in attributes, path
            assert "formnovalidate" in attributes, path


@pytest.mark.parametrize("path", SEARCHES)
def test_a_choice_on_a_page_that_searches_keeps_what_was_typed(
    visit: Visit, pages: dict[str, str], path: str
) -> None:
    browser, fields = visit(), SEARCHES[path]
    answer = browser.send(f"/choose?back=/dashboard{path}", token="", language="ar", **fields)
    assert answer.status_code == 303
    page = browser.get(answer.headers["location"].removeprefix("/dashboard")).text
    assert 'lang="ar"' in page
    values = texts_of(page) + [
        each.get("value") or "" for tag, each in Elements(page).found if tag == "option"
    ]
    assert [text for text in fields.values() if text not in values] == []


def test_a_form_of_another_site_is_not_shown_again(
    visit: Visit, dashboard: Dashboard, pages: dict[str, str]
) -> None:
    for route in forms(dashboard):
        path = pages.get(route.path, path_of(route))
        answer = visit().send(path, origin="https://evil.example", again="yes", **FORMS[route.path])
        assert answer.status_code == 403, path
        assert not [text for text in texts_of(answer.text) if TYPED in text], path


def test_a_form_whose_session_has_ended_comes_back_with_what_was_typed_after_signing_in(
    visit: Visit, dashboard: Dashboard, pages: dict[str, str], unchanged: Any
) -> None:
    before = unchanged()
    for route in forms(dashboard):
        if route.role is None:
            continue
        browser, path = visit(), pages.get(route.path, path_of(route))
        fields = FORMS[route.path]
        del browser.cookies[COOKIE]
        answer = browser.send(path, **fields)
        assert (answer.status_code, "Your session has ended" in answer.text) == (401, True), path
        assert f'<form method="post" action="/dashboard{path}"' in answer.text, path
        kept = {
            str(each["name"]): each["value"] or ""
            for tag, each in Elements(answer.text).found
            if tag == "input" and each.get("type") == "hidden" and each["name"] not in ("form_token", "back")
        }
        assert kept == fields, path
        browser.cookies = visit().cookies  # signed in, in another window
        shown = browser.send(path, again="yes", **kept)
        assert [
            text for text in fields.values() if TYPED in text and text not in texts_of(shown.text)
        ] == [], path
        assert unchanged() == before, path


def test_a_form_of_the_session_before_comes_back_too_and_one_with_an_error_of_the_database(
    visit: Visit, pages: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    browser, path = visit(), pages["/approvals/{id}/reject"]
    answer = browser.send(path, token="0" * 64, comment=TYPED)
    assert (answer.status_code, "another session" in answer.text) == (403, True)
    assert TYPED in texts_of(answer.text)

    def locked(*given: Any) -> None:
        raise StorageError("the database is locked")

    monkeypatch.setattr(ApprovalStore, "decide", locked)
    answer = visit().send(path, comment=TYPED)
    assert (answer.status_code, "the database is locked" in answer.text) == (503, True)
    assert TYPED in texts_of(answer.text)


def test_a_policy_that_is_checked_as_one_types_is_not_thrown_away_when_the_session_ends(visit: Visit) -> None:
    browser = visit()
    del browser.cookies[COOKIE]
    answer = browser.send("/policy/check", headers={"hx-request": "true"}, text=POLICY_TEXT, version="v")
    assert "hx-redirect" not in answer.headers  # the page stays open, with its text
    assert answer.status_code == 401
    assert answer.text.startswith('<p class="error"')
    config = re.search(r'"responseHandling": (\[\{.*?\}\])', browser.get("/enter").text)
    assert config is not None
    assert '{"code": "[23]..|401|403", "swap": true}' in config[1]  # and htmx shows the sentence


def test_a_token_that_is_shown_once_has_no_button_that_leads_away(visit: Visit) -> None:
    browser = visit()
    browser.get("/callers")
    once = re.search(r'name="once" value="([^"]+)"', browser.last)
    assert once is not None
    page = browser.send("/callers", owner="eve", once=once[1]).text
    assert "Copy it now" in page
    assert not CHOICE.search(page)


def test_a_code_that_does_not_sign_in_stays_in_its_field(dashboard: Dashboard) -> None:
    answer = Browser(dashboard).sign_in(TYPED)
    assert (answer.status_code, TYPED in texts_of(answer.text)) == (403, True)


@pytest.mark.parametrize(("action", "name"), [("reject", "comment"), ("edit", "arg:place")])
def test_a_call_whose_time_is_over_under_the_eyes_is_said_to_be_over_with_what_was_typed(
    visit: Visit, ask: Ask, store: ApprovalStore, monkeypatch: pytest.MonkeyPatch, action: str, name: str
) -> None:
    waiting, browser = ask(may_edit=True), visit()
    assert f"/approvals/{waiting.id}/{action}" in browser.get(f"/approvals/{waiting.id}").text
    real = ApprovalStore.__init__

    def later(self: ApprovalStore, *given: Any) -> None:
        real(self, *given)
        self.clock = lambda: waiting.expires_at + 1

    monkeypatch.setattr(ApprovalStore, "__init__", later)
    typed = '"typed with care"'
    answer = browser.send(f"/approvals/{waiting.id}/{action}", confirmed="yes", **{name: typed})
    assert answer.status_code == 409, answer.text
    assert 'role="alert"' in answer.text
    assert typed in unescape(answer.text)
    assert "What you had typed" in answer.text
    assert store.get(waiting.id).decided_by is None
