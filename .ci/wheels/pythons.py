"""Gets the CPythons that wheels are built for and tested with, on a plain Linux x86_64 machine.

    python .ci/wheels/pythons.py headers 3.13 aarch64-linux-gnu       Python.h and the target's pyconfig.h
    python .ci/wheels/pythons.py interpreter 3.13 x86_64-linux-musl   an executable that runs here
    python .ci/wheels/pythons.py list                                 what is offered, and what is there
    python .ci/wheels/pythons.py own                                  the versions that need no making here

They are made from CPython's own source archives, as Debian's and Ubuntu's mirrors have them, by CPython's
own configure and make: with gcc for this machine, with zig (PyPI's `ziglang`) for the other two targets. Of
x86_64-linux-gnu the machine's own interpreters come first. Everything is kept in `.cache/pythons`
($FASTRPC_PYTHONS names another folder); a thing is made beside its place and renamed, so what is there is
whole. Its path is in the programs, so it cannot be moved; remove it to make all anew. Prints the path on
stdout, progress on stderr. On two busy cores headers take about a minute, an interpreter five, and the
libraries that its modules need eight more, once for a target. Nothing is installed on the machine but the
kernel's entry for aarch64 programs, of which `targets.run_aarch64_here` tells.
"""

from __future__ import annotations

import glob
import os
import re
import shutil
import subprocess
import sys
import zipfile

import targets
from targets import AARCH64, DEBIAN, MUSL, NATIVE, TARGETS, UBUNTU, CannotMake, kept, run

__all__ = ["AARCH64", "MUSL", "NATIVE", "TARGETS", "VERSIONS", "CannotMake", "headers", "interpreter"]

VERSIONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
# Without the GIL: for this machine only.
FREE_THREADED = ("3.14t",)

# A suite keeps the original archives it was released with as long as it is on the mirrors.
SOURCES = {
    "3.10": (
        UBUNTU + "pool/main/p/python3.10/python3.10_3.10.12.orig.tar.xz",
        "afb74bf19130e7a47d10312c8f5e784f24e0527981eab68e20546cfb865830b8",
    ),
    "3.11": (
        DEBIAN + "pool/main/p/python3.11/python3.11_3.11.2.orig.tar.gz",
        "2411c74bda5bbcfcddaf4531f66d1adc73f247f529aee981b029513aefdbf849",
    ),
    "3.12": (
        UBUNTU + "pool/main/p/python3.12/python3.12_3.12.3.orig.tar.xz",
        "56bfef1fdfc1221ce6720e43a661e3eb41785dd914ce99698d8c7896af4bdaa1",
    ),
    "3.13": (
        DEBIAN + "pool/main/p/python3.13/python3.13_3.13.5.orig.tar.xz",
        "93e583f243454e6e9e4588ca2c2662206ad961659863277afcdb96801647d640",
    ),
    "3.14": (
        UBUNTU + "pool/main/p/python3.14/python3.14_3.14.4.orig.tar.xz",
        "d923c51303e38e249136fc1bdf3568d56ecb03214efdef48516176d3d7faaef8",
    ),
}

# What configure would find out by running a program or looking about on the target's machine.
CONFIG_SITE = """\
ac_cv_file__dev_ptmx=yes
ac_cv_file__dev_ptc=no
ac_cv_buggy_getaddrinfo=no
"""
# The same for a cross build; Debian's own arm64 pyconfig.h says so too.
AARCH64_SITE = """\
ac_cv_aligned_required=no
ac_cv_broken_sem_getvalue=no
ac_cv_computed_gotos=yes
ac_cv_pthread_system_supported=yes
ac_cv_wchar_t_signed=no
ac_cv_working_tzset=yes
"""

# What a machine's own interpreter must have to be used, and what it is told by.
EXAMINE = """
import sys, sysconfig, os, ensurepip, venv, ctypes, sqlite3, ssl, zlib
assert os.path.exists(sysconfig.get_path("include") + "/Python.h")
assert sys.implementation.name == "cpython" and sys.prefix == sys.base_prefix
print("%d.%d" % sys.version_info[:2] + ("t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""))
print(sys.executable)
print(sysconfig.get_path("include"))
"""


