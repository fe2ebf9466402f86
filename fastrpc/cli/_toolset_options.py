"""Options that toolsets add to `fastrpc serve TOOLSET` and `fastrpc selftest TOOLSET`.

A toolset's module ``_settings`` defines them in ``OPTIONS``, which maps an option to its setting. Their
values are exported to this process's environment, where its workers and the toolset read them. Imported only
for an option that the command does not have.
"""

from __future__ import annotations

import os

from fastrpc.errors import Reworded, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc.settings import Setting

SWITCH_KINDS = ("flag", "guard", "permission")
"""The kinds of settings that are switches: their option takes no value and sets them to true."""


def export_toolset_options(arguments: list[str], command: str) -> list[str]:
    """Export the options of the toolsets that the arguments, or FASTRPC_TOOLSET, name. Return the other
    arguments.

    Raises UsageError for a value that its setting cannot have.
    """
    known = _options_of(arguments)
    left: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        name, equals, text = argument.partition("=")
        if argument == "--":
            return [*left, argument, *rest]
        if name not in known:
            left.append(argument)
        elif known[name].kind in SWITCH_KINDS:
            if equals:
                raise UsageError(f"{name} takes no value (see 'fastrpc {command} --help')")
            os.environ[known[name].name] = "1"
        else:
            os.environ[known[name].name] = _checked(known[name], name, text if equals else next(rest, ""))
    return left


def _options_of(words: list[str]) -> dict[str, Setting]:
    from importlib import import_module
    from importlib.util import find_spec

    found: dict[str, Setting] = {}
    for word in [*words, os.environ.get("FASTRPC_TOOLSET", "")]:
        if all(part.isidentifier() for part in word.split(".")):
            try:
                there = find_spec(f"{word}._settings")
            except ModuleNotFoundError:  # a file, or a module that is not a package
                continue
            if there is not None:
                found |= getattr(import_module(f"{word}._settings"), "OPTIONS", {})
    return found


def _checked(setting: Setting, option: str, text: str) -> str:
    from fastrpc.settings import PARSERS

    if not text:
        raise UsageError(f"{option} needs a value")
    with Reworded(ValueError, UsageError, f"{option}: ", f", got {text!r:.100}"):
        PARSERS[setting.kind](text)
    return text
