"""The guard on several hosts with one PostgreSQL: real servers with workers, which are killed, and with the
database stopped under load.

A host is a folder with a separate state. What the tools have run is in files, a byte for each call.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from support.guarded_folder import fastrpc, variables
from support.http_client import children, stateless_request
from support.http_server import HttpProcess
from support.postgres import Cluster
from support.task_client import EXTENSION
from support.waiting import eventually

pytest_plugins = ["support.postgres"]
pytestmark = pytest.mark.long

TOOLS = """
import os
from fastrpc import Server

app = Server("shop")
FOLDER = os.path.dirname(os.path.abspath(__file__))

def ran(name):
    with open(os.path.join(FOLDER, name), "ab", 0) as file:
        file.write(b"x")

@app.tool(effect="read", run="inline")
def search(text: str = "") -> str:
    ran("searches")
    return "found " + text

@app.tool(effect="read", run="inline")
def free(text: str = "") -> str:
    return "free " + text

@app.tool(effect="exec", run="inline")
def wipe() -> str:
    ran("wipes")
    return "wiped"

@app.tool(effect="read", task="required")
async def work(text: str = "") -> str:
    ran("works")
    return "worked " + text
"""
GUARD = """
[expose]
tools = ["*"]
{limits}
[approvals]
hold_seconds = 100
"""
SECONDS = 120


class Connection:
    """A connection of one client, on the wire of 2026-07-28."""

    def __init__(self, port: int, *, accepts_tasks: bool = True) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
        self._capabilities = {"extensions": {EXTENSION: {}}} if accepts_tasks else {}

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        params["_meta"] = {"io.modelcontextprotocol/clientCapabilities": self._capabilities}
        body, headers = stateless_request(method, params)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if "taskId" in params:
            sent["Mcp-Name"] = params["taskId"]
        sent |= {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        self._connection.request("POST", "/mcp", json.dumps(body), sent)
        text = self._connection.getresponse().read().decode()
        if not text.startswith("{"):
            text = [line for line in text.splitlines() if line.startswith("data: {")][-1][len("data: ") :]
        found: dict[str, Any] = json.loads(text)
        return found

    def outcome(self, tool: str, **arguments: Any) -> Any:
        """Return the text of a call, or the reason of the refusal."""
        answer = self.ask("tools/call", name=tool, arguments=arguments)
        if "error" in answer:
            return answer["error"]["data"]["reason"]
        return answer["result"]["content"][0]["text"]


class Hosts:
    """Servers on one database."""

    def __init__(self, folder: Path, url: str, stack: ExitStack) -> None:
        self.folder, self.url, self._stack = folder, url, stack

    def serve(self, name: str, limits: str, **more: str) -> HttpProcess:
        """Start a server on a host, with two workers."""
        host = self.folder / name
        host.mkdir(exist_ok=True)
        (host / "shop.py").write_text(TOOLS)
        (host / "guard.toml").write_text(GUARD.format(limits=limits))
        environment = variables(host, FASTRPC_GUARD_DATABASE=self.url, **more)
        command = ("serve", "shop.py:app", "--guard", "guard.toml", "--http", "127.0.0.1:0", "--no-auth")
        return self._stack.enter_context(
            HttpProcess(*command, "--workers", "2", folder=host, environment=environment)
        )

    def ran(self, name: str = "searches") -> int:
        """Return how often a tool has run on all hosts."""
        return sum(path.stat().st_size for path in self.folder.glob(f"*/{name}"))


@pytest.fixture
def hosts(tmp_path: Path, postgres: Cluster) -> Iterator[Hosts]:
    with ExitStack() as stack:
        yield Hosts(tmp_path, postgres.url(postgres.new_database()), stack)


def kill_all(server: HttpProcess) -> None:
    """Kill a server and its workers at once."""
    workers = children(server.pid)
    for pid in (server.pid, *workers):
        os.kill(pid, signal.SIGKILL)


def outcomes(ports: list[int], count: int, tool: str = "search") -> Counter[str]:
    """Make so many calls on each of several connections to each port, all at once."""

    def calls(port: int) -> list[str]:
        connection, found = Connection(port), []
        for _ in range(count):
            try:
                found.append(connection.outcome(tool))
            except (http.client.HTTPException, OSError):  # its process was killed
                connection = Connection(port)
        return found

    with ThreadPoolExecutor(len(ports)) as pool:
        return Counter(outcome for found in pool.map(calls, ports) for outcome in found)


def test_hosts_together_keep_to_a_rate_while_workers_are_killed(hosts: Hosts) -> None:
    servers = [hosts.serve(name, 'rate = "60/hour"') for name in ("one", "two")]
    ports = [server.port for server in servers] * 3
    assert outcomes(ports, 5) == {"found ": 30}
    for server in servers:
        os.kill(children(server.pid)[0], signal.SIGKILL)
    found = outcomes(ports, 20)
    assert set(found) == {"found ", "rate_limit"}
    assert 60 * 0.8 <= hosts.ran() <= 60


def test_with_the_database_gone_half_way_no_window_has_more_calls_than_the_rate(
    hosts: Hosts, postgres: Cluster
) -> None:
    servers = [hosts.serve(name, 'rate = "60/hour"') for name in ("one", "two")]
    ports = [server.port for server in servers] * 3
    assert outcomes(ports, 5) == {"found ": 30}
    postgres.stop()
    try:
        without = outcomes(ports, 10)
        assert without["rate_unavailable"] > 0
        assert set(without) <= {"found ", "rate_unavailable"}
        assert hosts.ran() <= 60
    finally:
        postgres.start()

    def all_are_used() -> bool:
        return outcomes(ports, 1)["rate_limit"] > 0

    eventually(all_are_used)
    assert 60 * 0.8 <= hosts.ran() <= 60


def test_a_host_that_is_killed_goes_on_with_what_it_had_of_a_budget(hosts: Hosts) -> None:
    limits = 'budget = ["200 calls/month"]'
    servers = [hosts.serve(name, limits) for name in ("one", "two")]
    assert outcomes([server.port for server in servers] * 3, 10) == {"found ": 60}
    kill_all(servers[0])
    again = hosts.serve("one", limits)
    deadline = time.monotonic() + SECONDS
    ports = [again.port, servers[1].port] * 2
    used = 60
    while used < 200 and time.monotonic() < deadline:  # what the other host has left is returned meanwhile
        used += outcomes(ports, 20)["found "]
    assert (used, hosts.ran()) == (200, 200)
    assert outcomes(ports, 3) == {"budget": 12}


def test_an_approval_is_decided_on_one_host_for_a_call_on_another_and_used_once(hosts: Hosts) -> None:
    one, two = hosts.serve("one", ""), hosts.serve("two", "")

    def waiting() -> list[dict[str, Any]]:
        listed = fastrpc(
            hosts.folder / "two", "approvals", "list", "--json", FASTRPC_GUARD_DATABASE=hosts.url
        )
        found: list[dict[str, Any]] = json.loads(listed)
        return found

    with ThreadPoolExecutor(2) as pool:
        clients = [Connection(server.port, accepts_tasks=False) for server in (one, two)]
        calls = [pool.submit(client.outcome, "wipe") for client in clients]
        [first] = eventually(waiting)
        approve = ("approvals", "approve", first["id"])
        fastrpc(hosts.folder / "two", *approve, FASTRPC_GUARD_DATABASE=hosts.url)
        [second] = eventually(lambda: [each for each in waiting() if each["id"] != first["id"]])
        assert hosts.ran("wipes") == 1
        fastrpc(hosts.folder / "one", "approvals", "reject", second["id"], FASTRPC_GUARD_DATABASE=hosts.url)
        assert sorted(call.result(SECONDS) for call in calls) == ["approval_rejected", "wiped"]
    assert hosts.ran("wipes") == 1


# --- the database stops under load --------------------------------------------------------------------------


class Load:
    """Calls in a loop on a separate connection: what came, and how long each took (seconds)."""

    def __init__(self, port: int, call: Callable[[Connection, str], str]) -> None:
        self.came: list[tuple[float, float, str]] = []
        self.failures: list[BaseException] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(Connection(port), call), daemon=True)
        self._thread.start()

    def _run(self, connection: Connection, call: Callable[[Connection, str], str]) -> None:
        number = 0
        try:
            while not self._over.is_set():
                number += 1
                began = time.monotonic()
                came = call(connection, str(number))
                self.came.append((began, time.monotonic() - began, came))
                time.sleep(0.005)
        except BaseException as error:
            self.failures.append(error)

    def end(self) -> None:
        self._over.set()
        self._thread.join(SECONDS)
        assert not self._thread.is_alive(), "a call hangs"
        assert not self.failures

    def median(self, began: float, ended: float) -> float:
        return statistics.median(seconds for at, seconds, _ in self.came if began <= at < ended)


def free(connection: Connection, text: str) -> str:
    answer: str = connection.outcome("free", text=text)
    assert answer == f"free {text}"
    return "free"


def search(connection: Connection, text: str) -> str:
    answer: str = connection.outcome("search", text=text)
    assert answer in (f"found {text}", "rate_unavailable", "rate_limit")
    return answer.partition(" ")[0]


def begin_work(connection: Connection, text: str) -> str:
    """Begin a task; return its id, or "" if it was refused with when to come again."""
    answer = connection.ask("tools/call", name="work", arguments={"text": text})
    if "error" in answer:
        assert answer["error"]["code"] == -31001
        assert answer["error"]["data"]["retry_after_seconds"] > 0
        return ""
    found: str = answer["result"]["taskId"]
    return found


def stopped_processes(postgres: Cluster) -> list[int]:
    return [postgres.process.pid, *children(postgres.process.pid)]


@pytest.mark.parametrize("how", ["suspended", "ended"])
def test_a_database_that_stops_for_five_seconds_slows_only_what_needs_it(
    hosts: Hosts, postgres: Cluster, how: str
) -> None:
    limits = 'tool_rates = { "search" = "400/hour" }'
    server = hosts.serve("one", limits, FASTRPC_TASKS_DATABASE=hosts.url)
    loads = {
        name: Load(server.port, call)
        for name, call in {"free": free, "search": search, "work": begin_work}.items()
    }
    began = time.monotonic()
    eventually(lambda: all(len(load.came) > 100 for load in loads.values()) and time.monotonic() > began + 2)
    stopped = time.monotonic()
    if how == "suspended":
        pids = stopped_processes(postgres)
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
    else:
        postgres.stop()
    try:
        time.sleep(5)
    finally:
        if how == "suspended":
            for pid in pids:
                os.kill(pid, signal.SIGCONT)
        else:
            postgres.start()
    started = time.monotonic()
    counts = {name: len(load.came) for name, load in loads.items()}
    eventually(lambda: all(len(load.came) > counts[name] + 20 for name, load in loads.items()))
    tasks = Connection(server.port)
    eventually(lambda: begin_work(tasks, "again"))
    for load in loads.values():
        load.end()

    assert loads["free"].median(stopped, started) <= 10 * loads["free"].median(began, stopped) + 0.05
    assert hosts.ran() <= 400
    assert any(came == "rate_unavailable" for at, _, came in loads["search"].came) or hosts.ran() == 400
    stop = started - stopped
    for load in loads.values():
        assert max(seconds for _, seconds, _ in load.came) <= stop + 10
    made = [came for _, _, came in loads["work"].came if came]

    def ended(id: str) -> bool:
        answer = tasks.ask("tasks/get", taskId=id)
        assert "result" in answer, answer
        status: str = answer["result"]["status"]
        assert status in ("working", "completed")
        return status == "completed"

    for id in made:
        eventually(lambda id=id: ended(id))
    assert hosts.ran("works") == len(made) + 1
