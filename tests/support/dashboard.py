"""A dashboard in the test's own process: a plugin with `dashboard`, `store`, `ask` and `visit`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fastrpc.dashboard.access import SignInStore
from fastrpc.dashboard.app import Dashboard
from fastrpc.dashboard.view import Sources
from fastrpc.guard.approvals.store import Approval, ApprovalStore
from fastrpc.storage.database import Database
from fastrpc.transports.http.guard import AccessRules
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
