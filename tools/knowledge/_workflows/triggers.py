"""Triggers of runs besides callers: times of a cron expression, and signed requests (`hook`).

Such a run is in the name of the workflow's creator. Its id is made of the owner and the cause, so that the
same time or the same request begins one run, even if it arrives twice or at two servers.
"""

from __future__ import annotations

import json
import time
from datetime import datetime, timezone
from hashlib import sha256
from secrets import token_urlsafe

from fastrpc.signed_requests import is_recent, is_signed
from fastrpc.transports.http.endpoints import Refused

from . import definition, engine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SHORTEST_SECRET = 16
LONGEST_EXPRESSION = 200


def check_cron(trigger: dict[str, Any]) -> None:
    """Raise BadWorkflow for an expression without a next time, and for an unknown time zone."""
    from zoneinfo import ZoneInfo

    from croniter import CroniterBadDateError, croniter

    expression, zone = trigger.get("expression", ""), trigger.get("timezone", "UTC")
    try:
        now = datetime.now(ZoneInfo(zone))
    except (OSError, ValueError, LookupError):
        raise definition.BadWorkflow(f"trigger.timezone: expected an IANA name, got {zone!r:.80}") from None
    is_short = len(expression) <= LONGEST_EXPRESSION and len(expression.split()) == 5
    if not is_short or not croniter.is_valid(expression):
        raise definition.BadWorkflow(
            f"trigger.expression: expected minute, hour, day, month and weekday, got {expression!r:.80}"
        )
    try:
        croniter(expression, now).get_next(datetime)
    except CroniterBadDateError:
        raise definition.BadWorkflow(f"trigger.expression: {expression!r:.80} is at no time") from None


def secret_for(trigger: dict[str, Any], before: str) -> tuple[str, bool]:
    """Return the secret of a webhook, and whether it was made here. Raises BadWorkflow."""
    given = trigger.get("secret", "")
    if given and len(given) < SHORTEST_SECRET:
        raise definition.BadWorkflow(f"trigger.secret: expected at least {SHORTEST_SECRET} characters")
    return (given, False) if given else (before, False) if before else (token_urlsafe(32), True)


def begun(id: str, body: bytes, timestamp: str, signature: str) -> str:
    """Begin the run for a request, and return its id. Raises Refused."""
    from fastrpc.storage import StorageError

    from .. import _store
    from .._store import workflows

    try:
        known = workflows.hooks(_store.current().database, id)
        found = next(
            (each for each in known if is_signed(each.secret.encode(), timestamp, body, signature)), None
        )
        if found is None:
            raise Refused(401, "the signature is not valid")
        if not is_recent(timestamp, time.time()):
            raise Refused(401, "the timestamp is too old, or in the future")
        cause, at = f"hook-{sha256(signature.encode()).hexdigest()[:16]}", _iso(int(timestamp[:20]))
        return engine.current().begin(cause, found, {"body": _parsed(body), "at": at})
    except StorageError as error:
        raise Refused(503, str(error)) from None
    except (engine.WorkflowsUnavailable, definition.BadWorkflow) as error:
        raise Refused(503, str(error)) from None


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return body.decode("utf-8", "replace")


def _iso(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat()
