"""The guard of a server: it decides about each call of a tool, a resource or a prompt, by a `Policy`.

    guard = Guard(policy, callers)
    guard.install(app)

What applies to all calls of a class of callers was decided when the policy was loaded. A call takes two
dictionary look-ups and the counting of its rates, in compiled code (`CallGate`). Budgets add about 0.5 µs
(`budgets`); rules about arguments, and refusals, add their own time. Calls that a person has to approve are
deferred (`approvals`), as are those whose result has to state that a budget is nearly used up, and those for
which this server has to lease more of what servers share (`leases`). Lists show each class what it may call;
what they hide does not exist for the class.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import Any, NamedTuple, Protocol

from fastrpc._core.call_gate import CallGate
from fastrpc._core.rate_limiter import LEASE, RateLimit, RateTable
from fastrpc.errors import ResourceNotFound
from fastrpc.guard.policy.budgets import CannotCount, OverBudget
from fastrpc.guard.policy.config import DENY, Rate
from fastrpc.guard.policy.decisions import CallTarget, Decision, Policy, Verdict
from fastrpc.guard.refusals import (
    ApprovalRejected,
    ApprovalTimedOut,
    BudgetExceeded,
    BudgetUnavailable,
    NotAllowed,
    RateExceeded,
    RateUnavailable,
)
from fastrpc.protocol.versions import STATELESS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc._core.call_info import CallInfo
    from fastrpc.callers import Caller
    from fastrpc.engine.list_filter import ListItem
    from fastrpc.guard.approvals.asking import CallToApprove
    from fastrpc.guard.budgets.ledger import Account, LeaseNeeded, Ledger
    from fastrpc.guard.leases.leasing import Leasing
    from fastrpc.server import Server

    Approve = Callable[[CallToApprove], Awaitable[dict[str, Any]]]
    """Asks a person; returns the arguments, which the person may have changed. Raises GuardRefusal."""
    Refused = Callable[[CallInfo, Caller, Verdict, BaseException], object]

    class Durable(Protocol):
        """Stores decisions before they take effect: `fastrpc.guard.audit.calls.StrictCallAudit`."""

        async def begun(self, call: CallInfo) -> None:
            """Store that a call is allowed; return when that is on disk. Raises GuardRefusal."""

        async def flush_refusal(self, call: CallInfo) -> None:
            """Return when the refusal that `on_refusal` has received is on disk. Raises GuardRefusal."""


MOST_CALLERS = 4096
RETRY_SECONDS = 1
"""When a call that cannot be counted may be sent again."""
MOST_ATTEMPTS = 20
"""How often a call leases what other calls then use first."""
BUDGET_KEY = "fastrpc/budget"
"""The key in a result's ``_meta`` for budgets that are nearly used up."""


class CallerClass(NamedTuple):
    """Callers with the same decisions: `key` is what they have in common, `caller` one of them."""

    key: Hashable
    caller: Caller


@dataclass(slots=True, eq=False)
class CallerEntry:
    """What the guard caches for a principal: its caller, the caller's class, and by name the decisions about
    the tools that it has called, each with the limits that count its calls; and the accounts of tools with
    budgets."""

    caller: Caller
    caller_class: CallerClass
    decisions: dict[str, tuple[Decision, tuple[RateLimit, ...]]] = field(default_factory=dict)
    accounts: dict[str, Account] = field(default_factory=dict)


