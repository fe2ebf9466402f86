"""Code of a workflow's step: what it may do is compute, whatever its process would otherwise be allowed."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import pytest
from fastrpc.tools._system_calls import (
    ALLOW,
    CLONE3,
    COMPUTING,
    CONDITIONS,
    FILES,
    NATIVE,
    PROCESSORS,
    REFUSE,
    UNKNOWN,
    program,
)  # fmt: skip
from fastrpc.tools.knowledge._workflows import code as python

from fastrpc import ToolError

NOBODY = 65534
ON_LINUX = sys.platform == "linux"
REFUSED = "PermissionError: [Errno 1]" if ON_LINUX else "OSError: [Errno 24]"


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("output = open('/etc/hostname').read()", f"line 1: {REFUSED}"),
        ("import os\nos.close(0)\noutput = os.listdir('/')", f"line 3: {REFUSED}"),
        ("import socket", "line 1: ModuleNotFoundError"),
        ("import os\nos.fork()", "line 2: PermissionError" if ON_LINUX else "line 2: BlockingIOError"),
        ("import resource as r\nr.setrlimit(r.RLIMIT_NOFILE, (9, 9))", "line 2: ValueError: not allowed"),
        ("output = 'x' * 10**10", "the code takes more memory than is allowed"),
        ("output = 'x' * 2_000_000", "the output is 2,000,002 characters, more than 1,048,576"),
        ("1 / 0", "line 1: ZeroDivisionError"),
        ("(", "line 1: SyntaxError"),
        ("x = 1", "the code has no output: assign it to the name output"),
        ("output = {1}", "output: TypeError: Object of type set"),
        ("output = float('nan')", "output: ValueError"),
        ("import os\nos._exit(3)", "its process ended with exit code 3"),
        ("import os\noutput = ''.join(os.environ) + 1", "line 2: TypeError"),
    ],
)
def test_code_reaches_nothing_and_what_it_raises_is_reported_with_its_line(code: str, error: str) -> None:
    with pytest.raises(ToolError) as raised:
        asyncio.run(python.run(code, None))
    assert str(raised.value).startswith(f"code: {error}"), raised.value


def test_code_without_an_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python, "SECONDS", 1)
    for code in ("while True: pass", "import time\ntime.sleep(99)", "input = 9**9**9"):
        with pytest.raises(ToolError, match="it takes more than 1 s"):
            asyncio.run(python.run(code, None))


CALLS = [
    "os.kill({pid}, 0)",
    "os.kill({pid}, 9)",
    "os.killpg({pid}, 9)",
    "os.sched_setaffinity({pid}, [0])",
    "os.setpriority(os.PRIO_PROCESS, {pid}, 19)",
    "resource.prlimit({pid}, resource.RLIMIT_CPU, (1, 1))",
    "system('tgkill', {pid}, {pid}, 9)",
    "system('pidfd_open', {pid}, 0)",
    "system('ptrace', 16, {pid}, 0, 0)",
    "system('process_vm_readv', {pid}, 0, 0, 0, 0, 0)",
    "system('io_uring_setup', 1, 0)",
    "system('socket', 1, 1, 0)",
    "system('keyctl', 0, -3, 0)",
]
CALLS = CALLS if ON_LINUX else []
NAMES = ("tgkill", "pidfd_open", "ptrace", "process_vm_readv", "io_uring_setup", "socket", "keyctl")
NUMBERS = {True: (234, 434, 101, 310, 425, 41, 250), False: (131, 434, 117, 270, 425, 198, 219)}
SYSTEM_CALLS = dict(zip(NAMES, NUMBERS[os.uname().machine == "x86_64"], strict=True))


@pytest.fixture
def victim() -> Iterator[int]:
    """A process of the user whose code runs: the server's own, no one where that is root."""
    as_nobody: dict[str, Any] = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    process = subprocess.Popen(["sleep", "60"], cwd="/", **(as_nobody if os.geteuid() == 0 else {}))
    yield process.pid
    assert process.poll() is None, "it was ended"
    process.kill()
    process.wait()


@pytest.mark.parametrize("call", CALLS)
def test_code_has_no_way_to_another_process_of_its_user(victim: int, call: str) -> None:
    """No descriptor is needed for these, and no right that a process of the same user lacks."""
    code = f"""
import ctypes, os, resource
def system(name, *arguments):
    if ctypes.CDLL(None, use_errno=True).syscall(input[name], *arguments) == -1:
        raise OSError(ctypes.get_errno(), "refused")
{call.format(pid=victim)}
output = "done"
"""
    with pytest.raises(ToolError, match=r"PermissionError: \[Errno 1\]|ValueError: not allowed"):
        asyncio.run(python.run(code, SYSTEM_CALLS))


