"""Who may call: the tokens of callers, the classes of the policy, and what each may do, worked out.

An administrator makes, rotates and revokes tokens. The text of a new one is on the page that answers the
form, and nowhere else. What a caller may do is the policy's decision about each tool of this process, with
what decides it (`fastrpc.guard.permissions`); a process without tools shows the lists of the policy.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from functools import cached_property
from time import time

from fastrpc.callers import Caller
from fastrpc.dashboard.access import ADMINISTRATOR
from fastrpc.dashboard.recording import recorded
from fastrpc.dashboard.view import Page, PageError, PageRoute
from fastrpc.guard.approvals.display import visible_name
from fastrpc.guard.callers.tokens import CallerTokens, TokenError, TokenRecord, UnknownToken
from fastrpc.guard.permissions import permissions
from fastrpc.guard.policy.sections import GuardConfigError
from fastrpc.guard.reasons import lists_of
from fastrpc.guard.times import seconds_in, seconds_until

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeVar

    from starlette.responses import Response

    from fastrpc.dashboard.view import PageView
    from fastrpc.guard.permissions import Permission
    from fastrpc.guard.policy.decisions import CallTarget, Policy

    Item = TypeVar("Item")

ON_A_PAGE = 50
KINDS = ("tool", "resource", "prompt")
OF_FIELDS = {"owner": "owner", "class": "class", "scope": "scopes", "scopes": "scopes", "expires": "expires"}
"""The field of the form that an error of the store is about, by the word that it begins with."""


@dataclass(frozen=True)
class ShownRows:
    """The items on a page of a list, the numbers of the pages before and after it, None for none, and how
    many items all pages have."""

    items: Sequence[Any]
    before: int | None
    after: int | None
    count: int


def _part(view: PageView, items: Sequence[Item]) -> ShownRows:
    asked = view.query.get("page", "1")
    last = max(1, -(-len(items) // ON_A_PAGE))
    number = min(int(asked), last) if asked.isascii() and asked.isdigit() and len(asked) < 7 else 1
    number = max(number, 1)
    start = (number - 1) * ON_A_PAGE
    before, after = (number - 1 or None), (number + 1 if number < last else None)
    return ShownRows(items[start : start + ON_A_PAGE], before, after, len(items))


@dataclass(frozen=True)
class ShownToken:
    """A token as its template shows it, at the time `now`."""

    record: TokenRecord
    now: float

    @property
    def status(self) -> str:
        return self.record.status(self.now)

    def name_of(self, field: str) -> str:
        return visible_name(str(getattr(self.record, field) or ""))

    @property
    def scopes(self) -> str:
        return visible_name(" ".join(self.record.scopes))

    @property
    def caller(self) -> Caller:
        found = self.record
        return Caller(
            found.principal,
            found.caller_class,
            owner=found.owner,
            scopes=found.scopes,
            token_id=found.id,
        )


class Worked:
    """What a caller may do, under the policy of this process."""

    def __init__(self, policy: Policy, targets: list[CallTarget] | None, caller: Caller) -> None:
        self._policy = policy
        self._targets = targets
        self._caller = caller

    @property
    def knows_tools(self) -> bool:
        return self._targets is not None

    @cached_property
    def permissions(self) -> list[Permission]:
        """One for each tool, prompt and resource, those that are allowed first."""
        found = permissions(self._policy, self._caller, self._targets or ())
        return sorted(found, key=lambda each: not each.is_allowed)

    @property
    def sees(self) -> int:
        return sum(each.is_allowed for each in self._tools)

    @property
    def of(self) -> int:
        return len(self._tools)

    @property
    def _tools(self) -> list[Permission]:
        return [each for each in self.permissions if each.target.kind == "tool"]

    @property
    def lists(self) -> list[tuple[str, tuple[str, ...]]]:
        """The lists that apply, each with its names and globs: a call must be in all of its kind."""
        found = [
            (name, grant.patterns(kind))
            for kind in KINDS
            for name, grant in lists_of(self._policy, self._caller, kind)
        ]
        return [(name, patterns.texts) for name, patterns in found if patterns is not None]


def _policy(view: PageView) -> tuple[Policy | None, str]:
    """Return the policy of this process, or None and the reason."""
    if view.sources.policy is None:
        return None, view.language.text("This process does not know the guard's file: start it with --guard.")
    try:
        return view.sources.policy.policy(), ""
    except GuardConfigError as error:
        return None, str(error)


def _workable(view: PageView) -> tuple[Callable[[Caller], Worked | None], Policy | None, str]:
    """Return what works out what a caller may do, which returns None without a policy; the policy; and the
    reason why there is none."""
    policy, problem = _policy(view)
    targets = view.sources.policy.targets() if view.sources.policy is not None else None
    return (lambda caller: None if policy is None else Worked(policy, targets, caller)), policy, problem


def _store(view: PageView) -> CallerTokens:
    return CallerTokens(view.sources.database())


# --- pages ------------------------------------------------------------------------------------------------


def callers(view: PageView) -> Response:
    return _list(view)


def _list(view: PageView, status: int = 200, mistakes: dict[str, str] | None = None) -> Response:
    records = _store(view).list()[::-1]
    work, policy, problem = _workable(view)
    part = _part(view, [ShownToken(each, time()) for each in records])
    names = _classes(policy, records)
    return view.page(
        "callers.html",
        status,
        part=part,
        classes=[(name, visible_name(name), work(Caller("", name))) for name in names],
        problem=problem,
        typed=view.form,
        mistakes=mistakes or {},
        once=secrets.token_urlsafe(18),
    )


def _classes(policy: Policy | None, records: list[TokenRecord]) -> list[str]:
    """Return the classes that the policy or a token names."""
    found = dict.fromkeys(sorted({each.caller_class for each in records}))
    if policy is None:
        return list(found)
    config = policy.config
    named = [
        config.default_class,
        config.user_class,
        *config.classes,
        *(each.caller_class for each in config.claims),
    ]
    return list(dict.fromkeys([*named, *found]))


def of_class(view: PageView) -> Response:
    name = str(view.request.path_params["name"])
    work, policy, problem = _workable(view)
    if name not in _classes(policy, _store(view).list()):
        raise PageError("There is no such class.", 404)
    worked = work(Caller("", name))
    return view.page(
        "callers_class.html",
        name=visible_name(name),
        worked=worked,
        problem=problem,
        part=_part(view, worked.permissions if worked else []),
    )


def token(view: PageView) -> Response:
    return _token(view)


def _token(view: PageView, status: int = 200, mistake: str = "") -> Response:
    try:
        record = _store(view).get(str(view.request.path_params["id"]))
    except UnknownToken as error:
        raise PageError(str(error), 404) from None
    shown = ShownToken(record, time())
    work, _, problem = _workable(view)
    worked = work(shown.caller)
    return view.page(
        "callers_token.html",
        status,
        shown=shown,
        worked=worked,
        problem=problem,
        part=_part(view, worked.permissions if worked else []),
        typed=view.form,
        mistake=mistake,
    )


# --- actions ----------------------------------------------------------------------------------------------


def make(view: PageView) -> Response:
    """Make a token, and show it this once. What was typed stays if it does not fit."""
    typed = {name: view.form.get(name, "").strip() for name in ("owner", "class", "scopes", "expires")}
    try:
        expires_in = seconds_until(typed["expires"], time()) if typed["expires"] else None
    except ValueError as error:
        return _list(view, 400, {"expires": str(error)})
    if not view.keys.is_first(view.form.get("once", ""), view.person):
        again = view.language.text(
            "This form was sent already: look for the token in the list, or send the form once more."
        )
        return _list(view, 409, {"": again})
    try:
        with recorded(view, "token.create") as fields:
            about = typed["owner"], typed["class"] or "default", typed["scopes"].split()
            record, text = _store(view).create(*about, expires_in)
            fields |= {"target": record.id, "owner": record.owner, "of_class": record.caller_class}
    except TokenError as error:
        word, _, sentence = str(error).partition(": ")
        name = OF_FIELDS.get(word, "")
        return _list(view, 400, {name: sentence if name else str(error)})
    return _shown_once(view, record, text)


def rotate(view: PageView) -> Response:
    """Make the successor of a token, and show it this once."""
    overlap = view.form.get("overlap", "").strip()
    seconds = seconds_in(overlap or "0s")
    if seconds is None:
        mistake = view.language.text("expected a time such as 90m, 12h or 30d")
        return _token(view, 400, mistake)
    id = str(view.request.path_params["id"])
    try:
        with recorded(view, "token.rotate", target=id) as fields:
            record, text = _store(view).rotate(id, seconds)
            fields |= {"successor": record.id, "owner": record.owner}
    except UnknownToken as error:
        raise PageError(str(error), 404) from None
    except TokenError as error:
        return _token(view, 409, str(error))
    return _shown_once(view, record, text)


def _shown_once(view: PageView, record: TokenRecord, text: str) -> Response:
    return view.page("callers_made.html", shown=ShownToken(record, time()), text=text)


def revoke(view: PageView) -> Response:
    id = str(view.request.path_params["id"])
    try:
        with recorded(view, "token.revoke", target=id) as fields:
            fields["owner"] = _store(view).revoke(id).owner
    except UnknownToken as error:
        raise PageError(str(error), 404) from None
    return view.redirect(f"/callers/tokens/{id}")


PAGES = [
    Page(
        [
            PageRoute("GET", "/callers", callers),
            PageRoute("POST", "/callers", make, ADMINISTRATOR, again=callers),
            PageRoute("GET", "/callers/classes/{name:path}", of_class),
            PageRoute("GET", "/callers/tokens/{id}", token),
            PageRoute("POST", "/callers/tokens/{id}/rotate", rotate, ADMINISTRATOR, again=token),
            PageRoute("POST", "/callers/tokens/{id}/revoke", revoke, ADMINISTRATOR),
        ],
        title="Callers",
        order=20,
    )
]
