"""Log messages: whom they reach, from which level on, and when; and Python's own logging, bridged."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from support.in_memory import connected, with_client

from fastrpc import Context, Server, log_bridge, running_call
from fastrpc.log_bridge import Bridge, bridge, level_of
from fastrpc.protocol.lifecycle import LOG_LEVELS
from fastrpc.protocol.versions import LOG_KEY, SESSION_VERSIONS, STATELESS, VERSIONS
from fastrpc.testing import Client, RemoteError

LEVELS = list(LOG_LEVELS)


def talker() -> Server:
    """A server whose tools say something at every level: inline, in the loop, on a thread."""
    app = Server("t")

    def say(ctx: Context) -> str:
        for level in LEVELS:
            ctx.log(f"a {level}", level, "talker")
        return "said"

    async def say_async(ctx: Context) -> str:
        await ctx.debug("a debug", "talker")
        for level in LEVELS[1:]:
            await ctx.log(f"a {level}", level=level, logger="talker")
        return "said"

    app.add_tool(say, name="inline", run="inline")
    app.add_tool(say, name="thread", run="thread")
    app.add_tool(say_async, name="async")
    return app


# --- levels -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tool", ["inline", "thread", "async"])
@pytest.mark.parametrize("level", [None, *LEVELS])
@pytest.mark.parametrize("version", VERSIONS)
def test_messages_of_the_wanted_level_and_above_come_before_the_answer(
    version: str, level: str | None, tool: str
) -> None:
    async def conversation(client: Client) -> None:
        arrived: list[dict[str, Any]] = []
        _, future = client.begin("tools/call", {"name": tool, "arguments": {}})
        future.add_done_callback(lambda _: arrived.extend(client.logs))
        await future
        await asyncio.sleep(0)
        assert arrived == client.logs
        least = level or ("info" if version != STATELESS else None)
        wanted = [] if least is None else LEVELS[LEVELS.index(least) :]
        assert arrived == [{"level": name, "data": f"a {name}", "logger": "talker"} for name in wanted]

    with_client(talker(), conversation, version=version, log_level=level)


def test_in_2026_07_28_a_level_counts_for_its_own_request_only() -> None:
    async def conversation(client: Client) -> None:
        params = {"name": "inline", "arguments": {}, "_meta": {LOG_KEY: "alert"}}
        await client.request("tools/call", params)
        assert [log["level"] for log in client.logs] == ["alert", "emergency"]
        await client.call("inline")
        assert len(client.logs) == 2

    with_client(talker(), conversation, version=STATELESS)


def test_a_level_that_the_session_has_set_means_nothing_to_a_request_with_an_envelope() -> None:
    lines: list[bytes] = []

    async def run() -> None:
        transport = connected(talker().connect().connection, lines.append)

        def send(id: int, method: str, params: dict[str, Any]) -> None:
            transport.send(
                json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode()
            )

        send(1, "initialize", {"protocolVersion": "2025-11-25"})
        send(2, "logging/setLevel", {"level": "debug"})
        envelope = {
            "io.modelcontextprotocol/protocolVersion": STATELESS,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        send(3, "tools/call", {"name": "inline", "_meta": envelope})

    asyncio.run(run())
    assert [json.loads(line).get("id") for line in lines] == [1, 2, 3]


@pytest.mark.parametrize("version", SESSION_VERSIONS)
def test_set_level_answers_with_an_empty_object_and_may_be_repeated(version: str) -> None:
    async def conversation(client: Client) -> None:
        for level in LEVELS:
            assert await client.request("logging/setLevel", {"level": level}) == {}
        await client.call("inline")
        assert [log["level"] for log in client.logs] == ["emergency"]
        assert "logging" in client.info["capabilities"]

    with_client(talker(), conversation, version=version)


@pytest.mark.parametrize("params", [{}] + [{"level": level} for level in ("loud", "INFO", 3, ["info"])])
def test_an_unknown_level_is_minus_32602_and_changes_nothing(params: Any) -> None:
    async def conversation(client: Client) -> None:
        await client.set_level("alert")
        with pytest.raises(RemoteError) as caught:
            await client.request("logging/setLevel", params)
        assert caught.value.code == -32602
        assert "level" in caught.value.message
        await client.call("inline")
        assert len(client.logs) == 2

    with_client(talker(), conversation)


def test_set_level_is_unknown_in_2026_07_28() -> None:
    async def conversation(client: Client) -> None:
        with pytest.raises(RemoteError) as caught:
            await client.request("logging/setLevel", {"level": "info"})
        assert caught.value.code == -32601

    with_client(talker(), conversation, version=STATELESS)


@pytest.mark.parametrize("level", ["loud", "", "Info", 3, None, ["info"]])
@pytest.mark.parametrize("method", ["tools/call", "tools/list", "server/discover"])
def test_a_bad_level_in_the_envelope_is_minus_32602(method: str, level: Any) -> None:
    async def conversation(client: Client) -> None:
        with pytest.raises(RemoteError) as caught:
            await client.request(method, {"name": "inline", "arguments": {}, "_meta": {LOG_KEY: level}})
        assert caught.value.code == -32602
        assert LOG_KEY in caught.value.message

    with_client(talker(), conversation, version=STATELESS)


def test_a_second_handshake_forgets_the_level() -> None:
    async def conversation(client: Client) -> None:
        await client.set_level("emergency")
        await client.request("initialize", {"protocolVersion": client.version})
        await client.call("inline")
        assert len(client.logs) == len(LEVELS) - 1

    with_client(talker(), conversation)


# --- what is said -------------------------------------------------------------------------------------


def test_an_unknown_level_in_a_tool_is_the_tools_fault_even_if_no_one_listens() -> None:
    app = Server("t")

    @app.tool(run="inline")
    def shout(ctx: Context) -> None:
        ctx.log("hello", "loud")

    async def conversation(client: Client) -> None:
        result = await client.call("shout")
        assert result.is_error
        assert "ValueError" in result.text
        assert "loud" in result.text

    for version in VERSIONS:
        with_client(app, conversation, version=version)


ODD = [
    ({"a": [1, None, 2.5, "x"]}, {"a": [1, None, 2.5, "x"]}),
    (None, None),
    (7, 7),
    ('q"\\\n\u2028 漢', 'q"\\\n\u2028 漢'),
    ("half \ud800", "half \\ud800"),
    (float("nan"), "nan"),
    ({1, 2}, [1, 2]),
]


@pytest.mark.parametrize(("data", "sent"), ODD, ids=[str(number) for number in range(len(ODD))])
def test_any_data_is_sent_and_what_json_cannot_hold_as_its_repr(data: Any, sent: Any) -> None:
    app = Server("t")

    @app.tool(run="thread")
    def say(ctx: Context) -> None:
        ctx.log(data)

    async def conversation(client: Client) -> None:
        assert not (await client.call("say")).is_error
        assert client.logs == [{"level": "info", "data": sent}]

    with_client(app, conversation)


def test_an_object_without_json_does_not_fail_the_call() -> None:
    app = Server("t")

    @app.tool(run="inline")
    def say(ctx: Context) -> None:
        ctx.log(object())

    async def conversation(client: Client) -> None:
        assert not (await client.call("say")).is_error
        assert client.logs[0]["data"].startswith("<object object")

    with_client(app, conversation)


def test_data_is_sent_as_it_was_when_it_was_logged() -> None:
    app = Server("t")

    @app.tool(run="thread")
    def say(ctx: Context) -> None:
        rows: list[int] = []
        for row in range(3):
            rows.append(row)
            ctx.log(rows)

    async def conversation(client: Client) -> None:
        await client.call("say")
        assert [log["data"] for log in client.logs] == [[0], [0, 1], [0, 1, 2]]

    with_client(app, conversation)


def test_nothing_is_sent_after_the_answer() -> None:
    app = Server("t")
    late = threading.Event()
    tasks: list[Any] = []

    @app.tool
    async def leave(ctx: Context) -> str:
        async def afterwards() -> None:
            await asyncio.sleep(0.02)
            ctx.log("too late")
            await ctx.progress(5)
            late.set()

        tasks.append(asyncio.ensure_future(afterwards()))
        return "left"

    async def conversation(client: Client) -> None:
        await client.call("leave", on_progress=lambda _: None)
        while not late.is_set():
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.01)
        assert client.notifications == []

    with_client(app, conversation)


# --- Python's logging ---------------------------------------------------------------------------------


@pytest.fixture
def bridged() -> Iterator[Bridge]:
    logger = logging.getLogger("bridged")
    handler = bridge(logger, logging.DEBUG)
    yield handler
    handler.close()
    assert handler not in logger.handlers
    for rest in list(logger.handlers):
        logger.removeHandler(rest)
    logger.setLevel(logging.NOTSET)


def chatty() -> Server:
    app = Server("t")

    def work(name: str) -> str:
        logging.getLogger("bridged.work").info("working for %s", name)
        return name

    async def work_async(name: str) -> str:
        await asyncio.sleep(0.005)
        logging.getLogger("bridged.work").info("working for %s", name)
        await asyncio.to_thread(logging.getLogger("bridged.work").info, "helping %s", name)
        return name

    app.add_tool(work, name="inline", run="inline")
    app.add_tool(work, name="thread", run="thread")
    app.add_tool(work_async, name="async")
    return app


@pytest.mark.usefixtures("bridged")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("tool", ["inline", "thread", "async"])
def test_records_reach_the_client_of_the_call_that_makes_them(tool: str, version: str) -> None:
    app = chatty()

    async def run() -> None:
        async with (
            Client(app, version=version, log_level="info") as first,
            Client(app, version=version, log_level="info") as second,
        ):
            for _ in range(3):
                first.logs.clear()
                second.logs.clear()
                await asyncio.gather(first.call(tool, name="one"), second.call(tool, name="two"))
                for client, name in ((first, "one"), (second, "two")):
                    expected = [f"working for {name}"]
                    if tool == "async":
                        expected.append(f"helping {name}")
                    assert [log["data"] for log in client.logs] == expected
                    assert {log["logger"] for log in client.logs} == {"bridged.work"}
            await first.call(tool, name="three")
            assert running_call.current() is None, "an ended call is remembered"
            logging.getLogger("bridged.work").info("nobody's")
            assert len(first.logs) == 2 * len(expected)

    asyncio.run(asyncio.wait_for(run(), 30))


@pytest.mark.usefixtures("bridged")
def test_a_bridge_respects_what_the_client_wants_and_what_may_not_be_sent() -> None:
    app = Server("t")

    @app.tool(run="inline")
    def work() -> str:
        logging.getLogger("bridged").debug("detail")
        logging.getLogger("bridged").warning("beware of %s", "dogs")
        try:
            raise ValueError("inside")
        except ValueError:
            logging.getLogger("bridged").exception("it failed")
        logging.getLogger("elsewhere").error("not bridged")
        return "done"

    async def conversation(client: Client) -> None:
        await client.call("work")
        said = [(log["level"], log["data"]) for log in client.logs]
        assert said == [("warning", "beware of dogs"), ("error", "it failed")]

    with_client(app, conversation, log_level="warning")


def test_a_record_that_cannot_be_written_does_not_fail_the_call(
    bridged: Bridge, capfd: pytest.CaptureFixture[str]
) -> None:
    app = Server("t")

    @app.tool(run="inline")
    def work() -> str:
        bridged.handle(logging.LogRecord("bridged", logging.ERROR, __file__, 1, "%s %s", (1,), None))
        return "done"

    async def conversation(client: Client) -> None:
        assert (await client.call("work")).text == "done"
        assert client.logs == []

    with_client(app, conversation)
    out, error = capfd.readouterr()
    assert out == ""
    assert "not enough arguments" in error


def test_a_record_made_while_one_is_sent_does_not_go_round(
    bridged: Bridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    level_of = log_bridge.level_of

    def noisy(number: int) -> str:
        logging.getLogger("bridged").info("sending")
        return level_of(number)

    monkeypatch.setattr(log_bridge, "level_of", noisy)

    async def conversation(client: Client) -> None:
        await client.call("inline", name="x")
        assert [log["data"] for log in client.logs] == ["working for x"]

    with_client(chatty(), conversation)


def test_a_bridge_does_not_take_warnings_from_standard_error(capfd: pytest.CaptureFixture[str]) -> None:
    logger = logging.getLogger("lonely")
    logger.propagate = False
    handler = bridge("lonely", "INFO")
    try:
        logger.warning("to whom it may concern")
        logger.info("hush")
    finally:
        handler.close()
    out, error = capfd.readouterr()
    assert out == ""
    assert error == "to whom it may concern\n"


def test_each_level_of_python_has_a_name_here() -> None:
    numbers = (5, 10, 15, 20, 25, 30, 40, 50, 60)
    names = ["debug", "debug", "debug", "info", "notice", "warning", "error", "critical", "critical"]
    assert [level_of(number) for number in numbers] == names
