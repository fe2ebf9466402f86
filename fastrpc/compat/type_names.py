"""Names of the originals that files use in annotations only: placeholders, which accept any subscript.

``async def guard(ctx: ServerRequestContext, call_next: CallNext) -> HandlerResult`` is defined with them as
with the originals. They say nothing, to type checkers neither.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class _Placeholder:
    """Accepts any annotation with a name of the original, and says nothing."""

    if not TYPE_CHECKING:

        def __class_getitem__(cls, item: object) -> type:
            return cls


CacheMode: Any = _Placeholder
CacheableMethod: Any = _Placeholder
CallNext: Any = _Placeholder
EventCallback: Any = _Placeholder
HandlerResult: Any = _Placeholder
IncomingMessage: Any = _Placeholder
LifespanCallable: Any = _Placeholder
LifespanContextManagerFn: Any = _Placeholder
LifespanContextT: Any = _Placeholder
LifespanFn: Any = _Placeholder
LogData: Any = _Placeholder
MessageStream: Any = _Placeholder
OnEvent: Any = _Placeholder
PromptResult: Any = _Placeholder
ReadStream: Any = _Placeholder
RequestT: Any = _Placeholder
ResponseCacheStore: Any = _Placeholder
ServerMiddleware: Any = _Placeholder
ServerRequestContext: Any = _Placeholder
ServerRequestResponder: Any = _Placeholder
SyncPromptResult: Any = _Placeholder
Transport: Any = _Placeholder
WriteStream: Any = _Placeholder

__all__ = [
    "CacheMode",
    "CacheableMethod",
    "CallNext",
    "EventCallback",
    "HandlerResult",
    "IncomingMessage",
    "LifespanCallable",
    "LifespanContextManagerFn",
    "LifespanContextT",
    "LifespanFn",
    "LogData",
    "MessageStream",
    "OnEvent",
    "PromptResult",
    "ReadStream",
    "RequestT",
    "ResponseCacheStore",
    "ServerMiddleware",
    "ServerRequestContext",
    "ServerRequestResponder",
    "SyncPromptResult",
    "Transport",
    "WriteStream",
]
