"""`TaskRecord`: what is stored of a task, and the states that a task may have. No I/O.

A task is `WORKING` or `INPUT_REQUIRED` until it ends, once: `COMPLETED` with the result of its call (a tool's
error is a result, too), `FAILED` with a JSON-RPC error, or `CANCELLED`. Times are seconds since 1970.
"""

from __future__ import annotations

from datetime import datetime, timezone
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

WORKING, INPUT_REQUIRED, COMPLETED, FAILED, CANCELLED = STATES = (
    "working",
    "input_required",
    "completed",
    "failed",
    "cancelled",
)
OPEN = (WORKING, INPUT_REQUIRED)


class TaskRecord(NamedTuple):
    """A task as it is stored.

    `owner` is the principal that created it, and the only one for whom it exists. JSON texts, "" for none:
    `params` of the call that it makes, until it has ended; `questions`, the input requests without an answer,
    by key; `answers`, see `Answers`; `result` and `error`. `request_state` is what the call gave with its
    questions, and gets back with the answers. `ttl_ms` is how long the task is kept after its creation, None
    for as long as the server wants. `worker` is the process that runs it, until `lease_until`. `approval` is
    the id of the approval that it waits for: as long as there is one, its function has not begun. `guard` is
    where the database of the server's guard is, and `caller` who the owner was when the task was created, as
    that guard says it: "" without a guard.
    """

    id: str
    owner: str
    server: str
    tool: str
    version: str
    idempotent: int
    created_at: float
    updated_at: float
    ttl_ms: int | None
    expires_at: float | None
    poll_ms: int
    worker: str
    lease_until: float
    state: str = WORKING
    runs: int = 1
    params: str = ""
    message: str = ""
    questions: str = ""
    answers: str = ""
    request_state: str = ""
    result: str = ""
    error: str = ""
    approval: str = ""
    guard: str = ""
    caller: str = ""

    @property
    def is_open(self) -> bool:
        """Whether the task has not ended."""
        return self.state in OPEN

    def members(self) -> dict[str, Any]:
        """Return the members of a Task that both wires have under the same name."""
        found = {"taskId": self.id, "status": self.state}
        if self.message:
            found["statusMessage"] = self.message
        found["createdAt"] = iso_8601(self.created_at)
        found["lastUpdatedAt"] = iso_8601(self.updated_at)
        return found


class Answers(NamedTuple):
    """What is known of a task's questions. `keys` maps those of this round, which no other round has used, to
    the keys that the call gave them; `responses` are by these; `used` are all keys that the task has used."""

    keys: dict[str, str]
    responses: dict[str, Any]
    used: list[str]

    def of_new_round(self, questions: dict[str, Any]) -> tuple[Answers, dict[str, Any]]:
        """Return the answers, none of them given, and the questions by keys that are new."""
        used = list(self.used)
        keys: dict[str, str] = {}
        for key in questions:
            new, number = key, 1
            while new in used:
                number += 1
                new = f"{key}-{number}"
            used.append(new)
            keys[new] = key
        return Answers(keys, {}, used), {new: questions[key] for new, key in keys.items()}


def iso_8601(seconds: float) -> str:
    """Return a time as RFC 3339 has it, with milliseconds."""
    time = datetime.fromtimestamp(seconds, timezone.utc)
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
