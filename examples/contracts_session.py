"""From a source text to a called contract, with the contracts toolset: python examples/contracts_session.py

Needs `pip install "fastrpc-mcp[contracts]"`, Node, and `fastrpc contracts install`.
"""

from __future__ import annotations

import json
import sys
import tempfile

from fastrpc import Client

SERVER = [sys.executable, "-m", "fastrpc", "serve", "fastrpc.tools.contracts"]
COUNTER = """
// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

contract Counter {
    error TooMuch(uint256 most);

    uint256 public value;

    constructor(uint256 start) { value = start; }

    function add(uint256 more) external {
        if (more > 10) revert TooMuch(10);
        value += more;
    }
}
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, Client.sync(SERVER, cwd=folder) as client:

        def do(verb: str, **arguments: object) -> object:
            envelope = json.loads(client.call_tool(f"tachyon_{verb}", arguments).text)
            return envelope["data"] if envelope["ok"] else envelope["error"]["message"]

        do("compile", sources={"src/Counter.sol": COUNTER})
        counter = do(
            "deploy", idempotency_key="counter", chain_id="local", contract="Counter", constructor_args=[7]
        )
        assert isinstance(counter, dict), counter
        to = counter["address"]
        print("deployed to", to)
        do("call", to=to, method="add", args=[5])
        print("value:", do("call", to=to, method="value"))
        print("refused:", do("call", to=to, method="add", args=[11]))


if __name__ == "__main__":
    main()
