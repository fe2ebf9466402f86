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
from support.http_server import HttpProcess
from support.http_sessions import Session, Stream, modern
from support.protocol import message
from support.raw_http import Answer, Socket
from support.rewriting import rewrite
from support.waiting import eventually

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
'''
SEARCHES = ("search", "later", "thread", "asked")
UNAUTHORIZED, UNKNOWN, DENIED, TOO_OFTEN, OVER_BUDGET = 401, -32602, 403, 429, 402
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

    def __init__(self, server: HttpProcess, token: str, session: Session | None = None) -> None:
        self.token = token
        self.session = session
        self.socket = Socket(server.port)
        self.id = 0
        self.pid = self.call("who")

    def ask(self, method: str, params: dict[str, Any]) -> Answer:
        self.id += 1
        if self.session is None:
            self.socket.send(modern(method, params, self.id, token=self.token))
        else:
            self.socket.send(self.session.request(message(method, params, self.id), token=self.token))
        return self.socket.answer()

    def call(self, tool: str, **arguments: Any) -> Any:
        """Call a tool; return its text, or the code of the refusal."""
        return said(self.ask("tools/call", {"name": tool, "arguments": arguments}))

    def lists(self) -> Any:
        """Return the names of the tools that are listed, or the code of the refusal."""
        answer = self.ask("tools/list", {})
        return answer.status if answer.status == UNAUTHORIZED else names_in(answer)

    def warm(self) -> None:
        """Ask until the fast paths have learned it all."""
        for _ in range(4):
            self.lists()
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
    return found["error"]["code"] if "error" in found else found["result"]["content"][0]["text"]


class Guarded(HttpProcess):
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

    def ask(self, data: bytes) -> Answer:
        with Socket(self.port) as connection:
            connection.send(data)
            return connection.answer()

    def open(self, data: bytes) -> Stream:
        stream = Stream(self.port)
        stream.send(data)
        return stream

    def one_to_each(self, owner: str) -> list[Way]:
        """Return a connection to each worker."""
        found: dict[str, Way] = {}

        def more() -> bool:
            way = Way(self, self.tokens[owner])
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
        eventually(lambda: server.stderr.count("the policy stays as it was") == 2)
        os.kill(int(later[0].pid), signal.SIGKILL)
        eventually(lambda: "nothing is allowed until it is right" in server.stderr)
        server.use(policy('["who"]'))
        assert each(server.one_to_each("ada"), lambda way: way.call("search")) == [UNKNOWN] * 2
        assert server.stop() == 0
