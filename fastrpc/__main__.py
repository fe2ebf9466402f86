"""The ``fastrpc`` command, also ``python -m fastrpc``: finds the command and its exit code.

`serve` is checked first and imports only what it needs. A user's mistake is one line on stderr and exit
code 2, never a traceback. A reader that closes the pipe (``fastrpc tools | head``) is not a mistake.
"""

from __future__ import annotations

import sys

from fastrpc.errors import ArgumentError, DefinitionError, UsageError
from fastrpc.garbage import collect_seldom

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

HELP = """\
usage: fastrpc COMMAND [ARGUMENT…]

An MCP server and the framework to write one.

{commands}

options:
  -h, --help            show this; 'fastrpc help COMMAND' or 'fastrpc COMMAND --help' for one command
  -V, --version         show the version

examples:
  fastrpc new notes                    make a server of your own, with tests
  fastrpc serve                        serve the agent's tools to an MCP client
  fastrpc serve my_tools.py            serve your own
  fastrpc tools                        what is served, as a table
  fastrpc demo                         watch a client and a server talk
"""


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit code: 0, 1 when it failed, 2 for a mistake in the call."""
    arguments = sys.argv[1:] if argv is None else argv
    try:
        if arguments and arguments[0] == "serve" and not {"-h", "--help"} & {*arguments}:
            collect_seldom()
            from fastrpc.cli.serve import main as serve

            return serve(arguments[1:])
        return _other_command(arguments)
    except (UsageError, DefinitionError, ArgumentError) as error:  # the last: what JSON cannot hold
        return _say(str(error), 2)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return _reader_is_gone()
    except OSError as error:
        return _system_refuses(error)
    except ImportError as error:
        from fastrpc.cli._extras import needed

        words = needed(error)
        if words is None:
            raise
        return _say(words, 2)
    except UnicodeEncodeError as error:
        odd = next((each for each in arguments if not _is_utf8(each)), None)
        if odd is None:
            raise
        return _say(f"expected UTF-8, got the argument {odd!r:.80} ({error.reason})", 2)


def _other_command(arguments: list[str]) -> int:
    _fill_descriptors()
    if sys.stdout is not None:
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        code = _dispatch(arguments)
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except BrokenPipeError:
        return _reader_is_gone()


def _fill_descriptors() -> None:
    """Open /dev/null in place of closed standard descriptors. Otherwise a file or a socket would get their
    numbers, and libraries abort. Reading returns nothing; writing to standard output is an error."""
    import os

    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_WRONLY if number == 2 else os.O_RDONLY)
    if sys.stdin is None:
        sys.stdin = open(0, closefd=False)
    if sys.stdout is None:
        sys.stdout = open(1, "w", closefd=False)


def _dispatch(arguments: list[str]) -> int:
    from fastrpc.cli import COMMANDS, OTHER_WORDS, serving, shipped_toolset, toolset_commands
    from fastrpc.command_line import suggestion, unknown_option, write_help

    word = arguments[0] if arguments else "help"
    if word == "help" and len(arguments) > 1:
        return main([*arguments[1:], "--help"])
    if word in ("--help", "-h", "help"):
        write_help(_help())
        return 0
    if word in ("--version", "-V"):
        from fastrpc.version import __version__

        print(f"fastrpc {__version__}")
        return 0
    if word.startswith("-"):
        raise unknown_option(word, ("--help", "--version"))
    from importlib import import_module

    if word in COMMANDS:
        command = import_module(f"fastrpc.cli.{word.replace('-', '_')}").main
    elif (toolset := shipped_toolset(word)) is not None:  # first: `toolset_commands` reads settings
        return _of_toolset(toolset, word, arguments[1:])
    else:
        others = toolset_commands()
        if word not in others:
            known = [*COMMANDS, *others]
            meant = OTHER_WORDS.get(word) or serving(word)
            hint = f"; here it is 'fastrpc {meant}'" if meant else suggestion(word, known)
            raise UsageError(f"unknown command {word!r}{hint or '; the commands are ' + ', '.join(known)}")
        command = others[word][1]
    return _run(command, arguments[1:])


def _help() -> str:
    """Return the help: all commands in groups."""
    from itertools import starmap

    from fastrpc.cli import COMMANDS, GROUPS, shipped_commands, toolset_commands

    groups = {title: {name: COMMANDS[name] for name in names} for title, names in GROUPS.items()}
    own = {name: text for name, (text, _) in toolset_commands().items()}
    groups["tools"] = {**own, **shipped_commands()}
    return HELP.format(commands="\n\n".join(starmap(_listed, groups.items())))


def _listed(title: str, commands: dict[str, str]) -> str:
    return "\n".join([f"{title}:", *(f"  {name:<21} {text}" for name, text in commands.items())])


def _of_toolset(toolset: str, word: str, arguments: list[str]) -> int:
    """Run ``fastrpc WORD COMMAND``: a command of a shipped toolset, even if another one is configured."""
    from fastrpc.cli import toolset_commands
    from fastrpc.command_line import suggestion, write_help

    commands = toolset_commands(toolset)
    if not arguments or arguments[0] in ("-h", "--help"):
        listed = _listed("commands", {name: text for name, (text, _) in commands.items()})
        write_help(f"usage: fastrpc {word} COMMAND [ARGUMENT…]\n\n{listed}")
        return 0
    if arguments[0] not in commands:
        hint = suggestion(arguments[0], commands) or f"; the commands are {', '.join(commands)}"
        raise UsageError(f"{word}: unknown command {arguments[0]!r}{hint}")
    return _run(commands[arguments[0]][1], arguments[1:])


def _run(command: Callable[[list[str]], int], arguments: list[str]) -> int:
    try:
        code: Any = command(arguments)
    except SystemExit as leaving:  # argparse, after --help
        code = leaving.code
    return int(code or 0)


def _say(text: str, code: int) -> int:
    """Write one line on standard error and return the exit code."""
    from fastrpc.diagnostics import write_line

    write_line("fastrpc: " + " ".join(text.split()))
    return code


def _is_utf8(argument: str) -> bool:
    try:
        argument.encode()
    except UnicodeEncodeError:  # Python decodes invalid bytes to surrogates
        return False
    return True


def _is_somewhere() -> bool:
    """Whether the working directory still exists."""
    from os import getcwd

    try:
        getcwd()
    except FileNotFoundError:
        return False
    return True


def _system_refuses(error: OSError) -> int:
    """Write what the system refuses, such as a file, or standard output on a full disk."""
    from errno import EBADF, EDQUOT, EFBIG, EIO, ENOENT, ENOSPC

    place = error.filename
    if place is None and error.errno == ENOENT and not _is_somewhere():
        place = "the working directory"
    if place is None and error.errno in (EBADF, EDQUOT, EFBIG, EIO, ENOSPC):
        place = "standard output"
        _reader_is_gone()
    reason = error.strerror or str(error) or type(error).__name__
    return _say(f"{place}: {reason}" if place else reason, 1)


def _reader_is_gone() -> int:
    """End silently. The buffered output is dropped: flushing it at exit would fail."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return 1


def run() -> NoReturn:
    """Run one command in its own process, and end that. A second Ctrl-C changes no exit code."""
    code = main()
    import _signal  # type: ignore[import-not-found]  # without what `signal` imports

    _signal.signal(_signal.SIGINT, _signal.SIG_IGN)
    sys.exit(code)


if __name__ == "__main__":
    run()
