"""Has models read texts after they were written: on a thread of each process, while texts are left.

It starts when something is written here, and checks from time to time for texts of others: of killed servers,
of imports, from before a model was configured. A model that is unavailable is asked again after a pause,
longer each time. The store records the progress (`_store.readings`).
"""

from __future__ import annotations

from threading import Lock, Thread
from time import monotonic

from .. import _settings, _store
from .._store import pgvector, readings, vectors
from .._store.mentions import replace_mentions
from . import embedding, endpoint, naming
from .endpoint import ModelUnavailable, TextRefused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fastrpc import Server
    from fastrpc.storage.database import Database

    from .._store.readings import Claimed, Texts

LOOK_SECONDS = 2.0
LOOK_AT_ALL_SECONDS = 30.0
"""How often all texts are checked, and not only those after the last number."""
SHORTEST_PAUSE, LONGEST_PAUSE = 2.0, 60.0
"""Seconds between attempts while a model is unavailable."""
WORK_SECONDS = 120.0
"""Seconds of one claim; texts that are unread by then are given back."""


class Job:
    """Texts and the model that reads them. `after` is the number up to which no text is new. A failed lot is
    halved, and a text that fails alone is postponed, so that no text blocks the others for ever."""

    lot = 32

    def __init__(self, texts: Texts) -> None:
        self.texts = texts
        self.after = 0
        self.paused_until = 0.0
        self.problem = ""
        self._failures = 0
        self._size = self.lot

    @property
    def is_paused(self) -> bool:
        return monotonic() < self.paused_until

    def read_lot(self, database: Database) -> bool:
        """Read some texts; return whether there may be more."""
        claimed, self.after = self.texts.claim(database, self.after, self._size)
        if not claimed:
            return False
        left = {each.number for each in claimed}
        try:
            for number in self.read(database, claimed):
                left.discard(number)
            self._failures, self._size, self.paused_until, self.problem = 0, self.lot, 0.0, ""
        except (ModelUnavailable, vectors.OtherDimensions) as error:
            self.problem = str(error)
            pause = min(SHORTEST_PAUSE * 2.0**self._failures, LONGEST_PAUSE)
            self._failures = min(self._failures + 1, 16)
            self.paused_until = monotonic() + pause
            if self._size == 1 and left:
                self.texts.put_off(database, left.pop())
            self._size = max(self._size // 2, 1)
        finally:
            if left:
                self.texts.give_back(database, sorted(left))
        return not self.is_paused

    def read(self, database: Database, claimed: Sequence[Claimed]) -> Iterator[int]:
        """Read texts and store the results; yield the numbers of the finished ones. Raises
        ModelUnavailable."""
        raise NotImplementedError


class Embedding(Job):
    """Makes the vectors of texts. A lot that the model refuses is halved until the refused text is found."""

    def __init__(self, texts: Texts) -> None:
        super().__init__(texts)
        self._is_prepared = False

    def read_lot(self, database: Database) -> bool:
        if not self._is_prepared:
            pgvector.prepare(database, self.texts.readings)
            self._is_prepared = True
        return super().read_lot(database)

    def read(self, database: Database, claimed: Sequence[Claimed]) -> Iterator[int]:
        model, end = embedding.model(), monotonic() + WORK_SECONDS
        lots = [claimed]
        while lots and monotonic() < end:
            lot = lots.pop()
            try:
                made = embedding.embed(model, [each.content for each in lot], embedding.LOT_SECONDS)
            except TextRefused:
                if len(lot) > 1:
                    lots += [lot[: len(lot) // 2], lot[len(lot) // 2 :]]
                    continue
                self.texts.put_off(database, lot[0].number, is_refused=True)
            else:
                numbers = [each.number for each in lot]
                vectors.store(database, self.texts, model.name(), dict(zip(numbers, made, strict=True)))
            yield from (each.number for each in lot)


class Naming(Job):
    """Finds what entries name."""

    lot = 4

    def read(self, database: Database, claimed: Sequence[Claimed]) -> Iterator[int]:
        model = naming.endpoint()
        for each in claimed:
            try:
                found = naming.named_in(model, each.content)
            except TextRefused:
                self.texts.put_off(database, each.number, is_refused=True)
            else:
                replace_mentions(database, each, found)
            yield each.number


class Background:
    """The jobs of this process, and the thread that runs them."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        self._jobs = jobs
        self._lock = Lock()
        self._is_wanted = False
        self._runs = False
        self._looks_at_all = 0.0

    def wake(self) -> None:
        """Check on the thread for texts to read."""
        with self._lock:
            self._is_wanted = True
            if self._runs or all(job.is_paused for job in self._jobs):
                return
            self._runs = True
        Thread(target=self._run, name="fastrpc-models", daemon=True).start()

    def look(self) -> None:
        """Wake the thread if unread texts are left."""
        if monotonic() >= self._looks_at_all:
            self._looks_at_all = monotonic() + LOOK_AT_ALL_SECONDS
            for job in self._jobs:
                job.after = 0
            self._is_wanted = True
        if self._is_wanted or any(job.paused_until for job in self._jobs):
            self.wake()

    def _run(self) -> None:
        from fastrpc.storage import StorageError

        while True:
            with self._lock:
                self._is_wanted = False
            try:
                database = _store.current().database
                for job in self._jobs:
                    while not job.is_paused:
                        if not job.read_lot(database):
                            break
            except StorageError:  # the next call raises it; a later check goes on
                self._is_wanted = False
            with self._lock:
                if not self._is_wanted:
                    self._runs = False
                    return


_running: list[Background] = []


def jobs() -> list[Job]:
    """Return the jobs of the models that the settings name. Raises UsageError."""
    found: list[Job] = []
    if _settings.embeds():
        embedding.check()
        found += [Embedding(readings.ENTRIES), Embedding(readings.PASSAGES)]
    if _settings.ENTITIES.read():
        endpoint.check(naming.endpoint())
        found.append(Naming(readings.NAMING))
    return found


def attach(server: Server) -> None:
    """Run the jobs of the settings while this server serves. Raises UsageError."""
    _running[:] = [Background(jobs())]
    server.watch(_running[0].look, LOOK_SECONDS)


def wake() -> None:
    """Check for texts after a write."""
    if _running:
        _running[0].wake()
