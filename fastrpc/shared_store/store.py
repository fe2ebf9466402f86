"""`SharedStore`: writes, reads and notifies on one thread, and hears what other processes notify.

While the database is away, no request waits for it: what would be written is refused at once,
announcements are dropped, and the log has one warning. It counts as away when a transaction has failed, or
takes longer than `WAIT_SECONDS`. When it is back, the other processes hear that announcements were missed, if
some were dropped, and sessions write and read again what they have.
"""

from __future__ import annotations

import hashlib
import secrets
from collections import deque
from functools import partial
from threading import Condition, Event, Thread
from time import monotonic

from fastrpc import diagnostics, forks, tracebacks
from fastrpc.errors import UsageError
from fastrpc.installed import is_installed
from fastrpc.protocol.session_changes import CommonState
from fastrpc.settings import SHARED
from fastrpc.shared_store import payloads, rows
from fastrpc.shared_store.kind import SHARED_STORE
from fastrpc.storage import StorageError, open_database
from fastrpc.storage.notifications import listen, notify
from fastrpc.storage.urls import place_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Future
    from typing import Any, Protocol, TypeVar

    from sqlalchemy.engine import Connection

    from fastrpc.protocol.session_changes import SessionChange
    from fastrpc.storage.database import Database
    from fastrpc.storage.notifications import HeardChannel

    Value = TypeVar("Value")
    Job = tuple[Callable[[Connection], object], Future[object]]

    class TakesAnnouncements(Protocol):
        """`fastrpc.engine.announcements.Announcements`."""

        @property
        def carriers(self) -> list[Callable[[bytes], object]]: ...
        def take(self, change: str, *values: Any) -> None: ...
        def missed(self) -> None: ...

    class HearsSessions(Protocol):
        """What has the sessions of this process. Called on other threads."""

        def session_changed(self, id: str) -> None: ...
        def session_ended(self, id: str) -> None: ...
        def session_listened(self, id: str) -> None: ...
        def message_posted(self, id: str, number: int) -> None: ...
        def store_is_back(self) -> None: ...


WAIT_SECONDS = 1.0
"""How long a request waits for the store at most."""
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 10.0
"""Seconds between two attempts while the store is away; each pause is twice the one before."""
AT_ONCE = 256
"""Functions, and payloads, in one transaction."""
MOST_UNSENT = 10_000
"""Announcements that wait; beyond, they are dropped, and the others hear that some were missed."""
SWEEP_SECONDS = 600.0
START_SECONDS = 5.0
CLOSE_SECONDS = 1.0


class StoreAway(StorageError):
    """The shared store is away, or has been closed."""


def check() -> None:
    """Raise UsageError if FASTRPC_SHARED names no database that hosts can share."""
    try:
        place = place_of(SHARED.read(), SHARED_STORE)
    except StorageError as error:
        raise UsageError(f"FASTRPC_SHARED: {error}") from None
    if place.path:
        raise UsageError(
            "FASTRPC_SHARED: expected postgresql://USER@HOST/NAME: SQLite notifies no other process"
        )
    if not is_installed("psycopg"):
        raise UsageError('FASTRPC_SHARED needs psycopg: pip install "fastrpc-mcp[postgresql]"')


