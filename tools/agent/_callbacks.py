"""The callbacks of a server: their timers, how a due one reaches the client, and their state on disk.

While a server runs, its memory is authoritative and its timers are monotonic: a change of the wall clock does
not move them. One thread writes each change, in the order in which they are made; `set` and `cancel` wait for
it. The wall clock matters only across a restart: an overdue callback then fires once, and none waits longer
than its delay.

A callback fires while no call is in flight. It sends a log message to the clients that asked for the level,
and adds a text to the next result. Delivery is at least once. A fire is stored as undelivered until a result
has its text. The delivery is written after that, so a server that is killed between the two delivers the text
again. A text whose result is lost with the client counts as delivered. Several undelivered fires of one
callback become one text.

A server without callbacks pays nothing. One with callbacks has a timer for each and, after the first change,
a thread.
"""

from __future__ import annotations

import os
import time
from weakref import WeakKeyDictionary, proxy

from fastrpc import ToolError

from .. import _project
from . import _instances, _starting, _state, _text
from ._stderr import write_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future, TimerHandle
    from collections.abc import Callable, Iterable
    from concurrent.futures import ThreadPoolExecutor
    from typing import Any, TypeVar

    from fastrpc import Server

    T = TypeVar("T")

SLOTS = 8
FOR_EVER = -1
LOOK_AGAIN_SECONDS = 0.05  # while a call is in flight
LISTENER_SECONDS = 0.25  # after a restart: how often, and how many times, to look for a client that listens
LISTENER_LOOKS = 20
BESIDE_SECONDS = 1.0  # how long a change without a waiter may be delayed, also at the end of the process
NOTE_CHARACTERS = 4_000  # of the texts added to one result, unless the first alone is longer

SECOND = 1.0
"""How long a second of delay lasts; tests make it shorter."""
wall_clock = time.time

_of: WeakKeyDictionary[Any, Callbacks] = WeakKeyDictionary()


class Callback:
    """The message of one slot. `left` is how often it still fires: `FOR_EVER` or a count; 0 when it is
    over."""

    __slots__ = (
        "delay_seconds",
        "due",
        "due_before",
        "key",
        "left",
        "listener_looks",
        "message",
        "slot",
        "timer",
        "undelivered",
    )

    def __init__(self, key: int, slot: int, message: str, delay_seconds: int, left: int, due: float) -> None:
        self.key = key
        self.slot = slot
        self.message = message
        self.delay_seconds = delay_seconds
        self.left = left
        self.due = due
        """The time of its next fire, in the loop's time."""
        self.due_before = due
        """When the last fire was due."""
        self.undelivered = 0
        """The number of fires that no result has reported."""
        self.timer: TimerHandle | None = None
        self.listener_looks = 1

    def note(self, now: float) -> str:
        """The text about the undelivered fires."""
        ago = max(0, int(now - self.due_before))
        note = f"[callback {self.slot} due {ago} s ago] {self.message}"
        return note if self.undelivered == 1 else f"{note}\n[it fired {self.undelivered} times]"


