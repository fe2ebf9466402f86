"""Rewrites the imports of a file that was written for FastMCP or the official SDK: `fastrpc swap`.

``rewrite(source)`` takes the bytes of a file and returns them with its imports changed, and what fastrpc
has not. Only the text of import statements changes; encoding, line ends and everything else stay byte for
byte. A statement whose names come from one module afterwards keeps its form; one that must be split keeps
its comments. The modules are found by `fastrpc.swap.modules`; the file is parsed, not run.
"""

from __future__ import annotations

import ast
import re
from io import BytesIO
from tokenize import detect_encoding

from fastrpc.compat.names.packages import package_of
from fastrpc.swap import modules
from fastrpc.swap.usage import Missing, missing_uses

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    Edit = tuple[int, int, str]

LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|$)")
MODULE = re.compile(r"from(?:\s|\\\r?\n)+([\w.]+)")


class Rewritten:
    """A rewritten file: its `source`, and what is `missing`."""

    __slots__ = ("missing", "source")

    def __init__(self, source: bytes, missing: list[Missing]) -> None:
        self.source = source
        self.missing = missing


def rewrite(source: bytes) -> Rewritten:
    """Return a file with its imports rewritten. Raises SyntaxError, and ValueError for a file that cannot be
    decoded."""
    if b"mcp" not in source:
        return Rewritten(source, [])
    encoding = detect_encoding(BytesIO(source.replace(b"\r", b"\n")).readline)[0]
    text = source.decode(encoding)
    file = _File(text)
    edits = sorted(file.edits)
    for start, end, replacement in reversed(edits):
        text = text[:start] + replacement + text[end:]
    missing = sorted(file.missing, key=lambda each: each.line)
    return Rewritten(text.encode(encoding) if edits else source, missing)


