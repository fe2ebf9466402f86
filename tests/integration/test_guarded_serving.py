"""`fastrpc serve --guard`: real processes over stdio and HTTP, tokens, changes of the file, the audit log."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from hashlib import sha256
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from support.access_control import BOTH, INITIALIZE, Caller
from support.agent_tools import EFFECTS
from support.guarded_folder import fastrpc, records, variables
from support.http_server import FASTRPC, HttpProcess
from support.http_sessions import stateless_request
from support.raw_http import Answer, Socket
from support.rewriting import rewrite
from support.waiting import eventually

from fastrpc import Client
from fastrpc.client.sync import SyncClient
from fastrpc.errors import HttpStatusError, RemoteError

TOOLS = """
import os
from fastrpc import Server

app = Server("shop")

@app.tool(effect="read")
def search(text: str) -> str:
    return f"found {text} by {os.getpid()}"

@app.tool(effect="write")
def order(item: str, count: int = 1) -> str:
    return f"ordered {count} {item}"

@app.tool(effect="exec")
def wipe(place: str) -> str:
    return f"wiped {place}"

@app.tool(effect="read")
def environment() -> str:
    return "\\n".join(f"{name}={value}" for name, value in os.environ.items())
"""
HELLO = json.dumps(
    {
        "jsonrpc": "2.0",
        "id": 0,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        },
    }
)
GUARD = """
[expose]
tools = ["*"]

[approvals]
hold_seconds = 0.2
editable = ["wipe"]

[classes.agent]
tools = ["search", "order"]
rate = "60/hour"

[[rules]]
id = "small-orders"
tools = ["order"]
when = "args.count > 10"
then = "deny"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(TOOLS)
    (tmp_path / "guard.toml").write_text(GUARD)
    return tmp_path


def over_stdio(folder: Path, **more: str) -> SyncClient:
    command = [*FASTRPC, "serve", "shop.py:app", "--guard", "guard.toml"]
    return Client.sync(command, cwd=str(folder), env=variables(folder, **more))


def over_http(folder: Path, *options: str, **more: str) -> HttpProcess:
    command = ("serve", "shop.py:app", "--guard", "guard.toml", "--http", "127.0.0.1:0", *options)
    return HttpProcess(*command, folder=folder, environment=variables(folder, **more))


def outcome(client: SyncClient, tool: str, **arguments: Any) -> Any:
    try:
        return client.call_tool(tool, arguments).text
    except RemoteError as error:
        return error.code


def test_over_stdio_the_user_is_the_caller_and_every_call_is_in_an_audit_that_verifies(folder: Path) -> None:
    with over_stdio(folder) as client:
        assert outcome(client, "search", text="x").startswith("found x")
        assert outcome(client, "order", item="x", count=11) == 403
        assert "is waiting for the approval of a person" in outcome(client, "wipe", place="x")
        assert outcome(client, "nothing") == -32602
    found = records(folder)
    assert {each["actor"] for each in found} == {f"os:{_user()}"}
    assert sorted((each["tool"], each["outcome"], each.get("decision")) for each in found) == [
        ("nothing", "unknown", "deny"),
        ("order", "refused", "deny"),
        ("search", "ok", "allow"),
        ("wipe", "asked", None),
        ("wipe", "refused", "deny"),
    ]
    (denied,) = [each for each in found if each["tool"] == "order"]
    assert (denied["rule"], denied["why"], denied["risk"]) == ("small-orders", "not_allowed", "medium")
    assert denied["policy"] == next(each["policy"] for each in found if each["tool"] == "search")
    assert len(denied["arguments"]["sha256"]) == 64
    (allowed,) = [each for each in found if each["tool"] == "search"]
    assert (allowed["risk"], allowed["action"]) == ("none", "tools/call")
    assert isinstance(allowed["request"], int)
    assert "verified: 1 chains" in fastrpc(folder, "audit", "verify")


