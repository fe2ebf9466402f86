"""What a target needs before CPython can be built for it: its compiler, its loader, the libraries of the
standard library's modules, and a way to run its programs here.

`pythons.py` is the one user. Sources are original archives by address and sha256. Only the libraries that
aarch64 programs load when they run come as Debian's packages: those change with each point release, so
Debian's index is asked for the name and sha256 of the day. All is kept in the cache folder, made once.
"""

from __future__ import annotations

import hashlib
import lzma
import os
import shutil
import subprocess
import sys
import tarfile
import threading
import time
import urllib.request
from collections.abc import Callable

HERE = os.path.dirname(os.path.abspath(__file__))
CACHE = os.environ.get("FASTRPC_PYTHONS") or os.path.join(HERE, "..", "..", ".cache", "pythons")
CACHE = os.path.abspath(CACHE)

NATIVE = "x86_64-linux-gnu"
MUSL = "x86_64-linux-musl"
AARCH64 = "aarch64-linux-gnu"
TARGETS = (NATIVE, MUSL, AARCH64)
ZIG_TARGETS = {MUSL: MUSL, AARCH64: AARCH64 + ".2.36"}
# Unless told not to, zig checks for undefined behaviour and takes CPython's time of build for an error. And
# a program must reach the C library's `environ` by its table of addresses: zig's stand-in for that library
# does not tell that `__environ` is the same variable, so the linker's copy of the one would stay empty.
ZIG_OPTIONS = "-fno-sanitize=undefined -Wno-date-time -fPIC"

JOBS = f"-j{os.cpu_count() or 1}"

DEBIAN = "https://deb.debian.org/debian/"
UBUNTU = "http://archive.ubuntu.com/ubuntu/"

# A suite keeps the original archives it was released with as long as it is on the mirrors.
SOURCES = {
    "libffi": (
        DEBIAN + "pool/main/libf/libffi/libffi_3.4.4.orig.tar.gz",
        "d66c56ad259a82cf2a9dfc408b32bf5da52371500b84745f7fb8b645712df676",
    ),
    "musl": (
        DEBIAN + "pool/main/m/musl/musl_1.2.5.orig.tar.gz",
        "a9a118bbe84d8764da0ea0d28b3ab3fae8477fc7e4085d90102b8596fc7c75e4",
    ),
    "openssl": (
        UBUNTU + "pool/main/o/openssl/openssl_3.0.13.orig.tar.gz",
        "88525753f79d3bec27d2fa7c66aa0b92b3aa9498dafd93d7cfa4b3780cdae313",
    ),
    # SQLite in one file, which Debian's own archive of SQLite would have to make with Tcl.
    "sqlite3": (
        DEBIAN + "pool/main/r/r-cran-rsqlite/r-cran-rsqlite_2.3.9.orig.tar.gz",
        "d5eb457f839330e32b47cbea264d50fc70d349b0345cf238f07dfa797a12c084",
    ),
    "zlib": (
        UBUNTU + "pool/main/z/zlib/zlib_1.3.dfsg.orig.tar.xz",
        "5eea0322c1c21c75cad3b607ac1c43ff5c71e014b8ac4a34300b5e2b80d02e70",
    ),
}

SUITE = "trixie"
AARCH64_PACKAGES = ("libc6", "libgcc-s1", "libstdc++6")

# Without the ciphers and protocols that no TLS connection of today asks for: less to compile.
OPENSSL_OPTIONS = (
    "no-shared no-module no-legacy no-engine no-dso no-asm no-tests no-aria no-bf no-camellia no-cast no-cmp"
    " no-dtls no-gost no-idea no-md4 no-mdc2 no-rc2 no-rc4 no-sctp no-seed no-sm2 no-sm3 no-sm4 no-srp"
    " no-whirlpool"
)

BINFMT = "/proc/sys/fs/binfmt_misc"
BINFMT_NAME = "fastrpc-aarch64"
# An ELF file of 64 bits, little-endian, a program or shared object, for machine 183.
AARCH64_MAGIC = r"\x7fELF\x02\x01\x01" + r"\x00" * 9 + r"\x02\x00\xb7\x00"
AARCH64_MASK = r"\xff" * 7 + r"\x00" + r"\xff" * 8 + r"\xfe\xff\xff\xff"

