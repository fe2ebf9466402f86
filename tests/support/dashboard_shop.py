"""A guarded server with a dashboard in a folder, its visitors, and its clients."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from support.dashboard_browser import Browser
from support.guarded_folder import fastrpc, variables
from support.http_server import FASTRPC, HttpProcess

GUARD = """
[expose]
tools = ["*"]
[audit]
mode = "group"
"""


class Shop:
    """A folder with `shop.py`, its guard, and the token of its client, the agent. `url` is the server's,
    while it serves; with a `port` it is always the same."""

    def __init__(
        self, folder: Path, tools: str, guard: str = GUARD, *, port: int = 0, of_token: tuple[str, ...] = ()
    ) -> None:
        self.folder = folder
        self.address = f"127.0.0.1:{port}"
        self.url = f"http://{self.address}"
        self._of_token = of_token
        (folder / "shop.py").write_text(tools)
        (folder / "guard.toml").write_text(guard)
        (folder / "token").write_text(self.make_token())
        os.chmod(folder / "token", 0o600)

    def make_token(self) -> str:
        return fastrpc(self.folder, "token", "create", "--owner", "agent", *self._of_token).splitlines()[0]

    def begin(self, *options: str, command: tuple[str, ...] = ("serve", "shop.py")) -> HttpProcess:
        place = ("--http", self.address, "--guard", "guard.toml", "--dashboard")
        server = HttpProcess(
            *command, *place, *options, folder=self.folder, environment=variables(self.folder)
        )
        self.url = f"http://127.0.0.1:{server.port}"
        return server

    def link(self, person: str = "ada", role: str = "approver") -> str:
        chosen = ("--as", person, "--role", role, "--url", self.url)
        return fastrpc(self.folder, "dashboard", "link", *chosen).strip()

    def visit(self, person: str = "ada", role: str = "approver") -> Browser:
        browser = Browser(self.url)
        assert browser.sign_in(self.link(person, role)).status_code == 303
        return browser

    @contextlib.contextmanager
    def calling(self, *call: str) -> Iterator[subprocess.Popen[str]]:
        """Begin a call; end its client at the end."""
        process = subprocess.Popen(
            [*FASTRPC, "call", f"{self.url}/mcp", *call, "--token-file", "token"],
            cwd=self.folder,
            env=variables(self.folder),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate()
