"""Tasks whose server is killed, and tasks that several servers share: real processes, one database."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.child_processes import gone
from support.stdio import serve
from support.task_host import TaskHost, begun_in
from support.waiting import eventually

SERVER = '''
import asyncio, os
from fastrpc import Context, Server
app = Server("shared", version="1")
FOLDER = os.path.dirname(os.path.abspath(__file__))

def note(what):
    with open(os.path.join(FOLDER, what), "a") as file:
        file.write(f"{os.getpid()}\\n")

async def work(name):
    note(name)
    while not os.path.exists(os.path.join(FOLDER, "go")):
        await asyncio.sleep(0.01)
    return f"{name} done"

@app.tool(effect="write", task="allowed", after_seconds=0)
async def once() -> str:
    """Must not run twice."""
    return await work("once")

@app.tool(effect="write", task="allowed", after_seconds=0, annotations={"idempotentHint": True})
async def again() -> str:
    """May run twice."""
    return await work("again")

@app.tool(effect="write", task="allowed", after_seconds=0)
async def asks(ctx: Context) -> str:
    """Ask, then work."""
    await asyncio.sleep(0.01)
    answer = await ctx.elicit("Which?", str, key="which")
    return await work(answer.value)

@app.tool(effect="exec", task="allowed", after_seconds=0)
async def child() -> str:
    """Run a program that does not end."""
    from fastrpc import processes
    note("child")
    done = await processes.run(["sh", "-c", "echo $$ > \\"$0/pid\\"; exec sleep 600", FOLDER])
    return "ended"

if __name__ == "__main__":
    app.run()
'''


class Host(TaskHost):
    """A server in a folder, which can be killed."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        environment = {**os.environ, "FASTRPC_STATE_DIR": str(folder / "state")}
        path = folder / "server.py"
        super().__init__(
            stack.enter_context(serve(command=[sys.executable, str(path)], environment=environment))
        )
        self.pid = self.server.process.pid

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        self.server.process.wait()


class Shop:
    """The folder of a server, and its processes."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self._stack = stack
        (folder / "server.py").write_text(SERVER)

    def host(self) -> Host:
        return Host(self.folder, self._stack)

    def runs(self, name: str) -> list[int]:
        """The processes in which this work was begun, in order."""
        return begun_in(self.folder, name)

    def let_go(self) -> None:
        (self.folder / "go").touch()


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    with ExitStack() as stack:
        yield Shop(tmp_path, stack)


def test_a_task_whose_server_was_killed_fails_and_is_not_run_again(shop: Shop) -> None:
    first = shop.host()
    id = first.begin("once")
    eventually(lambda: bool(shop.runs("once")))
    first.kill()
    found = shop.host().ended(id)
    assert found["status"] == "failed"
    assert "not idempotent" in found["error"]["message"]
    assert len(shop.runs("once")) == 1


def test_an_idempotent_task_whose_server_was_killed_is_run_again_in_the_next_one(shop: Shop) -> None:
    first = shop.host()
    id = first.begin("again")
    eventually(lambda: bool(shop.runs("again")))
    first.kill()
    second = shop.host()
    assert second.get(id)["status"] == "working"
    eventually(lambda: shop.runs("again") == [first.pid, second.pid])
    shop.let_go()
    assert second.ended(id)["result"]["content"][0]["text"] == "again done"


def test_a_task_that_waits_for_an_answer_outlives_its_server(shop: Shop) -> None:
    first = shop.host()
    id = first.begin("asks")
    first.until(id, "input_required")
    first.kill()
    second = shop.host()
    assert list(second.get(id)["inputRequests"]) == ["which"]
    answer = {"which": {"action": "accept", "content": {"value": "blue"}}}
    second.ask("tasks/update", taskId=id, inputResponses=answer)
    shop.let_go()
    assert second.ended(id)["result"]["content"][0]["text"] == "blue done"
    assert shop.runs("blue") == [second.pid]


def test_a_task_is_cancelled_by_another_server_than_the_one_that_runs_it(shop: Shop) -> None:
    first, second = shop.host(), shop.host()
    id = first.begin("child")
    eventually(lambda: (shop.folder / "pid").exists() and (shop.folder / "pid").read_text() != "")
    pid = int((shop.folder / "pid").read_text())
    assert second.get(id)["status"] == "working"
    second.ask("tasks/cancel", taskId=id)
    gone(pid)
    assert first.get(id)["status"] == second.get(id)["status"] == "cancelled"


def test_a_server_that_ends_in_order_hands_its_tasks_over(shop: Shop) -> None:
    first = shop.host()
    id = first.begin("again")
    eventually(lambda: bool(shop.runs("again")))
    first.server.close_stdin()
    assert first.server.wait() == 0
    second = shop.host()
    shop.let_go()
    assert second.ended(id)["status"] == "completed"