# The kernel starts it as: itself, the program's path, the program's argv[0], the other arguments.
LAUNCHER = """\
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int count, char **words) {
    char **command = calloc(count + 4, sizeof *command);
    if (count < 3 || !command) return 127;
    command[0] = QEMU;
    command[1] = "-L";
    command[2] = SYSROOT;
    command[3] = "-0";
    command[4] = words[2];
    command[5] = words[1];
    for (int at = 3; at < count; at++) command[at + 3] = words[at];
    execv(QEMU, command);
    perror(QEMU);
    return 127;
}
"""


class CannotMake(Exception):
    """What is missing or went wrong, in one sentence."""


def libraries(target: str) -> str:
    """Return a folder with include/ and lib/ of zlib, SQLite, libffi and OpenSSL, as archives to link."""
    return kept(f"libraries-{target}", lambda folder: make_libraries(target, folder))


def make_libraries(target: str, folder: str) -> None:
    build = f"{folder}.build"
    environment = compilers(target, os.path.join(build, "tools"))
    environment["CFLAGS"] = "-O2 -fPIC"
    name = f"libraries-{target}"
    for part in ("include", "lib"):
        os.makedirs(os.path.join(folder, part))

    vendor = os.path.join(copied("sqlite3", build), "src", "vendor", "sqlite3")
    options = ["-O2", "-fPIC", "-DSQLITE_ENABLE_FTS5", "-DSQLITE_ENABLE_MATH_FUNCTIONS"]
    run([environment["CC"], *options, "-c", "sqlite3.c"], vendor, name, environment)
    run([environment["AR"], "rcs", f"{folder}/lib/libsqlite3.a", "sqlite3.o"], vendor, name, environment)
    shutil.copy(os.path.join(vendor, "sqlite3.h"), os.path.join(folder, "include"))

    at = copied("zlib", build)
    run(["./configure", "--static", f"--prefix={folder}"], at, name, environment)
    run(["make", JOBS, "libz.a"], at, name, environment)
    run(["make", "install"], at, name, environment)

    at = copied("libffi", build)
    options = [f"--host={target}", f"--build={NATIVE}", "--disable-shared", "--with-pic"]
    # Without static trampolines: their source misses a declaration, which zig takes for an error.
    options += ["--disable-docs", "--disable-exec-static-tramp"]
    run(["./configure", *options, f"--prefix={folder}"], at, name, environment)
    run(["make", JOBS, "install"], at, name, environment)

    at = copied("openssl", build)
    # The machine's certificates are where its distribution has them.
    options = ["linux-aarch64" if target == AARCH64 else "linux-x86_64", *OPENSSL_OPTIONS.split()]
    options += [f"--prefix={folder}", "--libdir=lib", "--openssldir=/etc/ssl"]
    run(["perl", "Configure", *options], at, name, environment)
    run(["make", JOBS, "build_libs"], at, name, environment)
    run(["make", "install_dev"], at, name, environment)


def copied(name: str, build: str) -> str:
    """Return a copy of an unpacked source archive, to build in."""
    return shutil.copytree(source(name, SOURCES), os.path.join(build, name), symlinks=True)


def musl_loader() -> str:
    """Return the path of musl's loader, which is its C library too."""
    return os.path.join(kept("musl", make_musl), "lib", "ld-musl-x86_64.so.1")


def make_musl(folder: str) -> None:
    """musl looks for shared libraries where the file etc/ beside its own lib/ says: only here, so that none
    of the machine's own C library is ever taken."""
    build = f"{folder}.build"
    os.makedirs(build)
    environment = {**compilers(NATIVE, build), "CFLAGS": "-O2"}
    run([os.path.join(source("musl", SOURCES), "configure")], build, "musl", environment)
    run(["make", JOBS, "lib/libc.so"], build, "musl", environment)
    for part in ("etc", "lib"):
        os.makedirs(os.path.join(folder, part))
    shutil.copy(os.path.join(build, "lib", "libc.so"), os.path.join(folder, "lib", "ld-musl-x86_64.so.1"))
    write(os.path.join(folder, "etc", "ld-musl-x86_64.path"), os.path.join(CACHE, "musl", "lib") + "\n")


