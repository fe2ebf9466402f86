"""W3: every session begins with `tools/list`: thirteen tools, one list at a time and 256 in flight.

All peers list the same descriptors, compared before the clock starts; what they add to them is their own
matter. The C reference writes them for every call; `c-ready` copies the bytes, is shown, and has no bar.
"""

from __future__ import annotations

import json
import os
import subprocess

from roster import LIST, SERVERS, Peer
from workloads.row import Options, Result, Row, load

TOOLS = 13
REQUESTS = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
    b'"capabilities":{},"clientInfo":{"name":"run","version":"1"}}}\n'
    b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
    b'{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}\n'
)


def measure(row: Row, peer: Peer, options: Options) -> Result:
    if difference := descriptors_differ(peer):
        return {"void": difference}
    return load(row, peer, options)


def descriptors_differ(peer: Peer) -> str:
    """Say how the tools that a peer lists differ from descriptors.json; the empty string when they do not."""
    done = subprocess.run(
        peer.commands[LIST], input=REQUESTS, env=peer.environment, capture_output=True, timeout=60
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    results = [answer["result"] for answer in answers if answer.get("id") == 2 and "result" in answer]
    if not results:
        return "no answer to tools/list"
    with open(os.path.join(SERVERS, "descriptors.json"), encoding="utf-8") as file:
        wanted = {tool["name"]: essence(tool) for tool in json.load(file)}
    found = {tool["name"]: essence(tool) for tool in results[0]["tools"]}
    wrong = sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))
    return f"other descriptors than descriptors.json: {', '.join(wrong)}" if wrong else ""


def essence(tool: Result) -> Result:
    """What every peer's descriptor must hold; defaults, titles and annotations are a peer's own matter."""
    schema = tool["inputSchema"]
    properties = schema.get("properties", {}).items()
    return {
        "description": tool.get("description"),
        "properties": {name: (each.get("type"), each.get("description")) for name, each in properties},
        "required": sorted(schema.get("required", [])),
    }


def row(name: str, title: str, window: int) -> Row:
    client = ("--workload", "list", "--window", str(window), "--tools", str(TOOLS))
    return Row(
        name,
        title,
        measure,
        "calls_per_second",
        "calls/s",
        less_is_better=False,
        client=client,
        bar=1.0,
        server=LIST,
    )


ROWS = (
    row("W3", "tools/list, one at a time", 1),
    row("W3-256", "tools/list, 256 in flight", 256),
)
