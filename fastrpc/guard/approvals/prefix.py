"""Approvals of a shell command by its first words: ``git commit`` with any further words.

Such an approval applies to a call only if the shell parser accepts the whole line and each command in it
begins with these words. All other arguments, the caller, the server, the tool, its schema and the policy must
be those that were approved. tree-sitter is imported when such an approval is made or checked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from fastrpc.errors import FastrpcError
from fastrpc.guard.approvals.binding import Binding


class PrefixError(FastrpcError):
    """Words that cannot be approved as the beginning of a command."""


def prefix_of(text: str, arguments: str) -> str:
    """Return the words as they are stored, for a call with these arguments (JSON). Raises PrefixError."""
    commands = _commands(text)
    if commands is None or len(commands) != 1:
        raise PrefixError(f"{text!r:.80}: expected the first words of one plain command")
    (words,) = commands
    try:
        given = json.loads(arguments)
    except ValueError:
        raise PrefixError("the arguments are too long to be looked at") from None
    found = [name for name, value in given.items() if isinstance(value, str) and begins_with(value, words)]
    if len(found) != 1:
        raise PrefixError(
            f"{' '.join(words)!r}: expected one argument whose whole line a shell parser understands, and "
            f"whose commands all begin so; there are {len(found)}"
        )
    return json.dumps({"argument": found[0], "words": words})


def allows(prefix: str, rest_digests: str, binding: Binding) -> bool:
    """Whether an approval of first words applies to a call."""
    kept = json.loads(prefix)
    name = kept["argument"]
    rest: Mapping[str, str] = json.loads(rest_digests)
    is_like = name in binding.texts and rest.get(name) == binding.rest_digests[name]
    return is_like and begins_with(binding.texts[name], kept["words"])


def begins_with(line: str, words: list[str]) -> bool:
    """Whether a shell parser understands a line, and all its commands begin with these words."""
    commands = _commands(line)
    return bool(commands) and all(command[: len(words)] == words for command in commands or ())


def _commands(line: str) -> list[list[str]] | None:
    """Return the words of each command of a line; None if the line is not understood, or a word is a pattern
    that may expand to others."""
    from fastrpc.guard.shell.parser import commands

    try:
        found = commands(line)
    except ImportError:
        raise PrefixError('it needs tree-sitter: pip install "fastrpc-mcp[guard]"') from None
    if found is None or any(word.is_pattern for command in found for word in command):
        return None
    return [[word.text for word in command] for command in found]
