"""The fast path behind the guard: the connection that callers share serves each by its own token and policy.

Two real servers, one with the fast path and one without, are sent the same by two callers on one connection,
stateless and in sessions: answers and records must be the same. Then what may change between two calls: the
policy, a caller's token, its time. A server as its users start it: test_guarded_serving.py.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from support.guarded import guarded, policy_of, shop
from support.http_server import HttpProcess, in_process, tool_server
from support.http_sessions import OTHER_TOKEN, TOKEN, Session, calling, http, stateless_request
from support.protocol import message
from support.raw_http import Answer, Socket

from fastrpc import Context, Server
from fastrpc.callers import Caller
from fastrpc.guard.budgets.file import BudgetFile
from fastrpc.guard.budgets.ledger import Ledger
from fastrpc.guard.guard import Guard
from fastrpc.transports.http.guard import Admission
from fastrpc.transports.http.hot_path import HotPath
from fastrpc.transports.http.shared import SharedConnection

STAFF, GUEST = TOKEN, OTHER_TOKEN
POLICY = """
[expose]
tools = ["*"]

[risk]
"*" = "low"

[classes.staff]
tools = ["*"]
tool_rates = { "limited" = "3/hour" }

[classes.guest]
tools = ["echo", "add", "limited", "seen"]
tool_rates = { "limited" = "2/hour" }

[[rules]]
id = "no-bombs"
tools = ["judged"]
when = 'args.text == "bomb"'
then = "deny"
"""
TOOLS = r"""
import json
from fastrpc import Context, Server, ToolError
from fastrpc.callers import Caller
from fastrpc.guard.guard import Guard, Schemas
from fastrpc.guard.policy import file as policy_file
from fastrpc.guard.policy.decisions import Policy

app = Server("guarded")

@app.tool(run="inline")
def echo(text: str) -> str:
    return text

@app.tool(run="inline")
def add(a: int, b: int = 1) -> int:
    return a + b

@app.tool(run="inline")
def limited() -> str:
    return "there was room"

@app.tool(run="inline")
def judged(text: str) -> str:
    return text

@app.tool(run="inline")
def secret() -> dict[str, int]:
    return {"secret": 1}

@app.tool(run="inline")
def fail(how: str) -> str:
    raise ToolError(how) if how == "on purpose" else ValueError(how)

@app.tool(run="inline")
def who(context: Context) -> str:
    return context.principal

@app.tool
async def later(text: str) -> str:
    return text

class Records:
    wants_content = True

    def __init__(self):
        self.found = []

    def __call__(self, records):
        for each in records:
            if each.name != "seen":
                self.found.append(
                    [each.principal, each.kind, each.name, each.outcome, each.size,
                     each.id.decode(), str(each.arguments), str(each.answer)]
                )

records = Records()

@app.tool(run="inline")
def seen() -> str:
    app.drain_observers()
    return json.dumps(records.found)

guard = Guard(
    Policy(policy_file.read(given["policy"]), Schemas(app)),
    lambda principal: Caller(principal, given["classes"][principal]),
)
guard.install(app)
app.observe(records)
"""


def principal_of(token: str) -> str:
    return sha256(token.encode()).hexdigest()


class Guarded(HttpProcess):
    """A server's process behind a policy, with a caller of either class."""

    def __init__(self, policy: str, hot: bool) -> None:
        classes = {principal_of(STAFF): "staff", principal_of(GUEST): "guest"}
        options = {"token": [STAFF, GUEST]}
        super().__init__(command=tool_server(TOOLS, hot=hot, options=options, policy=policy, classes=classes))

    def ask(self, data: bytes) -> Answer:
        with Socket(self.port) as connection:
            connection.send(data)
            return connection.answer()


def timeless(text: str) -> str:
    """Return a text without the seconds until a rate has room."""
    return re.sub(r"(retry in |retry_after_seconds\W+)\d+", r"\1", text)


@pytest.fixture
def policy(tmp_path: Path) -> str:
    path = tmp_path / "guard.toml"
    path.write_text(POLICY)
    return str(path)


