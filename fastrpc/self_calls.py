"""Calls by a server to itself for a principal: work that continues after a call or starts without one.

    async with client_for(server, principal) as client:
        result = await client.call_tool("memory.write", {"content": "The deadline is in May."})

They pass the same stages as a client's calls: guard, limits, budgets and audit attribute them to the
principal. Store the principal and the caller that requested the work (`Context.principal`, `Context.caller`).
Later compare the caller with `caller_of`: the token may have been revoked.
"""

from __future__ import annotations

from fastrpc.callers import unguarded
from fastrpc.client import Client
from fastrpc.client.in_memory import InMemory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from typing_extensions import Unpack

    from fastrpc.callers import Caller
    from fastrpc.client.options import ClientOptions
    from fastrpc.engine.ports import ApprovalGates
    from fastrpc.server import Server

__all__ = ["caller_of", "client_for", "gates_of", "tools_of"]


def client_for(server: Server, principal: str, **options: Unpack[ClientOptions]) -> Client:
    """Return a client of a server in this process that calls for a principal, "" for an unauthenticated one.

    If the server is mounted in another, that one is called, since its guard decides; use the names that it
    lists. To be used in the event loop that serves. `options` are those of `fastrpc.Client`.
    """
    served: Any = _served(server)
    client = Client(served, **options)
    client._make_transport = lambda: InMemory(served, principal=principal)
    return client


def caller_of(server: Server, principal: str) -> Caller:
    """Return the current caller of a principal: with another owner and class once its token is not valid."""
    found = _served(server).runtime.caller_of
    return unguarded(principal) if found is None else found(principal)


def tools_of(server: Server, principal: str) -> Collection[str]:
    """Return the names of the tools that exist for a principal, including those that lists hide."""
    return _served(server).runtime.plans.tools_of(principal)


def gates_of(server: Server) -> ApprovalGates | None:
    """Return the gates, which ask people for approvals for which no call waits; None if no guard can ask. To
    be used in the event loop that serves."""
    return _served(server).runtime.gates


def _served(server: Server) -> Server:
    """Return the outermost server, to which clients are connected."""
    while server._hosts:
        server = server._hosts[0]
    return server
