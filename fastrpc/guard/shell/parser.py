"""Finds the simple commands of a shell command line, or refuses a line that it does not fully understand.

Two results must agree: the words of `lexer`, and the tree of tree-sitter's grammar of bash. If they differ in
anything, the line is not understood. That is the answer in every case of doubt.

`load` imports tree-sitter, this module does not. Lines that the lexer refuses never reach tree-sitter, whose
time may grow with the square of a line's length.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any

from fastrpc.guard.shell.lexer import REDIRECTION, Command, read

GROUPS = frozenset(("program", "list", "pipeline", "redirected_statement"))
BETWEEN = frozenset(("&&", "||", "|", ";", "\n", "comment"))
WORDS = frozenset(("command_name", "word", "number", "string", "raw_string", "concatenation"))


@functools.cache
def load() -> Any:
    """Return a function that makes bash parsers. Raises ImportError, ValueError for a wrong version."""
    tree_sitter, grammar = importlib.import_module("tree_sitter"), importlib.import_module("tree_sitter_bash")
    return functools.partial(tree_sitter.Parser, tree_sitter.Language(grammar.language()))


def commands(line: str) -> list[Command] | None:
    """Return the simple commands that bash runs for a line, at least one, in the order of the line.

    None: the line is not understood. Which of them run may depend on how others end (``&&``, ``||``).
    Requires tree-sitter: see `load`.
    """
    found = read(line)
    if found is None:
        return None
    octets = [[word.written.encode() for word in command] for command in found]
    root = load()().parse(line.encode()).root_node  # a parser must not be shared by threads; it costs 0.7 µs
    return found if _words_of(root) == octets else None


def _words_of(root: Any) -> list[list[bytes]] | None:
    """Return the words of the commands of a tree; None if it has errors, or nodes of other kinds."""
    if root.has_error:
        return None
    found, pending = [], [root]
    while pending:
        node = pending.pop()
        kind = node.type
        if kind in GROUPS:
            pending += reversed(node.children)
        elif kind == "command":
            parts = node.children
            if any(part.type not in WORDS for part in parts):
                return None
            found.append([part.text for part in parts])
        elif kind == "file_redirect":
            if REDIRECTION.fullmatch(node.text.decode()) is None:
                return None
        elif kind not in BETWEEN:
            return None
    return found