def test_the_first_answers_wait_for_no_import_that_only_approvals_rules_or_the_loop_need(
    tmp_path: Path,
) -> None:
    """A call that runs inline, in the same write as the handshake: before any quiet moment."""
    source = (
        'import sys\nfrom fastrpc import tool\n\n@tool(run="inline", effect="read")\ndef where() -> str:\n'
    )
    (tmp_path / "shop.py").write_text(source + '    return " ".join(sys.modules)\n')
    (tmp_path / "guard.toml").write_text('[expose]\ntools = ["*"]\nrate = "60/minute"\n')
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "where", "arguments": {}}}
    for _ in range(2):  # the first one makes a key, and compiles what is not compiled
        done = subprocess.run(
            [*FASTRPC, "serve", "shop.py", "--guard", "guard.toml"],
            cwd=tmp_path,
            env=variables(tmp_path),
            input=f'{HELLO}\n{{"jsonrpc":"2.0","method":"notifications/initialized"}}\n{json.dumps(call)}\n',
            capture_output=True,
            text=True,
            timeout=60,
        )
    modules = set(json.loads(done.stdout.splitlines()[1])["result"]["content"][0]["text"].split())
    assert "fastrpc.guard.audit.log" in modules
    needless = {"asyncio", "logging", "socket", "tempfile", "concurrent.futures"}
    needless |= {"fastrpc.guard.cel.expression", "fastrpc.guard.approvals.asking", "fastrpc.human_input"}
    assert needless & modules == set()


def is_hash_of(found: dict[str, str], content: bytes) -> bool:
    return sha256(bytes.fromhex(found["salt"]) + content).hexdigest() == found["sha256"]


@pytest.mark.parametrize("is_http", [False, True])
def test_the_record_of_a_call_has_the_hashes_of_what_came_and_of_what_went_out(
    folder: Path, is_http: bool
) -> None:
    trace = "0af7651916cd43dd8448eb211c80319c"
    arguments = b'{ "item":"x" , "count": 2}'
    params = b'"name":"order","_meta":{"traceparent":"00-%b-b7ad6b7169203331-01"},"arguments":%b'
    call = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{%b}}'
    line = call % (params % (trace.encode(), arguments))
    if is_http:
        with over_http(folder, "--no-auth") as server:
            connection = HTTPConnection("127.0.0.1", server.port)
            headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
            headers |= {"mcp-protocol-version": "2025-06-18"}
            connection.request("POST", "/mcp", HELLO.encode(), headers)
            opened = connection.getresponse()
            opened.read()
            headers["mcp-session-id"] = opened.headers["mcp-session-id"]
            connection.request("POST", "/mcp", line, headers)
            answer = connection.getresponse().read().removeprefix(b"event: message\ndata: ").strip()
            connection.close()
            assert server.stop() == 0
    else:
        command = [*FASTRPC, "serve", "shop.py:app", "--guard", "guard.toml"]
        sent = b"%b\n%b\n" % (HELLO.encode(), line)
        done = subprocess.run(
            command, cwd=folder, env=variables(folder), input=sent, capture_output=True, timeout=60
        )
        answer = done.stdout.splitlines()[1]
    (record,) = records(folder)
    assert is_hash_of(record["arguments"], arguments)
    assert is_hash_of(record["result"], answer.partition(b'"result":')[2][:-1])
    assert (record["request"], record["trace"], record["outcome"]) == (7, trace, "ok")
    assert record["arguments"]["salt"] != record["result"]["salt"]


def _user() -> str:
    import pwd

    return pwd.getpwuid(os.geteuid()).pw_name


def test_the_log_has_the_key_that_the_file_names_and_sends_checkpoints_where_it_says(folder: Path) -> None:
    audit = f"""
[audit]
folder = "{folder}/log"
key_file = "{folder}/key.pem"
keep_bytes = 100_000_000

[[audit.targets]]
folder = "{folder}/other"
"""
    (folder / "guard.toml").write_text(GUARD + audit)
    with over_stdio(folder) as client:
        outcome(client, "search", text="x")
    options = ("--folder", "log", "--public-key", "key.pem.pub", "--checkpoint", "other/checkpoints.jsonl")
    assert "verified: 1 chains" in fastrpc(folder, "audit", "verify", *options)
    (folder / "key.pem").chmod(0o644)
    said = fastrpc(folder, "serve", "shop.py:app", "--guard", "guard.toml", code=2)
    assert "guard.toml, line 19: audit: " in said
    assert "others may read it" in said


