"""The parser of every command except `serve`, toolsets' commands included: one style of help and of errors.

`CommandParser` is argparse with help in this project's form. A mistake raises `UsageError`, which becomes one
line on stderr and exit code 2. A command imports this module when it runs; a server never does.
"""

from __future__ import annotations

from argparse import ArgumentParser, HelpFormatter, RawDescriptionHelpFormatter

from fastrpc.errors import UsageError, suggest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Collection, Iterable, Mapping
    from typing import Any, TextIO

HELP_COLUMN = 24
NARROW_COLUMN = 6
"""The column where descriptions begin, below their names, in a terminal of less than `NARROW` columns."""
NARROW = 56
WIDTH = 100
"""The maximum width of a help text in columns."""
LEAST_WIDTH = 20
COMMAND_COLUMN = 6
"""Where the further lines of an example begin."""


def help_width() -> int:
    """Return how many columns a help text has."""
    from shutil import get_terminal_size

    return max(LEAST_WIDTH, min(WIDTH, get_terminal_size((WIDTH, 24)).columns))


def fitted(text: str) -> str:
    """Return a help text with lines that fit the terminal.

    A line that begins with two spaces has a name and, from `HELP_COLUMN` on, its description, which may
    continue in the next lines; among the examples, a command and what it does.
    """
    fit = {"usage:": fitted_usage, "examples:": fitted_examples}
    parts = text.rstrip("\n").split("\n\n")
    shown = (fit.get(part.partition(":")[0] + ":", _fitted_lines)(part.splitlines()) for part in parts)
    return "\n\n".join(shown) + "\n"


def fitted_usage(lines: list[str]) -> str:
    """Return the lines of a usage that fit the terminal."""
    from textwrap import fill

    indent = " " * (NARROW_COLUMN + 2)
    return "\n".join(
        fill(line, help_width(), subsequent_indent=indent, break_on_hyphens=False, break_long_words=False)
        for line in lines
    )


def fitted_examples(lines: list[str]) -> str:
    """Return the lines of examples that fit the terminal: the description of a command is below it, a long
    command is continued as in a shell. No word is split."""
    return "\n".join(line if len(line) <= help_width() else _fitted_example(line) for line in lines)


def _fitted_example(line: str) -> str:
    import re
    from textwrap import fill

    command, _, comment = line.strip().partition("  ")
    indent = " " * COMMAND_COLUMN
    lines = ["  "]
    for word in re.findall(r"""(?:'[^']*'|"[^"]*"|[^\s'"])+""", command):
        if len(lines[-1]) + len(word) > help_width() - 2 and lines[-1].strip():
            lines[-1] += "\\"
            lines.append(indent)
        lines[-1] += f"{word} "
    shown = [each.rstrip() for each in lines]
    if comment:
        shown.append(fill(comment.strip(), help_width(), initial_indent=indent, subsequent_indent=indent))
    return "\n".join(shown)


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


def _help_column() -> int:
    return HELP_COLUMN if help_width() >= NARROW else NARROW_COLUMN


def described(name: str, text: str) -> str:
    """Return a line of a help text, or lines: a name and its description; without a name, prose."""
    from textwrap import fill

    if not name:
        return fill(text, help_width())
    column = _help_column()
    indent = " " * column
    if len(name) + 3 > column or column == NARROW_COLUMN:
        return f"  {name}\n{fill(text, help_width(), initial_indent=indent, subsequent_indent=indent)}"
    head = f"  {name}".ljust(column)
    return fill(text, help_width(), initial_indent=head, subsequent_indent=indent)


def takes_colours(stream: TextIO | None) -> bool:
    """Whether output to a stream may be coloured: it is a terminal with colours, or FORCE_COLOR is set; and
    NO_COLOR is not set."""
    import os

    if stream is None or os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def write_help(text: str) -> None:
    """Write a help text to standard output, fitted and coloured for the terminal."""
    import sys

    sys.stdout.write(_coloured(fitted(text), sys.stdout))


