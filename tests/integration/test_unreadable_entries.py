"""Programs with an entry whose annotations are not defined, started in every way that there is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SECONDS = 100.0
PROGRAM = """
from __future__ import annotations
from typing import TYPE_CHECKING
from fastrpc import Server, tool
if TYPE_CHECKING:
    from decimal import Decimal
{more}
app = Server("shop")
@app.tool
def pay(amount: Decimal) -> str:
    return str(amount)
if __name__ == "__main__":
    {run}
"""
GUARDED = "from fastrpc.guard import GuardedServer\nopen('guard.toml', 'w').close()"


@pytest.mark.parametrize(
    ("more", "run", "arguments"),
    [
        ("", "app.run()", []),
        ("", "app.run(http='127.0.0.1:0', auth=None)", []),
        ("", "app.run(http='127.0.0.1:0', auth=None, workers=2)", []),
        (GUARDED, "GuardedServer(app, 'guard.toml').run()", []),
        (GUARDED, "GuardedServer(app, 'guard.toml').run(http='127.0.0.1:0')", []),
        ("import fastrpc.compat as c\nServer = c.FastMCP", "app.run()", []),
        ("", "", ["-m", "fastrpc", "serve"]),
        ("", "", ["-m", "fastrpc", "serve", "--http", "127.0.0.1:0", "--no-auth", "--workers", "2"]),
        ("", "", ["-m", "fastrpc", "tools"]),
    ],
)
def test_a_program_says_it_in_one_line_and_ends_with_code_2(
    tmp_path: Path, more: str, run: str, arguments: list[str]
) -> None:
    file = tmp_path / "shop.py"
    file.write_text(PROGRAM.format(more=more, run=run or "pass"))
    ended = subprocess.run(
        [sys.executable, *arguments, str(file)],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    lines = [line for line in ended.stderr.splitlines() if "serving at" not in line]
    assert (ended.returncode, ended.stdout, len(set(lines))) == (2, "", 1), ended.stderr
    assert "pay (shop.py, line " in lines[0]
    assert "parameter 'amount': the annotation 'Decimal' is not defined" in lines[0]
