"""`fastrpc selftest fastrpc.tools.contracts --engine …` finds an engine that lacks a verb.

The command checks much else: it is run once, and what it asks of engines is called for the others.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest
from fastrpc.tools.contracts import _selftest
from support.bridged import environment, in_loop
from support.standin_engine import StdioEngine
from support.standin_http import HttpEngine, sends

UNKNOWN = b'{"jsonrpc":"2.0","id":$ID,"error":{"code":-32601,"message":"method not found"}}'
HOLDS = [(True, "the engine has the 9 verbs")]


@pytest.fixture
def patch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.chdir(tmp_path)
    return monkeypatch


async def findings(patch: pytest.MonkeyPatch, engine: str) -> list[tuple[bool, str]]:
    """What is found of an engine, in a separate loop."""
    for name, value in environment(os.getcwd(), engine).items():
        patch.setenv(name, value)
    return await asyncio.wait_for(asyncio.to_thread(_selftest.findings), 60)


@in_loop
async def test_an_engine_with_the_nine_verbs_holds(patch: pytest.MonkeyPatch) -> None:
    async with HttpEngine() as engine:
        assert await findings(patch, engine.url) == HOLDS
        assert [asked.params for asked in engine.asked("tachyon_deploy")] == [0]  # which deploys nothing


@in_loop
async def test_an_engine_that_does_not_run_fails(patch: pytest.MonkeyPatch) -> None:
    ((holds, said),) = await findings(patch, "http://127.0.0.1:9")
    assert (holds, said[:32]) == (False, "the engine: ENGINE_UNAVAILABLE: ")


@in_loop
async def test_the_list_of_an_engine_of_stdio_is_compared(patch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    engine = StdioEngine(tmp_path / "engine")
    assert await findings(patch, engine.setting) == HOLDS
    assert "tools/list" in [asked["method"] for asked in engine.asked]


@in_loop
async def test_the_command_fails_for_an_engine_without_a_verb_and_names_it(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "fastrpc", "selftest", "fastrpc.tools.contracts", "--engine"]
    async with HttpEngine() as engine:
        engine.always("tachyon_test", sends(UNKNOWN))
        process = await asyncio.create_subprocess_exec(
            *command,
            engine.url,
            cwd=tmp_path,
            env={**os.environ, "FASTRPC_STATE_DIR": str(tmp_path / "state"), "HOME": str(tmp_path)},
            stdout=asyncio.subprocess.PIPE,
        )
        said, _ = await asyncio.wait_for(process.communicate(), 60)
        assert process.returncode == 1, said
        wrong = [
            line for line in said.decode().splitlines() if line.startswith(("FAIL  toolset", "FAIL  call"))
        ]
        assert wrong == ["FAIL  toolset   the engine has no tachyon_test"]
