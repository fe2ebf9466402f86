"""Builds the C reference and the load client into `benchmarks/.cache/build`.

The reference has `servers/descriptors.json` compiled in, which it lists. yyjson comes from the source archive
of the PyPI package `yyjson`, fetched once through pip into `benchmarks/.cache` and unpacked there; nothing of
it is kept in the repository. Costs about ten seconds the first time, nothing when all is up to date.

    python benchmarks/build.py               fetch what is missing, build what is out of date, print the paths
    python benchmarks/build.py --offline     the same without the network
    python benchmarks/build.py --sanitize    build with ASan and UBSan, beside the normal ones
"""

from __future__ import annotations

import argparse
import glob
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
CACHE = os.path.join(HERE, ".cache")
YYJSON = "yyjson==4.0.6"
FLAGS = ["-std=gnu11", "-O3", "-Wall", "-Wextra", "-Werror"]
SANITIZE = ["-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined"]
SANITIZE += ["-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]
DESCRIPTORS = os.path.join(HERE, "servers", "descriptors.json")
PROGRAMS = {"server": os.path.join(HERE, "reference"), "client": os.path.join(HERE, "client")}


class CannotBuild(Exception):
    """What is missing, in one sentence."""


class DoesNotCompile(Exception):
    """Our own source is broken: never to be taken for a missing tool."""


def compiler() -> str:
    """Return the C compiler. Raises CannotBuild."""
    found = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if not found:
        raise CannotBuild("no C compiler: install gcc or clang, or set CC")
    return found


def yyjson_sources(offline: bool) -> str:
    """Return the folder with yyjson.c and yyjson.h. Raises CannotBuild."""
    name, version = YYJSON.split("==")
    archives = os.path.join(CACHE, f"{name}-{version}*.tar.gz")
    if not glob.glob(archives):
        if offline:
            raise CannotBuild(f"no {archives}: run benchmarks/build.py once with the network")
        fetch()
    folder = os.path.join(CACHE, YYJSON)
    if not os.path.isdir(folder):
        unpack(glob.glob(archives)[0], folder)
    return folder


def fetch() -> None:
    """Download the source archive. pip reads its metadata, but compiles nothing."""
    os.makedirs(CACHE, exist_ok=True)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
    done = subprocess.run([*command, "--dest", CACHE, YYJSON], stdout=sys.stderr)
    if done.returncode:
        raise CannotBuild(f"pip could not download {YYJSON}")


def unpack(archive: str, folder: str) -> None:
    """Take the two files out of the archive, whole or not at all."""
    unfinished = f"{folder}.{os.getpid()}"
    os.makedirs(unfinished)
    wanted = {"yyjson.c", "yyjson.h"}
    with tarfile.open(archive) as source:
        for member in source:
            name = os.path.basename(member.name)
            content = source.extractfile(member) if name in wanted and member.isfile() else None
            if content:
                with open(os.path.join(unfinished, name), "wb") as target:
                    shutil.copyfileobj(content, target)
                wanted.discard(name)
    if wanted:
        shutil.rmtree(unfinished)
        raise CannotBuild(f"{archive} holds no {' and no '.join(sorted(wanted))}")
    try:
        os.rename(unfinished, folder)
    except OSError:  # another build was faster
        shutil.rmtree(unfinished)


def write_descriptors(path: str) -> None:
    """Write the descriptors as the inside of an array of C, with the member that holds them around."""
    with open(DESCRIPTORS, "rb") as file:
        text = b'{"tools":%b}' % file.read()
    with open(path, "w", encoding="ascii") as file:
        file.write(",".join(map(str, text)) + "\n")


def build(program: str, *, offline: bool = False, sanitize: bool = False) -> str:
    """Build `server` or `client` if it is out of date and return its path.

    Raises CannotBuild and DoesNotCompile.
    """
    folder = PROGRAMS[program]
    yyjson = yyjson_sources(offline)
    target = os.path.join(CACHE, "build", program + ("-sanitized" if sanitize else ""))
    sources = [*sorted(glob.glob(os.path.join(folder, "*.c"))), os.path.join(yyjson, "yyjson.c")]
    inputs = [*sources, *glob.glob(os.path.join(folder, "*.h")), os.path.abspath(__file__), DESCRIPTORS]
    if os.path.exists(target) and os.path.getmtime(target) > max(map(os.path.getmtime, inputs)):
        return target
    os.makedirs(os.path.dirname(target), exist_ok=True)
    unfinished = f"{target}.{os.getpid()}"
    flags = SANITIZE if sanitize else FLAGS
    with tempfile.TemporaryDirectory(dir=os.path.dirname(target)) as generated:
        write_descriptors(os.path.join(generated, "descriptors.inc"))
        includes = ["-I", yyjson, "-I", generated]
        done = subprocess.run([compiler(), *flags, *includes, *sources, "-o", unfinished])
    if done.returncode:
        raise DoesNotCompile(f"{os.path.relpath(folder)} does not compile")
    os.replace(unfinished, target)
    return target


def main() -> int:
    parser = argparse.ArgumentParser(description="Build the C reference and the load client.")
    parser.add_argument("--offline", action="store_true", help="use only what has been fetched before")
    parser.add_argument("--sanitize", action="store_true", help="with ASan and UBSan")
    options = parser.parse_args()
    try:
        for program in PROGRAMS:
            print(build(program, offline=options.offline, sanitize=options.sanitize))
    except (CannotBuild, DoesNotCompile) as problem:
        print(f"build.py: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
