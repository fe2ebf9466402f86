"""The table of the originals' names in docs/compat.md: which work, which are missing, and the alternatives.

    .venv/bin/python tests/support/compat_table.py          writes it into the document

It is made from the lists in tests/fixtures/compat/names (tests/support/compat_names_of.py makes those) and
from what `fastrpc.swap.modules` answers. tests/unit/test_compat_names.py holds the document against
it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from fastrpc.swap import modules
from fastrpc.swap.missing_names import INNER

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LISTS = os.path.join(TESTS, "fixtures", "compat", "names")
DOCUMENT = os.path.join(os.path.dirname(TESTS), "docs", "compat.md")
BEGIN, END = "<!-- names: begin, made by tests/support/compat_table.py -->", "<!-- names: end -->"


class Names:
    """The names of one original in one version."""

    def __init__(self, path: str) -> None:
        self.package = os.path.basename(path).partition("-")[0]
        self.version = ""
        self.modules: dict[str, list[str]] = {}
        self.members: dict[str, list[str]] = {}
        self.options: dict[str, list[str]] = {}
        with open(path, encoding="utf-8") as file:
            for line in file:
                kind, _, rest = line.strip().partition(" ")
                place, _, listed = rest.rpartition(": ")
                if kind == "version":
                    self.version = rest
                elif kind == "module":
                    self.modules[place] = listed.split()
                elif kind == "class":
                    self.members[place] = listed.split()
                elif kind == "call":
                    self.options[place] = listed.split()

    @property
    def title(self) -> str:
        return f"{'FastMCP' if self.package == 'fastmcp' else 'mcp'} {self.version}"


def all_names() -> list[Names]:
    return [Names(os.path.join(LISTS, name)) for name in sorted(os.listdir(LISTS))]


def classed(names: Names) -> Iterator[tuple[str, str, modules.ServedName]]:
    """Yield each module, each of its names, and what serves it; not what is used as it is."""
    for module, listed in names.modules.items():
        if modules.home_of(module) is not None:
            yield from ((module, name, modules.find(module, name)) for name in listed)


def table() -> str:
    """Return the table: a line for each original, and one for each reason why names are missing. Names of an
    original's inside are counted only."""
    lines = ["| original | work | missing | inner |", "|---|---|---|---|"]
    missing: dict[str, dict[str, None]] = {}
    for names in all_names():
        counts = dict.fromkeys(("work", "missing", "inner"), 0)
        for _, name, answer in classed(names):
            kind = "work" if answer.missing is None else "inner" if answer.missing in INNER else "missing"
            counts[kind] += 1
            if kind == "missing":
                missing.setdefault(answer.missing or "", {})[name] = None
        lines.append(f"| {names.title} | {' | '.join(map(str, counts.values()))} |")
    lines += ["", "| missing | instead |", "|---|---|"]
    for reason in sorted(missing):
        shown = ", ".join(f"`{name}`" for name in sorted(missing[reason]))
        lines.append(f"| {shown} | {reason.replace('|', chr(92) + '|')} |")
    return "\n".join(lines)


def parts() -> tuple[str, str, str]:
    """Return the document before the table, the table that it has, and the rest."""
    with open(DOCUMENT, encoding="utf-8") as file:
        text = file.read()
    before, _, rest = text.partition(BEGIN)
    inside, _, behind = rest.partition(END)
    return before, inside.strip(), behind


if __name__ == "__main__":
    start, _, end = parts()
    with open(DOCUMENT, "w", encoding="utf-8") as document:
        document.write(f"{start}{BEGIN}\n\n{table()}\n\n{END}{end}")
