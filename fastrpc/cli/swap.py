"""``fastrpc swap``: runs servers that were written for FastMCP or the official SDK on fastrpc.

For files or folders it rewrites the imports (`fastrpc.swap.rewriting`), shows the difference and names
everything that is missing. With ``--run`` it replaces its process by a command whose imports fastrpc serves
(`fastrpc.swap.launch`): no file changes; with ``--objects original`` the framework's own classes stay, and
are served over fastrpc's transports (`fastrpc.swap.originals`). Exit codes: 0; 1 if something is missing, a
file cannot be read or, with ``--check``, would change; 2 for a wrong command line. ``--run`` has the exit
code of the command.
"""

from __future__ import annotations

import os
import sys

from fastrpc.cli import parser
from fastrpc.cli._target import split_command
from fastrpc.command_line import takes_colours
from fastrpc.diagnostics import write_line
from fastrpc.errors import Reworded, UsageError
from fastrpc.terminal.text import styled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

    from fastrpc.swap.rewriting import Rewritten
    from fastrpc.swap.usage import Missing

EXAMPLES = """\
  fastrpc swap server.py                       rewrite its imports, show the changes
  fastrpc swap --check src                     change nothing, for CI
  fastrpc swap --run -- python server.py       run it on fastrpc, without a change
  fastrpc swap --run -- uvx mcp-server-time    run a published server on it
"""
USAGE = "[--diff | --check] [--force] FILE|FOLDER… | --run [--objects CLASSES] -- COMMAND…"
SKIPPED_FOLDERS = ("__pycache__", "node_modules", "site-packages")
COLOURS = {"+": "32", "-": "31", "@": "36"}


def main(arguments: list[str]) -> int:
    """Rewrite files, or run a command; return the exit code. Raises UsageError."""
    arguments, command = split_command(arguments)
    options = parser("swap", USAGE, EXAMPLES)
    options.add_argument(
        "paths", metavar="FILE|FOLDER", nargs="*", help="a file, or a folder with all its .py files"
    )
    options.option("--diff", "show the changes, write nothing")
    options.option(
        "--check", "for CI: write nothing; exit code 1 if a file would change or uses what fastrpc lacks"
    )
    options.option("--force", "also write files that use something that fastrpc does not have")
    options.option("--run", "run the command after -- on fastrpc; no file changes")
    options.option(
        "--objects CLASSES",
        "with --run: ours (fastrpc's classes in place of the framework's), or original, an experiment: the "
        "framework's own classes, served over fastrpc's transports (ours)",
        choices=["ours", "original"],
    )
    chosen = options.parse(arguments)
    if chosen.run:
        return _run(chosen, command)
    if command or chosen.objects:
        raise UsageError(f"swap: {'a command after --' if command else '--objects'} needs --run")
    if not chosen.paths:
        raise UsageError("swap: a file or a folder is needed, or --run -- COMMAND")
    return _rewrite_all(chosen)


NO_PYTHON = ("bun", "bunx", "deno", "docker", "go", "java", "node", "npm", "npx", "podman")
"""Programs whose servers are not written in Python, or do not receive the environment variables."""


def _run(chosen: Namespace, command: list[str]) -> int:
    """Replace this process by the command. Raises UsageError."""
    if chosen.paths or chosen.diff or chosen.check or chosen.force:
        raise UsageError("swap --run: takes only a command after --, no files and no other options")
    if not command:
        raise UsageError("swap --run: a command is needed, such as: fastrpc swap --run -- python server.py")
    from fastrpc import diagnostics
    from fastrpc.swap.launch import OURS, ROOT, environment

    variables = environment(command, objects=chosen.objects or OURS)
    variables[ROOT] = str(os.getpid())  # `exec` keeps the process id
    if os.path.basename(command[0]) in NO_PYTHON:
        diagnostics.write(
            "warning", f"swap --run: {command[0]} is not Python: fastrpc replaces nothing in it"
        )
    with Reworded(OSError, UsageError, f"{command[0]}: "):
        os.execvpe(command[0], command, variables)


def _rewrite_all(chosen: Namespace) -> int:
    """Rewrite all files; return the exit code. Raises UsageError."""
    changed = written = 0
    is_complete = True
    for path in _files(chosen.paths):
        source, rewritten = _rewritten(path)
        if rewritten is None:
            is_complete = False
            continue
        lacks = [missing for missing in rewritten.missing if not missing.is_optional]
        is_complete = is_complete and not lacks
        _report(path, rewritten.missing)
        if rewritten.source == source:
            continue
        changed += 1
        _show(path, source, rewritten.source)
        if not chosen.diff and not chosen.check and (not lacks or chosen.force):
            _write(path, rewritten.source)
            written += 1
    _summarize(chosen, changed, written)
    return int(not is_complete or (chosen.check and changed > 0))


def _files(paths: list[str]) -> Iterator[str]:
    """Yield the files, and the .py files of folders, except virtual environments and hidden folders. Raises
    UsageError."""
    for path in paths:
        if not os.path.isdir(path):
            if not os.path.exists(path):
                raise UsageError(f"{path}: no such file or folder")
            yield path
            continue
        for place, folders, names in os.walk(path):
            folders[:] = sorted(
                name
                for name in folders
                if name not in SKIPPED_FOLDERS
                and not name.startswith(".")
                and not os.path.exists(os.path.join(place, name, "pyvenv.cfg"))
            )
            yield from (os.path.join(place, name) for name in sorted(names) if name.endswith(".py"))


def _rewritten(path: str) -> tuple[bytes, Rewritten | None]:
    """Return a file's content, and its rewritten form. If it cannot be read, report that and return None."""
    from fastrpc.regular_files import LARGEST, read_regular
    from fastrpc.swap.rewriting import rewrite

    try:
        source = read_regular(path, LARGEST)
        return source, rewrite(source)
    except OSError as error:
        write_line(f"fastrpc: {path}: {error.strerror}")
    except SyntaxError as error:
        write_line(f"fastrpc: {path}:{error.lineno or 1}: {error.msg}")
    except ValueError as error:
        write_line(f"fastrpc: {path}: {error}")
    return b"", None


def _report(path: str, missing: list[Missing]) -> None:
    for each in missing:
        instead = f": {each.text}" if each.text else ""
        optional = " (the file goes on without it)" if each.is_optional else ""
        write_line(f"{path}:{each.line}: fastrpc has no {each.name}{instead}{optional}")


def _show(path: str, source: bytes, rewritten: bytes) -> None:
    from difflib import unified_diff

    is_coloured = takes_colours(sys.stdout)
    before, after = (text.decode("utf-8", "replace").splitlines() for text in (source, rewritten))
    for line in unified_diff(before, after, path, path, lineterm=""):
        print(styled(line, COLOURS.get(line[:1])) if is_coloured else line)


def _write(path: str, data: bytes) -> None:
    """Replace a file. Raises UsageError."""
    from fastrpc.regular_files import replace_file

    path = os.path.realpath(path)
    with Reworded(OSError, UsageError, f"{path}: "):
        replace_file(path, data, os.stat(path).st_mode & 0o7777)


def _summarize(chosen: Namespace, changed: int, written: int) -> None:
    if chosen.diff or chosen.check:
        write_line(f"fastrpc: {_files_of(changed)} would change")
    else:
        left = (
            f"; {_files_of(changed - written)} not, which fastrpc cannot serve (--force writes them too)"
            if changed > written
            else ""
        )
        write_line(f"fastrpc: {_files_of(written)} rewritten{left}")


def _files_of(count: int) -> str:
    return f"{count} file" if count == 1 else f"{count} files"
