"""The calls that wait for an approval, newest first, and those that have been decided; one of them as a
whole.

What is shown is what runs: every character is visible (`fastrpc.guard.approvals.display`), and a call that is
too long for the list can be approved only where all of it is shown. Who may decide is the store's rule, which
holds for all channels.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from unicodedata import name as name_in_unicode

from fastrpc.dashboard.access import APPROVER
from fastrpc.dashboard.schema_form import Mistake, value_of
from fastrpc.dashboard.view import Page, PageRoute
from fastrpc.guard.approvals.binding import indented
from fastrpc.guard.approvals.display import ESCAPE, visible_name, written
from fastrpc.guard.approvals.store import (
    DASHBOARD,
    STATES,
    WAITING,
    Approval,
    ApprovalDecision,
    ApprovalError,
    why_not_approved_by,
)
from fastrpc.guard.policy import risks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from starlette.responses import Response

    from fastrpc.dashboard.view import PageView

ESCAPED = "It has characters that are written as escapes, so its parts are not marked."
NOT_UNDERSTOOD = "The guard's shell parser does not understand all of it, so its parts are not marked."
ON_A_PAGE = 25
LONGEST_IN_LIST = 1500
"""Characters of arguments that the list shows."""
HOUR_SECONDS, MANY = 3600.0, 1_000_000
DECIDED = tuple(state for state in STATES if state != WAITING)


COMMAND_NAMES = frozenset(("bash", "cmd", "command", "command_line", "commandline", "script", "sh", "shell"))
"""Arguments with these names are read as command lines of a shell."""
MOST_NAMED = 20
"""Characters that are named below the arguments."""
KINDS = ("program", "option", "path", "redirection", "operator")
"""The parts of a command that are listed below it."""
WORDS = (*KINDS, ESCAPED, NOT_UNDERSTOOD)
"""What the templates look up in the visitor's language, besides their own texts."""


@dataclass(frozen=True)
class ShownCommand:
    """An argument that is a command line: its pieces with their kinds, "" for spaces, or `why` they are not
    marked; by kind what it consists of, as bash reads it."""

    argument: str
    pieces: list[tuple[str, str]]
    found: dict[str, list[str]]
    why: str = ""


@dataclass(frozen=True)
class ShownApproval:
    """An approval as its template shows it, at the time `now`, to the visitor `by`."""

    approval: Approval
    now: float
    by: str

    @property
    def state(self) -> str:
        return self.approval.state_at(self.now)

    @property
    def seconds_left(self) -> float:
        return max(0.0, self.approval.expires_at - self.now)

    @cached_property
    def arguments(self) -> str:
        return indented(self.approval.arguments)

    @cached_property
    def others(self) -> str:
        """The other params of the request, "" without any."""
        return indented(self.approval.extra_params) if self.approval.extra_params else ""

    @property
    def is_short(self) -> bool:
        """Whether the list shows all of it."""
        return len(self.arguments) + len(self.others) <= LONGEST_IN_LIST

    @property
    def beginning(self) -> str:
        return self.arguments[:LONGEST_IN_LIST]

    def name_of(self, field: str) -> str:
        """Return a field that a caller may have chosen, with every character visible."""
        return visible_name(str(getattr(self.approval, field) or ""))

    @property
    def obstacle(self) -> str:
        """Why the visitor may not approve it; "" if that is allowed."""
        return why_not_approved_by(self.approval, self.by, DASHBOARD)

    @cached_property
    def values(self) -> list[tuple[str, str]]:
        """The arguments by name, each as one line of JSON, for a form; without those of other types than
        JSON has, which are stored in another form (`fastrpc.guard.approvals.canonical`)."""
        found = json.loads(self.approval.arguments)
        known = found if isinstance(found, dict) else {}
        return [(name, written(value)) for name, value in known.items() if not _is_typed(value)]

    @cached_property
    def commands(self) -> list[ShownCommand]:
        """The arguments that are command lines of a shell, with their parts."""
        found = json.loads(self.approval.arguments)
        known = found if isinstance(found, dict) else {}
        return [
            shown_command(key, line)
            for key, line in known.items()
            if key.casefold() in COMMAND_NAMES and isinstance(line, str)
        ]

    @cached_property
    def named(self) -> list[tuple[str, str]]:
        """The characters that are written as escapes, each once, with their names in Unicode."""
        texts = [self.arguments, self.others, *map(self.name_of, ("name", "caller", "reason"))]
        return names_of_escapes(" ".join(texts))

    @property
    def is_critical(self) -> bool:
        return risks.is_critical(self.approval.risk)

    @property
    def approvers(self) -> list[str]:
        """Who may approve it, if the policy names them."""
        return self.approval.approvers.split("\n") if self.approval.approvers else []

    @cached_property
    def changes(self) -> list[tuple[str, str, str]]:
        """The arguments that the approver has changed: name, before, after."""
        if self.approval.edited_arguments is None:
            return []
        return differences(self.approval, json.loads(self.approval.edited_arguments))