def headers(version: str, target: str) -> str:
    """Return a folder with Python.h, all of Include/ and the target's own pyconfig.h. Raises CannotMake."""
    known(version, target)
    return kept(f"headers-{version}-{target}", lambda folder: make_headers(version, target, folder))


def own_headers(version: str) -> str | None:
    """Return the headers of the machine's own interpreter, if it has one that is complete by itself: Debian's
    leads to the system's folder, which no compiler for another system looks into."""
    answer = examined(machines_own(version) or "")
    if answer is None:
        return None
    with open(os.path.join(answer[2], "pyconfig.h"), encoding="utf-8") as file:
        return None if re.search(r"^# *include <", file.read(), re.MULTILINE) else answer[2]


def make_headers(version: str, target: str, folder: str) -> None:
    """Run configure alone; of the source tree only Include/ is wanted besides."""
    build = f"{folder}.build"
    # configure asks an interpreter of the same version only which it is: a stand-in spares making one.
    stand_in = None
    if target == AARCH64:
        stand_in = os.path.join(build, "tools", "python")
        targets.program(stand_in, f'case "$*" in *version*) echo {version};; *) exit 1;; esac')
    configure(version, target, build, ["--without-ensurepip"], stand_in, f"headers-{version}-{target}")
    shutil.copytree(os.path.join(targets.source(version.rstrip("t"), SOURCES), "Include"), folder)
    shutil.copy(os.path.join(build, "pyconfig.h"), folder)


def interpreter(version: str, target: str) -> str:
    """Return the path of an interpreter for the target that runs here, and whose children do. Raises
    CannotMake."""
    known(version, target)
    if target == NATIVE and (found := machines_own(version)):
        return found
    if target == AARCH64:
        targets.run_aarch64_here()
    name = f"python-{version}-{target}"
    folder = kept(name, lambda unfinished: make_interpreter(version, target, name, unfinished))
    return os.path.join(folder, "bin", f"python{version}")


def machines_own(version: str) -> str | None:
    """Return pyenv's newest interpreter of that version, else the path's, if it has all we need."""
    pattern = os.path.expanduser(f"~/.pyenv/versions/{version}.*/bin/python{version}")
    newest_last = sorted(
        glob.glob(pattern), key=lambda path: [int(part) for part in re.findall(r"\d+", path)]
    )
    for path in [*reversed(newest_last), shutil.which(f"python{version}")]:
        answer = examined(path) if path else None
        if answer and answer[0] == version:
            return answer[1]
    return None


