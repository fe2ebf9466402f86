"""Long work on an audit log, in a separate process, so that no call waits for it.

A job has a file for its state, JSON, in the folder `dashboard` of the state folder: all processes that serve
pages of the same log have the same job. The process that does the work holds a lock on a second file; one
that does not get it ends at once. The work replaces the state as it goes on, so a page shows how far it is.
`log_work` is the process.
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from hashlib import sha256
from threading import Lock, Thread, get_ident
from time import monotonic, sleep

from fastrpc.guard.audit import private_folder
from fastrpc.guard.audit.segments import is_written
from fastrpc.regular_files import open_regular, read_regular
from fastrpc.settings import STATE_DIR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    State = dict[str, Any]

FOLDER = "dashboard"
"""The name of the folder in the state folder."""
LARGEST_STATE = 64 * 1024 * 1024
POLL_SECONDS = 0.02
LOCK_TRIALS = 10
"""How often the lock is tried: who asks whether a job runs has it for a moment."""
_starting = Lock()
_started: dict[str, Thread] = {}
"""By the file of a job's state, the thread that waits for the process which this one has started last."""
# The server's own path: `python -m` would look for modules in the working directory first.
START = """\
import sys
sys.path[:] = sys.argv.pop(1).split(":")
from fastrpc.dashboard.log_work import main
main(sys.argv[1:])"""


class LogJob:
    """A kind of work on the log in a folder. Methods raise OSError."""

    def __init__(self, kind: str, folder: str, place: str | None = None) -> None:
        self.kind = kind
        self.folder = folder
        self.place = place or os.path.join(STATE_DIR.read(), FOLDER)
        name = f"{kind}-{sha256(os.path.realpath(folder).encode()).hexdigest()[:16]}"
        self._path = os.path.join(self.place, f"{name}.json")
        self._lock = os.path.join(self.place, f"{name}.lock")

    def state(self) -> State:
        """Return the latest state, {} if there has been none."""
        try:
            found = json.loads(read_regular(self._path, LARGEST_STATE))
        except (FileNotFoundError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def write(self, state: State) -> None:
        """Replace the state, in one step."""
        new = f"{self._path}.{os.getpid()}.{get_ident()}"  # several threads of a process write
        with open(open_regular(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, follow=False), "w") as file:
            json.dump(state, file)
        os.replace(new, self._path)

    @property
    def is_running(self) -> bool:
        try:
            descriptor = open_regular(self._lock, follow=False)
        except FileNotFoundError:
            return False
        try:
            return is_written(descriptor)
        finally:
            os.close(descriptor)

    def start(self, arguments: State, wait_seconds: float = 0.0, first: State | None = None) -> None:
        """Start the work in a process, unless one does it already; wait a little for its end. `first` is the
        state until the work writes one."""
        os.close(private_folder.opened(self.place))
        with _starting:  # a process that has just been started does not hold the job's lock yet
            waiting = _started.get(self._path)
            if (waiting is None or not waiting.is_alive()) and not self.is_running:
                waiting = _started[self._path] = self._process(arguments, first)
        if waiting is not None and waiting.is_alive():
            waiting.join(wait_seconds)
            return
        until = monotonic() + wait_seconds
        while self.is_running and monotonic() < until:
            sleep(POLL_SECONDS)

    def _process(self, arguments: State, first: State | None) -> Thread:
        """Start the process, and return a thread that ends with it."""
        if first is not None:
            self.write(first)
        words = (self.kind, self.folder, self.place, json.dumps(arguments))
        process = subprocess.Popen(
            [sys.executable, "-c", START, ":".join(sys.path), *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        waiting = Thread(target=process.wait, name="fastrpc-log-job", daemon=True)
        waiting.start()
        return waiting

    def lock(self) -> bool:
        """Take the lock until this process ends; False if another one has it."""
        descriptor = open_regular(self._lock, os.O_RDWR | os.O_CREAT, follow=False)
        for _ in range(LOCK_TRIALS):
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                sleep(POLL_SECONDS)
            else:
                return True
        os.close(descriptor)
        return False