def test_over_stdio_a_token_in_the_environment_is_the_caller_and_no_tool_sees_it(folder: Path) -> None:
    token = fastrpc(folder, "token", "create", "--owner", "ada", "--class", "agent").strip()
    with over_stdio(folder, FASTRPC_TOKEN=token) as client:
        assert [tool["name"] for tool in client.list_tools()] == ["search", "order"]
        assert outcome(client, "wipe", place="x") == -32602
        fastrpc(folder, "token", "revoke", token.split("_")[1])
        eventually(lambda: outcome(client, "search", text="x") == -32602)
        assert client.list_tools() == []
    other = fastrpc(folder, "token", "create", "--owner", "eve", "--class", "operator").strip()
    with over_stdio(folder, FASTRPC_TOKEN=other) as client:
        assert "frpc_" not in outcome(client, "environment")
    assert "eve" in {each["actor"].partition("#")[0] for each in records(folder)}


def test_over_http_tokens_have_the_lists_of_their_class_and_a_revoked_one_is_refused_by_every_worker(
    folder: Path,
) -> None:
    agent = fastrpc(folder, "token", "create", "--owner", "ada", "--class", "agent").strip()
    operator = fastrpc(folder, "token", "create", "--owner", "grace", "--class", "operator").strip()
    with over_http(folder, "--workers", "2") as server:
        url = f"http://127.0.0.1:{server.port}/mcp"
        with Client.sync(url, token=agent) as ada, Client.sync(url, token=operator) as grace:
            assert [tool["name"] for tool in ada.list_tools()] == ["search", "order"]
            assert {tool["name"] for tool in grace.list_tools()} == {"search", "order", "wipe", "environment"}
            assert outcome(ada, "order", item="x", count=11) == 403
            assert outcome(ada, "wipe", place="x") == -32602
            assert "frpc_" not in outcome(grace, "environment")
            fastrpc(folder, "token", "revoke", agent.split("_")[1])

            def is_refused() -> bool:
                try:
                    outcome(ada, "search", text="x")
                except HttpStatusError as error:
                    return error.status == 401
                return False

            eventually(lambda: all(is_refused() for _ in range(8)))  # by whichever worker
            assert outcome(grace, "search", text="x").startswith("found x")
        assert server.stop() == 0
    assert agent not in server.stderr
    assert "verified" in fastrpc(folder, "audit", "verify")


def test_on_a_connection_that_is_kept_two_tokens_are_two_callers_and_a_change_holds_for_the_next_call(
    folder: Path,
) -> None:
    policy = '[expose]\ntools = ["*"]\n[classes.agent]\ntools = ["search"]\n[classes.operator]\n'
    (folder / "guard.toml").write_text(policy)
    agent = fastrpc(folder, "token", "create", "--owner", "ada", "--class", "agent").strip()
    operator = fastrpc(folder, "token", "create", "--owner", "grace", "--class", "operator").strip()
    with over_http(folder, "--access-log", "log") as server:
        with Socket(server.port) as connection:

            def ask(token: str, tool: str, **arguments: Any) -> Answer:
                connection.send(
                    stateless_request("tools/call", {"name": tool, "arguments": arguments}, token=token)
                )
                return connection.answer()

            for _ in range(50):
                assert "found x" in ask(agent, "search", text="x").text
                assert ask(agent, "order", item="x").code == -32602
                assert ask(operator, "order", item="x").text == "ordered 1 x"
            rewrite(folder / "guard.toml", policy.replace("search", "order"))
            eventually(lambda: "error" in ask(agent, "search", text="x").json)
            assert ask(agent, "order", item="x").text == "ordered 1 x"
            assert "found x" in ask(operator, "search", text="x").text
            fastrpc(folder, "token", "revoke", agent.split("_")[1])
            eventually(lambda: ask(agent, "order", item="x").status == 401)
        with Socket(server.port) as connection:
            assert ask(operator, "order", item="x").text == "ordered 1 x"
        assert server.stop() == 0
    assert "verified" in fastrpc(folder, "audit", "verify")
    lines = [line.split() for line in (folder / "log").read_text().splitlines()]
    logged = [(line[2].partition("#")[0], *line[4:7]) for line in lines]
    of_ada = [("ada", "search", "200", "ok"), ("ada", "order", "400", "unknown")]
    assert logged[:150] == [*of_ada, ("grace", "order", "200", "ok")] * 50


