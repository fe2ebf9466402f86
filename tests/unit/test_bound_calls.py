"""Calls that may not begin on their connection (of a thread, of a coroutine before the loop runs): their
arguments are bound there once, and the dispatcher is handed what was bound."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator
from support.in_memory import RawConversation

from fastrpc import Context, Server
from fastrpc.protocol.versions import LATEST_SESSION_VERSION, STATELESS

VERSIONS = pytest.mark.parametrize("version", [LATEST_SESSION_VERSION, STATELESS])


seen: list[Any] = []
"""What `noted` has been called with."""
during: list[Callable[[], object]] = []
"""Called once, while an argument is bound."""


def noted(value: int) -> int:
    seen.append(value)
    return value


def interrupted(value: str) -> str:
    if during:
        during.pop()()
    return value


def conversation(app: Server, version: str, calls: list[dict[str, Any]]) -> tuple[list[Any], int]:
    """Call the tool `work` with each of these arguments, one after the other.

    Return the results, and how many messages the connection did not read itself.
    """

    async def talk() -> tuple[list[Any], int]:
        peer = RawConversation(app, version)
        results = []
        for id, arguments in enumerate(calls):
            peer.call(id, "work", arguments)
            answer = await asyncio.wait_for(peer.answer(id), 30)
            results.append(answer["result"])
        peer.close()
        return results, peer.handed_on

    return asyncio.run(talk())


def text_of(result: Any) -> Any:
    return result["content"][0]["text"]


@VERSIONS
@pytest.mark.parametrize("run", ["auto", "thread"])
def test_arguments_that_do_not_fit_never_reach_the_dispatcher(version: str, run: Any) -> None:
    app = Server("bound")

    @app.tool(run=run)
    def work(count: int, name: str = "x") -> str:
        return f"{count} {name}"

    results, handed_on = conversation(
        app, version, [{"count": []}, {}, {"count": 1, "name": 5}, {"count": {"a": 1}, "name": "é"}]
    )
    assert handed_on == 0
    assert [result["isError"] for result in results] == [True] * 4
    assert [text_of(result) for result in results] == [
        "count: expected integer, got an empty array",
        "count: required, missing",
        "name: expected string, got 5",
        "count: expected integer, got an object",
    ]


@VERSIONS
@pytest.mark.parametrize("run", ["auto", "thread"])
def test_what_fits_plainly_or_leniently_is_bound_once(version: str, run: Any) -> None:
    app = Server("bound")
    seen.clear()

    @app.tool(run=run)
    def work(
        ctx: Context, count: Annotated[int, AfterValidator(noted)], times: int = 2, name: str = "é"
    ) -> str:
        return f"{count} {times} {name} {ctx.request_id}"

    results, handed_on = conversation(
        app, version, [{"count": 1}, {"count": 2, "times": 3, "name": "b"}, {"times": "7", "count": 4}]
    )
    assert [text_of(result) for result in results] == ["1 2 é 0", "2 3 b 1", "4 7 é 2"]
    assert (seen, handed_on) == ([1, 2, 4], 0)


def test_a_message_that_comes_while_arguments_are_bound_does_not_replace_the_one_that_brought_them() -> None:
    app = Server("bound")
    during.clear()

    @app.tool(run="thread")
    def work(ctx: Context, text: Annotated[str, AfterValidator(interrupted)]) -> str:
        ctx.progress(1)
        return f"{text} {ctx.request_id}"

    async def talk() -> tuple[list[Any], list[Any]]:
        peer = RawConversation(app, LATEST_SESSION_VERSION)
        during.append(lambda: peer.call(2, "work", {"text": "inner"}, {"progressToken": "of the second"}))
        peer.call(1, "work", {"text": "outer"}, {"progressToken": "of the first"})
        answers = [await asyncio.wait_for(peer.answer(id), 30) for id in (1, 2)]
        peer.close()
        return answers, [message["params"]["progressToken"] for _, message in peer.said]

    answers, tokens = asyncio.run(talk())
    assert [text_of(answer["result"]) for answer in answers] == ["outer 1", "inner 2"]
    assert sorted(tokens) == ["of the first", "of the second"]


def test_a_call_that_is_handed_over_is_proved_quick_by_its_record_and_runs_inline_then() -> None:
    app = Server("bound")
    threads: set[str] = set()

    @app.tool
    def work(text: str) -> str:
        import threading

        threads.add(threading.current_thread().name)
        return text

    results, handed_on = conversation(
        app, LATEST_SESSION_VERSION, [{"text": str(number)} for number in range(40)]
    )
    assert [text_of(result) for result in results] == [str(number) for number in range(40)]
    assert handed_on == 0
    assert "MainThread" in threads
    assert len(threads) > 1


def with_keywords(app: Server) -> list[tuple[dict[str, Any], str]]:
    @app.tool(run="inline")
    def work(count: int, /, name: str = "x", *, unit: str, ctx: Context) -> str:
        return f"{count} {name} {unit} {ctx.request_id}"

    return [
        ({"unit": "m", "count": 1}, "1 x m 0"),
        ({"unit": "m", "count": "2"}, "2 x m 1"),
        ({"count": 3, "name": "y"}, "unit: required, missing"),
    ]


def with_others(app: Server) -> list[tuple[dict[str, Any], str]]:
    schema = {"type": "object", "properties": {"first": {"type": "integer"}}, "required": ["first"]}

    @app.tool(input_schema=schema)
    async def work(ctx: Context, first: int, **others: Any) -> str:
        return f"{ctx.request_id} {first} {others}"

    return [
        ({"first": 1}, "0 1 {}"),
        ({"b": None, "first": "2", "": [1]}, "1 2 {'b': None, '': [1]}"),
        ({"b": 1}, "first: required, missing"),
    ]


@VERSIONS
@pytest.mark.parametrize("guarded", [False, True])
@pytest.mark.parametrize("declare", [with_keywords, with_others])
def test_a_function_that_takes_keywords_is_called_without_the_dispatcher(
    version: str, guarded: bool, declare: Callable[[Server], list[tuple[dict[str, Any], str]]]
) -> None:
    app = Server("keywords")
    expected = declare(app)
    seen: list[dict[str, Any]] = []
    if guarded:
        app.guard(lambda call: seen.append(call.arguments))
    results, handed_on = conversation(app, version, [arguments for arguments, _ in expected])
    assert [text_of(result) for result in results] == [text for _, text in expected]
    assert handed_on == 0
    if guarded:
        assert [sorted(each) for each in seen[:2]] == (
            [["count", "name", "unit"]] * 2 if declare is with_keywords else [["first"], ["", "b", "first"]]
        )
