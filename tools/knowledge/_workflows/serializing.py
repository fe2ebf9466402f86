"""The serializer of DBOS's values: JSON. DBOS's default is pickle, which would execute code in the
database."""

from __future__ import annotations

import json
from datetime import datetime

from dbos import Serializer

from .interpreter import RunFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ERROR = "__error__"
LONGEST_ERROR = 2000


def _iso(value: Any) -> str:
    """Return the time of a schedule as a text; reading it back gives a text."""
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} is not JSON")


class _Json(Serializer):
    def serialize(self, data: Any) -> str:
        if isinstance(data, BaseException):
            kind = "" if isinstance(data, RunFailed) else f"{type(data).__name__}: "
            data = {ERROR: f"{kind}{data}"[:LONGEST_ERROR]}
        return json.dumps(data, ensure_ascii=False, allow_nan=False, default=_iso)

    def deserialize(cls, serialized_data: str) -> Any:
        found = json.loads(serialized_data)
        return Exception(found[ERROR]) if isinstance(found, dict) and ERROR in found else found

    def name(self) -> str:
        return "fastrpc_json"


def json_serializer() -> Serializer:
    """Return the serializer."""
    return _Json()
