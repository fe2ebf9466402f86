"""What is behind the server of this process: the servers of a gateway with their health and latency, or the
server itself; the tools of each.

Read from what a gateway counts anyway, and from the statistics of ``--stats`` if there are some. The event
loop's thread only collects; what is measured and written is so on the page's thread, of what it shows.
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


class ShownTool:
    """A tool, as its template shows it. `is_callable`: it exists for the visitor."""

    def __init__(self, tool: Tool, is_callable: bool) -> None:
        self.name = tool.name
        self.shown = visible_name(tool.name)
        self.description = tool.description or ""
        self.is_callable = is_callable
        self.schema: dict[str, Any] = tool.signature.input_schema
        self._output = tool.signature.output_schema

    @property
    def schema_text(self) -> str:
        return written(dict(self.schema), 2)

    @property
    def output(self) -> str:
        return "" if self._output is None else written(self._output, 2)


def gateway_of(server: Server) -> Gateway | None:
    """Return the gateway that made a server, None if no gateway did."""
    upstream = server._upstream
    return upstream if isinstance(upstream, Gateway) else None


async def servers(server: Server) -> list[ShownServer]:
    """Return the servers behind a gateway, or the server itself. In the event loop that serves."""
    server.load_tools()
    gateway = gateway_of(server)
    if gateway is None:
        names = [tool.name for tool in server.registries.tools]
        return [ShownServer(OWN, visible_name(server.name), RUNNING, tools=names)]
    shown = {each: _shown_member(each) for each in gateway.members.values()}
    for tool in server.registries.tools:
        owner = gateway.catalogue.owner_of("tool", tool.name)
        if owner in shown:
            shown[owner].tools.append(tool.name)
    return list(shown.values())


def _shown_member(member: GatewayMember) -> ShownServer:
    state, reason = member.state()
    found = ShownServer(member.name, visible_name(member.name), state, visible_name(masked(reason)))
    found.calls, found.errors = member.calls, member.errors
    upstream = member.upstream
    if upstream is not None:
        found.restarts = max(0, upstream.starts - 1)
        found.last_end = visible_name(masked(upstream.last_end or ""))
        found.since = upstream.since
    return found


def measure(found: ShownServer, server: Server) -> None:
    """Add the latency of a server's tools, if there are statistics. On any thread."""
    if server.statistics is not None:
        durations = server.statistics.durations_of(found.tools)
        if durations.count:
            found.p50 = duration_text(durations.quantile(0.5))
            found.p99 = duration_text(durations.quantile(0.99))


async def tools(server: Server, names: list[str], person: str) -> list[tuple[Tool, bool]]:
    """Return tools of a server by their names, those that there are, and of each whether it exists for the
    person. In the event loop that serves."""
    callable_names = server.runtime.plans.tools_of(dashboard_principal(person))
    found = ((name, server.registries.tools.get(name)) for name in names)
    return [(tool, name in callable_names) for name, tool in found if tool is not None]
