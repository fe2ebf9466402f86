"""The contracts toolset: nine verbs for Solidity contracts on EVM chains, by an engine of its own.

All nine are made in `verbs`, from the table in `_verbs`; an engine does them. Importing this imports nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc import Server

__all__ = ["verbs"]

PROCESS_STATE = "the local chain and compilers"
"""What they keep in their process: several workers must not serve them (docs/toolsets.md)."""


def attach(server: Server) -> None:
    """Serve large outputs as resources, and the prompts."""
    from . import _prompts, _resources

    _resources.attach(server)
    _prompts.attach(server)