def _is_typed(tree: Any) -> bool:
    if isinstance(tree, dict):
        return "$type" in tree or "$object" in tree or any(map(_is_typed, tree.values()))
    return isinstance(tree, list) and any(map(_is_typed, tree))


def shown_command(argument: str, line: str) -> ShownCommand:
    """Return a command line with its parts marked, if nothing in it deceives and the guard understands it."""
    from fastrpc.guard.shell.highlight import highlighted

    if visible_name(line) != json.dumps(line, ensure_ascii=False)[1:-1]:
        return ShownCommand(argument, [], {}, ESCAPED)
    parts = highlighted(line)
    if parts is None:
        return ShownCommand(argument, [], {}, NOT_UNDERSTOOD)
    pieces: list[tuple[str, str]] = []
    found: dict[str, list[str]] = {kind: [] for kind in KINDS}
    at = 0
    for part in parts:
        pieces += [("", line[at : part.start]), (part.kind, line[part.start : part.end])]
        at = part.end
        if part.kind in found and part.text not in (*found[part.kind], "\n"):
            found[part.kind].append(part.text)
    return ShownCommand(
        argument, [*pieces, ("", line[at:])], {kind: texts for kind, texts in found.items() if texts}
    )


def names_of_escapes(text: str) -> list[tuple[str, str]]:
    """Return the escaped characters of a JSON text, each once, with their names."""
    found: dict[str, str] = {}
    high = ""
    for each in ESCAPE.finditer(text):
        escape = each[0]
        if not escape.startswith("\\u"):
            high = ""
            continue
        if high and "dc00" <= escape[2:].lower() <= "dfff":
            found.pop(high, None)
            escape = high + escape
        high = escape if "d800" <= escape[2:].lower() <= "dbff" and len(escape) == 6 else ""
        character = json.loads(f'"{escape}"')
        found[escape] = name_in_unicode(character, f"U+{ord(character):04X}")
    return list(found.items())[:MOST_NAMED]


