"""The Solidity compiler: what it answers, how large its input may be, and that no process of it is left.

The real compiler in its Node process, and scripts that represent a native one. Processes are looked up in
/proc. How long anything takes is not looked at.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastrpc.tools.contracts import _programs
from fastrpc.tools.contracts._embedded import compiler, diagnostics, solc
from fastrpc.tools.contracts._errors import (
    ENGINE_TIMEOUT,
    ENGINE_UNAVAILABLE,
    INVALID_REQUEST,
    SOLC_FAILED,
    EngineError,
)
from fastrpc.tools.contracts._project_files import source_files
from support.contracts import SLOW, needs
from support.skips import not_prepared
from support.waiting import eventually, until

from fastrpc import processes

Run = Callable[[Awaitable[Any]], Any]

LICENSE = "// SPDX-License-Identifier: MIT\n"
COUNTER = LICENSE + "pragma solidity ^0.8.0; contract Counter { uint256 public number; }\n"
LARGE = COUNTER + "//" + "x" * 5_000_000
LARGER_THAN_A_PIPE = COUNTER + "//" + "x" * 300_000
ENDLESS = SLOW + "//" + "x" * 300_000


def request(source: str) -> dict[str, Any]:
    chosen = {"*": {"*": ["abi", "evm.bytecode.object"]}}
    sources = {"Counter.sol": {"content": source}}
    return {"language": "Solidity", "sources": sources, "settings": {"outputSelection": chosen}}


def compiled(answer: dict[str, Any]) -> bool:
    contract: dict[str, Any] = answer["contracts"]["Counter.sol"]["Counter"]
    return bool(contract["evm"]["bytecode"]["object"]) and contract["abi"][0]["name"] == "number"


def run(coroutine: Awaitable[Any]) -> Any:
    async def whole() -> Any:
        try:
            return await asyncio.wait_for(coroutine, 100)
        finally:
            await solc.close()
            await processes.close()

    return asyncio.run(whole())


def worker() -> int:
    """The pid of the running loop's Node process, 0 when there is none."""
    found = solc._compilers.current()._worker
    return 0 if found is None else found.pid


def is_gone(pid: int) -> bool:
    return not os.path.exists(f"/proc/{pid}")


def installed() -> str:
    """The compiler of the install folder, whichever one lies along PATH."""
    path = os.path.join(_programs.install_folder(), _programs.SOLJSON)
    if not os.path.exists(path):
        pytest.skip(not_prepared("solc"))
    return path


@pytest.fixture
def soljson(monkeypatch: pytest.MonkeyPatch) -> str:
    path = installed()
    monkeypatch.setenv("FASTRPC_CONTRACTS_SOLC", path)
    return path


@pytest.fixture(scope="class")
def kept() -> Iterator[Run]:
    """What runs coroutines in one loop, so that its compiler, npm's, stays from test to test."""
    loop = asyncio.new_event_loop()

    def run(coroutine: Awaitable[Any]) -> Any:
        return loop.run_until_complete(asyncio.wait_for(coroutine, 100))

    async def close() -> None:
        await solc.close()
        await processes.close()

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FASTRPC_CONTRACTS_SOLC", installed())
        yield run
        run(close())
    loop.close()


@needs("node")
class TestKept:
    """One compiler's process, compilation after compilation."""

    def test_a_contract_compiles_and_the_version_is_known(self, kept: Run) -> None:
        async def whole() -> None:
            assert compiled(await solc.compile_standard(request(COUNTER)))
            version = await solc.version()
            assert version.startswith("0.8.")
            assert version.count(".") == 2

        kept(whole())

    def test_a_syntax_error_is_part_of_the_answer(self, kept: Run) -> None:
        answer = kept(solc.compile_standard(request(COUNTER.replace("public number;", "public number"))))
        errors = [each for each in answer["errors"] if each["severity"] == "error"]
        assert errors[0]["type"] == "ParserError"
        assert errors[0]["sourceLocation"]["file"] == "Counter.sol"

    def test_text_beyond_ascii_keeps_its_length(self, kept: Run) -> None:
        source = COUNTER.replace("number; }", 'number; string constant S = unicode"häßlich 🙂"; }')
        assert compiled(kept(solc.compile_standard(request(source))))

    def test_five_megabytes_compile_in_the_same_process(self, kept: Run) -> None:
        async def whole() -> None:
            assert compiled(await solc.compile_standard(request(COUNTER)))
            pid = worker()
            assert compiled(await solc.compile_standard(request(LARGE)))
            assert compiled(await solc.compile_standard(request(COUNTER)))
            assert worker() == pid

        kept(whole())

    def test_compilations_at_once_take_turns(self, kept: Run) -> None:
        async def whole() -> None:
            texts = [COUNTER + f"contract Other{number} {{}}" for number in range(5)]
            answers = await asyncio.gather(*(solc.compile_standard(request(text)) for text in texts))
            for number, answer in enumerate(answers):
                assert set(answer["contracts"]["Counter.sol"]) == {"Counter", f"Other{number}"}

        kept(whole())


