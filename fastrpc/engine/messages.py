"""The ids and notifications of JSON-RPC 2.0, as the engine reads and writes them; the methods whose calls are
recorded; and the states of a call."""

from __future__ import annotations

from fastrpc._core.encoder import dumps
from fastrpc.json_encoding import to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

WAITING = "waiting"
RUNNING = "running"
ENDED = "ended"

RECORDED = {"tools/call": "tool", "resources/read": "resource", "prompts/get": "prompt"}
"""The methods that call what users wrote, and what they call."""
CALLED_BY = {kind: method for method, kind in reversed(RECORDED.items())}
"""By which method records say that an entry of a kind was called: the first one above."""
TASK = "task"
"""The key under which the record of a task's call has its `HeldTask` (`CallRecord.decided`)."""


def notification(method: str, params: dict[str, Any] | None = None) -> bytes:
    """Return a notification as JSON text (JSON-RPC 2.0, section 4.1)."""
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    if params is not None:
        message["params"] = params
    return to_json(message)


def key_of(id: bytes) -> bytes:
    """Return the text by which an id is looked up: two spellings of one string are one id."""
    return dumps(id_value(id)) if b"\\" in id else id


def id_value(id: bytes) -> str | int:
    """Return an id as a Python value, from its JSON text."""
    if id[:1] != b'"':
        return int(id)
    if b"\\" not in id:
        return id[1:-1].decode()
    import json

    value: str = json.loads(id)
    return value