CALLS: list[tuple[str, dict[str, Any]]] = [
    ("echo", {"text": "hello"}),
    ("echo", {"text": "h\u00e4\u6f22"}),
    ("add", {"a": 1}),
    ("add", {"a": 1, "b": 2}),
    ("add", {"a": "1"}),
    ("add", {}),
    ("limited", {}),
    ("judged", {"text": "flowers"}),
    ("judged", {"text": "bomb"}),
    ("secret", {}),
    ("fail", {"how": "on purpose"}),
    ("fail", {"how": "by mistake"}),
    ("who", {}),
    ("later", {"text": "x"}),
    ("nothing", {}),
]
Make = Callable[[str, str, dict[str, Any], int], bytes]


def stateless(server: Any) -> Make:
    def make(token: str, tool: str, arguments: dict[str, Any], id: int) -> bytes:
        return stateless_request("tools/call", {"name": tool, "arguments": arguments}, id, token=token)

    return make


def in_sessions(server: Any) -> Make:
    sessions = {token: Session(server, token=token) for token in (STAFF, GUEST)}

    def make(token: str, tool: str, arguments: dict[str, Any], id: int) -> bytes:
        return sessions[token].request(calling(tool, id, **arguments))

    return make


@pytest.mark.parametrize("wire", [stateless, in_sessions])
def test_two_callers_on_one_connection_get_and_leave_the_same_by_both_paths(
    policy: str, wire: Callable[[Any], Make]
) -> None:
    """Each call comes five times from either, in turns: the gate is open by then, or its rate is used up."""
    found = []
    for hot in (True, False):
        with Guarded(policy, hot) as server, Socket(server.port) as connection:
            make, id, answers = wire(server), 0, []
            for tool, arguments in CALLS:
                for token in (STAFF, GUEST) * 5:
                    id += 1
                    connection.send(make(token, tool, arguments, id))
                    answer = connection.answer()
                    answers.append((answer.status, timeless(answer.body.decode())))
            connection.send(make(STAFF, "seen", {}, 0))
            found.append((answers, json.loads(timeless(connection.answer().text))))
    (hot_answers, hot_records), (cold_answers, cold_records) = found
    assert hot_answers == cold_answers
    assert hot_records == cold_records
    assert {(each[0], each[2]) for each in hot_records if each[3] == "ok"} == {
        *((principal_of(STAFF), tool) for tool, _ in CALLS if tool not in ("fail", "nothing")),
        *((principal_of(GUEST), tool) for tool in ("echo", "add", "limited")),
    }
    assert [each[3] for each in hot_records if each[:3:2] == [principal_of(GUEST), "limited"]] == [
        *["ok"] * 2,
        *["refused"] * 3,
    ]


# --- which way is taken -----------------------------------------------------------------------------------


class Tokens:
    """Who has which token; one that is in `until` is valid until then."""

    def __init__(self) -> None:
        self.principals = {STAFF.encode(): "ada", GUEST.encode(): "eve"}
        self.until: dict[bytes, float] = {}

    def known(self, token: bytes) -> Admission | None:
        principal = self.principals.get(token)
        return None if principal is None else Admission(principal, self.until.get(token))

    async def find(self, token: bytes) -> Admission | None:
        return None


class Way:
    """The fast path of a server in a loop of this process. `alone` counts the requests that had a separate
    connection."""

    def __init__(self, path: HotPath, application: Any, tokens: Tokens) -> None:
        self.path = path
        self.application = application
        self.tokens = tokens
        self.alone = 0
        exchange = application.exchanges.take

        def counted(*arguments: Any) -> Any:
            self.alone += 1
            return exchange(*arguments)

        application.exchanges.take = counted

    def take(self, token: str, tool: str, /, **arguments: Any) -> Any:
        """Return the text of a call's result, or the code of its error; None if it takes the regular path."""
        request = stateless_request("tools/call", {"name": tool, "arguments": arguments}, token=token)
        head, _, body = request.partition(b"\r\n\r\n")
        known = self.path.head(head)
        answer = None if known is None else self.path.answer(known, body, [])
        if answer is None:
            return None
        assert isinstance(answer, bytes)
        said = json.loads(answer.partition(b"\r\n\r\n")[2])
        return said["error"]["code"] if "error" in said else said["result"]["content"][0]["text"]

    def opened(self, token: str, tool: str, /, **arguments: Any) -> None:
        """Have a call be so common that it needs no connection of its own any more."""
        for _ in range(4):
            assert self.take(token, tool, **arguments) is not None
        self.alone = 0
        self.take(token, tool, **arguments)
        assert self.alone == 0


