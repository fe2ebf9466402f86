"""Call plans: how a tool's arguments are bound and its function called, decided once at start-up."""

from collections.abc import Callable, Sequence
from typing import Any

from fastrpc._core.recorder import Recorder

PARAMETER_LIMIT: int
LIMITS_OF_AUTO: tuple[int, int, int]
"""Of ``run="auto"``: how many calls in a row have to be quick, and at most how many nanoseconds a call takes
that is quick, and one that is not slow."""
REQUIRED: object
"""The default of a parameter that has none."""

class CallForwarder:
    """Sends the calls of one tool to another server, as bytes."""

class Gate:
    """A guard that may allow a call by its caller and its tool alone: `fastrpc._core.call_gate`."""

class Plan:
    """One tool's plan and its record. Raises ValueError for more than 16 parameters, and for a Context
    without its class."""

    @property
    def tool(self) -> Any: ...
    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def target(self) -> str: ...
    @property
    def encoder(self) -> Any: ...
    @property
    def is_bindable(self) -> bool: ...
    @property
    def inline(self) -> bool: ...
    @property
    def straight(self) -> bool:
        """Whether a call may be its function alone, on the loop's thread, now."""
    @property
    def adaptive(self) -> bool: ...
    @property
    def stepped(self) -> bool: ...
    @property
    def is_async(self) -> bool: ...
    @property
    def binds_whole(self) -> bool: ...
    @property
    def needs_context(self) -> bool:
        """Whether its calls have a Context: for the function, the guard or the hooks."""
    @property
    def guard(self) -> Callable[[Any], Any] | None: ...
    @property
    def around(self) -> Callable[[Any], Any] | None: ...
    @property
    def recheck(self) -> Callable[[Any], object] | None: ...
    @property
    def recorder(self) -> Recorder | None: ...
    @property
    def forwarder(self) -> CallForwarder | None: ...
    @property
    def makes_tasks(self) -> bool:
        """Whether its calls may become tasks, for clients that may get some."""

    @property
    def conditional(self) -> bool:
        """Whether it may have ceased to exist for its caller: the dispatcher is asked before each call."""
    @property
    def form(self) -> int: ...
    @property
    def quick(self) -> int: ...
    def __init__(
        self,
        tool: Any,
        name: str,
        function: Callable[..., Any],
        parameters: Sequence[tuple[str, str, object, bool]] | None,
        *,
        inline: bool,
        adaptive: bool,
        stepped: bool = False,
        context_at: int = -1,
        context_kind: type | None = None,
        form: int = 0,
        exact: type | None = None,
        check: Callable[[Any], bool] | None = None,
        plain: tuple[Callable[[Any], Any], int] | None = None,
        to_text: Callable[[Any], str | None] | None = None,
        load_content: Callable[[], None] | None = None,
        loads: tuple[Callable[[Any], Any] | None, ...] | None = None,
        keywords: tuple[str, ...] = (),
        is_async: bool = False,
        binds_whole: bool = False,
        kind: str = "tool",
        target: str | None = None,
        encoder: Any = None,
        noted: bool = False,
        guard: Callable[[Any], Any] | None = None,
        around: Callable[[Any], Any] | None = None,
        recheck: Callable[[Any], object] | None = None,
        recorder: Recorder | None = None,
        forwarder: CallForwarder | None = None,
        refusal_prefix: str | None = None,
        failure_prefix: str | None = None,
        hides_failures: bool = False,
        conditional: bool = False,
        makes_tasks: bool = False,
    ) -> None: ...
    def record_duration(self, nanoseconds: int) -> None:
        """Record how long a call took, wherever `inline` let it run."""

class FramedPlan:
    """The plan of a resource or a prompt, and the bytes around a text that it returns, in one version."""

    def __init__(self, plan: Plan, head: bytes, tail: bytes, stateless: bool) -> None: ...
