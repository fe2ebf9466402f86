"""`TimeLimit` ends a block after a time, and is told from what ends it otherwise."""

from __future__ import annotations

import asyncio

import pytest

from fastrpc.time_limit import TimeLimit


def test_a_block_that_takes_too_long_ends_with_a_timeout_and_its_task_goes_on() -> None:
    async def main() -> str:
        limit = TimeLimit(0.01)
        with pytest.raises(TimeoutError):
            async with limit:
                await asyncio.Event().wait()
        assert limit.is_over
        await asyncio.sleep(0)  # where a task that is still cancelled would end
        return "went on"

    assert asyncio.run(main()) == "went on"


def test_a_timeout_of_the_block_itself_is_passed_on() -> None:
    async def main() -> None:
        limit = TimeLimit(60)
        with pytest.raises(TimeoutError, match="the system's"):
            async with limit:
                raise TimeoutError("the system's")
        assert not limit.is_over

    asyncio.run(main())


def test_a_task_that_is_cancelled_by_others_ends_as_cancelled() -> None:
    async def waiting(begun: asyncio.Event) -> None:
        async with TimeLimit(60):
            begun.set()
            await asyncio.Event().wait()

    async def main() -> None:
        begun = asyncio.Event()
        task = asyncio.ensure_future(waiting(begun))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
