"""Verifies an audit log for the pages, in the process of a job: `fastrpc.guard.audit.verify` does the work.

The state says who has started it, when, how far it is, and in the end what was found.
"""

from __future__ import annotations

from threading import Event, Thread
from time import time

from fastrpc.guard.audit.verify import MOST_SHOWN, Report, segments_in, verify

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc.dashboard.log_jobs import LogJob

REPORT_SECONDS = 0.5


def work(job: LogJob, arguments: dict[str, Any]) -> None:
    """Verify the log of a job. `arguments` are `by` and `public_key`. Raises OSError and
    ValueError if it cannot be tried."""
    report, is_done = Report(), Event()
    known = {"by": arguments["by"], "began": time(), "of": sum(map(len, segments_in(job.folder).values()))}
    job.write(known)

    def tell() -> None:
        while not is_done.wait(REPORT_SECONDS):
            job.write({**known, "counts": report.counts})

    teller = Thread(target=tell, daemon=True)
    teller.start()
    try:
        verify(job.folder, arguments["public_key"], into=report)
    finally:
        is_done.set()
        teller.join()
    job.write(
        {
            **known,
            "faults": report.faults[:MOST_SHOWN],
            "others": len(report.faults[MOST_SHOWN:]) + report.others,
            "notes": report.notes[:MOST_SHOWN],
            "counts": report.counts,
            "ended": time(),
        }
    )
