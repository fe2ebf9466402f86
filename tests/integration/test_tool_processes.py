"""Tools that run in processes of the server, and on Executors: results, errors, limits, and what is left."""

from __future__ import annotations

import asyncio
import functools
import os
import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from support.child_processes import gone, is_alive
from support.in_memory import every_version, with_client
from support.stdio import STATELESS_META, serve
from support.task_client import TaskClient
from support.waiting import eventually, until

from fastrpc import Context, DefinitionError, Server, ToolError, loader, tool
from fastrpc.definitions import offloaded
from fastrpc.definitions.tool import Tool
from fastrpc.protocol.versions import STATELESS

MODULE = '''
import ctypes, os, subprocess, sys, time
from dataclasses import dataclass
from datetime import date
from enum import Enum
from pathlib import Path

from fastrpc import Context, Image, Server, ToolError, ToolResult

app = Server("here")
FOLDER = Path(__file__).parent


class Colour(Enum):
    RED = "red"


@dataclass
class Point:
    x: int
    when: date
    colour: Colour = Colour.RED


def text(word: str, times: int = 2) -> str:
    """A text."""
    return word * times

def number(a: float, *, b: int | None = None) -> float:
    """A number."""
    return a + (b or 1)

def points(first: Point, others: list[Point]) -> list[Point]:
    """Values of several types."""
    assert isinstance(first, Point) and isinstance(first.when, date) and isinstance(first.colour, Colour)
    return [first, *others]

def nothing() -> None:
    """No result."""

def mapping(values: dict[str, int]) -> dict[str, int]:
    """An object."""
    return {**values, "more": 1}

def picture() -> Image:
    """Content."""
    return Image(b"\\x89PNG", mime_type="image/png")

def whole() -> ToolResult:
    """A result with everything."""
    return ToolResult("some text", structured={"a": 1}, meta={"example.com/m": 1})

def failed() -> ToolResult:
    """A result that is an error."""
    return ToolResult(["one", "two"], is_error=True)

def refuses(why: str) -> str:
    """Raise a ToolError."""
    raise ToolError(why)

def fails(what: str) -> str:
    """Raise another exception."""
    return {}[what]

def unencodable() -> dict[str, object]:
    """Return what is not JSON."""
    return {"a": object()}

def half() -> str:
    """Return half a surrogate pair."""
    return "\\ud800"

def printing() -> str:
    """Print, which must not reach the pipe."""
    print("{}")
    subprocess.run(["echo", "[]"])
    return "printed"

VALUES = (text, number, points, nothing, mapping, picture, whole)
FAILURES = (failed, refuses, fails, unencodable, half, printing)
for function in (*VALUES, *FAILURES):
    name = function.__name__
    app.add_tool(function, name=name + "_thread", run="thread")
    app.add_tool(function, name=name + "_process", run="process")


@app.tool(run="process")
def pid() -> int:
    """The process."""
    return os.getpid()

@app.tool(run="process")
def reports(ctx: Context, count: int) -> bool:
    """Report progress and log."""
    for number in range(count):
        ctx.progress(number + 1, count, f"step {number + 1}")
    ctx.warning({"seen": count}, logger="here")
    return ctx.wants_progress

@app.tool(run="process")
def reaches(what: str, ctx: Context) -> str:
    """Use a part of the Context."""
    return str(getattr(ctx, what))

@app.tool(run="process")
def crashes(how: str) -> str:
    """End the process."""
    if how == "segfault":
        ctypes.string_at(0)
    elif how == "exit":
        os._exit(3)
    elif how == "kill":
        os.kill(os.getpid(), 9)
    return "still here"

@app.tool(run="process", max_memory=400 * 1024 * 1024)
def takes(mib: int) -> int:
    """Take memory."""
    return len(bytearray(mib * 1024 * 1024))

@app.tool(run="process", timeout_seconds=0.5)
def limited() -> str:
    """Run longer than it may, with a child."""
    return endless("limited")

@app.tool(run="process", task="allowed", after_seconds=0)
def endless(mark: str) -> str:
    """Run until it is ended, with children: one is in a session that no signal to a group reaches."""
    child = subprocess.Popen(["sh", "-c", "setsid sleep 600 & echo $! > $0; exec sleep 600", FOLDER / "deep"])
    time.sleep(0.2)
    text = f"{os.getpid()} {child.pid} {(FOLDER / 'deep').read_text()}"
    (FOLDER / "new").write_text(text)
    os.replace(FOLDER / "new", FOLDER / mark)
    while True:
        pass

@app.tool(run="process")
def variables() -> list[str]:
    """The names in the environment, and the path."""
    return [*os.environ, *sys.path]

@app.tool(run="process", task="required")
def doubled(number: int, ctx: Context) -> int:
    """Work, in a task or not."""
    ctx.progress(1, 2, "half of it")
    return number * 2

if __name__ == "__main__":
    app.run()
'''

