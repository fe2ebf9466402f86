"""Several servers, as on several hosts, that share a PostgreSQL database (FASTRPC_SHARED): what one of them
changes reaches the clients of all, and a session is the same on all.

Real processes on loopback, and a real PostgreSQL that is stopped and started again.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from support import session_tools
from support.http_client import Serving, Session, Stream, request, stateless_request
from support.protocol import envelope
from support.stdio import TimedOut
from support.stdio import serve as serve_stdio
from support.waiting import eventually

pytest.importorskip("sqlalchemy", reason='pip install "fastrpc-mcp[guard]"')
pytest_plugins = ["support.postgres"]

KEY = "a-key-that-all-the-servers-have-and-no-one-else"
GONE = {"code": -32001, "message": "Mcp-Session-Id: there is no such session"}
UPDATED = "notifications/resources/updated"
TOOLS_CHANGED = "notifications/tools/list_changed"

TOOLS = (
    session_tools.TOOLS
    + """
@app.resource("docs://n/{number}")
def numbered(number: int) -> str:
    return str(number)

@app.tool(run="inline")
def change(revision: int, padding: int = 0) -> str:
    app.resource_updated("docs://guide", {"revision": revision, "padding": "x" * padding})
    return str(os.getpid())

@app.tool(run="inline")
def add(name: str) -> str:
    app.tool(lambda: "new", name=name, description="New.", effect="read")
    return str(os.getpid())

@app.tool(effect="write", task="required")
async def long() -> str:
    "Work."
    while not os.path.exists("go"):
        await asyncio.sleep(0.02)
    return "done"

if __name__ == "__main__":
    app.run()
"""
)


class Hosts:
    """Servers with one database; `database` is its name."""

    def __init__(self, folder: Path, postgres: Any, stack: ExitStack) -> None:
        self.folder = folder
        self.postgres = postgres
        self.database = postgres.new_database()
        self.url = postgres.url(self.database)
        self._stack = stack
        (folder / "tools.py").write_text(TOOLS)

    def environment(self) -> dict[str, str]:
        return {
            "FASTRPC_SHARED": self.url,
            "FASTRPC_SECRET": KEY,
            "FASTRPC_LOG_LEVEL": "warning",
            "FASTRPC_STATE_DIR": str(self.folder / "state"),
        }

    def serve(self, *options: str, **environ: str) -> Serving:
        variables = {**self.environment(), **environ}
        server = Serving(
            "serve", "tools.py", "--http", "127.0.0.1:0", *options, folder=self.folder, **variables
        )
        return self._stack.enter_context(server)

    def notify(self, server: str, payload: str) -> None:
        """Notify as another process would."""
        import hashlib

        channel = "fastrpc_" + hashlib.sha256(server.encode()).hexdigest()[:32]
        literal = payload.replace("'", "''")
        self.postgres.execute(f"SELECT pg_notify('{channel}', '{literal}')", self.database)

    def disconnect(self) -> None:
        self.postgres.disconnect(self.database)

    def release(self) -> None:
        """Let tasks end."""
        (self.folder / "go").touch()

    def leaving(self) -> Serving:
        """A server that is used in a ``with`` block."""
        return Serving("serve", "tools.py", "--http", "127.0.0.1:0", folder=self.folder, **self.environment())

    @contextmanager
    def store_away(self, how: str) -> Iterator[None]:
        """Within ``with``, PostgreSQL does not run, or does not answer."""
        if how == "stopped":
            self.postgres.stop()
            try:
                yield
            finally:
                self.postgres.start()
            return
        backends = self.postgres.execute(
            f"SELECT pid FROM pg_stat_activity WHERE datname = '{self.database}'"
        )
        pids = [self.postgres.process.pid, *(pid for (pid,) in backends)]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)


@pytest.fixture
def hosts(tmp_path: Path, postgres: Any) -> Iterator[Hosts]:
    with ExitStack() as stack:
        yield Hosts(tmp_path, postgres, stack)


def at(server: Serving, session: Session) -> Session:
    """Return the same session, as a client of another server uses it."""
    found = Session.__new__(Session)
    found.__dict__.update(vars(session), server=server)
    return found


def subscribe(session: Session, uri: str = "docs://guide") -> None:
    answer = session.send(request("resources/subscribe", {"uri": uri}, 8))
    assert answer.json["result"] == {}, answer.body


class Listener:
    """Collects the messages of a stream, on a thread."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.messages: list[dict[str, Any]] = []
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        try:
            for text in self.stream.data():
                self.messages.append(json.loads(text))
        except (OSError, ValueError, AttributeError):
            pass  # closed

    def params(self, method: str) -> list[dict[str, Any]]:
        return [each.get("params", {}) for each in self.messages if each.get("method") == method]

    def revisions(self) -> list[int]:
        return [each.get("revision", -1) for each in self.params(UPDATED)]


