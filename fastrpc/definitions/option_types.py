"""Refuses options of the wrong type where an author gives them: `Server(version=1.0)`, `@app.tool(title=3)`.

They are sent to clients as they are, and most clients refuse a whole list, or the handshake, for one member
of another type than MCP says (serverInfo, Tool, Resource, Prompt). None is an option that is not given.
"""

from __future__ import annotations

from fastrpc.errors import DefinitionError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

TYPES: dict[str, type] = {
    **dict.fromkeys(("name", "title", "description", "effect", "risk", "mime_type", "version"), str),
    **dict.fromkeys(("instructions", "website_url", "cache_scope"), str),
    **dict.fromkeys(("annotations", "meta", "json_schema_extra", "input_schema", "documents"), dict),
    **dict.fromkeys(("extensions", "experimental"), dict),
    **dict.fromkeys(("page_size", "max_in_flight", "max_batch", "threads"), int),
    "icons": list,
}
WORDS = {str: "a str", dict: "a dict", int: "a whole number from 1 up", list: "a list"}


def check(where: str, options: Mapping[str, Any]) -> None:
    """Raise DefinitionError for the first option that has another type than `TYPES` says, or a number below
    1; ValueError for keys of extensions. Options that are not in the table are left alone."""
    for option, value in options.items():
        expected = TYPES.get(option)
        if expected is None or value is None:
            continue
        fits = isinstance(value, expected) and value is not True
        if not fits or (expected is int and value < 1):
            raise DefinitionError(f"{where}: {option}=: expected {WORDS[expected]}, got {value!r:.80}")
    if options.get("extensions"):
        from fastrpc.content import checked_extensions

        checked_extensions(options["extensions"])
    for icon in options.get("icons") or ():
        if not isinstance(icon, dict) or not isinstance(icon.get("src"), str):
            raise DefinitionError(
                f'{where}: icons: expected objects like {{"src": "https://…"}}, got {icon!r:.80}'
            )


def check_transport(transport: object, *, excludes: bool) -> None:
    """Raise UsageError for the name of a transport, as other frameworks take it, and if the author gave
    options that a transport excludes."""
    if isinstance(transport, str):
        raise UsageError(
            f"run: transport={transport!r:.40}: expected a Transport; without it the server uses standard "
            "input and output, and over HTTP run(http='127.0.0.1:8000')"
        )
    if excludes:
        raise UsageError("run: transport= excludes http= and its options")
