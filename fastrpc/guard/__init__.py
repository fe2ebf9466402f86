"""The guard: who may call what. `GuardedServer` puts it in front of a server of your own program."""

from __future__ import annotations

from fastrpc.lazy_names import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc.guard.guarded_server import GuardedServer

__all__ = ["GuardedServer"]

_HOMES = {"GuardedServer": "fastrpc.guard.guarded_server"}


if not TYPE_CHECKING:  # a checker is to find a name that is misspelled

    def __getattr__(name: str) -> object:
        return load(globals(), _HOMES, name)
