"""Makes the pictures of the dashboard in docs/pictures: ``python .ci/site/dashboard_pictures.py FOLDER``.

A real server with a guard and a dashboard serves them, in a temporary folder. Its audit log has an hour of
calls that are the same each time, two clients wait for an approval, and one was refused. Chromium takes the
pictures, which are reduced to a palette. Times and ids in them are those of the moment.
"""

from __future__ import annotations

import contextlib
import io
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from screenshots import BROWSERS, FETCHED

if TYPE_CHECKING:
    from playwright.sync_api import Page

FASTRPC = (sys.executable, "-m", "fastrpc")
SECONDS = 60.0
PALETTE = 48
"""Colours of a picture."""
WIDE, TELEPHONE = (900, 900), (360, 740)
TOOLS = """
from fastrpc import Server

app = Server("shop")


@app.tool(effect="exec", risk="critical")
def deploy(command: str, region: str) -> str:
    "Deploy a release."
    return "deployed"


@app.tool(effect="write", risk="critical")
def refund(order: str, amount: int) -> str:
    "Pay an order back."
    return "refunded"
"""
GUARD = """
[expose]
tools = ["deploy", "refund"]

[approvals]
editable = ["refund"]

[audit]
mode = "group"
folder = "{audit}"

[[rules]]
id = "small-refunds"
tools = ["refund"]
when = "args.amount > 500"
then = "deny"
reason = "more than 500 is for a person of the bank"
"""
COMMAND = "git -C /srv/shop pull --ff-only && make release | tee /var/log/release.log"
WAITING = (
    ("refund", "order=A-1043", "amount=120"),
    ("deploy", f"command={COMMAND}", "region=eu-west"),
)
REFUSED = ("refund", "order=A-1044", "amount=9000")
CALLS = {
    "search": (14, 0.004, 9.0),
    "order": (6, 0.02, 42.0),
    "refund": (2, 0.09, 130.0),
    "stock": (9, 0.0, 3.0),
}
"""The calls of the log by tool: how many a minute, the share of errors, the usual milliseconds."""


def write_log(folder: Path) -> None:
    """Write an hour of calls into an audit log, the same ones each time."""
    from fastrpc.guard.audit import log as writing

    chance, now = random.Random(39), int(time.time())
    log = writing.AuditLog(str(folder))
    clock = vars(writing)["_now"]
    for minute in range(60, 0, -1):
        vars(writing)["_now"] = lambda minute=minute: (now - 60 * minute) * 1000
        for tool, (rate, errors, usual) in CALLS.items():
            for _ in range(max(1, round(rate * chance.uniform(0.4, 1.6)))):
                is_error = chance.random() < errors
                fields = {"category": "mcp_server", "actor": chance.choice(("ada#1", "support#2", "night#3"))}
                fields |= {"action": "tools/call", "tool": tool, "decision": "allow"}
                fields |= {"outcome": "tool_error" if is_error else "ok"}
                log.append({**fields, "total_us": usual * 1000 * chance.lognormvariate(0.0, 0.5)})
    log.close()
    vars(writing)["_now"] = clock


class Shop:
    """A folder with a server, its guard and the token of its client. `url` is that of the server."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        kept = {name: value for name, value in os.environ.items() if not name.startswith("FASTRPC_")}
        self.variables = {**kept, "FASTRPC_STATE_DIR": str(folder / "state")}
        self.url = ""
        (folder / "shop.py").write_text(TOOLS)
        (folder / "guard.toml").write_text(GUARD.replace("{audit}", str(folder / "audit")))
        write_log(folder / "audit")
        (folder / "token").write_text(self.run("token", "create", "--owner", "support").splitlines()[0])
        os.chmod(folder / "token", 0o600)

    def run(self, *words: str, check: bool = True) -> str:
        """Return what a command of fastrpc prints."""
        done = subprocess.run(
            [*FASTRPC, *words],
            cwd=self.folder,
            env=self.variables,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        if check and done.returncode != 0:
            raise RuntimeError(done.stderr)
        return done.stdout

    @contextlib.contextmanager
    def begun(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        """Run a command of fastrpc until the end of the block."""
        process = subprocess.Popen(
            [*FASTRPC, *words],
            cwd=self.folder,
            env=self.variables,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            yield process
        finally:
            process.terminate()
            process.communicate(timeout=SECONDS)

    @contextlib.contextmanager
    def serving(self) -> Iterator[None]:
        """Serve the folder."""
        words = ("serve", "shop.py", "--http", "127.0.0.1:0", "--guard", "guard.toml", "--dashboard")
        with self.begun(*words) as server:
            assert server.stderr is not None
            said = ""
            for line in server.stderr:
                said += line
                if found := re.search(r"serving at (http://[^/]+)/", line):
                    self.url = found[1]
                    yield
                    return
            raise RuntimeError("the server has ended: " + said)

    def call(self, *words: str) -> tuple[str, ...]:
        """Return the command of a call of this server."""
        return ("call", f"{self.url}/mcp", *words, "--token-file", "token")

    def link(self) -> str:
        return self.run("dashboard", "link", "--as", "ada", "--role", "approver", "--url", self.url).strip()


def take(page: Page, path: Path) -> None:
    """Write a picture of a whole page."""
    from PIL import Image

    with Image.open(io.BytesIO(page.screenshot(full_page=True))) as taken:
        reduced = taken.convert("RGB").quantize(PALETTE, dither=Image.Dither.NONE)
        reduced.save(path, optimize=True)
    print(path, path.stat().st_size)


def make(folder: Path, browser: str) -> None:
    """Write the pictures into a folder. Raises RuntimeError for a server that does not begin."""
    from playwright.sync_api import sync_playwright

    with (
        tempfile.TemporaryDirectory() as place,
        sync_playwright() as started,
        contextlib.ExitStack() as running,
    ):
        shop = Shop(Path(place))
        running.enter_context(shop.serving())
        shop.run(*shop.call(*REFUSED), check=False)
        chromium = started.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        running.callback(chromium.close)
        page = chromium.new_page(viewport={"width": WIDE[0], "height": WIDE[1]}, color_scheme="light")
        page.goto(shop.link())
        page.wait_for_selector("[data-waiting]")
        for number, words in enumerate(WAITING, 1):
            running.enter_context(shop.begun(*shop.call(*words)))
            page.wait_for_selector(f"[data-waiting='{number}']", timeout=SECONDS * 1000)
        take(page, folder / "dashboard-waiting.png")

        page.goto(f"{shop.url}/dashboard/comparison?measure=p50")
        while "is still being counted" in page.inner_text("main"):
            page.wait_for_timeout(500)
            page.reload()
        take(page, folder / "dashboard-comparison.png")

        page.goto(f"{shop.url}/dashboard/audit?outcome=refused")
        page.click("ol.rows a")
        page.click("button[name=theme]")
        take(page, folder / "dashboard-audit.png")

        page.set_viewport_size({"width": TELEPHONE[0], "height": TELEPHONE[1]})
        page.goto(f"{shop.url}/dashboard/")
        page.click("[lang=ar]")
        page.click("article:has-text('refund') a.button")
        page.wait_for_selector("#comment")
        take(page, folder / "dashboard-arabic.png")


if __name__ == "__main__":
    import shutil

    path = f"{os.environ.get('PATH', '')}{os.pathsep}{FETCHED}"
    found = next(filter(None, (shutil.which(name, path=path) for name in BROWSERS)), None)
    if found is None:
        sys.exit("no Chromium: make prepare fetches one")
    make(Path(sys.argv[1]), found)
