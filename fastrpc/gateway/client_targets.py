"""The target of a client for a configuration: its only server, or an in-memory gateway of several.

    target, options = resolved(".mcp.json", {})

Reads one file; starts nothing.
"""

from __future__ import annotations

import os

from fastrpc.client.config import ServerEntry, entry_of, read_servers, servers_in
from fastrpc.errors import DefinitionError, InvalidConfig, Reworded
from fastrpc.gateway.member import proxy_with, warn_of_unmatched
from fastrpc.gateway.names import STYLES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from fastrpc.client.options import ClientOptions
    from fastrpc.server import Server


def resolved(config: Any, options: ClientOptions, names: str = "prefix") -> tuple[Any, ClientOptions]:
    """Return the target and the options of a client for the path of a file with servers, or its content.

    A single enabled server is the target itself, with the options of its entry; a proxy if the entry
    restricts the tools. Several become one in-memory server whose tools and prompts are prefixed with the
    servers' names, by the style `names` of `fastrpc.gateway.names.STYLES`; options of a transport do not
    apply then. Raises InvalidConfig, and ValueError for other `names`.
    """
    if names not in STYLES:
        raise ValueError(f"names: expected one of {', '.join(STYLES)}, got {names!r:.80}")
    if isinstance(config, dict):
        source, servers = "mcpServers", _servers_of(config)
    else:
        source = os.fspath(config)
        servers = read_servers(source)
    used = {name: raw for name, raw in servers.items() if not _is_off(raw)}
    if not used:
        raise InvalidConfig(f"{source}: expected at least one server")
    if len(used) == 1:
        return _only(*next(iter(used.items())), options)
    from fastrpc.gateway import START_SECONDS, gateway_of

    seconds = options.get("start_seconds", START_SECONDS)
    return gateway_of(used, name="fastrpc", style=names, start_seconds=seconds)[0], options


def _servers_of(config: dict[str, Any]) -> dict[str, Any]:
    """Return the servers of a dict, which may be the value of ``mcpServers`` itself."""
    try:
        return servers_in(config)
    except InvalidConfig:
        if not config or not all(isinstance(raw, dict) for raw in config.values()):
            raise
        return config


def _is_off(raw: Any) -> bool:
    try:
        return not entry_of(raw).enabled
    except InvalidConfig:
        return False


def _only(name: str, raw: Any, options: ClientOptions) -> tuple[Any, ClientOptions]:
    with Reworded(InvalidConfig, InvalidConfig, f"{name}: "):
        entry = entry_of(raw).expanded()
        both: ClientOptions = {**entry.options, **options}
        if not entry.is_restricted:
            return entry.target, both
        return restricted(name, entry, both)  # type: ignore[return-value]


def restricted(name: str, entry: ServerEntry, options: Mapping[str, Any]) -> tuple[Server, dict[str, Any]]:
    """Return a proxy with the tools that an entry allows, and the options of its client. The standard error
    of a command is always forwarded. Raises InvalidConfig."""
    from fastrpc.client.http.address import Remote
    from fastrpc.proxy.targets import COMMAND_OPTIONS
    from fastrpc.version import __version__

    rest: dict[str, Any] = {**options}
    about = rest.get("client_info") or {}
    given = {"name": about.get("name", "fastrpc"), "version": about.get("version", __version__)}
    if "start_seconds" in rest:
        given["start_seconds"] = rest["start_seconds"]
    if not entry.url:
        rest.pop("stderr", None)
    known = Remote.OPTIONS if entry.url else COMMAND_OPTIONS
    taken = {option: rest.pop(option) for option in known if option in rest}
    try:
        server = proxy_with(entry, taken, **given)
    except DefinitionError as error:
        raise InvalidConfig(str(error).removeprefix("proxy: ")) from None
    server._upstream.shows_itself = True
    warn_of_unmatched(name, entry, server)
    server.filter_lists(lambda caller, item: item.kind != "tool" or entry.offers(item.name), enforced=True)
    return server, rest
