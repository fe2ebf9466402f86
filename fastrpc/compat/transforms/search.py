"""Search in the place of a long list of tools: `RegexSearchTransform` and `BM25SearchTransform`.

Clients see a tool that finds others and one that calls them. Each search reads the server's tools anew; the
index of BM25 is kept while they stay the same. A regular expression is a model's: it has a length limit, and
runs in an engine that takes linear time, jsonschema-rs's (``pip install fastrpc[schema]``), which has neither
lookarounds nor back-references.
"""

from __future__ import annotations

import re
from math import log
from typing import Annotated, Any

from fastrpc.compat.components.tools import Tool
from fastrpc.compat.context import Context
from fastrpc.compat.errors import NotFoundError
from fastrpc.compat.models import dumped
from fastrpc.compat.transforms.base import CatalogTransform

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from fastrpc.compat.components.versions import VersionSpec

LONGEST_PATTERN, MOST_WORDS = 1000, 256
"""Characters of a pattern, and words of a query: more of them are not looked for."""
_WORD = re.compile(r"[^\W_]{2,}")


def searchable(tool: Any) -> str:
    """Return the text of a tool that is searched: its name and description, and its parameters'."""
    parts = [tool.name, tool.description or ""]
    for name, schema in (tool.parameters or {}).get("properties", {}).items():
        parts += [name, schema.get("description", "") if isinstance(schema, dict) else ""]
    return " ".join(part for part in parts if part)


