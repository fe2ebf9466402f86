"""insights.query: calls are counted over servers' lives, each owner's apart, and old hours become days."""

from __future__ import annotations

import base64
import json
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

from fastrpc.tools.knowledge._store import call_counts, moving
from fastrpc.tools.knowledge._store.entries import Reader
from fastrpc.tools.knowledge._store.kind import KNOWLEDGE
from support.guarded_folder import fastrpc, variables
from support.http_client import HttpProcess

from fastrpc import Client
from fastrpc.storage import open_database

pytest_plugins = ["support.postgres"]
SERVE = [sys.executable, "-m", "fastrpc", "serve", "fastrpc.tools.knowledge"]


def test_calls_and_errors_are_counted_over_the_lives_of_servers(tmp_path: Path) -> None:
    with Client.sync(SERVE, env=variables(tmp_path)) as client:
        client.call_tool("memory.write", {"content": "a"})
        client.call_tool("memory.write", {"content": "b"})
        client.call_tool("memory.read", {"id": "mem_x"})
    with Client.sync(SERVE, env=variables(tmp_path)) as client:
        found = client.call_tool("insights.query", {"metric": "calls", "tool": "memory.write", "chart": True})
        assert found.structured["total"] == 2
        assert found.text.startswith("calls of memory.write by day: 2\n20")
        assert found.content[1]["mimeType"] == "image/svg+xml"
        ElementTree.fromstring(base64.b64decode(found.content[1]["data"]))
        assert client.call_tool("insights.query", {"metric": "errors", "by": "week"}).structured["total"] == 1
        assert client.call_tool("insights.query", {"metric": "refusals"}).structured["periods"] == []
        assert (
            client.call_tool("insights.query", {"metric": "entries", "by": "month"}).structured["total"] == 2
        )
        wrong = client.call_tool("insights.query", {"metric": "calls", "since": "May"})
        assert wrong.text == "since: expected a date such as 2026-05-01, got May."


def test_old_hours_become_days_and_owners_are_apart(database_url: str) -> None:
    database = open_database(database_url, KNOWLEDGE)
    day = int(time.time()) // 86_400 * 86_400 - 100 * 86_400
    old = {("ada", "t", day + hour * 3600): [2, 1, 0] for hour in range(24)}
    call_counts.add(database, {**old, ("bob", "t", day): [5, 0, 0]})
    call_counts.add(database, {("ada", "t", day + 3600): [1, 0, 0]})
    assert call_counts.of_calls(database, "ada", "calls", day, time.time(), "") == [(day, 49)]
    assert call_counts.of_calls(database, "ada", "errors", day, time.time(), "t") == [(day, 24)]
    assert call_counts.of_calls(database, "bob", "calls", day, time.time(), "t") == [(day, 5)]
    database.close()


def test_entries_are_counted_by_the_day_in_which_they_were_written(database_url: str) -> None:
    database, day = open_database(database_url, KNOWLEDGE), 86_400
    times = [-1.0, 0.0, day - 0.001, float(day), day + 0.5, 3.0 * day]
    records = [moving.Record(f"{at}", "fact", "", [], "", at) for at in times]
    moving.add(database, "ada", records)
    moving.add(database, "bob", records[:1])
    found = call_counts.of_entries(database, Reader("ada", ""), -day, 3 * day)
    assert found == [(-day, 1), (0, 2), (day, 2)]
    database.close()


def test_behind_a_guard_each_owner_counts_their_own_calls_and_refusals(tmp_path: Path) -> None:
    policy = tmp_path / "guard.toml"
    policy.write_text('[expose]\ntools = ["insights.*", "memory.*"]\n[approvals]\ntimeout_seconds = 0.5\n')
    token = json.loads(fastrpc(tmp_path, "token", "create", "--owner", "ada", "--json"))["token"]
    other = json.loads(fastrpc(tmp_path, "token", "create", "--owner", "bob", "--json"))["token"]
    options = ("serve", "fastrpc.tools.knowledge", "--http", "127.0.0.1:0", "--guard", str(policy))
    with HttpProcess(*options, environment=variables(tmp_path)) as server:
        with Client.sync(server.place, token=token) as ada:
            for _ in range(3):
                ada.call_tool("memory.search", {"query": "a"})
            asked = ada.call_tool("memory.forget_all", {"scope": "all", "confirm": "forget everything"})
            assert "approv" in asked.text
        with Client.sync(server.place, token=other) as bob:
            bob.call_tool("memory.search", {"query": "a"})
        server.kill()
        server.wait()
    with (
        HttpProcess(*options, environment=variables(tmp_path)) as server,
        Client.sync(server.place, token=token) as ada,
    ):
        found = ada.call_tool("insights.query", {"metric": "calls", "tool": "memory.search"})
        assert found.structured["total"] == 3
        assert ada.call_tool("insights.query", {"metric": "refusals"}).structured["total"] == 1
