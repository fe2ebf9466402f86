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
        HelpFormatter.__init__(self, prog, max_help_position=HELP_COLUMN, width=WIDTH)


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
            description=description,
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
