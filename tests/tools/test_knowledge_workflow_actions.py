"""What steps of workflows do besides calling tools: requests over HTTP, code, prompts, messages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.waiting import eventually
from support.web_server import Visit, Web, serve
from support.workflows import called, guarded, served, token_of, workflow

from fastrpc import Client
from fastrpc.client import SyncClient
from fastrpc.signed_requests import signature_of

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


@pytest.mark.long
@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("/none", "url: the answer is 404 Not Found: <h1>Not here</h1>"),
        ("/large", "url: expected an answer of at most 1,048,576 bytes"),
        ("/slow", "url: no answer, or not all of it, within 0.5 s"),
        ("/round", "url: more than 5 redirects"),
        ("/packed", "url: the answer is compressed, which was not requested"),
        ("/odd", "url: the answer is not JSON, although its Content-Type says so"),
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


CODE = "import math\noutput = {'floor': math.floor(input['at']), 'all': sorted(input)}"


def test_code_gets_json_and_gives_json(tmp_path: Path) -> None:
    code = node("execute_code", code=CODE, input={"at": "{{ $trigger.at }}", "b": 1})
    with served(tmp_path, FASTRPC_KNOWLEDGE_EXECUTE_CODE="1") as client:
        found = ran(client, code, at=2.5)
        assert found["output"] == {"output": {"floor": 2, "all": ["at", "b"]}}, found


def test_code_is_not_run_unless_that_is_switched_on(tmp_path: Path) -> None:
    with served(tmp_path) as client:
        refused = client.call_tool(
            "workflow.create", {"workflow": workflow("w", node("execute_code", code="1"))}
        )
        assert refused.text == (
            "node do: action.execute_code is switched off here: start the server with --execute-code"
        )
        assert client.call_tool("action.execute_code", {"code": "output = 1"}).is_error


PROMPT = node("llm_prompt", prompt="Name {{ $trigger.what }}", system="Be brief", max_tokens=50)


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
def test_a_prompt_is_answered_by_the_model_of_the_client_that_waits(tmp_path: Path, version: str) -> None:
    asked = []

    def sample(params: dict[str, Any]) -> dict[str, Any]:
        asked.append(params)
        return {"role": "assistant", "content": {"type": "text", "text": "Rome"}, "model": "m"}

    again = {**PROMPT, "id": "again"}
    with served(tmp_path, on_sample=sample, version=version) as client:
        found = ran(client, PROMPT, again, edges="do>again", what="a city")
        assert found["state"] == "completed", found
        assert [each["output"] for each in found["steps"]] == [{"text": "Rome", "model": "m"}] * 2
        assert called(client, "workflow.runs")["count"] == 1
    assert [each["messages"][0]["content"]["text"] for each in asked] == ["Name a city"] * 2
    assert [(each["systemPrompt"], each["maxTokens"]) for each in asked] == [("Be brief", 50)] * 2


def test_where_no_client_has_a_model_the_servers_is_asked_and_without_one_the_step_fails(
    tmp_path: Path, web: Web
) -> None:
    seen = []

    def complete(visit: Visit) -> None:
        seen.append(json.loads(visit.rfile.read(int(visit.headers["content-length"]))))
        visit.respond('{"model": "big", "choices": [{"message": {"content": "Rome"}}]}', "application/json")

    web.handlers["/v1/chat/completions"] = complete
    web.add("/odd/chat/completions", '{"choices": []}', "application/json")
    with served(tmp_path) as client:
        found = ran(client, PROMPT, what="a city")
        assert found["error"].startswith("do: no model: no client that samples waits for the run")
    model = {"FASTRPC_KNOWLEDGE_MODEL": "m", "FASTRPC_KNOWLEDGE_MODEL_KEY": "geheim-geheim-1"}
    with served(tmp_path, FASTRPC_KNOWLEDGE_MODEL_URL=place(web, "/v1/"), **model) as client:
        assert ran(client, PROMPT, what="a city")["output"] == {"text": "Rome", "model": "big"}
    assert web.headers["/v1/chat/completions"]["authorization"] == "Bearer geheim-geheim-1"
    assert seen == [
        {"model": "m", "max_tokens": 50, "messages": [
            {"role": "system", "content": "Be brief"}, {"role": "user", "content": "Name a city"},
        ]},
    ]  # fmt: skip
    with served(tmp_path, FASTRPC_KNOWLEDGE_MODEL_URL=place(web, "/odd"), **model) as client:
        found = ran(client, PROMPT, what="a city")
        assert found["error"] == "do: the model that --model-url names: its answer is not a chat completion."


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
def test_an_invalid_answer_of_the_client_fails_the_step(tmp_path: Path, version: str) -> None:
    with served(tmp_path, on_sample={"role": "assistant", "content": [3]}, version=version) as client:
        found = ran(client, PROMPT, what="a city")
        assert found["state"] == "failed"
        assert "the client's answer to sampling/createMessage cannot be used" in found["error"]


def test_a_message_reaches_the_owners_clients_alone(tmp_path: Path) -> None:
    heard: dict[str, list[Any]] = {"ada": [], "bob": []}
    tokens = {owner: token_of(tmp_path, owner)["token"] for owner in heard}
    policy = POLICY.replace('"workflow.create"', '"action.*" = "low"\n"workflow.create"')
    with guarded(tmp_path, policy) as server:
        options = {"version": "2025-11-25", "log_level": "info"}
        with (
            Client.sync(server.place, token=tokens["ada"], on_log=heard["ada"].append, **options) as ada,
            Client.sync(server.place, token=tokens["bob"], on_log=heard["bob"].append, **options) as bob,
        ):
            found = ran(ada, node("send_message", text="{{ $trigger.text }}"), text="done")
            assert found["output"] == {"to": "log", "count": 1}, found
            eventually(lambda: heard["ada"])
            ran(bob, node("send_message", text="mine"))
            eventually(lambda: heard["bob"])
    assert [each["data"] for each in heard["ada"]] == ["done"]
    assert [each["data"] for each in heard["bob"]] == ["mine"]


def test_a_message_is_posted_to_the_webhook_signed(tmp_path: Path, web: Web) -> None:
    bodies = []

    def hook(visit: Visit) -> None:
        bodies.append(visit.rfile.read(int(visit.headers["content-length"])))
        visit.respond("", "text/plain")

    web.handlers["/hook"] = hook
    message = node("send_message", text="done", to="webhook")
    with served(tmp_path) as client:
        assert ran(client, message)["error"].startswith(
            "do: to: the server has no webhook: --workflow-webhook"
        )
        found = ran(client, {**message, "config": {**message["config"], "to": "callback"}})
        assert found["error"].startswith("do: to: callback needs the tool SetCallback")
    secret = "geheim-geheim-1"
    more = {"FASTRPC_KNOWLEDGE_WEBHOOK": place(web, "/hook"), "FASTRPC_KNOWLEDGE_WEBHOOK_SECRET": secret}
    with served(tmp_path, **more) as client:
        assert ran(client, message)["output"] == {"to": "webhook", "count": 1}
    assert json.loads(bodies[0])["text"] == "done"
    sent = web.headers["/hook"]
    assert sent["x-fastrpc-signature"] == signature_of(
        secret.encode(), sent["x-fastrpc-timestamp"], bodies[0]
    )
