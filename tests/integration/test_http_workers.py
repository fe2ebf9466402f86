"""``--workers N``: what each may know, where sessions live, and what happens when somebody dies.

Real processes, found by the id that a tool tells. A connection that stays open stays with its worker.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from support.child_processes import is_alive
from support.http_client import (
    ECHO_AND_WAIT,
    TOKEN,
    Serving,
    Session,
    Stream,
    answer_of,
    ask,
    children,
    environment,
    handshake,
    request,
    stateless_request,
)
from support.http_server import HttpProcess
from support.waiting import SECONDS, eventually

from fastrpc import Client
from fastrpc.settings import switch

TOOLS = (
    """
import asyncio, os
from fastrpc import Context, Server
from fastrpc.client_requests import Form

app = Server("several")

@app.tool(run="inline")
def who() -> str:
    return str(os.getpid())

@app.tool
async def report(context: Context) -> str:
    for step in (1, 2):
        context.progress(step, 2)
        await asyncio.sleep(0.01)
    return str(os.getpid())

@app.tool
async def greet(context: Context) -> str:
    first = await context.elicit("First name?", str, key="first")
    last = await context.elicit("Last name?", str, key="last")
    return f"{first.data} {last.data}"

@app.resource("docs://guide")
def guide() -> str:
    return "guide"

@app.tool(run="inline")
def change() -> str:
    app.resource_updated("docs://guide")
    return str(os.getpid())

@app.tool(run="inline")
def revise(times: int) -> str:
    for number in range(times):
        app.resource_updated("docs://guide", {"_meta": {"traceparent": f"00-{number}"}, "revision": number})
    return str(os.getpid())

@app.prompt
def review() -> str:
    return "review"

@app.tool(run="inline")
def announce(how: str) -> str:
    if how == "add":
        app.registries.tools.add(lambda: "new", name="new")
        app.remove_tool("new")
    elif how == "prompts":
        app.registries.prompts.changed()
    else:
        app.lists_changed()
    return str(os.getpid())
"""
    + ECHO_AND_WAIT
)


def serve(folder: Any, *options: str, workers: int = 2, **more: Any) -> Serving:
    (folder / "tools.py").write_text(TOOLS)
    arguments = ["serve", "tools.py", "--http", "127.0.0.1:0", "--workers", str(workers), *options]
    return Serving(*arguments, folder=folder, **more)


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A server whose workers no one ends."""
    with serve(tmp_path_factory.mktemp("workers")) as server:
        yield server


class Connection:
    """A connection that stays with its worker, and the worker's process."""

    def __init__(self, server: Serving) -> None:
        self.server = server
        self.plain = server.connection()
        self.pid = int(self.send("tools/call", name="who", arguments={})["content"][0]["text"])

    def send(self, method: str, **params: Any) -> Any:
        """Send a request of 2026-07-28 and return its result, or its error."""
        message, headers = stateless_request(method, params)
        answer = ask(self.plain, "POST", "/mcp", message, self.server.headers(**headers)).json
        return answer.get("result") or answer["error"]


def one_to_each(server: Serving, workers: int = 2) -> list[Connection]:
    """Return a connection to each worker."""
    found: dict[int, Connection] = {}

    def more() -> bool:
        connection = Connection(server)
        found.setdefault(connection.pid, connection)
        return len(found) == workers

    eventually(more)
    return list(found.values())


def session_elsewhere(server: Serving, pid: int) -> Session:
    """Return a session that another worker keeps."""

    def elsewhere() -> Session | None:
        session = server.session()
        return session if int(session.call("who").text) != pid else None

    return eventually(elsewhere)  # the system chooses the worker of a connection: one may have all of a few


def via(connection: Connection, session: Session, message: Any) -> http.client.HTTPConnection:
    """Send a message of a session to a worker of our choice."""
    headers = connection.server.headers(**session.headers())
    connection.plain.request("POST", "/mcp", json.dumps(message), headers)
    return connection.plain


def called(tool: str, id: Any = 7, **arguments: Any) -> dict[str, Any]:
    return request("tools/call", {"name": tool, "arguments": arguments}, id)


# --- 2026-07-28 -------------------------------------------------------------------------------------------


def test_connections_are_spread_over_all_workers(usual: Serving) -> None:
    pids = [connection.pid for connection in one_to_each(usual)]
    assert sorted(pids) == sorted(children(usual.pid))
    assert usual.stderr == f"fastrpc: serving at http://127.0.0.1:{usual.port}/mcp (2 workers)\n"


