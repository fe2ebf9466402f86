"""A mistake in a definition is one line, with file, line and the way out, when `python server.py` runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.command_line import SECONDS, assert_mistake
from support.command_line import run as run_command

BEFORE = "from fastrpc import Context, Server\n\napp = Server('shop')\n\n\n"
BEHIND = "\n\nif __name__ == '__main__':\n    app.run()\n"
BODY = "\n    'Text.'\n    return ''"
F = f"def f() -> str:{BODY}"
LOG = "def log(f):\n    def inner(*args, **kwargs):\n        return f(*args)\n    return inner\n\n"
MISTAKES = {
    f"@app.tool\ndef f(a) -> str:{BODY}": "parameter 'a' has no annotation; write for example a: str",
    f"@app.tool\ndef f(*args: str) -> str:{BODY}": "takes *args, which a client cannot name",
    f"@app.tool\ndef f(a: 'Strr') -> str:{BODY}": "the annotation 'Strr' is not defined",
    f"class Odd: ...\n@app.tool\ndef f(a: Odd) -> str:{BODY}": "no JSON Schema can be made of Odd",
    f"class T:\n @app.tool\n def f(self) -> str:{BODY}": "parameter 'self' is a method's own",
    f"@app.tool\n{F}\n@app.tool(name='f')\ndef g() -> str:{BODY}": "there is a tool of this name",
    f"@app.tool(name='a b')\n{F}": "cannot be a tool's name, which has 1 to 128 of",
    f"@app.tool(nme='f')\n{F}": "there is no option nme=; did you mean name=?",
    f"@app.tool(effect='reed')\n{F}": "effect='reed' is not one of read, network, write, exec",
    f"@app.tool(run='tread')\n{F}": "run='tread' is not one of auto, inline, thread",
    f"@app.tool(timeout_seconds=-1)\n{F}": "timeout_seconds=-1 is not a number above 0",
    "app.tool(3)": "is not callable; decorate a function",
    "@app.tool\nclass F: ...": "is not a Python function; wrap it in a def",
    f"@app.tool\ndef f(a: Context, b: Context) -> str:{BODY}": "has two parameters of the type Context",
    "@app.tool\ndef f():\n    yield 1": "is a generator; return a list, or report progress",
    f"@app.resource('a://{{id}}')\ndef f(b: str) -> str:{BODY}": "a://{id} has the variables 'id'",
    f"@app.resource('no scheme')\n{F}": "'no scheme' is not a URI; write for example docs://f",
    f"@app.resource('a://b')\ndef f(a: str) -> str:{BODY}": "takes 'a', but a://b has no variables",
    f"@app.prompt\ndef f(a) -> str:{BODY}": "parameter 'a' has no annotation",
    f"@app.tool\n{F}\napp.mount(3)": "mount",
    f"@app.tool('shop')\n{F}": "expected a function, got 'shop'; for a name write name='shop'",
    f"@app.prompt('shop')\n{F}": "prompt: expected a function, got 'shop'",
    f"class T:\n @app.tool\n @classmethod\n def f(cls) -> str:{BODY}": "is a classmethod; add it below",
    f"@app.resource\n{F}": "@app.resource needs a URI: @app.resource('docs://guide')",
    "@app.resources\nclass T: ...": "@app.resources needs a scheme: @app.resources('docs')",
    f"{LOG}@app.tool\n@log\n{F}": "or let the decorator that made it use functools.wraps",
    f"@app.tool\ndef f(**rest: str) -> str:{BODY}": "takes **arguments, which have no types",
    "app.tool(lambda a: a)": "<lambda> (server.py, line 6): cannot be a tool's name",
    f"class Odd: ...\n@app.tool\ndef f() -> Odd:{BODY}": "the return type: no JSON Schema can be made of Odd",
    "@app.tool\nasync def f():\n    yield 1": "is a generator; return a list, or report progress",
    f"@app.tool(title=3)\n{F}": "f (server.py, line 6): title=: expected a str, got 3",
    f"@app.tool(description=b'x')\n{F}": "description=: expected a str, got b'x'",
    f"@app.tool(effect=['read'])\n{F}": "effect=: expected a str, got ['read']",
    f"@app.tool(annotations=[1])\n{F}": "annotations=: expected a dict, got [1]",
    f"@app.tool(meta='x')\n{F}": "meta=: expected a dict, got 'x'",
    f"@app.tool(json_schema_extra=[1])\n{F}": "json_schema_extra=: expected a dict, got [1]",
    f"@app.resource('a://b', mime_type=3)\n{F}": "mime_type=: expected a str, got 3",
    f"@app.resource('a://b', icons=['x'])\n{F}": "icons: expected objects like",
    f"@app.prompt(icons=3)\n{F}": "icons=: expected a list, got 3",
    "Server(3)": "Server: name=: expected a str, got 3",
    "Server('s', version=1.0)": "Server: version=: expected a str, got 1.0",
    "Server('s', page_size=0)": "Server: page_size=: expected a whole number from 1 up, got 0",
    "app.run(transport='http')": "over HTTP run(http='127.0.0.1:8000')",
    "app.run(port=80)": "run: port is an option of HTTP: give http= too",
    f"@app.tool\ndef f(a: [str]) -> str:{BODY}": "write a type, for example list[str]",
    f"@app.tool\ndef f() -> (int, str):{BODY}": "write a type, for example tuple[int, str]",
    f"@app.tool\ndef f(a: any) -> str:{BODY}": "write Any, of typing",
    f"import pathlib\n@app.tool\ndef f(a: pathlib.Path) -> str:{BODY}": "write str, and Path(…)",
}


def run(folder: Path, code: str, **variables: str) -> subprocess.CompletedProcess[str]:
    (folder / "server.py").write_text(BEFORE + code + BEHIND)
    return subprocess.run(
        [sys.executable, "server.py"],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env={**os.environ, **variables},
    )


@pytest.mark.parametrize("code", MISTAKES)
def test_a_mistake_is_one_line_that_names_the_place_and_the_way_out(tmp_path: Path, code: str) -> None:
    done = run(tmp_path, code)
    assert done.returncode in (1, 2)
    assert done.stdout == ""
    assert done.stderr.startswith("fastrpc: ")
    assert done.stderr.count("\n") == 1, done.stderr
    assert MISTAKES[code] in done.stderr
    assert "server.py" in done.stderr


def test_the_traceback_can_be_had_and_other_exceptions_have_theirs(tmp_path: Path) -> None:
    whole = run(tmp_path, "app.tool(3)", FASTRPC_TRACEBACK="full")
    assert whole.stderr.startswith("Traceback")
    assert "DefinitionError" in whole.stderr
    caught = "try:\n    app.tool(3)\nexcept TypeError:\n    pass\n"
    other = run(tmp_path, f"{caught}raise ValueError('of the author')")
    assert other.stderr.startswith("Traceback")
    assert other.stderr.endswith("ValueError: of the author\n")


def test_a_tool_that_is_marked_beside_a_server_without_it_is_named(place):
    marked = f"{BEFORE}from fastrpc import tool\n\n@tool\ndef lost() -> str:\n    'T.'\n    return ''\n"
    (place / "server.py").write_text(marked)
    listed = run_command(place, "tools", "server.py")
    assert "lost: marked with @tool, but not a tool of the server 'shop'" in listed.stderr
    (place / "server.py").write_text(f"{marked}app.add_tool(lost)\n")
    listed = run_command(place, "tools", "server.py")
    assert (listed.stderr, "lost" in listed.stdout) == ("", True)


def test_the_error_of_a_file_that_is_loaded_alone_names_relative_imports_and_its_ending(place):
    (place / "my-server.py").write_text("from . import helper\n")
    assert_mistake(run_command(place, "tools", "my-server.py"), "write 'import x' for 'from . import x'")
    assert_mistake(run_command(place, "tools", "my-server"), "did you mean my-server.py?")
