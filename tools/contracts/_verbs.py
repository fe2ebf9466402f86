"""The nine verbs: the parameters, the effect and the time limit of each. Data only. The tools and their
schemas are made from it, and `_requests` reads arguments by it. Importing it costs nothing.

A parameter is ``(kind, required, description)``; `SCHEMAS` has the schema of each kind.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

    Parameters = dict[str, tuple[str, bool, str]]
    Effect = Literal["read", "write", "network", "exec"]

_AMOUNT = {"type": ["string", "integer"], "minimum": 0}
_TEXTS = {"type": "array", "items": {"type": "string"}}
_OBJECT = {"type": "object"}

SCHEMAS: dict[str, dict[str, Any]] = {
    "abi": {"type": "array", "items": _OBJECT},
    "address": {"type": "string", "pattern": "^0x[0-9a-fA-F]{40}$"},
    "arguments": {"type": "array"},
    "block": {"type": ["string", "integer"]},
    "chain": {"type": ["string", "integer"]},
    "contract": {"type": "string"},
    "create2": {
        "type": "object",
        "properties": {
            "salt": {"type": "string", "description": "32 bytes, 0x and 64 hex digits"},
            "deployer": {"type": "string", "description": "the proxy that creates; default: the common one"},
        },
        "required": ["salt"],
        "additionalProperties": False,
    },
    "data": {"type": "string", "pattern": "^0x([0-9a-fA-F]{2})*$"},
    "evm_version": {"type": "string"},
    "flag": {"type": "boolean"},
    "folder": {"type": "string"},
    "key": {"type": "string"},
    "name": {"type": "string"},
    "names": _TEXTS,
    "number": {"type": ["integer", "string"], "minimum": 0},
    "optimize": {"type": ["boolean", "integer"], "minimum": 0},
    "pattern": {"type": "string"},
    "rpc_url": {"type": "string"},
    "sources": {"type": "object", "additionalProperties": {"type": "string"}},
    "text": {"type": "string"},
    "wei": _AMOUNT,
}

_SOURCES: Parameters = {
    "sources": ("sources", False, "Source texts by path, such as src/Counter.sol; or project_root"),
    "project_root": ("folder", False, "A project folder on the server, with src/ and test/"),
}
_WHERE: Parameters = {
    "chain_id": ("chain", False, "A chain from tachyon_chain_list; default: the active one"),
    "rpc_url": ("rpc_url", False, "Instead of chain_id: a node's URL, only for reading"),
}
_WALLET: Parameters = {
    "capability_token": ("text", False, "For an engine with a wallet that asks for one"),
    "spend_cap_wei": ("wei", False, "The most that value and gas may cost together, in wei"),
    "wallet_token": ("text", False, "For an engine with a wallet that asks for one"),
}
_FROM: Parameters = {"from": ("address", False, "The sending account; default: the chain's first")}


class Verb:
    """A verb for clients. `seconds`: the longest time of a call."""

    __slots__ = ("annotations", "description", "effect", "parameters", "seconds", "title")

    def __init__(
        self,
        title: str,
        description: str,
        effect: Effect,
        seconds: int,
        parameters: Parameters,
        annotations: dict[str, bool] | None = None,
    ) -> None:
        self.title = title
        self.description = description
        self.effect = effect
        self.seconds = seconds
        self.parameters = parameters
        self.annotations: Any = annotations or {}

    def schema(self) -> dict[str, Any]:
        """The input schema: strict, without further members."""
        shown = {
            name: {**SCHEMAS[kind], "description": description}
            for name, (kind, _, description) in self.parameters.items()
        }
        required = [name for name, (_, required, _) in self.parameters.items() if required]
        schema: dict[str, Any] = {"type": "object", "properties": shown, "additionalProperties": False}
        return {**schema, "required": required} if required else schema


PREFIX = "tachyon_"
SHORT_SECONDS = 15
"""Calls of verbs with a longer time limit may become tasks."""

VERBS: dict[str, Verb] = {
    "compile": Verb(
        "Compile contracts",
        "Compile Solidity or Vyper and keep the artifacts (ABI, bytecode) of the project",
        "exec",
        180,
        {
            **_SOURCES,
            "project_id": ("name", False, "Where the artifacts are kept (default: default)"),
            "targets": ("names", False, "Names of contracts to return; default: all"),
            "include": ("names", False, "Parts to return: abi, bytecode, deployedBytecode; default: all"),
            "optimize": ("optimize", False, "Optimize: true, or for how many runs (default: true, 200 runs)"),
            "via_ir": ("flag", False, "Compile through the intermediate representation"),
            "evm_version": ("evm_version", False, "Such as cancun; default: the compiler's"),
        },
    ),
    "test": Verb(
        "Test contracts",
        "Run the tests of Solidity sources: functions that begin with test",
        "exec",
        300,
        {
            **_SOURCES,
            "match_path": (
                "pattern",
                False,
                "Only test files with this path or glob, such as test/Counter.t.sol",
            ),
            "match_contract": (
                "pattern",
                False,
                "Only contracts with a name that matches this regular expression",
            ),
            "filter": ("pattern", False, "Only tests with a name that matches this regular expression"),
            "evm_version": ("evm_version", False, "Such as cancun; default: the compiler's"),
        },
    ),
    "simulate": Verb(
        "Simulate a transaction",
        "Say what a transaction would do, without sending it: result, gas, revert",
        "network",
        30,
        {
            "to": ("address", True, "The contract's address"),
            **_WHERE,
            **_FROM,
            "data": ("data", False, "The calldata, 0x and hex digits"),
            "value": ("wei", False, "Wei to send along"),
            "block": ("block", False, "A block number, latest, pending …; default: latest"),
            "trace": ("flag", False, "Return the call trace, too, where the node has one"),
        },
        {"readOnlyHint": True, "destructiveHint": False},
    ),
    "deploy": Verb(
        "Deploy a contract",
        "Deploy a compiled contract, once for each idempotency_key",
        "write",
        120,
        {
            "idempotency_key": ("key", True, "Identifies this deployment; the same key never deploys twice"),
            "chain_id": ("chain", True, "A chain from tachyon_chain_list, such as local"),
            "contract": ("contract", True, "A compiled contract: Counter, or src/Counter.sol:Counter"),
            "project_id": ("name", False, "The project it was compiled in; default: the newest that has it"),
            "constructor_args": ("arguments", False, "The constructor's arguments; large integers as text"),
            "create2": ("create2", False, "Create at an address that follows from salt and code (EIP-1014)"),
            **_FROM,
            "intent": ("text", False, "What the deployment is for, in words, for those who approve it"),
            **_WALLET,
        },
        {"destructiveHint": True, "idempotentHint": True, "openWorldHint": True},
    ),
    "call": Verb(
        "Call a contract",
        "Call a contract's method: read it, or send a transaction and wait for it",
        "write",
        60,
        {
            "to": ("address", True, "The contract's address"),
            **_WHERE,
            "method": ("text", False, "A method's name, or its signature where several bear the name"),
            "args": ("arguments", False, "The method's arguments; large integers as text"),
            "abi": (
                "abi",
                False,
                "The contract's ABI; default: that of contract, or of what was deployed there",
            ),
            "contract": ("contract", False, "A compiled contract that has the method"),
            "project_id": ("name", False, "The project it was compiled in"),
            "data": ("data", False, "Instead of method and args: the calldata, 0x and hex digits"),
            "value": ("wei", False, "Wei to send along"),
            "simulate_only": ("flag", False, "Say what would happen, and send nothing"),
            **_FROM,
            **_WALLET,
        },
        {"destructiveHint": True, "openWorldHint": True},
    ),
    "chain_list": Verb(
        "List chains", "List the chains that are known, and which one is active", "read", 15, {}
    ),
    "chain_register": Verb(
        "Register a chain",
        "Register a chain by its node's URL, or change one",
        "write",
        15,
        {
            "id": ("name", True, "The id that chain_id names it by"),
            "rpc_url": ("rpc_url", True, "The URL of its node, http or https"),
            "chain_id": ("number", True, "The chain's number (EIP-155), such as 11155111"),
            "name": ("text", False, "A name for people"),
            "preset": ("text", False, "The kind of chain, such as ethereum or optimism"),
            "explorer": ("text", False, "The URL of a block explorer"),
        },
        {"destructiveHint": False, "idempotentHint": True},
    ),
    "artifact_get": Verb(
        "Get an artifact",
        "Get what the compiler made of a contract: ABI, bytecode, and which compiler it was",
        "read",
        15,
        {
            "name": ("contract", True, "Counter, or src/Counter.sol:Counter"),
            "project_id": ("name", False, "The project; default: the newest that has it"),
            "include": ("names", False, "Parts to return: abi, bytecode, deployedBytecode; default: all"),
        },
    ),
    "registry_lookup": Verb(
        "Look up a deployment",
        "Look up what was deployed with an idempotency_key",
        "read",
        15,
        {
            "idempotency_key": ("key", True, "The key of the deployment"),
            "chain_id": ("chain", True, "The chain it was deployed to"),
        },
    ),
}
