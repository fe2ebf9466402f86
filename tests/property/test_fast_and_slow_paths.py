"""What the fast paths remember ends when it should: they answer as a server that remembers nothing.

A server is changed at random moments, between requests and while a tool runs, in each way that
docs/architecture.md lists: tools, resources and prompts come, go and change; callers get another class, of
the guard or of a filter, with or without a word; filters show other things; the policy and its rules change;
tokens are revoked; hooks and notes come and go. Meanwhile the same requests come by all ways at once: over
two connections of each caller, one that callers use in turn, and over HTTP, stateless and in sessions, by the
fast path. Each answer must be that of a server made anew from the same state, on a connection that has done
nothing yet. FASTRPC_CHANGES says how many changes, FASTRPC_SEED which.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.http_server import InProcess, in_process
from support.http_sessions import http, modern
from support.in_memory import ENVELOPE, RawConversation
from support.protocol import message

from fastrpc import CallInfo, Context, ListItem, Server, ToolError
from fastrpc.callers import Caller
from fastrpc.guard.guard import Guard, Schemas
from fastrpc.guard.policy import file as policy_file
from fastrpc.guard.policy.decisions import Policy
from fastrpc.protocol.versions import LATEST_LEGACY, MODERN
from fastrpc.transports.http.guard import Admission
from fastrpc.transports.http.hot_path import HotPath
from fastrpc.transports.http.pending_response import PendingResponse

SEED = int(os.environ.get("FASTRPC_SEED", "1"))
CHANGES = int(os.environ.get("FASTRPC_CHANGES", "60"))
PRINCIPALS = ("ada", "eve")
TOOLS = ("plain", "context", "coroutine", "thread", "other")
NAMES = (*TOOLS, "docs://page", "greet")
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
        self.hooked = ""  # the tool in front of which a hook refuses
        self.note = ""

    def policy(self) -> str:
        parts = ["[expose]", 'tools = ["*"]', 'resources = ["*"]', 'prompts = ["*"]', "[risk]", '"*" = "low"']
        for team, denied in self.denied.items():
            tools = ["zzz_alter", *(each for each in TOOLS if each not in denied)]
            parts += [f"[classes.{team}]", f"tools = {json.dumps(tools)}"]
            parts.append("resources = []" if "docs://page" in denied else 'resources = ["docs://*"]')
            parts.append("prompts = []" if "greet" in denied else 'prompts = ["*"]')
        parts += ["[[rules]]", 'id = "r"', 'tools = ["plain"]', 'then = "deny"']
        parts.append(f"""when = 'args.text == "{self.bomb}"'""")
        return "\n".join(parts)


class Subject:
    """A server in some state. What changes the one changes the other."""

    def __init__(self, state: State, folder: Path) -> None:
        self.state = state
        self.folder = folder
        self.app = Server("shop")
        self.pending: Callable[[], object] | None = None  # what the tool `change` does
        for name in state.texts:
            self.add(name)
        self.guard: Guard | None = None
        if state.has_guard:
            self.guard = Guard(
                self.policy(), lambda principal: Caller(principal, state.classes.get(principal, "guest"))
            )
            self.guard.install(self.app)
        if state.has_filter:
            self.app.filter_lists(
                lambda team, item: self.shows(team, item),
                lambda principal: state.teams.get(principal, "guest"),
                enforced=True,
            )
        self.app.before(self.refuse)
        self.app.set_note((lambda: [state.note]) if state.note else None)

    def shows(self, team: str, item: ListItem) -> bool:
        return (item.uri or item.name) not in self.state.hidden[team]

    def policy(self) -> Policy:
        path = self.folder / "guard.toml"
        path.write_text(self.state.policy())
        return Policy(policy_file.read(str(path)), Schemas(self.app))

    def refuse(self, call: CallInfo) -> None:
        if call.name == self.state.hooked:
            raise ToolError("refused by a hook")

    def add(self, name: str) -> None:
        """Add an entry that says what the state has for it."""
        app, text = self.app, self.state.texts[name]

        def said(text: str = "") -> str:
            return f"{self.state.texts.get(name)} {text}"

        def counted(text: int = 0) -> str:
            return f"{self.state.texts.get(name)} number {text}"

        def page() -> str:
            return text

        async def awaited(text: str = "") -> str:
            return said(text)

        def asked(context: Context, text: str = "") -> str:
            return f"{context.principal} {said(text)}"

        if name == "docs://page":
            app.resource(name, run="inline")(page)
        elif name == "greet":
            app.prompt(name=name, run="inline")(said)
        elif name == "coroutine":
            app.tool(name=name, description=text)(awaited)
        elif name == "context":
            app.tool(name=name, run="inline", description=text)(asked)
        elif name == "thread":
            app.tool(name=name, run="thread", description=text)(said)
        elif name == "other" and self.state.takes_number:
            app.tool(name=name, run="inline", description=text)(counted)
        else:
            app.tool(name=name, run="inline", description=text)(said)

    def remove(self, name: str) -> None:
        remove = {"docs://page": self.app.remove_resource, "greet": self.app.remove_prompt}
        remove.get(name, self.app.remove_tool)(name)


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

    changes = [replaced, removed, retyped, another_team, hidden, another_class, denied, another_rule, revoked]
    made = chance.choice([*changes, another_team, another_team, hooked, noted])
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
    ("prompts/list", {}),
    ("prompts/get", {"name": "greet", "arguments": {"text": "x"}}),
]

Ask = Callable[[str, str, dict[str, Any]], Any]


def of(params: dict[str, Any], version: str) -> dict[str, Any]:
    return {**params, "_meta": ENVELOPE} if version == MODERN else dict(params)


class Line:
    """A connection in memory, for one principal or for several in turn."""

    def __init__(self, app: Server, version: str, *, fresh: bool = False) -> None:
        self.peer = RawConversation(app, version)
        self.peer.dispatcher.loop_runs(asyncio.get_running_loop())
        self.id = 0
        if fresh:  # nothing is planned yet: the first request goes to the dispatcher
            self.peer.connection.take_plans({})

    async def ask(self, principal: str, method: str, params: dict[str, Any]) -> Any:
        self.id += 1
        if self.peer.dispatcher.principal != principal:
            self.peer.dispatcher.principal = principal
        self.peer.say({"id": self.id, "method": method, "params": of(params, self.peer.version)})
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
            "protocolVersion": LATEST_LEGACY,
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        }
        named = {
            "authorization": f"Bearer a-token-of-{principal}",
            "accept": "application/json, text/event-stream",
        }
        _, _, headers = await self.server.ask("POST", "/mcp", message("initialize", begin, id=1), **named)
        self.sessions[principal] = headers[b"mcp-session-id"].decode()
        named |= {"mcp-session-id": self.sessions[principal], "mcp-protocol-version": LATEST_LEGACY}
        await self.server.ask("POST", "/mcp", message("notifications/initialized"), **named)

    async def stateless(self, principal: str, method: str, params: dict[str, Any]) -> Any:
        return await self.send(modern(method, params, token=f"a-token-of-{principal}"))

    async def in_session(self, principal: str, method: str, params: dict[str, Any]) -> Any:
        return await self.send(
            http(
                body=message(method, params, id=1),
                token=f"a-token-of-{principal}",
                mcp_session_id=self.sessions[principal],
                mcp_protocol_version=LATEST_LEGACY,
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
        subject = Subject(state, tmp_path)

        @subject.app.tool(run="inline")
        def zzz_alter() -> str:
            assert subject.pending is not None
            subject.pending()
            return "altered"

        alterer = Line(subject.app, MODERN)
        async with in_process(subject.app, token_sources=[Tokens(state)]) as server:
            fast = Http(server)
            for principal in PRINCIPALS:
                await fast.open(principal)
            turns = Line(subject.app, MODERN)
            ways: list[tuple[str, bool, dict[str, Ask]]] = [
                (version, False, {each: Line(subject.app, version).ask for each in PRINCIPALS})
                for version in (MODERN, LATEST_LEGACY)
            ]
            ways.append((MODERN, False, dict.fromkeys(PRINCIPALS, turns.ask)))
            ways.append((MODERN, True, dict.fromkeys(PRINCIPALS, fast.stateless)))
            ways.append((LATEST_LEGACY, True, dict.fromkeys(PRINCIPALS, fast.in_session)))
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


async def compare(
    subject: Subject, chance: random.Random, ways: list[tuple[str, bool, dict[str, Ask]]], made: list[str]
) -> None:
    """Ask some requests by each way, some of them more than once: what is learned is learned."""
    new = Subject(subject.state, subject.folder)
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
                assert found == wanted, (version, principal, method, params, made[-5:])
    new.app.runtime.dispatchers.clear()