def run_aarch64_here() -> None:
    """See that the kernel hands aarch64 programs, and their children, to qemu with Debian's libraries.

    Registers a binfmt_misc entry `fastrpc-aarch64`, which stays until the machine's next start, or until
    `echo -1 > /proc/sys/fs/binfmt_misc/fastrpc-aarch64`. Raises CannotMake when that cannot be."""
    launcher = os.path.join(kept("aarch64-launcher", make_launcher), "qemu-aarch64")
    entry = os.path.join(BINFMT, BINFMT_NAME)
    if os.path.exists(entry):
        with open(entry) as file:
            if f"interpreter {launcher}\n" in file.read():
                return
    if os.geteuid() != 0:
        raise CannotMake("aarch64 programs need a binfmt_misc entry, which only root can register")
    try:
        if not os.path.exists(os.path.join(BINFMT, "register")):
            subprocess.run(["mount", "-t", "binfmt_misc", "none", BINFMT], check=True, capture_output=True)
        if os.path.exists(entry):
            write(entry, "-1")
        # P: argv[0] is handed on. F: the launcher is opened now, so it is found from any root folder.
        register = f":{BINFMT_NAME}:M::{AARCH64_MAGIC}:{AARCH64_MASK}:{launcher}:PF"
        write(os.path.join(BINFMT, "register"), register)
    except (OSError, subprocess.SubprocessError) as error:
        raise CannotMake(f"the kernel takes no binfmt_misc entry for aarch64 programs: {error}") from None


def make_launcher(folder: str) -> None:
    """Compile the program that the kernel starts for each aarch64 program: qemu with the folder of Debian's
    libraries, whatever the environment."""
    qemu = shutil.which("qemu-aarch64-static")
    if not qemu:
        raise CannotMake("no qemu-aarch64-static: apt-get install qemu-user-static")
    os.makedirs(folder)
    build = f"{folder}.build"
    environment = compilers(MUSL, build)
    text = os.path.join(build, "launcher.c")
    write(text, LAUNCHER)
    names = [f'-DQEMU="{qemu}"', f'-DSYSROOT="{aarch64_libraries()}"']
    command = [environment["CC"], "-static", "-O2", "-s", *names, text, "-o", f"{folder}/qemu-aarch64"]
    run(command, build, "aarch64-launcher", environment)


def aarch64_libraries() -> str:
    """Return the folder in whose lib/ aarch64 programs find their loader and shared libraries. It holds
    nothing else: qemu looks there first for every absolute path."""
    return kept("aarch64-libraries", make_aarch64_libraries)


def make_aarch64_libraries(folder: str) -> None:
    build = f"{folder}.build"
    for url, sha256 in debian_packages("arm64", AARCH64_PACKAGES):
        unpack_package(download(url, sha256), build)
    os.makedirs(folder)
    os.rename(os.path.join(build, "usr", "lib"), os.path.join(folder, "lib"))


def debian_packages(architecture: str, names: tuple[str, ...]) -> list[tuple[str, str]]:
    """Return address and sha256 of each package, as Debian's index has them today. Raises CannotMake."""
    url = f"{DEBIAN}dists/{SUITE}/main/binary-{architecture}/Packages.xz"
    say(f"fetch {url}")
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            index = lzma.decompress(answer.read()).decode()
    except OSError as error:
        raise CannotMake(f"{url}: {error}") from None
    found: dict[str, tuple[str, str]] = {}
    for paragraph in index.split("\n\n"):
        if paragraph.startswith("Package: ") and paragraph.split("\n", 1)[0][9:] in names:
            fields = dict(line.split(": ", 1) for line in paragraph.split("\n") if ": " in line[1:])
            found[fields["Package"]] = (DEBIAN + fields["Filename"], fields["SHA256"])
    missing = [name for name in names if name not in found]
    if missing:
        raise CannotMake(f"{url} has no {', '.join(missing)}")
    return [found[name] for name in names]


def unpack_package(archive: str, folder: str) -> None:
    """Unpack a Debian package: an `ar` archive, of which data.tar.xz holds the files."""
    with open(archive, "rb") as file:
        file.seek(8)
        while header := file.read(60):
            name, size = header[:16].decode().strip(" /"), int(header[48:58])
            if name == "data.tar.xz":
                with tarfile.open(fileobj=file, mode="r|xz") as tar:
                    tar.extractall(folder)
                return
            file.seek(size + size % 2, os.SEEK_CUR)
    raise CannotMake(f"{archive} holds no data.tar.xz")