@needs("node")
class TestByNode:
    def test_a_killed_compiler_is_an_error_and_the_next_one_works(self, soljson: str) -> None:
        async def whole() -> None:
            running = asyncio.ensure_future(solc.compile_standard(request(ENDLESS)))
            os.kill(await until(worker), signal.SIGKILL)
            with pytest.raises(EngineError, match="ended before its answer") as caught:
                await running
            assert (caught.value.code, caught.value.retry) == (SOLC_FAILED, False)
            assert compiled(await solc.compile_standard(request(COUNTER)))

        run(whole())

    def test_a_compiler_that_was_killed_while_idle_is_replaced(self, soljson: str) -> None:
        async def whole() -> None:
            await solc.compile_standard(request(COUNTER))
            os.kill(worker(), signal.SIGKILL)
            await until(lambda: not worker())
            assert compiled(await solc.compile_standard(request(COUNTER)))

        run(whole())

    def test_a_cancelled_compilation_leaves_no_process_and_no_answer(self, soljson: str) -> None:
        async def whole() -> None:
            running = asyncio.ensure_future(solc.compile_standard(request(ENDLESS)))
            pid = await until(worker)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            await until(lambda: is_gone(pid))
            answer = await solc.compile_standard(
                request(LICENSE + "pragma solidity ^0.8.0; contract Other {}")
            )
            assert list(answer["contracts"]["Counter.sol"]) == ["Other"]

        run(whole())

    def test_a_compilation_that_takes_too_long_leaves_no_process(self, soljson: str) -> None:
        async def whole() -> None:
            await solc.compile_standard(request(COUNTER))
            pid = worker()
            with pytest.raises(EngineError, match=r"not done after 0\.01 s") as caught:
                await solc.compile_standard(request(ENDLESS), timeout_seconds=0.01)
            assert caught.value.code == ENGINE_TIMEOUT
            await until(lambda: is_gone(pid))
            assert compiled(await solc.compile_standard(request(COUNTER)))

        run(whole())

    def test_an_idle_compiler_ends_and_starts_again(
        self, soljson: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(solc, "IDLE_SECONDS", 0.01)

        async def whole() -> None:
            running = asyncio.ensure_future(solc.compile_standard(request(COUNTER)))
            pid = await until(worker)
            await running
            await until(lambda: is_gone(pid))
            assert compiled(await solc.compile_standard(request(COUNTER)))

        run(whole())

    def test_the_compiler_sees_nothing_of_the_environment(
        self, soljson: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("WALLET_PRIVATE_KEY", "nobody-reads-this")

        async def whole() -> None:
            await solc.compile_standard(request(COUNTER))
            seen = Path(f"/proc/{worker()}/environ").read_bytes().split(b"\0")
            names = {line.partition(b"=")[0] for line in seen}
            assert {b"PATH", b"LANG"} <= names
            assert not names & {b"WALLET_PRIVATE_KEY", b"HOME", b"FASTRPC_CONTRACTS_SOLC"}

        run(whole())

    def test_a_killed_server_leaves_no_compiler(self, soljson: str) -> None:
        program = f"""
            import asyncio
            from fastrpc.tools.contracts._embedded import solc
            async def whole():
                await solc.compile_standard({request(COUNTER)!r})
                print(solc._compilers.current()._worker.pid, flush=True)
                await asyncio.sleep(60)
            asyncio.run(whole())
        """
        command = [sys.executable, "-c", textwrap.dedent(program)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            pid = int(server.stdout.readline())
            assert not is_gone(pid)
            server.kill()
        eventually(lambda: is_gone(pid))

    def test_the_compiler_ends_with_its_input(self, soljson: str) -> None:
        command = [_programs.find("node"), solc.WORKER, soljson]
        assert subprocess.run(command, stdin=subprocess.DEVNULL, timeout=60).returncode == 0

    def test_forge_gets_a_program_that_is_used_like_solc(
        self, soljson: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a folder"))
        program = solc.solc_for_forge()
        assert os.path.dirname(program) == _programs.install_folder()
        assert solc.solc_for_forge() == program
        for _ in range(2):
            assert b"Version: 0.8." in subprocess.check_output([program, "--version"], timeout=60)
        options = ["--standard-json", "--base-path", ".", "--allow-paths", str(tmp_path), "-"]
        body = json.dumps(request(LARGER_THAN_A_PIPE)).encode()
        text = subprocess.check_output([program, *options], input=body, timeout=100)
        assert compiled(json.loads(text))


class TestNative:
    """A script represents a native solc."""

    @pytest.fixture
    def native(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
        def made(script: str) -> str:
            path = tmp_path / "solc"
            path.write_text(f"#!/bin/sh\n{script}\n")
            path.chmod(0o755)
            monkeypatch.setenv("FASTRPC_CONTRACTS_SOLC", str(path))
            return str(path)

        return made

    def test_it_is_run_and_forge_gets_it_itself(self, native: Callable[[str], str]) -> None:
        path = native('[ "$1" = --version ] && echo Version: 0.8.30+commit.73712a01 || cat')

        async def whole() -> None:
            assert await solc.compile_standard(request(COUNTER)) == request(COUNTER)
            assert await solc.version() == "0.8.30"

        run(whole())
        assert solc.solc_for_forge() == path

    def test_it_runs_where_no_import_finds_a_file(
        self, native: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "Secret.sol").write_text("contract Secret {}")
        monkeypatch.chdir(tmp_path)
        native("""printf '{"here": "%s"}' "$(ls -A; pwd)" """)
        answer = run(solc.compile_standard(request(COUNTER)))
        assert answer == {"here": os.path.join(_programs.install_folder(), "empty")}

    def test_an_answer_that_is_not_json_is_an_error(self, native: Callable[[str], str]) -> None:
        native("echo Killed; exit 1")
        with pytest.raises(EngineError, match="no JSON") as caught:
            run(solc.compile_standard(request(COUNTER)))
        assert caught.value.code == SOLC_FAILED

    def test_one_that_takes_too_long_is_ended(self, native: Callable[[str], str], tmp_path: Path) -> None:
        native(f"echo $$ >{tmp_path}/pid; exec sleep 60")
        with pytest.raises(EngineError, match="not done after 1 s"):
            run(solc.compile_standard(request(COUNTER), timeout_seconds=1))
        pid = tmp_path / "pid"  # not there if it was ended before its first step
        eventually(lambda: not pid.exists() or is_gone(int(pid.read_text())))


@pytest.mark.parametrize(
    ("sources", "said"),
    [
        ({"a.sol": "x", "foundry.toml": "ffi = true"}, "no configuration"),
        ({"a.sol": "x" * 50, "b.vy": "x" * 60}, "at most 100 bytes together"),
        ({"a.sol": "\ud800"}, "a lone surrogate"),
    ],
)
def test_what_is_refused_before_it_is_compiled(
    sources: dict[str, str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_files, "MOST_BYTES", 100)
    with pytest.raises(EngineError, match=said) as caught:
        run(compiler.compile_sources(sources, optimize=200, via_ir=False, evm_version=None))
    assert caught.value.code == INVALID_REQUEST


def test_many_messages_about_one_long_line_are_placed_at_once() -> None:
    text = "é" * 1_000_000
    reader = diagnostics.SolcReader({"a.sol": f"\n{text}"})
    for number in range(1, 500):
        place = {"file": "a.sol", "start": 1 + 2 * number, "end": 0}
        error = {"severity": "error", "message": "m", "sourceLocation": place}
        found = reader.diagnostic_of(error)
        assert (found["line"], found["column"]) == (2, number + 1)


def test_programs_are_looked_for_in_their_order(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, value in (("HOME", ""), ("XDG_CACHE_HOME", "cache"), ("PATH", "bin")):
        monkeypatch.setenv(name, str(tmp_path / value))
    monkeypatch.delenv("FASTRPC_CONTRACTS_SOLC", raising=False)
    places = ["cache/fastrpc/contracts/soljson.js", ".svm/0.8.9/solc-0.8.9", ".svm/0.8.30/solc-0.8.30"]
    places += [".foundry/bin/solc", "bin/solc", "else/my-solc"]
    for number, place in enumerate(places):
        path = tmp_path / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
        path.chmod(0o755)
        if number == len(places) - 1:
            monkeypatch.setenv("FASTRPC_CONTRACTS_SOLC", str(path))
        assert _programs.find("solc") == str(path)


def test_a_setting_that_names_no_program_is_not_passed_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FASTRPC_CONTRACTS_FORGE", str(tmp_path / "forge"))
    with pytest.raises(EngineError, match="FASTRPC_CONTRACTS_FORGE names no program") as caught:
        _programs.find("forge")
    assert caught.value.code == ENGINE_UNAVAILABLE
