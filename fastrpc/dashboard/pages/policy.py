"""The guard's file: shown, and changed by an administrator.

A text is checked as one types, and by a button; before it is saved, the page shows what it changes, and what
the calls of the last day would meet under it. It is saved only if the file is still the one that was opened:
otherwise the page shows how the two differ, with all that was typed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from difflib import unified_diff

from fastrpc.dashboard.access import ADMINISTRATOR
from fastrpc.dashboard.recording import recorded
from fastrpc.dashboard.view import Page, PageError, PageRoute
from fastrpc.guard.audit.reading import UnhurriedFilter
from fastrpc.guard.callers.tokens import CallerTokens
from fastrpc.guard.editing import FORMER, PolicyChanged, PolicyText
from fastrpc.guard.policy.sections import GuardConfigError
from fastrpc.guard.replay import DAY_SECONDS, UNKNOWN, callers_among, recorded_calls, replay, since_ago
from fastrpc.redaction import masked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from starlette.responses import Response

    from fastrpc.dashboard.view import PageView
    from fastrpc.guard.editing import PolicyEditor
    from fastrpc.guard.policy.decisions import Policy
    from fastrpc.guard.replay import Replay

MOST_CHANGES = 100
"""How many kinds of changed calls are listed."""


@dataclass(frozen=True)
class Check:
    """What is wrong with a text, or else what the server would warn about. `line` is that of the mistake, 0
    if it is unknown, and `source` the text of that line."""

    mistake: str = ""
    line: int = 0
    source: str = ""
    warnings: tuple[str, ...] = ()
    policy: Policy | None = None


def _editor(view: PageView) -> PolicyEditor:
    if view.sources.policy is None:
        raise PageError("This process does not know the guard's file: start it with --guard.", 404)
    return view.sources.policy


def _changeable(view: PageView) -> PolicyEditor:
    """Return the editor of a file that these pages may change, and so show with its lines."""
    editor = _editor(view)
    if editor.is_shared:
        raise PageError("This file has settings of other parts, too: change it with an editor.", 403)
    return editor


def _opened(view: PageView) -> PolicyText:
    try:
        return _editor(view).open()
    except GuardConfigError as error:
        raise PageError(str(error), 503) from None


def _checked(editor: PolicyEditor, text: str) -> Check:
    try:
        policy, warnings = editor.check(text)
    except GuardConfigError as error:
        lines = text.splitlines()
        source = lines[error.line - 1] if 0 < error.line <= len(lines) else ""
        return Check(str(error), error.line, source)
    return Check(warnings=tuple(warnings), policy=policy)


def _typed(view: PageView) -> str:
    """Return the text of the form. Browsers send CR LF after each line."""
    return view.form.get("text", "").replace("\r\n", "\n")


# --- pages ------------------------------------------------------------------------------------------------


def policy(view: PageView) -> Response:
    editor = _editor(view)
    now = _opened(view)
    check = _checked(editor, now.text)
    source = "" if editor.is_shared else masked(check.source)
    return view.page(
        "policy.html",
        name=editor.name,
        path=editor.path,
        lines=[] if editor.is_shared else masked(now.text).splitlines(),  # a secret may be there by mistake
        version=now.version,
        check=replace(check, source=source, line=check.line if source else 0),
        used=editor.used_version,
        is_shared=editor.is_shared,
        saved=view.query.get("saved") == now.version,
        former=editor.name + FORMER,
    )


def edit(view: PageView) -> Response:
    """The form: of the file, or with the text of a form that was sent."""
    if "text" in view.form:
        return _form(view, _typed(view), view.form.get("version", ""))
    now = _opened(view)
    return _form(view, now.text, now.version)


def _form(view: PageView, text: str, version: str, status: int = 200, **values: Any) -> Response:
    editor = _changeable(view)
    given = {"check": _checked(editor, text), "difference": [], "problem": "", **values}
    return view.page("policy_edit.html", status, name=editor.name, text=text, version=version, **given)


def check(view: PageView) -> Response:
    """Say what is wrong with a text: as a part of the open page, or with the whole form."""
    editor, text = _changeable(view), _typed(view)
    if view.is_part:
        return view.page("policy_state.html", check=_checked(editor, text))
    return _form(view, text, view.form.get("version", ""))


def preview(view: PageView) -> Response:
    """Show what a text would change, before it is saved."""
    editor, text, version = _changeable(view), _typed(view), view.form.get("version", "")
    found = _checked(editor, text)
    if found.policy is None:
        return _form(view, text, version, 400, check=found)
    now = _opened(view)
    if now.version != version:
        return _changed(view, text, now)
    if now.text == text:
        problem = view.language.text("Nothing is changed: change the text, or leave it as it is.")
        return _form(view, text, version, 400, check=found, problem=problem)
    former = _checked(editor, now.text).policy
    result = None if former is None else _replayed(view, found.policy, former)
    changes = [] if result is None else sorted(result.changes.items(), key=lambda each: -each[1])
    return view.page(
        "policy_preview.html",
        name=editor.name,
        text=text,
        version=version,
        check=found,
        difference=_difference(now.text, text),
        result=result,
        changes=changes[:MOST_CHANGES],
        more=len(changes) - MOST_CHANGES,
        unknown=UNKNOWN,
        knows_tools=editor.targets() is not None,
        is_recorded=former is not None and former.config.audit.mode is not None,
        needs_start=former is not None and found.policy.config.read_at_start != former.config.read_at_start,
    )


def save(view: PageView) -> Response:
    editor, text, version = _changeable(view), _typed(view), view.form.get("version", "")
    try:
        with recorded(view, "policy.save", target=editor.name, former_policy=version) as fields:
            fields["policy"] = saved = editor.save(text, version)
    except PolicyChanged as changed:
        return _changed(view, text, changed.now)
    except GuardConfigError:
        return _form(view, text, version, 400)
    except OSError as error:
        problem = view.language.text("The file cannot be written: {error}", error=error.strerror or error)
        return _form(view, text, version, 503, problem=problem)
    return view.redirect(f"/policy?saved={saved}")


def _changed(view: PageView, text: str, now: PolicyText) -> Response:
    """Show how a typed text differs from the file, which has been changed meanwhile. If the form is sent
    again, it replaces what is shown."""
    problem = view.language.text(
        "The file has been changed since you opened it. Nothing was saved: below is how your text differs."
    )
    return _form(view, text, now.version, 409, problem=problem, difference=_difference(now.text, text))


def _difference(before: str, after: str) -> list[tuple[str, str]]:
    """Return the lines of a unified diff, each with its sign; "" for the places."""
    lines = list(unified_diff(before.splitlines(), after.splitlines(), n=3, lineterm=""))[2:]
    return [("", line) if line.startswith("@@") else (line[0], line[1:]) for line in lines]


# --- recorded calls ---------------------------------------------------------------------------------------


def _replayed(view: PageView, policy: Policy, former: Policy) -> Replay | None:
    """Return what the calls of the last day would meet, None if the log has none."""
    offered = _editor(view).targets()
    targets = None if offered is None else {(each.kind, each.name): each for each in offered}
    day = UnhurriedFilter({}, since_ago(DAY_SECONDS))
    records = recorded_calls(former.config.audit.path, day)
    callers = callers_among(CallerTokens(view.sources.database()).list())
    found = replay(policy, former, records, callers, targets)
    return found if found.calls else None


PAGES = [
    Page(
        [
            PageRoute("GET", "/policy", policy),
            PageRoute("GET", "/policy/edit", edit, ADMINISTRATOR),
            PageRoute("POST", "/policy/edit", edit, ADMINISTRATOR, again=edit),
            PageRoute("POST", "/policy/check", check, ADMINISTRATOR, again=edit),
            PageRoute("POST", "/policy/preview", preview, ADMINISTRATOR, again=preview),
            PageRoute("POST", "/policy/save", save, ADMINISTRATOR, again=edit),
        ],
        title="Policy",
        order=21,
        is_there=lambda sources: sources.policy is not None,
    )
]
