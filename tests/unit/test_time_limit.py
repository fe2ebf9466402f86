"""`TimeLimit` ends a block after a time, and is distinguished from what ends it otherwise; blocks share
timers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import uvloop

from fastrpc import time_limit
from fastrpc.time_limit import TimeLimit

LOOPS: list[Callable[[], asyncio.AbstractEventLoop]] = [asyncio.new_event_loop, uvloop.new_event_loop]
SHORT, LONG = 0.02, 60.0


@pytest.fixture(params=LOOPS, ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Any:
    loop = request.param()

    def finish(coroutine: Coroutine[Any, Any, Any]) -> Any:
        return loop.run_until_complete(asyncio.wait_for(coroutine, 30))

    yield finish
    loop.close()


def test_a_block_that_takes_longer_is_cancelled_and_raises_timeout_error(run: Any) -> None:
    async def block() -> None:
        limit = TimeLimit(SHORT)
        with pytest.raises(TimeoutError), limit:
            await asyncio.sleep(LONG)
        assert limit.is_over
        await asyncio.sleep(0)  # the task goes on: nothing of the cancellation is left

    run(block())


def test_what_late_returns_is_raised_for_the_limit_alone(run: Any) -> None:
    async def block() -> None:
        with pytest.raises(LookupError, match="late"), TimeLimit(SHORT, lambda: LookupError("late")):
            await asyncio.sleep(LONG)
        with pytest.raises(TimeoutError), TimeLimit(LONG, lambda: LookupError("late")):
            raise TimeoutError

    run(block())


def test_a_block_that_ends_in_time_is_left_alone_afterwards(run: Any) -> None:
    async def block() -> None:
        with TimeLimit(SHORT) as limit:
            pass  # nothing that a busy machine may hold up
        await asyncio.sleep(2 * SHORT)
        assert not limit.is_over

    run(block())


def test_blocks_with_one_limit_each_have_all_of_their_time(run: Any) -> None:
    async def block(pause: float) -> float:
        await asyncio.sleep(pause)
        began = asyncio.get_running_loop().time()
        with pytest.raises(TimeoutError), TimeLimit(3 * SHORT):
            await asyncio.sleep(LONG)
        return asyncio.get_running_loop().time() - began

    async def several() -> None:
        took = await asyncio.gather(*(block(number * SHORT) for number in range(4)))
        assert min(took) > 3 * SHORT - 0.005

    run(several())


def test_a_timeout_of_the_block_itself_is_passed_on(run: Any) -> None:
    async def block() -> None:
        limit = TimeLimit(LONG)
        with pytest.raises(TimeoutError, match="the system's"), limit:
            raise TimeoutError("the system's")
        assert not limit.is_over

    run(block())


def test_a_cancellation_from_outside_stays_one(run: Any) -> None:
    async def block() -> None:
        async def inner() -> None:
            with TimeLimit(LONG):
                await asyncio.sleep(LONG)

        task = asyncio.ensure_future(inner())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(block())


def test_an_inner_limit_is_not_the_outer_ones(run: Any) -> None:
    async def block() -> None:
        with TimeLimit(LONG) as outer:
            with pytest.raises(TimeoutError), TimeLimit(SHORT):
                await asyncio.sleep(LONG)
            assert not outer.is_over

    run(block())


def test_blocks_that_have_ended_leave_one_timer_and_no_memory(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    timers: list[float] = []

    class Counting(time_limit._Queue):
        __slots__ = ()

        def add(self, block: TimeLimit) -> None:
            if not self._is_timed:
                timers.append(self._seconds)
            super().add(block)

    monkeypatch.setattr(time_limit, "_Queue", Counting)

    async def block() -> None:
        for _ in range(1_000):
            with TimeLimit(1.25):
                pass
        (queue,) = [each for key, each in time_limit._queues.items() if key[1] == 1.25]
        assert (timers, queue.blocks) == ([1.25], {})

    run(block())


def test_the_queues_of_closed_loops_are_forgotten() -> None:
    async def block() -> None:
        with TimeLimit(LONG):
            pass

    for _ in range(3):
        asyncio.run(block())
    assert len([key for key in time_limit._queues if key[1] == LONG]) == 1
