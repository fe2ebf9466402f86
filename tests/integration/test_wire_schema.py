"""Everything the server writes is valid by the schema of the version that is spoken, whatever its tools
do to standard output meanwhile; and every method and message of a version is there, of no other.

The recorder behind `serve` judges each line; here it is seen to that all kinds of lines come.
"""

from __future__ import annotations

import json
import os
from typing import Any

import jsonschema_rs
import pytest
from support import published
from support.features import FEATURES
from support.protocol import SESSION_VERSIONS, STATELESS
from support.schema_recorder import Schema
from support.stdio import STATELESS_META, Process, encode, serve
from support.wire_conversation import VERSIONS

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


def schemas_in(data_folder: str) -> str:
    return os.path.join(data_folder, "mcp-schema")


def test_the_schema_check_refuses_a_wrong_result(data_folder: str) -> None:
    for version in published.versions():
        with pytest.raises(jsonschema_rs.ValidationError):
            Schema(schemas_in(data_folder), version).check("CallToolResult", {"content": "text"})


@pytest.mark.parametrize("version", VERSIONS)
def test_every_line_is_valid_by_the_versions_schema(version: str, data_folder: str) -> None:
    schema = Schema(schemas_in(data_folder), version)
    stateless_request = version == STATELESS
    client = {"name": "t", "version": "1"}
    if stateless_request:
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
            if stateless_request:
                meta |= STATELESS_META
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
    assert kinds >= expected | (
        {"DiscoverResult"} if stateless_request else {"InitializeResult", "EmptyResult"}
    )


def test_the_tools_are_described_with_the_fields_that_a_version_knows() -> None:
    fields: dict[str, set[str]] = {}
    for version in VERSIONS:
        with serve(SERVER) as server:
            if version == STATELESS:
                answer = server.request("tools/list", {"_meta": STATELESS_META})
            else:
                server.initialize(version)
                answer = server.request("tools/list")
            tools = {tool["name"]: tool for tool in answer["result"]["tools"]}
            assert list(tools) == ["text", "record", "rows", "steps", "mixed", "full", "fail"]
            fields[version] = set(tools["text"]) | set(tools["rows"])
    assert fields["2024-11-05"] == {"name", "description", "inputSchema"}
    assert fields["2025-03-26"] == fields["2024-11-05"] | {"annotations"}
    assert fields["2025-06-18"] == fields["2025-03-26"] | {"title", "outputSchema"}
    assert fields[STATELESS] == fields["2025-11-25"] == fields["2025-06-18"]


# --- every method and every message of a version, and no other ---

CAPABILITIES = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {"listChanged": True}}
GUIDE = {"uri": "docs://guide"}
REFERENCE = {"type": "ref/prompt", "name": "review"}
PARAMS: dict[str, dict[str, Any]] = {
    "initialize": {
        "protocolVersion": SESSION_VERSIONS[-1],
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    },
    "tools/call": {"name": "point", "arguments": {"x": 1}},
    "resources/read": GUIDE,
    "resources/subscribe": GUIDE,
    "resources/unsubscribe": GUIDE,
    "prompts/get": {"name": "review", "arguments": {"code": "x"}},
    "completion/complete": {"ref": REFERENCE, "argument": {"name": "language", "value": "p"}},
    "logging/setLevel": {"level": "debug"},
    "subscriptions/listen": {"notifications": {"toolsListChanged": True}},
}
ANSWERS: dict[str, dict[str, Any]] = {
    "elicitation/create": {"action": "accept", "content": {"x": 7}},
    "sampling/createMessage": {"role": "assistant", "content": {"type": "text", "text": "7"}, "model": "m"},
    "roots/list": {"roots": [{"uri": "file:///work"}]},
}
NOT_OFFERED = {"tasks/get", "tasks/result", "tasks/cancel", "tasks/list"}  # experimental, not advertised
NOT_SENT = {"notifications/tasks/status", "notifications/elicitation/complete", "ping", *NOT_OFFERED}


