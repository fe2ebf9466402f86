"""The parts of a server that its runtime makes when they are first needed, and that its own layer imports."""

from __future__ import annotations

from fastrpc.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def task_board(server: Any) -> Any:
    """Return the board of a server's tasks."""
    from fastrpc.tasks.board import TaskBoard

    return TaskBoard(server)


def shared_store(server: Any) -> Any:
    """Return what the processes of a server share between hosts; None without FASTRPC_SHARED. Raises
    UsageError."""
    from fastrpc.settings import SHARED

    if not SHARED.read():
        return None
    try:
        from fastrpc.shared_store.store import SharedStore
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "sqlalchemy":
            raise
        raise UsageError('FASTRPC_SHARED needs SQLAlchemy: pip install "fastrpc-mcp[postgresql]"') from None
    return SharedStore(server.name, server.runtime.announcements)


def tool_processes(server: Any) -> Any:
    """Return what runs tools in processes, the same for all servers of this process."""
    from fastrpc.definitions import offloaded

    if offloaded.runner is None:
        from fastrpc.tool_processes.pool import Processes

        offloaded.runner = Processes()
    return offloaded.runner
