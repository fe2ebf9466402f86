"""Tests run by forge: what they return, what may not come in, and what a test of a stranger's cannot reach.

Real forge and real solc; each test has a separate kept folder. Sources declare the few cheat codes they
use, which compiles faster than our forge-std; that has a separate test.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import pytest
from fastrpc.tools.contracts._embedded import forge
from fastrpc.tools.contracts._errors import EngineError
from fastrpc.tools.contracts._project_files import source_files
from support.contracts import needs
from support.waiting import eventually, until

from fastrpc import processes

pytestmark = [needs("forge"), needs("solc"), pytest.mark.long]

COUNTER = """
// SPDX-License-Identifier: MIT
pragma solidity ^0.8.0;
contract Counter {
    uint256 public number;
    function set(uint256 to) external { require(to < 100, "too large"); number = to; }
}
"""
PASSING = """
// SPDX-License-Identifier: MIT
pragma solidity ^0.8.0;
import {Counter} from "../src/Counter.sol";
contract CounterTest {
    Counter counter;
    function setUp() public { counter = new Counter(); }
    function test_set() public { counter.set(7); require(counter.number() == 7); }
    function test_begin() public view { require(counter.number() == 0); }
}
"""
FAILING = PASSING.replace("counter.number() == 7", 'counter.number() == 8, "not eight"')
PROJECT = {"src/Counter.sol": COUNTER, "test/Counter.t.sol": PASSING}


def stranger(*bodies: str, comment: str = "") -> dict[str, str]:
    """A test contract with cheat codes, whose functions do this: test_0, test_1 and so on."""
    functions = "\n".join(f"function test_{n}() public {{ {body} }}" for n, body in enumerate(bodies))
    return {
        "Stranger.t.sol": f"""
        // SPDX-License-Identifier: MIT
        pragma solidity ^0.8.0;
        interface Vm {{
            function envString(string calldata) external view returns (string memory);
            function ffi(string[] calldata) external returns (bytes memory);
            function readFile(string calldata) external view returns (string memory);
            function writeFile(string calldata, string calldata) external;
            function rpc(string calldata, string calldata, string calldata) external returns (bytes memory);
            function pauseGasMetering() external;
        }}
        contract StrangerTest {{
            Vm constant vm = Vm(address(uint160(uint256(keccak256("hevm cheat code")))));
            {comment}
            {functions}
        }}
        """
    }


async def call(folder: Any, sources: dict[str, str] | None, **options: Any) -> dict[str, Any]:
    given: dict[str, Any] = dict.fromkeys(("match_path", "match_contract", "filter", "evm_version"))
    given |= {"project_config": False, "report": lambda text: None, "timeout_seconds": 100} | options
    return await forge.run_tests(sources, given.pop("project_root", None), folder=str(folder), **given)


def run(coroutine: Any) -> Any:
    async def whole() -> Any:
        try:
            return await coroutine
        finally:
            await processes.close()

    return asyncio.run(whole())


def outcome(folder: Any, sources: dict[str, str] | None, **options: Any) -> dict[str, Any]:
    return run(call(folder, sources, **options))


def refused(folder: Any, sources: dict[str, str] | None, **options: Any) -> EngineError:
    with pytest.raises(EngineError) as caught:
        outcome(folder, sources, **options)
    return caught.value


def living(folder: Any) -> list[int]:
    """The processes that have been given this folder as their home."""
    wanted = f"HOME={folder}/home".encode()
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                if wanted in file.read().split(b"\0"):
                    found.append(int(name))
        except OSError:
            pass
    return found


def cases_of(error: EngineError) -> dict[str, dict[str, Any]]:
    """The outcomes of the tests that ran, by name."""
    assert error.details is not None
    return {case["name"]: case for suite in error.details["suites"] for case in suite["cases"]}


@pytest.fixture
def kept(tmp_path: Any) -> str:
    return str(tmp_path / "forge")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Any], list[str]]:
    """A kept folder in which PROJECT was run, the result of that, and its phases."""
    folder, said = str(tmp_path_factory.mktemp("built") / "forge"), list[str]()
    return folder, outcome(folder, PROJECT, report=said.append), said


# ---------------------------------------------------------------------------------- outcomes


def test_passing_tests_come_with_gas_and_duration(built: tuple[str, dict[str, Any], list[str]]) -> None:
    _, found, said = built
    assert (found["passed"], found["failed"], found["skipped"]) == (2, 0, 0)
    (suite,) = found["suites"]
    assert (suite["file"], suite["contract"], suite["passed"]) == ("test/Counter.t.sol", "CounterTest", 2)
    assert [case["name"] for case in suite["cases"]] == ["test_begin", "test_set"]
    for case in suite["cases"]:
        assert case["status"] == "passed"
        assert case["reason"] is None
        assert case["gas"] > 0
        assert isinstance(case["duration"], float)
    assert said == ["compiling", "testing"]


def test_an_unchanged_run_compiles_nothing_and_a_change_does(
    built: tuple[str, dict[str, Any], list[str]],
) -> None:
    kept, _, _ = built

    def made() -> dict[str, int]:
        places = (os.path.join(place, name) for place, _, names in os.walk(f"{kept}/out") for name in names)
        return {place: os.stat(place).st_mtime_ns for place in places}

    said: list[str] = []
    before = made()
    assert before
    outcome(kept, PROJECT, report=said.append)
    assert said == ["testing"]
    assert made() == before
    error = refused(kept, {**PROJECT, "test/Counter.t.sol": FAILING})
    assert made() != before
    assert error.code == "TEST_ASSERTION_FAILED"
    assert error.message == "1 of 2 tests failed: CounterTest.test_set: not eight"
    assert error.details is not None
    assert (error.details["passed"], error.details["failed"]) == (1, 1)


def test_tests_are_chosen_by_name_contract_and_path(kept: str) -> None:
    other = PASSING.replace("CounterTest", "OtherTest")
    sources = {**PROJECT, "test/Other.t.sol": other}
    for options, expected in (
        ({"filter": "^test_s.t"}, {("CounterTest", "test_set"), ("OtherTest", "test_set")}),
        ({"match_contract": "^Other", "filter": "set"}, {("OtherTest", "test_set")}),
        ({"match_path": "test/Counter*", "filter": "begin"}, {("CounterTest", "test_begin")}),
    ):
        found = outcome(kept, sources, **options)
        assert {
            (one["contract"], case["name"]) for one in found["suites"] for case in one["cases"]
        } == expected
    error = refused(kept, sources, filter="nothing_like_it")
    assert error.code == "TEST_FORGE_FAILED"
    assert "no test was found" in error.message
    assert "begin with test" in error.message


def test_a_file_that_is_gone_vanishes(kept: str) -> None:
    gone = "contract GoneTest { function test_it() public {} }"
    assert outcome(kept, {**PROJECT, "test/deep/Gone.t.sol": gone})["passed"] == 3
    found = outcome(kept, PROJECT)
    assert [suite["contract"] for suite in found["suites"]] == ["CounterTest"]
    assert not os.path.exists(f"{kept}/project/test/deep")


def test_what_does_not_compile_comes_with_its_place(kept: str) -> None:
    error = refused(kept, {"Bad.t.sol": "contract Bad {\n  uint x = y;\n}"})
    assert error.code == "COMPILER_SOLC_FAILED"
    assert error.message.startswith("Bad.t.sol:2:12: ")
    assert error.details is not None
    assert error.details["diagnostics"][-1]["line"] == 2
    error = refused(kept, {"Old.t.sol": "pragma solidity =0.4.1; contract Old {}"})
    assert error.code.startswith("COMPILER_")
    assert kept not in error.message


def test_our_forge_std_serves_what_tests_import(kept: str) -> None:
    found = outcome(
        kept,
        {
            "src/Counter.sol": COUNTER,
            "Std.t.sol": """
            // SPDX-License-Identifier: MIT
            pragma solidity ^0.8.0;
            import {Test, Vm, console, console2, stdError} from "forge-std/Test.sol";
            import "forge-std/Script.sol";
            import {StdInvariant} from "forge-std/StdInvariant.sol";
            import {Counter} from "src/Counter.sol";
            contract Token {
                uint256 other;
                mapping(address => uint256) public balanceOf;
                event Set(uint256 indexed value);
                function set(uint256 value) external { emit Set(value); }
            }
            contract StdTest is Test {
                Token token = new Token();
                Counter counter = new Counter();
                function test_asserts() public pure {
                    assertEq(uint256(1), 1);
                    assertEq(int256(-1), -1, "negative");
                    assertEq(string("text"), "text");
                    assertNotEq(address(1), address(2));
                    assertLe(int256(-2), -1);
                    assertApproxEqRel(uint256(100), 101, 0.02e18);
                    console.log("printed", uint256(5));
                }
                function test_deal() public {
                    (address alice, uint256 key) = makeAddrAndKey("alice");
                    assertEq(vm.addr(key), alice);
                    deal(address(token), alice, 5 ether);
                    assertEq(token.balanceOf(alice), 5 ether);
                    hoax(alice, 3 ether);
                    assertEq(alice.balance, 3 ether);
                }
                function test_expectations() public {
                    vm.expectRevert("too large");
                    counter.set(100);
                    vm.expectEmit(address(token));
                    emit Token.Set(4);
                    token.set(4);
                }
                function test_time() public {
                    vm.warp(100);
                    skip(5);
                    rewind(2);
                    assertEq(block.timestamp, 103);
                }
                function testFuzz_bound(uint256 x, int256 y) public pure {
                    assertLe(bound(x, 3, 9), 9);
                    assertGe(bound(x, 3, 9), 3);
                    assertEq(bound(x, 0, type(uint256).max), x);
                    y = bound(y, -5, 5);
                    assertTrue(y >= -5 && y <= 5);
                }
                function test_skipped() public { vm.skip(true); }
            }
            """,
        },
    )
    cases = {case["name"]: case for case in found["suites"][0]["cases"]}
    assert (found["passed"], found["skipped"]) == (5, 1)
    assert cases["test_asserts"]["logs"] == ["printed 5"]
    assert cases["testFuzz_bound"]["runs"] > 1


def test_broken_properties_come_with_what_broke_them_and_settings_of_fuzz_tests_are_taken(kept: str) -> None:
    error = refused(
        kept,
        {
            "Broken.t.sol": """
            // SPDX-License-Identifier: MIT
            pragma solidity ^0.8.0;
            import {Test} from "forge-std/Test.sol";
            contract Steps { uint256 public taken; function step(uint8) external { taken++; } }
            contract BrokenTest is Test {
                Steps steps = new Steps();
                function setUp() public { targetContract(address(steps)); }
                /// forge-config: default.invariant.runs = 2
                /// forge-config: default.invariant.depth = 20
                function invariant_few() public view { assertLt(steps.taken(), 3); }
                function testFuzz_small(uint256 x) public pure { assertLt(x, 4); }
                /// forge-config: default.fuzz.runs = 7
                function testFuzz_seven(uint256) public {}
            }
            contract BrokenSetUpTest {
                function setUp() public pure { revert("no start"); }
                function test_it() public {}
            }
            """
        },
    )
    assert error.code == "TEST_ASSERTION_FAILED"
    cases = cases_of(error)
    assert cases["testFuzz_seven"]["runs"] == 7
    assert cases["setUp"]["reason"] == "no start"
    assert all(
        call.startswith("Broken.t.sol:Steps.step(") for call in cases["invariant_few"]["counterexample"]
    )
    assert cases["invariant_few"]["counterexample"]
    (inputs,) = cases["testFuzz_small"]["counterexample"]
    assert int(inputs.split(" ")[0]) >= 4


# ---------------------------------------------------------------------------------- project folders


def made_project(root: Any, files: dict[str, str]) -> str:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return str(root)


def test_a_project_folder_is_tested_without_its_configuration(kept: str, tmp_path: Any) -> None:
    files = {**PROJECT, "foundry.toml": "[profile.default]\nffi = tr", "README.md": "", ".env": "SECRET=1"}
    root = made_project(tmp_path / "project", files)
    os.symlink("/etc/passwd", f"{root}/src/Link.sol")
    assert outcome(kept, None, project_root=root)["passed"] == 2
    assert sorted(os.listdir(root)) == [".env", "README.md", "foundry.toml", "src", "test"]
    assert sorted(os.listdir(f"{kept}/project/src")) == ["Counter.sol"]
    assert refused(kept, None, project_root="relative").code == "INVALID_REQUEST"
    assert refused(kept, None, project_root=str(tmp_path / "nowhere")).code == "INVALID_REQUEST"


def test_a_projects_configuration_cannot_allow_programs_or_files(kept: str, tmp_path: Any) -> None:
    toml = """
        [profile.default]
        src = "contracts"
        ffi = true
        fs_permissions = [{ access = "read-write", path = "/" }]
        remappings = ["ours/=lib/ours/"]
    """
    bodies = [
        'string[] memory words = new string[](1); words[0] = "id"; vm.ffi(words);',
        'vm.readFile("/etc/passwd");',
    ]
    body = stranger(*bodies)["Stranger.t.sol"]
    body = body.replace("contract StrangerTest", 'import {Ours} from "ours/Ours.sol"; contract StrangerTest')
    files = {"foundry.toml": toml, "test/A.t.sol": body, "lib/ours/Ours.sol": "library Ours {}"}
    root = made_project(tmp_path / "project", files)
    cases = cases_of(refused(kept, None, project_root=root, project_config=True))
    assert "FFI is disabled" in cases["test_0"]["reason"]
    assert "not allowed to be accessed" in cases["test_1"]["reason"]
    said: list[str] = []
    assert cases_of(refused(kept, files, project_config=True, report=said.append)).keys() == cases.keys()
    assert said == ["testing"]  # which sources a call brings are the same as those of a folder


# ---------------------------------------------------------------------------------- what may not come in


@pytest.mark.parametrize(
    "path",
    [
        "foundry.toml",
        "remappings.txt",
        "lib/forge-std/src/Test.sol",
        ".env",
        "/etc/x.sol",
        "../x.sol",
        "src/../../x.sol",
        "src\\x.sol",
        "src/\0.sol",
        "src//x.sol",
        "src/x.json",
        "C:/x.sol",
    ],
)
def test_paths_that_are_refused(kept: str, path: str) -> None:
    error = refused(kept, {**PROJECT, path: "contract X {}"})
    assert error.code == "INVALID_REQUEST"
    assert error.message.startswith(f'sources["{path}"]: expected ')
    assert not os.path.exists(f"{kept}/project")


def test_configuration_that_is_refused_says_what_allows_it(kept: str) -> None:
    assert "--project-config" in refused(kept, {**PROJECT, "foundry.toml": "ffi = true"}).message


def test_too_many_files_or_bytes_are_refused(kept: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_files, "MOST_FILES", 1)
    assert "at most 1 files" in refused(kept, PROJECT).message
    monkeypatch.setattr(source_files, "MOST_FILES", 10)
    monkeypatch.setattr(source_files, "MOST_BYTES", 10)
    assert "at most 10 bytes" in refused(kept, PROJECT).message


@pytest.mark.parametrize(
    "options",
    [
        {"evm_version": 'cancun"\nffi = true'},
        {"evm_version": "--ffi"},
        {"filter": "--ffi"},
        {"filter": "x\n--ffi"},
        {"filter": "x" * 201},
        {"match_contract": "-x"},
        {"match_path": "--ffi"},
        {"match_path": "a\0b"},
        {"match_path": ""},
    ],
)
def test_options_that_are_refused(kept: str, options: dict[str, str]) -> None:
    (name,) = options
    error = refused(kept, PROJECT, **options)
    assert error.code == "INVALID_REQUEST"
    assert error.message.startswith(f"{name}: expected ")


@pytest.mark.parametrize(
    "imported",
    ["/etc/passwd", "../../../etc/x.sol", "src/../../x.sol", "./\\x2e./x.sol", "http://host/x.sol"],
)
def test_imports_that_lead_outside_are_refused(kept: str, imported: str) -> None:
    text = f'/* ; */ import /* from */ {{X}}\n// "ours.sol"\nfrom "{imported}"; contract A {{}}'
    assert "imports from within" in refused(kept, {"src/A.sol": text}).message


@pytest.mark.parametrize(
    "setting",
    [
        'default.fs_permissions = [{access="read", path="/"}]',
        "default.ffi = true",
        'default.fuzz.failure_persist_dir = "/tmp"',
        "default.fuzz.runs = 1\r default.ffi = true",
    ],
)
def test_settings_in_comments_are_refused(kept: str, setting: str) -> None:
    error = refused(kept, stranger("", comment=f"/// forge-config: {setting}\n"))
    assert error.code == "INVALID_REQUEST"
    assert error.message.startswith('sources["Stranger.t.sol"]: expected ')


# ---------------------------------------------------------------------------------- what cannot be reached


def test_a_stranger_reaches_no_secret_program_or_file(kept: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "hunter2")
    reasons = {
        'vm.envString("SECRET");': "not found",
        'string[] memory words = new string[](1); words[0] = "id"; vm.ffi(words);': "FFI is disabled",
        'vm.readFile("/etc/passwd");': "not allowed to be accessed",
        'vm.readFile("Stranger.t.sol");': "not allowed to be accessed",
        'vm.writeFile("x.txt", "x");': "not allowed to be accessed",
        'require(false, vm.envString("HOME"));': "…/home",
    }
    error = refused(kept, stranger(*reasons))
    assert error.code == "TEST_ASSERTION_FAILED"
    cases = cases_of(error)
    for number, (body, reason) in enumerate(reasons.items()):
        assert reason in cases[f"test_{number}"]["reason"], body
    assert "hunter2" not in str(error.details)
    assert kept not in str(error.details)


def test_long_texts_of_tests_are_cut(kept: str) -> None:
    body = """
        bytes memory long = new bytes(100_000);
        for (uint256 i = 0; i < long.length; i++) long[i] = "x";
        emit log_string(string(long));
        revert(string(long));
    """
    (case,) = cases_of(refused(kept, stranger(body, comment="event log_string(string);"))).values()
    assert case["reason"] == "x" * forge.LONGEST_TEXT
    assert case["logs"] == ["x" * forge.LONGEST_TEXT]


def test_a_stranger_reaches_no_network_where_linux_lets_us(kept: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        url = f"http://127.0.0.1:{server.getsockname()[1]}"

        async def whole() -> bool:
            isolated = bool(await forge._sandbox())
            with pytest.raises(EngineError) as caught:
                # Where it is reached, no answer is known for: the time limit ends the run.
                await call(
                    kept,
                    stranger(f'vm.rpc("{url}", "eth_chainId", "[]");'),
                    timeout_seconds=30 if isolated else 5,
                )
            return isolated and caught.value.code == "TEST_ASSERTION_FAILED"

        if run(whole()):
            with pytest.raises(BlockingIOError):
                server.accept()


# ---------------------------------------------------------------------------------- ends

ENDLESS = stranger("vm.pauseGasMetering(); while (true) {}")


def test_an_endless_run_has_its_folder_alone_until_it_is_cancelled_or_ended(kept: str) -> None:
    async def refusal(sources: dict[str, str], seconds: float) -> EngineError:
        with pytest.raises(EngineError) as caught:
            await call(kept, sources, timeout_seconds=seconds)
        return caught.value

    async def whole() -> None:
        said: list[str] = []
        running = asyncio.ensure_future(call(kept, ENDLESS, report=said.append))
        await until(lambda: "testing" in said and living(kept), seconds=60)
        late = await refusal(PROJECT, 0.2)
        assert (late.code, late.retry) == ("ENGINE_TIMEOUT", True)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert living(kept) == []
        ended = await refusal(ENDLESS, 2)
        assert (ended.code, ended.retry) == ("ENGINE_TIMEOUT", False)
        assert living(kept) == []
        assert (await call(kept, PROJECT))["passed"] == 2  # the folder is free again

    run(whole())


def test_a_killed_server_leaves_no_process(kept: str) -> None:
    program = f"""
        import asyncio
        from fastrpc.tools.contracts._embedded import forge
        asyncio.run(forge.run_tests({ENDLESS!r}, None, folder={kept!r}, match_path=None, match_contract=None,
            filter=None, evm_version=None, project_config=False, report=lambda text: print(text, flush=True)))
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert [server.stdout.readline().strip() for _ in range(2)] == ["compiling", "testing"]
        eventually(lambda: living(kept))
        server.send_signal(signal.SIGKILL)
    eventually(lambda: not living(kept))


def test_durations_are_read() -> None:
    expected: Callable[[float], Any] = pytest.approx
    assert forge._seconds("1m 2s 3ms 4µs 5ns") == expected(62.003004005)
    assert forge._seconds("") == 0
