"""What strangers' sources and contracts may cost: time, memory and secrets have an end, and the next request
is served. And a server that is killed leaves nothing behind.

Real servers over pipes, real solc, forge, anvil and Vyper. A program of ours serves with shorter times than
users have. Linux only: processes, their memory and their variables are looked up in /proc.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fastrpc.tools.contracts import _programs
from fastrpc.tools.contracts._chain import abi
from support.contracts import SLOW, needs
from support.contracts_session import processes_in
from support.stdio import Process, serve
from support.waiting import eventually

pytestmark = [needs("solc"), needs("forge"), needs("anvil"), pytest.mark.long]

PROGRAM = """
import runpy, signal, sys
from fastrpc.tools.contracts._verbs import VERBS
from fastrpc.tools.contracts._embedded import engine
def set_times(compiling, testing):
    VERBS["compile"].seconds, VERBS["test"].seconds = compiling, testing
set_times(*{times})
signal.signal(signal.SIGUSR1, lambda *_: set_times({seconds}, {seconds}))
engine.TRACE_SECONDS = 1
sys.argv = ["fastrpc", "serve", "fastrpc.tools.contracts"]
runpy.run_module("fastrpc", run_name="__main__")
"""
PROGRAMS = ("vyper", "forge", "anvil", "solc_worker.js")
SECONDS = 60.0  # for one call: the machine is shared
SECRETS = {
    "FASTRPC_CONTRACTS_TOKEN": "hunter2-token",
    "FASTRPC_TOKEN": "hunter2-http",
    "WALLET_PRIVATE_KEY": "hunter2-key",
    "AWS_SESSION_TOKEN": "hunter2-cloud",
}
HEAD = "// SPDX-License-Identifier: MIT\npragma solidity ^0.8.20;\n"
SMALL = HEAD + "contract Small { uint256 public value = 7; }"
ENDLESS = (
    HEAD
    + """
interface Vm { function pauseGasMetering() external; }
contract EndlessTest {
    function test_it() external {
        Vm(address(uint160(uint256(keccak256("hevm cheat code"))))).pauseGasMetering();
        while (true) {}
    }
}
"""
)
LOOPS = (
    HEAD
    + """
