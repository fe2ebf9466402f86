"""Builds the core with ASan and UBSan beside the checkout's own build, and runs Python on it.

    python tests/fuzz/sanitized.py -m pytest tests/property
    python tests/fuzz/sanitized.py tests/fuzz/fuzz.py --seconds 120

The build lies in `.cache/sanitized`: the compiled modules, and links to the Python files of the checkout.
It is made anew where a source has changed (a minute; what is up to date costs a second). For Linux; needs
gcc, or another compiler in CC whose `-print-file-name=libasan.so` names its runtime. What ASan or UBSan
finds ends the process with status 99. Python's own allocator is off, so that each object lies in memory of
its own size; leaks are not looked for, since an interpreter that ends leaves its memory where it is.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(REPOSITORY, ".cache", "sanitized")
LIBRARY = os.path.join(BUILD, "lib")
RUNTIMES = ("libasan.so", "libstdc++.so")  # before all else: they take over malloc and throw
STATUS = 99


PIN = "import fastrpc  # before `python -m` puts the working directory, and another build, first\n"


def build() -> None:
    """Build the core into LIBRARY, and link the rest of the package beside it."""
    folders = ["--build-lib", LIBRARY, "--build-temp", os.path.join(BUILD, "temp")]
    command = [sys.executable, "setup.py", "--quiet", "build_ext", *folders]
    subprocess.run(command, cwd=REPOSITORY, env={**os.environ, "FASTRPC_SANITIZE": "1"}, check=True)
    link("fastrpc", {"_core"})
    link(os.path.join("fastrpc", "_core"), set())
    with open(os.path.join(LIBRARY, "sitecustomize.py"), "w", encoding="ascii") as file:
        file.write(PIN)


def link(folder: str, own: set[str]) -> None:
    """Link what is in a folder of the checkout, but for compiled files and what the build itself has."""
    source, target = os.path.join(REPOSITORY, folder), os.path.join(LIBRARY, folder)
    names = (
        {name for name in os.listdir(source) if not name.endswith(".so")} - own - {"reaper", "__pycache__"}
    )
    for name in os.listdir(target):
        path = os.path.join(target, name)
        if os.path.islink(path) and name not in names:
            os.unlink(path)
    for name in names:
        path = os.path.join(target, name)
        if not os.path.islink(path):
            os.symlink(os.path.join(source, name), path)


def environment() -> dict[str, str]:
    """Return the environment in which Python runs on the build."""
    compiler = shlex.split(os.environ.get("CC", "gcc"))
    runtimes = []
    for name in RUNTIMES:
        found = subprocess.run(
            [*compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True
        ).stdout.strip()
        if not os.path.isabs(found):
            sys.exit(f"sanitized.py: {compiler[0]} has no {name}")
        runtimes.append(os.path.realpath(found))
    return {
        **os.environ,
        "FASTRPC_SANITIZED": "1",
        "LD_PRELOAD": " ".join(runtimes),
        "PYTHONPATH": LIBRARY,
        "PYTHONMALLOC": "malloc",
        "PYTHONDONTWRITEBYTECODE": "1",
        "ASAN_OPTIONS": f"detect_leaks=0:exitcode={STATUS}:allocator_may_return_null=1",
        "UBSAN_OPTIONS": f"print_stacktrace=1:exitcode={STATUS}",
    }


CHECK = """
import sys
from fastrpc._core import message
if not message.__file__.startswith(sys.argv[1]):
    sys.exit(f"sanitized.py: the core comes from {message.__file__}")
"""


def main() -> None:
    build()
    environ = environment()
    subprocess.run([sys.executable, "-c", CHECK, LIBRARY], env=environ, cwd=REPOSITORY, check=True)
    os.execve(sys.executable, [sys.executable, *sys.argv[1:]], environ)


if __name__ == "__main__":
    main()
