"""Where ``fastrpc serve`` works: ``--cwd``, else the client's single root, else the home folder."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import pytest
from support.protocol import SESSION_VERSIONS
from support.stdio import STATELESS_META, Process, serve

HANDSHAKES = SESSION_VERSIONS[1:]
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"


@pytest.fixture
def folders(tmp_path: Any) -> Any:
    for name in ("home", "root", "other", "state"):
        (tmp_path / name).mkdir()
    return tmp_path


def started(folders: Any, *options: str, folder: str = "/", **popen: Any) -> Any:
    environment = {"HOME": str(folders / "home"), "FASTRPC_STATE_DIR": str(folders / "state")}
    return serve(None, *options, environment=environment, folder=folder, **popen)


def hurried(change: str) -> list[str]:
    """The command ``fastrpc serve`` with a time changed that a test would have to wait for."""
    return [sys.executable, "-c", HURRIED.format(change=change), "serve"]


HURRIED = """
import sys
import fastrpc.__main__
from fastrpc import Server
from fastrpc.cli import _roots
{change}
sys.exit(fastrpc.__main__.main())
"""


def uris(*paths: Any) -> list[dict[str, str]]:
    return [{"uri": path.as_uri() if hasattr(path, "as_uri") else path} for path in paths]


class StatelessClient:
    """A client of 2026-07-28: roots are asked for in a result, and the call is sent again."""

    def __init__(self, server: Process, roots: list[dict[str, str]] | None) -> None:
        self.server = server
        self.roots = roots
        self.asked = 0
        declared = {} if roots is None else {"roots": {}}
        self.meta = {**STATELESS_META, CAPABILITIES: declared}

    def call(self, tool: str, **arguments: Any) -> Any:
        params: dict[str, Any] = {"name": tool, "arguments": arguments, "_meta": self.meta}
        message = self.server.request("tools/call", params)
        while message.get("result", {}).get("resultType") == "input_required":
            self.asked += 1
            questions = message["result"]["inputRequests"]
            assert [question["method"] for question in questions.values()] == ["roots/list"]
            answers = {key: {"roots": self.roots} for key in questions}
            again = {"inputResponses": answers, "requestState": message["result"]["requestState"]}
            message = self.server.request("tools/call", {**params, **again})
        return message


class SessionClient:
    """A client of a version with sessions: the server asks with a separate request."""

    def __init__(
        self, server: Process, roots: list[dict[str, str]] | None, version: str = SESSION_VERSIONS[-1]
    ) -> None:
        self.server = server
        self.roots = roots
        self.asked = 0
        capabilities: dict[str, Any] = {} if roots is None else {"roots": {}}
        server.initialize(version, **capabilities)

    def call(self, tool: str, **arguments: Any) -> Any:
        request = self.server.ask("tools/call", {"name": tool, "arguments": arguments})
        while True:
            message = self.server.answer()
            if message.get("method") == "roots/list":
                self.asked += 1
                self.server.send_message(
                    {"jsonrpc": "2.0", "id": message["id"], "result": {"roots": self.roots}}
                )
            elif "method" not in message:
                assert message["id"] == request
                return message


CLIENTS = [pytest.param(SessionClient, id="2025-11-25"), pytest.param(StatelessClient, id="2026-07-28")]


def place(client: Any) -> str:
    message = client.call("Bash", command="pwd -P")
    return str(message["result"]["content"][0]["text"])


@pytest.mark.parametrize("client_of", CLIENTS)
def test_the_clients_single_root_is_where_the_tools_work(folders: Any, client_of: Any) -> None:
    """Every tool: without `--cwd` they work in the client's root, if it has a single one."""
    with started(folders) as server:
        client = client_of(server, uris(folders / "root"))
        assert place(client) == str(folders / "root")
        assert place(client) == str(folders / "root")
        assert client.asked == 1, "asked once, before the first call"
        assert os.readlink(f"/proc/{server.pid}/cwd") == str(folders / "root")


@pytest.mark.parametrize("version", HANDSHAKES)
def test_every_version_with_sessions_is_asked(folders: Any, version: str) -> None:
    with started(folders) as server:
        assert place(SessionClient(server, uris(folders / "root"), version)) == str(folders / "root")


@pytest.mark.parametrize("client_of", CLIENTS)
@pytest.mark.parametrize(
    "roots", ["none declared", "empty", "two", "no folder", "a file", "http", "/", "odd"]
)
def test_without_a_single_root_the_home_folder_is(folders: Any, client_of: Any, roots: str) -> None:
    """Every tool: without `--cwd` and a single root they work in the home folder."""
    (folders / "file").touch()
    given = {
        "none declared": None,
        "empty": [],
        "two": uris(folders / "root", folders / "other"),
        "no folder": uris(folders / "missing"),
        "a file": uris(folders / "file"),
        "http": uris("https://example.org/root"),
        "/": uris("file:///"),
        "odd": uris("file://[", "file://host/x", "file:relative", "file:///a%00b", "file:///x?y"),
    }[roots]
    with started(folders) as server:
        client = client_of(server, given)
        assert place(client) == str(folders / "home")
        assert place(client) == str(folders / "home")
        assert client.asked == (0 if given is None else 1)


