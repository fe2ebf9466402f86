"""Whether a shell command line only reads: it writes no file, changes no state, and runs no program but those
of the table.

Every command of the line has to be one of `programs` or `git`, with no option but the listed ones. Which
files it reads, and how much it prints, is not looked at. What the answer rests on: programs are found where
the server's PATH says, and no function, alias or setting in its environment has changed what they do.

On a busy machine a rule took 25 µs for ``ls -la``, 80 for three programs joined by ``&&`` and ``|``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from fastrpc.guard.shell import git
from fastrpc.guard.shell.devices import names_device
from fastrpc.guard.shell.lexer import Command
from fastrpc.guard.shell.parser import commands
from fastrpc.guard.shell.programs import FIND, PROGRAMS, VERSIONS, is_option

PRINTF = re.compile(r"(?:[^%\\]|%%|\\[abfnrtv\\]|%[-+ 0#]*(?:[1-9][0-9]*)?(?:\.[0-9]+)?[cdeEfgGioqsuxX])*")
"""The formats of printf that only print: ``%n`` sets a variable, and so may change PATH."""
TAIL = re.compile(r"\+(?![0-9]+\Z)|[+-][0-9]*[bcl]*f")
"""Words that tail may take for an option of old: ``+f`` follows the file for ever."""
JQ = re.compile(r"\b(?:repeat|while|until|def|range|recurse|infinite|import|include|inputs?)\b")
"""What programs of jq may run for ever with, or read other files by."""
SED = re.compile(r"(?:[0-9]+|\$)(?:,(?:[0-9]+|\$))?p")
"""The scripts of sed that print lines by their numbers."""


def only_reads(line: str) -> bool:
    """Whether a line for bash is understood as a whole, and all that it runs only reads."""
    found = commands(line)
    if found is None or not all(_reads(command) for command in found):
        return False
    if any(map(names_device, found)):
        return False
    programs = {command[0].text for command in found}
    return "cd" not in programs or programs.isdisjoint(BY_FOLDER)


def _reads(command: Command) -> bool:
    name, *words = (word.text for word in command)
    has_patterns = any(word.is_pattern for word in command)
    special = SPECIAL.get(name)
    if special is not None:
        return special(words, has_patterns)
    program = PROGRAMS.get(name)
    if program is None or (has_patterns and program.operands is not None):
        return False
    return program.allows(words)


def _prints_version(options: tuple[str, ...]) -> Callable[[Sequence[str], bool], bool]:
    return lambda words, has_patterns: len(words) == 1 and words[0] in options


def _echo(words: Sequence[str], has_patterns: bool) -> bool:
    return True


def _printf(words: Sequence[str], has_patterns: bool) -> bool:
    return (
        bool(words)
        and not is_option(words[0])
        and PRINTF.fullmatch(words[0]) is not None
        and not has_patterns
    )


def _find(words: Sequence[str], has_patterns: bool) -> bool:
    return all(word in FIND or word[1:2].isdigit() for word in words if is_option(word))


def _sed(words: Sequence[str], has_patterns: bool) -> bool:
    if len(words) < 2 or words[0] != "-n" or SED.fullmatch(words[1]) is None:
        return False
    return not any(is_option(word) for word in words[2:])


def _date(words: Sequence[str], has_patterns: bool) -> bool:
    """An operand without ``+`` sets the clock."""
    return PROGRAMS["date"].allows(words) and all(is_option(word) or word[:1] == "+" for word in words)


def _tail(words: Sequence[str], has_patterns: bool) -> bool:
    return PROGRAMS["tail"].allows(words) and not any(map(TAIL.match, words))


def _jq(words: Sequence[str], has_patterns: bool) -> bool:
    return PROGRAMS["jq"].allows(words) and not any(map(JQ.search, words))


def _command(words: Sequence[str], has_patterns: bool) -> bool:
    return words[:1] in (["-v"], ["-V"]) and not any(is_option(word) for word in words[1:])


def _git(words: Sequence[str], has_patterns: bool) -> bool:
    return git.only_reads(words)


SPECIAL: dict[str, Callable[[Sequence[str], bool], bool]] = {
    **{name: _prints_version(options) for name, options in VERSIONS.items()},
    "command": _command,
    "date": _date,
    "echo": _echo,
    "find": _find,
    "git": _git,
    "jq": _jq,
    "printf": _printf,
    "sed": _sed,
    "tail": _tail,
}
"""Programs whose words are not a matter of options alone. Each is given the words behind its name, and
whether a pattern is among them."""
BY_FOLDER = frozenset(("git", *VERSIONS))
"""Programs that take settings from the folder, which ``cd`` may change to one that somebody else has made."""
