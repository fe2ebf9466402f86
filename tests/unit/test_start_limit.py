"""The time in which an upstream server has to start."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest

from fastrpc.errors import ToolError
from fastrpc.proxy.start_limit import Late, in_time


def test_what_a_start_raises_when_its_time_is_over_is_not_logged_as_a_traceback() -> None:
    logged: list[dict[str, Any]] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise ToolError("its list was late, too")

    async def run() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: logged.append(context))
        with pytest.raises(Late, match="an answer"):
            await in_time(work(), 0.01, lambda: "an answer", None)
        await asyncio.sleep(0.01)
        gc.collect()

    asyncio.run(run())
    assert logged == []
