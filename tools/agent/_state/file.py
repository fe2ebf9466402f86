"""The database file itself: whether it is ours and intact, and the messages when it cannot be used.

`check` examines a file before SQLite opens it for writing, and changes neither the file nor the files beside
it. It reads the whole file once, which takes a millisecond for a usual state. `check_kinds` examines the
files that SQLite opens by name, each time before it does, since SQLite itself would wait for a FIFO. A
program of the same user can still replace a file between that check and SQLite's opening. Against that,
SQLite follows no link beside the database, `check_opened` asks SQLite which file it has opened before
anything is written, and `_state` does not wait longer than its deadline.
"""

from __future__ import annotations

import os
import time

from fastrpc import ToolError, regular_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sqlite3 import Connection

APPLICATION = 0x66525043  # "fRPC", which SQLite stores in the header: it tells our files from others
BUSY_SECONDS = 0.05  # how long SQLite itself waits; it begins with short waits, so a retry is fair
PAUSE_SECONDS = 0.05

_BESIDE = ("", "-wal", "-shm", "-journal")  # what SQLite opens; neither it nor this module follows links
_MAGIC = b"SQLite format 3\0"
_CURE = "Move it away, so that a new one is made, or set FASTRPC_STATE_DIR to another folder."
_REMOTE = (
    "nfs",
    "nfs4",
    "cifs",
    "smb2",
    "smb3",
    "smbfs",
    "9p",
    "afs",
    "ceph",
    "lustre",
    "virtiofs",
    "vboxsf",
)


def connect(place: str, how: str) -> Connection:
    """Open the database; `how` is SQLite's URI query. Never makes a file."""
    import sqlite3

    name = place.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    connection = sqlite3.connect(
        f"file:{name}?{how}", BUSY_SECONDS, isolation_level=None, check_same_thread=False, uri=True
    )
    connection.row_factory = sqlite3.Row
    return connection


def look(place: str) -> Connection:
    """Open the database so that nothing can be changed, not even the files beside it."""
    check_kinds(place)
    # The -wal file has the latest changes. Without one, no server writes and no lock is needed.
    return connect(place, "mode=ro" if _size(place + "-wal") else "mode=ro&immutable=1")


def check_kinds(place: str) -> None:
    """Raise ToolError if the database or a file beside it exists and is not a regular file.

    Nothing is opened: closing a descriptor would release the locks of this process's connections.
    """
    for ending in _BESIDE:
        try:
            regular_files.look(place + ending, follow=False)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except regular_files.NotRegular as error:
            raise ToolError(f"{place}{ending} is {error.strerror}, and was not changed. {_CURE}") from None


def check(place: str, newest: int, deadline: float) -> None:
    """Raise ToolError if a file is of another program, damaged, or of a version above `newest`."""
    seen = None
    while True:
        problem = _problem(place, newest)
        if problem is None:
            return
        # Another server may be writing at this moment: only two failures without a change between them count.
        signature = _signature(place)
        if signature == seen or time.monotonic() >= deadline:
            raise ToolError(problem)
        seen = signature
        time.sleep(PAUSE_SECONDS)


def check_opened(db: Connection, place: str) -> None:
    """Raise ToolError unless the connection has opened a database of ours, or an empty one, at its own path.
    SQLite follows a link in the place of the database, which may have been put there since the check."""
    kept, db.text_factory = db.text_factory, bytes
    try:
        opened: bytes = db.execute("PRAGMA database_list").fetchone()[2]
    finally:
        db.text_factory = kept
    folder, name = os.path.split(os.fsencode(place))
    opened_folder, opened_name = os.path.split(opened)
    if opened_name != name or os.path.realpath(opened_folder) != os.path.realpath(folder):
        raise ToolError(f"{place} is a symbolic link, not a regular file, and was not changed. {_CURE}")
    if db.execute("PRAGMA schema_version").fetchone()[0]:
        application = db.execute("PRAGMA application_id").fetchone()[0]
        if application != APPLICATION:
            raise ToolError(_foreign(place))


