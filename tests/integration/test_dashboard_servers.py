"""The dashboard's servers and tools: what they show, and calls that a person makes there as himself."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import current_thread, main_thread

import pytest
from support.dashboard_browser import Browser
from support.dashboard_shop import Shop
from support.guarded_folder import fastrpc, records
from support.waiting import eventually

from fastrpc import Server
from fastrpc.dashboard import behind
from fastrpc.dashboard.access import SignInStore
from fastrpc.dashboard.app import Dashboard
from fastrpc.dashboard.language import LANGUAGES
from fastrpc.dashboard.serving import ServingProcess
from fastrpc.dashboard.view import Sources
from fastrpc.storage.database import Database
from fastrpc.transports.http.guard import AccessRules

pytest_plugins = ["support.guard_database"]
TOOLS = """
import asyncio
from typing import Literal
from fastrpc import Context, Server

app = Server("shop")

@app.tool(risk="low")
def order(item: str, count: int, price: float = 1.5, gift: bool = False,
          size: Literal["small", "large"] = "small", tags: list[str] | None = None,
          place: dict[str, int] | None = None) -> dict[str, object]:
    "Order \\u202esomething <script>alert(1)</script>.\\n\\nSecond line."
    return {"item": item, "count": count, "price": price, "gift": gift, "size": size, "tags": tags,
            "place": place}

@app.tool(risk="low")
def echo(text: str) -> str:
    "Echo."
    return text

@app.tool(risk="low")
async def whoami(ctx: Context) -> str:
    "Who calls?"
    return f"{ctx.principal} {ctx.caller.owner} {ctx.caller.caller_class}"

@app.tool(risk="low")
def fail(why: str) -> str:
    "Fail."
    raise ValueError(why)

@app.tool(effect="exec", risk="critical")
def wipe(place: str) -> str:
    "Wipe a place."
    return f"wiped {place}"

@app.tool(risk="low")
def secret() -> str:
    "Nobody may call it."
    return "secret"

@app.tool(risk="low")
async def ask(ctx: Context) -> str:
    "Ask."
    return str((await ctx.elicit("your name?", str)).data)

if __name__ == "__main__":
    app.run()
