"""Decides whether a shell command line only reads: it writes nothing, and runs only listed programs.

Every command of the line must be one of `programs` or `git`, with only listed options. Which files it reads,
and how much it prints, is not checked. The answer assumes that programs are found through the server's PATH,
and that no function, alias or setting in its environment changes their behaviour.

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
"""Words that tail may accept as obsolete options: ``+f`` follows the file forever."""
JQ = re.compile(r"\b(?:repeat|while|until|def|range|recurse|infinite|import|include|inputs?)\b")
"""Names by which a program of jq may run forever, or read other files."""
SED = re.compile(r"(?:[0-9]+|\$)(?:,(?:[0-9]+|\$))?p")
"""The scripts of sed that print lines by their numbers."""


def only_reads(line: str) -> bool:
    """Whether a line for bash is understood completely, and all of its commands only read."""
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


def _printf(words: Sequence[str], has_patterns: bool) -> bool:
    if not words or has_patterns or is_option(words[0]):
        return False
    return PRINTF.fullmatch(words[0]) is not None


def _find(words: Sequence[str], has_patterns: bool) -> bool:
    return all(word in FIND or word[1:2].isdigit() for word in words if is_option(word))


def _sed(words: Sequence[str], has_patterns: bool) -> bool:
    if len(words) < 2 or words[0] != "-n" or SED.fullmatch(words[1]) is None:
        return False
    return not any(is_option(word) for word in words[2:])


def _date(words: Sequence[str], has_patterns: bool) -> bool:
    """Whether ``date`` only reads: an operand without ``+`` sets the clock."""
    return PROGRAMS["date"].allows(words) and all(is_option(word) or word[:1] == "+" for word in words)


def _tail(words: Sequence[str], has_patterns: bool) -> bool:
    return PROGRAMS["tail"].allows(words) and not any(map(TAIL.match, words))


def _jq(words: Sequence[str], has_patterns: bool) -> bool:
    return PROGRAMS["jq"].allows(words) and not any(map(JQ.search, words))


def _command(words: Sequence[str], has_patterns: bool) -> bool:
    return words[:1] in (["-v"], ["-V"]) and not any(is_option(word) for word in words[1:])


SPECIAL: dict[str, Callable[[Sequence[str], bool], bool]] = {
    **{name: _prints_version(options) for name, options in VERSIONS.items()},
    "command": _command,
    "date": _date,
    "echo": lambda words, has_patterns: True,
    "find": _find,
    "git": lambda words, has_patterns: git.only_reads(words),
    "jq": _jq,
    "printf": _printf,
    "sed": _sed,
    "tail": _tail,
}
"""Programs whose operands matter, too. Each function receives the words after the program's name, and whether
a pattern is among them."""
BY_FOLDER = frozenset(("git", *VERSIONS))
"""Programs that read settings from the working folder, which ``cd`` may change to an untrusted one."""
