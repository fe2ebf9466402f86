"""Says which words of a command line are programs, options and paths, for people who approve it.

The line is read as for rules (`parser.commands`): if lexer and grammar do not both understand all of it,
nothing is said about any part, since a wrong mark is worse than none. Requires tree-sitter.
"""

from __future__ import annotations

from fastrpc.guard.shell import lexer, parser
from fastrpc.guard.shell.lexer import OPERATORS, PROGRAM, WORD, Part

OPTION, PATH = "option", "path"


def highlighted(line: str) -> list[Part] | None:
    """Return the parts of a line, in its order, each with its kind: program, option, path, word, operator,
    redirection, comment. What is between them is space. None: the line is not understood."""
    found = lexer.parts(line)
    if found is None or parser.commands(line) is None:
        return None
    shown, takes_options = [], True
    for part in found:
        if part.kind in (PROGRAM, OPERATORS):
            takes_options = True
        elif part.kind == WORD:
            part = part._replace(kind=_kind_of(part.text, takes_options))
            takes_options = takes_options and part.text != "--"
        shown.append(part)
    return shown


def _kind_of(text: str, takes_options: bool) -> str:
    if takes_options and text.startswith("-") and text != "-":
        return OPTION
    return PATH if "/" in text or text in (".", "..") or text.startswith("~") else WORD
