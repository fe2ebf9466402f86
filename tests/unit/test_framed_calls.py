"""Resources and prompts that the connection serves by itself: each answer is the dispatcher's, every byte."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from support.in_memory import ENVELOPE, RawConversation, in_loop

from fastrpc import CallInfo, CallRecord, Contents, Context, Message, Server, Text, ToolError
from fastrpc.errors import InvalidParams
from fastrpc.protocol.versions import STATELESS, VERSIONS


def app_of() -> Server:
    app = Server("t")

    @app.resource("docs://text.md", run="inline")
    def text() -> str:
        return 'été "quoted"\n'

    @app.resource("docs://context", run="inline")
    def with_context(ctx: Context) -> str:
        return str(ctx.request_id)

    @app.resource("docs://coroutine", ttl=60)
    async def coroutine() -> str:
        return "at once"

    @app.resource("docs://waiting")
    async def waiting(ctx: Context) -> str:
        await asyncio.sleep(0)
        return f"later, {ctx.principal}"

    @app.resource("docs://bytes", run="inline")
    def data() -> bytes:
        return b"\0"

    @app.resource("docs://contents", run="inline")
    def contents() -> Contents:
        return Contents("a", "text/x")

    @app.resource("docs://nothing", run="inline")
    def nothing() -> None:
        return None

    @app.resource("docs://half", run="inline")
    def half() -> str:
        return "\ud800"

    @app.resource("docs://fails", run="inline")
    def fails() -> str:
        raise ValueError("no")

    @app.resource("docs://refuses", run="inline")
    def refuses() -> str:
        raise InvalidParams("not now")

    @app.resource("docs://thread", run="thread")
    def thread() -> str:
        return "from a thread"

    @app.prompt(run="inline")
    def write(about: str, style: str = "plain") -> str:
        """Write \"text\":\"\" about something."""
        return f"Write about {about}, {style}"

    @app.prompt
    async def ask(about: str, ctx: Context) -> str:
        await asyncio.sleep(0)
        return f"{about} {ctx.request_id}"

    @app.prompt(run="inline")
    def count(times: int = 1) -> str:
        return str(times)

    @app.prompt(run="inline")
    def messages(about: str) -> list[Any]:
        return [Message("assistant", about), Text(about)]

    @app.prompt(run="inline")
    def breaks(about: str) -> str:
        raise ToolError(about)

    return app


READS: list[Any] = [
    {"uri": f"docs://{name}"}
    for name in (
        "text.md",
        "context",
        "coroutine",
        "waiting",
        "bytes",
        "contents",
        "nothing",
        "half",
        "fails",
    )
]
READS += [{"uri": "docs://refuses"}, {"uri": "docs://thread"}, {"uri": "docs://none"}, {"uri": 5}, {}]
READS += [{"uri": "docs://text.md", "other": 1}, {"uri": "docs:\\/\\/text.md"}]
GETS: list[Any] = [
    {"name": name, "arguments": {"about": "été"}} for name in ("write", "ask", "messages", "breaks", "none")
]
GETS += [{"name": "count"}, {"name": "count", "arguments": {"times": "7"}}]
for given in (
    {},
    None,
    {"about": 5},
    {"about": "a", "x": 1},
    {"about": None},
    {"style": "b", "about": "a"},
    [],
):
    GETS.append({"name": "write", "arguments": given})
GETS += [{"name": "write"}, {"name": 5}, {"arguments": {}}]
REQUESTS = [("resources/read", params) for params in READS] + [("prompts/get", params) for params in GETS]


async def answers(version: str, kept: bool, times: int) -> tuple[dict[Any, bytes], int]:
    """The answers to all requests, each asked so many times; not `kept`: each connection is asked once."""
    app, found = app_of(), {}
    number = handed_on = 0
    peer = RawConversation(app, version)
    peer.dispatcher.loop_runs(asyncio.get_running_loop())
    for _ in range(times):
        for method, params in REQUESTS:
            if not kept:
                peer.close()
                peer = RawConversation(app, version)
                peer.dispatcher.loop_runs(asyncio.get_running_loop())
            meta = {"_meta": ENVELOPE} if version == STATELESS else {}
            peer.say({"id": number, "method": method, "params": {**params, **meta}})
            await peer.answer(number)
            found[number] = peer.answers[number]
            number += 1
    handed_on = peer.handed_on
    peer.close()
    return found, handed_on


@pytest.mark.parametrize("version", VERSIONS)
def test_what_the_connection_answers_is_what_the_dispatcher_does(
    version: str, capfd: pytest.CaptureFixture[str]
) -> None:
    found, handed_on = in_loop(lambda: answers(version, kept=True, times=4))
    expected, _ = in_loop(lambda: answers(version, kept=False, times=4))
    assert found == expected
    # Of 33 each time: those that do not run inline, are not there, or do not fit.
    by_itself = 4 * len(REQUESTS) - handed_on
    assert by_itself == 2 * 18
    capfd.readouterr()


def test_guards_and_observers_see_what_the_connection_serves() -> None:
    async def run() -> None:
        app = app_of()
        asked: list[tuple[str, str, Any]] = []
        records: list[CallRecord] = []
        app.observe(records.extend)

        @app.guard
        def decide(call: CallInfo) -> None:
            asked.append((call.kind, call.name, dict(call.arguments)))
            if call.arguments.get("about") == "secret":
                raise InvalidParams("no")

        peer = RawConversation(app, "2025-11-25")
        for number in range(4):
            peer.say({"id": number, "method": "resources/read", "params": {"uri": "docs://text.md"}})
        for number, about in ((4, "a"), (5, "b"), (6, "c"), (7, "secret")):
            params = {"name": "write", "arguments": {"about": about}}
            peer.say({"id": number, "method": "prompts/get", "params": params})
        assert peer.handed_on == 4
        assert asked[:4] == [("resource", "docs://text.md", {})] * 4
        assert asked[4:] == [
            ("prompt", "write", {"about": a, "style": "plain"}) for a in ("a", "b", "c", "secret")
        ]
        app._observers.drain()
        found = [(each.kind, each.name, each.outcome, each.size) for each in records]
        sizes = [len(peer.answers[number]) + 1 for number in range(8)]
        assert found[:4] == [("resource", "docs://text.md", "ok", size) for size in sizes[:4]]
        assert found[4:7] == [("prompt", "write", "ok", size) for size in sizes[4:7]]
        assert found[7] == ("prompt", "write", "refused", sizes[7])
        peer.close()

    in_loop(run)


def test_a_change_of_the_catalogue_is_seen_by_the_next_request() -> None:
    async def run() -> None:
        app = app_of()
        peer = RawConversation(app, "2025-11-25")
        for number in range(3):
            peer.say({"id": number, "method": "resources/read", "params": {"uri": "docs://text.md"}})
        app.registries.resources.remove("docs://text.md")
        await asyncio.sleep(0)
        peer.say({"id": 3, "method": "resources/read", "params": {"uri": "docs://text.md"}})
        assert (await peer.answer(3))["error"]["code"] == -32002
        peer.close()

    in_loop(run)
