"""What a file uses of a server or a Context that fastrpc does not have: options and methods, found by
reading.

        missing_uses(ast.parse(text))

Knows the servers that are made from an imported class (``mcp = FastMCP("x")``, ``self.mcp = …``), and the
parameters that are annotated with an imported Context. What is missing, and the alternatives, are in the
tables of `fastrpc.compat.server` and `fastrpc.compat.context`, which raise NotOffered for it when the file
runs. What cannot be known by reading is left to that. The file is not run.
"""

from __future__ import annotations

import ast

from fastrpc.compat import context, server
from fastrpc.compat.names.packages import package_of
from fastrpc.swap import modules
from fastrpc.swap.missing_names import MEMBERS, OPTIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

SERVERS = ("FastMCP", "MCPServer")
DECLARING = ("tool", "resource", "prompt", "add_tool", "add_resource", "add_prompt")
"""Methods of a server whose options may be missing."""


class Missing:
    """Something that fastrpc does not have: the line of the file, the name, and what to write instead.

    `is_optional`: the file goes on without it, because the import is in a ``try`` for ImportError.
    """

    __slots__ = ("is_optional", "line", "name", "text")

    def __init__(self, line: int, name: str, text: str, is_optional: bool = False) -> None:
        self.line = line
        self.name = name
        self.text = text
        self.is_optional = is_optional


def missing_uses(tree: ast.Module) -> Iterator[Missing]:
    """Yield the options and members that are used and missing."""
    classes = dict(_imported(tree, SERVERS))
    contexts = dict(_imported(tree, ("Context",)))
    servers = set(_servers(tree, classes))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield from _options_of(node, classes, servers)
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) in servers:
            text = server._ALTERNATIVES.get(node.attr) or MEMBERS.get(node.attr)
            if text and not hasattr(server.FastMCP, node.attr):
                yield Missing(node.lineno, f"{ast.unparse(node.value)}.{node.attr}", text)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from _members_of_contexts(node, contexts)


def _imported(tree: ast.Module, wanted: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield the expressions that are classes of an original, each with the class's name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            if modules.home_of(node.module) or node.module in modules.SERVED_BY.values():
                yield from (
                    (alias.asname or alias.name, alias.name) for alias in node.names if alias.name in wanted
                )
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if modules.home_of(alias.name) is not None:
                    places = [alias.asname] if alias.asname else [alias.name, package_of(alias.name)]
                    yield from ((f"{place}.{name}", name) for place in places for name in wanted)


def _servers(tree: ast.Module, classes: dict[str, str]) -> Iterator[str]:
    """Yield the expressions that servers are assigned to: ``mcp``, ``self.mcp``."""
    for node in ast.walk(tree):
        if not isinstance(node, (ast.Assign, ast.AnnAssign)) or not isinstance(node.value, ast.Call):
            continue
        if ast.unparse(node.value.func) in classes:
            yield from map(ast.unparse, node.targets if isinstance(node, ast.Assign) else [node.target])


def _options_of(node: ast.Call, classes: dict[str, str], servers: set[str]) -> Iterator[Missing]:
    called = ast.unparse(node.func)
    owner, _, method = called.rpartition(".")
    if called in classes:
        table, shown = {**OPTIONS, **server._SERVER_OPTIONS}, classes[called]
    elif owner in servers and method in DECLARING:
        table, shown = server._TOOL_OPTIONS, method
    else:
        return
    for keyword in node.keywords:
        is_none = isinstance(keyword.value, ast.Constant) and keyword.value.value is None
        if keyword.arg in table and not is_none:
            yield Missing(keyword.value.lineno, f"{shown}({keyword.arg}=)", table[keyword.arg])


def _members_of_contexts(
    node: ast.FunctionDef | ast.AsyncFunctionDef, contexts: dict[str, str]
) -> Iterator[Missing]:
    parameters = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    names = {
        each.arg
        for each in parameters
        if each.annotation is not None
        and any(
            ast.unparse(part) in contexts for part in ast.walk(each.annotation) if isinstance(part, ast.expr)
        )
    }
    for inner in ast.walk(node):
        if not isinstance(inner, ast.Attribute) or ast.unparse(inner.value) not in names:
            continue
        if inner.attr in context._ALTERNATIVES and not hasattr(context.Context, inner.attr):
            yield Missing(inner.lineno, f"Context.{inner.attr}", context._ALTERNATIVES[inner.attr])
