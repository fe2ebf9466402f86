"""A dashboard with a policy's file, the tools of a server and an audit log, in the test's own process: a
plugin with `folder`, `policy`, `shop`, `audit`, `dashboard` and `visit`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fastrpc import Server
from fastrpc.dashboard.access import SignInStore
from fastrpc.dashboard.app import Dashboard
from fastrpc.dashboard.view import Sources
from fastrpc.guard.audit.log import AuditLog
from fastrpc.guard.editing import PolicyEditor
from fastrpc.storage.database import Database
from fastrpc.transports.http.guard import AccessRules
from support.dashboard_browser import Browser
from support.guarded_shop import POLICY, shop_server


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    found = tmp_path / "guard.toml"
    found.write_text(POLICY)
    return found


@pytest.fixture
def shop() -> Server:
    return shop_server()


@pytest.fixture
def audit(tmp_path: Path) -> Iterator[AuditLog]:
    found = AuditLog(str(tmp_path / "audit"))
    yield found
    found.close()


@pytest.fixture
def recorded(audit: AuditLog) -> Callable[[], list[dict[str, Any]]]:
    """Returns what visitors have done, by the audit log."""

    def recorded() -> list[dict[str, Any]]:
        assert audit.flush()
        lines = [line for path in sorted(Path(audit.folder).glob("*.jsonl")) for line in path.open()]
        return [each for each in map(json.loads, lines) if each.get("category") == "dashboard"]

    return recorded


@pytest.fixture
def dashboard(database: Database, policy: Path, shop: Server, audit: AuditLog) -> Dashboard:
    sources = Sources(lambda: database, "shop", audit=audit, policy=PolicyEditor(str(policy), shop))
    return Dashboard(sources, AccessRules(None))


@pytest.fixture
def visit(dashboard: Dashboard, database: Database) -> Callable[..., Browser]:
    """Returns the browser of a person who has signed in; `at` is another dashboard."""

    def visit(person: str = "ada", role: str = "administrator", at: Dashboard | None = None) -> Browser:
        browser = Browser(at or dashboard)
        assert browser.sign_in(SignInStore(database).make_link(person, role)).status_code == 303
        browser.get("/")
        return browser

    return visit
