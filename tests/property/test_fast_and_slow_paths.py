"""What the fast paths remember ends when it should: they answer as a server that remembers nothing.

A server is changed at random moments, between requests and while a tool runs, in each way that
docs/architecture.md lists: tools, resources, templates and prompts come, go and change, those of a mounted
server too; callers get another class, of the guard or of a filter, with or without a word; filters show other
things; the policy and its rules change; rates are used up; tokens are revoked and get other scopes; hooks,
guards, observers and notes come late and go. Meanwhile the same requests come by all ways at once: over three
connections of each caller, one of them in batches, one that callers use in turn, and over HTTP, stateless and
in sessions, by the fast path. Each answer must be that of a server made anew from the same state, on a
connection that has done nothing yet. FASTRPC_CHANGES says how many changes, FASTRPC_SEED which.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.http_server import InProcess, in_process
from support.http_sessions import http, stateless_request
from support.in_memory import ENVELOPE, RawConversation
from support.protocol import message

from fastrpc import CallInfo, Context, ListItem, Server, ToolError
from fastrpc._core.rate_limiter import RateTable
from fastrpc.callers import Caller
from fastrpc.definitions.completion import key_of
from fastrpc.guard.guard import Guard, Schemas
from fastrpc.guard.policy import file as policy_file
from fastrpc.guard.policy.decisions import Policy
from fastrpc.protocol.versions import LATEST_SESSION_VERSION, STATELESS
from fastrpc.transports.http.guard import Admission
from fastrpc.transports.http.hot_path import HotPath
from fastrpc.transports.http.pending_response import PendingResponse

SEED = int(os.environ.get("FASTRPC_SEED", "1"))
CHANGES = int(os.environ.get("FASTRPC_CHANGES", "60"))
PRINCIPALS = ("ada", "eve")
MOUNTED = "part_"
TOOLS = ("plain", "context", "coroutine", "thread", "other", f"{MOUNTED}plain", f"{MOUNTED}coroutine")
TOPICS, TOPIC = "docs://topics/{of}", "docs://topics/trees"
NAMES = (*TOOLS, "docs://page", TOPICS, "greet")
BATCHED = "2025-03-26"
TEAMS = ("staff", "guest")
UNAUTHORIZED = "unauthorized"


class State:
    """All that an answer depends on."""

    def __init__(self, chance: random.Random, has_guard: bool, has_filter: bool) -> None:
        self.has_guard = has_guard
        self.has_filter = has_filter
        self.texts = dict.fromkeys(NAMES, "first")  # what each entry says; one that is missing there is not
        self.takes_number = False  # whether the parameter of `other` is an integer
        self.teams = {principal: chance.choice(TEAMS) for principal in PRINCIPALS}  # of the filter
        self.classes = {principal: chance.choice(TEAMS) for principal in PRINCIPALS}  # of the guard
        self.hidden: dict[str, set[str]] = {"staff": set(), "guest": set(chance.sample(NAMES, 3))}
        self.denied: dict[str, set[str]] = {team: set() for team in TEAMS}
        self.bomb = "bomb"  # the argument that a rule denies
        self.tokens = set(PRINCIPALS)
        self.scopes: dict[str, tuple[str, ...]] = dict.fromkeys(PRINCIPALS, ())
        self.limited = ""  # the tool of which the guard lets each caller make one call in an hour
        self.hooked = ""  # the tool in front of which a hook refuses
        self.guarded: str | None = None  # the tool that a second guard refuses, which may come later
        self.has_observer = False
        self.is_appended = False  # whether a hook adds to results
        self.note = ""

    def policy(self) -> str:
        parts = ["[expose]", 'tools = ["*"]', 'resources = ["*"]', 'prompts = ["*"]', "[risk]", '"*" = "low"']
        for team, denied in self.denied.items():
            tools = ["zzz_alter", *(each for each in TOOLS if each not in denied)]
            parts += [f"[classes.{team}]", f"tools = {json.dumps(tools)}"]
            uris = {"docs://page": "docs://page", TOPICS: "docs://topics/*"}
            parts.append(f"resources = {json.dumps([uris[each] for each in uris if each not in denied])}")
            parts.append("prompts = []" if "greet" in denied else 'prompts = ["*"]')
            if self.limited:
                parts.append(f'tool_rates = {{ "{self.limited}" = "1/hour" }}')
        parts += ["[[rules]]", 'id = "s"', f'tools = ["{MOUNTED}plain"]', 'then = "deny"']
        parts.append("""when = '"few" in caller.scopes'""")
        parts += ["[[rules]]", 'id = "r"', 'tools = ["plain"]', 'then = "deny"']
        parts.append(f"""when = 'args.text == "{self.bomb}"'""")
        return "\n".join(parts)


class Subject:
    """A server in some state. What changes the one changes the other. `rates`: what callers have used."""

    def __init__(self, state: State, folder: Path, rates: RateTable) -> None:
        self.state = state
        self.folder = folder
        self.rates = rates
        self.app = Server("shop")
        self.part = Server("part")
        self.app.mount(self.part, MOUNTED.rstrip("_"))
        self.pending: Callable[[], object] | None = None  # what the tool `change` does
        for name in state.texts:
            self.add(name)
        self.guard: Guard | None = None
        if state.has_guard:
            self.guard = Guard(self.policy(), self.caller_of, rates=rates)
            self.guard.install(self.app)
        if state.has_filter:
            self.app.filter_lists(
                lambda team, item: self.shows(team, item),
                lambda principal: state.teams.get(principal, "guest"),
                enforced=True,
            )
        self.app.before(self.refuse)
        if state.guarded is not None:
            self.app.guard(self.refuse_late)
        if state.has_observer:
            self.app.observe(list)
        if state.is_appended:
            self.app.after(self.append)
        self.app.set_note((lambda: [state.note]) if state.note else None)

    def caller_of(self, principal: str) -> Caller:
        state = self.state
        return Caller(
            principal, state.classes.get(principal, "guest"), scopes=state.scopes.get(principal, ())
        )

    def shows(self, team: str, item: ListItem) -> bool:
        name = item.uri or item.name
        return (TOPICS if name == TOPIC else name) not in self.state.hidden[team]

    def policy(self) -> Policy:
        path = self.folder / "guard.toml"
        path.write_text(self.state.policy())
        return Policy(policy_file.read(str(path)), Schemas(self.app))

    def refuse(self, call: CallInfo) -> None:
        if call.name == self.state.hooked:
            raise ToolError("refused by a hook")

    def refuse_late(self, call: CallInfo) -> None:
        if call.name == self.state.guarded:
            raise ToolError("refused by a guard that came later")

    @staticmethod
    def append(call: CallInfo, result: Any) -> Any:
        return f"{result} appended"

    def add(self, name: str) -> None:
        """Add an entry that says what the state has for it."""
        text, own = self.state.texts[name], name.removeprefix(MOUNTED)
        app = self.app if own == name else self.part

        def said(text: str = "") -> str:
            return f"{self.state.texts.get(name)} {text}"

        def counted(text: int = 0) -> str:
            return f"{self.state.texts.get(name)} number {text}"

        def page() -> str:
            return text

        def topic(of: str) -> str:
            return f"{text} {of}"

        def completed(value: str) -> list[str]:
            return [text]

        async def awaited(text: str = "") -> str:
            return said(text)

        def asked(context: Context, text: str = "") -> str:
            return f"{context.principal} {said(text)}"

        if name == "docs://page":
            app.resource(name, run="inline")(page)
        elif name == "greet":
            app.prompt(name=name, run="inline")(said)
        elif name == TOPICS:
            app.resource(name, run="inline")(topic)
            app.complete(name, "of")(completed)
        elif own == "coroutine":
            app.tool(name=own, description=text)(awaited)
        elif name == "context":
            app.tool(name=name, run="inline", description=text)(asked)
        elif name == "thread":
            app.tool(name=name, run="thread", description=text)(said)
        elif name == "other" and self.state.takes_number:
            app.tool(name=name, run="inline", description=text)(counted)
        else:
            app.tool(name=own, run="inline", description=text)(said)

    def remove(self, name: str) -> None:
        if name.startswith(MOUNTED):
            self.part.remove_tool(name.removeprefix(MOUNTED))
        elif name in ("docs://page", TOPICS):
            if name == TOPICS:
                self.app.registries.completions.remove(key_of(name, "of"))
            self.app.remove_resource(name)
        elif name == "greet":
            self.app.remove_prompt(name)
        else:
            self.app.remove_tool(name)


# --- changes ----------------------------------------------------------------------------------------------


def change(subject: Subject, chance: random.Random) -> tuple[str, Callable[[], object]]:
    """Return a random change of a server and its state, and its name. It is not made yet."""
    state, app, guard = subject.state, subject.app, subject.guard
    name, principal = chance.choice(NAMES), chance.choice(PRINCIPALS)
    team, version = chance.choice(TEAMS), chance.randrange(1_000_000)

    def replaced() -> None:
        if name in state.texts:
            subject.remove(name)
            del state.texts[name]  # what comes anew comes last
        state.texts[name] = f"text {version}"
        subject.add(name)

    def removed() -> None:
        if state.texts.pop(name, None) is not None:
            subject.remove(name)

    def retyped() -> None:
        if "other" in state.texts:
            subject.remove("other")
            del state.texts["other"]
        state.texts["other"] = f"typed {version}"
        state.takes_number = not state.takes_number
        subject.add("other")

    def another_team() -> None:
        state.teams[principal] = team

    def hidden() -> None:
        state.hidden[team] ^= {name}
        app.lists_changed()

    def another_class() -> None:
        state.classes[principal] = team
        if guard is not None:
            guard.forget(frozenset({principal}))

    def denied() -> None:
        state.denied[team] ^= {name}
        if guard is not None:
            guard.use(subject.policy())

    def another_rule() -> None:
        state.bomb = chance.choice(("bomb", "fish"))
        if guard is not None:
            guard.use(subject.policy())

    def revoked() -> None:
        if guard is not None:  # which says so; tokens of other sources are known for a second, or not at all
            state.tokens ^= {principal}
            guard.forget(frozenset({principal}))

    def hooked() -> None:
        state.hooked = chance.choice(("", *TOOLS))

    def noted() -> None:
        state.note = chance.choice(("", f"note {version}"))
        app.set_note((lambda: [state.note]) if state.note else None)

    def rescoped() -> None:
        state.scopes[principal] = chance.choice(((), ("few",)))
        if guard is not None:
            guard.forget(frozenset({principal}))

    def limited() -> None:
        state.limited = chance.choice(("", *TOOLS))
        if guard is not None:
            guard.use(subject.policy())

    def guarded() -> None:
        if state.guarded is None:
            app.guard(subject.refuse_late)
        state.guarded = chance.choice(("", *TOOLS))

    def observed() -> None:
        if not state.has_observer:
            app.observe(list)
        state.has_observer = True

    def appended() -> None:
        if state.is_appended:
            app.remove_hook(subject.append)
        else:
            app.after(subject.append)
        state.is_appended = not state.is_appended

    late = [rescoped, limited, guarded, observed, appended, hooked, noted]
    changes = [replaced, removed, retyped, another_team, hidden, another_class, denied, another_rule, revoked]
    made = chance.choice([*changes, another_team, another_team, *late])
    return f"{made.__name__} {name} {principal} {team}", made


# --- requests ---------------------------------------------------------------------------------------------

REQUESTS: list[tuple[str, dict[str, Any]]] = [
    *(
        ("tools/call", {"name": name, "arguments": {"text": text}})
        for name in TOOLS
        for text in ("a", "bomb", 7)
    ),
    ("tools/call", {"name": "nothing", "arguments": {}}),
    ("tools/list", {}),
    ("resources/list", {}),
    ("resources/read", {"uri": "docs://page"}),
    ("resources/read", {"uri": TOPIC}),
    ("resources/templates/list", {}),
    (
        "completion/complete",
        {"ref": {"type": "ref/resource", "uri": TOPICS}, "argument": {"name": "of", "value": "t"}},
    ),
    ("prompts/list", {}),
    ("prompts/get", {"name": "greet", "arguments": {"text": "x"}}),
]

Ask = Callable[[str, str, dict[str, Any]], Any]


def of(params: dict[str, Any], version: str) -> dict[str, Any]:
    return {**params, "_meta": ENVELOPE} if version == STATELESS else dict(params)


class Line:
    """A connection in memory, for one principal or for several in turn."""

    def __init__(self, app: Server, version: str, *, fresh: bool = False, in_batches: bool = False) -> None:
        self.in_batches = in_batches
        self.peer = RawConversation(app, version)
        self.peer.dispatcher.loop_runs(asyncio.get_running_loop())
        self.id = 0
        if fresh:  # nothing is planned yet: the first request goes to the dispatcher
            self.peer.connection.take_plans({})

    async def ask(self, principal: str, method: str, params: dict[str, Any]) -> Any:
        self.id += 1
        if self.peer.dispatcher.principal != principal:
            self.peer.dispatcher.principal = principal
        request = {
            "jsonrpc": "2.0",
            "id": self.id,
            "method": method,
            "params": of(params, self.peer.version),
        }
        ping = {"jsonrpc": "2.0", "id": -self.id, "method": "ping"}
        self.peer.send(json.dumps([request, ping] if self.in_batches else request).encode())
        return answer_in(await asyncio.wait_for(self.peer.answer(self.id), 60))


def answer_in(answer: dict[str, Any]) -> Any:
    return {name: answer[name] for name in ("result", "error") if name in answer}


class Tokens:
    """Whose token is valid: it bears the name of its principal."""

    def __init__(self, state: State) -> None:
        self.state = state

    def known(self, token: bytes) -> Admission | None:
        principal = token.decode().removeprefix("a-token-of-")
        return Admission(principal, None) if principal in self.state.tokens else None

    async def find(self, token: bytes) -> Admission | None:
        return None


class Http:
    """A server over HTTP, asked by its fast path where that answers, else by the other."""

    def __init__(self, server: InProcess) -> None:
        self.server = server
        self.path = HotPath(server.application, asyncio.get_running_loop())
        self.sessions: dict[str, str] = {}
        self.fast = 0

    async def open(self, principal: str) -> None:
        """Begin a session."""
        begin = {
            "protocolVersion": LATEST_SESSION_VERSION,
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        }
        named = {
            "authorization": f"Bearer a-token-of-{principal}",
            "accept": "application/json, text/event-stream",
        }
        _, _, headers = await self.server.ask("POST", "/mcp", message("initialize", begin, id=1), **named)
        self.sessions[principal] = headers[b"mcp-session-id"].decode()
        named |= {"mcp-session-id": self.sessions[principal], "mcp-protocol-version": LATEST_SESSION_VERSION}
        await self.server.ask("POST", "/mcp", message("notifications/initialized"), **named)

    async def stateless(self, principal: str, method: str, params: dict[str, Any]) -> Any:
        return await self.send(stateless_request(method, params, token=f"a-token-of-{principal}"))

    async def in_session(self, principal: str, method: str, params: dict[str, Any]) -> Any:
        return await self.send(
            http(
                body=message(method, params, id=1),
                token=f"a-token-of-{principal}",
                mcp_session_id=self.sessions[principal],
                mcp_protocol_version=LATEST_SESSION_VERSION,
            )
        )

    async def send(self, request: bytes) -> Any:
        head, _, body = request.partition(b"\r\n\r\n")
        known = self.path.head(head)
        found = None if known is None else self.path.answer(known, body, [])
        if isinstance(found, PendingResponse):
            ended = asyncio.Event()
            found.on_message(ended.set)
            if found.waits:
                await asyncio.wait_for(ended.wait(), 60)
            answered = found.answer()
            assert answered is not None, "a message before the answer"
            return answer_in(json.loads(answered[1]))
        if found is not None:
            self.fast += 1
            return answer_in(json.loads(found.partition(b"\r\n\r\n")[2]))
        named = dict(line.decode().split(": ", 1) for line in head.split(b"\r\n")[1:])
        status, answer, _ = await self.server.ask(
            "POST", "/mcp", body, **{name.lower(): value for name, value in named.items()}
        )
        return UNAUTHORIZED if status == 401 else answer_in(answer)


# --- both -------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("seed", range(SEED, SEED + 4))
@pytest.mark.parametrize(
    ("has_guard", "has_filter"), [(False, True), (True, False), (True, True), (False, False)]
)
def test_every_way_answers_as_a_server_that_remembers_nothing(
    tmp_path: Path, seed: int, has_guard: bool, has_filter: bool
) -> None:
    chance = random.Random(seed * 10 + 2 * has_guard + has_filter)
    state = State(chance, has_guard, has_filter)

    async def talk() -> None:
        subject = Subject(state, tmp_path, RateTable())

        @subject.app.tool(run="inline")
        def zzz_alter() -> str:
            assert subject.pending is not None
            subject.pending()
            return "altered"

        alterer = Line(subject.app, STATELESS)
        async with in_process(subject.app, token_sources=[Tokens(state)]) as server:
            fast = Http(server)
            for principal in PRINCIPALS:
                await fast.open(principal)
            turns = Line(subject.app, STATELESS)
            ways: list[tuple[str, bool, dict[str, Ask]]] = [
                (version, False, {each: Line(subject.app, version).ask for each in PRINCIPALS})
                for version in (STATELESS, LATEST_SESSION_VERSION)
            ]
            batches = {each: Line(subject.app, BATCHED, in_batches=True).ask for each in PRINCIPALS}
            ways.append((BATCHED, False, batches))
            ways.append((STATELESS, False, dict.fromkeys(PRINCIPALS, turns.ask)))
            ways.append((STATELESS, True, dict.fromkeys(PRINCIPALS, fast.stateless)))
            ways.append((LATEST_SESSION_VERSION, True, dict.fromkeys(PRINCIPALS, fast.in_session)))
            made: list[str] = []
            for _ in range(CHANGES):
                await compare(subject, chance, ways, made)
                name, subject.pending = change(subject, chance)
                made.append(name)
                if chance.random() < 0.3:  # while a tool runs
                    await alterer.ask("ada", "tools/call", {"name": "zzz_alter", "arguments": {}})
                else:
                    subject.pending()
            assert fast.fast, "nothing took the fast path"
        subject.app.runtime.dispatchers.clear()

    asyncio.run(talk())


def without_numbers(answer: Any) -> Any:
    return re.sub(r"\d+", "N", json.dumps(answer))


async def compare(
    subject: Subject, chance: random.Random, ways: list[tuple[str, bool, dict[str, Ask]]], made: list[str]
) -> None:
    """Ask some requests by each way, some of them more than once: what is learned is learned."""
    new = Subject(subject.state, subject.folder, subject.rates)
    limited = subject.state.limited
    for principal in PRINCIPALS if limited else ():  # no one has calls left
        await Line(new.app, STATELESS).ask(principal, "tools/call", {"name": limited, "arguments": {}})
    for method, params in chance.sample(REQUESTS, 3):
        principal = chance.choice(PRINCIPALS)
        for version, needs_token, asks in ways:
            wanted = await Line(new.app, version, fresh=True).ask(principal, method, params)
            if needs_token and principal not in subject.state.tokens:
                wanted = UNAUTHORIZED
            for _ in range(chance.choice((1, 2, 4))):
                found = await asks[principal](principal, method, params)
                if method == "tools/list" and found != UNAUTHORIZED:
                    tools = found["result"]["tools"]
                    found["result"]["tools"] = [each for each in tools if each["name"] != "zzz_alter"]
                is_equal = found == wanted
                if limited and params.get("name") == limited:  # the answer says for how long
                    is_equal = without_numbers(found) == without_numbers(wanted)
                assert is_equal, (found, wanted, version, principal, method, params, made[-5:])
    new.app.runtime.dispatchers.clear()
