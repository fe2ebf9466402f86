"""What steps of workflows do besides calling tools: requests over HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.web_server import Visit, Web, serve
from support.workflows import called, guarded, served, token_of, workflow

from fastrpc import Client
from fastrpc.client import SyncClient

POLICY = """
[expose]
tools = ["workflow.*", "action.*"]

[risk]
"workflow.create" = "medium"
"""


def node(kind: str, id: str = "do", **config: Any) -> dict[str, Any]:
    return {"id": id, "type": f"action.{kind}", "config": config}


def ran(client: SyncClient, *nodes: dict[str, Any], edges: str = "", **input: Any) -> Any:
    called(client, "workflow.create", workflow=workflow("w", *nodes, edges=edges))
    return called(client, "workflow.trigger", id="w", input=input, wait_seconds=60)


@pytest.fixture
def web() -> Iterator[Web]:
    with serve() as found:
        yield found


def place(web: Web, path: str) -> str:
    return f"http://127.0.0.1:{web.port}{path}"


def test_a_request_is_sent_and_its_json_is_the_output(tmp_path: Path, web: Web) -> None:
    bodies = []

    def orders(visit: Visit) -> None:
        bodies.append(visit.rfile.read(int(visit.headers["content-length"])))
        visit.respond('{"number": 7}', "application/json", etag="e1")

    web.handlers["/orders"] = orders
    request = node(
        "api_call", url=place(web, "/orders?a=1"), method="POST", query={"b": "{{ $trigger.b }}"},
        headers={"X-Token": "{{ $trigger.token }}"}, body={"count": "{{ $trigger.count }}"},
    )  # fmt: skip
    with served(tmp_path) as client:
        found = ran(client, request, b="2", token="geheim-geheim-1", count=3)
    assert found["state"] == "completed", found
    assert found["output"] == {
        "status": 200, "headers": {"content-type": "application/json", "etag": "e1"}, "body": {"number": 7},
    }  # fmt: skip
    assert web.requests == [("POST", "/orders?a=1&b=2")]
    assert web.headers["/orders"]["x-token"] == "geheim-geheim-1"
    assert json.loads(bodies[0]) == {"count": 3}
    assert "geheim" not in json.dumps(found["steps"])


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("/none", "url: the answer is 404 Not Found: <h1>Not here</h1>"),
        ("/large", "url: expected an answer of at most 1,048,576 bytes"),
        ("/slow", "url: no answer, or not all of it, within 0.5 s"),
        ("/round", "url: more than 5 redirects"),
        ("/packed", "url: the answer is compressed, which was not asked for"),
        ("/odd", "url: the answer is no JSON, though it says so"),
        ("/file", "url: expected an http or https address, got 'file:"),
    ],
)
def test_what_is_no_answer_is_an_error_within_bounds(tmp_path: Path, web: Web, path: str, error: str) -> None:
    web.handlers["/large"] = lambda visit: (visit.begin(), visit.for_ever(b"x" * 65_536, 0.001))
    web.handlers["/slow"] = lambda visit: (visit.begin(), visit.for_ever(b"x", 0.1))
    web.handlers["/round"] = lambda visit: visit.respond("", status=302, location="/round")
    web.handlers["/packed"] = lambda visit: visit.respond("x", content_encoding="gzip")
    web.handlers["/odd"] = lambda visit: visit.respond("[NaN]", "application/json")
    web.handlers["/file"] = lambda visit: visit.respond("", status=302, location="file:///etc/passwd")
    seconds = 0.5 if path == "/slow" else 30
    with served(tmp_path) as client:
        found = ran(client, node("api_call", url=place(web, path), seconds=seconds))
    assert found["error"].startswith(f"do: {error}"), found["error"]


def test_headers_go_to_no_other_place_than_the_one_they_are_for(tmp_path: Path, web: Web) -> None:
    with serve("localhost") as other:
        other.handlers["/there"] = lambda visit: visit.respond("seen", "text/plain")
        target = f"http://localhost:{other.port}/there"
        web.handlers["/away"] = lambda visit: visit.respond("", status=302, location=target)
        with served(tmp_path) as client:
            found = ran(
                client, node("api_call", url=place(web, "/away"), headers={"X-Key": "k", "Cookie": "c"})
            )
        assert found["output"]["body"] == "seen"
        assert not {"x-key", "cookie"} & set(other.headers["/there"])
    assert web.headers["/away"]["x-key"] == "k"


def test_over_http_no_request_goes_to_this_machine_unless_that_is_allowed(tmp_path: Path, web: Web) -> None:
    web.handlers["/"] = lambda visit: visit.respond("inside", "text/plain")
    token = token_of(tmp_path, "ada")["token"]
    for reach in ("", "127.0.0.0/8"):
        with (
            guarded(tmp_path, POLICY, FASTRPC_REACH=reach) as server,
            Client.sync(server.place, token=token) as client,
        ):
            found = ran(client, node("api_call", url=place(web, "/")))
            assert "action.api_call" not in [each.name for each in client.list_tools()]
        if reach:
            assert found["output"]["body"] == "inside"
        else:
            assert found["error"].startswith(f"do: url: 127.0.0.1:{web.port} may not be reached: ")
            assert not web.requests


def test_the_guard_decides_about_requests_as_about_calls(tmp_path: Path, web: Web) -> None:
    token = token_of(tmp_path, "ada")["token"]
    policy = POLICY.replace('"action.*"', '"action.x"')
    with guarded(tmp_path, policy) as server, Client.sync(server.place, token=token) as client:
        refused = client.call_tool(
            "workflow.create", {"workflow": workflow("w", node("api_call", url=place(web, "/")))}
        )
        assert refused.text == "node do: there is no tool action.api_call"
