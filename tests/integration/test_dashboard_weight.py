"""What a page of the dashboard weighs, with all that it loads, and how long the first one takes compared with
an empty page of Starlette."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from fastrpc.tools.knowledge._store import current
from sqlalchemy import insert
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Route
from support import whole_dashboard
from support.dashboard_browser import Browser, question
from support.guarded_shop import POLICY
from support.knowledge_entries import write
from support.pages_read import Elements
from support.waiting import eventually
from support.whole_dashboard import CALL, ELSEWHERE, path_of, places, routes

from fastrpc.dashboard import counting
from fastrpc.dashboard.access import SignInStore
from fastrpc.dashboard.app import Dashboard
from fastrpc.dashboard.log_jobs import LogJob
from fastrpc.dashboard.pages.approvals import ON_A_PAGE
from fastrpc.dashboard.view import COOKIE
from fastrpc.guard.approvals.store import Approval, ApprovalStore, new_approval
from fastrpc.guard.audit.log import AuditLog
from fastrpc.guard.callers.tokens import CallerTokens
from fastrpc.storage.database import Database
from fastrpc.storage.schema import approvals

pytest_plugins = ["support.guard_database", "support.dashboard"]
dashboard, log = whole_dashboard.dashboard, whole_dashboard.log
Ask = Callable[..., Approval]
Visit = Callable[..., Browser]
HEAVIEST = 150_000
"""Bytes of a page with its style, scripts and images."""
MOST_TIMES = 5.0
"""How many times as long as an empty page the first page may take."""
WAITING = 10_000
ROUNDS = 200
TEXT = "Deploy the release to the second region, wait for its health checks, then move the traffic there. "


def ask_often(database: Database, store: ApprovalStore, count: int = WAITING) -> None:
    """Have so many calls wait, each with a command and a long argument."""
    now = store.clock()
    given = {
        "command": "git -C /srv/release pull --ff-only && make deploy > deploy.log 2>&1",
        "why": TEXT * 5,
    }
    rows = [
        vars(new_approval(question(arguments={**given, "n": n}, timeout_seconds=1e6), now - n))
        for n in range(count)
    ]
    with database.changing() as connection:
        connection.execute(insert(approvals), rows)


@pytest.fixture
def filled(
    visit: Visit, ask: Ask, store: ApprovalStore, log: AuditLog, database: Database, tmp_path: Path
) -> dict[str, str]:
    """A dashboard with as much as a busy server has; returns the places of `places`."""
    found = places(visit, lambda: ask(arguments={"why": TEXT * 30}, may_edit=True), log, database)
    ask_often(database, store)
    tokens = CallerTokens(database)
    for number in range(120):
        tokens.create(f"person-{number}@example.com", caller_class="agent", scopes=("read", "write"))
        write(current(), f"{TEXT} {number}", tags=("release", "deploy"), source="https://example.com/runbook")
        log.append(
            {**CALL, "tool": f"tool_{number}", "actor": f"caller-{number}#1", "total_us": 1000 + number}
        )
    (tmp_path / "guard.toml").write_text(
        POLICY + "".join(f'[classes.class{number}]\ntools = ["search", "order"]\n' for number in range(40))
    )
    assert log.flush()
    job = LogJob("count", log.folder)
    Path(job.place).mkdir(parents=True, exist_ok=True)
    counting.work(job, {})
    return found


def loaded_by(page: str) -> set[str]:
    """Return what a page loads: paths below the dashboard. A browser loads an image for one theme only."""
    attributes = {"link": "href", "script": "src", "img": "src"}
    found = {str(each.get(attributes[tag])) for tag, each in Elements(page).found if tag in attributes}
    assert all(path.startswith("/dashboard/") for path in found)
    return {path.removeprefix("/dashboard") for path in found}


def test_every_page_of_a_busy_server_weighs_little_with_all_that_it_loads(
    visit: Visit, dashboard: Dashboard, filled: dict[str, str]
) -> None:
    browser, sizes = visit(), {}
    got = [route for route in routes(dashboard) if route.method == "GET" and route.path not in ELSEWHERE]
    for route in got:
        path = filled.get(route.path, path_of(route))
        answer = browser.get(path)
        assert answer.status_code == 200, (path, answer.text)
        if answer.headers["content-type"].startswith("text/html"):
            parts = {each: browser.get(each) for each in sorted(loaded_by(answer.text))}
            assert len(parts) >= 5, path
            assert {each.status_code for each in parts.values()} == {200}, path
            sizes[path] = sum(len(each.content) for each in (answer, *parts.values()))
    assert len(sizes) >= 18
    assert {path: size for path, size in sizes.items() if size > HEAVIEST} == {}, json.dumps(sizes, indent=1)


# --- times ------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def served(dashboard: Dashboard) -> Iterator[int]:
    """Serve a dashboard, and at every other path an empty page of Starlette, by one server in a thread; the
    value is its port."""
    empty = Starlette(routes=[Route("/empty", lambda request: HTMLResponse(""))])

    async def both(scope: Any, receive: Any, send: Any) -> None:
        await (dashboard if scope["path"].startswith("/dashboard") else empty)(scope, receive, send)

    server = uvicorn.Server(uvicorn.Config(both, port=0, lifespan="off", log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        eventually(lambda: server.started)
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(60)


def least_times(port: int, token: str | None, paths: list[str]) -> list[float]:
    """Return the least time that each page takes, of many rounds in which they are asked in turn over one
    connection: what others do on the machine can only add to it."""
    found = [float("inf")] * len(paths)
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
        for _ in range(ROUNDS):
            for at, path in enumerate(paths):
                begun = time.perf_counter()
                answer = client.get(path, headers={"cookie": f"{COOKIE}={token}"})
                found[at] = min(found[at], time.perf_counter() - begun)
                assert answer.status_code == 200
    return found


@pytest.mark.alone
@pytest.mark.timeout(300)
def test_the_first_page_takes_at_most_five_times_as_long_as_an_empty_one_of_starlette(
    dashboard: Dashboard, database: Database
) -> None:
    """The form to sign in, and the page after it, on which no call waits."""
    keys = SignInStore(database)
    token = keys.sign_in(keys.make_link("ada", "approver"))
    with served(dashboard) as port:
        empty, form, first = least_times(port, token, ["/empty", "/dashboard/enter", "/dashboard/"])
    assert form <= MOST_TIMES * empty, (form, empty)
    assert first <= MOST_TIMES * empty, (first, empty)


@pytest.mark.alone
@pytest.mark.timeout(300)
def test_ten_thousand_calls_that_wait_cost_the_page_no_more_than_those_it_shows(
    dashboard: Dashboard, database: Database, store: ApprovalStore
) -> None:
    keys = SignInStore(database)
    token = keys.sign_in(keys.make_link("ada", "approver"))
    with served(dashboard) as port:
        ask_often(database, store, ON_A_PAGE + 1)
        (few,) = least_times(port, token, ["/dashboard/"])
        ask_often(database, store, WAITING)
        (many,) = least_times(port, token, ["/dashboard/"])
    assert many <= 1.5 * few, (many, few)
