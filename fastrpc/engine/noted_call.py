"""A call whose result says more in its ``_meta`` than its tool does: what a guard has to tell the caller.

Its result is encoded once more, which costs what reading and writing its JSON costs. Errors are told without
it. Imported by the first such call.
"""

from __future__ import annotations

from fastrpc._core.recorder import ticks
from fastrpc.engine.call import Call
from fastrpc.json_encoding import to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class NotedCall(Call):
    """Takes the place of a call that is allowed and has not begun; `Request.result_meta` is what is said."""

    __slots__ = ()

    def __init__(self, call: Call) -> None:
        super().__init__(call.dispatcher, call.request, call.plan, call.arguments, call.context)
        self.variables = call.variables

    def returned(self, result: Any) -> None:
        self.send_held_progress()
        if not self.end():
            return
        request, dispatcher = self.request, self.dispatcher
        request.returned = ticks()
        try:
            encoded = _with_meta(
                self.plan.encoder.encode(request, self.plan.tool, result), request.result_meta
            )
        except BaseException as error:
            dispatcher.call_raised(self, error)
        else:
            dispatcher.call_encoded(self, encoded)


def _with_meta(result: bytes, meta: dict[str, Any]) -> bytes:
    """Return a result with members added to its ``_meta``."""
    from json import loads

    members = loads(result)
    members["_meta"] = {**members.get("_meta", {}), **meta}
    return to_json(members)
