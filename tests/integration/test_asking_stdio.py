"""Questions over real pipes: answered, cut off by the end of input, and a state that two processes share."""

from __future__ import annotations

import pytest
from support.protocol import STATELESS
from support.stdio import STATELESS_META, serve

SERVER = '''
"""Asks."""
import os

from fastrpc import Context, Server

app = Server("asking", version="1.0")


@app.tool
async def greet(ctx: Context) -> str:
    """Ask for a name."""
    answer = await ctx.elicit("Name?", str, key="name")
    return f"Hello, {answer.data}!"


@app.tool
def secret() -> str:
    """What programs that this server starts would see."""
    from fastrpc.processes import environment

    return str(environment().get("FASTRPC_SECRET"))
'''

ADA = {"action": "accept", "content": {"value": "Ada"}}


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25"])
def test_a_question_goes_over_the_pipe_and_the_answer_comes_back(version: str) -> None:
    with serve(SERVER) as server:
        server.initialize(version, elicitation={})
        call = {"jsonrpc": "2.0", "id": "call", "method": "tools/call", "params": {"name": "greet"}}
        server.send_message(call)
        question = server.answer()
        assert question["method"] == "elicitation/create"
        assert server.request("ping")["result"] == {}
        server.send_message({"jsonrpc": "2.0", "id": question["id"], "result": ADA})
        answer = server.answer()
        assert answer["id"] == "call"
        assert answer["result"]["content"][0]["text"] == "Hello, Ada!"


def test_a_server_that_waits_for_an_answer_ends_with_its_input() -> None:
    with serve(SERVER) as server:
        server.initialize("2025-11-25", elicitation={})
        call = {"jsonrpc": "2.0", "id": "call", "method": "tools/call", "params": {"name": "greet"}}
        server.send_message(call)
        assert server.answer()["method"] == "elicitation/create"
        server.close_stdin()
        assert server.wait() == 0
        assert "Traceback" not in server.stderr


def test_processes_with_one_secret_go_on_where_another_left_off_and_hand_it_to_no_one() -> None:
    meta = dict(STATELESS_META)
    key = next(key for key in meta if key.endswith("/clientCapabilities"))
    params = {"name": "greet", "_meta": {**meta, key: {"elicitation": {}}}}
    results = []
    state = {}
    for secret in ("shared", "shared", "other"):
        with serve(SERVER, environment={"FASTRPC_SECRET": secret}) as server:
            message = server.request("tools/call", {**params, **state})
            results.append(message)
            if not state:
                asked = message["result"]
                assert asked["resultType"] == "input_required"
                state = {"requestState": asked["requestState"], "inputResponses": {"name": ADA}}
                shown = server.request("tools/call", {"name": "secret", "_meta": meta})
                assert shown["result"]["content"][0]["text"] == "None"
    assert results[1]["result"]["content"][0]["text"] == "Hello, Ada!"
    assert results[2]["error"]["code"] == -32602
    assert STATELESS in str(meta)