class _File:
    """A parsed file: the edits of its text, and what is missing."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines = LINE.findall(text)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))
        self._newline = next((end for end in ("\r\n", "\n", "\r") if end in text), "\n")
        self.edits: list[Edit] = []
        self.missing: list[Missing] = []
        tree = ast.parse(text)
        guarded = dict(_guarded(tree))
        found = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
        plain = [
            alias.name
            for node in found
            if isinstance(node, ast.Import)
            for alias in node.names
            if alias.asname is None
        ]
        self._served_plainly = {package_of(name) for name in plain if modules.home_of(name) is not None}
        for node in found:
            kind = guarded.get(node, "")
            if isinstance(node, ast.Import):
                self._import(node, kind)
            elif node.level == 0 and node.module and modules.home_of(node.module) is not None:
                self._import_from(node, node.module, kind)
        self._attributes(tree)
        self.missing += missing_uses(tree)

    # --- positions ------------------------------------------------------------------------------------

    def _at(self, line: int, column: int) -> int:
        """Return the index of a position of `ast`: a line, and a column in bytes of UTF-8."""
        before = self._lines[line - 1].encode("utf-8")[:column].decode("utf-8")
        return self._starts[line - 1] + len(before)

    def _span(self, node: ast.stmt | ast.alias) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._at(node.lineno, node.col_offset), self._at(node.end_lineno, node.end_col_offset)

    # --- import x ---------------------------------------------------------------------------------------

    def _import(self, node: ast.Import, kind: str) -> None:
        for alias in node.names:
            package = package_of(alias.name)
            home = modules.home_of(alias.name)
            if home is None and alias.asname is None and package in self._served_plainly:
                home = modules.SERVED_BY[package]  # the name is bound to one module, which has the types
            if home is None:
                continue
            if modules.home_of(alias.name) is not None and not modules.is_known(alias.name):
                parent, _, last = alias.name.rpartition(".")
                self._add_missing(node.lineno, parent, last, kind)
            self.edits.append((*self._span(alias), f"{home} as {alias.asname or package}"))

    def _attributes(self, tree: ast.Module) -> None:
        """Find what is used by the name of a whole package and is missing: ``fastmcp.Something``."""
        bound = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    name = alias.asname or package_of(alias.name)
                    if modules.home_of(alias.name) is not None:
                        bound[name] = alias.name if alias.asname else package_of(alias.name)
        inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and id(node) not in inner:
                root, names = _chain(node)
                if root in bound:
                    self._check_chain(node.lineno, bound[root], names)

    def _check_chain(self, line: int, module: str, names: list[str]) -> None:
        for name in names:
            below = f"{module}.{name}"
            if modules.is_known(below) and below not in modules.OBJECTS:
                module = below
                continue
            found = modules.find(module, name)
            if found.missing is not None:
                self._add_missing(line, module, name, "")
            elif found.is_original and module == "mcp" and found.member:
                text = f"write {found.module}.{found.member}, and import {found.module}"
                self.missing.append(Missing(line, f"mcp.{name}", text))
            return

    # --- from x import y ----------------------------------------------------------------------------------

    def _import_from(self, node: ast.ImportFrom, module: str, kind: str) -> None:
        if node.names[0].name == "*":
            self._import_star(node, module)
            return
        groups: dict[str, list[tuple[ast.alias, str]]] = {}
        for alias in node.names:
            source, name = self._source_of(node, module, alias, kind)
            groups.setdefault(source, []).append((alias, name))
        if len(groups) == 1:
            (source, entries), *_ = groups.items()
            if source == module:
                return
            if all(name == _written(alias) for alias, name in entries) and self._replace_module(
                node, module, source
            ):
                return
        self._replace_statement(node, groups)

    def _source_of(self, node: ast.ImportFrom, module: str, alias: ast.alias, kind: str) -> tuple[str, str]:
        """Return the module that a name is to be imported from, and what is written for it after import."""
        found = modules.find(module, alias.name)
        if found.missing is not None:
            if kind == "types":
                return module, _written(alias)
            self._add_missing(node.lineno, module, alias.name, kind, alias.lineno)
        if found.is_original and (module == "mcp" or not found.member):
            return module, _written(alias)
        if not found.member:
            package, _, name = found.module.rpartition(".")
            return package, _as(name, alias.asname or alias.name)
        if found.member != alias.name:
            return found.module, _as(found.member, alias.asname or alias.name)
        return found.module, _written(alias)

    def _import_star(self, node: ast.ImportFrom, module: str) -> None:
        if module == "mcp":
            return
        by_module: dict[str, list[str]] = {}
        for name in modules.star_names(module):
            by_module.setdefault(modules.find(module, name).module, []).append(name)
        if module in modules.STARS:
            lines = [f"from {source} import {', '.join(names)}" for source, names in by_module.items()]
        else:
            lines = [f"from {modules.home_of(module)} import *"]
        self.edits.append((*self._span(node), self._joined(node, lines)))

    def _replace_module(self, node: ast.ImportFrom, module: str, source: str) -> bool:
        """Replace only the module's name. Return False if it is not written in one piece."""
        start, end = self._span(node)
        match = MODULE.match(self._text, start, end)
        if match is None or match[1] != module:
            return False
        self.edits.append((*match.span(1), source))
        return True

    def _replace_statement(
        self, node: ast.ImportFrom, groups: dict[str, list[tuple[ast.alias, str]]]
    ) -> None:
        head, before, after, last = self._comments(node)
        indent = re.match(r"\s*", self._lines[node.lineno - 1])
        inner = f"{self._newline}{indent[0] if indent else ''}"
        written = []
        for source, entries in groups.items():
            commented = any(before[alias] or after[alias] for alias, _ in entries)
            if not commented and not head and (len(entries) == 1 or node.lineno == node.end_lineno):
                written.append(f"from {source} import {', '.join(name for _, name in entries)}")
                continue
            text = f"from {source} import ({head}"
            head = ""
            for alias, name in entries:
                text += "".join(f"{inner}    {comment}" for comment in before[alias])
                text += f"{inner}    {name},{after[alias]}"
            written.append(f"{text}{inner})")
        if last:
            *written, final = written
            closing = f"{inner})"
            body = final.removesuffix(closing) if final.endswith(closing) else self._opened(final, inner)
            written.append(body + "".join(f"{inner}    {comment}" for comment in last) + closing)
        self.edits.append((*self._span(node), self._joined(node, written)))

    def _opened(self, statement: str, inner: str) -> str:
        """Return a statement of one line, with its names in open brackets."""
        module, names = statement.split(" import ", 1)
        return f"{module} import (" + "".join(f"{inner}    {name}," for name in names.split(", "))

    def _comments(
        self, node: ast.ImportFrom
    ) -> tuple[str, dict[ast.alias, list[str]], dict[ast.alias, str], list[str]]:
        """Return the comments of a statement: after its bracket, above each name, after each name, and
        those above the closing bracket."""
        start, end = self._span(node)
        spans = [self._span(alias) for alias in node.names]
        first = self._text[start : spans[0][0]].partition("(")[2]
        head, above = _split_comments(first)
        before: dict[ast.alias, list[str]] = {}
        after: dict[ast.alias, str] = {}
        following = [*spans[1:], (end, end)]
        for alias, span, next_span in zip(node.names, spans, following, strict=True):
            before[alias] = above
            after[alias], above = _split_comments(self._text[span[1] : next_span[0]])
        return head, before, after, above

    def _joined(self, node: ast.stmt, statements: list[str]) -> str:
        """Return statements in the place of one, on separate lines if it has one."""
        start, end = self._span(node)
        line_start = self._starts[node.lineno - 1]
        assert node.end_lineno is not None
        rest = self._text[end : self._starts[node.end_lineno]].strip()
        indent = self._text[line_start:start]
        if indent.strip() or rest.startswith(";"):
            return "; ".join(statements)
        return f"{self._newline}{indent}".join(statements)

    def _add_missing(self, line: int, module: str, name: str, kind: str, at: int | None = None) -> None:
        if kind != "types":
            text = modules.find(module, name).missing or ""
            self.missing.append(Missing(at or line, f"{module}.{name}", text, kind == "try"))