@dataclass(eq=False, repr=False)
class Guard:
    """A guard that applies a policy. `caller_of` returns the caller of a principal; `approve` asks a person,
    by default only by a form of the client (`approvals.asking.Approvals`). `rates` is shared by the workers
    of a server; `ledger` counts budgets, and observes the server: a policy with budgets needs one. `leasing`
    leases what several servers share; None: this one counts alone.
    `on_refusal` is called with each refused call. With `is_recorded`, the decision is stored in calls that a
    rule about arguments has affected, or a person has approved (`CallInfo.decided`). With `durable`, every
    call waits until the decision about it is on disk."""

    policy: Policy
    caller_of: Callable[[str], Caller]
    approve: Approve | None = None
    rates: RateTable = field(default_factory=RateTable)
    ledger: Ledger | None = None
    leasing: Leasing | None = None
    on_refusal: Refused | None = None
    is_recorded: bool = False
    durable: Durable | None = None

    def __post_init__(self) -> None:
        self._gate = CallGate(self.decide)
        self.generation = 0
        """A number that changes when the decisions about a caller may have changed."""
        self._entries: dict[str, CallerEntry] = {}
        self._classes: dict[Hashable, CallerClass] = {}
        self._server: Server | None = None

    def install(self, server: Server) -> None:
        """Apply the guard to all calls of a server, and to its lists."""
        self._server = server
        server.guard(self._gate if self.durable is None else self._decide_durably)
        guards = server.runtime.guards
        guards.insert(0, guards.pop())  # first, so that it has seen every call that a guard refuses
        server.runtime.rechecks.append(self._check_again)
        server.filter_lists(
            self._shows,
            lambda principal: self.entry(principal).caller_class,
            enforced=self.policy.config.hides,
        )
        server.list_filters[-1].refusal = self._refusal_to_notify
        server.list_filters[-1].announces_changes = True  # in `use` and `forget`
        server.runtime.caller_of = self.caller_of
        for registry in server.registries:
            registry.watchers.append(lambda kind: self._registry_changed())

    def use(self, policy: Policy) -> None:
        """Use another policy from now on, and notify the clients whose lists have changed."""
        before = {principal: self._visible(entry) for principal, entry in self._entries.items()}
        self.policy = policy
        self._forget_entries()
        _lists_changed(
            self._server, lambda principal: before.get(principal) != self._visible(self.entry(principal))
        )

    def forget(self, principals: frozenset[str]) -> None:
        """Look these callers up again: their tokens have changed. Thread-safe."""
        self.generation += 1
        for principal in principals:
            self._entries.pop(principal, None)
            self._gate.close_to(principal)
        if principals:
            _lists_changed(self._server, lambda principal: principal in principals)

    # --- calls --------------------------------------------------------------------------------------------

    def decide(self, call: CallInfo) -> Awaitable[None] | None:
        """Return None for an allowed call, an awaitable for one that waits for a person. Raises GuardRefusal;
        for a hidden target, raises the same error as for an unknown one."""
        entry = self._entries.get(call.principal) or self.entry(call.principal)
        found = entry.decisions.get(call.name)
        if found is None or call.kind != "tool":
            found = self._decision(entry, call)
        decision, limits = found
        at, wait = _take(limits)
        if wait == LEASE:
            return self._decide_leased(call, entry, decision, limits)
        if wait:
            raise self._refused(call, entry, decision.verdict, _too_often(call, decision, at, wait))
        return None if decision.is_plain else self._decide_slowly(call, entry, decision)

    async def _decide_durably(self, call: CallInfo) -> None:
        assert self.durable is not None
        try:
            waiting = self.decide(call)
            if waiting is not None:
                await waiting
        except Exception:
            await self.durable.flush_refusal(call)
            raise
        await self.durable.begun(call)

    def _decide_slowly(
        self, call: CallInfo, entry: CallerEntry, decision: Decision
    ) -> Awaitable[None] | None:
        if not decision.needs_judging:
            return self._reserve(call, entry, decision.verdict)
        target = CallTarget.of_call(call)
        verdict = self.policy.judge(decision, entry.caller, target, call.arguments)
        if verdict.action == DENY:
            raise self._refused(call, entry, verdict, self._not_allowed(call, decision, verdict))
        if self.policy.asks(verdict):
            return self._asked(call, entry, decision, verdict)
        if self.is_recorded and not verdict.says_the_same_as(decision.verdict):
            self._state(call, verdict)
        return self._reserve(call, entry, verdict) if decision.budgets else None

    async def _asked(self, call: CallInfo, entry: CallerEntry, decision: Decision, verdict: Verdict) -> None:
        from fastrpc.guard.approvals.asking import Approvals, CallToApprove

        if self.approve is None:
            self.approve = Approvals(self._server.name if self._server is not None else "")
        policy, schema = self.policy, self._schema(call)
        asked = CallToApprove(
            call,
            entry.caller,
            verdict,
            policy.version,
            policy.config.approvals,
            schema,
            lambda: self._check_current(call, entry, policy, schema),
        )
        try:
            edited = await self.approve(asked)
            if edited:
                call.change(edited)
                target = CallTarget.of_call(call)
                again = policy.judge(decision, entry.caller, target, call.arguments)
                if again.action == DENY:  # also for arguments that the approver has written
                    raise self._not_allowed(call, decision, again)
        except Exception as error:
            if isinstance(error, ApprovalTimedOut):
                error.has_code = policy.config.approvals.timeout_is_error
            raise self._refused(call, entry, verdict, error) from None
        except BaseException as error:  # it is cancelled, or the client has to send it again with an answer
            from asyncio import CancelledError

            from fastrpc.engine.call import BecomesTask

            if isinstance(error, BecomesTask):  # which makes the same call, and counts it
                for limit in self._decision(entry, call)[1]:
                    limit.give_back()
                raise
            _expect("cancelled" if isinstance(error, CancelledError) else "refused", call, entry)
            raise
        asked.confirm_at_start(lambda error: self._refused_late(call, entry, verdict, error))
        if self.is_recorded:
            self._state(call, verdict, asked.approval)
        if decision.budgets:
            await (self._reserve(call, entry, verdict) or _at_once())

    def _check_again(self, call: CallInfo) -> None:
        """Evaluate the rules about arguments again, since hooks or middleware may have changed the arguments
        after the decision. Raises GuardRefusal."""
        entry, target = self.entry(call.principal), CallTarget.of_call(call)
        decision = self._decision_for(entry.caller_class, target)
        if not decision.rules:
            return
        verdict = self.policy.judge(decision, entry.caller, target, call.bound_arguments())
        if verdict.action == DENY:
            raise self._refused_late(call, entry, verdict, self._not_allowed(call, decision, verdict))
        if self.policy.asks(verdict):
            error = ApprovalRejected(
                f"{call.name} does not run: a hook or middleware of the server has changed its arguments, "
                "and with these it needs an approval",
                call.context.protocol_version,
            )
            raise self._refused_late(call, entry, verdict, error)

    def _refused_late(
        self, call: CallInfo, entry: CallerEntry, verdict: Verdict, error: BaseException
    ) -> BaseException:
        """Return the refusal of a call that was allowed and counted earlier."""
        if self.on_refusal is not None:
            self.on_refusal(call, entry.caller, verdict, error)
        return error

    def _state(self, call: CallInfo, verdict: Verdict, approval: str = "") -> None:
        """Store the decision about this call in particular in its record. The guard of another server, where
        this one is mounted, stores its own."""
        fields = {"risk": verdict.risk, "policy": self.policy.version}
        if verdict.rule:
            fields["rule"] = verdict.rule
        if approval:
            fields["approval"] = approval
        call.decided = {**(call.decided or {}), self: fields}

    def count_request(self, principal: str, version: str) -> Coroutine[Any, Any, None] | None:
        """Count a request that is not a call against its caller's rate, as a call. Return None if it is
        counted, a coroutine that counts it if a rate has to be leased first. Both raise RateExceeded, the
        coroutine RateUnavailable, too."""
        entry = self.entry(principal)
        decision = self._decision_for(entry.caller_class, CallTarget("request", "", None))
        limits = _limits_of(self, entry, decision)
        _, wait = _take(limits)
        if wait == LEASE:
            assert self.leasing is not None
            return _count_leased(self.leasing, limits, version)
        if wait:
            raise _rate_exceeded(version, wait)
        return None

    # --- budgets ------------------------------------------------------------------------------------------

    def _reserve(
        self, call: CallInfo, entry: CallerEntry, verdict: Verdict, attempt: int = 0
    ) -> Awaitable[None] | None:
        """Count a call against its budgets. Return an awaitable if one has to be leased first, or if the
        result has to state that one is nearly used up. Raises BudgetExceeded and BudgetUnavailable."""
        from fastrpc.guard.budgets.ledger import LeaseNeeded

        account = entry.accounts[call.name]
        try:
            is_near = account.reserve()
        except LeaseNeeded as error:
            return self._reserve_leased(call, entry, verdict, error, attempt)
        except (OverBudget, CannotCount) as error:
            raise self._refused(call, entry, verdict, _uncounted(call, error)) from None
        if not is_near:
            return None
        channel: Any = call.context._channel
        channel.request.result_meta = {BUDGET_KEY: account.near()}
        return _at_once()

    # --- what servers share -------------------------------------------------------------------------------

    async def _decide_leased(
        self, call: CallInfo, entry: CallerEntry, decision: Decision, limits: tuple[RateLimit, ...]
    ) -> None:
        """Decide about a call for which a rate has to be leased first. Raises GuardRefusal."""
        try:
            assert self.leasing is not None
            at, wait = await _take_leased(self.leasing, limits)
        except CannotCount as error:
            unavailable = _rate_unavailable(call.context.protocol_version, error)
            raise self._refused(call, entry, decision.verdict, unavailable) from None
        except BaseException:  # it is cancelled
            _expect("cancelled", call, entry)
            raise
        if wait:
            raise self._refused(call, entry, decision.verdict, _too_often(call, decision, at, wait))
        if not decision.is_plain:
            await (self._decide_slowly(call, entry, decision) or _at_once())

    async def _reserve_leased(
        self, call: CallInfo, entry: CallerEntry, verdict: Verdict, needed: LeaseNeeded, attempt: int
    ) -> None:
        """Lease what a call needs of its budgets, and count it. Raises GuardRefusal."""
        assert self.leasing is not None
        try:
            if attempt > MOST_ATTEMPTS:
                raise CannotCount("other calls use what is leased")
            await self.leasing.lease(needed.needs)
        except CannotCount as error:
            raise self._refused(call, entry, verdict, _uncounted(call, error)) from None
        except BaseException:  # it is cancelled
            _expect("cancelled", call, entry)
            raise
        await (self._reserve(call, entry, verdict, attempt + 1) or _at_once())

    def _check_current(
        self, call: CallInfo, entry: CallerEntry, policy: Policy, schema: Mapping[str, Any]
    ) -> None:
        """Raise ApprovalRejected if a call has changed since the person was asked about it."""
        changed = ""
        if self.policy.version != policy.version:
            changed = "the policy has changed"
        elif self.caller_of(call.principal) != entry.caller:
            changed = "the caller's token has changed"
        elif self._schema(call) != schema:
            changed = f"the schema of {call.name} has changed"
        if changed:
            raise ApprovalRejected(
                f"the approval of {call.name} is void: {changed} meanwhile", call.context.protocol_version
            )

    def _schema(self, call: CallInfo) -> Mapping[str, Any]:
        if call.kind != "tool" or self._server is None:
            return {}
        found = self._server.registries.tools.get(call.name)
        return {} if found is None else found.signature.input_schema

    def _not_allowed(self, call: CallInfo, decision: Decision, verdict: Verdict) -> BaseException:
        version = call.context.protocol_version
        if decision.is_hidden and self.policy.config.hides and call.kind == "resource":
            hint = ""
            if self._server is not None:
                runtime = self._server.runtime
                hint = runtime.filters.hint_for(call.principal, runtime.registries.resources, call.name)
            return ResourceNotFound(call.name, hint, legacy=version != STATELESS)
        return NotAllowed(_why(call, verdict), version, rule=verdict.rule)

    def _refused(
        self, call: CallInfo, entry: CallerEntry, verdict: Verdict, error: BaseException
    ) -> BaseException:
        _expect("refused", call, entry)
        return self._refused_late(call, entry, verdict, error)

    # --- caches -------------------------------------------------------------------------------------------

    def entry(self, principal: str) -> CallerEntry:
        found = self._entries.get(principal)
        while found is None:
            found = self._looked_up(principal)
        return found

    def _looked_up(self, principal: str) -> CallerEntry | None:
        """Look up the caller of a principal, and cache it. Return None if another thread has called `forget`
        meanwhile: the caller may be outdated."""
        if len(self._entries) >= MOST_CALLERS:
            self._forget_entries()
        generation = self.generation
        caller = self.caller_of(principal)
        key = self.policy.class_key(caller)
        caller_class = self._classes.setdefault(key, CallerClass(key, caller))
        found = self._entries[principal] = CallerEntry(caller, caller_class)
        if self.generation == generation:
            return found
        self._entries.pop(principal, None)
        return None

    def knows(self, kind: str, name: str) -> bool:
        if self._server is None:
            return True
        registries = self._server.registries
        return (registries.prompts if kind == "prompt" else registries.tools).get(name) is not None

    def general_verdict(self, entry: CallerEntry, kind: str, name: str) -> Verdict | None:
        """Return the verdict on all calls of a target that no rule about arguments affects; None if the
        caller has not called it. For code that records calls, on any thread."""
        if kind == "tool":
            found = entry.decisions.get(name)
            decision = None if found is None else found[0]
        else:
            decision = self._decision_for(entry.caller_class, CallTarget(kind, name, None))
        return None if decision is None else decision.verdict

    def _decision(self, entry: CallerEntry, call: CallInfo) -> tuple[Decision, tuple[RateLimit, ...]]:
        decision = self._decision_for(entry.caller_class, CallTarget.of_call(call))
        limits = _limits_of(self, entry, decision)
        if call.kind == "tool":
            entry.decisions[call.name] = decision, limits
            reserve = None
            if decision.budgets:
                assert self.ledger is not None
                account = entry.accounts[call.name] = self.ledger.account(
                    call.principal, entry.caller.principal, call.name, decision.budgets
                )
                reserve = account.reserve_plainly
            screens = decision.screens if decision.needs_judging else None
            is_open = not decision.needs_judging or screens is not None
            if is_open:
                self._gate.open(call.principal, call.name, limits, reserve, screens)
                if self._entries.get(call.principal) is not entry:  # another thread has called `forget`
                    self._gate.close_to(call.principal)
        return decision, limits

    def _decision_for(self, caller_class: CallerClass, target: CallTarget) -> Decision:
        return self.policy.decision(caller_class.caller, caller_class.key, target)

    def _registry_changed(self) -> None:
        """Clear the decisions: a name may refer to something else now."""
        self.policy.forget()
        self.generation += 1
        self._entries = {}
        self._gate.close()

    def _forget_entries(self) -> None:
        self.generation += 1
        self._entries, self._classes = {}, {}
        self._gate.close()
        if self.ledger is not None:
            self.ledger.forget_idle()

    # --- lists --------------------------------------------------------------------------------------------

    def _shows(self, caller_class: CallerClass, item: ListItem) -> bool:
        target = CallTarget(item.kind, item.uri or item.name, item.effect, item.risk)
        return not self._decision_for(caller_class, target).is_hidden

    def _refusal_to_notify(self, caller_class: CallerClass, uri: str, version: str) -> BaseException | None:
        """Return the error for callers who subscribe to a resource that they may not read."""
        decision = self._decision_for(caller_class, CallTarget("resource", uri, None))
        if decision.is_allowed or (decision.is_hidden and self.policy.config.hides):  # which does not exist
            return None
        return NotAllowed(f"resource {uri} is not allowed", version)

    def _visible(self, entry: CallerEntry) -> frozenset[tuple[str, str]]:
        if self._server is None:
            return frozenset()
        return frozenset(
            (target.kind, target.name)
            for target in targets_of(self._server)
            if not self._decision_for(entry.caller_class, target).is_hidden
        )


