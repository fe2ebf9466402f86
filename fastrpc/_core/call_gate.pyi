"""The likely decision of a guard: of a tool that its caller may call, as far as rates and budgets go."""

from collections.abc import Awaitable, Callable
from typing import Any

from fastrpc._core.call_info import CallInfo
from fastrpc._core.plan import Gate
from fastrpc._core.rate_limiter import RateLimit

class Screen:
    """A condition about the bound values of a call, as far as it is certain: `kind` is an operator or a
    method of CEL. Of a value that is not exactly of the type that is expected it says nothing; then the rule
    itself is evaluated."""

    def __init__(
        self,
        kind: str,
        name: str | None = None,
        constant: object = None,
        parts: tuple[Screen | None, ...] = (),
        *,
        measured: bool = False,
    ) -> None: ...

class Evaluation(Screen):
    """A condition that is evaluated where `quick`, its screen, says nothing: ``run(frame)`` returns whether
    it holds. `frame` is that of an evaluation, but for the variables in its first place; `variables` are all
    but the arguments, of which `members` are read, None: all. What raises is not certain."""

    def __init__(
        self,
        quick: Screen | None,
        run: Callable[[list[Any]], object],
        frame: list[Any],
        variables: dict[str, Any],
        members: tuple[str, ...] | None = None,
    ) -> None: ...

class OpenTool:
    """A tool that a caller may call."""

class CallGate(Gate):
    """Allows calls that are open; `otherwise` decides about the others."""

    def __init__(self, otherwise: Callable[[CallInfo], Awaitable[None] | None]) -> None: ...
    def open(
        self,
        principal: str,
        tool: str,
        limits: tuple[RateLimit, ...],
        reserve: Callable[[], bool] | None = None,
        screens: tuple[Screen, ...] | None = None,
    ) -> None:
        """Allow the calls of a tool by a principal of which all `screens` are surely false, as long as each
        limit has room, and then ``reserve()`` is true."""
    def close(self) -> None:
        """Ask `otherwise` about every call."""
    def close_to(self, principal: str) -> None:
        """Do so for one caller."""
    def __call__(self, call: CallInfo) -> Awaitable[None] | None:
        """Return None for a call that is allowed, else what `otherwise` does."""
