"""`fastrpc dashboard` with the guard's file, and a server's dashboard in a new folder: which database, audit
log and sign-in they use."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

from support.dashboard_browser import Browser, question
from support.guarded_folder import fastrpc, variables
from support.http_server import HttpProcess

from fastrpc import Client
from fastrpc.guard.approvals.store import ApprovalStore
from fastrpc.storage import open_database

TOOLS = """
from fastrpc import Server

app = Server("shop")

@app.tool(risk="low")
def echo(text: str) -> str:
    "Echo."
    return text
"""


@contextlib.contextmanager
def pages(folder: Path, *options: str) -> Iterator[HttpProcess]:
    """Serve the pages by themselves, with the guard's file of a folder."""
    command = ("dashboard", "serve", "--http", "127.0.0.1:0", "--guard", "guard.toml", *options)
    ready = r"the dashboard is at (\S+?)/dashboard"
    with HttpProcess(*command, folder=folder, environment=variables(folder), ready=ready) as server:
        yield server


def visitor(server: HttpProcess, folder: Path, *options: str) -> Browser:
    """Sign in by a link of the command line, and return the browser."""
    url = f"http://127.0.0.1:{server.port}"
    browser = Browser(url)
    link = fastrpc(folder, "dashboard", "link", "--as", "ada", "--url", url, *options).strip()
    assert browser.sign_in(link).status_code == 303
    return browser


def test_the_pages_by_themselves_use_the_database_that_the_guards_file_names(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/other.sqlite3"
    (tmp_path / "guard.toml").write_text(f'database = "{url}"\n')
    with contextlib.closing(open_database(url)) as database:
        ApprovalStore(database).ask(question())
    with pages(tmp_path) as server:
        assert "dashboard/approvals/" in visitor(server, tmp_path, "--guard", "guard.toml").get("/").text
        assert "fastrpc dashboard link --url" in server.stderr
        assert "--guard guard.toml" in server.stderr
    assert not (tmp_path / "state" / "guard.sqlite3").exists()
    with pages(tmp_path, "--database", f"sqlite:///{tmp_path}/third.sqlite3") as server:
        options = ("--database", f"sqlite:///{tmp_path}/third.sqlite3")
        assert "No call is here" in visitor(server, tmp_path, *options).get("/").text


def test_a_token_that_is_made_at_the_page_is_valid_though_the_state_folder_is_new(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(TOOLS)
    (tmp_path / "guard.toml").write_text('[expose]\ntools = ["*"]\n')
    (tmp_path / "token").write_text("t" * 40)
    (tmp_path / "token").chmod(0o600)
    command = ("serve", "shop.py", "--http", "127.0.0.1:0", "--guard", "guard.toml", "--dashboard")
    options = ("--token-file", "token")
    with HttpProcess(*command, *options, folder=tmp_path, environment=variables(tmp_path)) as server:
        browser = visitor(server, tmp_path)
        once = re.search(r'name="once" value="([\w-]+)"', browser.get("/callers").text)
        assert once is not None
        page = browser.send("/callers", once=once[1], owner="agent").text
        found = re.search(r"frpc_[\w-]{30,}", page)
        assert found is not None, page
        for token in ("t" * 40, found[0]):
            with Client.sync(f"http://127.0.0.1:{server.port}/mcp", token=token) as client:
                assert [each.name for each in client.list_tools()] == ["echo"]
