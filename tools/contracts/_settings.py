"""The settings of the contracts toolset. A program without a setting is searched in PATH and in the folders
of its own installer and of `fastrpc contracts install`."""

from __future__ import annotations

from fastrpc.settings import Setting

SOLC = Setting("FASTRPC_CONTRACTS_SOLC", "program", "", "the Solidity compiler: solc, or soljson.js for Node")
VYPER = Setting("FASTRPC_CONTRACTS_VYPER", "program", "", "the Vyper compiler, vyper")
FORGE = Setting("FASTRPC_CONTRACTS_FORGE", "program", "", "Foundry's forge, which runs tests")
ANVIL = Setting("FASTRPC_CONTRACTS_ANVIL", "program", "", "Foundry's anvil, the local chain")
NODE = Setting("FASTRPC_CONTRACTS_NODE", "program", "", "Node, which runs a solc of WebAssembly")
ENGINE = Setting(
    "FASTRPC_CONTRACTS_ENGINE",
    "address",
    "",
    "the engine that does the work: a URL, or stdio:COMMAND; unset: the one that is built in",
)
ENGINE_SECONDS = Setting(
    "FASTRPC_CONTRACTS_ENGINE_SECONDS", "seconds", 300.0, "the longest that one request to an engine may take"
)
TOKEN = Setting("FASTRPC_CONTRACTS_TOKEN", "secret", "", "the bearer token that the engine at a URL asks for")
TOKEN_FILE = Setting(
    "FASTRPC_CONTRACTS_TOKEN_FILE", "file", "", "a file whose first line is that token; read for each request"
)
PROJECT_CONFIG = Setting(
    "FASTRPC_CONTRACTS_PROJECT_CONFIG",
    "permission",
    False,
    "use the foundry.toml, remappings and lib/ of a project folder",
)
NETWORKS = Setting(
    "FASTRPC_CONTRACTS_NETWORKS",
    "reach",
    (),
    "networks that a chain's rpc_url may lead to besides public addresses, such as 127.0.0.0/8",
)

OPTIONS = {"--engine": ENGINE, "--engine-token-file": TOKEN_FILE, "--project-config": PROJECT_CONFIG}
"""The options of `fastrpc serve` for this toolset, besides its own options."""
