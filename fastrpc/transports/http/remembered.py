"""What the fast path remembers between requests (`RememberedRequests`), and what ends each memory.

Everything here saves work that the regular path does for each request. It must give the same answers, so each
memory ends when its source changes, or only decides which path a request takes. docs/architecture.md lists
these memories among those of the other fast paths.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from time import monotonic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fastrpc._core.plan import Plan

    Headers = list[tuple[bytes, bytes]]
    Meaning = tuple[tuple[bytes, bytes], ...]

MEANINGS_KEPT = 1024
HEADS_BYTES = 4 * 1024 * 1024
REGULAR_KEPT = 4096
CALLERS_KEPT = 4096

MAX_BYPASSES = 100
"""The number of requests with a head, or in a session, that do not use the shared connection after a call
that it could not serve: one at first, then twice as many each time, up to this many."""


VARYING = re.compile(
    rb"(?<=\r\n)(content-length|mcp-session-id|traceparent): ?([!-~]{1,1024})(?=\r\n|\Z)", re.IGNORECASE
)
"""Headers whose values differ from request to request, or from session to session."""
VISIBLE = re.compile(rb"[!-~]{1,1024}")


class Bypass:
    """Counts down the requests that do not use the shared connection, after one that it could not serve.

    It never changes an answer: a request that bypasses the shared connection gets a separate one.
    """

    __slots__ = ("backoff", "left")

    def __init__(self) -> None:
        self.left = self.backoff = 0

    def start(self) -> None:
        """The shared connection could not serve a request: bypass it twice as often as the last time."""
        self.left = self.backoff = min(2 * self.backoff, MAX_BYPASSES) or 1


@dataclass(slots=True, eq=False)
class CallerPlans:
    """A principal, and the call plans of the tools that exist for it, until those change."""

    principal: str
    plans: dict[str, Plan]


@dataclass(slots=True, eq=False)
class Head:
    """A head that was admitted: its authenticated principal, and the length, method and name of its body.

    `session` is the session id, "" for a request of 2026-07-28; `access_token` that of its admission.
    """

    method: bytes
    name: bytes
    principal: str
    valid_until: float | None
    access_token: object = None
    length: int = 0
    session: str = ""
    path: str = ""
    caller_plans: CallerPlans | None = None
    """What the shared connection is bound to for its principal; None before the first request."""
    text: bytes = b""
    """Its bytes, once it is in the cache."""
    bypass: Bypass = field(default_factory=Bypass)
    """Not used in a session, which has one for all its requests."""
    call: tuple[str, bytes, bytes] = field(init=False)
    """Principal, method and name at once, for the access log."""

    def __post_init__(self) -> None:
        self.call = self.principal, self.method, self.name

    def of(self, length: int, session: str, path: str) -> Head:
        """Return a copy with another body length, session and path."""
        known = self.method, self.name, self.principal, self.valid_until, self.access_token
        return Head(*known, length, session, path, self.caller_plans)

    @property
    def is_expired(self) -> bool:
        """Whether it has expired, and must be checked again."""
        return self.valid_until is not None and self.valid_until <= monotonic()

    @property
    def in_session(self) -> bool:
        """Whether the request is of a version with sessions."""
        return not self.method


@dataclass(slots=True, eq=False)
class HeadTemplate:
    """An admitted head without the values of the `VARYING` headers: `pieces` precede each of these values,
    `rest` follows the last."""

    head: Head
    path: str
    pieces: list[bytes]
    rest: bytes
    length_at: int
    session_at: int

    def values(self, text: bytes) -> list[bytes] | None:
        """Return the values of the `VARYING` headers in a head; None if the rest differs."""
        values = []
        at = 0
        for piece in self.pieces:
            if not text.startswith(piece, at):
                return None
            at += len(piece)
            end = text.find(b"\r\n", at)
            value = text[at:] if end < 0 else text[at:end]
            if VISIBLE.fullmatch(value) is None:
                return None
            values.append(value)
            at += len(value)
        return values if text[at:] == self.rest else None


def path_of(text: bytes) -> str:
    """Return the path of a head."""
    return text.split(b" ", 2)[1].decode("ascii")


def template_of(text: bytes, head: Head) -> HeadTemplate | None:
    """Return the template of an admitted head; None if other heads cannot be matched against it."""
    pieces = []
    names = []
    at = 0
    for match in VARYING.finditer(text):
        pieces.append(text[at : match.start(2)])
        names.append(match[1].lower())
        at = match.end()
    if b"content-length" not in names or (head.in_session and b"mcp-session-id" not in names):
        return None
    session_at = names.index(b"mcp-session-id") if head.in_session else -1
    return HeadTemplate(head, path_of(text), pieces, text[at:], names.index(b"content-length"), session_at)


class RememberedRequests:
    """The memories of one `HotPath`, and what ends each.

    | memory | is | ended by |
    |---|---|---|
    | `heads`, `meanings`, `template` | heads that were admitted | `Head.valid_until`, `forget`, their size |
    | `regular` | hashes of heads that take the regular path | `forget`, their number |
    | `callers`, `Head.caller_plans` | what exists for a principal | `forget`, `forget_caller`, their number |
    | `response_start` | the response's first bytes, for `headers` | other `headers`, each second |

    `forget` is called when any call plan may have changed: tools, hooks, policy, tokens
    (`Connection.bound_plans`). `Bypass`, the memory of a head or a session, counts down.
    """

    def __init__(self) -> None:
        self.heads: dict[bytes, Head] = {}
        """Heads by their bytes, without the final empty line."""
        self._heads_bytes = 0  # of the keys
        self.meanings: dict[Meaning, Head] = {}
        """Heads by those of their headers that decide whether they are admitted."""
        self.template: HeadTemplate | None = None
        """Of the head that was admitted last."""
        self.regular: set[int] = set()
        self.callers: dict[str, CallerPlans] = {}
        self.headers: Headers = []
        """The default headers of uvicorn, which makes new ones each second, with another Date."""
        self.response_start = b""

    def forget(self) -> None:
        """End all memories of heads and principals."""
        self.heads.clear()
        self._heads_bytes = 0
        self.meanings.clear()
        self.template = None
        self.regular.clear()
        self.callers.clear()

    def add_head(self, text: bytes, head: Head) -> None:
        self._heads_bytes += len(text)
        if self._heads_bytes > HEADS_BYTES:
            self.heads.clear()
            self._heads_bytes = len(text)
        self.heads[text] = head

    def remove_head(self, text: bytes) -> None:
        del self.heads[text]
        self._heads_bytes -= len(text)

    def add_meaning(self, meaning: Meaning, head: Head) -> None:
        if len(self.meanings) >= MEANINGS_KEPT:
            self.meanings.clear()
        self.meanings[meaning] = head

    def add_regular(self, text: bytes) -> None:
        if len(self.regular) >= REGULAR_KEPT:
            self.regular.clear()
        self.regular.add(hash(text))

    def caller_plans(self, head: Head, plans_for: Callable[[str], dict[str, Plan]]) -> CallerPlans:
        """Return the plans of a head's principal, and remember them unless there are none."""
        found = self.callers.get(head.principal)
        if found is None:
            found = CallerPlans(head.principal, plans_for(head.principal))
            if not found.plans:  # a filter has failed, perhaps, and works again soon
                return found
            if len(self.callers) >= CALLERS_KEPT:
                self.callers.clear()
            self.callers[head.principal] = found
        head.caller_plans = found
        return found

    def forget_caller(self, head: Head) -> None:
        """End the memory of a head's principal, which may have another class now."""
        self.callers.pop(head.principal, None)
        head.caller_plans = None

    def take_headers(self, headers: Headers, start: bytes) -> None:
        """Remember the first bytes of a response with these headers."""
        self.headers = headers
        self.response_start = start
