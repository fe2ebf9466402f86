"""Names of the originals that files use in annotations only: placeholders, which accept any subscript.

``async def guard(ctx: ServerRequestContext, call_next: CallNext) -> HandlerResult`` is defined with them as
with the originals. They say nothing, to type checkers neither.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class _Placeholder:
    """An annotation without a meaning."""

    if not TYPE_CHECKING:

        def __class_getitem__(cls, item: object) -> type:
            return cls


CacheMode: Any = _Placeholder
"""Accepts any annotation with the original's `CacheMode`."""
CacheableMethod: Any = _Placeholder
"""Accepts any annotation with the original's `CacheableMethod`."""
CallNext: Any = _Placeholder
"""Accepts any annotation with the original's `CallNext`."""
EventCallback: Any = _Placeholder
"""Accepts any annotation with the original's `EventCallback`."""
HandlerResult: Any = _Placeholder
"""Accepts any annotation with the original's `HandlerResult`."""
IncomingMessage: Any = _Placeholder
"""Accepts any annotation with the original's `IncomingMessage`."""
LifespanCallable: Any = _Placeholder
"""Accepts any annotation with the original's `LifespanCallable`."""
LifespanContextManagerFn: Any = _Placeholder
"""Accepts any annotation with the original's `LifespanContextManagerFn`."""
LifespanContextT: Any = _Placeholder
"""Accepts any annotation with the original's `LifespanContextT`."""
LifespanFn: Any = _Placeholder
"""Accepts any annotation with the original's `LifespanFn`."""
LogData: Any = _Placeholder
"""Accepts any annotation with the original's `LogData`."""
MessageStream: Any = _Placeholder
"""Accepts any annotation with the original's `MessageStream`."""
OnEvent: Any = _Placeholder
"""Accepts any annotation with the original's `OnEvent`."""
PromptResult: Any = _Placeholder
"""Accepts any annotation with the original's `PromptResult`."""
ReadStream: Any = _Placeholder
"""Accepts any annotation with the original's `ReadStream`."""
RequestT: Any = _Placeholder
"""Accepts any annotation with the original's `RequestT`."""
ResponseCacheStore: Any = _Placeholder
"""Accepts any annotation with the original's `ResponseCacheStore`."""
ServerMiddleware: Any = _Placeholder
"""Accepts any annotation with the original's `ServerMiddleware`."""
ServerRequestContext: Any = _Placeholder
"""Accepts any annotation with the original's `ServerRequestContext`."""
ServerRequestResponder: Any = _Placeholder
"""Accepts any annotation with the original's `ServerRequestResponder`."""
SyncPromptResult: Any = _Placeholder
"""Accepts any annotation with the original's `SyncPromptResult`."""
Transport: Any = _Placeholder
"""Accepts any annotation with the original's `Transport`."""
WriteStream: Any = _Placeholder
"""Accepts any annotation with the original's `WriteStream`."""

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
