"""``fastrpc completion``: prints a script for bash, zsh or fish that completes commands, options and files.

The options are read from the help of each command, the only place where they are described. The script
contains all options, so pressing Tab does not start Python.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from fastrpc.cli import COMMANDS, parser, toolset_commands
from fastrpc.cli._clients import CLIENTS
from fastrpc.errors import UsageError

EXAMPLES = """\
  source <(fastrpc completion bash)                  in ~/.bashrc
  source <(fastrpc completion zsh)                   in ~/.zshrc, after compinit
  fastrpc completion fish | source                   in ~/.config/fish/config.fish
"""
OPTION = re.compile(r"^  (?:-\w, )?(--[\w-]+)(?: ([A-Z]\S*))?(?:\s{2,}(.*))?$")
CLIENTS_OF_INSTALL = " ".join(CLIENTS)
FOLDERS = ("DIR",)
NO_FILES = (
    *("N", "NAME", "LEVEL", "URL", "HOST", "HOST:PORT", "VERSION", "SECONDS", "JSON"),
    *("ID", "WHEN", "SCOPE", "CLASS", "TOOL"),
    *("NAME=VALUE", "NAME=VARIABLE"),
)


class Option(NamedTuple):
    """An option in a help text: its name, the name of its value ("" if it has none), its description."""

    name: str
    value: str
    description: str


def main(arguments: list[str]) -> int:
    """Print the script for one shell; return 0. Raises UsageError."""
    options = parser("completion", "|".join(SHELLS), EXAMPLES)
    options.add_argument("shell", metavar="SHELL", help=", ".join(SHELLS))
    shell = options.parse(arguments).shell
    if shell not in SHELLS:
        raise UsageError(f"completion: expected one of {', '.join(SHELLS)}; got {shell!r}")
    others = toolset_commands()
    described = {**COMMANDS, **{name: text for name, (text, _) in others.items()}}
    options_of = {name: _options(_help_of(name, others)) for name in described}
    print(SHELLS[shell](described, options_of), end="")
    return 0


def _help_of(command: str, others: dict[str, tuple[str, Callable[[list[str]], int]]]) -> str:
    import io
    from contextlib import redirect_stdout, suppress
    from importlib import import_module

    if command in others:
        run = others[command][1]
    else:
        run = import_module(f"fastrpc.cli.{command.replace('-', '_')}").main
    shown = io.StringIO()
    with redirect_stdout(shown), suppress(SystemExit):
        run(["--help"])
    return shown.getvalue()


def _options(shown: str) -> list[Option]:
    """Return the options of a help text; a description may begin on the line after the option."""
    lines = shown.partition("\nexamples:")[0].splitlines()
    found = []
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        match = OPTION.match(line)
        if match:
            found.append(Option(match[1], match[2] or "", match[3] or following.strip()))
    return found


def _bash(commands: dict[str, str], options_of: dict[str, list[Option]]) -> str:
    cases = [
        f"        {name}) options='{' '.join(option.name for option in options)}' ;;"
        for name, options in options_of.items()
    ]
    folders, wordless = _by_value(options_of)
    return BASH.format(
        commands=" ".join([*commands, "help"]),
        cases="\n".join(cases),
        folders="|".join(folders),
        wordless="|".join(wordless),
        clients=CLIENTS_OF_INSTALL,
        shells=" ".join(SHELLS),
    )


def _zsh(commands: dict[str, str], options_of: dict[str, list[Option]]) -> str:
    described = "\n".join(f"        {_quoted(f'{name}:{text}')}" for name, text in commands.items())
    cases = []
    for name, options in options_of.items():
        words = " ".join(_quoted(_zsh_option(option)) for option in options)
        cases.append(f"        {name}) _arguments {words} {_quoted(_zsh_argument(name))} ;;")
    return ZSH.format(commands=described, cases="\n".join(cases))


def _zsh_option(option: Option) -> str:
    description = re.sub(r"([\[\]:\\])", r"\\\1", option.description)
    action = "_files -/" if option.value in FOLDERS else "" if option.value in NO_FILES else "_files"
    taken = f":{option.value.replace(':', ' ')}:{action}" if option.value else ""
    return f"*{option.name}[{description}]{taken}"


def _zsh_argument(command: str) -> str:
    if command == "completion":
        return f":shell:({' '.join(SHELLS)})"
    return f"1:client:({CLIENTS_OF_INSTALL})" if command == "install-client" else "*:file:_files"


def _fish(commands: dict[str, str], options_of: dict[str, list[Option]]) -> str:
    lines = ["complete -c fastrpc -n __fish_use_subcommand -f"]
    for name, text in commands.items():
        lines.append(f"complete -c fastrpc -n __fish_use_subcommand -a {name} -d {_quoted(text)}")
    for name, options in options_of.items():
        within = _quoted(f"__fish_seen_subcommand_from {name}")
        for option in options:
            taken = "" if not option.value else " -x" if option.value in NO_FILES else " -r"
            if option.value in FOLDERS:
                taken = " -x -a '(__fish_complete_directories)'"
            described = _quoted(option.description)
            lines.append(f"complete -c fastrpc -n {within} -l {option.name[2:]}{taken} -d {described}")
    for name, words in (("install-client", CLIENTS_OF_INSTALL), ("completion", " ".join(SHELLS))):
        lines.append(f"complete -c fastrpc -n '__fish_seen_subcommand_from {name}' -f -a '{words}'")
    return "\n".join(lines) + "\n"


def _by_value(options_of: dict[str, list[Option]]) -> tuple[list[str], list[str]]:
    """Return the options whose value is a folder, and those whose value is not a file."""
    everyone = {option.name: option.value for options in options_of.values() for option in options}
    folders = [name for name, value in everyone.items() if value in FOLDERS]
    return folders, [name for name, value in everyone.items() if value in NO_FILES]


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


BASH = """\
_fastrpc() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" options=''
    COMPREPLY=()
    if [ "$COMP_CWORD" = 1 ]; then
        COMPREPLY=($(compgen -W '{commands} --help --version' -- "$word"))
        return
    fi
    case "$before" in
        {folders}) COMPREPLY=($(compgen -d -- "$word")); return ;;
        {wordless}) return ;;
        install-client) COMPREPLY=($(compgen -W '{clients}' -- "$word")); return ;;
        completion) COMPREPLY=($(compgen -W '{shells}' -- "$word")); return ;;
        help) COMPREPLY=($(compgen -W '{commands}' -- "$word")); return ;;
    esac
    case "${{COMP_WORDS[1]}}" in
{cases}
    esac
    case "$word" in
        -*) COMPREPLY=($(compgen -W "$options" -- "$word")) ;;
        *) COMPREPLY=($(compgen -f -- "$word")) ;;
    esac
}}
complete -o filenames -F _fastrpc fastrpc
"""
ZSH = """\
#compdef fastrpc
_fastrpc() {{
    local -a commands=(
{commands}
    )
    if (( CURRENT == 2 )); then
        _describe command commands
        return
    fi
    shift words
    (( CURRENT-- ))
    case $words[1] in
{cases}
        help) _describe command commands ;;
    esac
}}
compdef _fastrpc fastrpc
"""
SHELLS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
