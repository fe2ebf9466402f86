"""Looks into each wheel, and uses it as a user would: in an empty environment, with nothing else in reach.

For each wheel: what it holds and what it must not; its tags against what its modules ask of a system
(`auditwheel`); then, with the CPython it is for (``pythons.py`` finds or builds one; those of musl run here,
those of aarch64 in qemu): ``pip install`` into an empty environment, ``fastrpc selftest``, ``fastrpc demo``,
256 calls in flight from the load client, which checks every answer, and the sdist's core tests with the
extras from the registry. As many wheels as there are processors are checked at once, since tests wait half of
their time; the tests that hold a promise about time run alone, behind all others. An emulated run takes some
minutes, another one a minute. `make check-wheels` installs what this needs and runs it; the exit code is 1
where anything is wrong.
"""

from __future__ import annotations

import argparse
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import build_wheels
import pythons

REPOSITORY = build_wheels.REPOSITORY
NAME = re.compile(r"fastrpc_mcp-(?P<release>[^-]+)-(?P<python>cp3\d+)-(?P=python)-(?P<platform>\w+)\.whl")
MOST_BYTES = 4_200_000
MODULES = (
    "client_stream",
    "connection",
    "encoder",
    "forwarding",
    "framer",
    "message",
    "plan",
    "stream",
    "tool_call",
)
MACHINES = {"x86_64": 62, "aarch64": 183}  # e_machine of ELF
PACKAGED = (
    *(".py", ".pyi", ".so", "py.typed", "SKILL.md", "_core/reaper", ".js", ".sol", ".lock.json"),
    *("dashboard/static/style.css", ".svg", ".html"),
    *(f"dashboard/texts/ar/{name}" for name in os.listdir(f"{REPOSITORY}/fastrpc/dashboard/texts/ar")),
)
SERVER_TESTS = ("tests/unit/test_encoder.py", "tests/integration/test_stdio.py")
COMPILED_TESTS = ("tests/property", *SERVER_TESTS)
"""Of what is compiled."""
VERSION_TESTS = ("tests/unit", "tests/integration/test_stdio.py")
CORE_TESTS = ("tests/property", *VERSION_TESTS)
IN_PYTHON = ("approval_*", "audit_*", "cel_*", "docstrings", "guard_why", "rewriting", "shell_*", "uri_*")
"""The property tests of what is written in Python alone: they run in the suite, not on wheels."""
DOCUMENTS = "10000"
"""How many documents the differential tests read on a wheel; the suite itself reads more."""
TEST_PACKAGES = [
    "attrs",
    "cel-expr-python; python_version >= '3.11'",
    "common-expression-language; python_version >= '3.11'",
    "fastapi",
    "griffelib; python_version >= '3.11'",
    "hypothesis",
    "jsonschema",
    "mcp>=2.3",
    "prefab-ui",
    "psycopg[binary]>=3.2",
    "pydantic",
    "pytest",
    "pytest-timeout",
    "pytest-xdist",
    "pyyaml",
]
EXTRAS = (
    *("schema", "contracts", "vyper", "guard", "knowledge", "documents", "postgresql", "http", "oauth"),
    *("tasks", "dashboard", "tools", "embeddings", "local-embeddings", "all"),
)
# Neither playwright nor ONNX Runtime has a wheel for musl.
NOT_THERE = {"musllinux_1_2_x86_64": ("tools", "local-embeddings", "all")}
# Of the environment: how to reach the registry; that nothing may skip.
KEPT = ("PIP_", "UV_", "SSL_", "CI")
SECONDS = 900


class Wrong(Exception):
    """What is wrong with a wheel, in words."""


