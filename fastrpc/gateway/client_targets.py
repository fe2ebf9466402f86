"""What a client connects to for a configuration: its only server, or a gateway of several, in memory.

    target, options = resolved(".mcp.json", {})

Reads one file; starts nothing.
"""

from __future__ import annotations

import os

from fastrpc.client.config import entry_of, read_servers, servers_in
from fastrpc.errors import InvalidConfig
from fastrpc.gateway.names import STYLES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc.client.options import ClientOptions


def resolved(config: Any, options: ClientOptions, names: str = "prefix") -> tuple[Any, ClientOptions]:
    """Return the target and the options of a client for the path of a file with servers, or its content.

    One server is the target itself, with what its entry says and the options of its kind. Several are one
    server in memory, of which the tools and prompts have the servers' names before theirs; there is no option
    of a kind then. `names`: a key of `fastrpc.gateway.names.STYLES`. Servers that are switched off do not
    count. Raises InvalidConfig, and ValueError for other `names`.
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
    try:
        entry = entry_of(raw).expanded()
    except InvalidConfig as error:
        raise InvalidConfig(f"{name}: {error}") from None
    if entry.url:
        return entry.url, {**entry.url_options, **options}
    own: ClientOptions = {"cwd": entry.cwd, "env": entry.env}
    return [entry.command, *entry.args], {**own, **options}