WORD = "processmodule"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("tools")
    (place / f"{WORD}.py").write_text(MODULE)
    return place


@pytest.fixture(scope="module")
def app(folder: Path) -> Iterator[Server]:
    yield loader.load_target(str(folder / f"{WORD}.py"))
    sys.modules.pop(WORD, None)


def call(app: Server, name: str, version: str = STATELESS, **arguments: Any) -> Any:
    def conversation(client: Any) -> Any:
        return client.request("tools/call", {"name": name, "arguments": arguments})

    return with_client(app, conversation, version)


POINT = {"x": 1, "when": "2026-01-02", "colour": "red"}
CALLS: dict[str, dict[str, Any]] = {
    "text": {"word": "ä\u2028\0"},
    "number": {"a": 2, "b": "4"},
    "points": {"first": POINT, "others": [POINT]},
    "nothing": {},
    "mapping": {"values": {"a": 1}},
    "picture": {},
    "whole": {},
    "failed": {},
    "refuses": {"why": "not today"},
    "fails": {"what": "password=hunter2"},
    "unencodable": {},
    "half": {},
    "printing": {},
}


@every_version
def test_a_call_in_a_process_is_answered_as_one_on_a_thread(app: Server, version: str) -> None:
    async def both(client: Any) -> None:
        for name, arguments in CALLS.items():
            results = []
            for place in ("thread", "process"):
                params = {"name": f"{name}_{place}", "arguments": arguments}
                results.append(await client.request("tools/call", params))
            assert results[0] == results[1], name

    with_client(app, both, version)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("text", {}), ("text", {"word": 1, "times": "many"}), ("points", {"first": {"x": 1}, "others": []})],
)
def test_wrong_arguments_are_refused_before_a_process_is_asked(
    app: Server, name: str, arguments: Any
) -> None:
    there, here = (call(app, f"{name}_{place}", **arguments) for place in ("process", "thread"))
    assert there["isError"]
    assert there == here


def test_a_process_is_used_again_and_ends_with_the_last_connection(app: Server) -> None:
    async def conversation(client: Any) -> list[int]:
        return [(await client.call_tool("pid")).structured["result"] for _ in range(3)]

    first, *others = with_client(app, conversation)
    assert others == [first, first]
    gone(first)


def test_calls_at_once_run_in_several_processes(app: Server) -> None:
    async def conversation(client: Any) -> set[int]:
        results = await asyncio.gather(*(client.call_tool("pid") for _ in range(12)))
        return {result.structured["result"] for result in results}

    assert 1 < len(with_client(app, conversation)) <= max(4, os.cpu_count() or 1)


def test_progress_and_logs_go_to_the_client(app: Server) -> None:
    reported: list[Any] = []

    async def conversation(client: Any) -> Any:
        await client.set_log_level("info")
        params = {"name": "reports", "arguments": {"count": 3}}
        result = await client.request("tools/call", params, on_progress=reported.append)
        return result, client.logs

    result, logged = with_client(app, conversation, STATELESS)
    assert result["structuredContent"] == {"result": True}
    assert logged == [{"level": "warning", "data": {"seen": 3}, "logger": "here"}]
    assert [(each["progress"], each["total"], each["message"]) for each in reported] == [
        (1, 3, "step 1"),
        (2, 3, "step 2"),
        (3, 3, "step 3"),
    ]