def way(app: Server, scene: Callable[[Way], Any]) -> None:
    async def serve() -> None:
        tokens = Tokens()
        async with in_process(app, token_sources=[tokens]) as server:
            path = HotPath(server.application, asyncio.get_running_loop())
            scene(Way(path, server.application, tokens))
        assert not app.runtime.dispatchers

    asyncio.run(serve())


SHOP = """
[expose]
tools = ["*"]

[risk]
"*" = "low"

[classes.staff]
tools = ["*"]

[classes.guest]
tools = ["search"]
rate = "RATE"
"""


def shop_policy(rate: str = "1000/hour") -> str:
    return SHOP.replace("RATE", rate)


def test_a_call_that_the_policy_plainly_allows_needs_no_separate_connection(tmp_path: Path) -> None:
    app, _ = guarded(tmp_path, shop_policy())

    def scene(way: Way) -> None:
        way.opened(STAFF, "wipe", place="x")
        way.opened(GUEST, "search", text="x")
        for _ in range(5):
            assert way.take(STAFF, "wipe", place="x") == "wiped x"
            assert way.take(GUEST, "search", text="x") == "found x"
            assert way.take(STAFF, "wipe", place="nowhere") == "there is nothing"
        assert way.alone == 0
        assert way.take(GUEST, "wipe", place="x") == -32602, "what staff may call does not exist for a guest"

    way(app, scene)


def test_calls_are_recorded_as_those_of_whose_token_came_with_them(tmp_path: Path) -> None:
    app, _ = guarded(tmp_path, shop_policy())
    seen: list[str] = []
    app.observe(lambda records: seen.extend(each.principal for each in records))

    def scene(way: Way) -> None:
        way.opened(STAFF, "search", text="x")
        way.opened(GUEST, "search", text="x")
        app.drain_observers()
        seen.clear()
        for _ in range(3):
            for token in (STAFF, GUEST):
                way.take(token, "search", text="x")
        assert way.alone == 0
        app.drain_observers()
        assert seen == ["ada", "eve"] * 3

    way(app, scene)


def test_the_rate_of_a_caller_is_its_own_and_a_refusal_takes_nothing_from_it(tmp_path: Path) -> None:
    app, _ = guarded(tmp_path, shop_policy("7/hour"))

    def scene(way: Way) -> None:
        way.opened(GUEST, "search", text="x")  # five of seven
        found = [way.take(GUEST, "search", text="x") for _ in range(12)]
        assert found == ["found x"] * 2 + [429] * 10
        assert [way.take(STAFF, "search", text="x") for _ in range(12)] == ["found x"] * 12

    way(app, scene)


def test_a_budget_is_counted_on_the_shared_connection_too(tmp_path: Path) -> None:
    app = shop()
    file = BudgetFile(str(tmp_path / "budgets"))
    ledger = Ledger(file)
    policy = shop_policy().replace("[risk]", 'budget = ["20 calls/day"]\n[risk]', 1)
    guarded(tmp_path, policy, app, ledger=ledger)
    app.observe(ledger)

    def scene(way: Way) -> None:
        way.opened(GUEST, "search", text="x")
        assert [way.take(GUEST, "search", text="x") for _ in range(10)] == ["found x"] * 10
        assert way.alone == 0
        assert [amount for _, _, _, amount, _ in file.table.entries()] == [15]

    way(app, scene)
    file.close()


def test_another_policy_holds_for_the_next_call_on_the_shared_connection(tmp_path: Path) -> None:
    app, guard = guarded(tmp_path, shop_policy())

    def scene(way: Way) -> None:
        before = guard.policy
        way.opened(GUEST, "search", text="x")
        way.opened(STAFF, "search", text="x")
        other = shop_policy().replace('tools = ["search"]', 'tools = ["order"]')
        guard.use(policy_of(tmp_path, other, app, "other.toml"))
        assert way.take(GUEST, "search", text="x") == -32602
        assert way.take(STAFF, "search", text="x") == "found x"
        assert way.take(GUEST, "order", item="x") == "ordered 1 x"
        way.opened(GUEST, "order", item="x")
        guard.use(before)
        assert way.take(GUEST, "search", text="x") == "found x"
        assert way.take(GUEST, "order", item="x") == -32602
        way.opened(GUEST, "search", text="x")

    way(app, scene)


