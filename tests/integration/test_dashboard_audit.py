"""The pages of the audit log: what is found, one record with its reason, the check, the export."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import pytest
from support import logged_dashboard
from support.call_records import call_record
from support.dashboard_browser import HOSTILE, Browser
from support.dashboard_chromium import check as check_in_browser
from support.dashboard_chromium import choose
from support.guarded_folder import fastrpc, variables
from support.http_server import HttpProcess
from support.waiting import eventually

from fastrpc import Client, ClientError
from fastrpc.dashboard import exporting, log_jobs
from fastrpc.dashboard.access import SignInStore
from fastrpc.dashboard.app import Dashboard
from fastrpc.dashboard.pages import audit as page
from fastrpc.dashboard.view import AuditSource, Sources
from fastrpc.guard.audit import AuditLog, reading, segments
from fastrpc.storage.database import Database
from fastrpc.transports.http.guard import AccessRules

pytest_plugins = ["support.guard_database", "support.dashboard"]
folder, dashboard = logged_dashboard.folder, logged_dashboard.dashboard
Visit = Callable[..., Browser]
CHANGES = [{"origin": None}, {"origin": "https://evil.example"}, {"token": ""}, {"token": "0" * 64}]
TOOLS = """
from fastrpc import Server

app = Server("shop")

@app.tool(effect="write", risk="low")
def order(item: str, count: int) -> str:
    "Order items."
    return item * count
