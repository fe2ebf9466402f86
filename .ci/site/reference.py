"""The pages of the reference: every public name with its docstring, parameters, types, defaults and errors.

`public_names` finds them. A module has a page; a class with many methods has one of its own. A name in
backquotes is a link where the reference has that name; the exceptions that a docstring says are raised are
listed below it, too.
"""

from __future__ import annotations

import builtins
import posixpath
import re
from collections.abc import Iterator, Sequence

import griffe
from public_names import (
    Entry,
    attributes_of,
    constructor_of,
    described,
    entries,
    functions_of,
    module_named,
    modules,
    parameters_of,
    public,
)

MOST_SHOWN = 12
"""How many parameters the line above a docstring shows; the table below it has all."""
ITEM = re.compile(r"\s*([*-]|\d+\.) ")


def words_of(found: griffe.Object) -> str:
    return found.docstring.value if found.docstring else ""


# ---------------------------------------------------------------------------------------- docstrings


def way_to(target: str, page: str) -> str:
    return posixpath.relpath(target, posixpath.dirname(page))


def link_to(entry: Entry, page: str, label: str) -> str:
    first = described()[entry.definition.path]
    return f"[{label}]({way_to(first.page, page)}#{first.path})"


def quoted(name: str, page: str) -> str:
    """Return a name as code, as a link if it has an entry: by its path, in this module, or in `fastrpc`."""
    bare = name.removesuffix("()")
    module = page.split("/")[1].removesuffix(".md")
    for path in (bare, f"{module}.{bare}", f"fastrpc.{bare}"):
        if path in entries():
            return link_to(entries()[path], page, f"`{name}`")
    return f"`{name}`"


def in_markdown(docstring: str, page: str) -> str:
    """Return a docstring as Markdown: code in one pair of backquotes, links, lists behind an empty line."""
    lines = [""]
    for line in docstring.splitlines():
        if (
            ITEM.match(line)
            and lines[-1].strip()
            and not (ITEM.match(lines[-1]) or lines[-1].startswith("  "))
        ):
            lines.append("")
        lines.append(line if line.startswith("    ") else _line_in_markdown(line, page))
    return "\n".join([*lines[1:], ""]) if docstring else ""


def _line_in_markdown(line: str, page: str) -> str:
    def of_page(found: re.Match[str]) -> str:
        return f"[{found[0]}]({way_to(found[1], page)})"

    parts = re.split(r"(``.+?``|`[^`]+`)", line)
    for number, part in enumerate(parts):
        if part.startswith("``"):
            parts[number] = part[1:-1]
        elif part.startswith("`"):
            parts[number] = quoted(part[1:-1], page)
        else:
            text = part.replace("<", "&lt;").replace("[", r"\[")
            parts[number] = re.sub(r"\bdocs/([\w/-]+\.md)\b", of_page, text)
    return "".join(parts)


def raised_in(docstring: str, page: str) -> str:
    """Return the line with the exceptions that a docstring says are raised; "" if it names none."""
    names: dict[str, None] = {}
    for sentence in re.findall(r"\bRaises? (.+?)(?:\.\s|\.?\Z)", docstring, re.DOTALL):
        for name in re.findall(r"\b[A-Z]\w*[a-z]\w*", sentence):
            if f"fastrpc.{name}" in entries() or isinstance(getattr(builtins, name, None), type):
                names[name] = None
    return f"**Raises** {', '.join(quoted(name, page) for name in names)}\n" if names else ""


# ------------------------------------------------------------------------------------------- entries


def code(text: str) -> str:
    """Return code for a cell of a table; "" for none."""
    return f"`{' '.join(text.split())}`".replace("|", r"\|") if text else ""


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---" for _ in heads], *rows] if rows else []
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def of_function(name: str, function: griffe.Function, words: str, page: str) -> str:
    parameters = list(parameters_of(function))
    shown = [f"{each.name}={each.default}" if each.default else each.name for each in parameters]
    shown[MOST_SHOWN:] = ["…"] if len(shown) > MOST_SHOWN else []
    returned = f" -> {function.returns}" if function.returns and function.name != "__init__" else ""
    prefix = "async " if "async" in function.labels else ""
    parts = (
        f"```python\n{prefix}{name}({', '.join(shown)}){returned}\n```\n",
        in_markdown(words, page),
        table(("parameter", "type", "default"), [[code(cell) for cell in each] for each in parameters]),
        raised_in(words, page),
    )
    return "\n".join(filter(None, parts))


def of_class(entry: Entry, found: griffe.Class, page: str, level: int) -> str:
    bases = ", ".join(quoted(str(base), page) for base in found.bases)
    constructor = constructor_of(found)
    given = [each.name for each in parameters_of(constructor)] if constructor else []
    rows = [
        (code(name), code(str(each.annotation or "")), one_line(words_of(each), page))
        for name, each in attributes_of(found).items()
        if each.docstring or name not in given
    ]
    parts = [
        f"Base: {bases}\n" if bases else "",
        in_markdown(words_of(found), page),
        of_function(entry.name, constructor, "", page) if constructor else "",
        raised_in(words_of(found), page),
        table(("attribute", "type", "what it is"), rows),
    ]
    for name, function in functions_of(found).items():
        heading = f"{'#' * (level + 1)} {name} {{ #{entry.path}.{name} }}"
        parts.append(f"{heading}\n\n{of_function(name, function, words_of(function), page)}")
    return "\n".join(filter(None, parts))


def one_line(docstring: str, page: str) -> str:
    return " ".join(in_markdown(docstring, page).split()).replace("|", r"\|")


def of_entry(entry: Entry, page: str, level: int) -> str:
    """Return the section of a name, with its heading."""
    found = entry.definition
    if isinstance(found, griffe.Class):
        text = of_class(entry, found, page, level)
    elif isinstance(found, griffe.Function):
        text = of_function(entry.name, found, words_of(found), page)
    else:
        value = found.value if isinstance(found, griffe.Attribute) else None
        text = (f"```python\n{entry.name} = {value}\n```\n\n" if value else "") + in_markdown(
            words_of(found), page
        )
    return f"{'#' * level} {entry.name} {{ #{entry.path} }}\n\n{text}"


# --------------------------------------------------------------------------------------------- pages


def page_of_module(module: str) -> str:
    page = f"reference/{module}.md"
    elsewhere: list[tuple[str, str]] = []
    sections: list[str] = []
    for path, found in public().items():
        home, _, name = path.rpartition(".")
        if home != module:
            continue
        if isinstance(found, griffe.Alias):
            elsewhere.append((code(name), f"is `{found.target_path}`"))
            continue
        first = described()[found.path]
        if first.path == path and first.page == page:
            sections.append(of_entry(first, page, 2))
        else:
            elsewhere.append((code(name), link_to(first, page, first.path)))
    words = in_markdown(words_of(module_named(module)), page)
    parts = (f"# {module}\n", words, table(("name", "where it is described"), elsewhere), *sections)
    return "\n".join(filter(None, parts))


def pages() -> Iterator[tuple[str, str]]:
    """Yield each page: its path in the site, and its text. Raises LookupError as `public_names` does."""
    for module in modules():
        yield f"reference/{module}.md", page_of_module(module)
        for entry in described().values():
            if entry.page.startswith(f"reference/{module}/"):
                yield entry.page, of_entry(entry, entry.page, 1)
