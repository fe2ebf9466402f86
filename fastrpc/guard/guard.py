"""The guard of a server: it decides about each call of a tool, a resource or a prompt, by a `Policy`.

    guard = Guard(policy, callers)
    guard.install(app)

What all calls of a class of callers have in common was decided when the policy was loaded; a call costs
two dictionaries' look-ups and the count of its rates, in compiled code (`CallGate`). Rules about arguments,
and refusals, cost what they take. Calls that a person has to approve are deferred (`approvals`). Lists show
each class what it may call, and what they hide does not exist for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastrpc._core.call_gate import CallGate
from fastrpc._core.rate_limiter import RateTable
from fastrpc.errors import ResourceNotFound
from fastrpc.guard.policy.config import DENY
from fastrpc.guard.refusals import NotAllowed, RateExceeded
from fastrpc.protocol.versions import MODERN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable, Iterator
    from typing import Protocol

    from fastrpc._core.call_info import CallInfo
    from fastrpc._core.rate_limiter import RateLimit
    from fastrpc.engine.list_filter import ListItem
    from fastrpc.guard.callers.caller import Caller
    from fastrpc.guard.policy.config import Rate
    from fastrpc.guard.policy.decisions import Decision, Policy, Verdict
    from fastrpc.server import Server

    Approve = Callable[[CallInfo, Verdict, float], Awaitable[None]]
    """Asks a person, for at most so many seconds. Raises GuardRefusal for no."""
    Refused = Callable[[CallInfo, Caller, Verdict, BaseException], object]

    class Durable(Protocol):
        """Keeps decisions before anything comes of them: `fastrpc.guard.audit.calls.StrictCallAudit`."""

        async def begun(self, call: CallInfo) -> None:
            """Return when it is kept that a call is allowed. Raises GuardRefusal."""

        async def refusal_kept(self, call: CallInfo) -> None:
            """Return when what `on_refusal` was told of a call is kept. Raises GuardRefusal."""


MOST_CALLERS = 4096


class CallerClass:
    """The callers of whom the policy says the same: `key` is what they have in common, `caller` one of
    them."""

    __slots__ = ("caller", "key")

    def __init__(self, key: Hashable, caller: Caller) -> None:
        self.key = key
        self.caller = caller


class Entry:
    """What the guard keeps of a principal: its caller, the caller's class, and the decisions about the tools
    that it has called, by name, each with the limits that count its calls."""

    __slots__ = ("caller", "caller_class", "decisions")

    def __init__(self, caller: Caller, caller_class: CallerClass) -> None:
        self.caller = caller
        self.caller_class = caller_class
        self.decisions: dict[str, tuple[Decision, tuple[RateLimit, ...]]] = {}


class Target:
    """What is called, or listed."""

    __slots__ = ("effect", "kind", "name")

    def __init__(self, kind: str, name: str, effect: str | None) -> None:
        self.kind = kind
        self.name = name
        self.effect = effect


class Guard:
    """A guard by a policy. `caller_of` returns the caller of a principal; `approve` asks a person, by default
    through the client of the call (`approvals.by_elicitation`). `rates` is shared by the workers of a server;
    `on_refusal` is called with each call that is refused. With `durable` every call waits until the decision
    about it is kept."""

    def __init__(
        self,
        policy: Policy,
        caller_of: Callable[[str], Caller],
        *,
        approve: Approve | None = None,
        rates: RateTable | None = None,
        on_refusal: Refused | None = None,
        durable: Durable | None = None,
    ) -> None:
        self._policy = policy
        self._caller_of = caller_of
        self._approve = approve
        self._rates = rates or RateTable()
        self._on_refusal = on_refusal
        self._durable = durable
        self._gate = CallGate(self.decide)
        self._entries: dict[str, Entry] = {}
        self._classes: dict[Hashable, CallerClass] = {}
        self._server: Server | None = None

    @property
    def policy(self) -> Policy:
        return self._policy

    def install(self, server: Server) -> None:
        """Put the guard in front of all calls of a server, and in its lists."""
        self._server = server
        server.guard(self._gate.decide if self._durable is None else self._decide_durably)
        server.filter_lists(self._shows, self._class_of, enforced=self._policy.config.hides)
        for registry in server.registries:
            registry.watchers.append(lambda kind: self._registry_changed())

    def use(self, policy: Policy) -> None:
        """Decide by another policy from now on, and notify the clients whose lists are other ones now."""
        before = {principal: self._visible(entry) for principal, entry in self._entries.items()}
        self._policy = policy
        self._forget_entries()
        if self._server is not None:
            self._server.lists_changed(
                lambda principal: before.get(principal) != self._visible(self.entry(principal))
            )

    def forget(self, principals: frozenset[str]) -> None:
        """Look these callers up again: their tokens have changed."""
        for principal in principals:
            self._entries.pop(principal, None)
            self._gate.close_to(principal)
        if self._server is not None and principals:
            self._server.lists_changed(lambda principal: principal in principals)

    # --- calls --------------------------------------------------------------------------------------------

    def decide(self, call: CallInfo) -> Awaitable[None] | None:
        """Return None for a call that is allowed, an awaitable for one that waits for a person. Raises
        GuardRefusal, and what says that there is no such thing for what is hidden."""
        entry = self._entries.get(call.principal) or self.entry(call.principal)
        found = entry.decisions.get(call.name)
        if found is None or call.kind != "tool":
            found = self._decision(entry, call)
        decision, limits = found
        for limit in limits:
            wait = limit.take()
            if wait:
                self._give_back(limits, limit)
                raise self._refused(call, entry, decision.verdict, _too_often(call, wait))
        if decision.is_plain:
            return None
        return self._decide_slowly(call, entry, decision)

    async def _decide_durably(self, call: CallInfo) -> None:
        assert self._durable is not None
        try:
            waiting = self.decide(call)
            if waiting is not None:
                await waiting
        except Exception:
            await self._durable.refusal_kept(call)
            raise
        await self._durable.begun(call)

    def _decide_slowly(self, call: CallInfo, entry: Entry, decision: Decision) -> Awaitable[None] | None:
        """Decide about a call that is not allowed at once."""
        target = Target(call.kind, call.name, call.effect)
        verdict = self._policy.judge(decision, entry.caller, target, call.arguments)
        if verdict.action == DENY:
            raise self._refused(call, entry, verdict, self._not_allowed(call, decision, verdict))
        if not self._policy.asks(verdict):
            return None
        return self._asked(call, entry, verdict)

    async def _asked(self, call: CallInfo, entry: Entry, verdict: Verdict) -> None:
        from fastrpc.guard.approvals import by_elicitation

        approve = self._approve or by_elicitation
        try:
            await approve(call, verdict, self._policy.config.approval_seconds)
        except Exception as error:
            raise self._refused(call, entry, verdict, error) from None

    def _not_allowed(self, call: CallInfo, decision: Decision, verdict: Verdict) -> BaseException:
        version = call.context.protocol_version
        if decision.is_hidden and self._policy.config.hides and call.kind == "resource":
            return ResourceNotFound(call.name, self._hint_for(call), legacy=version != MODERN)
        return NotAllowed(_why(call, verdict), version, rule=verdict.rule)

    def _hint_for(self, call: CallInfo) -> str:
        """Return what an error about a resource that there is not suggests."""
        if self._server is None:
            return ""
        runtime = self._server.runtime
        return runtime.hint_for(call.principal, runtime.registries.resources, call.name)

    def _refused(self, call: CallInfo, entry: Entry, verdict: Verdict, error: BaseException) -> BaseException:
        if self._on_refusal is not None:
            self._on_refusal(call, entry.caller, verdict, error)
        return error

    @staticmethod
    def _give_back(limits: tuple[RateLimit, ...], refused: RateLimit) -> None:
        for limit in limits:
            if limit is refused:
                return
            limit.give_back()

    # --- what is kept -------------------------------------------------------------------------------------

    def entry(self, principal: str) -> Entry:
        """Return what is kept of a principal."""
        found = self._entries.get(principal)
        if found is None:
            caller = self._caller_of(principal)
            if len(self._entries) >= MOST_CALLERS:
                self._forget_entries()
            key = self._policy.class_key(caller)
            caller_class = self._classes.setdefault(key, CallerClass(key, caller))
            found = self._entries[principal] = Entry(caller, caller_class)
        return found

    def general_verdict(self, entry: Entry, kind: str, name: str) -> Verdict | None:
        """Return what the policy says of all calls of a thing, as far as the caller has called it; None if it
        has not, or rules say something else of single ones. For whoever records calls, on any thread."""
        if kind == "tool":
            found = entry.decisions.get(name)
            decision = None if found is None else found[0]
        else:
            decision = self._decision_for(entry.caller_class, Target(kind, name, None))
        return None if decision is None or decision.rules else decision.verdict

    def _decision(self, entry: Entry, call: CallInfo) -> tuple[Decision, tuple[RateLimit, ...]]:
        decision = self._decision_for(entry.caller_class, Target(call.kind, call.name, call.effect))
        limits = tuple(self._limit(entry.caller, about, rate) for about, rate in decision.rates)
        if call.kind == "tool":
            entry.decisions[call.name] = decision, limits
            if decision.is_plain and self._entries.get(call.principal) is entry:
                self._gate.open(call.principal, call.name, limits)
        return decision, limits

    def _decision_for(self, caller_class: CallerClass, target: Target) -> Decision:
        return self._policy.decision(caller_class.caller, caller_class.key, target)

    def _limit(self, caller: Caller, tool: str, rate: Rate) -> RateLimit:
        return self._rates.limit(
            f"{caller.principal}\0{tool}\0{rate.text}", rate.seconds * 1_000_000_000, rate.count
        )

    def _registry_changed(self) -> None:
        """What is called by a name may be something else now."""
        self._policy.forget()
        self._entries = {}
        self._gate.close()

    def _forget_entries(self) -> None:
        self._entries, self._classes = {}, {}
        self._gate.close()

    # --- lists --------------------------------------------------------------------------------------------

    def _class_of(self, principal: str) -> CallerClass:
        return self.entry(principal).caller_class

    def _shows(self, caller_class: CallerClass, item: ListItem) -> bool:
        target = Target(item.kind, item.uri or item.name, item.effect)
        return not self._decision_for(caller_class, target).is_hidden

    def _visible(self, entry: Entry) -> frozenset[tuple[str, str]]:
        """Return what the caller sees of what is registered."""
        if self._server is None:
            return frozenset()
        registries = self._server.registries
        found = []
        for kind, registry in (
            ("tool", registries.tools),
            ("prompt", registries.prompts),
            ("resource", registries.resources),
            ("resource_template", registries.templates),
        ):
            for each in registry:
                name = each.key if kind.startswith("resource") else each.name
                target = Target(kind, name, getattr(each, "effect", None))
                if not self._decision_for(entry.caller_class, target).is_hidden:
                    found.append((kind, name))
        return frozenset(found)


class Schemas(Mapping[str, Mapping[str, Any]]):
    """The input schema of each tool that a server has now."""

    def __init__(self, server: Server) -> None:
        server.load_tools()
        self._tools = server.registries.tools

    def __getitem__(self, name: str) -> Mapping[str, Any]:
        found = self._tools.get(name)
        if found is None:
            raise KeyError(name)
        return found.signature.input_schema

    def __iter__(self) -> Iterator[str]:
        return iter([tool.name for tool in self._tools])

    def __len__(self) -> int:
        return len(list(iter(self)))


def _why(call: CallInfo, verdict: Verdict) -> str:
    """Return the refusal as words."""
    reason = f": {verdict.reason}" if verdict.reason else ""
    rule = f" (rule {verdict.rule})" if verdict.rule else ""
    return f"{call.kind} {call.name} is not allowed{reason}{rule}"


def _too_often(call: CallInfo, wait_ns: int) -> RateExceeded:
    seconds = max(1, -(-wait_ns // 1_000_000_000))
    return RateExceeded(
        f"Rate limit exceeded; retry in {seconds} s",
        call.context.protocol_version,
        retry_after_seconds=seconds,
    )
