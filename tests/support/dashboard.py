"""A dashboard in the test's own process: a plugin with `dashboard`, `store`, `ask`, `visit` and `log`;
and `browser`, a real Chromium, with `telephone`, a page of it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import pytest

from fastrpc.dashboard.access import SignInStore
from fastrpc.dashboard.app import Dashboard
from fastrpc.dashboard.view import Sources
from fastrpc.guard.approvals.store import Approval, ApprovalStore
from fastrpc.guard.audit.log import AuditLog, AuditUnavailable
from fastrpc.storage.database import Database
from fastrpc.transports.http.guard import AccessRules
from support import chromium
from support.dashboard_browser import Browser, question
from support.dashboard_chromium import WIDTH


class RecordedActions:
    """In the place of an audit log in mode ``strict``: keeps who did what to what, with the outcome. It
    takes no more if it `is_full`."""

    mode = "strict"

    def __init__(self) -> None:
        self.said: list[tuple[str, str, str, str]] = []
        self.is_full = False

    def append_durably(self, fields: dict[str, Any]) -> Future[None]:
        if self.is_full:
            raise AuditUnavailable("the disk is full")
        self.said.append((fields["actor"], fields["action"], fields["target"], fields["outcome"]))
        done: Future[None] = Future()
        done.set_result(None)
        return done


@pytest.fixture
def dashboard(database: Database) -> Dashboard:
    return Dashboard(Sources(lambda: database, "shop"), AccessRules(None))


@pytest.fixture
def store(database: Database) -> ApprovalStore:
    return ApprovalStore(database)


@pytest.fixture
def ask(store: ApprovalStore) -> Callable[..., Approval]:
    """Returns a new approval that waits, for a question of these facts."""
    return lambda *facts, **changed: store.ask(question(*facts, **changed)).approval


@pytest.fixture
def visit(dashboard: Dashboard, database: Database) -> Callable[..., Browser]:
    """Returns the browser of a person who has signed in."""

    def visit(person: str = "ada", role: str = "administrator") -> Browser:
        browser = Browser(dashboard)
        assert browser.sign_in(SignInStore(database).make_link(person, role)).status_code == 303
        browser.get("/")
        return browser

    return visit


@pytest.fixture
def log(folder: str) -> Iterator[AuditLog]:
    """An audit log in `folder`, a fixture of the test's file."""
    found = AuditLog(folder)
    yield found
    found.close()


@pytest.fixture
def browser() -> Iterator[Any]:
    chromium.need()
    playwright = pytest.importorskip("playwright.sync_api")
    program = os.environ.get("FASTRPC_BROWSER") or next(filter(None, map(shutil.which, chromium.NAMES)))
    with playwright.sync_playwright() as started:
        found = started.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def telephone(browser: Any) -> Any:
    """A page as wide as a telephone, in which axe may be run."""
    return browser.new_context(bypass_csp=True, viewport={"width": WIDTH, "height": 740}).new_page()
