"""The server of the fault table: its processes stop at one step of a task's life until a file appears.

`server.py` in a folder is a copy of this file. TEST_STEP names the step, and TEST_ROLE the kind of process
that stops there ("server" or "worker"). At the step the process makes the file `reached`, and goes on when
there is a file `released`. With TEST_LOST=true it does not stop: the change that belongs to the step is
committed, and then the database seems to have gone before it has said so.
"""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from fastrpc import Context, Server, processes
from fastrpc.storage import CommitUnknown
from fastrpc.storage.database import Database
from fastrpc.tasks import store
from fastrpc.tasks.board import TaskBoard
from fastrpc.tasks.run import TaskRun

FOLDER = os.path.dirname(os.path.abspath(__file__))
ROLE = "worker" if "worker" in sys.argv else "server"
IN_STORE = {
    "writing the row": "create",
    "taking": "take_queued",
    "asking": "ask",
    "answering": "answer",
    "writing the result": "end",
    "cancelling": "cancel",
}
"""Steps in a transaction, after the statements and before the commit."""
IN_LOOP: dict[str, tuple[type, str]] = {
    "taken": (TaskBoard, "_resume"),
    "result computed": (TaskBoard, "end"),
    "ending what was cancelled": (TaskRun, "cancel"),
    "ending what has expired": (TaskRun, "cancel"),
}
"""Steps before a method."""

app = Server("steps", version="1")


def path(name: str) -> str:
    return os.path.join(FOLDER, name)


def stop() -> None:
    with open(path("reached"), "w"):
        pass
    while not os.path.exists(path("released")):
        time.sleep(0.002)


def stop_before(owner: Any, name: str) -> None:
    original = getattr(owner, name)

    def stopped(*values: Any, **named: Any) -> Any:
        stop()
        return original(*values, **named)

    setattr(owner, name, stopped)


def call_after(owner: Any, name: str, then: Callable[[], object]) -> None:
    original = getattr(owner, name)

    def called(*values: Any, **named: Any) -> Any:
        found = original(*values, **named)
        if found is not False and found != []:  # it has changed something
            then()
        return found

    setattr(owner, name, called)


def lose_the_answer(name: str) -> None:
    armed: list[bool] = []
    original = Database.changing

    @contextmanager
    def changing(database: Database, *kept: Any) -> Iterator[Any]:
        with original(database, *kept) as connection:
            yield connection
        if armed and not os.path.exists(path("reached")):
            with open(path("reached"), "w"):
                pass
            raise CommitUnknown("the answer to COMMIT is lost")

    Database.changing = changing  # type: ignore[method-assign, assignment]
    call_after(store, name, lambda: armed.append(True))


def stop_when_the_row_is_there() -> None:
    original = TaskBoard.create

    async def create(board: TaskBoard, run: TaskRun) -> None:
        await original(board, run)
        stop()

    TaskBoard.create = create  # type: ignore[method-assign]


def prepare(step: str) -> None:
    if step in IN_STORE:
        if os.environ.get("TEST_LOST"):
            lose_the_answer(IN_STORE[step])
        else:
            call_after(store, IN_STORE[step], stop)
    elif step in IN_LOOP:
        stop_before(*IN_LOOP[step])
    elif step == "before it is answered":
        stop_when_the_row_is_there()
    elif step == "left to workers":
        stop_before(store, "take_queued")


if os.environ.get("TEST_ROLE") == ROLE:
    prepare(os.environ["TEST_STEP"])


# --- tools ----------------------------------------------------------------------------------------------


def begun(name: str, child: int) -> None:
    """Note which process runs a tool, and which child it has."""
    with open(path(name), "a") as file:
        file.write(f"{os.getpid()} {child}\n")


def work(name: str) -> str:
    child = subprocess.Popen(["setsid", "sleep", "600"])
    begun(name, child.pid)
    try:
        while not os.path.exists(path("go")):
            time.sleep(0.01)
    finally:
        child.kill()
        child.wait()
    return f"{name} done"


@app.tool(effect="write", task="required", run="process")
def once() -> str:
    """Must not run twice."""
    return work("once")


@app.tool(effect="read", task="required", run="process")
def again() -> str:
    """May run twice."""
    return work("again")


@app.tool(effect="write", task="required")
async def asks(context: Context) -> str:
    """Ask, then work."""
    answer = await context.elicit("Which?", str, key="which")
    child = await processes.start(["sleep", "600"])
    begun("asks", child.pid)
    try:
        while not os.path.exists(path("go")):
            await asyncio.sleep(0.01)
    finally:
        await child.terminate()
    return f"{answer.value} done"
