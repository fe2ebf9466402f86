"""`fastrpc dashboard` with the guard's file, and a server's dashboard in a new folder: which database, audit
log and sign-in they use."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from support.dashboard_browser import Browser, question
from support.guarded_folder import fastrpc, variables
from support.http_server import HttpProcess

from fastrpc.guard.approvals.store import ApprovalStore
from fastrpc.storage import open_database


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
