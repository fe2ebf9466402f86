"""The chains of an engine and their nodes, which are asked for receipts and code after a transaction.

A node on this machine is asked only if the engine runs on this machine, any other through the checking proxy.
If the node cannot be asked, or is of another chain, the engine's answer alone decides about a transaction.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from fastrpc.client.urls import is_local_host

from .. import _values
from .._chain.rpc import Node, Nodes, RpcError
from .._errors import CHAIN_NOT_FOUND, EngineError
from .answers import protocol_error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any


class Target:
    """A chain to which a transaction is sent: its id, and its number as text."""

    def __init__(self, id: str, number: str, node: Node | None) -> None:
        self.id = id
        self.number = number
        self._node = node
        self._is_checked = False

    async def node(self) -> Node | None:
        """Its node, if this machine can ask it."""
        if self._node is not None and not self._is_checked:
            self._is_checked = True
            try:
                found = await self._node.number("eth_chainId")
            except (EngineError, RpcError):
                found = -1
            if str(found) != self.number:
                self._node = None
        return self._node


class Targets:
    """The chains in `chains`, the engine's list. `is_local`: the engine runs on this machine."""

    def __init__(self, chains: Callable[[], Awaitable[dict[str, Any]]], *, is_local: bool) -> None:
        self._chains = chains
        self._is_local = is_local
        self._nodes = Nodes()

    async def of(self, given: dict[str, Any]) -> Target:
        """The chain that a request names, or the active one. Raises EngineError(CHAIN_NOT_FOUND)."""
        listed = await self._chains()
        asked = given.get("chain_id") or listed.get("active_chain_id")
        if not asked:
            raise EngineError(CHAIN_NOT_FOUND, "chain_id: no chain is active; name one")
        for chain in listed["chains"]:
            id, number = str(chain.get("id")), str(chain.get("chain_id"))
            if asked in (id, number):
                _check_number(chain.get("chain_id"))
                return Target(id, number, await self._node_at(chain.get("rpc_url")))
        raise _values.unknown_chain(str(asked), [str(each.get("id")) for each in listed["chains"]])

    async def _node_at(self, url: Any) -> Node | None:
        """Return the node at a URL of the engine's list; None if this machine cannot ask it."""
        if not isinstance(url, str):
            return None
        try:
            _values.rpc_url("rpc_url", url)
        except EngineError:
            return None
        is_here = is_local_host(urlsplit(url).hostname or "")
        return await self._nodes.at(url, is_local=is_here and self._is_local)


def _check_number(number: Any) -> None:
    """Raise EngineError for an invalid chain number: the ledger and the names of lock files use it."""
    try:
        _values.chain_number("chain_id", number)
        is_one = isinstance(number, int) and number > 0
    except EngineError:
        is_one = False
    if not is_one:
        raise protocol_error(f"lists a chain with an invalid chain_id: {_values.quoted(number)}")
