"""The recorder sees what a version's schema does not allow, and nothing else; a run without it does not
count."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import time
from typing import Any

import pytest
from support.protocol import SESSION_VERSIONS, STATELESS
from support.schema_recorder import Recorder
from support.stdio import STATELESS_META, encode, serve

from fastrpc import Server
from fastrpc.testing import Client

OLDEST, SECOND, THIRD, FOURTH = SESSION_VERSIONS
SERVER_INFO = {"name": "s", "version": "1"}
COMPLETE = {"resultType": "complete"}
TOOL = {"name": "a", "inputSchema": {"type": "object"}}


@pytest.fixture
def own(data_folder: str) -> Recorder:
    return Recorder(os.path.join(data_folder, "mcp-schema"))


def judged(
    own: Recorder, version: str, answer: dict[str, Any], method: str = "ping", id: Any = 1
) -> list[str]:
    """Return what is found wrong in one answer, or in what the server says by itself."""
    conversation = own.conversation("test")
    if version != STATELESS:
        conversation.sent(encode({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}}))
        agreed = {"protocolVersion": version, "capabilities": {}, "serverInfo": SERVER_INFO}
        conversation.received(encode({"jsonrpc": "2.0", "id": 0, "result": agreed}))
    assert own.take_violations() == []
    params = {"_meta": {**STATELESS_META, "progressToken": "t"}} if version == STATELESS else {}
    conversation.sent(encode({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
    conversation.received(encode({"jsonrpc": "2.0", **answer}))
    return own.take_violations()


@pytest.mark.parametrize(
    ("version", "method", "result"),
    [
        (OLDEST, "tools/call", {"content": [{"type": "text", "text": "a"}]}),
        (SECOND, "tools/call", {"content": [{"type": "audio", "data": "AA==", "mimeType": "audio/wav"}]}),
        (THIRD, "tools/call", {"content": [], "structuredContent": {}}),
        (FOURTH, "ping", {}),
        (STATELESS, "tools/call", {"content": [], "structuredContent": [1], **COMPLETE}),
        (STATELESS, "tools/call", {"resultType": "input_required", "requestState": "s"}),
        (STATELESS, "tools/list", {"tools": [], "ttlMs": 1, "cacheScope": "private", **COMPLETE}),
    ],
)
def test_what_a_version_allows_passes(own: Recorder, version: str, method: str, result: Any) -> None:
    assert judged(own, version, {"id": 1, "result": result}, method) == []


@pytest.mark.parametrize(
    ("version", "method", "result", "complaint"),
    [
        (OLDEST, "tools/call", {"isError": True}, "content"),
        (OLDEST, "tools/call", {"content": [{"type": "audio", "data": "", "mimeType": "a/b"}]}, "content/0"),
        (OLDEST, "tools/call", {"content": [], "structuredContent": {}}, "CallToolResult.structuredContent"),
        (OLDEST, "tools/list", {"tools": [{**TOOL, "title": "A"}]}, "Tool.title"),
        (SECOND, "tools/list", {"tools": [{"name": "a"}]}, "inputSchema"),
        (THIRD, "tools/call", {"content": [], "structuredContent": [1]}, "structuredContent"),
        (FOURTH, "ping", [], "object"),
        (FOURTH, "tools/list", {"tools": [], "ttlMs": 1}, "ListToolsResult.ttlMs"),
        (STATELESS, "tools/list", {"tools": [], "ttlMs": 1, **COMPLETE}, "cacheScope"),
        (STATELESS, "tools/call", {"content": []}, "resultType"),
        (STATELESS, "prompts/list", {"resultType": "input_required", "requestState": "s"}, "prompts"),
    ],
)  # fmt: skip
def test_what_a_version_does_not_allow_is_seen(
    own: Recorder, version: str, method: str, result: Any, complaint: str
) -> None:
    (violation,) = judged(own, version, {"id": 1, "result": result}, method)
    assert complaint in violation


@pytest.mark.usefixtures("every_schema")
def test_errors_are_judged(own: Recorder) -> None:
    fine = {"code": -32601, "message": "no"}
    for version in (*SESSION_VERSIONS, STATELESS):
        assert judged(own, version, {"id": 1, "error": fine}) == []
        assert judged(own, version, {"id": None, "error": fine}) == []
        assert judged(own, version, {"id": 1, "error": {"code": "x", "message": "no"}})
        assert judged(own, version, {"id": 1.5, "error": fine})
        assert (
            judged(own, version, {"id": 1, "error": {"code": -32002, "message": "no"}}) == []
            or version == STATELESS
        )
    unsupported = {"code": -32022, "message": "no", "data": {"supported": [], "requested": "x"}}
    assert judged(own, STATELESS, {"id": 1, "error": unsupported}) == []
    assert judged(own, STATELESS, {"id": 1, "error": {**unsupported, "data": {}}})
    assert "must not" in judged(own, STATELESS, {"id": 1, "error": {"code": -32002, "message": "no"}})[0]


@pytest.mark.usefixtures("every_schema")
def test_notifications_and_requests_are_judged(own: Recorder) -> None:
    report = {"progressToken": "t", "progress": 1, "message": "m"}
    say = {"method": "notifications/progress", "params": report}
    assert judged(own, FOURTH, say) == []
    assert judged(own, STATELESS, say) == []
    assert "message" in judged(own, OLDEST, say)[0]
    assert (
        "progress"
        in judged(own, FOURTH, {"method": "notifications/progress", "params": {"progressToken": 1}})[0]
    )
    assert "ServerNotification" in judged(own, FOURTH, {"method": "notifications/nonsense"})[0]
    assert judged(own, FOURTH, {"id": 7, "method": "roots/list"}) == []
    assert "ServerRequest" in judged(own, STATELESS, {"id": 7, "method": "roots/list"})[0]
    assert "ServerRequest" in judged(own, SECOND, {"id": 7, "method": "elicitation/create", "params": {}})[0]


def test_lines_are_judged_wherever_they_are_cut(own: Recorder) -> None:
    conversation = own.conversation("test")
    for byte in b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n':
        conversation.sent(bytes([byte]))
    for byte in b'{"jsonrpc":"2.0","id":1,"result":{}}\n{"jsonrpc":"2.0","id":1}\nfree text\n':
        conversation.received(bytes([byte]))
    assert len(own.take_violations()) == 2
    assert own.lines == 3


def test_a_batch_is_judged_element_by_element(own: Recorder) -> None:
    conversation = own.conversation("test")
    conversation.received(b'[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":2,"result":1}]\n[]\n')
    assert len(own.take_violations()) == 2


@pytest.mark.alone
def test_a_line_is_judged_in_little_time(own: Recorder) -> None:
    """Or no one would leave the recorder on. The bar is wide: the machine is shared."""
    conversation = own.conversation("test")
    sent = encode({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"_meta": STATELESS_META}})
    result = {
        "content": [{"type": "text", "text": "a" * 100}],
        "structuredContent": {"a": [1, 2]},
        **COMPLETE,
    }
    answer = encode({"jsonrpc": "2.0", "id": 1, "result": result})
    began = time.perf_counter()
    for _ in range(1000):
        conversation.sent(sent)
        conversation.received(answer)
    assert time.perf_counter() - began < 2.0
    assert own.take_violations() == []


# --- it is behind the helpers of every test ---


def test_it_sees_what_a_real_process_sends(recorder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    before = recorder.lines
    with serve("from fastrpc import Server\napp = Server('t')\n") as server:
        server.initialize(OLDEST)
        server.request("tools/list")
    assert recorder.lines == before + 2


def test_it_sees_what_a_server_in_memory_sends(recorder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A result that lacks what the schema requires is a violation of the test that caused it."""
    from fastrpc.methods import METHODS, Method

    monkeypatch.setitem(METHODS, "tools/list", Method((FOURTH,), lambda dispatcher, request: b'{"tool":[]}'))

    async def run() -> None:
        async with Client(Server("t"), version=FOURTH) as client:
            await client.request("tools/list")

    asyncio.run(asyncio.wait_for(run(), 30))
    (violation,) = recorder.take_violations()
    assert "tools" in violation
    assert json.dumps({"tool": []}).replace(" ", "") in violation