def test_the_workers_of_a_server_count_the_calls_of_a_caller_together(folder: Path) -> None:
    (folder / "guard.toml").write_text(GUARD.replace("60/hour", "30/hour"))
    token = fastrpc(folder, "token", "create", "--owner", "ada", "--class", "agent").strip()

    async def calls(url: str) -> list[tuple[str, Any]]:
        async def one(number: int) -> tuple[str, Any]:
            async with Client(url, token=token) as client:
                try:
                    return "found", (await client.call_tool("search", {"text": "x"})).text.split()[-1]
                except RemoteError as error:
                    return "refused", (error.code, error.data["reason"])

        return [await one(number) for number in range(60)]

    with over_http(folder, "--workers", "4") as server:
        found = asyncio.run(calls(f"http://127.0.0.1:{server.port}/mcp"))
        assert server.stop() == 0
    assert 30 <= sum(kind == "found" for kind, _ in found) <= 33
    assert len({process for kind, process in found if kind == "found"}) > 1, "several workers have answered"
    assert {facts for kind, facts in found if kind == "refused"} == {(429, "rate_limit")}


@pytest.mark.parametrize("more", [(), ("Origin: http://localhost",)])  # the fast path, and the regular one
def test_over_http_a_refusal_by_rate_says_when_to_call_again_in_retry_after(
    folder: Path, more: tuple[str, ...]
) -> None:
    (folder / "guard.toml").write_text('[expose]\ntools = ["*"]\nrate = "2/hour"\n')
    words = '{"text":"\\"retry_after_seconds\\":7"}'
    with over_http(folder, "--no-auth") as server:
        caller = Caller(server.port)
        opened = caller.ask("POST", "/mcp", *BOTH, *more, body=INITIALIZE)
        session = f"Mcp-Session-Id: {opened.headers['mcp-session-id']}"
        params = b'{"name":"search","arguments":%b}' % words.encode()
        body = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":%b}' % params

        def stateless() -> Answer:
            return caller.call("search", *more, arguments=words)

        def in_session() -> Answer:
            return caller.ask("POST", "/mcp", *BOTH, *more, session, body=body)

        for ask in (stateless, in_session):
            answer = ask()
            assert "found" in answer.json["result"]["content"][0]["text"]
            assert "retry-after" not in answer.headers
        for ask, code in ((stateless, 429), (in_session, -32004)):
            answer = ask()
            assert (answer.status, answer.json["error"]["code"]) == (200, code)
            assert answer.headers["retry-after"] == str(answer.json["error"]["data"]["retry_after_seconds"])
        assert server.stop() == 0


def test_a_change_of_the_file_holds_while_it_serves_and_a_broken_one_changes_nothing(folder: Path) -> None:
    with over_http(folder, "--no-auth") as server:
        with Client.sync(f"http://127.0.0.1:{server.port}/mcp") as client:
            assert outcome(client, "search", text="x").startswith("found x")
            rewrite(folder / "guard.toml", GUARD.replace('tools = ["*"]', 'tools = ["order"]'))
            eventually(lambda: outcome(client, "search", text="x") == -32602)
            rewrite(folder / "guard.toml", "[expose]\ntols = []\n")
            eventually(lambda: "the former policy stays in use" in server.stderr)
            assert "line 2: expose.tols: no such key (did you mean tools?)" in server.stderr
            assert outcome(client, "order", item="x") == "ordered 1 x"
            rewrite(folder / "guard.toml", GUARD)
            eventually(lambda: outcome(client, "search", text="x") != -32602)
        assert server.stop() == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "[clases.agent]\n",
            "guard.toml, line 1: clases: no such key (did you mean classes, claims, callers?)",
        ),
        (
            GUARD.replace("args.count", "args.cuont"),
            "the tool order has no such argument (did you mean count?)",
        ),
        (
            GUARD.replace('["order"]\nwhen', '["ordr"]\nwhen'),
            "rules[0].tools: there is no tool ordr (did you mean order?)",
        ),
        ("nonsense", "not TOML"),
    ],
)
@pytest.mark.parametrize("options", [(), ("--http", "127.0.0.1:0", "--no-auth")])
def test_a_mistake_is_refused_at_the_start(
    folder: Path, text: str, said: str, options: tuple[str, ...]
) -> None:
    (folder / "guard.toml").write_text(text)
    assert said in fastrpc(folder, "serve", "shop.py:app", "--guard", "guard.toml", *options, code=2)


