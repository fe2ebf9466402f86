"""The reader for a call, from its context: the owner, and the class of the caller."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc import Caller, Context

    from ._store.entries import Reader


def reader_of(context: Context) -> Reader:
    """Return the reader of a call."""
    return reader_for(context.caller)


def reader_for(caller: Caller) -> Reader:
    """Return the reader for a caller. A user of the operating system differs from the owner of a token with
    the same name."""
    from ._store.entries import Reader

    is_user = caller.principal.startswith("os:")
    return Reader(caller.principal if is_user else caller.owner, caller.caller_class)
