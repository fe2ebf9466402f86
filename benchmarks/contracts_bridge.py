"""Measures the bridge of the contracts toolset: what it adds to an engine's own answer, and lookups beside a
compilation.

    python benchmarks/contracts_bridge.py                     prints the tables of docs/contracts.md
    python benchmarks/contracts_bridge.py --write             puts them there
    python benchmarks/contracts_bridge.py --overheads         the first two alone
    python benchmarks/contracts_bridge.py --against "COMMAND" with another server over stdio beside it

The engine is our own, `fastrpc contracts engine`, on this machine. The same lookup is asked of it on a kept
socket, through a bare relay and through the bridge, by bare reads and writes, and by fastrpc's client over
HTTP and through the bridge, in turns of some calls. An overhead is the median of the differences within a
turn. The relay (`bare_relay`) is the floor for a process between the two. A source that takes seconds is
compiled, and lookups are timed meanwhile. Needs solc and Node, and Linux for processor time. No part of the
guard.
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
RELAY = os.path.join(HERE, "bare_relay.py")
PAGE = os.path.join(os.path.dirname(HERE), "docs", "contracts.md")
ROUNDS, CALLS, WARM_CALLS = 90, 40, 200
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


class Piped:
    """A process that answers a line with a line."""

    def __init__(self, command: list[str], folder: str, state: str) -> None:
        environment = {**os.environ, "FASTRPC_STATE_DIR": os.path.join(folder, state)}
        self._process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input, self._output = self._process.stdin.fileno(), self._process.stdout.fileno()

    def exchange(self, message: dict[str, Any]) -> bytes:
        os.write(self._input, json.dumps(message).encode() + b"\n")
        answer = b""
        while not answer.endswith(b"\n"):
            answer += os.read(self._output, 65_536)
        return answer

    def tell(self, message: dict[str, Any]) -> None:
        os.write(self._input, json.dumps(message).encode() + b"\n")

    def processor_seconds(self) -> float:
        """What its threads have used so far."""
        total = 0
        for thread in os.listdir(f"/proc/{self._process.pid}/task"):
            with open(f"/proc/{self._process.pid}/task/{thread}/schedstat") as file:
                total += int(file.read().split()[0])
        return total / 1e9

    def __enter__(self) -> Piped:
        return self

    def __exit__(self, *error: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(10)


class Relay(Piped):
    """The relay before an engine."""

    def __init__(self, engine: Engine, folder: str) -> None:
        super().__init__([sys.executable, RELAY, engine.url.rpartition(":")[2]], folder, "relay")

    def ask(self, tool: str, arguments: dict[str, Any]) -> None:
        self.exchange({"jsonrpc": "2.0", "id": 1, "method": tool, "params": arguments})


class Bridge(Piped):
    """The bridge before an engine, in a session of MCP."""

    def __init__(self, command: list[str], folder: str) -> None:
        super().__init__(command, folder, "bridge")
        info = {"name": "benchmark", "version": "1"}
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}
        self.exchange({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
        self.tell({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self._last = 0

    def ask(self, tool: str, arguments: dict[str, Any]) -> None:
        self._last += 1
        params = {"name": tool, "arguments": arguments}
        answer = self.exchange({"jsonrpc": "2.0", "id": self._last, "method": "tools/call", "params": params})
        if b'"isError":false' not in answer:
            raise SystemExit(f"the bridge refuses the call: {answer.decode()[:300]}")


def timed(ask: Any, tool: str, arguments: dict[str, Any]) -> float:
    """The median of some calls, in microseconds."""
    taken = []
    for _ in range(CALLS):
        began = time.perf_counter()
        ask(tool, arguments)
        taken.append(time.perf_counter() - began)
    return statistics.median(taken) * 1e6


class Row:
    """The medians of a tool by each way, those of the differences, and the bridge's processor time for a
    call; in microseconds."""

    def __init__(self, rounds: list[list[float]], processor: list[float]) -> None:
        self.engine, self.relay, self.bridge, self.client, self.client_bridge = (
            statistics.median(each) for each in zip(*rounds, strict=True)
        )
        self.relay_more = statistics.median(each[1] - each[0] for each in rounds)
        self.bridge_more = statistics.median(each[2] - each[0] for each in rounds)
        self.client_more = statistics.median(each[4] - each[3] for each in rounds)
        self.processor = statistics.median(processor)


def overheads(engine: Engine, folder: str) -> list[tuple[str, Row]]:
    command = [*MODULE, "serve", "fastrpc.tools.contracts", "--engine", engine.url]
    environment = {**os.environ, "FASTRPC_STATE_DIR": os.path.join(folder, "bridge")}
    found = []
    with (
        Relay(engine, folder) as relay,
        Bridge(command, folder) as bridge,
        Client.sync(command, cwd=folder, env=environment) as client,
        Client.sync(f"{engine.url}/mcp") as direct,
    ):
        ways: tuple[Any, ...] = (engine.ask, relay.ask, bridge.ask, direct.call_tool, client.call_tool)
        for tool, arguments in (LIST, LOOKUP):
            for ask in ways:
                for _ in range(WARM_CALLS):
                    ask(tool, arguments)
            rounds, processor = [], []
            for _ in range(ROUNDS):
                medians = []
                for ask in ways:
                    before = bridge.processor_seconds()
                    medians.append(timed(ask, tool, arguments))
                    if ask == bridge.ask:
                        processor.append((bridge.processor_seconds() - before) / CALLS * 1e6)
                rounds.append(medians)
            found.append((tool, Row(rounds, processor)))
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


def overhead_tables(engine: Engine, folder: str) -> str:
    lines = [
        "| by a bare socket or pipe | the engine | a bare relay | the bridge | the relay's overhead "
        "| the bridge's overhead | the bridge's processor time |",
        "|---|---|---|---|---|---|---|",
    ]
    by_client = [
        "",
        "| by fastrpc's client | over HTTP, the engine's tools | over stdio, through the bridge | more |",
        "|---|---|---|---|",
    ]
    for tool, row in overheads(engine, folder):
        bare = (row.engine, row.relay, row.bridge, row.relay_more, row.bridge_more, row.processor)
        lines.append(row_of(tool, *bare))
        by_client.append(row_of(tool, row.client, row.client_bridge, row.client_more))
    return "\n".join([*lines, *by_client]) + "\n"


def lookup_table(engine: Engine, folder: str, against: str | None) -> str:
    bridge = [*MODULE, "serve", "fastrpc.tools.contracts", "--engine", engine.url]
    servers = [("embedded engine", [*MODULE, "serve", "fastrpc.tools.contracts"]), ("bridge", bridge)]
    if against:
        servers.append((os.path.basename(shlex.split(against)[0]), shlex.split(against)))
    lines = ["| a lookup while the server compiles | at most | the compilation |", "|---|---|---|"]
    for name, command in servers:
        slowest, whole = asyncio.run(behind_a_compilation(command, folder))
        lines.append(f"| {name} | {slowest:.1f} ms | {whole:.0f} ms |")
    return "\n".join(lines) + "\n"


def row_of(tool: str, *microseconds: float) -> str:
    return " | ".join([f"| `{tool}`", *(f"{each:.0f} µs" for each in microseconds)]) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description="what the bridge of the contracts toolset costs")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/contracts.md")
    parser.add_argument("--against", metavar="COMMAND", help="another server of the nine tools, over stdio")
    parser.add_argument("--overheads", action="store_true", help="the overheads alone, without compilations")
    options = parser.parse_args()
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        engine = Engine(folder)
        try:
            found["bridge"] = overhead_tables(engine, folder)
            if not options.overheads:
                found["lookups"] = lookup_table(engine, folder, options.against)
        finally:
            engine.close()
    print("\n".join(found.values()), end="")
    if options.write:
        write(found)


def write(tables: dict[str, str]) -> None:
    """Put each table into the page, between its marks."""
    with open(PAGE, encoding="utf-8") as file:
        text = file.read()
    for name, table in tables.items():
        before, begin, rest = text.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition(f"<!-- /{name} -->")
        text = f"{before}{begin}{table}{end}{after}"
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main()
