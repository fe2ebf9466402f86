"""The command line: one module for each command, and what they share.

A command is a module with ``main(arguments) -> int``, imported when it is used. `serve` is time-critical and
parses its few options by hand; the others use `parser` (`fastrpc.command_line`), which imports argparse. A
mistake of the user is a `UsageError`, raised where it is found; `fastrpc.__main__` turns it into one line and
exit code 2. Importing this module imports nothing that a server does not need.
"""

from __future__ import annotations

from fastrpc.diagnostics import write_line as write_line  # the commands import it from here

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from fastrpc.command_line import CommandParser
    from fastrpc.settings import Configuration

WAITS_FOR_CLIENT = (
    "fastrpc waits for an MCP client on standard input, one JSON message a line. Ctrl-D ends it."
)
"""Written to stderr when a stdio server is started at a terminal."""

COMMANDS = {
    "serve": "serve tools over standard input and output, or over HTTP",
    "new": "make a project: a server, its tests, and files for clients and Docker",
    "dev": "serve a file while you write it: reload it at each change",
    "bridge": "serve a remote server, at a URL, over standard input and output",
    "worker": "run the tasks that servers leave to other processes",
    "gateway": "serve all servers of a configuration file as one",
    "swap": "run a server written for FastMCP or the official SDK on fastrpc",
    "compare": "run a server as it is and on fastrpc, and compare descriptions, answers and times",
    "list": "list the tools, resources and prompts of a server",
    "tools": "list the tools of a server, as a table",
    "call": "call a tool, read a resource or get a prompt of a server",
    "inspect": "show everything that a server offers, as text, JSON or an HTML page",
    "discover": "list the servers in the configurations of this machine's clients",
    "repl": "use a server interactively, at a prompt with completion",
    "demo": "show a whole conversation between a client and a server",
    "selftest": "check the tools against their contract",
    "guard": "check a guard's configuration, print its decision for a call, or explain one",
    "token": "make, list, rotate and revoke the tokens of callers",
    "approvals": "list the calls that wait for an approval; approve, edit or reject them",
    "dashboard": "serve the guard's pages by themselves, or make a link to sign in to them",
    "budgets": "show what callers have used of their budgets, or set it to zero",
    "audit": "read the audit log: show, search, export, verify it, prove a record",
    "install-client": "add a server to a client's configuration",
    "config": "show every setting, its value and where it came from",
    "completion": "print a script that completes commands and options in a shell",
}

GROUPS = {
    "write, serve and try": (
        *("new", "serve", "worker", "dev", "gateway", "bridge", "swap", "compare"),
        *("list", "tools", "call", "inspect", "repl", "demo"),
    ),
    "clients": ("install-client", "discover"),
    "guard": ("guard", "token", "approvals", "dashboard", "budgets", "audit"),
    "this program": ("config", "completion", "selftest"),
}
"""The commands as the help lists them. Those of toolsets follow."""

OTHER_WORDS = {
    **dict.fromkeys(("run", "start", "server", "mcp", "up"), "serve FILE"),
    **dict.fromkeys(("watch", "reload"), "dev FILE"),
    "version": "--version",
    **dict.fromkeys(("ls", "resources", "resource", "templates", "prompts"), "list"),
    **dict.fromkeys(("read", "get"), "call TARGET URI"),
    "prompt": "call TARGET --prompt NAME",
    **dict.fromkeys(("tool", "exec", "invoke"), "call TARGET TOOL key=value"),
    **dict.fromkeys(("describe", "info", "show"), "inspect TARGET"),
    **dict.fromkeys(("shell", "console", "interactive"), "repl TARGET"),
    **dict.fromkeys(("proxy", "connect", "remote"), "bridge URL"),
    **dict.fromkeys(("status", "ps"), "gateway status"),
    **dict.fromkeys(("servers", "clients"), "discover"),
    **dict.fromkeys(("install", "add"), "install-client"),
    **dict.fromkeys(("init", "create"), "new NAME"),
    **dict.fromkeys(("settings", "env"), "config"),
    **dict.fromkeys(("migrate", "convert"), "swap FILE"),
    **dict.fromkeys(("check", "test"), "selftest"),
}
"""Names of commands in other programs, and the equivalent command here."""