def test_no_log_goes_to_a_client_that_wants_none(app: Server) -> None:
    async def conversation(client: Any) -> Any:
        await client.request("tools/call", {"name": "reports", "arguments": {"count": 1}})
        return client.logs

    assert with_client(app, conversation, STATELESS) == []


@pytest.mark.parametrize("what", ["principal", "caller", "state", "server", "client_capabilities"])
def test_what_a_process_has_not_is_refused(app: Server, what: str) -> None:
    result = call(app, "reaches", what=what)
    assert result["isError"]
    assert f'run="process" has no {what}' in result["content"][0]["text"]


@pytest.mark.parametrize(
    ("how", "said"),
    [("segfault", "SIGSEGV"), ("exit", "exit code 3"), ("kill", "SIGKILL"), ("", "still here")],
)
def test_a_crash_is_one_error_and_the_next_call_works(app: Server, how: str, said: str) -> None:
    async def conversation(client: Any) -> Any:
        before = await client.request("tools/call", {"name": "crashes", "arguments": {"how": how}})
        return before, (await client.call_tool("pid")).structured["result"]

    result, pid = with_client(app, conversation)
    assert result["isError"] is bool(how)
    assert said in result["content"][0]["text"]
    assert pid > 0


def test_a_call_gets_no_more_memory_than_its_tool_states(app: Server) -> None:
    refused = call(app, "takes", mib=500)
    assert refused["isError"]
    assert "max_memory allows (419,430,400 bytes)" in refused["content"][0]["text"]
    assert call(app, "takes", mib=20)["structuredContent"]["result"] == 20 * 1024 * 1024


def pids_in(path: Path) -> list[int]:
    return [int(each) for each in path.read_text().split()] if path.exists() else []


def test_a_time_limit_ends_all_processes_of_a_call(app: Server, folder: Path) -> None:
    async def conversation(client: Any) -> Any:
        await client.call_tool("pid")  # a process has been started
        return await client.request("tools/call", {"name": "limited"})

    result = with_client(app, conversation)
    assert result["isError"]
    assert "did not end within 0.5 s" in result["content"][0]["text"]
    pids = pids_in(folder / "limited")
    assert len(pids) == 3
    for pid in pids:
        gone(pid)


def test_cancelling_a_call_ends_all_its_processes(app: Server, folder: Path) -> None:
    async def conversation(client: Any) -> list[int]:
        waiting = asyncio.ensure_future(client.call_tool("endless", {"mark": "cancelled"}))
        await until(lambda: (folder / "cancelled").exists())
        pids = pids_in(folder / "cancelled")
        assert len(pids) == 3
        assert all(map(is_alive, pids))
        waiting.cancel()
        await until(lambda: not any(map(is_alive, pids)))
        return [(await client.call_tool("pid")).structured["result"], *pids]

    pid, *others = with_client(app, conversation)
    assert pid not in others


def test_a_tool_in_a_process_makes_a_task(app: Server, folder: Path) -> None:
    async def conversation() -> None:
        client = TaskClient(app)
        task_id = await client.task("doubled", number=21)
        found = await client.ended(task_id)
        assert found["result"]["structuredContent"] == {"result": 42}
        task_id = await client.task("endless", mark="task")
        await until(lambda: (folder / "task").exists())
        pids = pids_in(folder / "task")
        await client.result("tasks/cancel", {"taskId": task_id})
        await until(lambda: not any(map(is_alive, pids)))
        client.close()
        await until(lambda: not app.runtime.dispatchers)
        await app.runtime.leave()

    asyncio.run(asyncio.wait_for(conversation(), 60))


def test_hooks_and_errors_are_the_servers(folder: Path) -> None:
    app = Server("hooked")
    module = loader.load_file(str(folder / f"{WORD}.py"))
    app.add_tool(module.text, run="process", name="text_process")
    app.add_tool(module.fails, run="process", name="fails_process")

    @app.before
    def longer(call: Any) -> None:
        call.arguments["times"] = 3

    @app.on_error
    def named(call: Any, error: BaseException) -> Any:
        return ToolError(f"{type(error).__name__} in {call.name}: {error}")

    assert call(app, "text_process", word="a")["content"][0]["text"] == "aaa"
    assert call(app, "fails_process", what="x")["content"][0]["text"] == "KeyError in fails_process: 'x'"


