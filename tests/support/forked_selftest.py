"""`fastrpc selftest` many times over, for tests that change a toolset: each in a fork of one process.

A selftest imports all modules of fastrpc, two seconds of processor time. Here a process has done so once, and
each selftest is a child of it, with an environment and a separate working directory: the toolset is
imported anew, and the server that it starts is a process like any other. What differs from a separate
command: that the modules of fastrpc can be imported has been checked before.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

PROGRAM = """
import importlib, json, os, sys
from fastrpc.__main__ import main
from fastrpc.cli.selftest import module_names

for name in module_names("fastrpc"):
    importlib.import_module(name)
assert "fastrpc.server" in sys.modules
print("ready", flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    child = os.fork()
    if child:
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        continue
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    written = os.open(asked["written"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(written, 1)
    os.dup2(written, 2)
    os.chdir(asked["place"])
    os.environ.clear()
    os.environ.update(asked["environ"])
    sys.path[:1] = [asked["place"], *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    sys.dont_write_bytecode = True
    code = 70
    try:
        code = main(["selftest"])
    finally:
        sys.stdout.flush()
        os._exit(code)
"""


@contextlib.contextmanager
def selftests() -> Iterator[Callable[[Any], tuple[int, str]]]:
    """Gives what runs a selftest in a working directory, with the environment of the moment, and returns its
    exit code and all that it wrote."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"

    def run(place: Any) -> tuple[int, str]:
        written = os.path.join(place, os.pardir, "selftest.txt")
        asked = {"place": str(place), "written": written, "environ": dict(os.environ)}
        process.stdin.write(json.dumps(asked) + "\n")
        process.stdin.flush()
        code = int(process.stdout.readline())
        with open(written, encoding="utf-8") as file:
            return code, file.read()

    try:
        yield run
    finally:
        process.stdin.close()
        process.wait(30)
        process.stdout.close()
