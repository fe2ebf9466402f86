"""`TokenDirectory`: all live tokens in memory, so that a token is checked without I/O.

Every `POLL_SECONDS` a thread compares one number with the database's, and reads the tokens again after any
process has changed it: a revoked token is refused at most two polls later, well within a second. It also
reads them when one expires, and at least every `RELOAD_SECONDS`, in case the database was changed by hand.
While the database cannot be read, the known tokens remain valid for `GRACE_SECONDS` after the last success;
then none is valid until it can be read again. That does not depend on the thread running.

`start` starts the threads in the process that serves. Otherwise the first check there starts them, which
takes I/O: a server that forks its workers has no threads before.

A check is one SHA-256 and one comparison in constant time, for an unknown id as for a wrong secret. Another
thread writes the times of last use, at most once a minute, so slow writes do not delay revocations. Both
threads end with `close`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hmac import compare_digest
from math import inf
from threading import Event, Lock, Thread
from time import monotonic, time
from typing import Any

from fastrpc import diagnostics, forks
from fastrpc.callers import Caller, token_principal
from fastrpc.guard.callers.token_text import digest_of, id_of
from fastrpc.guard.callers.tokens import TOPIC, CallerTokens, LiveToken, live_tokens
from fastrpc.storage.database import Database
from fastrpc.storage.errors import StorageError
from fastrpc.storage.schema import change_number

Listener = Callable[[frozenset[str]], object]

POLL_SECONDS = 0.25
RELOAD_SECONDS = 30.0
GRACE_SECONDS = 60.0
USE_SECONDS = 60.0
"""Seconds between two writes of the times of last use."""
JOIN_SECONDS = 5.0


class _Entry:
    """A live token: its digest, its caller, and until when it is valid (monotonic). `facts` are the columns
    of the row from which both are made."""

    __slots__ = ("caller", "digest", "facts", "until")

    def __init__(self, token_id: str, facts: list[Any]) -> None:
        digest, family, owner, caller_class, scopes = facts
        self.facts = facts
        self.digest = bytes(digest)
        self.caller = Caller(
            token_principal(owner, family),
            caller_class,
            owner=owner,
            scopes=tuple(scopes.split()),
            token_id=token_id,
        )
        self.until = -inf


NOBODY = _Entry("", [bytes(32), "", "", "", ""])
"""The entry with which a token with an unknown id is compared. It is never valid."""


@dataclass(eq=False, repr=False)
class TokenDirectory:
    """The live tokens of a database. `clock` is `time.monotonic`, `wall_clock` returns seconds since 1970.

    Reads the tokens at once. If `threads` is False, the caller must call `poll` and `write_uses`. Raises
    StorageError if the tokens cannot be read.
    """

    database: Database
    clock: Callable[[], float] = monotonic
    wall_clock: Callable[[], float] = time
    threads: bool = True

    def __post_init__(self) -> None:
        self._store = CallerTokens(self.database, self.wall_clock)
        self._by_token_id: dict[str, _Entry] = {}
        self._by_principal: dict[str, _Entry] = {}
        self._uses: dict[str, float] = {}
        """The time of last use, by id, of each token that has been used since the last write."""
        self._number = -1
        self._loaded_at = -inf
        self._next_end = inf
        """When the first token expires (`clock`)."""
        self._valid_until = -inf
        self._trouble = ""
        self._is_reported_shut = False
        self._was_available = True
        """The value of `is_available` at the last poll."""
        self._listeners: list[Listener] = []
        self._polling = Lock()
        self._is_over = Event()
        self._threads: list[Thread] = []
        self._generation: int | None = None
        """The generation (`forks`) of the process in which it was started."""
        self._read()

    def __repr__(self) -> str:
        return f"TokenDirectory({self.database.shown}, {len(self._by_token_id)} tokens)"

    def start(self) -> None:
        """Read the tokens, and start the threads of this process, unless it has started. Never raises."""
        if self._generation == forks.generation or self._is_over.is_set():
            return
        self._generation = forks.generation
        self._polling, self._threads, self._uses = Lock(), [], {}  # the old ones are the parent's
        _safely(self.poll)
        if not self.threads:
            return
        for name, work, seconds in (
            ("fastrpc-tokens", self.poll, POLL_SECONDS),
            ("fastrpc-token-uses", self.write_uses, USE_SECONDS),
        ):
            thread = Thread(target=self._repeat, args=(work, seconds), name=name, daemon=True)
            thread.start()
            self._threads.append(thread)

    # --- without I/O --------------------------------------------------------------------------------------

    @property
    def is_available(self) -> bool:
        """Whether tokens can be checked: the database was read in the last `GRACE_SECONDS`."""
        return self.clock() < self._valid_until

    def verify(self, token: bytes) -> tuple[Caller, float] | None:
        """Return the caller of a token, and until when that is certain (`clock`); None for an invalid token,
        and for all tokens while the directory is not available."""
        token_id = id_of(token)
        if token_id is None:
            return None
        if self._generation != forks.generation:
            self.start()
        entry = self._by_token_id.get(token_id, NOBODY)
        is_right = compare_digest(digest_of(token), entry.digest)
        now = self.clock()
        if not is_right or now >= entry.until or now >= self._valid_until:
            return None
        self._uses[token_id] = self.wall_clock()
        return entry.caller, min(now + POLL_SECONDS, entry.until)

    def caller_of(self, principal: str) -> Caller | None:
        """Return the caller of a principal, from its newest token; None if it has no valid token."""
        return self._valid(self._by_principal, principal)

    def caller_with(self, token_id: str) -> Caller | None:
        """Return the caller whose token has this id; None if the token is not valid."""
        return self._valid(self._by_token_id, token_id)

    def _valid(self, entries: dict[str, _Entry], key: str) -> Caller | None:
        if self._generation != forks.generation:
            self.start()
        entry = entries.get(key)
        if entry is None:
            return None
        now = self.clock()
        return entry.caller if now < entry.until and now < self._valid_until else None

    # --- changes ------------------------------------------------------------------------------------------

    def on_change(self, listener: Listener) -> None:
        """Call a function with the principals whose callers have become valid, changed, or become invalid: on
        the polling thread, after the change has taken effect. It must be quick. Expired tokens are included
        at the next poll."""
        self._listeners.append(listener)

    def poll(self) -> None:
        """Read the tokens again if they have changed; log if that fails. Never raises."""
        changed: frozenset[str] = frozenset()
        with self._polling:
            try:
                changed = self._read()
            except StorageError as error:
                self._note_trouble(str(error))
            else:
                if self._trouble:
                    diagnostics.write("warning", f"{self.database.shown}: tokens can be read again")
                    self._trouble, self._is_reported_shut = "", False
            if self.is_available != self._was_available:  # now no token is valid, or all are again
                self._was_available = not self._was_available
                changed |= self._by_principal.keys()
        if changed:
            for listener in tuple(self._listeners):
                try:
                    listener(changed)
                except Exception as error:
                    diagnostics.write("error", "a listener for changed tokens failed", error)

    def write_uses(self) -> None:
        """Write the new times of last use; if that fails, log it and keep them. Never raises."""
        uses, self._uses = self._uses, {}
        if not uses:
            return
        try:
            self._store.note_use(uses)
        except StorageError as error:
            diagnostics.write("warning", f"the last use of tokens cannot be written: {error}")
            self._uses = {**uses, **self._uses}

    def close(self) -> None:
        """End the threads, and write the last times of use. No token is valid afterwards."""
        self._is_over.set()
        for thread in self._threads:
            thread.join(JOIN_SECONDS)
        if not any(thread.is_alive() for thread in self._threads):  # else the database does not answer
            self.write_uses()
        self._valid_until = -inf

    # --- reading ------------------------------------------------------------------------------------------

    def _repeat(self, work: Callable[[], None], seconds: float) -> None:
        while not self._is_over.wait(seconds):
            _safely(work)

    def _read(self) -> frozenset[str]:
        """Read what has changed, and return the principals concerned. Raises StorageError."""
        began = self.clock()
        with self.database.reading() as connection:
            number = change_number(connection, TOPIC)
            is_other = number != self._number or bool(self._trouble)
            rows = None
            if is_other or began >= min(self._loaded_at + RELOAD_SECONDS, self._next_end):
                rows = live_tokens(connection, self.wall_clock())
        changed: frozenset[str] = frozenset()
        if rows is not None:
            changed = self._take(rows)
            self._number, self._loaded_at = number, began
        self._valid_until = began + GRACE_SECONDS
        return changed

    def _take(self, rows: list[LiveToken]) -> frozenset[str]:
        """Replace the live tokens; return the principals whose caller has changed or who lost a token."""
        by_id: dict[str, _Entry] = {}
        by_principal: dict[str, _Entry] = {}
        offset = self.clock() - self.wall_clock()
        rotated = {row[-1] for row in rows}
        for row in rows:
            token_id, *facts, expires_at, _ = row
            former = self._by_token_id.get(token_id)
            entry = former if former is not None and former.facts == facts else _Entry(token_id, facts)
            entry.until = inf if expires_at is None else expires_at + offset
            by_id[token_id] = entry
            if token_id not in rotated:  # else its successor is newer, even if clocks disagree
                by_principal[entry.caller.principal] = entry
        self._next_end = min([entry.until for entry in by_id.values()], default=inf)
        before, tokens_before = self._by_principal, self._by_token_id
        self._by_token_id, self._by_principal = by_id, by_principal
        changed = {
            principal
            for principal in before.keys() | by_principal.keys()
            if _caller(before, principal) != _caller(by_principal, principal)
        }
        # A caller over stdio may have a token that is not the newest of its principal.
        return frozenset(
            changed | {entry.caller.principal for id, entry in tokens_before.items() if id not in by_id}
        )

    def _note_trouble(self, trouble: str) -> None:
        left = self._valid_until - self.clock()
        is_shut = left <= 0
        if trouble != self._trouble or is_shut != self._is_reported_shut:
            what = f"tokens that are known stay valid for {left:.0f} s, then none is"
            if is_shut:
                what = "no token is valid until it can be read again"
            diagnostics.write("error", f"{trouble}; {what}")
        self._trouble, self._is_reported_shut = trouble, is_shut


def _caller(entries: dict[str, _Entry], principal: str) -> Caller | None:
    entry = entries.get(principal)
    return None if entry is None else entry.caller


def _safely(work: Callable[[], None]) -> None:
    """Call `work`, and log any exception: a bug must not end a thread, or revocations would be missed."""
    try:
        work()
    except Exception as error:
        diagnostics.write("error", "the token directory failed", error)
