"""The dashboard's tasks, of rows that are in the database: pages, hostile texts, and pages by themselves."""

from __future__ import annotations

import asyncio
import re
import time
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, update
from support.dashboard_browser import Browser
from support.dashboard_shop import Shop
from support.guarded_folder import variables
from support.http_server import HttpProcess
from support.task_client import TaskClient
from support.waiting import eventually

from fastrpc import Context, Server
from fastrpc.dashboard.access import SignInStore
from fastrpc.dashboard.app import Dashboard
from fastrpc.dashboard.pages import tasks as tasks_page
from fastrpc.dashboard.task_database import TaskDatabase
from fastrpc.dashboard.view import Sources
from fastrpc.storage import open_database
from fastrpc.storage.database import Database
from fastrpc.tasks import store
from fastrpc.tasks.kind import TASKS
from fastrpc.tasks.record import COMPLETED, TaskRecord
from fastrpc.tasks.schema import tasks
from fastrpc.transports.http.guard import AccessRules

pytest_plugins = ["support.guard_database"]
HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(2)>\u202e {{7*7}}'
TOOLS = """
import asyncio
from fastrpc import Context, Server

app = Server("shop")

@app.tool(task="required", risk="low")
async def bake(ctx: Context) -> str:
    "Bake."
    ctx.progress(1, 2, "in the oven")
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        open("stopped", "w").close()
        raise
    return "baked"

@app.tool(risk="critical")
def wipe(place: str) -> str:
    "Wipe a place."
    return f"wiped {place}"
"""


def record(number: int, **changed: Any) -> TaskRecord:
    now = time.time()
    facts = {
        "id": f"{number:032x}",
        "owner": "agent#1",
        "server": "shop",
        "tool": "bake",
        "version": "2026-07-28",
        "idempotent": 0,
        "created_at": now - number // 3,
        "updated_at": now,
        "ttl_ms": 60_000,
        "expires_at": now + 60,
        "poll_ms": 500,
        "worker": "",
        "lease_until": now + 60,
    }
    return TaskRecord(**{**facts, **changed})


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Database:
    url = f"sqlite:///{tmp_path}/tasks.sqlite3"
    monkeypatch.setenv("FASTRPC_TASKS_DATABASE", url)
    return open_database(url, TASKS)


def insert(rows: Database, *records: TaskRecord) -> None:
    with rows.changing() as connection:
        for each in records:
            store.create(connection, each)


def visit(database: Database, role: str = "approver") -> Browser:
    dashboard = Dashboard(Sources(lambda: database, "shop", tasks=TaskDatabase()), AccessRules(None))
    browser = Browser(dashboard)
    assert browser.sign_in(SignInStore(database).make_link("ada", role)).status_code == 303
    browser.get("/tasks")
    return browser


def test_tasks_are_shown_in_pages_each_once_the_newest_first(rows: Database, database: Database) -> None:
    insert(rows, *(record(number, state=COMPLETED if number % 2 else "working") for number in range(130)))
    browser = visit(database)
    for query, count in (("", 130), ("state=open", 65)):
        seen: list[str] = []
        path = f"/tasks?{query}"
        while path:
            page = browser.get(path).text
            seen += re.findall(r'<article class="card" aria-labelledby="of-(\w+)"', page)
            older = re.search(r'href="(\?after=[^"]+)"', page)
            path = f"/tasks{older[1]}".replace("&amp;", "&") if older else ""
        assert len(set(seen)) == len(seen) == count
        times = [int(each, 16) // 3 for each in seen]
        assert times == sorted(times)
    assert count > tasks_page.ON_A_PAGE
    assert "bake" in browser.get("/tasks?after=no-such-task").text


def test_a_task_whose_time_is_over_is_not_shown(rows: Database, database: Database) -> None:
    insert(rows, record(1, expires_at=time.time() - 1))
    browser = visit(database)
    assert "No task is here." in browser.get("/tasks").text
    assert browser.send(f"/tasks/{record(1).id}/cancel").status_code == 404


def test_no_text_of_a_task_becomes_an_element(rows: Database, database: Database) -> None:
    hostile = dict.fromkeys(("owner", "server", "tool", "message"), HOSTILE)
    insert(rows, record(1, **hostile))
    page = visit(database).get("/tasks").text
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;") == 4
    assert page.count("<mark>\\u202e</mark>") == 4
    assert "{{7*7}}" in page
    for element in ("<script>alert", "<img"):
        assert element not in page


def test_only_an_approver_cancels_and_only_by_a_form_of_these_pages(
    rows: Database, database: Database
) -> None:
    insert(rows, record(1))
    path = f"/tasks/{record(1).id}/cancel"
    viewer, approver = visit(database, "viewer"), visit(database)
    assert "/cancel" not in viewer.last
    assert viewer.send(path).status_code == 403
    assert approver.get(path).status_code == 405
    approver.get("/tasks")
    for changed in ({"token": ""}, {"token": "0" * 64}, {"origin": "https://evil.example"}, {"origin": None}):
        assert approver.send(path, **changed).status_code == 403, changed  # type: ignore[arg-type]
        approver.get("/tasks")
    assert ">working<" in approver.last
    assert approver.send(path).status_code == 303
    assert ">cancelled<" in approver.get("/tasks").text
    assert "cancelled by ada at the dashboard" in approver.last
    again = approver.send(path)
    assert (again.status_code, "The task has ended." in again.text) == (409, True)


def test_a_database_that_cannot_be_read_is_said_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, database: Database
) -> None:
    (tmp_path / "tasks.sqlite3").write_text("no database" * 1000)
    monkeypatch.setenv("FASTRPC_TASKS_DATABASE", f"sqlite:///{tmp_path}/tasks.sqlite3")
    answer = visit(database).get("/tasks")
    assert answer.status_code == 503
    assert "the tasks" in answer.text