def targets_of(server: Server) -> Iterator[CallTarget]:
    """Yield what a server has now: tools, prompts, resources and resource templates."""
    registries = server.registries
    for kind, registry in (
        ("tool", registries.tools),
        ("prompt", registries.prompts),
        ("resource", registries.resources),
        ("resource_template", registries.templates),
    ):
        for each in registry:
            name = each.key if kind.startswith("resource") else each.name
            yield CallTarget(kind, name, getattr(each, "effect", None), getattr(each, "risk", None))


class Schemas(Mapping[str, Mapping[str, Any]]):
    """The current input schemas of a server's tools."""

    def __init__(self, server: Server) -> None:
        server.load_tools()
        self._tools = server.registries.tools

    def __getitem__(self, name: str) -> Mapping[str, Any]:
        found = self._tools.get(name)
        if found is None:
            raise KeyError(name)
        return self._declared(found)

    def __iter__(self) -> Iterator[str]:
        return iter([tool.name for tool in self._tools])

    def __len__(self) -> int:
        return len(list(iter(self)))

    @staticmethod
    def _declared(tool: Any) -> Mapping[str, Any]:
        schema: Mapping[str, Any] = tool.signature.input_schema
        return schema


class Costs(Schemas):
    """The current costs of a server's tools, {} for a tool that declares none."""

    @staticmethod
    def _declared(tool: Any) -> Mapping[str, float]:
        return getattr(tool, "costs", None) or {}