def _foreign(place: str) -> str:
    return f"{place} is the database of another program and was not changed. {_CURE}"


def _signature(place: str) -> tuple[int, ...]:
    facts = os.lstat(place)
    return facts.st_ino, facts.st_size, facts.st_mtime_ns, _size(place + "-wal")


def _problem(place: str, newest: int) -> str | None:
    """Return what is wrong with a file, as a sentence."""
    descriptor = regular_files.open_regular(place, follow=False)
    try:
        header = os.read(descriptor, 100)
    finally:
        os.close(descriptor)
    if not header:
        return _damaged(place, "empty beside its log") if _size(place + "-wal") else None
    if not header.startswith(_MAGIC) or len(header) < 100:
        return _damaged(place, "not an SQLite database")
    if int.from_bytes(header[68:72], "big") != APPLICATION:
        return _foreign(place)
    version = int.from_bytes(header[60:64], "big")
    if version > newest:
        return newer(place, version, newest)
    if os.path.lexists(place + "-journal"):
        return None  # a server was killed while it made the file: SQLite undoes that first
    return _unsound(place)


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0


def _unsound(place: str) -> str | None:
    import sqlite3

    connection = look(place)
    try:
        verdict = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            return None  # the error of the real opening is more precise
        verdict = str(error)
    finally:
        connection.close()
    return None if verdict == "ok" else _damaged(place, verdict.replace("\n", " ")[:120])


def _damaged(place: str, how: str) -> str:
    return f"{place} is damaged ({how}) and was not changed. {_CURE}"


def newer(place: str, version: int, newest: int) -> str:
    return (
        f"{place} was written by a newer fastrpc (version {version} of the state, this one knows {newest}) "
        "and was not changed. Update fastrpc, or set FASTRPC_STATE_DIR to another folder."
    )


def is_busy(error: Exception) -> bool:
    """Whether another server blocks the database at the moment."""
    said = str(error)  # error codes exist from CPython 3.11 on only
    return "locked" in said or "locking protocol" in said


def is_damage(error: Exception) -> bool:
    return "malformed" in str(error) or "not a database" in str(error)


def explained(error: Exception, place: str) -> ToolError:
    """Return the message to the user for an error of SQLite or the system."""
    said = str(error)
    if isinstance(error, OSError):
        return ToolError(f"The state cannot be stored in {os.path.dirname(place)}: {error.strerror}.")
    if is_busy(error):
        return ToolError(f"{place} is in use by another program; nothing was changed. Try again.")
    if is_damage(error):
        return ToolError(_damaged(place, said))
    if "is full" in said:
        return ToolError(f"The disk is full: nothing was changed in {place}.")
    if "readonly" in said:
        return ToolError(f"{place} cannot be written: it or its folder is read-only.")
    if "unable to open" in said:
        return ToolError(f"{place} cannot be opened: no permission, no space or a wrong folder.")
    return ToolError(f"{place} could not be read or written ({said}); the change may be lost.")


def on_network(folder: str) -> bool:
    """Whether a folder is on a network file system: its servers share no memory, which SQLite's WAL needs."""
    try:
        with open("/proc/self/mountinfo", "rb") as file:
            table = file.read()
    except OSError:  # not Linux
        return False
    kind = file_system_of(os.fsencode(os.path.realpath(folder)), table)
    return kind in _REMOTE or kind.startswith("fuse")


def file_system_of(folder: bytes, table: bytes) -> str:
    """Return the type of file system of a folder, from the system's table of mounts."""
    longest, kind = -1, ""
    inside = folder.rstrip(b"/") + b"/"
    for line in table.splitlines():
        before, _, after = line.partition(b" - ")
        mount = before.split()[4].replace(b"\\040", b" ").rstrip(b"/") + b"/"
        if inside.startswith(mount) and len(mount) >= longest:  # of two at one path the later one counts
            longest, kind = len(mount), after.split()[0].decode("ascii", "replace")
    return kind
