"""The reference of the command line, made of the help texts of the program itself.

Every command has a page, made of what ``fastrpc COMMAND --help`` prints: options are described in the parsers
alone. All help texts have one form (tests/integration/test_command_line_help.py), which is read here:
paragraphs, and lists whose lines begin with two spaces, a name and its description. Usage and examples are
copied.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections.abc import Iterator

from fastrpc.__main__ import main
from fastrpc.cli import COMMANDS, toolset_commands
from fastrpc.command_line import WIDTH

TOOLSETS = ("fastrpc.tools.agent", "fastrpc.tools.contracts", "fastrpc.tools.knowledge")


def help_of(*words: str) -> str:
    """Return what a command prints when asked for help, as wide as any terminal shows it."""
    shown = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    columns = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = str(WIDTH)
    try:
        with contextlib.redirect_stdout(shown), contextlib.suppress(SystemExit):
            main([*words, "--help"])
    finally:
        os.environ.pop("COLUMNS") if columns is None else os.environ.update(COLUMNS=columns)
    shown.seek(0)
    return shown.read()


def joined(lines: list[str]) -> str:
    """Return what was wrapped as one line; a word that has a hyphen may have been cut behind it."""
    return re.sub(r"(?<=\w-)\n", "", "\n".join(line.strip() for line in lines)).replace("\n", " ").strip()


def entries_in(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the name and the description of each entry of a list in a help text."""
    starts = [number for number, line in enumerate(lines) if re.match(r"  \S", line)]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        name, *words = re.split(r"\s{2,}", lines[start].strip(), maxsplit=1)
        yield name, joined([*words, *lines[start + 1 : end]])


def in_markdown(paragraphs: list[str], level: int) -> str:
    """Return parts of a help text as Markdown: a table for each list, code for usage and examples."""
    parts: list[str] = []
    heading = "#" * level
    for paragraph in paragraphs:
        first, _, rest = paragraph.partition("\n")
        if paragraph.startswith("usage:"):
            parts.append(f"```text\n{usage_in(paragraph)}\n```")
        elif paragraph.startswith("examples:"):
            examples = "\n".join(line.removeprefix("  ") for line in rest.splitlines())
            parts.append(f"{heading} Examples\n\n```sh\n{examples}\n```")
        elif first.endswith(":") and rest.startswith("  "):
            entries = [
                [cell.replace("|", "\\|") for cell in entry] for entry in entries_in(rest.splitlines())
            ]
            rows = "\n".join(f"| `{name}` | {words} |" for name, words in entries)
            title = first[0].upper() + first[1:-1]
            parts.append(f"{heading} {title}\n\n| | |\n| --- | --- |\n{rows}")
        else:
            parts.append(joined(paragraph.replace("<", "&lt;").splitlines()))
    return "\n\n".join(parts) + "\n"


def usage_in(paragraph: str) -> str:
    return re.sub(r"^(usage:)? +", "", paragraph, flags=re.MULTILINE)


def page_of(words: tuple[str, ...]) -> str:
    """Return the page of a command, with what the help of its actions has besides (``audit search``)."""
    name = f"fastrpc {' '.join(words)}"
    own = help_of(*words).rstrip("\n").split("\n\n")
    page = f"# {name}\n\n{in_markdown(own, 2)}"
    for action in dict.fromkeys(re.findall(rf"^{name} ([a-z]+)\b", usage_in(own[0]), re.MULTILINE)):
        shown = help_of(*words, action).rstrip("\n").split("\n\n")
        if more := [paragraph for paragraph in shown if paragraph not in own]:
            page += f"\n## {name} {action}\n\n{in_markdown(more, 3)}"
    return page


def commands() -> Iterator[tuple[str, ...]]:
    """Yield the words of each command, of the toolsets, too."""
    yield from ((command,) for command in COMMANDS)
    for toolset in TOOLSETS:
        first = () if toolset == TOOLSETS[0] else (toolset.rpartition(".")[2],)
        yield from ((*first, command) for command in toolset_commands(toolset))


def pages() -> Iterator[tuple[str, str]]:
    """Yield each page: its path in the site, and its text."""
    for words in commands():
        yield f"commands/{'-'.join(words)}.md", page_of(words)
