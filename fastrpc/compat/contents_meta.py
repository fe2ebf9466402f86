"""Sends the ``_meta`` of a resource with its contents, as the originals do: clients read there what a user
interface may load.

`with_meta` wraps the functions of resources that have ``_meta``, and returns the others unchanged.
"""

from __future__ import annotations

from fastrpc.compat.values import ResourceResult, resource_value
from fastrpc.content import Contents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc.compat.dialect import Dialect


def with_meta(function: Any, meta: dict[str, Any] | None, dialect: Dialect, kind: str) -> Any:
    """Return a function that returns contents with the ``_meta`` of its resource or template (`kind`), if the
    original sends it there. FastMCP's own member ``fastmcp`` is left out."""
    known = {name: value for name, value in (meta or {}).items() if name != "fastmcp"}
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
