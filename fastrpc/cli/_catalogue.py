"""The features of a server: tools, resources, resource templates and prompts, as received and as text.

Lists only what the server's capabilities declare. Texts of the server are escaped before they are printed
(`fastrpc.terminal.text.plain`).
"""

from __future__ import annotations

import json
import re
import sys

from fastrpc.errors import MethodNotFound, RemoteError, excerpt
from fastrpc.terminal.text import plain, width, wrapped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from typing import Any

    from fastrpc.client.sync import SyncClient

    Entry = dict[str, Any]
    Catalogue = dict[str, list[Entry]]

TEXT_WIDTH = 60
NARROWEST = 20
"""The minimum width of a table's last column."""
HANGING = "    "
"""The indentation of a wrapped line's continuation."""


def catalogue_of(client: SyncClient) -> Catalogue:
    """Return the descriptors of all features, by the member of the list's result: ``tools``, ``resources``,
    ``resourceTemplates``, ``prompts``. Raises ClientError."""
    declared = client.server_capabilities
    kinds = (
        ("tools", "tools", client.list_tools),
        ("resources", "resources", client.list_resources),
        ("resourceTemplates", "resources", client.list_resource_templates),
        ("prompts", "prompts", client.list_prompts),
    )
    found: Catalogue = {}
    for member, capability, read in kinds:
        found[member] = []
        if capability in declared:
            try:
                found[member] = [dict(entry) for entry in read()]
            except RemoteError as error:
                if error.code != MethodNotFound.code:  # resources without templates, for example
                    raise
    return found


TITLES = {
    "tools": "tools",
    "resources": "resources",
    "resourceTemplates": "resource templates",
    "prompts": "prompts",
}


def shown(catalogue: Catalogue, *, is_whole: bool = False) -> Iterator[str]:
    """Yield the lines of the text output. `is_whole`: with whole descriptions and output schemas."""
    lines_of: dict[str, Callable[[Entry], Iterable[str]]] = {
        "tools": lambda entry: _tool_lines(entry, is_whole),
        "resources": lambda entry: _named_lines(entry, "uri"),
        "resourceTemplates": lambda entry: _named_lines(entry, "uriTemplate"),
        "prompts": lambda entry: (_head(entry.get("name"), entry), *_parameter_lines(arguments_of(entry))),
    }
    is_first = True
    for member, title in TITLES.items():
        if catalogue[member]:
            if not is_first:
                yield ""
            is_first = False
            yield f"{title}:"
            for entry in catalogue[member]:
                head, *others = lines_of[member](entry)
                yield head
                if is_whole:
                    _, *further = str(entry.get("description") or "").strip().splitlines() or [""]
                    yield from (f"    {plain(line)}".rstrip() for line in further)
                yield from others
    if is_first:
        yield "Nothing: no tools, resources or prompts."


def _tool_lines(tool: Entry, is_whole: bool) -> Iterator[str]:
    effect = effect_of(tool)
    yield _head(tool.get("name"), tool, f" ({effect})" if effect else "")
    yield from _parameter_lines(parameters_of(tool.get("inputSchema")))
    returned = parameters_of(tool.get("outputSchema")) if is_whole else []
    if returned:
        yield "    returns"
        yield from _parameter_lines(returned)


def parameters_of(schema: Any) -> list[tuple[str, str, bool, str]]:
    """Return the members of an object's schema: name, type, whether it is required, description."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict):
        return []
    found = schema.get("required")
    required = found if isinstance(found, list) else []
    return [(name, kind_of(field), name in required, _detail(field)) for name, field in properties.items()]


def schema_of(tool: Entry) -> dict[str, Any]:
    """Return a tool's input schema, {} if it is not an object."""
    schema = tool.get("inputSchema")
    return schema if isinstance(schema, dict) else {}


def arguments_of(prompt: Entry) -> list[tuple[str, str, bool, str]]:
    """Return the arguments of a prompt in the form of `parameters_of`, without types."""
    arguments = prompt.get("arguments")
    return [
        (str(each.get("name")), "", bool(each.get("required")), str(each.get("description") or ""))
        for each in (arguments if isinstance(arguments, list) else ())
        if isinstance(each, dict)
    ]


def _named_lines(entry: Entry, member: str) -> Iterator[str]:
    kind = f" ({plain(str(entry['mimeType']))})" if entry.get("mimeType") else ""
    yield _head(entry.get(member), entry, kind)


def _head(name: object, entry: Entry, more: str = "") -> str:
    text = first_line(entry.get("description") or entry.get("title") or "", 100)
    return f"  {plain(str(name))}{more}{f': {text}' if text else ''}"


def _parameter_lines(parameters: list[tuple[str, str, bool, str]]) -> Iterator[str]:
    """Yield a line for each parameter: name, type, whether it is required, description."""
    rows = [
        (plain(name), plain(kind), "required" if required else "", first_line(text, 100))
        for name, kind, required, text in parameters
    ]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(3)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False) if width]
        yield "      " + "  ".join([*cells, row[3]]).rstrip()


