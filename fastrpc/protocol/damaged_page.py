"""The entries of a list's page that can be read, where something in the page is not JSON.

A description that was cut within an emoji, a NaN, a byte that is not UTF-8: one such entry would make the
whole page unreadable. It is left out, which is logged. Only pages of lists are read so: a part of any other
result would be a different result. Costs nothing for a page that is sound.
"""

from __future__ import annotations

from fastrpc import diagnostics

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MEMBERS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}


def readable_page(method: str, line: bytes) -> dict[str, Any] | None:
    """Return the page in a line that is not JSON, without its entries that are not JSON; None if the line
    cannot be read otherwise, or holds no page of the list that a method returns."""
    member = MEMBERS.get(method)
    if member is None:
        return None
    import json

    try:
        message = json.loads(line.decode("utf-8", "surrogateescape"))
        if message["jsonrpc"] != "2.0":
            return None
        page = message["result"]
        entries = page[member]
        found = {"nextCursor": page.get("nextCursor"), member: [each for each in entries if _is_json(each)]}
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
        return None
    if not _is_json(found["nextCursor"]):
        return None
    missing = len(entries) - len(found[member])
    diagnostics.write(
        "warning", f"{method}: {missing} of {len(entries)} entries are not JSON and are left out"
    )
    return found


def _is_json(value: Any) -> bool:
    import json

    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (RecursionError, ValueError):
        return False
    return True
