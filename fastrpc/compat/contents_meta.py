"""The ``_meta`` of a resource, which the originals send with its contents, too: the bounds of a user
interface stand there.

`with_meta` wraps a resource's function where there is some; others are not touched and cost nothing.
"""

from __future__ import annotations

from fastrpc.compat.values import ResourceResult, resource_value
from fastrpc.content import Contents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc.compat.dialect import Dialect


def with_meta(function: Any, meta: dict[str, Any] | None, dialect: Dialect, *, is_template: bool) -> Any:
    """Return a resource's function whose contents have the resource's ``_meta`` where the original has it so;
    without what FastMCP notes of its own."""
    known = {name: value for name, value in (meta or {}).items() if name != "fastmcp"}
    kind = "template" if is_template else "resource"
    if not known or kind not in dialect.meta_in_contents or not callable(function):
        return function
    from fastrpc.compat.resource_security import wrapped

    return wrapped(function, after=lambda value: _described(value, known, dialect))


def _described(value: Any, meta: dict[str, Any], dialect: Dialect) -> Any:
    found = resource_value(value)
    if found is None or isinstance(value, ResourceResult):
        return found
    if not isinstance(found, (list, tuple, Contents)):
        return Contents(found, meta=meta)
    if dialect.merges_meta:
        for part in [found] if isinstance(found, Contents) else found:
            part.meta = {**meta, **(part.meta or {})}
    return found
