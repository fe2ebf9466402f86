"""Runs that begin when files change: those of workflows whose trigger is `file`.

In every server that shares the store, one thread watches the paths of all of them; it imports watchfiles when
the first exists. A change begins one run, since the run's id is made of the file's path, time and size.
Changes while no server runs are not seen, nor are changes of link targets outside of the path.
"""

from __future__ import annotations

import json
import os
from hashlib import sha256
from threading import Event, Lock, Thread

from fastrpc import FastrpcError

from . import engine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .._store.workflows import Kept

MOST_CHANGES = 100
"""Simultaneous changes of files for one workflow; further ones begin no run."""
SETTLED_MS = 500
"""How long no file must change before a burst of changes is over."""
ROUND_MS = 1000


class FileTriggers:
    """The watched paths of this process. `over_http` selects the workflows: those of the same kind of
    callers."""

    def __init__(self, over_http: bool) -> None:
        self._over_http = over_http
        self._watched: dict[str, list[Kept]] = {}
        self._stop = Event()
        self._thread: Thread | None = None
        self._looking = Lock()

    def look(self) -> None:
        """Watch the paths of the current workflows. Blocks; concurrent calls return at once."""
        if not self._looking.acquire(blocking=False):
            return
        try:
            wanted = self._wanted()
            is_alive = self._thread is not None and self._thread.is_alive()
            if wanted == self._watched and (is_alive or not wanted):
                return
            self._stop.set()
            self._stop, self._watched = Event(), wanted
            if wanted:
                self._thread = Thread(target=self._watch, args=(wanted, self._stop), daemon=True)
                self._thread.start()
        finally:
            self._looking.release()

    def _wanted(self) -> dict[str, list[Kept]]:
        from .. import _store
        from .._store import workflows

        found: dict[str, list[Kept]] = {}
        for kept in workflows.with_trigger(_store.current().database, "file"):
            path = json.loads(kept.definition)["trigger"]["path"]
            if json.loads(kept.starter)["over_http"] == self._over_http and os.path.exists(path):
                found.setdefault(path, []).append(kept)
        return found

    def _watch(self, watched: dict[str, list[Kept]], stop: Event) -> None:
        from watchfiles import Change, watch

        try:
            for changes in watch(
                *watched, stop_event=stop, step=50, debounce=SETTLED_MS, rust_timeout=ROUND_MS,
                raise_interrupt=False,
            ):  # fmt: skip
                paths = sorted(path for change, path in changes if change is not Change.deleted)
                for path, all_kept in watched.items():
                    for kept in all_kept:
                        _begin(kept, path, paths)
        except (OSError, FastrpcError):
            return  # the next check starts it again


def _begin(kept: Kept, watched: str, changed: Iterable[str]) -> None:
    """Begin the runs of a workflow for the changes below its path."""
    root = os.path.realpath(watched)
    below = [path for path in changed if _is_below(root, path)]
    for path in below[:MOST_CHANGES]:
        try:
            status = os.stat(path, follow_symlinks=False)
        except OSError:
            continue  # it was removed again
        if os.path.isdir(path):
            continue
        mark = f"{path}\0{status.st_mtime_ns}\0{status.st_size}".encode(errors="surrogateescape")
        shown = path.encode(errors="replace").decode()
        engine.current().begin(
            f"file-{sha256(mark).hexdigest()[:16]}", kept, {"path": shown, "size": status.st_size}
        )


def _is_below(root: str, path: str) -> bool:
    real = os.path.realpath(path)
    return real == root or real.startswith(root.rstrip("/") + "/")
