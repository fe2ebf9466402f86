"""2026-07-28 over HTTP: which era a request is of, its headers against its body, answers and streams."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from support.http_sessions import (
    ANSWERS,
    ASKED,
    META,
    OTHER_TOKEN,
    Server,
    Session,
    calling,
    given_up,
    http,
    peak_memory,
    refused,
    stateless_request,
)
from support.protocol import EVERYTHING, SESSION_VERSIONS, STATELESS, message
from support.waiting import eventually as until

LOG = "io.modelcontextprotocol/logLevel"
VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
ENVELOPE = {"_meta": META}
CALL = {"name": "echo", "arguments": {"text": "hi"}}
CANCEL_SECONDS = 0.5


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as running:
        yield running


def tool(name: str, /, id: Any = 1, meta: dict[str, Any] | None = None, **arguments: Any) -> bytes:
    return stateless_request("tools/call", {"name": name, "arguments": arguments}, id, meta=meta)


# --- which era? -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
def test_2026_has_post_only(server: Server, method: str) -> None:
    answer = server.ask(http(method, mcp_protocol_version=STATELESS, mcp_session_id="whatever"))
    refused(answer, 405, -32600)
    assert answer.headers["allow"] == "POST"


@pytest.mark.parametrize(
    ("body", "header", "status", "code"),
    [
        ([message("ping", {}, 1)], STATELESS, 400, -32600),
        ([message("ping", {}, 1), message("ping", ENVELOPE, 2)], None, 400, -32600),
        ([message("ping", ENVELOPE, 2)], "2025-03-26", 400, -32600),
        ([], STATELESS, 400, -32600),
        (message(None, id=1, result={}), STATELESS, 400, -32600),
        (message("initialize", {"protocolVersion": STATELESS}, 1), STATELESS, 400, -32020),
        (message("initialize", ENVELOPE, 1), STATELESS, 404, -32601),
        (message("tools/list", ENVELOPE, 1), None, 400, -32020),
        (message("tools/list", ENVELOPE, 1), "2025-11-25", 400, -32020),
        (message("tools/list", {}, 1), STATELESS, 400, -32602),
        (message("tools/list", {}, 1), "2027-01-01", 400, -32602),
        (message("tools/list", {"_meta": {}}, 1), STATELESS, 400, -32602),
        (message("tools/list", {"_meta": 5}, 1), STATELESS, 400, -32602),
        (message("server/discover", {}, 1), STATELESS, 400, -32602),
        (message("server/discover", {}, 1), None, 400, -32602),
        (message("tools/list", {"_meta": {**META, CAPABILITIES: 5}}, 1), STATELESS, 400, -32602),
        (message("tools/list", {"_meta": {**META, LOG: "loud"}}, 1), STATELESS, 400, -32602),
        (message("tools/list", {}, 1), "1999-01-01", 400, -32600),
        (message("tools/list", {}, 1), "", 400, -32600),
    ],
)
def test_a_request_of_neither_wire_is_refused_in_its_own_form(
    server: Server, body: Any, header: str | None, status: int, code: int
) -> None:
    method = body.get("method") if isinstance(body, dict) else None
    answer = server.ask(http(body=body, mcp_protocol_version=header, mcp_method=method))
    assert answer.status == status, answer
    assert answer.json["error"]["code"] == code
    assert "mcp-session-id" not in answer.headers


@pytest.mark.parametrize("version", [*SESSION_VERSIONS, None])
def test_a_request_without_an_envelope_is_of_the_session_wire(server: Server, version: str | None) -> None:
    answer = server.ask(http(body=message("tools/list", {}, 1), mcp_protocol_version=version))
    assert answer.status == 200
    assert "resultType" not in answer.json["result"]
    opened = server.ask(
        http(body=message("initialize", {"protocolVersion": "2025-06-18"}, 1), mcp_protocol_version=version)
    )
    assert opened.json["result"]["protocolVersion"] == "2025-06-18"
    assert opened.headers["mcp-session-id"]


@pytest.mark.parametrize("asked", [STATELESS, "1.0"])
def test_initialize_of_an_unknown_version_is_answered_with_the_latest_that_has_one(
    server: Server, asked: str
) -> None:
    answer = server.ask(http(body=message("initialize", {"protocolVersion": asked}, 1)))
    assert answer.json["result"]["protocolVersion"] == SESSION_VERSIONS[-1]


@pytest.mark.parametrize(
    "method",
    ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "no/such"],
)
def test_methods_that_2026_does_not_have_are_not_found(server: Server, method: str) -> None:
    params = {"uri": "docs://a", "level": "info", "protocolVersion": STATELESS}
    refused(server.ask(stateless_request(method, params, "an id")), 404, -32601, "an id")


@pytest.mark.parametrize("version", ["2027-01-01", "2025-11-25", "nonsense"])
def test_the_answer_to_an_unsupported_version_names_the_supported_ones(server: Server, version: str) -> None:
    answer = server.ask(
        stateless_request("tools/list", meta={VERSION: version}, mcp_protocol_version=version)
    )
    error = refused(answer, 400, -32022, 1)
    assert error["data"]["requested"] == version
    discovered = server.ask(stateless_request("server/discover")).json["result"]
    assert error["data"]["supported"] == discovered["supportedVersions"] == [STATELESS]


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (message("notifications/cancelled", {"requestId": 1}), {"mcp_protocol_version": STATELESS}),
        (message("notifications/whatever", ENVELOPE), {}),
        (message("notifications/initialized"), {"mcp_protocol_version": STATELESS}),
    ],
)
def test_notifications_are_taken_and_dropped(server: Server, body: Any, headers: Any) -> None:
    answer = server.ask(http(body=body, **headers))
    assert (answer.status, answer.body) == (202, b"")


def test_a_posted_cancellation_cancels_nothing(server: Server) -> None:
    with server.open(tool("hold", "mine", name="uncancelled")) as stream:
        assert server.call("begun", name="uncancelled") == "begun"
        server.ask(
            http(
                body=message("notifications/cancelled", {"requestId": "mine", **ENVELOPE}),
                mcp_protocol_version=STATELESS,
            )
        )
        server.call("let_go", name="uncancelled")
        assert stream.answer().text == "uncancelled"


def test_sessions_and_event_ids_are_ignored_and_never_given(server: Server) -> None:
    answer = server.ask(stateless_request("tools/call", CALL, mcp_session_id="unknown", last_event_id="9-9"))
    assert answer.text == "hi"
    assert "mcp-session-id" not in answer.headers
    assert "session" not in answer.raw.decode().lower()


def test_callers_may_use_the_same_ids_at_once(server: Server) -> None:
    names = [f"same{number}" for number in range(5)]
    streams = [server.open(tool("hold", 1, name=name)) for name in names]
    for name in names:
        server.call("begun", name=name)
    for name, stream in reversed(list(zip(names, streams, strict=True))):
        server.call("let_go", name=name)
        assert stream.answer().text == name
        stream.close()


# --- statuses ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "params", "status", "code"),
    [
        ("tools/call", {"name": "nobody"}, 400, -32602),
        ("tools/call", {"name": 5}, 400, -32602),
        ("tools/list", {"cursor": "strange"}, 400, -32602),
        ("resources/read", {"uri": "none://such"}, 400, -32602),
        ("prompts/get", {"name": "greet"}, 400, -32602),
        ("tools/call", {"name": "ask", "arguments": {"how": "model"}}, 400, -32021),
    ],
)
def test_errors_have_their_own_status(
    server: Server, method: str, params: dict[str, Any], status: int, code: int
) -> None:
    error = refused(server.ask(stateless_request(method, params, 7)), status, code, 7)
    if code == -32021:
        assert error["data"]["requiredCapabilities"] == {"sampling": {}}


def test_a_tool_that_fails_has_succeeded_for_http(server: Server) -> None:
    answer = server.ask(tool("echo"))
    assert answer.status == 200
    assert answer.json["result"]["isError"] is True


@pytest.mark.parametrize("version", [STATELESS, None])
@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", -32700),
        (b"{", -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"} {}', -32700),
        (b'"text"', -32600),
        (b"[]", -32600),
        (b"{}", -32600),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', -32600),
    ],
)
def test_what_is_no_message_is_refused_with_400(
    server: Server, body: bytes, code: int, version: str | None
) -> None:
    answer = server.ask(http(body=body, mcp_protocol_version=version))
    assert answer.status == 400, answer
    assert answer.headers["content-type"] == "application/json"
    assert answer.json["error"]["code"] == code


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ("application/json", 200),
        ("Application/JSON; charset=utf-8", 200),
        ("text/plain", 415),
        ("application/json-seq", 415),
        ("application/x-www-form-urlencoded", 415),
        ("", 415),
        (None, 415),
        (["application/json", "application/json"], 400),
    ],
)
def test_a_body_must_be_said_to_be_json(server: Server, given: Any, status: int) -> None:
    for data in (
        stateless_request("tools/call", CALL, content_type=given),
        http(body=calling("wait", ms=0), content_type=given),
    ):
        answer = server.ask(data)
        assert answer.status == status
        if status != 200:
            refused(answer, status, -32600)


def test_a_body_that_is_compressed_is_refused(server: Server) -> None:
    refused(server.ask(stateless_request("tools/call", CALL, content_encoding="gzip")), 415, -32600)
    assert server.ask(stateless_request("tools/call", CALL, content_encoding="identity")).status == 200


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ("application/json, text/event-stream", 200),
        ("text/event-stream;q=0.5,APPLICATION/JSON", 200),
        ("*/*", 200),
        ("application/*, text/*", 200),
        (["application/json", "text/event-stream"], 200),
        (None, 200),
        ("application/json", 406),
        ("text/event-stream", 406),
        ("text/html", 406),
        ("", 406),
    ],
)
def test_a_client_must_take_both_kinds_of_answers(server: Server, given: Any, status: int) -> None:
    for data in (
        stateless_request("tools/call", CALL, accept=given),
        http(body=calling("wait", ms=0), accept=given),
    ):
        answer = server.ask(data)
        assert answer.status == status
        if status != 200:
            refused(answer, status, -32600)


# --- headers against the body -----------------------------------------------------------------------------

UMLAUT = "=?base64?" + base64.b64encode("grüß".encode()).decode() + "?="


@pytest.mark.parametrize(
    "headers",
    [
        {"mcp_protocol_version": None},
        {"mcp_protocol_version": "2025-11-25"},
        {"mcp_protocol_version": [STATELESS, STATELESS]},
        {"mcp_method": None},
        {"mcp_method": ""},
        {"mcp_method": "tools/list"},
        {"mcp_method": "Tools/Call"},
        {"mcp_method": ["tools/call", "tools/call"]},
        {"mcp_name": None},
        {"mcp_name": "wait"},
        {"mcp_name": "Echo"},
        {"mcp_name": ["echo", "echo"]},
        {"mcp_name": "=?base64?ZWNobw?="},
        {"mcp_name": "=?base64?ZWNo bw==?="},
        {"mcp_name": "=?base64?_2VjaG8=?="},
        {"mcp_name": "=?base64?//79?="},
        {"mcp_name": "=?BASE64?ZWNobw==?="},
        {"mcp_name": "=?base64?ZWNobw=="},
    ],
)
def test_headers_that_do_not_say_what_the_body_says_are_refused(
    server: Server, headers: dict[str, Any]
) -> None:
    refused(server.ask(stateless_request("tools/call", CALL, 5, **headers)), 400, -32020, 5)


@pytest.mark.parametrize("name", ["  echo\t", "=?base64?ZWNobw==?="])
def test_a_name_may_be_encoded_and_have_space_around_it(server: Server, name: str) -> None:
    assert server.ask(stateless_request("tools/call", CALL, mcp_name=name)).text == "hi"


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("prompts/get", {"name": "greet", "arguments": {"name": "Ada"}}),
        ("resources/read", {"uri": "docs://a"}),
    ],
)
def test_prompts_and_resources_are_named_too(server: Server, method: str, params: dict[str, Any]) -> None:
    assert server.ask(stateless_request(method, params)).status == 200
    for wrong in (None, "another"):
        refused(server.ask(stateless_request(method, params, mcp_name=wrong)), 400, -32020, 1)


def test_an_incomplete_envelope_comes_before_headers_that_differ_and_these_before_the_version(
    server: Server,
) -> None:
    body = message("tools/list", {"_meta": {VERSION: STATELESS}}, 1)
    refused(server.ask(http(body=body, mcp_protocol_version=STATELESS, mcp_method="no")), 400, -32602, 1)
    body = message("tools/list", {"_meta": {**META, VERSION: "2027-01-01"}}, 1)
    refused(server.ask(http(body=body, mcp_protocol_version="2027-01-01", mcp_method="no")), 400, -32020, 1)
    refused(server.ask(stateless_request("no/such", mcp_method="no/other")), 400, -32020, 1)


@pytest.mark.parametrize(
    ("arguments", "headers", "fits"),
    [
        ({}, {}, True),
        ({"region": None}, {}, True),
        ({"region": "eu"}, {"mcp_param_region": "eu"}, True),
        ({"region": "eu"}, {}, False),
        ({"region": "eu"}, {"mcp_param_region": "EU"}, False),
        ({"region": "eu"}, {"mcp_param_region": ["eu", "eu"]}, False),
        ({"region": "grüß"}, {"mcp_param_region": UMLAUT}, True),
        ({"region": "grüß"}, {"mcp_param_region": "grüß"}, False),
        ({"count": 42}, {"mcp_param_count": "42"}, True),
        ({"count": 42}, {"mcp_param_count": "042"}, True),
        ({"count": -1}, {"mcp_param_count": "-1"}, True),
        ({"count": 42}, {"mcp_param_count": "43"}, False),
        ({"count": 42}, {"mcp_param_count": "4²"}, False),
        ({"count": 42}, {"mcp_param_count": "--42"}, False),
        ({"fast": True}, {"mcp_param_fast": "true"}, True),
        ({"fast": False}, {"mcp_param_fast": "true"}, False),
        ({"fast": True}, {"mcp_param_fast": "True"}, False),
        ({"inside": {"deep": "x"}}, {"mcp_param_deep": "x"}, True),
        ({"inside": {"deep": "x"}}, {"mcp_param_deep": "y"}, False),
        ({"inside": {"deep": "x"}}, {}, False),
    ],
)
def test_arguments_that_are_marked_are_held_against_their_headers(
    server: Server, arguments: dict[str, Any], headers: dict[str, Any], fits: bool
) -> None:
    answer = server.ask(
        stateless_request("tools/call", {"name": "marked", "arguments": arguments}, **headers)
    )
    if not fits:
        refused(answer, 400, -32020, 1)
        return
    assert answer.status == 200, answer
    if None not in arguments.values():
        assert json.loads(answer.text) == arguments


# --- answers and streams ----------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/mcp", "/mcp/http"])
def test_an_answer_alone_is_json(server: Server, path: str) -> None:
    for name, arguments in (("echo", {"text": "hi"}), ("wait", {"ms": 1}), ("step", {})):
        data = tool(name, **arguments).replace(b"POST /mcp ", b"POST %b " % path.encode())
        answer = server.ask(data)
        assert answer.headers["content-type"] == "application/json"
        assert answer.json["result"]["resultType"] == "complete"


@pytest.mark.parametrize("name", ["step", "wide"])
def test_an_answer_that_is_not_alone_ends_a_stream(server: Server, name: str) -> None:
    with server.open(tool(name, "x", meta={LOG: "debug", "progressToken": "t"})) as stream:
        *before, last = stream.rest()
        assert stream.head.headers["x-accel-buffering"] == "no"
        assert stream.head.headers["cache-control"].startswith("no-cache")
        assert all(event.id is None and event.retry is None for event in [*before, last])
    assert last.json["id"] == "x"
    assert last.json["result"]["resultType"] == "complete"
    methods = [event.method for event in before]
    if name == "step":
        assert methods == ["notifications/progress", "notifications/message", "notifications/message"]
        assert before[0].json["params"] == {
            "progressToken": "t",
            "progress": 1,
            "total": 2,
            "message": "half",
        }
    else:
        assert methods == ["notifications/message"]


@pytest.mark.parametrize(
    ("meta", "said"),
    [
        ({}, []),
        ({"progressToken": 1}, ["notifications/progress"]),
        ({LOG: "warning"}, ["look out"]),
        ({LOG: "debug"}, ["deep inside", "look out"]),
        ({LOG: "error"}, []),
    ],
)
def test_a_client_hears_what_it_asked_for(server: Server, meta: dict[str, Any], said: list[str]) -> None:
    with server.open(tool("step", meta=meta)) as stream:
        if not said:
            assert stream.answer().text == "stepped"
            return
        *before, _ = stream.messages()
    assert [each["params"].get("data", each["method"]) for each in before] == said


def test_what_is_said_goes_out_while_the_call_runs(server: Server) -> None:
    with server.open(tool("hold", name="said", say=True, meta={LOG: "info"})) as stream:
        assert stream.message()["params"]["data"] == "said has begun"
        server.call("let_go", name="said")
        assert stream.message()["result"]["content"][0]["text"] == "said"
        assert stream.next() is None


def test_a_connection_serves_on_after_a_stream(server: Server) -> None:
    with server.open(tool("step", meta={LOG: "debug"})) as stream:
        assert stream.rest()
        stream.send(tool("echo", text="again"))
        assert stream.answer().text == "again"


def test_a_silent_call_is_kept_alive_by_comments() -> None:
    with Server(keep_alive_seconds=0.05) as server, server.open(tool("hold", name="silent")) as stream:
        for _ in range(3):
            event = stream.next()
            assert event is not None
            assert event.comment == "keep-alive"
        server.call("let_go", name="silent")
        (last,) = stream.rest()
        assert last.json["result"]["content"][0]["text"] == "silent"
        with Session(server).open(calling("hold", name="old")) as old:
            assert old.event().data == ""
            for _ in range(2):
                assert getattr(old.next(), "comment", None) == "keep-alive"


@pytest.mark.alone
@pytest.mark.parametrize("say", [True, False])
def test_closing_the_connection_cancels_the_call(server: Server, say: bool) -> None:
    names = [f"cancelled {say} {number}" for number in range(5)]
    streams = [server.open(tool("hold", name=name, say=say, meta={LOG: "info"})) for name in names]
    for name in names:
        server.call("begun", name=name)
    if say:
        for stream in streams:
            assert stream.message()["method"] == "notifications/message"
    began = time.monotonic()
    for stream in streams:
        stream.close()
    for name in names:
        assert server.call("outcome", name=name) == "cancelled"
    assert time.monotonic() - began < CANCEL_SECONDS
    until(lambda: server.counts()["running"] == 0)


def test_another_clients_call_goes_on_when_one_is_cancelled(server: Server) -> None:
    with server.open(tool("hold", 1, name="stays")) as stays:
        goes = server.open(tool("hold", 1, name="goes"))
        for name in ("stays", "goes"):
            server.call("begun", name=name)
        goes.close()
        assert server.call("outcome", name="goes") == "cancelled"
        server.call("let_go", name="stays")
        assert stays.answer().text == "stays"


def test_a_call_whose_host_gives_it_up_is_cancelled(server: Server) -> None:
    arguments = {"name": "hold", "arguments": {"name": "given up"}}
    assert server.ask(stateless_request("tools/call", arguments, **given_up("begun given up"))).status == 500
    assert server.call("outcome", name="given up") == "cancelled"
    until(lambda: server.counts()["running"] == 0)


def test_a_client_that_stops_reading_is_bounded_then_dropped() -> None:
    with Server(limits={"read_seconds": 0.5}) as server:
        before = peak_memory(server)
        stream = server.open(tool("say", count=20_000, size=20_000, every=10, meta={LOG: "debug"}))
        assert stream.message()["params"]["data"]["n"] == 0
        until(lambda: server.counts()["running"] == 0, 30)
        assert peak_memory(server) - before < 60_000  # of 400 MB that were said
        assert stream.is_cut()
        stream.close()


def test_a_client_that_stops_reading_is_dropped_by_the_application_too() -> None:
    """Where what runs below has no such limit."""
    patch = {"transports.http.request.STALL_SECONDS": 0.3}
    with Server(limits={"read_seconds": 3600}, patch=patch) as server:
        stream = server.open(tool("say", count=100_000, size=20_000, every=10, meta={LOG: "debug"}))
        assert stream.message()["params"]["data"]["n"] == 0
        until(lambda: server.counts()["running"] == 0, 30)
        stream.close()


def test_a_call_that_says_too_much_at_once_still_answers(server: Server) -> None:
    with server.open(tool("say", count=400, size=20_000, every=1000, meta={LOG: "debug"})) as stream:
        *said, last = stream.messages()
    assert last["result"]["content"][0]["text"] == "said 400"
    assert [each["params"]["data"]["n"] for each in said] == list(range(len(said)))
    assert 4 * 1024 * 1024 // 20_000 <= len(said) < 400


# --- streams of changes -----------------------------------------------------------------------------------


def listen(server: Server, id: Any = "changes", **wanted: Any) -> Any:
    return server.open(stateless_request("subscriptions/listen", {"notifications": wanted}, id))


def test_a_stream_of_changes_tells_of_what_was_asked_for_under_its_id(server: Server) -> None:
    with (
        listen(server, "text", toolsListChanged=True, resourceSubscriptions=["docs://a"]) as first,
        listen(server, 7, promptsListChanged=True) as second,
    ):
        acknowledged = first.message()
        assert acknowledged == {
            "jsonrpc": "2.0",
            "method": "notifications/subscriptions/acknowledged",
            "params": {
                "notifications": {"toolsListChanged": True, "resourceSubscriptions": ["docs://a"]},
                "_meta": {SUBSCRIPTION: "text"},
            },
        }
        assert second.message()["params"]["_meta"] == {SUBSCRIPTION: 7}
        server.call("change")
        assert first.message() == {
            "jsonrpc": "2.0",
            "method": "notifications/tools/list_changed",
            "params": {"_meta": {SUBSCRIPTION: "text"}},
        }
        server.call("touch", uri="docs://b")
        server.call("touch", uri="docs://a")
        updated = first.message()
        assert updated["method"] == "notifications/resources/updated"
        assert updated["params"]["uri"] == "docs://a"
        with pytest.raises(TimeoutError):
            second.next(0.05)


def test_a_stream_of_changes_is_forgotten_with_its_connection(server: Server) -> None:
    stream = listen(server, toolsListChanged=True)
    assert stream.message()["method"] == "notifications/subscriptions/acknowledged"
    until(lambda: server.counts()["running"] == 1)  # those of other tests end soon
    stream.close()
    until(lambda: server.counts()["running"] == 0)


@pytest.mark.parametrize("wanted", [None, 5, {"toolsListChanged": 1}, {"resourceSubscriptions": "docs://a"}])
def test_a_strange_filter_is_refused(server: Server, wanted: Any) -> None:
    params = {} if wanted is None else {"notifications": wanted}
    refused(server.ask(stateless_request("subscriptions/listen", params, 3)), 400, -32602, 3)


# --- questions --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("how", "text"), ASKED)
def test_questions_are_results_whose_answers_come_with_another_request(
    server: Server, how: str, text: str
) -> None:
    params: dict[str, Any] = {"name": "ask", "arguments": {"how": how}}
    answer = server.ask(stateless_request("tools/call", params, 1, capabilities=EVERYTHING))
    assert answer.headers["content-type"] == "application/json"
    result = answer.json["result"]
    assert result["resultType"] == "input_required"
    questions = result["inputRequests"]
    assert all("id" not in question and "jsonrpc" not in question for question in questions.values())
    params["inputResponses"] = {key: ANSWERS[question["method"]] for key, question in questions.items()}
    params["requestState"] = result["requestState"]
    again = server.ask(stateless_request("tools/call", params, 2, capabilities=EVERYTHING))
    assert again.json["id"] == 2
    assert again.text == text
    stolen = stateless_request("tools/call", params, 3, capabilities=EVERYTHING, token=OTHER_TOKEN)
    refused(server.ask(stolen), 400, -32602, 3)
    params["requestState"] += "x"
    refused(server.ask(stateless_request("tools/call", params, 3, capabilities=EVERYTHING)), 400, -32602, 3)


# --- the other routes -------------------------------------------------------------------------------------


def test_health_needs_no_token_and_takes_get_only(server: Server) -> None:
    for path in ("/healthz", "/readyz"):
        answer = server.ask(http("GET", path, token=None))
        assert (answer.status, answer.json) == (200, {"status": "ok"})
        refused(server.ask(http("POST", path, b"{}", token=None)), 405, -32600)


def test_there_is_nothing_elsewhere(server: Server) -> None:
    for path in ("/", "/mcp/", "/mcpx", "/MCP", "/mcp/http/x", "/.well-known/oauth-protected-resource"):
        refused(server.ask(http("GET", path)), 404, -32600)


def test_each_caller_is_served_by_itself(server: Server) -> None:
    assert server.ask(stateless_request("tools/call", CALL, token=OTHER_TOKEN)).text == "hi"
    refused(server.ask(stateless_request("tools/call", CALL, token="a-token-of-nobody-at-all")), 401, -32600)