class Wheel:
    """A wheel's file, and what its name says."""

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)
        self.name = os.path.basename(path)
        parts = NAME.fullmatch(self.name)
        if parts is None:
            raise Wrong(f"{self.name}: no name of a wheel of fastrpc")
        if parts["platform"] not in build_wheels.PLATFORMS:
            raise Wrong(f"{self.name}: the platform is none of {', '.join(build_wheels.PLATFORMS)}")
        self.version = f"3.{parts['python'][3:]}"
        self.platform = build_wheels.PLATFORMS[parts["platform"]]
        self.emulated = self.platform.machine == "aarch64"
        self.tests: tuple[str, ...] = ()
        """Which of the sdist's tests are run on it."""
        self.left_out = ""
        """What else is left out of them, for pytest's `-m`."""
        self.is_timed = True
        """Whether the tests that run alone are run on it, too."""
        self.folder = ""
        """Where it is installed, and its tests lie. Stays where something is wrong, to be looked at."""

    @property
    def python(self) -> str:
        """The Python of the environment into which it is installed."""
        return os.path.join(self.folder, "venv", "bin", "python")

    def says(self, words: str) -> None:
        print(f"{self.name}: {words}", flush=True)


def wrong_contents(wheel: Wheel) -> Iterator[str]:
    """Say what is missing in a wheel, and what should not be there."""
    size = os.path.getsize(wheel.path)
    if size > MOST_BYTES:
        yield f"it has {size:,} bytes, of at most {MOST_BYTES:,}"
    suffix = build_wheels.suffix(wheel.version, wheel.platform)
    with zipfile.ZipFile(wheel.path) as archive:
        names = set(archive.namelist())
        for name in sorted(names):
            if not name.startswith(("fastrpc/", "fastrpc_mcp-")) or name.startswith("fastrpc/tests"):
                yield f"{name} does not belong to fastrpc"
            elif name.startswith("fastrpc/") and not name.endswith(PACKAGED):
                yield f"{name} is no file of a package"
        for module in MODULES:
            for wanted in (f"fastrpc/_core/{module}{suffix}", f"fastrpc/_core/{module}.pyi"):
                if wanted not in names:
                    yield f"{wanted} is missing"
        for name in names:
            if name.endswith((".so", "_core/reaper")):
                yield from wrong_machine(wheel, name, archive.read(name)[:20])
        licences = [name for name in names if "/licenses/" in name]
        text = b"".join(map(archive.read, licences))
        for owner in (b"fastrpc authors", b"simdjson authors", b"Facebook", b"Rich Felker"):
            if owner not in text:
                yield f"the licence of {owner.decode()} is missing"
    yield from sorted(f"{name} is missing" for name in sources() - names)


def wrong_machine(wheel: Wheel, name: str, head: bytes) -> Iterator[str]:
    machine = int.from_bytes(head[18:20], "little")
    if head[:4] != b"\x7fELF" or machine != MACHINES[wheel.platform.machine]:
        yield f"{name} is not for {wheel.platform.triplet}"


