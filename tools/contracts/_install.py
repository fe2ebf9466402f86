"""``fastrpc contracts install``: installs solc, forge and anvil from npm's registry into a folder of the
user.

``programs.lock.json`` names the downloads with their hashes. An archive is checked against its hash before
anything is unpacked, and only one file of it is unpacked. Installed programs are left unchanged. Some 60 MB
are downloaded and 140 MB stored. Nothing is downloaded at any other time. Proxies and certificates come from
the environment; npm's own settings for them (``proxy``, ``cafile``, tokens) are not read.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

from . import _programs
from ._errors import EngineError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO, Any

LOCK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs.lock.json")
REGISTRY = "https://registry.npmjs.org/"
MOST_BYTES = 200 * 1024 * 1024
TIMEOUT_SECONDS = 120
DOWNLOAD_SECONDS = 1800.0
"""The longest total time of a download, even while data arrive."""
NODE_VERSION = 18
MACHINES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
EXAMPLES = "  fastrpc contracts install\n"


class CannotInstall(Exception):
    """The reason, in one sentence."""


def main(arguments: list[str]) -> int:
    from fastrpc.command_line import CommandParser

    what = (
        "Fetch solc, forge and anvil from npm, checked against a lock file. Exit code 1 when one is missing."
    )
    CommandParser("contracts install", "", what, EXAMPLES).parse(arguments)
    try:
        for line in install(_programs.install_folder(), registry()):
            print(line, flush=True)
        need_node()
    except (CannotInstall, EngineError, OSError) as error:
        print(f"fastrpc: contracts install: {error}", file=sys.stderr)
        return 1
    return 0


def need_node() -> None:
    """Raise CannotInstall or EngineError if the compiler is npm's and Node is missing."""
    if not _programs.find("solc").endswith(".js"):
        return
    said = _said_by([_programs.find("node"), "--version"])
    found = re.match(r"v([0-9]+)\.", said)
    if found is None or int(found[1]) < NODE_VERSION:
        raise CannotInstall(
            f"npm's solc needs Node {NODE_VERSION} or newer; here is {said or 'another program'}"
        )


def registry() -> str:
    """The registry in npm's configuration, else the public one."""
    for name in ("npm_config_registry", "NPM_CONFIG_REGISTRY"):
        if os.environ.get(name):
            return os.environ[name].rstrip("/") + "/"
    npm = shutil.which("npm")
    configured = _said_by([npm, "config", "get", "registry"]) if npm is not None else ""
    return configured.rstrip("/") + "/" if configured.startswith("http") else REGISTRY


def _said_by(command: list[str]) -> str:
    """The output of a program, empty if it fails."""
    try:
        asked = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return asked.stdout.strip() if asked.returncode == 0 else ""


def machine() -> str:
    """The name of this machine in the packages' terms. Raises CannotInstall if they have none for it."""
    system, processor = sys.platform, MACHINES.get(platform.machine().lower())
    if system not in ("linux", "darwin") or processor is None:
        raise CannotInstall(
            f"npm has no forge for {system} on {platform.machine()}: install Foundry by its own way"
        )
    return f"{system}-{processor}"


def install(folder: str, registry: str, lock: str = LOCK) -> Iterator[str]:
    """Install the programs of the lock file into the folder; yield a line for each. Raises CannotInstall."""
    with open(lock, encoding="utf-8") as file:
        programs: dict[str, dict[str, Any]] = json.load(file)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    here = machine()
    for name, facts in programs.items():
        yield _install(name, facts, here, folder, registry)


def _install(name: str, facts: dict[str, Any], here: str, folder: str, registry: str) -> str:
    packages = facts["packages"]
    package = packages.get("any") or packages[here]
    place, note = os.path.join(folder, name), os.path.join(folder, f"{name}.integrity")
    if os.path.exists(place) and _text_of(note) == package["integrity"]:
        return f"{name:<12} {facts['version']:<8} is there: {place}"
    with tempfile.TemporaryFile(dir=folder) as archive:  # without a name, so that it vanishes in any case
        digest = fetch(registry + package["path"], archive, name)
        if digest != package["integrity"]:
            raise CannotInstall(
                f"{name}: what the registry sent is not what the lock file names; nothing was unpacked"
            )
        size = archive.seek(0, os.SEEK_END)
        archive.seek(0)
        unpack(archive, facts["member"], place)
    with _replacing(note, 0o644) as file:
        file.write(package["integrity"].encode())
    return f"{name:<12} {facts['version']:<8} {size // 1_000_000} MB: {place}"


def fetch(url: str, to: IO[bytes], name: str) -> str:
    """Download a URL to a file; return its hash in the lock file's form (W3C: Subresource Integrity).

    Raises CannotInstall.
    """
    try:
        import httpx
    except ImportError:
        raise CannotInstall('httpx is not installed; pip install "fastrpc-mcp[contracts]"') from None
    shown, digest, size = re.sub(r"//[^/@]*@", "//", url), hashlib.sha512(), 0  # without its credentials

    async def download() -> None:
        nonlocal size
        async with (
            httpx.AsyncClient(timeout=TIMEOUT_SECONDS, follow_redirects=True) as client,
            client.stream("GET", url) as response,
        ):
            if response.status_code != 200:
                raise CannotInstall(f"{shown} cannot be fetched: status {response.status_code}")
            async for chunk in response.aiter_bytes(1_000_000):
                size += len(chunk)
                _show(f"{name}: {size // 1_000_000} MB")
                if size > MOST_BYTES:
                    raise CannotInstall(f"{shown} has more than {MOST_BYTES} bytes")
                digest.update(chunk)
                to.write(chunk)

    try:
        asyncio.run(asyncio.wait_for(download(), DOWNLOAD_SECONDS))
    except asyncio.TimeoutError:
        raise CannotInstall(f"{shown} is not complete after {DOWNLOAD_SECONDS:g} s") from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise CannotInstall(f"{shown} cannot be fetched: {error or type(error).__name__}") from None
    finally:
        _show("")
    return f"sha512-{base64.b64encode(digest.digest()).decode()}"


def _show(progress: str) -> None:
    """Show the progress, on a terminal only."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{progress}", end="", file=sys.stderr, flush=True)


def unpack(archive: IO[bytes], wanted: str, place: str) -> None:
    """Unpack one file of an archive as the program at a path, and write no other. Raises CannotInstall."""
    try:
        with tarfile.open(fileobj=archive, mode="r|gz") as tar:
            for member in tar:
                if member.name == wanted and (content := tar.extractfile(member)) is not None:
                    with _replacing(place, 0o755) as file:
                        shutil.copyfileobj(content, file, 1024 * 1024)
                    return
    except tarfile.TarError as error:
        raise CannotInstall(f"{wanted} cannot be unpacked: {error}") from None
    raise CannotInstall(f"the archive has no {wanted}")


def _text_of(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""


@contextlib.contextmanager
def _replacing(place: str, mode: int) -> Iterator[IO[bytes]]:
    """A file to write, which replaces that path when it is complete, and vanishes if it is not."""
    with tempfile.NamedTemporaryFile(dir=os.path.dirname(place), delete=False) as file:
        try:
            yield file
            os.fchmod(file.fileno(), mode)
            file.flush()
            os.replace(file.name, place)
        except BaseException:
            os.unlink(file.name)
            raise
