"""`fastrpc selftest fastrpc.tools.contracts --engine …` finds an engine that lacks a verb."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from support.bridged import in_loop
from support.standin_engine import StdioEngine
from support.standin_http import HttpEngine, sends

UNKNOWN = b'{"jsonrpc":"2.0","id":$ID,"error":{"code":-32601,"message":"method not found"}}'


async def selftest(folder: Path, engine: str) -> tuple[int | None, str]:
    """The exit code, and what it prints."""
    command = [sys.executable, "-m", "fastrpc", "selftest", "fastrpc.tools.contracts", "--engine", engine]
    environment = {**os.environ, "FASTRPC_STATE_DIR": str(folder / "state"), "HOME": str(folder)}
    process = await asyncio.create_subprocess_exec(
        *command, cwd=folder, env=environment, stdout=asyncio.subprocess.PIPE
    )
    said, _ = await asyncio.wait_for(process.communicate(), 60)
    return process.returncode, said.decode()


@in_loop
async def test_an_engine_with_the_nine_verbs_holds(tmp_path: Path) -> None:
    async with HttpEngine() as engine:
        code, said = await selftest(tmp_path, engine.url)
        assert code == 0, said
        assert "the engine has the 9 verbs\n" in said
        assert [asked.params for asked in engine.asked("tachyon_deploy")] == [0]  # which deploys nothing


@in_loop
async def test_an_engine_without_a_verb_fails_and_is_named(tmp_path: Path) -> None:
    async with HttpEngine() as engine:
        engine.always("tachyon_test", sends(UNKNOWN))
        code, said = await selftest(tmp_path, engine.url)
        assert code == 1, said
        assert "FAIL  toolset   the engine has no tachyon_test\n" in said


@in_loop
async def test_an_engine_that_does_not_run_fails(tmp_path: Path) -> None:
    code, said = await selftest(tmp_path, "http://127.0.0.1:9")
    assert code == 1, said
    assert "FAIL  toolset   the engine: ENGINE_UNAVAILABLE: " in said


@in_loop
async def test_the_list_of_an_engine_of_stdio_is_compared(tmp_path: Path) -> None:
    engine = StdioEngine(tmp_path / "engine")
    code, said = await selftest(tmp_path, engine.setting)
    assert code == 0, said
    assert "the engine has the 9 verbs\n" in said
    assert "tools/list" in [asked["method"] for asked in engine.asked]
