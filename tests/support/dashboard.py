"""A dashboard in the test's own process: a plugin with `dashboard`, `store`, `ask` and `visit`;
and `browser`, a real Chromium."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fastrpc.dashboard.access import SignInStore
from fastrpc.dashboard.app import Dashboard
from fastrpc.dashboard.view import Sources
from fastrpc.guard.approvals.store import Approval, ApprovalStore
from fastrpc.storage.database import Database
from fastrpc.transports.http.guard import AccessRules
from support import chromium
from support.dashboard_browser import Browser, question


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
def browser() -> Iterator[Any]:
    chromium.need()
    playwright = pytest.importorskip("playwright.sync_api")
    program = os.environ.get("FASTRPC_BROWSER") or next(filter(None, map(shutil.which, chromium.NAMES)))
    with playwright.sync_playwright() as started:
        found = started.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield found
        found.close()
