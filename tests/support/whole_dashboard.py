"""A dashboard that has everything that pages show, in the test's own process, for tests that go through every
route: the fixture `dashboard` makes it, with `log`; `places` fills it, `routes` lists what it answers.

A test's file takes the fixtures by name, `dashboard = whole_dashboard.dashboard`, in the place of those of
the plugin `support.dashboard`, which have less."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastrpc.tools.knowledge._personal import Personal
from fastrpc.tools.knowledge._store import current, current_documents

from fastrpc.dashboard.app import Dashboard
from fastrpc.dashboard.openid import CALLBACK
from fastrpc.dashboard.pages import audit as audit_page
from fastrpc.dashboard.pages import figures as figures_page
from fastrpc.dashboard.serving import ServingProcess
from fastrpc.dashboard.task_database import TaskDatabase
from fastrpc.dashboard.view import AuditSource, PageRoute, Sources
from fastrpc.guard.approvals.store import Approval
from fastrpc.guard.audit.log import AuditLog
from fastrpc.guard.callers.tokens import CallerTokens
from fastrpc.guard.editing import PolicyEditor
from fastrpc.storage.database import Database
from fastrpc.transports.http.guard import AccessRules
from support.dashboard_browser import Browser
from support.guarded_shop import POLICY, shop_server
from support.knowledge_entries import ADA, write

Ask = Callable[..., Approval]
Visit = Callable[..., Browser]
PARAMETER = re.compile(r"\{\w+(?::\w+)?\}")
ELSEWHERE = {"/enter/elsewhere", CALLBACK}
"""What leads on: to an authorization server, and back to the form without one."""
CALL = {"category": "mcp_server", "actor": "ada#1", "action": "tools/call", "tool": "search", "outcome": "ok"}
RUN = {
    "id": "seen:1", "workflow": "seen", "state": "completed", "started_at": 1.0, "ended_at": 2.0, "input": {},
    "output": None, "error": "", "definition": {}, "step_count": 0, "steps": [],
}  # fmt: skip


class Knowledge(Personal):
    """What the toolset has of a person, with a run: only a server that executes workflows makes one."""

    def run(self, id: str) -> dict[str, Any]:
        return {**RUN, "id": id}

    def runs(self, offset: int) -> list[dict[str, Any]]:
        return [RUN]


@pytest.fixture
def log(tmp_path: Path) -> Iterator[AuditLog]:
    found = AuditLog(str(tmp_path / "audit"))
    yield found
    found.close()


@pytest.fixture
def dashboard(
    database: Database, log: AuditLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Dashboard:
    """Its files are in the test's folder, the policy is ``guard.toml``."""
    monkeypatch.setenv("FASTRPC_STATE_DIR", str(tmp_path / "state"))
    for name in ("knowledge", "tasks"):
        monkeypatch.setenv(f"FASTRPC_{name.upper()}_DATABASE", f"sqlite:///{tmp_path}/{name}.sqlite3")
    monkeypatch.setattr(audit_page, "CHECK_SECONDS", 0.0)
    monkeypatch.setattr(figures_page, "WAIT_SECONDS", 0.0)
    shop, policy = shop_server(), tmp_path / "guard.toml"
    policy.write_text(POLICY)
    sources = Sources(
        lambda: database,
        "shop",
        serving=ServingProcess(shop),
        tasks=TaskDatabase(),
        audit=log,
        log=AuditSource(log.folder),
        policy=PolicyEditor(str(policy), shop),
        knowledge=Knowledge,
    )
    return Dashboard(sources, AccessRules(None))


def places(visit: Visit, ask: Ask, log: AuditLog, database: Database) -> dict[str, str]:
    """Return by the path of a route with parameters one at which a page is that shows something."""
    log.append(CALL)
    assert log.flush()
    recorded = re.search(
        rb'"id":"(audit_\w+)"', b"".join(map(Path.read_bytes, Path(log.folder).glob("*.jsonl")))
    )
    assert recorded is not None
    token, _ = CallerTokens(database).create("ada", caller_class="agent")
    entry = write(current(), "The deadline is in May.")
    document, _ = current_documents().begin(ADA, "notes.txt", b"notes", ())
    browser = visit()
    browser.get("/tool?name=search")
    made = browser.send("/tool", tool="search", call="c" * 20, **{"arg:text": '"tea"'})
    assert made.headers["location"] == f"/dashboard/own-calls/{'c' * 20}", made.text
    return {
        "/approvals/{id}": f"/approvals/{ask().id}",
        "/tool": "/tool?name=search",
        "/own-calls/{id}": f"/own-calls/{'c' * 20}",
        "/callers/classes/{name:path}": "/callers/classes/agent",
        "/callers/tokens/{id}": f"/callers/tokens/{token.id}",
        "/audit/{id}": f"/audit/{recorded[1].decode()}",
        "/figures/{id}.svg": f"/figures/{next(iter(figures_page.CHARTS))}.svg",
        "/knowledge/entries/{id}": f"/knowledge/entries/{entry.id}",
        "/knowledge/documents/{id}": f"/knowledge/documents/{document.id}",
    }


def routes(dashboard: Dashboard) -> list[PageRoute]:
    found = [route for page in dashboard.pages for route in page.routes]
    assert len(found) > 15
    return found


def path_of(route: PageRoute, parameter: str = "ap_nothing") -> str:
    return PARAMETER.sub(lambda found: parameter, route.path)
