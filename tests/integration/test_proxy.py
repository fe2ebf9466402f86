"""A server that serves what a child process offers: all of it passes, and no process is left."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

import pytest
from support.child_processes import gone, is_alive
from support.in_memory import with_client
from support.stdio import serve
from support.upstream import UPSTREAM, every_feature_passes
from support.waiting import SECONDS, until

from fastrpc import DefinitionError, Server
from fastrpc.gateway import gateway_of
from fastrpc.protocol.versions import LATEST_SESSION_VERSION, STATELESS, VERSIONS
from fastrpc.testing import Client, RemoteError

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

FAULTY = os.path.join(REPOSITORY, "tests", "support", "faulty_server.py")
BEHIND = (
    UPSTREAM
    + """
app.run()
if "STUBBORN" in os.environ:
    import signal, time
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(60)
"""
)


@pytest.fixture
def command(tmp_path: Any) -> list[str]:
    path = tmp_path / "behind.py"
    path.write_text(BEHIND)
    return [sys.executable, str(path)]


@pytest.fixture(autouse=True)
def _find_fastrpc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", REPOSITORY)


# --- what passes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
def test_every_feature_passes_in_every_version(command: list[str], version: str) -> None:
    async def conversation(client: Client) -> None:
        await every_feature_passes(client, version, structured=version >= "2025-06-18")

    with_client(Server.proxy(command), conversation, version=version)


@pytest.mark.parametrize("version", [LATEST_SESSION_VERSION, STATELESS])
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


def test_cancellation_reaches_the_upstream_call(command: list[str], tmp_path: Any) -> None:
    path = tmp_path / "note"

    async def conversation(client: Client) -> None:
        id, _ = client.begin("tools/call", {"name": "sleep", "arguments": {"path": str(path)}})
        await until(path.with_name("note.begun").exists)
        assert not path.exists()
        client.cancel(id)
        await until(path.exists)

    with_client(Server.proxy(command), conversation)


def test_changes_of_the_upstream_server_are_reported_and_listed(command: list[str]) -> None:
    async def conversation(client: Client) -> None:
        await client.request("resources/subscribe", {"uri": "docs://guide"})
        await client.call("grow", name="late")
        await client.call("touch")
        await until(
            lambda: "notifications/tools/list_changed" in {each["method"] for each in client.notifications}
        )
        names = [entry["name"] for entry in await client.tools()]
        assert "late" in names
        assert "fail" not in names
        assert (await client.call("late")).text == "I am late"

    with_client(Server.proxy(command), conversation)


def test_an_update_of_an_upstream_resource_is_sent_to_those_who_subscribed(command: list[str]) -> None:
    async def conversation(client: Client) -> None:
        await client.request("resources/subscribe", {"uri": "docs://guide"})
        await client.call("touch")
        await until(lambda: any("resources/updated" in message["method"] for message in client.notifications))

    with_client(Server.proxy(command), conversation)


def test_what_is_watched_upstream_is_bounded(caplog: pytest.LogCaptureFixture) -> None:
    """It is kept for good: clients come and go, and each may name others."""
    app = Server.proxy([sys.executable, "-c", "raise SystemExit"])

    @app.resource("docs://{name}")
    def page(name: str) -> str:
        return name

    source = app.runtime.upstream
    for number in range(3000):
        source.watch(f"docs://{'x' * 1000}{number}", {})
    assert 500 < len(source._subscriptions._uris) < 1100
    assert caplog.text.count("are not forwarded") == 1


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
    gone(first)
    gone(second)


def test_one_that_does_not_end_by_itself_is_ended(command: list[str]) -> None:
    app = Server.proxy(command, env={**os.environ, "STUBBORN": "1"})

    async def conversation(client: Client) -> int:
        return int((await client.call("pid")).text)

    gone(with_client(app, conversation))


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


def test_a_line_over_the_limit_fails_the_calls_that_wait_at_once() -> None:
    async def conversation(client: Client) -> None:
        failed = await client.call("bad")
        assert failed.is_error
        assert "the upstream server sent a line of more than 67108864 bytes" in failed.text
        assert (await client.call("priced", isError=True)).text == "?"

    with_client(Server.proxy([sys.executable, FAULTY, "huge"]), conversation)


CLOSING = {
    "closes-input": "its input",
    "closes-output": "its output",
    "closes-both": "its input and its output",
}


def behind(front: str, fault: str, when: str) -> Server:
    """A server in front of one that closes its pipes and runs on; its tools begin with `s_`."""
    arguments = [FAULTY, fault, when]
    if front == "gateway":
        return gateway_of({"s": {"command": sys.executable, "args": arguments}})[0]
    app = Server("front")
    app.mount(Server.proxy([sys.executable, *arguments]), "s")
    return app


@pytest.mark.long
@pytest.mark.parametrize("front", ["proxy", "gateway"])
@pytest.mark.parametrize("fault", CLOSING)
@pytest.mark.parametrize("when", ["call", "listed", "between"])
def test_calls_fail_when_it_closes_a_pipe_and_runs_on_and_the_next_one_starts_it_again(
    front: str, fault: str, when: str
) -> None:
    text = "x" * (1024 * 1024 if when == "listed" else 1)

    async def conversation(client: Client) -> None:
        await client.tools()
        if when == "between":
            assert (await client.call("s_good", text="here")).text == "here"
        for _ in range(2):
            calls = [client.call("s_bad", text=text) for _ in range(1 if when == "listed" else 256)]
            failed = await asyncio.gather(*calls)
            assert {(each.is_error, each.text) for each in failed} == {
                (
                    True,
                    "the connection to the upstream server is lost: "
                    f"it closed {CLOSING[fault]} and still runs; the next call reconnects",
                )
            }
            if when == "call":
                assert (await client.call("s_good", text="here")).text == "here"
            if when == "between":
                break

    with_client(behind(front, fault, when), conversation)


@pytest.mark.parametrize("front", ["proxy", "gateway"])
@pytest.mark.parametrize("fault", CLOSING)
def test_one_that_closes_a_pipe_before_it_has_answered_initialize_cannot_be_used(
    front: str, fault: str
) -> None:
    async def conversation(client: Client) -> None:
        with pytest.raises(RemoteError, match=f"it closed {CLOSING[fault]} and still runs"):
            await client.request("tools/call", {"name": "s_bad", "arguments": {}})

    command = [sys.executable, FAULTY, fault, "start"]
    servers = {"s": {"command": command[0], "args": command[1:]}}
    with_client(Server.proxy(command) if front == "proxy" else gateway_of(servers)[0], conversation)


SHORT = 0.5  # seconds, for what does not start at all


@pytest.mark.parametrize(
    ("program", "start_seconds", "reason"),
    [
        (["fastrpc-no-such-program"], SECONDS, "127"),
        ([sys.executable, "-c", "raise SystemExit(5)"], SECONDS, "exit code 5"),
        ([sys.executable, "-c", "import time; time.sleep(90)"], SHORT, "did not start within 0.5 s"),
        ([sys.executable, "-c", "print('hello'); input(); input()"], SHORT, "did not start within 0.5 s"),
    ],
)
def test_one_that_cannot_be_started_is_reported_and_holds_nothing_up(
    program: list[str], start_seconds: float, reason: str
) -> None:
    async def conversation(client: Client) -> None:
        with pytest.raises(RemoteError) as failure:
            await client.tools()
        assert reason in failure.value.message
        assert failure.value.code == -32603
        await client.request("ping")

    with_client(Server.proxy(program, start_seconds=start_seconds), conversation)

    async def outer(client: Client) -> None:
        assert [entry["name"] for entry in await client.tools()] == ["mine"]
        assert (await client.call("mine")).text == "mine"

    app = Server("outer")
    app.add_tool(lambda: "mine", name="mine")
    app.mount(Server.proxy(program, start_seconds=start_seconds), "b")
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
        assert is_alive(child)
        if how == "end of input":
            server.close_stdin()
            assert server.wait() == 0
        else:
            server.signal(15 if how == "SIGTERM" else 9)
            server.wait()
        gone(child)
