"""Calls that a server makes of itself for a principal: work that goes on behind a call or begins without one.

    async with client_for(server, principal) as client:
        result = await client.call_tool("memory.write", {"content": "The deadline is in May."})

They go the whole way that a client's calls go: guard, limits, budgets and audit know them by the principal.
Keep the principal of whoever has asked for the work (`Context.principal`), and compare `caller_of` with who
that was: a token may have been revoked since.
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

    If the server is mounted in another, that one is called, since its guard decides; names are as they are
    there. To be used in the event loop that serves. `options` are those of `fastrpc.Client`.
    """
    served: Any = _served(server)
    client = Client(served, **options)
    client._make_transport = lambda: InMemory(served, principal=principal)
    return client


def caller_of(server: Server, principal: str) -> Caller:
    """Return who has a principal now, as the guard knows them. Of a token that is not valid any more neither
    the owner nor the class is what it was."""
    found = _served(server).runtime.caller_of
    return unguarded(principal) if found is None else found(principal)


def tools_of(server: Server, principal: str) -> Collection[str]:
    """Return the names of the tools that exist for a principal, those too that no list shows."""
    return _served(server).runtime.plans_for(principal)


def gates_of(server: Server) -> ApprovalGates | None:
    """Return what asks people for approvals that no call waits for; None where no guard can. To be used in
    the event loop that serves."""
    return _served(server).runtime.gates


def _served(server: Server) -> Server:
    """Return the server that clients are connected to."""
    while server._hosts:
        server = server._hosts[0]
    return server
