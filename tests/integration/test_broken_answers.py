"""Answers that cannot be read but for their ids: each fails its call at once, for a client, behind a proxy
and behind a gateway, and the next call is served. Likewise what a client answers to a question of a server.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest
from support.stdio import serve

from fastrpc import Client, Server
from fastrpc.errors import InvalidAnswer
from fastrpc.gateway import gateway_of
from fastrpc.protocol.versions import LATEST_SESSION_VERSION, STATELESS

SECONDS = 60.0

ANSWERS = {
    "half_a_pair": r'{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"\ud83d"}]}}',
    "no_number": '{"jsonrpc":"2.0","id":ID,"result":{"content":[],"structuredContent":{"a":NaN}}}',
    "digits": '{"jsonrpc":"2.0","result":{"content":[],"a":' + "1" * 1_000_000 + '},"id":ID}',
    "deep": '{"jsonrpc":"2.0","id":ID,"result":{"content":' + "[" * 1000 + "]" * 1000 + "}}",
    "no_utf8": '{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"\xff"}]}}',
    "no_version": '{"id":ID,"result":{"content":[{"type":"text","text":"a"}]}}',
    "neither": '{"jsonrpc":"2.0","id":ID}',
    "both": '{"jsonrpc":"2.0","id":ID,"result":{"content":[]},"error":{"code":1,"message":"a"}}',
    "cut_off": '{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"te',
    "no_result": '{"jsonrpc":"2.0","id":ID,"result":null}',
    "no_resource": '{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"resource","resource":7}]}}',
    "no_text": '{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"resource","resource":{"uri":"a"}}]}}',
    "no_link": '{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"resource_link","name":"a"}]}}',
    "no_data": '{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"audio","mimeType":"audio/wav"}]}}',
    "notes": ('{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"a","annotations":7}]}}'),
    "meta": '{"jsonrpc":"2.0","id":ID,"result":{"content":[],"_meta":"a"}}',
}
OTHER_IDS = {"text_id": '"ID"', "real_id": "ID.0", "exponent_id": "IDe0"}
CARRIED = ("no_resource", "no_text", "no_link", "no_data", "notes", "meta")
SERVER = """
import json, sys
ANSWERS, OTHER_IDS = json.load(open(sys.argv[1]))
def say(text):
    sys.stdout.buffer.write(text.encode("latin-1") + b"\\n")
    sys.stdout.buffer.flush()
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    id, method, result = json.dumps(message["id"]), message["method"], {}
    if method == "initialize":
        info = {"name": "s", "version": "1"}
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
    elif method == "tools/list":
        names = [*ANSWERS, "good", *OTHER_IDS]
        result = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names]}
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": "good"}]}
        name = message["params"]["name"]
        if name in ANSWERS:
            say(ANSWERS[name].replace("ID", id))
            continue
        if name in OTHER_IDS:
            id = OTHER_IDS[name].replace("ID", id)
    elif method != "ping":
        say('{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}' % id)
        continue
    say('{"jsonrpc":"2.0","id":%s,"result":%s}' % (id, json.dumps(result)))
"""


@pytest.fixture
def program(tmp_path: Path) -> list[str]:
    """A command that starts the server."""
    (tmp_path / "server.py").write_text(SERVER)
    (tmp_path / "answers.json").write_text(json.dumps((ANSWERS, OTHER_IDS)))
    return [sys.executable, str(tmp_path / "server.py"), str(tmp_path / "answers.json")]


def test_a_broken_answer_fails_its_call_at_once(program: list[str]) -> None:
    async def run() -> None:
        async with Client(program, timeout_seconds=0) as client:
            for name in ANSWERS:
                with pytest.raises(InvalidAnswer, match="tools/call: "):
                    await client.call_tool(name)
                assert (await client.call_tool("good")).text == "good"
            assert (await client.call_tool("text_id")).text == "good"

    asyncio.run(asyncio.wait_for(run(), SECONDS))
    with Client.sync(program, timeout_seconds=0) as client:
        for name in ANSWERS:
            with pytest.raises(InvalidAnswer, match="tools/call: "):
                client.call_tool(name)
            assert client.call_tool("good").text == "good"
        for name in OTHER_IDS:
            assert client.call_tool(name).text == "good"


@pytest.mark.parametrize("version", [LATEST_SESSION_VERSION, STATELESS])
@pytest.mark.parametrize("kind", ["proxy", "gateway"])
def test_a_broken_answer_behind_a_proxy_or_a_gateway_is_a_failure_of_the_tool(
    kind: str, version: str, program: list[str]
) -> None:
    prefix = "" if kind == "proxy" else "s_"
    if kind == "proxy":
        app = Server.proxy(program)
    else:
        app = gateway_of({"s": {"command": program[0], "args": program[1:]}})[0]

    async def run() -> None:
        async with Client(app, version=version, timeout_seconds=0) as client:
            await client.list_tools()
            for name in ANSWERS:
                try:
                    failed = await client.call_tool(prefix + name)
                except InvalidAnswer:  # bytes that are only carried on are the client's to look at
                    assert name in CARRIED
                else:
                    assert failed.is_error, (name, failed)
                    assert "Error: " not in failed.text  # words, and no exception of Python's
                assert (await client.call_tool(f"{prefix}good")).text == "good"
            for name in OTHER_IDS:
                assert (await client.call_tool(prefix + name)).text == "good"

    asyncio.run(asyncio.wait_for(run(), SECONDS))


ASKING = """
from fastrpc import Context, Server

app = Server("asks")

@app.tool
async def ask(ctx: Context) -> str:
    return str(await ctx.elicit("Sure?"))
"""
TO_A_QUESTION = (
    r'{"jsonrpc":"2.0","id":ID,"result":{"action":"accept","content":{"a":"\ud83d"}}}',
    '{"id":ID,"result":{"action":"accept"}}',
)


@pytest.mark.parametrize("answer", TO_A_QUESTION)
def test_a_broken_answer_to_a_question_fails_the_call_that_asked(answer: str) -> None:
    with serve(ASKING) as process:
        process.initialize(elicitation={})
        process.ask("tools/call", {"name": "ask", "arguments": {}}, "asks")
        question = process.answer()
        process.send(answer.replace("ID", str(question["id"])).encode() + b"\n")
        refusal, result = process.answer(), process.answer()
        assert refusal["id"] is None
        assert refusal["error"]["code"] in (-32700, -32600)
        assert result["id"] == "asks"
        text = result["result"]["content"][0]["text"]
        assert text.startswith("the client's answer to elicitation/create cannot be read: ")


@pytest.mark.parametrize("id", OTHER_IDS.values())
def test_an_answer_to_a_question_is_used_however_the_client_writes_its_id(id: str) -> None:
    with serve(ASKING) as process:
        process.initialize(elicitation={})
        process.ask("tools/call", {"name": "ask", "arguments": {}}, "asks")
        question = process.answer()
        answer = '{"jsonrpc":"2.0","id":ID,"result":{"action":"decline"}}'.replace("ID", id)
        process.send(answer.replace("ID", str(question["id"])).encode() + b"\n")
        result = process.answer()
        assert result["id"] == "asks"
        assert "decline" in result["result"]["content"][0]["text"]


def test_a_request_with_half_a_pair_is_refused_under_its_id() -> None:
    with serve(ASKING) as process:
        process.initialize()
        process.send(rb'{"jsonrpc":"2.0","method":"ping","params":{"a":"\ud83d"},"id":"me"}' + b"\n")
        refusal = process.answer()
        assert (refusal["id"], refusal["error"]["code"]) == ("me", -32700)
