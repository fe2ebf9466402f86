"""The dashboard in a real Chromium, beside real servers and clients: from a call to a click to the result;
two windows; a restart under an open page; without scripts; and what axe says about each page."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.dashboard_chromium import check, choose
from support.dashboard_shop import Shop
from support.guarded_folder import variables
from support.http_server import FASTRPC, HttpProcess
from support.ports import free_port

pytest_plugins = ["support.dashboard"]
pytestmark = [pytest.mark.timeout(240), pytest.mark.long]
TOOLS = """
from fastrpc import Server

app = Server("shop")

@app.tool(effect="exec", risk="critical")
def wipe(place: str, command: str = "") -> str:
    "Wipe a place."
    return f"wiped {place}"
"""
GUARD = """
[expose]
tools = ["*"]
[approvals]
editable = ["wipe"]
"""
pytest_plugins = ["support.dashboard"]


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path, TOOLS, GUARD, port=free_port())


@contextlib.contextmanager
def ended(call: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    try:
        yield call
    finally:
        call.kill()
        call.communicate()


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_call_waits_until_a_person_clicks_and_a_second_window_sees_it_go(
    shop: Shop, browser: Any, workers: str
) -> None:
    with shop.begin("--workers", workers):
        first, second = (browser.new_context().new_page() for _ in range(2))
        for page, person in ((first, "ada"), (second, "bob")):
            page.goto(shop.link(person))
            page.wait_for_selector("text=No call is here")
            assert "#" not in page.url
        with shop.calling("wipe", "place=/srv") as call:
            for page in (first, second):
                page.wait_for_selector("article:has-text('/srv')")
                page.wait_for_function("document.title.startsWith('(1)')")
            first.click("button.yes")
            second.wait_for_selector("text=No call is here")
            said, wrong = call.communicate(timeout=60)
            assert said.strip() == "wiped /srv", wrong
        second.goto(f"{shop.url}/dashboard/decided")
        assert "ada (dashboard)" in second.inner_text("article")


def test_changed_arguments_run_as_they_were_shown_and_no_script_is_needed(shop: Shop, browser: Any) -> None:
    with shop.begin():
        page = browser.new_context(java_script_enabled=False).new_page()
        page.goto(f"{shop.url}/dashboard")
        page.fill("#code", shop.link("ada"))
        page.click("main button")
        with shop.calling("wipe", "place=/srv") as call:
            while "wipe" not in page.content():
                page.wait_for_timeout(200)
                page.reload()
            page.click("text=Open")
            page.click("summary")
            page.fill("textarea", '"/tmp/one"')
            page.click("text=Show what this changes")
            assert page.inner_text("ins") == '"/tmp/one"'
            page.click("text=Approve with these changes")
            assert call.communicate(timeout=60)[0].strip() == "wiped /tmp/one"


@pytest.mark.parametrize("scripts", [True, False])
def test_what_is_typed_stays_when_language_and_theme_are_changed_and_enter_sends_the_form(
    shop: Shop, browser: Any, scripts: bool
) -> None:
    with shop.begin(), shop.calling("wipe", "place=/srv") as call:
        page = browser.new_context(java_script_enabled=scripts).new_page()
        page.goto(f"{shop.url}/dashboard")
        page.fill("#code", "half of a code")
        page.click("[lang=ar]")
        assert page.input_value("#code") == "half of a code"
        page.click("[lang=en]")
        page.fill("#code", shop.link("ada"))
        page.press("#code", "Enter")
        while "wipe" not in page.content():
            page.wait_for_timeout(200)
            page.reload()
        page.click("article a.button")
        page.fill("#comment", "not on Fridays")
        page.click("summary")
        page.fill("#arg-1", '"half')
        page.click("[lang=ar]")
        assert page.get_attribute("html", "dir") == "rtl"
        page.click("button[name=theme]")
        assert page.get_attribute("html", "data-theme") == "dark"
        page.fill("#arg-1", '"/tmp"')
        page.click("button[formaction$=edit]")
        assert page.inner_text("ins") == '"/tmp"'
        page.click("[lang=en]")
        assert page.inner_text("ins") == '"/tmp"'
        assert page.input_value("#comment") == "not on Fridays"
        page.press("#comment", "Enter")
        page.wait_for_selector("text=rejected")
        assert "not on Fridays" in call.communicate(timeout=60)[1]


def test_of_two_people_who_click_at_once_one_decides_and_the_other_reads_who(
    shop: Shop, browser: Any
) -> None:
    with shop.begin(), shop.calling("wipe", "place=/srv") as call:
        people = {"ada": "button.yes", "bob": "button.no"}
        pages = {person: browser.new_context().new_page() for person in people}
        for person, page in pages.items():
            page.goto(shop.link(person))
            page.click("article a.button")
            page.fill("#comment", f"the reason of {person}")
        for person, page in pages.items():
            page.evaluate(f"void setTimeout(() => document.querySelector('main {people[person]}').click())")
        for page in pages.values():
            page.wait_for_selector(".state.used, .state.rejected, .state.approved", timeout=60_000)
        said, wrong = call.communicate(timeout=60)
        won = "ada" if "wiped /srv" in said else "bob"
        assert won == "ada" or "the reason of bob" in wrong
        lost = pages["bob" if won == "ada" else "ada"]
        lost.wait_for_selector("[role=alert]")
        assert f"by {won}" in lost.inner_text("[role=alert]")
        if won == "ada":
            assert "the reason of bob" in lost.inner_text("main")  # what was typed is not lost


def test_an_open_page_goes_on_after_a_restart_of_the_server(shop: Shop, browser: Any) -> None:
    page = browser.new_page()
    with shop.begin():
        page.goto(shop.link("ada"))
        page.wait_for_selector("text=No call is here")
    with shop.begin(), shop.calling("wipe", "place=/late"):
        page.wait_for_selector("article:has-text('/late')", timeout=60_000)


def test_a_waiting_call_leaves_the_page_when_its_time_is_over(shop: Shop, browser: Any) -> None:
    (shop.folder / "guard.toml").write_text(GUARD.replace("[approvals]", "[approvals]\ntimeout_seconds = 8"))
    with shop.begin():
        page = browser.new_page()
        page.goto(shop.link("ada"))
        page.wait_for_selector("text=No call is here")
        with shop.calling("wipe", "place=/srv"):
            page.wait_for_selector("article:has-text('/srv')")
            page.wait_for_selector("text=No call is here", timeout=60_000)


def test_the_pages_are_served_by_themselves_for_servers_over_standard_input_and_output(
    shop: Shop, browser: Any
) -> None:
    serving = ("dashboard", "serve", "--http", shop.address)
    environment = variables(shop.folder)
    ready = r"the dashboard is at (\S+?)/dashboard"
    with HttpProcess(*serving, folder=shop.folder, environment=environment, ready=ready) as server:
        page = browser.new_page()
        page.goto(shop.link("ada"))
        page.wait_for_selector("text=No call is here")
        served = subprocess.Popen(
            [*FASTRPC, "serve", "shop.py", "--guard", "guard.toml"],
            cwd=shop.folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        with ended(served):
            assert served.stdin is not None
            assert served.stdout is not None
            envelope = {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            }
            params = {"name": "wipe", "arguments": {"place": "/here"}, "_meta": envelope}
            call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
            served.stdin.write(json.dumps(call) + "\n")
            served.stdin.flush()
            page.wait_for_selector("article:has-text('/here')")
            page.click("button.yes")
            assert "wiped /here" in served.stdout.readline()
        assert "#" not in server.stderr  # no code in a log
        assert server.stop() == 0


@pytest.mark.parametrize("language", ["en", "ar"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_each_page_is_accessible_in_both_languages_and_themes(
    shop: Shop, browser: Any, language: str, theme: str
) -> None:
    line = "command=rm -rf /srv/a-folder-with-a-name-that-is-rather-long && ls -la | wc -l 2>&1 # why"
    with shop.begin(), shop.calling("wipe", "place=/srv", line):
        context = browser.new_context(bypass_csp=True, viewport={"width": 360, "height": 740})
        page = context.new_page()
        page.goto(f"{shop.url}/dashboard/enter")
        check(page)
        page.goto(shop.link("ada"))
        page.wait_for_selector("article")
        choose(page, language, theme)
        check(page)
        page.click("article a.button")
        page.wait_for_selector("summary")
        page.click("summary")
        check(page)
        page.goto(f"{shop.url}/dashboard/decided")
        check(page)


def test_a_page_weighs_little(shop: Shop, browser: Any) -> None:
    sizes: list[int] = []
    with shop.begin():
        context = browser.new_context()
        page = context.new_page()
        page.goto(shop.link("ada"))
        page.wait_for_selector("text=No call is here")
        page = context.new_page()
        page.on("response", lambda answer: sizes.append(0 if "/events" in answer.url else len(answer.body())))
        page.goto(f"{shop.url}/dashboard/")
        page.wait_for_selector("text=No call is here")
    assert len(sizes) >= 5
    assert sum(sizes) < 150_000, sizes
