"""Creates one server from the targets on the command line, with switches applied.

`serve`, `tools` and `selftest` use it, so that all three see the same tools. Without a target the configured
toolset is served; unless the caller needs the tools at once, it is loaded after ``initialize`` is answered.
`fastrpc.loader` loads a target.

This module finds the settings that toolsets declare: each is a `fastrpc.settings.Setting` at the top of a
module with tools, of a target, or of the module ``_settings`` beside the tools. If a toolset is served by its
name, its settings are declared before its tools are imported; any other target is imported first.
"""

from __future__ import annotations

import sys

from fastrpc.diagnostics import write_line
from fastrpc.errors import DefinitionError, UsageError
from fastrpc.settings import SHIPPED_TOOLSET, declared_in
from fastrpc.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from fastrpc.definitions.tool import Tool
    from fastrpc.server import Server
    from fastrpc.settings import Configuration, Setting


def assemble(
    targets: list[str], settings: Configuration, *, name: str | None = None, later: bool = False
) -> Server:
    """Return one server with the tools of all `targets`, or of the toolset if there are none.

    `later` postpones loading the toolset until the session has begun. Raises `UsageError` for a target that
    does not exist, and for two tools with the same name.
    """
    toolset = settings["FASTRPC_TOOLSET"]
    if not targets and later and settings.origin("FASTRPC_TOOLSET") == "default":
        server = _new_server(name or "fastrpc")
        server.load_tools_later(
            lambda: _load_late(server, toolset, settings), some_allow_tasks=bool(settings["TOOLS"])
        )
    else:
        loaded = [(target, _load(target, toolset, settings)) for target in targets or [toolset]]
        warn_of_settings(settings)
        server = _merge(loaded, toolset, settings, name or name_of(targets))
    if not targets and settings["FASTRPC_DESCRIPTIONS"] == "full":
        from fastrpc.cli._contract import load_companion

        server.instructions = getattr(load_companion(toolset, "_descriptions"), "INSTRUCTIONS", None)
    if name is not None:
        server.name = name
    for limit in ("max_in_flight", "max_batch", "threads"):
        if (most := settings[f"FASTRPC_{limit.upper()}"]) is not None:
            setattr(server, limit, most)
    return server


def _load(target: str, toolset: str, settings: Configuration) -> Any:
    """Return the content of a target. Its settings are declared, the toolset's before its import."""
    from fastrpc.loader import load_target

    if target == toolset:
        declare_toolset(settings, toolset)
    found = load_toolset(target) if target == toolset else load_target(target)
    declare_target(settings, target, _tools_of(found))
    return found


def _load_late(server: Server, toolset: str, settings: Configuration) -> Iterator[Tool]:
    read_toolset_settings(settings, toolset)
    yield from switched_on(load_toolset(toolset), settings)
    _attach(toolset, server)  # the caller adds each tool before it requests the next, so all are added now


def _attach(toolset: str, server: Server) -> None:
    from fastrpc.loader import attach

    if toolset in sys.modules:
        attach(sys.modules[toolset], server)


def load_toolset(name: str) -> list[Tool]:
    """Return the tools of a toolset: an installed package or module, else any other target. Raises
    UsageError.

    Loading a target by its module name adds the working directory to the import path. For an installed
    toolset that must not happen, because a repository may contain a ``json.py``.
    """
    from fastrpc.loader import collect, load_target

    if all(part.isidentifier() for part in name.split(".")):
        try:
            __import__(name)
            return collect(sys.modules[name])
        except ModuleNotFoundError as error:
            if not f"{name}.".startswith(f"{error.name}."):
                raise  # the toolset exists, but one of its imports does not
    return _tools_of(load_target(name))


def _merge(loaded: list[tuple[str, Any]], toolset: str, settings: Configuration, name: str) -> Server:
    """Return the only server that was loaded, or a new one with all tools."""
    server: Server
    if len(loaded) == 1 and _is_server(loaded[0][1]):
        server = loaded[0][1]
        server.load_tools()
    else:
        server = _new_server(name)
        for target, found in loaded:
            tools = _tools_of(found)
            _add_all(server, target, switched_on(tools, settings) if target == toolset else tools)
            _attach(target, server)
        server.load_tools()  # those that an `attach` adds: what is wrong is found before the server serves
    if not settings["TOOLS"]:
        for tool in list(server.tools):
            server.remove_tool(tool.name)
    return server


def switched_on(tools: Iterable[Tool], settings: Configuration) -> list[Tool]:
    """Return the tools of the toolset that are not switched off (tools.md, Switches)."""
    tools = list(tools)
    _warn_of_switches_without_a_tool(tools, settings)
    if not settings["TOOLS"]:
        return []
    return [tool for tool in tools if settings.is_on("TOOL_", tool.name)]


