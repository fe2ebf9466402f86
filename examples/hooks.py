"""Hooks: see calls, change them, refuse them, mend what fails.

Serve with `fastrpc serve examples/hooks.py`.
"""

from __future__ import annotations

import os
from typing import Any

from fastrpc import CallInfo, Server, ToolError

app = Server("hooks", version="1.0")

ROOT = os.path.realpath(os.environ.get("HOOKS_ROOT", "."))
COUNTS: dict[str, int] = {}


@app.tool(effect="read")
def file_size(path: str) -> int:
    """Return how many bytes a file has."""
    return os.path.getsize(path)


@app.tool(effect="write")
def file_append(path: str, text: str) -> str:
    """Append a line to a file."""
    with open(path, "a", encoding="utf-8") as file:
        file.write(f"{text}\n")
    return "written"


@app.tool
def calls() -> dict[str, int]:
    """Return how often each tool has been called."""
    return COUNTS


@app.before
def count(call: CallInfo) -> None:
    """All tools: count."""
    COUNTS[call.tool] = COUNTS.get(call.tool, 0) + 1


@app.before(tools="file_*")
def stay_inside(call: CallInfo) -> None:
    """Change an argument: paths are meant below one folder; refuse what would leave it."""
    path = os.path.realpath(os.path.join(ROOT, str(call.arguments.get("path", ""))))
    if os.path.commonpath([ROOT, path]) != ROOT:
        raise ToolError(f"{call.arguments['path']} is outside of the folder that is served")
    call.arguments["path"] = path


@app.after(tools="file_append")
def tell_size(call: CallInfo, result: str) -> str:
    """Return another result."""
    return f"{result}, {os.path.getsize(call.arguments['path'])} bytes now"


@app.on_error(tools="file_*")
def plain_words(call: CallInfo, error: Exception) -> Any:
    """Say in plain words what went wrong; leave everything else as it is."""
    if isinstance(error, FileNotFoundError):
        return ToolError(f"there is no file {os.path.relpath(call.arguments['path'], ROOT)}")
    return None


if __name__ == "__main__":
    app.run()
