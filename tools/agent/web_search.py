"""The tool WebSearch: asks up to eleven engines at once and returns one list of at most ten pages.

An answer takes as long as the engines, at most 8 s: see `_search._asking`. The first search imports HTTP and
HTML libraries, later ones nothing. `_search` defines the engines and reads their pages.
"""

from __future__ import annotations

from fastrpc import ToolError, ToolResult, tool

from . import _settings, _text
from ._result import result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated, Any

    from ._search._asking import Outcome
    from ._search._merge import Entry
else:
    from fastrpc.typing_forms import Annotated

MOST_RESULTS = 10
QUERY_LIMIT = 500


@tool(name="WebSearch", effect="network")
async def web_search(query: Annotated[str, "The search query"]) -> ToolResult:
    """Search the web using 11 engines concurrently"""
    words = " ".join(query.split())
    if not words:
        raise ToolError("query: expected the words to search for, got an empty text.")
    if len(words) > QUERY_LIMIT:
        raise ToolError(f"query: expected at most {QUERY_LIMIT} characters, got {len(words)}.")
    from ._search import _asking, _merge

    if problem := _asking.bad_setting():
        raise ToolError(problem)
    seconds = min(_asking.SEARCH_SECONDS, _settings.PATIENCE_SECONDS.read() or _asking.SEARCH_SECONDS)
    try:
        outcomes = await _asking.search(words, _asking.chosen(), seconds=seconds)
    except ImportError as error:
        raise ToolError(f"WebSearch {_asking.needs(error)}.") from None
    entries = _merge.merge({outcome.name: outcome.hits for outcome in outcomes})[:MOST_RESULTS]
    return _answer(words, entries, outcomes)


def _answer(query: str, entries: list[Entry], outcomes: list[Outcome]) -> ToolResult:
    closing = f"[engines: {', '.join(outcome.shown() for outcome in outcomes)}]"
    answered = any(outcome.answered for outcome in outcomes)
    if not entries:
        opening = f'No results for "{query}".' if answered else f'No search engine answered "{query}".'
        return result(f"{opening}\n{closing}", _facts(query, [], outcomes), is_error=not answered)
    blocks = [_block(number, entry) for number, entry in enumerate(entries, 1)]
    while len(blocks) > 1 and not _text.fits("\n\n".join(blocks)):
        blocks.pop()
    if len(blocks) < len(entries):
        closing = f"[{len(entries) - len(blocks)} more left out: a result is not longer]\n{closing}"
    text = "\n\n".join([*blocks, closing])
    return result(text, _facts(query, entries[: len(blocks)], outcomes))


def _block(number: int, entry: Entry) -> str:
    lines = [
        f"{number}. {entry.title}",
        f"   {entry.url}",
        f"   {entry.snippet}",
        f"   ({', '.join(entry.engines)})",
    ]
    return "\n".join(line for line in lines if line.strip())


def _facts(query: str, entries: list[Entry], outcomes: list[Outcome]) -> dict[str, Any]:
    return {
        "query": query,
        "results": [
            {"title": entry.title, "url": entry.url, "snippet": entry.snippet, "engines": entry.engines}
            for entry in entries
        ],
        "engines": {
            outcome.name: {
                "outcome": outcome.word,
                "results": len(outcome.hits),
                "milliseconds": outcome.milliseconds,
                "reason": outcome.reason,
            }
            for outcome in outcomes
        },
    }
