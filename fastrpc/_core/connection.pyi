"""One peer's conversation: a line in, at most one answer out, into `output`."""

from asyncio import AbstractEventLoop
from collections.abc import Callable
from typing import Any

from fastrpc._core.encoder import OutputBuffer
from fastrpc._core.message import Message
from fastrpc._core.plan import FramedPlan, Plan

class CallsInFlight:
    """How many calls a server works on that are not answered at once, and how many it may."""

    count: int
    limit: int
    def __init__(self, limit: int) -> None: ...

class Connection:
    """What a transport feeds and the dispatcher answers through.

    The tails follow the text of a result, newline included: for each wire one for each form of a result, and
    one of an error.
    """

    @property
    def output(self) -> OutputBuffer: ...
    @property
    def message(self) -> Message: ...
    @property
    def listening(self) -> dict[bytes, Any]: ...
    @property
    def unknown(self) -> dict[str, bytes]:
        """The errors that answer calls of unknown tools, by the tool's name."""
    @property
    def resources(self) -> dict[str, FramedPlan | None]:
        """The resources that it reads by itself, by URI; None marks one that was requested once."""
    @property
    def prompts(self) -> dict[str, FramedPlan | None]: ...
    @property
    def plans(self) -> dict[str, Plan]: ...
    in_flight: dict[bytes, Any]
    open: bool
    counted: bool
    structured: bool
    dispatcher: Any
    delegate: Any
    generation: int | None
    flush: Callable[[], object] | None
    send: Callable[[], object] | None
    notify: Callable[[bytes], object] | None
    loop: AbstractEventLoop | None
    principal: str
    stated: dict[Any, Any] | None
    """What the record of each call states besides (`CallRecord.decided`), where records have content."""
    calls: CallsInFlight
    shared: bool
    bound_plans: object
    """The caller, with its plans, that a shared connection serves now; None since `take_plans` was called."""
    call_in_loop: Callable[[Callable[[], object]], object]
    def __init__(
        self, session_suffixes: tuple[bytes, ...], stateless_suffixes: tuple[bytes, ...]
    ) -> None: ...
    def answer_text(self, id: bytes, text: str, stateless: bool) -> None:
        """Answer with one text block. Raises UnicodeEncodeError before anything is written."""
    def seconds_since(self, began: int) -> float:
        """Return how many seconds ago a tick was."""
    def wrote(self) -> None:
        """Record that an answer was written outside of a pump, so that the transport sends it."""
    def take_plans(self, plans: dict[str, Plan]) -> None:
        """Take new plans, after the tools have changed, and forget lists of the old ones."""
    def forget_lists(self) -> None:
        """Have the dispatcher asked for the next list."""
    def take_list(self, result: bytes, stateless: bool) -> None:
        """Keep the first page of the tools, to answer with it from now on."""
    def receive(self, line: bytes) -> None:
        """Handle one line that came by another way than a stream."""
