"""W12, tools as people write them: every shape is served rightly, and a wrong answer to any voids the run.

The load client is shown fastrpc's own server of each shape, and one that lies in one answer.
Real processes over pipes, each run as short as it can be. Costs fifteen seconds.
"""

from __future__ import annotations

import importlib
import os
import sys
from dataclasses import replace
from typing import Any

import pytest
from test_reference_server import BENCHMARKS, load, program

sys.path.append(BENCHMARKS)

roster = pytest.importorskip("roster", reason="the benchmarks are not here")
from workloads import w12  # noqa: E402
from workloads.row import Options  # noqa: E402

pytestmark = pytest.mark.long

ROW = {row.name.removeprefix("W12-"): row for row in w12.ROWS}
SHORT = Options(rounds=1, seconds=0.02)
BRIEF = ("--seconds", "0.02", "--warm-up", "0.02", "--timeout", "50")

# Answers one kind of request; runs the statement that is its second argument before the tenth answer.
LIAR = r"""
import json, os, sys
kind, lie = sys.argv[1:3]
calls = 0


def block(text):
    return {"type": "text", "text": text}


def failed(text):
    return {"result": {"content": [block(text)], "isError": True}}


def right(params):
    if kind == "ping":
        return {"result": {}}
    if kind == "resource":
        text = f"A note, number {params['uri'].rpartition('/')[2]}"
        return {"result": {"contents": [{"uri": params["uri"], "text": text}]}}
    text = params["arguments"]["text"]
    if kind == "prompt":
        return {"result": {"messages": [{"role": "user", "content": block(text)}]}}
    if kind == "unknown":
        return {"error": {"code": -32602, "message": f"Unknown tool: {params['name']}"}}
    if kind == "misfit":
        return failed(f"text: expected a string, got {text!r}")
    if kind == "failing":
        return failed(f"Error: {text}")
    if kind == "structure":
        record = {"text": text}
        return {"result": {"content": [block(json.dumps(record))], "structuredContent": record}}
    return {"result": {"content": [block(text), block(text)]}}


METHODS = {"ping": "ping", "resource": "resources/read", "prompt": "prompts/get"}
unread = b""
while data := os.read(0, 1 << 20):
    *lines, unread = (unread + data).split(b"\n")
    for request in map(json.loads, lines):
        if request["method"] == "initialize":
            about = {"name": "a", "version": "1"}
            reply = {"result": {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": about}}
        elif "id" not in request:
            continue
        else:
            assert request["method"] == METHODS.get(kind, "tools/call")
            reply = right(request["params"])
            calls += 1
            if calls == 10:
                exec(lie)
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **reply}), flush=True)
"""

RESULT, BLOCK = "reply['result']", "reply['result']['content'][0]"
LIES = [
    ("structure", f"{BLOCK}['text'] = '{{}}'", "structuredContent is not what the text holds"),
    ("structure", f"{BLOCK}['text'] = '{{'", "structuredContent is not what the text holds"),
    ("structure", f"del {RESULT}['structuredContent']", "expected structuredContent"),
    ("structure", f"{RESULT}['structuredContent']['more'] = 1", "expected structuredContent"),
    ("structure", f"{RESULT}['isError'] = True", "the tool failed"),
    ("texts", f"{RESULT}['content'].pop()", "expected two text blocks"),
    ("texts", f"{RESULT}['content'][1]['text'] += '.'", "expected the text"),
    ("texts", f"{RESULT}['content'][1]['type'] = 'image'", "expected one text block"),
    ("texts", f"{RESULT}['isError'] = True", "the tool failed"),
    ("failing", f"{RESULT}['isError'] = False", "expected isError"),
    ("failing", f"{BLOCK}['text'] += '.'", "expected an error that ends with"),
    ("failing", f"{BLOCK}['text'] = ''", "expected an error that ends with"),
    ("failing", "reply = {'error': {'code': -32603, 'message': 'broken'}}", "without a result"),
    ("misfit", f"del {RESULT}['isError']", "expected isError"),
    ("misfit", f"{BLOCK}['text'] = 'wrong arguments'", "expected an error that names text"),
    ("unknown", "reply['error']['code'] = -32601", "expected error -32602, got -32601"),
    ("unknown", "reply['error']['message'] = 'no'", "expected an error that names nobody"),
    ("unknown", "reply = {'result': {}}", "without an error"),
    ("ping", "reply = {'error': {'code': -32601, 'message': 'no'}}", "without a result"),
    ("ping", "request['id'] += 1", "answered twice"),
    ("resource", f"{RESULT}['contents'][0]['uri'] += '0'", "expected one text of bench://notes/"),
    ("resource", f"{RESULT}['contents'][0]['text'] += '0'", "expected the text of bench://notes/"),
    ("resource", f"{RESULT}['contents'] = []", "expected one text of bench://notes/"),
    ("prompt", f"{RESULT}['messages'][0]['content']['text'] += '.'", "expected the text"),
    ("prompt", f"{RESULT}['messages'] *= 2", "expected one message of the user"),
    ("prompt", f"{RESULT}['messages'][0]['role'] = 'assistant'", "expected one message of the user"),
]


