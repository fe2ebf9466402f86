"""Lists the public names of an installed original, for tests/fixtures/compat/names: standard library alone.

    python tests/support/compat_names_of.py fastmcp > tests/fixtures/compat/names/fastmcp.txt

Run by the interpreter that has the original. Prints its version, then one line for each module with the names
that it defines (of a package also what it offers from below), and one for each class that servers and clients
use, with its members, and with the options of its calls. A name is listed at the shortest module that offers
it.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import sys
from collections.abc import Iterator
from importlib.metadata import version

SKIPPED = ("cli", "contrib", "os", "types", "__main__")
"""Parts that no server imports, and the types, which stay the original's."""

CLASSES = {
    "fastmcp": ("fastmcp:FastMCP", "fastmcp:Context", "fastmcp:Client"),
    "mcp": (
        "mcp.server.fastmcp:FastMCP",
        "mcp.server.fastmcp:Context",
        "mcp.server.mcpserver:MCPServer",
        "mcp.server.mcpserver:Context",
        "mcp.server.lowlevel:Server",
        "mcp.client.session:ClientSession",
        "mcp.client.client:Client",
    ),
}


def modules_of(folder: str, package: str) -> Iterator[tuple[str, str]]:
    """Yield the public modules of a package, with their files."""
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(each for each in folders if not each.startswith("_") and each not in SKIPPED)
        parent = package + place[len(folder) :].replace(os.sep, ".")
        for name in sorted(names):
            stem, ending = os.path.splitext(name)
            if stem == "__init__" and ending == ".py":
                yield parent, os.path.join(place, name)
            elif ending == ".py" and not stem.startswith("_") and stem not in SKIPPED:
                yield f"{parent}.{stem}", os.path.join(place, name)


def names_in(path: str) -> set[str]:
    """Return the public names that a module defines, or that its ``__all__`` lists."""
    with open(path, encoding="utf-8") as file:
        tree = ast.parse(file.read())
    found: set[str] = set()
    for node in tree.body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            found.add(node.name)
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            found.update(ast.literal_eval(node.value) if isinstance(node.value, ast.List) else ())
        elif isinstance(node, (ast.Assign, ast.AnnAssign)) and "TypeVar" not in ast.unparse(node):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            is_type = isinstance(target, ast.Name) and target.id[0].isupper() and not target.id.isupper()
            found.update([ast.unparse(target)] if is_type else [])
    return {name for name in found if not name.startswith("_")}


def members_of(cls: type) -> list[str]:
    foreign = {name for base in cls.__mro__ if base.__module__.startswith("pydantic") for name in vars(base)}
    return sorted(name for name in dir(cls) if not name.startswith("_") and name not in foreign)


def options_of(cls: type, name: str) -> list[str]:
    call = getattr(cls, name, None)
    if not inspect.isroutine(call):
        return []
    parameters = inspect.signature(call).parameters.values()
    return [each.name for each in parameters if each.name != "self" and each.kind not in (2, 4)]


def main(package: str) -> None:
    import_module = importlib.import_module
    folder = os.path.dirname(str(import_module(package).__file__))
    home: dict[str, str] = {}
    for module, path in modules_of(folder, package):
        for name in names_in(path):
            if name not in home or (module.count("."), module) < (home[name].count("."), home[name]):
                home[name] = module
    print(f"version {version(package)}")
    for module in sorted(set(home.values())):
        print(f"module {module}: {' '.join(sorted(name for name in home if home[name] == module))}")
    for place in CLASSES[package]:
        module, _, name = place.partition(":")
        try:
            cls = getattr(import_module(module), name)
        except ImportError:
            continue
        print(f"class {place}: {' '.join(members_of(cls))}")
        for call in ("__init__", *members_of(cls)):
            if options_of(cls, call):
                print(f"call {place}.{call}: {' '.join(options_of(cls, call))}")


if __name__ == "__main__":
    main(sys.argv[1])