def test_a_transport_that_the_file_does_not_enable_is_refused(folder: Path) -> None:
    (folder / "mcp-server.json").write_text('{"transports": {"streamableHttp": {"enabled": true}}}')
    said = fastrpc(folder, "serve", "shop.py:app", "--guard", "mcp-server.json", code=2)
    assert "transports: stdio is not enabled" in said


def test_the_official_client_is_asked_for_an_approval_by_its_own_form(folder: Path) -> None:
    mcp = pytest.importorskip("mcp", reason="the official SDK is not installed: pip install mcp")
    from mcp.client.stdio import StdioServerParameters, stdio_client

    asked: list[str] = []

    async def answer(context: Any, params: Any) -> Any:
        asked.append(params.message)
        accepts = "the attic" in params.message
        return mcp.types.ElicitResult(
            action="accept" if accepts else "decline", content={} if accepts else None
        )

    async def converse() -> tuple[str, Any]:
        command = StdioServerParameters(
            command=sys.executable,
            args=["-m", "fastrpc", "serve", "shop.py:app", "--guard", "guard.toml"],
            cwd=str(folder),
            env=variables(folder),
        )
        async with (
            stdio_client(command) as (reading, writing),
            mcp.ClientSession(reading, writing, elicitation_callback=answer) as session,
        ):
            await session.initialize()
            allowed = await session.call_tool("wipe", {"place": "the attic"})
            with pytest.raises(Exception) as refused:  # noqa: PT011 the SDK's own class differs by version
                await session.call_tool("wipe", {"place": "the cellar"})
            return allowed.content[0].text, refused.value

    text, refused = asyncio.run(asyncio.wait_for(converse(), 60))
    assert text == "wiped the attic"
    assert "was not approved" in str(refused)
    assert len(asked) == 2
    assert "Risk: high" in asked[0]
    kinds = [each["outcome"] for each in records(folder)]
    assert sorted(kinds) == ["approved", "asked", "asked", "ok", "refused", "rejected", "used"]


def test_check_shows_what_each_class_may_call_and_try_judges_a_call(folder: Path) -> None:
    table = fastrpc(folder, "guard", "check", "guard.toml", "shop.py:app")
    rows = {line.split()[0]: line.split() for line in table.splitlines() if line}
    assert rows["wipe"] == ["wipe", "high", "asks", "asks", "hidden"]
    assert "guard.toml is valid" in table
    arguments = ("guard", "try", "guard.toml", "order", "item=x", "--target", "shop.py:app")
    said = fastrpc(folder, *arguments, "count=11", code=1)
    assert "would be refused" in said
    assert "args.count = 11" in said
    judged = json.loads(fastrpc(folder, *arguments, "count=10", "--as", "agent", "--json"))
    assert (judged["decision"], judged["risk"], judged["class"]) == ("allow", "medium", "agent")
    assert "did you mean 'agent'" in fastrpc(folder, *arguments, "--as", "agnt", code=2)


