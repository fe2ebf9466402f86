"""Everything the server writes is valid by the schema of the version that is spoken, whatever its tools
do to standard output meanwhile."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest
from stdio import MODERN, MODERN_META, encode, serve
from wire import VERSIONS

jsonschema_rs = pytest.importorskip("jsonschema_rs", reason="needs the extra 'schema'")

SERVER = '''
import asyncio
import ctypes
import os
import sys
import warnings
from typing import Annotated, Any, Literal

from fastrpc import Context, Image, Meta, Server, Text, ToolResult

print("at import")
app = Server("schema", version="1.0", title="Schema", instructions="Be valid.")


def make_noise() -> None:
    print("print", flush=True)
    os.write(1, b"os.write\\n")
    libc = ctypes.CDLL(None)
    libc.printf(b"printf\\n")
    libc.fflush(None)
    warnings.warn("warning")
    os.system("echo child; echo child >&2")


@app.tool(effect="read", title="Text")
def text(what: Annotated[str, "What"] = "x", level: Literal["low", "high"] = "low") -> str:
    """Return a text."""
    make_noise()
    return what


@app.tool(effect="exec")
def record(count: Annotated[int, Meta(ge=1, le=9)]) -> dict[str, int]:
    make_noise()
    return {"count": count}


@app.tool(effect="write", run="inline")
def rows() -> list[int]:
    make_noise()
    return [1, 2]


@app.tool(effect="network")
async def steps(ctx: Context) -> None:
    for step in (1, 2):
        make_noise()
        await ctx.progress(step, total=2, message="on the way")


@app.tool
def mixed() -> Any:
    make_noise()
    return [Text("a"), Image(b"png")]


@app.tool
def full() -> ToolResult:
    return ToolResult("t", structured={"a": 1}, is_error=True, meta={"example.org/k": 1})


@app.tool
def fail() -> str:
    make_noise()
    raise ValueError("too blue")
'''

RESULTS = {
    "initialize": "InitializeResult",
    "tools/list": "ListToolsResult",
    "tools/call": "CallToolResult",
    "server/discover": "DiscoverResult",
    "ping": "EmptyResult",
}


class Schema:
    """One version's schema; `check` validates a value against one of its types."""

    def __init__(self, folder: str, version: str) -> None:
        with open(os.path.join(folder, "mcp-schema", f"{version}.json"), encoding="utf-8") as file:
            self.document = json.load(file)
        self.place = "definitions" if "definitions" in self.document else "$defs"

    def check(self, name: str, value: Any) -> None:
        schema = {"$ref": f"#/{self.place}/{name}", self.place: self.document[self.place]}
        if "$schema" in self.document:
            schema["$schema"] = self.document["$schema"]
        jsonschema_rs.validator_for(schema).validate(value)


def test_the_schema_check_refuses_a_wrong_result(data_folder: str) -> None:
    for version in VERSIONS:
        with pytest.raises(jsonschema_rs.ValidationError):
            Schema(data_folder, version).check("CallToolResult", {"content": "text"})


@pytest.mark.parametrize("version", VERSIONS)
def test_every_line_is_valid_by_the_versions_schema(version: str, data_folder: str) -> None:
    schema = Schema(data_folder, version)
    modern = version == MODERN
    client = {"name": "t", "version": "1"}
    if modern:
        requests: list[tuple[str, dict[str, Any]]] = [("server/discover", {})]
    else:
        requests = [
            ("initialize", {"protocolVersion": version, "capabilities": {}, "clientInfo": client}),
            ("ping", {}),
        ]
    calls = [("text", {"what": "é"}), ("record", {"count": 3}), ("rows", {}), ("steps", {}), ("mixed", {})]
    calls += [
        ("full", {}),
        ("fail", {}),
        ("record", {"count": 99}),
        ("record", {}),
        ("text", {"level": "no"}),
    ]
    requests.append(("tools/list", {}))
    requests += [("tools/call", {"name": name, "arguments": arguments}) for name, arguments in calls]
    requests += [("nonsense", {}), ("tools/call", {"name": "nobody"}), ("tools/list", {"cursor": "?"})]
    with serve(SERVER) as server:
        methods: dict[Any, str] = {}
        for id, (method, params) in enumerate(requests):
            methods[id] = method
            meta = {"progressToken": f"token {id}"} if method == "tools/call" else {}
            if modern:
                meta |= MODERN_META
            params = {**params, "_meta": meta} if meta else params
            server.send(encode({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            if id == 0:
                messages = server.answers(1)
        server.send(b"{broken\n")
        while len([m for m in messages if "method" not in m]) < len(requests) + 1:
            messages += server.answers(1)
        server.close_stdin()
        assert server.rest() == b""
        assert "print" in server.stderr
    kinds = set()
    for message in messages:
        if message.get("id", 0) is None:
            assert message["error"]["code"] == -32700
            continue
        schema.check("JSONRPCMessage", message)
        if "result" in message:
            name = RESULTS[methods[message["id"]]]
            schema.check(name, message["result"])
            kinds.add(name)
        elif "method" in message:
            assert message["method"] == "notifications/progress"
            schema.check("ProgressNotification", {**message})
            kinds.add("progress")
        else:
            kinds.add("error")
    expected = {"ListToolsResult", "CallToolResult", "progress", "error"}
    assert kinds >= expected | ({"DiscoverResult"} if modern else {"InitializeResult", "EmptyResult"})


def test_the_tools_are_described_with_the_fields_that_a_version_knows() -> None:
    fields: dict[str, set[str]] = {}
    for version in VERSIONS:
        with serve(SERVER) as server:
            if version == MODERN:
                answer = server.request("tools/list", {"_meta": MODERN_META})
            else:
                server.initialize(version)
                answer = server.request("tools/list")
            tools = {tool["name"]: tool for tool in answer["result"]["tools"]}
            assert list(tools) == ["text", "record", "rows", "steps", "mixed", "full", "fail"]
            fields[version] = set(tools["text"]) | set(tools["rows"])
    assert fields["2024-11-05"] == {"name", "description", "inputSchema"}
    assert fields["2025-03-26"] == fields["2024-11-05"] | {"annotations"}
    assert fields["2025-06-18"] == fields["2025-03-26"] | {"title", "outputSchema"}
    assert fields[MODERN] == fields["2025-11-25"] == fields["2025-06-18"]
