"""The official TypeScript client, in both of its lines, talks to real servers: every feature and version.

Needs Node and the packages of ``tests/typescript/package.json``; `npm install` is run once into a
cache folder. Without Node the test skips on a user's machine, and fails in CI. One Node process for
each line and version reports its checks one by one; which of them there must be is said here. The
servers write traces, whose lines the recorder holds against the version's schema.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest
from support.features import FEATURES
from support.node_packages import folder_with, put
from support.protocol import SESSION_VERSIONS, STATELESS

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SOURCE = os.path.join(TESTS, "typescript")

PLAIN = '''
import asyncio

from fastrpc import Context, Server

app = Server("plain")
log = []
heard = asyncio.Event()


@app.tool
def echo(text: str) -> str:
    """Say it again."""
    return text


@app.tool
async def steps(count: int, ctx: Context) -> str:
    """A client forgets whom to tell of progress once the answer has come: it has heard of each step first."""
    for step in range(count):
        heard.clear()
        await ctx.progress(step + 1, total=count, message=f"step {step + 1}")
        await heard.wait()
    return "done"


@app.tool
async def go_on() -> None:
    heard.set()


@app.tool
async def endless() -> str:
    log.append("begun")
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        log.append("cancelled")
        raise
    return "never"


@app.tool
def begun() -> str:
    return str(log.count("begun"))


@app.tool
def cancelled() -> str:
    return str(log.count("cancelled"))


@app.tool
def touch() -> None:
    app.resource_updated("docs://guide")


@app.resource("docs://guide")
def guide() -> str:
    return "Begin"
'''

ASKING = """
from fastrpc import Context, Server

app = Server("asking", page_size=2, ttl_ms=7000, cache_scope="public")


@app.prompt
async def greet(ctx: Context) -> str:
    return "Greet " + (await ctx.sample("Whom?")).text


@app.resource("own://name")
async def own(ctx: Context) -> str:
    return (await ctx.sample("Name yourself")).text


@app.tool
def first() -> None:
    app.add_tool(lambda: "new", name="added")


@app.tool
def second() -> str:
    return "2"


@app.tool
def third() -> str:
    return "3"
"""

SERVERS = {
    "features.py": FEATURES,
    "plain.py": PLAIN,
    "asking.py": ASKING,
    "bare.py": "from fastrpc import Server\napp = Server('bare')\n",
}
CHECKS = {
    "the server is described with what a version knows",
    "tools are listed with what a version knows",
    "a result is structured where a version knows it",
    "a tool that fails says so, and one that is not there is refused",
    "content has the types that a version knows",
    "resources and templates are listed",
    "resources are read, and one that is not there is refused",
    "prompts are listed and filled in",
    "arguments are completed",
    "log messages come from the level that was asked for",
    "the client is asked for a sample",
    "the client is asked for its roots",
    "the client is asked to fill in a form where a version knows it",
    "the client is asked to open a page where a version knows it",
    "one call asks for several things",
    "changes are told",
    "what another version has is refused",
    "a ping is answered where a version has one",
    "many calls at once are each answered",
    "progress comes in its order",
    "a call that is given up ends on the server too",
    "a subscription holds until it is ended",
    "a client that cannot be asked is not",
    "a server of a pipe ends with its input",
    "lists come in pages",
    "lists say for how long they hold where a version knows it",
    "prompts and resources ask too",
    "the client fetches a list anew that has changed",
    "what a server has not is neither promised nor served",
    "the client has nothing to complain of",
}
SESSION_CHECKS = {"the level can be raised, and only to one there is"}
STATELESS_CHECKS = {"a request without a level brings no log messages"}


@pytest.fixture(scope="module")
def folder() -> str:
    """A folder with the client script and its packages."""
    folder = folder_with(os.path.join(SOURCE, "package.json"), "typescript")
    put(os.path.join(SOURCE, "client.mjs"), folder)
    return folder


def all_pass(folder: str, line: str, version: str, *arguments: str) -> None:
    """Run the checks of a line of the client in one version; each that is to be made is made, and passes."""
    command = ["node", "client.mjs", line, version, sys.executable, *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    checks = [json.loads(check) for check in done.stdout.splitlines()]
    failed = [f"{check['name']}: {check['detail']}" for check in checks if not check["ok"]]
    assert not failed, "\n".join(failed) + "\n" + done.stderr
    expected = CHECKS | (STATELESS_CHECKS if version == STATELESS else SESSION_CHECKS)
    assert sorted(check["name"] for check in checks) == sorted(expected)


@pytest.mark.long
@pytest.mark.timeout(660)  # the packages may have to be installed
@pytest.mark.parametrize(
    ("line", "version"),
    [
        *(("v1", version) for version in SESSION_VERSIONS),
        *(("v2", version) for version in (*SESSION_VERSIONS, STATELESS)),
    ],
)
def test_the_typescript_client_is_served_every_feature(
    line: str, version: str, folder: str, tmp_path: Any, recorder: Any
) -> None:
    for name, source in SERVERS.items():
        (tmp_path / name).write_text(source)
    all_pass(folder, line, version, str(tmp_path))
    for name in SERVERS:
        before = recorder.lines
        recorder.replay(str(tmp_path / f"{name}.trace"))
        assert recorder.lines > before, f"{name} has written no trace"
