"""FastMCP's transports as objects: where a client's server is. `Client` and proxies take them.

``Client(StdioTransport("uvx", ["mcp-server-time"]))``, ``Client(StreamableHttpTransport(url))``. Each leads
to a `ClientEndpoint`; nothing is started or connected here. A started server ends with its client, whatever
`keep_alive` says, and its standard error is shown on that of this process.
"""

from __future__ import annotations

import os
import sys

from fastrpc.compat.client.endpoints import ClientEndpoint, address, command, endpoint_of
from fastrpc.compat.errors import NotOffered
from fastrpc.compat.field_types import ModelType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from typing import Any


class ClientTransport:
    """What leads to a server."""

    def endpoint(self) -> ClientEndpoint:
        """Return where the server is. Raises ValueError, and NotOffered."""
        raise NotImplementedError(f"{type(self).__name__} has no endpoint")


class BearerAuth:
    """A bearer token for the `auth` of a client or a transport."""

    def __init__(self, token: str) -> None:
        self.token = token

    def __repr__(self) -> str:
        return "BearerAuth()"


# --------------------------------------------------------------------------- servers that are started


class StdioTransport(ClientTransport):
    """A server that is started: `command` and `args`, in the folder `cwd`, with the variables `env` besides
    the few that it inherits."""

    def __init__(
        self,
        command: str,
        args: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        keep_alive: bool | None = None,
        log_file: object = None,
    ) -> None:
        if log_file is not None:
            raise NotOffered(
                "fastrpc.compat: no log_file: a server's standard error is shown on that of this process"
            )
        self.command = command
        self.args = list(args)
        self.env = env
        self.cwd = cwd
        self.keep_alive = True if keep_alive is None else keep_alive

    def endpoint(self) -> ClientEndpoint:
        return command(self.command, self.args, self.env, self.cwd)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.command!r}, {self.args!r})"


class PythonStdioTransport(StdioTransport):
    """A server that is a Python file. Raises FileNotFoundError, and ValueError for another file."""

    def __init__(
        self,
        script_path: str | Path,
        args: Sequence[str] | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        python_cmd: str = sys.executable,
        **options: Any,
    ) -> None:
        script = _script(script_path, ".py", "Python")
        super().__init__(python_cmd, [script, *(args or ())], env, cwd, **options)


class NodeStdioTransport(StdioTransport):
    """A server that is a JavaScript file. Raises FileNotFoundError, and ValueError for another file."""

    def __init__(
        self,
        script_path: str | Path,
        args: Sequence[str] | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        node_cmd: str = "node",
        **options: Any,
    ) -> None:
        script = _script(script_path, ".js", "JavaScript")
        super().__init__(node_cmd, [script, *(args or ())], env, cwd, **options)


def _script(path: str | Path, ending: str, language: str) -> str:
    found = os.fspath(path)
    if not os.path.isfile(found):
        raise FileNotFoundError(f"script_path: there is no file {found!r:.200}")
    if not found.endswith(ending):
        raise ValueError(f"script_path: expected a {language} file ({ending}), got {found!r:.200}")
    return found


class UvStdioTransport(StdioTransport):
    """A server that uv runs: a command or, with `module`, a Python module, in a separate environment."""

    def __init__(
        self,
        command: str,
        args: Sequence[str] | None = None,
        module: bool = False,
        project_directory: str | Path | None = None,
        python_version: str | None = None,
        with_packages: Sequence[str] | None = None,
        with_requirements: str | Path | None = None,
        env_vars: Mapping[str, str] | None = None,
        keep_alive: bool | None = None,
    ) -> None:
        words = ["run", *_uv_options(python_version, with_packages)]
        words += ["--directory", os.fspath(project_directory)] if project_directory else []
        words += ["--with-requirements", os.fspath(with_requirements)] if with_requirements else []
        words += ["--module"] if module else []
        super().__init__("uv", [*words, command, *(args or ())], env_vars, None, keep_alive)


class UvxStdioTransport(StdioTransport):
    """A server that uvx installs and runs, by the name of its command; `from_package` has it."""

    def __init__(
        self,
        tool_name: str,
        tool_args: Sequence[str] | None = None,
        project_directory: str | Path | None = None,
        python_version: str | None = None,
        with_packages: Sequence[str] | None = None,
        from_package: str | None = None,
        env_vars: Mapping[str, str] | None = None,
        keep_alive: bool | None = None,
    ) -> None:
        words = _uv_options(python_version, with_packages)
        words += ["--from", from_package] if from_package else []
        super().__init__(
            "uvx", [*words, tool_name, *(tool_args or ())], env_vars, project_directory, keep_alive
        )


def _uv_options(python_version: str | None, with_packages: Sequence[str] | None) -> list[str]:
    words = ["--python", python_version] if python_version else []
    for package in with_packages or ():
        words += ["--with", package]
    return words


class NpxStdioTransport(StdioTransport):
    """A server that npx installs and runs, by the name of its package."""

    def __init__(
        self,
        package: str,
        args: Sequence[str] | None = None,
        project_directory: str | Path | None = None,
        env_vars: Mapping[str, str] | None = None,
        use_package_lock: bool = True,
        keep_alive: bool | None = None,
    ) -> None:
        words = ["--prefer-offline"] if use_package_lock else []
        super().__init__("npx", [*words, package, *(args or ())], env_vars, project_directory, keep_alive)