"""
GUARD = """
[expose]
tools = ["*"]
[[rules]]
id = "small-orders"
tools = ["order"]
when = "args.count > 10"
then = "deny"
reason = "too many"
"""
PIXEL = """async () => {
  const canvas = document.createElement("canvas");
  const drawing = canvas.getContext("2d");
  drawing.drawImage(document.images[0], 0, 0);
  return drawing.getImageData(2, 2, 1, 1).data[0];
}"""
"""How light the corner of the first chart is."""
COUNTS = dict.fromkeys(("segments", "records", "checkpoints", "lost"), 4)
BECAUSE = {
    "rule": {
        "id": "small-orders",
        "then": "deny",
        "when": 'args.count > 10 && args.item != "pen"',
        "values": {"args": {"count": 11, "item": "ink"}},
        "whole": True,
        "states": [True, True],
    }
}


def call(tool: str, **others: Any) -> dict[str, Any]:
    return call_record(tool, **{"total_us": 12.5, **others})


def refused(tool: str, **others: Any) -> dict[str, Any]:
    facts = {"outcome": "refused", "decision": "deny", "why": "not_allowed", "reason": "too many"}
    return call(tool, **{**facts, "rule": "small-orders", "risk": "medium", "because": BECAUSE, **others})


def ids(text: str) -> list[str]:
    return re.findall(r'href="/dashboard/audit/(audit_\w+)"', text)


def link(text: str, words: str) -> str:
    found = re.search(rf'href="\?([^"]+)">{words}<', text)
    assert found is not None, text
    return unescape(found[1])


# --- the list ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["six", "five", "four", "three", "two", "one"]),
        ("tool=t*", ["three", "two"]),
        ("caller=grace*", ["two"]),
        ("outcome=refused", ["four"]),
        ("risk=medium", ["four"]),
        ("rule=small-*", ["four"]),
        ("approval=ap_7", ["five"]),
        ("category=approval", ["six"]),
        ("category=mcp_server&outcome=ok&tool=one", ["one"]),
        ("since=1h", ["six", "five", "four", "three", "two", "one"]),
        ("until=1h", []),
        ("tool=nothing", []),
    ],
)
def test_the_newest_records_are_first_and_each_filter_is_the_command_lines(
    visit: Visit, log: AuditLog, query: str, found: list[str]
) -> None:
    records = [call("one"), call("two", actor="grace#2"), call("three"), refused("four")]
    records += [call("five", approval="ap_7"), call("six", category="approval")]
    made = {log.append(record): record["tool"] for record in records}
    assert log.flush()
    answer = visit().get(f"/audit?{query}")
    assert answer.status_code == 200
    assert [made[each] for each in ids(answer.text)] == found


def test_pages_have_each_record_once_and_links_keep_what_was_searched(
    visit: Visit, log: AuditLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "ON_A_PAGE", 7)
    wanted = [log.append(call(f"t{number}", actor="a&b=c d")) for number in range(20)]
    log.append(call("other"))
    assert log.flush()
    browser, seen = visit(), []
    text = browser.get("/audit?caller=a%26b%3Dc+d").text
    for _ in range(2):
        seen += ids(text)
        text = browser.get(f"/audit?{link(text, 'Older records')}").text
    seen += ids(text)
    assert seen == wanted[::-1]
    assert "Older records" not in text


def test_a_search_that_finds_little_reads_so_many_lines_and_goes_on_by_a_link(
    visit: Visit, log: AuditLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "MOST_LINES", 10)
    wanted = log.append(call("rare"))
    for _ in range(15):
        log.append(call("frequent"))
    assert log.flush()
    browser = visit()
    text = browser.get("/audit?tool=rare").text
    assert ids(text) == []
    assert "No record is here" in text
    assert ids(browser.get(f"/audit?{link(text, 'Search further')}").text) == [wanted]


def test_a_time_that_is_none_is_said_beside_its_field_and_what_was_typed_is_kept(
    visit: Visit, log: AuditLog
) -> None:
    log.append(call("one"))
    assert log.flush()
    browser = visit()
    for path in ("/audit", "/audit/export"):
        answer = browser.get(f"{path}?since=yesterday&tool=o%22ne&caller={'x' * 300}")
        assert answer.status_code == 400
        assert 'id="wrong-since">Write a time as' in answer.text
        assert 'id="wrong-caller">This is longer' in answer.text
        assert 'value="yesterday"' in answer.text
        assert 'value="o&#34;ne"' in answer.text


def test_a_place_that_is_none_is_the_end_of_the_log(visit: Visit, log: AuditLog) -> None:
    log.append(call("one"))
    assert log.flush()
    for place in ("x", "2026_1_1", "%01", "..%2f", "9" * 5000):
        answer = visit().get(f"/audit?before={place}")
        assert (answer.status_code, len(ids(answer.text))) == (200, 1)


def test_what_the_log_says_is_missing_is_shown(visit: Visit, log: AuditLog) -> None:
    log.append(call("one"))
    log.state_lost(7, "the disk is full")
    log.append(call("two"))
    log.close()
    assert "7 records are missing here: the disk is full" in visit().get("/audit").text


def test_without_a_log_the_page_says_so(visit: Visit) -> None:
    for path in ("/audit", "/audit/export", "/audit/check", "/audit/audit_1"):
        answer = visit().get(path)
        assert (answer.status_code, "There is no audit log here." in answer.text) == (404, True)


# --- a record ---------------------------------------------------------------------------------------------


def test_a_refused_call_has_its_rule_what_the_rule_saw_and_what_would_change_it(
    visit: Visit, log: AuditLog
) -> None:
    identifier = log.append(refused("order"))
    assert log.flush()
    text = unescape(visit().get(f"/audit/{identifier}").text)
    for part in (
        "not_allowed",
        "too many",
        "small-orders",
        "args.count > 10",
        'args.count</code></th><td><code dir="ltr">11<',
        "What would change it",
        "args.count <= 10",
    ):
        assert part in text, part


@pytest.mark.parametrize(
    ("fields", "part"),
    [
        ({"because": {"lists": [{"list": "expose.tools", "nearest": "order"}]}}, "expose.tools has x"),
        ({"because": {"rate": {"rate": "2/minute", "tool": "x", "retry_after_seconds": 9}}}, "2/minute of x"),
        ({"because": {"asks": {"from": "high", "risk": "high", "by": "the effect exec"}}}, "from high on"),
        ({"because": {}, "outcome": "unknown"}, "There is no such name"),
        ({"because": "nonsense"}, "not_allowed"),
    ],
)
def test_each_kind_of_refusal_is_explained(
    visit: Visit, log: AuditLog, fields: dict[str, Any], part: str
) -> None:
    identifier = log.append(refused("x", **fields))
    assert log.flush()
    answer = visit().get(f"/audit/{identifier}")
    assert answer.status_code == 200
    assert part in unescape(answer.text)


def test_a_record_is_shown_to_its_last_member(visit: Visit, log: AuditLog, folder: str) -> None:
    identifier = log.append(call("order", nested={"deep": [1, {"er": None}]}, text="a" * 5000 + "end"))
    assert log.flush()
    line = reading.record_of(folder, identifier)
    assert line is not None
    text = unescape(re.sub("<[^>]+>", "", visit().get(f"/audit/{identifier}").text))
    for name, value in json.loads(line).items():
        assert name in text
        if isinstance(value, str | int | float):
            assert str(value) in text
    assert '"er": null' in text


@pytest.mark.parametrize(
    "name", ["audit_0", "audit_01M8BQNEE9163M5P6X0000016K", "x%0d%0a", "%2e%2e", "a" * 9999]
)
def test_an_id_that_no_record_has_is_said_to_be_unknown(visit: Visit, log: AuditLog, name: str) -> None:
    log.append(call("one"))
    assert log.flush()
    answer = visit().get(f"/audit/{name}")
    assert answer.status_code == 404
    assert "<script>" not in answer.text


def test_a_search_and_an_export_of_many_records_let_other_threads_run(
    visit: Visit, log: AuditLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(1000):
        log.append(call("one"))
    assert log.flush()
    pauses: list[float] = []
    monkeypatch.setattr(reading, "sleep", pauses.append)
    browser = visit()
    for path in ("/audit?tool=none", "/audit/export?tool=none"):
        pauses.clear()
        assert browser.get(path).status_code == 200
        assert len(pauses) >= 5, path
        assert min(pauses) > 0


# --- export -----------------------------------------------------------------------------------------------


def test_an_export_has_the_lines_of_the_log_that_the_page_shows(
    visit: Visit, log: AuditLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporting, "PART_BYTES", 1000)
    wanted = [log.append(call("wanted", number=number)) for number in range(30)]
    log.append(call("other"))
    log.close()
    browser = visit()
    href = re.search(r'href="/dashboard(/audit/export[^"]*)"', browser.get("/audit?tool=wanted").text)
    assert href is not None
    answer = browser.get(unescape(href[1]))
    assert answer.headers["content-type"] == "application/jsonl"
    assert "attachment" in answer.headers["content-disposition"]
    assert answer.headers["cache-control"] == "no-store"
    assert [json.loads(line)["id"] for line in answer.text.splitlines()] == wanted
    assert answer.text.endswith("}\n")
    assert browser.get("/audit/export?tool=nothing").text == ""


# --- the check --------------------------------------------------------------------------------------------


def check(browser: Browser) -> str:
    """Start a check, and return the page at its end."""
    browser.get("/audit/check")
    assert browser.send("/audit/check").headers["location"] == "/dashboard/audit/check"

    def ended() -> bool:
        return "The check runs" not in browser.get("/audit/check").text

    eventually(ended)
    return browser.last


def test_a_check_says_that_nothing_is_wrong_and_who_has_started_it(visit: Visit, log: AuditLog) -> None:
    for number in range(10):
        log.append(call(f"t{number}"))
    log.close()
    approver = visit("vera", "approver")
    assert "Verified" not in approver.get("/audit/check").text
    text = check(approver)
    assert "Verified: nothing is missing or changed." in text
    assert ">10<" in text
    seen = visit("bob", "viewer").get("/audit/check").text
    assert "vera" in seen
    assert "Check the log now" not in seen


def test_a_check_says_which_line_was_changed(visit: Visit, log: AuditLog, folder: str) -> None:
    for number in range(10):
        log.append(call(f"t{number}"))
    log.close()
    path = Path(folder, segments.names_in(folder)[0].file)
    path.write_bytes(path.read_bytes().replace(b'"tool":"t5"', b'"tool":"t4"'))
    text = check(visit())
    assert "Something is wrong with this log." in text
    assert re.search(r"line \d+ was changed", text)


def test_a_check_that_cannot_be_tried_says_why(visit: Visit, log: AuditLog, folder: str) -> None:
    log.append(call("one"))
    log.close()
    for key in Path(folder).glob("*.pub"):
        key.unlink()
    assert "expected one public key" in unescape(check(visit()))


def test_a_check_whose_process_was_killed_is_said_to_be_interrupted(
    visit: Visit, log: AuditLog, folder: str
) -> None:
    log.append(call("one"))
    log.close()
    browser = visit()
    check(browser)
    job = log_jobs.LogJob("verify", folder)
    eventually(lambda: not job.is_running)
    job.write(
        {
            "by": "ada",
            "began": 1.0,
            "of": 3,
            "counts": COUNTS,
        }
    )
    text = browser.get("/audit/check").text
    assert "The check was interrupted." in text
    assert "Check the log now" in text


def test_one_check_runs_at_a_time_and_the_page_says_how_far_it_is(
    visit: Visit, log: AuditLog, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    log.append(call("one"))
    log.close()
    browser = visit()
    check(browser)
    job = log_jobs.LogJob("verify", folder)
    eventually(lambda: not job.is_running)
    with open(job._lock, "rb") as held:  # as the process that checks
        fcntl.flock(held, fcntl.LOCK_EX)
        job.write(
            {
                "by": "bob",
                "began": 1.0,
                "of": 9,
                "counts": COUNTS,
            }
        )
        monkeypatch.setattr(log_jobs.subprocess, "Popen", None)  # none is started
        browser.get("/audit")
        browser.send("/audit/check")
        text = browser.get("/audit/check").text
    assert "The check runs" in text
    assert "4 / 9" in text
    assert "bob" in text


def test_a_check_ends_with_the_server_that_has_started_it(log: AuditLog, folder: str, tmp_path: Path) -> None:
    log.append(call("one"))
    log.close()
    os.mkfifo(tmp_path / "key")  # whoever opens it waits
    known = {"by": "ada", "public_key": str(tmp_path / "key")}
    code = (
        "from fastrpc.dashboard.log_jobs import LogJob; import time\n"
        f"LogJob('verify', {folder!r}).start({known!r})\n"
        "print('started', flush=True); time.sleep(60)"
    )
    job = log_jobs.LogJob("verify", folder)
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as server:
        try:
            assert server.stdout is not None
            assert server.stdout.readline() == b"started\n"
            eventually(lambda: job.is_running and "of" in job.state())
        finally:
            server.kill()
    eventually(lambda: not job.is_running)
    assert "ended" not in job.state()


def test_the_pages_by_themselves_show_the_log_of_an_option(
    log: AuditLog, folder: str, tmp_path: Path
) -> None:
    identifier = log.append(call("order"))
    log.close()
    place = tmp_path / "elsewhere"
    place.mkdir()
    environment = variables(place)
    command = ("dashboard", "serve", "--http", "127.0.0.1:0", "--audit", folder)
    ready = r"the dashboard is at (\S+?)/dashboard"
    with HttpProcess(*command, folder=place, environment=environment, ready=ready) as server:
        origin = f"http://127.0.0.1:{server.port}"
        code = fastrpc(place, "dashboard", "link", "--as", "ada", "--url", origin).strip().rpartition("#")[2]
        with httpx.Client(base_url=f"{origin}/dashboard", headers={"origin": origin}) as client:
            assert client.post("/enter", data={"code": code, "form_token": ""}).status_code == 303
            assert ids(client.get("/audit").text) == [identifier]
            assert "There is no audit log" not in client.get("/figures").text


def test_a_check_and_an_export_are_recorded_with_who_did_them(
    database: Database, log: AuditLog, folder: str
) -> None:
    log.append(call("one"))
    assert log.flush()
    browser = Browser(
        Dashboard(Sources(lambda: database, audit=log, log=AuditSource(folder)), AccessRules(None))
    )
    browser.sign_in(SignInStore(database).make_link("vera", "approver"))
    check(browser)
    assert browser.get("/audit/export?tool=one").status_code == 200
    assert log.flush()
    lines = [
        json.loads(line) for _, line in reading.entries(folder, reading.RecordFilter({"caller": "vera"}))
    ]
    assert [(each["category"], each["action"], each.get("search")) for each in lines] == [
        ("dashboard", "audit.check", None),
        ("dashboard", "audit.export", "tool=one"),
    ]


# --- attacks ----------------------------------------------------------------------------------------------


def test_no_text_of_a_caller_becomes_an_element(visit: Visit, log: AuditLog) -> None:
    because = {
        "rule": {
            "id": HOSTILE,
            "then": HOSTILE,
            "when": HOSTILE,
            "values": {HOSTILE: HOSTILE},
            "states": [HOSTILE],
        },
        "asks": {"from": HOSTILE, "risk": HOSTILE, "by": HOSTILE},
        "rate": {"rate": HOSTILE, "tool": HOSTILE, "retry_after_seconds": HOSTILE},
        "lists": [{"list": HOSTILE, "nearest": HOSTILE}],
    }
    named = ("actor", "class", "action", "outcome", "risk", "rule", "approval", "why", "reason", "category")
    fields = dict.fromkeys(named, HOSTILE)
    identifier = log.append(
        {**refused(HOSTILE, because=because), **fields, HOSTILE: {HOSTILE: [HOSTILE]}, "total_us": HOSTILE}
    )
    log.state_lost(3, HOSTILE)
    log.append(call("one"))
    log.close()
    browser = visit(HOSTILE)
    texts = [
        browser.get("/audit").text,
        browser.get(f"/audit/{identifier}").text,
        browser.get(
            "/audit",
        ).text,
        browser.get("/audit?tool=%22%3E%3Cscript%3Ealert(1)%3C/script%3E&since=%22%3E%3Cimg%20src=x%3E").text,
        check(browser),
    ]
    assert "&lt;script&gt;" in texts[0]
    assert "&lt;script&gt;" in texts[1]
    for text in texts:
        assert "<script>" not in text
        assert "<img" not in text
        assert not re.search(r"<[^>]*\son\w+=", re.sub(r'"[^"]*"', '""', text))
        assert "{{7*7}}" in text or "49" not in text


def test_characters_that_deceive_are_escaped_and_marked(visit: Visit, log: AuditLog) -> None:
    identifier = log.append(refused("pаypal\u202e", reason="a\u200bb"))
    assert log.flush()
    browser = visit()
    for path in ("/audit", f"/audit/{identifier}"):
        text = browser.get(path).text
        assert "\u202e" not in text
        assert "<mark>\\u202e</mark>" in text
        assert "<mark>\\u0430</mark>" in text
    assert "<mark>\\u200b</mark>" in text


@pytest.mark.parametrize(
    "changed", [{"origin": None}, {"origin": "https://evil.example"}, {"token": ""}, {"token": "0" * 64}]
)
def test_a_check_is_started_by_a_form_of_these_pages_alone(
    visit: Visit, log: AuditLog, folder: str, changed: dict[str, Any]
) -> None:
    log.append(call("one"))
    assert log.flush()
    browser = visit()
    browser.get("/audit/check")
    assert browser.send("/audit/check", **changed).status_code == 403
    assert log_jobs.LogJob("verify", folder).state() == {}


# --- in a browser -----------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.timeout(240)
@pytest.mark.parametrize("language", ["en", "ar"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_pages_about_a_servers_calls_are_accessible_in_both_languages_and_themes(
    tmp_path: Path, browser: Any, language: str, theme: str
) -> None:
    (tmp_path / "shop.py").write_text(TOOLS)
    (tmp_path / "guard.toml").write_text(GUARD)
    (tmp_path / "token").write_text(fastrpc(tmp_path, "token", "create", "--owner", "ada").splitlines()[0])
    command = ("serve", "shop.py", "--http", "127.0.0.1:0", "--guard", "guard.toml", "--dashboard")
    with HttpProcess(*command, folder=tmp_path, environment=variables(tmp_path)) as server:
        origin = f"http://127.0.0.1:{server.port}"
        with Client.sync(f"{origin}/mcp", token=(tmp_path / "token").read_text().strip()) as client:
            for count in (1, 2, 30, 3):
                with suppress(ClientError):
                    client.call_tool("order", {"item": "i" * 50, "count": count})
            with suppress(ClientError):
                client.call_tool("nothing_of_that_name_is_here", {})
        context = browser.new_context(bypass_csp=True, viewport={"width": 360, "height": 740})
        page = context.new_page()
        page.goto(
            fastrpc(
                tmp_path, "dashboard", "link", "--as", "vera", "--role", "approver", "--url", origin
            ).strip()
        )
        page.wait_for_selector("text=No call is here")
        choose(page, language, theme)
        page.click("a[href='/dashboard/audit']")
        page.wait_for_selector(".rows li:nth-child(5)")
        assert page.locator(".rows li").count() == 5
        page.click("summary")
        check_in_browser(page)
        page.fill("#since", "yesterday")
        page.click("form.fields button")
        page.wait_for_selector("#wrong-since")
        check_in_browser(page)
        page.fill("#since", "1h")
        page.fill("#outcome", "refused")
        page.click("form.fields button")
        page.wait_for_selector(".rows li")
        assert page.locator(".rows li").count() == 1
        with page.expect_download() as download:
            page.click("a[download]")
        (line,) = Path(download.value.path()).read_text().splitlines()
        assert json.loads(line)["outcome"] == "refused"
        page.click(".rows a")
        page.wait_for_selector("text=args.count <= 10")
        check_in_browser(page)
        page.goto(f"{origin}/dashboard/audit/check")
        page.click("form.actions button.yes")
        while page.locator("strong").count() == 0:
            page.wait_for_timeout(200)
            page.reload()
        check_in_browser(page)
        page.goto(f"{origin}/dashboard/figures")
        while page.locator("[role=status]").count():
            page.wait_for_timeout(200)
            page.reload()
        page.click("summary")
        check_in_browser(page)
        widths = page.evaluate("[...document.images].map(each => each.naturalWidth)")
        assert widths == [420, 420, 420]
        background = page.evaluate(PIXEL)
        assert (background < 128) == (theme == "dark")
        page.click("a[href*='/dashboard/comparison']")
        page.wait_for_selector("figure img")
        page.click("summary")
        check_in_browser(page)
        page.focus("input[type=checkbox]")
        page.keyboard.press("Space")  # the only line is not chosen any more, so those with the most calls are
        page.focus("main button")
        with page.expect_navigation():
            page.keyboard.press("Enter")
        assert page.evaluate("[...document.images].map(each => each.naturalWidth)") == [420]
