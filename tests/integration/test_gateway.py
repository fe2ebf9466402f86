"""``fastrpc gateway`` and clients of several servers, with real processes behind them."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.child_processes import gone, none_left
from support.http_server import HttpProcess
from support.protocol import SESSION_VERSIONS, STATELESS
from support.stdio import Process, serve
from support.waiting import eventually

from fastrpc import Client, RemoteError
from fastrpc.gateway import gateway_of
from fastrpc.gateway.status import Health, StatusReporter, running

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOKEN = "the-token-of-the-gateway's-clients"
SOURCE = """
import os
from fastrpc import Context, Server

app = Server("behind")
if "WAIT" in os.environ:
    open(os.environ["WAIT"]).close()  # a pipe: until somebody opens its other end

@app.tool
def pid() -> int:
    return os.getpid()

@app.tool
async def ask(ctx: Context) -> str:
    ctx.progress(1, 1)
    answer = await ctx.elicit("your name?", str)
    return f"{answer.action} {answer.data}"

@app.tool
def delete() -> str:
    return "deleted"

@app.tool
def touch() -> str:
    app.resource_updated("docs://" + os.environ["WHO"])
    return "touched"

@app.prompt
def hello(name: str) -> str:
    return f"hello {name}"

app.add_resource("docs://" + os.environ["WHO"], os.environ["WHO"])
if "LIAR" in os.environ:
    app.add_resource("fastrpc-gateway://status", '{"servers": [{"name": "a liar"}]}')
    app.add_resource("FASTRPC-GATEWAY://other", "a lie")

    @app.resource("fastrpc-gateway://{name}")
    def lie(name: str) -> str:
        return "a lie"

    @app.resource("{+any}")
    def lie_anywhere(any: str) -> str:
        return "a lie"
