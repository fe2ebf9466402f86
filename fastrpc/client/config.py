"""The servers of a configuration file, as MCP clients write them: ``.mcp.json`` and others.

    for name, entry in read_config(".mcp.json").items():
        print(name, entry.expanded().command)

The servers are members of ``mcpServers`` (most clients) or ``servers`` (VS Code); comments and trailing
commas are allowed. `ServerEntry.expanded` replaces variables (`fastrpc.client.variables`), so an entry with a
variable that is not set does not affect the others. A member that restricts tools is applied, or its entry is
refused; other unknown members are ignored. Reads one regular file; starts no server.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, replace

from fastrpc.errors import FastrpcError, InvalidConfig, Reworded
from fastrpc.globs import matches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Literal

    from fastrpc.client.options import TargetOptions


FILE_NAME = ".mcp.json"
SECTIONS = ("mcpServers", "servers")
LARGEST = 16 * 1024 * 1024
"""Bytes of a file; that of Claude Code contains a history, too."""

COMMANDS = ("command", "cmd")
ENVIRONMENTS = ("env", "environment", "envs")
ADDRESSES = ("url", "httpUrl", "serverUrl", "uri")
"""The names of each member in the files of different clients."""
ALLOWED_TOOLS = (
    *("includeTools", "enabledTools", "enabled_tools", "tools", "include_tools"),
    *("allowedTools", "allowed_tools", "availableTools", "available_tools"),
)
DENIED_TOOLS = (
    *("excludeTools", "disabledTools", "disabled_tools", "exclude_tools", "disallowedTools"),
    *("disallowed_tools", "deniedTools", "denied_tools", "blockedTools", "blocked_tools"),
)
"""Members with names of tools, or globs of them; each counts, where an entry has several."""
RESTRICTING = re.compile(
    r"(?:include|exclude|allow|disallow|enable|disable|den(?:y|ied)|block).*(?:tool|tag)"
)
"""In small letters: what else would say which tools may be used, and is not understood."""
TRANSPORTS = {"stdio": "stdio", "local": "stdio", "sse": "sse", "remote": "http"} | dict.fromkeys(
    ("http", "streamablehttp"), "http"
)
"""What ``type`` and ``transport`` say, in lower case, without ``-`` and ``_``."""


@dataclass(eq=False, repr=False, slots=True)
class ServerEntry:
    """The configuration of a server: a command with arguments and variables, or a URL with headers.

    `command` is "" for a server with a `url`, and the other way round. `args`: list of str; `env`: variables
    to add to this process's environment; `cwd`: the working directory, None for the current one.
    `transport`: ``stdio``, ``http`` or ``sse``. `auth`: ``"oauth"`` where the file asks for a login by OAuth,
    as FastMCP writes it, else None; a token that is written there is in `headers`. `enabled`: False where the
    file switches the server off. `allowed` and `denied`: globs of the names of tools, lists of which each has
    to have the tool's, and what none may have.
    """

    command: str = ""
    args: list[str] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    cwd: str | None = None
    url: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    transport: str = "stdio"
    auth: Literal["oauth"] | None = None
    enabled: bool = True
    allowed: list[list[str]] = field(default_factory=list)
    denied: list[str] = field(default_factory=list)

    @property
    def is_restricted(self) -> bool:
        """Whether the file does not let all tools of the server be used."""
        return bool(self.allowed or self.denied)

    def offers(self, tool: str) -> bool:
        """Whether the file lets a tool of the server be used."""
        is_allowed = all(_matches_one(tool, globs) for globs in self.allowed)
        return is_allowed and not _matches_one(tool, self.denied)

    def unmatched(self, tools: list[str]) -> list[str]:
        """Return what the file lets be used, or not, and matches none of these names."""
        globs = [glob for each in (*self.allowed, self.denied) for glob in each]
        return [glob for glob in globs if not any(matches(tool, glob) for tool in tools)]

    def __repr__(self) -> str:
        """Show the command or URL, without the variables and headers, which may be secret."""
        return f"{type(self).__name__}({self.target!r})"

    @property
    def target(self) -> str | list[str]:
        """What a client connects to: the URL, or the command with its arguments."""
        return self.url or [self.command, *self.args]

    @property
    def options(self) -> TargetOptions:
        """The options of a client of the target."""
        if not self.url:
            return {"cwd": self.cwd, "env": self.env}
        options: TargetOptions = {}
        if self.headers:
            options["headers"] = self.headers
        if self.auth is not None:
            options["auth"] = self.auth
        return options

    def expanded(self, environ: Mapping[str, str] | None = None) -> ServerEntry:
        """Return the entry with its variables replaced from `environ` (default: this process's environment).

        Raises InvalidConfig for a variable that is not set and has no default, and for any other ``${…}``.
        """
        from fastrpc.client import variables

        known = os.environ if environ is None else environ

        def expand(member: str, text: str) -> str:
            with Reworded(InvalidConfig, InvalidConfig, f"{member}: "):
                return variables.expanded(text, known)

        with Reworded(InvalidConfig, InvalidConfig, "args: "):
            arguments = [*variables.expanded_arguments(self.args, known, self.env)]
        return replace(
            self,
            command=expand("command", self.command),
            args=arguments,
            env={name: expand(f"env: {name}", value) for name, value in self.env.items()},
            cwd=None if self.cwd is None else os.path.expanduser(expand("cwd", self.cwd)),
            url=expand("url", self.url),
            headers={name: expand(f"headers: {name}", value) for name, value in self.headers.items()},
        )


def find_config(folder: str | None = None) -> str | None:
    """Return the path of the nearest ``.mcp.json`` in a folder (default: the current one) or above; None if
    there is none."""
    place = os.path.abspath(folder or os.curdir)
    while not os.path.isfile(path := os.path.join(place, FILE_NAME)):
        above = os.path.dirname(place)
        if above == place:
            return None
        place = above
    return path


def read_config(path: str) -> dict[str, ServerEntry]:
    """Return the servers of a file, by name, in the order of the file. Raises InvalidConfig."""
    servers = read_servers(path)
    with Reworded(InvalidConfig, InvalidConfig, f"{path}: "):
        return entries_of(servers)


def read_servers(path: str) -> dict[str, Any]:
    """Return the servers of a file as they are written there, by name. Raises InvalidConfig."""
    from fastrpc.json_text import parse
    from fastrpc.regular_files import read_regular

    with Reworded((OSError, FastrpcError), InvalidConfig, f"{path}: "):
        try:
            return servers_in(parse(read_regular(path, LARGEST).decode("utf-8-sig")).plain)
        except UnicodeDecodeError:
            raise InvalidConfig("not UTF-8") from None


def servers_in(document: Any) -> dict[str, Any]:
    """Return the servers of a file's content, as they are written there, by name. Raises InvalidConfig."""
    if not isinstance(document, dict):
        raise InvalidConfig(f"expected an object with {' or '.join(SECTIONS)}")
    section = next((name for name in SECTIONS if name in document), None)
    if section is None:
        raise InvalidConfig(f"there is neither {' nor '.join(SECTIONS)}")
    servers = document[section]
    if not isinstance(servers, dict):
        raise InvalidConfig(f"{section}: expected an object, got {_kind(servers)}")
    return servers


def entries_of(servers: Any) -> dict[str, ServerEntry]:
    """Return the value of ``mcpServers`` as entries, by name. Raises InvalidConfig."""
    if not isinstance(servers, dict):
        raise InvalidConfig(f"expected an object, got {_kind(servers)}")
    found = {}
    for name, raw in servers.items():
        with Reworded(InvalidConfig, InvalidConfig, f"{name}: "):
            found[name] = entry_of(raw)
    return found


def entry_of(raw: Any) -> ServerEntry:
    """Return one server's entry, as any of the known clients writes it. Raises InvalidConfig."""
    if not isinstance(raw, dict):
        raise InvalidConfig(f"expected an object, got {_kind(raw)}")
    command, args = _member(raw, COMMANDS), raw.get("args")
    words = command if isinstance(command, list) else [] if command is None else [command]
    first, *more = [*_texts("command", words), *_texts("args", [] if args is None else args)] or [""]
    address = _member(raw, ADDRESSES)
    url = "" if address is None else _text("url", address)
    transport = _transport(raw.get("type") or raw.get("transport") or "", bool(first.strip()), bool(url))
    if raw.get("envFile") is not None:
        raise InvalidConfig("envFile: is not supported; write the variables into env")
    allowed, denied, cwd = _lists(raw, ALLOWED_TOOLS), _lists(raw, DENIED_TOOLS), raw.get("cwd")
    for name in raw:
        if RESTRICTING.match(name.lower()) and name not in (*ALLOWED_TOOLS, *DENIED_TOOLS):
            raise InvalidConfig(
                f"{name}: is not known; write the names of tools in includeTools, excludeTools"
            )
    return ServerEntry(
        first if transport == "stdio" else "",
        more if transport == "stdio" else [],
        _table("env", _member(raw, ENVIRONMENTS)),
        cwd=None if cwd is None else _text("cwd", cwd),
        url="" if transport == "stdio" else url,
        headers=_headers(raw),
        transport=transport,
        auth="oauth" if url and raw.get("auth") == "oauth" else None,
        enabled=_flag(raw, "enabled", True) and not _flag(raw, "disabled", False),
        allowed=allowed,
        denied=[glob for globs in denied for glob in globs],
    )


def _matches_one(tool: str, globs: list[str]) -> bool:
    return any(matches(tool, glob) for glob in globs)


def _transport(kind: Any, has_command: bool, has_url: bool) -> str:
    """Return the transport of an entry that names this one, "" for none. Raises InvalidConfig where the entry
    says two things, or nothing."""
    if not has_command and not has_url:
        raise InvalidConfig("expected a command or a url")
    said = TRANSPORTS.get(str(kind).lower().replace("-", "").replace("_", "")) if kind else None
    if kind and said is None:
        raise InvalidConfig(f"type: expected stdio, http, streamable-http or sse, got {kind!r:.80}")
    if said is None and has_command and has_url:
        raise InvalidConfig("expected either command or url, or a type that says which of them to use")
    found = said or ("stdio" if has_command else "http")
    if not (has_command if found == "stdio" else has_url):
        raise InvalidConfig(f"type: {kind} needs a {'command' if found == 'stdio' else 'url'}")
    return found


def _kind(value: object) -> str:
    """Return what an error says of a value, which may be secret or contain what is."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    kinds = {dict: "an object", list: "an array", str: "a string", int: "a number", float: "a number"}
    return kinds.get(type(value), type(value).__name__)


def _flag(raw: dict[str, Any], name: str, default: bool) -> bool:
    value = raw.get(name)
    if value is not None and not isinstance(value, bool):
        raise InvalidConfig(f"{name}: expected true or false, got {_kind(value)}")
    return default if value is None else value


def _lists(raw: dict[str, Any], names: tuple[str, ...]) -> list[list[str]]:
    return [_texts(name, raw[name]) for name in names if raw.get(name) is not None]


def _member(raw: dict[str, Any], names: tuple[str, ...]) -> Any:
    """Return the value of the first of these members that is present, or None."""
    return next((raw[name] for name in names if raw.get(name) is not None), None)


def _text(member: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidConfig(f"{member}: expected a string, got {_kind(value)}")
    return value


def _texts(member: str, values: Any) -> list[str]:
    if not isinstance(values, list):
        raise InvalidConfig(f"{member}: expected an array of strings, got {_kind(values)}")
    return [_text(member, value) for value in values]


def _headers(raw: dict[str, Any]) -> dict[str, str]:
    """Return the headers of an entry, with the token that FastMCP's ``auth`` may be, unless they have one."""
    found, auth = _table("headers", raw.get("headers")), raw.get("auth")
    if (
        auth
        and isinstance(auth, str)
        and auth != "oauth"
        and not any(name.lower() == "authorization" for name in found)
    ):
        found["Authorization"] = f"Bearer {auth}"
    return found


def _table(member: str, values: Any) -> dict[str, str]:
    """Return an object of strings; numbers and booleans are written as JSON does."""
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise InvalidConfig(f"{member}: expected an object, got {_kind(values)}")
    found = {}
    for name, value in values.items():
        if isinstance(value, bool):
            value = "true" if value else "false"
        elif isinstance(value, (int, float)):
            value = str(value)
        if not isinstance(value, str):
            raise InvalidConfig(f"{member}: {name}: expected a string, got {_kind(value)}")
        found[name] = value
    return found
