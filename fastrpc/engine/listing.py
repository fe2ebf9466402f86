"""A list of which some entries cannot be written: those are left out, and logged once, so that clients get
the others.

An entry may hold what is no JSON (an object in its ``_meta``, half a surrogate pair in its description). That
is found when a list is encoded as a whole, and only then are entries tried one by one.
"""

from __future__ import annotations

from fastrpc import diagnostics
from fastrpc.json_encoding import to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

LONGEST = 500
"""Characters of a record."""
log = diagnostics.Once("error")


def writable(entries: Iterable[Any], version: str) -> list[dict[str, Any]]:
    """Return the descriptors of the entries that can be written as JSON."""
    found = []
    for entry in entries:
        try:
            descriptor: dict[str, Any] = entry.descriptor(version)
            to_json(descriptor)
        except Exception as error:
            left_out(f"{getattr(entry, 'kind', 'entry')} {entry.name!r:.80}", f"{error}")
        else:
            found.append(descriptor)
    return found


def left_out(what: str, why: str) -> None:
    """Log, once, that something is left out of a list."""
    log.write(f"{what} is left out of its list: {why}"[:LONGEST])
