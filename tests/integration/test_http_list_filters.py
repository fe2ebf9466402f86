"""Lists of two callers over HTTP, on real sockets: no way that requests take shows one the other's list.

Each test runs with and without the straight way (`fastrpc.transports.http.hot_path`), whose shared connection
serves both callers; other requests have connections that the next caller's requests use again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import pytest
from support.http_server import HttpProcess, tool_server
from support.http_sessions import OTHER_TOKEN, TOKEN, Server, Session, http, stateless_request
from support.protocol import SESSION_VERSIONS, message
from support.raw_http import Socket
from support.stdio import serve

TOOLS = r"""
import json
from fastrpc import ListItem, Server

app = Server("shop", page_size=2, cache_scope="public")
if given["names"]:
    given["options"]["token"] = given["names"].get
asked = 0
staff = {given["staff"]}

def act() -> str:
    return "called"

for name in ("open_0", "secret_0", "open_1", "secret_1", "open_2"):
    app.tool(name=name, run="inline")(act)
for uri in ("docs://open", "docs://secret"):
    app.add_resource(uri, "text")

@app.prompt
def secret_prompt(word: str) -> str:
    return word

@app.tool(run="inline")
def count_asked() -> str:
    return str(asked)

@app.tool(run="inline")
def promote(principal: str) -> str:
    staff.add(principal)
    app.lists_changed()
    return "promoted"

def team_of(principal: str) -> str:
    return "staff" if principal in staff else "guest"

def shows(team: str, item: ListItem) -> bool:
    global asked
    asked += 1
    return team == "staff" or "secret" not in (item.uri or item.name)

def filter_lists() -> str:
    app.filter_lists(shows, classify=team_of)
    return "filtered"

if given["late"]:
    app.tool(run="inline")(filter_lists)
else:
    filter_lists()
"""
OPEN = ["open_0", "open_1", "open_2", "count_asked", "promote"]
ALL = ["open_0", "secret_0", "open_1", "secret_1", "open_2", "count_asked", "promote"]
CALLERS = ((TOKEN, ALL), (OTHER_TOKEN, OPEN))
ROUNDS = 5


class Shop(Server):
    """A server whose first caller sees everything, and the second what is not secret."""

    def __init__(self, way: str, *, late: bool = False) -> None:
        self.principals = [hashlib.sha256(token.encode()).hexdigest() for token in (TOKEN, OTHER_TOKEN)]
        names: dict[str, str] = {}
        if way == "asked":
            self.principals = ["ada", "bob"]
            names = {TOKEN: "ada", OTHER_TOKEN: "bob"}
        command = tool_server(
            TOOLS,
            hot=way != "cold",
            options={"token": [TOKEN, OTHER_TOKEN]},
            names=names,
            staff=self.principals[0],
            late=late,
        )
        HttpProcess.__init__(self, command=command)


WAYS = ("hot", "cold", "asked")
"""With the straight way, without it, and with a function that is asked each time whose a token is."""


@pytest.fixture(params=WAYS)
def shop(request: pytest.FixtureRequest) -> Iterator[Shop]:
    with Shop(request.param) as server:
        yield server


def names_of(ask: Any) -> list[str]:
    """Return the names of all tools, page by page; `ask` makes a request's answer of its params."""
    found: list[str] = []
    params: dict[str, Any] = {}
    while True:
        result = ask(params)["result"]
        found += [tool["name"] for tool in result["tools"]]
        if "nextCursor" not in result:
            return found
        params = {"cursor": result["nextCursor"]}


def test_stateless_requests_of_two_callers_see_their_own_lists(shop: Shop) -> None:
    with Socket(shop.port) as connection:
        for _ in range(ROUNDS):
            for token, expected in CALLERS:

                def ask(params: dict[str, Any], token: str = token) -> Any:
                    connection.send(stateless_request("tools/list", params, token=token))
                    answer = connection.answer()
                    assert answer.json["result"]["cacheScope"] == "private"
                    return answer.json

                assert names_of(ask) == expected


def test_sessions_of_two_callers_see_their_own_lists(shop: Shop) -> None:
    sessions = [(Session(shop, token=token), expected) for token, expected in CALLERS]
    for _ in range(ROUNDS):
        for session, expected in sessions:

            def ask(params: dict[str, Any], session: Session = session) -> Any:
                return session.post(message("tools/list", params, 1)).json

            assert names_of(ask) == expected