class Callbacks:
    """The callbacks of one server. To be used on the thread of its event loop."""

    def __init__(self, server: Server) -> None:
        self.active: dict[int, Callback] = {}
        """By slot."""
        self._server: Server = proxy(server)  # which refers to this object, by its note
        self.left_behind = _instances.exist()
        """Whether there may be callbacks to take over; checked once, at the start."""
        self._undelivered: list[Callback] = []
        self._start: Future[None] | None = None
        self._writer: ThreadPoolExecutor | None = None

    # --- the tool's operations ------------------------------------------------------------------------

    async def add(self, message: str, delay_seconds: int, repeats: int, slot: int | None) -> Callback:
        """Take a slot and start its timer. When this returns, it is on disk. Raises ToolError."""
        await self.ready()
        slot = self._free_slot(slot)
        key = int.from_bytes(os.urandom(7), "big")
        due = _loop().time() + delay_seconds * SECOND
        callback = self.active[slot] = Callback(key, slot, message, delay_seconds, repeats, due)
        try:
            await self._written(_insert, self._row_of(callback))
        except BaseException:  # cancelled, most likely: the next write removes it from the disk
            if self.active.get(slot) is callback:
                del self.active[slot]
            callback.left = 0
            self._save([callback])
            raise
        if callback.left:  # not cancelled meanwhile
            self._arm(callback)
        return callback

    def _free_slot(self, wanted: int | None) -> int:
        free = [slot for slot in range(SLOTS) if slot not in self.active]
        if not free:
            raise ToolError(f"Error: all callback slots full (max {SLOTS})")
        if wanted is None:
            return free[0]
        if wanted not in free:
            raise ToolError(
                f"callback_id: slot {wanted} is taken; cancel it first, or leave callback_id out. "
                f"Free: {', '.join(map(str, free))}."
            )
        return wanted

    async def cancel(self, slot: int | None) -> list[Callback]:
        """Stop one callback, or all; undelivered fires stay undelivered. Raises ToolError for an empty
        slot."""
        await self.ready()
        if slot is not None and slot not in self.active:
            active = ", ".join(map(str, sorted(self.active))) or "none"
            raise ToolError(f"callback_id: slot {_text.quoted(slot)} has no callback. Active: {active}.")
        chosen = [self.active.pop(one) for one in (sorted(self.active) if slot is None else [slot])]
        for callback in chosen:
            callback.left = 0
            if callback.timer is not None:
                callback.timer.cancel()
        if chosen:
            await self._written(_save, self._rows_of(chosen))
        return chosen

    # --- the start ------------------------------------------------------------------------------------

    def begin(self) -> Future[None]:
        """Take over the callbacks of dead servers of this project, once; again only if that has failed."""
        from asyncio import ensure_future

        if self._start is None or (self._start.done() and _starting.failed(self._start)):
            self._start = ensure_future(self._take_over())
        return self._start

    async def ready(self) -> None:
        """Wait until `begin` is done."""
        from asyncio import shield

        await shield(self.begin())

    async def _take_over(self) -> None:
        if not self.left_behind:
            return
        rows = await self._written(_taken_over)
        now, wall = _loop().time(), wall_clock()
        for row in rows:
            wait = min(row["due_at"] - wall, row["delay_seconds"] * SECOND)
            callback = Callback(
                row["id"], row["slot"], row["message"], row["delay_seconds"], row["fires_left"], now + wait
            )
            callback.undelivered = row["undelivered"]
            callback.due_before = now + min(row["fired_at"] - wall, 0.0)
            if callback.undelivered:
                self._undelivered.append(callback)
            if callback.left:
                if wait <= 0:  # the client may still be about to ask for the log level
                    callback.listener_looks = LISTENER_LOOKS
                self.active[callback.slot] = callback
                self._arm(callback)
        if self._undelivered:
            self._server.set_note(self.take_notes)

    # --- timers ---------------------------------------------------------------------------------------

    def _arm(self, callback: Callback) -> None:
        callback.timer = _loop().call_at(callback.due, self._come_due, callback)

    def _come_due(self, callback: Callback) -> None:
        """Fire, unless a call is in flight; then try again soon."""
        if self._server.busy:
            callback.timer = _loop().call_later(LOOK_AGAIN_SECONDS, self._come_due, callback)
        else:
            self._fire(callback)

    def _fire(self, callback: Callback) -> None:
        self._log(callback.message, callback.listener_looks)
        callback.listener_looks = 1
        callback.due_before = callback.due
        callback.undelivered += 1
        if callback not in self._undelivered:
            self._undelivered.append(callback)
            if len(self._undelivered) == 1:
                self._server.set_note(self.take_notes)
        if callback.left != FOR_EVER:
            callback.left -= 1
        if callback.left:
            callback.due = _loop().time() + callback.delay_seconds * SECOND
            self._arm(callback)
        else:
            del self.active[callback.slot]
        self._save([callback])

    def _log(self, message: str, looks: int) -> None:
        """Log to the clients that asked for the level; without one, look for one a few more times."""
        if not self._server.log(message, level="info", logger="callback") and looks > 1:
            _loop().call_later(LISTENER_SECONDS, self._log, message, looks - 1)

    # --- notes ----------------------------------------------------------------------------------------

    def take_notes(self) -> list[str]:
        """Return the texts for the result that is being made; those that do not fit come with the next
        result."""
        loop = _loop()
        now = loop.time()
        texts: list[str] = []
        taken: list[Callback] = []
        room = NOTE_CHARACTERS
        for callback in self._undelivered:
            text = callback.note(now)
            if texts and len(text) > room:
                break
            room -= len(text)
            texts.append(text)
            taken.append(callback)
            callback.undelivered = 0
        del self._undelivered[: len(taken)]
        if taken:
            self._save(taken)
        if not self._undelivered:
            loop.call_soon(self._stop_notes)  # not within the result that is being made
        return texts

    def _stop_notes(self) -> None:
        if not self._undelivered:
            self._server.set_note(None)

    # --- the disk -------------------------------------------------------------------------------------

    def _row_of(self, callback: Callback) -> dict[str, Any]:
        """The row of a callback, as it is now."""
        now, wall = _loop().time(), wall_clock()
        return {
            "id": callback.key,
            "slot": callback.slot,
            "message": callback.message,
            "delay_seconds": callback.delay_seconds,
            "fires_left": callback.left,
            "due_at": wall + callback.due - now,
            "undelivered": callback.undelivered,
            "fired_at": wall + callback.due_before - now,
        }

    def _rows_of(self, callbacks: Iterable[Callback]) -> list[dict[str, Any]]:
        return [self._row_of(callback) for callback in callbacks]

    def _save(self, callbacks: Iterable[Callback]) -> None:
        """Queue a write of the callbacks as they are now, without waiting. A failed write is reported on
        stderr; after the next start a fire may then be repeated."""
        rows = self._rows_of(callbacks)

        def save() -> None:
            try:
                _save(rows, BESIDE_SECONDS)
            except Exception as error:
                write_line(f"the callbacks cannot be stored: {error}")

        self._thread().submit(save)

    async def _written(self, function: Callable[..., T], *values: Any) -> T:
        """Call a function on the writing thread, after the earlier writes."""
        from asyncio import wrap_future

        return await wrap_future(self._thread().submit(function, *values))

    def _thread(self) -> ThreadPoolExecutor:
        if self._writer is None:
            from concurrent.futures import ThreadPoolExecutor

            self._writer = ThreadPoolExecutor(1, thread_name_prefix="fastrpc-callbacks")
        return self._writer