def listen_statelessly(server: Serving, **filters: Any) -> Listener:
    """A stream of 2026-07-28."""
    message, more = stateless_request("subscriptions/listen", {"notifications": filters})
    listener = Listener(Stream(server, "POST", "/mcp", message, **more))
    eventually(lambda: bool(listener.messages))
    return listener


def called(tool: str, id: int = 7, **arguments: Any) -> dict[str, Any]:
    return request("tools/call", {"name": tool, "arguments": arguments}, id)


# --- changes ----------------------------------------------------------------------------------------------


def test_changes_of_one_host_reach_the_listeners_of_all(hosts: Hosts) -> None:
    one, other = hosts.serve("--workers", "2"), hosts.serve("--workers", "2")
    session = one.session()
    subscribe(session)
    old = Listener(session.listen())
    new = listen_statelessly(other, resourceSubscriptions=["docs://guide"], toolsListChanged=True)
    for revision, server in enumerate([one, other] * 3):
        assert server.session().call("change", revision=revision).status == 200
    eventually(lambda: sorted(old.revisions()) == sorted(new.revisions()) == list(range(6)))
    other.session().call("add", name="more")
    eventually(lambda: len(old.params(TOOLS_CHANGED)) == 1 and len(new.params(TOOLS_CHANGED)) == 1)
    time.sleep(0.3)
    assert len(old.params(TOOLS_CHANGED)) == len(new.params(TOOLS_CHANGED)) == 1


def test_a_client_over_stdio_hears_the_other_hosts(hosts: Hosts) -> None:
    server = hosts.serve()
    command = [sys.executable, str(hosts.folder / "tools.py")]
    with serve_stdio(command=command, environment=hosts.environment()) as process:
        process.initialize("2025-11-25")
        process.request("resources/subscribe", {"uri": "docs://guide"})
        caller = server.session()

        def is_heard() -> bool:
            caller.call("change", revision=7)
            try:
                return bool(process.answer(1.0)["params"]["revision"] == 7)
            except TimedOut:  # it does not listen yet
                return False

        eventually(is_heard)


def test_an_update_that_is_too_long_for_a_notification_says_less(hosts: Hosts) -> None:
    one, other = hosts.serve(), hosts.serve()
    listener = listen_statelessly(other, resourceSubscriptions=["docs://guide"])
    one.session().call("change", revision=1, padding=9000)
    eventually(lambda: listener.params(UPDATED) != [])
    assert listener.revisions() == [-1]


def test_what_is_no_notification_is_dropped_with_one_line(hosts: Hosts) -> None:
    one, other = hosts.serve(), hosts.serve()
    listener = listen_statelessly(other, resourceSubscriptions=["docs://guide"])
    update = '["g","p","resource_updated","docs://guide",{}]'
    for payload in (
        "",
        "[" * 7000,
        "{}",
        "null",
        '["g","p"]',
        '["g","p","nothing"]',
        '["g","p","take"]',
        '["g","p","resource_updated"]',
        '["g","p","resource_updated",1,null]',
        '["g","p","resource_updated","docs://guide",[]]',
        '["g","p","resource_updated","docs://guide",{"a":NaN}]',
        '["g","p","resource_updated","docs://guide",{"a":"\\ud800"}]',
        '["g","p","session","../../etc/passwd"]',
        '["g","p","session_message","aaaaaaaaaaaaaaaa",1e3]',
        '["g","p","session_message","aaaaaaaaaaaaaaaa",-1]',
        '["g","p","list_changed",["tool"]]',
    ):
        hosts.notify("shared", payload)
    hosts.notify("shared", '["g","p","list_changed","no such kind"]')
    hosts.notify("shared", '["g","p","session","aaaaaaaaaaaaaaaa"]')
    hosts.notify("shared", '["g","p","session_message","aaaaaaaaaaaaaaaa",12]')
    hosts.notify("shared", update)
    eventually(lambda: len(listener.params(UPDATED)) == 1)
    for server in (one, other):
        assert server.stderr.count("not understood") == 1, server.stderr
        assert "Traceback" not in server.stderr


