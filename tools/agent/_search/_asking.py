"""Asks several engines at once, one task for each, and returns the outcome of each.

`search` returns when all have ended, at the latest 5 s after they were asked and 8 s after the call. Unless
asked to wait for all, it returns from 2.5 s on, as soon as three engines have results that make ten pages
together. An engine without an answer by then has timed out. A failure (blocked, timeout, error) counts with
the engine's breaker, unless no engine at all could be connected to: then the local network is down. The first
search imports the engines and their libraries.
"""

from __future__ import annotations

import asyncio
import time

from .. import _settings
from . import _merge, load, names
from ._breaker import Breaker
from ._engine import Blocked, Failed, Unreachable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable

    from ._engine import Engine, Hit, Page, Request
    from ._network import Network

ENGINE_SECONDS = 5.0
SEARCH_SECONDS = 8.0
EARLY_SECONDS = 2.5
EARLY_ENGINES = 3
EARLY_PAGES = 10

BREAKER = Breaker()


class Outcome:
    """The outcome of one engine: ``ok``, ``empty``, ``blocked``, ``timeout``, ``error``; or it was not asked:
    ``dropped`` by its breaker, ``not set``, ``unknown``. `reason` is for people."""

    __slots__ = ("hits", "milliseconds", "name", "reason", "unreachable", "word")

    def __init__(self, name: str, word: str, reason: str = "") -> None:
        self.name = name
        self.word = word
        self.reason = reason
        self.hits: list[Hit] = []
        self.milliseconds = 0
        self.unreachable = False

    @property
    def answered(self) -> bool:
        return self.word in ("ok", "empty")

    def shown(self) -> str:
        """Return the outcome for the closing line."""
        if self.word == "ok":
            return f"{self.name} ok {len(self.hits)}"
        return f"{self.name} {self.word}" + (f" {self.reason}" if self.word == "dropped" else "")


def chosen() -> list[str]:
    """Return the names of the engines to ask: those in FASTRPC_SEARCH_ENGINES, else all."""
    return list(dict.fromkeys(name.lower() for name in _settings.SEARCH_ENGINES.read())) or names()


def needs(error: ImportError) -> str:
    """Return the missing library, and the extra that contains it."""
    return f"needs {error.name or 'a library'}: pip install 'fastrpc-mcp[tools]'"


def bad_setting() -> str:
    """Return what is wrong with the settings so that no engine can be asked; empty if they are right."""
    stand_in = _settings.SEARCH_ADDRESS.read()
    if stand_in and not stand_in.startswith(("http://", "https://")):
        return f"FASTRPC_SEARCH_ADDRESS: expected an address with http:// or https://, got {stand_in[:80]!r}."
    known = names()
    if not set(chosen()) & set(known):
        given = ",".join(_settings.SEARCH_ENGINES.read())[:80]
        return f"FASTRPC_SEARCH_ENGINES: expected some of {', '.join(known)}, got {given!r}."
    return ""


async def search(
    query: str,
    engines: Iterable[str],
    *,
    wait_for_all: bool = False,
    seconds: float = SEARCH_SECONDS,
) -> list[Outcome]:
    """Return the outcome of each engine, in the order of `engines`."""
    deadline, breaker = time.monotonic() + seconds, BREAKER
    outcomes: dict[str, Outcome] = {}
    asked: dict[str, Engine] = {}
    network, loaded = await asyncio.to_thread(_prepare, query, list(engines))
    for name, engine in loaded.items():
        if isinstance(engine, Outcome):
            outcomes[name] = engine
        elif missing := engine.missing():
            outcomes[name] = Outcome(name, missing)
        elif not breaker.enter(name):
            left = breaker.seconds_left(name)
            outcomes[name] = Outcome(name, "dropped", f"for {-(-left // 60):.0f} min" if left else "for now")
        else:
            asked[name] = engine
    try:
        outcomes |= await _ask_all(query, asked, network, deadline, wait_for_all)
        _report(breaker, [outcomes[name] for name in asked])
    finally:
        for name in asked:
            if name not in outcomes:
                breaker.left(name)
    return [outcomes[name] for name in loaded]


