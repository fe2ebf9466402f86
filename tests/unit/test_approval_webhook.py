"""Approvals that wait to be sent to a receiver that does not answer: they are bounded."""

from __future__ import annotations

from threading import Event
from typing import Any

import pytest
from support.waiting import eventually

from fastrpc.guard.approvals import webhook
from fastrpc.guard.approvals.store import Approval


def approval(number: int) -> Approval:
    names = ("owner", "caller_class", "server", "kind", "name", "schema", "policy", "risk", "rule", "reason")
    texts = dict.fromkeys((*names, "approvers"), "")
    return Approval(
        id=f"ap_{number}",
        state="waiting",
        digest=bytes(32),
        call_digest=bytes(32),
        caller="os:ada",
        arguments="{}",
        rest_digests="{}",
        may_edit=0,
        asked_at=0.0,
        expires_at=300.0,
        **texts,
    )


class Slow:
    """A target that takes what it is sent when it is asked to."""

    name = "a slow receiver"

    def __init__(self) -> None:
        self.may = Event()
        self.sent = 0

    def send(self, body: bytes) -> None:
        assert self.may.wait(60)
        self.sent += 1


def test_approvals_that_wait_to_be_sent_are_bounded(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(webhook, "MOST_WAITING_BYTES", 10_000)
    sender, slow = webhook.Sender("http://127.0.0.1:9/", "a secret of ours"), Slow()
    target: Any = slow
    sender._target = target
    for number in range(100):
        sender.send("asked", approval(number))
    left_out = caplog.text.count("is not sent: too many are waiting")
    assert 80 < left_out < 100
    slow.may.set()
    eventually(lambda: slow.sent == 100 - left_out and sender._waiting_bytes == 0)
    sender.send("asked", approval(100))
    eventually(lambda: slow.sent == 101 - left_out)
    assert caplog.text.count("is not sent") == left_out
    sender.retire()
