"""Runs the tests of Solidity sources with forge, in a folder that is reused, and returns their outcomes.

Tests are untrusted programs. forge gets a configuration, a home and an environment from this module, no
files, no programs (`ffi`) and, where Linux permits it, no network. Time, output, the size of files and, on
Linux, memory are bounded.

The folder keeps forge's cache. A run of unchanged sources costs one start of forge, about 0.1 s. After a
change, a build precedes the run; the diagnostics come from the build. `source_files` decides what sources may
contain.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import site
import time

from fastrpc import processes

from ... import _private_folder
from .. import _programs
from .._errors import (
    ASSERTION_FAILED,
    ENGINE_TIMEOUT,
    ENGINE_UNAVAILABLE,
    FORGE_FAILED,
    INTERNAL_ERROR,
    SOLC_FAILED,
    TEST_FAILED,
    VYPER_FAILED,
    EngineError,
    invalid,
)
from .._project_files import source_files
from .._project_files.held_lock import hold
from .._values import quoted
from . import kept_folder, solc, vyper
from .compiler import FORGE_STD
from .compiler_process import clean_environment
from .diagnostics import SolcReader, errors_in, failure_of, of_vyper

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

TIMEOUT_SECONDS = 290.0  # a little less than a call may take
GRACE_SECONDS = 0.3  # between SIGTERM and SIGKILL, when a run is cancelled
MOST_OUTPUT = 64 * 1024 * 1024  # including the traces of failures
MOST_SHOWN = 5  # failures in an error's text; all of them are in its details
MOST_LOGS = 100  # lines that one test has printed, each of at most LONGEST_TEXT characters
EXPECTED_SOLIDITY = (
    "a test in Solidity, since forge runs no other: a contract whose functions begin with test, and which "
    'makes the Vyper contract by vm.deployCode("src/Counter.vy")'
)
LAST_LINES, LONGEST_TEXT = 10, 2_000

_EVM_VERSION = re.compile(r"[a-z]+[a-zA-Z0-9]{0,29}\Z")
_GLOB = re.compile(r"(?!-)[A-Za-z0-9_@+./*?{}, -]{1,200}\Z")
_REGEX = re.compile(r"(?![ -])[\x20-\x7e]{1,200}\Z")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_STATUS = {"Success": "passed", "Failure": "failed", "Skipped": "skipped"}

# Standard output is the result, standard error a file: mixed, neither could be read. A file may have half a
# gigabyte (in the units of some shells twice that), a process 4 GiB of data, which does not count the far
# larger ranges that WebAssembly reserves; a crash leaves no file.
_SHELL = '{ ulimit -c 0; ulimit -f 1048576; ulimit -d 4194304; } 2>/dev/null; exec "$@" 2>"$0"'

_no_network: list[str] | None = None
"""The command prefix that removes network access, once it is known."""


async def run_tests(
    sources: dict[str, str] | None,
    project_root: str | None,
    *,
    folder: str,
    match_path: str | None,
    match_contract: str | None,
    filter: str | None,
    evm_version: str | None,
    project_config: bool,
    report: Callable[[str], None],
    timeout_seconds: float = TIMEOUT_SECONDS,
) -> dict[str, Any]:
    """Run the tests; return all outcomes. Raises EngineError, also if a test fails: then with the outcomes as
    its details. `folder` is kept for the next run of the same project; one run at a time uses it."""
    chosen = _chosen(match_path, match_contract, filter)
    if evm_version is not None and not _EVM_VERSION.match(evm_version):
        raise invalid("evm_version", "a version of the EVM, such as cancun", quoted(evm_version))
    deadline = time.monotonic() + timeout_seconds
    files = await asyncio.to_thread(source_files.gathered, sources, project_root, project_config)
    if not any(path.endswith(".sol") for path in files):
        raise invalid("sources" if project_root is None else "project_root", EXPECTED_SOLIDITY, "Vyper alone")
    try:
        await asyncio.to_thread(_private_folder.make, folder)
        text = f"another test run of this project did not end within {timeout_seconds:g} s"
        late = EngineError(ENGINE_TIMEOUT, text, retry=True)
        async with hold(os.path.join(folder, "lock"), deadline, late):
            run = _Run(folder, files, evm_version, project_config, deadline, timeout_seconds)
            if not await _to_the_end(run.prepare):
                report("compiling")
                await run.build()
            report("testing")
            return await run.test(chosen)
    except OSError as error:
        reason = f"{error.filename}: {error.strerror}"
        raise EngineError(INTERNAL_ERROR, f"the folder of test runs cannot be used: {reason}") from None
    except processes.ProgramError as error:
        raise EngineError(ENGINE_UNAVAILABLE, str(error)) from None


def _chosen(match_path: str | None, match_contract: str | None, name: str | None) -> list[str]:
    """The arguments that select tests, each one word. Raises EngineError."""
    found = []
    for parameter, option, value, pattern, expected in (
        ("match_path", "--match-path", match_path, _GLOB, "a path or a glob, such as test/Counter*.t.sol"),
        ("match_contract", "--match-contract", match_contract, _REGEX, "a regular expression in ASCII"),
        ("filter", "--match-test", name, _REGEX, "a regular expression in ASCII"),
    ):
        if value is not None:
            if not pattern.match(value):
                raise invalid(parameter, f"{expected}, of at most 200 characters", quoted(value))
            found.append(f"{option}={value}")
    return found


async def _to_the_end(function: Callable[[], bool]) -> bool:
    """Run it on a worker thread, and wait for its end even if cancelled, since it writes to a shared
    folder."""
    working = asyncio.ensure_future(asyncio.to_thread(function))
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        await asyncio.wait({working})
        raise


class _Run:
    """One run in a folder whose lock is held."""

    def __init__(
        self,
        folder: str,
        files: dict[str, str],
        evm_version: str | None,
        project_config: bool,
        deadline: float,
        seconds: float,
    ) -> None:
        self._folder = folder
        self._project = os.path.join(folder, "project")
        self._errors = os.path.join(folder, "stderr.txt")
        self._built = os.path.join(folder, "built")
        self._files = files
        self._deadline = deadline
        self._seconds = seconds
        self._config = _config(folder, files, project_config)
        self._environment = _environment(folder)
        if any(path.endswith(vyper.SUFFIXES) for path in files):  # it may be installed in the user's home
            self._environment["PYTHONUSERBASE"] = site.getuserbase()
        self._options = [f"--root={self._project}", "--offline", f"--use={solc.solc_for_forge()}"]
        if "lib/forge-std/src/Test.sol" not in files:
            self._options.append(f"--remappings=forge-std/={FORGE_STD}/")
        if evm_version is not None:
            self._options.append(f"--evm-version={evm_version}")
        self._program = _programs.find("forge")

    def prepare(self) -> bool:
        """Write the new files; return whether all of them have been built before. Blocks."""
        for name in ("project", "home"):
            os.makedirs(os.path.join(self._folder, name), mode=0o700, exist_ok=True)
        changed = kept_folder.make_hold(self._project, self._files)
        kept_folder.write(os.path.join(self._folder, "foundry.toml"), self._config.encode())
        try:
            with open(self._built, encoding="ascii") as file:
                return not changed and file.read() == self._digest()
        except OSError:
            return False

    def _digest(self) -> str:
        whole = [self._config, self._program, self._options, sorted(self._files.items())]
        return hashlib.sha256(json.dumps(whole).encode()).hexdigest()

    async def build(self) -> None:
        """Compile the changed files. Raises EngineError with the compiler's diagnostics."""
        output = await self._forge("build", "--json")
        try:
            diagnostics = await asyncio.to_thread(self._diagnostics, output)
        except (ValueError, TypeError, KeyError, RecursionError):
            raise EngineError(FORGE_FAILED, f"forge did not compile: {self._last_lines(output)}") from None
        if errors := errors_in(diagnostics):
            is_vyper = all(each.get("path", "").endswith(vyper.SUFFIXES) for each in errors)
            raise failure_of(VYPER_FAILED if is_vyper else SOLC_FAILED, errors, diagnostics)
        kept_folder.write(self._built, self._digest().encode())

    async def test(self, chosen: list[str]) -> dict[str, Any]:
        """Run the chosen tests. Raises EngineError unless all pass."""
        output = await self._forge("test", "--json", "-vv", *chosen)
        result = await asyncio.to_thread(self._result, output)
        if result is None:
            raise EngineError(TEST_FAILED, f"forge did not run the tests: {self._last_lines(output)}")
        if not result["suites"]:
            among = f" that {' '.join(chosen)} matches" if chosen else ""
            expected = "expected a contract whose functions begin with test, such as test_increment()"
            raise EngineError(TEST_FAILED, f"no test was found{among}: {expected}")
        if result["failed"]:
            raise EngineError(ASSERTION_FAILED, _failed_text(result), details=result)
        return result

    async def _forge(self, *arguments: str) -> bytes:
        """Run forge and return its standard output. Raises EngineError after the time limit."""
        shell = [*await _sandbox(), "/bin/sh", "-c", _SHELL, self._errors]
        process = await processes.start(
            [*shell, self._program, *arguments, *self._options],
            cwd=self._project,
            env=self._environment,
            timeout_ms=max(1, int((self._deadline - time.monotonic()) * 1000)),
            output=processes.Output(MOST_OUTPUT),
            confirmed=False,
        )
        try:
            await process.wait()
        finally:
            if not process.gone:  # cancelled, most likely: after this returns, others may use the folder
                await process.terminate(GRACE_SECONDS)
        if process.timed_out:
            text = f"forge {arguments[0]} did not end within {self._seconds:g} s and was ended"
            raise EngineError(ENGINE_TIMEOUT, f"{text}: does a test loop, or run too often?")
        if process.signal is not None:
            raise EngineError(TEST_FAILED, f"forge was ended by {process.signal}")
        if not process.output.complete:
            raise EngineError(TEST_FAILED, f"forge wrote more than {MOST_OUTPUT} bytes: do the tests print?")
        return process.output.head

    # --- what is shown --------------------------------------------------------------------------------

    def _diagnostics(self, output: bytes) -> list[dict[str, Any]]:
        """The compilers' messages, from the JSON of forge."""
        reader = SolcReader(self._files)
        found = []
        for each in json.loads(output)["errors"]:
            file = (each.get("sourceLocation") or {}).get("file", "")
            is_vyper = file.endswith(vyper.SUFFIXES)
            found += of_vyper(each, self._files) if is_vyper else [reader.diagnostic_of(each)]
        return [{**each, "message": self._shown(each["message"])} for each in found]

    def _shown(self, text: str) -> str:
        """The text without the paths of folders."""
        for path, instead in ((self._project + "/", ""), (self._folder, "…"), (FORGE_STD, "forge-std")):
            text = text.replace(path, instead)
        return text

    def _brief(self, text: str) -> str:
        return self._shown(text[: 2 * LONGEST_TEXT])[:LONGEST_TEXT]

    def _last_lines(self, output: bytes) -> str:
        """The last lines that forge has written, on standard error or else on standard output."""
        with open(self._errors, "rb") as file:
            file.seek(max(0, os.path.getsize(self._errors) - 16 * LONGEST_TEXT))
            text = (file.read().strip() or output[-16 * LONGEST_TEXT :]).decode(errors="replace")
        lines = [line.rstrip() for line in _COLOUR.sub("", text).splitlines() if line.strip()]
        return self._shown("\n".join(lines[-LAST_LINES:]))[-LONGEST_TEXT:] or "it said nothing"

    def _result(self, output: bytes) -> dict[str, Any] | None:
        """The content of forge's JSON, None if there is none. Without suites, the sources have no tests."""
        lines = output.splitlines()
        written = next((line for line in reversed(lines) if line.startswith(b"{")), None)
        if written is None:
            said = self._last_lines(output).lower()
            nothing = "no tests" in said or "nothing to compile" in said
            return _summed([]) if nothing else None
        try:
            tests = json.loads(written)
        except ValueError:
            return None
        return _summed([self._suite(name, suite) for name, suite in sorted(tests.items())])

    def _suite(self, name: str, suite: dict[str, Any]) -> dict[str, Any]:
        file, _, contract = name.rpartition(":")
        cases = [self._case(case, facts) for case, facts in suite["test_results"].items()]
        return {"file": self._shown(file), "contract": contract, **_counts(cases), "cases": cases}

    def _case(self, name: str, facts: dict[str, Any]) -> dict[str, Any]:
        ((kind, costs),) = facts["kind"].items()
        reason = facts["reason"]
        case = {
            "name": name.partition("(")[0],
            "status": _STATUS[facts["status"]],
            "reason": None if reason is None else self._brief(reason),
            "gas": costs.get("gas", costs.get("mean_gas")),
            "duration": _seconds(facts["duration"]),
        }
        if kind != "Unit":
            case["runs"] = costs.get("runs")
        if facts["counterexample"] is not None:
            case["counterexample"] = [self._brief(each) for each in _calls(facts["counterexample"])]
        if logs := facts["decoded_logs"]:
            case["logs"] = [self._brief(line) for line in logs[:MOST_LOGS]]
        return case


