"""Lists of tasks over HTTP: offered where each caller has a separate principal, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.guarded_folder import variables
from support.http_server import HttpProcess

from fastrpc import Client
from fastrpc.errors import RemoteError

SESSION = "2025-11-25"
TOKEN = "t" * 40
SERVER = """
from fastrpc import Server

app = Server("shop", version="1")

@app.tool(effect="read", task="required")
async def quick() -> str:
    return "quick"
"""


@pytest.mark.parametrize("is_open", [True, False])
def test_tasks_are_listed_only_where_callers_are_authenticated(tmp_path: Path, is_open: bool) -> None:
    (tmp_path / "shop.py").write_text(SERVER)
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "token").chmod(0o600)
    access = ("--no-auth",) if is_open else ("--token-file", "token")
    line = ("serve", "shop.py", "--http", "127.0.0.1:0", *access)
    with HttpProcess(*line, folder=tmp_path, environment=variables(tmp_path)) as server:
        url, auth = f"http://127.0.0.1:{server.port}/mcp", None if is_open else TOKEN
        with (
            Client.sync(url, version=SESSION, token=auth) as one,
            Client.sync(url, version=SESSION, token=auth) as other,
        ):
            task = one.call_tool("quick", task=True)
            assert task.wait().text == "quick"
            assert ("list" in other.server_capabilities["tasks"]) is not is_open
            if is_open:
                with pytest.raises(RemoteError, match="Method not found: tasks/list"):
                    other.request("tasks/list")
            else:
                assert [each.id for each in other.tasks()] == [task.id]
            assert other.task(task.id).wait().text == "quick", "who has the id has the task"