"""
GUARD = """
[defaults]
unknown_risk = "low"
[expose]
tools = ["order", "echo", "whoami", "fail", "wipe", "ask", "a_*"]
[audit]
mode = "group"
"""
HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(2)>\u202e'


def counted(count: int) -> dict[str, int]:
    """Return a count."""
    return {"count": count}


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    found = Shop(tmp_path, TOOLS, GUARD)
    with found.begin("--stats"):
        yield found


def call(browser: Browser, tool: str, **typed: str) -> str:
    """Fill the form of a tool in, send it, and return the page that answers."""
    page = browser.get(f"/tool?name={tool}").text
    found = re.search(r'name="call" value="([\w-]+)"', page)
    assert found is not None, page
    fields = {f"arg:{name}": text for name, text in typed.items()}
    answer = browser.send("/tool", tool=tool, call=found[1], **fields)
    if answer.status_code == 303:
        answer = browser.get(answer.headers["location"].removeprefix("/dashboard"))
    return answer.text


def test_the_page_shows_the_server_with_its_tools_and_latency(shop: Shop) -> None:
    browser = shop.visit(role="viewer")
    page = browser.get("/servers").text
    assert "This server" in page
    assert "Tools: 7" in page
    assert "p99" not in page
    approver = shop.visit()
    assert "hello" in call(approver, "echo", text="hello")
    eventually(lambda: "p99" in browser.get("/servers").text)
    page = browser.get("/tools?server=").text
    assert "Order <mark>\\u202e</mark>something &lt;script&gt;alert(1)&lt;/script&gt;." in page
    found = browser.get("/tools?server=&find=WIPE").text
    assert "Tools: 1" in found
    assert "tool?name=wipe" in found
    for gone in ("/tools?server=x", "/tool?name=x", "/tool", "/own-calls/x"):
        assert browser.get(gone).status_code == 404, gone


def test_a_tool_is_called_with_the_values_of_its_form(shop: Shop) -> None:
    page = call(
        shop.visit(),
        "order",
        item="a cup",
        count="2",
        price="",
        gift="true",
        size='"large"',
        tags='["x"]',
        place='{"y": 1}',
    )
    for text in ("&#34;a cup&#34;", "&#34;count&#34;: 2", "1.5", "true", "large", "[", "&#34;y&#34;: 1"):
        assert text in page, text


def test_the_call_is_the_persons_own_and_recorded_as_such(shop: Shop) -> None:
    assert "dashboard:ada ada default" in call(shop.visit("ada"), "whoami")
    recorded = eventually(lambda: [each for each in records(shop.folder) if each.get("tool") == "whoami"])
    assert [(each["actor"], each["decision"], each["outcome"]) for each in recorded] == [
        ("dashboard:ada", "allow", "ok")
    ]


@pytest.mark.parametrize(
    "person", ["operator@https://login.example.com#root", "agent#abc", "os:root", "x" * 64]
)
def test_no_name_of_a_person_is_that_of_another_caller(shop: Shop, person: str) -> None:
    assert f"dashboard:{person} {person} default" in call(shop.visit(person), "whoami")


def test_mistakes_are_beside_their_fields_and_nothing_typed_is_lost(shop: Shop) -> None:
    browser = shop.visit()
    typed = {"item": HOSTILE, "count": "two", "price": "1,5", "tags": "a, b", "place": '{"y": "no number"}'}
    page = call(browser, "order", **typed)
    for said in ("expected a whole number", "expected a number", "expected JSON"):
        assert said in page
    assert page.count('aria-invalid="true"') == 3
    assert 'value="two"' in page
    assert 'value="1,5"' in page
    assert "a, b</textarea>" in page
    assert "&lt;script&gt;" in page
    assert "<script>alert" not in page
    assert "<img" not in page
    said_by_tool = call(browser, "order", **{**typed, "count": "2", "price": "", "tags": ""})
    assert said_by_tool.count('aria-invalid="true"') == 1
    assert "no number" in said_by_tool
    assert re.search(r'id="about-arg-7">\s*<p class="error">', said_by_tool)


def test_a_form_that_is_sent_twice_calls_once(shop: Shop) -> None:
    browser = shop.visit()
    page = browser.get("/tool?name=echo").text
    id = re.findall(r'name="call" value="([\w-]+)"', page)[0]
    places = {
        browser.send("/tool", tool="echo", call=id, **{"arg:text": "once"}).headers["location"]
        for _ in range(3)
    }
    assert places == {f"/dashboard/own-calls/{id}"}
    assert "once" in browser.get(f"/own-calls/{id}").text
    eventually(lambda: [each for each in records(shop.folder) if each.get("tool") == "echo"])
    assert len([each for each in records(shop.folder) if each.get("tool") == "echo"]) == 1
    again = browser.get(f"/tool?name=echo&again={id}").text
    assert "once</textarea>" in again
    other = shop.visit("bob")
    assert other.get(f"/own-calls/{id}").status_code == 404
    assert "once" not in other.get(f"/tool?name=echo&again={id}").text


def test_what_tools_return_and_raise_is_text(shop: Shop) -> None:
    browser = shop.visit()
    for page in (call(browser, "echo", text=HOSTILE), call(browser, "fail", why=HOSTILE)):
        assert "<script>alert" not in page
        assert "<img" not in page
        assert "&lt;script&gt;alert(1)" in page
        assert "<mark>\\u202e</mark>" in page
    assert "The tool has failed." in browser.last
    assert "This is only the beginning." in call(browser, "echo", text="x" * 200_000)


def test_a_tool_that_asks_its_client_gets_no_answer_here_and_the_page_says_so(shop: Shop) -> None:
    page = call(shop.visit(), "ask")
    assert 'role="alert"' in page
    assert "elicitation" in page


def test_the_guard_decides_about_the_call_as_about_any_other(shop: Shop) -> None:
    browser = shop.visit()
    page = browser.get("/tool?name=secret").text
    assert "The guard does not let you see it." in page
    assert 'name="call"' not in page
    answer = browser.send("/tool", tool="secret", call="x" * 22)
    page = browser.get(answer.headers["location"].removeprefix("/dashboard")).text
    assert "secret" in page
    assert "The call has ended" not in page


def test_a_call_waits_for_the_approval_of_another_person(shop: Shop) -> None:
    ada, bob = shop.visit("ada"), shop.visit("bob")
    page = call(ada, "wipe", place="/srv")
    assert "waits for an approval" in page
    path = re.findall(r'hx-get="/dashboard(/own-calls/[^"]+)"', page)[0]
    waiting = re.findall(r'id="(ap_\w+)"', ada.get("/").text)[0]
    assert "another person must approve it" in ada.last
    assert ada.send(f"/approvals/{waiting}/approve").status_code == 403
    bob.get("/")
    assert bob.send(f"/approvals/{waiting}/approve").status_code == 303
    eventually(lambda: "wiped /srv" in ada.get(path).text)


def test_a_person_cancels_a_call_that_waits(shop: Shop) -> None:
    browser = shop.visit()
    page = call(browser, "wipe", place="/srv")
    path = re.findall(r'hx-get="/dashboard(/own-calls/[^"]+)"', page)[0]
    assert browser.send(f"{path}/cancel").status_code == 303
    eventually(lambda: "You have cancelled the call." in browser.get(path).text)
    said = LANGUAGES["ar"].text("You have cancelled the call.")
    assert said in browser.get(path, **{"accept-language": "ar"}).text
    assert "No call is here." in browser.get("/calls").text


def test_a_viewer_and_a_form_of_another_page_call_nothing(shop: Shop) -> None:
    viewer, approver = shop.visit("vera", "viewer"), shop.visit()
    assert "may look, but not call" in viewer.get("/tool?name=echo").text
    assert viewer.send("/tool", tool="echo", **{"arg:text": "x"}).status_code == 403
    assert viewer.send("/servers/start").status_code == 403
    approver.get("/tool?name=echo")
    for changed in ({"token": ""}, {"origin": "https://evil.example"}, {"origin": None}):
        sent = approver.send("/tool", tool="echo", **{"arg:text": "x"}, **changed)  # type: ignore[arg-type]
        assert sent.status_code == 403, changed
    assert not [each for each in records(shop.folder) if each.get("tool") == "echo"]


def test_an_open_page_asks_for_a_call_until_it_has_ended(shop: Shop) -> None:
    browser = shop.visit()
    page = call(browser, "wipe", place="/srv")
    path = re.findall(r'hx-get="/dashboard(/own-calls/[^"]+)"', page)[0]
    answer = browser.get(path, **{"hx-request": "true"})
    assert (answer.status_code, "waits for an approval" in answer.text) == (200, True)
    browser.get(path)
    assert browser.send(f"{path}/cancel").status_code == 303
    answer = eventually(
        lambda: (got := browser.get(path, **{"hx-request": "true"})).status_code == 286 and got
    )
    assert "You have cancelled the call." in answer.text
    assert "process" not in browser.get(path).text


# --- a gateway ----------------------------------------------------------------------------------------------


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Shop]:
    found = Shop(tmp_path, TOOLS, GUARD)
    behind = {"command": sys.executable, "args": [str(tmp_path / "shop.py")]}
    servers = {"a": behind, "broken": {"command": sys.executable, "args": ["-c", "print(1/0)"]}, HOSTILE: {}}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    with found.begin("--stats", command=("gateway", "mcp.json")):
        yield found


def test_the_servers_behind_a_gateway_are_started_seen_and_called(gateway: Shop) -> None:
    browser = gateway.visit()
    page = browser.get("/servers").text
    assert "not started" in page
    assert "<script>alert" not in page
    assert browser.send("/servers/start").status_code == 303
    eventually(lambda: "Tools: 7" in browser.get("/servers").text)
    eventually(lambda: ">failed<" in browser.get("/servers").text)
    assert ">running<" in browser.last
    assert ">invalid<" in browser.last
    assert "a_echo" in browser.get("/tools?server=a").text
    assert "hello" in call(browser, "a_echo", text="hello")
    recorded = eventually(lambda: [e for e in records(gateway.folder) if e.get("tool") == "a_echo"])
    assert (recorded[0]["actor"], recorded[0]["outcome"]) == ("dashboard:ada", "ok")
    eventually(lambda: "p99" in browser.get("/servers").text)
    assert "with errors: 0" in browser.last
    mistaken = call(browser, "a_order", item="x", count="3", place='{"y": "no number"}')
    assert re.search(r'id="about-arg-7">\s*<p class="error">', mistaken)


def test_a_call_that_a_gateway_has_forwarded_is_cancelled_there_and_behind(
    tmp_path: Path,
) -> None:
    shop = Shop(
        tmp_path,
        TOOLS.replace(
            '@app.tool(risk="low")\ndef echo',
            """@app.tool(risk="low")
