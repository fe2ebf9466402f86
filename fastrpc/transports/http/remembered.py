"""What the fast path remembers between requests (`RememberedRequests`), and what ends each memory.

Everything here saves work that the regular path does for each request. It must give the same answers, so each
memory ends when its source changes, or only decides which path a request takes. docs/architecture.md lists
these memories among those of the other fast paths.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fastrpc._core.plan import Plan
    from fastrpc.transports.http.heads import Head, HeadTemplate

    Headers = list[tuple[bytes, bytes]]
    Meaning = tuple[tuple[bytes, bytes], ...]

MEANINGS_KEPT = 1024
HEADS_BYTES = 4 * 1024 * 1024
REGULAR_KEPT = 4096
CALLERS_KEPT = 4096

MAX_BYPASSES = 100
"""The number of requests with a head, or in a session, that do not use the shared connection after a call
that it could not serve: one at first, then twice as many each time, up to these."""


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


class CallerPlans:
    """A principal, and the call plans of the tools that exist for it, until those change."""

    __slots__ = ("plans", "principal")

    def __init__(self, principal: str, plans: dict[str, Plan]) -> None:
        self.principal = principal
        self.plans = plans


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

    __slots__ = (
        "_heads_bytes",
        "callers",
        "headers",
        "heads",
        "meanings",
        "regular",
        "response_start",
        "template",
    )

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