class SharedStore:
    """What the processes of one server share. Its functions may be called on any thread.

    `group` is the same for the workers of one host, who hear each other's announcements by other means.
    """

    def __init__(self, server: str, announcements: TakesAnnouncements) -> None:
        check()
        self.group = self._process = secrets.token_hex(8)
        self.listeners: list[HearsSessions] = []
        self._announcements = announcements
        self._channel = (
            "fastrpc_" + hashlib.sha256(server.encode("utf-8", "backslashreplace")).hexdigest()[:32]
        )
        self._database: Database | None = None
        self._subscription: HeardChannel | None = None
        self._was_connected = False
        self._changed = Condition()
        self._jobs: deque[Job] = deque()
        self._unsent: dict[str, None] = {}
        self._missed = False
        """Whether announcements were dropped."""
        self._refused = False
        """Whether rows could not be read or written."""
        self._failed = False
        self._busy_since: float | None = None
        self._closed = False
        self._tried = Event()
        """Set when the database has been opened, or could not be."""
        self._not_understood = diagnostics.Once("warning")
        self._announcements.carriers.append(self.announce)
        self._thread = Thread(target=self._run, name="fastrpc-shared-store", daemon=True)
        self._thread.start()
        forks.in_child(self._let_go)

    def wait_until_open(self) -> None:
        """Return when the database has been opened, or could not be, within `START_SECONDS`."""
        self._tried.wait(START_SECONDS)

    @property
    def is_away(self) -> bool:
        """Whether the database is not available at present."""
        since = self._busy_since
        return self._failed or self._closed or (since is not None and monotonic() - since > WAIT_SECONDS)

    # --- what this process tells the others ---------------------------------------------------------------

    def announce(self, announcement: bytes) -> None:
        """Notify the processes of other hosts of an announcement, soon. Changes of tasks are not sent: their
        database notifies by itself."""
        if not announcement.startswith(b'["task_changed"'):
            self._send(payloads.announced(self.group, self._process, announcement))

    def _send(self, payload: str) -> None:
        with self._changed:
            if self._failed or self._closed or len(self._unsent) >= MOST_UNSENT:
                self._missed = True
            else:
                self._unsent[payload] = None
                self._changed.notify()

    def read_session(self, id: str) -> Future[CommonState]:
        """Read what the store has of a session. The future raises StorageError."""
        return self._submit(lambda connection: rows.read(connection, [id]).get(id, CommonState()))

    def read_sessions(self, ids: list[str]) -> Future[dict[str, CommonState]]:
        """Read what the store has of some sessions: of those that it has. The future raises StorageError."""
        return self._submit(lambda connection: rows.read(connection, ids))

    def change_session(self, id: str, made: SessionChange) -> Future[CommonState]:
        """Write what the client of a session has changed, and notify. The future raises StorageError, and
        returns all that the store has of the session then."""

        def write(connection: Connection) -> CommonState:
            stored = rows.change(connection, id, made)
            self._notify(connection, payloads.SESSION, id)
            return stored

        return self._submit(write)

    def end_session(self, id: str) -> Future[None]:
        """Write that the client of a session has ended it, and notify. The future raises StorageError."""

        def write(connection: Connection) -> None:
            rows.end(connection, id)
            self._notify(connection, payloads.ENDED, id)

        return self._submit(write)

    def listened(self, id: str) -> None:
        """Notify that the client of a session has opened its standalone stream here, soon."""
        self._send(payloads.written(self.group, self._process, payloads.LISTENED, id))

    def post(self, session: str, kind: str, body: bytes) -> None:
        """Send a message of a session to the processes of other hosts that have it, soon. One that is too
        long is dropped, and so is every one while the store is away."""
        if len(body) > rows.MOST_MESSAGE_BYTES:
            diagnostics.write("warning", f"a message of {len(body):,} bytes does not reach other hosts")
            return

        def write(connection: Connection) -> None:
            self._notify(connection, payloads.MESSAGE, session, rows.post(connection, session, kind, body))

        self._submit(write)

    def posted(self, session: str, number: int) -> Future[tuple[str, bytes] | None]:
        """Read a message of a session: its kind and text. The future raises StorageError."""
        return self._submit(lambda connection: rows.posted(connection, session, number))

    def _notify(self, connection: Connection, change: str, *values: Any) -> None:
        notify(connection, self._channel, payloads.written(self.group, self._process, change, *values))

    def _submit(self, function: Callable[[Connection], Value]) -> Future[Value]:
        from concurrent.futures import Future

        future: Future[Any] = Future()
        with self._changed:
            if self.is_away:
                self._refused = True
                future.set_exception(StoreAway("the shared store is away"))
            else:
                self._jobs.append((function, future))
                self._changed.notify()
        return future

    def close(self) -> None:
        """Send what waits, within `CLOSE_SECONDS`, and hear nothing more."""
        with self._changed:
            was_away, self._closed = self.is_away, True
            self._changed.notify()
        if self.announce in self._announcements.carriers:
            self._announcements.carriers.remove(self.announce)
        forks.forget(self._let_go)
        if not was_away:
            self._thread.join(CLOSE_SECONDS)

    def _let_go(self) -> None:
        """In a forked child: the thread is the parent's."""
        self._changed, self._closed = Condition(), True

    # --- the thread ---------------------------------------------------------------------------------------

    def _run(self) -> None:
        next_sweep = 0.0
        while True:
            with self._changed:
                while not (self._jobs or self._unsent or self._closed or self._database is None):
                    if not self._changed.wait(SWEEP_SECONDS):
                        break
                jobs = [self._jobs.popleft() for _ in range(min(AT_ONCE, len(self._jobs)))]
                sent = list(self._unsent)[:AT_ONCE]
                if self._closed and not (jobs or sent):
                    break
            try:
                self._busy_since = monotonic()
                self._open()
                self._commit(jobs, sent)
                if monotonic() >= next_sweep:
                    next_sweep = monotonic() + SWEEP_SECONDS
                    self._transact([rows.remove_expired])
                self._busy_since = None
                self._catch_up()
            except Exception as error:
                self._give_up(error, jobs)
                self._wait_until_back()
        if self._subscription is not None:
            self._subscription.end()
        if self._database is not None:
            self._database.close()

    def _open(self) -> None:
        if self._database is None:
            self._database = open_database(SHARED.read(), SHARED_STORE)
            self._subscription = listen(self._database, self._channel, self._heard, self._connected)
            self._tried.set()

    def _commit(self, jobs: list[Job], sent: list[str]) -> None:
        """Run jobs and notify, in one transaction; each job in its own if that fails. Raises what is no fault
        of one job."""
        notifying = [partial(notify, channel=self._channel, payload=payload) for payload in sent]
        functions = [function for function, _ in jobs]
        try:
            values = self._transact([*functions, *notifying])
        except StorageError:
            if not jobs:
                raise
            values = []  # two processes may have waited for each other's rows
            for function in functions:
                values += self._transact([function])
            self._transact(notifying)
        with self._changed:
            for payload in sent:
                self._unsent.pop(payload, None)
        for (_, future), value in zip(jobs, values, strict=False):
            future.set_result(value)

    def _transact(self, functions: Sequence[Callable[[Connection], object]]) -> list[object]:
        assert self._database is not None
        if not functions:
            return []
        with self._database.changing() as connection:
            return [function(connection) for function in functions]

    def _give_up(self, error: Exception, jobs: list[Job]) -> None:
        """The store is away: refuse what waits."""
        if isinstance(error, StorageError):
            diagnostics.write("warning", f"the shared store is away, changes reach no other host: {error}")
        else:
            tracebacks.report("the shared store", error)
        with self._changed:
            self._failed, self._refused, self._busy_since = True, True, None
            jobs = [*jobs, *self._jobs]
            self._jobs.clear()
            self._missed |= bool(self._unsent)
            self._unsent.clear()
        self._tried.set()
        for _, future in jobs:
            if not future.done():
                future.set_exception(StoreAway("the shared store is away"))

    def _wait_until_back(self) -> None:
        pause = FIRST_PAUSE
        while not self._closed:
            with self._changed:
                self._changed.wait(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
            try:
                self._open()
                self._transact([lambda connection: rows.read(connection, [])])
            except Exception as error:
                diagnostics.write("debug", f"the shared store is still away: {type(error).__name__}")
                continue
            self._failed = False
            diagnostics.write("warning", "the shared store is back")
            self._catch_up()
            return

    def _catch_up(self) -> None:
        """Have done what could not be done while the store was away."""
        with self._changed:
            missed, self._missed = self._missed, False
            refused, self._refused = self._refused, False
        if missed:
            self._send(payloads.written(self.group, self._process, payloads.MISSED))
        if refused:
            self._call_listeners("store_is_back")

    # --- what the others tell -----------------------------------------------------------------------------

    def _connected(self) -> None:
        """The connection that listens has been made. What was announced while there was none is unknown."""
        if self._was_connected:
            self._announcements.missed()
            self._call_listeners("store_is_back")
        self._was_connected = True

    def _heard(self, payload: str) -> None:
        try:
            group, process, change, values = payloads.read(payload)
        except payloads.NotUnderstood:
            self._not_understood.write("the shared store has a notification that is not understood: dropped")
            return
        if process == self._process:
            return
        if change == payloads.SESSION:
            self._call_listeners("session_changed", *values)
        elif group == self.group:
            return
        elif change == payloads.ENDED:
            self._call_listeners("session_ended", *values)
        elif change == payloads.LISTENED:
            self._call_listeners("session_listened", *values)
        elif change == payloads.MESSAGE:
            self._call_listeners("message_posted", *values)
        else:
            self._announcements.take(change, *values)

    def _call_listeners(self, name: str, *values: Any) -> None:
        for each in list(self.listeners):
            getattr(each, name)(*values)
