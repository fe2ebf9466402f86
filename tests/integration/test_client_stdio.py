"""The client before real servers over stdio: ours in every version, with a loop and without, and the official
one."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pydantic
import pytest
from support.waiting import until

from fastrpc import CallResult, Client, InvalidAnswer, RemoteError, RequestTimeout, ToolCallFailed
from fastrpc.protocol.versions import ELICITATION, STATELESS, VERSIONS

SERVER = '''
import asyncio
from dataclasses import dataclass
from fastrpc import Context, Server, ToolError

app = Server("shop", version="1.5", instructions="Ask for prices.", page_size=2)

@dataclass
class Price:
    amount: int
    currency: str = "EUR"

@app.tool
def price(name: str) -> Price:
    """The price of a thing."""
    return Price(len(name))

@app.tool
def echo(text: str) -> str:
    """The text."""
    return text

@app.tool
def lines(count: int) -> list[str]:
    """So many lines."""
    return [str(n) for n in range(count)]

@app.tool
def fail() -> str:
    """Fails."""
    raise ToolError("no luck")

@app.tool
async def steps(ctx: Context, count: int) -> str:
    """Reports its progress, and logs."""
    for n in range(count):
        ctx.progress(n + 1, count)
        ctx.log(f"step {n + 1}", "info")
        await asyncio.sleep(0.01)
    return "done"

@app.tool
async def endless() -> str:
    """Ends when it is cancelled."""
    open("begun", "w").close()
    try:
        await asyncio.sleep(60)
    finally:
        with open("cancelled", "w"):
            pass
    return "late"

@app.tool
async def ask(ctx: Context) -> str:
    """Asks for a name."""
    answer = await ctx.elicit("Your name?", str)
    return f"{answer.action} {answer.data}"

@app.tool
def grow() -> str:
    """Adds a tool."""
    app.add_tool(lambda: "new", name="grown")
    return "ok"

@app.resource("docs://guide")
def guide() -> str:
    return "The guide"

@app.prompt
def review(language: str, lines: int = 1) -> str:
    return f"Review {lines} lines of {language}"

app.run()
'''


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    path = tmp_path / "server.py"
    path.write_text(SERVER, encoding="utf-8")
    return [sys.executable, str(path)]


@dataclass
class Price:
    amount: int
    currency: str


class PriceModel(pydantic.BaseModel):
    amount: int


each_version = pytest.mark.parametrize("version", VERSIONS)


@each_version
def test_everything_works_in_a_loop_in_every_version(
    command: list[str], version: str, tmp_path: Path
) -> None:
    logs: list[Any] = []
    progress: list[Any] = []

    async def run() -> None:
        client = Client(
            command,
            version=version,
            on_elicit={"value": "Ann"},
            on_log=logs.append,
            log_level="info",
            cwd=str(tmp_path),
        )
        async with client:
            assert client.version == version
            assert (client.server_info["name"], client.server_info["version"]) == ("shop", "1.5")
            assert client.instructions == "Ask for prices."
            await client.ping()
            names = [tool.name async for tool in client.iter_tools()]
            assert names[:3] == ["price", "echo", "lines"]
            assert len(names) == 8
            assert (await client.call_tool("echo", {"text": "há\n"})).text == "há\n"
            assert (await client.call_tool("fail")).is_error
            result = await client.call_tool("steps", {"count": 3}, on_progress=progress.append)
            assert result.text == "done"
            assert [each["progress"] for each in progress] == [1, 2, 3]
            assert [log["data"] for log in logs] == ["step 1", "step 2", "step 3"]
            call = asyncio.ensure_future(client.call_tool("endless"))
            await until((tmp_path / "begun").exists)
            call.cancel()
            await until((tmp_path / "cancelled").exists)
            assert call.cancelled()
            if version in ELICITATION:
                assert (await client.call_tool("ask")).text == "accept Ann"
            assert (await client.read_resource("docs://guide")).text == "The guide"
            assert [resource.uri for resource in await client.list_resources()] == ["docs://guide"]
            assert await client.list_resource_templates() == []
            assert [prompt.name for prompt in await client.list_prompts()] == ["review"]
            prompt = await client.get_prompt("review", {"language": "rust", "lines": 2})
            assert prompt.text == "Review 2 lines of rust"
            async with client.listen(tools=True) as changes:
                await client.call_tool("grow")
                assert (await changes.next())["method"] == "notifications/tools/list_changed"
            with pytest.raises(RemoteError):
                await client.call_tool("nothing")

    asyncio.run(asyncio.wait_for(run(), 60))


@each_version
def test_everything_works_without_a_loop_in_every_version(
    command: list[str], version: str, tmp_path: Path
) -> None:
    logs: list[Any] = []
    progress: list[Any] = []
    asked: list[Any] = []

    async def on_elicit(params: dict[str, Any]) -> dict[str, Any]:
        asked.append(params)
        await asyncio.sleep(0)
        return {"value": "Ann"}

    client = Client.sync(
        command, version=version, on_elicit=on_elicit, on_log=logs.append, log_level="info", cwd=str(tmp_path)
    )
    with client:
        assert client.version == version
        assert client.server_info["name"] == "shop"
        assert client.instructions == "Ask for prices."
        client.ping()
        assert len([tool.name for tool in client.iter_tools()]) == len(client.list_tools()) == 8
        for text in ("one", "two", "há\n", ""):
            assert client.call_tool("echo", {"text": text}).text == text
        assert client.call_tool("steps", {"count": 3}, on_progress=progress.append).text == "done"
        assert [each["progress"] for each in progress] == [1, 2, 3]
        assert [log["data"] for log in logs] == ["step 1", "step 2", "step 3"]
        with pytest.raises(RequestTimeout):
            client.call_tool("endless", timeout_seconds=0.1)
        if version in ELICITATION:
            assert client.call_tool("ask").text == "accept Ann"
            assert len(asked) == 1
        assert client.read_resource("docs://guide").text == "The guide"
        assert [resource.uri for resource in client.iter_resources()] == ["docs://guide"]
        assert list(client.iter_resource_templates()) == client.list_resource_templates() == []
        assert [prompt.name for prompt in client.iter_prompts()] == ["review"]
        assert client.get_prompt("review", {"language": "rust"}).text == "Review 1 lines of rust"
        assert client.get_prompt("review", {"language": "rust", "lines": None}).text.startswith("Review 1 ")
        with client.listen(tools=True) as changes:
            client.call_tool("grow")
            assert changes.next()["method"] == "notifications/tools/list_changed"
        with pytest.raises(RemoteError):
            client.call_tool("nothing")


def test_the_latest_version_is_chosen_by_itself(command: list[str]) -> None:
    with Client.sync(command) as client:
        assert client.version == STATELESS


def test_a_server_that_must_speak_the_latest_version_has_all_the_time_that_it_has_to_start(
    command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fastrpc.client.session.PROBE_SECONDS", 0.001)  # no process starts within that
    with Client.sync(command, version=STATELESS) as client:
        assert client.version == STATELESS
        assert client.call_tool("lines", {"count": 1}).text


def test_values_have_the_type_that_is_wanted(command: list[str]) -> None:
    with Client.sync(command) as client:
        assert client.call_tool("price", {"name": "abc"}, as_type=Price) == Price(3, "EUR")
        assert client.call_tool("price", {"name": "abc"}, as_type=PriceModel) == PriceModel(amount=3)
        assert client.call_tool("price", {"name": "abc"}, as_type=dict) == {"amount": 3, "currency": "EUR"}
        assert client.call_tool("lines", {"count": 2}, as_type=list[str]) == ["0", "1"]
        assert client.call_tool("echo", {"text": "5"}, as_type=str) == "5"
        with pytest.raises(InvalidAnswer, match="Price"):
            client.call_tool("lines", {"count": 2}, as_type=Price)
        with pytest.raises(ToolCallFailed, match="no luck") as caught:
            client.call_tool("fail", as_type=str)
        assert isinstance(caught.value.result, CallResult)


def test_a_client_without_a_loop_works_where_a_loop_runs(command: list[str]) -> None:
    """As in a notebook."""

    async def run() -> str:
        with Client.sync(command) as client:
            assert len(client.list_tools()) == 8
            return client.call_tool("echo", {"text": "here"}).text

    assert asyncio.run(run()) == "here"


def test_threads_take_turns(command: list[str]) -> None:
    with Client.sync(command) as client:
        found: list[str] = []

        def work(number: int) -> None:
            for at in range(50):
                found.append(client.call_tool("echo", {"text": f"{number} {at}"}).text)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert sorted(found) == sorted(f"{number} {at}" for number in range(4) for at in range(50))


def test_a_handler_must_not_use_the_client_that_has_called_it(command: list[str]) -> None:
    client = Client.sync(command, on_elicit=lambda params: {"value": str(client.list_tools())})
    with client, pytest.raises(RuntimeError, match="a handler must not use the client"):
        client.call_tool("ask")


INTERRUPTED = """
import _thread, os, sys, threading, time
from fastrpc import Client

