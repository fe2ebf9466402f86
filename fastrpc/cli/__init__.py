"""The command line: one module a command, and what they share.

A command is a module here with ``main(arguments) -> int``, imported when it is called for. `serve`
is a start-up path and parses its few options by hand; the others take `parser`, of
`fastrpc.command_line`, which brings argparse. A user's mistake is a `UsageError` raised where it is found;
`fastrpc.__main__` turns it into one line and exit code 2. Importing this module imports nothing that a server
does not need anyway.
"""

from __future__ import annotations

from fastrpc.log import say as say  # for the commands too

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fastrpc.command_line import CommandParser
    from fastrpc.settings import Configuration

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
    "completion": "print a script that completes commands and options in a shell",
}

OTHER_WORDS = {
    **dict.fromkeys(("run", "start"), "serve FILE"),
    **dict.fromkeys(("list", "ls"), "tools"),
    "inspect": "tools --json",
    **dict.fromkeys(("install", "add"), "install-client"),
    **dict.fromkeys(("new", "init", "create"), "dev FILE"),
    **dict.fromkeys(("settings", "env"), "config"),
    **dict.fromkeys(("check", "test"), "selftest"),
}
"""What other programs call a command, and what it is called here."""


def configuration(options: dict[str, str] | None = None, targets: Sequence[str] = ()) -> Configuration:
    """Load the settings and show their warnings, one line each.

    The server's own: what toolsets declare is added when they are loaded (`fastrpc.cli._assemble`). Where
    only the shipped one will be, lines of files that are not the server's are read at once.
    """
    from fastrpc.settings import SHIPPED_TOOLSET, load

    loaded = load(options=options)
    if not targets and loaded.pending and loaded["FASTRPC_TOOLSET"] == SHIPPED_TOOLSET:
        from fastrpc.cli._assemble import read_toolset_settings

        read_toolset_settings(loaded, SHIPPED_TOOLSET)
    for warning in loaded.new_warnings():
        say(f"fastrpc: warning: {warning}")
    return loaded


def toolset_commands() -> dict[str, tuple[str, Callable[[list[str]], int]]]:
    """Return the commands that the toolset brings, by name: what each does, and its ``main(arguments)``.

    They stand in the toolset's module ``_commands``: ``COMMANDS`` holds texts and ``module:function``.
    The settings of this process are exported before one runs, as for a server.
    """
    import os

    from fastrpc.cli._assemble import read_toolset_settings
    from fastrpc.cli._contract import load_companion

    settings = configuration()
    settings.export(os.environ)
    toolset = settings["FASTRPC_TOOLSET"]
    read_toolset_settings(settings, toolset)
    companion = load_companion(toolset, "_commands")
    return {
        name: (text, _late(toolset, place))
        for name, (text, place) in getattr(companion, "COMMANDS", {}).items()
    }


def toolset_examples(command: str) -> str:
    """Return the lines that the toolset's module ``_commands`` adds to the examples of a command's help."""
    from fastrpc.cli._contract import load_companion

    companion = load_companion(configuration()["FASTRPC_TOOLSET"], "_commands")
    lines: str = getattr(companion, "EXAMPLES", {}).get(command, "")
    return lines


def _late(toolset: str, place: str) -> Callable[[list[str]], int]:
    """Return a function of a toolset's module, which is imported when it is called."""
    module, _, name = place.partition(":")

    def main(arguments: list[str]) -> int:
        from importlib import import_module

        code: int = getattr(import_module(f"{toolset}.{module}"), name)(arguments)
        return code

    return main


def parser(command: str, arguments: str, examples: str) -> CommandParser:
    """Return the parser of one of `COMMANDS`."""
    from fastrpc.command_line import CommandParser

    description = COMMANDS[command]
    return CommandParser(command, arguments, f"{description[0].upper()}{description[1:]}.", examples)
