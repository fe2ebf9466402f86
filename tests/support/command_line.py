"""The `fastrpc` command in a separate process, in an empty working directory, with or without a toolset.

A plugin of `conftest.py`: the fixtures `place`, `words` and `toolset` are for every test of the command.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap

import pytest

SECONDS = 100  # the longest command takes ten by itself, and longer beside other tests
WORDS = '''
import os
import sys
from fastrpc import tool

@tool(effect="read")
def word_count(text: str, times: int = 1, loud: bool = False, words: list[str] | None = None) -> str:
    """Count words.

    A second paragraph."""
    count = (len(text.split()) + len(words or [])) * times
    return f"{count}!" if loud else str(count)

@tool(effect="exec")
def fail(reason: str) -> str:
    """Fail."""
    raise ValueError(reason)

@tool(effect="read")
def where() -> str:
    """Say where the server works, what its log level is, and which modules it has."""
    return "\\n".join([os.getcwd(), os.environ.get("FASTRPC_LOG_LEVEL", ""), *sys.modules])
'''

TOOLSET = {
    "__init__.py": '"""A toolset."""\n__all__ = ["first", "second"]\n',
    "first.py": '''
        from typing import Annotated
        from fastrpc import tool

        @tool(name="First", effect="read")
        def first(text: Annotated[str, "What to say"] = "nothing") -> str:
            """Say it."""
            return f"said {text}"
    ''',
    "second.py": '''
        from typing import Annotated
        from fastrpc import tool

        @tool(name="Second-One", effect="exec")
        def second(count: Annotated[int, "How often"]) -> str:
            """Do it."""
            return "done " * count
    ''',
    "_contract.py": """
        CONTRACT = {
            "First": {
                "module": "first", "effect": "read", "description": "Say it.",
                "parameters": {"text": {"type": "string", "required": False, "description": "What to say"}},
                "example": {"arguments": {"text": "hi"}, "is_error": False, "says": "said hi"},
            },
            "Second-One": {
                "module": "second", "effect": "exec", "description": "Do it.",
                "parameters": {"count": {"type": "integer", "required": True, "description": "How often"}},
            },
            "Third": {"module": "third", "effect": "read", "description": "Later.", "parameters": {}},
        }
    """,
    "_demo.py": """
        def play(conversation):
            conversation.title("A title")
            conversation.call("First", {"text": "hello"}, says="said hello")
    """,
}


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Return an empty working directory; the environment has no settings and another home folder."""
    for name in list(os.environ):
        if name.startswith(("FASTRPC_", "TOOL", "SKILL_", "STREAMING", "MODEL")):
            monkeypatch.delenv(name)
    (tmp_path / "home").mkdir()
    (tmp_path / "work").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "work"


@pytest.fixture
def words(place):
    path = place / "words.py"
    path.write_text(WORDS)
    return str(path)


@pytest.fixture
def toolset(place, monkeypatch):
    """Return the folder of a toolset that is configured, importable, and keeps its contract."""
    folder = place.parent / "site" / "chest"
    folder.mkdir(parents=True)
    for name, text in TOOLSET.items():
        (folder / name).write_text(textwrap.dedent(text))
    paths = [str(folder.parent), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")  # edits within a second must count
    monkeypatch.setenv("FASTRPC_TOOLSET", "chest")
    return folder


def run(place, *arguments: str, text: str = "", **environ: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fastrpc", *arguments]
    return subprocess.run(
        command,
        input=text,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        cwd=place,
        env={**os.environ, **environ},
    )


def session(place, arguments: list[str], *requests: tuple[str, dict], **environ: str):
    """Shake hands, send all requests at once, close stdin; return the results by order, stderr and code."""
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    messages = [{"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}]
    messages.append({"jsonrpc": "2.0", "method": "notifications/initialized"})
    for number, (method, params) in enumerate(requests, 1):
        messages.append({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
    done = run(place, "serve", *arguments, text="".join(json.dumps(m) + "\n" for m in messages), **environ)
    answers = {message["id"]: message for message in map(json.loads, done.stdout.splitlines())}
    assert sorted(answers) == list(range(len(requests) + 1)), done.stderr
    assert done.returncode == 0, done.stderr
    return [answers[number] for number in sorted(answers)], done.stderr


def names(answer: dict) -> list[str]:
    return [tool["name"] for tool in answer["result"]["tools"]]


def assert_mistake(done: subprocess.CompletedProcess[str], said: str) -> None:
    """A user's mistake: exit code 2, nothing on stdout, exactly one line on stderr that says what."""
    assert done.returncode == 2, done
    assert done.stdout == ""
    assert done.stderr.startswith("fastrpc: ")
    assert done.stderr.count("\n") == 1, done.stderr
    assert said in done.stderr