def kind_of(field: Any) -> str:
    """Return a property's type in a few words: ``integer``, ``string or null``, ``"kind" | "firm"``."""
    if not isinstance(field, dict):
        return "any"
    choices = field.get("enum")
    if isinstance(choices, list) and choices:
        return " | ".join(json.dumps(choice, ensure_ascii=False) for choice in choices)
    kind = field.get("type")
    if isinstance(kind, list):
        return " or ".join(map(str, kind))
    if kind == "array" and isinstance(field.get("items"), dict):
        return f"array of {kind_of(field['items'])}"
    branches = field.get("anyOf") or field.get("oneOf")
    if kind is None and isinstance(branches, list) and branches:
        return " or ".join(dict.fromkeys(map(kind_of, branches)))
    return str(kind) if kind is not None else "object" if "$ref" in field else "any"


def _detail(field: Any) -> str:
    """Return a property's description, with its default."""
    if not isinstance(field, dict):
        return ""
    text = str(field.get("description") or "")
    if field.get("default") is None:
        return text
    default = f"default {json.dumps(field['default'], ensure_ascii=False)}"
    return f"{text} ({default})" if text else default


def effect_of(tool: Entry) -> str:
    """Return the effect that a tool's annotations describe (`fastrpc.definitions.tool.EFFECTS`), or ""."""
    from fastrpc.definitions.tool import EFFECTS

    annotations = tool.get("annotations")
    hints = {} if not isinstance(annotations, dict) else annotations
    fitting = [effect for effect, meant in EFFECTS.items() if meant.items() <= hints.items()]
    return max(fitting, key=lambda effect: len(EFFECTS[effect]), default="")


def first_line(text: object, longest: int = TEXT_WIDTH) -> str:
    """Return the first line of a description, cut to `longest` characters."""
    return excerpt(plain(str(text).strip().partition("\n")[0]), longest)


def title_of(report: dict[str, Any]) -> str:
    """Return a server's title, or else its name."""
    server = report["serverInfo"]
    return str(server.get("title") or server.get("name") or "a server without a name")


def capabilities_of(report: dict[str, Any]) -> list[str]:
    """Return each capability with its members: ``tools (listChanged)``."""
    found = []
    for name, value in report["capabilities"].items():
        parts = [key for key, on in value.items() if on is not False] if isinstance(value, dict) else []
        found.append(f"{name} ({', '.join(parts)})" if parts else name)
    return found


def print_lines(lines: Iterable[str]) -> None:
    """Print lines; on a terminal each is wrapped, and its continuation is indented."""
    columns = _terminal_columns()
    for line in lines:
        print("\n".join(_wrapped(line, columns)))


def _wrapped(line: str, columns: int) -> list[str]:
    if width(line) <= columns:
        return [line]
    indent = " " * (len(line) - len(line.lstrip()))
    further = indent + HANGING
    text = re.sub("  +", "  ", line.strip())  # drop the alignment for wide terminals
    first, *others = wrapped(text, max(columns - len(further), NARROWEST))
    return [indent + first.rstrip(), *(further + other.strip() for other in others)]


def print_table(
    head: tuple[str, ...], rows: Sequence[tuple[str, ...]], numbers: Collection[str] = ()
) -> None:
    """Print rows in aligned columns, those of `numbers` to the right; the last column is not padded. On a
    terminal the last column is wrapped; if the terminal is too narrow, each row is printed as a list of its
    cells."""
    columns = _terminal_columns()
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head) - 1)]
    indent = " " * sum(width + 2 for width in widths)
    longest = max(len(row[-1]) for row in [head, *rows])
    if len(indent) + longest > columns < len(indent) + NARROWEST:
        for row in rows:
            pairs = zip(head[1:], row[1:], strict=True)
            print_lines([row[0], *(f"{HANGING}{title}: {cell}" for title, cell in pairs if cell)])
        return
    for row in [head, *rows]:
        cells = [
            cell.rjust(width) if name in numbers else cell.ljust(width)
            for name, cell, width in zip(head, row, widths, strict=False)
        ]
        line = "  ".join([*cells, row[-1]]).rstrip()
        if len(line) > columns:
            from textwrap import fill

            line = fill(row[-1], columns, initial_indent="  ".join([*cells, ""]), subsequent_indent=indent)
        print(line)


def _terminal_columns() -> int:
    """Return the width of the terminal; output to a program is not wrapped."""
    if not sys.stdout.isatty():
        return sys.maxsize
    from shutil import get_terminal_size

    return get_terminal_size().columns


def print_json(value: Any) -> None:
    """Print a value as JSON, for programs."""
    print(json.dumps(value, ensure_ascii=False, indent=2))