def greet(*connections: Connection) -> Any:
    """Answer two questions, each round by another connection; return the last result."""
    params: dict[str, Any] = {"name": "greet", "arguments": {}}
    result = connections[0].send("tools/call", **params)
    for connection, key, name in zip(connections[1:], ("first", "last"), ("Ada", "Lovelace"), strict=True):
        assert list(result["inputRequests"]) == [key], result
        params["inputResponses"] = {key: {"action": "accept", "content": {"value": name}}}
        if "requestState" in result:
            params["requestState"] = result["requestState"]
        result = connection.send("tools/call", **params)
    return result


def test_a_request_state_of_one_worker_is_accepted_by_another(usual: Serving) -> None:
    one, other = one_to_each(usual)
    assert greet(one, other, one)["content"][0]["text"] == "Ada Lovelace"


def test_a_request_state_of_one_machine_is_accepted_by_another_with_the_same_secret(tmp_path: Any) -> None:
    secret = "a-secret-that-all-machines-share-and-nobody-else"
    with serve(tmp_path, FASTRPC_SECRET=secret) as here, serve(tmp_path, FASTRPC_SECRET=secret) as there:
        one, other = Connection(here), Connection(there)
        assert greet(one, other, one)["content"][0]["text"] == "Ada Lovelace"
    with serve(tmp_path, FASTRPC_SECRET=secret) as here, serve(tmp_path) as there:
        result = greet(Connection(here), Connection(here), Connection(there))
        assert result.get("code") == -32602, result


@contextmanager
def heard_at_each(server: Serving, **notifications: Any) -> Iterator[list[Iterator[Any]]]:
    """Listen for notifications of 2026-07-28 at each worker; yield the messages that come there."""
    message, headers = stateless_request("subscriptions/listen", {"notifications": notifications})
    with ExitStack() as open_streams:
        found = []
        for connection in one_to_each(server):
            stream = Stream(server, "POST", "/mcp", message, connection.plain, **headers)
            open_streams.callback(stream.close)
            data = map(json.loads, stream.data())
            assert next(data)["method"] == "notifications/subscriptions/acknowledged"
            found.append(data)
        yield found


def test_a_change_that_one_worker_tells_of_is_heard_at_all(usual: Serving) -> None:
    with heard_at_each(usual, resourceSubscriptions=["docs://guide"]) as heard:
        usual.call("change")
        for data in heard:
            assert next(data)["method"] == "notifications/resources/updated"


def test_what_a_change_carries_is_heard_at_all_workers_in_order(usual: Serving) -> None:
    with heard_at_each(usual, resourceSubscriptions=["docs://guide"]) as heard:
        for _ in range(3):
            usual.call("revise", times=5)
        for data in heard:
            found = [next(data)["params"] for _ in range(15)]
            assert [params["revision"] for params in found] == [*range(5)] * 3
            assert [params["_meta"]["traceparent"] for params in found] == [f"00-{n}" for n in range(5)] * 3


@pytest.mark.parametrize(
    ("how", "lists"), [("add", ["tools"]), ("prompts", ["prompts"]), ("lists", ["prompts", "tools"])]
)
def test_a_list_that_changes_at_one_worker_is_heard_of_at_all(
    usual: Serving, how: str, lists: list[str]
) -> None:
    with heard_at_each(usual, toolsListChanged=True, promptsListChanged=True) as heard:
        usual.call("announce", how=how)
        for data in heard:
            methods = {next(data)["method"] for _ in lists}
            assert methods == {f"notifications/{name}/list_changed" for name in lists}


def test_a_session_is_notified_of_a_change_at_another_worker(usual: Serving) -> None:
    here = one_to_each(usual)[0]
    session = session_elsewhere(usual, here.pid)
    assert session.send(request("resources/subscribe", {"uri": "docs://guide"}, 2)).status == 200
    stream = session.listen()
    said = map(json.loads, stream.data())
    here.send("tools/call", name="revise", arguments={"times": 1})
    here.send("tools/call", name="announce", arguments={"how": "prompts"})
    updated = {"_meta": {"traceparent": "00-0"}, "revision": 0, "uri": "docs://guide"}
    assert next(said) == {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": updated}
    assert next(said)["method"] == "notifications/prompts/list_changed"
    stream.close()


# --- sessions ---------------------------------------------------------------------------------------------


def test_all_requests_of_a_session_come_to_the_worker_that_keeps_it(usual: Serving) -> None:
    kept: set[str] = set()
    versions = ("2025-03-26", "2025-06-18", "2025-11-25")
    for number in range(60):  # the system chooses the worker of a connection: one may have all of a few
        if number >= 6 and len(kept) == 2:
            break
        session = usual.session(versions[number % 3])
        owners = {session.call("who").text for _ in range(8)}
        assert len(owners) == 1
        assert session.id.partition(".")[0] in ("0", "1")
        kept |= owners
    assert len(kept) == 2


def test_whatever_a_session_may_do_it_may_do_through_another_worker(usual: Serving) -> None:
    here = one_to_each(usual)[0]
    session = session_elsewhere(usual, here.pid)
    long = "é" * 1_500_000  # more than one frame, both ways
    assert answer_of(via(here, session, called("echo", text=long))).text == long
    message = called("report")
    message["params"]["_meta"] = {"progressToken": "p"}
    answer = answer_of(via(here, session, message))
    assert answer.headers.get_content_type() == "text/event-stream"
    assert answer.body.count(b"notifications/progress") == 2
    assert answer.text != str(here.pid)
    plain = via(here, session, called("greet"))  # a question, answered through yet another connection
    response = plain.getresponse()
    for name in ("Ada", "Lovelace"):
        asked = next(json.loads(line[6:]) for line in response if line.startswith(b"data: {"))
        assert asked["method"] == "elicitation/create"
        result = {"action": "accept", "content": {"value": name}}
        assert session.send({"jsonrpc": "2.0", "id": asked["id"], "result": result}).status == 202
    assert b"Ada Lovelace" in response.read()


def test_a_cancelled_call_and_an_ended_session_are_so_at_their_own_worker(usual: Serving) -> None:
    here = one_to_each(usual)[0]
    session = session_elsewhere(usual, here.pid)
    calls = usual.stdout.count("begun")
    waiting = session.begin_call("wait", seconds=30)
    usual.has_begun(calls + 1)
    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3}}
    assert answer_of(via(here, session, cancelled)).status == 202
    assert b"result" not in answer_of(waiting).body
    headers = usual.headers(**session.headers())
    assert ask(here.plain, "DELETE", "/mcp", None, headers).status == 200
    for _ in range(4):
        assert session.call("who").status == 404


def test_a_client_that_leaves_a_relayed_stream_may_come_back_for_the_rest(usual: Serving) -> None:
    here = one_to_each(usual)[0]
    session = session_elsewhere(usual, here.pid)
    plain = via(
        here,
        session,
        {**called("report"), "params": {**called("report")["params"], "_meta": {"progressToken": 1}}},
    )
    response = plain.getresponse()
    first = next(line for line in response if line.startswith(b"id: ")).decode()[4:].strip()
    plain.close()
    again = Stream(usual, "GET", "/mcp", Last_Event_ID=first, **session.headers())
    found = [json.loads(text) for text in again.data()]
    assert found[-1]["result"]["isError"] is False


def test_the_older_transport_is_relayed_too(usual: Serving) -> None:
    for _ in range(4):
        stream = Stream(usual, "GET", "/sse")
        data = stream.data()
        place = next(data)
        assert usual.ask("POST", place, handshake("2024-11-05")).status == 202
        assert json.loads(next(data))["result"]["protocolVersion"] == "2024-11-05"
        assert usual.ask("POST", place, called("who")).status == 202
        assert json.loads(next(data))["result"]["isError"] is False
        stream.close()


def test_a_session_of_somebody_else_looks_like_an_unknown_one_at_every_worker(tmp_path: Any) -> None:
    (tmp_path / "tokens").write_text(f"{TOKEN}\nthe-token-of-somebody-else\n")
    (tmp_path / "tokens").chmod(0o600)
    with serve(tmp_path, "--token-file", "tokens", FASTRPC_TOKEN="") as server:
        session = server.session()
        refusals = []
        for token, id in (
            ("the-token-of-somebody-else", session.id),
            (TOKEN, f"0.{'x' * 43}"),
            (TOKEN, f"1.{'x' * 43}"),
            (TOKEN, f"9.{'x' * 43}"),
            (TOKEN, "999.x"),
            (TOKEN, "x" * 43),
        ):
            server.token = token
            for _ in range(3):
                answer = server.ask("POST", "/mcp", called("who"), Mcp_Session_Id=id)
                refusals.append((answer.status, answer.json))
        assert all(refusal == refusals[0] for refusal in refusals), refusals
        assert refusals[0][0] == 404
        server.token = "a-token-that-is-none"
        for _ in range(3):
            assert server.ask("POST", "/mcp", called("who"), Mcp_Session_Id=session.id).status == 401
        server.token = TOKEN
        assert session.call("who").status == 200


# --- deaths -----------------------------------------------------------------------------------------------