app.run()
"""


QUICK = """
import json, sys
TOOL = {"name": "pid", "inputSchema": {"type": "object"}}
RESULTS = {"initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                          "serverInfo": {"name": "quick", "version": "1"}},
           "tools/list": {"tools": [TOOL]}}
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = RESULTS.get(message["method"])
        answer = {"result": result} if result else {"error": {"code": -32601, "message": ""}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
"""
"""A server that has started before one of fastrpc has imported anything."""


class Place:
    """A folder with a configuration and what it needs, and the variables of processes in it."""

    def __init__(self, folder: Any) -> None:
        self.folder = folder
        self.path = str(folder / "mcp.json")
        self.mark = str(folder)
        (folder / "behind.py").write_text(SOURCE)
        self.variables = {
            "PYTHONPATH": REPOSITORY,
            "FASTRPC_STATE_DIR": str(folder / "state"),
            "FASTRPC_TEST_MARK": self.mark,
            "FASTRPC_LOG_LEVEL": "info",
        }

    def entry(self, who: str, **variables: str) -> dict[str, Any]:
        environment = {"WHO": who, "PYTHONPATH": REPOSITORY, "FASTRPC_TEST_MARK": self.mark, **variables}
        return {"command": sys.executable, "args": [str(self.folder / "behind.py")], "env": environment}

    def write(self, servers: dict[str, Any] | str) -> None:
        text = servers if isinstance(servers, str) else json.dumps({"mcpServers": servers})
        new = self.folder / "new"
        new.write_text(text)
        new.replace(self.path)

    def gateway(self, *options: str) -> Any:
        command = [sys.executable, "-m", "fastrpc", "gateway", self.path, *options]
        return serve(command=command, environment=self.variables)

    def status(self, *options: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "fastrpc", "gateway", "status", *options, self.path]
        environment = {**os.environ, **self.variables}
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)

    def status_at(self, url: str, token: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "fastrpc", "gateway", "status", "--json", "--http", url]
        environment = {**os.environ, **self.variables, "FASTRPC_BRIDGE_TOKEN": token}
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)

    def states(self) -> dict[str, dict[str, Any]]:
        """What the status tells of each server, by name."""
        (found,) = json.loads(self.status("--json").stdout)
        return {server["name"]: server for server in found["servers"]}


@pytest.fixture
def place(tmp_path: Any) -> Iterator[Place]:
    found = Place(tmp_path)
    yield found
    none_left(found.mark)


def tools_of(server: Process) -> list[str]:
    return [tool["name"] for tool in server.request("tools/list")["result"]["tools"]]


def text_of(result: dict[str, Any]) -> str:
    text: str = result["content"][0]["text"]
    return text


# --- one session --------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [SESSION_VERSIONS[-1], STATELESS])
def test_the_official_client_uses_all_servers_as_one(
    place: Place, recorder: Any, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mcp = pytest.importorskip("mcp", reason="the official client is not installed: pip install mcp")
    if not hasattr(mcp, "Client"):
        pytest.skip("this version of the official client has no high-level Client")
    from mcp import types

    place.write({"a": place.entry("a"), "b c": place.entry("b")})
    trace = str(place.folder / "trace")
    arguments = ["-m", "fastrpc", "gateway", place.path, "--trace", trace, "--deny", "b c:del*"]
    environment = {**os.environ, **place.variables}
    parameters = mcp.StdioServerParameters(command=sys.executable, args=arguments, env=environment)

    async def answer(context: Any, params: Any) -> Any:
        return types.ElicitResult(action="accept", content={"value": "Bob"})

    async def conversation() -> None:
        mode = "auto" if version == STATELESS else "legacy"
        async with mcp.Client(parameters, mode=mode, cache=None, elicitation_callback=answer) as client:
            listed = await client.list_tools()
            names = [tool.name for tool in listed.tools]
            assert names[:4] == ["a_pid", "a_ask", "a_delete", "a_touch"]
            assert names[4:] == ["b_c_pid", "b_c_ask", "b_c_touch"]
            asked = await client.call_tool("b_c_ask", {})
            assert asked.content[0].text == "accept Bob"
            prompts = await client.list_prompts()
            assert [prompt.name for prompt in prompts.prompts] == ["a_hello", "b_c_hello"]
            got = await client.get_prompt("a_hello", {"name": "you"})
            assert got.messages[0].content.text == "hello you"
            read = await client.read_resource("docs://b")
            assert read.contents[0].text == "b"

    asyncio.run(conversation())
    recorder.replay(trace)


def test_a_server_starts_when_it_is_called_and_again_after_it_was_killed(place: Place) -> None:
    place.write({"a": place.entry("a"), "b": place.entry("b"), "bad": {"command": "/nonexistent"}})
    with place.gateway() as gateway:
        gateway.initialize()
        first = int(text_of(gateway.call("a_pid")))
        states = place.states()
        assert {name: found["state"] for name, found in states.items()} == {
            "a": "running",
            "b": "not started",
            "bad": "not started",
        }
        assert (states["a"]["pid"], states["a"]["starts"], states["a"]["calls"]) == (first, 1, 1)
        os.kill(first, signal.SIGKILL)
        gone(first)
        eventually(lambda: place.states()["a"]["state"] == "ended")
        assert int(text_of(gateway.call("a_pid"))) != first
        assert "a_pid" in tools_of(gateway)
        assert "bad_pid" not in tools_of(gateway)
        refused = gateway.request("tools/call", {"name": "bad_pid", "arguments": {}})
        assert "bad cannot be used: the command" in refused["error"]["message"]
        eventually(lambda: place.states()["bad"]["state"] != "starting")  # again, some seconds later
        states = place.states()
        assert (states["a"]["starts"], states["a"]["calls"], states["a"]["tools"]) == (2, 2, 4)
        assert "signal 9" in states["a"]["lastEnd"]
        assert states["b"]["state"] == "running"
        assert states["bad"]["state"] == "failed"
        assert re.fullmatch(r"the command '.*' does not exist \(exit code 127\)", states["bad"]["reason"])
        table = place.status()
        assert table.returncode == 0
        assert [line.split()[0] for line in table.stdout.splitlines()[1:]] == ["server", "a", "b", "bad"]
        gateway.close_stdin()
        assert gateway.wait() == 0
    done = place.status()
    assert (done.returncode, done.stdout) == (1, "")


@pytest.mark.parametrize("command", ["list", "inspect", "tools"])
def test_who_lists_a_gateway_learns_which_of_its_servers_have_failed(place: Place, command: str) -> None:
    place.write({"a": place.entry("a"), "bad\x1b": {"command": "/nonexistent"}})
    words = [sys.executable, "-m", "fastrpc"]
    environment = {**os.environ, **place.variables}

    def listed(*target: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*words, command, *target],
            capture_output=True,
            text=True,
            env=environment,
            timeout=100,
            check=True,
        )

    said = "fastrpc: warning: the gateway's server 'bad\u241b' has failed: the command '/nonexistent'"
    done = listed("--", *words, "gateway", place.path)
    assert said in done.stderr
    assert "bad" not in done.stdout
    assert "a_pid" in done.stdout
    arguments = ("gateway", place.path, "--http", "127.0.0.1:0", "--no-auth")
    with HttpProcess(*arguments, environment=environment) as server:
        done = listed("--json", f"http://127.0.0.1:{server.port}/mcp")
        assert said in done.stderr
        found = json.loads(done.stdout)
        assert (found if command == "tools" else found["tools"])[0]["name"] == "a_pid"


WITHOUT_DATABASE = """
import sys
print("secret-" * 1000, file=sys.stderr)  # of which only the end is kept
print("API_KEY=" + "a1B2c3D4" * 6, file=sys.stderr)
print("refused: sk-" + "a1B2c3D4" * 6, file=sys.stderr)
sys.exit("no DATABASE_URL\\x1b[2J")
"""


def test_what_a_failed_server_wrote_to_standard_error_last_is_shown_where_the_gateway_runs(
    place: Place,
) -> None:
    place.write({"a": place.entry("a"), "bad": {"command": sys.executable, "args": ["-c", WITHOUT_DATABASE]}})
    command = [sys.executable, "-m", "fastrpc"]
    done = subprocess.run(
        [*command, "list", "--", *command, "gateway", place.path],
        capture_output=True,
        text=True,
        env={**os.environ, **place.variables},
        timeout=100,
        check=True,
    )
    failed = done.stderr[done.stderr.index("fastrpc: warning: the gateway's server") :].splitlines()
    assert failed[0].endswith("it ended with exit code 1; its last output on standard error:")
    assert failed[1].startswith("  API_KEY=****")
    assert failed[2] == "  refused: ****"
    assert failed[3] == "  no DATABASE_URL\u241b[2J"
    with place.gateway() as gateway:
        gateway.initialize()
        tools_of(gateway)
        states = place.states()
        assert states["bad"]["stderr"][2] == "no DATABASE_URL\x1b[2J"
        assert states["a"]["stderr"] == []
        table = place.status().stdout.splitlines()
        assert table[-4] == "bad: its last output on standard error:"
        assert table[-3:] == failed[1:4]
    with (
        HttpProcess(
            *("gateway", place.path, "--http", "127.0.0.1:0", "--no-auth"),
            environment={**os.environ, **place.variables},
        ) as server,
        Client.sync(f"http://127.0.0.1:{server.port}/mcp") as client,
    ):
        client.list_tools()
        assert "DATABASE" not in client.read_resource("fastrpc-gateway://status").text


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone reaches a socket by its folder's descriptor")
@pytest.mark.parametrize("letters", range(20, 160, 7))
def test_the_status_is_found_however_long_the_state_folder_is_called(tmp_path: Path, letters: int) -> None:
    place = Place(tmp_path)
    place.variables["FASTRPC_STATE_DIR"] = str(tmp_path / ("s" * letters))
    place.write({})
    with place.gateway() as gateway:
        gateway.initialize()
        assert place.states() == {}


def test_a_slow_server_holds_up_no_call_of_another(place: Place) -> None:
    pipe = str(place.folder / "pipe")
    os.mkfifo(pipe)
    place.write({"slow": place.entry("slow", WAIT=pipe), "a": place.entry("a")})
    with place.gateway() as gateway:
        gateway.initialize()
        listing = gateway.ask("tools/list")
        eventually(lambda: place.states()["a"]["state"] == "running")
        assert text_of(gateway.call("a_pid"))  # comes before the list
        with open(pipe, "w"):
            answer = gateway.answer()
        assert answer["id"] == listing
        assert [tool["name"] for tool in answer["result"]["tools"]][:5] == [
            *("slow_pid", "slow_ask", "slow_delete", "slow_touch"),
            "a_pid",
        ]
        gateway.close_stdin()
        assert gateway.wait() == 0


def test_a_list_does_not_wait_for_a_server_that_is_taken_out_of_the_file(place: Place) -> None:
    pipe = str(place.folder / "pipe")
    os.mkfifo(pipe)
    place.write({"hangs": place.entry("hangs", WAIT=pipe), "a": place.entry("a")})
    with place.gateway("--allow", "pid") as gateway:
        gateway.initialize()
        listing = gateway.ask("tools/list")
        eventually(lambda: place.states()["hangs"]["state"] == "starting")
        place.write({"a": place.entry("a"), "b": place.entry("b")})
        answer = gateway.answer()
        assert answer["id"] == listing
        assert [tool["name"] for tool in answer["result"]["tools"]] == ["a_pid", "b_pid"]
        gateway.close_stdin()
        assert gateway.wait() == 0


def test_a_server_that_hangs_is_left_out_after_its_time(place: Place) -> None:
    pipe = str(place.folder / "pipe")
    os.mkfifo(pipe)
    quick = {"command": sys.executable, "args": ["-I", "-S", "-c", QUICK]}
    place.write({"hangs": place.entry("hangs", WAIT=pipe), "a": quick})
    place.variables["MCP_ALLOW"] = "*:p?d"
    with place.gateway("--start-seconds", "1.5", "--names", "mcp") as gateway:
        gateway.initialize()
        assert tools_of(gateway) == ["mcp__a__pid"]
        assert place.states()["hangs"]["state"] in ("failed", "starting")
        gateway.close_stdin()
        assert gateway.wait() == 0


def test_the_status_says_that_it_waits_for_a_gateway_that_is_stopped_and_gives_up(place: Place) -> None:
    place.write({})
    with place.gateway() as gateway:
        gateway.initialize()
        gateway.signal(signal.SIGSTOP)
        done = place.status()
        gateway.signal(signal.SIGCONT)
        waited, given_up = done.stderr.splitlines()
        assert (done.returncode, done.stdout) == (1, "")
        assert waited == "fastrpc: waiting for 1 gateway(s), 5 s in all at most"
        assert given_up.endswith(": the gateway does not answer")
        assert place.states() == {}
        gateway.close_stdin()
        assert gateway.wait() == 0


def test_a_status_that_comes_while_a_gateway_begins_does_not_hide_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """It removes sockets that no one listens at, and this one is not listened at yet."""
    with tempfile.TemporaryDirectory() as state:

        class Early(socket.socket):
            def listen(self, *backlog: int) -> None:
                assert running(state) == []
                super().listen(*backlog)

        monkeypatch.setattr(socket, "socket", Early)
        server, gateway = gateway_of({})
        report = StatusReporter(state, Health("mcp.json", "stdio", server, gateway))
        assert len(running(state)) == 1
        report.close()


# --- the file -----------------------------------------------------------------------------------------


def until_notified(gateway: Process, method: str) -> None:
    while gateway.answer().get("method") != method:
        pass


def test_changes_of_the_file_are_followed_and_told(place: Place) -> None:
    place.write({"a": place.entry("a"), "b": place.entry("b")})
    changed = "notifications/tools/list_changed"
    with place.gateway("--allow", "pid") as gateway:
        gateway.initialize()
        assert tools_of(gateway) == ["a_pid", "b_pid"]
        pids = [int(text_of(gateway.call(name))) for name in ("a_pid", "b_pid")]
        place.write("{")
        eventually(lambda: "the servers are not changed" in gateway.stderr)
        place.write({})
        eventually(lambda: "it contains no servers; the servers are not changed" in gateway.stderr)
        assert tools_of(gateway) == ["a_pid", "b_pid"]
        assert tools_of(gateway) == ["a_pid", "b_pid"]
        around = {
            "command": sys.executable,
            "args": ["-m", "fastrpc", "gateway", place.path],
            "env": place.variables,
        }
        place.write({"c": place.entry("c"), "itself": around, "a": place.entry("a")})
        until_notified(gateway, changed)
        gone(pids[1])
        until_notified(gateway, changed)  # by itself, without a list in between
        assert tools_of(gateway) == ["c_pid", "a_pid"]
        assert int(text_of(gateway.call("a_pid"))) == pids[0]
        eventually(lambda: "would start itself" in gateway.stderr)
        eventually(lambda: place.states()["itself"]["state"] == "failed")
        gateway.close_stdin()
        assert gateway.wait() == 0


# --- over HTTP ----------------------------------------------------------------------------------------


def test_over_http_it_needs_a_token_and_has_a_status(place: Place) -> None:
    httpx = pytest.importorskip("httpx", reason="the client over HTTP stands on it: pip install httpx")
    place.write({"a": place.entry("a", LIAR="1"), "b": place.entry("b")})
    environment = {**os.environ, **place.variables, "FASTRPC_TOKEN": TOKEN}
    arguments = ("gateway", place.path, "--http", "127.0.0.1:0")
    with HttpProcess(*arguments, environment=environment) as server:
        url = f"http://127.0.0.1:{server.port}/mcp"
        request = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        assert httpx.post(url, json=request, trust_env=False).status_code == 401
        assert place.states()["a"]["state"] == "not started"
        for version in (SESSION_VERSIONS[-1], STATELESS):
            with Client.sync(url, token=TOKEN, version=version, on_elicit={"value": "Bob"}) as client:
                assert [tool.name for tool in client.list_tools()][::4] == ["a_pid", "b_pid"]
                assert client.call_tool("a_ask").text == "accept Bob"
                assert [each.uri for each in client.list_resources()] == ["docs://a", "docs://b"]
                status = client.read_resource("fastrpc-gateway://status").contents[0]["text"]
                assert [each["name"] for each in json.loads(status)["servers"]] == ["a", "b"]
        (status,) = json.loads(place.status_at(url, TOKEN).stdout)
        assert [each["name"] for each in status["servers"]] == ["a", "b"]
        assert (
            "a: the resource fastrpc-gateway://status is left out: the gateway itself uses it"
            in server.stderr
        )
        itself = {"url": url, "headers": {"Authorization": f"Bearer {TOKEN}"}}
        place.write({"b": place.entry("b"), "itself": itself})
        with Client.sync(url, token=TOKEN) as client:
            eventually(lambda: client.list_tools()[0].name == "b_pid")
        eventually(lambda: place.states()["itself"]["state"] == "failed")

        def told_alike() -> dict[str, Any] | None:
            """The states, unless a server was tried again between two looks."""
            before, asked = place.states(), json.loads(place.status_at(url, TOKEN).stdout)[0]
            if before != place.states():
                return None
            told = {name: {**state} for name, state in before.items()}
            for state in told.values():
                state.pop("stderr", None)  # only this machine's user is shown it
            assert {each["name"]: each for each in asked["servers"]} == told
            return before

        states = eventually(told_alike)
        refused = place.status_at(url, "not-the-token-of-anybody")
        assert (refused.returncode, refused.stdout) == (1, "")
        assert states["b"]["state"] == "running"
        assert "this is the gateway itself" in states["itself"]["reason"]
        assert server.stop() == 0


@pytest.mark.parametrize(
    ("deny", "left", "warned"),
    [
        ("db:drop", ["s_x[1]", "s_x1"], ""),
        ("s:db:*", ["s_x[1]", "s_x1"], ""),
        ("s:x[1]", ["s_db:drop", "s_x1"], ""),
        ("sb:drop,x?", ["s_db:drop", "s_x[1]"], "sb:drop"),
    ],
)
def test_names_with_colons_and_brackets_are_denied_and_what_denies_nothing_is_said(
    place: Place, deny: str, left: list[str], warned: str
) -> None:
    names = ["db:drop", "x[1]", "x1"]
    tools = [{"name": name, "inputSchema": {"type": "object"}} for name in names]
    source = QUICK.replace('{"tools": [TOOL]}', f'{{"tools": {tools}}}')
    place.write({"s": {"command": sys.executable, "args": ["-I", "-S", "-c", source]}})
    with place.gateway("--deny", deny) as server:
        server.initialize(SESSION_VERSIONS[-1])
        assert tools_of(server) == left
        assert tools_of(server) == left
        words = [line for line in server.stderr.splitlines() if "matches no tool" in line]
        assert len(words) == bool(warned)
        assert all(f"{warned} matches no tool" in line for line in words)


def test_tools_that_the_file_leaves_out_are_not_shown(place: Place) -> None:
    entries = {"a": place.entry("a"), "b": place.entry("b")}
    entries["a"]["includeTools"] = ["pid", "ask"]
    entries["b"]["disabledTools"] = ["del*", "touch", "no_such"]
    place.write(entries)
    with place.gateway() as server:
        server.initialize(SESSION_VERSIONS[-1])
        assert tools_of(server) == ["a_pid", "a_ask", "b_pid", "b_ask"]
        server.ask("tools/call", {"name": "b_delete", "arguments": {}})
        assert server.answer()["error"]["code"] == -32602
        assert server.stderr.count("b: its entry names the tool no_such, which it does not have") == 1


@pytest.mark.parametrize("version", [*SESSION_VERSIONS, None])
def test_the_only_server_of_a_file_has_the_tools_that_its_entry_lets_be_used(
    place: Place, version: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    place.write({"a": {**place.entry("a"), "excludeTools": ["del*", "no_such"]}})
    with Client.sync(place.path, version=version, stderr=False) as client:
        names = [tool.name for tool in client.list_tools()]
        assert "pid" in names
        assert "delete" not in names
        assert client.server_info["name"] == "behind"
        with pytest.raises(RemoteError, match="Unknown tool: delete"):
            client.call_tool("delete")
    assert "a: its entry names the tool no_such, which it does not have" in caplog.text


def test_a_server_whose_entry_asks_for_what_only_an_editor_has_is_not_started(place: Place) -> None:
    entries = {"a": place.entry("a"), "b": place.entry("b", KEY="${input:key}")}
    place.write(entries)
    with place.gateway() as server:
        server.initialize(SESSION_VERSIONS[-1])
        assert tools_of(server)[0] == "a_pid"
        assert "b is not used: env: KEY: ${input:key}: is a question to a person" in server.stderr
        assert place.states()["b"]["state"] == "invalid"


# --- a client of several servers ----------------------------------------------------------------------


def test_a_client_uses_the_servers_of_a_file(place: Place) -> None:
    place.write({"a": place.entry("a"), "b": place.entry("b"), "bad": {"command": "/nonexistent"}})

    async def conversation() -> None:
        progress: list[Any] = []
        async with Client(place.path, on_elicit={"value": "Bob"}) as client:
            async with client.listen(uris=["docs://a"]) as changes:
                await client.call_tool("a_touch")
                assert (await anext(aiter(changes)))["params"]["uri"] == "docs://a"
            pids = await asyncio.gather(client.call_tool("a_pid"), client.call_tool("b_pid"))
            assert len({result.text for result in pids}) == 2
            asked = await client.call_tool("b_ask", on_progress=progress.append)
            assert asked.text == "accept Bob"
            assert progress
            first = int(pids[0].text)
            os.kill(first, signal.SIGKILL)
            gone(first)
            assert (await client.call_tool("b_pid")).text == pids[1].text
            with pytest.raises(RemoteError, match="bad cannot be used: "):
                await client.call_tool("bad_tool")
            names = [tool.name for tool in await client.list_tools()]
            assert names == ["a_pid", "a_ask", "a_delete", "a_touch", "b_pid", "b_ask", "b_delete", "b_touch"]
        none_left(place.mark)

    asyncio.run(conversation())


def test_a_client_without_a_loop_uses_several_servers_and_a_single_one(place: Place) -> None:
    with Client.sync({"mcpServers": {"a": place.entry("a"), "b": place.entry("b")}}, names="mcp") as client:
        assert [tool.name for tool in client.list_tools()][::4] == ["mcp__a__pid", "mcp__b__pid"]
        assert client.call_tool("mcp__b__delete").text == "deleted"
    with Client.sync({"mcpServers": {"a": place.entry("a")}}) as client:
        assert client.call_tool("delete").text == "deleted"
