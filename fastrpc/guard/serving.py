"""`fastrpc serve --guard FILE`: a guarded server, whose guard follows its file.

`GuardedServing` reads the file in the starting process, before any worker is forked, and refuses an invalid
file; `guarded` applies the guard to the server of a process. The file is polled every `CHECK_SECONDS`: a
change takes effect at once; an invalid file is logged, and the former policy remains in use. A worker that is
started later, because another one has died, begins with the file's current policy. The database of tokens is
opened only if it exists or something makes it. Only a guarded server imports this module.
"""

from __future__ import annotations

import os
from copy import copy
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from threading import Lock

from fastrpc import diagnostics
from fastrpc._core.rate_limiter import RateTable
from fastrpc.callers import OF_DASHBOARD, Caller, owner_of
from fastrpc.errors import Reworded, UsageError, suggestion
from fastrpc.guard.approvals.gates import Gates
from fastrpc.guard.approvals.retention import ApprovalRetention
from fastrpc.guard.callers import claims
from fastrpc.guard.guard import Costs, Guard, Schemas
from fastrpc.guard.policy import file as policy_file
from fastrpc.guard.policy.config import Grant, GuardConfig
from fastrpc.guard.policy.decisions import Policy
from fastrpc.guard.policy.sections import GuardConfigError, Section
from fastrpc.guard.tasks import TaskGuard
from fastrpc.regular_files import stamp_of
from fastrpc.storage.kinds import GUARD
from fastrpc.storage.settings import GUARD_DATABASE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeVar

    from fastrpc.guard.approvals.asking import Approvals
    from fastrpc.guard.approvals.store import Approval, ApprovalStore
    from fastrpc.guard.approvals.webhook import Webhook
    from fastrpc.guard.audit import AuditLog
    from fastrpc.guard.audit.calls import CallAudit
    from fastrpc.guard.budgets.file import BudgetFile
    from fastrpc.guard.callers.directory import TokenDirectory
    from fastrpc.server import Server
    from fastrpc.storage.database import Database
    from fastrpc.transports.http.issuers import PrincipalOf
    from fastrpc.transports.http.token_source import TokenSource

    Of = TypeVar("Of")
    """The call that waits for an approval, or the caller of one without a call."""

    Stamp = tuple[int, int, int, int] | None

CHECK_SECONDS = 0.5
NOBODY = Caller("", "")
"""The caller with a token that is no longer valid: nothing is allowed."""


