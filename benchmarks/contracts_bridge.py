"""Measures the bridge of the contracts toolset: what it adds to an engine's own answer, and lookups beside a
compilation.

    python benchmarks/contracts_bridge.py                     prints the table of docs/contracts.md
    python benchmarks/contracts_bridge.py --write             puts it there
    python benchmarks/contracts_bridge.py --against "COMMAND" with another server over stdio beside it

The engine is our own, `fastrpc contracts engine`, on this machine. A lookup is asked of it on a kept socket,
by the client over HTTP, and through the bridge by the same client over stdio, in turns; an overhead is the
difference of the medians. A source that takes seconds is compiled, and lookups are timed meanwhile. Needs
solc and Node. No part of the guard.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import shlex
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

from fastrpc import Client

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
PAGE = os.path.join(os.path.dirname(HERE), "docs", "contracts.md")
BEGIN, END = "<!-- bridge -->\n", "<!-- /bridge -->"
ROUNDS, CALLS = 9, 400
LOOKUP = ("tachyon_registry_lookup", {"idempotency_key": "no-such-key", "chain_id": "local"})
LIST = ("tachyon_chain_list", {})
MODULE = [sys.executable, "-m", "fastrpc"]
FUNCTIONS = 1_500  # that are compiled for seconds


class Engine:
    """`fastrpc contracts engine` in a process of its own, and one kept connection to it."""

    def __init__(self, folder: str) -> None:
        environment = {**os.environ, "FASTRPC_STATE_DIR": os.path.join(folder, "engine")}
        command = [*MODULE, "contracts", "engine", "--http", "127.0.0.1:0", "--no-auth"]
        self._process = subprocess.Popen(
            command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True
        )
        assert self._process.stderr is not None
        line = self._process.stderr.readline()
        found = re.search(r"http://127\.0\.0\.1:([0-9]+)", line)
        if found is None:
            raise SystemExit(f"the engine has not started: {line}")
        self.url = found[0]
        self._socket = socket.create_connection(("127.0.0.1", int(found[1])))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, tool: str, arguments: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": tool, "params": arguments}).encode()
        request = "POST /rpc HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        self._socket.sendall(f"{request}content-length: {len(body)}\r\n\r\n".encode() + body)
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += self._socket.recv(65_536)
        head, _, content = answer.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)\r\ncontent-length: *([0-9]+)", head)
        if not head.startswith(b"HTTP/1.1 200") or length is None:
            raise SystemExit(f"the engine refuses the request: {answer.decode()}")
        while len(content) < int(length[1]):
            content += self._socket.recv(65_536)

    def close(self) -> None:
        self._socket.close()
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(10)


def timed(ask: Any, tool: str, arguments: dict[str, Any], calls: int) -> float:
    """The median of so many calls, in microseconds."""
    taken = []
    for _ in range(calls):
        began = time.perf_counter()
        ask(tool, arguments)
        taken.append(time.perf_counter() - began)
    return statistics.median(taken) * 1e6


def overheads(engine: Engine, folder: str) -> list[tuple[str, float, float, float]]:
    """For each tool: the medians of the engine's own answer, of that to a client, and through the bridge."""
    command = [*MODULE, "serve", "fastrpc.tools.contracts", "--engine", engine.url]
    environment = {**os.environ, "FASTRPC_STATE_DIR": os.path.join(folder, "bridge")}
    found = []
    with (
        Client.sync(command, cwd=folder, env=environment) as client,
        Client.sync(f"{engine.url}/mcp") as direct,
    ):
        ways = (engine.ask, direct.call_tool, client.call_tool)
        for tool, arguments in (LIST, LOOKUP):
            rounds = [[timed(ask, tool, arguments, CALLS) for ask in ways] for _ in range(ROUNDS)]
            alone, by_client, bridged = (statistics.median(each) for each in zip(*rounds, strict=True))
            found.append((tool, alone, by_client, bridged))
    return found


async def behind_a_compilation(command: list[str], folder: str) -> tuple[float, float]:
    """How long a lookup takes while the server compiles, at most, and the compilation; in milliseconds."""
    functions = "".join(
        f"function f{n}(uint256 a) external pure returns (uint256) {{ return (a * {n} + {n}) % {n + 7}; }}\n"
        for n in range(FUNCTIONS)
    )
    source = f"// SPDX-License-Identifier: MIT\npragma solidity ^0.8.20;\ncontract Big {{\n{functions}}}\n"
    environment = {**os.environ, "FASTRPC_STATE_DIR": os.path.join(folder, "state")}
    async with Client(command, cwd=folder, env=environment) as client:
        await client.call_tool(*LOOKUP)
        began = time.perf_counter()
        arguments = {"sources": {"src/Big.sol": source}}
        compiling = asyncio.ensure_future(client.call_tool("tachyon_compile", arguments))
        await asyncio.sleep(0.2)
        slowest = 0.0
        while not compiling.done():
            asked = time.perf_counter()
            await client.call_tool(*LOOKUP)
            slowest = max(slowest, time.perf_counter() - asked)
            await asyncio.sleep(0.02)
        if (await compiling).is_error:
            raise SystemExit(f"{command[0]} does not compile: {(await compiling).text[:300]}")
        return slowest * 1e3, (time.perf_counter() - began) * 1e3


def table(against: str | None) -> str:
    lines = [
        "| | the engine, by a socket | by a client over HTTP | through the bridge | more than by a client |",
        "|---|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory() as folder:
        engine = Engine(folder)
        try:
            for tool, *medians in overheads(engine, folder):
                more = medians[2] - medians[1]
                shown = " | ".join(f"{each:.0f} µs" for each in (*medians, more))
                lines.append(f"| `{tool}` | {shown} |")
            bridge = [*MODULE, "serve", "fastrpc.tools.contracts", "--engine", engine.url]
            servers = [("embedded engine", [*MODULE, "serve", "fastrpc.tools.contracts"]), ("bridge", bridge)]
            if against:
                servers.append((os.path.basename(shlex.split(against)[0]), shlex.split(against)))
            lines += [
                "",
                "| a lookup while the server compiles | at most | the compilation |",
                "|---|---|---|",
            ]
            for name, command in servers:
                slowest, whole = asyncio.run(behind_a_compilation(command, folder))
                lines.append(f"| {name} | {slowest:.1f} ms | {whole:.0f} ms |")
        finally:
            engine.close()
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description="what the bridge of the contracts toolset costs")
    parser.add_argument("--write", action="store_true", help="put the table into docs/contracts.md")
    parser.add_argument("--against", metavar="COMMAND", help="another server of the nine tools, over stdio")
    options = parser.parse_args()
    found = table(options.against)
    print(found, end="")
    if options.write:
        with open(PAGE, encoding="utf-8") as file:
            text = file.read()
        before, _, rest = text.partition(BEGIN)
        after = rest.partition(END)[2]
        with open(PAGE, "w", encoding="utf-8") as file:
            file.write(f"{before}{BEGIN}{found}{END}{after}")


if __name__ == "__main__":
    main()