# --------------------------------------------------------------------------------- servers over HTTP


class StreamableHttpTransport(ClientTransport):
    """A server at a `url`; `auth` is a bearer token, a `BearerAuth`, or ``"oauth"``."""

    def __init__(
        self,
        url: Any,
        headers: Mapping[str, str] | None = None,
        auth: Any = None,
        *limits: object,
        httpx_client_factory: object = None,
        verify: object = None,
        sse_read_timeout: object = None,
    ) -> None:
        if httpx_client_factory is not None or verify not in (None, True):
            raise NotOffered(
                "fastrpc.compat: no httpx_client_factory and verify: requests are not sent by httpx; "
                "SSL_CERT_FILE names certificates to trust"
            )
        self.url = str(url)
        self.headers = dict(headers or {})
        self.auth = auth

    def endpoint(self) -> ClientEndpoint:
        return address(self.url, self.headers, self.auth)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"


class SSETransport(StreamableHttpTransport):
    """A server at a `url` that speaks HTTP+SSE (MCP 2024-11-05)."""


# --------------------------------------------------------------------------- servers of this process


class FastMCPTransport(ClientTransport):
    """A server object of this process."""

    def __init__(self, mcp: Any, raise_exceptions: bool = False) -> None:
        self.server = mcp

    def endpoint(self) -> ClientEndpoint:
        return endpoint_of(self.server)


# ------------------------------------------------------------------------------------ configurations


class StdioMCPServer(ModelType):
    """An entry of a configuration: a server that is started."""

    def __init__(
        self,
        *,
        command: str,
        args: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        **others: Any,
    ) -> None:
        self.command = command
        self.args = list(args)
        self.env = dict(env or {})
        self.cwd = cwd
        self.__dict__.update(others)  # what a configuration has for other programs

    def to_transport(self) -> StdioTransport:
        """Return the transport to it."""
        return StdioTransport(self.command, self.args, self.env, self.cwd)


class RemoteMCPServer(ModelType):
    """An entry of a configuration: a server at a `url`."""

    def __init__(
        self, *, url: str, headers: Mapping[str, str] | None = None, auth: Any = None, **others: Any
    ) -> None:
        self.url = url
        self.headers = dict(headers or {})
        self.auth = auth
        self.__dict__.update(others)

    def to_transport(self) -> StreamableHttpTransport:
        """Return the transport to it."""
        return StreamableHttpTransport(self.url, self.headers, self.auth)


class MCPConfig(ModelType):
    """A configuration of servers, by name. Raises ValueError for an entry without command or url."""

    def __init__(self, *, mcpServers: Mapping[str, Any] | None = None, **others: Any) -> None:
        self.mcpServers = {name: _server(name, entry) for name, entry in (mcpServers or {}).items()}
        self.__dict__.update(others)

    @classmethod
    def from_dict(cls, config: Mapping[str, Any]) -> MCPConfig:
        """Return the configuration in a dict: of its servers, or with ``mcpServers``. Raises ValueError."""
        return cls(**config) if "mcpServers" in config else cls(mcpServers=config)

    @classmethod
    def from_file(cls, file_path: str | Path) -> MCPConfig:
        """Return the configuration in a JSON file. Raises OSError and ValueError."""
        from json import loads

        with open(file_path, encoding="utf-8") as file:
            return cls.from_dict(loads(file.read() or "{}"))


def _server(name: str, entry: Any) -> StdioMCPServer | RemoteMCPServer:
    if isinstance(entry, (StdioMCPServer, RemoteMCPServer)):
        return entry
    if isinstance(entry, dict) and isinstance(entry.get("command"), str):
        return StdioMCPServer(**entry)
    if isinstance(entry, dict) and isinstance(entry.get("url"), str):
        return RemoteMCPServer(**entry)
    raise ValueError(f"mcpServers: {name}: expected an object with command or url, got {entry!r:.80}")


class MCPConfigTransport(ClientTransport):
    """The servers of a configuration, as one; their names are prefixed where there are several."""

    def __init__(self, config: MCPConfig | Mapping[str, Any]) -> None:
        self.config = config if isinstance(config, MCPConfig) else MCPConfig.from_dict(config)

    def endpoint(self) -> ClientEndpoint:
        return endpoint_of(self.config)


def infer_transport(transport: Any) -> ClientTransport:
    """Return the transport to what `Client` takes. Raises ValueError, and NotOffered."""
    if isinstance(transport, ClientTransport):
        return transport
    if isinstance(transport, (MCPConfig, dict)):
        return MCPConfigTransport(transport)
    found = endpoint_of(transport)
    if isinstance(found.target, list):
        program, *args = found.target
        return StdioTransport(program, args, found.options.get("env"), found.options.get("cwd"))
    if isinstance(found.target, str):
        kind = SSETransport if found.target.rstrip("/").endswith("/sse") else StreamableHttpTransport
        return kind(found.target)
    return FastMCPTransport(found.target)
