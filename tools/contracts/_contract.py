"""The published contract of the nine verbs, in their published order.

`fastrpc selftest fastrpc.tools.contracts` and the tests check the tools against it: its clients must work
unchanged. ``example`` is a call without side effects, for the self-test. Data only.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Type = str | list[str]

AMOUNT, EITHER = ["string", "integer"], ["integer", "string"]


def _required(kind: Type, description: str) -> dict[str, Any]:
    return {"type": kind, "required": True, "description": description}


def _optional(kind: Type, description: str) -> dict[str, Any]:
    return {"type": kind, "required": False, "description": description}


CONTRACT: dict[str, dict[str, Any]] = {
    "tachyon_compile": {
        "module": "verbs",
        "effect": "exec",
        "description": "Compile Solidity or Vyper and keep the artifacts (ABI, bytecode) of the project",
        "parameters": {
            "sources": _optional("object", "Source texts by path, such as src/Counter.sol; or project_root"),
            "project_root": _optional("string", "A project folder on the server, with src/ and test/"),
            "project_id": _optional("string", "Where the artifacts are kept (default: default)"),
            "targets": _optional("array", "Names of contracts to return; default: all"),
            "include": _optional("array", "Parts to return: abi, bytecode, deployedBytecode; default: all"),
            "optimize": _optional(
                ["boolean", "integer"], "Optimize: true, or for how many runs (default: true, 200 runs)"
            ),
            "via_ir": _optional("boolean", "Compile through the intermediate representation"),
            "evm_version": _optional("string", "Such as cancun; default: the compiler's"),
        },
    },
    "tachyon_test": {
        "module": "verbs",
        "effect": "exec",
        "description": "Run the tests of Solidity sources: functions that begin with test",
        "parameters": {
            "sources": _optional("object", "Source texts by path, such as src/Counter.sol; or project_root"),
            "project_root": _optional("string", "A project folder on the server, with src/ and test/"),
            "match_path": _optional(
                "string", "Only test files with this path or glob, such as test/Counter.t.sol"
            ),
            "match_contract": _optional(
                "string", "Only contracts with a name that matches this regular expression"
            ),
            "filter": _optional("string", "Only tests with a name that matches this regular expression"),
            "evm_version": _optional("string", "Such as cancun; default: the compiler's"),
        },
    },
    "tachyon_simulate": {
        "module": "verbs",
        "effect": "network",
        "description": "Say what a transaction would do, without sending it: result, gas, revert",
        "parameters": {
            "to": _required("string", "The contract's address"),
            "chain_id": _optional(AMOUNT, "A chain from tachyon_chain_list; default: the active one"),
            "rpc_url": _optional("string", "Instead of chain_id: a node's URL, only for reading"),
            "from": _optional("string", "The sending account; default: the chain's first"),
            "data": _optional("string", "The calldata, 0x and hex digits"),
            "value": _optional(AMOUNT, "Wei to send along"),
            "block": _optional(AMOUNT, "A block number, latest, pending …; default: latest"),
            "trace": _optional("boolean", "Return the call trace, too, where the node has one"),
        },
    },
    "tachyon_deploy": {
        "module": "verbs",
        "effect": "write",
        "description": "Deploy a compiled contract, once for each idempotency_key",
        "parameters": {
            "idempotency_key": _required(
                "string", "Identifies this deployment; the same key never deploys twice"
            ),
            "chain_id": _required(AMOUNT, "A chain from tachyon_chain_list, such as local"),
            "contract": _required("string", "A compiled contract: Counter, or src/Counter.sol:Counter"),
            "project_id": _optional(
                "string", "The project it was compiled in; default: the newest that has it"
            ),
            "constructor_args": _optional("array", "The constructor's arguments; large integers as text"),
            "create2": _optional("object", "Create at an address that follows from salt and code (EIP-1014)"),
            "from": _optional("string", "The sending account; default: the chain's first"),
            "intent": _optional("string", "What the deployment is for, in words, for those who approve it"),
            "capability_token": _optional("string", "For an engine with a wallet that asks for one"),
            "spend_cap_wei": _optional(AMOUNT, "The most that value and gas may cost together, in wei"),
            "wallet_token": _optional("string", "For an engine with a wallet that asks for one"),
        },
    },
    "tachyon_call": {
        "module": "verbs",
        "effect": "write",
        "description": "Call a contract's method: read it, or send a transaction and wait for it",
        "parameters": {
            "to": _required("string", "The contract's address"),
            "chain_id": _optional(AMOUNT, "A chain from tachyon_chain_list; default: the active one"),
            "rpc_url": _optional("string", "Instead of chain_id: a node's URL, only for reading"),
            "method": _optional("string", "A method's name, or its signature where several bear the name"),
            "args": _optional("array", "The method's arguments; large integers as text"),
            "abi": _optional(
                "array", "The contract's ABI; default: that of contract, or of what was deployed there"
            ),
            "contract": _optional("string", "A compiled contract that has the method"),
            "project_id": _optional("string", "The project it was compiled in"),
            "data": _optional("string", "Instead of method and args: the calldata, 0x and hex digits"),
            "value": _optional(AMOUNT, "Wei to send along"),
            "simulate_only": _optional("boolean", "Say what would happen, and send nothing"),
            "from": _optional("string", "The sending account; default: the chain's first"),
            "capability_token": _optional("string", "For an engine with a wallet that asks for one"),
            "spend_cap_wei": _optional(AMOUNT, "The most that value and gas may cost together, in wei"),
            "wallet_token": _optional("string", "For an engine with a wallet that asks for one"),
        },
    },
    "tachyon_chain_list": {
        "module": "verbs",
        "effect": "read",
        "description": "List the chains that are known, and which one is active",
        "parameters": {},
        "example": {"arguments": {}, "is_error": False, "says": '"chains":'},
    },
    "tachyon_chain_register": {
        "module": "verbs",
        "effect": "write",
        "description": "Register a chain by its node's URL, or change one",
        "parameters": {
            "id": _required("string", "The id that chain_id names it by"),
            "rpc_url": _required("string", "The URL of its node, http or https"),
            "chain_id": _required(EITHER, "The chain's number (EIP-155), such as 11155111"),
            "name": _optional("string", "A name for people"),
            "preset": _optional("string", "The kind of chain, such as ethereum or optimism"),
            "explorer": _optional("string", "The URL of a block explorer"),
        },
    },
    "tachyon_artifact_get": {
        "module": "verbs",
        "effect": "read",
        "description": "Get what the compiler made of a contract: ABI, bytecode, and which compiler it was",
        "parameters": {
            "name": _required("string", "Counter, or src/Counter.sol:Counter"),
            "project_id": _optional("string", "The project; default: the newest that has it"),
            "include": _optional("array", "Parts to return: abi, bytecode, deployedBytecode; default: all"),
        },
        "example": {"arguments": {"name": "No4711"}, "is_error": True, "says": "ARTIFACT_NOT_FOUND"},
    },
    "tachyon_registry_lookup": {
        "module": "verbs",
        "effect": "read",
        "description": "Look up what was deployed with an idempotency_key",
        "parameters": {
            "idempotency_key": _required("string", "The key of the deployment"),
            "chain_id": _required(AMOUNT, "The chain it was deployed to"),
        },
        "example": {
            "arguments": {"idempotency_key": "no-4711", "chain_id": "local"},
            "is_error": False,
            "says": '"found":false',
        },
    },
}