def _warn_of_switches_without_a_tool(tools: list[Tool], settings: Configuration) -> None:
    """Warn of switches that match no tool: if one is misspelled, its user believes that the tool is off."""
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
        write_line(f"fastrpc: warning: {origin}: {key} has no effect: no tool has that name")


def _is_server(found: object) -> bool:
    return bool(getattr(found, "__fastrpc_server__", False))


def _tools_of(found: Any) -> list[Tool]:
    if not _is_server(found):
        return list(found)
    found.load_tools()
    return list(found.tools)


def _new_server(name: str) -> Server:
    from fastrpc.server import Server

    return Server(name, version=__version__)


def name_of(targets: list[str]) -> str:
    """Return the name of a server for one target: ``tools/words.py`` is served as ``words``."""
    if len(targets) != 1:
        return "fastrpc"
    import os

    path, _, _ = targets[0].partition(":")
    return os.path.splitext(os.path.basename(path))[0] or "fastrpc"


def _add_all(server: Server, target: str, tools: Iterable[Tool]) -> None:
    for tool in tools:
        if server.tools.get(tool.name) is not None:
            raise UsageError(f"{target}: the tool {tool.name!r} exists already; names must be different")
        try:
            server.add_tool(tool)
        except DefinitionError as error:
            raise UsageError(f"{target}: {error}") from error


def declare_toolset(settings: Configuration, toolset: str) -> None:
    """Declare the settings of a toolset that is served by its name, without importing its tools.

    A name that is not an importable module is skipped; loading it reports the error. Raises UsageError for a
    setting that is declared with another meaning.
    """
    _declare(settings, toolset, toolset_settings(toolset))


def read_toolset_settings(settings: Configuration, toolset: str) -> None:
    """Declare the settings of the only toolset that is served, and print the warnings. Raises UsageError."""
    declare_toolset(settings, toolset)
    warn_of_settings(settings)


def declare_target(settings: Configuration, target: str, tools: Iterable[Tool]) -> None:
    """Declare the settings of a loaded target, and those of the toolsets to which its tools belong.

    Raises UsageError for a setting that is declared with another meaning.
    """
    found: dict[Setting, None] = {}
    for module in dict.fromkeys((_module_of(target), *(tool.function.__module__ for tool in tools))):
        found |= dict.fromkeys((*settings_of(module.rpartition(".")[0]), *settings_of(module)))
    _declare(settings, target, found)


def warn_of_settings(settings: Configuration) -> None:
    """Print the warnings, including those about unknown keys. Called when all settings are declared.

    Keys of the shipped toolset are always known: a file in the home folder serves all servers of the user.
    """
    if settings.pending:
        from fastrpc.settings import settle

        settle(settings, toolset_settings())
    for warning in settings.new_warnings():
        write_line(f"fastrpc: warning: {warning}")


def toolset_settings(toolset: str = SHIPPED_TOOLSET) -> list[Setting]:
    """Return the settings that a toolset declares, without importing its tools. Raises UsageError."""
    if all(part.isidentifier() for part in toolset.split(".")):
        _import_settings(toolset)
    return settings_of(toolset)


def settings_of(module: str) -> list[Setting]:
    """Return the settings at the top of an imported module and, for a package, in its ``_settings``."""
    package = sys.modules.get(module)
    if package is None:
        return []
    if hasattr(package, "__path__"):
        _import_settings(module)
    beside = sys.modules.get(f"{module}._settings")
    return [*declared_in(package), *(() if beside is None else declared_in(beside))]


def _declare(settings: Configuration, where: str, found: Iterable[Setting]) -> None:
    try:
        settings.declare(found)
    except DefinitionError as error:
        raise UsageError(f"{where}: {error}") from error


def _import_settings(package: str) -> None:
    """Import a package's module ``_settings``, if it has one. Raises UsageError if that fails."""
    name = f"{package}._settings"
    try:
        __import__(name)
    except Exception as error:
        absent = isinstance(error, ModuleNotFoundError) and f"{name}.".startswith(f"{error.name}.")
        if not absent:
            raise UsageError(f"{name}: {type(error).__name__}: {error}") from error


def _module_of(target: str) -> str:
    """Return the module name of a loaded target; "" if it cannot be found."""
    import os

    place = target.rpartition(":")[0] if ":" in target else target
    if place in sys.modules:
        return place
    path, name = os.path.abspath(place), os.path.splitext(os.path.basename(place))[0]
    for each in (name, f"fastrpc_target_{name}"):
        if getattr(sys.modules.get(each), "__file__", None) == path:
            return each
    return ""