def interrupt():
    while not os.path.exists("begun"):
        time.sleep(0.01)
    _thread.interrupt_main()

with Client.sync(sys.argv[1:], version="2025-11-25") as client:
    threading.Thread(target=interrupt).start()
    try:
        client.call_tool("endless")
    except KeyboardInterrupt:
        print("interrupted")
"""


INTERRUPTED_LOOP = """
import asyncio, os, signal, sys
from fastrpc import Client

async def interrupted():
    os.kill(os.getpid(), signal.SIGINT)
    print("not raised here")
    await asyncio.sleep(40)

with Client.sync(sys.argv[1:], version="2025-11-25") as client:
    for _ in range(2):
        try:
            client._run(interrupted())
        except KeyboardInterrupt:
            print(client.call_tool("echo", {"text": "goes on"}).text)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
"""


def test_ctrl_c_does_not_raise_inside_the_loop_which_can_be_used_again(
    command: list[str], tmp_path: Path
) -> None:
    """What is raised while uvloop begins to run leaves a loop that neither runs nor closes."""
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_LOOP, *command],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert (done.stdout, done.stderr) == ("not raised here\ngoes on\n" * 2, "")


OWN_HANDLER = """
import asyncio, os, signal, sys, threading
from fastrpc import Client

def interrupt(*_):
    raise KeyboardInterrupt

