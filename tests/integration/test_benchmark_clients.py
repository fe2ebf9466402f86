"""W13, clients before the same server: fastrpc's is driven rightly, and a wrong answer voids the run.

Real clients and servers; one of the servers is made to lie in one answer. Costs ten seconds.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from typing import Any

import pytest
from support.skips import not_prepared

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BENCHMARKS = os.path.join(REPOSITORY, "benchmarks")
CLIENTS = os.path.join(BENCHMARKS, "clients")
sys.path += [BENCHMARKS, CLIENTS]

roster = pytest.importorskip("roster", reason="the benchmarks are not here")
import driving  # noqa: E402
import figures  # noqa: E402
from workloads import w13  # noqa: E402
from workloads.row import Options  # noqa: E402

pytestmark = pytest.mark.long

ROW = {row.name: row for row in w13.ROWS}
SHORT = Options(rounds=1, seconds=0.02)
OVER_STDIO = ("W13-sync", "W13-async", "W13-256")
OVER_HTTP = ("W13-http-sync", "W13-http-async", "W13-http-256")
needs_the_load_client = pytest.mark.skipif(
    not os.path.exists(os.path.join(BENCHMARKS, ".cache", "build", "client")),
    reason=not_prepared("the load client"),
)

# Answers calls of echo; runs the statement that is its argument before the third answer.
LIAR = r"""
import json, sys
calls = 0
for line in sys.stdin:
    message = json.loads(line)
    if message["method"] == "initialize":
        about = {"name": "a", "version": "1"}
        version = "2025-06-18" if sys.argv[1] == "older" else "2025-11-25"
        result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
    elif "id" not in message:
        continue
    else:
        result = {"content": [{"type": "text", "text": message["params"]["arguments"]["text"]}]}
        calls += 1
        if calls == 3 and sys.argv[1] != "older":
            exec(sys.argv[1])
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


@pytest.fixture(scope="module")
def fastrpc() -> Any:
    return roster.peer_of("fastrpc", sys.executable)


def measured(name: str, peer: Any) -> dict[str, Any]:
    report: dict[str, Any] = ROW[name].measure(ROW[name], peer, SHORT)
    assert "void" not in report, report
    assert report[ROW[name].figure] > 0
    return report


def told(lie: str, *options: str) -> tuple[int, dict[str, Any]]:
    """Run fastrpc's driver before the server that lies."""
    command = [sys.executable, os.path.join(CLIENTS, "fastrpc_client.py"), *options]
    command += ["--seconds", "0.02", "--warm-up", "0.02", "--", sys.executable, "-S", "-c", LIAR, lie]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    report: dict[str, Any] = json.loads(done.stdout)
    return done.returncode, report


@pytest.mark.parametrize("name", ROW)
def test_fastrpcs_client_is_measured_in_each_row(fastrpc: Any, name: str) -> None:
    report = measured(name, fastrpc)
    window = 256 if name.endswith("256") else 1
    assert (report["window"], report["version"]) == (window, driving.VERSION)
    assert ("loop" in report) is not name.endswith("-sync")
    assert ("p50" in report) is (window == 1)
    assert report["calls"] >= driving.LEAST_CALLS * window


@needs_the_load_client
@pytest.mark.parametrize("name", OVER_STDIO)
def test_what_the_ratio_is_taken_to_is_the_load_client_before_the_same_server(name: str) -> None:
    peer = roster.peer_of(roster.LOAD_CLIENT, sys.executable)
    assert ROW[name].base == peer.name
    report = measured(name, peer)
    assert (report["workload"], report["window"]) == ("echo", int(ROW[name].client[-1]))
    assert "server_cpu_us_per_call" in report


@needs_the_load_client
@pytest.mark.parametrize("name", OVER_HTTP)
def test_over_http_the_load_client_has_a_connection_for_each_call_at_once(name: str) -> None:
    report = measured(name, roster.peer_of(roster.LOAD_CLIENT, sys.executable))
    assert (report["workload"], report["window"]) == ("http", int(ROW[name].client[-1]))


