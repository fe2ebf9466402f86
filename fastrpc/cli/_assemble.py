"""From targets on the command line to one server, switches applied.

`serve`, `tools` and `selftest` come through here, so that all three see the same tools. Without a
target the configured toolset is served; it is loaded after ``initialize`` is answered unless the
caller wants the tools at once. Finding out what a target holds is `fastrpc.registry`'s business.
"""

from __future__ import annotations

import sys

from fastrpc.cli import say, version
from fastrpc.errors import DefinitionError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from fastrpc.registry import Tool
    from fastrpc.server import Server
    from fastrpc.settings import Configuration


def assemble(
    targets: list[str], settings: Configuration, *, name: str | None = None, later: bool = False
) -> Server:
    """Return one server with the tools of all `targets`, or of the toolset when there are none.

    `later` leaves loading the toolset until the session has begun. Raises `UsageError` for a target
    that does not exist and for two tools of one name.
    """
    from fastrpc.registry import load_target

    toolset = settings["FASTRPC_TOOLSET"]
    if not targets and later and settings.origin("FASTRPC_TOOLSET") == "default":
        server = _new_server(name or "fastrpc")
        server.load_tools_later(lambda: _load_late(server, toolset, settings))
    else:
        loaded = [
            (target, load_toolset(target) if target == toolset else load_target(target))
            for target in targets or [toolset]
        ]
        server = _merge(loaded, toolset, settings, name or _name_of(targets))
    if name is not None:
        server.name = name
    if settings["FASTRPC_MAX_IN_FLIGHT"] is not None:
        server.max_in_flight = settings["FASTRPC_MAX_IN_FLIGHT"]
    if settings["FASTRPC_MAX_BATCH"] is not None:
        server.max_batch = settings["FASTRPC_MAX_BATCH"]
    if settings["FASTRPC_THREADS"] is not None:
        server.threads = settings["FASTRPC_THREADS"]
    return server


def _load_late(server: Server, toolset: str, settings: Configuration) -> Iterator[Tool]:
    yield from switched_on(load_toolset(toolset), settings)
    _attach(toolset, server)  # whoever asked for the next one has added all of them


def _attach(toolset: str, server: Server) -> None:
    from fastrpc.catalogue.targets import attach

    if toolset in sys.modules:
        attach(sys.modules[toolset], server)


def load_toolset(name: str) -> list[Tool]:
    """Return the tools of a toolset: an installed package or module, else a target like any other.

    Loading a target by its module name puts the working directory on the import path. For an
    installed toolset that must not happen: a repository's ``json.py`` is not the user's.
    """
    from fastrpc.registry import collect, load_target

    if all(part.isidentifier() for part in name.split(".")):
        try:
            __import__(name)
            return collect(sys.modules[name])
        except ModuleNotFoundError as error:
            if not f"{name}.".startswith(f"{error.name}."):
                raise  # the toolset is there; what it needs is not
    return _tools_of(load_target(name))


def _merge(loaded: list[tuple[str, Any]], toolset: str, settings: Configuration, name: str) -> Server:
    """Return the one server that was loaded, or a new one with the tools of all."""
    server: Server
    if len(loaded) == 1 and _is_server(loaded[0][1]):
        server = loaded[0][1]
        server.load_tools()
    else:
        server = _new_server(name)
        for target, found in loaded:
            tools = _tools_of(found)
            if target == toolset:
                _add_all(server, target, switched_on(tools, settings))
                _attach(toolset, server)
            else:
                _add_all(server, target, tools)
    if not settings["TOOLS"]:
        for tool in list(server.tools):
            server.remove_tool(tool.name)
    return server


def switched_on(tools: Iterable[Tool], settings: Configuration) -> list[Tool]:
    """Return the tools of the toolset that no switch has turned off (tools.md, Switches)."""
    tools = list(tools)
    _warn_of_switches_without_a_tool(tools, settings)
    if not settings["TOOLS"]:
        return []
    return [tool for tool in tools if settings.is_on("TOOL_", tool.name)]


def _warn_of_switches_without_a_tool(tools: list[Tool], settings: Configuration) -> None:
    """A misspelled switch would leave a tool on that its user believes to be off."""
    from fastrpc.settings import switch

    off = {
        value.setting.name: value.origin
        for value in settings
        if value.value is False and value.setting.name.startswith("TOOL_")
    }
    if not off:
        return
    for tool in tools:
        off.pop(switch("TOOL_", tool.name), None)
    if off:
        from fastrpc.cli._contract import load_contract

        for published in load_contract(settings["FASTRPC_TOOLSET"]):
            off.pop(switch("TOOL_", published), None)
    for key, origin in off.items():
        say(f"fastrpc: warning: {origin}: {key} switches nothing off: no tool has that name")


def _is_server(found: object) -> bool:
    return bool(getattr(found, "__fastrpc_server__", False))


def _tools_of(found: Any) -> list[Tool]:
    if not _is_server(found):
        return list(found)
    found.load_tools()
    return list(found.tools)


def _new_server(name: str) -> Server:
    from fastrpc.server import Server

    return Server(name, version=version())


def _name_of(targets: list[str]) -> str:
    """Return a server's name for one target of plain tools: ``tools/words.py`` serves as ``words``."""
    if len(targets) != 1:
        return "fastrpc"
    import os

    path, _, _ = targets[0].partition(":")
    return os.path.splitext(os.path.basename(path))[0] or "fastrpc"


def _add_all(server: Server, target: str, tools: Iterable[Tool]) -> None:
    for tool in tools:
        if server.tools.get(tool.name) is not None:
            raise UsageError(f"{target}: the tool {tool.name!r} is there already; names must differ")
        try:
            server.add_tool(tool)
        except DefinitionError as error:
            raise UsageError(f"{target}: {error}") from error