def test_a_tool_that_its_module_does_not_define_is_refused(folder: Path) -> None:
    app = Server("other")
    app.add_tool(loader.load_file(str(folder / f"{WORD}.py")).text, run="process", name="of_another_name")
    said = call(app, "of_another_name", word="a")["content"][0]["text"]
    assert "must define when it is loaded" in said


def test_secrets_stay_in_the_server(app: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FASTRPC_TOKEN", "very-secret")
    monkeypatch.setenv("FASTRPC_GUARD_DATABASE", "postgresql://u:very-secret@h/d")
    monkeypatch.setenv("OTHER_NAME", "kept")
    names = call(app, "variables")["structuredContent"]["result"]
    assert "OTHER_NAME" in names
    assert [each for each in sys.path if each not in names] == []
    assert "FASTRPC_TOKEN" not in names
    assert "FASTRPC_GUARD_DATABASE" not in names


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_no_process_outlives_its_server(folder: Path, number: signal.Signals) -> None:
    name = f"killed-{number}"
    with serve(str(folder / f"{WORD}.py")) as server:
        params = {"name": "endless", "arguments": {"mark": name}, "_meta": STATELESS_META}
        server.send_message({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        eventually(lambda: (folder / name).exists())
        pids = pids_in(folder / name)
        os.kill(server.pid, number)
        for pid in pids:
            gone(pid)


def test_a_program_that_serves_itself_has_its_functions_in_processes(folder: Path) -> None:
    with serve(command=[sys.executable, str(folder / f"{WORD}.py")]) as server:
        params = {"name": "pid", "arguments": {}, "_meta": STATELESS_META}
        result = server.request("tools/call", params)["result"]
        assert result["structuredContent"]["result"] != server.pid


def test_a_module_that_serves_when_it_is_imported_is_refused(tmp_path: Path) -> None:
    source = (
        "from fastrpc import Server\napp = Server('x')\n\n@app.tool(run='process')\ndef one() -> int:\n"
        "    '''One.'''\n    return 1\n\napp.run()\n"
    )
    (tmp_path / "unguarded.py").write_text(source)
    with serve(command=[sys.executable, str(tmp_path / "unguarded.py")]) as server:
        params = {"name": "one", "arguments": {}, "_meta": STATELESS_META}
        result = server.request("tools/call", params)["result"]
        assert "its process cannot be started; the server's log says why" in result["content"][0]["text"]
        eventually(lambda: 'write if __name__ == "__main__": app.run()' in server.stderr)


def test_a_server_starts_no_process_before_a_call(app: Server) -> None:
    async def conversation(client: Any) -> list[Any]:
        await client.request("tools/list")
        pools: dict[Any, Any] = getattr(offloaded.runner, "_pools", {})
        return [each for pool in pools.values() for each in pool.idle]

    assert with_client(app, conversation) == []


# --- definitions ----------------------------------------------------------------------------------------


def plain(a: int) -> int:
    """A function at the top of a module."""
    return a + 1


def wants_context(a: int, ctx: Context) -> int:
    """It takes a Context."""
    ctx.progress(1, 2)
    return a + 1


def raises() -> int:
    """It raises."""
    raise ToolError("refused there")


class Thing:
    def method(self, a: int) -> int:
        """A method."""
        return a


@pytest.mark.parametrize(
    ("function", "options", "said"),
    [
        (
            plain,
            {"run": "proces"},
            "run='proces' is not one of auto, inline, thread, process, or an Executor",
        ),
        (plain, {"run": 3}, "is not one of"),
        (Thing().method, {"run": "process"}, "is not a plain function"),
        (lambda a: a, {"run": "process", "name": "a"}, "is defined within a function"),
        (len, {"run": "process"}, "is not a plain function"),
        (plain, {"max_memory": 1 << 30}, 'max_memory= is for tools with run="process"'),
        (plain, {"run": "process", "max_memory": 1000}, "is not a number of bytes from 67,108,864 up"),
        (plain, {"run": "process", "max_memory": True}, "is not a number of bytes"),
    ],
)
def test_a_definition_that_cannot_work_is_refused(function: Any, options: Any, said: str) -> None:
    with pytest.raises(DefinitionError, match=said.replace("(", r"\(")):
        Server("x").add_tool(function, **options)


def test_coroutine_functions_and_closures_run_in_no_process() -> None:
    async def coroutine() -> None: ...
    def closure() -> None: ...

    for function, said in ((coroutine, "is for synchronous functions"), (closure, "within a function")):
        with pytest.raises(DefinitionError, match=said):
            Server("x").add_tool(function, run="process")


def test_resources_and_prompts_run_in_no_process() -> None:
    with pytest.raises(DefinitionError, match="is not one of auto, inline, thread"):
        Server("x").prompt(run="process")(plain)  # type: ignore[call-overload]


def test_outside_a_server_such_a_tool_says_so() -> None:
    tool = Tool(plain, run="process")
    before, offloaded.runner = offloaded.runner, None
    try:
        with pytest.raises(ToolError, match="call it through one"):
            asyncio.run(tool.function(1))
    finally:
        offloaded.runner = before


# --- Executors ------------------------------------------------------------------------------------------


def test_a_thread_pool_runs_a_tool() -> None:
    app = Server("x")
    with ThreadPoolExecutor(1) as executor:
        app.add_tool(wants_context, run=executor)
        app.add_tool(raises, run=executor)
        app.add_tool(Thing().method, run=executor)
        assert call(app, "wants_context", a=1)["structuredContent"]["result"] == 2
        assert call(app, "method", a=1)["structuredContent"]["result"] == 1
        assert call(app, "raises") == {
            **call(app, "raises"),
            "content": [{"type": "text", "text": "refused there"}],
            "isError": True,
        }


def test_an_executor_runs_the_methods_that_a_class_marks() -> None:
    with ThreadPoolExecutor(1, "of-the-executor") as executor:

        class Marked:
            @tool(run=executor, effect="read")
            def where(self) -> str:
                """Say which thread this is."""
                return threading.current_thread().name

        app = Server("x")
        app.add_tool(Marked().where)
        assert call(app, "where")["content"][0]["text"].startswith("of-the-executor")


def test_a_method_is_called_as_what_it_is_not_as_what_was_marked() -> None:
    """A decorator over `@tool` that copies the attributes of a function makes it another kind of function."""

    def awaited(function: Any) -> Any:
        @functools.wraps(function)
        async def call_it(self: Any) -> str:
            await asyncio.sleep(0)
            return str(function(self))

        return call_it

    class Marked:
        @awaited
        @tool(effect="read")
        def what(self) -> str:
            """Say what this is."""
            return "a coroutine function"

    app = Server("x")
    app.add_tool(Marked().what)
    assert call(app, "what")["content"][0]["text"] == "a coroutine function"
    assert app.runtime.plans.tools["what"].is_async


def test_a_process_pool_runs_a_tool() -> None:
    app = Server("x")
    with ProcessPoolExecutor(1) as executor:
        app.add_tool(plain, run=executor)
        app.add_tool(raises, run=executor)
        app.add_tool(wants_context, run=executor)
        assert call(app, "plain", a=1)["structuredContent"]["result"] == 2
        assert call(app, "raises")["content"][0]["text"] == "refused there"
        assert "pickle" in call(app, "wants_context", a=1)["content"][0]["text"]


def test_a_cluster_of_dask_runs_a_tool() -> None:
    distributed = pytest.importorskip(
        "distributed", reason="distributed is not installed: pip install distributed"
    )
    app = Server("x")
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        app.add_tool(plain, run=client.get_executor())
        app.add_tool(raises, run=client.get_executor())
        assert call(app, "plain", a=1)["structuredContent"]["result"] == 2
        assert call(app, "raises")["content"][0]["text"] == "refused there"
