"""What the processes of one PostgreSQL database tell each other, by LISTEN and NOTIFY.

`listen` calls a function with each payload of a channel, and another one whenever the connection has been
made: what was notified before is unknown. A process has one such connection for each database, whatever
listens there; a connection that is lost is made again, after pauses that grow. Payloads come from other
processes: whoever hears them checks them, and what it raises ends nothing here. SQLite has no notifications.
"""

from __future__ import annotations

import os
import random
import select
from threading import Event, Lock, Thread

from fastrpc import forks, tracebacks
from fastrpc.storage.errors import StorageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from sqlalchemy.engine import URL

    from fastrpc.storage.database import Database

FIRST_PAUSE, LONGEST_PAUSE = 0.2, 10.0
"""Seconds between two attempts to connect: each pause is twice the one before, and up to half as long by
chance, so that the processes of a fleet do not all come back at once."""
MOST_BYTES = 7900
"""Bytes of a payload; PostgreSQL accepts less than 8,000."""

_lock = Lock()
_listeners: dict[URL, _Listener] = {}


class HeardChannel:
    """One function that hears a channel, until `end`."""

    def __init__(self, channel: str, heard: Callable[[str], object], connected: Callable[[], object]) -> None:
        self.channel = channel
        self.heard = heard
        self.connected = connected
        self.listener: _Listener | None = None

    def end(self) -> None:
        """Hear nothing more; the connection is closed if nothing else listens there."""
        if self.listener is not None:
            self.listener.remove(self)


def listen(
    database: Database, channel: str, heard: Callable[[str], object], connected: Callable[[], object]
) -> HeardChannel:
    """Have a PostgreSQL database's channel heard: ``heard(payload)`` and ``connected()`` are called on a
    thread. Returns at once, also while the database is away."""
    subscription = HeardChannel(channel, heard, connected)
    with _lock:
        listener = _listeners.get(database.url)
        if listener is None:
            if not _listeners:
                forks.in_child(_forget)
            listener = _listeners[database.url] = _Listener(database)
        listener.add(subscription)
    return subscription


def notify(connection: Any, channel: str, payload: str) -> None:
    """Notify the processes that listen to a channel, once the transaction is committed; does nothing on
    SQLite. `connection` is SQLAlchemy's, the payload has at most `MOST_BYTES` bytes."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("SELECT pg_notify(%s, %s)", (channel, payload))


def _forget() -> None:
    """In a forked child: the threads are the parent's, and so are the connections."""
    global _lock
    _lock = Lock()
    _listeners.clear()


class _Listener:
    """The connection to one database, and its thread. `_lock` guards who is registered."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._subscriptions: list[HeardChannel] = []
        self._ended = Event()
        self._wakes, self._wake = os.pipe()
        Thread(target=self._run, name="fastrpc-notifications", daemon=True).start()

    def add(self, subscription: HeardChannel) -> None:
        """Listen for one more. The caller has the lock."""
        subscription.listener = self
        self._subscriptions = [*self._subscriptions, subscription]
        os.write(self._wake, b"w")

    def remove(self, subscription: HeardChannel) -> None:
        """Listen for one less; end with the last."""
        with _lock:
            subscription.listener = None
            self._subscriptions = [each for each in self._subscriptions if each is not subscription]
            if not self._subscriptions and not self._ended.is_set():
                if _listeners.get(self._database.url) is self:
                    del _listeners[self._database.url]
                    if not _listeners:
                        forks.forget(_forget)
                self._ended.set()
                os.write(self._wake, b"w")

    def _run(self) -> None:
        import psycopg

        pause = FIRST_PAUSE
        try:
            while not self._ended.is_set():
                try:
                    with self._database.listening() as connection:
                        pause = FIRST_PAUSE
                        self._serve(connection)
                except (psycopg.Error, OSError, StorageError):  # whoever uses rows says so, too
                    self._ended.wait(pause * random.uniform(0.5, 1))
                    pause = min(2 * pause, LONGEST_PAUSE)
        finally:
            os.close(self._wakes)
            os.close(self._wake)

    def _serve(self, connection: Any) -> None:
        """Hear what comes, until the end. Raises psycopg's errors if the connection is lost."""
        known: list[HeardChannel] = []
        channels: set[str] = set()
        waiting = select.poll()
        for descriptor in (connection.fileno(), self._wakes):
            waiting.register(descriptor, select.POLLIN)
        while not self._ended.is_set():
            subscriptions = self._subscriptions
            for each in subscriptions:
                if each.channel not in channels:
                    connection.execute(f'LISTEN "{each.channel}"')
                    channels.add(each.channel)
            for each in subscriptions:
                if each not in known:
                    _call(each.connected)
            known = subscriptions
            for notification in connection.notifies(timeout=0):
                for each in self._subscriptions:
                    if each.channel == notification.channel:
                        _call(each.heard, notification.payload)
            if any(descriptor == self._wakes for descriptor, _ in waiting.poll()):
                os.read(self._wakes, 4096)


def _call(function: Callable[..., object], *values: str) -> None:
    try:
        function(*values)
    except Exception as error:
        tracebacks.report("a notification of another process", error)