def _coloured(text: str, stream: TextIO) -> str:
    """Return a help text, with its headings and names in colour if `stream` takes colours."""
    import re

    if not takes_colours(stream):
        return text
    head, examples, rest = text.partition("\nexamples:\n")
    head = re.sub(r"^(  )(\S+(?: \S+)*)", "\\1\x1b[36m\\2\x1b[0m", head, flags=re.MULTILINE)
    return re.sub(
        r"^([a-z][\w ,]*:)(?=$| fastrpc )", "\x1b[1m\\1\x1b[0m", f"{head}{examples}{rest}", flags=re.MULTILINE
    )


def suggestion(word: str, candidates: Iterable[str]) -> str:
    """Return ``; did you mean 'x'?`` for a misspelled word, or "" if no candidate is similar.

    The dashes of options are not compared, or any two options would resemble each other.
    """
    bare = {candidate.lstrip("-"): candidate for candidate in candidates}
    near = suggest(word.lstrip("-"), bare, 1)
    return f"; did you mean {bare[near[0]]!r}?" if near and bare[near[0]] != word else ""


def check_action(command: str, action: str, actions: Collection[str]) -> None:
    """Raise UsageError for an action that a command does not have."""
    if action not in actions:
        hint = suggestion(action, actions) or f"; there are {', '.join(actions)}"
        raise UsageError(f"{command}: unknown action {action!r}{hint}")


def _help_for(action: str, text: str | None) -> str | None:
    """Return the part of a description such as ``a file; for init: a new file`` that is about one action."""
    others = None
    for part in (text or "").split("; "):
        name, colon, rest = part.removeprefix("for ").partition(": ")
        if not (colon and part.startswith("for ")):
            others = part if others is None else f"{others}; {part}"
        elif name == action:
            return rest
    return others or text


