"""The tool InvokeSkill: returns the instructions of a skill, with its arguments inserted, and where its files
are.

Its description ends with the catalogue of skills. `attach` makes the server check once a second whether a
folder has changed; clients are notified only if the text of the catalogue changes. `_skills` defines what a
skill is and where it comes from. The text of a skill is not cut.
"""

from __future__ import annotations

from fastrpc import ToolError, ToolResult, tool

from . import _skills
from ._result import result
from ._settings import has_full_descriptions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated

    from fastrpc import Server
else:
    from fastrpc.typing_forms import Annotated

NAME = "InvokeSkill"
DESCRIPTION = "Invoke a skill by name for reusable workflows"
RESULT_LIMIT = 4 * 1024 * 1024  # characters, if the text contains arguments at many places
LOOK_SECONDS = 1.0

# `$ARGUMENTS`, or `$1` to `$99`; a backslash before the dollar sign escapes it.
PLACEHOLDER = r"(\\?)\$(?:(ARGUMENTS)(?![A-Za-z0-9_])|([1-9][0-9]?)(?![0-9]))"


@tool(name=NAME, description=DESCRIPTION, effect="read")
def invoke_skill(
    skill_name: Annotated[str, "The skill name to invoke"],
    arguments: Annotated[str | None, "Arguments to pass to the skill"] = None,
) -> ToolResult:
    """Give back a skill's instructions, for the model to follow."""
    catalogue = _skills.look()
    skill = catalogue.get(skill_name)
    if skill is None:
        raise ToolError(_unknown(skill_name, catalogue))
    try:
        body = _skills.body_of(skill)
    except _skills.Unreadable as problem:
        raise ToolError(f"skill_name: {_skills.writable(skill.path)} cannot be used: {problem}.") from None
    files, more = _skills.files_beside(skill)
    folder = _skills.writable(skill.folder)
    lines = [fill_in(body, arguments or ""), "", f"Skill folder: {folder}"]
    if files:
        lines.append(f"Files beside {_skills.FILE}: {', '.join(files)}{f' and {more} more' if more else ''}")
    facts = {"name": skill.name, "folder": folder, "files": files, "source": skill.place.label}
    return result("\n".join(lines), facts)


def _unknown(name: str, catalogue: _skills.SkillRegistry) -> str:
    """Return the message for an unknown skill, with similar names."""
    shown = _skills.shorten(_skills.one_line(name[:200]), 60)
    broken = catalogue.broken.get(_skills.folded(name[:200]))
    if broken is not None:
        path = _skills.writable(broken.path)
        return f'skill_name: the skill "{shown}" cannot be used: {path}: {broken.problem}.'
    names = sorted(skill.name for skill in catalogue.skills.values())
    if not names:
        return f'skill_name: there is no skill "{shown}"; there are no skills at all.'
    from difflib import get_close_matches

    by_letters = {known.casefold(): known for known in names}
    near = [by_letters[close] for close in get_close_matches(shown.casefold(), by_letters, 3, 0.5)]
    if near:
        return f'skill_name: there is no skill "{shown}". The nearest: {", ".join(near)}.'
    rest = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return f'skill_name: there is no skill "{shown}". There are: {", ".join(names[:10])}{rest}.'


# ------------------------------------------------------------------------------------------ arguments


def fill_in(body: str, arguments: str) -> str:
    """Insert arguments into a text: ``$ARGUMENTS`` is all of them, unchanged; ``$1`` … are single ones, empty
    if there are fewer. Inserted text is not searched again. To a text without such places the arguments are
    appended. Raises ToolError when the result would be too long."""
    import re

    words = split_arguments(arguments)
    pieces: list[str] = []
    at, size, taken = 0, len(body), False
    for match in re.finditer(PLACEHOLDER, body):
        backslash, whole, number = match.groups()
        if backslash:
            value = match[0][1:]
        else:
            taken = True
            value = arguments if whole else _word(words, int(number))
        size += len(value)
        if size > RESULT_LIMIT:
            raise ToolError(
                f"arguments: too long for a skill that repeats them; {len(arguments)} characters came."
            )
        pieces += (body[at : match.start()], value)
        at = match.end()
    text = "".join((*pieces, body[at:]))
    return text if taken or not arguments.strip() else f"{text}\n\nARGUMENTS: {arguments}"


def _word(words: list[str], number: int) -> str:
    return words[number - 1] if number <= len(words) else ""


def split_arguments(arguments: str) -> list[str]:
    """Split as a shell does: at white space, while quotes keep words together. Unmatched quotes are ordinary
    characters (``don't``)."""
    if not any(quote in arguments for quote in "'\""):
        return arguments.split()
    from shlex import shlex

    words = shlex(arguments, posix=True)
    words.whitespace_split = True
    words.commenters = words.escape = ""
    try:
        return list(words)
    except ValueError:
        return arguments.split()


# ------------------------------------------------------------------------------------------ catalogue


def attach(server: Server) -> None:
    """Keep the catalogue in the tool's description up to date with the disk."""
    shown = ""

    def look() -> None:
        nonlocal shown
        text = described()
        tool = server.tools.get(NAME)
        if tool is not None and text != shown:
            tool.description = shown = text
            server.tools.changed()

    look()
    server.watch(look, LOOK_SECONDS)


def described() -> str:
    """Return the description of the tool with the skills that exist now."""
    text = DESCRIPTION
    if has_full_descriptions():
        from ._descriptions import DESCRIPTIONS

        text = DESCRIPTIONS[NAME][0]
    catalogue = _skills.as_text(_skills.look())
    return f"{text}\n\n{catalogue}" if catalogue else text
