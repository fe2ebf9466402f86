"""What `fastrpc serve` lists for a user without skills of his own, and so what every server lists in W3.

    python benchmarks/descriptors.py          write servers/descriptors.json anew, after a tool has changed
    python benchmarks/descriptors.py --check  fail if it is not what fastrpc lists

The C reference has the file compiled in (`build.py`) and the plain loop reads it, so that all send the same
bytes. A test holds it against the real server. Costs one start of it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from typing import Any

import roster
from roster import LIST, Peer

FILE = os.path.join(roster.SERVERS, "descriptors.json")
REQUESTS = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
    b'"capabilities":{},"clientInfo":{"name":"run","version":"1"}}}\n'
    b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
    b'{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}\n'
)

Tools = list[dict[str, Any]]


class NoList(Exception):
    """A server does not list its tools; the message says what came instead."""


def answer_of(peer: Peer) -> bytes:
    """Return the line with which a peer answers tools/list (MCP 2025-11-25). Raises NoList."""
    done = subprocess.run(
        peer.commands[LIST],
        input=REQUESTS,
        cwd=peer.folder,
        env=peer.environment,
        capture_output=True,
        timeout=60,
    )
    for line in done.stdout.splitlines():
        if json.loads(line).get("id") == 2:
            return line
    said = done.stderr.decode(errors="replace").strip().splitlines()
    raise NoList(f"no answer to tools/list: {said[-1] if said else 'nothing on standard error'}")


def listed(peer: Peer) -> Tools:
    """Return the tools that a peer lists. Raises NoList."""
    answer = json.loads(answer_of(peer))
    if "result" not in answer:
        raise NoList(f"no result of tools/list: {answer}")
    tools: Tools = answer["result"]["tools"]
    return tools


def kept() -> Tools:
    """Return what the file holds."""
    with open(FILE, encoding="utf-8") as file:
        tools: Tools = json.load(file)
    return tools


def difference(peer: Peer) -> str:
    """Say which of the tools that a peer lists are not those of the file; the empty string for none."""
    try:
        found = listed(peer)
    except NoList as problem:
        return str(problem)
    wanted = kept()
    if found == wanted:
        return ""
    both = ({tool["name"]: tool for tool in tools} for tools in (found, wanted))
    mine, theirs = both
    wrong = [name for name in {**theirs, **mine} if mine.get(name) != theirs.get(name)]
    return f"other descriptors than descriptors.json: {', '.join(wrong) or 'another order'}"


def write(tools: Tools) -> None:
    """Write the file, a line a tool."""
    lines = ",\n  ".join(json.dumps(tool, ensure_ascii=False) for tool in tools)
    with open(FILE, "w", encoding="utf-8") as file:
        file.write(f"[\n  {lines}\n]\n")


def main() -> int:
    parser = argparse.ArgumentParser(description="Keep what fastrpc serve lists, for W3.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if it has changed")
    parser.add_argument("--python", default=sys.executable, help="what runs fastrpc")
    options = parser.parse_args()
    peer = roster.peer_of("fastrpc", options.python)
    if options.check:
        print(said := difference(peer))
        return 1 if said else 0
    write(listed(peer))
    return 0


if __name__ == "__main__":
    sys.exit(main())
