"""`fastrpc dashboard` with the guard's file, and a server's dashboard in a new folder: which database, audit
log and sign-in they use."""

from __future__ import annotations

import contextlib
import html
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.dashboard_browser import Browser, question
from support.guarded_folder import fastrpc, variables
from support.http_server import HttpProcess
from support.terminal import on_terminal
from support.waiting import eventually

from fastrpc import Client
from fastrpc.errors import HttpStatusError
from fastrpc.guard.approvals.store import ApprovalStore
from fastrpc.guard.audit.log import AuditLog
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
        url = f"http://127.0.0.1:{server.port}/mcp"

        def is_valid(token: str) -> bool:
            with contextlib.suppress(HttpStatusError), Client.sync(url, token=token) as client:
                return [each.name for each in client.list_tools()] == ["echo"]
            return False

        assert is_valid("t" * 40)
        eventually(lambda: is_valid(found[0]))  # the directory of tokens is read again each second


KEY = 'key_file = "KEYS/signing.pem"\n'
OWN = "the public key is the folder's own"


@pytest.mark.parametrize(
    ("of_file", "options", "said"),
    [
        ("", (), ["Verified", OWN]),
        (KEY, (), ["Verified"]),
        (KEY, ("--audit", "LOG"), ["Verified"]),
        (KEY, ("--audit-key", "LOG/missing.pub"), ["No such file"]),
        ("", ("--audit", "LOG"), ["Verified", OWN]),
        ("", ("--audit", "LOG", "--audit-key", "KEYS/signing.pem.pub"), ["Verified"]),
    ],
)
def test_the_folder_of_the_log_and_its_key_are_each_of_the_option_or_else_of_the_file(
    tmp_path: Path, of_file: str, options: tuple[str, ...], said: list[str]
) -> None:
    places = {"KEYS": str(tmp_path / "keys"), "LOG": str(tmp_path / "other")}
    for name, place in places.items():
        Path(place).mkdir()
        of_file = of_file.replace(name, place)
        options = tuple(each.replace(name, place) for each in options)
    folder = places["LOG"] if "--audit" in options else str(tmp_path / "state" / "audit")
    log = AuditLog(folder, key_file=None if OWN in said else f"{places['KEYS']}/signing.pem")
    identifier = log.append({"category": "mcp_server", "actor": "ada", "action": "tools/call"})
    log.close()
    (tmp_path / "guard.toml").write_text(f"[audit]\n{of_file}")
    with pages(tmp_path, *options) as server:
        browser = visitor(server, tmp_path)
        assert identifier in browser.get("/audit").text
        browser.get("/audit/check")
        browser.send("/audit/check")
        eventually(lambda: "The check runs" not in browser.get("/audit/check").text)
    page = html.unescape(browser.last)
    assert [words for words in ("Verified", OWN, "No such file") if words in page] == said


def test_a_server_prints_a_link_at_a_terminal_and_none_into_a_log(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(TOOLS)
    (tmp_path / "guard.toml").write_text("[expose]\ntools = ['*']\n")
    fastrpc(tmp_path, "token", "create", "--owner", "agent")
    command = ("serve", "shop.py", "--http", "127.0.0.1:0", "--guard", "guard.toml", "--dashboard")
    state = {"FASTRPC_STATE_DIR": str(tmp_path / "state")}
    with on_terminal(tmp_path, *command, columns=400, **state) as terminal:
        terminal.until("sign in once, within ten minutes: ")
        link = terminal.until("\n").strip()
        browser = Browser(link.partition("/dashboard/")[0])
        assert browser.sign_in(link).status_code == 303
        assert "administrator" in browser.get("/").text
        assert Browser(link.partition("/dashboard/")[0]).sign_in(link).status_code == 403
    with HttpProcess(*command, folder=tmp_path, environment=variables(tmp_path)) as server:
        eventually(lambda: "to sign in, make a link: fastrpc dashboard link" in server.stderr)
        assert "enter#" not in server.stderr + server.stdout
