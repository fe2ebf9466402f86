"""Unix sockets of servers in folders whose paths are longer than the address of such a socket can be."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import pytest
from fastrpc.tools.agent._browser import folder as browser_folder
from support.chromium import ARTICLE, Reader
from support.http_client import Serving
from support.web_server import Web

TOOLS = "import os\nfrom fastrpc import tool\n\n@tool\ndef who() -> str:\n    return str(os.getpid())\n"

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="Linux alone reaches a socket by its folder's descriptor"
)


@pytest.fixture
def long_folder(tmp_path: Path) -> str:
    path = os.path.join(str(tmp_path), "t" * 200)
    os.mkdir(path)
    return path


def test_workers_reach_each_other_s_sessions(tmp_path: Path, long_folder: str) -> None:
    (tmp_path / "tools.py").write_text(TOOLS)
    options = ("--http", "127.0.0.1:0", "--workers", "2")
    with Serving("serve", "tools.py", *options, folder=tmp_path, TMPDIR=long_folder) as server:
        assert os.listdir(long_folder) != []
        for _ in range(8):  # sessions of either worker, each asked over connections to both
            session = server.session()
            assert len({session.call("who").text for _ in range(8)}) == 1
        assert server.stop() == 0
    assert server.stderr.count("\n") == 1, server.stderr
    assert os.listdir(long_folder) == []


def test_a_server_s_own_socket_is_there_and_gone_at_its_end(tmp_path: Path, long_folder: str) -> None:
    (tmp_path / "tools.py").write_text(TOOLS)
    with Serving("serve", "tools.py", "--http", f"unix:{long_folder}/s", folder=tmp_path) as server:
        assert os.stat(f"{long_folder}/s").st_mode & 0o777 == 0o600
        assert server.stop() == 0
    assert os.listdir(long_folder) == []


def test_the_browser_reads_where_the_first_short_folder_is_not_there(
    long_folder: str, read: Reader, web: Web, shelter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(browser_folder, "SHORT_BASES", ("/dev/null/none", shelter))
    monkeypatch.setattr(tempfile, "tempdir", long_folder)
    read(web.page("/", ARTICLE, "Tides"))
    assert [name for name in os.listdir(shelter) if name.startswith(browser_folder.PREFIX)] != []
    assert os.listdir(long_folder) == []
