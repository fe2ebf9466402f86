"""Changes of what the processes of a session must agree on: made, merged, and taken from each other."""

from __future__ import annotations

import random

import pytest

from fastrpc.protocol.lifecycle import SessionState
from fastrpc.protocol.session_changes import CommonState, SessionChange, change_between, make_change, state_of


def some_state(chance: random.Random) -> CommonState:
    uris = chance.sample("abcdef", chance.randrange(7))
    return CommonState(False, chance.choice(["debug", "info"]), {uri: uri.upper() for uri in uris})


@pytest.mark.parametrize("seed", range(50))
def test_a_change_leads_from_one_state_to_the_other(seed: int) -> None:
    chance = random.Random(seed)
    first, second, third = (some_state(chance) for _ in range(3))
    one, two = change_between(first, second), change_between(second, third)
    assert first.with_change(one) == second
    assert first.with_change(one.followed_by(two)) == third
    session = SessionState()
    make_change(session, change_between(CommonState(), first))
    make_change(session, one)
    assert state_of(session) == second


def test_changes_of_two_processes_are_both_kept() -> None:
    stored = CommonState(False, None, {"a": "a"})
    for change in (SessionChange(None, {"b": "b"}, ()), SessionChange("debug", {"c": "c"}, ("a",))):
        stored = stored.with_change(change)
    assert stored == CommonState(False, "debug", {"b": "b", "c": "c"})


def test_a_change_that_is_made_here_is_not_shared_again() -> None:
    session = SessionState()
    shared: list[SessionChange] = []
    session.on_change = lambda *change: shared.append(SessionChange(*change))
    make_change(session, SessionChange("info", {"a": "a"}, ()))
    assert shared == []
    for _ in range(2):  # nothing new here, but others may not know it
        session.subscribe("b", "B")
        session.unsubscribe("c")
    session.set_log_level("error")
    set_twice = [SessionChange(None, {"b": "B"}, ()), SessionChange(None, {}, ("c",))] * 2
    assert shared == [*set_twice, SessionChange("error", {}, ())]
