"""The command ``fastrpc search-check [QUERY]``: asks every chosen engine over the network and prints the
results.

Each engine has its whole 5 s. Exit code 0 if at least one has results, else 1. Where FASTRPC_SEARCH_ADDRESS
is set, the stand-in answers instead of the engines, and the first line says so.
"""

from __future__ import annotations

from fastrpc import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._asking import Outcome

EXAMPLES = """\
  fastrpc search-check
  FASTRPC_SEARCH_ENGINES=wikipedia fastrpc search-check prime numbers
"""
QUERY = "open source"
HEADINGS = ("engine", "outcome", "results", "ms", "breaker", "reason")


def main(arguments: list[str]) -> int:
    query = _query(arguments)
    import asyncio

    from .. import _settings
    from . import _asking

    if problem := _asking.bad_setting():
        raise UsageError(problem)
    if stand_in := _settings.SEARCH_ADDRESS.read():
        print(f"Not the engines themselves: {stand_in} replaces them (FASTRPC_SEARCH_ADDRESS).")
    try:
        outcomes = asyncio.run(_asking.search(query, _asking.chosen(), wait_for_all=True))
    except ImportError as error:
        raise UsageError(f"search-check {_asking.needs(error)}") from None
    rows = [_row(outcome, _asking.BREAKER.shown(outcome.name)) for outcome in outcomes]
    _print_table(rows)
    working = sum(outcome.word == "ok" for outcome in outcomes)
    print(f'{working} of {len(outcomes)} engines found results for "{query}".')
    return 0 if working else 1


def _query(arguments: list[str]) -> str:
    from fastrpc.command_line import CommandParser

    parser = CommandParser(
        "search-check",
        "[QUERY…]",
        "Ask each search engine and print what came. Exit code 1 when none works.",
        EXAMPLES,
    )
    parser.add_argument("query", nargs="*", metavar="QUERY", help=f"what to search for (default: {QUERY})")
    words = " ".join(" ".join(parser.parse(arguments).query).split())
    return words or QUERY


def _row(outcome: Outcome, breaker: str) -> tuple[str, ...]:
    asked = outcome.word in ("ok", "empty", "blocked", "timeout", "error")
    return (
        outcome.name,
        outcome.word,
        str(len(outcome.hits)) if outcome.answered else "-",
        str(outcome.milliseconds) if asked else "-",
        breaker,
        outcome.reason,
    )


def _print_table(rows: list[tuple[str, ...]]) -> None:
    widths = [max(len(row[column]) for row in (HEADINGS, *rows)) for column in range(len(HEADINGS))]
    for row in (HEADINGS, *rows):
        cells = (
            cell.rjust(width) if heading in ("results", "ms") else cell.ljust(width)
            for cell, width, heading in zip(row, widths, HEADINGS, strict=True)
        )
        print("  ".join(cells).rstrip())
