"""``fastrpc repl``: an interactive session with a server.

Lines are edited with readline, if Python has it; Tab completes commands, names, arguments, enum values and
the server's completions (`fastrpc.cli._repl_completion`). Without a terminal, lines are read from standard
input without a prompt. An error is printed and the session continues; it ends with ``quit``, at the end of
input, or when the connection is lost. Ctrl-C cancels a running call.
"""

from __future__ import annotations

import sys

from fastrpc.cli import parser
from fastrpc.cli._arguments import as_object, is_json
from fastrpc.cli._catalogue import catalogue_of, print_lines, shown
from fastrpc.cli._command_caller import CALL_LIMIT, CommandCaller, converse_with_user, seconds_of
from fastrpc.cli._repl_completion import COMMANDS, ReplCompleter
from fastrpc.cli._target import parse
from fastrpc.command_line import suggestion
from fastrpc.diagnostics import write_line
from fastrpc.errors import ArgumentError, ClientError, ConnectionLost, UsageError
from fastrpc.terminal.text import plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc.cli._catalogue import Catalogue
    from fastrpc.cli._feedback import Feedback
    from fastrpc.client.sync import SyncClient

EXAMPLES = """\
  fastrpc repl my_tools.py
  fastrpc repl github
  printf 'tools\\ncall add a=1 b=2\\n' | fastrpc repl my_tools.py
"""
HELP = """\
tools                      the tools and their parameters; so resources, prompts, list (all)
call TOOL key=value…       call a tool; the arguments are typed by its schema, or one JSON object
read URI                   read a resource
prompt NAME key=value…     get a prompt
help                       show this
quit                       end the session; so does Ctrl-D
"""
LISTED = {
    "tools": ("tools",),
    "resources": ("resources", "resourceTemplates"),
    "prompts": ("prompts",),
    "list": ("tools", "resources", "resourceTemplates", "prompts"),
}


def main(arguments: list[str]) -> int:
    """Run an interactive session; return the exit code. Raises UsageError."""
    options = parser("repl", "[TARGET… | -- COMMAND…]", EXAMPLES)
    chosen, where = parse(options, arguments, CALL_LIMIT)
    repl: Repl | None = None

    def work(client: SyncClient, feedback: Feedback) -> int:
        nonlocal repl
        repl = Repl(client, CommandCaller(client, feedback, seconds=seconds_of(chosen)), feedback)
        return repl.run()

    def on_notification(notification: dict[str, Any]) -> None:
        if repl is not None and notification["method"].endswith("/list_changed"):
            repl.forget()

    return converse_with_user(where, chosen, work, on_notification=on_notification)


class Repl:
    """Reads commands and executes them."""

    def __init__(self, client: SyncClient, caller: CommandCaller, feedback: Feedback) -> None:
        self.client = client
        self._caller = caller
        self._feedback = feedback
        self._known: Catalogue | None = None
        self._has_terminal = sys.stdin.isatty() and sys.stdout.isatty()

    def catalogue(self) -> Catalogue:
        """The server's features, listed again after a change. Raises ClientError."""
        if self._known is None:
            self._known = catalogue_of(self.client)
        return self._known

    def forget(self) -> None:
        """Drop the stored features: the server's lists have changed."""
        self._known = None

    def run(self) -> int:
        """Read lines until the end; return the exit code. Raises ConnectionLost."""
        name = plain(str(self.client.server_info.get("name", "server")))
        if self._has_terminal:
            self._prepare()
            print(f"{name}, protocol {self.client.version}. 'help' shows the commands, Tab completes.")
        while True:
            try:
                line = input(f"{name}> " if self._has_terminal else "")
                if not self._take(line):
                    return 0
            except EOFError:
                if self._has_terminal:
                    print()
                return 0
            except KeyboardInterrupt:
                if not self._has_terminal:
                    raise
                self._feedback.wipe()
                print()

    def _prepare(self) -> None:
        """Enable completion with Tab, if Python has readline."""
        try:
            import readline
        except ImportError:
            return
        completion = ReplCompleter(self.client, self.catalogue)
        readline.set_completer(completion.complete)
        readline.set_completer_delims(" ")
        is_libedit = "libedit" in (readline.__doc__ or "")
        readline.parse_and_bind("bind ^I rl_complete" if is_libedit else "tab: complete")

    def _take(self, line: str) -> bool:
        """Execute a line; return whether to continue. Raises ConnectionLost."""
        try:
            words = _words_of(line)
            if words and words[0] in ("quit", "exit"):
                return False
            if words:
                self._do(words[0], words[1:])
        except ConnectionLost:
            raise
        except (UsageError, ArgumentError, ClientError, ValueError) as error:
            self._feedback.wipe()
            write_line(f"fastrpc: {error}")
        sys.stdout.flush()
        return True

    def _do(self, command: str, words: list[str]) -> None:
        if command in LISTED and not words:
            wanted = {
                member: entries if member in LISTED[command] else []
                for member, entries in self.catalogue().items()
            }
            print_lines(shown(wanted))
        elif command == "help":
            print(HELP, end="")
        elif command == "call" and words:
            self._caller.call(words[0], *as_object(words[1:]))
        elif command == "read" and len(words) == 1:
            self._caller.read(words[0])
        elif command == "prompt" and words:
            self._caller.get(words[0], *as_object(words[1:]))
        elif command in COMMANDS:
            raise UsageError(f"{command}: wrong arguments (see 'help')")
        else:
            hint = suggestion(command, COMMANDS) or f"; the commands are {', '.join(COMMANDS)}"
            raise UsageError(f"unknown command {command!r}{hint}")


def _words_of(line: str) -> list[str]:
    """Return the words of a line, quoted as in a shell; JSON after a name is one word. Raises ValueError."""
    import shlex

    parts = line.split(None, 2)
    return parts if len(parts) == 3 and is_json(parts[2]) else shlex.split(line)
