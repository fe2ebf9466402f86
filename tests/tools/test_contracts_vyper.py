"""Vyper beside Solidity: what it compiles to, what is said of errors, and that only its own sources miss it.

Real Vyper in separate processes; scripts represent one that hangs or is not there.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from fastrpc.tools.contracts import _programs
from fastrpc.tools.contracts._embedded import compiler, compiler_process, diagnostics, forge, vyper
from fastrpc.tools.contracts._errors import EngineError
from support.contracts import needs
from support.contracts_session import Session, in_loop, processes_in
from support.waiting import eventually

from fastrpc import processes

pytestmark = pytest.mark.long

COUNTER = """\
# pragma version ^0.4.0
import limits
from interfaces import ICounter

implements: ICounter

event Changed:
    by: indexed(address)
    value: uint256

value: public(uint256)

@deploy
def __init__(v: uint256):
    limits.check(v)
    self.value = v

@external
def set(v: uint256):
    limits.check(v)
    self.value = v
    log Changed(by=msg.sender, value=v)
"""
LIMITS = """\
@internal
@pure
def check(v: uint256):
    assert v < 1000, "too large"
"""
INTERFACE = """\
@external
def set(v: uint256): ...
"""
PROJECT = {"src/Counter.vy": COUNTER, "src/limits.vy": LIMITS, "src/interfaces/ICounter.vyi": INTERFACE}
ALONE = COUNTER.replace("from interfaces import ICounter\n", "").replace("implements: ICounter\n", "")
SENDABLE = {"src/Counter.vy": ALONE, "src/limits.vy": LIMITS}
OWNED = "owner: public(address)\n"
MODULE = "import owned\nuses: owned\n\n@internal\ndef f() -> address:\n    return owned.owner\n"
WHOLE = """\
import owned
import module
initializes: owned
initializes: module[owned := owned]

@external
def f() -> address:
    return module.f()
