"""Exports of the audit log at the dashboard: one at a time for each person, and bounded in time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from support import logged_dashboard
from support.dashboard_browser import Browser
from support.dashboard_shop import Shop
from support.guarded_folder import records
from support.waiting import eventually

from fastrpc.dashboard import exporting
from fastrpc.dashboard.exporting import Export, ExportRuns
from fastrpc.guard.audit import AuditLog

pytest_plugins = ["support.guard_database", "support.dashboard"]
folder, dashboard = logged_dashboard.folder, logged_dashboard.dashboard
Visit = Callable[..., Browser]
RUNS = "An export of yours is being sent"
TOOLS = """
from fastrpc import Server

app = Server("shop")

@app.tool(risk="none")
def ping() -> str:
    "Answer."
    return "pong"
"""
LINES = 5_000
"""Lines of a log that do not fit into the buffers of a connection."""


def begun(folder: str, person: str) -> Export:
    return Export(folder, person, {}, "", "")


def test_a_second_export_of_a_person_is_refused_with_a_sentence_until_the_first_has_ended(
    visit: Visit, log: AuditLog, folder: str
) -> None:
    log.append({"tool": "one"})
    assert log.flush()
    ada, bob = visit("ada"), visit("bob", "viewer")
    first = begun(folder, "ada")
    answer = ada.get("/audit/export")
    assert answer.status_code == 429
    assert RUNS in answer.text
    assert bob.get("/audit/export").status_code == 200
    with pytest.raises(ExportRuns):
        begun(folder, "ada")
    del first  # a response that was never sent
    for _ in range(2):
        assert json.loads(ada.get("/audit/export").text)["tool"] == "one"


@pytest.mark.parametrize("query", ["", "?tool=none"])
def test_an_export_that_takes_too_long_is_broken_off_before_its_end(
    visit: Visit, log: AuditLog, query: str, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    log.append({"tool": "one"})
    assert log.flush()
    browser = visit()
    monkeypatch.setattr(exporting, "MOST_SECONDS", 0.0)
    with pytest.raises((httpx.HTTPError, AssertionError)):  # there is no last part
        browser.get(f"/audit/export{query}")
    assert "was broken off after 0 s: ada" in caplog.text
    monkeypatch.undo()
    assert browser.get("/audit/export").status_code == 200


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    found = Shop(tmp_path, TOOLS)
    log = AuditLog(str(tmp_path / "state" / "audit"))
    for number in range(LINES):
        log.append({"tool": f"t{number}", "pad": "x" * 4000})
    log.close()
    with found.begin("--workers", "2"):
        yield found


def test_the_limit_holds_for_all_workers_and_ends_when_the_browser_goes(shop: Shop) -> None:
    browser = shop.visit()
    with (
        httpx.Client(base_url=shop.url, cookies=browser.cookies, timeout=60) as client,
        client.stream("GET", "/dashboard/audit/export") as reading,
    ):
        assert reading.status_code == 200
        parts = reading.iter_raw(1000)
        assert next(parts)  # and no more: the server waits for its browser
        for _ in range(6):  # each a new connection, which any worker may get
            assert RUNS in browser.get("/audit/export").text
        parts.close()
    eventually(lambda: browser.get("/audit/export").status_code == 200)
    made = [each for each in records(shop.folder) if each.get("action") == "audit.export"]
    assert made
