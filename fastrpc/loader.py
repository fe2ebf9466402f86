"""Finds the tools of a module, a package, or a command-line target.

A target is a file, a module, or ``module:attribute``. Loading it executes its code, like an import. A failure
becomes a `UsageError` of one line, with the file and the line. The caller decides what to do with the tools.
"""

from __future__ import annotations

import os
import sys

from fastrpc.definitions.tool import MARK, Tool
from fastrpc.errors import FastrpcError, UsageError
from fastrpc.regular_files import check_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import ModuleType, TracebackType
    from typing import Any


def collect(module: ModuleType) -> list[Tool]:
    """Return the tools that a module defines, in order; for a package, also those of its submodules.

    Submodules named in the package's ``__all__`` come first, in that order, the others by name; names that
    start with ``_`` are skipped. Imported tools belong to the module that defines them. Raises
    DefinitionError.
    """
    tools: dict[int, Tool] = {}
    for value in list(vars(module).values()):
        mark = getattr(value, MARK, None) if not isinstance(value, type) else None
        if isinstance(mark, Tool) and _defined_in(value, module):
            tools.setdefault(id(mark), mark)
    for name in _submodules(module):
        submodule = _import(f"{module.__name__}.{name}")
        for mark in collect(submodule):
            tools.setdefault(id(mark), mark)
    return list(tools.values())


def attach(module: ModuleType, server: Any) -> None:
    """Call the module's ``attach(server)``, if it has one, after its tools have been added to a server."""
    function = getattr(module, "attach", None)
    if function is not None:
        function(server)


def process_state(tools: Iterable[Tool]) -> dict[str, list[str]]:
    """Return what tools keep in their process, the text ``PROCESS_STATE`` of their module or package
    (docs/toolsets.md), each with the names of these tools. Any process may serve the calls of all others."""
    found: dict[str, list[str]] = {}
    for tool in tools:
        name = tool.function.__module__
        while name:
            kept = getattr(sys.modules.get(name), "PROCESS_STATE", None)
            if kept is not None:
                found.setdefault(kept, []).append(tool.name)
                break
            name = name.rpartition(".")[0]
    return found


def _defined_in(function: Any, module: ModuleType) -> bool:
    return not hasattr(function, "__code__") or function.__module__ == module.__name__


def _submodules(package: ModuleType) -> list[str]:
    names = set()
    for folder in getattr(package, "__path__", ()):
        for entry in os.scandir(folder):
            stem, extension = os.path.splitext(entry.name)
            if extension == ".py" or (extension in ("", ".so") and _is_module(entry)):
                names.add(stem.partition(".")[0])
    public = sorted(name for name in names if not name.startswith("_"))
    order = [name for name in getattr(package, "__all__", ()) if name in public]
    return [*order, *(name for name in public if name not in order)]


def _is_module(entry: os.DirEntry[str]) -> bool:
    return entry.name.endswith(".so") or os.path.exists(os.path.join(entry.path, "__init__.py"))


def _import(name: str) -> ModuleType:
    __import__(name)
    return sys.modules[name]


# ---------------------------------------------------------------------------------------- targets


def load_target(target: str) -> Any:
    """Return the Server of a target, or the list of its `Tool` marks.

    For a module, this is the attribute ``app``, else its only Server, else its marked tools. Raises
    `UsageError` for a target that does not exist, cannot be loaded, has no tools, or has several Servers.
    """
    place, attribute = target, ""
    if ":" in target:
        place, _, attribute = target.rpartition(":")
    is_file = place.endswith(".py") or os.sep in place
    module = load_file(place) if is_file else load_module(place)
    return _attribute_of(module, place, attribute) if attribute else _contents_of(module, place)


def load_file(path: str) -> ModuleType:
    """Return the module of a file, loaded unless it has been. Raises UsageError."""
    try:
        check_regular(path)
    except OSError as error:
        what = "no such file" if isinstance(error, FileNotFoundError) else error.strerror
        raise UsageError(f"{path}: {what}; a target is file.py, module or module:attribute") from None
    path = os.path.abspath(path)
    folder, file_name = os.path.split(path)
    if folder not in sys.path:
        sys.path.append(folder)  # last: modules beside the target must not replace others
    name = os.path.splitext(file_name)[0]
    loaded = sys.modules.get(name)
    if loaded is not None:
        if getattr(loaded, "__file__", None) == path:
            return loaded
        name = f"fastrpc_target_{name}"
    from importlib.machinery import SourceFileLoader

    module = type(sys)(name)
    module.__file__ = path
    sys.modules[name] = module
    try:
        SourceFileLoader(name, path).exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        if _ends_program(error):
            raise
        raise _usage_error(file_name, error) from error
    return module


def load_module(name: str) -> ModuleType:
    """Import a module, also from the working directory. Raises UsageError."""
    if not all(part.isidentifier() for part in name.split(".")):
        hint = f"; did you mean {name}.py?" if os.path.isfile(f"{name}.py") else ""
        raise UsageError(
            f"{name or ':'}: not a target; a target is file.py, module or module:attribute{hint}"
        )
    folder = os.getcwd()
    if folder not in sys.path and "" not in sys.path:
        sys.path.append(folder)  # last: a json.py in the working directory must not replace Python's
    try:
        return _import(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(error.name + ".")):
            hint = f"; did you mean {name}.py?" if os.path.isfile(f"{name}.py") else ""
            if name.endswith(".json"):
                hint = f"; 'fastrpc gateway {name}' serves the servers of a configuration"
            raise UsageError(f"{name}: no such module{hint}") from None
        raise _usage_error(name, error) from error
    except BaseException as error:
        if _ends_program(error):
            raise
        raise _usage_error(name, error) from error


