"""Approvals in the guard's database: asked for, decided, used, each by one conditional update.

An approval waits until a person decides, or until it expires. Once approved it is valid for a limited time
and for one call, unless the approver granted more. Every change is a compare-and-swap on the state: of two
decisions the second raises NotWaiting, and of two calls that use one approval one runs. The transaction that
uses it commits before the call begins, so after a crash the call has run at most once. The same call, sent
again, gets the existing approval. If the policy or the tool's schema has changed, the existing one becomes
void. A waiting approval takes no thread and no memory. When a caller asks for another approval and has too
many that are over, its oldest ones are removed. Each change increments the number of the topic ``approvals``,
except these removals and those by `retention`, for which no one waits.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from time import time
from typing import Any

from sqlalchemy import ColumnElement, and_, delete, func, insert, not_, or_, select, update
from sqlalchemy.engine import Connection

from fastrpc.errors import FastrpcError, excerpt, suggestion
from fastrpc.guard.approvals.binding import Binding
from fastrpc.guard.approvals.people import person
from fastrpc.guard.callers.token_text import ID_CHARACTERS, ID_LENGTH
from fastrpc.guard.policy import risks
from fastrpc.redaction import MASK, masked
from fastrpc.storage.database import Database
from fastrpc.storage.notifications import notify
from fastrpc.storage.schema import approvals, change_number, note_change

TOPIC = "approvals"
CHANNEL = "fastrpc_approvals"
"""PostgreSQL's channel with the ids of approvals that have changed."""
PREFIX = "ap_"
WAITING, APPROVED, REJECTED, USED, EXPIRED, VOID = STATES = (
    "waiting",
    "approved",
    "rejected",
    "used",
    "expired",
    "void",
)
MOST_OVER, MOST_OVER_CHARACTERS = 1000, 16 * 1024 * 1024
"""How many approvals of one caller are kept after they are over, and how many characters of content."""
OVER_SECONDS = 60.0
"""The minimum time for which an expired approval is kept: its call may be about to read it."""
REMOVED_AT_ONCE = 500
MOST_READ = 100
"""How many approvals are considered for one call."""
ASK_LOCK = 0x66727061
"""The first key of PostgreSQL's advisory lock that serializes a caller's requests for approvals."""
CLIENT, TERMINAL, COMMAND_LINE, WEBHOOK = "client", "terminal", "command line", "webhook"
DASHBOARD = "dashboard"
"""The channels. The first is the form that the caller's own client shows."""


class ApprovalError(FastrpcError):
    """An approval that cannot be asked for, decided or used. `status` is that of an HTTP response."""

    status = 400


class UnknownApproval(ApprovalError):
    """There is no approval with this id."""

    status = 404


class TooManyWaiting(ApprovalError):
    """The maximum number of this caller's calls wait already."""


class NotWaiting(ApprovalError):
    """The approval does not wait for a decision any more, or never did."""

    status = 409


class NotAllowedToApprove(ApprovalError):
    """This person, or this channel, may not approve this call."""

    status = 403


@dataclass(frozen=True)
class Approval:
    """An approval as it is stored. Times are seconds since 1970, None for what has not happened. `arguments`,
    `schema` and `edited_arguments`, the arguments that the approver has changed, are JSON texts.
    `extra_params` are the other params of the request (`fastrpc.guard.approvals.extra_params`)."""

    id: str
    state: str
    digest: bytes
    call_digest: bytes
    caller: str
    owner: str
    caller_class: str
    server: str
    kind: str
    name: str
    arguments: str
    rest_digests: str
    schema: str
    policy: str
    risk: str
    rule: str
    reason: str
    approvers: str
    may_edit: int
    asked_at: float
    expires_at: float
    decided_at: float | None = None
    decided_by: str | None = None
    channel: str | None = None
    comment: str | None = None
    edited_arguments: str | None = None
    prefix: str | None = None
    valid_until: float | None = None
    uses_left: int = 0
    used_at: float | None = None
    extra_params: str = ""

    def state_at(self, now: float) -> str:
        """Return its state at a time: it may have expired since it was stored."""
        return state_at(now, self.state, self.expires_at, self.valid_until)


COLUMNS = tuple(Approval.__dataclass_fields__)
STATE_COLUMNS = ("state", "expires_at", "valid_until")


