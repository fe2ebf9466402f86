"""Agents as folders: SOUL.md, BOOT.md, TOOLS.md and a configuration in each, read again at each request.

The person who starts the server names the folder of all agents. This module follows no symbolic link below it
and writes nothing. A file that it cannot read raises `BrokenAgent`, for its agent alone.
"""

from __future__ import annotations

import json
import os
import re

from fastrpc import FastrpcError
from fastrpc.regular_files import read_regular

from . import _structured_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Stamps = dict[str, tuple[int, int, int]]

TEXTS = ("SOUL.md", "BOOT.md", "TOOLS.md")
CONFIGS = ("config.json", "config.toml", "config.yaml")
"""The first of these that exists is the agent's."""
ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
LARGEST_BYTES = 1024 * 1024
MOST_AGENTS = 500


class BrokenAgent(FastrpcError):
    """A file of an agent cannot be served."""


def all_agents(root: str) -> dict[str, Stamps]:
    """Return the files of each agent by its id, in order. Raises BrokenAgent if the folder of all cannot be
    read."""
    try:
        with os.scandir(root) as found:
            names = sorted(
                each.name for each in found if ID.fullmatch(each.name) and each.is_dir(follow_symlinks=False)
            )
    except OSError as error:
        raise BrokenAgent(f"--agents: {root}: {error.strerror}") from None
    agents: dict[str, Stamps] = {}
    for name in names:
        if len(agents) < MOST_AGENTS and (own := files(root, name)):
            agents[name] = own
    return agents


def files(root: str, id: str) -> Stamps:
    """Return the files of an agent by their names in URIs, each with a value that changes when the file is
    written."""
    place = os.path.join(root, id)
    if ID.fullmatch(id) is None or os.path.islink(place):
        return {}
    found: Stamps = {}
    for name in (*TEXTS, *CONFIGS):
        try:
            facts = os.lstat(os.path.join(place, name))
        except OSError:
            continue
        found.setdefault(
            name if name in TEXTS else "config", (facts.st_mtime_ns, facts.st_size, facts.st_ino)
        )
    return found


def text(root: str, id: str, name: str) -> str | None:
    """Return one of the texts, None if it is missing. Raises BrokenAgent."""
    data = _read(root, id, name) if name in TEXTS else None
    return None if data is None else _decoded(data, id, name)


def config(root: str, id: str) -> Any:
    """Return the configuration with its secrets masked, None if it is missing. Raises BrokenAgent."""
    from fastrpc.redaction import masked_data

    for name in CONFIGS:
        data = _read(root, id, name)
        if data is None:
            continue
        try:
            parsed = _structured_text.parse(_decoded(data, id, name), name.rpartition(".")[2])
        except _structured_text.Malformed as error:
            raise BrokenAgent(f"agent {id}: {name}: {error}") from None
        if not isinstance(parsed, dict):
            raise BrokenAgent(f"agent {id}: {name}: expected names and values, got {type(parsed).__name__}")
        try:
            return json.loads(json.dumps(masked_data(parsed), default=str))
        except (ValueError, TypeError, RecursionError) as error:
            raise BrokenAgent(f"agent {id}: {name}: {error!s:.200}") from None
    return None


def _read(root: str, id: str, name: str) -> bytes | None:
    if ID.fullmatch(id) is None:
        return None
    try:
        folder = os.open(os.path.join(root, id), os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return read_regular(name, LARGEST_BYTES, follow=False, dir_fd=folder)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BrokenAgent(f"agent {id}: {name}: {error.strerror}") from None
    finally:
        os.close(folder)


def _decoded(data: bytes, id: str, name: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BrokenAgent(f"agent {id}: {name}: not UTF-8 at byte {error.start:,}") from None
