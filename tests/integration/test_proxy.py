"""A server that serves what a child process offers: all of it passes, and nobody is left behind."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from typing import Any

import pytest
from stdio import serve

from fastrpc import DefinitionError, Server
from fastrpc.testing import Client, RemoteError
from fastrpc.versions import LATEST_LEGACY, MODERN, VERSIONS

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

BEHIND = '''
import asyncio, os, sys
from fastrpc import Context, Image, Server, ToolError, ToolResult

app = Server("behind", instructions="use it well")

@app.tool(title="Add", effect="read", meta={"team": "x"})
def add(a: int, b: int = 2) -> int:
    """Add two numbers."""
    return a + b

@app.tool
def fail() -> str:
    raise ToolError("it does not go")

@app.tool
def picture() -> ToolResult:
    return ToolResult([Image(b"png"), "text"])

@app.tool
async def work(ctx: Context) -> str:
    ctx.progress(1, 2, "half")
    ctx.warning("careful", logger="behind")
    ctx.progress(2, 2)
    return "done"

@app.tool
async def ask(ctx: Context) -> str:
    answer = await ctx.elicit("your name?", str)
    said = await ctx.sample("say hi")
    return f"{answer.action} {answer.data}, {said.text}"

@app.tool
async def sleep(path: str) -> str:
    try:
        await asyncio.sleep(30)
    finally:
        with open(path, "w") as file:
            file.write("cancelled")
    return "slept"

@app.tool
def pid() -> int:
    return os.getpid()

@app.tool
def crash() -> str:
    os._exit(3)

@app.tool
def grow(name: str) -> str:
    app.add_tool(lambda: f"I am {name}", name=name)
    app.remove_tool("fail")
    return "grown"

@app.tool
def touch() -> str:
    app.resource_updated("docs://guide")
    return "touched"

@app.resource("docs://guide", mime_type="text/markdown")
def guide() -> str:
    return "# read me"

@app.resource("docs://{id}/raw{?page}")
def raw(id: str, page: int = 1) -> bytes | None:
    return f"{id} {page}".encode() if id != "0" else None

@app.prompt
def review(language: str, style: str = "kind") -> str:
    """Review code."""
    return f"review {language} {style}"

@app.complete("review", "language")
def languages(value: str) -> list[str]:
    return [name for name in ("python", "perl") if name.startswith(value)]

app.run()
if "STUBBORN" in os.environ:
    import signal, time
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(60)
'''


@pytest.fixture
def command(tmp_path: Any) -> list[str]:
    path = tmp_path / "behind.py"
    path.write_text(BEHIND)
    return [sys.executable, str(path)]


@pytest.fixture(autouse=True)
def _find_fastrpc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", REPOSITORY)


def with_client(app: Server, conversation: Any, **options: Any) -> Any:
    async def whole() -> Any:
        async with Client(app, **options) as client:
            return await conversation(client)

    return asyncio.run(asyncio.wait_for(whole(), 60))


def runs(pid: int) -> bool:
    """Whether a process is there, and no zombie."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def ends(pid: int, seconds: float = 5.0) -> bool:
    deadline = time.monotonic() + seconds
    while runs(pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


# --- what passes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
def test_every_feature_passes_in_every_version(command: list[str], version: str) -> None:
    async def conversation(client: Client) -> None:
        assert {"tools", "resources", "prompts"} <= set(client.info["capabilities"])
        assert client.info["instructions"] == "use it well"
        entries = {entry["name"]: entry for entry in await client.tools()}
        add = entries["add"]
        assert add["description"] == "Add two numbers."
        assert list(add["inputSchema"]["properties"]) == ["a", "b"]
        assert ("outputSchema" in add) == (version >= "2025-06-18")
        result = await client.call("add", a=1)
        assert result.text == "3"
        assert not result.is_error
        assert (await client.call("add", a="x")).is_error
        assert (await client.call("fail")).text == "it does not go"
        kinds = [block["type"] for block in (await client.call("picture")).content]
        assert kinds == ["image", "text"]

        listed = (await client.request("resources/list"))["resources"]
        assert [(entry["uri"], entry["mimeType"]) for entry in listed] == [("docs://guide", "text/markdown")]
        contents = (await client.request("resources/read", {"uri": "docs://guide"}))["contents"]
        assert contents == [{"uri": "docs://guide", "mimeType": "text/markdown", "text": "# read me"}]
        contents = (await client.request("resources/read", {"uri": "docs://7/raw?page=3"}))["contents"]
        assert contents[0]["blob"] == "NyAz"
        for uri in ("docs://nothing", "docs://0/raw"):
            with pytest.raises(RemoteError) as missing:
                await client.request("resources/read", {"uri": uri})
            assert missing.value.code == (-32602 if version == MODERN else -32002)

        prompt = (await client.request("prompts/list"))["prompts"][0]
        assert [argument["name"] for argument in prompt["arguments"]] == ["language", "style"]
        got = await client.request("prompts/get", {"name": "review", "arguments": {"language": "C"}})
        assert got["messages"][0]["content"]["text"] == "review C kind"
        with pytest.raises(RemoteError) as incomplete:
            await client.request("prompts/get", {"name": "review"})
        assert incomplete.value.code == -32602
        assert (await client.complete("review", "language", "pe")).values == ["perl"]

        params = {"name": "work", "arguments": {}, "_meta": {"progressToken": "mine"}}
        await client.request("tools/call", params)
        assert [report["progress"] for report in client.progress] == [1, 2]
        assert all(report["progressToken"] == "mine" for report in client.progress)

    with_client(Server.proxy(command), conversation, version=version)


@pytest.mark.parametrize("version", [LATEST_LEGACY, MODERN])
def test_questions_go_to_the_client_and_logs_by_its_level(command: list[str], version: str) -> None:
    async def conversation(client: Client) -> None:
        assert (await client.call("ask")).text == "accept Bob, hello"
        await client.call("work")
        assert client.logs == [{"level": "warning", "data": "careful", "logger": "behind"}]

    options: dict[str, Any] = {"on_elicit": {"value": "Bob"}, "on_sample": "hello", "log_level": "warning"}
    with_client(Server.proxy(command), conversation, version=version, **options)
    with_client(
        Server.proxy(command),
        lambda client: client.call("work"),
        version=version,
        **{**options, "log_level": "error"},
    )


def test_a_client_that_cannot_be_asked_fails_the_call_alone(command: list[str]) -> None:
    async def conversation(client: Client) -> None:
        result = await client.call("ask")
        assert result.is_error
        assert "elicitation" in result.text
        assert (await client.call("add", a=1)).text == "3"

    with_client(Server.proxy(command), conversation)


def test_cancellation_reaches_the_call_behind(command: list[str], tmp_path: Any) -> None:
    path = tmp_path / "note"

    async def conversation(client: Client) -> None:
        id, _ = client.begin("tools/call", {"name": "sleep", "arguments": {"path": str(path)}})
        await client.call("add", a=1)
        assert not path.exists()
        client.cancel(id)
        for _ in range(500):
            if path.exists():
                break
            await asyncio.sleep(0.01)
        assert path.exists()

    with_client(Server.proxy(command), conversation)


def test_changes_behind_are_told_and_listed(command: list[str]) -> None:
    async def conversation(client: Client) -> None:
        await client.request("resources/subscribe", {"uri": "docs://guide"})
        await client.call("grow", name="late")
        await client.call("touch")
        for _ in range(500):
            told = {message["method"] for message in client.notifications}
            if "notifications/tools/list_changed" in told:
                break
            await asyncio.sleep(0.01)
        names = [entry["name"] for entry in await client.tools()]
        assert "late" in names
        assert "fail" not in names
        assert (await client.call("late")).text == "I am late"

    with_client(Server.proxy(command), conversation)


def test_an_update_of_a_resource_behind_is_told_to_those_who_subscribed(command: list[str]) -> None:
    async def conversation(client: Client) -> None:
        await client.request("resources/subscribe", {"uri": "docs://guide"})
        await client.call("touch")
        for _ in range(300):
            if any("resources/updated" in message["method"] for message in client.notifications):
                return
            await asyncio.sleep(0.01)
        raise AssertionError("nothing was told")

    with_client(Server.proxy(command), conversation)


def test_a_proxy_is_mounted_like_any_server(command: list[str]) -> None:
    app = Server("outer")
    app.add_tool(lambda: "mine", name="mine")
    app.mount(Server.proxy(command), "b")

    async def conversation(client: Client) -> None:
        assert [entry["name"] for entry in await client.tools()][:2] == ["mine", "b_add"]
        assert (await client.call("b_add", a=2)).text == "4"
        assert (await client.call("mine")).text == "mine"
        assert (await client.complete("b_review", "language", "py")).values == ["python"]

    with_client(app, conversation)


# --- life and death -----------------------------------------------------------------------------------


def test_it_ends_with_the_last_client_and_starts_again_for_the_next(command: list[str]) -> None:
    app = Server.proxy(command)

    async def conversation(client: Client) -> int:
        return int((await client.call("pid")).text)

    first, second = (with_client(app, conversation) for _ in range(2))
    assert first != second
    assert not runs(first)
    assert not runs(second)


def test_one_that_does_not_end_by_itself_is_ended(command: list[str]) -> None:
    app = Server.proxy(command, env={**os.environ, "STUBBORN": "1"})

    async def conversation(client: Client) -> int:
        return int((await client.call("pid")).text)

    began = time.monotonic()
    assert not runs(with_client(app, conversation))
    assert time.monotonic() - began < 10


def test_calls_in_flight_fail_when_it_dies_and_the_next_one_starts_it_again(
    command: list[str], tmp_path: Any
) -> None:
    async def conversation(client: Client) -> None:
        first = (await client.call("pid")).text
        waiting = client.begin("tools/call", {"name": "sleep", "arguments": {"path": str(tmp_path / "n")}})[1]
        crashed = await client.call("crash")
        assert crashed.is_error
        assert "exit code 3" in crashed.text
        assert (await waiting)["isError"]
        again = await client.call("pid")
        assert not again.is_error
        assert again.text != first

    with_client(Server.proxy(command), conversation)


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (["fastrpc-no-such-program"], "127"),
        ([sys.executable, "-c", "raise SystemExit(5)"], "5"),
        ([sys.executable, "-c", "import time; time.sleep(30)"], "did not start within 0.5 s"),
        ([sys.executable, "-c", "print('hello'); input(); input()"], "did not start within 0.5 s"),
    ],
)
def test_one_that_cannot_be_started_is_told_and_holds_nobody_up(program: list[str], reason: str) -> None:
    async def conversation(client: Client) -> None:
        with pytest.raises(RemoteError) as failure:
            await client.tools()
        assert reason in failure.value.message
        assert failure.value.code == -32603
        await client.request("ping")

    with_client(Server.proxy(program, start_seconds=0.5), conversation)

    async def outer(client: Client) -> None:
        assert [entry["name"] for entry in await client.tools()] == ["mine"]
        assert (await client.call("mine")).text == "mine"

    app = Server("outer")
    app.add_tool(lambda: "mine", name="mine")
    app.mount(Server.proxy(program, start_seconds=0.5), "b")
    with_client(app, outer)


