"""What the tests of the browser share: whether one is there, its processes, and a separate loop."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Coroutine, Iterator
from typing import Any

import pytest

from support.programs import is_fetched
from support.skips import not_installed

NAMES = ("chromium", "chromium-browser", "google-chrome")
WHAT_RUNS = ("--user-data-dir", "--type=", "playwright/driver", "_browser.worker", "chrome_crashpad_handler")


def need(whole: bool = False) -> None:
    """Skip where there is no Chromium; or, for `whole`, only the one from npm: it has no windows, blocks no
    popups, and shows its second debugger an answer of a proxy that asks for the password."""
    if os.environ.get("FASTRPC_BROWSER"):
        return
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip(not_installed("Chromium"))
    if whole and is_fetched(found):
        pytest.skip(not_installed("A Chromium that has windows"))


def processes_in(folder: str) -> dict[int, str]:
    """Return the processes whose command line or environment names a folder: browser, driver, worker."""
    found = {}
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            with open(f"/proc/{name}/cmdline", "rb") as file:
                command = file.read().replace(b"\0", b" ").decode("utf-8", "replace")
            with open(f"/proc/{name}/environ", "rb") as file:
                environment = file.read().decode("utf-8", "replace")
            if folder in command + environment and any(sign in command for sign in WHAT_RUNS):
                found[int(name)] = command.strip()
    return found


def none_left(folder: str, seconds: float = 60.0) -> None:
    """Fail if browser processes of a folder are still there after so long."""
    deadline = time.monotonic() + seconds
    while left := processes_in(folder):
        assert time.monotonic() < deadline, f"left behind: {left}"
        time.sleep(0.02)


@contextlib.contextmanager
def temporary_folder() -> Iterator[str]:
    """A folder with a short name: the browser makes a socket in it."""
    folder = tempfile.mkdtemp(prefix="ft-", dir="/tmp")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Loop:
    """An event loop on a separate thread, so that one browser serves many tests."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, Any], seconds: float = 60.0) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(seconds)

    def close(self) -> None:
        from fastrpc import processes

        self.run(processes.close())
        self.run(asyncio.sleep(0.05))
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(5)
        self.loop.close()


# --- what the tests of ReadDocs share ---------------------------------------------------------------------

PARAGRAPH = "The tide rises twice a day, and whoever lives by the sea keeps a table of it. " * 3
ARTICLE = f"<h1>Tides</h1><p>{PARAGRAPH}</p><p>{PARAGRAPH}</p>"


class Reader:
    """Calls ReadDocs on a loop."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop

    def __call__(self, url: str, **arguments: Any) -> Any:
        """Return the result."""
        from fastrpc.tools.agent.read_docs import read_docs

        from fastrpc import Context

        return self.loop.run(read_docs(url, Context(), **arguments))

    def refused(self, url: str, **arguments: Any) -> str:
        """Return the sentence with which a call is refused."""
        from fastrpc import ToolError

        with pytest.raises(ToolError) as caught:
            self(url, **arguments)
        sentence = str(caught.value)
        assert len(sentence) < 400
        return sentence


def text_of(result: Any) -> str:
    assert isinstance(result.content, str)
    return result.content


def facts_of(result: Any) -> dict[str, Any]:
    facts: dict[str, Any] = (result.meta or {})["fastrpc/facts"]
    return facts


@contextlib.contextmanager
def shelter(pytest_folders: pytest.TempPathFactory) -> Iterator[str]:
    """A folder for all that is written meanwhile: state and temporary files."""
    pytest_folders.getbasetemp()  # made at its first use, which must not be in this folder
    with temporary_folder() as path, pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", path)
        patch.setenv("FASTRPC_STATE_DIR", os.path.join(path, "state"))
        patch.setenv("FASTRPC_SECRET", "the-secret-of-this-server")
        yield path


def pdf(words: str) -> bytes:
    """A PDF with one line of text."""
    stream = f"BT /F1 24 Tf 72 700 Td ({words}) Tj ET".encode()
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d>>stream\n%s\nendstream" % (len(stream), stream),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    data, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(data))
        data += b"%d 0 obj%s endobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(objects) + 1
    return (
        data
        + b"xref\n0 %d\n0000000000 65535 f \n%strailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF"
        % (
            size,
            table,
            size,
            len(data),
        )
    )
