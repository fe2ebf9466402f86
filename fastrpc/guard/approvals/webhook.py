"""Approvals by webhook: each waiting one is sent to a URL, and decisions are received at ``POST /approvals``.

Requests in both directions are signed with one shared secret (`fastrpc.signed_requests`), as checkpoints of
the audit log are. A decision names the approval, its digest, the approver, and ``approve`` or ``reject``. A
decision with an old timestamp, another digest or a wrong signature is refused. The same decision may arrive
twice, since a response may get lost. One thread sends approvals and tries each three times; if the receiver
does not answer, no call is delayed, and the queue is bounded. `Webhook` follows the guard's file. After a
change, queued approvals are still sent to the former URL by the former thread; new approvals and decisions
use the new URL and secret.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from time import sleep, time

from fastrpc import diagnostics
from fastrpc.quotas import ENTRY_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import ThreadPoolExecutor
    from typing import Any

    from fastrpc.guard.approvals.store import Approval, ApprovalStore
    from fastrpc.guard.policy.approval_config import ApprovalConfig

PATH = "/approvals"
RETRY_SECONDS = (1.0, 10.0)
MOST_WAITING_BYTES = 16 * 1024 * 1024
"""The memory limit of the approvals that wait to be sent."""
LONGEST_BODY = 256 * 1024
MEMBERS = {"id": str, "digest": str, "decision": str, "by": str, "comment": str, "edited": dict}
NEEDED = ("id", "digest", "decision", "by")


class Sender:
    """Sends approvals to a URL, in the order of `send`. Raises ValueError for an invalid URL."""

    def __init__(self, url: str, secret: str, retry_seconds: tuple[float, ...] = RETRY_SECONDS) -> None:
        from fastrpc.guard.audit.webhook_target import WebhookTarget

        self._target = WebhookTarget(url, secret)
        self._retry_seconds = retry_seconds
        self._thread: ThreadPoolExecutor | None = None
        self._lock = Lock()
        self._waiting_bytes = 0

    def send(self, event: str, approval: Approval) -> None:
        """Queue an approval with its event: ``asked``, ``approved`` or ``rejected``. Returns at once."""
        import json

        from fastrpc.guard.approvals.description import described

        body = json.dumps({"event": event, "approval": described(approval, time())}).encode()
        size = len(body) + ENTRY_BYTES
        with self._lock:
            is_full = self._waiting_bytes + size > MOST_WAITING_BYTES
            self._waiting_bytes += 0 if is_full else size
        if is_full:
            diagnostics.write(
                "error", f"{self._target.name}: {approval.id} is not sent: too many are waiting"
            )
            return
        if self._thread is None:
            from concurrent.futures import ThreadPoolExecutor

            self._thread = ThreadPoolExecutor(1, thread_name_prefix="fastrpc-webhook")
        self._thread.submit(self._deliver, body, approval.id)

    def retire(self) -> None:
        """End after the queued approvals have been sent. Returns at once."""
        if self._thread is not None:
            self._thread.shutdown(wait=False)

    def _deliver(self, body: bytes, approval_id: str) -> None:
        from http.client import HTTPException

        try:
            for wait in (*self._retry_seconds, None):
                try:
                    self._target.send(body)
                    return
                except (OSError, HTTPException) as error:
                    trouble = error
                if wait is not None:
                    sleep(wait)
            diagnostics.write("error", f"{self._target.name}: {approval_id} could not be sent: {trouble}")
        finally:
            with self._lock:
                self._waiting_bytes -= len(body) + ENTRY_BYTES


class DecisionRefused(Exception):
    """A decision that is refused. `status` is that of the HTTP response."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(eq=False, repr=False)
class Receiver:
    """Accepts signed decisions. `store` returns the approvals, which the first decision opens;
    `valid_seconds` is how long an approval may be used. It blocks, so call it on a thread."""

    secret: str
    store: Callable[[], ApprovalStore]
    valid_seconds: float = 300.0
    clock: Callable[[], float] = time

    def receive(self, body: bytes, timestamp: str | None, signature: str | None) -> bytes:
        """Apply a decision, and return the approval as JSON. Raises DecisionRefused, and StorageError."""
        import json

        from fastrpc.guard.approvals.description import described
        from fastrpc.guard.approvals.store import WEBHOOK, ApprovalDecision, ApprovalError

        self._check(body, timestamp or "", signature or "")
        said = _read(body)
        store = self.store()
        edited = said.get("edited")
        decision = ApprovalDecision(
            said["decision"] == "approve",
            said["by"],
            WEBHOOK,
            comment=said.get("comment", ""),
            edited_arguments=None if edited is None else json.dumps(edited, ensure_ascii=False),
            valid_seconds=self.valid_seconds,
        )
        try:
            if store.get(said["id"]).digest.hex() != said["digest"]:
                raise DecisionRefused(409, "digest: this is not the digest of the approval")
            decided = store.decide(said["id"], decision)
        except ApprovalError as error:
            raise DecisionRefused(error.status, str(error)) from None
        return json.dumps(described(decided, store.clock())).encode()

    def _check(self, body: bytes, timestamp: str, signature: str) -> None:
        """Raise DecisionRefused for a request without a valid signature, or with an old timestamp."""
        from fastrpc.signed_requests import is_recent, is_signed

        if not is_signed(self.secret.encode(), timestamp, body, signature):
            raise DecisionRefused(401, "the signature is not valid")
        if not is_recent(timestamp, self.clock()):
            raise DecisionRefused(401, "the timestamp is too old, or in the future")


class Webhook:
    """The webhook of a server in its current configuration. `receiver` is None if there is no webhook."""

    def __init__(self, store: Callable[[], ApprovalStore], config: ApprovalConfig) -> None:
        self._store = store
        self._sender: Sender | None = None
        self._sends: tuple[str, str] | None = None
        self.receiver: Receiver | None = None
        self.use(config)

    def use(self, config: ApprovalConfig) -> None:
        """Send and receive according to a configuration from now on."""
        found = config.webhook
        sends = None if found is None or not found.url else (found.url, found.secret)
        if sends != self._sends:
            former, self._sender = self._sender, None if sends is None else Sender(*sends)
            self._sends = sends
            if former is not None:
                former.retire()
        self.receiver = None if found is None else Receiver(found.secret, self._store, config.valid_seconds)

    def send(self, event: str, approval: Approval) -> None:
        """Queue an approval if there is a webhook. Returns at once."""
        if self._sender is not None:
            self._sender.send(event, approval)


def _read(body: bytes) -> dict[str, Any]:
    """Return the members of a decision. Raises DecisionRefused."""
    import json

    try:
        said = json.loads(body)
    except ValueError:
        said = None
    if not isinstance(said, dict):
        raise DecisionRefused(400, "expected a JSON object")
    for name, value in said.items():
        kind = MEMBERS.get(name)
        if kind is None:
            raise DecisionRefused(400, f"{name:.80}: no such member; the members are {', '.join(MEMBERS)}")
        if not isinstance(value, kind):
            raise DecisionRefused(400, f"{name}: expected {'an object' if kind is dict else 'a text'}")
    for name in NEEDED:
        if not said.get(name):
            raise DecisionRefused(400, f"{name} is missing")
    if said["decision"] not in ("approve", "reject"):
        raise DecisionRefused(400, f"decision: expected approve or reject, got {said['decision']!r:.80}")
    if not said["by"].isprintable() or len(said["by"]) > 200:
        raise DecisionRefused(400, "by: expected at most 200 printable characters")
    return said