@pytest.mark.parametrize("version", SESSION_VERSIONS)
def test_requests_without_a_session_see_their_callers_lists(shop: Shop, version: str) -> None:
    for _ in range(ROUNDS):
        for token, expected in CALLERS:

            def ask(params: dict[str, Any], token: str = token) -> Any:
                body = message("tools/list", params, 1)
                return shop.ask(http(body=body, token=token, mcp_protocol_version=version)).json

            assert names_of(ask) == expected


def test_other_lists_and_hints_are_the_callers_own(shop: Shop) -> None:
    for _ in range(ROUNDS):
        for token, is_staff in ((TOKEN, True), (OTHER_TOKEN, False)):
            resources = shop.ask(stateless_request("resources/list", token=token)).json["result"]["resources"]
            assert [each["uri"] for each in resources] == ["docs://open", "docs://secret"][: 1 + is_staff]
            prompts = shop.ask(stateless_request("prompts/list", token=token)).json["result"]["prompts"]
            assert [each["name"] for each in prompts] == ["secret_prompt"][: int(is_staff)]
            for call in (
                stateless_request("tools/call", {"name": "secret_9"}, token=token),
                http(
                    body=message("tools/call", {"name": "secret_9"}, 1),
                    token=token,
                    mcp_protocol_version=SESSION_VERSIONS[-1],
                ),
            ):
                text = shop.ask(call).json["error"]["message"]
                assert ("did you mean secret" in text) is is_staff, text


def test_a_filter_is_asked_once_for_each_class_however_its_callers_come(shop: Shop) -> None:
    sessions = [Session(shop, token=token) for token, _ in CALLERS]
    for _ in range(ROUNDS):
        for token, _ in CALLERS:
            shop.ask(stateless_request("tools/list", token=token))
        for session in sessions:
            session.post(message("tools/list", {}, 1))
    assert shop.call("count_asked") == str(2 * len(ALL))


def test_a_caller_that_is_promoted_is_notified_and_sees_more(shop: Shop) -> None:
    wanted = {"notifications": {"toolsListChanged": True}}
    with shop.open(stateless_request("subscriptions/listen", wanted, token=OTHER_TOKEN)) as stream:
        assert stream.message()["method"] == "notifications/subscriptions/acknowledged"
        shop.call("promote", principal=shop.principals[1])
        assert stream.message()["method"] == "notifications/tools/list_changed"
    assert (
        names_of(lambda params: shop.ask(stateless_request("tools/list", params, token=OTHER_TOKEN)).json)
        == ALL
    )


@pytest.mark.parametrize("way", WAYS)
def test_a_filter_that_is_added_while_the_server_runs_holds_at_once(way: str) -> None:
    with Shop(way, late=True) as shop, Socket(shop.port) as connection:
        session = Session(shop, token=OTHER_TOKEN)

        def lists() -> list[str]:
            connection.send(stateless_request("tools/list", token=OTHER_TOKEN))
            stateless = connection.answer().json
            in_session = session.post(message("tools/list", {}, 1)).json
            return [tool["name"] for answer in (stateless, in_session) for tool in answer["result"]["tools"]]

        for _ in range(ROUNDS):
            assert lists() == ["open_0", "secret_0"] * 2
        assert shop.call("filter_lists") == "filtered"
        for _ in range(ROUNDS):
            assert lists() == ["open_0", "open_1"] * 2


def test_over_stdio_there_is_one_class() -> None:
    given: dict[str, Any] = {"names": {}, "staff": "ada", "late": False}
    source = f"given = {given}\n{TOOLS}\napp.run()\n"
    with serve(source) as server:
        server.initialize(SESSION_VERSIONS[-1])
        for _ in range(ROUNDS):
            assert names_of(lambda params: server.request("tools/list", params)) == OPEN
        server.send_message(message("tools/call", {"name": "secret_9"}, "x"))
        assert server.answer()["error"]["message"] == "Unknown tool: secret_9"
        assert server.call("count_asked")["content"][0]["text"] == str(len(ALL))