def _calls(example: dict[str, Any]) -> list[str]:
    """The inputs of a fuzz test, or the calls before an invariant broke."""
    if "Single" in example:
        return [example["Single"].get("args") or ""]
    _, calls = example["Sequence"]
    return [
        f"{call['contract_name']}.{call['func_name']}({call['args'] or ''})" for call in calls[:MOST_LOGS]
    ]


def _counts(cases: list[dict[str, Any]]) -> dict[str, int]:
    return {status: sum(case["status"] == status for case in cases) for status in _STATUS.values()}


def _summed(suites: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "suites": suites,
        **{status: sum(suite[status] for suite in suites) for status in _STATUS.values()},
    }


def _failed_text(result: dict[str, Any]) -> str:
    failed = [
        f"{suite['contract']}.{case['name']}: {case['reason'] or 'no reason given'}"
        for suite in result["suites"]
        for case in suite["cases"]
        if case["status"] == "failed"
    ]
    if len(failed) > MOST_SHOWN:
        failed[MOST_SHOWN:] = [f"and {len(failed) - MOST_SHOWN} more"]
    total = sum(result[status] for status in _STATUS.values())
    return f"{result['failed']} of {total} tests failed: {'; '.join(failed)}"


def _seconds(duration: str) -> float:
    """The seconds of a duration such as ``1s 2ms 3µs``."""
    parts = re.findall(r"(?<![0-9.])([0-9.]+)\s*([a-zµ]+)", duration)
    return round(sum(float(number) * _SECONDS.get(unit, 0.0) for number, unit in parts), 9)


# ---------------------------------------------------------------------------------- the sandbox


def _config(folder: str, files: dict[str, str], project_config: bool) -> str:
    """The configuration, which takes precedence over a project's own: forge reads these settings from no
    variable or option."""

    def within(name: str) -> str:
        return json.dumps(os.path.join(folder, name), ensure_ascii=False)

    lines = ["[profile.default]"]
    if not project_config:
        lines += ['src = "."', 'test = "."', "libs = []", "auto_detect_remappings = false"]
    elif source_files.CONFIG in files:
        lines += [f'extends = {{ path = "project/{source_files.CONFIG}", strategy = "replace-arrays" }}']
    lines += [f"out = {within('out')}", f"cache_path = {within('cache')}"]
    lines += [f"build_info_path = {within('out/build-info')}", f"snapshots = {within('snapshots')}"]
    lines += [f"test_failures_file = {within('cache/test-failures')}", "gas_snapshot_emit = false"]
    lines += ["offline = true", "ffi = false", "fs_permissions = []"]
    sources_of_vyper = {path: text for path, text in files.items() if path.endswith(vyper.SUFFIXES)}
    if modules := vyper.possible_modules(sources_of_vyper):
        lines += [f"skip = {json.dumps(modules)}"]
    if sources_of_vyper:
        lines += ["[profile.default.vyper]", f"path = {json.dumps(_programs.find('vyper'))}"]
    for kind in ("fuzz", "invariant"):
        lines += [f"[profile.default.{kind}]", f"failure_persist_dir = {within(f'cache/{kind}')}"]
    return "\n".join([*lines, "[lint]", "lint_on_build = false", ""])


def _environment(folder: str) -> dict[str, str]:
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": os.path.join(folder, "home"),
        "LANG": "C.UTF-8",
        "NO_COLOR": "1",
        "RUST_LOG": "off",
        "FOUNDRY_CONFIG": os.path.join(folder, "foundry.toml"),
        "FOUNDRY_PROFILE": "default",
    }


async def _sandbox() -> list[str]:
    """The prefix for a separate, empty network namespace, if this user may make one; else nothing."""
    global _no_network
    if _no_network is None:
        command = ["unshare", "--map-root-user", "--net", "--"]
        try:
            probe = await processes.run([*command, "true"], env=clean_environment(), timeout_ms=5_000)
            _no_network = command if probe.exit_code == 0 else []
        except processes.ProgramError:
            _no_network = []
    return _no_network
