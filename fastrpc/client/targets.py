"""The targets of a client: a command that starts a server, the URL of a server, or a `Server` object.

`transport_of` checks the target and its options before anything is started.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from fastrpc.client.in_memory import InMemoryServer
    from fastrpc.client.transport import ConnectionTransport

    Target = Sequence[str] | str | InMemoryServer

OF_COMMANDS = ("cwd", "env", "stderr")
SCHEMES = ("http://", "https://")


def transport_of(target: Any, options: dict[str, Any]) -> Callable[[], ConnectionTransport]:
    """Return a function that makes a new transport to the target. Raises TypeError, ValueError, and
    ImportError for a URL without httptools."""
    if isinstance(target, str) and target.lower().startswith(SCHEMES):
        from fastrpc.client.http.address import Remote

        _check(options, Remote.OPTIONS, "a URL")
        remote = Remote(target, **options)  # first: it says what is missing
        from fastrpc.client.http.transport import Http

        return lambda: Http(remote)
    if isinstance(target, (list, tuple)):
        if not target or not all(isinstance(part, str) for part in target):
            raise ValueError(f"target: expected a command, a list of str, got {target!r:.80}")
        _check(options, OF_COMMANDS, "a command")
        from fastrpc.client.stdio import Stdio

        return lambda: Stdio(target, **options)
    if hasattr(target, "connect") and hasattr(target, "runtime"):
        _check(options, (), "a Server")
        from fastrpc.client.in_memory import InMemory

        return lambda: InMemory(target)
    expected = "a command, a list of str, the http URL of a server, or a Server"
    raise TypeError(f"target: expected {expected}, got {target!r:.80}")


def _check(options: dict[str, Any], known: tuple[str, ...], kind: str) -> None:
    for name in options:
        if name not in known:
            there = f"those of {kind} are {', '.join(known)}" if known else f"{kind} has none"
            raise TypeError(f"{name}: no such option; {there}")