def sources() -> set[str]:
    """Return the names, in a wheel, of all files of packages that the repository has."""
    listed = subprocess.run(
        ["git", "ls-files", "fastrpc/*.py", "fastrpc/*.pyi", "fastrpc/py.typed", "tools"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    return {"fastrpc/" + name if name.startswith("tools/") else name for name in listed}


def audit(wheel: Wheel) -> None:
    """Hold the tag of a wheel against the symbols and libraries that its modules ask for."""
    shown = output([sys.executable, "-m", "auditwheel", "show", wheel.path], REPOSITORY)
    said = " ".join(shown.split())
    found = re.search(r'consistent with the following platform tag: "(\w+)"', said)
    if found is None or found[1] != wheel.platform.tag:
        raise Wrong(f"auditwheel finds {found[1] if found else said}, the name says {wheel.platform.tag}")


def output(command: list[str], folder: str, **variables: str) -> str:
    """Run a command in an environment of its own and return what it printed."""
    clean = {"PATH": os.environ["PATH"], "HOME": folder, "LANG": "C.UTF-8", "TMPDIR": folder}
    kept = {name: value for name, value in os.environ.items() if name.startswith(KEPT)}
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**clean, **kept, **variables},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except OSError as error:
        raise Wrong(str(error)) from None
    except subprocess.TimeoutExpired:
        raise Wrong(f"{' '.join(command)} takes more than {SECONDS} s") from None
    if done.returncode:
        said = f"{done.stdout[-4000:]}{done.stderr[-4000:]}"
        raise Wrong(f"{' '.join(command)} ended with {done.returncode}:\n{said}")
    return done.stdout + done.stderr


def use(wheel: Wheel, python: str) -> Iterator[str]:
    """Install a wheel into an empty environment and use it; yield a word for each thing that works."""
    folder, own = wheel.folder, wheel.python
    venv = os.path.join(folder, "venv")
    output([python, "-m", "venv", venv], folder)
    # That Python's own pip judges the tags; with uv, for all else, no Python needs to reach the registry.
    output([own, "-m", "pip", "install", "--no-index", "--no-deps", wheel.path], folder)
    install(own, folder, wheel.path)
    program = os.path.join(venv, "bin", "fastrpc")
    where = output([own, "-c", "import fastrpc; print(fastrpc.__file__)"], folder).strip()
    if not where.startswith(venv):
        raise Wrong(f"fastrpc was imported from {where}")
    output([f"{program}-mcp", "--version"], folder)  # what uvx runs
    output([program, "selftest"], folder)
    yield "selftest"
    output([program, "demo"], folder)
    yield "demo"
    yield pipelined(own, folder)
    for extra in EXTRAS:
        if extra not in NOT_THERE.get(wheel.platform.tag, ()):
            install(own, folder, "--dry-run", f"{wheel.path}[{extra}]")
    yield "extras"
    if wheel.tests:
        install_tests(wheel)
        yield core_tests(wheel, "-m", f"not alone{wheel.left_out}", "-n", "2", "--dist", "loadfile")


def install(python: str, folder: str, *wanted: str) -> None:
    uv = os.path.join(os.path.dirname(sys.executable), "uv")
    cache = os.path.join(REPOSITORY, ".cache", "uv")
    command = [uv, "--system-certs", "pip", "install", "--quiet", "--python", python, *wanted]
    output(command, folder, UV_CACHE_DIR=cache)


def pipelined(python: str, folder: str) -> str:
    """Let the load client, which checks each answer, have 256 calls in flight."""
    results = os.path.join(folder, "pipelined.json")
    options = f"--only W2 --peers fastrpc --rounds 1 --seconds 1 --python {python} --output {results}"
    output([sys.executable, os.path.join(REPOSITORY, "benchmarks", "run.py"), *options.split()], folder)
    with open(results, encoding="utf-8") as file:
        (entry,) = (row for row in json.load(file)["rows"] if row["peer"] == "fastrpc")
    if "figure" not in entry:
        raise Wrong(f"a pipelined run: {entry.get('void') or entry.get('missing')}")
    return f"{entry['figure']['median']:,.0f} calls/s"


def install_tests(wheel: Wheel) -> None:
    """Put the tests that the sdist brings into the wheel's folder, in which no fastrpc lies; install what
    they want."""
    folder = wheel.folder
    extra = "all" if "all" not in NOT_THERE.get(wheel.platform.tag, ()) else "http,schema"
    install(wheel.python, folder, f"{wheel.path}[{extra}]", *TEST_PACKAGES)
    with tarfile.open(f"{wheel.path.partition('-cp')[0]}.tar.gz") as sdist:
        sdist.extractall(folder)
    (source,) = glob.glob(os.path.join(folder, "fastrpc_mcp-*"))
    for name in ("tests", "docs", "examples", ".ci", "README.md", "pyproject.toml"):
        shutil.move(os.path.join(source, name), folder)
    shutil.rmtree(source)


def core_tests(wheel: Wheel, *options: str) -> str:
    """Run tests; return how many passed, in pytest's words."""
    beside = os.path.join(os.path.dirname(REPOSITORY), "shared", "data")
    data = os.environ.get("FASTRPC_DATA_DIR") or (beside if os.path.isdir(beside) else "")
    without = [f"--ignore-glob=tests/property/test_{name}.py" for name in IN_PYTHON]
    said = output(
        [wheel.python, "-m", "pytest", *options, *without, *wheel.tests],
        wheel.folder,
        FASTRPC_DATA_DIR=data,
        FASTRPC_DOCUMENTS=DOCUMENTS,
    )
    return next(line for line in reversed(said.splitlines()) if " passed" in line)


def check(contents_only: bool, wheel: Wheel) -> None:
    """Check one wheel, but for the tests that run alone; raises `Wrong`, prints what works."""
    if faults := list(wrong_contents(wheel)):
        raise Wrong("; ".join(faults))
    audit(wheel)
    wheel.says(f"{os.path.getsize(wheel.path):,} bytes, contents, tags")
    if contents_only:
        return
    python = pythons.interpreter(wheel.version, wheel.platform.triplet)
    wheel.folder = tempfile.mkdtemp(prefix="fastrpc-check-")
    for works in use(wheel, python):
        wheel.says(works)


def end(wheel: Wheel) -> None:
    """Run the tests that nothing may run beside, where promises about time can be kept, and tidy up."""
    if wheel.tests and wheel.is_timed and not wheel.emulated:
        wheel.says(core_tests(wheel, "-m", f"alone{wheel.left_out}"))
    if wheel.folder:
        shutil.rmtree(wheel.folder)


def passes(step: Callable[[Wheel], None], wheel: Wheel) -> bool:
    """Take a step; where it finds something wrong, say so."""
    try:
        step(wheel)
    except (Wrong, pythons.CannotMake) as error:
        print(f"{wheel.name}: {error}", file=sys.stderr, flush=True)
        return False
    return True


def choose_tests(wheels: list[Wheel], fewer: bool) -> None:
    """Say which tests each wheel is put to: with `fewer`, the oldest to the unit tests, the newest to the
    property tests and those that run alone, none to the long ones."""
    oldest, newest = (choose(wheels, key=minor_version).version for choose in (min, max))
    for wheel in wheels:
        if fewer:
            wheel.left_out, wheel.is_timed = " and not long", wheel.version == newest
        if wheel.emulated or (fewer and wheel.version == newest != oldest):
            wheel.tests = COMPILED_TESTS
        elif not fewer:
            wheel.tests = CORE_TESTS
        else:
            wheel.tests = VERSION_TESTS if wheel.version == oldest else SERVER_TESTS


def minor_version(wheel: Wheel) -> int:
    return int(wheel.version.rpartition(".")[2].rstrip("t"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("wheels", nargs="+")
    parser.add_argument("--contents", action="store_true", help="only look into them")
    parser.add_argument("--skip-tests", action="store_true", help="use them, but leave the core tests out")
    parser.add_argument(
        "--fewer-tests",
        action="store_true",
        help="no long tests; the unit tests for the oldest Python, the property tests for the newest, those"
        " of a server for all",
    )
    options = parser.parse_args()
    wheels = []
    for path in options.wheels:
        try:
            wheels.append(Wheel(path))
        except Wrong as error:
            print(error, file=sys.stderr, flush=True)
    if wheels and not options.skip_tests and not options.contents:
        choose_tests(wheels, options.fewer_tests)
    wheels.sort(key=lambda wheel: len(wheel.tests), reverse=True)  # what takes longest is not left at the end
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        passed = list(pool.map(partial(passes, partial(check, options.contents)), wheels))
    good = [wheel for wheel, is_good in zip(wheels, passed, strict=True) if is_good and passes(end, wheel)]
    failed = len(options.wheels) - len(good)
    raise SystemExit(f"{failed} of {len(options.wheels)} wheels failed" if failed else 0)


if __name__ == "__main__":
    main()
