"""Runs what a page of the documentation prints, in its order, in an empty folder.

A block below a line that ends with a file's name and a colon (```server.py`:``) is that file. One below "into
`server.py`, above its last two lines:" is written there. Of a ``console`` block the lines behind ``$`` are
commands, which run in one shell; what is below a command is what it has to print, ``…`` for any text in a
line and, alone, for any lines. A command with ``&`` at its end is a server: the next waits until it serves.
Ports 8000 and 9000 are replaced by free ones, the home is the folder itself. Other blocks are not run.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from support.ports import free_port

BLOCK = re.compile(r"([^\n]*)\n\n```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FILE = re.compile(r"`([\w./-]+)`:$")
INSERTED = re.compile(r"into `([\w./-]+)`, above its last two lines:$")
PORTS = ("8000", "9000")
MARK = "<<printed>>"
SERVER = (
    " >{file} 2>&1 &\nfor i in $(seq 600); do grep -qs serving {file} && break; sleep 0.1; done; cat {file}"
)
INSERT = (
    "import sys; lines = open(sys.argv[1]).readlines(); "
    "lines[-2:-2] = open('.inserted').readlines(); open(sys.argv[1], 'w').writelines(lines)"
)
SECONDS = 100


class Command(NamedTuple):
    text: str
    expected: str


def commands_in(block: str) -> list[Command]:
    """Return the commands of a console block, each with what is below it."""
    joined = block.replace("\\\n", "\\\0")
    parts = re.split(r"^\$ (.*)\n", joined, flags=re.MULTILINE)[1:]
    texts = (part.replace("\0", "\n") for part in parts)
    return [Command(text, expected) for text, expected in zip(texts, texts, strict=True)]


def script_of(page: str) -> tuple[str, list[Command]]:
    """Return a page as a script of bash, and the commands that it marks the output of."""
    lines = ["exec </dev/null", "trap 'kill $(jobs -p) 2>/dev/null' EXIT"]
    commands: list[Command] = []
    for before, language, block in BLOCK.findall(page):
        if inserted := INSERTED.search(before):
            lines += [f"cat > .inserted <<'END'\n{block}\n\nEND", f'python -c "{INSERT}" {inserted[1]}']
        elif file := FILE.search(before):
            folder = os.path.dirname(file[1])
            lines += [f"mkdir -p {folder}"] if folder else []
            lines.append(f"cat > {file[1]} <<'END'\n{block}END")
        elif language == "console":
            for command in commands_in(block):
                is_server = command.text.endswith(" &")
                started = command.text.removesuffix(" &") + SERVER.format(file=f".server-{len(commands)}")
                lines += [f"echo '{MARK}'", started if is_server else command.text]
                commands.append(command)
    return "\n".join(lines), commands


def pattern_of(expected: str) -> str:
    """Return what a command has to print as a regular expression."""
    lines = [r"(?:.*\n)*" if line == "…" else _line_pattern(line) for line in expected.splitlines()]
    return "".join(lines)


def _line_pattern(line: str) -> str:
    return ".*".join(re.escape(part) for part in line.rstrip().split("…")) + r" *\n"


def mismatches(page: str, folder: Path) -> list[str]:
    """Run a page, and return each command that has printed something else, with that."""
    script, commands = script_of(page)
    ports = {printed: str(free_port()) for printed in PORTS}
    for printed, port in ports.items():
        script = script.replace(printed, port)
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env={
            "PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}",
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    output = done.stdout
    for printed, port in ports.items():
        output = output.replace(port, printed)
    texts = output.split(f"{MARK}\n")[1:]
    assert len(texts) == len(commands), output
    return [
        f"$ {command.text}\n{text}"
        for command, text in zip(commands, texts, strict=True)
        if not re.fullmatch(pattern_of(command.expected), text)
    ]