def test_a_worker_that_is_killed_is_replaced_and_its_sessions_are_unknown(tmp_path: Any) -> None:
    with serve(tmp_path) as server:
        one, other = one_to_each(server)
        lost = session_elsewhere(server, other.pid)
        kept = session_elsewhere(server, one.pid)
        waiting = via(other, lost, called("wait", seconds=30))
        server.has_begun(1)
        os.kill(one.pid, signal.SIGKILL)
        assert answer_of(waiting).status == 404
        assert kept.call("who").text == str(other.pid)
        eventually(lambda: len({*children(server.pid)} - {one.pid}) == 2)
        assert answer_of(via(other, lost, called("who"))).status == 404
        pids = {connection.pid for connection in one_to_each(server)}
        assert one.pid not in pids
        assert lost.call("who").status == 404
        keepers = [int(session_elsewhere(server, pid).call("who").text) for pid in pids]
        assert {*keepers} == pids
        assert server.stop() == 0
    assert (
        f"worker {lost.id[0]} (process {one.pid}) ended by signal 9; another one takes its place"
        in server.stderr
    )
    assert server.stderr.count("\n") == 2, server.stderr


FORKING = """
@app.tool(run="inline")
def fork() -> str:
    own = os.getpid()
    if os.fork() == 0:
        import time
        time.sleep(20)
    return str(own)
"""


def test_a_worker_whose_fork_lives_on_is_replaced_all_the_same(tmp_path: Any) -> None:
    (tmp_path / "forking.py").write_text(TOOLS + FORKING)
    arguments = ["serve", "forking.py", "--http", "127.0.0.1:0", "--workers", "2"]
    with Serving(*arguments, folder=tmp_path) as server:
        pid = int(server.call("fork"))
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: "another one takes its place" in server.stderr)


def test_a_worker_that_dies_again_and_again_is_the_end_with_exit_code_1(tmp_path: Any) -> None:
    code = (
        "import sys; from fastrpc.transports.http import workers\n"
        "workers.PAUSES, workers.YOUNG_SECONDS = (0.0, 0.0), 3600.0\n"  # whenever it dies, it is young
        "from fastrpc.__main__ import main; sys.exit(main())"
    )
    with serve(tmp_path, command=[sys.executable, "-c", code]) as server:
        one, _ = one_to_each(server)
        number = children(server.pid).index(one.pid)  # which are in the order of their forks
        pid = one.pid
        os.kill(pid, signal.SIGKILL)
        pid = eventually(lambda: next(iter({*children(server.pid)} - {pid} - {_.pid}), None))
        os.kill(pid, signal.SIGKILL)
        assert server.wait() == 1
    assert f"worker {number} has died 2 times in a row; all is ended" in server.stderr


@pytest.mark.parametrize("busy", [False, True])
def test_if_the_parent_is_killed_no_process_is_left(tmp_path: Any, busy: bool) -> None:
    with serve(tmp_path, "--drain-seconds", "0.5") as server:
        pids = children(server.pid)
        assert len(pids) == 2
        calls = one_to_each(server) if busy else []
        for call in calls:
            message, headers = stateless_request("tools/call", {"name": "wait", "arguments": {"seconds": 30}})
            call.plain.request("POST", "/mcp", json.dumps(message), server.headers(**headers))
        server.has_begun(len(calls))
        server.kill(signal.SIGKILL)
        for call in calls:
            assert answer_of(call.plain).json["error"]["message"] == "The server has ended"
        eventually(lambda: not any(is_alive(pid) for pid in pids))


# --- the end ----------------------------------------------------------------------------------------------


def test_calls_that_were_handed_over_end_within_the_grace_time_too(tmp_path: Any) -> None:
    with tempfile.TemporaryDirectory() as own, serve(tmp_path, TMPDIR=own) as server:
        assert os.listdir(own) != []  # where the workers meet
        here, there = one_to_each(server)
        session = session_elsewhere(server, here.pid)
        go = str(tmp_path / "go")
        calls = [via(here, session, called("wait_for", path=go)), session.begin_call("wait_for", path=go)]
        calls.append(server.begin_call("wait_for", path=go))
        assert there.send("tools/list")["tools"]
        server.has_begun(3)
        os.killpg(
            server.pid, signal.SIGTERM
        )  # as systemd does: parent and workers hear it, and that is one signal
        eventually(server.is_refused)
        (tmp_path / "go").touch()
        assert [answer_of(call).status for call in calls] == [200, 200, 200]
        assert server.wait() == 0
        assert os.listdir(own) == []
    assert server.stderr.count("\n") == 1, server.stderr


