"""The guard: who may call what. `GuardedServer` applies it to a server of a program."""

from __future__ import annotations

from fastrpc.lazy_names import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc.guard.guarded_server import GuardedServer

__all__ = ["GuardedServer"]

_HOMES = {"GuardedServer": "fastrpc.guard.guarded_server"}


if not TYPE_CHECKING:  # so that a type checker reports a misspelled name

    def __getattr__(name: str) -> object:
        return load(globals(), _HOMES, name)