FILE_CALLS = ["remove", "truncate", "chmod", "rename", "stat", "readlink", "mkdir"] if ON_LINUX else []


@pytest.mark.parametrize("call", FILE_CALLS)
def test_code_changes_no_file_by_its_name(call: str) -> None:
    """What needs no descriptor of a file: it would reach every file of the server's user."""
    folder = tempfile.mkdtemp()
    path = os.path.join(folder, "file")
    with open(path, "w", encoding="ascii") as file:
        file.write("whole")
    os.chmod(folder, 0o777)
    if os.geteuid() == 0:
        os.chown(path, NOBODY, NOBODY)
    more = {"truncate": ", 0", "chmod": ", 0", "rename": f", {path + 'x'!r}"}.get(call, "")
    place = path + "y" if call == "mkdir" else path
    try:
        with pytest.raises(ToolError, match=r"line 2: PermissionError: \[Errno 1\]"):
            asyncio.run(python.run(f"import os\nos.{call}({place!r}{more})", None))
        assert os.listdir(folder) == ["file"]
    finally:
        shutil.rmtree(folder)


LISTS = {"code": (COMPUTING,), "a reader": (COMPUTING, NATIVE), "pictures": (COMPUTING, NATIVE, FILES)}
THREAD, RENAMING, NEW_FILE, ONLY_READ = [0x3D0F00], [15], [0, 0, 0o101], [0, 0, 0o2000000]


@pytest.mark.parametrize("lists", LISTS.values(), ids=LISTS)
@pytest.mark.parametrize("processor", sorted(PROCESSORS))
def test_the_filter_allows_what_is_listed_and_refuses_the_rest(
    processor: str, lists: tuple[dict[str, tuple[int, int]], ...]
) -> None:
    """The program, run here by the rules of classic BPF."""
    audited, column, _ = PROCESSORS[processor]
    found = {name: each[column] for calls in lists for name, each in calls.items()}
    allowed = {number for name, number in found.items() if name not in CONDITIONS and (number or not column)}
    code = program(processor, *lists)
    conditional = {found[name] for name in CONDITIONS if name in found}
    for number in [*range(-1, 500), 0x40000000, 0x40000001]:
        if number in conditional or (number == CLONE3 and "clone" in found):
            continue
        answer = filtered(code, audited, number & 0xFFFFFFFF)
        assert answer == (ALLOW if number in allowed else REFUSE), number
    assert filtered(code, 0x40000003, 0) == REFUSE  # another processor's calls
    if "clone" in found:
        answers = {
            "clone": [(THREAD, ALLOW), ([17], REFUSE)],
            "tgkill": [([os.getpid(), 1, 6], ALLOW), ([os.getppid(), 1, 6], REFUSE)],
            "prctl": [(RENAMING, ALLOW), ([1], REFUSE)],
            **({"openat": [(ONLY_READ, ALLOW), (NEW_FILE, REFUSE)]} if "openat" in found else {}),
        }
        for name, cases in answers.items():
            for arguments, answer in cases:
                assert filtered(code, audited, found[name], *arguments) == answer, name
        assert filtered(code, audited, CLONE3) == UNKNOWN


def test_a_processor_whose_numbers_are_not_known_has_no_filter() -> None:
    with pytest.raises(OSError, match="mips"):
        program("mips", COMPUTING)


def filtered(code: bytes, audited: int, number: int, *arguments: int) -> int:
    at, loaded = 0, 0
    given = {0: number, 4: audited, **{16 + 8 * index: each for index, each in enumerate(arguments)}}
    while True:
        operation, if_so, if_not, value = struct.unpack_from("=HBBI", code, 8 * at)
        at += 1
        if operation == 0x06:  # RET
            return int(value)
        if operation == 0x20:  # LD
            loaded = given[value]
        else:
            assert operation in (0x15, 0x45)  # JEQ, JSET
            at += if_so if (loaded == value if operation == 0x15 else loaded & value) else if_not


def test_code_is_refused_where_there_is_no_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = (
        "import sys; sys.path += sys.argv[3:]; import _system_calls as s; s.PROCESSORS = {}; s.sys.platform"
        " = 'linux'; import code_worker; code_worker.main()"
    )
    monkeypatch.setattr(python, "BOOTSTRAP", broken)
    with pytest.raises(ToolError, match=r"code: it is not run: this machine has no filter .*processor"):
        asyncio.run(python.run("output = 1", None))


def test_code_has_nothing_of_the_servers_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_TOKEN", "geheim")
    seen = asyncio.run(python.run("import os, sys\noutput = [dict(os.environ), sys.argv, sys.path]", None))
    assert "geheim" not in json.dumps(seen)
