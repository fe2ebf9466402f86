"""Sessions sealed into their ids: several servers with the same key serve one session, and so do all workers.

Real processes on loopback: two servers behind nginx without affinity, workers of one server, and servers that
end and begin anew under a session. Time in which an id is accepted: tests/unit/test_session_seals.py.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from support import session_tools
from support.http_client import Serving, Session, Stream, ask, children, handshake, request
from support.http_server import HttpProcess
from support.ports import free_port
from support.reverse_proxies import HOST, Front, reverse_proxy
from support.waiting import eventually

KEY = "a-key-that-all-the-servers-have-and-nobody-else"
OTHER_KEY = "another-key-which-takes-the-place-of-the-first"
TOKENS = ("one-token-for-the-tests-of-sessions", "another-token-for-the-tests-of-sessions")
GONE = {"code": -32001, "message": "Mcp-Session-Id: there is no such session"}

TOOLS = (
    session_tools.TOOLS
    + """
@app.tool(run="inline")
def change(revision: int) -> str:
    app.resource_updated("docs://guide", {"revision": revision})
    return str(os.getpid())
"""
)


def serve(
    folder: Path, *options: str, http: str = "127.0.0.1:0", source: str = TOOLS, **environ: str
) -> Serving:
    (folder / "tools.py").write_text(source)
    variables = {"FASTRPC_SECRET": KEY, "FASTRPC_LOG_LEVEL": "info", **environ}
    return Serving("serve", "tools.py", "--http", http, *options, folder=folder, **variables)


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Serving, Serving]]:
    """Two servers with the same key."""
    folder = tmp_path_factory.mktemp("sealed")
    with serve(folder, "--allow-host", HOST) as one, serve(folder, "--allow-host", HOST) as other:
        yield one, other


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serve(tmp_path_factory.mktemp("workers"), "--workers", "2") as server:
        yield server


def at(server: Serving, session: Session) -> Session:
    """Return the same session, as a client of another server uses it."""
    found = Session.__new__(Session)
    found.__dict__.update(vars(session), server=server)
    return found


class Kept:
    """A connection that stays open, and so with its worker."""

    def __init__(self, server: Serving) -> None:
        self.server = server
        self.plain = server.connection()

    def send(self, session: Session, message: Any) -> Any:
        return ask(self.plain, "POST", "/mcp", message, self.server.headers(**session.headers()))

    def who(self, session: Session) -> str:
        return str(self.send(session, request("tools/call", {"name": "who", "arguments": {}}, 90)).text)


def to_each(server: Serving, session: Session, count: int = 2) -> list[Kept]:
    """Return a connection to each worker, all of which then serve the session."""
    found: dict[str, Kept] = {}

    def all_found() -> bool:
        kept = Kept(server)
        found.setdefault(kept.who(session), kept)
        return len(found) == count

    eventually(all_found)
    return list(found.values())


def called(tool: str, id: int = 7, **arguments: Any) -> dict[str, Any]:
    return request("tools/call", {"name": tool, "arguments": arguments}, id)


def begun(kept: Kept, session: Session, message: Any) -> Stream:
    """Send a request whose answer is a stream."""
    return Stream(kept.server, "POST", "/mcp", message, kept.plain, **session.headers())


# --- several servers --------------------------------------------------------------------------------------


def test_servers_behind_a_round_robin_serve_one_session(two: tuple[Serving, Serving], tmp_path: Path) -> None:
    with reverse_proxy("nginx", tmp_path, *(server.port for server in two)) as front:
        session = front.session()
        assert {session.call("who").text for _ in range(8)} == {str(server.pid) for server in two}
        for _ in range(4):
            assert session.call("client").text == "test ['elicitation']"
            listed = session.send(request("tools/list", {}, 3)).json["result"]["tools"]
            assert "who" in [tool["name"] for tool in listed]
            assert session.send(request("ping", {}, 4)).json["result"] == {}


@pytest.mark.parametrize("version", ["2025-03-26", "2025-06-18", "2025-11-25"])
def test_a_session_keeps_its_version_at_another_server(two: tuple[Serving, Serving], version: str) -> None:
    one, other = two
    session = at(other, one.session(version))
    assert session.call("who").text == str(other.pid)
    batch = session.send([request("ping", {}, 5)])
    assert batch.status == (200 if version == "2025-03-26" else 400), batch.body


def test_an_id_has_visible_characters_only_and_a_header_holds_it(two: tuple[Serving, Serving]) -> None:
    id = two[0].session().id
    assert re.fullmatch(r"[!-~]{1,1000}", id)
    assert id != two[0].session().id


def test_a_client_that_declares_too_much_for_an_id_has_a_session_of_one_server(
    two: tuple[Serving, Serving],
) -> None:
    one, other = two
    message = handshake("2025-11-25")
    message["params"]["capabilities"] = {"experimental": {"x" * 1000: {}}}
    session = one.session()
    session.id = one.ask("POST", "/mcp", message).headers["Mcp-Session-Id"]
    assert "." not in session.id
    assert session.call("client").text == "test ['experimental']"
    assert at(other, session).call("who").json["error"] == GONE


def test_a_session_that_its_client_ends_is_over_where_it_was_ended(two: tuple[Serving, Serving]) -> None:
    one, other = two
    session = one.session()
    assert at(other, session).call("who").status == 200
    assert one.ask("DELETE", "/mcp", **session.headers()).status == 200
    assert session.call("who").status == 404
    assert at(other, session).call("who").status == 200  # it has not heard of that
    assert other.ask("DELETE", "/mcp", **session.headers()).status == 200
    assert at(other, session).call("who").json["error"] == GONE


def test_a_restart_under_a_session_loses_nothing(tmp_path: Path) -> None:
    place = f"127.0.0.1:{free_port()}"
    with serve(tmp_path, http=place) as server:
        session = server.session()
        stream = session.listen()
        server.kill()
        last = [line[4:] for line in stream.lines() if line.startswith("id: ")][-1]
        assert server.wait() == 0
        former = server.pid
    with serve(tmp_path, http=place) as server:
        assert session.call("who").text == str(server.pid) != str(former)
        for seen in (last, "0-41"):  # the former process may have sent any number of events
            Stream(server, "GET", "/mcp", Last_Event_ID=seen, **session.headers()).close()
        headers = {"Last_Event_ID": "41-1", **session.headers()}  # of a call of the former process
        assert server.ask("GET", "/mcp", **headers).status == 400


def test_the_official_client_does_not_see_the_round_robin(
    two: tuple[Serving, Serving], tmp_path: Path
) -> None:
    mcp = pytest.importorskip("mcp", reason="the official SDK is not installed: pip install mcp")
    httpx = pytest.importorskip("httpx", reason="httpx is not installed: pip install httpx")
    from mcp.client.streamable_http import streamable_http_client

    async def to_the_name(sent: Any) -> None:
        sent.extensions["sni_hostname"] = HOST

    async def conversation(front: Front) -> set[str]:
        headers = {"Authorization": f"Bearer {front.token}", "Host": HOST}
        hooks = {"request": [to_the_name]}
        url = f"https://127.0.0.1:{front.port}/mcp"
        async with (
            httpx.AsyncClient(verify=front.tls, headers=headers, event_hooks=hooks, timeout=30) as http,
            streamable_http_client(url, http_client=http) as streams,
            mcp.ClientSession(*streams[:2]) as client,
        ):
            await client.initialize()
            listed = await client.list_tools()
            assert "who" in [tool.name for tool in listed.tools]
            answers = [await client.call_tool("who", {}) for _ in range(8)]
            await client.send_ping()
            return {each.content[0].text for each in answers}

    with reverse_proxy("nginx", tmp_path, *(server.port for server in two)) as front:
        assert asyncio.run(conversation(front)) == {str(server.pid) for server in two}


# --- ids that are not accepted ----------------------------------------------------------------------------


def lines_of(server: Serving, before: int) -> list[str]:
    """Return the lines about refused requests that the log has since it was so long."""
    return [line for line in server.stderr[before:].splitlines() if " 404 " in line]


@contextmanager
def refused_once(server: Serving) -> Iterator[None]:
    """Within ``with``, one request is refused, and the log has one line about it."""
    before = len(server.stderr)
    yield
    eventually(lambda: bool(lines_of(server, before)))
    assert len(lines_of(server, before)) == 1, server.stderr[before:]


def test_a_changed_id_is_none(two: tuple[Serving, Serving]) -> None:
    one, other = two
    session = one.session()
    nonce, handshake, signature = session.id.split(".")
    for changed in (
        f"{nonce[:-1]}{'A' if nonce[-1] != 'A' else 'B'}.{handshake}.{signature}",
        f"{nonce}.{handshake[4:]}.{signature}",
        f"{nonce}.{handshake}.{'0' * 64}",
        f"{nonce}.{handshake}.",
        "..",
    ):
        with refused_once(other):
            forged = at(other, session)
            forged.id = changed
            answer = forged.call("who")
        assert (answer.status, answer.json["error"]) == (404, GONE)


def test_an_id_of_another_principal_is_none(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("\n".join(TOKENS))
    tokens.chmod(0o600)
    with (
        serve(tmp_path, "--token-file", str(tokens)) as one,
        serve(tmp_path, "--token-file", str(tokens)) as other,
    ):
        one.token = other.token = TOKENS[0]
        session = one.session()
        assert at(other, session).call("who").text == str(other.pid)
        other.token = one.token = TOKENS[1]
        for server in (one, other):
            with refused_once(server):
                answer = at(server, session).call("who")
            assert (answer.status, answer.json["error"]) == (404, GONE)


def test_an_id_of_a_former_key_is_accepted_until_the_key_is_taken_away(tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text(f"# the new one seals\n{OTHER_KEY}\n{KEY}\n")
    keys.chmod(0o600)
    with ExitStack() as servers:
        former = servers.enter_context(serve(tmp_path))
        both = servers.enter_context(serve(tmp_path, FASTRPC_SECRET="", FASTRPC_SECRET_FILE=str(keys)))
        later = servers.enter_context(serve(tmp_path, FASTRPC_SECRET=OTHER_KEY))
        session = former.session()
        assert at(both, session).call("who").text == str(both.pid)
        assert at(later, both.session()).call("who").text == str(later.pid)
        with refused_once(later):
            answer = at(later, session).call("who")
        assert (answer.status, answer.json["error"]) == (404, GONE)


@pytest.mark.parametrize(
    ("keys", "mode", "message"),
    [
        ("short\n", 0o600, "expected at least 32 bytes, got 5"),
        ("# none\n", 0o600, "there is no key"),
        (f"{KEY}\n", 0o644, "others may use"),
        (None, 0, "cannot read"),
    ],
)
def test_a_file_of_keys_that_is_none_starts_no_server(
    tmp_path: Path, keys: str | None, mode: int, message: str
) -> None:
    path = tmp_path / "keys"
    if keys is not None:
        path.write_text(keys)
        path.chmod(mode)
    with pytest.raises(AssertionError, match=f"FASTRPC_SECRET_FILE.*{message}") as caught:
        serve(tmp_path, FASTRPC_SECRET="", FASTRPC_SECRET_FILE=str(path))
    assert KEY not in str(caught.value)


def test_a_server_without_a_shared_key_seals_no_session(tmp_path: Path) -> None:
    with serve(tmp_path, FASTRPC_SECRET="") as server:
        assert "." not in server.session().id


# --- workers of one server --------------------------------------------------------------------------------


def test_each_worker_serves_the_requests_that_come_to_it(workers: Serving) -> None:
    session = workers.session()
    one, other = to_each(workers, session)
    assert one.who(session) != other.who(session)


def test_the_client_may_answer_a_question_to_any_worker(workers: Serving) -> None:
    session = workers.session()
    one, other = to_each(workers, session)
    streams = [begun(one, session, called("greet", 11)), begun(Kept(workers), session, called("greet", 12))]
    asked = [next(map(json.loads, stream.data())) for stream in streams]
    assert len({question["id"] for question in asked}) == 2
    for question, name in zip(asked, ("Ada", "Bob"), strict=True):
        result = {"action": "accept", "content": {"value": name}}
        assert other.send(session, {"jsonrpc": "2.0", "id": question["id"], "result": result}).status == 202
    answers = [next(map(json.loads, stream.data()))["result"]["content"][0]["text"] for stream in streams]
    assert answers == ["hello Ada", "hello Bob"]


def test_the_client_may_cancel_a_call_at_any_worker(workers: Serving, tmp_path: Path) -> None:
    session = workers.session()
    for number, kept in enumerate(to_each(workers, session)):
        ended = tmp_path / str(number)
        stream = begun(Kept(workers), session, called("hold", 20 + number, path=str(ended)))
        assert "notifications/message" in next(stream.data())
        note = {"method": "notifications/cancelled", "params": {"requestId": 20 + number}}
        assert kept.send(session, {"jsonrpc": "2.0", **note}).status == 202
        eventually(ended.exists)


def test_a_log_level_holds_at_all_workers(workers: Serving) -> None:
    session = workers.session()
    one, other = to_each(workers, session)
    assert "a detail" not in one.send(session, called("note")).body.decode()
    assert other.send(session, request("logging/setLevel", {"level": "debug"}, 6)).status == 200
    for kept in (one, other):
        eventually(lambda kept=kept: "a detail" in kept.send(session, called("note")).body.decode())


def test_a_subscriber_hears_once_of_each_change_at_any_worker(workers: Serving) -> None:
    for subscribes in (0, 1):
        session = workers.session()
        kept = to_each(workers, session)
        stream = session.listen()
        answer = kept[subscribes].send(session, request("resources/subscribe", {"uri": "docs://guide"}, 8))
        assert answer.json["result"] == {}
        data = map(json.loads, stream.data())
        for revision, each in enumerate([*kept, *kept]):
            assert each.send(session, called("change", revision=revision)).status == 200
            assert next(data)["params"] == {"uri": "docs://guide", "revision": revision}
        kept[1 - subscribes].send(session, request("resources/unsubscribe", {"uri": "docs://guide"}, 9))
        stream.close()


UPSTREAM = """
from fastrpc import Server
from fastrpc.subscriptions import subscribers

