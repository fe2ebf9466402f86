"""WebSearch and `fastrpc search-check` name the extra where the library that fetches is not installed."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

NEEDS = "needs httpcore: pip install 'fastrpc-mcp[tools]'"
COMMAND = "from fastrpc.__main__ import main; sys.argv[1:] = ['search-check']; sys.exit(main())"
TOOL = (
    "import asyncio; from fastrpc.errors import ToolError; from tools.agent.web_search import web_search\n"
    "try: asyncio.run(web_search('x'))\n"
    "except ToolError as error: sys.exit(str(error))"
)
NOWHERE = "http://127.0.0.1:9"


@pytest.mark.parametrize(
    ("program", "code", "words"),
    [(COMMAND, 2, f"fastrpc: search-check {NEEDS}\n"), (TOOL, 1, f"WebSearch {NEEDS}.\n")],
    ids=["command", "tool"],
)
def test_a_search_without_its_library_names_the_extra(program: str, code: int, words: str) -> None:
    run = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.modules['httpcore'] = None; {program}"],
        env={**os.environ, "FASTRPC_SEARCH_ADDRESS": NOWHERE},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (run.returncode, run.stderr) == (code, words)
