"""The peers of the benchmarks, none of them built: what is missing or wrong never becomes a figure.

The servers here are a few lines of Python each. Costs two seconds.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

pytestmark = pytest.mark.long

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BENCHMARKS = os.path.join(REPOSITORY, "benchmarks")
PEERS = os.path.join(BENCHMARKS, "peers")
OURS = ("build", "figures", "merging", "peers", "roster", "run", "workloads")

# A right server, with a place for a lie.
SERVER = """
import json, sys
for line in sys.stdin.buffer:
    try:
        message = json.loads(line)
    except ValueError:
        {broken}
        continue
    if message["method"] == "initialize":
        result = {{"protocolVersion": "2025-11-25", "capabilities": {{}}, "serverInfo": {{}}}}
    elif "id" not in message:
        continue
    else:
        text = message["params"]["arguments"]["text"]
        result = {{"content": [{{"type": "text", "text": text}}], "structuredContent": {{"result": text}}}}
        {lie}
    print(json.dumps({{"jsonrpc": "2.0", "id": message["id"], "result": result}}), flush=True)
"""


@pytest.fixture
def suite(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """The modules of the benchmarks, which live in a folder of programs, not in a package."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    before = {name: module for name, module in sys.modules.items() if name.partition(".")[0] in OURS}
    for name in before:
        del sys.modules[name]
    names = {"recipes": "peers.build", "roster": "roster", "figures": "figures"}
    names |= {"run": "run", "eof": "workloads.eof", "row": "workloads.row", "workloads": "workloads"}
    try:
        yield SimpleNamespace(**{key: importlib.import_module(name) for key, name in names.items()})
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] in OURS]:
            del sys.modules[name]
        sys.modules.update(before)


def server(suite: SimpleNamespace, lie: str = "pass", broken: str = "pass") -> Any:
    source = SERVER.format(lie=lie, broken=broken)
    return suite.roster.Peer("ours", {"echo": [sys.executable, "-S", "-c", source]})


def eof(suite: SimpleNamespace, peer: Any) -> dict[str, Any]:
    result: dict[str, Any] = suite.eof.measure(suite.eof.ROWS[0], peer, suite.row.Options())
    return result


def test_a_serial_server_answers_all_and_the_broken_line_too(suite: SimpleNamespace) -> None:
    peer = suite.roster.peer_of("python-loop", sys.executable)
    assert eof(suite, peer) == {"answers": 72, "parse_error": "yes"}


def test_further_members_beside_a_right_text_are_right(suite: SimpleNamespace) -> None:
    assert eof(suite, server(suite)) == {"answers": 72, "parse_error": "no"}


def test_answers_that_do_not_come_are_missing_from_the_figure(suite: SimpleNamespace) -> None:
    peer = server(suite, lie="if message['id'] > 40: continue")
    assert eof(suite, peer)["answers"] == 40


def test_a_server_that_ends_at_a_broken_line_is_distinguished_from_one_that_goes_on(
    suite: SimpleNamespace,
) -> None:
    assert eof(suite, server(suite, broken="sys.exit()"))["parse_error"] == "no, then nothing"


@pytest.mark.parametrize(
    ("lie", "reason"),
    [
        ("result['content'][0]['text'] += ' ' * (message['id'] == 50)", "not a right answer"),
        ("result['isError'] = message['id'] == 50", "not a right answer"),
        ("result['content'] *= 2", "not a right answer"),
        ("message['id'] = min(message['id'], 50)", "not a right answer"),
        ("print(json.dumps({'jsonrpc': '2.0', 'id': message['id'], 'result': result}))", "answered twice"),
        ("print('ready')", "not a right answer"),
    ],
)
def test_a_wrong_answer_voids_the_row(suite: SimpleNamespace, lie: str, reason: str) -> None:
    assert reason in eof(suite, server(suite, lie=lie)).get("void", "")


