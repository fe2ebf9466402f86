"""What becomes of an exception that a verb raises, for MCP clients (`verbs`) and on the wire of an engine
(`_engine_endpoint`) alike.

Whatever an engine raises is an EngineError in the end: a time limit is ENGINE_TIMEOUT, anything else that
nobody expects is INTERNAL_ERROR, and its traceback goes to the log.
"""

from __future__ import annotations

from ._errors import ENGINE_TIMEOUT, INTERNAL_ERROR, EngineError
from ._verbs import PREFIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def engine_error_of(error: Exception, verb: str, seconds: float, log: str) -> EngineError:
    """Return the EngineError for an exception of a verb, which had `seconds`; `log`: whose log to name."""
    if isinstance(error, EngineError):
        return error
    if isinstance(error, TimeoutError):
        return EngineError(ENGINE_TIMEOUT, f"not done after {seconds} s, and ended")
    import logging

    logging.getLogger("fastrpc").error("%s%s has failed", PREFIX, verb, exc_info=error)
    return EngineError(INTERNAL_ERROR, f"{type(error).__name__}, see {log}")


def shown(error: EngineError) -> dict[str, Any]:
    """Return the member ``error`` of an envelope: code, message, retry, and details if there are any."""
    found: dict[str, Any] = {"code": error.code, "message": error.message, "retry": error.retry}
    if error.details is not None:
        found["details"] = error.details
    return found
