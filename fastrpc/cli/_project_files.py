"""The files of a new project (`fastrpc new`): texts in which ``@NAME@`` is replaced by its name.

A server with a tool, a resource and a prompt, its tests, a policy for the guard, and the files for clients,
pip and Docker. Importing this module imports nothing.
"""

from __future__ import annotations

SERVER = '''\
"""@NAME@: an MCP server. `fastrpc dev server.py` serves it and reloads it at each change."""

from typing import Annotated

from fastrpc import Server

app = Server("@NAME@", version="0.1.0", instructions="Keeps short notes.")
notes: dict[str, str] = {"welcome": "Replace this file by your own."}


@app.tool(effect="write")
def add_note(
    title: Annotated[str, "A short title"],
    text: Annotated[str, "What to remember"],
) -> str:
    """Keep a note. A note with the same title is replaced."""
    notes[title] = text
    return f"There are {len(notes)} notes."


@app.resource("notes://{title}")
def note(title: str) -> str | None:
    """The text of a note."""
    return notes.get(title)


@app.prompt
def summarize(title: str) -> str:
    """Ask for a summary of a note."""
    return f"Summarize in one sentence: {notes.get(title, '')}"


if __name__ == "__main__":
    app.run()
'''

TESTS = '''\
"""The server, called as a client calls it, without a process."""

from fastrpc import Client

from server import app


def test_a_note_can_be_read_and_summarized() -> None:
    with Client.sync(app) as client:
        result = client.call_tool("add_note", {"title": "tea", "text": "Buy tea."})
        assert not result.is_error
        assert client.read_resource("notes://tea").text == "Buy tea."
        (message,) = client.get_prompt("summarize", {"title": "tea"}).messages
        assert "Buy tea." in message["content"]["text"]


def test_an_argument_that_is_missing_is_named() -> None:
    with Client.sync(app) as client:
        result = client.call_tool("add_note", {"title": "tea"})
        assert result.is_error
        assert "text" in result.text
'''

PROJECT = """\
[project]
name = "@NAME@"
version = "0.1.0"
description = "An MCP server."
requires-python = ">=3.10"
dependencies = ["fastrpc-mcp[@EXTRAS@]"]

[dependency-groups]
dev = ["pytest"]

[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[tool.setuptools]
py-modules = ["server"]

[tool.pytest.ini_options]
pythonpath = ["."]
"""

GUARD = """\
# Who may call what, with `fastrpc serve server.py --guard guard.toml`.
# `fastrpc guard check guard.toml server.py` shows it.

[expose]                       # what callers may use; all else is hidden from them
tools = ["*"]
resources = ["*"]
prompts = ["*"]

[classes.reader]               # callers with a token of this class may read alone:
tools = []                     # fastrpc token create --owner ada --class reader
rate = "60/minute"

[approvals]
from = "high"                  # a person approves calls of this risk: fastrpc approvals watch

[risk]
"delete_*" = "high"
"""

MCP_JSON = """\
{
  "mcpServers": {
    "@NAME@": { "command": "fastrpc", "args": ["serve", "server.py"] }
  }
}
"""

VSCODE_JSON = """\
{
  "servers": {
    "@NAME@": { "type": "stdio", "command": "fastrpc", "args": ["serve", "${workspaceFolder}/server.py"] }
  }
}
"""

DOCKERFILE = """\
# docker build -t @NAME@ .
# FASTRPC_TOKEN=$(cat token) docker run --init -e FASTRPC_TOKEN -p 127.0.0.1:8000:8000 @NAME@
FROM python:3.13-slim
WORKDIR /app
COPY . .
RUN pip install --no-cache-dir . && useradd --create-home server
USER server
EXPOSE 8000
CMD ["fastrpc", "serve", "server.py", "--http", "0.0.0.0:8000", "--allow-host", "localhost"@GUARDED@]
"""

IGNORED = """\
__pycache__/
.pytest_cache/
.venv/
*.egg-info/
token
"""

README = """\
# @NAME@

An MCP server on fastrpc.

    fastrpc dev server.py                                   # serve it, reload it at each change
    fastrpc call server.py add_note title=tea text='Buy tea.'
    python -m pytest                                        # needs pytest
    fastrpc install-client claude-code server.py --name @NAME@   # add it to a client
@SERVE@"""

GUARDED = """\
    fastrpc guard check guard.toml server.py                # who may call what
    fastrpc serve server.py --guard guard.toml
"""
