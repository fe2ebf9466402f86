"""The helper that starts servers over HTTP: it starts what is asked for, says why it cannot, leaves none."""

from __future__ import annotations

import ast
import asyncio
import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.child_processes import gone, is_alive
from support.http_server import HttpProcess, in_process, tool_server
from support.protocol import envelope, message
from support.waiting import eventually

from fastrpc import Server

TESTS = Path(__file__).resolve().parent.parent
HELPER = TESTS / "support" / "http_server.py"
TOOLS = """
from fastrpc import Server
app = Server("own")
"""


def program(source: str) -> tuple[str, ...]:
    return (sys.executable, "-c", source)


def test_a_server_that_ends_before_it_is_ready_raises_with_what_it_said() -> None:
    source = "import sys; print('one'); sys.stderr.write('two'); sys.exit(3)"
    with pytest.raises(AssertionError, match=r"it did not begin: one\ntwo"):
        HttpProcess(command=program(source))


def test_what_a_server_says_is_there_at_any_time_and_never_holds_it_up() -> None:
    source = (
        "import sys; print('x' * 300_000)\nfor _ in range(3000): sys.stderr.write('y' * 100 + chr(10))\n"
        "print('serving at 127.0.0.1:1234', flush=True); import time; time.sleep(60)"
    )
    with HttpProcess(command=program(source)) as server:
        assert (server.place, server.port) == ("127.0.0.1:1234", 1234)
        eventually(lambda: len(server.stderr) == 3000 * 101)  # read beside what says that it is ready
        assert server.stop() == -signal.SIGTERM
        assert server.stdout.startswith("x" * 300_000)


def test_nothing_that_a_server_has_begun_outlives_its_block() -> None:
    source = (
        "import subprocess, time\nchild = subprocess.Popen(['sleep', '60'])\n"
        "print(child.pid, flush=True); print('serving at here', flush=True); time.sleep(60)"
    )
    with HttpProcess(command=program(source)) as server:
        child = int(server.stdout.split()[0])
        assert is_alive(child)
    gone(child)
    assert server.process.returncode == -signal.SIGKILL


def test_a_tool_server_is_given_names_of_modules_and_options() -> None:
    tools = TOOLS + "from fastrpc import quotas\nprint(quotas.ALL_BYTES, given['own'], flush=True)\n"
    command = tool_server(tools, patch={"quotas.ALL_BYTES": 1234}, options={"auth": None}, own="mine")
    with HttpProcess(command=command) as server:
        assert server.stdout.startswith("1234 mine\n")
        assert server.stop() == 0
        assert server.stdout.endswith("ended in order\n")
    with pytest.raises(AssertionError, match=r"auth=None"):
        HttpProcess(command=tool_server(TOOLS))


def test_a_process_may_open_as_many_files_as_is_said() -> None:
    source = "import resource; print('serving at', resource.getrlimit(resource.RLIMIT_NOFILE)[0], flush=True)"
    with HttpProcess(command=program(source + "; import time; time.sleep(60)"), files=77) as server:
        assert server.place == "77"


def test_a_server_in_process_is_asked_without_a_socket_and_ends_with_its_block() -> None:
    app = Server("own")

    async def conversation() -> None:
        async with in_process(app, auth=None) as server:
            body = message("tools/list", {"_meta": envelope()}, 1)
            headers = {"mcp_protocol_version": "2026-07-28", "mcp_method": "tools/list"}
            accept = "application/json, text/event-stream"
            status, answer, _ = await server.ask("POST", "/mcp", body, accept=accept, **headers)
            assert (status, answer["result"]["tools"]) == (200, [])
        assert not app.runtime.dispatchers

    asyncio.run(asyncio.wait_for(conversation(), 30))


# --- and it is the only one -------------------------------------------------------------------------------


def other_ways(source: str) -> Iterator[str]:
    """What else in a source starts a server over HTTP."""
    if not re.search(r"HttpServer|Popen", source):
        return  # without parsing it, which takes long
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name) and node.id == "HttpServer":
            yield f"line {node.lineno}: HttpServer"
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "Popen":
            words = " ".join(ast.unparse(argument) for argument in node.args)
            if "--http" in words:
                yield f"line {node.lineno}: {words}"
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "HttpServer(" in node.value:
            yield f"line {node.lineno}: a program with HttpServer"


def test_another_way_is_found_where_one_is_planted() -> None:
    assert list(other_ways("subprocess.Popen([*FASTRPC, 'serve', '--http', '127.0.0.1:0'])"))
    assert list(other_ways("PROGRAM = '''\nawait HttpServer(app, sockets).serve()\n'''"))
    assert not list(other_ways("HttpProcess('serve', '--http', '127.0.0.1:0')"))


def test_no_test_starts_a_server_over_http_in_another_way() -> None:
    found = []
    for path in sorted(TESTS.rglob("*.py")):
        if "node_modules" not in path.parts and path not in (HELPER, Path(__file__).resolve()):
            ways = other_ways(path.read_text(encoding="utf-8"))
            found += [f"{os.path.relpath(path, TESTS)}: {way}" for way in ways]
    assert not found, "\n".join(found)
