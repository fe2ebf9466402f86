"""Where the server behind a proxy is to be found: a command that starts it, or a URL.

`target_of` checks what `Server.proxy` was given, before anything is started or sent. What speaks to a target
is made when it is to be reached; the modules that speak HTTP are imported then.
"""

from __future__ import annotations

from fastrpc.errors import DefinitionError
from fastrpc.proxy.peer import ChildPeer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    from fastrpc.proxy.peer import Owner, Peer
    from fastrpc.proxy.remote.address import Remote

    class Target(Protocol):
        """Where a server behind is to be found."""

        name: str
        """What the proxy is called unless it is given a name: the command's, or the host's."""
        shown: str
        """Its name in messages."""
        comes_back: bool
        """Whether one that is gone may come back without our doing."""

        def peer(self, owner: Owner, told: dict[str, Any]) -> Peer:
            """Return what speaks to it. Raises FastrpcError."""


SCHEMES = ("http://", "https://")


def target_of(where: list[str] | str, options: dict[str, Any]) -> Target:
    """Return the target that a URL or a command says, and take what is its own out of `options`.

    With a command: ``cwd`` and ``env`` for the child (env: the whole of it, this process's own unless given).
    With a URL: see `fastrpc.proxy.remote.address.Remote`. Raises DefinitionError.
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
    """A server that a command starts. `env` is the whole environment of it, our own unless given."""

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

    def peer(self, owner: Owner, told: dict[str, Any]) -> Peer:
        """Start it. Raises ProgramError."""
        return ChildPeer(owner, told, self._command, cwd=self._cwd, env=self._env)


class Url:
    """A server at a URL, which others start and stop."""

    comes_back = True

    def __init__(self, remote: Remote) -> None:
        self.name = remote.host
        self.shown = remote.shown
        self._remote = remote

    def peer(self, owner: Owner, told: dict[str, Any]) -> Peer:
        from fastrpc.proxy.remote.peer import HttpPeer

        return HttpPeer(owner, told, self._remote)