@pytest.mark.parametrize("client_of", CLIENTS)
def test_a_root_that_is_not_a_file_does_not_count_beside_one_that_is(folders: Any, client_of: Any) -> None:
    with started(folders) as server:
        client = client_of(server, uris("https://example.org/", folders / "root"))
        assert place(client) == str(folders / "root")


@pytest.mark.parametrize("client_of", CLIENTS)
def test_a_root_with_blanks_and_arabic_in_its_name(folders: Any, client_of: Any) -> None:
    root = folders / "مجلد جديد 100%"
    root.mkdir()
    with started(folders) as server:
        assert place(client_of(server, uris(root))) == str(root)


@pytest.mark.parametrize("client_of", CLIENTS)
def test_a_client_is_not_asked_when_the_folder_is_known(folders: Any, client_of: Any) -> None:
    """Every tool: desktop clients start servers in `/`, so that `--cwd` decides first where tools work."""
    with started(folders, "--cwd", str(folders / "other")) as server:
        client = client_of(server, uris(folders / "root"))
        assert place(client) == str(folders / "other")
        assert client.asked == 0
    with started(folders, folder=str(folders / "other")) as server:
        client = client_of(server, uris(folders / "root"))
        assert place(client) == str(folders / "other")
        assert client.asked == 0


@pytest.mark.parametrize("client_of", CLIENTS)
def test_the_roots_settings_may_switch_off_and_never_back_on(folders: Any, client_of: Any) -> None:
    """Every tool: settings that lie in the client's root may switch things off and never back on."""
    (folders / "home" / ".claude").mkdir()
    (folders / "home" / ".claude" / "scorpiox-env.txt").write_text(
        "TOOL_KILLBGTASK=0\nSTREAMING=1\nNONSENSE=1\n"
    )
    (folders / "root" / ".scorpiox").mkdir()
    (folders / "root" / ".scorpiox" / "scorpiox-env.txt").write_text(
        "TOOL_BACKGROUNDBASH=0\nTOOL_KILLBGTASK=1\nSTREAMING=0\nFASTRPC_STATE_DIR=/evil\n"
    )
    with started(folders) as server:
        client = client_of(server, uris(folders / "root"))
        meta = {} if client_of is SessionClient else {"_meta": client.meta}
        before = [tool["name"] for tool in server.request("tools/list", meta)["result"]["tools"]]
        assert "BackgroundBash" in before
        assert "KillBgTask" not in before
        refused = client.call("BackgroundBash", command="touch ran")
        assert refused["error"]["code"] == -32602
        assert "BackgroundBash" in refused["error"]["message"]
        shown = client.call("Bash", command="echo $STREAMING $FASTRPC_STATE_DIR $TOOL_KILLBGTASK; ls")
        assert shown["result"]["content"][0]["text"] == f"0 {folders}/state 0"
        after = [tool["name"] for tool in server.request("tools/list", meta)["result"]["tools"]]
        assert set(before) - set(after) == {"BackgroundBash"}
        assert server.stderr.count("NONSENSE") == 1
        assert "./.scorpiox/scorpiox-env.txt:2: TOOL_KILLBGTASK stays off" in server.stderr
        assert "./.scorpiox/scorpiox-env.txt:4: FASTRPC_STATE_DIR is ignored here" in server.stderr


def test_what_the_environment_says_stays_above_the_roots_settings(folders: Any) -> None:
    (folders / "root" / ".claude").mkdir()
    (folders / "root" / ".claude" / "scorpiox-env.txt").write_text("TOOL_BASH=0\nTOOLS=0\n")
    environment = {
        "HOME": str(folders / "home"),
        "FASTRPC_STATE_DIR": str(folders / "state"),
        "TOOL_BASH": "1",
        "TOOLS": "true",
    }
    with serve(environment=environment, folder="/") as server:
        assert place(SessionClient(server, uris(folders / "root"))) == str(folders / "root")


def test_a_root_may_switch_all_tools_off(folders: Any) -> None:
    (folders / "root" / ".claude").mkdir()
    (folders / "root" / ".claude" / "scorpiox-env.txt").write_text("TOOLS=false\n")
    with started(folders) as server:
        client = SessionClient(server, uris(folders / "root"))
        assert client.call("ListBgTasks")["error"]["code"] == -32602
        assert server.request("tools/list")["result"]["tools"] == []


def test_the_lists_of_skills_follow_into_the_root(folders: Any) -> None:
    skill = folders / "root" / ".claude" / "skills" / "local"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: local\ndescription: Of the root.\n---\nThe body.\n")
    with started(folders) as server:
        client = SessionClient(server, uris(folders / "root"))
        result = client.call("InvokeSkill", skill_name="local")["result"]
        assert result["content"][0]["text"].startswith("The body.")


