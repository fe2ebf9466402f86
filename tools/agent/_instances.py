"""The servers that run on one state folder: each holds a lock on a file of its own, as long as it lives.

So that a server can tell which rows of the state belong to nobody any more. Finding out whether there are
others at all is one look into a folder.
"""

from __future__ import annotations

import os
from _thread import allocate_lock  # threading itself would be an import at the start

from fastrpc import ToolError, regular_files
from fastrpc.settings import STATE_DIR

from .. import _private_folder
from .._file_lock import lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sqlite3 import Connection

ENDING = ".lock"

_own: dict[str, tuple[str, int]] = {}  # folder -> our id and the descriptor that holds the lock
_making = allocate_lock()


def folder() -> str:
    return os.path.join(STATE_DIR.read(), "instances")


def own() -> str:
    """Return the id of this server. Raises ToolError where the state folder cannot be written."""
    place = folder()
    with _making:
        id, descriptor = _own.get(place, ("", -1))
        if id and os.path.lexists(_path(place, id)):
            return id
        if not _own:
            import atexit

            atexit.register(_leave)
        if id:  # somebody emptied the folder; our rows may still be there
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
    """Make our file and return the descriptor that holds its lock."""
    inside = _private_folder.made_inside(*os.path.split(place))
    new = id + ".new"  # it gets its name once it is locked: nobody finds it unlocked
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
    """Whether there is another server, or what a dead one has left."""
    return bool(others())


def alive(id: str) -> bool:
    """Whether a server still runs. Where the file system has no locks, each one seems to."""
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
        return lock(descriptor, shared=True) is not True  # those who only ask never meet
    finally:
        os.close(descriptor)


def dead() -> list[str]:
    """Return the ids of servers that have ended and may have left rows.

    To take over what they left, ask within one `_state.changing` block: two servers that start at once
    then come one after the other.
    """
    return [id for id in others() if not alive(id)]


def left(db: Connection, id: str) -> bool:
    """Whether rows of a server are in the state."""
    from . import _state

    return any(
        db.execute(f"SELECT 1 FROM {table} WHERE instance = ? LIMIT 1", (id,)).fetchone()
        for table in _state.OWNED
    )


def bury(id: str) -> None:
    """Forget a dead server. To be done when none of its rows is left (`left`)."""
    try:
        inside = _private_folder.opened(*os.path.split(folder()))
    except OSError:
        return
    try:
        os.unlink(id + ENDING, dir_fd=inside)
    except OSError:
        pass  # another server was first
    finally:
        os.close(inside)


def _leave() -> None:
    """At the end of the process: take our file away, unless rows of ours wait for the next server. Files of
    dead servers that have left nothing go, too."""
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
