"""`fastrpc dev`: a real supervisor, real servers behind it, and files that change while a client talks."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.rewriting import rewrite
from support.stdio import STATELESS_META, Process, decode, encode, serve
from support.terminal import on_terminal

from fastrpc.cli.dev import Supervisor

SERVER = """
from fastrpc import Context, Server
from helper import WORD

app = Server("dev")

@app.tool
def say() -> str:
    return "VERSION " + WORD

@app.tool
async def wait() -> str:
    import asyncio
    await asyncio.sleep(60)
    return "never"

@app.tool
async def ask(ctx: Context) -> str:
    answer = await ctx.elicit("Sure?")
    return answer.action

@app.tool
def leave() -> str:
    import os
    os._exit(7)

@app.prompt
def hello() -> str:
    return "Hello"

@app.resource("docs://guide")
def guide() -> str:
    return "VERSION"
"""
CHANGED = [f"notifications/{kind}/list_changed" for kind in ("tools", "prompts", "resources")]


def write(folder: Any, version: str = "one", word: str = "day", source: str = SERVER) -> str:
    """Write the server and the module beside it, each in one go, as an editor does."""
    for name, text in (("helper.py", f"WORD = {word!r}\n"), ("app.py", source.replace("VERSION", version))):
        path = os.path.join(folder, name)
        with contextlib.suppress(FileNotFoundError), open(path, encoding="utf-8") as file:
            if file.read() == text:
                continue
        rewrite(Path(path), text)
    return os.path.join(folder, "app.py")


@contextlib.contextmanager
def dev(path: str, *, first: str = "") -> Iterator[Process]:
    """Run the command; `first` is Python that runs before it in its process."""
    environment = {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    program = ["-m", "fastrpc"]
    if first:
        program = ["-c", f"{first}\nimport sys\nfrom fastrpc.__main__ import main\nsys.exit(main())"]
    with serve(command=[sys.executable, *program, "dev", path], environment=environment) as server:
        yield server


def until(server: Process, wanted: Callable[[Any], bool]) -> list[Any]:
    """Return the messages up to one that is wanted, which is the last."""
    messages = []
    while not messages or not wanted(messages[-1]):
        messages.append(server.answer())
    return messages


def reloaded(server: Process) -> list[Any]:
    """Return the messages up to the last of the notifications of a reload."""
    return until(server, lambda message: message.get("method") == CHANGED[-1])


def seen(server: Process, text: str, seconds: float = 20) -> None:
    """Wait until standard error says something."""
    deadline = time.monotonic() + seconds
    while text not in server.stderr:
        assert time.monotonic() < deadline, f"{text!r} is not in {server.stderr}"
        time.sleep(0.02)


def said(server: Process) -> str:
    text: str = server.call("say")["content"][0]["text"]
    return text


def test_a_change_of_the_file_or_of_a_module_beside_it_reloads_the_server(tmp_path: Any) -> None:
    with dev(write(tmp_path)) as server:
        server.initialize()
        assert said(server) == "one day"
        write(tmp_path, "two")
        assert [message["method"] for message in reloaded(server)] == CHANGED
        assert said(server) == "two day"
        write(tmp_path, "two", "night")
        reloaded(server)
        assert said(server) == "two night"
        server.close_stdin()
        assert server.wait() == 0
        assert "-- app.py changed; reloaded in " in server.stderr
        assert "-- helper.py changed; reloaded in " in server.stderr


def test_calls_in_flight_are_answered_with_an_error_and_none_twice(tmp_path: Any) -> None:
    with dev(write(tmp_path)) as server:
        server.initialize()
        waiting = [server.ask("tools/call", {"name": "wait", "arguments": {}}) for _ in range(3)]
        server.request("ping")
        write(tmp_path, "two")
        messages = reloaded(server)
        errors = [message for message in messages if "error" in message]
        assert sorted(message["id"] for message in errors) == waiting
        assert {message["error"]["code"] for message in errors} == {-32603}
        assert "reloaded" in errors[0]["error"]["message"]
        assert said(server) == "two day"
        server.assert_silent()


def test_each_request_is_answered_once_however_often_the_server_changes(tmp_path: Any) -> None:
    with dev(write(tmp_path)) as server:
        server.initialize()
        asked: set[int] = set()
        answered: list[int] = []
        versions = set()
        for change in range(4):
            write(tmp_path, f"v{change}")
            deadline = time.monotonic() + 20
            while f"v{change} day" not in versions:
                assert time.monotonic() < deadline
                asked.update(server.ask("tools/call", {"name": "say", "arguments": {}}) for _ in range(20))
                while len(answered) < len(asked):
                    message = server.answer()
                    if "id" in message:
                        answered.append(message["id"])
                        if "result" in message:
                            versions.add(message["result"]["content"][0]["text"])
        server.close_stdin()
        late = [decode(line) for line in server.rest().splitlines()]
        assert not [message for message in late if "id" in message]
        assert sorted(answered) == sorted(asked)


def test_a_syntax_error_is_reported_and_the_old_server_goes_on(tmp_path: Any) -> None:
    with dev(write(tmp_path)) as server:
        server.initialize()
        write(tmp_path, source=SERVER + "\ndef broken(:\n")
        seen(server, "the last version goes on")
        assert "SyntaxError" in server.stderr
        assert said(server) == "one day"
        write(tmp_path, "three")
        reloaded(server)
        assert said(server) == "three day"


def test_a_client_waits_for_a_server_that_cannot_start_yet(tmp_path: Any) -> None:
    path = write(tmp_path, source="from fastrpc import nothing_like_it\n")
    with dev(path) as server:
        client = {"name": "test", "version": "1"}
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
        shaken = server.ask("initialize", params)
        seen(server, "waiting for a change")
        refused = server.request("tools/list")
        assert "cannot be served" in refused["error"]["message"]
        write(tmp_path, "two")
        answer = until(server, lambda message: message.get("id") == shaken)[-1]
        assert answer["result"]["serverInfo"]["name"] == "dev"
        server.notify("notifications/initialized")
        assert said(server) == "two day"


def test_a_new_server_learns_what_the_last_one_knew(tmp_path: Any) -> None:
    source = SERVER + (
        "\n@app.tool\ndef tell(ctx: Context) -> str:\n"
        "    ctx.info('logged')\n    app.resource_updated('docs://guide')\n    return 'told'\n"
    )
    with dev(write(tmp_path, source=source)) as server:
        server.initialize()
        assert server.request("logging/setLevel", {"level": "info"})["result"] == {}
        assert server.request("resources/subscribe", {"uri": "docs://guide"})["result"] == {}
        write(tmp_path, "two", source=source)
        reloaded(server)
        asked = server.ask("tools/call", {"name": "tell", "arguments": {}})
        messages = until(server, lambda message: message.get("id") == asked)
        methods = {message["method"] for message in messages[:-1]}
        assert methods == {"notifications/message", "notifications/resources/updated"}


def test_a_question_of_a_server_that_is_gone_is_taken_back(tmp_path: Any) -> None:
    with dev(write(tmp_path)) as server:
        server.initialize(elicitation={})
        server.ask("tools/call", {"name": "ask", "arguments": {}})
        question = server.answer()
        assert question["method"] == "elicitation/create"
        write(tmp_path, "two")
        messages = reloaded(server)
        cancelled = [message for message in messages if message.get("method") == "notifications/cancelled"]
        assert [message["params"]["requestId"] for message in cancelled] == [question["id"]]
        late = {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {}}}
        server.send_message(late)
        asked = server.ask("tools/call", {"name": "ask", "arguments": {}})
        again = server.answer()
        assert again["id"] != question["id"]
        server.send_message({**late, "id": again["id"]})
        answer = until(server, lambda message: message.get("id") == asked)[-1]
        assert answer["result"]["content"][0]["text"] == "accept"


def test_listeners_without_a_session_are_notified_of_it_and_go_on_listening(tmp_path: Any) -> None:
    wanted = {"toolsListChanged": True}
    with dev(write(tmp_path)) as server:
        listen = server.ask(
            "subscriptions/listen", {"_meta": STATELESS_META, "notifications": wanted}, "stream"
        )
        acknowledged = server.answer()
        assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
        write(tmp_path, "two")
        changed = server.answer()
        assert changed["method"] == "notifications/tools/list_changed"
        assert changed["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == listen
        params = {"name": "say", "arguments": {}, "_meta": STATELESS_META}
        answer = server.request("tools/call", params)
        assert answer["result"]["content"][0]["text"] == "two day"
        assert answer["result"]["resultType"] == "complete"
        server.assert_silent()


def test_a_server_that_ends_by_itself_is_started_again(tmp_path: Any) -> None:
    first = "from fastrpc.cli import dev\ndev.LONG_ENOUGH_SECONDS = 0.0"
    with dev(write(tmp_path), first=first) as server:
        server.initialize()
        answer = server.request("tools/call", {"name": "leave", "arguments": {}})
        assert "ended" in answer["error"]["message"]
        assert said(server) == "one day"


def test_the_wire_is_shown_a_line_a_message_with_times_and_without_secrets(tmp_path: Any) -> None:
    source = SERVER + "\n@app.tool\ndef login(password: str, note: str) -> str:\n    return note * 100\n"
    with dev(write(tmp_path, source=source)) as server:
        server.initialize()
        server.call("login", password="hunter2", note="abc")
        server.request("tools/call", {"name": "nothing", "arguments": {}})
        server.request("tools/list")
        server.close_stdin()
        server.wait()
        lines = [line for line in server.stderr.splitlines() if line[:1] in "→←"]
        assert lines[0].startswith("→ 1 initialize 2025-11-25")
        assert lines[1].startswith("← 1 initialize 2025-11-25 ")
        assert lines[2] == "→ notifications/initialized"
        assert lines[3].startswith("→ 2 tools/call login {")
        assert " ms: " in lines[4]
        assert "error -32602" in lines[6]
        assert "6 tools: say, wait, ask, leave, login"[2:] in lines[8]
        assert "hunter2" not in server.stderr
        assert all(len(line) < 300 for line in lines)


def test_at_a_terminal_failures_are_in_colour_and_the_view_is_named(place: Any) -> None:
    write(place)
    with on_terminal(place, "dev", "app.py") as there:
        there.until("  fastrpc dev --http 127.0.0.1:8000 app.py")
        there.type('{"jsonrpc": "2.0", "id": 1, "method": "no\\u001b[2Jne"}\n')
        shown = there.until("←\x1b[31m 1 no␛[2Jne")
        assert "→ 1 no␛[2Jne" in shown
        there.type("\x04")
        assert "\x1b[0m" in there.rest()


def test_what_is_sent_before_the_end_of_input_is_answered(tmp_path: Any) -> None:
    with dev(write(tmp_path)) as server:
        client = {"name": "test", "version": "1"}
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
        hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
        call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "say", "arguments": {}}}
        server.send(encode(hello) + encode(call))
        server.close_stdin()
        assert [message["id"] for message in server.answers(2)] == [1, 2]
        assert server.wait() == 0


def test_the_time_for_the_last_answers_begins_once_a_server_is_there(tmp_path: Any) -> None:
    """The client has closed its end before, and the server took its time to start."""
    supervisor = Supervisor("app.py", write(tmp_path))
    supervisor.client_is_there = False
    assert supervisor.ends_at < time.monotonic()
    started: Any = SimpleNamespace(capabilities={}, unsent=bytearray())
    supervisor.promote(started)
    assert not supervisor.over()


def test_one_server_of_several_in_a_file_can_be_named(tmp_path: Any) -> None:
    source = (
        "from fastrpc import Server\nfirst = Server('VERSION first')\nsecond = Server('VERSION second')\n"
    )
    path = write(tmp_path, source=source)
    with dev(f"{path}:second") as server:
        assert server.initialize()["serverInfo"]["name"] == "one second"
        write(tmp_path, "two", source=source)
        until(server, lambda message: message.get("method") == CHANGED[0])


def test_a_large_message_passes_in_both_directions(tmp_path: Any) -> None:
    source = SERVER + "\n@app.tool\ndef echo(text: str) -> str:\n    return text\n"
    with dev(write(tmp_path, source=source)) as server:
        server.initialize()
        text = "ä" * 2_000_000
        assert server.call("echo", text=text)["content"][0]["text"] == text


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_and_the_server_that_it_runs(tmp_path: Any, number: int) -> None:
    source = SERVER + "\n@app.tool\ndef own_id() -> str:\n    import os\n    return str(os.getpid())\n"
    with dev(write(tmp_path, source=source)) as server:
        server.initialize()
        behind = int(server.call("own_id")["content"][0]["text"])
        server.signal(number)
        assert server.wait() == 128 + number
        with pytest.raises(ProcessLookupError):
            os.kill(behind, 0)


def test_a_file_that_is_not_there_is_one_line_and_exit_code_2(tmp_path: Any) -> None:
    with dev(os.path.join(tmp_path, "nothing.py")) as server:
        assert server.wait() == 2
        assert server.stderr.startswith("fastrpc: ")
        assert server.stderr.count("\n") == 1