def test_calls_that_come_together_all_run_in_the_root(folders: Any) -> None:
    with started(folders) as server:
        server.initialize(roots={})
        calls = [
            server.ask("tools/call", {"name": "Bash", "arguments": {"command": "pwd"}}) for _ in range(5)
        ]
        question = server.answer()
        assert question["method"] == "roots/list"
        server.send_message(
            {"jsonrpc": "2.0", "id": question["id"], "result": {"roots": uris(folders / "root")}}
        )
        answers = server.answers(5)
        assert {answer["id"] for answer in answers} == set(calls)
        assert {answer["result"]["content"][0]["text"] for answer in answers} == {str(folders / "root")}


def test_calls_of_2026_07_28_that_come_together_all_run_in_the_root(folders: Any) -> None:
    with started(folders) as server:
        meta = {**STATELESS_META, CAPABILITIES: {"roots": {}}}
        params = {"name": "Bash", "arguments": {"command": "pwd"}, "_meta": meta}
        for _ in range(8):
            server.ask("tools/call", params)
        for answer in server.answers(8):
            result = answer["result"]
            again = {key: {"roots": uris(folders / "root")} for key in result["inputRequests"]}
            server.ask(
                "tools/call", {**params, "inputResponses": again, "requestState": result["requestState"]}
            )
        texts = {answer["result"]["content"][0]["text"] for answer in server.answers(8)}
        assert texts == {str(folders / "root")}


def test_a_client_that_refuses_to_tell_gets_the_home_folder(folders: Any) -> None:
    with started(folders) as server:
        server.initialize(roots={})
        request = server.ask("tools/call", {"name": "Bash", "arguments": {"command": "pwd"}})
        question = server.answer()
        error = {"code": -32603, "message": "no"}
        server.send_message({"jsonrpc": "2.0", "id": question["id"], "error": error})
        answer = server.answer()
        assert answer["id"] == request
        assert answer["result"]["content"][0]["text"] == str(folders / "home")


def test_a_client_that_never_tells_gets_the_home_folder_in_time(folders: Any) -> None:
    with started(folders, command=hurried("_roots.ANSWER_SECONDS = 0.3")) as server:
        server.initialize(roots={})
        request = server.ask("tools/call", {"name": "Bash", "arguments": {"command": "pwd"}})
        assert server.answer()["method"] == "roots/list"
        messages = server.answers(2)
        by_kind = {message.get("method"): message for message in messages}
        assert set(by_kind) == {"notifications/cancelled", None}
        assert by_kind[None]["id"] == request
        assert by_kind[None]["result"]["content"][0]["text"] == str(folders / "home")


def test_a_first_call_that_is_cancelled_leaves_the_question_to_the_next(folders: Any) -> None:
    with started(folders) as server:
        server.initialize(roots={})
        first = server.ask("tools/call", {"name": "Bash", "arguments": {"command": "pwd"}})
        assert server.answer()["method"] == "roots/list"
        server.notify("notifications/cancelled", {"requestId": first})
        assert server.answer()["method"] == "notifications/cancelled"
        server.ask("tools/call", {"name": "Bash", "arguments": {"command": "pwd"}})
        question = server.answer()
        assert question["method"] == "roots/list"
        server.send_message(
            {"jsonrpc": "2.0", "id": question["id"], "result": {"roots": uris(folders / "root")}}
        )
        assert server.answer()["result"]["content"][0]["text"] == str(folders / "root")


def test_nothing_is_asked_before_a_tool_is_called(folders: Any) -> None:
    with started(folders) as server:
        server.initialize(roots={})
        assert server.request("tools/list")["result"]["tools"]
        server.assert_silent()


def test_a_home_folder_that_is_not_there_is_no_failure(folders: Any) -> None:
    (folders / "home").rmdir()
    with started(folders) as server:
        client = SessionClient(server, uris(folders / "root"))
        assert place(client) == str(folders / "root")


@pytest.mark.parametrize("client_of", CLIENTS)
def test_what_a_dead_server_left_is_taken_over_in_the_root(folders: Any, client_of: Any) -> None:
    with started(folders, "--cwd", str(folders / "root")) as dying:
        client = client_of(dying, None)
        assert client.call("SetCallback", action="set", message="later", delay_seconds=900)["result"]
        assert client.call("PlanMode", action="enter", goal="g")["result"]
        dying.kill()
        dying.wait()
    with started(folders, command=hurried("Server.watch.__defaults__ = (0.05,)")) as server:
        client = client_of(server, uris(folders / "root"))
        meta = {} if client_of is SessionClient else {"_meta": client.meta}
        assert server.request("tools/list", meta)["result"]["tools"]
        time.sleep(0.5)  # the server has looked at what it watches
        assert server.request("tools/list", meta)["result"]["tools"]
        assert place(client) == str(folders / "root")
        assert "later" in client.call("SetCallback", action="list")["result"]["content"][0]["text"]
        plan = client.call("PlanMode", action="status")["result"]["content"][0]["text"]
        assert "inactive" not in plan.lower(), plan
