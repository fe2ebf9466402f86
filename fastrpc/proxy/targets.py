"""The address of an upstream server: a command that starts it, or a URL.

`target_of` validates the arguments of `Server.proxy` before anything is started or sent. A target creates the
connection when it is needed; the modules for HTTP are imported then.
"""

from __future__ import annotations

from dataclasses import dataclass

from fastrpc.client.stdio import HeardProcess, Stdio
from fastrpc.client.targets import SCHEMES
from fastrpc.errors import ConnectionLost, DefinitionError, Reworded
from fastrpc.protocol.versions import LATEST_SESSION_VERSION, VERSIONS
from fastrpc.proxy.upstream import UpstreamClient

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from fastrpc._core.client_stream import ClientStream
    from fastrpc.client.transport import ConnectionTransport
    from fastrpc.proxy.upstream import Owner

COMMAND_OPTIONS = ("cwd", "env")


@dataclass(eq=False)
class UpstreamTarget:
    """The address of an upstream server. `name`: the proxy's by default, that of the command, or the host;
    `shown`: the server's name in messages. `starts`: whether the proxy starts the server, which then does not
    become available again by itself, and gets calls as bytes: its session over pipes has one version.
    `login_seconds`: how long a person may take to log in, if one has to; else 0."""

    name: str
    shown: str
    new_transport: Callable[[str], ConnectionTransport]
    version: str | None
    starts: bool
    login_seconds: float = 0.0

    def connect(self, owner: Owner, initialize_params: dict[str, Any]) -> UpstreamClient:
        """Return a new connection, which is not open yet."""
        return UpstreamClient(owner, initialize_params, self.new_transport(self.shown), self.version)


def target_of(where: list[str] | str, options: dict[str, Any]) -> UpstreamTarget:
    """Return the target for a URL or a command, and remove its options from `options`.

    Options of a command: ``cwd`` and ``env`` of the child (`env`: the complete environment, by default this
    process's own). Options of a URL: ``protocol_version``, by default the latest that the server supports,
    and those of `fastrpc.client.http.address.Remote`. Raises DefinitionError.
    """
    if isinstance(where, str):
        return _remote_target(where, options)
    given = _taken(COMMAND_OPTIONS, options)
    if not where or not all(isinstance(part, str) for part in where):
        raise DefinitionError(f"proxy: expected a command, a list of str, got {where!r:.80}")
    return UpstreamTarget(
        where[0].rpartition("/")[2],
        where[0],
        lambda shown: ChildTransport(shown, where, **given),
        LATEST_SESSION_VERSION,
        starts=True,
    )


def _remote_target(url: str, options: dict[str, Any]) -> UpstreamTarget:
    from fastrpc.client.http.address import Remote

    if not url.lower().startswith(SCHEMES):
        raise DefinitionError(f"proxy: expected a command, a list of str, or an http URL, got {url!r:.80}")
    version = options.pop("protocol_version", None)
    if version is not None and version not in VERSIONS:
        known = ", ".join(VERSIONS)
        raise DefinitionError(f"proxy: protocol_version={version!r:.40}: expected one of {known}")
    with Reworded((ValueError, ImportError), DefinitionError, "proxy: "):
        remote = Remote(url, **_taken(Remote.OPTIONS, options))

    def new_transport(shown: str) -> ConnectionTransport:
        from fastrpc.client.http.transport import Http

        return Http(remote)

    return UpstreamTarget(
        remote.host, remote.shown, new_transport, version, starts=False, login_seconds=remote.login_seconds
    )


def _taken(names: tuple[str, ...], options: dict[str, Any]) -> dict[str, Any]:
    return {name: options.pop(name) for name in names if name in options}


class ChildTransport(Stdio):
    """The transport to a child process with a complete environment. Its errors do not name the server: those
    of the proxy do."""

    def __init__(self, shown: str, command: list[str], **options: Any) -> None:
        super().__init__(command, **options)
        self.shown = shown

    async def open(self, stream: ClientStream, on_lost: Callable[[ConnectionLost], object]) -> None:
        """Start the process. Raises ProgramError."""

        def lost(reason: str) -> None:
            on_lost(ConnectionLost(reason))

        self.process = HeardProcess(self._command, self._cwd, self._env, stream, lost, name=self.shown)

    async def close(self) -> None:
        if self.process is not None:  # whose end is reported, unlike that of a client's server
            await self.process.leave()
