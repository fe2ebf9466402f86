"""Sends the ``_meta`` of a resource with its contents, and a prompt's with its messages, as the originals do:
clients read there what a user interface may load.

`with_meta` wraps the functions of what has ``_meta``, and returns the others unchanged.
"""

from __future__ import annotations

from fastrpc.compat.values import ResourceResult, prompt_value, resource_value
from fastrpc.content import Contents, Received

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc.compat.dialect import Dialect


def with_meta(function: Any, meta: dict[str, Any] | None, dialect: Dialect, kind: str) -> Any:
    """Return a function that returns contents, or messages, with the ``_meta`` of its resource, template or
    prompt (`kind`), if the original sends it there. FastMCP's own member ``fastmcp`` is left out."""
    known = {name: value for name, value in (meta or {}).items() if name != "fastmcp"}
    if not known or kind not in dialect.meta_in_contents or not callable(function):
        return function
    from fastrpc.compat.components.resource_security import wrapped

    if kind == "prompt":
        return wrapped(function, after=lambda value: _described_messages(value, known))
    return wrapped(function, after=lambda value: _described(value, known, dialect))


def _described_messages(value: Any, meta: dict[str, Any]) -> Any:
    found = prompt_value(value)
    if isinstance(found, Received):  # with its own
        return found
    return Received(found if isinstance(found, list) else [found], {"_meta": meta})


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
