"""The pages of callers and of the policy in a real Chromium, beside a real server: from a form to what the
server does, and what axe says about each page."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path
from typing import Any

import pytest
from support.dashboard_chromium import check, choose
from support.dashboard_shop import Shop
from support.guarded_folder import fastrpc, records, variables
from support.http_server import HttpProcess
from support.ports import free_port

pytestmark = [pytest.mark.timeout(240), pytest.mark.long]
TOOLS = """
from fastrpc import Server

app = Server("shop")

@app.tool(effect="read")
def look(place: str) -> str:
    "Look at a place."
    return f"looked at {place}"

@app.tool(effect="exec")
def order(item: str, count: int = 1) -> str:
    "Order something."
    return item * count
"""
GUARD = """\
[expose]
tools = ["look", "order"]
[classes.agent]
tools = ["look"]
rate = "60/minute"
[[rules]]
id = "small-orders"
tools = ["order"]
when = "args.count > 10"
then = "deny"
"""
pytest_plugins = ["support.dashboard"]


class CalledShop(Shop):
    """A shop whose client may look, and nothing else."""

    def look(self, token: str = "token", code: int = 0) -> str:
        words = ("call", f"{self.url}/mcp", "look", "place=here", "--token-file", token)
        return fastrpc(self.folder, *words, code=code)


@pytest.fixture
def shop(tmp_path: Path) -> CalledShop:
    return CalledShop(tmp_path, TOOLS, GUARD, port=free_port(), of_token=("--class", "agent"))


def signed_in(shop: CalledShop, context: Any) -> Any:
    page = context.new_page()
    page.goto(shop.link("grace", "administrator"))
    page.wait_for_selector("text=No call is here")
    return page


def test_a_policy_is_changed_in_the_browser_and_the_running_server_takes_it(
    shop: CalledShop, browser: Any
) -> None:
    with shop.begin():
        assert "looked at here" in shop.look()
        page = signed_in(shop, browser.new_context())
        page.goto(f"{shop.url}/dashboard/policy")
        page.wait_for_selector("text=The server uses this version")
        page.click("text=Change it")
        text = page.input_value("#text")
        assert text == GUARD
        page.fill("#text", text.replace("args.count", "args.cuont"))
        page.wait_for_selector("#state >> text=Line 9:")  # said while one types: no button was pressed
        page.fill("#text", text.replace('[classes.agent]\ntools = ["look"]', "[classes.agent]\ntools = []"))
        page.wait_for_selector("#state >> text=There is no mistake")
        assert (shop.folder / "guard.toml").read_text() == GUARD
        page.click("text=Show what this changes")
        page.wait_for_selector("text=newly refused: 1")
        page.click("text=Save it")
        page.wait_for_selector("text=It is saved")
        for _ in range(50):
            page.reload()
            if "The server uses this version" in page.inner_text("main"):
                break
            page.wait_for_timeout(200)
        assert "no tool 'look'" in shop.look(code=2)
    done = [each for each in records(shop.folder) if each["category"] == "dashboard"]
    assert [(each["actor"], each["action"], each["outcome"]) for each in done] == [
        ("grace", "policy.save", "ok")
    ]


@pytest.mark.parametrize("scripts", [True, False])
def test_a_token_that_is_made_in_the_browser_is_valid_until_it_is_revoked_there(
    shop: CalledShop, browser: Any, scripts: bool
) -> None:
    with shop.begin():
        page = browser.new_context(java_script_enabled=scripts).new_page()
        page.goto(f"{shop.url}/dashboard/enter")
        page.fill("#code", shop.link("grace", "administrator"))
        page.click("main button")
        page.goto(f"{shop.url}/dashboard/callers")
        page.click("summary")
        page.fill("#owner", "ada")
        page.fill("#class", "agent")
        page.fill("#expires", "soon")
        page.click("text=Make the token")
        assert "expected a time" in page.inner_text("#wrong-expires")
        assert page.input_value("#owner") == "ada"
        page.fill("#expires", "1h")
        page.click("text=Make the token")
        token = page.inner_text("pre").strip()
        assert re.fullmatch(r"frpc_\w+_[\w-]+", token)
        (shop.folder / "made").write_text(token)
        os.chmod(shop.folder / "made", 0o600)
        page.wait_for_timeout(1000)  # servers notice a new token within a second
        assert "looked at here" in shop.look("made")
        page.click("text=What it may do")
        assert "May use 1 of 2 tools" in page.inner_text("main")
        page.click("text=Revoke")
        page.click("text=Revoke this token")
        assert "it may do nothing" in page.inner_text("main")
        page.wait_for_timeout(1000)
        shop.look("made", code=1)


def test_without_scripts_a_button_checks_a_policy(shop: CalledShop, browser: Any) -> None:
    with shop.begin():
        page = browser.new_context(java_script_enabled=False).new_page()
        page.goto(f"{shop.url}/dashboard/enter")
        page.fill("#code", shop.link("grace", "administrator"))
        page.click("main button")
        page.goto(f"{shop.url}/dashboard/policy/edit")
        page.fill("#text", GUARD.replace("args.count", "args.cuont"))
        page.click("button:has-text('Check')")
        assert "Line 9:" in page.inner_text("#state")
        assert page.input_value("#text") == GUARD.replace("args.count", "args.cuont")


def test_pages_that_are_served_by_themselves_show_the_policy_of_a_named_file(
    shop: CalledShop, browser: Any
) -> None:
    serving = ("dashboard", "serve", "--http", shop.address, "--guard", "guard.toml")
    ready = r"the dashboard is at (\S+?)/dashboard"
    with HttpProcess(*serving, folder=shop.folder, environment=variables(shop.folder), ready=ready) as server:
        page = signed_in(shop, browser.new_context())
        page.goto(f"{shop.url}/dashboard/callers/classes/agent")
        assert "does not know the server's tools" in page.inner_text("main")
        page.goto(f"{shop.url}/dashboard/policy/edit")
        page.fill("#text", GUARD.replace("60/minute", "10/minute"))
        page.click("text=Show what this changes")
        page.click("text=Save it")
        page.wait_for_selector("text=It is saved")
        assert server.stop() == 0
    assert (shop.folder / "guard.toml").read_text() == GUARD.replace("60/minute", "10/minute")
    assert [each["action"] for each in records(shop.folder)] == ["policy.save"]


@pytest.mark.parametrize("language", ["en", "ar"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_each_page_is_accessible_in_both_languages_and_themes(
    shop: CalledShop, browser: Any, language: str, theme: str
) -> None:
    with shop.begin(), contextlib.ExitStack() as pages:
        shop.look()
        context = browser.new_context(bypass_csp=True, viewport={"width": 360, "height": 740})
        pages.callback(context.close)
        page = signed_in(shop, context)
        choose(page, language, theme)

        page.goto(f"{shop.url}/dashboard/callers")
        page.click("summary")
        check(page)
        page.fill("#owner", "a:b")
        page.click("details button")
        page.wait_for_selector("#wrong-owner")
        check(page)
        page.fill("#owner", "ada")
        page.click("details button")
        page.wait_for_selector("pre")
        check(page)
        page.click("main a.button")
        page.wait_for_selector("summary")
        for summary in page.query_selector_all("summary"):
            summary.click()
        check(page)
        page.goto(f"{shop.url}/dashboard/callers/classes/agent")
        check(page)

        page.goto(f"{shop.url}/dashboard/policy")
        check(page)
        page.goto(f"{shop.url}/dashboard/policy/edit")
        check(page)
        page.fill("#text", GUARD + "wrong")
        page.wait_for_selector("#state .error")
        check(page)
        page.fill("#text", GUARD.replace('tools = ["look"]', 'tools = ["order"]'))
        page.click("form.stack button.yes")
        page.wait_for_selector("article")
        check(page)
        (shop.folder / "guard.toml").write_text(GUARD + "# meanwhile\n")
        page.click("form.stack button.yes")
        page.wait_for_selector("#text")
        assert "# meanwhile" in page.inner_text("main pre")
        check(page)