def test_after_a_lost_connection_everything_counts_as_changed(hosts: Hosts) -> None:
    server = hosts.serve()
    session = server.session()
    subscribe(session)
    old = Listener(session.listen())
    new = listen_statelessly(server, resourceSubscriptions=["docs://guide"], toolsListChanged=True)
    hosts.disconnect()
    for listener in (old, new):
        eventually(lambda listener=listener: len(listener.params(UPDATED)) == 1)
        eventually(lambda listener=listener: len(listener.params(TOOLS_CHANGED)) == 1)


def test_changes_of_a_task_reach_a_listener_at_another_host(hosts: Hosts) -> None:
    more = {"FASTRPC_TASKS_DATABASE": hosts.url}
    one, other = hosts.serve(**more), hosts.serve(**more)
    message, headers = stateless_request("tools/call", {"name": "long", "arguments": {}})
    extension = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
    message["params"]["_meta"].update(envelope(extension))
    id = one.ask("POST", "/mcp", message, **headers).json["result"]["taskId"]
    message, headers = stateless_request("subscriptions/listen", {"notifications": {"taskIds": [id]}})
    message["params"]["_meta"].update(envelope(extension))
    listener = Listener(Stream(other, "POST", "/mcp", message, **headers))
    eventually(lambda: bool(listener.messages))
    hosts.release()
    eventually(lambda: "completed" in [each["status"] for each in listener.params("notifications/tasks")])
    listening = hosts.postgres.execute(
        f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{hosts.database}' AND query LIKE 'LISTEN%'"
    )
    assert listening == [(2,)]  # a process has one, for the tasks and for everything else


# --- sessions ---------------------------------------------------------------------------------------------


def test_the_log_level_and_the_subscriptions_hold_at_every_host(hosts: Hosts) -> None:
    one, other = hosts.serve(), hosts.serve()
    session = one.session()
    assert session.send(request("logging/setLevel", {"level": "debug"}, 6)).status == 200
    subscribe(session)
    elsewhere = at(other, session)
    listener = Listener(elsewhere.listen())
    assert "a detail" in elsewhere.call("note").body.decode()  # read by who begins to serve it
    one.session().call("change", revision=1)
    eventually(lambda: 1 in listener.revisions())
    elsewhere.send(request("logging/setLevel", {"level": "error"}, 7))  # and heard by who has it
    eventually(lambda: "a detail" not in session.call("note").body.decode())
    session.send(request("resources/unsubscribe", {"uri": "docs://guide"}, 9))

    def is_unsubscribed() -> bool:
        count = len(listener.revisions())
        other.session().call("change", revision=2)
        time.sleep(0.2)
        return len(listener.revisions()) == count

    eventually(is_unsubscribed)


