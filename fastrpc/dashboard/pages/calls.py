"""The calls in flight of the server, in all its workers: who calls what, since when, how far it is. An
approver may cancel one: its caller gets an error."""

from __future__ import annotations

from fastrpc.dashboard.access import APPROVER
from fastrpc.dashboard.recording import recorded
from fastrpc.dashboard.view import Page, PageError, PageRoute

TYPE_CHECKING = False
if TYPE_CHECKING:
    from starlette.responses import Response

    from fastrpc.dashboard.view import PageView

ON_A_PAGE = 50
WORDS = ("tool", "resource", "prompt", "completion")


def calls(view: PageView) -> Response:
    return _show(view)


def _show(view: PageView, error: str = "", status: int = 200) -> Response:
    serving = view.serving
    text = view.query.get("from", "")
    start = int(text) if text.isascii() and text.isdigit() and len(text) < 7 else 0
    found = view.in_loop(serving.calls(start, ON_A_PAGE))
    return view.page(
        "call_cards.html" if view.is_part else "calls.html",
        status,
        shown=found.calls,
        count=found.count,
        missing=found.missing,
        following=start + ON_A_PAGE if found.count > start + ON_A_PAGE else None,
        serving=serving,
        error=error,
    )


def cancel(view: PageView) -> Response:
    """Cancel a call, or the task that it is the call of."""
    found = view.in_loop(view.serving.call(view.request.path_params["id"]))
    if found is None:
        return _show(view, view.language.text("This call is not in flight here any more."), 409)
    with recorded(view, "call.cancel", tool=found.name, of=found.principal):
        if not view.in_loop(view.serving.stop(found.id, f"cancelled by {view.person} at the dashboard")):
            raise PageError("The call has ended.", 409)
    return view.redirect("/calls")


PAGES = [
    Page(
        [PageRoute("GET", "/calls", calls), PageRoute("POST", "/calls/{id}/cancel", cancel, APPROVER)],
        title="In flight",
        order=10,
        is_there=lambda sources: sources.serving is not None,
    )
]