def serving(word: str) -> str:
    """Return the command that serves or uses a file, a module in the working directory, or a URL; or ""."""
    import os
    import re
    import shlex

    quoted = shlex.quote(word)
    if re.match(r"https?://", word, re.IGNORECASE):
        return f"list {quoted}"
    if re.search(r"\.py(:\w+)?\Z", word):
        return f"serve {quoted}"
    if word.endswith(".json"):
        return f"gateway {quoted}"
    if word.endswith(".toml"):
        return f"guard check {quoted}"
    return f"serve {word}.py" if word.isidentifier() and os.path.isfile(f"{word}.py") else ""


def configuration(options: dict[str, str] | None = None, targets: Sequence[str] = ()) -> Configuration:
    """Load the settings and print their warnings, one line each.

    Loads the server's settings; those of toolsets are added when the toolsets are loaded
    (`fastrpc.cli._assemble`). If only the shipped toolset will be served, its lines in files are read at
    once.
    """
    from fastrpc.settings import SHIPPED_TOOLSET, load

    loaded = load(options=options)
    if not targets and loaded.pending and loaded["FASTRPC_TOOLSET"] == SHIPPED_TOOLSET:
        from fastrpc.cli._assemble import read_toolset_settings

        read_toolset_settings(loaded, SHIPPED_TOOLSET)
    for warning in loaded.new_warnings():
        write_line(f"fastrpc: warning: {warning}")
    return loaded


def shipped_toolset(word: str) -> str | None:
    """Return the toolset that is shipped under a short name and adds commands, ``fastrpc.tools.WORD``."""
    from importlib.util import find_spec

    name = f"fastrpc.tools.{word}"
    there = word.isidentifier() and not word.startswith("_") and find_spec(name) is not None
    return name if there and find_spec(f"{name}._commands") is not None else None


def toolset_commands(toolset: str | None = None) -> dict[str, tuple[str, Callable[[list[str]], int]]]:
    """Return the commands that a toolset adds, the configured one by default, by name: a description, and
    ``main(arguments)``.

    They are defined in the toolset's module ``_commands``: ``COMMANDS`` holds texts and ``module:function``.
    The settings of this process are exported before a command runs, as for a server.
    """
    import os

    from fastrpc.cli._assemble import read_toolset_settings
    from fastrpc.cli._contract import load_companion

    settings = configuration(targets=() if toolset is None else (toolset,))
    settings.export(os.environ)
    toolset = settings["FASTRPC_TOOLSET"] if toolset is None else toolset
    read_toolset_settings(settings, toolset)
    companion = load_companion(toolset, "_commands")
    return {
        name: (text, _late(toolset, place))
        for name, (text, place) in getattr(companion, "COMMANDS", {}).items()
    }


def shipped_commands() -> dict[str, str]:
    """Return the words of `shipped_toolset`, except the configured one's, with the commands of each."""
    from importlib.util import find_spec
    from pkgutil import iter_modules

    from fastrpc.cli._contract import load_companion

    configured = configuration()["FASTRPC_TOOLSET"]
    found = {}
    tools = find_spec("fastrpc.tools")
    for module in iter_modules([] if tools is None else tools.submodule_search_locations):
        name = f"fastrpc.tools.{module.name}"
        if name != configured and shipped_toolset(module.name) is not None:
            commands = getattr(load_companion(name, "_commands"), "COMMANDS", {})
            found[module.name] = f"commands of the toolset {name}: {', '.join(commands)}"
    return found


def toolset_examples(command: str) -> str:
    """Return the lines that the toolset's module ``_commands`` adds to the examples in a command's help."""
    from fastrpc.cli._contract import load_companion

    companion = load_companion(configuration()["FASTRPC_TOOLSET"], "_commands")
    lines: str = getattr(companion, "EXAMPLES", {}).get(command, "")
    return lines


def _late(toolset: str, place: str) -> Callable[[list[str]], int]:
    """Return a function that, when called, imports a function of a toolset's module and calls it."""
    module, _, name = place.partition(":")

    def main(arguments: list[str]) -> int:
        from importlib import import_module

        code: int = getattr(import_module(f"{toolset}.{module}"), name)(arguments)
        return code

    return main


def parser(
    command: str,
    arguments: str,
    examples: str,
    actions: Mapping[str, tuple[str, Collection[str]]] | None = None,
) -> CommandParser:
    """Return the argument parser of one of `COMMANDS`."""
    from fastrpc.command_line import CommandParser

    description = COMMANDS[command]
    sentence = f"{description[0].upper()}{description[1:]}."
    return CommandParser(command, arguments, sentence, examples, actions)
