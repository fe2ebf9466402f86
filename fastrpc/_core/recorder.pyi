"""The recorder: one fixed record of each call, written where its answer leaves, read by others later."""

from collections.abc import Callable
from typing import Any

from fastrpc._core.message import Message

OUTCOMES: tuple[str, ...]
"""What a call may have ended with, as its client saw it."""

KIND_CODES: dict[str, int]
"""The kinds of calls, as records hold them."""

def ticks() -> int:
    """Return the time in ticks, as records have it."""

class CallRecord:
    """One call that has been answered, or whose client wants no answer any more."""

    @property
    def kind(self) -> str:
        """``tool``, ``resource``, ``prompt`` or ``completion``."""
    @property
    def name(self) -> str:
        """The tool, the prompt, or the URI."""
    @property
    def id(self) -> bytes:
        """The JSON text of the request's id, at most the first 256 bytes of it."""
    @property
    def principal(self) -> str: ...
    @property
    def outcome(self) -> str:
        """One of `OUTCOMES`."""
    @property
    def started_at(self) -> float:
        """Seconds since 1970."""
    @property
    def bind_us(self) -> float: ...
    @property
    def guard_us(self) -> float: ...
    @property
    def run_us(self) -> float: ...
    @property
    def encode_us(self) -> float: ...
    @property
    def total_us(self) -> float: ...
    @property
    def size(self) -> int:
        """Bytes of the answer."""
    @property
    def arguments(self) -> bytes | tuple[bytes, bytes] | None:
        """The arguments as the client has sent them: JSON text, empty if it sent none, or the URI. Where too
        much waited, a salt, and the SHA-256 of the salt and them. None unless an observer wants content."""
    @property
    def answer(self) -> bytes | tuple[bytes, bytes] | None:
        """The result or the error as it went out, as JSON text; else as `arguments`. None also for a call
        that was not answered."""
    @property
    def trace(self) -> str:
        """The trace id of the request's ``traceparent`` in its ``_meta``, or "". Only with content."""
    @property
    def decided(self) -> Any:
        """What a guard has decided about the call (`CallInfo.decided`), and what the connection states of its
        calls (`Connection.stated`), or None. Only with content."""
    def renamed(self, name: str) -> CallRecord:
        """Return a copy with another name: the one that a mounted server has for what was called."""

class DecidedLine(bytes):
    """The line of a request, and what a guard has decided about its call."""

    decided: Any
    def __new__(cls, line: bytes, decided: Any) -> DecidedLine: ...

class RecordBatch:
    """Records that have left the ring of a recorder, the oldest first. `Recorder.take` makes them."""

    @property
    def count(self) -> int: ...
    def __len__(self) -> int: ...
    def calls(self) -> list[CallRecord]:
        """Return the records as objects, which are made once."""

class Recorder:
    """A ring of records."""

    @property
    def dropped(self) -> int:
        """How many records did not fit."""
    keeps_content: bool
    """Whether records have the arguments and the answer."""
    on_full: Callable[[], object] | None
    """Called when a record does not fit, before it counts as dropped: may take others out. Must not raise."""
    holder: Callable[..., object] | None
    """What holds the answers of calls back, if something does: see `fastrpc.engine.held_answers`."""
    @property
    def content_size(self) -> int:
        """Bytes of requests and answers that wait to be drained."""
    def __init__(self, capacity: int = 8192, on_first: Callable[[], object] | None = None) -> None:
        """Keep `capacity` records; call `on_first` when there is one to drain after there was none."""
    def write(
        self,
        kind: str,
        name: str,
        id: bytes,
        principal: str,
        outcome: str,
        began: int,
        bound: int,
        allowed: int,
        returned: int,
        size: int,
        request: bytes | None = None,
        answer: bytes | None = None,
    ) -> None:
        """Record a call that has been answered just now. Times are in ticks; 0: it did not come so far.
        `request` is its line, `answer` the result or the error as JSON text. Of an id 256 bytes are kept."""
    def take(self, limit: int = 1024) -> RecordBatch:
        """Take at most so many records out of the ring, the oldest first."""
    def drain(self, limit: int = 1024) -> list[CallRecord]:
        """Take at most so many records out of the ring, as objects, the oldest first."""

def hashed(content: bytes) -> tuple[bytes, bytes]:
    """Return a salt of 16 random bytes and the SHA-256 of the salt and the content."""

def line_read_by(message: Message) -> bytes:
    """Return the line that a message has read, as it came."""
