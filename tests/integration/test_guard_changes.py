"""What changes while clients call a guarded server is so at the next call, on each connection of each worker.

Real processes: each caller has a connection to each worker that is kept, and sessions on others; all of them
were answered by the fast paths before the change.
"""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.guarded_folder import fastrpc, variables
from support.http_server import FASTRPC
from support.http_sessions import RequestedProcess, Session, Stream, stateless_request
from support.protocol import message
from support.raw_http import Answer, Socket
from support.rewriting import rewrite
from support.waiting import eventually

from fastrpc import Client
from fastrpc.errors import RemoteError

pytestmark = pytest.mark.long

TOOLS = '''
import asyncio, os
from fastrpc import Context, Server

app = Server("shop")

@app.tool(effect="read", run="inline")
def who() -> str:
    """Return the process."""
    return str(os.getpid())

@app.tool(effect="read", run="inline")
def search(text: str = "x") -> str:
    """Search."""
    return f"found {text}"

@app.tool(effect="read")
async def later(text: str = "x") -> str:
    """Search, later."""
    await asyncio.sleep(0.001)
    return f"found {text}"

@app.tool(effect="read", run="thread")
def thread(text: str = "x") -> str:
    """Search on a thread."""
    return f"found {text}"

@app.tool(effect="read", run="inline")
def asked(ctx: Context, text: str = "x") -> str:
    """Search for a caller."""
    return f"found {text}"

@app.tool(effect="read", run="inline")
def touch() -> str:
    """Change the resources."""
    app.resource_updated("docs://page")
    app.resource_updated("docs://other")
    return "touched"

@app.tool(effect="read", run="inline")
def drop() -> str:
    """Remove this tool."""
    app.remove_tool("drop")
    return "dropped"

@app.resource("docs://page")
def page() -> str:
    return "a page"

@app.resource("docs://other")
def other() -> str:
    return "another page"
'''
SEARCHES = ("search", "later", "thread", "asked")
UNAUTHORIZED, UNKNOWN = 401, -32602
DENIED, TOO_OFTEN, OVER_BUDGET = "not_allowed", "rate_limit", "budget"
HOLDS = "holds now"


def policy(tools: str = '["*"]', *, resources: str = '["*"]', staff: str = "", more: str = "") -> str:
    return f"""
[expose]
tools = ["*"]
resources = ["*"]

[classes.staff]
tools = {tools}
resources = {resources}
{staff}

[classes.guest]

[risk]
"*" = "low"
{more}
"""


class Way:
    """A connection that stays with its worker, on which a caller asks, in a session or without one."""

    def __init__(self, server: RequestedProcess, token: str, session: Session | None = None) -> None:
        self.server = server
        self.token = token
        self.session = session
        self.socket = Socket(server.port)
        self.id = 0
        self.pid = self.call("who")

    def ask(self, method: str, params: dict[str, Any]) -> Answer:
        self.id += 1
        if self.session is None:
            self.socket.send(stateless_request(method, params, self.id, token=self.token))
        else:
            self.socket.send(self.session.request(message(method, params, self.id), token=self.token))
        answer = self.socket.answer()
        if answer.status == UNAUTHORIZED:  # which closes the connection
            self.socket.plain.close()
            self.socket = Socket(self.server.port)
        return answer

    def call(self, tool: str, **arguments: Any) -> Any:
        """Call a tool; return its text, or the reason or code of the refusal."""
        return said(self.ask("tools/call", {"name": tool, "arguments": arguments}))

    def lists(self) -> Any:
        """Return the names of the tools that are listed, or the reason or code of the refusal."""
        answer = self.ask("tools/list", {})
        return answer.status if answer.status == UNAUTHORIZED else names_in(answer)

    def read(self) -> Any:
        """Return the text of a page, or the reason or code of the refusal."""
        found = self.ask("resources/read", {"uri": "docs://page"}).json
        return found["error"]["code"] if "error" in found else found["result"]["contents"][0]["text"]

    def warm(self) -> None:
        """Ask until the fast paths have learned it all."""
        for _ in range(4):
            self.lists()
            self.read()
            for tool in SEARCHES:
                self.call(tool)


def names_in(answer: Answer) -> list[str]:
    return [tool["name"] for tool in answer.json["result"]["tools"]]


def said(answer: Answer) -> Any:
    if answer.status == UNAUTHORIZED:
        return UNAUTHORIZED
    body = answer.body
    if answer.headers["content-type"] == "text/event-stream":
        body = re.findall(rb"^data: (\{.*\})\r?$", body, re.MULTILINE)[-1]
    found = json.loads(body)
    if "error" in found:
        return found["error"].get("data", {}).get("reason") or found["error"]["code"]
    return found["result"]["content"][0]["text"]