def test_every_peer_has_its_manifest_and_a_lock_that_names_the_same_version(suite: SimpleNamespace) -> None:
    for recipe in suite.recipes.RECIPES.values():
        assert recipe.version(), recipe.folder
        with open(os.path.join(recipe.source, recipe.lock), encoding="utf-8") as file:
            lock = file.read()
        assert recipe.package in lock, recipe.folder
        assert recipe.version() in lock, recipe.folder
    for name, (folder, _) in suite.recipes.PEERS.items():
        assert os.path.isdir(os.path.join(PEERS, folder)), name


def recipe_of(suite: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, tmp_path: Any, **changes: Any) -> Any:
    """A recipe whose sources lie in a folder of the test, entered under the name of a peer."""
    module: ModuleType = suite.recipes
    (tmp_path / "peer").mkdir()
    (tmp_path / "peer" / "requirements.in").write_text("mcp==9.8.7\n", encoding="utf-8")
    monkeypatch.setattr(module, "HERE", str(tmp_path))
    monkeypatch.setattr(module, "CACHE", str(tmp_path / "cache"))
    recipe = replace(
        suite.recipes.RECIPES["mcp"], **{"folder": "peer", "build": lambda recipe: None, **changes}
    )
    monkeypatch.setitem(module.RECIPES, "mcp", recipe)
    return recipe


