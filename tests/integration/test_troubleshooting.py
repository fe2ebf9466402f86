"""docs/troubleshooting.md quotes at least twenty messages, each with its cause and cure.

A message is printed by the run in `RUNS`, or it is one text of the sources.
"""

from __future__ import annotations

import ast
import functools
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.command_line import run
from support.ports import free_port

pytestmark = pytest.mark.long

REPOSITORY = Path(__file__).resolve().parent.parent.parent
PAGE = (REPOSITORY / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (`.*) \| ([^|]*) \| ([^|]*) \|$", PAGE, re.MULTILINE)
SERVER = "from fastrpc import Server\napp = Server('x')\n"
FILES = {
    "words.py": f"{SERVER}@app.tool\ndef count(text: str) -> int:\n    return len(text.split())\n",
    "imports.py": "import there_is_no_such_module\n",
    "empty.py": "x = 1\n",
    "twice.py": f"{SERVER}@app.tool(name='a')\ndef one(): ...\n@app.tool(name='a')\ndef two(): ...\n",
    "stars.py": f"{SERVER}@app.tool\ndef all(*names): ...\n",
    "untold.py": f"{SERVER}@app.resource\ndef one(): ...\n",
    "asks.py": f"{SERVER}@app.tool\ndef one(): return input()\n",
    "misspelt.py": f"{SERVER}@app.tool(efect='read')\ndef one(): ...\n",
    "guard.toml": '[expose]\ntools = ["*"]\n[[rules]]\nid = "none"\nwhen = "true"\nthen = "deny"\n',
    "open": "0123456789abcdef\n",
    "short": "0123\n",
}
RUNS = {
    "unknown command …": ["srve"],
    "…: no such file; a target is file.py, module or module:attribute": ["serve", "missing.py"],
    "…: holds no Server and no function marked with @tool": ["serve", "empty.py"],
    "…: ModuleNotFoundError: …": ["serve", "imports.py"],
    "…: expected a whole number from 1 up, got …": ["serve", "words.py", "--max-in-flight", "0"],
    "takes *args, which a client cannot name; write the parameters out": ["tools", "stars.py"],
    "there is a tool of this name already (…); give name=": ["tools", "twice.py"],
    "@app.resource needs a URI: …": ["tools", "untold.py"],
    "EOFError: EOF when reading a line": ["call", "asks.py", "one"],
    "there is no option …=": ["tools", "misspelt.py"],
    "the tool … exists already; names must be different": ["serve", "words.py", "words.py"],
    "…: required, missing": ["call", "words.py", "count"],
    "tool … is not allowed": ["call", "words.py", "count", "text=x", "--guard", "guard.toml"],
    "Parse error: … at byte …": ["serve", "words.py"],
    "the connection to the server … is lost: …": ["call", "count", "text=x", "--", "false"],
    "… cannot be reached: …": ["call", "http://127.0.0.1:PORT/mcp", "count", "text=x"],
    "http: a server needs a token. …": ["serve", "words.py", "--http", "127.0.0.1:0"],
    "others may use … (mode …): chmod 600": [
        *("serve", "words.py", "--http", "127.0.0.1:0", "--token-file", "open"),
    ],
    "the token has … characters; at least … are needed": [
        *("serve", "words.py", "--http", "127.0.0.1:0", "--token-file", "short"),
    ],
    "Address already in use": ["serve", "words.py", "--http", "127.0.0.1:TAKEN", "--no-auth"],
}
REPLACED = re.compile(r"%\.?\d*[a-z]|\{[\w.!:]*\}")


def message_of(cell: str) -> str:
    return re.findall(r"`([^`]+)`", cell)[0]


def is_in(message: str, text: str) -> bool:
    """Whether a text has the parts of a message in their order."""
    parts = (re.escape(part.strip()) for part in message.split("…") if part.strip(" :;,"))
    return re.search(".*".join(parts), text) is not None


def literal_texts(source: str) -> Iterator[str]:
    """Yield the texts of a Python file, with ``…`` for what is put into them."""
    inside = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            inside |= {id(part) for part in node.values}
            parts = (part.value if isinstance(part, ast.Constant) else "…" for part in node.values)
            yield "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            yield REPLACED.sub("…", node.value)


def compiled_texts(source: str) -> Iterator[str]:
    """Yield the texts of one line in a Cython file, with ``…`` for what is put into them."""
    for line in source.splitlines():
        for marked, text in re.findall(r'(f?)"((?:[^"\\]|\\.)*)"', line):
            yield re.sub(r"\{[^{}]*\}", "…", text) if marked else text


@functools.cache
def texts() -> list[str]:
    folder = REPOSITORY / "fastrpc"
    python = (literal_texts(path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.py")))
    cython = (compiled_texts(path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.pyx")))
    return [text for texts in (*python, *cython) for text in texts]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: re.sub(r"[^\w ]", "", row[0])[:40])
def test_a_message_is_one_of_the_sources_or_of_a_run(row: tuple[str, str, str]) -> None:
    message = message_of(row[0])
    assert message in RUNS or any(is_in(message, text) for text in texts())
    assert row[1].strip()
    assert row[2].strip()


@pytest.mark.parametrize("message", RUNS)
def test_a_message_is_what_a_run_prints(message: str, place: Path) -> None:
    for name, text in FILES.items():
        (place / name).write_text(text)
        (place / name).chmod(0o644 if name == "open" else 0o600)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ports = {"TAKEN": str(taken.getsockname()[1]), "PORT": str(free_port())}
        words = [re.sub("TAKEN|PORT", lambda name: ports[name[0]], word) for word in RUNS[message]]
        done = run(place, *words, text="hello\n")
    assert is_in(message, done.stdout + done.stderr), done.stdout + done.stderr


def test_there_are_enough_and_every_row_and_run_is_of_use() -> None:
    assert len(ROWS) >= 20
    assert len(ROWS) == len(re.findall(r"^\| (?!message)", PAGE, re.MULTILINE))
    assert set(RUNS) <= {message_of(row[0]) for row in ROWS}


def test_that_would_see_a_message_that_nothing_prints() -> None:
    message = "the client cannot be asked before it has sent notifications/initialized"
    assert any(is_in(message, text) for text in texts())
    assert not any(is_in(message.replace("asked", "told"), text) for text in texts())
    assert not is_in("two … one", "one two")
