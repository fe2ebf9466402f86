"""A server behind a gateway: the entry of a configuration, and the proxy that is made from it.

An entry that cannot be used (no command, an unset variable) becomes a member with a `problem` and without a
proxy. This module starts nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from fastrpc import diagnostics
from fastrpc.client.config import ServerEntry, entry_of
from fastrpc.errors import DefinitionError, InvalidConfig

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from fastrpc.definitions.registry import Registries
    from fastrpc.proxy import UpstreamServer
    from fastrpc.server import Server

CLIENT_NAME = "fastrpc gateway"
"""The client's name that the servers receive."""

RUNNING = "running"
STARTING = "starting"
NOT_STARTED = "not started"
FAILED = "failed"
ENDED = "ended"
INVALID = "invalid"
DISABLED = "disabled"
DENIED = "denied"


@dataclass(eq=False, repr=False)
class GatewayMember:
    """A server behind a gateway. `entry`: as configured; `prefix`: of the names of its tools and prompts.
    `server`: its proxy, None if it is not used: then `unused` is the state, and `problem` the reason."""

    name: str
    prefix: str
    entry: Any
    server: Server | None = None
    unused: str = ""
    problem: str = ""
    offers: Callable[[str], bool] = lambda tool: True
    """Whether the configuration allows a tool."""
    failures: int = 0
    """Failed attempts to start it since the last successful one."""
    calls: int = 0
    errors: int = 0

    @property
    def registries(self) -> Registries | None:
        return None if self.server is None else self.server.registries

    @property
    def upstream(self) -> UpstreamServer | None:
        """The upstream server of the proxy."""
        return None if self.server is None else self.server._upstream

    @property
    def is_untried(self) -> bool:
        """Whether its features are unknown and no attempt to start it has failed."""
        upstream = self.upstream
        return upstream is not None and not upstream.features.is_listed and upstream.failure is None

    @property
    def failure(self) -> str:
        """Why it cannot be used now; "" if it may be tried."""
        upstream = self.upstream
        if upstream is None:
            return self.problem
        return upstream.reason if upstream.known and not upstream.features.is_listed else ""

    def state(self) -> tuple[str, str]:
        """Return the state, and the reason for it or "". Callable on any thread."""
        upstream = self.upstream
        if upstream is None:
            return self.unused, self.problem
        if upstream.is_connected:
            return RUNNING, ""
        if upstream.is_starting:
            return STARTING, ""
        if upstream.failure is not None:
            return FAILED, upstream.reason
        return (NOT_STARTED, "") if upstream.last_end is None else (ENDED, upstream.last_end)

    def watch(self, changed: Callable[[str], object]) -> None:
        """Call a function when the features of the server change."""
        for registry in self.registries or ():
            registry.watchers.append(changed)


def member_of(
    name: str, prefix: str, raw: Any, start_seconds: float, folder: str | None, version: str
) -> GatewayMember:
    """Return the member for an entry in the form of a configuration. `folder`: the working directory of a
    command whose entry has no ``cwd``; `version`: the client's version that the server receives."""
    try:
        entry = entry_of(raw)
        if not entry.enabled:
            return GatewayMember(name, prefix, raw, None, DISABLED, "the configuration switches it off")
        server = _proxy_of(name, entry.expanded(), start_seconds, folder, version)
    except (InvalidConfig, DefinitionError) as error:
        return GatewayMember(name, prefix, raw, None, INVALID, str(error).removeprefix("proxy: "))
    warn_of_unmatched(name, entry, server)
    return GatewayMember(name, prefix, raw, server, offers=entry.offers)


def warn_of_unmatched(name: str, entry: ServerEntry, server: Server) -> None:
    """Log, once the tools of a server are known, which globs of its entry match none of them."""
    if not entry.is_restricted:
        return
    log = diagnostics.Once("warning")

    def look(kind: str) -> None:
        tools = [tool.name for tool in server.registries.tools]
        for glob in entry.unmatched(tools) if tools else ():
            log.write(f"{name}: its entry names the tool {glob:.200}, which it does not have")

    server.registries.tools.watchers.append(look)


def _proxy_of(
    name: str, entry: ServerEntry, start_seconds: float, folder: str | None, version: str
) -> Server:
    """Return a proxy of the server of an expanded entry. Raises DefinitionError."""
    options: dict[str, Any] = {**entry.options}
    if not entry.url:
        options["cwd"] = entry.cwd or folder
    server = proxy_with(entry, options, name=CLIENT_NAME, version=version, start_seconds=start_seconds)
    server._upstream.target.shown = name
    return server


def proxy_with(entry: ServerEntry, options: Mapping[str, Any], **about: Any) -> Server:
    """Return a proxy of the server of an entry, with these options of its target. Raises DefinitionError."""
    from fastrpc.processes import environment
    from fastrpc.server import Server

    if entry.url:
        return Server.proxy(entry.url, **options, **about)
    command = [entry.command, *entry.args]
    return Server.proxy(command, cwd=options["cwd"], env=environment(options["env"]), **about)
