"""Turns: how many work at a time, and that no owner keeps the others waiting."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from fastrpc.tools import knowledge
from fastrpc.tools.knowledge import _extraction
from fastrpc.tools.knowledge._turns import Turns

from fastrpc import Server
from fastrpc.callers import Caller
from fastrpc.client.in_memory import InMemory
from fastrpc.testing import Client


@pytest.fixture
def order() -> list[str]:
    """Who has begun, in that order."""
    return []


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def begin(turns: Turns, order: list[str], *owners: str) -> tuple[list[asyncio.Task[None]], asyncio.Event]:
    """Tasks that ask for a turn, one after the other, and work until the event is set."""
    end = asyncio.Event()

    async def work(owner: str) -> None:
        async with turns.of(owner):
            order.append(owner)
            await end.wait()

    return [asyncio.ensure_future(work(owner)) for owner in owners], end


def test_so_many_work_at_a_time_and_so_many_of_an_owner(order: list[str]) -> None:
    async def run() -> None:
        tasks, end = begin(Turns(3, 2), order, *"aaaabbcc")
        await settle()
        assert order == ["a", "a", "b"]
        end.set()
        await asyncio.gather(*tasks)
        assert sorted(order) == list("aaaabbcc")

    asyncio.run(run())


def test_owners_who_wait_take_turns_however_often_one_of_them_asks(order: list[str]) -> None:
    async def run() -> None:
        turns = Turns(1, 1)
        tasks, end = begin(turns, order, *"aaaaabbc")
        await settle()
        end.set()
        await asyncio.gather(*tasks)
        assert "".join(order) == "abcabaaa"

    asyncio.run(run())


def test_a_place_of_who_has_failed_or_was_cancelled_is_handed_on(order: list[str]) -> None:
    async def run() -> None:
        turns = Turns(1, 1)
        tasks, end = begin(turns, order, "a", "a", "b", "c")
        await settle()
        tasks[2].cancel()  # waits
        tasks[0].cancel()  # works
        await settle()
        assert order == ["a", "c"]
        end.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert order == ["a", "c", "a"]
        with pytest.raises(ZeroDivisionError):
            async with turns.of("a"):
                raise ZeroDivisionError
        async with turns.of("b"):
            pass

    asyncio.run(run())


def test_a_turn_that_is_given_to_who_is_cancelled_at_once_is_handed_on(order: list[str]) -> None:
    async def run() -> None:
        turns = Turns(1, 1)
        (worker, waiting), end = begin(turns, order, "a", "b")
        await settle()
        end.set()
        await worker
        waiting.cancel()  # the place is its own, and it has not run since
        await asyncio.gather(waiting, return_exceptions=True)
        await asyncio.wait_for(turns.take("c"), 5)

    asyncio.run(run())


def test_documents_of_an_owner_that_take_long_keep_no_one_elses_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FASTRPC_KNOWLEDGE_DATABASE", f"sqlite:///{tmp_path}/store.sqlite3")
    extracted: list[str] = []
    end: Any = None

    async def extract_data(data: bytes, name: str) -> Any:
        extracted.append(name)
        if name != "short.txt":
            await end.wait()
        return await _extract(data, name)

    _extract = _extraction.extract_data
    monkeypatch.setattr(_extraction, "extract_data", extract_data)
    app = Server("test")
    app.include(knowledge)
    app._over_http = True
    app.runtime.caller_of = lambda principal: Caller(principal, "chat", owner=principal.partition("#")[0])

    async def add(by: str, name: str) -> Any:
        client: Any = Client(app)
        client._make_transport = lambda: InMemory(app, None, by)
        async with client:
            return await client.call("document.add", name=name, content=f"{by} {name}")

    async def run() -> None:
        nonlocal end
        end = asyncio.Event()
        long = [asyncio.ensure_future(add(f"ada#{number}", f"long {number}.txt")) for number in range(4)]
        while not extracted and not any(each.done() for each in long):
            await asyncio.sleep(0.01)
        await asyncio.wait_for(add("bob#1", "short.txt"), 20)
        assert len(extracted) == 2
        end.set()
        await asyncio.gather(*long)

    asyncio.run(run())
