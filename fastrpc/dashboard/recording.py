"""Records what visitors do in the audit log: `recorded` encloses an action.

Decisions about approvals are recorded by the guard. In mode ``strict`` an action has two records, as a call
has: the first is on disk before the action begins. Without a log, the process's own log has a line.
"""

from __future__ import annotations

from concurrent.futures import TimeoutError as FutureTimeout  # TimeoutError itself, except in Python 3.10
from contextlib import contextmanager

from fastrpc import diagnostics
from fastrpc.dashboard.view import PageError
from fastrpc.errors import FAILURES
from fastrpc.guard.audit.log import AuditUnavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from fastrpc.dashboard.view import PageView

CATEGORY = "dashboard"
WAIT_SECONDS = 10.0


@contextmanager
def recorded(view: PageView, action: str, person: str = "", **about: Any) -> Iterator[dict[str, Any]]:
    """Record an action of the visitor, or of a person who is about to be one, with the fields `about` and
    those that the block adds to the dict that it gets; if the block raises, with the outcome ``error``.
    Raises PageError if a log in mode ``strict`` cannot take a record."""
    log = view.sources.audit
    who = {"category": CATEGORY, "actor": person or view.person, "action": action}
    if view.visitor is not None:
        who["class"] = view.visitor.role
    fields = {**who, **about}
    if log is not None and log.mode == "strict":
        _append(view, {**fields, "outcome": "begun"})
    try:
        yield fields
    except FAILURES as error:
        _append(view, {**fields, "outcome": "error", "reason": str(error)})
        raise
    _append(view, {**fields, "outcome": "ok"})


def _append(view: PageView, fields: dict[str, Any]) -> None:
    log = view.sources.audit
    if log is None:
        said = " ".join(f"{name}={value}" for name, value in fields.items() if name != "category")
        diagnostics.write("warning", f"dashboard, without an audit log: {said}")
        return
    try:
        if log.mode == "strict":
            log.append_durably(fields).result(WAIT_SECONDS)
        else:
            log.append(fields)
    except (AuditUnavailable, FutureTimeout) as error:
        diagnostics.write("error", f"{fields['action']} of {fields['actor']} is not recorded", error)
        if fields["outcome"] == "begun":
            raise PageError("The audit log cannot be written, so nothing was changed.", 503) from None
        if fields["outcome"] == "ok":
            raise PageError("This was done, but the audit log cannot be written any more.", 503) from None