def test_changes_at_two_hosts_at_the_same_time_are_both_kept(hosts: Hosts) -> None:
    one, other, third = hosts.serve(), hosts.serve(), hosts.serve()
    session = one.session()
    assert at(other, session).call("who").status == 200
    uris = [f"docs://n/{number}" for number in range(20)]

    def change(server: Serving, uris: list[str]) -> None:
        for uri in uris:
            subscribe(at(server, session), uri)

    threads = [threading.Thread(target=change, args=pair) for pair in ((one, uris[::2]), (other, uris[1::2]))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stored = hosts.postgres.execute("SELECT subscriptions FROM fastrpc_sessions", hosts.database)
    assert sorted(json.loads(stored[0][0])) == sorted(uris)
    for server in (one, other, third):
        listener = Listener(at(server, session).listen())
        for uri in uris:
            payload = json.dumps(["g", "p", "resource_updated", uri, None])
            hosts.notify("shared", payload)
        eventually(lambda listener=listener: {each["uri"] for each in listener.params(UPDATED)} >= {*uris})
        listener.stream.close()


def test_a_session_that_its_client_ends_is_over_at_every_host(hosts: Hosts) -> None:
    one, other = hosts.serve("--workers", "2"), hosts.serve("--workers", "2")
    session = one.session()
    elsewhere = at(other, session)
    for _ in range(6):
        assert elsewhere.call("who").status == 200
    assert one.ask("DELETE", "/mcp", **session.headers()).status == 200
    eventually(lambda: all(elsewhere.call("who").status == 404 for _ in range(6)))
    assert elsewhere.call("who").json["error"] == GONE
    later = hosts.serve()  # a process that has not been there
    assert at(later, session).call("who").json["error"] == GONE


def test_the_client_may_answer_and_cancel_at_another_host(hosts: Hosts, tmp_path: Path) -> None:
    one, other = hosts.serve(), hosts.serve()
    session = one.session()
    elsewhere = at(other, session)
    stream = Stream(one, "POST", "/mcp", called("greet"), **session.headers())
    data = map(json.loads, stream.data())
    question = next(data)
    result = {"action": "accept", "content": {"value": "Ada"}}
    assert elsewhere.send({"jsonrpc": "2.0", "id": question["id"], "result": result}).status == 202
    assert next(data)["result"]["content"][0]["text"] == "hello Ada"
    ended = tmp_path / "ended"
    stream = Stream(one, "POST", "/mcp", called("hold", path=str(ended)), **session.headers())
    assert "notifications/message" in next(stream.data())
    note = {"method": "notifications/cancelled", "params": {"requestId": 7}}
    assert elsewhere.send({"jsonrpc": "2.0", **note}).status == 202
    eventually(ended.exists)


def test_a_message_of_no_request_comes_to_the_stream_at_another_host(hosts: Hosts) -> None:
    one, other = hosts.serve("--workers", "2"), hosts.serve("--workers", "2")
    session = one.session()
    assert session.send(request("logging/setLevel", {"level": "info"}, 6)).status == 200
    listener = Listener(at(other, session).listen())
    told = [at(server, session).call("tell").text for server in (one, other) * 3]
    eventually(
        lambda: sorted(each["data"] for each in listener.params("notifications/message")) == sorted(told)
    )


def test_a_client_that_listens_again_elsewhere_hears_that_it_may_have_missed_something(hosts: Hosts) -> None:
    with hosts.leaving() as one:
        session = one.session()
        subscribe(session)
        stream = session.listen()
        one.kill()
        last = [line[4:] for line in stream.lines() if line.startswith("id: ")][-1]
    other = hosts.serve()
    other.session().call("change", revision=3)  # no process has the session
    headers = {"Last_Event_ID": last, **session.headers()}
    listener = Listener(Stream(other, "GET", "/mcp", **headers))
    eventually(lambda: listener.revisions() == [-1])


# --- the store is away ------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["stopped", "hung"])
def test_while_the_store_is_away_calls_go_on_and_it_comes_back_by_itself(hosts: Hosts, how: str) -> None:
    one, other = hosts.serve(), hosts.serve()
    session = one.session()
    subscribe(session)
    listener = Listener(session.listen())
    with hosts.store_away(how):
        one.session().call("change", revision=1)
        eventually(lambda: listener.revisions() == [1])  # in its own process
        for _ in range(3):
            at(other, one.session()).call("who")
        for server in (one, other):
            for _ in range(20):
                assert server.session().call("who").status == 200
        for _ in range(20):
            new = one.session()
            assert at(other, new).call("who").text == str(other.pid)  # from the id alone
        assert at(one, new).send(request("logging/setLevel", {"level": "debug"}, 6)).status == 200
        other.session().call("change", revision=2)

    def is_shared_again() -> bool:
        other.session().call("change", revision=3)
        time.sleep(0.2)
        return 3 in listener.revisions()

    eventually(is_shared_again)
    eventually(lambda: "a detail" in at(other, new).call("note").body.decode())
    for server in (one, other):
        assert server.stderr.count("the shared store is away") <= 1, server.stderr
        assert "Traceback" not in server.stderr


def test_a_server_starts_without_its_store_and_shares_when_it_is_there(hosts: Hosts) -> None:
    with hosts.store_away("stopped"):
        one, other = hosts.serve(), hosts.serve()
        session = one.session()
        assert at(other, session).call("who").text == str(other.pid)
    listener = listen_statelessly(other, resourceSubscriptions=["docs://guide"])

    def is_shared() -> bool:
        one.session().call("change", revision=3)
        time.sleep(0.2)
        return 3 in listener.revisions()

    eventually(is_shared)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("sqlite:////tmp/x.sqlite3", "SQLite notifies no other process"),
        ("mysql://me:hidden@db/x", "expected sqlite:///PATH or postgresql"),
        ("nonsense with hidden words", "not a URL"),
    ],
)
def test_what_is_no_shared_store_starts_no_server(hosts: Hosts, url: str, message: str) -> None:
    with pytest.raises(AssertionError, match=f"FASTRPC_SHARED: .*{message}") as caught:
        hosts.serve(FASTRPC_SHARED=url)
    assert "hidden" not in str(caught.value)
