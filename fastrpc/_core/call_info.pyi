"""One call, as a guard and hooks see it: who calls what, with which arguments."""

from collections.abc import Callable
from typing import Any

from fastrpc._core.plan import Plan
from fastrpc.context import Context
from fastrpc.options import Effect, Risk

class CallInfo:
    """A call of a tool, a resource or a prompt, before it runs."""

    name: str
    """The tool, the prompt, or the URI of the resource, as the client named it."""
    arguments: dict[str, Any]
    """The arguments as they are bound, by name, defaults among them; what they did not fit, as it came."""
    decided: Any
    """What a guard states of its decision about this call, for observers that want content
    (`CallRecord.decided`), and what the connection states of its calls (`Connection.stated`), which a guard
    keeps; None: nothing."""
    confirm: Callable[[], object] | None
    """Called just before the function: raises unless the arguments are those that a person has approved."""
    @property
    def kind(self) -> str:
        """``tool``, ``resource`` or ``prompt``."""
    @property
    def tool(self) -> str:
        """`name`."""
    @property
    def risk(self) -> Risk | None:
        """``none`` to ``critical``; None where the tool does not say."""
    @property
    def effect(self) -> Effect | None:
        """What the tool does: ``read``, ``write``, ``network``, ``exec``; None where it does not say."""
    @property
    def principal(self) -> str:
        """The authenticated principal; "" over stdio, and over HTTP without authentication."""
    @property
    def context(self) -> Context:
        """What the function is handed, if it takes a `fastrpc.Context`."""
    def __init__(
        self,
        plan: Plan,
        name: str,
        principal: str,
        arguments: list[Any] | dict[str, Any],
        context: Context | None,
    ) -> None: ...
    def bound_arguments(self) -> dict[str, Any]:
        """Return the arguments by name as the function would get them now. Raises ArgumentError where they do
        not fit."""
    def bound_values(self) -> list[Any] | None:
        """Return the values that were bound, in the order of the parameters; None if they did not fit."""
    def change(self, edited: dict[str, Any]) -> None:
        """Bind other values for some arguments; the others stay the objects that they are. What is read from
        now on is what will run.

        Raises ArgumentError where they do not fit.
        """
    def current_values(self) -> list[Any]:
        """Return the values of the arguments as they are now, in the order of the parameters.

        Arguments that have been changed are bound again. Raises ArgumentError where they do not fit.
        """
    def invoke(self) -> Any:
        """Call the function, with the arguments as they are now; return what it returns.

        Arguments that have been changed are bound again. Raises ArgumentError where they do not fit.
        """

class HookChain:
    """Calls a tool's function between synchronous hooks; what a plan has in its slot `around` then.

    `name` is the tool's where the hooks are, `inner` the chain of the server that it was mounted from.
    """

    is_async: bool
    @property
    def name(self) -> str: ...
    @property
    def inner(self) -> HookChain | None: ...
    def __init__(
        self,
        name: str,
        before: tuple[Callable[[CallInfo], object], ...],
        after: tuple[Callable[[CallInfo, Any], Any], ...],
        on_error: tuple[Callable[[CallInfo, BaseException], Any], ...],
        inner: Any,
    ) -> None: ...
    def __call__(self, call: CallInfo) -> Any:
        """Return the result. Raises what the function, or a hook, has raised, if no hook mends it."""
