"""``fastrpc contracts install``: solc, forge and anvil from npm's registry, into a folder of the user's.

What is fetched is named, with its hash, in ``programs.lock.json``; an archive is checked against the hash
before anything of it is unpacked, and of it one file alone is. What is there already is left. Some 60 MB come
over the network, 140 MB are kept. Nothing is fetched at any other time.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile

from . import _programs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LOCK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs.lock.json")
REGISTRY = "https://registry.npmjs.org/"
MOST_BYTES = 200 * 1024 * 1024
TIMEOUT_SECONDS = 120
MACHINES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
EXAMPLES = "  fastrpc contracts install\n"


class CannotInstall(Exception):
    """Why, in one sentence."""


def main(arguments: list[str]) -> int:
    from fastrpc.command_line import CommandParser

    what = (
        "Fetch solc, forge and anvil from npm, checked against a lock file. Exit code 1 when one is missing."
    )
    CommandParser("contracts install", "", what, EXAMPLES).parse(arguments)
    try:
        for line in install(_programs.install_folder(), registry()):
            print(line, flush=True)
    except (CannotInstall, OSError) as error:
        print(f"fastrpc: contracts install: {error}", file=sys.stderr)
        return 1
    if shutil.which("node") is None:
        missing = "Node is missing; npm's solc needs it, version 18 or newer"
        print(f"fastrpc: contracts install: {missing}", file=sys.stderr)
        return 1
    return 0


def registry() -> str:
    """The registry that npm is told to use, else the public one."""
    for name in ("npm_config_registry", "NPM_CONFIG_REGISTRY"):
        if os.environ.get(name):
            return os.environ[name].rstrip("/") + "/"
    npm = shutil.which("npm")
    if npm is not None:
        asked = subprocess.run([npm, "config", "get", "registry"], capture_output=True, text=True, timeout=60)
        if asked.returncode == 0 and asked.stdout.startswith("http"):
            return asked.stdout.strip().rstrip("/") + "/"
    return REGISTRY


def machine() -> str:
    """This machine in the packages' words. Raises CannotInstall where there are none for it."""
    system, processor = sys.platform, MACHINES.get(platform.machine().lower())
    if system not in ("linux", "darwin") or processor is None:
        raise CannotInstall(
            f"npm has no forge for {system} on {platform.machine()}: install Foundry by its own way"
        )
    return f"{system}-{processor}"


def install(folder: str, registry: str, lock: str = LOCK) -> list[str]:
    """Put what the lock file names into the folder; return a line for each program. Raises CannotInstall."""
    with open(lock, encoding="utf-8") as file:
        programs: dict[str, dict[str, Any]] = json.load(file)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    here = machine()
    return [_install(name, facts, here, folder, registry) for name, facts in programs.items()]


def _install(name: str, facts: dict[str, Any], here: str, folder: str, registry: str) -> str:
    packages = facts["packages"]
    package = packages.get("any") or packages[here]
    place, note = os.path.join(folder, name), os.path.join(folder, f"{name}.integrity")
    if os.path.exists(place) and _text_of(note) == package["integrity"]:
        return f"{name:<12} {facts['version']:<8} is there: {place}"
    archive = fetched(registry + package["path"])
    check(archive, package["integrity"], name)
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        member = tar.extractfile(facts["member"])
        if member is None:
            raise CannotInstall(f"{package['path']} has no {facts['member']}")
        _put(place, member.read(), 0o755)
    _put(note, package["integrity"].encode(), 0o644)
    return f"{name:<12} {facts['version']:<8} {len(archive) // 1_000_000} MB: {place}"


def fetched(url: str) -> bytes:
    """Return what is at a URL, through the proxies of the environment. Raises CannotInstall."""
    import httpx

    content = bytearray()
    try:
        with httpx.stream("GET", url, timeout=TIMEOUT_SECONDS, follow_redirects=True) as response:
            response.raise_for_status()
            for chunk in response.iter_bytes():
                content += chunk
                if len(content) > MOST_BYTES:
                    raise CannotInstall(f"{url} has more than {MOST_BYTES} bytes")
    except httpx.HTTPError as error:
        raise CannotInstall(f"{url} cannot be fetched: {error or type(error).__name__}") from None
    return bytes(content)


def check(archive: bytes, integrity: str, name: str) -> None:
    """Raise CannotInstall unless an archive is what the lock file says (W3C: Subresource Integrity)."""
    kind, _, digest = integrity.partition("-")
    if base64.b64encode(hashlib.new(kind, archive).digest()).decode() != digest:
        raise CannotInstall(
            f"{name}: what the registry sent is not what the lock file names; nothing was unpacked"
        )


def _text_of(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""


def _put(place: str, content: bytes, mode: int) -> None:
    temporary = f"{place}.{os.getpid()}.new"
    with open(temporary, "wb") as file:
        os.fchmod(file.fileno(), mode)
        file.write(content)
    os.replace(temporary, place)