class GuardedServing:
    """What the guard of a server needs, for each of its processes. `transport` is stdio or http, or worker
    for a process of `fastrpc worker`, which knows callers as over HTTP. `needs_tokens`: clients can only have
    tokens of the guard. `makes_tokens`: this server has pages that make them. Raises UsageError for an
    unusable file."""

    def __init__(
        self, path: str, transport: str, *, needs_tokens: bool = False, makes_tokens: bool = False
    ) -> None:
        self.path = os.path.abspath(path)
        self.transport = transport
        self._stamp = stamp_of(self.path)  # before it is read, so that a change in between is noticed later
        self.config = policy_file.read(self.path)
        if not self.config.allows("http" if transport == "worker" else transport):
            raise GuardConfigError(f"{path}: transports: {transport} is not enabled")
        self.rates = RateTable()
        if self.config.has_budgets:
            opened_budgets().close()
        self.token_sources: list[TokenSource] = []
        """The sources that check tokens over HTTP; `guarded` fills it, in the process that serves."""
        self.database_url = database_url(self.config)
        default = "database" if self.database_url.startswith("postgres") else "host"
        self._leases = (self.config.counts_in or default) == "database"
        if transport == "worker" and not self._leases:
            raise GuardConfigError(
                f"{path}: a worker needs rates and budgets that processes share: defaults.count_in = "
                '"database", which is the default with PostgreSQL'
            )
        is_there = bool(self.database_url) or makes_tokens or os.path.exists(GUARD.default_path)
        self.database: GuardDatabase
        """The database in the process that serves; `guarded` sets it."""
        self.guard: Guard
        """The guard in the process that serves; `guarded` sets it."""
        self.audit: CallAudit | None = None
        """What records calls in the process that serves; `guarded` sets it."""
        self._has_database = is_there or (needs_tokens and not self.config.tokens) or transport == "worker"

    @property
    def has_tokens(self) -> bool:
        """Whether clients may have tokens of the guard's file or database."""
        return self._has_database or bool(self.config.tokens)

    def principal_of(self, issuers: Iterable[str]) -> PrincipalOf | None:
        """Return the function that names the principals of these authorization servers' tokens, None if no
        rule is about their claims. Raises GuardConfigError for a rule about another server."""
        if not self.config.claims:
            return None
        known = list(issuers)
        for number, rule in enumerate(self.config.claims):
            if rule.issuer and rule.issuer not in known:
                raise GuardConfigError(
                    f"{self.path}: claims[{number}].issuer: no --auth-server is "
                    f"{rule.issuer}{suggestion(rule.issuer, known)}"
                )
        return claims.ClaimedCallers(self.config.claims, self.config.default_class).principal_of

    def guarded(self, server: Server) -> Server:
        """Apply the guard to a server, in this process, and return the server. Raises UsageError."""
        policy = policy_for(self.config, server)
        database = self.database = GuardDatabase(self.database_url)
        directory = tokens_of(database) if self._has_database else None
        callers = Callers(self.config, self.transport, directory)
        audit = self.audit = audit_for(self.config)
        webhook = webhook_for(self.config, database)

        def noted_by(
            note: Callable[[str, Of, Approval], object] | None,
        ) -> Callable[[str, Of, Approval], None]:
            def on_event(event: str, of: Of, approval: Approval) -> None:
                if note is not None:
                    note(event, of, approval)
                if event != "used":
                    webhook.send(event, approval)

            return on_event

        @cache
        def approvals() -> Approvals:
            from fastrpc.guard.approvals.asking import Approvals  # imports asyncio

            return Approvals(server.name, database.open, noted_by(audit.approval if audit else None))

        leasing = None
        if self._leases:
            from fastrpc.guard.leases.leasing import Leasing

            leasing = Leasing(database.open)
        guard = self.guard = Guard(
            policy,
            callers.of,
            approve=lambda asked: approvals()(asked),
            rates=self.rates,
            leasing=leasing,
            on_refusal=None if audit is None else audit.refused,
            is_recorded=audit is not None,
            durable=None if audit is None else audit.durable,
        )
        count_budgets(guard, server, self.config)
        guard.install(server)
        server.runtime.gates = Gates(
            server.name,
            approvals,
            callers.of,
            lambda: guard.policy.config.approvals,
            noted_by(audit.gate if audit else None),
        )
        server.runtime.makes_tasks_of_approvals = not server.runtime.has_upstreams
        server.runtime.task_guard = TaskGuard(
            self.database_url,
            callers.of,
            lambda: directory is None or directory.is_available,
            None if audit is None else audit.task_refused,
            is_shared=self._leases and self.transport != "stdio",
        )
        if self.config.counts_requests:
            from fastrpc.guard.requests import EveryRequest

            server.runtime.counter = EveryRequest(guard, audit)
        if audit is not None:
            audit.guard = guard
            server.observe(audit)
        callers.follow(guard)
        retention = ApprovalRetention(lambda: database.opened, lambda: guard.policy.config.approvals)
        server.watch(retention.poll, CHECK_SECONDS)
        file = PolicyFile(self.path, self._stamp, guard, server, lambda config: webhook.use(config.approvals))
        file.begin(self.config)
        server.watch(file.poll, CHECK_SECONDS)
        if self.transport == "http":
            from fastrpc.guard.approvals.endpoint import ApprovalsEndpoint
            from fastrpc.guard.approvals.webhook import PATH

            server.http_endpoints[PATH] = ApprovalsEndpoint(webhook, file.poll)
        self.token_sources += callers.sources()
        return server