def differences(approval: Approval, edited: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return the changed arguments as texts: name, before, after."""
    before = json.loads(approval.arguments)
    known = before if isinstance(before, dict) else {}
    return [
        (visible_name(name), written(known[name]) if name in known else "", written(value))
        for name, value in edited.items()
    ]


def waiting(view: PageView) -> Response:
    return _list(view, "approvals.html", (WAITING,))


def decided(view: PageView) -> Response:
    return _list(view, "decided.html", DECIDED)


def _list(view: PageView, template: str, states: tuple[str, ...]) -> Response:
    page = view.approvals.page(states, ON_A_PAGE + 1, view.query.get("after") or None)
    found = page.approvals[:ON_A_PAGE]
    return view.page(
        "approval_cards.html" if view.is_part else template,
        shown=[ShownApproval(each, page.now, view.person) for each in found],
        older=found[-1].id if len(page.approvals) > ON_A_PAGE else None,
        number=page.number,
        count=page.waiting,
    )


def one(view: PageView) -> Response:
    return _show(view, view.approvals.get(_id(view)))


def _id(view: PageView) -> str:
    return str(view.request.path_params["id"])


def _show(view: PageView, approval: Approval, status: int = 200, **values: Any) -> Response:
    store = view.approvals
    given = {"error": "", "edited": {}, "mistakes": {}, "confirm": None, "comment": "", **values}
    return view.page(
        "approval_state.html" if view.is_part else "approval.html",
        status,
        number=store.change_number(),
        shown=ShownApproval(approval, store.clock(), view.person),
        **given,
    )


def approve(view: PageView) -> Response:
    """Approve a call: once, or this exact call for an hour."""
    repeated = view.form.get("for") == "hour"
    uses, seconds = (MANY, HOUR_SECONDS) if repeated else (1, 300.0)
    return _decide(view, ApprovalDecision(True, view.person, DASHBOARD, uses=uses, valid_seconds=seconds))


def reject(view: PageView) -> Response:
    return _decide(view, ApprovalDecision(False, view.person, DASHBOARD, comment=_comment(view)))


def edit(view: PageView) -> Response:
    """Show what changed arguments would change; with `confirmed`, approve the call with them."""
    approval = view.approvals.get(_id(view))
    texts = _typed(view)
    edited, mistakes = _read(view, approval)
    if mistakes or not edited:
        nothing = (
            ""
            if mistakes
            else view.language.text("Nothing is changed: approve it as it is, or change a value.")
        )
        comment = _comment(view)
        return _show(view, approval, 400, edited=texts, mistakes=mistakes, error=nothing, comment=comment)
    if view.form.get("confirmed") != "yes":
        confirm = differences(approval, edited)
        return _show(view, approval, edited=texts, confirm=confirm, comment=_comment(view))
    text = json.dumps(edited, ensure_ascii=False)
    return _decide(view, ApprovalDecision(True, view.person, DASHBOARD, edited_arguments=text))


def _typed(view: PageView) -> dict[str, str]:
    """Return the texts of the arguments by name, as they were typed."""
    return {name[4:]: text for name, text in view.form.items() if name.startswith("arg:")}


def _comment(view: PageView) -> str:
    return view.form.get("comment", "").strip()


def _read(view: PageView, approval: Approval) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the values of the arguments that were changed, and what is wrong with the texts of others."""
    texts = _typed(view)
    edited: dict[str, Any] = {}
    mistakes: dict[str, str] = {}
    for name, before in ShownApproval(approval, 0.0, view.person).values:
        text = texts.get(name, before)
        if text.strip() == before:
            continue
        try:
            edited[name] = value_of(text, view.language.text)
        except Mistake as mistake:
            mistakes[name] = str(mistake)
    return edited, mistakes


def again(view: PageView) -> Response:
    """Show an approval with what was typed about it; with `compared`, with what that changes."""
    approval = view.approvals.get(_id(view))
    edited, mistakes = _read(view, approval)
    is_compared = "compared" in view.form and edited and not mistakes
    return _show(
        view,
        approval,
        edited=_typed(view) if edited or mistakes else {},
        mistakes=mistakes,
        confirm=differences(approval, edited) if is_compared else None,
        comment=_comment(view),
    )


def _decide(view: PageView, decision: ApprovalDecision) -> Response:
    """Decide, and show the approval. What somebody else has decided meanwhile is said beside it, with what
    was typed."""
    store, id = view.approvals, _id(view)
    try:
        store.decide(id, decision)
    except ApprovalError as error:
        if error.status == 404:
            raise
        values = {"error": str(error), "comment": _comment(view), "edited": _typed(view)}
        return _show(view, store.get(id), error.status, **values)
    return view.redirect("/" if view.form.get("from") == "list" else f"/approvals/{id}")


PAGES = [
    Page(
        [
            PageRoute("GET", "/", waiting),
            PageRoute("GET", "/approvals/{id}", one),
            PageRoute("POST", "/approvals/{id}/approve", approve, APPROVER),
            PageRoute("POST", "/approvals/{id}/reject", reject, APPROVER, again),
            PageRoute("POST", "/approvals/{id}/edit", edit, APPROVER, again),
        ],
        title="Waiting",
        order=1,
    ),
    Page([PageRoute("GET", "/decided", decided)], title="Decided", order=2),
]