def _prepare(query: str, engines: list[str]) -> tuple[Network, dict[str, Engine | Outcome]]:
    """Import what a search needs. On a thread, since the first time takes some tenths of a second."""
    from ._network import Network, ssl_context

    stand_in = _settings.SEARCH_ADDRESS.read()
    if not stand_in:
        ssl_context()
    known = names()
    loaded: dict[str, Engine | Outcome] = {}
    for name in engines:
        if name not in known:
            loaded[name] = Outcome(name, "unknown")
            continue
        try:
            loaded[name] = load(name)
        except Exception as error:
            loaded[name] = Outcome(name, "error", f"cannot be loaded: {error}")
    return Network(query, stand_in, _settings.SEARCH_USER_AGENT.read()), loaded


async def _ask_all(
    query: str, engines: dict[str, Engine], network: Network, deadline: float, wait_for_all: bool
) -> dict[str, Outcome]:
    began = time.monotonic()
    end = min(deadline, began + ENGINE_SECONDS)
    tasks = {name: asyncio.create_task(_ask(engine, query, network)) for name, engine in engines.items()}
    pending = set(tasks.values())
    try:
        while pending and (left := end - time.monotonic()) > 0:
            early = began + EARLY_SECONDS - time.monotonic()
            if not wait_for_all and early <= 0 and _enough(tasks):
                break
            limit = left if wait_for_all or early <= 0 else min(left, early)
            _, pending = await asyncio.wait(pending, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
        took = round((time.monotonic() - began) * 1000)
        return {name: _outcome(name, task, took) for name, task in tasks.items()}
    finally:
        for task in pending:
            task.cancel()
        if pending:
            await asyncio.wait(pending, timeout=1)
        await network.close()


def _enough(tasks: dict[str, asyncio.Task[Outcome]]) -> bool:
    ended = {name: task.result() for name, task in tasks.items() if task.done() and not task.cancelled()}
    lists = {name: outcome.hits for name, outcome in ended.items() if outcome.hits}
    return len(lists) >= EARLY_ENGINES and len(_merge.merge(lists)) >= EARLY_PAGES


def _outcome(name: str, task: asyncio.Task[Outcome], took: int) -> Outcome:
    if task.done() and not task.cancelled():
        return task.result()
    outcome = Outcome(name, "timeout", f"nothing within {took / 1000:.1f} s")
    outcome.milliseconds = took
    return outcome


async def _ask(engine: Engine, query: str, network: Network) -> Outcome:
    began = time.monotonic()
    outcome = await _try(engine, query, network)
    outcome.milliseconds = round((time.monotonic() - began) * 1000)
    return outcome


async def _try(engine: Engine, query: str, network: Network) -> Outcome:
    """Ask one engine. Any error is its outcome: no engine may disturb the others."""

    def fetch(request: Request) -> Awaitable[Page]:
        return network.fetch(engine, request)

    try:
        hits = await engine.ask(query, fetch)
    except Blocked as error:
        return Outcome(engine.name, "blocked", str(error))
    except (TimeoutError, asyncio.TimeoutError):
        return Outcome(engine.name, "timeout", "a time limit of the connection")
    except Failed as error:
        outcome = Outcome(engine.name, "error", str(error))
        outcome.unreachable = isinstance(error, Unreachable)
        return outcome
    except Exception as error:
        return Outcome(engine.name, "error", f"{type(error).__name__}: {error}")
    outcome = Outcome(engine.name, "ok" if hits else "empty")
    outcome.hits = hits
    return outcome


def _report(breaker: Breaker, outcomes: list[Outcome]) -> None:
    """Report the outcomes of the engines that were asked to the breaker."""
    offline = all(outcome.unreachable for outcome in outcomes)
    for outcome in outcomes:
        if outcome.answered:
            breaker.answered(outcome.name)
        elif offline:
            breaker.left(outcome.name)
        else:
            breaker.failed(outcome.name)
