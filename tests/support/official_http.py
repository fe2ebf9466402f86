"""Servers of the official SDK for Python over HTTP, each started in one of its modes.

A test module that imports this is skipped where the SDK is not installed.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from fastrpc.protocol.versions import LATEST_SESSION_VERSION
from support.remote_server import OFFICIAL, Remote

for needed in ("mcp", "httpx", "uvicorn"):
    pytest.importorskip(needed, reason="the official server over HTTP is not installed: pip install mcp")
if importlib.util.find_spec("mcp.server.mcpserver") is None:
    pytest.skip("the official SDK is older than 2.0", allow_module_level=True)

MODES = ["session", "json", "stateless", "sse"]
_modes: dict[str, str] = {}
"""The mode of each server, by its address."""


@contextmanager
def started_when_asked_for() -> Iterator[Callable[[str], Remote]]:
    """Gives what returns the server of a mode: one, which starts when it is first asked for, and serves on to
    the end of the block. It takes seconds to start."""
    with ExitStack() as running:
        known: dict[str, Remote] = {}

        def started_in(mode: str) -> Remote:
            if mode not in known:
                path = "/sse" if mode == "sse" else "/mcp"
                server = Remote(OFFICIAL.replace("MODE", repr(mode)), token=None, path=path)
                known[mode] = running.enter_context(server)
                _modes[known[mode].url] = mode
            return known[mode]

        yield started_in


def mode_of(remote: Remote) -> str:
    """Return the mode in which a server was started."""
    return _modes[remote.url]


def all_but(version: str, *left_out: tuple[str, str | None]) -> Any:
    """Run a test in each mode with the latest version and the latest with sessions, but for some of these
    pairs. `version` is the test's parameter of the version; that of the server is its fixture `official`."""
    pairs = [(mode, number) for mode in MODES for number in (None, LATEST_SESSION_VERSION)]
    kept = [pair for pair in pairs if pair not in left_out]
    return pytest.mark.parametrize(("official", version), kept, indirect=["official"])