def state_at(now: float, state: str, expires_at: float, valid_until: float | None) -> str:
    """Return the state of an approval whose row has these columns."""
    is_over = state == WAITING and now >= expires_at
    is_stale = state == APPROVED and valid_until is not None and now >= valid_until
    return EXPIRED if is_over or is_stale else state


@dataclass(frozen=True)
class ApprovalPage:
    """Some approvals at a time, `now`. `waiting`: how many wait in all; `number`: that of the last change."""

    approvals: list[Approval]
    waiting: int
    number: int
    now: float


@dataclass(frozen=True)
class Question:
    """A call that a person has to approve. `extra_params`: the other params, as they are stored and shown;
    `timeout_seconds`: how long it waits for a decision; `most_waiting`: how many of its caller's calls may
    wait; `rejection_seconds`: how long a rejection by a person other than the client's is valid."""

    binding: Binding
    owner: str
    caller_class: str
    risk: str
    rule: str
    reason: str
    approvers: tuple[str, ...] = ()
    may_edit: bool = False
    timeout_seconds: float = 300.0
    most_waiting: int = 20
    rejection_seconds: float = 300.0
    extra_params: str = ""


@dataclass(frozen=True)
class Asked:
    """The approval for a call, whether it is new, and a text for each other approval that is void."""

    approval: Approval
    is_new: bool
    void: tuple[str, ...]


@dataclass(frozen=True)
class ApprovalDecision:
    """A person's decision about an approval, made by `by` through `channel`. The approval may be used `uses`
    times, for `valid_seconds` from now on."""

    approves: bool
    by: str
    channel: str
    comment: str = ""
    edited_arguments: str | None = None
    prefix: str | None = None
    uses: int = 1
    valid_seconds: float = 300.0


