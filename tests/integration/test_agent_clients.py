"""The whole session: all tools called over stdio, by the official clients for Python and TypeScript.

Both clients are given the same calls and hand back the result of them, as they understood it; what is right
is said here once. Pages and search engines are on the loopback address, home, state and project in the test's
own folder. The server writes a trace, whose lines the recorder holds against the version's schema.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from fastrpc.tools.agent._contract import CONTRACT
from support import images, web_server
from support.agent_tools import EFFECTS
from support.node_packages import put
from support.protocol import SESSION_VERSIONS, STATELESS
from support.search_engines import search_engines
from test_typescript_client import SOURCE, folder  # noqa: F401 - a fixture

pytestmark = pytest.mark.long

FORMS = (*SESSION_VERSIONS[2:], STATELESS)  # versions in which a client can be asked
STRUCTURED = (*SESSION_VERSIONS[2:], STATELESS)
SKILL = """---
name: greet
description: Greets someone
---
Say "مرحبا، $ARGUMENTS" and nothing else.
"""
QUESTION = {"questions": [{"text": "أي قاعدة؟", "options": ["PostgreSQL", "SQLite 👨‍👩‍👧"]}]}
ANSWER = {"question_1": "SQLite 👨‍👩‍👧"}
PAGE = "<main><h1>The guide</h1><p id=p>Loading</p></main>"
SCRIPT = "<script>onload = () => document.getElementById('p').textContent = 'Made by a script'</script>"


def call(tool: str, until: str = "", **arguments: Any) -> dict[str, Any]:
    """A call, which is repeated until the last block of its result begins so."""
    return {"tool": tool, "arguments": arguments, "until": until}


async def result_of(client: Any, step: dict[str, Any]) -> dict[str, Any]:
    """Make a call of a session with the official Python client."""
    while True:
        result: dict[str, Any] = plain(await client.call_tool(step["tool"], step["arguments"]))
        if result["content"][-1].get("text", "").startswith(step["until"]):
            return result
        await asyncio.sleep(0.02)


@pytest.fixture
def session(tmp_path: Any) -> Iterator[dict[str, Any]]:
    """What the clients are to do, and with which server."""
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    (project / ".claude" / "skills" / "greet").mkdir(parents=True)
    (project / ".claude" / "skills" / "greet" / "SKILL.md").write_text(SKILL)
    (project / "plan.md").write_text("# Plan\n")
    (project / "picture.png").write_bytes(images.encoded(images.picture(), "PNG"))
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("FASTRPC_", "TOOL"))},
        "HOME": str(tmp_path),
        "FASTRPC_STATE_DIR": str(tmp_path / "state"),
    }
    environment.pop("ASK_TERMINAL", None)
    with web_server.serve() as pages, search_engines() as engines:
        pages.page("/guide", PAGE + SCRIPT, title="Guide")
        environment["FASTRPC_SEARCH_ADDRESS"] = engines.address
        calls = [
            call("Bash", command="echo سلام; pwd; exit 3"),
            call("ReadImage", file_path=str(project / "picture.png")),
            call("ReadDocs", url=pages.url("/guide")),
            call("WebSearch", query="model context protocol"),
            call("TaskManager", action="create", query="", text="Build the shop"),
            call("TaskManager", action="add", query="", text="order shelves"),
            call("TaskManager", action="complete", query="", step_id=1),
            call("PlanMode", action="enter", goal="Build"),
            call("PlanMode", action="exit", plan_file=str(project / "plan.md")),
            call("AskUserQuestion", questions_json=json.dumps(QUESTION)),
            call("InvokeSkill", skill_name="greet", arguments="Ada"),
            call("SetCallback", action="set", message="look again", delay_seconds=1, repeat_count=1),
            call("SetCallback", until="[callback 0 due ", action="list"),
            call("BackgroundBash", command="echo begun; sleep 60"),
            call("ReadBgOutput", task_id=1, wait_ms=5000),
            call("ListBgTasks"),
            call("KillBgTask", task_id=1),
        ]
        described = {"environment": environment, "cwd": str(project), "calls": calls, "answer": ANSWER}
        (tmp_path / "session.json").write_text(json.dumps(described))
        yield described


def check(session: dict[str, Any], came: dict[str, Any], version: str) -> None:
    """Hold what a client has got against what it should have got."""
    assert [tool["name"] for tool in came["tools"]] == list(EFFECTS)
    assert {call["tool"] for call in session["calls"]} == set(CONTRACT)
    results = iter(came["results"])

    def following(is_error: bool = False) -> tuple[str, dict[str, Any]]:
        result = next(results)
        assert result["isError"] is is_error, result
        return result["content"][-1]["text"], result

    text, result = following(is_error=True)
    assert text == f"سلام\n{session['cwd']}\n[exit code 3]"
    assert result["_meta"]["fastrpc/facts"]["exit_code"] == 3

    text, result = following()
    blocks = {block["type"]: block for block in result["content"]}
    with open(session["calls"][1]["arguments"]["file_path"], "rb") as file:
        assert base64.b64decode(blocks["image"]["data"]) == file.read()
    assert blocks["image"]["mimeType"] == "image/png"
    assert "60" in blocks["text"]["text"]

    text, _ = following()
    assert "The guide" in text
    if shutil.which("chromium"):
        assert "Made by a script" in text

    text, _ = following()
    assert text.startswith("1. The Guide\n   https://example.org/guide/")
    closing = text.rpartition("\n")[2]
    assert closing.startswith("[engines: duckduckgo ok ")
    assert closing.count(", ") == 10

    assert following()[0] == "Task 1: Build the shop (current)"
    assert "  - [ ] 1. order shelves" in following()[0]
    text, result = following()
    assert "  - [x] 1. order shelves" in text
    assert ("structuredContent" in result) == (version in STRUCTURED)

    assert following()[0] == "Plan mode activated. Write your plan as markdown."
    assert following()[0].endswith("Exiting plan mode. Returning to execution.")

    text, result = following()
    if version in FORMS:
        answers = {"answers": [{"question": "أي قاعدة؟", "selected": "SQLite 👨‍👩‍👧"}]}
        assert json.loads(text) == answers
        assert result["structuredContent"] == answers
        assert [asked["message"] for asked in came["asked"]] == ["أي قاعدة؟"]
    else:
        assert text.startswith("The user could not be asked")
        assert came["asked"] == []

    assert 'Say "مرحبا، Ada" and nothing else.' in following()[0]

    assert following()[0] == "Callback scheduled: fires once in 1s."
    text, result = following()
    assert result["content"][0]["text"] == "No active callbacks."
    assert text.startswith("[callback 0 due ")
    assert text.endswith(" s ago] look again")
    if version != STATELESS:
        assert [log["logger"] for log in came["logs"]] == ["callback"]
        assert "look again" in json.dumps(came["logs"])

    assert following()[0].startswith("Started background task 1")
    text, _ = following()
    assert text.startswith("begun\n[task 1: running, ")
    text, result = following()
    assert "echo begun; sleep 60" in text
    assert ("structuredContent" in result) == (version in STRUCTURED)
    assert following()[0].startswith("Killed background task 1 (SIGTERM, ")
    assert next(results, None) is None


def replay(recorder: Any, tmp_path: Any) -> None:
    before = recorder.lines
    recorder.replay(str(tmp_path / "trace"))
    assert recorder.lines > before


# --- Python ---------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.* as of 2026-07-28")
@pytest.mark.parametrize("version", [SESSION_VERSIONS[0], SESSION_VERSIONS[-1], STATELESS])
def test_the_python_client_uses_all_tools(
    session: dict[str, Any], version: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch, recorder: Any
) -> None:
    """AskUserQuestion: the official Python client drives a whole session of all tools, questions
    among them.
    """
    mcp = pytest.importorskip("mcp", reason="the official client is not installed: pip install mcp")
    if not hasattr(mcp, "Client"):
        pytest.skip("this version of the official client has no high-level Client")
    from mcp.client import session as handshake

    came: dict[str, Any] = {"asked": [], "logs": [], "results": []}

    async def on_elicit(context: Any, params: Any) -> Any:
        came["asked"].append(plain(params))
        return mcp.types.ElicitResult(action="accept", content=session["answer"])

    async def on_log(params: Any) -> None:
        came["logs"].append(plain(params))

    async def conversation() -> None:
        server = mcp.StdioServerParameters(
            command=sys.executable,
            args=["-m", "fastrpc", "serve", "--trace", str(tmp_path / "trace")],
            env=session["environment"],
            cwd=session["cwd"],
        )
        mode = "auto" if version == STATELESS else "legacy"
        options = {"elicitation_callback": on_elicit, "logging_callback": on_log}
        async with mcp.Client(server, mode=mode, cache=None, **options) as client:
            assert client.protocol_version == version
            if version != STATELESS:
                await client.set_logging_level("info")
            came["tools"] = [plain(tool) for tool in (await client.list_tools()).tools]
            for step in session["calls"]:
                came["results"].append(await result_of(client, step))

    if version != STATELESS:
        monkeypatch.setattr(handshake, "LATEST_HANDSHAKE_VERSION", version)
    asyncio.run(asyncio.wait_for(conversation(), 90))
    check(session, came, version)
    replay(recorder, tmp_path)


def plain(model: Any) -> Any:
    """What the client has understood, as JSON again."""
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


# --- TypeScript -----------------------------------------------------------------------------------------


@pytest.mark.timeout(360)  # the packages may have to be installed
@pytest.mark.parametrize(
    ("line", "version"), [("v1", SESSION_VERSIONS[-1]), ("v2", SESSION_VERSIONS[-1]), ("v2", STATELESS)]
)
def test_the_typescript_client_uses_all_tools(
    session: dict[str, Any],
    line: str,
    version: str,
    folder: str,  # noqa: F811
    tmp_path: Any,
    recorder: Any,
) -> None:
    """AskUserQuestion: the TypeScript client drives a whole session of all tools, too."""
    put(os.path.join(SOURCE, "agent.mjs"), folder)
    command = ["node", "agent.mjs", line, version, sys.executable, str(tmp_path)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=90)
    assert done.returncode == 0, done.stdout + done.stderr
    came = json.loads(done.stdout)
    assert came["complaints"] == []
    check(session, came, version)
    replay(recorder, tmp_path)
