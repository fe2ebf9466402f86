"""Sessions of the versions up to 2025-11-25 over HTTP: whose they are, how long they last, what they hold."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.http_sessions import (
    ANSWERS,
    ASKED,
    OTHER_TOKEN,
    Server,
    Session,
    Stream,
    calling,
    http,
    refused,
    stateless_request,
    text_of,
)
from support.protocol import EVERYTHING, SESSION_VERSIONS, STATELESS, message
from support.raw_http import Answer
from support.waiting import eventually as until

UNKNOWN = "A" * 43


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    # Whose idle connections are not closed between two counts of a test.
    with Server(patch={"transports.http.sessions.SWEEP_SECONDS": 3600.0}) as running:
        yield running


# --- ids --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", SESSION_VERSIONS)
@pytest.mark.parametrize("path", ["/mcp", "/mcp/http"])
def test_a_session_begins_with_initialize_and_serves_its_version(
    server: Server, version: str, path: str
) -> None:
    session = Session(server, version, path=path)
    assert session.result["protocolVersion"] == version
    assert session.opened.headers["content-type"] == "application/json"
    answer = session.call("echo", 2, text="hi")
    assert answer.text == "hi"
    assert "resultType" not in answer.json["result"]
    assert session.post(message("ping", id="p")).json == {"jsonrpc": "2.0", "id": "p", "result": {}}


def test_ids_cannot_be_guessed(server: Server) -> None:
    ids = {Session(server).id for _ in range(20)}
    assert len(ids) == 20
    assert all(len(id) == 43 and id.isascii() and id.isprintable() and " " not in id for id in ids)
    for place in range(43):  # each place varies: none is a counter or a clock
        assert len({id[place] for id in ids}) > 3, place


def requests_of(id: str | None, token: str) -> dict[str, bytes]:
    """Everything that one can do with a session."""
    given = {"mcp_session_id": id, "token": token}
    return {
        "call": http(body=calling("echo", text="hi"), **given),
        "notification": http(body=message("notifications/initialized"), **given),
        "answer": http(body=message(None, id=1, result={}), **given),
        "batch": http(body=[message("ping", id=1)], **given),
        "subscribe": http(body=message("resources/subscribe", {"uri": "docs://a"}, 1), **given),
        "level": http(body=message("logging/setLevel", {"level": "info"}, 1), **given),
        "listen": http("GET", **given),
        "resume": http("GET", **given, last_event_id="0-0"),
        "end": http("DELETE", **given),
    }


def test_another_callers_session_looks_like_an_unknown_one_and_is_left_alone(server: Server) -> None:
    session = Session(server)
    of_another = requests_of(session.id, OTHER_TOKEN)
    unknown = requests_of(UNKNOWN, OTHER_TOKEN)
    for verb, data in of_another.items():
        answer = server.ask(data)
        refused(answer, 404, -32001)
        assert answer.raw == server.ask(unknown[verb]).raw, verb
    assert session.call("echo", text="still there").text == "still there"


@pytest.mark.parametrize("id", ["", " ", "x" * 5000, "é", UNKNOWN + "\t", '"', "../..", "0", ["a", "b"]])
def test_a_strange_id_is_unknown(server: Server, id: Any) -> None:
    answer = server.ask(http(body=calling("echo", text="hi"), mcp_session_id=id))
    refused(answer, 400 if isinstance(id, list) else 404, -32600 if isinstance(id, list) else -32001)


def test_a_call_in_a_session_knows_whose_it_is(server: Server) -> None:
    """As one of 2026-07-28 does: background tasks are distinguished by it."""
    mine = server.call("who")
    assert mine
    assert Session(server).call("who").text == mine
    others = Session(server, token=OTHER_TOKEN).call("who").text
    assert others
    assert others != mine


def test_a_session_that_was_ended_is_gone_for_everything(server: Server) -> None:
    session = Session(server)
    answer = session.delete()
    assert (answer.status, answer.body) == (200, b"")
    for data in requests_of(session.id, session.token or "").values():
        refused(server.ask(data), 404, -32001)


def test_what_needs_a_session_says_so(server: Server) -> None:
    for verb, data in requests_of(None, "a-token-of-the-first-caller").items():
        answer = server.ask(data)
        if verb in ("answer", "subscribe", "level", "listen", "resume", "end"):
            refused(answer, 400)
            assert "Mcp-Session-Id" in answer.json["error"]["message"]
        else:
            assert answer.status in (200, 202), verb


def test_an_initialize_that_fails_leaves_no_session(server: Server) -> None:
    before = server.counts()
    for params in ({}, {"protocolVersion": 5}, {"protocolVersion": "2025-06-18", "capabilities": 5}):
        answer = server.ask(http(body=message("initialize", params, 1)))
        refused(answer, 400, -32602, 1)
        assert "mcp-session-id" not in answer.headers
    after = server.counts()
    assert (after["sessions"], after["dispatchers"]) == (before["sessions"], before["dispatchers"])


BEHIND = """
import os, time
for _ in range(2000):
    if os.path.exists({path!r}):
        break
    time.sleep(0.01)