@pytest.mark.parametrize("is_asked", [True, False], ids=["it asks", "its process has ended"])
def test_a_function_that_no_process_runs_ends_what_it_has_begun(rows: Database, is_asked: bool) -> None:
    app, seen = Server("shop"), []

    @app.tool(task="required", resumable=True, risk="low")
    async def order(ctx: Context, item: str) -> str:
        """Order an item elsewhere."""
        assert ctx.task is not None
        seen.append((item, ctx.task.id, ctx.task.is_cancelled))
        return str((await ctx.elicit("How many?", int)).data) if not ctx.task.is_cancelled else "ended"

    async def cancel_elsewhere() -> str:
        client = TaskClient(app)
        id = await client.task("order", item="cup")
        board = app.runtime.tasks
        assert board._turns is not None
        board._turns.cancel()  # no sweep but those of this test
        await client.until(id, "input_required")
        if not is_asked:
            with rows.changing() as connection:
                wanted = tasks.c.id == id
                changed = {"state": "working", "worker": "elsewhere:1:1:1", "lease_until": 0.0}
                connection.execute(update(tasks).where(wanted).values(**changed))
        pages = TaskDatabase()
        found = pages.task(id)
        assert found is not None
        assert pages.cancel(found, "not wanted") == ""
        for _ in range(2):  # the second one finds nothing
            await board._sweep()
        while len(seen) < 2:
            await asyncio.sleep(0.01)
        assert (await client.get(id))["status"] == "cancelled"
        await app.runtime.leave()
        return id

    id = asyncio.run(asyncio.wait_for(cancel_elsewhere(), 30))
    assert seen == [("cup", id, False), ("cup", id, True)]
    with rows.reading() as connection:
        assert connection.execute(select(tasks.c.params, tasks.c.state)).all() == [("", "cancelled")]


# --- with a server ------------------------------------------------------------------------------------------


def test_a_task_is_cancelled_by_the_call_that_it_runs(tmp_path: Path) -> None:
    shop = Shop(tmp_path, TOOLS)
    with shop.begin():
        browser = shop.visit()
        with shop.calling("bake", "--task") as call:
            eventually(lambda: "Task</dt>" in browser.get("/calls").text)
            found = re.search(r'action="/dashboard(/calls/[^"]+)"', browser.last)
            assert found is not None
            assert browser.send(found[1]).status_code == 303
            assert "cancelled" in call.communicate(timeout=30)[1]
        page = browser.get("/tasks").text
        assert ">cancelled<" in page
        assert "cancelled by ada at the dashboard" in page
        assert (tmp_path / "stopped").exists()


def test_pages_that_are_served_by_themselves_cancel_the_task_of_a_server(tmp_path: Path) -> None:
    shop = Shop(tmp_path, TOOLS)
    ready = r"the dashboard is at (\S+?)/dashboard"
    serving = ("dashboard", "serve", "--http", "127.0.0.1:0")
    with (
        shop.begin(),
        shop.calling("bake", "--task") as call,
        HttpProcess(*serving, folder=tmp_path, environment=variables(tmp_path), ready=ready) as pages,
    ):
        shop.url = f"http://127.0.0.1:{pages.port}"
        browser = shop.visit()
        eventually(lambda: ">working<" in browser.get("/tasks").text)
        found = re.search(r'action="/dashboard(/tasks/[^"]+)"', browser.last)
        assert found is not None
        assert browser.send(found[1]).status_code == 303
        assert "cancelled" in call.communicate(timeout=30)[1]
        assert "cancelled by ada at the dashboard" in browser.get("/tasks").text
        eventually((tmp_path / "stopped").exists)
