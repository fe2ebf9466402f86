"""Records of the audit log name the task of a call, and a search finds them by it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.dashboard_shop import GUARD, Shop
from support.guarded_folder import fastrpc, records
from support.waiting import eventually

TOOLS = """
import asyncio
from fastrpc import Server

app = Server("shop")

@app.tool(task="required", risk="low")
async def bake() -> str:
    "Bake."
    await asyncio.sleep(0.01)
    return "baked"

@app.tool(task="required", risk="low", run="inline")
def slice(count: int = 1) -> str:
    "Slice."
    return "sliced"

@app.tool(task="allowed", after_seconds=30, risk="low")
async def toast() -> str:
    "Toast, which is over before it becomes a task."
    return "toasted"

@app.tool(task="required", effect="exec", risk="critical")
def burn() -> str:
    "Burn."
    return "burnt"
"""
RULE = """
[[rules]]
id = "few"
tools = ["slice"]
when = "args.count > 3"
then = "deny"
"""


@pytest.fixture(params=["group", "strict"])
def shop(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Shop]:
    found = Shop(tmp_path, TOOLS, GUARD.replace("group", request.param) + RULE)
    with found.begin():
        yield found


def tasks_of(shop: Shop, tool: str) -> list[tuple[str, str | None]]:
    """Return outcome and task of each record of calls of a tool."""
    found = [each for each in records(shop.folder) if each.get("tool") == tool]
    return [(each["outcome"], each.get("task")) for each in found if each["category"] == "mcp_server"]


def ended(shop: Shop, *call: str) -> str:
    with shop.calling(*call) as process:
        said, wrong = process.communicate(timeout=60)
    return said + wrong


def known(shop: Shop, query: str = "") -> dict[str, str]:
    """Return the tool of each task, by its id, as the dashboard has them."""
    page = shop.visit().get(f"/tasks{query}").text
    return dict(re.findall(r'id="of-([0-9a-f]+)".*?class="name" dir="ltr">(\w+)<', page, re.DOTALL))


def test_each_record_of_a_call_names_the_task_that_it_has_become_and_no_other_one(shop: Shop) -> None:
    assert "baked" in ended(shop, "bake", "--task")
    assert "sliced" in ended(shop, "slice", "--task")
    assert "toasted" in ended(shop, "toast")
    ended(shop, "slice", "count=4", "--task")
    has_begun = "strict" in (shop.folder / "guard.toml").read_text()
    found = eventually(lambda: tasks_of(shop, "toast"))
    assert {task for _, task in found} == {None}
    of_tool = known(shop)
    for tool in ("bake", "slice"):
        of_task: dict[str | None, list[str]] = {}
        for outcome, task in tasks_of(shop, tool):
            of_task.setdefault(task, []).append(outcome)
        assert set(of_task) == {id for id, each in of_tool.items() if each == tool}, tool
        good = ["begun", "ok"] if has_begun else ["ok"]
        assert sorted(of_task.values()) == ([good] if tool == "bake" else sorted([good, ["refused"]]))


def test_the_command_and_the_page_search_by_task_and_the_record_leads_to_it(shop: Shop) -> None:
    for _ in range(2):
        assert "baked" in ended(shop, "bake", "--task")
    eventually(lambda: len({task for _, task in tasks_of(shop, "bake")}) == 2)
    wanted = tasks_of(shop, "bake")[-1][1]
    found = fastrpc(shop.folder, "audit", "search", "--task", str(wanted), "--json")
    assert {json.loads(line)["task"] for line in found.splitlines()} == {wanted}
    browser = shop.visit()
    ids = re.findall(r'href="/dashboard/audit/(audit_\w+)"', browser.get(f"/audit?task={wanted}").text)
    assert sorted(ids) == sorted(json.loads(line)["id"] for line in found.splitlines())
    page = browser.get(f"/audit/{ids[0]}").text
    assert f'href="/dashboard/tasks?id={wanted}"' in page
    assert list(known(shop, f"?id={wanted}")) == [wanted]


def test_the_approval_of_a_task_names_it_in_its_records(shop: Shop) -> None:
    with shop.calling("burn", "--task"):
        browser = shop.visit()
        eventually(lambda: "burn" in browser.get("/tasks").text)
        (id,) = known(shop)
        approval = eventually(lambda: approvals_in(browser.get("/").text))[0]
        assert browser.get(f"/approvals/{approval}").status_code == 200
        assert browser.send(f"/approvals/{approval}/approve").status_code == 303
        found = eventually(lambda: [each for each in tasks_of(shop, "burn") if each[0] == "ok"])
        assert found == [("ok", id)]


def approvals_in(page: str) -> list[str]:
    return re.findall(r'/dashboard/approvals/(ap_\w+)"', page)
