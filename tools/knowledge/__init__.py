"""The knowledge toolset: what people and their agents want remembered, found by words in any language.

`fastrpc serve fastrpc.tools.knowledge` serves it. Each owner sees their own entries alone. Importing this
imports no library.
"""

from __future__ import annotations

from . import agents, insights, memory, workflows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc import Server

__all__ = ["agents", "insights", "memory", "workflows"]


def attach(server: Server) -> None:
    """Serve the entries as resources, the prompts, workflows, and the agents where there are some."""
    from . import _prompts, _resources

    _resources.attach(server)
    _prompts.attach(server)
    agents.attach(server)
    insights.attach(server)
    workflows.attach(server)
