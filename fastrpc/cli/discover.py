"""``fastrpc discover``: prints the servers in the configuration files of the MCP clients on this machine.

Reads the files that `fastrpc install-client` writes, and those of the project in the working directory. No
server is started. Values of variables and headers are masked, because they may be secret; ``${VAR}`` is not.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from fastrpc.cli import parser
from fastrpc.cli._catalogue import print_json, print_lines
from fastrpc.cli._client_files import read
from fastrpc.cli._client_formats import ClientProgram, JsonClient
from fastrpc.cli._clients import CLIENTS
from fastrpc.client.config import FILE_NAME, ServerEntry, entry_of, find_config
from fastrpc.diagnostics import write_line
from fastrpc.errors import FastrpcError, InvalidConfig
from fastrpc.redaction import MASK, masked
from fastrpc.terminal.text import plain

EXAMPLES = """\
  fastrpc discover                                      all clients on this machine
  fastrpc discover --json | jq '.[].name'
  fastrpc list shop --config ~/.cursor/mcp.json         what one of them offers
"""
PROJECT_FILES = (
    ("cursor", os.path.join(".cursor", "mcp.json")),
    ("vscode", os.path.join(".vscode", "mcp.json")),
)

REFERENCE = re.compile(r"\$\{(?:env:|input:)?[A-Za-z_][A-Za-z0-9_-]{0,100}\}")
"""A reference to a variable without a default value, which could be secret."""


class DiscoveredServer(NamedTuple):
    """A server in a configuration file: the client, the file, the project (or ""), the server's name, and its
    entry, or the error in it."""

    client: str
    path: str
    project: str
    name: str
    entry: ServerEntry | str


def main(arguments: list[str]) -> int:
    """Print the configured servers; return 0."""
    options = parser("discover", "[--json]", EXAMPLES)
    options.option("--json", "print JSON; values are masked there too")
    chosen = options.parse(arguments)
    found = list(_all())
    if chosen.json:
        print_json([_plain(server) for server in found])
    elif found:
        print_lines(_lines(found))
    else:
        print(f"None of {', '.join(client.title for client in CLIENTS.values())} knows a server.")
    return 0


def _all() -> Iterator[DiscoveredServer]:
    """Yield the servers of all files that exist. An unreadable file causes a warning on standard error."""
    for client in CLIENTS.values():
        yield from _in_file(client, client.path())
    nearest = find_config()
    if nearest is not None:
        yield from _in_file(JsonClient(FILE_NAME, lambda: nearest), nearest)
    for name, path in PROJECT_FILES:
        yield from _in_file(CLIENTS[name], os.path.abspath(path))


def _in_file(client: ClientProgram, path: str) -> Iterator[DiscoveredServer]:
    if not os.path.exists(path):
        return
    try:
        text = read(path)
        for name, raw in client.servers(text).items():
            yield DiscoveredServer(client.title, path, "", name, _entry(raw))
        if isinstance(client, JsonClient):
            for project, servers in client.servers_of_projects(text).items():
                for name, raw in servers.items():
                    yield DiscoveredServer(client.title, path, project, name, _entry(raw))
    except FastrpcError as error:
        reason = str(error).removeprefix(f"{path}: ")
        write_line(f"fastrpc: warning: {_short(path)}: {reason}")


def _entry(raw: Any) -> ServerEntry | str:
    try:
        return entry_of(raw)
    except InvalidConfig as error:
        return str(error)


def _lines(found: list[DiscoveredServer]) -> Iterator[str]:
    """Yield the lines of the text output: a heading for each file, and for each project in it."""
    heading = None
    width = max(len(plain(server.name)) for server in found)
    for server in found:
        project = f", project {plain(_short(server.project))}" if server.project else ""
        new = f"{server.client} ({_short(server.path)}{project})"
        if new != heading:
            if heading is not None:
                yield ""
            yield new
            heading = new
        yield f"  {plain(server.name).ljust(width)}  {_how(server.entry)}"


def _how(entry: ServerEntry | str) -> str:
    """Return the command or URL of a server with its options, in one line."""
    if isinstance(entry, str):
        return f"cannot be used: {plain(entry)}"
    import shlex

    parts = [masked(entry.url or shlex.join(entry.target))]
    if entry.cwd is not None:
        parts.append(f"in {_short(entry.cwd)}")
    values = _masked_values({**entry.env, **entry.headers})
    parts += [f"{name}={value}" for name, value in values.items()]
    if not entry.enabled:
        parts.append("(switched off)")
    return plain("  ".join(parts))


def _plain(server: DiscoveredServer) -> dict[str, Any]:
    """Return a server as JSON, with masked values."""
    found: dict[str, Any] = {"name": server.name, "client": server.client, "file": server.path}
    if server.project:
        found["project"] = server.project
    entry = server.entry
    if isinstance(entry, str):
        return {**found, "error": entry}
    found |= {"transport": entry.transport, "enabled": entry.enabled}
    if entry.url:
        found |= {"url": masked(entry.url), "headers": _masked_values(entry.headers)}
    else:
        arguments, env = _masked_arguments(entry.args), _masked_values(entry.env)
        found |= {"command": entry.command, "args": arguments, "env": env}
    if entry.cwd is not None:
        found["cwd"] = entry.cwd
    return found


def _masked_arguments(arguments: list[str]) -> list[str]:
    """Return arguments with recognised secrets masked, also those after an option with a secret value."""
    found = []
    for before, argument in zip(["", *arguments], arguments, strict=False):
        alone = masked(argument)
        found.append(alone if masked(f"{before} {argument}").endswith(alone) else MASK)
    return found


def _masked_values(values: dict[str, str]) -> dict[str, str]:
    """Return values, those masked that do not only refer to variables."""
    return {
        name: MASK if REFERENCE.sub("", value).replace("Bearer", "").strip() else value
        for name, value in values.items()
    }


def _short(path: str) -> str:
    """Return a path with the home folder as ``~``."""
    home = os.path.expanduser("~")
    return f"~{path[len(home) :]}" if path.startswith(home + os.sep) else path
