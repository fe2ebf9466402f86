"""`make swap`: how a server of its list is run, and how the outcome is classed and shown."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from swap import fixtures, report
from swap.observing import error_in, run_server
from swap.report import BY_CHOICE, DIFFERENT, NOT_STARTED, SAME
from swap.roster import Entry, entry_of
from swap.run import is_worse, kind_of, measured, reaches_code, shown, steady, verdict

from fastrpc.swap.comparison import Difference, differences

ENTRY = {
    "package": "git-server==1.0",
    "framework": "SDK 1 Server",
    "command": ["git-server", "{folder}/repository"],
    "env": {"DATA": "{folder}"},
    "calls": [["log", {"path": "{folder}/repository", "most": [2]}]],
    "reads": ["file://{folder}/note.txt"],
    "prompts": [["review", {"of": "a"}]],
}
SERVER = """
import os, sys
from fastrpc import Server

app = Server("one")

@app.tool
def where(path: str) -> list:
    return [path, os.path.exists(path), os.environ["HOME"]]

print("a line for the log", file=sys.stderr)
app.run()
"""


def observed(*answers: dict[str, Any], **members: Any) -> dict[str, Any]:
    empty: dict[str, Any] = {name: [] for name in ("tools", "resources", "resourceTemplates", "prompts")}
    shared = {"serverInfo": {"name": "one"}, "capabilities": {"tools": {}}}
    return {**empty, **shared, "answers": list(answers), **members}


def answer(text: str) -> dict[str, Any]:
    return {"of": "tool now", "result": {"content": [{"type": "text", "text": text}]}}


# --- the list and the folder ------------------------------------------------------------------------------


def test_an_entry_takes_its_folder_and_its_programs(tmp_path: Path) -> None:
    entry = entry_of(ENTRY)
    assert entry.name == "git-server"
    command, env = entry.filled("/folder", str(tmp_path))
    assert command == ["git-server", "/folder/repository"]
    assert env == {"HOME": "/folder/home", "DATA": "/folder"}
    (tmp_path / "git-server").touch()
    assert entry.filled("/folder", str(tmp_path))[0][0] == str(tmp_path / "git-server")
    assert entry.placed("/folder").requests() == [
        {"tool": "log", "arguments": {"path": "/folder/repository", "most": [2]}},
        {"resource": "file:///folder/note.txt"},
        {"prompt": "review", "arguments": {"of": "a"}},
    ]


def test_the_command_of_an_entry_is_its_name_unless_given() -> None:
    entry = entry_of({"package": "time-server[all]==1.0", "framework": "FastMCP 4"})
    assert (entry.name, entry.command) == ("time-server", ["time-server"])


def test_the_folder_is_the_same_each_time(tmp_path: Path) -> None:
    def contents() -> dict[str, bytes]:
        found = [path for path in tmp_path.rglob("*") if path.is_file() and ".git" not in path.parts]
        head = tmp_path / "folder" / "repository" / ".git" / "refs" / "heads" / "main"
        return {str(path): path.read_bytes() for path in [*found, head]}

    fixtures.make_folder(str(tmp_path / "folder"))
    before = contents()
    (tmp_path / "folder" / "files" / "left.txt").write_text("by a server")
    fixtures.make_folder(str(tmp_path / "folder"))
    assert contents() == before


# --- a run ------------------------------------------------------------------------------------------------


def test_a_server_gets_its_requests_and_one_for_an_unknown_tool_in_its_folder(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    folder = str(tmp_path / "folder")
    note = os.path.join(folder, "files", "note.txt")
    entry = Entry("one", "one==1", "", [], calls=[("where", {"path": note}), ("where", {})])
    log = str(tmp_path / "log")
    command = [sys.executable, str(tmp_path / "server.py")]
    seen = run_server(entry, command, {"HOME": folder}, folder, log)
    assert not seen.get("failure")
    first, bad, unknown = seen["answers"]
    assert first["result"]["structuredContent"] == {"result": [note, True, folder]}
    assert bad["result"]["isError"]
    assert unknown["error"]["code"] == -32602
    assert seen["start_ms"] > 0
    assert seen["call_ms"] > 0
    assert error_in(log) == "a line for the log"


def test_a_server_that_ends_is_reported_by_its_first_error(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text("import no_such_module\n")
    entry = Entry("one", "one==1", "", [], calls=[("where", {})])
    command = [sys.executable, str(tmp_path / "server.py")]
    seen = run_server(entry, command, {}, str(tmp_path / "folder"), str(tmp_path / "log"))
    assert seen["failure"] == "ModuleNotFoundError: No module named 'no_such_module'"


def test_the_error_in_a_log_is_the_last_exception(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("KeyError: 'a'\n│ \x1b[31mValueError: bad │\nINFO: ending\n")
    assert error_in(str(log)) == "ValueError: bad"
    log.write_text("INFO: ending\n\n")
    assert error_in(str(log)) == "INFO: ending"
    log.write_text("")
    assert error_in(str(log)) == ""


# --- the result of it --------------------------------------------------------------------------------------


def test_what_differs_between_two_runs_of_the_original_is_no_fault() -> None:
    original, again, swapped = (observed(answer(text)) for text in ("12:00", "12:01", "12:02"))
    assert verdict(differences(steady(original, again), swapped)) == BY_CHOICE
    assert verdict(differences(steady(original, original), swapped)) == DIFFERENT
    assert verdict(differences(steady(original, again), original)) == SAME


def test_a_title_of_an_author_that_is_missing_is_a_fault() -> None:
    def title_of(text: str) -> str:
        tools = [{"name": "add", "title": text, "inputSchema": {"type": "object"}}]
        bare = [{"name": "add", "inputSchema": {"type": "object"}}]
        return verdict(differences(observed(tools=tools), observed(tools=bare)))

    assert title_of("Add") == BY_CHOICE
    assert title_of("Sum of two") == DIFFERENT


def test_white_space_at_the_ends_of_lines_is_no_fault() -> None:
    def description_of(text: str) -> dict[str, Any]:
        return observed(prompts=[{"name": "ask", "description": text}])

    swapped = description_of("Asks.\n\nTwice:\n- now\n- later")
    indented = description_of("\n    Asks.  \n    \n    Twice:\n      - now\n      - later\n    ")
    assert verdict(differences(indented, swapped)) == BY_CHOICE
    assert verdict(differences(description_of("Asks.\n\nTwice: now, later"), swapped)) == DIFFERENT


def test_a_verdict_is_that_of_the_worst_difference() -> None:
    choice, fault = Difference("a", 1, 2, "why"), Difference("a", 1, 2)
    assert verdict([]) == SAME
    assert verdict([choice]) == BY_CHOICE
    assert verdict([choice, fault]) == DIFFERENT


@pytest.mark.parametrize(
    ("place", "kind"),
    [
        ("tools: add: inputSchema.properties.a", "inputSchema"),
        ("tools: add", "tools, missing or added"),
        ("tools: order", "tools, missing or added"),
        ("instructions", "instructions"),
        ("capabilities.tools", "capabilities.tools"),
        ("tool add: error text", "error text"),
        ("tool add: content.0.text", "content"),
        ("tool add", "answer"),
        ("resource file:///a: contents", "contents"),
    ],
)
def test_differences_are_counted_by_what_they_are_about(place: str, kind: str) -> None:
    assert kind_of(place) == kind


def test_a_long_value_is_cut_where_it_is_recorded() -> None:
    found = shown(Difference("a", "x" * 1000, "y"))
    assert len(found["original"]) < 500
    assert found["swapped"] == "y"


def test_the_smaller_figure_of_two_runs_counts() -> None:
    assert measured({"start_ms": 9.0, "rss_mb": 0.0}, {"start_ms": 7.12345}) == {"start_ms": 7.123}


def test_only_a_worse_verdict_than_the_recorded_one_fails_a_run() -> None:
    assert is_worse(NOT_STARTED, BY_CHOICE)
    assert is_worse(NOT_STARTED, DIFFERENT)
    assert is_worse(DIFFERENT, SAME)
    assert not is_worse(BY_CHOICE, SAME)
    assert not is_worse(DIFFERENT, NOT_STARTED)
    assert not is_worse(NOT_STARTED, NOT_STARTED)
    assert not is_worse("not installed", SAME)
    assert not is_worse(NOT_STARTED, "original does not start")


# --- the page ---------------------------------------------------------------------------------------------

OUTCOMES = [
    {
        "name": "b",
        "package": "b==2.0",
        "framework": "FastMCP 4",
        "verdict": DIFFERENT,
        "counts": {"tools": 2, "resources": 0, "prompts": 1},
        "requests": 3,
        "choices": {"why": 4},
        "kinds": {"title": 2},
        "original": {"start_ms": 1200.4, "call_ms": 1.0},
        "swapped": {"start_ms": 300.1, "call_ms": 0.02},
    },
    {
        "name": "a",
        "package": "a==1.0",
        "framework": "FastMCP 4",
        "verdict": NOT_STARTED,
        "failure": "ImportError: `x|y`",
        "counts": {"tools": 1, "resources": 0, "prompts": 0},
        "requests": 1,
    },
    {
        "name": "c",
        "package": "c==1.0",
        "framework": "SDK 1 Server",
        "verdict": "not installed",
        "failure": "no",
    },
]


def test_the_page_counts_and_has_a_row_for_each_server() -> None:
    body = report.body(OUTCOMES)
    assert "2 servers with 4 tools, resources and prompts, and 4 requests. With swapped imports 1 of " in body
    assert "start 0.25×" in body
    assert "| FastMCP 4 | 2 | 0 | 0 | 1 | 1 |" in body
    assert "| why | 1 |" in body
    assert "| b 2.0 | FastMCP 4 | other differences: 2 × title | 1,200 → 300 | 1.00 → 0.02 |  |" in body
    assert "| a 1.0 | FastMCP 4 | does not start: `ImportError: 'x\\|y'` |  |  |  |" in body
    assert "| c 1.0 | SDK 1 Server | not installed: `no` |" in body


def test_a_page_keeps_the_text_around() -> None:
    page = f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n"
    filled = report.filled(page, OUTCOMES)
    assert filled.startswith("before\n")
    assert filled.endswith("\nafter\n")
    assert "old" not in filled
    assert report.filled(filled, OUTCOMES) == filled


@pytest.mark.parametrize(
    ("given", "reaches"),
    [
        ({"result": {"content": [{"type": "text", "text": "5"}]}}, True),
        ({"result": {"isError": True, "content": [{"type": "text", "text": "no such city"}]}}, True),
        (
            {"result": {"isError": True, "content": [{"type": "text", "text": "1 validation error for x"}]}},
            False,
        ),
        ({"result": {"isError": True, "content": [{"type": "text", "text": "Unknown tool: x"}]}}, False),
        ({"error": {"code": -32602, "message": "Invalid params"}}, False),
        ({"error": {"code": -32603, "message": "the disk is full"}}, True),
    ],
)
def test_an_answer_of_the_framework_says_nothing_of_a_servers_code(given: Any, reaches: bool) -> None:
    assert reaches_code(given) is reaches