def test_an_empty_command_is_refused() -> None:
    with pytest.raises(DefinitionError, match="command"):
        Server.proxy([])


PROXY = """
from fastrpc import Server
app = Server.proxy({command!r}, name="proxy")
"""


def test_requests_that_come_before_the_child_has_started_are_answered_in_turn(command: list[str]) -> None:
    """A client that does not wait for the answer to `initialize` is served all the same."""
    hello = {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    with serve(PROXY.format(command=command)) as server:
        server.send_message(
            {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
            {
                "jsonrpc": "2.0",
                "id": 3,
                "method": "tools/call",
                "params": {"name": "add", "arguments": {"a": 1}},
            },
            [
                {"jsonrpc": "2.0", "id": 4, "method": "prompts/list"},
                {"jsonrpc": "2.0", "id": 5, "method": "ping"},
            ],
            {"jsonrpc": "2.0", "id": 6, "method": "resources/list"},
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 6}},
        )
        answers = server.answers(4)
        assert [answer["id"] for answer in answers if isinstance(answer, dict)] == [1, 2, 3]
        batch = next(answer for answer in answers if isinstance(answer, list))
        assert {answer["id"] for answer in batch} == {4, 5}
        assert answers[0]["result"]["protocolVersion"] == "2025-03-26"
        assert "prompts" in answers[0]["result"]["capabilities"]
        server.ask("tools/call", {"name": "grow", "arguments": {"name": "late"}})
        methods = [message.get("method") for message in server.answers(2)]
        assert "notifications/tools/list_changed" in methods
        server.close_stdin()
        assert server.wait() == 0


@pytest.mark.parametrize("how", ["end of input", "SIGTERM", "SIGKILL"])
def test_the_child_ends_with_its_proxy(command: list[str], how: str) -> None:
    with serve(PROXY.format(command=command)) as server:
        server.initialize()
        child = int(server.call("pid")["content"][0]["text"])
        assert runs(child)
        if how == "end of input":
            server.close_stdin()
            assert server.wait() == 0
        else:
            server.signal(15 if how == "SIGTERM" else 9)
            server.wait()
        assert ends(child), f"the child outlived {how}"