class Guarded(RequestedProcess):
    """A guarded server over HTTP and the ways of its callers."""

    def __init__(self, folder: Path, workers: int, text: str) -> None:
        self.folder = folder
        self.workers = workers
        (folder / "shop.py").write_text(TOOLS)
        (folder / "guard.toml").write_text(text)
        self.tokens = {
            owner: fastrpc(folder, "token", "create", "--owner", owner, "--class", of).strip()
            for owner, of in (("ada", "staff"), ("eve", "guest"))
        }
        super().__init__(
            *("serve", "shop.py:app", "--guard", "guard.toml", "--http", "127.0.0.1:0"),
            *("--workers", str(workers), "--log-level", "info"),
            folder=folder,
            environment=variables(folder),
        )

    def one_to_each(self, owner: str) -> list[Way]:
        """Return a connection to each worker, once each knows the caller's token."""
        found: dict[str, Way] = {}

        def more() -> bool:
            way = Way(self, self.tokens[owner])
            if way.pid != UNAUTHORIZED:
                found.setdefault(way.pid, way)
            return len(found) == self.workers

        eventually(more)
        return list(found.values())

    def ways(self, owner: str) -> list[Way]:
        """Return connections to each worker, and some in sessions, which have learned what there is."""
        found = self.one_to_each(owner)
        for version in ("2025-11-25", "2025-06-18"):
            session = Session(self, version, token=self.tokens[owner])  # type: ignore[arg-type]
            found += [Way(self, self.tokens[owner], session) for _ in range(2)]
        for way in found:
            way.warm()
        return found

    def use(self, text: str) -> None:
        """Write another policy, and wait until each worker has said that it uses it."""
        before = self.stderr.count(HOLDS)
        rewrite(self.folder / "guard.toml", text)
        eventually(lambda: self.stderr.count(HOLDS) == before + self.workers)


@contextmanager
def guarded(folder: Path, workers: int, text: str) -> Iterator[Guarded]:
    with Guarded(folder, workers, text) as server:
        yield server


def each(ways: list[Way], ask: Callable[[Way], Any]) -> list[Any]:
    """Ask once by each way."""
    return [ask(way) for way in ways]


def test_a_worker_that_replaces_another_one_has_the_policy_of_the_file_not_that_of_the_start(
    tmp_path: Path,
) -> None:
    with guarded(tmp_path, 2, policy()) as server:
        former = server.one_to_each("ada")
        server.use(policy('["who"]'))
        for way in former:
            os.kill(int(way.pid), signal.SIGKILL)
        eventually(lambda: server.stderr.count("takes its place") == 2)
        later = server.one_to_each("ada")
        assert not {way.pid for way in later} & {way.pid for way in former}
        assert each(later, lambda way: way.call("search")) == [UNKNOWN] * 2
        assert each(later, Way.lists) == [["who"]] * 2

        rewrite(tmp_path / "guard.toml", "this is no policy")
        eventually(lambda: server.stderr.count("the former policy stays in use") == 2)
        os.kill(int(later[0].pid), signal.SIGKILL)
        eventually(lambda: "nothing is allowed until it is right" in server.stderr)
        server.use(policy('["who"]'))
        assert each(server.one_to_each("ada"), lambda way: way.call("search")) == [UNKNOWN] * 2
        assert server.stop() == 0


@pytest.mark.parametrize("workers", [1, 2])
def test_each_change_of_the_policy_is_so_at_the_next_call_on_every_connection(
    tmp_path: Path, workers: int
) -> None:
    with guarded(tmp_path, workers, policy()) as server:
        ways, others = server.ways("ada"), server.ways("eve")

        def warm() -> None:
            server.use(policy())
            for way in ways:
                way.warm()
            assert each(ways, lambda way: way.call("search")) == ["found x"] * len(ways)

        server.use(policy('["who", "touch"]'))
        for tool in SEARCHES:
            assert each(ways, lambda way, tool=tool: way.call(tool)) == [UNKNOWN] * len(ways)  # type: ignore[misc]
        assert each(ways, Way.lists) == [["who", "touch"]] * len(ways)
        assert each(others, lambda way: way.call("search")) == ["found x"] * len(others)

        warm()
        rule = 'id = "r"\ntools = ["search"]\nwhen = \'args.text == "x"\'\nthen = "deny"'
        server.use(policy(more=f"[[rules]]\n{rule}"))
        assert each(ways, lambda way: way.call("search")) == [DENIED] * len(ways)
        assert each(ways, lambda way: way.call("search", text="y")) == ["found y"] * len(ways)

        warm()
        server.use(policy(staff='tool_rates = { "search" = "1/hour" }'))
        found = each(ways, lambda way: way.call("search"))
        assert (found.count("found x"), found.count(TOO_OFTEN)) == (1, len(ways) - 1)

        warm()
        server.use(policy(staff='tool_budgets = { "search" = ["2 calls/day"] }'))
        found = each(ways, lambda way: way.call("search"))
        assert (found.count("found x"), found.count(OVER_BUDGET)) == (2, len(ways) - 2)
        server.use(policy(staff='tool_budgets = { "search" = ["100 calls/day"] }'))
        assert each(ways, lambda way: way.call("search")) == ["found x"] * len(ways)
        server.use(policy(staff='tool_budgets = { "search" = ["3 calls/day"] }'))
        assert each(ways, lambda way: way.call("search")) == [OVER_BUDGET] * len(ways)

        warm()
        approvals = '"search" = "high"\n[approvals]\nhold_seconds = 0.1\nfrom = '
        for asks_from, wanted in (("high", "waiting for the approval"), ("never", "found x")) * 2:
            server.use(policy(more=f'{approvals}"{asks_from}"'))
            for _ in range(2):
                assert all(wanted in text for text in each(ways, lambda way: way.call("search")))

        warm()
        server.use(policy(resources='["docs://other"]'))
        assert each(ways, Way.read) == [UNKNOWN if way.session is None else -32002 for way in ways]
        assert each(others, Way.read) == ["a page"] * len(others)

        warm()
        assert ways[0].call("drop") == "dropped"
        beside = [way for way in (*ways, *others) if way.pid == ways[0].pid]
        assert each(beside, lambda way: way.call("drop")) == [UNKNOWN] * len(beside)
        assert not any("drop" in way.lists() for way in beside)
        assert server.stop() == 0


