"""The dashboard's calls, tasks, servers and tools in a real Chromium: live, without scripts, and what axe
says about each page."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.dashboard_chromium import check, choose
from support.dashboard_shop import Shop

pytestmark = [pytest.mark.timeout(240), pytest.mark.long]
pytest_plugins = ["support.dashboard"]
TOOLS = """
import asyncio
from typing import Literal
from fastrpc import Context, Server

app = Server("shop")

@app.tool(risk="low")
async def pack(item: str, ctx: Context) -> str:
    "Pack for a long time."
    ctx.progress(3, 10, "a box, which has a name without any space: " + "x" * 200)
    await asyncio.sleep(60)
    return "packed"

@app.tool(risk="low", task="required")
async def bake(ctx: Context) -> str:
    "Bake."
    ctx.progress(1, 2, "in the oven")
    await asyncio.sleep(60)
    return "baked"

@app.tool(risk="low")
def order(item: str, count: int = 1, gift: bool = False, size: Literal["small", "large"] = "small",
          place: dict[str, int] | None = None) -> dict[str, object]:
    '''Order something.

    It is sent at once: https://example.com/LONG
    '''
    return {"item": item, "count": count, "gift": gift, "size": size, "place": place}

if __name__ == "__main__":
    app.run()
""".replace("LONG", "x" * 100)


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    found = Shop(tmp_path, TOOLS)
    with found.begin("--stats"):
        yield found


def test_a_call_comes_and_goes_on_an_open_page_and_is_cancelled_by_a_click(shop: Shop, browser: Any) -> None:
    first, second = (browser.new_context().new_page() for _ in range(2))
    for page, person in ((first, "ada"), (second, "bob")):
        page.goto(shop.link(person))
        page.click("text=In flight")
        page.wait_for_selector("text=No call is here")
    with shop.calling("pack", "item=cup") as call:
        for page in (first, second):
            page.wait_for_selector("article:has-text('3 / 10')", timeout=30_000)
        first.focus("article button.no")
        first.wait_for_timeout(4000)
        assert first.evaluate("document.activeElement.className") == "no"  # the list was made anew meanwhile
        first.keyboard.press("Enter")
        second.wait_for_selector("text=No call is here", timeout=30_000)
        said, wrong = call.communicate(timeout=60)
        assert "cancelled by ada" in said + wrong


@pytest.mark.parametrize("scripts", [True, False])
def test_a_tool_is_called_by_its_form(shop: Shop, browser: Any, scripts: bool) -> None:
    page = browser.new_context(java_script_enabled=scripts).new_page()
    page.goto(f"{shop.url}/dashboard")
    page.fill("#code", shop.link())
    page.click("main button")
    page.click("text=Servers")
    page.click("text=Tools: 3")
    page.click("code:has-text('order')")
    page.fill("#arg-1", "\na cup\nof tea")
    page.fill("#arg-2", "many")
    page.select_option("#arg-4", '"large"')
    page.click("main button.yes")
    page.wait_for_selector("text=expected a whole number")
    assert page.input_value("#arg-1") == "\na cup\nof tea"
    assert page.input_value("#arg-2") == "many"
    assert page.input_value("#arg-4") == '"large"'
    page.fill("#arg-2", "3")
    page.click("main button.yes")
    page.wait_for_selector("text=The call has ended")
    assert '"count": 3' in page.inner_text("main")
    page.click("text=Call it again")
    assert page.input_value("#arg-1") == "\na cup\nof tea"


@pytest.mark.parametrize("language", ["en", "ar"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_each_page_is_accessible_in_both_languages_and_themes(
    shop: Shop, telephone: Any, language: str, theme: str
) -> None:
    page = telephone
    with shop.calling("pack", "item=cup"), shop.calling("bake", "--task"):
        page.goto(shop.link())
        choose(page, language, theme)
        page.goto(f"{shop.url}/dashboard/calls")
        page.wait_for_selector("article:has-text('3 / 10')", timeout=30_000)
        check(page)
        page.goto(f"{shop.url}/dashboard/tasks")
        page.wait_for_selector("article:has-text('bake')", timeout=30_000)
        check(page)
        page.goto(f"{shop.url}/dashboard/servers")
        check(page)
        page.goto(f"{shop.url}/dashboard/tools?server=&find=r")
        check(page)
        page.goto(f"{shop.url}/dashboard/tool?name=order")
        page.click("summary")
        check(page)
        page.fill("#arg-2", "many")
        page.click("main button.yes")
        page.wait_for_selector("[aria-invalid]")
        check(page)
        page.fill("#arg-1", "cup")
        page.fill("#arg-2", "2")
        page.click("main button.yes")
        page.wait_for_selector("pre")
        check(page)
        page.goto(f"{shop.url}/dashboard/tool?name=pack")
        page.fill("#arg-1", "cup")
        page.click("main button.yes")
        page.wait_for_selector("#stop")
        check(page)


def test_the_servers_of_a_gateway_are_accessible_and_start_by_a_click(tmp_path: Path, telephone: Any) -> None:
    shop = Shop(tmp_path, TOOLS)
    behind = {"command": sys.executable, "args": [str(tmp_path / "shop.py")]}
    broken = {"command": sys.executable, "args": ["-c", "raise SystemExit('x' * 300)"]}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"a": behind, "broken": broken}}))
    page = telephone
    with shop.begin("--stats", command=("gateway", "mcp.json")):
        page.goto(shop.link())
        page.goto(f"{shop.url}/dashboard/servers")
        check(page)
        page.click("#start")
        page.wait_for_selector("text=Tools: 3", timeout=60_000)
        page.wait_for_selector("article:has-text('failed')", timeout=60_000)
        check(page)
