"""The table ``approvals`` of the guard's configuration: from which risk on who is asked, and how."""

from __future__ import annotations

from typing import Any

from fastrpc.guard.policy import risks, sections
from fastrpc.guard.policy.patterns import Patterns
from fastrpc.guard.policy.references import References
from fastrpc.guard.policy.sections import Section

NEVER = "never"


class ApprovalConfig:
    """Who is asked about what.

    `least`: the risk from which on a person is asked, or never. Times in seconds: how long a call waits for a
    decision, how long it is held before the client has to repeat it, how long an approval may be used.
    `timeout_is_error`: without a decision, a tool's caller gets an error, not a result. `approvers`: who may
    decide, everyone if it is empty. `editable`: tools whose arguments an approver may change. `most_waiting`:
    how many calls of one caller may wait. `keep_days`: how long approvals are kept after they are over."""

    def __init__(self, section: Section, references: References) -> None:
        take = section.take
        self.least: str = take("from", sections.one_of(*risks.LEVELS[1:], NEVER), risks.HIGH)
        self.timeout_seconds: float = take("timeout_seconds", sections.seconds, 300.0)
        answer = take("timeout_answer", sections.one_of("result", "error"), "result")
        self.timeout_is_error: bool = answer == "error"
        self.hold_seconds: float = take("hold_seconds", sections.seconds, 50.0)
        self.valid_seconds: float = take("valid_seconds", sections.seconds, 300.0)
        self.most_waiting: int = take("most_waiting", _count, 20)
        self.keep_days: float = take("keep_days", sections.days, 90.0)
        self.approvers: tuple[str, ...] = take("approvers", _names, ())
        self.editable: Patterns = take(
            "editable", lambda value: Patterns(sections.texts(value)), Patterns(())
        )
        webhook = section.section("webhook")
        self.webhook = None if webhook is None else WebhookConfig(webhook, references)
        section.end()


class WebhookConfig:
    """Where approvals are sent ("": nowhere), and the secret that signs requests in both directions."""

    def __init__(self, section: Section, references: References) -> None:
        self.url: str = section.take("url", _url, "")
        self.secret: str = section.needed("secret", lambda value: references.resolve(sections.text(value)))
        section.end()


def _url(value: Any) -> str:
    from fastrpc.guard.audit.webhook_target import URL_EXPECTED, is_webhook_url

    found = sections.text(value)
    if not is_webhook_url(found):
        raise ValueError(URL_EXPECTED)
    return found


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 1_000_000:
        raise ValueError(f"expected a number from 1 to 1,000,000, got {sections.shown(value)}")
    return value


def _names(value: Any) -> tuple[str, ...]:
    """Read names of people, as ``ada``, ``os:ada`` or that of a webhook."""
    found = sections.texts(value)
    for each in found:
        if not each.strip() or not each.isprintable():
            raise ValueError(f"expected printable names, got {sections.shown(each)}")
    return found
