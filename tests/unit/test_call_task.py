"""A handler's task against asyncio's own: the same coroutine sees the same, and ends the same way."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import sys
import weakref
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from fastrpc._core.task import CallTask

Log = list[Any]
Scenario = Callable[[Log], Coroutine[Any, Any, Any]]

variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="outside")


async def plain(log: Log) -> str:
    log.append("ran")
    return "value"


async def raises(log: Log) -> None:
    raise ValueError("wrong")


async def waits(log: Log) -> str:
    log.append(1)
    await asyncio.sleep(0)
    log.append(2)
    await asyncio.sleep(0.001)
    log.append(3)
    return "value"


async def is_one_task(log: Log) -> None:
    task = asyncio.current_task()
    assert task is not None
    name = task.get_name()
    task.set_name("mine")
    await asyncio.sleep(0)
    log.append((asyncio.current_task() is task, task.get_name(), isinstance(name, str)))
    log.append(task in asyncio.all_tasks())
    log.append(await asyncio.wait_for(asyncio.sleep(0, "slept"), 20))
    log.append(asyncio.current_task() is task)


async def keeps_its_variables(log: Log) -> None:
    log.append(variable.get())
    token = variable.set("first")
    await asyncio.sleep(0)
    log.append(variable.get())
    variable.reset(token)
    log.append(variable.get())
    variable.set("left behind")


async def times_out(log: Log) -> None:
    timeout = getattr(asyncio, "timeout", None)
    if timeout is None:
        pytest.skip("asyncio.timeout is of Python 3.11")
    try:
        async with timeout(0):
            await asyncio.sleep(20)
    except TimeoutError:
        log.append("in time")
    task = asyncio.current_task()
    assert task is not None
    log.append(task.cancelling())
    async with timeout(20):
        await asyncio.sleep(0)
    log.append("on")


async def groups(log: Log) -> None:
    group = getattr(asyncio, "TaskGroup", None)
    if group is None:
        pytest.skip("asyncio.TaskGroup is of Python 3.11")

    async def child(number: int) -> int:
        await asyncio.sleep(0)
        if number == 3:
            raise ValueError(number)
        return number

    async with group() as both:
        children = [both.create_task(child(1)), both.create_task(child(2))]
    log.append([one.result() for one in children])
    try:
        async with group() as both:
            both.create_task(child(3))
            await asyncio.sleep(20)
    except BaseException as error:
        log.append((type(error).__name__, str(error)))
    task = asyncio.current_task()
    assert task is not None
    log.append(task.cancelling())


async def has_scopes(log: Log) -> None:
    anyio = pytest.importorskip("anyio")
    with anyio.move_on_after(0) as scope:
        await anyio.sleep(20)
    log.append(scope.cancelled_caught)
    with pytest.raises(TimeoutError), anyio.fail_after(0.001):
        await asyncio.sleep(20)
    async with anyio.create_task_group() as group:
        group.start_soon(anyio.sleep, 20)
        await anyio.sleep(0)
        group.cancel_scope.cancel()
    log.append(anyio.get_current_task().name is not None)
    log.append(await anyio.to_thread.run_sync(lambda: "from a thread"))
    with anyio.CancelScope() as scope:
        scope.cancel()
        await anyio.lowlevel.checkpoint()
    log.append(scope.cancelled_caught)


async def cancels_itself(log: Log) -> None:
    task = asyncio.current_task()
    assert task is not None
    log.append(task.cancel("enough"))
    try:
        await asyncio.sleep(20)
    except asyncio.CancelledError as error:
        log.append(error.args)
        raise


async def cancels_itself_in_the_last_step(log: Log) -> str:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    return "value"


async def takes_a_cancellation_back(log: Log) -> str:
    task = asyncio.current_task()
    assert task is not None
    if not hasattr(asyncio.Task, "uncancel"):
        pytest.skip("Task.uncancel is of Python 3.11")
    log.append([task.cancel(), task.cancelling(), task.uncancel(), task.uncancel()])
    return "value"


async def suppresses_a_cancellation(log: Log) -> str:
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().call_soon(task.cancel)
    try:
        await asyncio.sleep(20)
    except asyncio.CancelledError:
        log.append("no")
    await asyncio.sleep(0)
    return "value"


async def awaits_a_failure(log: Log) -> None:
    future = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(future.set_exception, KeyError("lost"))
    try:
        await future
    except KeyError as error:
        log.append(error.args)
    await asyncio.gather(asyncio.sleep(0), asyncio.sleep(0.001))


async def yields_rubbish(log: Log) -> None:
    class Rubbish:
        def __await__(self) -> Any:
            yield "rubbish"

    try:
        await Rubbish()
    except RuntimeError as error:
        log.append(str(error))


async def awaits_itself(log: Log) -> None:
    task: Any = asyncio.current_task()
    try:
        await task
    except RuntimeError as error:
        log.append(str(error).partition(":")[0])


async def awaits_another_loops_future(log: Log) -> None:
    loop = asyncio.new_event_loop()
    try:
        await loop.create_future()
    except RuntimeError as error:
        log.append("attached to a different loop" in str(error))
    finally:
        loop.close()


async def is_refused_what_tasks_refuse(log: Log) -> None:
    task: Any = asyncio.current_task()
    for forbidden in (task.result, task.exception, lambda: task.set_result(1), lambda: task.set_exception(1)):
        with pytest.raises((RuntimeError, asyncio.InvalidStateError)) as caught:
            forbidden()
        log.append((type(caught.value).__name__, str(caught.value)))
    log.append(task.get_stack()[-1].f_code.co_name)


SCENARIOS: list[Scenario] = [
    plain,
    raises,
    waits,
    is_one_task,
    keeps_its_variables,
    times_out,
    groups,
    has_scopes,
    cancels_itself,
    cancels_itself_in_the_last_step,
    takes_a_cancellation_back,
    suppresses_a_cancellation,
    awaits_a_failure,
    yields_rubbish,
    awaits_itself,
    awaits_another_loops_future,
    is_refused_what_tasks_refuse,
]


def outcome(task: Any) -> Any:
    if task.cancelled():
        return "cancelled"
    error = task.exception()
    return ("raised", repr(error)) if error is not None else ("returned", task.result())


async def in_asyncio(scenario: Scenario, log: Log) -> Any:
    task = asyncio.get_running_loop().create_task(scenario(log))
    await asyncio.wait({task})
    return outcome(task)


async def in_call_task(scenario: Scenario, log: Log) -> Any:
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[Any] = loop.create_future()
    outside = asyncio.current_task()
    CallTask(scenario(log), loop, ended.set_result).begin()
    assert asyncio.current_task() is outside
    return outcome(await ended)


def new_loop(name: str) -> asyncio.AbstractEventLoop:
    if name == "asyncio":
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = pytest.importorskip("uvloop").new_event_loop()
    return loop


def run(loop: str, coroutine: Awaitable[Any]) -> Any:
    made = new_loop(loop)
    try:
        return made.run_until_complete(asyncio.wait_for(coroutine, 30))
    finally:
        made.close()


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_a_coroutine_sees_and_gives_what_it_does_in_a_task_of_asyncio(scenario: Scenario, loop: str) -> None:
    expected: Log = []
    found: Log = []
    assert run(loop, in_call_task(scenario, found)) == run(loop, in_asyncio(scenario, expected))
    assert found == expected
    assert variable.get() == "outside"


def on_loop(function: Callable[[asyncio.AbstractEventLoop], Awaitable[Any]]) -> Any:
    async def whole() -> Any:
        return await function(asyncio.get_running_loop())

    return run("uvloop" if sys.platform != "win32" else "asyncio", whole())


def test_one_that_does_not_wait_has_ended_when_begin_returns() -> None:
    async def body(loop: asyncio.AbstractEventLoop) -> None:
        ended: list[Any] = []
        task = CallTask(plain([]), loop, ended.append)
        assert not task.done()
        task.begin()
        assert ended == [task]
        assert task.done()
        assert task not in asyncio.all_tasks()

    on_loop(body)


@pytest.mark.parametrize(
    "error", [SystemExit(3), KeyboardInterrupt()], ids=lambda error: type(error).__name__
)
@pytest.mark.parametrize("waits", [False, True])
def test_what_would_end_the_loop_ends_the_task_alone(error: BaseException, waits: bool) -> None:
    async def leave() -> None:
        if waits:
            await asyncio.sleep(0)
        raise error

    async def body(loop: asyncio.AbstractEventLoop) -> None:
        ended = loop.create_future()
        CallTask(leave(), loop, ended.set_result).begin()
        assert (await ended).exception() is error

    on_loop(body)


@pytest.mark.parametrize("message", [None, "why"])
def test_a_task_that_waits_is_cancelled_from_outside(message: str | None) -> None:
    seen: list[Any] = []

    async def wait() -> None:
        try:
            await asyncio.sleep(20)
        except asyncio.CancelledError as error:
            seen.append(error.args)
            raise

    async def body(loop: asyncio.AbstractEventLoop) -> None:
        ended = loop.create_future()
        task = CallTask(wait(), loop, ended.set_result)
        task.begin()
        assert task in asyncio.all_tasks()
        assert task.cancel(message)
        assert (await ended).cancelled()
        assert not task.cancel()
        assert task not in asyncio.all_tasks()
        with pytest.raises(asyncio.CancelledError):
            task.result()

    on_loop(body)
    assert seen == [() if message is None else (message,)]


def test_others_may_wait_for_it_and_are_called_back() -> None:
    async def body(loop: asyncio.AbstractEventLoop) -> None:
        task: Any = CallTask(waits([]), loop, lambda task: None)
        called: list[Any] = []

        def unwanted(task: Any) -> None:
            called.append("unwanted")

        task.add_done_callback(called.append)
        task.add_done_callback(unwanted)
        task.add_done_callback(unwanted)
        assert task.remove_done_callback(unwanted) == 2
        task.begin()
        assert await task == "value"
        assert await asyncio.gather(task, asyncio.shield(task)) == ["value", "value"]
        done, _ = await asyncio.wait({task})
        assert done == {task}
        assert called == [task]

    on_loop(body)


@pytest.mark.parametrize("message", [None, "why"])
def test_gather_ends_with_tasks_that_are_cancelled(message: str | None) -> None:
    """As `asyncio.run` does with all that are left: it would wait for ever."""

    async def gathered(make: Callable[[], Any], *, cancels_all: bool) -> list[Any]:
        tasks = [make(), make()]
        await asyncio.sleep(0)
        together = asyncio.gather(*tasks, return_exceptions=not cancels_all)
        for each in [together] if cancels_all else tasks:
            each.cancel(message)
        try:
            found: list[Any] = await asyncio.wait_for(together, 30)
        except asyncio.CancelledError as error:
            found = [error]
        keeps_message = sys.version_info >= (3, 11)  # asyncio's own tasks lose it before
        return [(type(each), each.args if keeps_message else ()) for each in found]

    async def body(loop: asyncio.AbstractEventLoop) -> None:
        def call_task() -> Any:
            task = CallTask(asyncio.sleep(30), loop, None)
            task.begin()
            return task

        for cancels_all in (False, True):
            expected = await gathered(lambda: loop.create_task(asyncio.sleep(30)), cancels_all=cancels_all)
            assert await gathered(call_task, cancels_all=cancels_all) == expected

    on_loop(body)


def test_begun_inside_of_a_task_it_gives_that_one_its_place_back() -> None:
    async def body(loop: asyncio.AbstractEventLoop) -> None:
        inside: list[Any] = []

        async def look() -> None:
            inside.append(asyncio.current_task())

        outer = asyncio.current_task()
        task = CallTask(look(), loop, lambda task: None)
        task.begin()
        assert inside == [task]
        assert asyncio.current_task() is outer

    on_loop(body)


def test_a_failing_on_done_leaves_no_task_current() -> None:
    async def body(loop: asyncio.AbstractEventLoop) -> None:
        outer = asyncio.current_task()

        def fail(task: Any) -> None:
            raise ValueError("on_done")

        with pytest.raises(ValueError, match="on_done"):
            CallTask(plain([]), loop, fail).begin()
        assert asyncio.current_task() is outer

    on_loop(body)


def test_nothing_of_it_is_kept_when_it_has_ended() -> None:
    async def body(loop: asyncio.AbstractEventLoop) -> None:
        for scenario in (plain, waits, raises):
            ended = loop.create_future()
            task = CallTask(scenario([]), loop, lambda task, ended=ended: ended.set_result(None))
            gone = weakref.ref(task)
            task.begin()
            await ended
            del task
            await asyncio.sleep(0)
            gc.collect()
            assert gone() is None

    on_loop(body)
