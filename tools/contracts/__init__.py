"""The contracts toolset: nine verbs for Solidity contracts on EVM chains.

`verbs` makes all nine from the table in `_verbs`. An engine runs them: the embedded one or another program.
Importing this imports nothing.

    verbs ─► _calls ─► _requests ─► _engines ─┬► _embedded: solc, Vyper, forge, anvil ─┐
    (MCP)    (envelope) (arguments)           └► _bridge: an engine elsewhere ─────────┴► _chain
                                                                                            └► _project_files
    _engine_endpoint (tachyon's wire) ────┘

The two engines do not import each other; tests/tools/test_contracts_layers.py says which folder may import
which:

* `_chain`: what both engines do with a chain: nodes over JSON-RPC (`rpc`), the ABI (`abi`, `abi_size`),
  transactions and their receipts, what is to be deployed (`deployment_plan`)
* `_project_files`: what a project has on disk: the store with chains, artifacts and the ledger, locks that
  servers share, its sources
* `_embedded`: the compilers, forge and the local chain as processes; the ledger's line from planned to done
* `_bridge`: the transports to an engine, its answers, what is checked before it sends and read afterwards
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc import Server

__all__ = ["verbs"]

PROCESS_STATE = "the local chain and compilers"
"""The tools that keep state in their process: several workers must not serve them (docs/toolsets.md)."""


def attach(server: Server) -> None:
    """Serve large outputs as resources, and the prompts."""
    from . import _prompts, _resources

    _resources.attach(server)
    _prompts.attach(server)