class ApprovalStore:
    """The approvals of a database. `clock` returns seconds since 1970. Methods also raise StorageError."""

    def __init__(self, database: Database, clock: Callable[[], float] = time) -> None:
        self._database = database
        self.clock = clock

    def ask(self, question: Question) -> Asked:
        """Return the approval for a call: the existing one, or a new one. Raises TooManyWaiting."""
        with self._database.changing() as connection:
            now = self.clock()
            found = _of_call(connection, question.binding, now)
            void = self._void_others(connection, found, question, now)
            for each in found:
                if each.digest == question.binding.digest and _still_holds(each, question, now):
                    return Asked(each, False, void)
            granted = _granted(connection, question, now)
            if granted is not None:
                return Asked(granted, False, void)
            waits = select(approvals.c.id).where(
                approvals.c.state == WAITING,
                approvals.c.caller == question.binding.caller,
                approvals.c.expires_at > now,
            )
            if len(connection.execute(waits.limit(question.most_waiting)).all()) >= question.most_waiting:
                raise TooManyWaiting(
                    f"{question.most_waiting} calls of this caller wait for an approval; no other one may"
                )
            _remove_oldest(connection, question, now)
            made = new_approval(question, now)
            connection.execute(insert(approvals), vars(made))
            note_change(connection, TOPIC)
            return Asked(made, True, void)

    def _void_others(
        self, connection: Connection, found: list[Approval], question: Question, now: float
    ) -> tuple[str, ...]:
        """Make approvals void that are bound to another policy or another schema."""
        reasons = []
        for each in found:
            if each.digest == question.binding.digest or each.state_at(now) not in (WAITING, APPROVED):
                continue
            is_policy = each.policy != question.binding.policy
            what = "the policy has" if is_policy else f"the {each.kind}'s schema has"
            comment = f"{what} changed since it was asked for"
            _change(connection, each.id, [each.state], state=VOID, comment=comment)
            reasons.append(f"{each.id} is void: {comment}")
        return tuple(reasons)

    def decide(self, approval_id: str, decision: ApprovalDecision) -> Approval:
        """Approve or reject a waiting approval, and return it. Repeating the same decision changes nothing.

        Raises NotWaiting for an approval that is decided or over, NotAllowedToApprove, and ApprovalError for
        an unknown id.
        """
        with self._database.changing() as connection:
            now = self.clock()
            before = _one(connection, approval_id)
            if _says_the_same(before, decision):
                return before
            if before.state_at(now) != WAITING:
                raise NotWaiting(_why_not(before, now))
            if decision.approves and (why := _why_not_allowed(before, decision)):
                raise NotAllowedToApprove(why)
            values: dict[str, Any] = {
                "state": APPROVED if decision.approves else REJECTED,
                "decided_at": now,
                "decided_by": decision.by,
                "channel": decision.channel,
                "comment": decision.comment,
                "valid_until": now + decision.valid_seconds,
                "uses_left": decision.uses if decision.approves else 0,
                "edited_arguments": decision.edited_arguments,
                "prefix": decision.prefix,
            }
            if not _change(connection, approval_id, [WAITING], **values):
                raise NotWaiting(_why_not(_one(connection, approval_id), now))
            return _one(connection, approval_id)

    def use(self, approval_id: str, digest: bytes) -> Approval | None:
        """Use an approval for the call with this digest; None if the approval is invalid or used up."""
        with self._database.changing() as connection:
            now = self.clock()
            holds = (
                approvals.c.id == approval_id,
                approvals.c.state == APPROVED,
                approvals.c.digest == digest,
                approvals.c.uses_left > 0,
                approvals.c.valid_until > now,
            )
            less = update(approvals).where(*holds).values(uses_left=approvals.c.uses_left - 1, used_at=now)
            if connection.execute(less).rowcount != 1:
                return None
            if _one(connection, approval_id).uses_left == 0:
                _change(connection, approval_id, [APPROVED], state=USED)
            return _one(connection, approval_id)

    def withdraw(self, approval_id: str, why: str) -> None:
        """Make an approval void, unless it is used up."""
        with self._database.changing() as connection:
            _change(connection, approval_id, [WAITING, APPROVED], state=VOID, comment=why)

    def remove_over(self, before: float, limit: int) -> int:
        """Remove at most `limit` approvals, up to 500, that were over before a time; return their number. An
        approval is over when it can no longer be decided or used, with any outcome."""
        over = (
            select(approvals.c.id)
            .where(
                approvals.c.expires_at < before,
                or_(approvals.c.valid_until.is_(None), approvals.c.valid_until < before),
            )
            .order_by(approvals.c.expires_at)
            .limit(limit)
            .with_for_update(skip_locked=True)  # PostgreSQL: another process removes locked rows
        )
        with self._database.changing() as connection:
            ids = connection.execute(over).scalars().all()
            if ids:
                connection.execute(delete(approvals).where(approvals.c.id.in_(ids)))
            return len(ids)

    def get(self, approval_id: str) -> Approval:
        """Return an approval. Raises ApprovalError for an unknown id."""
        with self._database.reading() as connection:
            return _one(connection, approval_id)

    def page(self, states: Iterable[str], limit: int, after: str | None = None) -> ApprovalPage:
        """Return approvals that are in one of these states now, the newest first: those older than the
        approval `after`, if it is given. Raises ApprovalError if that is unknown."""
        now = self.clock()
        where = [_in_states(states, now)]
        with self._database.reading() as connection:
            number = change_number(connection, TOPIC)
            if after is not None:
                last = _one(connection, after)
                is_older = or_(approvals.c.asked_at < last.asked_at, approvals.c.id > last.id)
                where += [approvals.c.asked_at <= last.asked_at, is_older]
            # An index has all that chooses the ids; only the rows of the page are read.
            newest = approvals.c.asked_at.desc(), approvals.c.id
            ids = select(approvals.c.id).where(*where).order_by(*newest).limit(limit)
            found = _newest(connection, limit, approvals.c.id.in_(ids))
            count = select(func.count()).where(_in_states((WAITING,), now))
            waiting = connection.execute(count).scalar_one()
        return ApprovalPage(found, int(waiting), number, now)

    def list(self, states: Iterable[str] = (WAITING,), limit: int = 1000) -> list[Approval]:
        """Return the approvals that are in one of these states now, the oldest first."""
        with self._database.reading() as connection:
            return _newest(connection, limit, _in_states(states, self.clock()))[::-1]

    def change_number(self) -> int:
        """Return the number that each change increments. Call it before reading what may change."""
        with self._database.reading() as connection:
            return change_number(connection, TOPIC)

    def states(self, ids: Iterable[str]) -> dict[str, str]:
        """Return the states of approvals, by id, without unknown ids."""
        chosen, found, now = list(ids), {}, self.clock()
        of_state = select(*(approvals.c[name] for name in ("id", *STATE_COLUMNS)))
        with self._database.reading() as connection:
            for at in range(0, len(chosen), 500):  # SQLite accepts 999 variables
                for row in connection.execute(of_state.where(approvals.c.id.in_(chosen[at : at + 500]))):
                    found[str(row[0])] = state_at(now, *row[1:])
        return found