def policy_for(config: GuardConfig, server: Server) -> Policy:
    """Return a configuration as the policy of a server. Raises GuardConfigError.

    If all tools are known, a rule about an unknown tool is an error, since it would never apply. An unknown
    name in a list is logged, as is a glob of a rule that matches no tool.
    """
    policy, warnings = checked_policy(config, server)
    for warning in warnings:
        diagnostics.write("warning", f"guard: {warning}")
    return policy


def checked_policy(config: GuardConfig, server: Server) -> tuple[Policy, list[str]]:
    """Return what `policy_for` does, and the warnings that it logs. Raises GuardConfigError."""
    schemas = Schemas(server)
    costs = Costs(server)
    config.check_units(costs.values())
    policy = Policy(config, schemas, costs)
    warnings: list[str] = []
    if server.runtime.has_upstreams:
        return policy, warnings
    known = list(schemas)
    for rule in config.rules:
        for name in sorted(rule.tools.names) if rule.tools is not None else ():
            if name not in schemas:
                raise rule.where(["tools"], f"there is no tool {name}{suggestion(name, known)}")
        for glob in rule.tools.unmatched(known) if rule.tools is not None else ():
            warnings.append(str(rule.where(["tools"], f"no tool matches {glob}")))
    warnings += [f"there is no tool {name}{suggestion(name, known)}" for name in policy.unknown_tools()]
    return policy, warnings


@dataclass(eq=False)
class PolicyFile:
    """The file of a policy, in a process that serves. `stamp`: that of the file when the guard's policy was
    read. `on_change` is called with a changed configuration."""

    path: str
    stamp: Stamp
    guard: Guard
    server: Server
    on_change: Callable[[GuardConfig], object]

    def begin(self, config: GuardConfig) -> None:
        """Use the file's policy at the time when this process begins to serve. If the file has changed since
        `config` was read and is invalid, allow nothing until it is valid: this process does not know which
        policy the server's other workers have."""
        self._use_file(
            "nothing is allowed until it is right", lambda: self.guard.use(Policy(closed(config), {}))
        )

    def poll(self) -> None:
        """If the file has changed, use its policy."""
        self._use_file("the former policy stays in use")

    def _use_file(self, otherwise: str, on_mistake: Callable[[], object] | None = None) -> None:
        """Use the policy of a changed file. If the file is invalid, log that with the consequence."""
        stamp = stamp_of(self.path)
        if stamp == self.stamp:
            return
        self.stamp = stamp
        try:
            config = policy_file.read(self.path)
            policy = policy_for(config, self.server)
            count_budgets(self.guard, self.server, config)
        except UsageError as error:
            diagnostics.write("error", f"{error}; {otherwise}")
            if on_mistake is not None:
                on_mistake()
            return
        self.guard.use(policy)
        self.on_change(config)
        diagnostics.write("info", f"{self.path}: the policy {policy.version} holds now")


def closed(config: GuardConfig) -> GuardConfig:
    """Return a copy of a configuration that allows nothing."""
    found = copy(config)
    found.version = ""
    found.expose, found.classes, found.callers, found.rules = Grant(Section("", {}, {})), {}, {}, []
    return found


def webhook_for(config: GuardConfig, database: GuardDatabase) -> Webhook:
    """Return the webhook of a configuration."""
    from fastrpc.guard.approvals.webhook import Webhook

    def store() -> ApprovalStore:
        from fastrpc.guard.approvals.store import ApprovalStore

        return ApprovalStore(database.open())

    return Webhook(store, config.approvals)


def opened_budgets() -> BudgetFile:
    """Return the file of budgets. Raises UsageError."""
    from fastrpc.guard.budgets.file import BudgetFile, default_path

    return BudgetFile(default_path())


def count_budgets(guard: Guard, server: Server, config: GuardConfig) -> None:
    """Have this process's guard count budgets, if any, unless it does already. Raises UsageError."""
    if not config.has_budgets or guard.ledger is not None:
        return
    from fastrpc.guard.budgets.ledger import Ledger

    guard.ledger = Ledger(opened_budgets(), leasing=guard.leasing)
    server.observe(guard.ledger)
    server.runtime.spending.append(guard.ledger.spend)


