"""What is behind the server of this process: the servers of a gateway with their health and latency, or the
server itself; the tools of each.

Read from what a gateway counts anyway, and from the statistics of ``--stats`` if there are some.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from fastrpc.callers import dashboard_principal
from fastrpc.gateway import Gateway
from fastrpc.gateway.member import RUNNING
from fastrpc.guard.approvals.display import visible_name, written
from fastrpc.redaction import masked
from fastrpc.telemetry.statistics import duration_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from fastrpc.definitions.tool import Tool
    from fastrpc.gateway.member import GatewayMember
    from fastrpc.server import Server

OWN = ""
"""The name in URLs of the tools that are not a server's behind."""


@dataclass
class ShownServer:
    """A server, as its template shows it. `name`: "" for the one of this process; `restarts`, `calls` and
    `errors` are None where they are not counted. `p50` and `p99`: texts, "" without statistics or calls."""

    name: str
    shown: str
    state: str
    reason: str = ""
    since: float | None = None
    restarts: int | None = None
    last_end: str = ""
    calls: int | None = None
    errors: int | None = None
    tools: list[str] = field(default_factory=list)
    p50: str = ""
    p99: str = ""


@dataclass
class ShownTool:
    """A tool, as its template shows it. `is_callable`: it exists for the visitor."""

    name: str
    shown: str
    description: str
    effect: str
    is_callable: bool
    schema: Mapping[str, Any]
    output: str = ""

    @property
    def schema_text(self) -> str:
        return written(dict(self.schema), 2)


def gateway_of(server: Server) -> Gateway | None:
    """Return the gateway whose server this is, None for another server."""
    upstream = server._upstream
    return upstream if isinstance(upstream, Gateway) else None


async def servers(server: Server) -> list[ShownServer]:
    """Return the servers behind a gateway, or the server itself. In the event loop that serves."""
    server.load_tools()
    gateway = gateway_of(server)
    if gateway is None:
        names = [tool.name for tool in server.registries.tools]
        own = ShownServer(OWN, visible_name(server.name), RUNNING, tools=names)
        return [_measured(own, server)]
    members = gateway.members.values()
    return [_measured(_shown_member(each, gateway), server) for each in members]


def _shown_member(member: GatewayMember, gateway: Gateway) -> ShownServer:
    state, reason = member.state()
    found = ShownServer(member.name, visible_name(member.name), state, visible_name(masked(reason)))
    found.tools = gateway.catalogue.tools_of(member)
    found.calls, found.errors = member.calls, member.errors
    upstream = member.upstream
    if upstream is not None:
        found.restarts = max(0, upstream.starts - 1)
        found.last_end = visible_name(masked(upstream.last_end or ""))
        found.since = upstream.since
    return found


def _measured(found: ShownServer, server: Server) -> ShownServer:
    if server.statistics is not None:
        durations = server.statistics.durations_of(found.tools)
        if durations.count:
            found.p50 = duration_text(durations.quantile(0.5))
            found.p99 = duration_text(durations.quantile(0.99))
    return found


async def tools(server: Server, names: list[str], person: str) -> list[ShownTool]:
    """Return tools of a server by their names, those that there are. In the event loop that serves."""
    callable_names = server.runtime.plans.tools_of(dashboard_principal(person))
    found = []
    for name in names:
        tool = server.registries.tools.get(name)
        if tool is not None:
            found.append(_shown_tool(tool, tool.name in callable_names))
    return found


def _shown_tool(tool: Tool, is_callable: bool) -> ShownTool:
    signature = tool.signature
    return ShownTool(
        tool.name,
        visible_name(tool.name),
        tool.description or "",
        tool.effect or "",
        is_callable,
        signature.input_schema,
        "" if signature.output_schema is None else written(signature.output_schema, 2),
    )