def test_commands_that_start_a_server_guard_it_as_they_name(folder: Path) -> None:
    guarded = ("--guard", "guard.toml", "shop.py")
    order = ("call", *guarded, "order", "item=pen")
    assert fastrpc(folder, *order, "count=3") == "ordered 3 pen\n"
    assert "order is not allowed (rule small-orders) (403)" in fastrpc(folder, *order, "count=11", code=1)
    assert fastrpc(folder, "call", "shop.py", "order", "item=pen", "count=11") == "ordered 11 pen\n"
    found = [(each["tool"], each["outcome"], each["actor"]) for each in records(folder)]
    assert found == [("order", "ok", f"os:{_user()}"), ("order", "refused", f"os:{_user()}")]
    (folder / "guard.toml").write_text('[expose]\ntools = ["search"]\n')
    assert re.findall(r"^  (\w+)", fastrpc(folder, "list", *guarded), re.MULTILINE) == ["search"]
    elsewhere = fastrpc(folder, "list", "http://127.0.0.1:9/mcp", *guarded[:2], code=2)
    assert "--guard: requires a file or module, not http://127.0.0.1:9/mcp" in elsewhere


def test_try_and_why_tell_of_the_risk_that_a_rule_has_set_and_another_has_read(folder: Path) -> None:
    rules = """
[[rules]]
id = "no-critical"
when = "tool.risk == 'critical'"
then = "deny"
[[rules]]
id = "bulk"
tools = ["order"]
when = "args.count > 5"
risk = "critical"
"""
    (folder / "guard.toml").write_text(GUARD + rules)
    arguments = ("guard", "try", "guard.toml", "order", "item=x", "--target", "shop.py:app")
    said = fastrpc(folder, *arguments, "count=6", code=1)
    assert "risk: critical by the rule bulk\nRule: no-critical\n" in said
    assert "tool.risk = 'critical'" in said
    assert json.loads(fastrpc(folder, *arguments, "count=5", "--json"))["risk_rule"] == ""
    with over_stdio(folder) as client:
        assert outcome(client, "order", item="x", count=6) == 403
    (record,) = records(folder)
    said = fastrpc(folder, "guard", "why", record["id"], "guard.toml")
    assert "Why: not_allowed; risk critical" in said
    assert '  tool.risk = "critical"\n' in said
    second = (
        rules.split("[[rules]]")[2].replace("bulk", "again").replace("args.count > 5", "tool.risk == 'low'")
    )
    (folder / "guard.toml").write_text(f"{GUARD}{rules}[[rules]]{second}")
    said = fastrpc(folder, "guard", "check", "guard.toml", "shop.py:app", code=2)
    assert "rules[3].when: it reads tool.risk, which the rule bulk sets, too" in said


def test_why_explains_a_refusal_from_its_record_and_says_what_has_changed_since(folder: Path) -> None:
    with over_stdio(folder) as client:
        assert outcome(client, "order", item="x", count=11) == 403
        assert outcome(client, "ordr", item="x") == -32602
        assert outcome(client, "search", text="x").startswith("found")
    found = {each["tool"]: each["id"] for each in records(folder)}
    said = fastrpc(folder, "guard", "why", found["order"], "guard.toml")
    assert "Rule small-orders (deny): args.count > 10\n  args.count > 10 is true\n  args.count = 11\n" in said
    assert "each line by itself:\n  args.count <= 10\n" in said
    assert ", as guard.toml is now" in said

    (folder / "guard.toml").write_text(GUARD.replace("> 10", "> 100"))
    said = fastrpc(folder, "guard", "why", found["order"], "guard.toml")
    assert "each line by itself:\n  args.count <= 10\n" in said, "it is explained as it was"
    assert "guard.toml has changed since" in said
    assert "the rule is another one" in said
    as_json = json.loads(fastrpc(folder, "guard", "why", found["order"], "--json"))
    (way,) = as_json["rule"]["ways"]
    assert way == {"needs": ["args.count <= 10"], "paths": ["args.count"], "example": {"args.count": 10}}

    (folder / "guard.toml").write_text(GUARD.replace('["*"]', '["order"]'))
    said = fastrpc(folder, "guard", "why", found["ordr"], "guard.toml")
    assert "expose.tools does not have it; the nearest is order" in said
    assert "by itself" not in fastrpc(folder, "guard", "why", found["search"])
    assert "no record audit_0" in fastrpc(folder, "guard", "why", "audit_0", code=1)
    said = fastrpc(folder, "guard", "why", "audit_0", "--as", "x", code=2)
    assert "guard why: --as is not an option of this action" in said
    said = fastrpc(folder, "guard", "check", "guard.toml", "--folder", "x", code=2)
    assert "guard check: --folder is not an option of this action" in said
    assert "at most one file" in fastrpc(folder, "guard", "why", "audit_0", "a", "b", code=2)


