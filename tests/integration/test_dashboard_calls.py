"""The dashboard's calls in flight and tasks, of a real server with real clients: seen, and cancelled."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.dashboard_browser import Browser
from support.dashboard_shop import Shop
from support.guarded_folder import records
from support.waiting import eventually

HOSTILE = "<script>alert(1)</script>\u202e"
TOOLS = """
import asyncio
import time
from fastrpc import Context, Server

app = Server("shop")

@app.tool(risk="low")
async def pack(item: str, ctx: Context) -> str:
    "Pack for a long time."
    ctx.progress(3, 10, "<script>alert(1)</script>\\u202e " + item)
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        open("stopped", "a").write(item)
        raise
    return "packed"

@app.tool(run="thread", risk="low")
def wait() -> str:
    "Wait."
    time.sleep(20)
    return "waited"

@app.tool(effect="exec", risk="critical")
def wipe(place: str) -> str:
    "Wipe a place."
    return f"wiped {place}"

@app.tool(task="required", risk="low")
async def bake(ctx: Context) -> str:
    "Bake."
    ctx.progress(1, 2, "in the oven")
    await asyncio.sleep(60)
    return "baked"
"""


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    found = Shop(tmp_path, TOOLS)
    with found.begin():
        yield found


def shown(browser: Browser, text: str, path: str = "/calls") -> str:
    """Return a page once it has a text."""
    eventually(lambda: text in browser.get(path).text)
    return browser.last


def stop(browser: Browser, page: str, **changed: str | None) -> int:
    """Send the first form that cancels something."""
    found = re.search(r'action="/dashboard((?:/calls|/tasks)/[^"]+)"', page)
    assert found is not None
    return browser.send(found[1], **changed).status_code


@pytest.mark.parametrize("tool", [("pack", "item=cup"), ("wait",), ("wipe", "place=/srv")])
def test_a_call_is_seen_and_cancelled_and_its_caller_gets_an_error(shop: Shop, tool: tuple[str, ...]) -> None:
    browser = shop.visit()
    with shop.calling(*tool) as call:
        page = shown(browser, tool[0])
        assert "agent#" in page
        assert ("waits to begin" if tool[0] == "wipe" else ">runs<") in page
        assert stop(browser, page) == 303
        said, wrong = call.communicate(timeout=30)
        assert "The call was cancelled by ada at the dashboard" in said + wrong
        assert call.returncode != 0
    assert "No call is here." in browser.get("/calls").text
    if tool[0] == "pack":
        assert (shop.folder / "stopped").read_text() == "cup"
    noted = eventually(lambda: [each for each in records(shop.folder) if each["category"] == "dashboard"])
    assert [(each["actor"], each["action"], each["tool"]) for each in noted] == [
        ("ada", "call.cancel", tool[0])
    ]
    ended = [each for each in records(shop.folder) if each.get("action") == "tools/call"]
    assert ended[-1]["outcome"] == "cancelled"


def test_a_call_that_has_ended_is_said_to_be_gone_and_a_get_cancels_nothing(shop: Shop) -> None:
    browser = shop.visit()
    with shop.calling("pack", "item=cup"):
        page = shown(browser, "pack")
        found = re.search(r'action="/dashboard(/calls/[^"]+)"', page)
        assert found is not None
        assert browser.get(found[1]).status_code == 405
        browser.get("/calls")
        for forged in ("7f00-1", "x", "%00", "..%2f..%2fmcp"):
            answer = browser.send(f"/calls/{forged}/cancel")
            assert answer.status_code in (404, 409), forged
        assert "not in flight here" in browser.send("/calls/7f00-1/cancel").text
        assert "pack" in browser.get("/calls").text


def test_a_viewer_and_a_form_of_another_page_cancel_nothing(shop: Shop) -> None:
    approver, viewer = shop.visit(), shop.visit("vera", "viewer")
    with shop.calling("pack", "item=cup"):
        page = shown(approver, "pack")
        assert "/cancel" not in viewer.get("/calls").text
        assert stop(viewer, page) == 403
        approver.get("/calls")
        assert stop(approver, page, token="") == 403
        assert stop(approver, page, origin="https://evil.example") == 403
        assert stop(approver, page, origin=None) == 403
        assert "pack" in approver.get("/calls").text
    assert not [each for each in records(shop.folder) if each["category"] == "dashboard"]


def test_what_a_tool_reports_and_a_caller_has_chosen_is_text(shop: Shop) -> None:
    browser = shop.visit()
    with shop.calling("pack", f"item={HOSTILE}"):
        page = shown(browser, "3 / 10")
        assert "<script>alert" not in page
        assert "&lt;script&gt;alert(1)&lt;/script&gt;<mark>\\u202e</mark>" in page


# --- several workers ----------------------------------------------------------------------------------------


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[Shop]:
    found = Shop(tmp_path, TOOLS)
    with found.begin("--workers", "3"):
        yield found


def test_each_worker_shows_and_cancels_the_calls_of_all(workers: Shop) -> None:
    browser = workers.visit()
    with workers.calling("pack", "item=cup") as first, workers.calling("pack", "item=pot"):
        eventually(lambda: "In flight: 2" in browser.get("/calls").text)
        for _ in range(8):  # each a new connection, which any worker may get
            page = browser.get("/calls").text
            assert "In flight: 2" in page
            assert "3 / 10" in page
            assert "have not said" not in page
        ids = re.findall(r'action="/dashboard/calls/([^"]+)/cancel"', page)
        assert len(set(ids)) == 2
        of = {item: id for id, item in zip(ids, re.findall(r" (cup|pot)<", page), strict=True)}
        assert browser.send(f"/calls/{of['cup']}/cancel").status_code == 303
        said, wrong = first.communicate(timeout=30)
        assert "The call was cancelled by ada at the dashboard" in said + wrong
        eventually(lambda: "In flight: 1" in browser.get("/calls").text)
        assert "not in flight here" in browser.send(f"/calls/{of['cup']}/cancel").text
        assert " pot<" in browser.get("/calls").text


def test_a_call_by_the_form_is_shown_and_cancelled_whichever_worker_answers(workers: Shop) -> None:
    browser = workers.visit()
    browser.get("/tool?name=pack")
    field = {"arg_item": "cup", "tool": "pack", "call": "a-call-of-ada-1234567890"}
    assert browser.send("/tool", **field).status_code == 303
    place = "/own-calls/a-call-of-ada-1234567890"
    for _ in range(8):
        assert "The call runs" in browser.get(place).text
    again = [browser.send("/tool", **field) for _ in range(4)]  # which makes no other call
    assert {each.status_code for each in again} == {303}
    assert "In flight: 1" in browser.get("/calls").text
    assert workers.visit("bob").get(place).status_code == 404
    browser.get(place)
    assert browser.send(f"{place}/cancel").status_code == 303
    for _ in range(8):
        assert "You have cancelled the call." in browser.get(place).text
    eventually(lambda: "No call is here." in browser.get("/calls").text)


# --- tasks --------------------------------------------------------------------------------------------------


def test_a_task_is_seen_and_cancelled_and_its_owner_learns_by_whom(shop: Shop) -> None:
    browser = shop.visit()
    with shop.calling("bake", "--task") as call:
        page = shown(browser, "in the oven", "/tasks")
        assert "agent#" in page
        assert ">working<" in page
        assert "in the oven" in browser.get("/calls").text  # the call that it runs
        browser.get("/tasks")
        assert stop(browser, page) == 303
        _, wrong = call.communicate(timeout=30)
        assert "cancelled" in wrong
    page = browser.get("/tasks").text
    assert "cancelled by ada at the dashboard" in page
    assert "/cancel" not in page
    assert "No task is here." in browser.get("/tasks?state=open").text
    eventually(lambda: "No call is here." in browser.get("/calls").text)
    noted = eventually(lambda: [each for each in records(shop.folder) if each["category"] == "dashboard"])
    assert [(each["actor"], each["action"], each["tool"]) for each in noted] == [
        ("ada", "task.cancel", "bake")
    ]