def compilers(target: str, folder: str) -> dict[str, str]:
    """Return the environment that names the target's compiler and archiver, as programs of one word each."""
    environment = {**os.environ, "LC_ALL": "C"}
    for name in ("CFLAGS", "CPPFLAGS", "LDFLAGS", "PYTHONPATH", "PYTHONHOME", "MAKEFLAGS"):
        environment.pop(name, None)
    os.makedirs(folder, exist_ok=True)
    if target == NATIVE:
        return {**environment, "CC": "gcc", "CXX": "g++", "AR": "ar", "RANLIB": "ranlib"}
    tools = {
        "CC": f"cc -target {ZIG_TARGETS[target]} {ZIG_OPTIONS}",
        "CXX": f"c++ -target {ZIG_TARGETS[target]} {ZIG_OPTIONS}",
        "AR": "ar",
        "RANLIB": "ranlib",
    }
    for variable, command in tools.items():
        path = os.path.join(folder, f"zig-{command.split()[0]}")
        program(path, f'exec "{zig()}" {command} "$@"')
        environment[variable] = path
    environment["ZIG_GLOBAL_CACHE_DIR"] = os.path.join(CACHE, "zig")
    environment["ZIG_LOCAL_CACHE_DIR"] = os.path.join(folder, "zig")
    return environment


def zig() -> str:
    """Return zig's path. Raises CannotMake."""
    try:
        import ziglang  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise CannotMake(f"no zig: {sys.executable} -m pip install ziglang") from None
    return os.path.join(os.path.dirname(ziglang.__file__), "zig")


def program(path: str, line: str) -> None:
    """Write a program of one line."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    write(path, f"#!/bin/sh\n{line}\n")
    os.chmod(path, 0o755)


def write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def source(name: str, table: dict[str, tuple[str, str]]) -> str:
    """Return the folder of an unpacked source archive."""
    return kept(f"source-{name}", lambda folder: unpack(download(*table[name]), folder))


def download(url: str, sha256: str) -> str:
    """Return the path of the archive, fetched once and checked. Raises CannotMake."""
    path = os.path.join(CACHE, "archives", url.rsplit("/", 1)[1])
    if os.path.exists(path):
        return path
    say(f"fetch {url}")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    unfinished = f"{path}.{os.getpid()}.{threading.get_ident()}"
    try:
        with urllib.request.urlopen(url, timeout=60) as answer, open(unfinished, "wb") as file:
            shutil.copyfileobj(answer, file)
    except OSError as error:
        raise CannotMake(f"{url}: {error}") from None
    with open(unfinished, "rb") as file:
        found = hashlib.sha256(file.read()).hexdigest()
    if found != sha256:
        os.remove(unfinished)
        raise CannotMake(f"{url}: sha256 should be {sha256}, is {found}")
    os.rename(unfinished, path)
    return path


def unpack(archive: str, folder: str) -> None:
    """Unpack an archive that holds one folder, as `folder`."""
    unfinished = f"{folder}.build"
    with tarfile.open(archive) as tar:
        tar.extractall(unfinished)
    (top,) = os.listdir(unfinished)
    os.rename(os.path.join(unfinished, top), folder)


def kept(name: str, make: Callable[[str], None]) -> str:
    """Return the cache's folder of that name; when there is none, `make` it beside and rename it."""
    final = os.path.join(CACHE, name)
    if os.path.isdir(final):
        return final
    unfinished = os.path.join(CACHE, "making", f"{name}.{os.getpid()}.{threading.get_ident()}")
    os.makedirs(os.path.dirname(unfinished), exist_ok=True)
    begun = time.monotonic()
    try:
        make(unfinished)
        try:
            os.rename(unfinished, final)
        except OSError:
            # Another run was first: its result is as good.
            if not os.path.isdir(final):
                raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
        shutil.rmtree(f"{unfinished}.build", ignore_errors=True)
    say(f"{name}: {time.monotonic() - begun:.0f} s")
    return final


def run(command: list[str], folder: str, log: str, environment: dict[str, str]) -> None:
    """Run a step of a build. Its output goes to logs/<log>.log in the cache, which an error names."""
    path = os.path.join(CACHE, "logs", f"{log}.log")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    what = os.path.basename(command[0]) + (f" {command[1]}" if command[1:2] == ["install"] else "")
    say(f"{log}: {what} (log {path})")
    with open(path, "a") as file:
        file.write(f"\n== in {folder}: {' '.join(command)}\n")
        file.flush()
        try:
            done = subprocess.run(
                ["nice", *command],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
            )
        except OSError as error:
            raise CannotMake(f"{log}: {error}") from None
    if done.returncode:
        raise CannotMake(f"{log}: {what} ended with {done.returncode}, see {path}")


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