def _why(call: CallInfo, verdict: Verdict) -> str:
    reason = f": {verdict.reason}" if verdict.reason else ""
    rule = f" (rule {verdict.rule})" if verdict.rule else ""
    return f"{call.kind} {call.name} is not allowed{reason}{rule}"


async def _take_leased(leasing: Leasing, limits: tuple[RateLimit, ...]) -> tuple[int, int]:
    """Return what `_take` does, once enough is leased. Raises CannotCount."""
    for _ in range(MOST_ATTEMPTS):
        at, wait = _take(limits)
        if wait != LEASE:
            return at, wait
        leased: Any = limits[at]
        share, now = leased.share, monotonic()
        if now < share.denied_until:
            return at, int((share.room_at - now) * 1e9)
        await leasing.lease([(share, 1)])
    raise CannotCount("other calls use what is leased")


async def _count_leased(leasing: Leasing, limits: tuple[RateLimit, ...], version: str) -> None:
    """Count a request that is not a call, once enough is leased. Raises RateExceeded, RateUnavailable."""
    try:
        _, wait = await _take_leased(leasing, limits)
    except CannotCount as error:
        raise _rate_unavailable(version, error) from None
    if wait:
        raise _rate_exceeded(version, wait)


def _limits_of(guard: Guard, entry: CallerEntry, decision: Decision) -> tuple[RateLimit, ...]:
    """Return what the requests of a caller take from, for the rates of a decision."""
    limit_of = _own_limit if guard.leasing is None else partial(_leased_limit, guard.leasing)
    return tuple(limit_of(guard.rates, entry.caller, about, rate) for about, rate in decision.rates)