"""
SOLIDITY = """
// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;
interface ICounter { function value() external view returns (uint256); }
contract Reader { function read(ICounter from) external view returns (uint256) { return from.value(); } }
"""
TEST = """
// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;
import {Test} from "forge-std/Test.sol";
interface ICounter { function set(uint256) external; function value() external view returns (uint256); }
contract CounterTest is Test {
    ICounter counter;
    function setUp() external { counter = ICounter(vm.deployCode("src/Counter.vy", abi.encode(7))); }
    function test_set() external { counter.set(8); assertEq(counter.value(), 8); }
    function test_too_large() external { vm.expectRevert("too large"); counter.set(1000); }
}
"""


def run(coroutine: Any) -> Any:
    async def whole() -> Any:
        try:
            return await coroutine
        finally:
            await processes.close()

    return asyncio.run(whole())


def compiled(
    sources: dict[str, str], evm_version: str | None = None
) -> tuple[dict[str, dict[str, Any]], list[dict[str, Any]]]:
    """The artifacts by name, and the diagnostics."""
    made, said = run(compiler.compile_sources(sources, optimize=200, via_ir=False, evm_version=evm_version))
    return {each["name"]: each for each in made}, said


def refused(sources: dict[str, str], evm_version: str | None = None) -> EngineError:
    with pytest.raises(EngineError) as caught:
        compiled(sources, evm_version)
    return caught.value


def outcome_of(folder: Path, sources: dict[str, str]) -> dict[str, Any]:
    given: dict[str, Any] = dict.fromkeys(("match_path", "match_contract", "filter", "evm_version"))
    given |= {"project_config": False, "report": lambda text: None, "timeout_seconds": 100}
    found: dict[str, Any] = run(forge.run_tests(sources, None, folder=str(folder / "forge"), **given))
    return found


@needs("vyper")
class TestCompiling:
    def test_an_artifact_is_like_one_of_solidity_and_imports_are_found(self) -> None:
        made, said = compiled(PROJECT)
        assert said == []
        assert list(made) == ["Counter", "ICounter", "limits"]
        counter = made["Counter"]
        assert (counter["path"], counter["compiler"]["name"]) == ("src/Counter.vy", "vyper")
        assert counter["compiler"]["version"].startswith("0.")
        assert counter["compiler"]["settings"] == {"optimize": "gas", "evm_version": None}
        assert {each.get("name") for each in counter["abi"]} >= {"set", "value", "Changed"}
        assert counter["bytecode"].startswith("0x")
        assert 2 < len(counter["deployedBytecode"]) < len(counter["bytecode"])
        assert (made["ICounter"]["bytecode"], len(made["ICounter"]["abi"])) == ("0x", 1)

    def test_the_version_of_the_chain_is_taken_or_refused(self) -> None:
        made, _ = compiled({"a.vy": OWNED}, evm_version="cancun")
        assert made["a"]["compiler"]["settings"]["evm_version"] == "cancun"
        error = refused({"a.vy": OWNED}, evm_version="moon")
        assert (error.code, "moon" in error.message) == ("COMPILER_VYPER_FAILED", True)

    def test_an_error_is_where_it_is_and_not_in_what_imports_it(self) -> None:
        error = refused({**PROJECT, "src/limits.vy": LIMITS.replace("v < 1000", "w < 1000")})
        assert error.code == "COMPILER_VYPER_FAILED"
        assert error.message == "src/limits.vy:4:12: 'w' has not been declared."
        assert error.details is not None
        (found,) = error.details["diagnostics"]
        assert (found["path"], found["line"], found["column"]) == ("src/limits.vy", 4, 12)
        assert (found["severity"], found["type"]) == ("error", "UndeclaredDefinition")

    def test_several_errors_are_several_diagnostics_in_their_order(self) -> None:
        function = "@external\ndef {0}() -> uint256:\n    return {0}{0}\n"
        error = refused({"a.vy": function.format("x") + function.format("y")})
        assert (
            error.message == "a.vy:3:12: 'xx' has not been declared.; a.vy:6:12: 'yy' has not been declared."
        )

    def test_a_warning_comes_beside_the_artifacts(self) -> None:
        made, said = compiled({"a.vy": "event E:\n    a: uint256\n@external\ndef f():\n    log E(1)\n"})
        assert list(made) == ["a"]
        assert [(each["severity"], each["line"]) for each in said] == [("warning", 5)]

    def test_files_of_one_name_are_refused_with_what_vyper_wants(self) -> None:
        error = refused({"a/x.vy": LIMITS, "b/x.vy": LIMITS})
        assert error.message.startswith("b/x.vy: Contract namespace collision")
        assert "names of files to differ" in error.message

    def test_a_module_that_another_file_has_to_initialize_is_no_error(self) -> None:
        made, said = compiled({"owned.vy": OWNED, "module.vy": MODULE, "whole.vy": WHOLE})
        assert list(made) == ["owned", "whole"]
        (found,) = said
        assert (found["severity"], found["path"]) == ("info", "module.vy")
        assert found["message"].startswith("not a contract by itself: ")
        error = refused({"owned.vy": OWNED, "module.vy": MODULE.replace("owned.owner", "nobody")})
        assert "'nobody' has not been declared" in error.message

    def test_nothing_beside_the_sources_is_read(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for folder in (tmp_path, tmp_path / "sub"):
            folder.mkdir(exist_ok=True)
            (folder / "limits.vy").write_text(LIMITS)
        monkeypatch.chdir(tmp_path / "sub")
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        for source in (ALONE, ALONE.replace("import limits", "from .. import limits")):
            error = refused({"src/Counter.vy": source})
            assert error.message.startswith("src/Counter.vy:2:1: limits")

    @needs("solc")
    def test_errors_of_both_languages_come_together(self) -> None:
        error = refused({"a.sol": "contract A { uint x = y; }", "b.vy": "x: nothing\n"})
        assert error.code == "COMPILER_SOLC_FAILED"
        assert error.details is not None
        errors = [each for each in error.details["diagnostics"] if each["severity"] == "error"]
        assert [each["path"] for each in errors] == ["a.sol", "b.vy"]


@needs("vyper")
@needs("solc")
@needs("anvil")
@in_loop
async def test_a_contract_of_vyper_is_deployed_and_called_beside_one_of_solidity(tmp_path: Path) -> None:
    async with Session(tmp_path) as session:
        made = await session.data("compile", sources={**SENDABLE, "src/Reader.sol": SOLIDITY})
        names = {each["name"]: each["compiler"]["name"] for each in made["artifacts"]}
        assert names == {"ICounter": "solc", "Reader": "solc", "Counter": "vyper", "limits": "vyper"}
        to = (await session.deploy("k", 7, contract="src/Counter.vy:Counter"))["address"]
        reader = await session.deploy("r", contract="Reader", constructor_args=[])
        done = await session.data("call", to=to, method="set", args=["999"])
        assert done["receipt"]["logs"][0]["event"] == "Changed"
        assert (await session.data("call", to=reader["address"], method="read", args=[to]))[
            "decoded"
        ] == "999"
        error = await session.error("call", to=to, method="set", args=[1000])
        assert (error["code"], error["message"][-9:]) == ("CALL_FAILED", "too large")


@needs("vyper")
@needs("solc")
@needs("forge")
class TestTesting:
    def test_a_test_in_solidity_makes_the_contract(self, tmp_path: Path) -> None:
        module = {"src/owned.vy": OWNED, "src/module.vy": MODULE, "src/whole.vy": WHOLE}
        found = outcome_of(tmp_path, {**PROJECT, **module, "test/Counter.t.sol": TEST})
        assert (found["passed"], found["failed"]) == (2, 0)

    def test_what_does_not_compile_comes_with_its_place(self, tmp_path: Path) -> None:
        sources = {**PROJECT, "src/limits.vy": LIMITS.replace("v < 1000", "w < 1000"), "test/C.t.sol": TEST}
        with pytest.raises(EngineError) as caught:
            outcome_of(tmp_path, sources)
        assert caught.value.code == "COMPILER_VYPER_FAILED"
        assert caught.value.message == "src/limits.vy:4:12: 'w' has not been declared."


def test_a_test_in_vyper_is_refused_with_what_is_expected(tmp_path: Path) -> None:
    with pytest.raises(EngineError) as caught:
        outcome_of(tmp_path, {"test/test_counter.vy": "@external\ndef test_it():\n    assert True\n"})
    assert caught.value.code == "INVALID_REQUEST"
    assert "a test in Solidity, since forge runs no other" in caught.value.message
    assert "vm.deployCode" in caught.value.message


@pytest.mark.parametrize("dots", ["...", ". . .", "\\\n ...", ".\t.\\\n."])
def test_an_import_from_above_the_sources_is_refused(tmp_path: Path, dots: str) -> None:
    source = f"from {dots} import secret\n"
    with pytest.raises(EngineError, match="imports from within the sources"):
        outcome_of(tmp_path, {"src/A.vy": source, "test/A.t.sol": TEST})


class TestMissing:
    @pytest.fixture(autouse=True)
    def nowhere(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
        monkeypatch.delenv("FASTRPC_CONTRACTS_VYPER", raising=False)

    def test_it_is_missed_by_the_command_that_brings_it(self) -> None:
        error = refused({"a.vy": OWNED})
        assert error.code == "ENGINE_UNAVAILABLE"
        assert 'pip install "fastrpc-mcp[vyper]"' in error.message
        assert "FASTRPC_CONTRACTS_VYPER" in error.message

    @needs("solc")
    def test_solidity_does_not_miss_it(self) -> None:
        made, _ = compiled(
            {"A.sol": "// SPDX-License-Identifier: MIT\npragma solidity ^0.8.0; contract A {}"}
        )
        assert list(made) == ["A"]

    def test_it_is_found_beside_python(self, tmp_path: Path) -> None:
        (tmp_path / "vyper").write_text("")
        (tmp_path / "vyper").chmod(0o755)
        assert _programs.find("vyper") == str(tmp_path / "vyper")


class TestStandIn:
    @pytest.fixture
    def program(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        path = tmp_path / "vyper"
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
        monkeypatch.setenv("FASTRPC_CONTRACTS_VYPER", str(path))
        monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{tmp_path}/mark")
        return path

    def test_one_that_hangs_is_ended_in_its_time_with_its_children(
        self, program: Path, tmp_path: Path
    ) -> None:
        program.write_text("#!/bin/sh\nsleep 271 & sleep 271\n")
        compilation = vyper.compile_sources(
            {"a.vy": OWNED}, optimize=True, evm_version=None, timeout_seconds=1
        )
        with pytest.raises(EngineError, match="vyper was not done after") as caught:
            run(compilation)
        assert (caught.value.code, caught.value.retry) == ("ENGINE_TIMEOUT", False)
        eventually(lambda: not processes_in(tmp_path))

    @pytest.mark.parametrize("script", ["exit 1", "echo Traceback", "echo '[]'", "kill -9 $$"])
    def test_one_that_fails_is_an_error(self, program: Path, script: str) -> None:
        program.write_text(f"#!/bin/sh\n{script}\n")
        error = refused({"a.vy": OWNED})
        assert (error.code, "vyper has written no JSON" in error.message) == ("COMPILER_VYPER_FAILED", True)

    def test_one_that_writes_without_end_is_ended(
        self, program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(compiler_process, "MOST_BYTES", 1_000_000)
        program.write_text("#!/bin/sh\nexec yes\n")
        assert "wrote more than 1000000 bytes" in refused({"a.vy": OWNED}).message
        eventually(lambda: not processes_in(tmp_path))


def test_texts_of_vyper_are_read_whatever_they_hold() -> None:
    place = 'm\n\n  contract "x.vy:1", line 1:0 \n'
    for text in (place, "\n\n", "", place * 3, "Compilation failed with the following errors:"):
        error = {"severity": "error", "formattedMessage": text, "sourceLocation": {"file": "gone.vy"}}
        for found in diagnostics.of_vyper(error, {"a.vy": ""}):
            assert "path" not in found