def examined(path: str) -> list[str] | None:
    """Return what an interpreter says: version, its own path and that of its headers. None when it lacks
    something."""
    try:
        done = subprocess.run([path, "-c", EXAMINE], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.splitlines() if done.returncode == 0 else None


def make_interpreter(version: str, target: str, name: str, folder: str) -> None:
    """Configure, make and install for the final place, into a folder beside; add pip."""
    build = f"{folder}.build"
    final = os.path.join(targets.CACHE, name)
    libraries = targets.libraries(target)
    options = [f"--prefix={final}", f"--with-openssl={libraries}"]
    options += ["--without-ensurepip", "--disable-test-modules"]
    runs_here = interpreter(version, NATIVE) if target == AARCH64 else None
    environment = configure(version, target, build, options, runs_here, name, libraries)
    run(["make", targets.JOBS], build, name, environment)
    run(["make", "install", f"DESTDIR={build}/root"], build, name, environment)
    os.rename(f"{build}/root{final}", folder)
    for archive in glob.glob(f"{folder}/lib/**/libpython*.a", recursive=True):
        os.remove(archive)
    add_pip(version, folder)
    answer = examined(os.path.join(folder, "bin", f"python{version}"))
    if not answer or answer[0] != version:
        raise CannotMake(f"{name} was built, but lacks a module: see {targets.CACHE}/logs/{name}.log")


def configure(
    version: str,
    target: str,
    build: str,
    options: list[str],
    runs_here: str | None,
    log: str,
    libraries: str = "",
) -> dict[str, str]:
    """Run CPython's configure in the folder `build` and return the environment that make needs too.

    `runs_here` is an interpreter of the same version, for a cross build."""
    tools = os.path.join(build, "tools")
    environment = targets.compilers(target, tools)
    environment["CONFIG_SITE"] = os.path.join(build, "config.site")
    targets.write(environment["CONFIG_SITE"], CONFIG_SITE + (AARCH64_SITE if target == AARCH64 else ""))
    # Of this machine's libraries none may be taken for the target's: there are no .pc files in this folder.
    environment["PKG_CONFIG_LIBDIR"] = tools
    environment["OPT"] = "-DNDEBUG -O2 -fwrapv"
    if libraries:
        environment["CPPFLAGS"] = f"-I{libraries}/include"
        environment["LDFLAGS"] = f"-L{libraries}/lib -s"
        # An archive does not name what it needs itself.
        environment["LIBSQLITE3_CFLAGS"] = f"-I{libraries}/include"
        environment["LIBSQLITE3_LIBS"] = f"-L{libraries}/lib -lsqlite3 -lm"
        if target == MUSL:
            environment["LDFLAGS"] += f" -dynamic -Wl,-dynamic-linker,{targets.musl_loader()}"
    if target == MUSL:
        # By this macro of musl's stdarg.h, which zig has its own of, CPython 3.13 and later tell musl.
        environment["CPP"] = f"{environment['CC']} -E -D__DEFINED_va_list"
    if version.endswith("t"):
        options = [*options, "--disable-gil"]
    # The same name twice is no cross build: what is linked for musl runs here.
    options = [*options, f"--host={target}", f"--build={NATIVE if target == AARCH64 else target}"]
    sources = targets.source(version.rstrip("t"), SOURCES)
    if runs_here:
        # It may be of another patch release than the sources: then it must not be given their library, and
        # may not know the variable that names the target's settings. CPython 3.10 looks for it on the path.
        own = os.path.join(tools, f"python{version}")
        modules = f"${{PYTHONPATH%{sources}/Lib}}$_PYTHON_SYSCONFIGDATA_PATH"
        targets.program(own, f'PYTHONPATH="{modules}" exec "{runs_here}" "$@"')
        environment["PATH"] = tools + os.pathsep + environment["PATH"]
        options += [] if version == "3.10" else [f"--with-build-python={own}"]
    try:
        run([os.path.join(sources, "configure"), *options], build, log, environment)
    finally:
        if os.path.exists(os.path.join(build, "config.log")):
            shutil.copy(os.path.join(build, "config.log"), f"{targets.CACHE}/logs/{log}.config.log")
    return environment


def add_pip(version: str, folder: str) -> None:
    """Unpack the pip that ensurepip brings: what installing it comes to, but for scripts that would name the
    folder it is made in. `python -m pip` and `python -m venv` work."""
    (library,) = glob.glob(f"{folder}/lib/python{version}")
    (wheel,) = glob.glob(f"{library}/ensurepip/_bundled/pip-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(f"{library}/site-packages")


def known(version: str, target: str) -> None:
    """Raises CannotMake for what is not offered."""
    if target not in TARGETS:
        raise CannotMake(f"target should be one of {', '.join(TARGETS)}, is {target}")
    versions = offered(target)
    if version not in versions:
        raise CannotMake(f"version for {target} should be one of {', '.join(versions)}, is {version}")


def offered(target: str) -> tuple[str, ...]:
    return VERSIONS + FREE_THREADED if target == NATIVE else VERSIONS


def show_all() -> None:
    """Print each target and version with what is made already; makes nothing."""
    for target in TARGETS:
        for version in offered(target):
            own = machines_own(version) if target == NATIVE else None
            made = [
                part
                for part in ("headers", "python")
                if os.path.isdir(f"{targets.CACHE}/{part}-{version}-{target}")
            ]
            print(f"{version:6}{target:20}{own or ', '.join(made) or '-'}")


def main(arguments: list[str]) -> int:
    try:
        if arguments == ["list"]:
            show_all()
        elif arguments == ["own"]:
            print(*filter(machines_own, VERSIONS))
        elif len(arguments) == 3 and arguments[0] in ("headers", "interpreter"):
            action = headers if arguments[0] == "headers" else interpreter
            print(action(arguments[1], arguments[2]))
        else:
            targets.say(str(__doc__))
            return 2
    except CannotMake as error:
        targets.say(f"pythons: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