# --- rules ------------------------------------------------------------------------------------------------


def may_approve(approval: Approval, by: str, channel: str) -> bool:
    """Whether this person may approve through this channel."""
    return not why_not_approved_by(approval, by, channel)


def why_not_approved_by(approval: Approval, by: str, channel: str) -> str:
    """Return why this person may not approve through this channel, "" if that is allowed."""
    return _why_not_allowed(approval, ApprovalDecision(True, by, channel))


def _why_not_allowed(approval: Approval, decision: ApprovalDecision) -> str:
    """Return why a decision is not allowed, "" if it is. A critical call needs a person and a channel other
    than the caller's; if the policy names approvers, the person must be one of them."""
    by, edited = person(decision.by), decision.edited_arguments
    if risks.is_critical(approval.risk):
        if decision.channel == CLIENT:
            return (
                "a critical call cannot be approved in its own client: use 'fastrpc approvals' or the webhook"
            )
        if by in (person(approval.caller), person(approval.owner)):
            return f"{decision.by} makes this critical call: another person must approve it"
    approvers = approval.approvers.split("\n") if approval.approvers else []
    if approvers and not {decision.by, by} & set(approvers):
        return f"{decision.by} may not approve it; its approvers are {', '.join(approvers)}"
    if edited is None:
        return ""
    if decision.prefix is not None:
        return "either edit the arguments, or approve all commands with a prefix, not both"
    if not approval.may_edit:
        return (
            f"the policy does not allow edited arguments for {approval.name}: it is not in approvals.editable"
        )
    if masked(edited) != edited:
        return "the edited arguments contain a secret, which would be stored: reject the call instead"
    return f"{MASK} hides a secret: do not edit the argument that contains it" if MASK in edited else ""


def _says_the_same(approval: Approval, decision: ApprovalDecision) -> bool:
    """Whether a decision repeats the existing one, as a webhook does after a lost response."""
    states = (APPROVED, USED) if decision.approves else (REJECTED,)
    of_both = ("channel", "edited_arguments", "prefix")
    is_same = all(getattr(approval, name) == getattr(decision, name) for name in of_both)
    return is_same and approval.state in states and approval.decided_by == decision.by


def _still_holds(approval: Approval, question: Question, now: float) -> bool:
    """Whether an approval applies to the same call, sent again. A rejection by the client's own form does
    not, so that the person can reconsider."""
    state = approval.state_at(now)
    if state == REJECTED:
        is_others = approval.channel != CLIENT and approval.decided_at is not None
        return is_others and now < (approval.decided_at or 0) + question.rejection_seconds
    return state == WAITING or (state == APPROVED and approval.uses_left > 0)


def _why_not(approval: Approval, now: float) -> str:
    state = approval.state_at(now)
    by = f" by {approval.decided_by}" if state in (APPROVED, REJECTED, USED) else ""
    comment = f": {approval.comment}" if state == VOID and approval.comment else ""
    return f"{approval.id} is {state}{by}{comment}"


# --- rows -------------------------------------------------------------------------------------------------


OF_BINDING = ("digest", "call_digest", "caller", "server", "kind", "name", "schema", "policy")
OF_QUESTION = ("owner", "caller_class", "risk", "rule", "reason", "extra_params")


def new_approval(question: Question, now: float) -> Approval:
    binding = question.binding
    return Approval(
        **{name: getattr(binding, name) for name in OF_BINDING},
        **{name: getattr(question, name) for name in OF_QUESTION},
        id=PREFIX + "".join(secrets.choice(ID_CHARACTERS) for _ in range(ID_LENGTH)),
        state=WAITING,
        arguments=binding.shown,
        rest_digests=json.dumps(binding.rest_digests),
        approvers="\n".join(question.approvers),
        may_edit=int(question.may_edit),
        asked_at=now,
        expires_at=now + question.timeout_seconds,
    )


def _in_states(states: Iterable[str], now: float) -> ColumnElement[bool]:
    """Return the condition that an approval is in one of these states at a time: `state_at` in SQL."""
    row, wanted = approvals.c, set(states)
    is_over = and_(row.state == WAITING, row.expires_at <= now)
    is_stale = and_(row.state == APPROVED, row.valid_until.is_not(None), row.valid_until <= now)
    expired = or_(is_over, is_stale)
    stored = and_(row.state.in_(wanted), not_(expired))
    return or_(stored, expired) if EXPIRED in wanted else stored


