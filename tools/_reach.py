"""What a call may fetch: everything, or only public addresses and chosen networks.

A caller over standard input and output runs the server and may reach what the server reaches. Callers over
HTTP are other people. The addresses that they name, and those that the pages load, must not be on this
machine or its network. The setting FASTRPC_REACH changes this. The rule itself is in `fastrpc.egress_proxy`;
this module looks up no name.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from fastrpc import ToolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc import Context

SETTING = "FASTRPC_REACH"


class Reach(NamedTuple):
    """What a call may reach, and for whom."""

    networks: tuple[str, ...] | None = None
    """The networks besides the public addresses; None: no restriction."""
    others: bool = False
    """Whether other people than the server's user choose the pages."""


def of(ctx: Context | None) -> Reach:
    """Return what a call may reach. Raises ToolError for an invalid setting."""
    networks, is_over_http = _networks(), _is_over_http(ctx)
    if networks is None:
        return Reach(() if is_over_http else None, is_over_http)
    if networks == ("all",):
        return Reach(None, is_over_http)
    return Reach(networks, True)


def _networks() -> tuple[str, ...] | None:
    """Return the setting's networks, without `public`; None if it is not set."""
    parts = tuple(part for part in map(str.strip, os.environ.get(SETTING, "").lower().split(",")) if part)
    if not parts or parts == ("all",):
        return parts or None
    networks = tuple(part for part in parts if part != "public")
    for network in networks:
        _check(network)
    return networks


def _is_over_http(ctx: Context | None) -> bool:
    server = None if ctx is None else ctx.server
    return server is not None and server.over_http


def _check(network: str) -> None:
    """Raise ToolError for text that is not a network, so that nothing is fetched rather than everything."""
    from ipaddress import ip_network

    try:
        ip_network(network)
    except ValueError:
        raise ToolError(
            f"{SETTING}: expected public, all, or networks such as 10.1.0.0/16, got {network[:40]!r}."
        ) from None