def database_url(config: GuardConfig) -> str:
    """Return the URL of the database, "" for the default one. It may contain a password, so it is removed
    from the environment, which the programs of tools inherit."""
    from fastrpc.transports.http.auth import take

    url: str = config.database or GUARD_DATABASE.read()
    take(GUARD_DATABASE.name)
    return url


class GuardDatabase:
    """The guard's database, opened once in a process, at its first use."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._opening = Lock()
        self.opened: Database | None = None
        """The database, once it is open."""

    def open(self) -> Database:
        """Raises StorageError."""
        from fastrpc.storage import open_database

        with self._opening:
            if self.opened is None:
                self.opened = open_database(self._url)
            return self.opened


def tokens_of(database: GuardDatabase) -> TokenDirectory:
    """Return the tokens of a database. Raises UsageError."""
    from fastrpc.guard.callers.directory import TokenDirectory
    from fastrpc.storage import StorageError

    with Reworded(StorageError, UsageError):
        return TokenDirectory(database.open())


def audit_for(config: GuardConfig) -> CallAudit | None:
    """Return the recorder of calls, None if calls are not recorded. Raises UsageError."""
    log = audit_log_for(config)
    if log is None:
        return None
    from fastrpc.guard.audit.calls import CallAudit, StrictCallAudit

    return StrictCallAudit(log) if log.mode == "strict" else CallAudit(log)


def audit_log_for(config: GuardConfig) -> AuditLog | None:
    """Return the log of a configuration, None if calls are not recorded. Raises UsageError."""
    audit = config.audit
    if audit.mode is None:
        return None
    from fastrpc.guard.audit import AuditLog

    try:
        return AuditLog(
            audit.path,
            mode=audit.mode,
            key_file=audit.key_file,
            targets=audit.targets,
            keep_days=audit.keep_days,
            keep_bytes=audit.keep_bytes,
        )
    except (OSError, ValueError) as error:
        raise audit.error(str(error)) from None


class Callers:
    """Determines callers: by a token of the database, the file or an authorization server, or over stdio."""

    def __init__(self, config: GuardConfig, transport: str, directory: TokenDirectory | None) -> None:
        self._config = config
        self._tokens = {
            sha256(token.encode()).hexdigest(): Caller(name, config.default_class)
            for name, token in config.tokens
        }
        self._directory = directory
        self._user: Caller | None = None
        if transport == "stdio":
            from fastrpc.guard.callers.stdio import stdio_caller

            self._user = stdio_caller(directory=directory, user_class=config.user_class)

    def of(self, principal: str) -> Caller:
        """Return the caller of a principal."""
        if principal.startswith(OF_DASHBOARD):
            return Caller(principal, self._config.default_class, owner=owner_of(principal))
        if self._user is not None:
            token = self._user.token_id
            if not token or self._directory is None:
                return self._user
            return self._directory.caller_with(token) or NOBODY
        found = None if self._directory is None else self._directory.caller_of(principal)
        found = found or self._tokens.get(principal)
        if found is None and self._config.claims:
            found = claims.caller_of(principal)
        return found or Caller(principal, self._config.default_class)

    def follow(self, guard: Guard) -> None:
        """Have the guard look up callers again after their tokens have changed."""
        if self._directory is not None:
            user = frozenset([""]) if self._user is not None else frozenset()
            self._directory.on_change(lambda principals: guard.forget(principals | user))
            self._directory.start()

    def sources(self) -> list[TokenSource]:
        """Return the sources that check tokens over HTTP: the file, and after it the database."""
        from fastrpc.transports.http.auth import Tokens

        found: list[TokenSource] = []
        if self._config.tokens:
            found.append(Tokens(token for _, token in self._config.tokens))
        if self._directory is not None:
            from fastrpc.guard.callers.http_source import DirectorySource

            found.append(DirectorySource(self._directory))
        return found
