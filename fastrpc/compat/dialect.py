"""What the originals do differently from one another, and from fastrpc: a `Dialect` for each.

A server class has one, chosen by the module that it is imported from: `fastrpc.compat.fastmcp` or
`fastrpc.compat.mcp`. Costs nothing in a call: it is read where tools, resources and prompts are declared.
"""

from __future__ import annotations

import os
import sys
from functools import cache, partial

from fastrpc.compat.json_forms import numeric_form, readable_form
from fastrpc.compat.values import foreign_value
from fastrpc.errors import DefinitionError
from fastrpc.schema.annotations import resolve
from fastrpc.tool_style import ToolStyle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Literal


class Dialect:
    """How servers of one original describe tools and encode results.

    `original`: its name in messages. `positional`: the names of the constructor's positional parameters after
    the server's name. `style`: that of tools, `hiding_style` that where errors of tools are hidden.
    `describes_arguments`: descriptions of parameters are taken from the docstring's section ``Args:``.
    `names_variables`: ``*args`` and ``**kwargs`` are parameters of these names. `protocol_errors`: the kinds
    of handlers whose McpError is the answer's JSON-RPC error; `url_errors`: those of which a
    UrlElicitationRequiredError is. `wraps_logs`: a log message is an object with ``msg`` and ``extra``.
    `reads_json_texts`: JSON text is read where a parameter takes texts and anything else.
    `titles_by_annotations`: a tool without a title has that of its annotations.
    `rendering` begins the error for a prompt's exception, with its name in the place of ``{name}``.
    `runs_inline`: synchronous functions run on the thread of the event loop, so that what belongs to a
    thread, such as a connection of sqlite3, can be used by all of them.
    `wraps_generics`: a result that is declared by a generic type other than ``dict[str, …]`` is structured
    content ``{"result": …}``, and one that is declared as a class without members (``dict``, ``set``, an
    enum) is no structured content. `structures_results`: results have output schemas. `structures_lists`:
    lists of anything have, too.
    `meta_in_contents`: resources of these kinds send their ``_meta`` with their contents, prompts with their
    messages; with `merges_meta` also with contents that have a ``_meta``.
    `screens_templates`: the variables of templates may be no paths out of a folder, unless the server says
    otherwise. `refuses_calls`: an McpError of middleware is the JSON-RPC error that answers a tool's call,
    not its result.
    """

    __slots__ = (
        "describes_arguments",
        "hiding_style",
        "merges_meta",
        "meta_in_contents",
        "names_variables",
        "original",
        "positional",
        "protocol_errors",
        "reads_json_texts",
        "refuses_calls",
        "rendering",
        "runs_inline",
        "screens_templates",
        "structures_lists",
        "structures_results",
        "style",
        "titles_by_annotations",
        "url_errors",
        "wraps_generics",
        "wraps_logs",
    )

    def __init__(
        self,
        original: str,
        *,
        positional: tuple[str, ...],
        style: ToolStyle,
        hiding_style: ToolStyle,
        describes_arguments: bool,
        names_variables: bool,
        protocol_errors: frozenset[str],
        url_errors: frozenset[str],
        rendering: str,
        wraps_generics: bool,
        runs_inline: bool = False,
        screens_templates: bool = True,
        titles_by_annotations: bool = False,
        wraps_logs: bool = False,
    ) -> None:
        self.original = original
        self.positional = positional
        self.style = style
        self.hiding_style = hiding_style
        self.describes_arguments = describes_arguments
        self.names_variables = names_variables
        self.protocol_errors = protocol_errors
        self.url_errors = url_errors
        self.rendering = rendering
        self.reads_json_texts = wraps_generics
        self.structures_lists = wraps_generics
        self.meta_in_contents: frozenset[str] = frozenset(("resource", "template"))
        self.merges_meta = False
        self.structures_results = True
        self.refuses_calls = True
        self.screens_templates = screens_templates
        self.wraps_generics = wraps_generics
        self.runs_inline = runs_inline
        self.titles_by_annotations = titles_by_annotations
        self.wraps_logs = wraps_logs

    def structured(self, annotation: Any, namespace: Mapping[str, Any]) -> bool | Literal["wrapped"]:
        """Return the option ``structured`` of a tool with this return annotation."""
        if not self.structures_results:
            return False
        try:
            annotation = resolve(annotation, namespace) if isinstance(annotation, str) else annotation
        except DefinitionError:
            return True  # reported when the annotation is read
        if not self.wraps_generics:
            return annotation not in (None, type(None), bytes)
        while hasattr(annotation, "__metadata__"):
            annotation = annotation.__origin__
        origin = getattr(annotation, "__origin__", None)
        if origin is None:
            return not (isinstance(annotation, type) and _is_opaque(annotation))
        is_plain = origin is dict and type(annotation).__module__ != "typing"
        return True if is_plain and annotation.__args__[0] is str else "wrapped"


def _is_opaque(kind: type) -> bool:
    """Whether a class has no members that the official SDK could describe: an enum, a date, a named tuple, a
    set."""
    return kind not in _PRIMITIVE and (
        hasattr(kind, "__members__")
        or (issubclass(kind, tuple) and hasattr(kind, "_fields"))
        or kind.__module__.partition(".")[0] in _OPAQUE
    )


_PRIMITIVE = frozenset((str, int, float, bool, bytes, type(None)))
_OPAQUE = frozenset(("builtins", "collections", "datetime", "decimal", "ipaddress", "pathlib", "uuid"))


