"""`fastrpc inspect` and `fastrpc discover`: what a server says of itself, and which servers clients know."""

from __future__ import annotations

import json
import os
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from support.command_line import assert_mistake, run

SHOP = '''
from typing import Annotated, Literal, TypedDict
from fastrpc import Server

app = Server("shop", version="2.5", instructions="Sells <things>.\\n\\nAsk first. \\x1b[2J")

class Price(TypedDict):
    cents: int

@app.tool(effect="exec")
def price(item: Annotated[str, "Which <b>one</b>"], kind: Literal["net", "gross"] = "net") -> Price:
    """Say a price.

    <script>alert(1)</script>"""
    return {"cents": 5}

@app.resource("orders://all", mime_type="text/plain")
def orders() -> str:
    """All orders."""
    return ""

@app.resource("orders://{id}")
def order(id: str) -> str:
    """One order."""
    return id

@app.prompt
def complain(id: str) -> str:
    """A letter."""
    return id
'''
MEMBERS = ["tools", "resources", "resourceTemplates", "prompts"]


@pytest.fixture
def shop(place: Any) -> str:
    (place / "shop.py").write_text(SHOP)
    return "shop.py"


def test_inspect_shows_all_that_a_server_says_of_itself(place: Any, shop: str) -> None:
    done = run(place, "inspect", shop)
    assert (done.returncode, done.stderr) == (0, "")
    head, _, offered = done.stdout.partition("\n\ntools:\n")
    assert head.startswith("shop 2.5\nprotocol: 2026-07-28\n")
    assert "\ncapabilities: " in head
    assert "tools (listChanged)" in head
    assert head.endswith("instructions:\n  Sells <things>.\n\n  Ask first. ␛[2J")
    assert offered.startswith(
        "  price (exec): Say a price.\n\n    <script>alert(1)</script>\n"
        "      item  string           required  Which <b>one</b>\n"
        '      kind  "net" | "gross"            default "net"\n'
        "    returns\n      cents  integer  required\n"
    )
    assert "resource templates:\n  orders://{id}: One order.\n" in offered
    older = run(place, "inspect", shop, "--protocol", "2025-06-18").stdout
    assert older.startswith("shop 2.5\nprotocol: 2025-06-18\n")


def test_inspect_json_is_everything_as_received(place: Any, shop: str) -> None:
    report = json.loads(run(place, "inspect", "--json", shop).stdout)
    assert report["serverInfo"]["name"] == "shop"
    assert report["instructions"].startswith("Sells <things>.")
    assert report["supportedVersions"][-1] == report["protocolVersion"] == "2026-07-28"
    listed = json.loads(run(place, "list", "--json", shop).stdout)
    assert {member: report[member] for member in MEMBERS} == listed


class Page(HTMLParser):
    """Checks that tags fit into each other; keeps the texts, the tags, and all addresses."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.addresses: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.addresses += [value or "" for name, value in attributes if name in ("href", "src", "action")]
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_inspect_html_is_one_page_that_needs_nothing_else_and_runs_nothing(place: Any, shop: str) -> None:
    done = run(place, "inspect", shop, "--html", "page.html")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    text = (place / "page.html").read_text(encoding="utf-8")
    page = Page(text)
    assert not page.tags & {"script", "img", "link", "iframe", "b", "form"}
    assert page.addresses == [f"#{member}" for member in MEMBERS]
    for said in ("<script>alert(1)</script>", "Which <b>one</b>", '"net" | "gross"', "orders://{id}", "2.5"):
        assert said in page.text
    assert "default-src 'none'" in text
    assert run(place, "inspect", shop, "--html", "-").stdout == text
    assert "1 prompt<" in text
    assert "Also speaks" not in text  # it was asked for one version
    # What an argument of a prompt does not have takes no column.
    prompt = text.partition('<section id="prompts">')[2]
    assert re.findall(r'<th class="(\w+)">(.*?)</th>', prompt)[:2] == [("name", "Argument"), ("need", "")]


def test_inspect_says_what_is_wrong_with_its_options(place: Any, shop: str) -> None:
    assert_mistake(run(place, "inspect", shop, "--json", "--html", "x"), "either --json or --html")
    assert_mistake(
        run(place, "inspect", shop, "--html", "/no/such/folder/x"), "--html /no/such/folder/x: No such"
    )


# --- discover -----------------------------------------------------------------------------------------

GOOSE = """\
GOOSE_PROVIDER: x
extensions:
  developer:
    enabled: true
    type: builtin
  kitchen:
    enabled: true
    # what it is
    args:
    - -y
    - 'it''s'
    cmd: npx
    envs:
      OVEN: hot4711
    type: stdio
  far:
    uri: https://example.org/mcp
    type: streamable_http
