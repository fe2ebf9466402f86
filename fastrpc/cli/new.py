"""``fastrpc new``: creates a folder with a server, its tests, and the files for pip, clients and Docker.

All files are written to a temporary folder, which is then renamed: the project is complete or does not exist.
Existing files are not changed. On a terminal, a person is asked about what the options leave open.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from argparse import Namespace

from fastrpc.cli import _project_files as files
from fastrpc.cli import parser
from fastrpc.errors import Reworded, UsageError

EXAMPLES = """\
  fastrpc new notes                     the folder notes, with all files
  fastrpc new notes --no-guard --no-docker
  fastrpc new notes --folder ~/src      the folder ~/src/notes
"""
NAME = re.compile(r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*", re.ASCII)
LONGEST_NAME = 60
CHOICES = {
    "guard": "A policy for the guard: who may call what (guard.toml)?",
    "docker": "A Dockerfile?",
}


def main(arguments: list[str]) -> int:
    """Write the project and print what to do next; return 0. Raises UsageError."""
    options = parser("new", "NAME [OPTION…]", EXAMPLES)
    options.add_argument("name", metavar="NAME", help="of the server, and of the folder that is made")
    options.option("--folder DIR", "make the folder in DIR (here)", default="")
    for choice, file in (("guard", "guard.toml"), ("docker", "Dockerfile")):
        words = f"write a {file} (the default)"
        options.add_argument(f"--{choice}", action="store_true", default=None, help=words)
        options.add_argument(f"--no-{choice}", dest=choice, action="store_false", help=f"write no {file}")
    chosen = options.parse(arguments)
    if not NAME.fullmatch(chosen.name) or len(chosen.name) > LONGEST_NAME:
        raise UsageError(
            "new: NAME: expected a small letter, then small letters and digits with - or _ between them, "
            f"{LONGEST_NAME} characters at most, got {chosen.name!r:.80}{_like(chosen.name)}"
        )
    target = os.path.join(os.path.expanduser(chosen.folder), chosen.name)
    place = os.path.abspath(target)  # raises FileNotFoundError if the working directory was deleted
    if os.path.lexists(place):
        raise UsageError(f"new: {target} exists already: give another NAME, or another --folder")
    _ask(chosen)
    with Reworded(OSError, UsageError, f"new: {target}: "):
        _write(place, project(chosen.name, guard=chosen.guard, docker=chosen.docker))
    print(f"Made {target}. Next:\n\n  cd {target}\n  fastrpc dev server.py")
    print("  fastrpc call server.py add_note title=tea text='Buy tea.'")
    return 0


def project(name: str, *, guard: bool = True, docker: bool = True) -> dict[str, str]:
    """Return the texts of a project's files, by their paths in it."""
    found = {
        "server.py": files.SERVER,
        "test_server.py": files.TESTS,
        "pyproject.toml": files.PROJECT,
        ".mcp.json": files.MCP_JSON,
        ".vscode/mcp.json": files.VSCODE_JSON,
        ".gitignore": files.IGNORED,
        "README.md": files.README,
    }
    if guard:
        found["guard.toml"] = files.GUARD
    if docker:
        found |= {"Dockerfile": files.DOCKERFILE, ".dockerignore": files.IGNORED}
    extras = [*(["guard"] if guard else []), *(["http"] if docker else [])]
    values = {
        "NAME": name,
        "EXTRAS": ",".join(extras),
        "SERVE": files.GUARDED if guard else "",
        "GUARDED": ', "--guard", "guard.toml"' if guard else "",
    }
    return {path: _filled(text, values) for path, text in found.items()}


def _filled(text: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    return text.replace("fastrpc-mcp[]", "fastrpc-mcp")


def _ask(chosen: Namespace) -> None:
    """Set what the options leave open: ask a person, or use yes."""
    is_asked = sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()
    for choice, question in CHOICES.items():
        if getattr(chosen, choice) is None:
            setattr(chosen, choice, not is_asked or _is_wanted(question))


def _is_wanted(question: str) -> bool:
    """Ask until the answer is yes, no or Enter, which is yes. Raises KeyboardInterrupt, for Ctrl-D too."""
    while True:
        try:
            answer = input(f"{question} [Y/n] ").strip().lower()
        except (EOFError, KeyboardInterrupt):
            print()
            raise KeyboardInterrupt from None
        if answer in ("", "y", "yes", "n", "no"):
            return not answer.startswith("n")
        print("Please answer y or n; Ctrl-C makes nothing.")


def _like(name: str) -> str:
    """Return a hint with a valid name that has the same words, or ""."""
    from fastrpc.unicode_forms import normal_form

    letters = normal_form("NFKD", name[:LONGEST_NAME]).encode("ascii", "ignore").decode().lower()
    meant = "-".join(re.findall("[a-z0-9]+", letters))
    return f"; did you mean {meant!r}?" if NAME.fullmatch(meant) else ""


def _write(target: str, texts: dict[str, str]) -> None:
    """Write the files to a new folder. Raises OSError, after removing everything again."""
    parent, name = os.path.split(target)
    made = tempfile.mkdtemp(prefix=f".{name}-", dir=parent)
    try:
        for path, text in texts.items():
            place = os.path.join(made, path)
            os.makedirs(os.path.dirname(place), exist_ok=True)
            with open(place, "x", encoding="utf-8") as file:
                file.write(text)
        mask = os.umask(0)  # it can only be read by setting it
        os.umask(mask)
        os.chmod(made, 0o777 & ~mask)
        os.rename(made, target)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise
