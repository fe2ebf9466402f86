"""What a client of another framework connects to, as targets of `fastrpc.Client`: a `ClientEndpoint` has a
target and its options, and makes the client.

A server that is started gets the environment that those frameworks give it: a few variables of this
process, and the given ones. The other variables of this process may be secrets of the program.
"""

from __future__ import annotations

import os
import sys

from fastrpc.client.asynchronous import AsyncClient
from fastrpc.client.stdio import Stdio
from fastrpc.compat.errors import NotOffered
from fastrpc.compat.field_types import ModelType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Any

INHERITED = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER")
"""Variables of this process that a server gets without being given them."""

OF_HTTP_CLIENTS = ("accept", "accept-encoding", "connection", "content-type", "host", "user-agent")
"""Headers of a given HTTP client that are its library's own."""

SCRIPTS = {".py": sys.executable, ".js": "node"}
"""What runs a file with this ending."""


class StdioServerParameters(ModelType):
    """A server that is started: `command` and `args`; `env`, variables besides the inherited ones; `cwd`. The
    encoding of MCP is UTF-8, whatever `encoding` says."""

    def __init__(
        self,
        command: str,
        args: list[str] | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        encoding: str = "utf-8",
        encoding_error_handler: str = "strict",
    ) -> None:
        self.command = command
        self.args = list(args or ())
        self.env = env
        self.cwd = cwd
        self.encoding = encoding
        self.encoding_error_handler = encoding_error_handler


class _FewVariables(Stdio):
    """The transport to a server that does not inherit all of our environment."""

    def environment(self) -> dict[str, str]:
        everything = super().environment()
        kept = {name: everything[name] for name in INHERITED if name in everything}
        return {**kept, **(self._env or {})}


class _Client(AsyncClient):
    """A client of a server that is started with few variables."""

    def __init__(
        self, target: list[str], *, cwd: str | None, env: Mapping[str, str], stderr: bool, **options: Any
    ) -> None:
        super().__init__(target, **options)
        self._make_transport = lambda: _FewVariables(target, cwd=cwd, env=env, stderr=stderr)


class ClientEndpoint:
    """Where a server is: the `target` of a client, and its `options`. Stands for the two streams to it, too.

    `close` ends the clients that were made and are still connected.
    """

    def __init__(self, target: Any, **options: Any) -> None:
        self.target = target
        self.options = options
        self._clients: list[AsyncClient] = []

    def client(self, **options: Any) -> AsyncClient:
        """Return a client that is not connected yet. Raises TypeError, ValueError, and ImportError for a URL
        without httptools."""
        make = _Client if isinstance(self.target, list) else AsyncClient
        client = make(self.target, **self.options, **options)
        client.takes_any_type = True  # `call_tool` hands them to extensions
        self._clients.append(client)
        return client

    async def close(self) -> None:
        """End what is connected."""
        while self._clients:
            await self._clients.pop().close()

    def proxy(self) -> Any:
        """Return a proxy of this server, to mount it beside others. Raises DefinitionError."""
        from fastrpc.server import Server

        if not isinstance(self.target, list):
            return Server.proxy(self.target, **self.options)
        environment = _FewVariables(self.target, env=self.options["env"]).environment()
        return Server.proxy(self.target, cwd=self.options["cwd"], env=environment)


def command(
    program: str,
    args: Any = (),
    env: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    stderr: bool = True,
) -> ClientEndpoint:
    """Return the endpoint for a server that is started."""
    where = None if cwd is None else os.fspath(cwd)
    return ClientEndpoint([program, *args], cwd=where, env=dict(env or {}), stderr=stderr)


def address(url: Any, headers: Mapping[str, str] | None = None, auth: Any = None) -> ClientEndpoint:
    """Return the endpoint for a URL. Raises NotOffered for an `auth` that is neither a bearer token nor
    ``"oauth"``."""
    options: dict[str, Any] = {"headers": headers} if headers else {}
    if isinstance(auth, str) and auth == "oauth":
        options["auth"] = auth
    elif auth is not None:
        options["token"] = _token_of(auth)
    return ClientEndpoint(str(url), **options)


def _token_of(auth: Any) -> str:
    """Return a bearer token: a str, or an object of FastMCP that holds one."""
    found = getattr(auth, "token", auth)
    if hasattr(found, "get_secret_value"):
        found = found.get_secret_value()
    if not isinstance(found, str):
        raise NotOffered("fastrpc.compat: auth takes a bearer token, a str; put other credentials in headers")
    return found


def headers_of(http_client: Any) -> dict[str, str]:
    """Return the headers that were given to an HTTP client. Raises NotOffered for what cannot be taken over
    from it."""
    if http_client is None:
        return {}
    if getattr(http_client, "auth", None) is not None:
        raise NotOffered("fastrpc.compat: http_client has an auth; give it headers")
    return {name: value for name, value in http_client.headers.items() if name not in OF_HTTP_CLIENTS}


def endpoint_of(where: Any, auth: Any = None) -> ClientEndpoint:
    """Return the endpoint for what FastMCP's client takes: a server object, the path of a script, a URL, a
    dict with ``mcpServers``, or one of its transports. Raises ValueError, and NotOffered."""
    if isinstance(where, ClientEndpoint):
        return where
    if hasattr(where, "endpoint"):  # what leads to a server, of `fastrpc.compat.client.sessions`
        found: ClientEndpoint = where.endpoint()
        return found
    if hasattr(where, "connect") and hasattr(where, "runtime"):
        return ClientEndpoint(where)
    if hasattr(where, "mcpServers"):
        where = where.model_dump(exclude_none=True)
    if isinstance(where, dict):
        return _configured(where)
    if hasattr(where, "command") and hasattr(where, "args"):
        return command(where.command, where.args, where.env, where.cwd)
    if hasattr(where, "url"):
        return address(where.url, getattr(where, "headers", None), auth or getattr(where, "auth", None))
    text = os.fspath(where) if isinstance(where, os.PathLike) else str(where)
    if text.lower().startswith(("http://", "https://")):
        return address(text, auth=auth)
    if isinstance(where, (str, os.PathLike)) and os.path.isfile(text):
        program = SCRIPTS.get(os.path.splitext(text)[1])
        if program is not None:
            return command(program, [text])
    if hasattr(where, "call_tool") or hasattr(where, "list_tools"):
        raise NotOffered(
            "fastrpc.compat: Client takes no server object of another framework; "
            "import FastMCP from fastrpc.compat, too"
        )
    expected = "a FastMCP or Server object, the path of a .py or .js file, an http URL, a dict of mcpServers"
    raise ValueError(f"transport: expected {expected}, got {where!r:.80}")


def _configured(config: dict[str, Any]) -> ClientEndpoint:
    """Return the endpoint for the servers of a configuration: one is reached directly, several are one server
    (`fastrpc.gateway`), their names prefixed with ``name_``."""
    servers = config.get("mcpServers", config)
    if not isinstance(servers, dict) or not servers:
        raise ValueError("mcpServers: expected an object with at least one server")
    found = {name: _entry(name, entry) for name, entry in servers.items()}
    if len(found) == 1:
        return next(iter(found.values()))
    from fastrpc.gateway import front_of

    return ClientEndpoint(
        front_of({name: endpoint.proxy() for name, endpoint in found.items()}, "mcpServers")
    )


def _entry(name: str, entry: Any) -> ClientEndpoint:
    if hasattr(entry, "to_transport"):
        return endpoint_of(entry.to_transport())
    if isinstance(entry, dict) and isinstance(entry.get("command"), str):
        return command(entry["command"], entry.get("args") or (), entry.get("env"), entry.get("cwd"))
    if isinstance(entry, dict) and isinstance(entry.get("url"), str):
        return address(entry["url"], entry.get("headers"), entry.get("auth"))
    raise ValueError(f"mcpServers: {name}: expected an object with command or url, got {entry!r:.80}")
