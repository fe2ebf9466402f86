"""Elicitation requests to a person: forms, and web pages to visit (MCP, client features: elicitation).

The client shows them. What a form may hold is left to `fastrpc.client_requests.forms`.
"""

from __future__ import annotations

from os import urandom

from fastrpc.client_requests.base import InputRequest, InvalidClientResult
from fastrpc.client_requests.forms import fields_of
from fastrpc.errors import ToolError
from fastrpc.protocol.versions import ELICITATION, RICH_INPUT_REQUESTS, SESSION_VERSIONS
from fastrpc.schema.converters import Mismatch, shorten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Generic, TypeVar, _SpecialForm, overload

    from typing_extensions import TypeForm

    from fastrpc.engine.ports import ClientRequest
    from fastrpc.options import Action

    Value = TypeVar("Value", covariant=True)
else:
    from fastrpc.client_requests.base import Generic, Value

ACTIONS: tuple[Action, ...] = ("accept", "decline", "cancel")


class ElicitResult(Generic[Value]):
    """What a person did with a form or a link (MCP: ElicitResult): the `action` is ``accept``, ``decline`` or
    ``cancel``, `data` the value of an accepted form, else None."""

    __slots__ = ("_complete", "action", "data")

    def __init__(
        self, action: Action, data: Value | None = None, complete: Callable[[], object] | None = None
    ) -> None:
        self.action: Action = action
        self.data: Value | None = data
        self._complete = complete

    @property
    def accepted(self) -> bool:
        """Whether the person accepted."""
        return self.action == "accept"

    @property
    def value(self) -> Value:
        """The value of an accepted form. Raises ToolError if the person declined or cancelled; the message
        tells the model."""
        if self.action != "accept":
            raise ToolError(
                f"the person {'declined' if self.action == 'decline' else 'dismissed'} the question"
            )
        return self.data  # type: ignore[return-value]  # None where the form's type has None

    def complete(self) -> None:
        """Notify the client that the visit to the web page is complete, in versions that have the
        notification (MCP 2025-11-25: notifications/elicitation/complete)."""
        if self._complete is not None:
            self._complete()

    def __repr__(self) -> str:
        return f"ElicitResult({self.action!r}, {self.data!r})"


class Form(InputRequest[ElicitResult[Value]]):
    """A form for a person to fill in. See `fastrpc.Context.elicit`. Raises DefinitionError."""

    method = "elicitation/create"
    capability = "elicitation"
    mode = "form"

    if TYPE_CHECKING:

        @overload
        def __init__(self: Form[None], message: str, form: None = None) -> None: ...
        @overload
        def __init__(self, message: str, form: type[Value]) -> None: ...
        @overload
        def __init__(self: Form[str], message: str, form: list[str] | tuple[str, ...]) -> None: ...
        @overload
        def __init__(self, message: str, form: TypeForm[Value]) -> None: ...
        @overload
        def __init__(self: Form[Any], message: str, form: dict[str, Any] | _SpecialForm) -> None: ...

    def __init__(self, message: str, form: Any = None) -> None:
        self.message = message
        self.fields = fields_of(form)
        self.versions = RICH_INPUT_REQUESTS if self.fields.has_lists else ELICITATION

    def params(self, version: str) -> dict[str, Any]:
        return {"message": self.message, "requestedSchema": self.fields.schema_in(version)}

    def read(self, result: object, request: ClientRequest) -> ElicitResult[Value]:
        action = _action(result)
        if action != "accept":
            return ElicitResult(action)
        content = result.get("content") if isinstance(result, dict) else None
        if content is None:
            content = {}
        if not isinstance(content, dict):
            raise InvalidClientResult(f"content: expected an object, got {shorten(content)}")
        try:
            return ElicitResult(action, self.fields.read(content))
        except Mismatch as mismatch:
            raise InvalidClientResult(mismatch.of("content")) from None

    @property
    def wanted(self) -> str:
        return "elicitation with a choice of several" if self.fields.has_lists else super().wanted


class Visit(InputRequest[ElicitResult[None]]):
    """A web page for a person to visit. See `fastrpc.Context.elicit_url`."""

    method = "elicitation/create"
    versions = RICH_INPUT_REQUESTS
    capability = "elicitation"
    mode = "url"

    def __init__(self, message: str, url: str, id: str | None = None) -> None:
        self.message = message
        self.url = url
        self.id = id or urandom(16).hex()
        """The `elicitationId` of 2025-11-25; later versions have none."""

    def params(self, version: str) -> dict[str, Any]:
        params = {"mode": "url", "message": self.message, "url": self.url}
        if version in SESSION_VERSIONS:
            params["elicitationId"] = self.id
        return params

    def read(self, result: object, request: ClientRequest) -> ElicitResult[None]:
        complete = None
        if request.version in SESSION_VERSIONS:
            params = {"elicitationId": self.id}
            complete = lambda: request.notify_client("notifications/elicitation/complete", params)  # noqa: E731
        return ElicitResult(_action(result), None, complete)


def _action(result: Any) -> Action:
    action = result.get("action") if isinstance(result, dict) else None
    for known in ACTIONS:
        if action == known:
            return known
    raise InvalidClientResult(f"action: expected one of {', '.join(ACTIONS)}, got {shorten(action)}")
