"""WebSearch in the real server: over the wire, cancelled, and at the server's end, with engines that hang."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
from support.search_engines import StandIn, search_engines
from support.stdio import serve
from support.waiting import eventually


@pytest.fixture
def engines() -> Iterator[StandIn]:
    with search_engines() as server:
        yield server


def environment(tmp_path: Any, engines: StandIn | None, **more: str) -> dict[str, str | None]:
    return {
        "FASTRPC_STATE_DIR": str(tmp_path / "state"),
        "HOME": str(tmp_path),
        "FASTRPC_SEARCH_ADDRESS": engines.address if engines else None,
        **more,
    }


def asked(engines: StandIn, count: int) -> None:
    eventually(lambda: len(engines.requests) >= count)


PATIENT = """
import sys
import fastrpc.__main__
from fastrpc.tools.agent._search import _asking
_asking.EARLY_SECONDS = _asking.ENGINE_SECONDS = _asking.SEARCH_SECONDS = 60.0
sys.exit(fastrpc.__main__.main())
"""
"""The command, whose engines may take as long to answer as a busy machine does."""


SEARCH = {"name": "WebSearch", "arguments": {"query": "كتب"}}


def test_a_search_over_the_wire(tmp_path: Any, engines: StandIn) -> None:
    """WebSearch: `query` is required; name, description and annotations are the published ones."""
    command = [sys.executable, "-c", PATIENT, "serve"]
    with serve(command=command, environment=environment(tmp_path, engines), folder=str(tmp_path)) as server:
        server.initialize()
        (tool,) = [
            tool for tool in server.request("tools/list")["result"]["tools"] if tool["name"] == "WebSearch"
        ]
        assert tool["description"] == "Search the web using 11 engines concurrently"
        assert tool["inputSchema"]["properties"] == {
            "query": {"type": "string", "description": "The search query"}
        }
        assert tool["inputSchema"]["required"] == ["query"]
        assert tool["annotations"]["readOnlyHint"] is True
        assert tool["annotations"]["openWorldHint"] is True
        result = server.call("WebSearch", query="كتب")
        assert result["isError"] is False
        assert "دليلُ المبتدئين 👩‍💻 می‌خواهم" in result["content"][0]["text"]
        assert result["_meta"]["fastrpc/facts"]["engines"]["bing"]["outcome"] == "ok"
        assert "structuredContent" not in result
        empty = server.call("WebSearch", query=" ")
        assert empty["isError"] is True
        assert empty["content"][0]["text"].startswith("query: expected the words")


def test_a_cancelled_search_ends_at_once_and_the_next_one_works(tmp_path: Any, engines: StandIn) -> None:
    """WebSearch: a cancelled search ends at once."""
    engines.modes = dict.fromkeys(("bing", "google", "qwant"), "hang")
    chosen = {"FASTRPC_SEARCH_ENGINES": "bing,google,qwant"}
    command = [sys.executable, "-c", PATIENT, "serve"]
    with serve(
        command=command, environment=environment(tmp_path, engines, **chosen), folder=str(tmp_path)
    ) as server:
        server.initialize()
        request = server.ask("tools/call", SEARCH)
        asked(engines, 3)
        server.notify("notifications/cancelled", {"requestId": request})
        engines.modes.clear()
        result = server.call("WebSearch", query="كتب")
        assert result["content"][0]["text"].endswith("[engines: bing ok 3, google ok 2, qwant ok 2]")


@pytest.mark.alone
@pytest.mark.parametrize("mode", ["hang", "stall"])
@pytest.mark.parametrize("end", ["end of input", "SIGTERM"])
def test_engines_that_hang_do_not_hold_the_end_of_the_server(
    tmp_path: Any, engines: StandIn, end: str, mode: str
) -> None:
    """WebSearch: engines that hang do not hold back the end of the server."""
    engines.modes = {"bing": mode, "google": mode, "mojeek": mode}
    with serve(environment=environment(tmp_path, engines), folder=str(tmp_path)) as server:
        server.initialize()
        server.ask("tools/call", SEARCH)
        asked(engines, 12)
        began = time.monotonic()
        if end == "end of input":
            server.close_stdin()
        else:
            server.signal(signal.SIGTERM)
        assert server.wait() in (0, -signal.SIGTERM)
        assert time.monotonic() - began < 4.5  # the engines have 5 s
        assert "Traceback" not in server.stderr


@pytest.mark.parametrize("loop", ["uvloop", "asyncio"])
def test_a_silent_name_server_does_not_hold_the_end_of_the_server(tmp_path: Any, loop: str) -> None:
    """Names are never looked up here: a module that Python imports at its start makes that hang.

    WebSearch: a silent name server does not hold back the end of the server.
    """
    (tmp_path / "sitecustomize.py").write_text(
        "import socket, sys, time\n"
        + ("sys.modules['uvloop'] = None\n" if loop == "asyncio" else "")
        + "def hang(*arguments, **options):\n"
        f"    open({str(tmp_path / 'asked')!r}, 'a').write('x')\n"
        "    time.sleep(60)\n"
        "socket.getaddrinfo = hang\n"
    )
    path = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH"))))
    chosen = {"PYTHONPATH": path, "FASTRPC_SEARCH_ENGINES": "bing,mojeek"}
    proxies = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), "")
    with serve(environment=environment(tmp_path, None, **chosen, **proxies), folder=str(tmp_path)) as server:
        server.initialize()
        server.ask("tools/call", SEARCH)
        eventually(lambda: (tmp_path / "asked").exists() and len((tmp_path / "asked").read_text()) >= 2)
        server.close_stdin()
        assert server.wait() == 0


def test_a_repository_cannot_send_searches_elsewhere(tmp_path: Any, engines: StandIn) -> None:
    """WebSearch: a cloned repository cannot send searches elsewhere."""
    folder = tmp_path / "repository"
    (folder / ".scorpiox").mkdir(parents=True)
    (folder / ".scorpiox" / "scorpiox-env.txt").write_text(
        f"FASTRPC_SEARCH_ADDRESS={engines.address}\nFASTRPC_SEARXNG_URL={engines.address}\n"
        "FASTRPC_SEARCH_ENGINES=searxng\n"
    )
    with serve(environment=environment(tmp_path, None), folder=str(folder)) as server:
        server.initialize()
        result = server.call("WebSearch", query="x")
        assert result["content"][0]["text"].endswith("[engines: searxng not set]")
        assert "FASTRPC_SEARCH_ADDRESS" in server.stderr
    assert engines.requests == []


def test_search_check_is_a_command_with_an_exit_code(tmp_path: Any, engines: StandIn) -> None:
    """WebSearch: `fastrpc search-check` exits with 1 when no engine works."""
    for modes, code in (({}, 0), (dict.fromkeys(("bing", "mojeek"), "failing"), 1)):
        engines.modes = modes
        run = subprocess.run(
            [sys.executable, "-m", "fastrpc", "search-check", "كتب"],
            env=os.environ
            | {"FASTRPC_SEARCH_ADDRESS": engines.address, "FASTRPC_SEARCH_ENGINES": "bing,mojeek"}
            | {"HOME": str(tmp_path), "FASTRPC_STATE_DIR": str(tmp_path / "state")},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert run.returncode == code, run.stderr
        assert [line.split()[0] for line in run.stdout.splitlines()[1:4]] == ["engine", "bing", "mojeek"]