class Peer:
    """A client that answers what it is asked, and notes the methods of all that comes by itself."""

    def __init__(self, server: Process, version: str) -> None:
        self.server = server
        self.version = version
        self.heard: set[str] = set()
        self.count = 0
        if version != STATELESS:
            server.initialize(version, **CAPABILITIES)

    def params(self, params: dict[str, Any]) -> dict[str, Any]:
        meta: dict[str, Any] = {"progressToken": f"t{self.count}"}
        if self.version == STATELESS:
            meta |= STATELESS_META
            meta["io.modelcontextprotocol/clientCapabilities"] = {**CAPABILITIES, "roots": {}}
            meta["io.modelcontextprotocol/logLevel"] = "debug"
        return {**params, "_meta": meta}

    def begin(self, method: str, params: dict[str, Any]) -> str:
        self.count += 1
        id: str = self.server.ask(method, self.params(params), f"id {self.count}")
        return id

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Return the last answer to a request; what it asks for on its way is answered."""
        answer = self.until(self.begin(method, params))
        result = answer.get("result", {})
        if result.get("resultType") != "input_required":
            return answer
        self.heard |= {question["method"] for question in result["inputRequests"].values()}
        answers = {key: ANSWERS[question["method"]] for key, question in result["inputRequests"].items()}
        again = {**params, "inputResponses": answers, "requestState": result["requestState"]}
        return self.request(method, again)

    def until(self, id: str) -> dict[str, Any]:
        while True:
            message: dict[str, Any] = self.server.answer()
            if "method" not in message and message["id"] == id:
                return message
            self.note(message)
            if "method" in message and "id" in message:
                answer = {"jsonrpc": "2.0", "id": message["id"], "result": ANSWERS[message["method"]]}
                self.server.send_message(answer)

    def note(self, message: dict[str, Any]) -> None:
        if "method" in message:
            self.heard.add(message["method"])

    def hear(self, *methods: str) -> None:
        """Wait until messages of these methods have come."""
        while not self.heard.issuperset(methods):
            self.note(self.server.answer())


def methods_of(data_folder: str) -> dict[str, dict[str, Any]]:
    with open(os.path.join(schemas_in(data_folder), "methods.json"), encoding="utf-8") as file:
        methods: dict[str, dict[str, Any]] = json.load(file)
    return methods


@pytest.mark.parametrize("version", VERSIONS)
def test_a_version_has_its_methods_and_no_other(version: str, data_folder: str) -> None:
    methods = methods_of(data_folder)
    known = set(methods[version]["ClientRequest"]) - NOT_OFFERED
    everything = {method for table in methods.values() for method in table["ClientRequest"]}
    with serve(FEATURES) as server:
        peer = Peer(server, version)
        for method in sorted(everything - {"subscriptions/listen", "server/discover"}):
            answer = peer.request(method, PARAMS.get(method, {}))
            if method in known:
                assert "result" in answer, (method, answer)
            else:
                assert answer["error"]["code"] == -32601, (method, answer)
        if version == STATELESS:
            assert "result" in peer.request("server/discover", {})
        else:  # these two are of the other era, and so is a request that has no envelope
            assert (
                peer.request("subscriptions/listen", PARAMS["subscriptions/listen"])["error"]["code"]
                == -32601
            )
            assert peer.request("server/discover", {})["error"]["code"] == -32602


@pytest.mark.parametrize("version", VERSIONS)
def test_a_server_sends_every_message_of_a_version_and_no_other(version: str, data_folder: str) -> None:
    known = methods_of(data_folder)[version]
    expected = {*known["ServerNotification"], *known["ServerRequest"]} - NOT_SENT
    changes = {
        "notifications/tools/list_changed",
        "notifications/prompts/list_changed",
        "notifications/resources/list_changed",
        "notifications/resources/updated",
    }
    with serve(FEATURES) as server:
        peer = Peer(server, version)
        stream = ""
        if version == STATELESS:
            wanted = {f"{kind}ListChanged": True for kind in ("tools", "prompts", "resources")}
            wanted["resourceSubscriptions"] = ["docs://guide"]
            stream = peer.begin("subscriptions/listen", {"notifications": wanted})
            peer.hear("notifications/subscriptions/acknowledged")
            expected |= set(ANSWERS)  # asked within results
            expected -= {"notifications/cancelled"}  # a stream that ends well ends with its result
        else:
            assert "result" in peer.request("resources/subscribe", GUIDE)
            assert "result" in peer.request("logging/setLevel", {"level": "debug"})
        for tool in ("steps", "noisy", "mixed", "who", "visit", "think", "where", "change"):
            answer = peer.request(
                "tools/call", {"name": tool, "arguments": {"count": 2} if tool == "steps" else {}}
            )
            assert "result" in answer, answer
        peer.hear(*changes)
        for method in ("tools/list", "resources/list", "resources/templates/list", "prompts/list"):
            assert "result" in peer.request(method, {})
        if version != STATELESS:
            ask_and_withdraw(peer)
        server.close_stdin()
        rest = [json.loads(line) for line in server.rest().splitlines()]
        assert [message["id"] for message in rest] == ([stream] if version == STATELESS else [])
    assert peer.heard == expected


def ask_and_withdraw(peer: Peer) -> None:
    """Cancel a call while it waits for an answer: its question is withdrawn."""
    call = peer.begin("tools/call", {"name": "think", "arguments": {}})
    question = peer.server.answer()
    assert question["method"] == "sampling/createMessage"
    peer.server.notify("notifications/cancelled", {"requestId": call})
    withdrawn = peer.server.answer()
    assert (withdrawn["method"], withdrawn["params"]["requestId"]) == (
        "notifications/cancelled",
        question["id"],
    )
    peer.note(withdrawn)
