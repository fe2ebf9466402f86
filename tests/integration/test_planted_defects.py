"""Each promise of the guard has a test that fails when it is broken: here each is broken once.

A defect is planted in all processes of a run of pytest, servers and workers among them, which runs the test
that holds the promise. What the guard costs is held by benchmarks; `test_bench_guard` plants slowdowns in
those. What leaks is found by `test_guard_secrets`, which plants leaks itself.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

TESTS = Path(__file__).parents[1]
PLANTED = TESTS / "support" / "planted"
SECONDS = 60

DEFECTS = {
    "workers count the calls of a caller each by itself": (
        "integration/test_guarded_serving.py::"
        "test_the_workers_of_a_server_count_the_calls_of_a_caller_together",
        """
from fastrpc.guard.guard import Guard
made = Guard.__init__
def counted_alone(self, *arguments, rates, **others):
    made(self, *arguments, **others)
Guard.__init__ = counted_alone
""",
    ),
    "nobody is told of a revoked token": (
        "unit/test_caller_directory.py::test_a_revoked_token_opens_nothing_after_the_next_poll",
        """
from fastrpc.guard.callers import tokens
revoke = tokens.CallerTokens.revoke
def untold(self, *arguments):
    note, tokens.note_change = tokens.note_change, lambda *what: None
    try:
        return revoke(self, *arguments)
    finally:
        tokens.note_change = note
tokens.CallerTokens.revoke = untold
""",
    ),
    "what was decided about a caller is kept when its token changes": (
        "integration/test_http_hot_guarded.py::"
        "test_a_caller_whose_token_has_changed_is_another_one_with_the_next_call",
        """
from fastrpc.guard.guard import Guard
Guard.forget = lambda self, principals: None
""",
    ),
    "everybody is told that lists have changed": (
        "unit/test_guard_policy.py::test_another_policy_holds_at_once_and_only_those_whose_lists_change_are_notified",
        """
from fastrpc.engine.announcements import Announcements
notify = Announcements.take_other_lists
Announcements.take_other_lists = lambda self, concerns=None: notify(self)
""",
    ),
    "an approval does not tell 1 from 1.0": (
        "property/test_approval_binding.py::test_a_pair_that_differs_in_one_thing_has_two_digests",
        """
from fastrpc.guard.approvals import binding
binding.tagged = lambda value: value
""",
    ),
    "an approval takes forms of Unicode for one": (
        "property/test_approval_binding.py::test_a_pair_that_differs_in_one_thing_has_two_digests",
        """
from unicodedata import normalize
from fastrpc.guard.approvals import binding
binding._text = lambda value: normalize("NFC", value)
""",
    ),
    "an approval is not bound to the policy": (
        "property/test_approval_binding.py::test_every_part_of_a_call_is_bound",
        """
from fastrpc.guard.approvals.binding import Binding
made = Binding.__init__
def unbound(self, *, policy, **others):
    made(self, policy="", **others)
Binding.__init__ = unbound
""",
    ),
    "two calls may use one approval": (
        "integration/test_guard_approvals.py::test_of_two_approvers_and_of_two_calls_one_is_first[sqlite]",
        """
from fastrpc.guard.approvals.store import ApprovalStore
def looked_at(self, approval_id, digest):
    found = self.get(approval_id)
    return found if found.state == "approved" and found.digest == digest else None
ApprovalStore.use = looked_at
""",
    ),
    "an approval that was used is forgotten by a crash": (
        "integration/test_guard_approvals.py::"
        "test_approvals_outlive_every_process_and_a_call_runs_at_most_once[it is approved]",
        """
from fastrpc.guard.approvals.store import ApprovalStore
used = set()
def remembered(self, approval_id, digest):
    found = self.get(approval_id)
    if found.state != "approved" or found.digest != digest or approval_id in used:
        return None
    used.add(approval_id)
    return found
ApprovalStore.use = remembered
""",
    ),
    "a record is acknowledged before it is written": (
        "integration/test_audit_kills.py::test_no_acknowledged_record_is_lost_and_no_chain_has_a_hole_however_often"
        "_writers_are_killed[strict]",
        """
from concurrent.futures import Future
from fastrpc.guard.audit import AuditLog
def too_early(self, record):
    done = Future()
    done.set_result(self.append(record))
    return done
AuditLog.append_durably = too_early
""",
    ),
    "an answer leaves before its record is on disk": (
        "integration/test_strict_serving.py::test_over_stdio_a_killed_server_has_recorded_every_answer_that_was_read",
        """
from fastrpc.guard.audit.calls import StrictCallAudit
keep = StrictCallAudit.before_answer
def too_early(self, call, begun, let_go):
    let_go(None)
    keep(self, call, begun, lambda error: None)
StrictCallAudit.before_answer = too_early
""",
    ),
    "the verifier does not compare a checkpoint with its lines": (
        "property/test_audit_tampering.py::test_a_root_over_other_lines_is_named_also_if_it_is_signed",
        """
from fastrpc.guard.audit.verify import ChainCheck
check = ChainCheck._check_checkpoint
def trusting(self, place, line, fields):
    self.is_clean = False
    check(self, place, line, fields)
ChainCheck._check_checkpoint = trusting
""",
    ),
    "the verifier does not look at checkpoints that were kept elsewhere": (
        "property/test_audit_tampering.py::"
        "test_a_chain_that_was_rewritten_under_its_own_name_is_found_by_checkpoints_that_were_kept",
        """
from fastrpc.guard.audit.verify import ChainCheck
ChainCheck._ask_witnesses = lambda self: self.witnesses.clear()
""",
    ),
    "why a call was refused names a bound that is off by one": (
        "property/test_guard_why.py::test_whatever_meets_the_needs_of_a_way_is_not_denied",
        """
from fastrpc.guard.cel import atoms
atoms.OPPOSITES["<"] = "<="
""",
    ),
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_planted_defect_fails_the_test_of_its_promise(defect: str, tmp_path: Path) -> None:
    node, code = DEFECTS[defect]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment |= {"PLANTED_DEFECT": code, "PYTHONPATH": str(PLANTED)}
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-x",
            "-q",
            "-p",
            "no:cacheprovider",
            f"--basetemp={tmp_path}",
            node,
        ],
        cwd=TESTS,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert "Error in sitecustomize" not in done.stderr, done.stderr
    assert f"\nFAILED {node}" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 1
