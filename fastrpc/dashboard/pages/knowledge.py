"""What the knowledge toolset has of the visitor: memory, documents, runs of workflows.

The visitor reads what belongs to an owner of the same name, and nothing else; who may decide may also forget,
after a confirmation. All texts come from agents and documents: deceptive characters are visible, and nothing
is a link. The toolset itself (`Sources.knowledge`) reads and deletes. The picture of a run is an image of
this origin, which needs no inline style; the list below it says the same.
"""

from __future__ import annotations

import json

from starlette.responses import Response

from fastrpc.dashboard.access import APPROVER
from fastrpc.dashboard.graph import placed
from fastrpc.dashboard.recording import recorded
from fastrpc.dashboard.rendering import environment
from fastrpc.dashboard.view import Page, PageError, PageRoute
from fastrpc.errors import ToolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from fastrpc.dashboard.view import Handler, PageView

NOT_SERVED = "This server does not serve the knowledge toolset."
BEGINNING = 300
"""Characters of an entry or a passage in a list."""
ON_A_PAGE = 25
WORDS = (
    *("fact", "preference", "observation", "extracting", "chunking", "ready", "failed"),
    *("queued", "running", "waiting", "completed", "cancelled", "input", "output", "error"),
)
"""What the templates look up in the visitor's language, besides their own texts."""
SIGNS = {"": "·", "completed": "✓", "failed": "✕", "cancelled": "⊘", "running": "▶", "waiting": "⏸"}
"""What is drawn beside the state of a step, so that it is not known by its colour alone."""


def _of(page: Callable[[PageView, Any], Response]) -> Handler:
    """Return the handler of a page that gets what belongs to the visitor; the toolset's errors are
    sentences."""

    def handler(view: PageView) -> Response:
        if view.sources.knowledge is None:
            raise PageError(NOT_SERVED, 404)
        try:
            return page(view, view.sources.knowledge(view.person))
        except ToolError as error:
            raise PageError(str(error), 404) from None

    return handler


def _id(view: PageView) -> str:
    return str(view.request.path_params["id"])


def _number(view: PageView, name: str, least: int) -> int:
    text = view.query.get(name, "")
    return max(least, int(text)) if text.isascii() and text.isdigit() and len(text) < 10 else least


def memory(view: PageView, own: Any) -> Response:
    return _list(view, "knowledge.html", own.entries, own.found_entries)


def documents(view: PageView, own: Any) -> Response:
    return _list(view, "knowledge_documents.html", own.documents, own.found_passages)


def _list(view: PageView, template: str, newest: Any, find: Any) -> Response:
    """Show the newest, or what answers the visitor's query."""
    query = view.query.get("q", "").strip()[:1000]
    found, other = find(query) if query else newest(view.query.get("after", ""))
    note, older = (other, "") if query else ("", other)
    return view.page(template, found=found, query=query, note=note, older=older, most=BEGINNING)


def entry(view: PageView, own: Any) -> Response:
    return view.page("knowledge_entry.html", entry=own.entry(_id(view)), is_asked=False)


def forget(view: PageView, own: Any) -> Response:
    """Ask whether an entry is to be forgotten; with `confirmed`, forget it."""
    found = own.entry(_id(view))
    if view.form.get("confirmed") != "yes":
        return view.page("knowledge_entry.html", entry=found, is_asked=True)
    with recorded(view, "memory.forget", target=found.id):
        own.forget(found.id)
    return view.redirect("/knowledge")


def document(view: PageView, own: Any) -> Response:
    return _document(view, own, is_asked=False)


def _document(view: PageView, own: Any, *, is_asked: bool) -> Response:
    found = own.document(_id(view))
    page, offset = _number(view, "page", 1), _number(view, "offset", 0)
    parts, following, left_out = own.text(found, page, offset) if found.state == "ready" else ([], page, 0)
    return view.page(
        "knowledge_document.html",
        document=found,
        parts=parts,
        following=(following, left_out) if following <= found.pages and parts else None,
        is_asked=is_asked,
    )


def delete(view: PageView, own: Any) -> Response:
    """Ask whether a document is to be deleted; with `confirmed`, delete it."""
    if view.form.get("confirmed") != "yes":
        return _document(view, own, is_asked=True)
    found = own.document(_id(view))
    with recorded(view, "document.delete", target=found.id):
        own.delete(found.id)
    return view.redirect("/knowledge/documents")


def runs(view: PageView, own: Any) -> Response:
    after = _number(view, "after", 0)
    found = own.runs(after)
    older = after + ON_A_PAGE if len(found) > ON_A_PAGE else None
    return view.page("knowledge_runs.html", found=found[:ON_A_PAGE], older=older, signs=SIGNS)


def run(view: PageView, own: Any) -> Response:
    found = own.run(_id(view))
    steps = [{**each, "values": _values(each)} for each in found["steps"]]
    return view.page("knowledge_run.html", run=found, steps=steps, signs=SIGNS, values=_values(found))


def _values(of: dict[str, Any]) -> list[tuple[str, str]]:
    """Return input, output and error of a step or a run as texts, without empty ones."""
    named = [(name, of.get(name)) for name in ("input", "output")]
    texts = [
        (name, json.dumps(value, ensure_ascii=False, indent=2)) for name, value in named if value is not None
    ]
    return [*texts, ("error", of["error"])] if of["error"] else texts


def picture(view: PageView, own: Any) -> Response:
    """Draw a run. The theme is in the address, since an image does not know that of its page."""
    found = own.run(_id(view))
    graph = placed(found["definition"], found["steps"], is_mirrored=view.language.direction == "rtl")
    made = (
        environment()
        .get_template("knowledge_graph.svg")
        .render(graph=graph, signs=SIGNS, is_dark=view.query.get("theme") == "dark", _=view.language.text)
    )
    return Response(made, media_type="image/svg+xml")


PAGES = [
    Page(
        [
            PageRoute("GET", "/knowledge", _of(memory)),
            PageRoute("GET", "/knowledge/documents", _of(documents)),
            PageRoute("GET", "/knowledge/runs", _of(runs)),
            PageRoute("GET", "/knowledge/entries/{id}", _of(entry)),
            PageRoute("POST", "/knowledge/entries/{id}/forget", _of(forget), APPROVER),
            PageRoute("GET", "/knowledge/documents/{id}", _of(document)),
            PageRoute("POST", "/knowledge/documents/{id}/delete", _of(delete), APPROVER),
            PageRoute("GET", "/knowledge/runs/{id}", _of(run)),
            PageRoute("GET", "/knowledge/runs/{id}/picture.svg", _of(picture)),
        ],
        title="Knowledge",
        order=40,
        is_there=lambda sources: sources.knowledge is not None,
    )
]
