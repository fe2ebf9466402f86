"""The command line: one module a command, and what they share.

A command is a module here with ``main(arguments) -> int``, imported when it is called for. `serve`
is a start-up path and parses its few options by hand; the others take `parser`, which brings
argparse. A user's mistake is a `UsageError` raised where it is found; `fastrpc.__main__` turns it
into one line and exit code 2. Importing this module imports nothing that a server does not need anyway.
"""

from __future__ import annotations

from fastrpc.errors import UsageError, resembling
from fastrpc.log import say as say  # for the commands too

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable, Iterable

    from fastrpc.config import Configuration

COMMANDS = {
    "serve": "serve tools over standard input and output, or over HTTP",
    "dev": "serve a file while it is being written: reload it at each change",
    "bridge": "serve a remote server, at a URL, over standard input and output",
    "tools": "list the tools that would be served",
    "call": "call one tool in a real session and print its result",
    "demo": "show a whole conversation between a client and a server",
    "selftest": "check the tools against their contract",
    "install-client": "enter this server in a client's configuration",
    "config": "show every setting, its value and where it came from",
}


def nearest(word: str, candidates: Iterable[str]) -> str:
    """Return ``; did you mean 'x'?`` for a misspelled word, or nothing."""
    near = resembling(word, candidates, 1)
    return f"; did you mean {near[0]!r}?" if near else ""


def version() -> str:
    """Return the version of this distribution."""
    from fastrpc import __version__

    return __version__


def configuration(options: dict[str, str] | None = None) -> Configuration:
    """Load the settings and show their warnings, one line each."""
    from fastrpc.config import load

    loaded = load(options=options)
    for warning in loaded.warnings:
        say(f"fastrpc: warning: {warning}")
    return loaded


def toolset_commands() -> dict[str, tuple[str, Callable[[list[str]], int]]]:
    """Return the commands that the toolset brings, by name: what each does, and its ``main(arguments)``.

    They stand in the toolset's module ``_commands``: ``COMMANDS`` holds texts and ``module:function``.
    The settings of this process are exported before one runs, as for a server.
    """
    import os

    from fastrpc.cli._contract import load_companion

    settings = configuration()
    settings.export(os.environ)
    toolset = settings["FASTRPC_TOOLSET"]
    companion = load_companion(toolset, "_commands")
    return {
        name: (text, _late(toolset, place))
        for name, (text, place) in getattr(companion, "COMMANDS", {}).items()
    }


def _late(toolset: str, place: str) -> Callable[[list[str]], int]:
    """Return a function of a toolset's module, which is imported when it is called."""
    module, _, name = place.partition(":")

    def main(arguments: list[str]) -> int:
        from importlib import import_module

        code: int = getattr(import_module(f"{toolset}.{module}"), name)(arguments)
        return code

    return main


def parser(command: str, arguments: str, examples: str) -> ArgumentParser:
    """Return an argparse parser for a command whose complaints are a `UsageError`, one line each."""
    from argparse import ArgumentParser, RawDescriptionHelpFormatter

    class Parser(ArgumentParser):
        def error(self, message: str) -> None:  # type: ignore[override]
            raise UsageError(f"{message} (see 'fastrpc {command} --help')")

    return Parser(
        prog=f"fastrpc {command}",
        usage=f"fastrpc {command} {arguments}".rstrip(),
        description=f"{COMMANDS[command][0].upper()}{COMMANDS[command][1:]}.",
        epilog=f"examples:\n{examples}",
        formatter_class=RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def unknown_option(option: str, options: Iterable[str], command: str = "") -> UsageError:
    """Return the complaint about an option that does not exist."""
    name = option.partition("=")[0]
    hint = nearest(name, options) or f" (see 'fastrpc {command} --help')".replace("  ", " ")
    return UsageError(f"unknown option {name!r}{hint}")


def parse(parser: ArgumentParser, arguments: list[str], command: str) -> Namespace:
    """Parse a command's arguments; what is left over is named, with the option that was meant."""
    options, rest = parser.parse_known_intermixed_args(arguments)
    if not rest:
        return options
    if rest[0].startswith("-"):
        known = [option for action in parser._actions for option in action.option_strings]
        raise unknown_option(rest[0], known, command)
    raise UsageError(f"one argument too many: {rest[0]!r} (see 'fastrpc {command} --help')")