async def interrupted():
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        await asyncio.sleep(40)
    except asyncio.CancelledError:
        print("cancelled")
        raise

signal.signal(signal.SIGINT, interrupt)
with Client.sync(sys.argv[1:], version="2025-11-25") as client:
    try:
        client._run(interrupted())
    except KeyboardInterrupt:
        print(client.call_tool("echo", {"text": "goes on"}).text)
"""


def test_a_handler_of_the_program_that_raises_at_ctrl_c_cancels_what_runs(
    command: list[str], tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", OWN_HANDLER, *command],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert (done.stdout, done.stderr) == ("cancelled\ngoes on\n", "")


def test_a_signal_that_comes_just_before_the_client_waits_is_heard(
    command: list[str], tmp_path: Path
) -> None:
    """Such a signal ends no poll(2). `interrupt_main` does what the handler does, and interrupts nothing."""
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, *command],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=40,  # less than the call takes
    )
    assert (done.stdout, done.returncode) == ("interrupted\n", 0), done.stderr


def test_many_calls_at_once_have_each_its_own_answer(command: list[str]) -> None:
    async def run() -> None:
        async with Client(command) as client:
            texts = [f"text {number} " + "x" * (number % 1000) for number in range(2000)]
            results = await asyncio.gather(*[client.call_tool("echo", {"text": text}) for text in texts])
            assert [result.text for result in results] == texts
            large = "y" * 3_000_000
            both = await asyncio.gather(*[client.call_tool("echo", {"text": large}) for _ in range(4)])
            assert all(result.text == large for result in both)

    asyncio.run(asyncio.wait_for(run(), 60))
    with Client.sync(command) as client:
        assert client.call_tool("echo", {"text": large_text()}).text == large_text()


def large_text() -> str:
    return "z" * 5_000_000


OFFICIAL = '''
from mcp.server.mcpserver import MCPServer

server = MCPServer("official")

@server.tool()
def echo(text: str) -> str:
    """The text."""
    return text

@server.tool()
def add(a: int, b: int) -> int:
    """The sum."""
    return a + b

server.run()
'''


@pytest.mark.long
@pytest.mark.parametrize("version", [None, *VERSIONS])
def test_the_official_servers_are_served_by_as_well(tmp_path: Path, version: str | None) -> None:
    path = tmp_path / "official.py"
    path.write_text(OFFICIAL, encoding="utf-8")
    with Client.sync([sys.executable, str(path)], version=version) as client:
        if version is not None:
            assert client.version == version
        assert [tool.name for tool in client.list_tools()] == ["echo", "add"]
        for text in ("one", "há\n", "three"):
            assert client.call_tool("echo", {"text": text}).text == text
        assert client.call_tool("add", {"a": 2, "b": 3}, as_type=int) == 5