def _style(
    refusal: str | None, failure: str, *, blocks: bool, hides: bool, aliases: bool = True
) -> ToolStyle:
    return ToolStyle(
        aliases_results=aliases,
        explicit_nulls=True,
        marks_wrapping=True,
        structures_texts=True,
        structures_objects=not blocks,
        checks_results=blocks,
        checks_names=False,
        block_per_item=blocks,
        refusal_prefix=refusal,
        failure_prefix=failure,
        hides_failures=hides,
        convert=foreign_value,
        readable=readable_form,
        numeric=numeric_form,
    )


_CALLING = "Error calling tool '{name}': "
_EXECUTING = "Error executing tool {name}: "

MASKED_READING = ToolStyle(failure_prefix="see the server's log", hides_failures=True)
"""The style of resources and templates where errors are hidden: not even the exception's class is sent."""

FASTMCP = Dialect(
    "FastMCP",
    positional=("instructions",),
    style=_style(None, _CALLING, blocks=False, hides=False, aliases=False),
    hiding_style=_style(None, _CALLING, blocks=False, hides=True, aliases=False),
    describes_arguments=True,
    names_variables=False,
    protocol_errors=frozenset(("resource",)),
    url_errors=frozenset(),
    rendering="Error rendering prompt '{name}': ",
    wraps_generics=False,
    wraps_logs=True,
    titles_by_annotations=True,
)
"""FastMCP 2 to 4."""

SDK_1 = Dialect(
    "mcp.server.fastmcp",
    positional=(
        "instructions",
        "website_url",
        "icons",
        "auth_server_provider",
        "token_verifier",
        "event_store",
        "retry_interval",
    ),
    style=_style(_EXECUTING, _EXECUTING, blocks=True, hides=False),
    hiding_style=_style(_EXECUTING, _EXECUTING, blocks=True, hides=True),
    describes_arguments=False,
    names_variables=True,
    protocol_errors=frozenset(),
    url_errors=frozenset(("tool",)),
    rendering="Error rendering prompt {name}: ",
    wraps_generics=True,
    runs_inline=True,
    screens_templates=False,
)
"""The official SDK 1.x, `mcp.server.fastmcp`."""

SDK_2 = Dialect(
    "mcp.server.mcpserver",
    positional=(
        "title",
        "description",
        "instructions",
        "website_url",
        "icons",
        "version",
        "auth_server_provider",
        "token_verifier",
    ),
    style=_style(_EXECUTING, _EXECUTING, blocks=True, hides=True),
    hiding_style=_style(_EXECUTING, _EXECUTING, blocks=True, hides=True),
    describes_arguments=False,
    names_variables=True,
    protocol_errors=frozenset(("tool", "resource", "prompt")),
    url_errors=frozenset(),
    rendering="Error rendering prompt {name}: ",
    wraps_generics=True,
)
"""The official SDK 2.x, `mcp.server.mcpserver`. A ToolError's text is sent, that of another error is not."""


def follow_release(package: str, version: str) -> None:
    """Have the servers of this process describe what those of this release of an original describe: there are
    output schemas since FastMCP 2.10 and the SDK 1.10; since FastMCP 4 lists of anything have none, and
    models have no aliases in results; it refuses results that break their schema up to FastMCP 2, up to 3 if
    that is of an object, and NaN since FastMCP 4.2; since FastMCP 3 a
    resource sends its ``_meta`` with its contents and a prompt with its messages, since 4 a template, too."""
    release = release_of(version)
    if package == "fastmcp":
        FASTMCP.structures_results = release >= (2, 10)
        FASTMCP.refuses_calls = release >= (3, 0)
        FASTMCP.screens_templates = release >= (4, 0)
        FASTMCP.structures_lists = release < (4, 0)
        FASTMCP.merges_meta = release >= (4, 0)
        kinds = ("resource", "template") if release >= (4, 0) else ("resource",)
        FASTMCP.meta_in_contents = frozenset((*kinds, "prompt") if release >= (3, 0) else ())
        for style in (FASTMCP.style, FASTMCP.hiding_style):
            style.aliases_results = style.checks_objects = release < (4, 0)
            style.checks_results = release < (3, 0)
            if release >= (4, 2):
                style.convert = partial(foreign_value, refuses_nan=True)
                style.readable = partial(readable_form, refuses_nan=True)
            else:
                style.convert, style.readable = foreign_value, readable_form
    else:
        SDK_1.structures_results = release >= (1, 10)


DISTRIBUTIONS = {"fastmcp": ("fastmcp_slim-", "fastmcp-"), "mcp": ("mcp-",)}
"""How the names of the folders begin that have the version of an installed original."""
LATEST_KNOWN = {"fastmcp": "4.2.0", "mcp": "2.3.0"}
"""The version of an original that is not installed."""


@cache
def installed_version(package: str) -> str:
    """Return the version of the original that the interpreter would import, `LATEST_KNOWN` without one.

    Reads the names in the folders of ``sys.path``: importing `importlib.metadata` takes longer than that.
    """
    for place in sys.path:
        try:
            names = os.listdir(place or ".")
        except OSError:
            continue
        for name in names:
            if name.startswith(DISTRIBUTIONS[package]) and name.endswith(".dist-info"):
                return name.partition("-")[2].removesuffix(".dist-info")
    return LATEST_KNOWN[package]


def installed_release(package: str) -> tuple[int, ...]:
    """Return the first two numbers of `installed_version`."""
    return release_of(installed_version(package))


def release_of(version: str) -> tuple[int, ...]:
    """Return the first two numbers of a version."""
    return tuple(int(part) for part in version.split(".")[:2] if part.isdigit())


follow_release("fastmcp", LATEST_KNOWN["fastmcp"])
