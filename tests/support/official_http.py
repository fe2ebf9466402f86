"""Servers of the official SDK for Python over HTTP, each started in one of its modes.

A test module that imports this is skipped where the SDK is not installed.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from fastrpc.protocol.versions import LATEST_LEGACY
from support.remote_server import OFFICIAL, Remote

for needed in ("mcp", "httpx", "uvicorn"):
    pytest.importorskip(needed, reason="the official server over HTTP is not installed: pip install mcp")
if importlib.util.find_spec("mcp.server.mcpserver") is None:
    pytest.skip("the official SDK is older than 2.0", allow_module_level=True)

MODES = ["session", "json", "stateless", "sse"]
_modes: dict[str, str] = {}
"""The mode of each server, by its address."""


@contextmanager
def started_in(mode: str) -> Iterator[Remote]:
    """Run a server in a mode."""
    path = "/sse" if mode == "sse" else "/mcp"
    with Remote(OFFICIAL.replace("MODE", repr(mode)), token=None, path=path) as remote:
        _modes[remote.url] = mode
        yield remote


def mode_of(remote: Remote) -> str:
    """Return the mode in which a server was started."""
    return _modes[remote.url]


def all_but(version: str, *left_out: tuple[str, str | None]) -> Any:
    """Run a test in each mode with the latest version and the latest with sessions, but for some of these
    pairs. `version` is the test's parameter of the version; that of the server is its fixture `official`."""
    pairs = [(mode, number) for mode in MODES for number in (None, LATEST_LEGACY)]
    kept = [pair for pair in pairs if pair not in left_out]
    return pytest.mark.parametrize(("official", version), kept, indirect=["official"])
