"""Where the upstream server is: a command that starts it, or a URL.

`target_of` validates the arguments of `Server.proxy` before anything is started or sent. A target creates the
connection when it is needed; the modules for HTTP are imported then.
"""

from __future__ import annotations

from fastrpc.errors import DefinitionError
from fastrpc.proxy.upstream import ProcessClient

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    from fastrpc.proxy.remote.address import Remote
    from fastrpc.proxy.upstream import Owner, UpstreamClient

    class Target(Protocol):
        """Where an upstream server is."""

        name: str
        """The proxy's name by default: that of the command, or the host."""
        shown: str
        """Its name in messages."""
        comes_back: bool
        """Whether it may become available again without being started by us."""

        def connect(self, owner: Owner, initialize_params: dict[str, Any]) -> UpstreamClient:
            """Return a new connection. Raises FastrpcError."""


SCHEMES = ("http://", "https://")


def target_of(where: list[str] | str, options: dict[str, Any]) -> Target:
    """Return the target for a URL or a command, and remove its options from `options`.

    Options of a command: ``cwd`` and ``env`` of the child (`env`: the complete environment, by default this
    process's own). Options of a URL: see `fastrpc.proxy.remote.address.Remote`. Raises DefinitionError.
    """
    if isinstance(where, str):
        from fastrpc.proxy.remote.address import Remote

        if not where.lower().startswith(SCHEMES):
            raise DefinitionError(
                f"proxy: expected a command, a list of str, or an http URL, got {where!r:.80}"
            )
        return Url(Remote(where, **_taken(Remote.OPTIONS, options)))
    return Command(where, **_taken(Command.OPTIONS, options))


def _taken(names: tuple[str, ...], options: dict[str, Any]) -> dict[str, Any]:
    return {name: options.pop(name) for name in names if name in options}


class Command:
    """A server that is started as a child process. `env` is its complete environment, by default our own."""

    comes_back = False
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
        """Start the process. Raises ProgramError."""
        return ProcessClient(owner, initialize_params, self._command, cwd=self._cwd, env=self._env)


class Url:
    """A server at a URL, which somebody else runs."""

    comes_back = True

    def __init__(self, remote: Remote) -> None:
        self.name = remote.host
        self.shown = remote.shown
        self._remote = remote

    def connect(self, owner: Owner, initialize_params: dict[str, Any]) -> UpstreamClient:
        from fastrpc.proxy.remote.client import HttpClient

        return HttpClient(owner, initialize_params, self._remote)