def _newest(connection: Connection, limit: int, *where: ColumnElement[bool]) -> list[Approval]:
    """Return the approvals for which all conditions hold, the newest first."""
    newest = select(approvals).where(*where).order_by(approvals.c.asked_at.desc(), approvals.c.id)
    return [
        Approval(**{name: getattr(row, name) for name in COLUMNS})
        for row in connection.execute(newest.limit(limit))
    ]


def _of_call(connection: Connection, binding: Binding, now: float) -> list[Approval]:
    """Return the existing approvals for a call that may be valid, the newest first. Concurrent transactions
    for calls of one caller wait for each other."""
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock(ASK_LOCK, func.hashtext(binding.caller))))
    return _newest(
        connection,
        MOST_READ,
        approvals.c.call_digest == binding.call_digest,
        approvals.c.state.in_((WAITING, APPROVED, REJECTED)),
        or_(
            approvals.c.valid_until.is_(None),
            approvals.c.valid_until > now,
            approvals.c.state == REJECTED,
        ),
    )


def _remove_oldest(connection: Connection, question: Question, now: float) -> None:
    """Remove the oldest of a caller's approvals that are over, if they exceed the limits."""
    table, before = approvals.c, now - OVER_SECONDS
    over = or_(
        table.state.in_((USED, VOID)),
        and_(table.state == WAITING, table.expires_at < before),
        and_(table.state == APPROVED, table.valid_until < before),
        and_(
            table.state == REJECTED,
            or_(table.channel == CLIENT, table.decided_at < before - question.rejection_seconds),
        ),
    )
    held = (
        *(table.arguments, table.rest_digests, table.schema, table.comment, table.edited_arguments),
        table.extra_params,
    )
    size = sum((func.coalesce(func.length(each), 0) for each in held[1:]), func.length(held[0]))
    rows = connection.execute(
        select(table.id, size)
        .where(table.caller == question.binding.caller, table.state.in_(STATES), over)
        .order_by(table.asked_at.desc(), table.id)
        .limit(MOST_OVER + REMOVED_AT_ONCE)
    )
    total, surplus = 0, []
    for count, (approval_id, characters) in enumerate(rows, 1):
        total += characters
        if count > MOST_OVER or total > MOST_OVER_CHARACTERS:
            surplus.append(approval_id)
    if surplus:
        connection.execute(delete(approvals).where(table.id.in_(surplus[-REMOVED_AT_ONCE:])))


def _granted(connection: Connection, question: Question, now: float) -> Approval | None:
    """Return an approval of first words that applies to a call, None if there is none."""
    binding = question.binding
    if binding.kind != "tool" or not binding.texts:
        return None
    from fastrpc.guard.approvals.prefix import allows

    same = ("caller", "server", "kind", "name", "policy")
    granted = _newest(
        connection,
        MOST_READ,
        approvals.c.state == APPROVED,
        approvals.c.prefix.is_not(None),
        approvals.c.uses_left > 0,
        approvals.c.valid_until > now,
        *(approvals.c[name] == getattr(binding, name) for name in same),
    )
    for each in granted:
        is_alike = each.schema == binding.schema
        is_riskier = risks.rank(question.risk) > risks.rank(each.risk)
        if is_riskier or not is_alike or each.prefix is None:
            continue
        if allows(each.prefix, each.rest_digests, binding):
            return each
    return None


def _change(connection: Connection, approval_id: str, states: list[str], **values: Any) -> bool:
    is_there = (approvals.c.id == approval_id, approvals.c.state.in_(states))
    changed: bool = connection.execute(update(approvals).where(*is_there).values(**values)).rowcount == 1
    if changed:
        note_change(connection, TOPIC)
        notify(connection, CHANNEL, approval_id)
    return changed


def _one(connection: Connection, approval_id: str) -> Approval:
    for found in _newest(connection, 1, approvals.c.id == approval_id):
        return found
    known = [str(found) for found in connection.execute(select(approvals.c.id).limit(1000)).scalars()]
    raise UnknownApproval(f"there is no approval {excerpt(approval_id)!r}{suggestion(approval_id, known, 1)}")