"""


@pytest.fixture
def known(place: Any) -> Any:
    """Write the files of several clients; return the home folder."""
    home = place.parent / "home"

    def put(path: Any, content: Any) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))

    shop = {
        "command": "shop",
        "args": ["--token", "hunter2hunter2", "a b"],
        "env": {"API_KEY": "k4711", "A": "${A}"},
    }
    put(
        home / ".claude.json",
        {
            "mcpServers": {"shop": shop},
            "projects": {"/p": {"mcpServers": {"inner": {"command": "in"}}}, "/q": {}},
        },
    )
    headers = {"Authorization": "Bearer ${env:TOKEN}", "X": "s4711"}
    put(
        home / ".cursor" / "mcp.json",
        {"mcpServers": {"far": {"url": "https://u:p4711@h/mcp", "headers": headers}}},
    )
    put(home / ".config" / "goose" / "config.yaml", GOOSE)
    put(home / ".config" / "zed" / "settings.json", "// empty\n{}")
    put(home / ".gemini" / "settings.json", "{")
    put(home / ".config" / "opencode" / "opencode.json", {"mcp": {"odd": {"type": "local"}}})
    put(place / ".mcp.json", {"mcpServers": {"mine": {"command": "m", "disabled": True}}})
    put(place / ".vscode" / "mcp.json", {"servers": {"near": {"command": "n", "cwd": str(home / "x")}}})
    return home


def test_discover_shows_the_servers_of_all_clients_with_secrets_masked(place: Any, known: Any) -> None:
    done = run(place, "discover", XDG_CONFIG_HOME="")
    assert done.returncode == 0
    assert "Claude Code (~/.claude.json)\n  shop" in done.stdout
    assert "shop --token **** 'a b'  API_KEY=****  A=${A}\n" in done.stdout
    assert "Claude Code (~/.claude.json, project /p)\n  inner" in done.stdout
    assert "https://****@h/mcp  Authorization=Bearer ${env:TOKEN}  X=****\n" in done.stdout
    assert "goose (~/.config/goose/config.yaml)\n  kitchen  npx -y 'it'\"'\"'s'  OVEN=****\n" in done.stdout
    assert (
        "opencode (~/.config/opencode/opencode.json)\n  odd      cannot be used: expected a command"
        in done.stdout
    )
    assert "  mine     m  (switched off)\n" in done.stdout
    assert "  near     n  in ~/x\n" in done.stdout
    assert "4711" not in done.stdout
    assert "hunter2" not in done.stdout
    assert "developer" not in done.stdout
    assert done.stderr.startswith("fastrpc: warning: ~/.gemini/settings.json: line 1, column 2")


def test_discover_json_is_for_programs(place: Any, known: Any) -> None:
    text = run(place, "discover", "--json", XDG_CONFIG_HOME="").stdout
    found = {server["name"]: server for server in json.loads(text)}
    assert found["shop"]["args"] == ["--token", "****", "a b"]
    assert found["shop"]["env"] == {"API_KEY": "****", "A": "${A}"}
    assert found["shop"]["file"] == os.path.join(str(known), ".claude.json")
    assert found["inner"]["project"] == "/p"
    assert found["far"]["url"] == "https://example.org/mcp"
    assert found["mine"]["enabled"] is False
    assert found["kitchen"]["args"] == ["-y", "it's"]
    assert "expected a command" in found["odd"]["error"]
    assert "4711" not in text


def test_discover_reads_what_install_client_has_written(place: Any) -> None:
    from fastrpc.cli._clients import CLIENTS

    for client in CLIENTS:
        done = run(place, "install-client", client, "--name", f"of-{client}", "--env", "A=b")
        assert done.returncode == 0, done.stderr
    found = {server["name"]: server for server in json.loads(run(place, "discover", "--json").stdout)}
    assert set(found) == {f"of-{client}" for client in CLIENTS}
    for server in found.values():
        assert server["args"][-1] == "serve"
        assert server["env"] == {"A": "****"}


def test_discover_says_so_when_no_client_knows_a_server(place: Any) -> None:
    done = run(place, "discover")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("None of Claude Code, ")
