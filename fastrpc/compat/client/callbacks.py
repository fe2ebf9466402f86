"""Turns the callbacks that the official SDK's session and FastMCP's client take into handlers of
`fastrpc.Client`.

Callbacks get objects (`fastrpc.compat.models`). One that fails is answered with an error, as there; the
requests in flight go on.
"""

from __future__ import annotations

from fastrpc.compat.models import dumped, typed, typed_notification
from fastrpc.errors import InternalError, RemoteError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Params = dict[str, Any]


async def awaited(value: Any) -> Any:
    """Return a value, or what an awaitable returns."""
    return await value if hasattr(value, "__await__") else value


class ClientRequestContext:
    """What a callback gets of a request of the server: the session, and the request's ``_meta``."""

    lifespan_context = request = None

    def __init__(self, session: Any, request_id: Any = None, meta: Any = None, **others: Any) -> None:
        self.session = session
        self.request_id = request_id
        self.meta = meta


def context_of(session: Any, params: Params) -> ClientRequestContext:
    """Return the context of a request of the server."""
    return ClientRequestContext(session, meta=params.get("_meta"))


def _answer(result: Any) -> dict[str, Any]:
    """Return the result that a callback has returned. Raises RemoteError for an ErrorData."""
    if hasattr(result, "code") and hasattr(result, "message"):
        error = {"code": result.code, "message": result.message, "data": getattr(result, "data", None)}
        raise RemoteError(error)
    answer: dict[str, Any] = dumped(result)
    return answer


async def _called(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a callback. Raises RemoteError in the place of what it raises."""
    try:
        return await awaited(function(*arguments))
    except RemoteError:
        raise
    except Exception as error:
        raise RemoteError({"code": InternalError.code, "message": str(error)}) from error


def sampling(callback: Callable[..., Any], session: Any) -> Callable[[Params], Any]:
    """Return ``on_sample`` for ``callback(context, params)``."""

    async def on_sample(params: Params) -> dict[str, Any]:
        request = typed("CreateMessageRequestParams", params)
        return _answer(await _called(callback, context_of(session, params), request))

    return on_sample


def form_of(params: Params) -> Any:
    """Return the params of an elicitation as an object."""
    return typed(
        "ElicitRequestURLParams" if params.get("mode") == "url" else "ElicitRequestFormParams", params
    )


def elicitation(callback: Callable[..., Any], session: Any) -> Callable[[Params], Any]:
    """Return ``on_elicit`` for ``callback(context, params)``."""

    async def on_elicit(params: Params) -> Any:
        answer = _answer(await _called(callback, context_of(session, params), form_of(params)))
        content = answer.get("content")
        return content if answer["action"] == "accept" and content is not None else answer["action"]

    return on_elicit


def roots(callback: Callable[..., Any], session: Any) -> Callable[[Params], Any]:
    """Return ``roots`` for ``callback(context)``."""

    async def list_roots(params: Params) -> Any:
        return _answer(await _called(callback, context_of(session, params)))["roots"]

    return list_roots


def logging(callback: Callable[..., Any]) -> Callable[[Params], Any]:
    """Return ``on_log`` for ``callback(params)``."""
    return lambda params: callback(typed("LoggingMessageNotificationParams", params))


def messages(callback: Callable[..., Any]) -> Callable[[Params], Any]:
    """Return ``on_notification`` for ``callback(message)``."""
    return lambda message: callback(typed_notification(message))


def progress(callback: Callable[..., Any] | None) -> Callable[[Params], Any] | None:
    """Return ``on_progress`` for ``callback(progress, total, message)``."""
    if callback is None:
        return None
    return lambda params: callback(params["progress"], params.get("total"), params.get("message"))