@pytest.mark.parametrize("name", roster.CLIENT_SDKS)
@pytest.mark.parametrize("row", ["W13-async", "W13-256", "W13-memory-async", "W13-http-async"])
def test_the_client_of_an_sdk_that_is_built_is_measured(name: str, row: str) -> None:
    peer = roster.peer_of(name, sys.executable)
    assert ROW[row].server in peer.commands
    if not peer.missing:
        assert measured(row, peer)["version"] == driving.VERSION


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="processes cannot be pinned here")
def test_client_and_server_run_on_one_core(fastrpc: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    where = "import os; result['content'][0]['text'] = str(sorted(os.sched_getaffinity(0)))"
    core = max(os.sched_getaffinity(0))
    code, report = told(where, "--client-cpu", str(core))
    assert code == 1
    assert report["void"].endswith(f"got '[{core}]'")
    commands: list[list[str]] = []
    monkeypatch.setattr(w13, "report_of", lambda command, server: commands.append(command) or {})
    ROW["W13-async"].measure(ROW["W13-async"], fastrpc, SHORT)
    assert commands[0][commands[0].index("--client-cpu") + 1] == str(core)


@pytest.mark.parametrize("options", [(), ("--sync",), ("--window", "7")])
def test_a_right_server_is_measured(options: tuple[str, ...]) -> None:
    code, report = told("pass", *options)
    assert (code, report.get("void")) == (0, None)
    assert report["calls"] >= driving.LEAST_CALLS


@pytest.mark.parametrize("options", [(), ("--sync",), ("--window", "7")])
@pytest.mark.parametrize(
    ("lie", "reason"),
    [
        ("result['content'][0]['text'] += '.'", "expected the text"),
        ("result['isError'] = True", "the tool failed"),
        ("sys.exit(3)", "3"),
    ],
)
def test_a_wrong_answer_voids_the_run(lie: str, reason: str, options: tuple[str, ...]) -> None:
    code, report = told(lie, *options)
    assert code == 1
    assert reason in report["void"]
    assert "calls_per_second" not in report


@pytest.mark.parametrize("options", [(), ("--sync",), ("--window", "7")])
def test_a_call_that_is_never_answered_voids_the_run(options: tuple[str, ...]) -> None:
    code, report = told("message['id'] = 'another'", "--timeout", "1", *options)
    assert (code, report) == (1, {"void": "not done after 1 s"})


def test_another_version_voids_the_run() -> None:
    code, report = told("older")
    assert code == 1
    assert "2025-06-18" in report["void"]


def test_texts_vary_from_call_to_call_and_some_need_an_escape() -> None:
    texts = driving.texts(1000, random.Random(1))
    assert len(set(texts)) == 1000
    assert 60 < sum(json.dumps(text) != f'"{text}"' for text in texts) < 200


def test_the_warm_up_is_forgotten_and_every_answer_is_compared() -> None:
    load = driving.Load([], None, window=1, seconds=0.2, warm_up=0.1, is_sync=True)
    meter = driving.Meter(load)
    for number, sent in enumerate(meter.all_passes()):
        slow = 50 if number == 0 else 1
        meter.add(sent, sent, 100_000_000 * slow, [1000 * slow] * len(sent))
    assert (meter.passes, meter.report()["p99_9"]) == (2, 1.0)
    with pytest.raises(driving.Void, match="expected the text 'b', got 'c'"):
        meter.add(["a", "b"], ["a", "c"], 1)


def test_a_client_is_held_to_its_bar_against_the_official_one() -> None:
    row = ROW["W13-256"]
    values = {"fastrpc": 150_000.0, "mcp": 1000.0, "fastmcp": 500.0, roster.LOAD_CLIENT: 3e6}
    runs = {name: [{row.figure: value}] * 2 for name, value in values.items()}
    entry = figures.summary(row, roster.Peer("fastrpc", {}), runs)
    official, other = entry["times_sdks"]
    assert (official["peer"], official["median"], official["holds"], official["reached"]) == (
        ("mcp", 150, True, False)
    )
    assert (other["peer"], other["median"], "bar" in other) == ("fastmcp", 300, False)
    assert entry["ratio"] == {"median": 0.05, "least": 0.05, "most": 0.05, "to": roster.LOAD_CLIENT}