def _own_limit(rates: RateTable, caller: Caller, tool: str, rate: Rate) -> RateLimit:
    name = f"{caller.counted_as}\0{tool}\0{rate.text}"
    return rates.limit(name, rate.seconds * 1_000_000_000, rate.count)


def _leased_limit(leasing: Leasing, rates: RateTable, caller: Caller, tool: str, rate: Rate) -> RateLimit:
    name = f"rate\0{caller.counted_as}\0{tool}\0{rate.text}"
    return leasing.rate(name, rate.seconds, rate.count, rates)


def _expect(outcome: str, call: CallInfo, entry: CallerEntry) -> None:
    """Note in a call's account, if it has one, that nothing is reserved for the call."""
    account = entry.accounts.get(call.name)
    if account is not None and call.kind == "tool":
        account.expect(outcome)


def _take(limits: tuple[RateLimit, ...]) -> tuple[int, int]:
    """Take one from each limit, and return 0, 0. If one has none, take nothing, and return its place and what
    it returned: nanoseconds, or LEASE."""
    for at, limit in enumerate(limits):
        wait = limit.take()
        if wait:
            for taken in limits[:at]:
                taken.give_back()
            return at, wait
    return 0, 0


def _too_often(call: CallInfo, decision: Decision, at: int, wait_ns: int) -> RateExceeded:
    error = _rate_exceeded(call.context.protocol_version, wait_ns)
    error.about, error.rate = decision.rates[at]
    return error