def test_a_rule_of_another_policy_is_asked_about_the_next_call(tmp_path: Path) -> None:
    """What exists stays the same: no plan changes, only the gate is closed."""
    app, guard = guarded(tmp_path, shop_policy())

    def scene(way: Way) -> None:
        way.opened(GUEST, "search", text="x")
        rule = '[[rules]]\ntools = ["search"]\nwhen = \'args.text == "bomb"\'\nthen = "deny"\n'
        guard.use(policy_of(tmp_path, shop_policy() + rule, app, "other.toml"))
        assert way.take(GUEST, "search", text="bomb") == 403
        assert [way.take(GUEST, "search", text="x") for _ in range(5)] == ["found x"] * 5
        assert way.alone == 1, "only the one of which the rule may hold"

    way(app, scene)


def test_a_caller_whose_token_has_changed_is_another_one_with_the_next_call(tmp_path: Path) -> None:
    app = shop()
    classes = {"ada": "staff", "eve": "guest"}
    policy = policy_of(tmp_path, shop_policy(), app)
    guard = Guard(policy, lambda principal: Caller(principal, classes[principal]))
    guard.install(app)

    def scene(way: Way) -> None:
        way.opened(STAFF, "wipe", place="x")
        way.opened(GUEST, "search", text="x")
        classes["ada"] = "guest"
        guard.forget(frozenset({"ada"}))
        assert way.take(STAFF, "wipe", place="x") == -32602
        assert way.take(STAFF, "search", text="x") == "found x"
        classes["eve"] = ""  # what is left of a revoked token
        guard.forget(frozenset({"eve"}))
        assert way.take(GUEST, "search", text="x") == -32602
        classes["ada"] = "staff"
        guard.forget(frozenset({"ada"}))
        assert way.take(STAFF, "wipe", place="x") == "wiped x"

    way(app, scene)


def test_a_token_that_expires_between_two_calls_is_asked_about_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, _ = guarded(tmp_path, shop_policy())
    now = 1000.0
    monkeypatch.setattr("fastrpc.transports.http.remembered.monotonic", lambda: now)

    def scene(way: Way) -> None:
        nonlocal now
        way.tokens.until[STAFF.encode()] = 1010.0
        way.opened(STAFF, "search", text="x")
        way.opened(GUEST, "search", text="x")
        now = 1010.0
        del way.tokens.principals[STAFF.encode()]
        assert way.take(STAFF, "search", text="x") is None, "the regular path refuses it"
        assert way.take(GUEST, "search", text="x") == "found x"
        way.tokens.principals[STAFF.encode()] = "eve"
        way.tokens.until[STAFF.encode()] = 2000.0
        assert way.take(STAFF, "wipe", place="x") == -32602, "it is another caller's now"

    way(app, scene)


def test_a_tool_that_is_taken_away_and_comes_back_is_decided_about_anew(tmp_path: Path) -> None:
    app, _ = guarded(tmp_path, shop_policy())

    def scene(way: Way) -> None:
        way.opened(GUEST, "search", text="x")
        app.remove_tool("search")
        assert way.take(GUEST, "search", text="x") in (None, -32602)

        @app.tool(run="inline")
        def search(text: str) -> str:
            return f"{text} by another"

        assert way.take(GUEST, "search", text="x") == "x by another"
        assert way.take(GUEST, "wipe", place="x") == -32602

    way(app, scene)


def test_what_a_guard_has_to_look_at_or_needs_a_context_has_a_separate_connection(tmp_path: Path) -> None:
    app, _ = guarded(tmp_path, shop_policy())
    asked: list[str] = []

    @app.tool(run="inline")
    def who(context: Context) -> str:
        return context.principal

    def scene(way: Way) -> None:
        assert {way.take(STAFF, "who") for _ in range(4)} == {"ada"}
        assert way.alone == 4
        app.guard(lambda call: asked.append(call.principal))  # behind the policy's
        assert {way.take(GUEST, "search", text="x") for _ in range(4)} == {"found x"}
        assert way.alone == 8
        assert asked == ["eve"] * 4

    way(app, scene)