# --- where it cannot run, nothing passes ---

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ONE_TEST = "unit/test_lifespan.py"


def run_of_a_test(
    folder: Any, *options: str, tests: str = TESTS, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run one file of this suite in a separate pytest, whose cache is in a folder."""
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-o", f"cache_dir={folder}", *options, ONE_TEST],
        cwd=tests,
        env={**os.environ, "CI": "", **environment},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )


def test_a_run_with_a_named_folder_without_the_schemas_fails_before_its_first_test(tmp_path: Any) -> None:
    done = run_of_a_test(tmp_path, FASTRPC_DATA_DIR=str(tmp_path))
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "the recorder cannot run: no mcp-schema in" in done.stderr
    assert "FASTRPC_DATA_DIR" in done.stderr
    assert "passed" not in done.stdout


@pytest.mark.usefixtures("every_schema")
def test_a_run_without_a_versions_schema_fails(tmp_path: Any, data_folder: str) -> None:
    shutil.copytree(os.path.join(data_folder, "mcp-schema"), tmp_path / "mcp-schema")
    (tmp_path / "mcp-schema" / f"{THIRD}.json").unlink()
    done = run_of_a_test(tmp_path, FASTRPC_DATA_DIR=str(tmp_path))
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert f"{THIRD}.json" in done.stderr


def test_a_run_without_the_library_fails(tmp_path: Any, data_folder: str) -> None:
    (tmp_path / "jsonschema_rs.py").write_text("raise ImportError('taken away by a test')")
    done = run_of_a_test(tmp_path, PYTHONPATH=str(tmp_path))
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "the recorder cannot run: taken away by a test" in done.stderr


@pytest.fixture
def clone(tmp_path: Any) -> str:
    """What a run of that file reads, in a folder with nothing beside it."""
    tests = tmp_path / "clone" / "tests"
    shutil.copytree(os.path.join(TESTS, "support"), tests / "support")
    (tests / "unit").mkdir()
    for name in ("conftest.py", ONE_TEST):
        shutil.copy(os.path.join(TESTS, name), tests / name)
    return str(tests)


def test_a_clone_with_no_data_beside_it_runs_unrecorded_and_says_so(tmp_path: Any, clone: str) -> None:
    done = run_of_a_test(tmp_path, tests=clone, FASTRPC_DATA_DIR="")
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
    assert "NOT held against their schemas: there is no " in done.stdout


def test_in_ci_such_a_clone_fails(tmp_path: Any, clone: str) -> None:
    done = run_of_a_test(tmp_path, tests=clone, FASTRPC_DATA_DIR="", CI="1")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "the recorder cannot run" in done.stderr


@pytest.mark.parametrize("spread", [(), ("-n", "2")], ids=["alone", "spread"])
def test_a_run_says_how_many_lines_were_judged(
    tmp_path: Any, data_folder: str, spread: tuple[str, ...]
) -> None:
    done = run_of_a_test(tmp_path, *spread)
    assert done.returncode == 0
    assert re.search(r"^[1-9]\d* lines of servers were held against their schemas", done.stdout, re.MULTILINE)