def test_a_peer_is_not_built_until_it_is_and_again_when_its_sources_change(
    suite: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    recipe = recipe_of(suite, monkeypatch, tmp_path)
    assert suite.roster.sdk("mcp").missing == "not built: run benchmarks/peers/build.py"
    suite.recipes.build(recipe)
    built = suite.roster.sdk("mcp")
    assert (built.missing, built.facts["version"]) == ("", "9.8.7")
    assert built.commands["echo"][1].endswith("server.py")
    (tmp_path / "peer" / "server.py").write_text("pass\n", encoding="utf-8")
    assert "sources have changed" in suite.roster.sdk("mcp").missing


def test_a_missing_toolchain_is_named_and_never_a_number(
    suite: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    recipe = recipe_of(suite, monkeypatch, tmp_path, tools=("no-such-compiler",))
    with pytest.raises(suite.recipes.NotBuilt, match="no no-such-compiler on this machine"):
        suite.recipes.build(recipe)
    peer = suite.roster.sdk("mcp")
    assert peer.missing == "not built: no no-such-compiler on this machine"
    row = suite.eof.ROWS[0]
    entry = suite.figures.summary(row, peer, {"mcp": []})
    assert "figure" not in entry
    assert "not built: no no-such-compiler" in suite.figures.table([row], [entry])


def test_a_build_that_fails_says_where_its_log_is(
    suite: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    def fail(recipe: Any) -> None:
        suite.recipes.run(
            recipe, [sys.executable, "-c", "raise SystemExit('no such package')"], str(tmp_path)
        )

    recipe = recipe_of(suite, monkeypatch, tmp_path, build=fail)
    with pytest.raises(suite.recipes.NotBuilt, match=r"failed, see .*build\.log"):
        suite.recipes.build(recipe)
    assert "no such package" in (tmp_path / "cache" / "peer" / "build.log").read_text(encoding="utf-8")
    assert "failed" in suite.roster.sdk("mcp").missing


def test_fastrpc_is_held_to_its_bar_against_the_best_sdk_that_took_part(suite: SimpleNamespace) -> None:
    row = next(row for row in suite.workloads.ROWS if row.name == "W2")
    runs: dict[str, list[dict[str, object]]]
    values = {"fastrpc": 3000, "mcp-plain": 1, "rmcp": 100}
    runs = {name: [{row.figure: value}] * 2 for name, value in values.items()}
    runs["mcp-go"] = [{"void": "a wrong answer"}]
    peer = suite.roster.Peer("fastrpc", {})
    best, official = suite.figures.summary(row, peer, runs)["times_sdks"]
    assert (best["peer"], best["median"], best["holds"]) == ("rmcp", 30, False)
    assert (official["peer"], official["median"], official["holds"]) == ("mcp-plain", 3000, True)


def test_a_plain_tool_is_compared_with_plain_ones_and_a_coroutine_with_coroutines(
    suite: SimpleNamespace,
) -> None:
    row = next(row for row in suite.workloads.ROWS if row.name == "W2")
    values = {"fastrpc": 3000, "fastrpc-async": 900, "mcp-plain": 1, "mcp": 2, "rmcp": 100, "tower-mcp": 300}
    runs = {name: [{row.figure: value}] * 2 for name, value in values.items()}
    compared = {}
    for name in ("fastrpc", "fastrpc-async"):
        entry = suite.figures.summary(row, suite.roster.Peer(name, {}), runs)
        compared[name] = {times["which"]: (times["peer"], times["median"]) for times in entry["times_sdks"]}
    assert compared == {
        "fastrpc": {"best": ("rmcp", 30), "mcp": ("mcp-plain", 3000)},
        "fastrpc-async": {"best": ("tower-mcp", 3), "mcp": ("mcp", 450)},
    }


def test_where_sdks_are_listed_fastrpc_is_listed_twice(suite: SimpleNamespace) -> None:
    """Its plain tool and its coroutine, wherever SDKs are asked for the tools of echo.py."""
    takes_part, rows = suite.run.takes_part, suite.workloads.ROWS
    sdks = [suite.roster.peer_of(name, sys.executable) for name in suite.roster.SDKS]
    coroutine = suite.roster.peer_of("fastrpc-async", sys.executable)
    beside = {
        row.name
        for row in rows
        if row.workload not in ("W12", "W13") and any(takes_part(peer, row) for peer in sdks)
    }
    both = {row.name for row in rows if takes_part(coroutine, row)}
    assert both == beside - (set() if suite.roster.HTTP in coroutine.commands else {"W11", "W11-1"})
    assert {"W1", "W1-two", "W2", "W4", "W6", "W8", "eof"} <= both


# What is in front of `echo` in each SDK's source, and what is not.
SOURCES = {
    "mcp": (("mcp/server.py", "async def echo("),),
    "fastmcp": (("fastmcp/server.py", "async def echo("),),
    "mcp-plain": (("python_shapes.py", "\ndef plain("), ("mcp/shapes.py", "app_of(sys.argv[1], ")),
    "ts-v1": (("ts-v1/server.mjs", "async (given) => text(given.text)"),),
    "ts-v2": (("ts-v2/server.mjs", "async (given) => text(given.text)"),),
    "rmcp": (("rmcp/src/main.rs", "    fn echo("),),
    "rmcp-pipes": (("rmcp/src/main.rs", "    fn echo("),),
    "tower-mcp": (("tower-mcp/src/main.rs", "|input: Echo| async move"),),
    "go-sdk": (("go-sdk/main.go", "func echo("),),
    "mcp-go": (("mcp-go/main.go", "func echo("),),
}


def test_the_roster_says_of_each_echo_how_it_is_written(suite: SimpleNamespace) -> None:
    assert set(SOURCES) == set(suite.roster.SDKS)
    for name, places in SOURCES.items():
        for path, text in places:
            with open(os.path.join(PEERS, path), encoding="utf-8") as file:
                assert text in file.read(), name
        is_async = any("async" in text for _, text in places)
        assert suite.roster.WRITTEN[name] == ("async" if is_async else "plain"), name
    for name, keyword in (("echo.py", "\ndef echo("), ("echo_async.py", "\nasync def echo(")):
        with open(os.path.join(BENCHMARKS, "servers", name), encoding="utf-8") as file:
            assert keyword in file.read()
    assert (suite.roster.WRITTEN["fastrpc"], suite.roster.WRITTEN["fastrpc-async"]) == ("plain", "async")


def test_every_workload_says_what_it_represents_and_is_served(
    suite: SimpleNamespace,
) -> None:
    peers = [suite.roster.peer_of(name, sys.executable) for name in ("fastrpc", "bare", *suite.roster.SDKS)]
    for row in suite.workloads.ROWS:
        module = sys.modules[row.measure.__module__]
        assert module.__doc__, row.name
        assert any(row.server in peer.commands for peer in peers), row.name
    names = [row.name for row in suite.workloads.ROWS]
    assert len(names) == len(set(names))