def test_what_the_shared_connection_cannot_serve_is_offered_to_it_ever_more_rarely(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = shop()
    missed = 0
    dispatch = SharedConnection.dispatch

    def counted(shared: SharedConnection, message: Any) -> None:
        nonlocal missed
        missed += 1
        dispatch(shared, message)

    monkeypatch.setattr(SharedConnection, "dispatch", counted)

    @app.tool(run="inline")
    def who(context: Context) -> str:
        return context.principal

    def scene(way: Way) -> None:
        found = []
        for number in range(500):
            before = missed
            assert way.take(STAFF, "who") == "ada"
            found += [number] * (missed - before)
        assert found == [0, 2, 5, 10, 19, 36, 69, 134, 235, 336, 437]

    way(app, scene)


def test_in_sessions_the_connection_of_their_version_serves_each_caller_as_its_own(tmp_path: Path) -> None:
    app, guard = guarded(tmp_path, shop_policy())
    seen: list[tuple[str, str]] = []
    app.observe(lambda records: seen.extend((each.principal, each.outcome) for each in records))

    def scene(way: Way) -> None:
        sessions: dict[str, Any] = {}
        for token, principal in ((STAFF, "ada"), (GUEST, "eve")):
            session = way.application.sessions.open(principal, asyncio.get_running_loop())
            exchange = session.exchange()
            opening = {"protocolVersion": "2025-11-25", "capabilities": {}}
            exchange.receive(json.dumps(message("initialize", opening, 0)).encode())
            exchange.receive(json.dumps(message("notifications/initialized")).encode())
            session.put_back(exchange)
            sessions[token] = session
            session.own = session.exchange

        def take(token: str, tool: str, /, **arguments: Any) -> Any:
            asked = {"mcp_session_id": sessions[token].id, "mcp_protocol_version": "2025-11-25"}
            request = http(body=calling(tool, **arguments), token=token, **asked)
            head, _, body = request.partition(b"\r\n\r\n")
            known = way.path.head(head)
            answer = None if known is None else way.path.answer(known, body, [])
            if answer is None:
                return None
            assert isinstance(answer, bytes)
            said = json.loads(answer.partition(b"\r\n\r\n")[2])
            return said["error"]["code"] if "error" in said else said["result"]["content"][0]["text"]

        for _ in range(4):
            take(STAFF, "wipe", place="x")
            take(GUEST, "search", text="x")
        for session in sessions.values():  # an exchange of its own is not made any more
            session.exchange = None
        app.drain_observers()
        seen.clear()
        for _ in range(3):
            assert take(STAFF, "wipe", place="x") == "wiped x"
            assert take(GUEST, "search", text="x") == "found x"
        app.drain_observers()
        assert seen == [("ada", "ok"), ("eve", "ok")] * 3
        for session in sessions.values():
            session.exchange = session.own
        assert take(GUEST, "wipe", place="x") == -32602
        other = '[expose]\ntools = ["wipe"]\n[risk]\n"*" = "low"\n'
        guard.use(policy_of(tmp_path, other, app, "other.toml"))
        assert take(GUEST, "search", text="x") == -32602
        assert take(STAFF, "wipe", place="x") == "wiped x"
        way.tokens.principals[STAFF.encode()] = "eve"
        guard.forget(frozenset({"ada"}))
        assert take(STAFF, "wipe", place="x") is None, "the session is another caller's now"

    way(app, scene)


def test_what_an_enforced_filter_hides_from_a_caller_is_not_called_for_it_either() -> None:
    """Without a guard: each call of these tools is its function and nothing else."""
    app = shop()
    staff = {"ada"}
    app.filter_lists(
        lambda is_staff, item: is_staff or item.name == "search",
        classify=lambda principal: principal in staff,
        enforced=True,
    )

    def scene(way: Way) -> None:
        way.opened(STAFF, "wipe", place="x")
        way.opened(GUEST, "search", text="x")
        for _ in range(3):
            assert way.take(STAFF, "wipe", place="x") == "wiped x"
            assert way.take(GUEST, "wipe", place="x") == -32602
        staff.clear()
        app.lists_changed()
        assert way.take(STAFF, "wipe", place="x") == -32602
        staff.add("eve")
        app.lists_changed()
        assert way.take(GUEST, "wipe", place="x") == "wiped x"
        way.opened(GUEST, "wipe", place="x")

    way(app, scene)
