"""The contracts toolset: nine verbs for Solidity contracts on EVM chains.

`verbs` makes all nine from the table in `_verbs`. An engine runs them: the embedded one or another program.
Importing this imports nothing.
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
