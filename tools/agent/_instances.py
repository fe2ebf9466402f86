"""The servers that run on one state folder: each locks a file with its id while it lives.

So a server can tell which rows of the state belong to dead servers. Checking for other servers takes one
listing of a folder.
"""

from __future__ import annotations

import os
from _thread import allocate_lock  # threading itself would cost an import at the start

from fastrpc import ToolError, regular_files
from fastrpc.settings import STATE_DIR

from .. import _private_folder
from .._file_lock import lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sqlite3 import Connection

ENDING = ".lock"

_own: dict[str, tuple[str, int]] = {}  # folder -> id of this server and the descriptor that holds the lock
_making = allocate_lock()


def folder() -> str:
    return os.path.join(STATE_DIR.read(), "instances")


def own() -> str:
    """Return the id of this server. Raises ToolError if the state folder cannot be written."""
    place = folder()
    with _making:
        id, descriptor = _own.get(place, ("", -1))
        if id and os.path.lexists(_path(place, id)):
            return id
        if not _own:
            import atexit

            atexit.register(_leave)
        if id:  # the folder was emptied; rows of this server may still exist
            del _own[place]
            os.close(descriptor)
        id = id or f"{os.getpid()}-{os.urandom(6).hex()}"
        try:
            _own[place] = id, _made(place, id)
        except OSError as error:
            where = error.filename or place
            raise ToolError(f"The state cannot be stored in {where}: {error.strerror}.") from None
    return id


def _path(place: str, id: str) -> str:
    return os.path.join(place, id + ENDING)


def _made(place: str, id: str) -> int:
    """Make this server's file and return the descriptor that holds its lock."""
    inside = _private_folder.made_inside(*os.path.split(place))
    new = id + ".new"  # renamed to its name after it is locked, so no server finds it unlocked
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(new, flags, 0o600, dir_fd=inside)
        try:
            lock(descriptor)
            os.rename(new, id + ENDING, src_dir_fd=inside, dst_dir_fd=inside)
        except OSError:
            os.close(descriptor)
            raise
    finally:
        os.close(inside)
    return descriptor


def others() -> list[str]:
    """Return the ids of all servers but this one, alive or dead."""
    place = folder()
    mine = _own.get(place, ("", -1))[0]
    try:
        with os.scandir(place) as entries:
            ids = [
                entry.name.removesuffix(ENDING)
                for entry in entries
                if entry.name.endswith(ENDING) and entry.is_file(follow_symlinks=False)
            ]
    except OSError:
        return []
    return sorted(id for id in ids if id != mine)


def exist() -> bool:
    """Whether another server runs, or a dead one has left something."""
    return bool(others())


def alive(id: str) -> bool:
    """Whether a server still runs. On file systems without locks, every server seems to run."""
    place = folder()
    if id == _own.get(place, ("", -1))[0]:
        return True
    try:
        descriptor = regular_files.open_regular(_path(place, id), follow=False)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    try:
        return lock(descriptor, shared=True) is not True  # shared: checks do not block each other
    finally:
        os.close(descriptor)


def dead() -> list[str]:
    """Return the ids of servers that have ended and may have left rows.

    To take over these rows, call this within one `_state.changing` block: it serializes two servers that
    start at once.
    """
    return [id for id in others() if not alive(id)]


def left(db: Connection, id: str) -> bool:
    """Whether the state has rows of a server."""
    from . import _state

    return any(
        db.execute(f"SELECT 1 FROM {table} WHERE instance = ? LIMIT 1", (id,)).fetchone()
        for table in _state.OWNED
    )


def bury(id: str) -> None:
    """Forget a dead server. To be called when the state has none of its rows (`left`)."""
    try:
        inside = _private_folder.opened(*os.path.split(folder()))
    except OSError:
        return
    try:
        os.unlink(id + ENDING, dir_fd=inside)
    except OSError:
        pass  # another server has removed it
    finally:
        os.close(inside)


def _leave() -> None:
    """At the end of the process: remove this server's file, unless rows of it wait for the next server. Also
    remove files of dead servers without rows."""
    from . import _state

    place = folder()
    id, descriptor = _own.pop(place, ("", -1))
    if id and os.path.lexists(_state.path()):
        try:
            with _state.reading(wait_seconds=1.0) as db:
                ended = [other for other in [id, *dead()] if not left(db, other)]
        except ToolError:
            ended = []
        for other in ended:
            bury(other)
        os.close(descriptor)
    _state.close()