class _Formatter(RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        HelpFormatter.__init__(self, prog, max_help_position=_help_column(), width=help_width())


class CommandParser(ArgumentParser):
    """A parser for ``fastrpc COMMAND``.

    `arguments` is the text after the command in the usage, `description` one sentence, `examples` lines
    that begin with two spaces. `actions` is for a command whose first argument is an action. It has for each
    action, by name, one sentence and the arguments (their `dest`) that only some actions take.
    """

    def __init__(
        self,
        command: str,
        arguments: str,
        description: str,
        examples: str,
        actions: Mapping[str, tuple[str, Collection[str]]] | None = None,
    ) -> None:
        self.command = command
        self.actions = actions or {}
        self._arguments = arguments
        self._examples = examples
        usage = fitted_usage(f"usage: fastrpc {command} {arguments}".rstrip().splitlines())
        super().__init__(
            prog=f"fastrpc {command}",
            usage=usage.removeprefix("usage: "),
            description=_fitted_lines(description.splitlines()),
            epilog=fitted_examples(["examples:", *examples.splitlines()]),
            formatter_class=_Formatter,
            allow_abbrev=False,
            add_help=False,
        )
        self.color = False  # CPython 3.14's argparse adds its colours: help looks the same on all
        self._positionals.title = "arguments"
        self.add_argument("-h", "--help", action="help", help="show this")
        if actions:
            self.add_argument("action", metavar="ACTION", help=", ".join(actions))

    def option(self, shown: str, help: str, **more: Any) -> None:
        """Add an option as its help shows it: ``--file FILE``, ``--scope SCOPE…`` if it may be repeated (a
        list), or ``--json`` for a switch. `more`: as for `add_argument`."""
        name, _, value = shown.partition(" ")
        if value.endswith("…"):
            more |= {"action": "append", "default": []}
        more |= {"metavar": value.rstrip("…")} if value else {"action": "store_true"}
        self.add_argument(name, help=help, **more)

    def error(self, message: str) -> None:  # type: ignore[override]
        """Raise UsageError with the message, and a hint at ``--help``."""
        raise UsageError(f"{message} (see 'fastrpc {self.command} --help')")

    def _print_message(self, message: str, file: Any = None) -> None:
        """Write a message, such as the help. argparse would suppress the error of a failed write."""
        if message and file is not None:
            file.write(_coloured(message, file))

    def parser_of(self, action: str) -> CommandParser:
        """Return the parser of one action, with its help and the arguments that have been added so far."""
        sentence, taken = self.actions[action]
        begin = f"  fastrpc {self.command} {action}"
        examples = [line for line in self._examples.splitlines() if f"{line} ".startswith(f"{begin} ")]
        parser = CommandParser(
            f"{self.command} {action}", self._usage_of(action), sentence, "\n".join(examples or [begin])
        )
        of_some = {name for _, names in self.actions.values() for name in names}
        for each in self._actions:
            if each.dest in taken or each.dest not in {*of_some, "help", "action"}:
                each.help = _help_for(action, each.help)
                parser._add_action(each)
        return parser

    def check_options(self, chosen: Namespace, words: str) -> Collection[str]:
        """Return the arguments that the chosen action takes and only some actions take. Raises UsageError for
        an option of other actions; `words` are the end of its message."""
        taken = self.actions[chosen.action][1]
        others = {name for _, names in self.actions.values() for name in names} - {*taken}
        for each in self._actions:
            if each.option_strings and each.dest in others and getattr(chosen, each.dest) != each.default:
                option = each.option_strings[0]
                raise UsageError(f"{self.command} {chosen.action}: {option} is not an option of {words}")
        return taken

    def _usage_of(self, action: str) -> str:
        """Return what follows an action in the usage of its command."""
        lines = [
            line.strip().removeprefix(f"fastrpc {self.command} ") for line in self._arguments.splitlines()
        ]
        others = ""
        if len(lines) == 1:  # all actions in one line, followed by the options
            line, _, others = lines[0].partition("  ")
            lines = line.split(" | ")
        found = [line.partition(" ") for line in lines]
        return next(f"{rest} {others}".strip() for name, _, rest in found if name == action)

    def parse(self, arguments: list[str]) -> Namespace:
        """Parse a command's arguments.

        Raises UsageError, which names an unknown argument and the option that was probably meant. Raises
        SystemExit after ``--help``.
        """
        if self.actions and not {"-h", "--help"}.isdisjoint(arguments):
            action = next((word for word in arguments if not word.startswith("-")), "")
            if action in self.actions:
                self.parser_of(action).parse(["--help"])
        known = [option for action in self._actions for option in action.option_strings]
        try:
            options, rest = self.parse_known_intermixed_args(arguments)
        except UsageError:  # the cause may be a misspelled option: name that one
            for word in arguments:
                if word.startswith("--") and len(word) > 2 and word.partition("=")[0] not in known:
                    raise unknown_option(word, known, self.command) from None
            raise
        if not rest:
            return options
        if rest[0].startswith("-"):
            raise unknown_option(rest[0], known, self.command)
        raise UsageError(f"one argument too many: {rest[0]!r} (see 'fastrpc {self.command} --help')")


OTHER_OPTIONS = {
    **dict.fromkeys(("--port", "-p"), "serve --http 127.0.0.1:PORT"),
    **dict.fromkeys(("--host", "--bind", "--address", "--transport", "-t"), "serve --http HOST:PORT"),
    **dict.fromkeys(("--reload", "--watch"), "dev FILE"),
    **dict.fromkeys(("-v", "--verbose", "--debug"), "serve --log-level debug"),
    "--http": "serve --http HOST:PORT",
}
"""Options of other programs that serve, and the equivalent command here."""
SERVING = ("", "serve", "dev", "gateway")
"""The commands with which users may expect these options; "" is no command."""


def unknown_option(option: str, options: Iterable[str], command: str = "") -> UsageError:
    """Return the error for an option that does not exist."""
    name = option.partition("=")[0]
    if command in SERVING and name in OTHER_OPTIONS and name not in options:
        return UsageError(f"unknown option {name!r}; here it is 'fastrpc {OTHER_OPTIONS[name]}'")
    where = " ".join(["fastrpc", *([command] if command else []), "--help"])
    return UsageError(f"unknown option {name!r}{suggestion(name, options) or f' (see {where!r})'}")
