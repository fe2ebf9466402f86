"""Approvals in the database: who may decide, how often and how long they hold, what makes them void."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fastrpc.guard.approvals import store as store_module
from fastrpc.guard.approvals.binding import Binding
from fastrpc.guard.approvals.prefix import PrefixError, prefix_of
from fastrpc.guard.approvals.store import (
    STATES,
    ApprovalDecision,
    ApprovalError,
    ApprovalStore,
    NotAllowedToApprove,
    NotWaiting,
    Question,
    TooManyWaiting,
)
from fastrpc.storage.database import Database


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> Iterator[ApprovalStore]:
    database = Database(f"sqlite:///{tmp_path}/guard.sqlite3")
    yield ApprovalStore(database, clock)
    database.close()


def question(**changed: Any) -> Question:
    facts: dict[str, Any] = {
        "caller": "ada#1",
        "server": "shop",
        "kind": "tool",
        "name": "wipe",
        "policy": "p1",
        "arguments": {"place": "x"},
        "schema": {"type": "object"},
        **changed,
    }
    call = {key: facts.pop(key) for key in ("caller", "server", "kind", "name", "policy")}
    binding = Binding(**call, arguments=facts.pop("arguments"), schema=facts.pop("schema"))
    return Question(
        binding=binding,
        owner=facts.pop("owner", call["caller"].partition("#")[0]),
        caller_class="agent",
        risk=facts.pop("risk", "high"),
        rule="",
        reason="",
        **facts,
    )


def decision(approves: bool = True, by: str = "os:grace", **more: Any) -> ApprovalDecision:
    return ApprovalDecision(approves, by, more.pop("channel", "command line"), **more)


def asked(store: ApprovalStore, **changed: Any) -> Any:
    return store.ask(question(**changed)).approval


def test_an_approved_call_may_run_once(store: ApprovalStore) -> None:
    approval = asked(store)
    assert store.use(approval.id, approval.digest) is None, "it is not approved yet"
    assert store.decide(approval.id, decision()).state == "approved"
    assert store.use(approval.id, approval.digest).state == "used"  # type: ignore[union-attr]
    assert store.use(approval.id, approval.digest) is None
    assert asked(store).id != approval.id, "the same call asks anew"


def test_the_same_call_finds_the_approval_that_waits_and_the_one_that_it_has(store: ApprovalStore) -> None:
    approval = asked(store)
    assert asked(store).id == approval.id
    store.decide(approval.id, decision())
    assert (asked(store).id, asked(store).state) == (approval.id, "approved")


def test_a_call_may_be_granted_several_times_and_for_a_while(store: ApprovalStore, clock: Clock) -> None:
    approval = asked(store)
    store.decide(approval.id, decision(uses=2, valid_seconds=3600))
    assert store.use(approval.id, approval.digest)
    clock.now += 3599
    assert store.use(approval.id, approval.digest)
    assert store.use(approval.id, approval.digest) is None
    other = asked(store)
    store.decide(other.id, decision(uses=2, valid_seconds=3600))
    clock.now += 3600
    assert store.use(other.id, other.digest) is None
    assert store.get(other.id).state_at(clock.now) == "expired"


def test_no_one_deciding_in_time_means_no(store: ApprovalStore, clock: Clock) -> None:
    approval = asked(store, timeout_seconds=300)
    clock.now += 300
    with pytest.raises(NotWaiting, match="is expired"):
        store.decide(approval.id, decision())
    assert asked(store).id != approval.id
    assert [each.state for each in store.list(("expired",))] == ["waiting"], "by its time alone"


@pytest.mark.parametrize(
    "changed",
    [
        {"caller": "eve#2"},
        {"server": "other"},
        {"name": "order"},
        {"kind": "prompt"},
        {"arguments": {"place": "y"}},
        {"arguments": {"place": "x", "more": 1}},
        {"schema": {"type": "object", "properties": {}}},
        {"policy": "p2"},
    ],
)
def test_an_approval_is_good_for_no_other_call(store: ApprovalStore, changed: dict[str, Any]) -> None:
    approval = asked(store)
    store.decide(approval.id, decision())
    other = question(**changed)
    assert store.use(approval.id, other.binding.digest) is None
    found = store.ask(other)
    assert (found.is_new, found.approval.id != approval.id, found.approval.state) == (True, True, "waiting")


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"policy": "p2"}, "the policy has changed since it was asked for"),
        ({"schema": {"type": "array"}}, "the tool's schema has changed since it was asked for"),
    ],
)
@pytest.mark.parametrize("is_approved", [False, True])
def test_what_was_asked_before_a_change_is_void_and_says_so(
    store: ApprovalStore, changed: dict[str, Any], why: str, is_approved: bool
) -> None:
    approval = asked(store)
    if is_approved:
        store.decide(approval.id, decision())
    found = store.ask(question(**changed))
    assert found.void == (f"{approval.id} is void: {why}",)
    assert store.use(approval.id, approval.digest) is None
    with pytest.raises(NotWaiting, match=f"is void: {why}"):
        store.decide(approval.id, decision(by="os:bob"))
    again = store.ask(question(**changed))
    assert (again.approval, again.is_new, again.void) == (found.approval, False, ())


def test_what_was_rejected_stays_so_for_a_while_but_a_client_may_be_asked_again(
    store: ApprovalStore, clock: Clock
) -> None:
    approval = asked(store)
    store.decide(approval.id, decision(False, comment="no"))
    assert (asked(store).id, asked(store).comment) == (approval.id, "no")
    clock.now += 301
    other = asked(store)
    assert other.id != approval.id
    store.decide(other.id, decision(False, channel="client"))
    assert asked(store).id != other.id


def test_saying_the_same_again_changes_nothing_and_the_opposite_comes_too_late(store: ApprovalStore) -> None:
    approval = asked(store)
    first = store.decide(approval.id, decision())
    assert store.decide(approval.id, decision()) == first
    with pytest.raises(NotWaiting, match="is approved by os:grace"):
        store.decide(approval.id, decision(False))
    with pytest.raises(NotWaiting):
        store.decide(approval.id, decision(by="os:bob"))
    store.use(approval.id, approval.digest)
    assert store.decide(approval.id, decision()).state == "used"


@pytest.mark.parametrize("by", ["os:ada", "ada", "ada#1", "os:ADA", "ada#9"])
def test_what_is_critical_is_not_approved_by_the_one_who_calls(store: ApprovalStore, by: str) -> None:
    approval = asked(store, risk="critical")
    with pytest.raises(NotAllowedToApprove, match="another person must approve it"):
        store.decide(approval.id, decision(by=by))
    assert store.decide(approval.id, decision(by="os:grace")).state == "approved"


@pytest.mark.parametrize("caller", ["https://login.example.com#ada", "ops@https://login.example.com/a#ada"])
def test_nor_by_the_subject_of_the_token_that_calls(store: ApprovalStore, caller: str) -> None:
    approval = asked(store, caller=caller, owner=caller, risk="critical")
    for by in ("ada", "os:ada", caller):
        with pytest.raises(NotAllowedToApprove, match="another person must approve it"):
            store.decide(approval.id, decision(by=by))
    assert store.decide(approval.id, decision(by="https://login.example.com#bob")).state == "approved"


def test_what_is_critical_is_not_approved_through_the_client(store: ApprovalStore) -> None:
    approval = asked(store, risk="critical")
    with pytest.raises(NotAllowedToApprove, match="in its own client"):
        store.decide(approval.id, decision(by="os:grace", channel="client"))
    assert store.get(approval.id).state == "waiting"


def test_where_approvers_are_named_no_one_else_approves_but_anybody_rejects(store: ApprovalStore) -> None:
    approval = asked(store, approvers=("os:grace", "linus"))
    with pytest.raises(NotAllowedToApprove, match="its approvers are os:grace, linus"):
        store.decide(approval.id, decision(by="os:bob"))
    assert store.decide(approval.id, decision(False, by="os:bob")).state == "rejected"
    with pytest.raises(NotAllowedToApprove, match="ada#1 may not approve it"):
        store.decide(
            asked(store, arguments={"x": 1}, approvers=("linus",)).id, decision(by="ada#1", channel="client")
        )
    other = asked(store, arguments={}, approvers=("os:grace", "linus"))
    assert store.decide(other.id, decision(by="os:linus")).state == "approved"


def test_arguments_are_edited_where_the_policy_lets_them(store: ApprovalStore) -> None:
    approval = asked(store)
    with pytest.raises(NotAllowedToApprove, match="does not allow edited arguments for wipe"):
        store.decide(approval.id, decision(edited_arguments='{"place": "y"}'))
    other = asked(store, arguments={}, may_edit=True)
    store.decide(other.id, decision(edited_arguments='{"place": "y"}'))
    used = store.use(other.id, other.digest)
    assert used is not None
    assert (used.arguments, used.edited_arguments) == ("{}", '{"place": "y"}')


def test_so_many_calls_of_a_caller_may_wait(store: ApprovalStore, clock: Clock) -> None:
    for number in range(3):
        asked(store, arguments={"n": number}, most_waiting=3)
    with pytest.raises(TooManyWaiting, match="3 calls of this caller wait"):
        asked(store, arguments={"n": 4}, most_waiting=3)
    assert asked(store, arguments={"n": 1}, most_waiting=3).state == "waiting", "one that waits already"
    assert asked(store, caller="eve#2", most_waiting=3).state == "waiting"
    clock.now += 300
    assert asked(store, arguments={"n": 4}, most_waiting=3).state == "waiting"


def test_a_misspelt_id_is_reported(store: ApprovalStore) -> None:
    approval = asked(store)
    with pytest.raises(ApprovalError, match=f"there is no approval .* \\(did you mean {approval.id}"):
        store.get(approval.id[:-1])


def test_secrets_in_arguments_are_not_kept(store: ApprovalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "frpc_aaaaaaaaaaaa_" + "s3cr3tXYZ" * 5
    approval = asked(store, arguments={"header": f"Bearer {secret}"})
    assert secret not in approval.arguments
    assert asked(store, arguments={"header": "Bearer other"}).id != approval.id


# --- the first words of a command -----------------------------------------------------------------------

COMMIT = {"command": "git commit -m x", "timeout": None}


def prefixed(store: ApprovalStore, words: str = "git commit", **more: Any) -> Any:
    approval = asked(store, name="Bash", arguments=COMMIT, **more)
    prefix = prefix_of(words, approval.arguments)
    return store.decide(approval.id, decision(prefix=prefix, uses=5, valid_seconds=3600))


@pytest.mark.parametrize(
    "command",
    ["git commit", "git commit -m 'a b' --amend", "git commit -m a && git commit -m b", "git 'commit' -a"],
)
def test_a_command_is_approved_by_its_first_words(store: ApprovalStore, command: str) -> None:
    approval = prefixed(store)
    found = store.ask(question(name="Bash", arguments={**COMMIT, "command": command}))
    assert (found.approval.id, found.is_new) == (approval.id, False)
    used = store.use(found.approval.id, found.approval.digest)
    assert used is not None
    assert used.uses_left == 4


@pytest.mark.parametrize(
    "changed",
    [
        {"command": "git push"},
        {"command": "git"},
        {"command": "git -c x commit"},
        {"command": "git commit; rm -rf /"},
        {"command": "git commit && $(rm x)"},
        {"command": "git commit -m $(rm x)"},
        {"command": "git commit -m `rm x`"},
        {"command": "git commit > /etc/passwd"},
        {"command": "PATH=. git commit"},
        {"command": "git commit *"},
        {"command": "git commit &"},
        {"command": "git\u00a0commit"},
        {"command": "gitcommit"},
        {"command": "git commitx"},
        {"command": "GIT commit"},
        {"command": ""},
        {"timeout": 1},
        {"other": "git commit"},
    ],
)
def test_no_other_command_is_and_none_that_is_not_understood(
    store: ApprovalStore, changed: dict[str, Any]
) -> None:
    prefixed(store)
    assert store.ask(question(name="Bash", arguments={**COMMIT, **changed})).is_new


@pytest.mark.parametrize(
    "changed",
    [
        *({"caller": "eve#2"}, {"server": "other"}, {"name": "Zsh"}, {"policy": "p2"}),
        *({"schema": {"type": "array"}}, {"risk": "critical"}),
    ],
)
def test_first_words_are_approved_for_no_one_and_nothing_else(
    store: ApprovalStore, changed: dict[str, Any]
) -> None:
    prefixed(store)
    call = {"name": "Bash", "arguments": {**COMMIT, "command": "git commit"}, **changed}
    assert store.ask(question(**call)).is_new


def test_first_words_hold_as_often_and_as_long_as_was_granted(store: ApprovalStore, clock: Clock) -> None:
    approval = prefixed(store)
    other = question(name="Bash", arguments={**COMMIT, "command": "git commit -a"})
    for _ in range(5):
        assert store.use(approval.id, approval.digest)
    assert store.ask(other).is_new
    again = store.ask(question(name="Bash", arguments=COMMIT)).approval
    prefix = prefix_of("git commit", again.arguments)
    store.decide(again.id, decision(prefix=prefix, valid_seconds=60))
    clock.now += 61
    assert store.ask(question(name="Bash", arguments={**COMMIT, "command": "git commit -v"})).is_new


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        ("git push", '{"command": "git commit"}'),
        ("git commit && ls", '{"command": "git commit"}'),
        ("git $(x)", '{"command": "git commit"}'),
        ("", '{"command": "git commit"}'),
        ("git", '{"command": "git commit; $(rm x)"}'),
        ("git", '{"command": 1}'),
        ("git", '{"one": "git a", "other": "git b"}'),
        ("git", '{"command": "git co… 3 more characters'),
    ],
)
def test_words_with_which_the_call_does_not_begin_are_refused(words: str, arguments: str) -> None:
    with pytest.raises(PrefixError):
        prefix_of(words, arguments)


def test_what_an_approver_writes_may_hold_no_secret_since_it_is_kept_as_it_is(store: ApprovalStore) -> None:
    approval = asked(store, may_edit=True)
    for edited in ('{"password": "hunter2hunter2"}', '{"place": "token=abcdefgh12"}'):
        with pytest.raises(NotAllowedToApprove, match="contain a secret") as caught:
            store.decide(approval.id, decision(edited_arguments=edited))
        assert "hunter2" not in str(caught.value)
    assert store.get(approval.id).state == "waiting"
    assert store.decide(approval.id, decision(edited_arguments='{"max_tokens": 5}')).state == "approved"


@pytest.mark.parametrize("how", ["used", "rejected at the client", "void", "expired", "lapsed"])
def test_what_is_over_of_a_caller_is_bounded_in_number_and_in_characters(
    store: ApprovalStore, clock: Clock, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(store_module, "MOST_OVER", 5)
    monkeypatch.setattr(store_module, "MOST_OVER_CHARACTERS", 50_000)
    asked(store, caller="eve#2", arguments={"place": "e"})
    held = [asked(store, arguments={"place": f"held {number}"}, timeout_seconds=1e6) for number in range(3)]
    store.decide(held[0].id, decision(valid_seconds=1e6))
    store.decide(held[1].id, decision(False))
    for size, expected in ((100, 5), (20_000, 2)):
        for number in range(12):
            clock.now += 0.01
            place = f"{number}" + "x" * size
            approval = asked(store, arguments={"place": place}, timeout_seconds=20, rejection_seconds=1e6)
            if how == "used":
                store.decide(approval.id, decision())
                store.use(approval.id, approval.digest)
            elif how == "rejected at the client":
                store.decide(approval.id, decision(False, channel="client"))
            elif how == "void":
                store.withdraw(approval.id, "why")
            elif how == "lapsed":
                store.decide(approval.id, decision(valid_seconds=20))
                clock.now += 100
            else:
                clock.now += 100
        kept = [each for each in store.list(STATES) if "x" in each.arguments]
        assert len(kept) == expected + 1, "and the last one"
        assert '"11x' in kept[-1].arguments
    assert {each.id for each in held} <= {each.id for each in store.list(STATES)}
    assert [each.caller for each in store.list(STATES)].count("eve#2") == 1


def test_an_approval_that_still_holds_is_never_removed_for_others(
    store: ApprovalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "MOST_OVER", 0)
    approval = asked(store)
    store.decide(approval.id, decision(uses=2))
    store.use(approval.id, approval.digest)
    asked(store, arguments={"place": "y"})
    assert asked(store).id == approval.id