@pytest.mark.parametrize("workers", [1, 2])
def test_a_token_that_is_no_longer_valid_is_refused_on_every_connection_and_its_streams_end(
    tmp_path: Path, workers: int
) -> None:
    with guarded(tmp_path, workers, policy()) as server:
        others = server.one_to_each("eve")
        for how in (("revoke",), ("rotate",), ("rotate", "--overlap", "2s")):
            ways = server.ways("ada")
            token = server.tokens["ada"]
            watched = {"resourceSubscriptions": ["docs://page", "docs://other"], "toolsListChanged": True}
            listening = server.open(
                stateless_request("subscriptions/listen", {"notifications": watched}, 9, token=token)
            )
            assert listening.message()["method"] == "notifications/subscriptions/acknowledged"
            session = Session(server, "2025-11-25", token=token)  # type: ignore[arg-type]
            for uri in watched["resourceSubscriptions"]:  # type: ignore[attr-defined]
                assert session.post(message("resources/subscribe", {"uri": uri}, 5)).status == 200
            streams = [listening, session.listen()]
            assert streams[1].head.status == 200
            touched(streams, others[0], ["docs://page", "docs://other"])

            server.use(policy(resources='["docs://other"]'))
            touched(streams, others[0], ["docs://other"])
            server.use(policy())

            action, *options = how
            made = fastrpc(tmp_path, "token", action, token.split("_")[1], *options)
            for way in ways:
                eventually(lambda way=way: way.call("search") == UNAUTHORIZED)  # within a second
            assert each(ways, lambda way: way.call("later")) == [UNAUTHORIZED] * len(ways)
            assert each(ways, Way.lists) == [UNAUTHORIZED] * len(ways)
            for way in others:  # of each worker
                way.call("touch")
            for stream in streams:
                assert "notifications/resources/updated" not in [
                    found["method"] for found in stream.messages()
                ]
            if action == "revoke":
                made = fastrpc(tmp_path, "token", "create", "--owner", "ada", "--class", "staff")
            server.tokens["ada"] = made.split()[0]
        assert server.stop() == 0


def touched(streams: list[Stream], way: Way, uris: list[str]) -> None:
    """Change the resources, and compare of what the streams tell."""
    assert way.call("touch") == "touched"
    for stream in streams:
        heard: list[str] = []
        while len(heard) < len(uris):
            found = stream.message()
            if found["method"] == "notifications/resources/updated":
                heard.append(found["params"]["uri"])
        assert heard == uris


@pytest.mark.parametrize("how", [("revoke",), ("rotate",), ("rotate", "--overlap", "2s")], ids=" ".join)
def test_over_stdio_the_calls_of_a_token_that_is_no_longer_valid_are_refused(
    tmp_path: Path, how: tuple[str, ...]
) -> None:
    (tmp_path / "shop.py").write_text(TOOLS)
    (tmp_path / "guard.toml").write_text(policy())
    token = fastrpc(tmp_path, "token", "create", "--owner", "ada", "--class", "staff").strip()
    command = [*FASTRPC, "serve", "shop.py:app", "--guard", "guard.toml"]
    with Client.sync(command, cwd=str(tmp_path), env=variables(tmp_path, FASTRPC_TOKEN=token)) as client:

        def outcome(tool: str) -> Any:
            try:
                return client.call_tool(tool, {}).text
            except RemoteError as error:
                return error.code

        for _ in range(20):
            assert [outcome(tool) for tool in SEARCHES] == ["found x"] * 4
        rewrite(tmp_path / "guard.toml", policy('["later", "asked"]'))
        eventually(lambda: outcome("search") == UNKNOWN)
        assert [outcome(tool) for tool in SEARCHES] == [UNKNOWN, "found x", UNKNOWN, "found x"]
        fastrpc(tmp_path, "token", how[0], token.split("_")[1], *how[1:])
        eventually(lambda: outcome("asked") == UNKNOWN, 15)  # sooner than all tokens are read again
        assert [outcome(tool) for tool in SEARCHES] == [UNKNOWN] * 4