def _ends_program(error: BaseException) -> bool:
    """Whether an exception of a target ends this program without a message: Ctrl-C, or `sys.exit()` without a
    failure, for example after an `app.run()` that has served."""
    if isinstance(error, SystemExit):
        return not error.code
    return isinstance(error, KeyboardInterrupt)


def _usage_error(target: str, error: BaseException) -> UsageError:
    """Return the UsageError for a failure during the loading of a target, with the line in its code."""
    lines = str(error).strip().splitlines()
    message = f"{type(error).__name__}: {lines[-1]}" if lines else type(error).__name__
    if isinstance(error, FastrpcError):
        message = str(error)  # fastrpc's messages need no class name
    if isinstance(error, SyntaxError):
        where = f"{error.filename}:{error.lineno}: " if error.filename else ""  # none for a null byte
        return UsageError(f"{target}: {where}{type(error).__name__}: {error.msg}")
    message += _near(error)
    if isinstance(error, ImportError) and "relative import" in message and target.endswith(".py"):
        message += "; a file has no package: write 'import x' for 'from . import x', or serve package.module"
    place = _place_of(error.__traceback__)
    return UsageError(f"{target}: {place}: {message}" if place else f"{target}: {message}")


def _near(error: BaseException) -> str:
    """Return a hint with the name that was probably meant, as Python gives it in tracebacks."""
    from fastrpc.errors import suggestion

    wanted = getattr(error, "name", None)
    known: Iterable[str] = ()
    try:
        if isinstance(error, AttributeError):
            known = dir(error.obj)
        elif isinstance(error, NameError) and error.__traceback__ is not None:
            traceback = error.__traceback__
            while traceback.tb_next is not None:  # to the scope where it was raised
                traceback = traceback.tb_next
            frame = traceback.tb_frame
            known = {*frame.f_locals, *frame.f_globals, *frame.f_builtins}
        elif isinstance(error, ImportError) and str(error).startswith("cannot import name '"):
            known = dir(sys.modules.get(str(wanted)))
            wanted = str(error).split("'")[1]
    except Exception:  # `__dir__` of a user's object may raise anything
        return ""
    public = [name for name in known if not name.startswith("_")]
    return suggestion(wanted, public, 1) if isinstance(wanted, str) else ""


def _place_of(traceback: TracebackType | None) -> str:
    """Return ``file:line`` of the innermost frame outside fastrpc and the import system."""
    own = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
    place = ""
    while traceback is not None:
        file_name = traceback.tb_frame.f_code.co_filename
        if not file_name.startswith(("<frozen ", own)):
            place = f"{file_name}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return place


def _is_server(value: object) -> bool:
    return not isinstance(value, type) and getattr(value, "__fastrpc_server__", False) is True


def _contents_of(module: ModuleType, place: str) -> Any:
    app = getattr(module, "app", None)
    if _is_server(app):
        _warn_of_forgotten(module, app)
        return app
    servers = {id(value): name for name, value in reversed(vars(module).items()) if _is_server(value)}
    if len(servers) == 1:
        server = getattr(module, *servers.values())
        _warn_of_forgotten(module, server)
        return server
    if servers:
        names = ", ".join(sorted(servers.values()))
        raise UsageError(f"{place}: several servers: {names}; choose one with {place}:NAME")
    try:
        tools = collect(module)
    except Exception as error:
        raise _usage_error(place, error) from error
    if not tools:
        raise UsageError(f"{place}: holds no Server and no function marked with @tool")
    return tools


def _warn_of_forgotten(module: ModuleType, server: Any) -> None:
    """Warn of functions that a file marks with ``@tool`` and that its server does not have."""
    marks = [getattr(value, MARK, None) for value in vars(module).values() if not isinstance(value, type)]
    own = [mark for mark in marks if isinstance(mark, Tool) and _defined_in(mark.function, module)]
    served = {id(tool.function) for tool in server.tools} if own else set()
    names = [mark.name for mark in own if id(mark.function) not in served]
    if names:
        from fastrpc import diagnostics

        diagnostics.write(
            "warning",
            f"{', '.join(names)[:200]}: marked with @tool, but not a tool of the server {server.name!r:.80}, "
            "which is served; decorate with a method of the server (@app.tool), or call its add_tool",
        )


def _attribute_of(module: ModuleType, place: str, name: str) -> Any:
    value: Any = module
    for part in name.split("."):
        if not hasattr(value, part):
            raise UsageError(f"{place}: has no attribute {name!r}{_offers(module)}")
        value = getattr(value, part)
    if _is_server(value):
        return value
    mark = getattr(value, MARK, None)
    if isinstance(mark, Tool):
        return [mark]
    raise UsageError(f"{place}: {name!r} is neither a Server nor marked with @tool{_offers(module)}")


def _offers(module: ModuleType) -> str:
    names = [
        name
        for name, value in vars(module).items()
        if _is_server(value) or isinstance(getattr(value, MARK, None), Tool)
    ]
    return f"; there are {', '.join(names[:8])}" if names else ""
