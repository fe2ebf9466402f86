"""What processes notify each other of, as JSON: ``[group, process, change, …values]``.

The group is that of the workers of one host, who tell each other by sockets; the process is the sender. What
does not fit into a payload is sent as a change that says less. Payloads are not trusted: `read` accepts
nothing but the forms of `CHANGES`.
"""

from __future__ import annotations

import json
import re

from fastrpc.storage.notifications import MOST_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

MISSED = "missed"
"""Announcements were lost: anything may have changed."""
SESSION, ENDED, MESSAGE = "session", "session_ended", "session_message"
LISTENED = "session_listened"
"""The client of a session has opened its standalone stream at the sender."""

SESSION_ID = re.compile(r"[A-Za-z0-9_-]{16}")
MOST_NUMBER = 2**63 - 1


class NotUnderstood(ValueError):
    """A payload has none of the forms that this version knows."""


def _is_session(*values: Any) -> bool:
    return len(values) == 1 and isinstance(values[0], str) and SESSION_ID.fullmatch(values[0]) is not None


def _is_message(*values: Any) -> bool:
    return _is_session(*values[:1]) and len(values) == 2 and _is_number(values[1])


def _is_number(value: Any) -> bool:
    return type(value) is int and 0 <= value <= MOST_NUMBER


def _is_kind(*values: Any) -> bool:
    return len(values) == 1 and isinstance(values[0], str)


def _is_update(*values: Any) -> bool:
    return (
        len(values) == 2 and isinstance(values[0], str) and (values[1] is None or isinstance(values[1], dict))
    )


def _is_empty(*values: Any) -> bool:
    return not values


CHANGES: dict[str, Callable[..., bool]] = {
    "list_changed": _is_kind,
    "lists_changed": _is_empty,
    "resource_updated": _is_update,
    MISSED: _is_empty,
    SESSION: _is_session,
    ENDED: _is_session,
    LISTENED: _is_session,
    MESSAGE: _is_message,
}
"""The changes, and whether values are those of one."""


def written(group: str, process: str, change: str, *values: Any) -> str:
    """Return the payload of a change."""
    return _json([group, process, change, *values])


def announced(group: str, process: str, announcement: bytes) -> str:
    """Return the payload of an announcement (`fastrpc.engine.announcements`): without the other members of an
    update's params, if it were too long with them, and as `MISSED`, if it still were."""
    text = _json([group, process])[:-1] + "," + announcement.decode()[1:]
    if len(text.encode()) <= MOST_BYTES:
        return text
    change, *values = json.loads(announcement)
    if change == "resource_updated":
        text = _json([group, process, change, values[0], None])
        if len(text.encode()) <= MOST_BYTES:
            return text
    return written(group, process, MISSED)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def read(payload: str) -> tuple[str, str, str, list[Any]]:
    """Return the group, the process, the change and its values. Raises NotUnderstood."""
    try:
        parts = json.loads(payload, parse_constant=_refuse)
        payload.encode()
        _json(parts).encode()  # a lone surrogate could not be sent to a client
    except (ValueError, RecursionError) as error:
        raise NotUnderstood(type(error).__name__) from None
    if not isinstance(parts, list) or len(parts) < 3 or not all(isinstance(each, str) for each in parts[:3]):
        raise NotUnderstood("no change")
    group, process, change, *values = parts
    is_form = CHANGES.get(change)
    if is_form is None or not is_form(*values):
        raise NotUnderstood("an unknown change, or other values")
    return group, process, change, values


def _refuse(text: str) -> None:
    raise ValueError(text)