def test_the_servers_of_a_gateway_are_guarded_by_its_guard(folder: Path) -> None:
    server = {"command": sys.executable, "args": ["-m", "fastrpc", "serve", "shop.py:app"]}
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"shop": server}}))
    text = GUARD.replace('tools = ["*"]', 'tools = ["shop_*"]').replace('["order"]', '["shop_order"]')
    text += '[risk]\n"shop_[so]*" = "low"\n[classes.local]\n'
    text += 'tools = ["shop_search", "shop_order", "shop_environment"]\n'
    (folder / "guard.toml").write_text(text)
    command = [*FASTRPC, "gateway", "mcp.json", "--guard", "guard.toml"]
    with Client.sync(command, cwd=str(folder), env=variables(folder)) as client:
        names = {tool["name"] for tool in client.list_tools()}
        assert names == {"shop_search", "shop_order", "shop_environment"}
        asked = outcome(client, "shop_environment")
        assert "is waiting for the approval" in asked, "what another server's tool does is not known"
        assert outcome(client, "shop_search", text="x").startswith("found x")
        assert outcome(client, "shop_order", item="x", count=10) == "ordered 10 x"
        assert outcome(client, "shop_order", item="x", count=11) == 403
        assert outcome(client, "shop_wipe", place="x") == -32602


AGENT_POLICY = os.path.join(os.path.dirname(__file__), "..", "..", "examples", "agent-guard.toml")


def test_the_shipped_policy_for_an_agent_asks_before_commands_and_for_nothing_else(folder: Path) -> None:
    found = json.loads(fastrpc(folder, "guard", "check", AGENT_POLICY, "--json"))
    words = {each["tool"]: each["local"] for each in found["tools"]}
    assert list(words) == list(EFFECTS)
    assert {tool for tool, word in words.items() if word == "asks"} == {"BackgroundBash"}
    assert words["Bash"] == "asks, by rules"
    assert {word.partition(",")[0] for word in words.values()} == {"asks", "allowed"}


def test_the_shipped_policy_lets_an_agent_read_by_commands_and_asks_before_others(folder: Path) -> None:
    asked: list[str] = []

    def decline(params: dict[str, Any]) -> bool:
        asked.append(params["message"])
        return False

    command = [*FASTRPC, "serve", "--guard", AGENT_POLICY]
    with Client.sync(command, cwd=str(folder), env=variables(folder), on_elicit=decline) as client:
        assert "guard.toml\nshop.py" in outcome(client, "Bash", command="ls")
        assert "app = Server" in outcome(client, "Bash", command="grep -rn 'app =' . | head -5 2>/dev/null")
        assert asked == []
        for line in ("rm shop.py", "ls; rm shop.py", "ls $(rm shop.py)", "echo > shop.py", "find . -delete"):
            assert outcome(client, "Bash", command=line) == 403
    assert len(asked) == 5
    assert "rm shop.py" in asked[0]
    assert (folder / "shop.py").read_text() == TOOLS


@pytest.mark.parametrize("is_http", [False, True])
def test_no_tool_sees_the_url_of_the_database(folder: Path, is_http: bool) -> None:
    url = f"sqlite:///{folder}/elsewhere.sqlite3"
    if is_http:
        with over_http(folder, "--no-auth", FASTRPC_GUARD_DATABASE=url) as server:
            with Client.sync(f"http://127.0.0.1:{server.port}/mcp") as client:
                seen = outcome(client, "environment")
            assert server.stop() == 0
    else:
        with over_stdio(folder, FASTRPC_GUARD_DATABASE=url) as client:
            seen = outcome(client, "environment")
    assert "PATH=" in seen
    assert "elsewhere" not in seen
    assert (folder / "elsewhere.sqlite3").exists()
