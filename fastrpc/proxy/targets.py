"""The address of an upstream server: a command that starts it, or a URL.

`target_of` validates the arguments of `Server.proxy` before anything is started or sent. A target creates the
connection when it is needed; the modules for HTTP are imported then.
"""

from __future__ import annotations

from fastrpc.client.stdio import HeardProcess
from fastrpc.client.transport import ConnectionTransport
from fastrpc.errors import ConnectionLost, DefinitionError
from fastrpc.protocol.versions import LATEST_SESSION_VERSION, VERSIONS
from fastrpc.proxy.upstream import UpstreamClient

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from fastrpc._core.client_stream import ClientStream
    from fastrpc.client.http.address import Remote
    from fastrpc.proxy.upstream import Owner

    class UpstreamTarget(Protocol):
        """The address of an upstream server: a command or a URL."""

        name: str
        """The proxy's name by default: that of the command, or the host."""
        shown: str
        """Its name in messages."""
        forwards: bool
        """Whether the connection may forward calls as bytes: a session over pipes, in one version."""
        comes_back: bool
        """Whether it may become available again without being started by the proxy."""
        login_seconds: float
        """How long a person may take to log in, if one has to; else 0."""

        def connect(self, owner: Owner, initialize_params: dict[str, Any]) -> UpstreamClient:
            """Return a new connection, which is not open yet."""


SCHEMES = ("http://", "https://")


def target_of(where: list[str] | str, options: dict[str, Any]) -> UpstreamTarget:
    """Return the target for a URL or a command, and remove its options from `options`.

    Options of a command: ``cwd`` and ``env`` of the child (`env`: the complete environment, by default this
    process's own). Options of a URL: ``protocol_version``, by default the latest that the server supports,
    and those of `fastrpc.client.http.address.Remote`. Raises DefinitionError.
    """
    if isinstance(where, str):
        from fastrpc.client.http.address import Remote

        if not where.lower().startswith(SCHEMES):
            raise DefinitionError(
                f"proxy: expected a command, a list of str, or an http URL, got {where!r:.80}"
            )
        version = options.pop("protocol_version", None)
        if version is not None and version not in VERSIONS:
            known = ", ".join(VERSIONS)
            raise DefinitionError(f"proxy: protocol_version={version!r:.40}: expected one of {known}")
        try:
            return Url(Remote(where, **_taken(Remote.OPTIONS, options)), version)
        except (ValueError, ImportError) as error:
            raise DefinitionError(f"proxy: {error}") from None
    return Command(where, **_taken(Command.OPTIONS, options))


def _taken(names: tuple[str, ...], options: dict[str, Any]) -> dict[str, Any]:
    return {name: options.pop(name) for name in names if name in options}


class Command:
    """A server that is started as a child process. `env`: its complete environment, by default that of this
    process."""

    comes_back = False
    forwards = True
    login_seconds = 0.0
    OPTIONS = ("cwd", "env")

    def __init__(
        self, command: list[str], *, cwd: str | None = None, env: dict[str, str] | None = None
    ) -> None:
        if not command or not all(isinstance(part, str) for part in command):
            raise DefinitionError(f"proxy: expected a command, a list of str, got {command!r:.80}")
        self.name = command[0].rpartition("/")[2]
        self.shown = command[0]
        self._command = command
        self._cwd = cwd
        self._env = env

    def connect(self, owner: Owner, initialize_params: dict[str, Any]) -> UpstreamClient:
        """Return a connection in the latest version that has an `initialize` handshake."""
        child = ChildTransport(self.shown, self._command, self._cwd, self._env)
        return UpstreamClient(owner, initialize_params, child, LATEST_SESSION_VERSION)


class ChildTransport(ConnectionTransport):
    """The transport to a child process, whose standard error is forwarded to that of this process."""

    def __init__(self, shown: str, command: list[str], cwd: str | None, env: dict[str, str] | None) -> None:
        self.shown = shown
        self._given = command, cwd, env
        self._process: HeardProcess | None = None

    async def open(self, stream: ClientStream, on_lost: Callable[[ConnectionLost], object]) -> None:
        """Start the process. Raises ProgramError."""
        self._process = HeardProcess(
            *self._given, stream, lambda reason: on_lost(ConnectionLost(reason)), name=self.shown
        )

    @property
    def pid(self) -> int:
        return 0 if self._process is None else self._process.pid

    @property
    def last_lines(self) -> list[str]:
        return [] if self._process is None else self._process.last_lines

    async def close(self) -> None:
        if self._process is not None:
            await self._process.leave()


class Url:
    """A server at a URL, which is not started by the proxy."""

    comes_back = True
    forwards = False

    def __init__(self, remote: Remote, version: str | None) -> None:
        self.name = remote.host
        self.shown = remote.shown
        self.login_seconds = remote.login_seconds
        self._remote = remote
        self._version = version

    def connect(self, owner: Owner, initialize_params: dict[str, Any]) -> UpstreamClient:
        from fastrpc.client.http.transport import Http

        return UpstreamClient(owner, initialize_params, Http(self._remote), self._version)