def _rate_exceeded(version: str, wait_ns: int) -> RateExceeded:
    seconds = max(1, -(-wait_ns // 1_000_000_000))
    return RateExceeded(f"Rate limit exceeded; retry in {seconds} s", version, retry_after_seconds=seconds)


def _rate_unavailable(version: str, error: CannotCount) -> RateUnavailable:
    words = f"The rate cannot be counted: {error}"
    return RateUnavailable(words, version, retry_after_seconds=RETRY_SECONDS)


def _uncounted(call: CallInfo, error: OverBudget | CannotCount) -> BaseException:
    """Return the refusal of a call that cannot be counted against its budgets."""
    version = call.context.protocol_version
    if isinstance(error, CannotCount):
        return BudgetUnavailable(
            f"The budget cannot be counted: {error}", version, retry_after_seconds=RETRY_SECONDS
        )
    from fastrpc.guard.budgets.ledger import facts

    found = facts(error.budget, error.used, error.resets_at)
    if error.used is None:
        message = "There is no room left to count the budgets of another caller"
    else:
        message = f"Budget exceeded: {error.budget.text}; it is reset at {found['resets_at']}"
    return BudgetExceeded(message, version, **found)


async def _at_once() -> None:
    """Allow a call through the event loop: only there a result gets ``_meta`` in addition to its tool's."""


def _lists_changed(server: Server | None, concerns: Callable[[str], bool]) -> None:
    """Notify the clients of this process: the guard of each process hears of the same changes."""
    if server is not None:
        for runtime in server._runtimes():
            runtime.announcements.take_other_lists(concerns)