def test_the_second_signal_hurries_all_workers(tmp_path: Any) -> None:
    with serve(tmp_path, "--drain-seconds", "60") as server:
        session = server.session()
        stream = session.listen()
        calls = [session.begin_call("wait", seconds=30), server.begin_call("wait", seconds=30)]
        server.has_begun(2)
        server.kill()
        assert "retry: 5000" in [*stream.lines()]
        server.kill()
        for call in calls:
            assert answer_of(call).json["error"]["message"] == "The server has ended"
        assert server.wait() == 0


# --- refused ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "targets",
    [
        [],
        ["fastrpc.tools.agent"],
        ["fastrpc.tools.agent.plan_mode"],
        ["own.py:app"],
    ],
)
def test_the_agents_tools_that_keep_state_in_their_process_are_for_one_worker(
    tmp_path: Any, targets: list[str]
) -> None:
    (tmp_path / "own.py").write_text(
        "import fastrpc.tools.agent.plan_mode\nfrom fastrpc import Server\n"
        "app = Server('own')\napp.include(fastrpc.tools.agent.plan_mode)\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "fastrpc", "serve", *targets, "--http", "127.0.0.1:0", "--workers", "2"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 2
    programs = "running programs (Bash, BackgroundBash, ReadBgOutput, ListBgTasks, KillBgTask)"
    everything = {programs, "plans (PlanMode)", "callbacks (SetCallback)"}
    expected = {"plans (PlanMode)"} if "own.py:app" in targets or "plan" in "".join(targets) else everything
    start, _, rest = done.stderr.partition("each process would have its own ")
    kept, _, advice = rest.partition(", and the next call may come to another one: ")
    assert (start, set(kept.split("; "))) == ("fastrpc: http: workers: ", expected)
    assert advice == "serve these tools with one worker, or leave them out\n"


def test_workers_serve_the_agents_tools_that_keep_nothing_in_their_process(tmp_path: Any) -> None:
    """What one worker has stored, the other one shows: each call has a new connection, to either of them."""
    kept = ("Bash", "BackgroundBash", "ReadBgOutput", "ListBgTasks", "KillBgTask", "PlanMode", "SetCallback")
    variables = {**environment(), "FASTRPC_STATE_DIR": str(tmp_path / "state")}
    del variables["FASTRPC_TOKEN"]
    variables |= {switch("TOOL_", name): "0" for name in kept}
    options = ("--http", "127.0.0.1:0", "--no-auth", "--workers", "2")
    with HttpProcess("serve", *options, folder=tmp_path, environment=variables) as process:
        answers = []
        for number in range(10):
            with Client.sync(f"http://127.0.0.1:{process.port}/mcp") as client:
                names = {tool.name for tool in client.list_tools()}
                client.call_tool("TaskManager", {"action": "create", "text": f"task {number}"})
                answers.append(client.call_tool("TaskManager", {"action": "list"}).text)
    assert names == {"ReadImage", "ReadDocs", "WebSearch", "TaskManager", "AskUserQuestion", "InvokeSkill"}
    for number, answer in enumerate(answers):
        assert all(f"task {earlier}" in answer for earlier in range(number + 1))


@pytest.mark.parametrize(
    ("how", "tool"), [("app.include(shop.basket)", "put"), ("app.mount(inner, 'in')", "in_put")]
)
def test_a_toolset_may_say_that_it_is_for_one_worker(tmp_path: Any, how: str, tool: str) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "__init__.py").write_text('PROCESS_STATE = "baskets"\n')
    (tmp_path / "shop" / "basket.py").write_text("from fastrpc import tool\n\n@tool\ndef put(): ...\n")
    (tmp_path / "program.py").write_text(
        "import shop.basket\nfrom fastrpc import Server\n"
        "app, inner = Server('shop'), Server('inner')\ninner.include(shop.basket)\n"
        f"{how}\napp.run(http='127.0.0.1:0', workers=2)\n"
    )
    done = subprocess.run(
        [sys.executable, "program.py"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 2
    assert done.stderr == (
        f"fastrpc: http: workers: each process would have its own baskets ({tool}), and the next call may "
        "come to another one: serve these tools with one worker, or leave them out\n"
    )


def test_threads_that_a_fork_would_lose_are_a_mistake(tmp_path: Any) -> None:
    (tmp_path / "program.py").write_text(
        "import threading, time\nfrom fastrpc import Server\n"
        "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
        "Server('x').run(http='127.0.0.1:0', workers=2)\n"
    )
    done = subprocess.run(
        [sys.executable, "program.py"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert "program.py:4: http: workers: 1 thread(s) run already" in done.stderr