import fastrpc
fastrpc.Server("behind").run()
"""


def test_an_initialize_that_waits_for_an_upstream_server_leaves_no_session_if_given_up(
    tmp_path: Path,
) -> None:
    path = tmp_path / "ready"
    opening = http(body=message("initialize", {"protocolVersion": SESSION_VERSIONS[-1]}, 1))
    impatient = http(
        body=message("initialize", {"protocolVersion": SESSION_VERSIONS[-1]}, 1), x_give_up="0.05"
    )
    with Server(behind=BEHIND.format(path=str(path))) as server:
        with server.open(opening) as waiting:
            with server.open(opening) as leaving, pytest.raises(TimeoutError):
                leaving.answer(seconds=0.1)
            assert server.ask(impatient).status == 500
            path.touch()
            answer = waiting.answer()
            assert answer.json["result"]["protocolVersion"] == SESSION_VERSIONS[-1]
        assert server.counts()["sessions"] == 1
        given = {"mcp_session_id": answer.headers["mcp-session-id"]}
        assert server.ask(http(body=calling("echo", text="hi"), **given)).text == "hi"


def test_a_second_initialize_begins_another_session(server: Server) -> None:
    session = Session(server)
    again = session.post(message("initialize", {"protocolVersion": "2025-06-18"}, 1))
    assert again.headers["mcp-session-id"] != session.id
    assert session.call("echo", text="hi").text == "hi"


def test_a_server_without_tokens_has_sessions_too() -> None:
    with Server(auth=None) as server:
        session = Session(server, token=None)
        assert session.call("echo", text="hi").text == "hi"
        refused(server.ask(http("GET", mcp_session_id=UNKNOWN, token=None)), 404, -32001)


# --- number -----------------------------------------------------------------------------------------------


def test_a_caller_with_too_many_sessions_loses_the_one_that_was_idle_the_longest() -> None:
    with Server(sessions_per_caller=3, max_sessions=5) as server:
        other = Session(server, token=OTHER_TOKEN)
        first, second, third = (Session(server) for _ in range(3))
        assert first.call("echo", text="hi").status == 200  # so the second is the oldest
        with third.listen() as listening:
            assert listening.head.status == 200
            fourth = Session(server)
            refused(second.call("echo", text="hi"), 404, -32001)
            for session in (first, third, fourth, other):
                assert session.call("echo", text="hi").status == 200
            with first.listen() as one, fourth.listen() as two:
                assert one.head.status == two.head.status == 200
                params = {"protocolVersion": SESSION_VERSIONS[-1]}
                busy = server.ask(http(body=message("initialize", params, 1)))
                refused(busy, 429)
                assert int(busy.headers["retry-after"]) > 0
        assert server.counts()["sessions"] == 4


def test_when_there_are_too_many_in_all_no_one_loses_anothers_session() -> None:
    with Server(sessions_per_caller=3, max_sessions=3) as server:
        others = [Session(server, token=OTHER_TOKEN) for _ in range(3)]
        refused(
            server.ask(http(body=message("initialize", {"protocolVersion": SESSION_VERSIONS[-1]}, 1))), 429
        )
        for session in others:
            assert session.call("echo", text="hi").status == 200
        others[0].delete()
        Session(server)


def test_a_session_that_rests_keeps_less() -> None:
    with Server(patch={"transports.http.sessions.SWEEP_SECONDS": 0.1}) as server:
        call = Session(server).request(calling("who"))  # a plain call needs no connection of the session's
        count = stateless_request("tools/call", {"name": "counts", "arguments": {}})
        for _ in range(2):
            with server.open(call + count) as connection:  # in one packet: nothing comes between them
                assert connection.answer().status == 200
                assert json.loads(connection.answer().text)["pooled"] == 1
            until(lambda: server.counts()["pooled"] == 0)


def test_ended_sessions_leave_nothing_behind(server: Server) -> None:
    first = Session(server)
    first.call("echo", text="so that there is the connection that sessions share")
    first.delete()
    before = server.counts()
    sessions = [Session(server) for _ in range(20)]
    for session in sessions:
        with session.open(calling("say", count=3, size=1000)) as stream:
            assert len(stream.messages()) == 4
    during = server.counts()
    assert during["streams"] - before["streams"] == 40
    assert during["kept"] - before["kept"] > 20 * 3000
    for session in sessions:
        session.delete()
    after = server.counts()
    for name in ("sessions", "streams", "kept", "running", "dispatchers"):
        assert after[name] == before[name], name


@pytest.mark.long
def test_sessions_that_come_and_go_do_not_fill_the_memory() -> None:
    """Though a collection of what hangs together may be far off."""
    with Server(sessions_per_caller=20) as server:
        opening = http(body=message("initialize", {"protocolVersion": SESSION_VERSIONS[-1]}, 1))

        def come_and_go(count: int) -> int:
            with Stream(server.port) as connection:
                for _ in range(count):
                    connection.send(opening)
                    id = connection.answer().headers["mcp-session-id"]
                    connection.send(http(body=calling("say", count=1, size=1000), mcp_session_id=id))
                    assert connection.answer().status == 200
            with open(f"/proc/{server.process.pid}/status") as file:
                return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))

        before = come_and_go(300)
        assert come_and_go(2000) - before < 20_000  # kB; it was 30 a session


# --- the version's header ---------------------------------------------------------------------------------


@pytest.mark.parametrize("given", ["2024-01-01", "1", "2025-11-2", "", "2025-11-25, 2025-11-25"])
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
def test_a_version_that_is_not_served_is_refused(server: Server, method: str, given: str) -> None:
    session = Session(server)
    body = calling("echo", text="hi") if method == "POST" else None
    refused(server.ask(session.request(body, method, mcp_protocol_version=given)), 400)
    assert session.call("echo", text="hi").status == 200


def test_a_version_may_be_left_out(server: Server) -> None:
    session = Session(server, "2025-06-18")
    answer = session.post(calling("echo", text="hi"), mcp_protocol_version=None)
    assert answer.text == "hi"
    assert session.delete(mcp_protocol_version=None).status == 200


# --- batches ----------------------------------------------------------------------------------------------

BATCH = [message("ping", id=1), message("notifications/initialized"), calling("wait", 2, ms=5)]


def test_a_session_of_2025_03_26_takes_batches(server: Server) -> None:
    session = Session(server, "2025-03-26")
    answer = session.post(BATCH)
    assert answer.headers["content-type"] == "application/json"
    assert sorted(each["id"] for each in answer.json) == [1, 2]
    at_once = session.post(
        [message("ping", id="a"), {"jsonrpc": "2.0", "id": "b"}, message("no/such", id="c")]
    )
    assert {each["id"]: each.get("error", {}).get("code") for each in at_once.json} == {
        "a": None,
        "b": -32600,
        "c": -32601,
    }
    silent = session.post([message("notifications/initialized"), message("notifications/x")])
    assert (silent.status, silent.body) == (202, b"")
    refused(session.post([]), 400)


def test_a_batch_that_says_more_ends_a_stream(server: Server) -> None:
    session = Session(server, "2025-03-26")
    with session.open([calling("say", 1, count=2), message("ping", id=2)]) as stream:
        *said, answers = stream.messages()
    assert [each["params"]["data"]["n"] for each in said] == [0, 1]
    assert sorted(each["id"] for each in answers) == [1, 2]


@pytest.mark.parametrize("version", ["2024-11-05", "2025-06-18", "2025-11-25"])
def test_other_sessions_take_none(server: Server, version: str) -> None:
    session = Session(server, version)
    refused(session.post(BATCH), 400)
    refused(session.post(BATCH, mcp_protocol_version=None), 400)


def test_without_a_session_the_header_decides_over_batches(server: Server) -> None:
    for version, status in (("2025-03-26", 200), (None, 200), ("2025-06-18", 400), ("2024-11-05", 400)):
        assert server.ask(http(body=BATCH, mcp_protocol_version=version)).status == status, version


def test_initialize_is_not_taken_in_a_batch(server: Server) -> None:
    answer = server.ask(http(body=[message("initialize", {"protocolVersion": "2025-03-26"}, 1)]))
    assert answer.json[0]["error"]["code"] == -32600
    assert "mcp-session-id" not in answer.headers


# --- without a session ------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [*SESSION_VERSIONS, None])
def test_a_client_that_keeps_no_session_is_served(server: Server, version: str | None) -> None:
    def ask(body: Any) -> Answer:
        return server.ask(http(body=body, mcp_protocol_version=version))

    assert ask(message("notifications/initialized")).status == 202
    assert len(ask(message("tools/list", id=1)).json["result"]["tools"]) > 5
    assert ask(calling("wait", ms=1)).text == "waited"
    assert ask(message("resources/read", {"uri": "docs://a"}, 1)).json["result"]["contents"]
    assert ask(message("ping", id=1)).json["result"] == {}
    with server.open(
        http(body=calling("step", meta={"progressToken": 1}), mcp_protocol_version=version)
    ) as stream:
        *before, last = stream.rest()
    assert [event.method for event in before] == ["notifications/progress", "notifications/message"]
    assert text_of(last.json) == "stepped"
    assert all(event.id is None for event in before)
    asked = ask(calling("ask", how="form"))
    assert asked.json["result"]["isError"] is True


def test_requests_without_a_session_are_served_each_by_its_own_version(server: Server) -> None:
    for version in (*SESSION_VERSIONS, *SESSION_VERSIONS):
        body = calling("step", meta={"progressToken": 1})
        with server.open(http(body=body, mcp_protocol_version=version)) as stream:
            report = stream.message()["params"]
            stream.rest()
        assert report.get("message") == (None if version == SESSION_VERSIONS[0] else "half"), version


def test_a_client_without_a_session_that_goes_away_has_not_cancelled(server: Server) -> None:
    stream = server.open(http(body=calling("hold", name="sessionless")))
    server.call("begun", name="sessionless")
    before = server.counts()["idle"]
    stream.close()
    server.call("let_go", name="sessionless")
    assert server.call("outcome", name="sessionless") == "returned"
    until(lambda: server.counts()["running"] == 0)
    until(lambda: server.counts()["idle"] == before + 1)


# --- what requests of a session share ---------------------------------------------------------------------


def test_an_id_may_be_in_flight_once(server: Server) -> None:
    session = Session(server)
    with session.open(calling("hold", 5, name="twice")) as stream:
        server.call("begun", name="twice")
        again = session.call("echo", 5, text="hi")
        assert again.json["error"]["code"] == -32600
        server.call("let_go", name="twice")
        assert stream.answer().text == "twice"
    assert session.call("echo", 5, text="hi").text == "hi"


def test_a_call_is_cancelled_by_another_post(server: Server) -> None:
    session = Session(server)
    with session.open(calling("hold", "x", name="cancel me")) as stream:
        server.call("begun", name="cancel me")
        stranger = Session(server)
        for who in (stranger, session):
            assert who.post(message("notifications/cancelled", {"requestId": "x"})).status == 202
            if who is stranger:
                assert server.counts()["running"] > 0
        assert server.call("outcome", name="cancel me") == "cancelled"
        assert stream.messages() == []
    until(lambda: server.counts()["running"] == 0)
    assert session.call("echo", "x", text="hi").text == "hi"


def test_a_call_that_ends_at_once_with_something_said_is_over(server: Server) -> None:
    session = Session(server)
    with session.open(calling("step", meta={"progressToken": 1})) as stream:
        assert len(stream.messages()) == 3
    until(lambda: server.counts()["running"] == 0)


def test_a_log_level_holds_for_the_session(server: Server) -> None:
    session, another = Session(server), Session(server)
    assert session.post(message("logging/setLevel", {"level": "warning"}, 1)).json["result"] == {}
    for who, said in ((session, ["look out"]), (another, ["deep inside", "look out"])):
        if who is another:
            assert who.post(message("logging/setLevel", {"level": "debug"}, 1)).status == 200
        with who.open(calling("step")) as stream:
            *before, _ = stream.messages()
        assert [each["params"]["data"] for each in before] == said


def test_ending_a_session_stops_its_calls_and_streams(server: Server) -> None:
    session = Session(server)
    with (
        session.listen() as listening,
        session.open(calling("hold", 1, name="silent one")) as silent,
        session.open(calling("hold", 2, name="loud one", say=True)) as loud,
    ):
        assert listening.event().data == ""
        assert loud.message()["params"]["data"] == "loud one has begun"
        server.call("begun", name="silent one")
        assert session.delete().status == 200
        for name in ("silent one", "loud one"):
            assert server.call("outcome", name=name) == "cancelled"
        assert listening.rest() == []
        answer = silent.answer()
        assert (answer.status, answer.json["id"]) == (200, 1)
        (last,) = loud.messages()
        assert last["id"] == 2
        assert answer.json["error"] == last["error"] == {"code": -32603, "message": "The session has ended"}
        refused(session.call("echo", text="hi"), 404, -32001)


def test_requests_of_a_session_know_the_tools_that_there_are_now(server: Server) -> None:
    session = Session(server)
    assert session.call("echo", text="hi").text == "hi"
    for _ in range(2):
        server.call("learn", name="learned")
        assert session.call("learned").text == "learned"
        assert http_call(server, "learned").text == "learned"
        server.call("forget", name="learned")
        assert session.call("learned").json["error"]["code"] == -32602
        assert http_call(server, "learned").json["error"]["code"] == -32602


def http_call(server: Server, name: str) -> Answer:
    """Call a tool without a session."""
    return server.ask(http(body=calling(name)))


# --- bodies of many lines -----------------------------------------------------------------------------------


def of_many_lines(body: dict[str, Any], newline: str = "\n") -> bytes:
    """A message as a client writes it for people to read, the id last, before a newline."""
    body = {name: value for name, value in body.items() if name != "id"} | {"id": body["id"]}
    return json.dumps(body, indent=2).replace("\n", newline).encode()


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("id", [7, "seven"])
def test_a_call_over_many_lines_is_answered_under_its_id(server: Server, id: Any, newline: str) -> None:
    session = Session(server)
    answer = session.post(of_many_lines(calling("echo", id, text="hi"), newline))
    assert answer.json["id"] == id
    assert b"\n" not in answer.body
    with session.open(of_many_lines(calling("step", id), newline)) as stream:  # answered by events
        *_, last = stream.rest()
        assert last.json["id"] == id
        assert last.json["result"]["content"][0]["text"] == "stepped"


def test_a_call_over_many_lines_is_cancelled_by_its_id(server: Server) -> None:
    session = Session(server)
    for number, id in enumerate((7, "seven")):
        name = f"cancel me on many lines {number}"
        with session.open(of_many_lines(calling("hold", id, name=name))) as stream:
            server.call("begun", name=name)
            again = session.post(calling("echo", id, text="hi"))
            assert again.json["error"]["code"] == -32600, "the id is in flight"
            assert session.post(message("notifications/cancelled", {"requestId": id})).status == 202
            assert server.call("outcome", name=name) == "cancelled"
            assert stream.messages() == []


# --- what belongs to no request ---------------------------------------------------------------------------


def test_changes_are_sent_on_the_stream_of_a_get(server: Server) -> None:
    session, another = Session(server), Session(server)
    for uri in ("docs://a", "docs://b"):
        assert session.post(message("resources/subscribe", {"uri": uri}, 1)).json["result"] == {}
    session.post(message("resources/unsubscribe", {"uri": "docs://b"}, 1))
    with session.listen() as mine, another.listen() as theirs:
        assert mine.head.headers["x-accel-buffering"] == "no"
        server.call("change")
        assert mine.message()["method"] == "notifications/tools/list_changed"
        assert theirs.message()["method"] == "notifications/tools/list_changed"
        server.call("touch", uri="docs://b")
        server.call("touch", uri="docs://a")
        updated = mine.message()
        assert updated["method"] == "notifications/resources/updated"
        assert updated["params"] == {"uri": "docs://a"}
        with pytest.raises(TimeoutError):
            theirs.next(0.05)


def test_a_message_goes_by_one_stream_only(server: Server) -> None:
    session = Session(server)
    with session.listen() as listening, session.open(calling("say", count=3)) as stream:
        assert len(stream.messages()) == 4
        server.call("change")
        assert listening.message()["method"] == "notifications/tools/list_changed"


@pytest.mark.parametrize(("accept", "status"), [("application/json", 406), ("*/*", 200), (None, 200)])
def test_a_stream_is_for_clients_that_take_one(server: Server, accept: str | None, status: int) -> None:
    with Session(server).listen(accept=accept) as stream:
        if status == 200:
            assert stream.event().data == ""
        else:
            refused(stream.answer(), status)


@pytest.mark.parametrize("method", ["PUT", "PATCH", "OPTIONS", "TRACE"])
def test_other_methods_are_not_served(server: Server, method: str) -> None:
    answer = server.ask(http(method, content_length="0"))
    assert answer.status == 405
    assert answer.headers["allow"] == "GET, POST, DELETE"


# --- questions --------------------------------------------------------------------------------------------


def ask(session: Session, how: str) -> Stream:
    return session.open(calling("ask", "the call", how=how))


@pytest.mark.parametrize(("how", "text"), ASKED)
@pytest.mark.parametrize("version", SESSION_VERSIONS)
def test_questions_come_on_the_calls_own_stream_and_are_answered_by_posts(
    server: Server, version: str, how: str, text: str
) -> None:
    session = Session(server, version, capabilities=EVERYTHING)
    with ask(session, how) as stream:
        if version < "2025-06-18" and how in ("form", "both"):
            assert stream.answer().json["result"]["isError"] is True
            return
        questions = [stream.message() for _ in range(2 if how == "both" else 1)]
        assert len({question["id"] for question in questions}) == len(questions)
        for question in questions:
            answered = session.answer(question["id"], result=ANSWERS[question["method"]])
            assert (answered.status, answered.body) == (202, b"")
        last = stream.message()
        assert (last["id"], text_of(last)) == ("the call", text)
        assert stream.next() is None


def test_a_client_that_refuses_fails_the_call(server: Server) -> None:
    session = Session(server, capabilities=EVERYTHING)
    with ask(session, "model") as stream:
        session.answer(stream.message()["id"], error={"code": -1, "message": "no"})
        result = stream.message()["result"]
    assert result["isError"] is True
    assert "no (-1)" in result["content"][0]["text"]


def test_no_one_else_can_answer(server: Server) -> None:
    session = Session(server, capabilities=EVERYTHING)
    stranger = Session(server, token=OTHER_TOKEN, capabilities=EVERYTHING)
    with ask(session, "form") as stream:
        question = stream.message()
        forged = {"action": "accept", "content": {"name": "Eve"}}
        assert stranger.answer(question["id"], result=forged).status == 202
        intruder = http(
            body=message(None, id=question["id"], result=forged),
            mcp_session_id=session.id,
            token=OTHER_TOKEN,
        )
        refused(server.ask(intruder), 404, -32001)
        assert session.answer(999, result=forged).status == 202
        assert session.answer("x1", result=forged).status == 202
        session.answer(question["id"], result=ANSWERS["elicitation/create"])
        assert text_of(stream.message()) == "{'name': 'Ada'}"


def test_two_calls_of_one_session_are_answered_each_its_own(server: Server) -> None:
    session = Session(server, capabilities=EVERYTHING)
    streams = [session.open(calling("ask", number, how="form")) for number in range(4)]
    questions = [stream.message()["id"] for stream in streams]
    assert len(set(questions)) == 4
    for number in reversed(range(4)):
        content = {"name": f"name {number}"}
        session.answer(questions[number], result={"action": "accept", "content": content})
    for number, stream in enumerate(streams):
        last = stream.message()
        assert (last["id"], text_of(last)) == (number, str({"name": f"name {number}"}))
        stream.close()


def test_a_cancelled_call_withdraws_its_question(server: Server) -> None:
    session = Session(server, capabilities=EVERYTHING)
    with ask(session, "model") as stream, session.listen() as listening:
        question = stream.message()
        session.post(message("notifications/cancelled", {"requestId": "the call"}))
        assert stream.messages() == []
        withdrawn = listening.message()
        assert withdrawn["method"] == "notifications/cancelled"
        assert withdrawn["params"]["requestId"] == question["id"]


def test_a_call_without_a_client_that_can_be_asked_says_so(server: Server) -> None:
    answer = Session(server).call("ask", how="model")
    assert answer.json["result"]["isError"] is True
    assert json.loads(answer.body)["id"] == 1


def test_2026_07_28_is_served_beside_a_session(server: Server) -> None:
    session = Session(server)
    assert server.call("echo", text="new") == "new"
    refused(session.post(calling("echo", text="hi"), mcp_protocol_version=STATELESS), 400, -32602, 1)
    assert session.call("echo", text="old").text == "old"
