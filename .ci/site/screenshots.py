"""Makes the pictures of docs/pictures: ``python .ci/site/screenshots.py FOLDER [SITE]``.

The help and the view of `fastrpc dev --http` are drawn by the program itself and written as SVG by rich and
textual, whose text a test holds against what the program shows now. With SITE, the folder of the built site,
Chromium takes a picture of its first page; where there is no Chromium the one that is kept stays.
"""

from __future__ import annotations

import asyncio
import html
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

COLUMNS = 84
ROWS = 20
VIEW_COLUMNS = 142
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FETCHED = Path(__file__).resolve().parents[2] / ".cache" / "programs" / "bin"
SITE_SIZE = (1300, 760)
BROWSER_SECONDS = 60
CALLS = (
    ("add_note", '{"title": "tea", "text": "Buy tea."}', "ok", 240, "There are 2 notes."),
    ("find_notes", '{"word": "tea"}', "ok", 180, '["tea"]'),
    ("find_notes", '{"text": "tea"}', "invalid", 90, "word: required, missing"),
    ("add_note", '{"title": "milk", "text": "Buy milk."}', "ok", 210, "There are 3 notes."),
)
"""What the view shows: tool, arguments, outcome, microseconds, the text of the answer."""


def help_picture() -> str:
    """Return what ``fastrpc --help`` prints on a terminal, as SVG."""
    from rich.console import Console
    from rich.text import Text

    environment = {**os.environ, "COLUMNS": str(COLUMNS), "FORCE_COLOR": "1", "NO_COLOR": ""}
    command = [sys.executable, "-m", "fastrpc", "--help"]
    shown = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        console = Console(
            record=True, width=COLUMNS, file=nowhere, force_terminal=True, color_system="standard"
        )
        console.print(Text.from_ansi(shown), end="")
    return without_fonts(console.export_svg(title="fastrpc --help", unique_id="help"))


def view_picture() -> str:
    """Return the view of ``fastrpc dev --http`` with some calls, as SVG."""
    zone = os.environ.get("TZ")
    os.environ["TZ"] = "UTC"  # the view shows the time of each call
    time.tzset()
    try:
        return without_fonts(asyncio.run(_view()))
    finally:
        os.environ.pop("TZ") if zone is None else os.environ.update(TZ=zone)
        time.tzset()


async def _view() -> str:
    from fastrpc import Server
    from fastrpc.cli._dev_view import View
    from fastrpc.transports.http.settings import HttpSettings

    class Shown(View):
        """The view of a server that is not there."""

        async def _serve(self) -> None:
            self._say("fastrpc: serving at http://127.0.0.1:8000/mcp")
            self._say("-- server.py changed; reloaded in 84 ms")

    errors, writing = os.pipe()
    settings = HttpSettings("127.0.0.1:0", auth=None)
    view = Shown(Server("notes"), "server.py", "127.0.0.1:8000", settings, errors)
    async with view.run_test(size=(VIEW_COLUMNS, ROWS)) as pilot:
        view.add([_record(number, *call) for number, call in enumerate(CALLS)])
        await pilot.pause()
        picture = view.export_screenshot(title="fastrpc dev --http 127.0.0.1:8000 server.py")
    os.close(errors)
    os.close(writing)
    return re.sub(r"terminal-\d+", "terminal-dev", picture)


def _record(number: int, tool: str, arguments: str, outcome: str, microseconds: int, text: str) -> Any:
    """Return a call as an observer gets it."""
    answer = json.dumps({"content": [{"type": "text", "text": text}]})
    return SimpleNamespace(
        kind="tool",
        name=tool,
        arguments=arguments.encode(),
        outcome=outcome,
        total_us=float(microseconds),
        answer=answer.encode(),
        started_at=36000.0 + 7 * number,
    )


def without_fonts(picture: str) -> str:
    """Return an SVG that loads no font from elsewhere."""
    return re.sub(r" *@font-face \{.*?\}\n", "", picture, flags=re.DOTALL)


def text_of(picture: str) -> str:
    """Return the texts of an SVG, one a line."""
    found = re.findall(r"<text [^>]*>(.*?)</text>", picture, re.DOTALL)
    return "\n".join(html.unescape(each).replace("\xa0", " ").strip() for each in found)


def take_site(site: Path, picture: Path) -> bool:
    """Have Chromium take a picture of a site's first page; return whether there is a Chromium."""
    path = f"{os.environ.get('PATH', '')}{os.pathsep}{FETCHED}"
    browser = next(filter(None, (shutil.which(name, path=path) for name in BROWSERS)), None)
    if browser is None:
        return False
    with tempfile.TemporaryDirectory() as folder:
        taken = Path(folder) / "site.png"
        options = (
            *(
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--hide-scrollbars",
                f"--user-data-dir={folder}",
            ),
            *(f"--screenshot={taken}", f"--window-size={SITE_SIZE[0]},{SITE_SIZE[1]}"),
        )
        command = [browser, *options, (site / "index.html").resolve().as_uri()]
        subprocess.run(command, capture_output=True, check=True, timeout=BROWSER_SECONDS)
        shutil.copy(taken, picture)
    return True


def make(folder: Path) -> None:
    """Write the pictures that the program draws itself."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, picture in (("help.svg", help_picture()), ("dev.svg", view_picture())):
        (folder / name).write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) == 2:
        make(Path(sys.argv[1]))
    elif not take_site(Path(sys.argv[2]), Path(sys.argv[1]) / "site.png"):
        print("no Chromium: docs/pictures/site.png stays as it is (make prepare fetches one)")
