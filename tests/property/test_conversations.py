"""Random conversations in every version, held against a small model of what a client may see.

Calls of every kind, cancellations, progress, log levels, subscriptions, streams, lists, and changes at run
time, from the loop and from threads. No answer may be lost, come twice or come behind a cancellation;
notifications come where they are allowed, and wherever they are owed; at the end all tables are empty. A
few seconds in all. Each test's id holds its seed; FASTRPC_SEED=N takes others.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import time
from typing import Any

import pytest
from support.in_memory import connected
from support.stdio import STATELESS_META

from fastrpc import Context, Server, ToolError
from fastrpc.protocol.lifecycle import LOG_LEVELS
from fastrpc.protocol.versions import BATCHES, LOG_KEY, STATELESS, SUBSCRIPTION_KEY, VERSIONS

SEED = int(os.environ.get("FASTRPC_SEED", "1"))
PARTS = 4
STEPS = 250
LEVELS = list(LOG_LEVELS)
URIS = ["docs://0", "docs://1", "docs://2"]
LISTS = {"toolsListChanged": "tools", "resourcesListChanged": "resources"}
TALKATIVE = ("inline", "thread", "wait", "limited")


def level_of(step: int, offset: int) -> str:
    return LEVELS[(step * 3 + offset) % len(LEVELS)]


def make_server() -> Server:
    app = Server("conversations", page_size=1000)

    def talk(ctx: Context, nonce: str, steps: int, offset: int, step: int) -> None:
        ctx.progress(step + 1, steps, nonce)
        ctx.log(nonce, level_of(step, offset))

    @app.tool(run="inline")
    def fast(nonce: str) -> str:
        return nonce

    @app.tool(run="inline")
    def inline(nonce: str, steps: int, offset: int, ctx: Context) -> str:
        for step in range(steps):
            talk(ctx, nonce, steps, offset, step)
        return nonce

    @app.tool(run="thread")
    def thread(nonce: str, steps: int, offset: int, ctx: Context) -> str:
        for step in range(steps):
            talk(ctx, nonce, steps, offset, step)
            time.sleep(0.0005)
        return nonce

    @app.tool
    async def wait(nonce: str, steps: int, offset: int, ctx: Context) -> str:
        for step in range(steps):
            talk(ctx, nonce, steps, offset, step)
            await asyncio.sleep(0.001)
        return nonce

    @app.tool(timeout_seconds=0.004)
    async def limited(nonce: str, steps: int, offset: int, ctx: Context) -> str:
        for step in range(steps):
            talk(ctx, nonce, steps, offset, step)
            await asyncio.sleep(0.001)
        return nonce

    @app.tool(max_running=1)
    async def queued(nonce: str) -> str:
        await asyncio.sleep(0.001)
        return nonce

    @app.tool
    async def fail(nonce: str) -> str:
        raise ToolError(nonce)

    for uri in URIS:
        app.add_resource(uri, "text")
    return app


def extra(nonce: str) -> str:
    return nonce


class Asked:
    """A request that the client has sent."""

    def __init__(self, tool: str = "", nonce: str = "") -> None:
        self.tool = tool
        self.nonce = nonce
        self.state = "open"
        self.in_batch = False
        self.token: Any = None
        self.steps = 0
        self.offset = 0
        self.levels: set[str | None] = set()  # that have been wanted since it was sent
        self.progress: list[float] = []
        self.logs: list[str] = []
        self.error: int | None = None  # the code that has to come
        self.expected: Any = None  # a list's entries
        self.refused = 0  # requests with the same id that are still to be refused


class Stream:
    """A request that listens."""

    def __init__(self, wanted: dict[str, Any]) -> None:
        self.wanted = wanted
        self.acknowledged = False
        self.ended = False
        self.owed: set[str] = set()  # lists whose change is to be told
        self.allowed: set[str] = set()  # and those of which may be told
        self.updates: list[str] = []


class Conversation:
    """A client, and what it knows of what it may be told."""

    def __init__(self, version: str, seed: str) -> None:
        self.version = version
        self.stateless = version == STATELESS
        self.chance = random.Random(seed)
        self.app = make_server()
        self.dispatcher = self.app.connect()
        self.transport = connected(self.dispatcher.connection, self.take_line)
        self.problems: list[str] = []
        self.asked: dict[Any, Asked] = {}
        self.streams: dict[Any, Stream] = {}
        self.session = Stream(dict.fromkeys(LISTS, True))  # what a session hears by itself
        self.subscribed: set[str] = set()
        self.level = "info"
        self.tools = [tool.name for tool in self.app.tools]
        self.count = 0
        self.ending = False
        self.in_thread = False  # somebody changes something at this moment

    # --- what the server says ---------------------------------------------------------------------

    def take_line(self, line: bytes) -> None:
        message = json.loads(line)
        try:
            for each in message if isinstance(message, list) else [message]:
                self.take(each)
        except (AssertionError, KeyError) as error:
            self.problems.append(f"{type(error).__name__} {error} at {line[:300]!r}")

    def take(self, message: dict[str, Any]) -> None:
        if "method" in message:
            assert "id" not in message, "the server asks nothing here"
            getattr(self, "take_" + message["method"].replace("/", "_"))(message.get("params", {}))
        elif message["id"] in self.streams and "result" in message:
            stream = self.streams.pop(message["id"])
            assert not stream.owed, "a stream ends and owes a change"
            assert not stream.updates, "a stream ends and owes an update"
            assert message["result"]["_meta"][SUBSCRIPTION_KEY] == message["id"]
            assert self.ending, "a stream ends by itself"
        else:
            self.take_answer(self.asked[message["id"]], message)

    def take_answer(self, asked: Asked, message: dict[str, Any]) -> None:
        code = message.get("error", {}).get("code")
        if code == -32600 and asked.refused:
            asked.refused -= 1
            return
        assert asked.state == "open" or (asked.in_batch and asked.state == "cancelled"), asked.state
        cancelled, asked.state = asked.state == "cancelled", "answered"
        assert code == asked.error, f"expected {asked.error}"
        if asked.expected is not None:
            assert asked.expected == [entry["name"] for entry in message["result"]["tools"]]
        if asked.tool and code is None:
            self.judge_result(asked, message["result"], cancelled)

    def judge_result(self, asked: Asked, result: dict[str, Any], cancelled: bool) -> None:
        assert ("resultType" in result) == self.stateless
        text = result["content"][0]["text"]
        if asked.tool == "limited" and result["isError"]:
            assert "did not end" in text
            return
        assert text == asked.nonce
        assert result["isError"] == (asked.tool == "fail")
        if cancelled or asked.tool not in TALKATIVE:
            return
        if asked.token is not None and asked.steps:
            assert asked.progress[-1:] == [asked.steps], "the last report is missing"
        must = [
            level
            for level in (level_of(step, asked.offset) for step in range(asked.steps))
            if all(self.passes(level, wanted) for wanted in asked.levels)
        ]
        assert [level for level in asked.logs if level in must] == must, "a log message is missing"

    @staticmethod
    def passes(level: str, wanted: str | None) -> bool:
        return wanted is not None and LOG_LEVELS[level] >= LOG_LEVELS[wanted]

    def take_notifications_progress(self, params: dict[str, Any]) -> None:
        (asked,) = (each for each in self.asked.values() if each.token == params["progressToken"])
        assert type(params["progressToken"]) is type(asked.token)
        assert asked.state == "open", asked.state
        assert not asked.progress or params["progress"] > asked.progress[-1]
        assert ("message" in params) == (self.version != VERSIONS[0])
        asked.progress.append(params["progress"])

    def take_notifications_message(self, params: dict[str, Any]) -> None:
        (asked,) = (each for each in self.asked.values() if each.nonce == params["data"])
        assert asked.state == "open", asked.state
        assert any(self.passes(params["level"], wanted) for wanted in asked.levels)
        asked.logs.append(params["level"])

    def stream_of(self, params: dict[str, Any]) -> Stream:
        if not self.stateless:
            assert "_meta" not in params
            return self.session
        return self.streams[params["_meta"][SUBSCRIPTION_KEY]]

    def take_notifications_subscriptions_acknowledged(self, params: dict[str, Any]) -> None:
        stream = self.stream_of(params)
        assert not stream.acknowledged
        assert params["notifications"] == stream.wanted
        stream.acknowledged = True

    def list_changed(self, name: str, params: dict[str, Any]) -> None:
        stream = self.stream_of(params)
        assert name in stream.allowed, "nothing has changed"
        stream.owed.discard(name)
        if not self.in_thread:  # where a change may be told of that is just being made
            stream.allowed.remove(name)

    def take_notifications_tools_list_changed(self, params: dict[str, Any]) -> None:
        self.list_changed("tools", params)

    def take_notifications_resources_list_changed(self, params: dict[str, Any]) -> None:
        self.list_changed("resources", params)

    def take_notifications_resources_updated(self, params: dict[str, Any]) -> None:
        self.stream_of(params).updates.remove(params["uri"])

    # --- what the client says ---------------------------------------------------------------------

    def new_id(self) -> Any:
        self.count += 1
        return self.count if self.chance.random() < 0.5 else f"id {self.count}"

    def request(self, id: Any, method: str, params: dict[str, Any], **meta: Any) -> dict[str, Any]:
        meta = {**STATELESS_META, **meta} if self.stateless else meta
        if meta:
            params = {**params, "_meta": meta}
        return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}

    def send(self, message: Any) -> None:
        self.transport.send(json.dumps(message).encode())

    def ask(self, method: str, params: dict[str, Any]) -> Asked:
        id = self.new_id()
        asked = self.asked[id] = Asked()
        message = self.request(id, method, params)
        self.expect(asked, method, params)
        self.send(message)
        return asked

    def expect(self, asked: Asked, method: str, params: dict[str, Any]) -> None:
        if method == "tools/list":
            asked.expected = list(self.tools)
        elif self.stateless:
            asked.error = -32601

    def new_call(self) -> dict[str, Any]:
        """Return a call of some tool that is noted in the model."""
        chance, id = self.chance, self.new_id()
        tool = chance.choice([*TALKATIVE, "fast", "queued", "fail", f"extra{chance.randrange(4)}"])
        asked = self.asked[id] = Asked(tool, f"nonce {self.count}")
        arguments: dict[str, Any] = {"nonce": asked.nonce}
        meta: dict[str, Any] = {}
        if tool in TALKATIVE:
            asked.steps = arguments["steps"] = chance.choice([0, 1, 2, 3, 5, 12])
            asked.offset = arguments["offset"] = chance.randrange(8)
        if chance.random() < 0.6:
            asked.token = meta["progressToken"] = chance.choice([self.count, f"token {self.count}"])
        asked.levels = {None if self.stateless else self.level}
        if self.stateless and chance.random() < 0.6:
            meta[LOG_KEY] = chance.choice(LEVELS)
            asked.levels = {meta[LOG_KEY]}
        if tool.startswith("extra") and tool not in self.tools:
            asked.error = -32602
        return self.request(id, "tools/call", {"name": tool, "arguments": arguments}, **meta)

    def do_call(self) -> None:
        self.send(self.new_call())

    def do_batch(self) -> None:
        if self.version not in BATCHES:
            return
        batch = [self.new_call() for _ in range(self.chance.randrange(1, 4))]
        for message in batch:
            self.asked[message["id"]].in_batch = True
        self.send(batch)

    def do_cancel(self) -> None:
        recent = list(self.asked)[-12:]
        working = [id for id in recent if self.asked[id].state == "open"]
        id = self.chance.choice([*recent, *working * 4, *self.streams, "unknown", 10**9])
        if self.chance.random() < 0.2 and isinstance(id, int):
            id = str(id)  # another id, which is not in use
        asked = self.asked.get(id)
        self.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
        if asked is not None and asked.state == "open":
            asked.state = "cancelled"
        self.streams.pop(id, None)

    def do_same_id_again(self) -> None:
        working = [id for id, asked in self.asked.items() if asked.state == "open" and not asked.in_batch]
        if working:
            id = self.chance.choice(working)
            self.asked[id].refused += 1
            self.send(self.request(id, "tools/call", {"name": "fast", "arguments": {"nonce": "again"}}))
            if self.asked[id].refused:
                self.problems.append(f"a second request with the id {id!r} was not refused at once")

    def do_list(self) -> None:
        self.ask("tools/list", {})

    def do_set_level(self) -> None:
        level = self.chance.choice(LEVELS)
        if not self.stateless:
            self.level = level
            for asked in self.asked.values():
                asked.levels.add(level)
        self.ask("logging/setLevel", {"level": level})

    def do_subscribe(self) -> None:
        uri = self.chance.choice(URIS)
        self.ask("resources/subscribe", {"uri": uri})
        self.subscribed.add(uri)

    def do_unsubscribe(self) -> None:
        uri = self.chance.choice(URIS)
        self.ask("resources/unsubscribe", {"uri": uri})
        self.subscribed.discard(uri)

    def do_listen(self) -> None:
        if len(self.streams) > 4:
            return
        wanted: dict[str, Any] = {name: True for name in LISTS if self.chance.random() < 0.6}
        uris = [uri for uri in URIS if self.chance.random() < 0.5]
        if uris:
            wanted["resourceSubscriptions"] = uris
        id = self.new_id()
        if self.stateless:
            stream = self.streams[id] = Stream(wanted)
        else:
            self.asked[id] = asked = Asked()
            asked.error = -32601
        self.send(self.request(id, "subscriptions/listen", {"notifications": wanted}))
        if self.stateless and not stream.acknowledged:
            self.problems.append("a stream was not acknowledged at once")

    # --- what the server's own code does --------------------------------------------------------------

    def owe(self, name: str) -> None:
        for stream in self.streams.values() if self.stateless else [self.session]:
            if any(LISTS.get(wanted) == name for wanted in stream.wanted):
                stream.owed.add(name)
                stream.allowed.add(name)

    def change_tools(self) -> None:
        name = f"extra{self.chance.randrange(4)}"
        self.owe("tools")
        if name in self.tools:
            self.tools.remove(name)
            self.app.remove_tool(name)
        else:
            self.tools.append(name)
            self.app.add_tool(extra, name=name, run=self.chance.choice(["inline", "auto"]))

    def change_resources(self) -> None:
        self.owe("resources")
        uri = "docs://extra"
        if uri in self.app.registries.resources:
            self.app.remove_resource(uri)
        else:
            self.app.add_resource(uri, "text")

    def do_change(self) -> None:
        self.chance.choice([self.change_tools, self.change_tools, self.change_resources])()

    def do_update(self) -> None:
        uri = self.chance.choice([*URIS, "docs://nowhere"])
        if not self.stateless and uri in self.subscribed:
            self.session.updates.append(uri)
        for stream in self.streams.values():
            if uri in stream.wanted.get("resourceSubscriptions", ()):
                stream.updates.append(uri)
        self.app.resource_updated(uri)

    # --- the whole ------------------------------------------------------------------------------------

    async def hold(self) -> None:
        if not self.stateless:
            self.asked[0] = Asked()
            self.send(self.request(0, "initialize", {"protocolVersion": self.version}))
            self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        actions = [
            *[self.do_call] * 10,
            *[self.do_cancel] * 4,
            *[self.do_change] * 3,
            *[self.do_list, self.do_batch, self.do_update, self.do_update, self.do_same_id_again],
            *[self.do_set_level, self.do_subscribe, self.do_unsubscribe, self.do_listen],
        ]
        for _ in range(STEPS):
            action = self.chance.choice(actions)
            if action in (self.do_change, self.do_update) and self.chance.random() < 0.3:
                self.in_thread = True
                await asyncio.to_thread(action)
                self.in_thread = False
            else:
                action()
            pause = self.chance.random()
            if pause < 0.3:
                await asyncio.sleep(0.002 * self.chance.random())
            elif pause < 0.6:
                await asyncio.sleep(0)
            if self.problems:
                return
        await self.settle()

    async def settle(self) -> None:
        """Wait for all answers, end, and see that nothing is left."""
        deadline = time.monotonic() + 30
        await asyncio.sleep(0.002)
        while self.open() or self.app.runtime.calls.count:
            if time.monotonic() > deadline:
                self.problems.append(f"never answered: {self.open()}")
                return
            await asyncio.sleep(0.002)
        for stream in (self.session, *self.streams.values()):
            if stream.owed or stream.updates:
                self.problems.append(f"never told: {stream.owed} {stream.updates}")
        self.ending = True
        self.dispatcher.changes.end_listening()
        if self.streams:
            self.problems.append(f"never ended: {list(self.streams)}")
        for table in (
            self.dispatcher.requests.in_flight,
            self.dispatcher.changes.listening,
            self.dispatcher.changes.changed_lists,
        ):
            if table:
                self.problems.append(f"left over: {table}")
        self.transport.disconnect()
        if self.app.runtime.dispatchers:
            self.problems.append("the connection is not forgotten")

    def open(self) -> list[Any]:
        return [id for id, asked in self.asked.items() if asked.state == "open" or asked.refused]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("part", range(PARTS), ids=lambda part: f"seed={SEED}.{part}")
def test_a_random_conversation_stays_within_the_model(part: int, version: str) -> None:
    print(f"FASTRPC_SEED={SEED}, part {part}")

    async def run() -> Conversation:
        conversation = Conversation(version, f"{SEED}.{part}.{version}")
        await conversation.hold()
        return conversation

    conversation = asyncio.run(asyncio.wait_for(run(), 60))
    assert conversation.problems == []
    states = [asked.state for asked in conversation.asked.values()]
    assert states.count("answered") > 50
    assert "cancelled" in states
