"""The audit log: its records, the newest first, searched as `fastrpc audit search` does; one of them as a
whole, with why it was refused; a check of the log; and its records as a file.

A page reads what it shows (`fastrpc.guard.audit.reading`), at most `MOST_LINES` lines. The check runs in a
separate process (`fastrpc.dashboard.log_jobs`); `fastrpc.dashboard.exporting` limits the file. Names and
values in records are chosen by callers, so every character of them is visible.
"""

from __future__ import annotations

from time import time
from urllib.parse import urlencode

from fastrpc.dashboard.access import APPROVER
from fastrpc.dashboard.exporting import Export, ExportRuns
from fastrpc.dashboard.log_jobs import LogJob
from fastrpc.dashboard.recording import recorded
from fastrpc.dashboard.view import Page, PageError, PageRoute
from fastrpc.guard.approvals.display import visible_name, written
from fastrpc.guard.audit import reading
from fastrpc.guard.audit.reading import Place, fields_of
from fastrpc.guard.explanation import explained

TYPE_CHECKING = False
if TYPE_CHECKING:
    from starlette.responses import Response

    from fastrpc.dashboard.view import PageView

ON_A_PAGE = 50
MOST_LINES = 50_000
"""Lines of the log that are read for a page."""
LONGEST_FILTER = 200
LONGEST_VALUE = 120
"""Characters of a value in the list."""
TIMES = ("since", "until")
CHECK_SECONDS = 1.0
"""How long a page waits for the end of a check."""
SLOW_START_SECONDS = 10.0
"""After how long a check that has not begun is one that was interrupted."""


class ShownRecord:
    """A line of the log as its template shows it."""

    def __init__(self, line: bytes) -> None:
        self.fields = fields_of(line)

    def text(self, name: str) -> str:
        """Return a field on one line, with every character visible; "" if the record lacks it."""
        value = self.fields.get(name)
        if value is None:
            return ""
        return visible_name(value) if isinstance(value, str) else written(value)

    def short(self, name: str) -> str:
        """Return the beginning of `text`."""
        text = self.text(name)
        return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"

    @property
    def id(self) -> str:
        """The id, "" for a line of the log itself."""
        found = str(self.fields.get("id", ""))
        return found if found.isascii() and found.isidentifier() else ""

    @property
    def is_denied(self) -> bool:
        return self.fields.get("decision") == "deny" or self.fields.get("outcome") == "refused"

    @property
    def members(self) -> list[tuple[str, str]]:
        """All members in their order, the values as JSON."""
        return [(visible_name(name), written(value, 2)) for name, value in self.fields.items()]


class Search:
    """What a visitor searches: the texts as they were typed, the mistakes in them, and the filter."""

    def __init__(self, view: PageView) -> None:
        query = view.query
        self.typed = {name: query.get(name, "") for name in (*reading.FIELDS, *TIMES)}
        self.mistakes: dict[str, str] = {}
        times = dict.fromkeys(TIMES, "")
        for name, text in self.typed.items():
            if len(text) > LONGEST_FILTER:
                self.mistakes[name] = view.language.text("This is longer than 200 characters.")
            elif name in TIMES:
                try:
                    times[name] = reading.time_of(text.strip())
                except ValueError:
                    self.mistakes[name] = view.language.text(
                        "Write a time as 2026-04-22T10:15:23Z, or how long ago as 30m, 2h or 7d."
                    )
        self.globs = {name: self.typed[name] for name in reading.FIELDS if self.typed[name]}
        self.filter = reading.UnhurriedFilter(self.globs, **times)

    @property
    def is_empty(self) -> bool:
        return not any(self.typed.values())

    def link(self, **others: str) -> str:
        """Return the query of a link to the same search."""
        return urlencode({name: text for name, text in (self.typed | others).items() if text})


def records(view: PageView) -> Response:
    source, search = view.log, Search(view)
    shown: list[ShownRecord] = []
    found = reading.FoundRecords([], None, False)
    if not search.mistakes:
        before = Place.read(view.query.get("before", ""))
        found = reading.page(source.folder, search.filter, ON_A_PAGE, before, MOST_LINES)
        shown = [ShownRecord(line) for _, line in found.entries]
    return view.page("audit.html", 400 if search.mistakes else 200, shown=shown, search=search, found=found)


def one(view: PageView) -> Response:
    """A record, to its last member."""
    line = reading.record_of(view.log.folder, str(view.request.path_params["id"]))
    if line is None:
        raise PageError("The audit log has no such record.", 404)
    record = ShownRecord(line)
    why = explained(record.fields) if record.is_denied else None
    return view.page("audit_record.html", record=record, why=why, written=written, visible=visible_name)


def export(view: PageView) -> Response:
    """The records of a search as JSON lines, in the order of time."""
    source, search = view.log, Search(view)
    if search.mistakes:
        return records(view)
    wanted = search.filter
    try:
        found = Export(source.folder, view.person, search.globs, wanted.since, wanted.until)
    except ExportRuns:
        raise PageError(
            "An export of yours is being sent: wait for its end, or cancel that download.", 429
        ) from None
    except OSError as error:
        raise PageError(str(error), 503) from None
    with recorded(view, "audit.export", search=search.link()):
        return found


def check(view: PageView) -> Response:
    """What the last check of the log found, or how far it is."""
    job = LogJob("verify", view.log.folder)
    try:
        state, is_running = job.state(), job.is_running
    except OSError as error:
        raise PageError(str(error), 503) from None
    is_ended = "ended" in state or "error" in state
    is_running = not is_ended and (is_running or time() - state.get("began", 0) < SLOW_START_SECONDS)
    return view.page(
        "audit_check.html", state=state, is_running=is_running, is_ended=is_ended, visible=visible_name
    )


def start_check(view: PageView) -> Response:
    """Begin to check the log, unless that runs."""
    source = view.log
    job = LogJob("verify", source.folder)
    known = {"by": view.person, "began": time()}
    try:
        with recorded(view, "audit.check"):
            job.start({"by": view.person, "public_key": source.public_key}, CHECK_SECONDS, known)
    except OSError as error:
        raise PageError(str(error), 503) from None
    return view.redirect("/audit/check")


PAGES = [
    Page(
        [
            PageRoute("GET", "/audit", records),
            PageRoute("GET", "/audit/export", export),
            PageRoute("GET", "/audit/check", check),
            PageRoute("POST", "/audit/check", start_check, APPROVER),
            PageRoute("GET", "/audit/{id}", one),
        ],
        title="Audit log",
        order=30,
        is_there=lambda sources: sources.log is not None,
    )
]
