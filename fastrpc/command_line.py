"""The parser of every command but `serve`, toolsets' too: one style of help, one line for a mistake.

`CommandParser` is argparse with help in this project's form; its mistakes are a `UsageError`, which becomes
one line on stderr and exit code 2. Imported by a command when it runs, never by a server.
"""

from __future__ import annotations

from argparse import ArgumentParser, HelpFormatter, RawDescriptionHelpFormatter

from fastrpc.errors import UsageError, suggest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Collection, Iterable
    from typing import Any

HELP_COLUMN = 24
WIDTH = 100
"""Columns of a help text at most; a narrower terminal has fewer."""


def help_width() -> int:
    """Return how many columns a help text has."""
    from shutil import get_terminal_size

    return max(40, min(WIDTH, get_terminal_size((WIDTH, 24)).columns))


def fitted(text: str) -> str:
    """Return a help text with lines that fit the terminal, but for usage and examples.

    A line that begins with two spaces has a name and, from `HELP_COLUMN` on, its description, which may go on
    in the lines below.
    """
    parts = text.rstrip("\n").split("\n\n")
    fixed = ("usage:", "examples:")
    shown = (part if part.startswith(fixed) else _fitted_lines(part.splitlines()) for part in parts)
    return "\n\n".join(shown) + "\n"


def _fitted_lines(lines: list[str]) -> str:
    entries: list[list[str]] = []
    for line in lines:
        if entries and line.startswith(" " * HELP_COLUMN):
            entries[-1][1] = f"{entries[-1][1]} {line.strip()}".strip()
        elif line.startswith("  ") and line[HELP_COLUMN - 1 : HELP_COLUMN] in ("", " "):
            entries.append([line[:HELP_COLUMN].strip(), line[HELP_COLUMN:]])
        else:
            entries.append([line.strip(), ""] if line.startswith("  ") else ["", line])
    return "\n".join(described(name, text) for name, text in entries)


def described(name: str, text: str) -> str:
    """Return a line of a help text, or lines: a name and its description; without a name, prose."""
    from textwrap import fill

    if not name:
        return fill(text, help_width())
    indent = " " * HELP_COLUMN
    if len(name) + 3 > HELP_COLUMN:
        return f"  {name}\n{fill(text, help_width(), initial_indent=indent, subsequent_indent=indent)}"
    head = f"  {name}".ljust(HELP_COLUMN)
    return fill(text, help_width(), initial_indent=head, subsequent_indent=indent)


def suggestion(word: str, candidates: Iterable[str]) -> str:
    """Return ``; did you mean 'x'?`` for a misspelled word, or "" where nothing is near it.

    The dashes of options do not count, or any two would resemble each other.
    """
    bare = {candidate.lstrip("-"): candidate for candidate in candidates}
    near = suggest(word.lstrip("-"), bare, 1)
    return f"; did you mean {bare[near[0]]!r}?" if near and bare[near[0]] != word else ""


def check_action(command: str, action: str, actions: Collection[str]) -> None:
    """Raise UsageError for an action that a command does not have."""
    if action not in actions:
        hint = suggestion(action, actions) or f"; there are {', '.join(actions)}"
        raise UsageError(f"{command}: unknown action {action!r}{hint}")


class _Formatter(RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        HelpFormatter.__init__(self, prog, max_help_position=HELP_COLUMN, width=help_width())


class CommandParser(ArgumentParser):
    """A parser for ``fastrpc COMMAND``.

    `arguments` is what stands behind the command in the usage, `description` one sentence, `examples` lines
    that begin with two spaces.
    """

    def __init__(self, command: str, arguments: str, description: str, examples: str) -> None:
        self.command = command
        super().__init__(
            prog=f"fastrpc {command}",
            usage=f"fastrpc {command} {arguments}".rstrip(),
            description=_fitted_lines(description.splitlines()),
            epilog=f"examples:\n{examples}",
            formatter_class=_Formatter,
            allow_abbrev=False,
            add_help=False,
        )
        self._positionals.title = "arguments"
        self.add_argument("-h", "--help", action="help", help="show this")

    def error(self, message: str) -> None:  # type: ignore[override]
        raise UsageError(f"{message} (see 'fastrpc {self.command} --help')")

    def _print_message(self, message: str, file: Any = None) -> None:
        """Write a message, such as the help; argparse would swallow that it cannot be written."""
        if message and file is not None:
            file.write(message)

    def parse(self, arguments: list[str]) -> Namespace:
        """Parse a command's arguments; what is left over is named, with the option that was meant.

        Raises UsageError; leaves with SystemExit after ``--help``.
        """
        options, rest = self.parse_known_intermixed_args(arguments)
        if not rest:
            return options
        if rest[0].startswith("-"):
            known = [option for action in self._actions for option in action.option_strings]
            raise unknown_option(rest[0], known, self.command)
        raise UsageError(f"one argument too many: {rest[0]!r} (see 'fastrpc {self.command} --help')")


def unknown_option(option: str, options: Iterable[str], command: str = "") -> UsageError:
    """Return the complaint about an option that does not exist."""
    name = option.partition("=")[0]
    where = " ".join(["fastrpc", *([command] if command else []), "--help"])
    return UsageError(f"unknown option {name!r}{suggestion(name, options) or f' (see {where!r})'}")