def of(server: Server) -> Callbacks:
    """Return the callbacks of a server."""
    return _starting.kept_of(server, _of, Callbacks)


def attach(server: Server) -> None:
    """Resume the callbacks of dead servers as soon as this server runs."""
    callbacks = of(server)
    if callbacks.left_behind:
        complain = _starting.complain("the callbacks of an earlier server are")
        _starting.when_the_loop_runs(server, lambda: callbacks.begin().add_done_callback(complain))


def _loop() -> AbstractEventLoop:
    from asyncio import get_running_loop

    return get_running_loop()


# --- rows, on the writing thread ----------------------------------------------------------------------------


def _insert(row: dict[str, Any]) -> None:
    with _state.changing() as database:
        database.execute(
            "INSERT INTO callbacks (id, project, instance, slot, message, delay_seconds, fires_left, due_at,"
            " undelivered, fired_at) VALUES (:id, :project, :instance, :slot, :message, :delay_seconds,"
            " :fires_left, :due_at, :undelivered, :fired_at)",
            {**row, "project": _project.key(), "instance": _instances.own()},
        )


def _save(rows: list[dict[str, Any]], wait_seconds: float = _state.WAIT_SECONDS) -> None:
    with _state.changing(wait_seconds) as database:
        for row in rows:
            if row["fires_left"] or row["undelivered"]:
                database.execute(
                    "UPDATE callbacks SET fires_left = :fires_left, due_at = :due_at,"
                    " undelivered = :undelivered, fired_at = :fired_at WHERE id = :id",
                    row,
                )
            else:
                database.execute("DELETE FROM callbacks WHERE id = :id", row)


def _taken_over() -> list[dict[str, Any]]:
    """Make the rows of this project's dead servers rows of this one, the soonest due first, each in its slot
    or in another free one. A row without a free slot stays with its owner until a later start has room."""
    with _state.changing() as database:
        heritage = _starting.Heritage(database, "callbacks", _project.key())
        free = set(range(SLOTS))
        taken = []
        for row in map(dict, heritage.rows("due_at")):
            if row["fires_left"]:
                if not free:
                    continue
                if row["slot"] not in free:
                    row["slot"] = min(free)
                free.discard(row["slot"])
            database.execute(
                "UPDATE callbacks SET instance = ?, slot = ? WHERE id = ?",
                (_instances.own(), row["slot"], row["id"]),
            )
            taken.append(row)
        forgotten = heritage.without_rows()
    _starting.bury(forgotten)
    return taken
