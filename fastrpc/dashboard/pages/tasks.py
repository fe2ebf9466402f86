"""The tasks in the database that the servers of this host, or of all hosts, share: owner, state, status
message and time to live of each. An approver may cancel one, as its owner may."""

from __future__ import annotations

from fastrpc.dashboard.access import APPROVER
from fastrpc.dashboard.recording import recorded
from fastrpc.dashboard.view import Page, PageError, PageRoute
from fastrpc.guard.approvals.display import visible_name
from fastrpc.tasks.record import OPEN, STATES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from starlette.responses import Response

    from fastrpc.dashboard.task_database import TaskDatabase
    from fastrpc.dashboard.view import PageView
    from fastrpc.tasks.record import TaskRecord

ON_A_PAGE = 50
LONGEST_ID = 100
WORDS = STATES


class ShownTask:
    """A task as its template shows it."""

    def __init__(self, record: TaskRecord) -> None:
        self.record = record
        self.tool = visible_name(record.tool)
        self.owner = visible_name(record.owner)
        self.server = visible_name(record.server)
        self.message = visible_name(record.message)


def tasks(view: PageView) -> Response:
    return _show(view)


def _database(view: PageView) -> TaskDatabase:
    if view.sources.tasks is None:
        raise PageError("This process has no database of tasks.", 404)
    return view.sources.tasks


def _show(view: PageView, error: str = "", status: int = 200) -> Response:
    only_open = view.query.get("state") == "open"
    after = view.query.get("after", "")[:LONGEST_ID]
    id = view.query.get("id", "")[:LONGEST_ID]
    if id:
        one = _database(view).task(id)
        found = [] if one is None else [one]
    else:
        found = _database(view).page(ON_A_PAGE + 1, OPEN if only_open else STATES, after)
    return view.page(
        "task_cards.html" if view.is_part else "tasks.html",
        status,
        shown=[ShownTask(each) for each in found[:ON_A_PAGE]],
        older=found[ON_A_PAGE - 1].id if len(found) > ON_A_PAGE else None,
        only_open=only_open or bool(id),
        error=error,
    )


def cancel(view: PageView) -> Response:
    record = _database(view).task(view.request.path_params["id"][:LONGEST_ID])
    if record is None:
        return _show(view, view.language.text("There is no such task, or no longer."), 404)
    with recorded(view, "task.cancel", tool=record.tool, of=record.owner, task=record.id) as fields:
        is_cancelled = _cancelled(view, record, f"cancelled by {view.person} at the dashboard")
        fields["cancelled"] = is_cancelled
    if not is_cancelled:
        return _show(view, view.language.text("The task has ended."), 409)
    return view.redirect("/tasks")


def _cancelled(view: PageView, record: TaskRecord, message: str) -> bool:
    """Cancel a task: by the server of this process if it is one of its tasks, else in the database, where
    its server sees it."""
    serving = view.sources.serving
    if serving is not None and serving.server.name == record.server:
        return view.in_loop(serving.server.runtime.tasks.cancel(record.id, record.owner, message))
    approval = _database(view).cancel(record, message)
    if approval:
        view.approvals.withdraw(approval, "its task was cancelled")
    return approval is not None


PAGES = [
    Page(
        [PageRoute("GET", "/tasks", tasks), PageRoute("POST", "/tasks/{id}/cancel", cancel, APPROVER)],
        title="Tasks",
        order=11,
        is_there=lambda sources: sources.tasks is not None,
    )
]
