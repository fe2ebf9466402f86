"""Converts an exception of a verb to a failure, for MCP clients (`verbs`) and for clients of an engine
(`_engine_endpoint`).

Every exception of an engine becomes an EngineError: a time limit ENGINE_TIMEOUT, any unexpected one
INTERNAL_ERROR, with its traceback in the log.
"""

from __future__ import annotations

from ._errors import ENGINE_TIMEOUT, INTERNAL_ERROR, EngineError
from ._verbs import PREFIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def engine_error_of(error: Exception, verb: str, seconds: float, log: str) -> EngineError:
    """Return the EngineError for an exception of a verb, which had `seconds`; `log` is the log that the
    message names."""
    if isinstance(error, EngineError):
        return error
    if isinstance(error, TimeoutError):
        return EngineError(ENGINE_TIMEOUT, f"not done after {seconds} s, and ended")
    import logging

    logging.getLogger("fastrpc").error("%s%s has failed", PREFIX, verb, exc_info=error)
    return EngineError(INTERNAL_ERROR, f"{type(error).__name__}, see {log}")


def shown(error: EngineError) -> dict[str, Any]:
    """Return the member ``error`` of an envelope: code, message, retry, and details unless they are empty."""
    found: dict[str, Any] = {"code": error.code, "message": error.message, "retry": error.retry}
    if error.details is not None:
        found["details"] = error.details
    return found
