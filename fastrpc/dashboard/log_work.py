"""The process of a job: does the work with the lowest priority, and ends; after `MOST_SECONDS` at the latest,
and with the server that has started it.

What goes wrong is in the job's state, for the pages to show.
"""

from __future__ import annotations

import json
import os
from threading import Thread
from time import monotonic, sleep

from fastrpc.dashboard import counting, verifying
from fastrpc.dashboard.log_jobs import LogJob

MOST_SECONDS, LOOK_SECONDS = 1800.0, 0.5
WORK = {"count": counting.work, "verify": verifying.work}


def main(words: list[str]) -> None:
    """Do the work that a command line names, unless another process does it."""
    kind, folder, place, arguments = words
    os.nice(19)
    job = LogJob(kind, folder, place)
    if not job.lock():
        return
    Thread(target=_end, args=(job,), daemon=True).start()
    try:
        WORK[kind](job, json.loads(arguments))
    except (OSError, ValueError) as error:
        job.write({**job.state(), "error": str(error)})


def _end(job: LogJob) -> None:
    server, until = os.getppid(), monotonic() + MOST_SECONDS
    try:
        while os.getppid() == server:
            if monotonic() >= until:
                job.write({**job.state(), "error": f"stopped after {MOST_SECONDS / 60:.0f} minutes"})
                break
            sleep(LOOK_SECONDS)
    finally:  # the state cannot always be written: the folder is gone, the disk is full
        os._exit(1)
