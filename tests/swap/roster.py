"""Reads `servers.toml`: which public servers are tried, how each is started, and which requests it gets.

Only names, versions, commands and requests are there. `{folder}` in them is the folder of `fixtures`,
`{bin}` the programs of the server's environment, `{own}` that of servers of our own, for what no public one
shows. Needs the standard library of CPython 3.11 for TOML.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, replace
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
LIST = os.path.join(HERE, "servers.toml")
OWN = os.path.join(os.path.dirname(HERE), "fixtures", "compat", "fastmcp_parts")


@dataclass(frozen=True)
class Entry:
    """One public server."""

    name: str
    package: str
    framework: str
    """What it is written for: `SDK 1 FastMCP`, `SDK 1 Server`, `SDK 2 MCPServer`, `FastMCP 3` …"""
    command: list[str]
    python: str = "3.11"
    also: list[str] = field(default_factory=list)
    """Further requirements: the framework's version where the package leaves it open, and missing ones."""
    env: dict[str, str] = field(default_factory=dict)
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    reads: list[str] = field(default_factory=list)
    prompts: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def filled(self, folder: str, programs: str) -> tuple[list[str], dict[str, str]]:
        """The command and the environment of one run."""
        command = [fill(word, folder, programs) for word in self.command]
        if os.path.exists(os.path.join(programs, command[0])):
            command[0] = os.path.join(programs, command[0])
        env = {name: fill(value, folder, programs) for name, value in self.env.items()}
        return command, {"HOME": os.path.join(folder, "home"), **env}

    def requests(self) -> list[dict[str, Any]]:
        """The requests, as `fastrpc.swap.observation` takes them."""
        return [
            *({"tool": name, "arguments": arguments} for name, arguments in self.calls),
            *({"resource": uri} for uri in self.reads),
            *({"prompt": name, "arguments": arguments} for name, arguments in self.prompts),
        ]

    def placed(self, folder: str) -> Entry:
        """This entry with the folder filled into its requests."""
        found = {name: fill(getattr(self, name), folder) for name in ("calls", "reads", "prompts")}
        return replace(self, **found)


def fill(value: Any, folder: str, programs: str = "") -> Any:
    if isinstance(value, str):
        return value.replace("{folder}", folder).replace("{bin}", programs).replace("{own}", OWN)
    if isinstance(value, dict):
        return {name: fill(each, folder, programs) for name, each in value.items()}
    if isinstance(value, list):
        return [fill(each, folder, programs) for each in value]
    return value


def entries(path: str = LIST) -> list[Entry]:
    import tomllib

    with open(path, "rb") as file:
        found = tomllib.load(file)
    return [entry_of(one) for one in found["server"]]


def entry_of(one: dict[str, Any]) -> Entry:
    """An entry from its table; `calls` and `prompts` there are `["name", {arguments}]`."""
    given = dict(one)
    given.setdefault("name", re.split(r"[=<>\[]", given["package"])[0])
    given.setdefault("command", [given["name"]])
    return Entry(**given)