def told(kind: str, lie: str) -> tuple[int, dict[str, Any]]:
    """Run the client against the server that lies."""
    command = ("--", sys.executable, "-S", "-c", LIAR, kind, lie)
    return load(program("client"), *BRIEF, "--workload", kind, "--window", "7", *command)


@pytest.mark.parametrize("kind", sorted({kind for kind, _, _ in LIES}))
def test_a_right_server_is_measured(kind: str) -> None:
    code, report = told(kind, "pass")
    assert (code, report.get("void"), report["exit_code"]) == (0, None, 0), report
    assert report["calls"] > 10


@pytest.mark.parametrize(("kind", "lie", "reason"), LIES)
def test_a_wrong_answer_voids_the_run(kind: str, lie: str, reason: str) -> None:
    code, report = told(kind, lie)
    assert code == 1
    assert reason in report["void"], report


@pytest.fixture(scope="module")
def peers() -> dict[str, Any]:
    program("client")
    known = {name: roster.peer_of(name, sys.executable) for name in ("fastrpc", roster.PLAIN)}
    return {name: replace(peer, warm_up=0.05) for name, peer in known.items()}


def test_each_shape_is_a_row_and_each_row_is_of_a_shape() -> None:
    assert tuple(ROW) == (*w12.SHAPES, *(f"http-{name}" for name in w12.OVER_HTTP))
    assert set(w12.SHAPES) == set(roster.SHAPES)
    assert {row.base for row in ROW.values()} == {roster.PLAIN}


@pytest.mark.parametrize("shape", w12.SHAPES)
def test_fastrpc_serves_each_shape_rightly(peers: dict[str, Any], shape: str) -> None:
    if ROW[shape].server not in peers["fastrpc"].commands:
        pytest.skip("without pydantic")
    report = ROW[shape].measure(ROW[shape], peers["fastrpc"], SHORT)
    assert (report.get("void"), report["window"]) == (None, 256)


@pytest.mark.parametrize("shape", ["ping", "unknown", "texts"])
def test_what_the_ratio_is_taken_to_is_the_plain_echo(peers: dict[str, Any], shape: str) -> None:
    report = ROW[shape].measure(ROW[shape], peers[roster.PLAIN], SHORT)
    assert (report.get("void"), report["workload"]) == (None, "echo")


def test_sdks_serve_shapes_of_the_suite() -> None:
    for name, shapes in roster.SDK_SHAPES.items():
        assert set(shapes) < set(roster.SHAPES), name
        assert {"context", "coroutine", "model", "texts", "tool-error", "resource", "prompt"} <= set(shapes)
    for name, shapes in roster.SDK_SHAPES_OVER_HTTP.items():
        assert set(shapes) <= set(w12.OVER_HTTP), name


@pytest.mark.parametrize("name", roster.SDK_SHAPES)
@pytest.mark.parametrize("shape", ["texts", "tool-error", "prompt"])
def test_an_sdk_that_is_built_serves_its_shapes_rightly(name: str, shape: str) -> None:
    peer = roster.peer_of(name, sys.executable)
    if peer.missing:
        assert peer.commands[roster.shaped(shape)] == [], "where it is not built there is nothing to run"
        return
    report = ROW[shape].measure(ROW[shape], peer, SHORT)
    assert (report.get("void"), report["window"]) == (None, 256)


def test_sdks_take_part_in_the_first_rounds_only(monkeypatch: pytest.MonkeyPatch) -> None:
    run = importlib.import_module("run")
    measured: list[str] = []

    def measure(row: Any, peer: Any, options: Any) -> dict[str, Any]:
        measured.append(peer.name)
        return {row.figure: 1.0}

    row = replace(ROW["context"], measure=measure)
    peers = [roster.Peer(name, {row.server: ["true"]}) for name in (roster.PLAIN, "fastrpc", "mcp")]
    entries = run.run_rows([row], peers, Options(rounds=5))
    assert (measured.count("fastrpc"), measured.count("mcp")) == (5, w12.SDK_ROUNDS)
    assert [len(entry["runs"]) for entry in entries] == [5, 5, w12.SDK_ROUNDS]
    assert entries[2]["ratio"]["median"] == 1.0


def test_without_pydantic_its_row_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roster, "can_import", lambda python, modules: modules != "pydantic")
    commands = roster.peer_of("fastrpc", sys.executable).commands
    assert {roster.shaped(shape) for shape in roster.SHAPES} - commands.keys() == {roster.shaped("model")}
    for asked in commands.keys() & set(map(roster.shaped, roster.SHAPES)):
        assert os.path.basename(commands[asked][1]) == "shapes.py"