contract Loops {
    uint256 public value = 7;
    function view_() external view { while (value < 8) {} }
    function send() external { while (true) value++; }
    function calls(uint256 count) external view {
        for (uint256 i = 0; i < count; i++) { assembly { pop(staticcall(100, 1, 0, 0, 0, 0)) } }
    }
    function logs(uint256 count) external { for (uint256 i = 0; i < count; i++) { assembly { log0(0, 0) } } }
}
contract Constructor { constructor() { while (true) {} } }
"""
)
CALLS = "0xd183ce14" + (40_000).to_bytes(32, "big").hex()


@pytest.fixture(scope="module")
def loops(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Process, str]]:
    """A server with the contract Loops, and where that was deployed to."""
    with served(tmp_path_factory.mktemp("loops")) as server:
        data(server, "compile", sources={"Loops.sol": LOOPS})
        yield server, deployed(server, "Loops")


@contextmanager
def served(
    folder: Path, times: tuple[float, float] = (SECONDS, SECONDS), **variables: str
) -> Iterator[Process]:
    """A server of our program, in a separate project. `times`: what compiling and testing may take, until a
    SIGUSR1 gives them all the time of a test."""
    environment = {
        "FASTRPC_STATE_DIR": str(folder / "state"),
        "PATH": f"{os.environ['PATH']}:{folder}/mark",  # by which its programs are found
        **variables,
    }
    command = [sys.executable, "-c", PROGRAM.format(times=times, seconds=SECONDS)]
    with serve(command=command, folder=str(folder), environment=environment) as server:
        server.initialize()
        yield server


def outcome(server: Process, verb: str, **arguments: Any) -> dict[str, Any]:
    """The envelope of a call."""
    result = server.call(f"tachyon_{verb}", seconds=SECONDS, **arguments)
    found: dict[str, Any] = json.loads(result["content"][0]["text"])
    assert found["ok"] is not result.get("isError", False)
    return found


def data(server: Process, verb: str, **arguments: Any) -> dict[str, Any]:
    found = outcome(server, verb, **arguments)
    assert found["ok"], found
    inner: dict[str, Any] = found["data"]
    return inner


def failure(server: Process, verb: str, **arguments: Any) -> dict[str, Any]:
    found = outcome(server, verb, **arguments)
    assert not found["ok"], found
    error: dict[str, Any] = found["error"]
    return error


def deployed(server: Process, contract: str) -> str:
    found = data(server, "deploy", idempotency_key=contract, chain_id="local", contract=contract)
    return str(found["address"])


def most_megabytes(server: Process) -> int:
    """The most memory that the server has had so far."""
    with open(f"/proc/{server.pid}/status", encoding="ascii") as file:
        (line,) = (line for line in file if line.startswith("VmHWM"))
    return int(line.split()[1]) // 1024


def programs_of(folder: Path, server: Process) -> dict[int, str]:
    """The programs that run for a server, by pid: without itself, and what watches over them."""
    own = ("reaper", os.path.basename(os.path.realpath(sys.executable)))
    found = {}
    for pid in processes_in(folder):
        try:
            program = os.path.basename(os.readlink(f"/proc/{pid}/exe"))
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().decode(errors="replace")
        except OSError:
            continue
        named = [name for name in PROGRAMS if name in words]
        if pid != server.pid and (named or program not in own):
            found[pid] = named[0] if named else program
    return found


# ---------------------------------------------------------------------------------- size


def test_sources_that_are_too_large_are_refused_without_being_held(tmp_path: Path) -> None:
    (tmp_path / "project" / "src").mkdir(parents=True)
    with open(tmp_path / "project" / "src" / "Huge.sol", "wb") as file:
        file.truncate(3 * 1024**3)  # it has no bytes on disk
    with served(tmp_path) as server:
        before = most_megabytes(server)
        server.send(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"tachyon_compile",')
        server.send(b'"arguments":{"sources":{"a.sol":"')
        for _ in range(100):
            server.send(b"x" * 1024 * 1024)
        server.send(b'"}}}}\n')
        assert server.answer()["error"]["code"] == -32700
        assert most_megabytes(server) < before + 50
        for verb in ("compile", "test"):
            error = failure(server, verb, project_root=str(tmp_path / "project"))
            assert (error["code"], "16777216 bytes" in error["message"]) == ("INVALID_REQUEST", True)
        assert most_megabytes(server) < 150
        assert data(server, "compile", sources={"a.sol": SMALL})["diagnostics"] == []


# ---------------------------------------------------------------------------------- time


def test_contracts_that_loop_for_ever_end_with_their_gas(loops: tuple[Process, str]) -> None:
    server, to = loops
    error = failure(server, "call", to=to, method="view_")
    assert (error["code"], "OutOfGas" in error["message"]) == ("CALL_FAILED", True)
    error = failure(server, "call", to=to, method="send")
    assert (error["code"], "nothing was sent" in error["message"]) == ("CALL_FAILED", True)
    error = failure(server, "deploy", idempotency_key="c", chain_id="local", contract="Constructor")
    assert (error["code"], "OutOfGas" in error["message"]) == ("DEPLOY_FAILED", True)
    selector = abi.selector_of({"name": "view_"}).hex()
    revert = data(server, "simulate", to=to, data=f"0x{selector}")["revert"]
    assert "OutOfGas" in revert["reason"]
    assert data(server, "call", to=to, method="value")["decoded"] == "7"


def test_as_many_events_as_a_block_takes_are_sent_and_some_are_shown(loops: tuple[Process, str]) -> None:
    server, to = loops
    done = data(server, "call", to=to, method="logs", args=[60_000])
    assert done["receipt"]["status"] == "success"
    assert (len(done["receipt"]["logs"]), done["receipt"]["logs_left_out"]) == (500, 59_500)
    assert most_megabytes(server) < 300


def test_a_trace_that_takes_too_long_is_left_out_and_the_chain_goes_on(loops: tuple[Process, str]) -> None:
    server, to = loops
    found = data(server, "simulate", to=to, data=CALLS, trace=True)
    assert (found["revert"], found["decoded"]["method"]) == (None, "calls(uint256)")
    assert found["trace"].startswith("there is no trace: ")
    assert data(server, "call", to=to, method="value")["decoded"] == "7"


def test_a_slow_compilation_and_an_endless_test_are_ended_and_the_next_ones_are_served(
    tmp_path: Path,
) -> None:
    with served(tmp_path, (1.5, 3)) as server:
        for verb, sources in (
            ("compile", {"a.sol": SLOW}),
            ("test", {"a.t.sol": ENDLESS}),
            ("test", {"a.sol": SLOW}),
        ):
            error = failure(server, verb, sources=sources)
            assert (error["code"], error["retry"]) == ("ENGINE_TIMEOUT", False)
            eventually(lambda: not programs_of(tmp_path, server))
        server.signal(signal.SIGUSR1)
        assert data(server, "compile", sources={"a.sol": SMALL})["diagnostics"] == []
        passing = HEAD + "contract QuickTest { function test_it() external {} }"
        assert data(server, "test", sources={"a.t.sol": passing})["passed"] == 1
        assert most_megabytes(server) < 150


# ---------------------------------------------------------------------------------- secrets


@needs("vyper")
def test_no_program_sees_a_secret_of_the_server(tmp_path: Path) -> None:
    seen: dict[str, bytes] = {}
    done = threading.Event()

    def look(server: Process) -> None:
        while not done.is_set():
            for pid, name in programs_of(tmp_path, server).items():
                try:
                    with open(f"/proc/{pid}/environ", "rb") as file:
                        variables = file.read()
                except OSError:
                    continue
                if variables:  # it has none while it begins, and none once it has ended
                    seen[name] = seen.get(name, b"") + variables

    with served(tmp_path, (SECONDS, 3), **SECRETS) as server:
        looking = threading.Thread(target=look, args=(server,))
        looking.start()
        try:
            function = "@external\ndef f{0}(a: uint256) -> uint256:\n    return a + {0}\n"
            sources = {"a.sol": SMALL, "b.vy": "".join(function.format(n) for n in range(100))}
            data(server, "compile", sources=sources)
            deployed(server, "Small")
            failure(server, "test", sources={"a.t.sol": ENDLESS})
        finally:
            done.set()
            looking.join()
    assert set(PROGRAMS) <= set(seen)
    for name, variables in seen.items():
        assert b"PATH=" in variables
        assert b"hunter2" not in variables, name


def test_a_test_reads_no_secret_from_the_environment_or_a_file(tmp_path: Path) -> None:
    names = ["SECRET_OF_A_FILE", *SECRETS]
    logs = "".join(f'emit log_string(vm.envOr("{name}", string("none")));' for name in names)
    test = f"""{HEAD}
        import {{Test}} from "forge-std/Test.sol";
        contract StrangerTest is Test {{ event log_string(string); function test_it() external {{ {logs} }} }}
    """
    project = tmp_path / "project"
    for folder in (tmp_path, project, project / "src", project / "test", tmp_path / ".git"):
        folder.mkdir(exist_ok=True)
        (folder / ".env").write_text("SECRET_OF_A_FILE=hunter2\n")
    (project / "test" / "Stranger.t.sol").write_text(test)
    with served(tmp_path, **SECRETS) as server:
        for given in ({"sources": {"test/Stranger.t.sol": test}}, {"project_root": str(project)}):
            (suite,) = data(server, "test", **given)["suites"]
            assert suite["cases"][0]["logs"] == ["none"] * len(names)


# ---------------------------------------------------------------------------------- kill -9


AT_WORK = {
    "compile": {"solc_worker.js"},
    "compile for a test": {"forge"},
    "test": {"solc_worker.js", "anvil", "forge"},
}
"""The programs that are running when a server is killed, by what it is doing."""


@pytest.mark.parametrize("stage", AT_WORK)
def test_a_server_killed_at_work_leaves_no_process_and_no_folder_and_the_next_one_works(
    tmp_path: Path, stage: str
) -> None:
    verb = "compile" if stage == "compile" else "test"
    with served(tmp_path) as server:
        if stage == "test":
            data(server, "compile", sources={"a.sol": SMALL})
            to = deployed(server, "Small")  # so that anvil runs, too
        sources = {"a.t.sol": ENDLESS} if stage == "test" else {"a.sol": SLOW}
        server.ask("tools/call", {"name": f"tachyon_{verb}", "arguments": {"sources": sources}})
        if stage == "test":
            built = eventually(lambda: list((tmp_path / "state").glob("contracts/*/forge/built")))
            assert built
        expected = AT_WORK[stage]
        eventually(lambda: expected <= set(programs_of(tmp_path, server).values()))
        server.signal(signal.SIGKILL)
        server.wait()
        eventually(lambda: not processes_in(tmp_path))
    assert os.listdir(tmp_path) == ["state"]
    assert os.listdir(os.path.join(_programs.install_folder(), "empty")) == []
    with served(tmp_path) as server:
        if stage == "test":
            assert data(server, "call", to=to, method="value")["decoded"] == "7"
        if verb == "compile":
            assert data(server, "compile", sources={"a.sol": SMALL})["diagnostics"] == []
        else:
            passing = HEAD + "contract QuickTest { function test_it() external {} }"
            assert data(server, "test", sources={"a.t.sol": passing})["passed"] == 1
