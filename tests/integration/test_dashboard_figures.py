"""The figures of calls: what the pages and charts show is what the audit log has, counted once."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from html import unescape
from typing import Any
from xml.etree import ElementTree

import pytest
from support import logged_dashboard
from support.call_records import timed_call as call
from support.dashboard_browser import HOSTILE, Browser
from support.waiting import eventually

from fastrpc.dashboard import counting
from fastrpc.dashboard.app import Dashboard
from fastrpc.dashboard.log_jobs import LogJob
from fastrpc.dashboard.pages.figures import Figures
from fastrpc.guard.audit import AuditLog
from fastrpc.guard.audit import log as log_module

pytest_plugins = ["support.guard_database", "support.dashboard"]
folder, dashboard = logged_dashboard.counting_folder, logged_dashboard.dashboard
Visit = Callable[..., Browser]
QUERIES = ["span=year", "span=", "tool=%01&caller=%F0%9F%92%A9", "theme=x", "span=hour&span=day"]
SVG = "{http://www.w3.org/2000/svg}"


def facts(text: str) -> dict[str, str]:
    return dict(re.findall(r"<div><dt>([^<]+)</dt><dd dir=\"ltr\">([^<]+)</dd></div>", text))


def counted(folder: str) -> dict[str, Any]:
    """Count what is new, in this process."""
    job = LogJob("count", folder)
    os.makedirs(job.place, exist_ok=True)
    counting.work(job, {})
    return job.state()


# --- counting ---------------------------------------------------------------------------------------------


def test_what_is_counted_is_what_the_log_has_by_tool_and_caller(log: AuditLog, folder: str) -> None:
    for number in range(200):
        log.append(call("order", ms=number + 1))
    for outcome in ("refused", "refused", "unknown", "tool_error", "error", "cancelled"):
        log.append(call("wipe", "eve#2", outcome))
    assert log.flush()
    state = counted(folder)
    for span in counting.SPANS:
        whole = Figures(state, span, "", "").total
        assert (whole.calls, whole.errors, whole.refusals) == (206, 3, 3)
        orders = Figures(state, span, "order", "").total
        assert (orders.calls, orders.errors, orders.refusals) == (200, 0, 0)
        assert orders.p50 == pytest.approx(100, rel=0.05)
        assert orders.p99 == pytest.approx(198, rel=0.05)
        assert Figures(state, span, "", "eve#2").total.calls == 6
        assert Figures(state, span, "order", "eve#2").total.calls == 0
        found = Figures(state, span, "", "")
        assert [each.label for each in found.by(1)] == ["order", "wipe"]
        assert sum(each.calls for each in found.over_time) == 206


def test_the_slots_have_the_times_of_their_calls(
    log: AuditLog, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = int(time.time())
    agos = {"old": 8 * 86400, "week": 6 * 86400, "day": 20 * 3600, "hour": 1800, "now": 0}
    for tool, ago in agos.items():
        moment = (now - ago) * 1000
        monkeypatch.setattr(log_module, "_now", lambda moment=moment: moment)
        log.append(call(tool))
    assert log.flush()
    state = counted(folder)
    spans = {"hour": {"hour", "now"}, "day": {"day", "hour", "now"}, "week": {"day", "hour", "now", "week"}}
    for span, tools in spans.items():
        assert set(Figures(state, span, "", "").names(1)) == tools
        step, slots = counting.SPANS[span]
        for tool in tools:
            mine = Figures(state, span, tool, "").over_time
            places = [place for place, each in enumerate(mine) if each.calls]
            assert places == [slots - 1 - (int(state["as_of"]) // step - (now - agos[tool]) // step)]


def test_each_record_is_counted_once_however_often_and_while_the_log_grows(
    log: AuditLog, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting, "PART", 700)  # some lines
    read: list[int] = []
    real = os.pread
    monkeypatch.setattr(os, "pread", lambda *given: (read.append(given[1]), real(*given))[1])
    for round_number in range(1, 6):
        for number in range(20):
            log.append(call(f"t{number % 3}"))
        assert log.flush()
        before = len(read)
        assert Figures(counted(folder), "hour", "", "").total.calls == 20 * round_number
        assert len(read) - before < 40  # nothing from the beginning
    assert Figures(counted(folder), "hour", "", "").total.calls == 100


def test_what_is_no_outcome_of_a_call_is_not_counted(log: AuditLog, folder: str) -> None:
    log.append(call("order"))
    log.append({**call("order"), "outcome": "begun"})  # the first record of mode strict
    log.append({**call("order"), "category": "approval", "outcome": "asked"})
    log.append({"category": "mcp_server", "actor": "ada", "action": "ping", "outcome": "ok"})
    log.state_lost(5, "the disk is full")
    log.close()
    for path in os.listdir(folder):
        if path.endswith(".jsonl"):
            with open(os.path.join(folder, path), "ab") as file:
                file.write(b'no JSON\n[1]\n{"tool":1}\n{"id":7,"tool":"x","outcome":"ok"}\n{"id":"audit_')
    assert Figures(counted(folder), "hour", "", "").total.calls == 1


def test_names_and_values_of_any_type_are_counted(log: AuditLog, folder: str) -> None:
    log.append(call("x" * 5000, {"userId": "u1"}))
    log.append({**call("order"), "total_us": "fast"})
    log.append({**call("order"), "total_us": -1})
    log.append({**call("order"), "tool": None})
    assert log.flush()
    found = Figures(counted(folder), "hour", "", "")
    assert found.total.calls == 4
    assert max(map(len, found.names(1))) == counting.LONGEST_NAME


def test_very_many_tools_and_callers_are_counted_together(
    log: AuditLog, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting, "MOST_PAIRS", 10)
    for number in range(50):
        log.append(call(f"t{number}", f"c{number}"))
    assert log.flush()
    found = Figures(counted(folder), "week", "", "")
    assert found.total.calls == 50
    assert len(found.names(1)) <= 20  # ten in each of at most two slots
    assert found.by(1)[0].label == ""


def test_segments_that_retention_has_dropped_are_forgotten(log: AuditLog, folder: str) -> None:
    log.append(call("order"))
    log.close()
    assert len(counted(folder)["at"]) == 1
    for path in os.listdir(folder):
        if path.endswith(".jsonl"):
            os.unlink(os.path.join(folder, path))
    state = counted(folder)
    assert state["at"] == {}
    assert Figures(state, "hour", "", "").total.calls == 1  # what was counted stays


def test_a_state_of_another_form_or_a_damaged_one_is_counted_anew(log: AuditLog, folder: str) -> None:
    log.append(call("order"))
    assert log.flush()
    counted(folder)
    job = LogJob("count", folder)
    for state in ({"format": 0, "rows": "x", "at": []}, {}):
        job.write(state)
        assert Figures(counted(folder), "hour", "", "").total.calls == 1
    with open(job._path, "w") as file:
        file.write('{"format": 1, "rows"')
    assert Figures(counted(folder), "hour", "", "").total.calls == 1


# --- the page ---------------------------------------------------------------------------------------------


def test_the_page_has_the_figures_and_goes_on_counting_in_another_process(
    visit: Visit, log: AuditLog
) -> None:
    for number in range(1234):
        log.append(call("order", ms=number + 1))
    log.append(call("wipe", "eve#2", "refused"))
    assert log.flush()
    browser = visit("vera", "viewer")
    found = facts(browser.get("/figures").text)
    assert (found["Calls"], found["Errors"], found["Refusals"]) == ("1,235", "0", "1")
    assert float(found["p50"].split()[0]) == pytest.approx(617, rel=0.06)
    log.append(call("wipe", "eve#2", "error"))
    assert log.flush()
    found = facts(browser.get("/figures?tool=wipe&caller=eve%232&span=week").text)
    assert (found["Calls"], found["Errors"], found["Refusals"]) == ("2", "1", "1")


def test_the_table_has_the_values_of_the_charts(visit: Visit, log: AuditLog) -> None:
    for number in range(50):
        log.append(call("order", outcome="error" if number % 5 == 0 else "ok"))
    assert log.flush()
    text = visit().get("/figures?span=day").text
    found = re.findall(r'<tr><th scope="row" dir="ltr">.*?</tr>', text, re.DOTALL)
    rows = [re.findall(r"<t[hd][^>]*>([^<]*)</t[hd]>", row) for row in found]
    assert len(rows) == counting.SPANS["day"].slots
    assert sum(int(row[1]) for row in rows) == 50
    assert sum(int(row[3]) for row in rows) == 10
    labels = dict(re.findall(r'src="/dashboard/figures/(\w+)\.svg[^>]*alt="([^"]+)"', text))
    assert set(labels) == {"calls", "failures", "times"}
    highest = max(float(row[2].replace(",", "")) for row in rows)
    assert f"highest {highest:.3g}"[:12] in labels["calls"]


@pytest.mark.parametrize("name", ["calls", "failures", "times"])
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("language", ["en", "ar"])
def test_a_chart_is_an_image_of_this_origin_without_style_or_script(
    visit: Visit, log: AuditLog, name: str, theme: str, language: str
) -> None:
    for number in range(30):
        log.append(call("order", ms=number + 1, outcome="ok" if number % 3 else "refused"))
    assert log.flush()
    browser = visit()
    browser.send("/choose", language=language)
    text = browser.get("/figures").text
    source = re.search(rf'src="/dashboard(/figures/{name}\.svg[^"]+)"', text)
    assert source is not None
    answer = browser.get(unescape(source[1]).replace("theme=light", f"theme={theme}"))
    assert answer.headers["content-type"].startswith("image/svg+xml")
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    image = ElementTree.fromstring(answer.text)
    assert image.tag == f"{SVG}svg"
    tags = {each.tag.removeprefix(SVG) for each in image.iter()}
    assert tags == {"svg", "rect", "line", "text", "path"}
    names = {key for each in image.iter() for key in each.attrib}
    assert not [key for key in names if key in ("style", "class") or key.startswith("on")]
    paths = [each.attrib["d"] for each in image.iter(f"{SVG}path")]
    assert all(paths)
    label = re.search(rf'/{name}\.svg[^>]*alt="([^"]+)"', text)
    assert label is not None
    assert image.attrib["aria-label"] == unescape(label[1])
    scale = next(image.iter(f"{SVG}text"))
    assert (float(scale.attrib["x"]) > 210) == (language == "ar")  # the scale is where reading begins
    points = [float(x) for path in paths for x in re.findall(r"[ML]([\d.]+) ", path)]
    newest = points[-1]  # the slot of now is at the end of time
    assert (newest < 100) == (language == "ar")


def test_without_calls_and_without_a_log_the_page_says_so(visit: Visit, folder: str) -> None:
    browser = visit()
    assert browser.get("/figures").status_code == 404
    AuditLog(folder).close()
    answer = browser.get("/figures")
    assert answer.status_code == 200
    assert facts(answer.text)["Calls"] == "0"
    image = browser.get("/figures/times.svg")
    assert image.status_code == 200
    ElementTree.fromstring(image.text)


@pytest.mark.parametrize("query", QUERIES)
def test_a_choice_that_is_none_is_not_an_error(visit: Visit, log: AuditLog, query: str) -> None:
    log.append(call("order"))
    assert log.flush()
    browser = visit()
    assert browser.get(f"/figures?{query}").status_code == 200
    assert browser.get(f"/figures/calls.svg?{query}").status_code == 200
    assert browser.get(f"/figures/nothing.svg?{query}").status_code == 404


def test_a_page_is_small_with_very_many_calls_and_names(visit: Visit, log: AuditLog) -> None:
    for number in range(3000):
        log.append(call(f"tool-{number % 250}", f"caller-{number % 7}"))
    assert log.flush()
    browser = visit()
    eventually(lambda: facts(browser.get("/figures?span=week").text).get("Calls") == "3,000")
    assert len(browser.last) < 150_000


def test_no_text_of_a_caller_becomes_an_element(visit: Visit, log: AuditLog) -> None:
    log.append(call(HOSTILE, HOSTILE))
    log.append(call("pаypal\u202e", {HOSTILE: HOSTILE}))
    assert log.flush()
    text = visit().get("/figures").text
    assert "&lt;script&gt;" in text
    assert "<mark>\\u202e</mark>" in text
    assert "\u202e" not in re.sub(r'value="[^"]*"', "", text)
    assert "<script>" not in text
    assert "<img src=x" not in text
    assert not re.search(r"<[^>]*\son\w+=", re.sub(r'"[^"]*"', '""', text))


def test_a_stranger_gets_no_chart(dashboard: Dashboard, log: AuditLog) -> None:
    assert Browser(dashboard).get("/figures/calls.svg").status_code == 303