app = Server("pages")

@app.resource("page://{name}")
def page(name: str) -> str:
    return name

@app.tool
async def touch(uri: str, revision: int) -> str:
    app.resource_updated(uri, {"revision": revision})
    return str(len(subscribers(app, uri)))
"""


def hear_of_the_upstream(server: Serving, subscribes: int) -> None:
    """Have a client subscribe at a worker, hear once of each change, and unsubscribe at the other one."""
    session = server.session()
    kept = to_each(server, session)
    stream = session.listen()
    heard = (
        message["params"]
        for message in map(json.loads, stream.data())
        if message["method"] == "notifications/resources/updated"
    )
    uri = f"page://{session.id[:8]}"
    revisions = iter(range(1000))

    def subscriptions_after_touch(each: Kept) -> int:
        return int(each.send(session, called("touch", uri=uri, revision=next(revisions))).text)

    wanted = request("resources/subscribe", {"uri": uri}, 8)
    assert kept[subscribes].send(session, wanted).json["result"] == {}
    eventually(lambda: subscriptions_after_touch(kept[0]) == 1)
    first = next(heard)["revision"]
    for revision, each in enumerate([*kept, *kept], first + 1):
        assert subscriptions_after_touch(each) == 1
        assert next(heard) == {"uri": uri, "revision": revision}
    ended = request("resources/unsubscribe", {"uri": uri}, 9)
    assert kept[1 - subscribes].send(session, ended).json["result"] == {}
    eventually(lambda: subscriptions_after_touch(kept[0]) == 0)
    stream.close()


def test_the_worker_that_has_the_stream_watches_at_the_upstream(tmp_path: Path) -> None:
    (tmp_path / "pages.py").write_text(UPSTREAM)
    with HttpProcess("serve", "pages.py", "--http", "127.0.0.1:0", "--no-auth", folder=tmp_path) as upstream:
        source = f'{TOOLS}\napp.mount(Server.proxy("http://127.0.0.1:{upstream.port}/mcp"))\n'
        with serve(tmp_path, "--workers", "2", source=source) as server:
            for subscribes in (0, 1, 0, 1):
                hear_of_the_upstream(server, subscribes)


def test_a_message_of_no_request_comes_to_the_stream_from_any_worker(workers: Serving) -> None:
    session = workers.session()
    kept = to_each(workers, session)
    stream = session.listen()
    assert kept[0].send(session, request("logging/setLevel", {"level": "info"}, 6)).status == 200
    data = map(json.loads, stream.data())
    for each in [*kept, *kept]:
        told = each.send(session, called("tell")).text
        assert next(data)["params"]["data"] == told
    stream.close()


def test_a_worker_that_takes_the_place_of_another_serves_the_session_in_its_state(tmp_path: Path) -> None:
    with serve(tmp_path, "--workers", "2") as server:
        session = server.session()
        one, other = to_each(server, session)
        assert one.send(session, request("logging/setLevel", {"level": "debug"}, 6)).status == 200
        former = int(other.who(session))
        os.kill(former, signal.SIGKILL)
        eventually(lambda: len({*children(server.pid)} - {former}) == 2)
        found = to_each(server, session)
        assert str(former) not in [kept.who(session) for kept in found]
        for kept in found:
            eventually(lambda kept=kept: "a detail" in kept.send(session, called("note")).body.decode())


def test_a_session_that_is_ended_at_one_worker_is_over_at_all(workers: Serving) -> None:
    session = workers.session()
    kept = to_each(workers, session)
    assert workers.ask("DELETE", "/mcp", **session.headers()).status == 200
    for each in kept:
        eventually(lambda each=each: each.send(session, called("who")).status == 404)
