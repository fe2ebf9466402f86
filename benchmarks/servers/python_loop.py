"""The honest floor: a serial loop of `json` and `readline`, as short as a server can be in plain Python.

It knows one error, -32700, and checks nothing else: what a real server does more is not in its figures.
"""

import json
import os
import sys

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "descriptors.json"), "rb") as file:
    TOOLS = json.load(file)

CALLS = {
    "echo": lambda arguments: arguments["text"],
    "add": lambda arguments: str(arguments["a"] + arguments["b"]),
}


def answer(method, params):
    if method == "tools/call":
        text = CALLS[params["name"]](params["arguments"])
        return {"content": [{"type": "text", "text": text}], "isError": False}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "initialize":
        own = {"capabilities": {"tools": {}}, "serverInfo": {"name": "python-loop", "version": "1.0"}}
        return {"protocolVersion": params["protocolVersion"], **own}
    return {}


for line in iter(sys.stdin.buffer.readline, b""):
    try:
        message = json.loads(line)
    except ValueError as problem:
        reply = {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": str(problem)}}
    else:
        if "id" not in message:
            continue
        result = answer(message["method"], message.get("params"))
        reply = {"jsonrpc": "2.0", "id": message["id"], "result": result}
    sys.stdout.buffer.write(json.dumps(reply, separators=(",", ":")).encode() + b"\n")
    sys.stdout.buffer.flush()
