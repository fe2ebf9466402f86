"""logging/setLevel and notifications/message (MCP, utilities: logging).

Up to 2025-11-25 the client sets a level for its session, which is ``info`` until then. In 2026-07-28 each
request has a level; without one no messages are sent. Messages belong to the call that writes them: none is
sent after its response.
"""

from __future__ import annotations

from fastrpc._core.encoder import quoted
from fastrpc.errors import InvalidParams
from fastrpc.json_encoding import UnencodableResult, to_json
from fastrpc.protocol.lifecycle import LOG_LEVELS
from fastrpc.protocol.versions import LOG_KEY, STATELESS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from fastrpc.engine.dispatcher import Dispatcher
    from fastrpc.engine.outbound_channel import RequestChannel
    from fastrpc.engine.request import Request

DEFAULT_LEVEL = "info"


def set_level(dispatcher: Dispatcher, request: Request) -> bytes:
    """Set the level of the session."""
    level = request.params.get("level")
    if not isinstance(level, str) or level not in LOG_LEVELS:
        raise InvalidParams(f"level: expected one of {', '.join(LOG_LEVELS)}")
    dispatcher.session.check_lasting("logging/setLevel")
    dispatcher.session.set_log_level(level)
    return b"{}"


def log(
    channel: RequestChannel, level: str, data: Any, logger: str | None, rest: dict[str, Any] | None = None
) -> None:
    """Send a message that a call writes, if its client wants it. Raises ValueError for an unknown level.

    `data` is encoded at once: later changes to it have no effect. Values that JSON cannot express are sent as
    their `repr`. `rest`: other members of the params, as another server has sent them.
    """
    if _wanted(level, least_level(channel.request)):
        channel.send_line(_message(level, data, logger, rest))


def log_to_sessions(
    runtimes: Iterable[Any],
    level: str,
    data: Any,
    logger: str | None,
    to: Callable[[str], bool] | None = None,
) -> int:
    """Send a message that belongs to no call to all clients of servers, or those of principals for which `to`
    is True; return how many have asked for its level."""
    dispatchers = [each for runtime in runtimes for each in list(runtime.dispatchers)]
    chosen = [each for each in dispatchers if to is None or to(each.principal)]
    return sum(log_to_session(each, level, data, logger) for each in chosen)


def log_to_session(dispatcher: Dispatcher, level: str, data: Any, logger: str | None) -> bool:
    """Send a message that belongs to no call, and return True, if the client has asked for its level."""
    if not _wanted(level, dispatcher.session.log_level):
        return False
    line = _message(level, data, logger)
    dispatcher.outbound.post(lambda: dispatcher.outbound.send_line(line))
    return True


def _wanted(level: str, least: str | None) -> bool:
    severity = LOG_LEVELS.get(level)
    if severity is None:
        raise ValueError(f"level={level!r} is not one of {', '.join(LOG_LEVELS)}")
    return least is not None and severity >= LOG_LEVELS[least]


def _message(level: str, data: Any, logger: str | None, rest: dict[str, Any] | None = None) -> bytes:
    params = b'"level":"%b","data":%b' % (level.encode(), _written(data))
    if logger is not None:
        params += b',"logger":' + _text(logger)
    if rest:
        params += b"," + _written(rest)[1:-1]
    return b'{"jsonrpc":"2.0","method":"notifications/message","params":{' + params + b"}}"


def least_level(request: Request) -> str | None:
    """Return the least level that the client of a request has asked for, None if no messages are sent."""
    if request.version == STATELESS:
        wanted: str | None = request.meta.get(LOG_KEY)
        return wanted
    return request.dispatcher.session.log_level or DEFAULT_LEVEL


def _written(data: Any) -> bytes:
    try:
        return to_json(data)
    except (UnencodableResult, UnicodeEncodeError):
        return _text(data if isinstance(data, str) else repr(data))


def _text(text: str) -> bytes:
    return quoted(text.encode("utf-8", "backslashreplace").decode())