def _guarded(tree: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """Yield the nodes that run only under a condition: ``types`` for TYPE_CHECKING, ``try`` for imports that
    may fail."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from _all_within(node.body, "types")
        elif isinstance(node, ast.Try) and any(map(_catches_import_errors, node.handlers)):
            yield from _all_within(node.body, "try")


def _all_within(statements: Iterable[ast.stmt], kind: str) -> Iterator[tuple[ast.AST, str]]:
    for statement in statements:
        for node in ast.walk(statement):
            yield node, kind


def _catches_import_errors(handler: ast.ExceptHandler) -> bool:
    caught = "" if handler.type is None else ast.unparse(handler.type)
    return not caught or re.search(r"\b(ImportError|ModuleNotFoundError|Exception)\b", caught) is not None


def _chain(node: ast.Attribute) -> tuple[str, list[str]]:
    """Return the name that a chain of attributes begins with ("" for anything else), and the attributes."""
    names = []
    inner: ast.expr = node
    while isinstance(inner, ast.Attribute):
        names.append(inner.attr)
        inner = inner.value
    return inner.id if isinstance(inner, ast.Name) else "", names[::-1]


def _written(alias: ast.alias) -> str:
    return alias.name if alias.asname is None else f"{alias.name} as {alias.asname}"


def _as(name: str, bound: str) -> str:
    return name if name == bound else f"{name} as {bound}"


def _split_comments(text: str) -> tuple[str, list[str]]:
    """Return the comment on the first line of a text between two names, with the space before it, and those
    on further lines."""
    first, *further = re.split(r"\r\n|\r|\n", text)
    same = f"  {first[first.index('#') :].rstrip()}" if "#" in first else ""
    return same, [line.strip() for line in further if line.strip().startswith("#")]
