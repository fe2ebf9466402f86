"""The JSON of an interface: which tools it calls, by addresses first, then by the names of the server that
sends it.

The addresses of the names are in its ``_meta.fastmcp.toolNames``, as in FastMCP: a server around this
one finds them there and puts in its own names.
"""

from __future__ import annotations

from fastrpc.compat.apps.addresses import address_of, hash_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

CALL = "toolCall"
"""The kind of an action that calls a tool (prefab-ui: CallTool)."""


def payload_of(interface: Any, app: str | None) -> dict[str, Any]:
    """Return the JSON of a ``PrefabApp``; its own tools have addresses, if it belongs to an `app`.

    Raises ValueError for an action that calls something without a name.
    """
    found: dict[str, Any] = interface.to_json(tool_resolver=_resolver(app))
    names = {action["tool"] for action in _calls(found)}
    addresses = {name: name for name in sorted(names) if hash_in(name) is not None}
    if addresses:
        _set_addresses(found, {**addresses, **addresses_in(found)})
    return found


def _resolver(app: str | None) -> Callable[[Any], Any]:
    def resolve(tool: Any) -> Any:
        from prefab_ui.app import ResolvedTool

        name = tool if isinstance(tool, str) else _name_of(tool)
        if app is not None and hash_in(name) is None:
            name = address_of(app, name)
        return ResolvedTool(name=name)

    return resolve


def _name_of(tool: Any) -> str:
    marked = getattr(getattr(tool, "__fastmcp__", None), "options", {})
    name = marked.get("name") or getattr(tool, "__name__", None)
    if not isinstance(name, str):
        raise ValueError(f"expected a tool's name or function, got {tool!r:.80}")
    return name


def _calls(node: Any) -> Iterator[dict[str, Any]]:
    """Yield the actions that call a tool."""
    if isinstance(node, dict):
        if node.get("action") == CALL and isinstance(node.get("tool"), str):
            yield node
        node = list(node.values())
    if isinstance(node, list):
        for each in node:
            yield from _calls(each)


def addresses_in(payload: Any) -> dict[str, str]:
    """Return the address of each tool's name in the JSON of an interface; {} in any other."""
    for member in ("_meta", "fastmcp", "toolNames"):
        payload = payload.get(member) if isinstance(payload, dict) else None
    return dict(payload) if isinstance(payload, dict) else {}


def _set_addresses(payload: dict[str, Any], addresses: Mapping[str, str]) -> None:
    meta = {**(payload.get("_meta") or {})}
    meta["fastmcp"] = {**(meta.get("fastmcp") or {}), "toolNames": dict(addresses)}
    payload["_meta"] = meta


def rename_tools(payload: dict[str, Any], name_of: Callable[[str], str | None]) -> None:
    """Put a server's own names into the JSON of an interface, in place: `name_of` returns that of a hash, or
    None if the server has no such tool. Then its address stays, or comes back."""
    addresses = addresses_in(payload)
    names = {}
    for name, address in addresses.items():
        found = hash_in(address) or hash_in(f"__{address}")  # without underscores: of FastMCP 4.0 and 4.1
        names[name] = (name_of(found) if found is not None else None) or address
    for action in _calls(payload):
        action["tool"] = names.get(action["tool"], action["tool"])
    _set_addresses(payload, {names[name]: address for name, address in addresses.items()})