def serialize_tools_for_output_json(tools: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the entries of tools as in tools/list."""
    return [tool.descriptor() for tool in tools]


def serialize_tools_for_output_markdown(tools: Sequence[Any]) -> str:
    """Return tools as short Markdown: a heading, the description and a line for each parameter."""
    return "\n\n".join(map(_markdown, tools)) or "No tools matched the query."


def _markdown(tool: Any) -> str:
    lines = [f"### {tool.name}"]
    if tool.description:
        lines += ["", tool.description.strip()]
    for title, schema in (("Parameters", tool.parameters), ("Returns", tool.output_schema)):
        if schema is not None:
            lines += ["", f"**{title}**", *_fields(schema)]
    return "\n".join(lines)


def _fields(schema: dict[str, Any]) -> Iterable[str]:
    properties = schema.get("properties")
    if properties is None:
        return [f"- `value` ({_type_of(schema)})"]
    needed = schema.get("required", ())
    return [
        f"- `{name}` ({_type_of(each)}{', required' if name in needed else ''})"
        for name, each in properties.items()
    ] or ["*(no parameters)*"]


def _type_of(schema: Any) -> str:
    """Return a short name of a schema's type."""
    if not isinstance(schema, dict):
        return "any"
    kind = schema.get("type")
    if isinstance(kind, list):
        return _union([{"type": each} for each in kind])
    if kind == "array":
        return f"{_type_of(schema.get('items'))}[]"
    for name in ("anyOf", "oneOf"):
        if name in schema:
            return _union(schema[name])
    return str(kind or ("object" if "properties" in schema or "$ref" in schema else "any"))


def _union(options: list[Any]) -> str:
    names = list(dict.fromkeys(map(_type_of, options)))
    others = [name for name in names if name != "null"]
    return f"{' | '.join(others)}?" if len(others) < len(names) else " | ".join(names)


class BaseSearchTransform(CatalogTransform):
    """Shows the tools of `always_visible`, one that searches and one that calls what was found.

    Subclasses make the first by ``_make_search_tool`` and find by ``_search``.
    """

    def __init__(
        self,
        *,
        max_results: int = 5,
        always_visible: list[str] | None = None,
        search_tool_name: str = "search_tools",
        call_tool_name: str = "call_tool",
        search_result_serializer: Callable[[Sequence[Any]], Any] | None = None,
    ) -> None:
        super().__init__()
        self._max_results = max_results
        self._always_visible = set(always_visible or ())
        self._search_tool_name = search_tool_name
        self._call_tool_name = call_tool_name
        self._search_result_serializer = search_result_serializer or serialize_tools_for_output_json
        self._own: dict[str, Tool] = {}

    def _make_search_tool(self) -> Tool:
        raise NotImplementedError

    async def _search(self, tools: Sequence[Any], query: str) -> Sequence[Any]:
        raise NotImplementedError

    async def transform_tools(self, tools: Sequence[Any]) -> Sequence[Any]:
        shown = [tool for tool in tools if tool.name in self._always_visible]
        return [*shown, self._tool(self._search_tool_name), self._tool(self._call_tool_name)]

    async def get_tool(self, name: str, call_next: Any, *, version: VersionSpec | None = None) -> Any:
        if name in (self._search_tool_name, self._call_tool_name):
            return self._tool(name)
        return await call_next(name, version=version)

    def _tool(self, name: str) -> Tool:
        found = self._own.get(name)
        if found is None:
            make = self._make_search_tool if name == self._search_tool_name else self._make_call_tool
            found = self._own[name] = make()
        return found

    def _make_call_tool(self) -> Tool:
        async def call_tool(
            ctx: Context,
            name: Annotated[str, "The name of the tool to call"],
            arguments: Annotated[dict[str, Any] | None, "Arguments to pass to the tool"] = None,
        ) -> Any:
            """Call a tool that a search has found, by its name and with its arguments."""
            if name in (self._call_tool_name, self._search_tool_name):
                raise ValueError(f"{name!r} is what searches and calls; it cannot be called so")
            if all(tool.name != name for tool in await self.get_tool_catalog(ctx)):
                raise NotFoundError(f"Unknown tool: {name!r}")
            return await ctx.fastmcp._chain.call_for_tool("tool", name, arguments)

        return Tool.from_function(call_tool, name=self._call_tool_name)

    async def _found(self, ctx: Context, query: str) -> Any:
        """Return what the search tool answers."""
        catalog = await self.get_tool_catalog(ctx)
        hidden = [tool for tool in catalog if tool.name not in self._always_visible]
        shown = self._search_result_serializer(await self._search(hidden, query))
        return dumped(await shown if hasattr(shown, "__await__") else shown)


class RegexSearchTransform(BaseSearchTransform):
    """Finds tools by a regular expression, regardless of case."""

    def _make_search_tool(self) -> Tool:
        async def search_tools(
            ctx: Context,
            pattern: Annotated[str, "Regular expression for names, descriptions and parameters of tools"],
        ) -> str | list[dict[str, Any]]:
            """Find tools by a regular expression, regardless of case. Returns their definitions as the list
            of tools has them; none for an invalid pattern."""
            return await self._found(ctx, pattern)  # type: ignore[no-any-return]

        return Tool.from_function(search_tools, name=self._search_tool_name)

    async def _search(self, tools: Sequence[Any], query: str) -> Sequence[Any]:
        import jsonschema_rs

        if len(query) > LONGEST_PATTERN:
            return []
        try:
            pattern = jsonschema_rs.validator_for(
                {"pattern": f"(?i){query}"}, pattern_options=jsonschema_rs.RegexOptions()
            )
        except jsonschema_rs.ValidationError:
            return []
        found: list[Any] = []
        for tool in tools:
            if len(found) < self._max_results and pattern.is_valid(searchable(tool)):
                found.append(tool)
        return found


class BM25SearchTransform(BaseSearchTransform):
    """Finds tools by words, the most relevant first (Okapi BM25, k1 = 1.5, b = 0.75)."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._index = Index([])

    def _make_search_tool(self) -> Tool:
        async def search_tools(
            ctx: Context,
            query: Annotated[str, "Natural language query to search for tools"],
        ) -> str | list[dict[str, Any]]:
            """Find tools by words. Returns the definitions of the most relevant as the list of tools has
            them."""
            return await self._found(ctx, query)  # type: ignore[no-any-return]

        return Tool.from_function(search_tools, name=self._search_tool_name)

    async def _search(self, tools: Sequence[Any], query: str) -> Sequence[Any]:
        texts = [searchable(tool) for tool in tools]
        if texts != self._index.texts:
            self._index = Index(texts)
        return [tools[at] for at in self._index.best(query, self._max_results)]


class Index:
    """Texts, ranked by the words of a query."""

    K1 = 1.5
    B = 0.75

    def __init__(self, texts: list[str]) -> None:
        self.texts = texts
        self._counts: list[dict[str, int]] = []
        self._texts_with: dict[str, int] = {}
        for text in texts:
            counts: dict[str, int] = {}
            for word in _words(text):
                counts[word] = counts.get(word, 0) + 1
            self._counts.append(counts)
            for word in counts:
                self._texts_with[word] = self._texts_with.get(word, 0) + 1
        self._lengths = [sum(counts.values()) for counts in self._counts]
        self._mean = sum(self._lengths) / len(texts) if texts else 0.0

    def best(self, query: str, most: int) -> list[int]:
        """Return the places of the texts that fit best, at most so many."""
        scores = [0.0] * len(self.texts)
        for word in _words(query)[:MOST_WORDS]:
            having = self._texts_with.get(word, 0)
            weight = log((len(self.texts) - having + 0.5) / (having + 0.5) + 1.0)
            for at, counts in enumerate(self._counts):
                count = counts.get(word, 0)
                if count:
                    length = 1 - self.B + self.B * self._lengths[at] / self._mean
                    scores[at] += weight * count * (self.K1 + 1) / (count + self.K1 * length)
        ranked = sorted(range(len(scores)), key=lambda at: scores[at], reverse=True)
        return [at for at in ranked[:most] if scores[at] > 0]


def _words(text: str) -> list[str]:
    from fastrpc.unicode_forms import normal_form

    return _WORD.findall(normal_form("NFKC", text).casefold())