async def pack(item: str) -> str:
    "Pack for a long time."
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        open("stopped", "a").write(item)
        raise
    return "packed"

@app.tool(risk="low")
def echo""",
        ),
        GUARD,
    )
    behind = {"command": sys.executable, "args": [str(tmp_path / "shop.py")], "cwd": str(tmp_path)}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"a": behind}}))
    with shop.begin(command=("gateway", "mcp.json")):
        browser = shop.visit()
        with shop.calling("a_pack", "item=cup") as called:
            eventually(lambda: "a_pack" in browser.get("/calls").text)
            found = re.search(r'action="/dashboard(/calls/[^"]+)"', browser.last)
            assert found is not None
            assert browser.send(found[1]).status_code == 303
            said, wrong = called.communicate(timeout=30)
            assert "The call was cancelled by ada at the dashboard" in said + wrong
        eventually((tmp_path / "stopped").exists)
        assert "hello" in call(browser, "a_echo", text="hello")  # the connection goes on


def test_the_event_loop_writes_no_schema_and_a_page_those_that_it_shows(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Server("shop")
    for number in range(120):
        server.add_tool(counted, name=f"tool-{number}")
    dashboard = Dashboard(Sources(lambda: database, "shop", ServingProcess(server)), AccessRules(None))
    browser = Browser(dashboard)
    assert browser.sign_in(SignInStore(database).make_link("ada", "approver")).status_code == 303
    names: list[str] = []
    schemas: list[int] = []

    def shown_name(name: str) -> str:
        if name.startswith("tool-"):
            names.append(name)
            assert current_thread() is not main_thread()
        return name

    def shown_schema(schema: object, indent: int) -> str:
        schemas.append(indent)
        assert current_thread() is not main_thread()
        return "written"

    monkeypatch.setattr(behind, "visible_name", shown_name)
    monkeypatch.setattr(behind, "written", shown_schema)
    for path, shown in (("/servers", 0), ("/tools?server=", 50), ("/tools?server=&find=tool-119", 1)):
        names.clear()
        answer = browser.get(path)
        assert (answer.status_code, len(names), schemas) == (200, shown, []), path
    assert browser.get("/tool?name=tool-7").status_code == 200
    assert len(schemas) >= 2


def test_pages_that_are_served_by_themselves_have_no_servers_and_no_calls(tmp_path: Path) -> None:
    from support.guarded_folder import variables
    from support.http_server import HttpProcess

    shop = Shop(tmp_path, TOOLS)
    ready = r"the dashboard is at (\S+?)/dashboard"
    serving = ("dashboard", "serve", "--http", "127.0.0.1:0")
    with HttpProcess(*serving, folder=tmp_path, environment=variables(tmp_path), ready=ready) as server:
        shop.url = f"http://127.0.0.1:{server.port}"
        browser = shop.visit()
        page = browser.get("/tasks").text
        assert "No task is here." in page
        assert "/dashboard/tasks" in page
        assert "/dashboard/calls" not in page
        assert "/dashboard/servers" not in page
        for path in ("/calls", "/servers", "/tools?server=", "/tool?name=x", "/own-calls/x"):
            answer = browser.get(path)
            assert (answer.status_code, "served by themselves" in answer.text) == (404, True), path
        for path in ("/calls/x/cancel", "/tool", "/servers/start", "/own-calls/x/cancel"):
            assert browser.send(path).status_code == 404, path
        assert "/nowhere" not in fastrpc(tmp_path, "approvals", "list")
