"""The official TypeScript client, in both of its lines, talks to a real server.

Needs Node and the packages of ``tests/typescript/package.json``; `npm install` is run once into a
cache folder. Without Node the test skips on a user's machine, and fails in CI.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from typing import Any

import pytest
from test_official_client import SERVER

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SOURCE = os.path.join(TESTS, "typescript")


@pytest.fixture(scope="module")
def folder() -> str:
    """A folder with the client script and its packages."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        if os.environ.get("CI"):
            pytest.fail("CI must have Node and npm")
        pytest.skip("Node and npm are not installed")
    with open(os.path.join(SOURCE, "package.json"), "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()[:12]
    folder = os.path.join(os.path.dirname(TESTS), ".cache", f"typescript-{digest}")
    os.makedirs(folder, exist_ok=True)
    for name in ("package.json", "client.mjs"):
        shutil.copy(os.path.join(SOURCE, name), folder)
    if not os.path.isdir(os.path.join(folder, "node_modules", "@modelcontextprotocol", "client")):
        command = ["npm", "install", "--no-audit", "--no-fund", "--silent"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
        if done.returncode != 0 and not os.environ.get("CI"):
            pytest.skip("npm could not install the TypeScript client")
        assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.timeout(360)
@pytest.mark.parametrize("line", ["v1", "v2"])
def test_the_typescript_client_is_served(line: str, folder: str, tmp_path: Any) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    server = [sys.executable, "-m", "fastrpc", "serve", str(tmp_path / "server.py")]
    done = subprocess.run(
        ["node", "client.mjs", line, *server], cwd=folder, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["server"]["name"] == "official"
    assert seen["tools"] == ["echo", "add", "steps", "endless", "picture", "fail"]
    assert seen["echo"] == [{"type": "text", "text": "héllo 漢 🎉"}]
    assert seen["sum"] == {"result": 5}
    assert seen["failed"] is True
    assert seen["many"] is True
    assert seen["aborted"] is True
    assert seen["after"] == "still here"
    assert seen["closed_ms"] < 1500
