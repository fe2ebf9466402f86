"""The knowledge toolset: entries that people and their agents store, and their documents, found by words in
any language.

`fastrpc serve fastrpc.tools.knowledge` serves it. Each owner sees only their own entries. Importing this
imports no library.
"""

from __future__ import annotations

from . import actions, agents, clock, documents, graph, insights, memory, workflows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc import Server

__all__ = ["actions", "agents", "clock", "documents", "graph", "insights", "memory", "workflows"]


def attach(server: Server) -> None:
    """Serve documents and entries as resources, the prompts, the workflows, and the agents if the settings
    name some; name the tools according to the settings. Raises UsageError."""
    from importlib.util import find_spec

    from fastrpc import UsageError

    if find_spec("sqlalchemy") is None:  # before a client connects, whose calls would all fail
        raise UsageError('fastrpc.tools.knowledge needs SQLAlchemy: pip install "fastrpc-mcp[knowledge]"')
    from . import _document_resources, _models, _personal, _prompts, _resources, _settings, _watching

    names = _settings.NAMES.read()
    if names not in ("dotted", "underscore"):
        raise UsageError(f"--names: expected dotted or underscore, got {names!r:.40}")
    if names == "underscore":
        server.tools.use_underscores()
    _document_resources.attach(server)
    _resources.attach(server)
    _prompts.attach(server)
    agents.attach(server)
    insights.attach(server)
    workflows.attach(server)
    actions.attach(server)
    _watching.attach(server)
    _models.attach(server)
    server.page_sources["knowledge"] = _personal.Personal
