"""A server over stdio that misbehaves in the way that its argument names; in all else it is a small good one.

    python faulty_server.py FAULT [WHEN]

WHEN a server that closes its pipes does so: in a `call`, at its `start` before it has answered `initialize`,
in the middle of the first `line` behind the handshake or of the one behind the list (`listed`), or `between`
two calls, when it has answered `good`.

It speaks the versions up to 2025-11-25, has the tools `good` (returns its text), `bad` (does what is named),
and `priced` (with an output schema), and imports nothing of fastrpc.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from typing import Any

PRICE = {"type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"]}
CLOSING = {"closes-input": (0,), "closes-output": (1,), "closes-both": (0, 1), "held-output": (1,)}
"""The pipes that a fault closes."""


def write(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def send(message: dict[str, Any]) -> None:
    write(json.dumps({"jsonrpc": "2.0", **message}))


def text(value: str, **members: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": value}], **members}


def call(id: int, fault: str) -> None:
    """Answer a call of `bad`."""
    if fault == "rubbish":
        write("Loading the model …")
        write('{"jsonrpc": "2.0", "id"')
        write("[]")
        send({"id": id, "result": text("ok")})
    elif fault == "twice":
        send({"id": id, "result": text("first")})
        send({"id": id, "result": text("second")})
    elif fault == "wrong-id":
        send({"id": 999_999, "result": text("for nobody")})
        send({"id": f"x{id}", "result": text("for nobody")})
        send({"id": None, "error": {"code": -32700, "message": "Parse error"}})
    elif fault == "no-result":
        send({"id": id})
        write(json.dumps({"jsonrpc": "2.0", "id": id, "result": 5}))
    elif fault == "no-content":
        send({"id": id, "result": {"contents": []}})
    elif fault == "wrong-content":
        send({"id": id, "result": {"content": [{"text": "no type"}]}})
    elif fault == "dies-in-a-line":
        sys.stderr.write("out of cheese\n")
        sys.stderr.flush()
        sys.stdout.write(f'{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"te')
        sys.stdout.flush()
        os._exit(7)
    elif fault == "exits":
        sys.stderr.write("token=supersecretvalue\n")
        sys.exit(3)
    elif fault == "killed":
        os.kill(os.getpid(), 9)
    elif fault in CLOSING:
        close_pipes(fault)
    elif fault == "floods":
        line = json.dumps(
            {"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "x" * 100}}
        )
        for _ in range(2_000):
            sys.stdout.write((line + "\n") * 50)
        send({"id": id, "result": text("after the flood")})
    elif fault == "huge":
        sys.stdout.write(f'{{"jsonrpc":"2.0","id":{id},"result":')
        for _ in range(70):
            sys.stdout.write(" " * 1024 * 1024)
        write("}")
        send({"id": id, "result": text("after the line")})
    # "silent": no answer


def close_pipes(fault: str, in_a_line: bool = False) -> None:
    """Close what the fault says, and run on; of `held-output` a child has it, too. `in_a_line`: when one has
    begun to come."""
    if in_a_line:
        select.select([0], [], [])
    if fault.startswith("held"):
        subprocess.Popen(["sleep", "60"])
    for descriptor in CLOSING[fault]:
        os.close(descriptor)
    time.sleep(60)


def wait_for_the_end() -> None:
    """Read nothing, and end when no one can write any more."""
    watched = select.poll()
    watched.register(0, 0)
    watched.poll(60_000)
    os._exit(0)


def main(fault: str, when: str = "call") -> None:
    if fault == "never-starts":
        time.sleep(60)
    for line in sys.stdin:
        message = json.loads(line)
        method, id = message["method"], message.get("id")
        if id is None:
            if when == "line":
                close_pipes(fault, in_a_line=True)
            continue
        if method == "initialize":
            if when == "start":
                close_pipes(fault)
            version = message["params"]["protocolVersion"]
            info = {"name": fault, "version": "1"}
            begun = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
            send({"id": id, "result": begun})
            if fault == "never-reads":
                wait_for_the_end()
        elif method == "tools/list":
            tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ("good", "bad", "priced")]
            tools[2]["outputSchema"] = PRICE
            send({"id": id, "result": {"tools": tools}})
            if when == "listed":
                close_pipes(fault, in_a_line=True)
        elif method == "tools/call" and message["params"]["name"] == "good":
            send({"id": id, "result": text(message["params"]["arguments"]["text"])})
            if when == "between":
                close_pipes(fault)
        elif method == "tools/call" and message["params"]["name"] == "priced":
            send({"id": id, "result": text("?", **message["params"]["arguments"])})
        elif method == "tools/call":
            call(id, fault)
        else:
            send({"id": id, "error": {"code": -32601, "message": f"no method {method}"}})


if __name__ == "__main__":
    main(*sys.argv[1:])
