"""A gateway without processes: which entries it lists, what a changed configuration changes, what is
reported."""

from __future__ import annotations

import json
import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
from support.in_memory import with_client

from fastrpc import Client, Server
from fastrpc.cli.gateway import main
from fastrpc.client.asynchronous import AsyncClient
from fastrpc.errors import InvalidConfig, UsageError
from fastrpc.gateway import gateway_of, status
from fastrpc.gateway.catalogue import GatewayCatalogue
from fastrpc.gateway.client_targets import resolved
from fastrpc.gateway.names import prefix_of
from fastrpc.gateway.rules import Rules
from fastrpc.gateway.status import FOLDER, STATUS_URI, Health, StatusReporter, running
from fastrpc.gateway.watched_file import WatchedFile
from fastrpc.testing import RemoteError

NOWHERE = {"command": "/nonexistent/server"}


@pytest.fixture(autouse=True)
def _same_variables(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The command exports its settings."""
    monkeypatch.delenv("NO_SUCH_VARIABLE", raising=False)
    with patch.dict(os.environ):
        yield


def server_with(*tools: str) -> Server:
    server = Server("behind")
    for name in tools:
        server.add_tool(lambda: 1, name=name)
    return server


def catalogue_of(rules: Rules, **servers: Server) -> tuple[GatewayCatalogue, Server]:
    gateway = Server("gateway")
    catalogue = GatewayCatalogue(gateway.registries, rules.shows)
    catalogue.members = [
        SimpleNamespace(  # type: ignore[misc]
            name=name,
            prefix=prefix_of(name, "prefix"),
            registries=server.registries,
            offers=lambda tool: True,
        )
        for name, server in servers.items()
    ]
    for server in servers.values():
        for registry in server.registries:
            registry.watchers.append(lambda kind: catalogue.renew())
    catalogue.renew()
    return catalogue, gateway


def names(server: Server) -> list[str]:
    return [tool.name for tool in server.tools]


# --- the entries --------------------------------------------------------------------------------------


def test_entries_are_in_the_order_of_the_servers_whenever_they_come() -> None:
    first, second = server_with(), server_with("x")
    _, gateway = catalogue_of(Rules(), a=first, b=second)
    assert names(gateway) == ["b_x"]
    first.add_tool(lambda: 1, name="y")
    assert names(gateway) == ["a_y", "b_x"]
    first.remove_tool("y")
    assert names(gateway) == ["b_x"]


def test_a_denied_tool_is_not_listed_when_it_comes_later_either() -> None:
    server = server_with("get", "delete")
    _, gateway = catalogue_of(Rules([], ["a:del*"]), a=server)
    assert names(gateway) == ["a_get"]
    server.add_tool(lambda: 1, name="delete_all")
    assert names(gateway) == ["a_get"]


def test_of_two_with_one_name_that_of_the_earlier_server_is_listed(caplog: pytest.LogCaptureFixture) -> None:
    catalogue, gateway = catalogue_of(Rules(), a=server_with("b_c"), a_b=server_with("c", "d"))
    assert names(gateway) == ["a_b_c", "a_b_d"]
    owner = catalogue.owner_of("tool", "a_b_c")
    assert owner is not None
    assert owner.name == "a"
    assert "a_b: the tool a_b_c is left out" in caplog.text


def test_prompts_and_completions_are_renamed_and_resources_are_not() -> None:
    server = server_with()

    @server.prompt
    def hello(name: str) -> str:
        return name

    @server.complete("hello", "name")
    def complete(value: str) -> list[str]:
        return [value]

    @server.resource("docs://{id}")
    def document(id: str) -> str:
        return id

    server.add_resource("docs://one", "text")
    catalogue, gateway = catalogue_of(Rules(), a=server)
    registries = gateway.registries
    assert [entry.key for entry in registries.prompts] == ["a_hello"]
    assert [(entry.target, entry.argument) for entry in registries.completions] == [("a_hello", "name")]
    assert [entry.key for entry in registries.resources] == ["docs://one"]
    for uri in ("docs://one", "docs://two"):
        owner = catalogue.owner_of("resource", uri)
        assert owner is not None
        assert owner.name == "a"
    assert catalogue.owner_of("resource", "other://one") is None


# --- the configuration --------------------------------------------------------------------------------


def test_a_changed_configuration_keeps_the_servers_that_are_the_same() -> None:
    _, gateway = gateway_of({"same": NOWHERE, "other": NOWHERE, "gone": NOWHERE})
    same = gateway.members["same"]
    said = gateway.replace({"new": NOWHERE, "other": {**NOWHERE, "args": ["x"]}, "same": {**NOWHERE}})
    assert said == ["new is new", "other is changed", "gone is gone"]
    assert list(gateway.members) == ["new", "other", "same"]
    assert gateway.members["same"] is same


def test_what_cannot_be_used_is_said_with_its_reason() -> None:
    servers = {
        "variable": {"command": "${NO_SUCH_VARIABLE}"},
        "empty": {},
        "word": "python",
        "off": {**NOWHERE, "disabled": True},
        "denied": NOWHERE,
        "good": NOWHERE,
    }
    _, gateway = gateway_of(servers, rules=Rules([], ["denied:*"]))
    states = {name: member.state() for name, member in gateway.members.items()}
    assert states["variable"][0] == states["empty"][0] == states["word"][0] == "invalid"
    assert "NO_SUCH_VARIABLE" in states["variable"][1]
    assert "expected a command or a url" in states["empty"][1]
    assert states["off"][0] == "disabled"
    assert states["denied"][0] == "denied"
    assert states["good"] == ("not started", "")


def test_a_call_of_a_server_that_cannot_be_used_says_why() -> None:
    server, _ = gateway_of(
        {"bad": {"command": "${NO_SUCH_VARIABLE}"}, "denied": NOWHERE}, rules=Rules(["bad:*"])
    )

    async def conversation(client: Any) -> None:
        assert await client.tools() == []
        with pytest.raises(RemoteError, match=r"bad cannot be used: .*NO_SUCH_VARIABLE"):
            await client.call("bad_tool")
        with pytest.raises(RemoteError, match="Unknown tool: denied_tool"):
            await client.call("denied_tool")

    with_client(server, conversation)


def test_a_changed_file_is_read_and_a_broken_one_is_not_used(
    tmp_path: Any, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {"a": NOWHERE}}))
    file = WatchedFile(str(path))
    _, file.gateway = gateway_of(file.servers)
    path.write_text(json.dumps({"mcpServers": {"a": NOWHERE, "bc": NOWHERE}}))
    file.poll()
    assert list(file.gateway.members) == ["a", "bc"]
    for broken in ("{", "[]", '{"mcpServers": 5}', '{"mcpServers": {}}', '{"servers": {}}', None):
        path.unlink() if broken is None else path.write_text(broken)
        for _ in range(3):
            file.poll()
        assert list(file.gateway.members) == ["a", "bc"]
        assert caplog.text.count("the servers are not changed") == 1
        caplog.clear()
    path.write_text(json.dumps({"mcpServers": {"bc": NOWHERE}}))
    file.poll()
    assert list(file.gateway.members) == ["bc"]


# --- what a client connects to ------------------------------------------------------------------------


def test_the_only_server_of_a_configuration_is_the_target_itself(tmp_path: Any) -> None:
    entry = {"command": "python", "args": ["x.py"], "env": {"A": "1"}, "cwd": "/s"}
    command = ["python", "x.py"], {"env": {"A": "1"}, "cwd": "/s", "stderr": False}
    off = {"command": "y", "disabled": True}
    assert resolved({"mcpServers": {"x": entry, "y": off}}, {"stderr": False}) == command
    assert resolved({"x": entry}, {"stderr": False}) == command
    path = tmp_path / ".mcp.json"
    path.write_text(json.dumps({"servers": {"x": entry}}))
    assert resolved(path, {"stderr": False}) == command
    far = {"url": "https://example.org/mcp", "headers": {"X-Key": "k"}}
    assert resolved({"mcpServers": {"far": far}}, {}) == (far["url"], {"headers": {"X-Key": "k"}})


def test_several_servers_are_one_in_memory() -> None:
    target, options = resolved({"mcpServers": {"x": NOWHERE, "y": NOWHERE}}, {"timeout_seconds": 5})
    assert isinstance(target, Server)
    assert options == {"timeout_seconds": 5}
    assert isinstance(Client({"mcpServers": {"x": NOWHERE, "y": NOWHERE}}), AsyncClient)
    with pytest.raises(TypeError, match="cwd"):
        Client({"mcpServers": {"x": NOWHERE, "y": NOWHERE}}, cwd="/")


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({}, "there is neither mcpServers nor servers"),
        ({"mcpServers": {}}, "at least one server"),
        ({"mcpServers": {"x": {"command": "a", "enabled": False}}}, "at least one server"),
        ({"mcpServers": {"x": {}}}, "x: expected a command or a url"),
        ({"mcpServers": {"x": {"command": "${NO_SUCH_VARIABLE}"}}}, "NO_SUCH_VARIABLE"),
        ("/nonexistent/mcp.json", "No such file"),
    ],
)
def test_a_configuration_without_a_server_to_use_is_refused(config: Any, said: str) -> None:
    for make in (Client, Client.sync):
        with pytest.raises(InvalidConfig, match=said):
            make(config)


# --- the command --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["one.json", "two.json"], "expected one file"),
        (["none.json"], "No such file"),
        ([], "there is no .mcp.json here or above"),
        (["mcp.json", "--names", "x"], "--names: expected one of prefix, mcp"),
        (["mcp.json", "--start-seconds", "x"], "--start-seconds"),
        (["mcp.json", "--alow", "x"], "--allow"),
        (["mcp.json", "--allow"], "--allow needs a value"),
        (["mcp.json", "--http", "127.0.0.1:0", "--workers", "2"], "one process serves"),
        (["mcp.json", "--token-file", "x"], "--token-file is for HTTP"),
        (["status", "--yaml"], "--yaml"),
        (["status", "mcp.json", "--http", "http://127.0.0.1:9/mcp"], "a file or --http, not both"),
        (["status", "--token-file", "token"], "--token-file is for --http"),
        (["status", "--http", "127.0.0.1:9"], "expected an http or https URL"),
    ],
)
def test_mistakes_in_the_call_are_reported(
    arguments: list[str], said: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"a": NOWHERE}}))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FASTRPC_GATEWAYS", "")
    monkeypatch.setenv("FASTRPC_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("FASTRPC_TOKEN", "")
    with pytest.raises(UsageError, match=said):
        main(arguments)


def test_a_gateway_does_not_serve_a_file_that_is_served_around_it(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {"a": NOWHERE}}))
    link = tmp_path / "link.json"
    link.symlink_to(path)
    monkeypatch.setenv("FASTRPC_GATEWAYS", os.pathsep.join(["/other.json", os.path.realpath(path)]))
    with pytest.raises(UsageError, match="would start itself"):
        main([str(link)])


# --- the status ---------------------------------------------------------------------------------------


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A folder whose path leaves room for a socket's name, which has 107 bytes at most."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def test_the_status_is_served_on_a_socket_of_the_user(
    short_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(short_path)
    state, path = str(short_path), str(short_path / "mcp.json")
    server, gateway = gateway_of({"a": NOWHERE, "b": {"command": "${NO_SUCH_VARIABLE}"}})
    assert running(state) == []
    report = StatusReporter(state, Health(path, "stdio", server, gateway))
    try:
        (place,) = (short_path / FOLDER).iterdir()
        assert place.stat().st_mode & 0o077 == 0
        assert (short_path / FOLDER).stat().st_mode & 0o077 == 0
        (found,) = running(state, "mcp.json")
        assert (found["pid"], found["served"], found["config"]) == (
            os.getpid(),
            "stdio",
            os.path.realpath(path),
        )
        assert [(each["name"], each["state"]) for each in found["servers"]] == [
            ("a", "not started"),
            ("b", "invalid"),
        ]
        assert running(state, "other.json") == []
    finally:
        report.close()
    assert running(state) == []


def test_a_gateway_that_does_not_answer_hides_no_other(
    short_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status, "SLOW_SECONDS", 0.05)
    monkeypatch.setattr(status, "ANSWER_SECONDS", 0.2)
    state = str(short_path)
    server, gateway = gateway_of({})
    reports = [
        StatusReporter(state, Health(f"{number}.json", "stdio", server, gateway)) for number in range(2)
    ]
    stopped, busy = (socket.socket(socket.AF_UNIX) for _ in range(2))
    stopped.bind(str(short_path / FOLDER / "0.sock"))
    stopped.listen()
    busy.bind(str(short_path / FOLDER / "z.sock"))
    busy.listen(0)
    waiting = socket.socket(socket.AF_UNIX)
    waiting.connect(busy.getsockname())  # no other one may wait there
    slow: list[int] = []
    silent: list[status.NoAnswer] = []
    try:
        found = running(state, on_slow=slow.append, on_silent=silent.append)
        assert len(found) == 2
        assert slow in ([1], [2])
        assert [str(each).rpartition("/")[2] for each in silent] == [
            "0.sock: the gateway does not answer",
            "z.sock: the gateway does not answer",
        ]
        with pytest.raises(status.NoAnswer):
            running(state)
    finally:
        for each in (*reports, stopped, busy, waiting):
            each.close()


def test_the_status_is_a_resource_that_is_in_no_list_and_starts_nothing() -> None:
    server, gateway = gateway_of({"a": NOWHERE})
    Health("mcp.json", "127.0.0.1:0", server, gateway).offer()

    async def conversation(client: Any) -> None:
        read = await client.request("resources/read", {"uri": STATUS_URI})
        (found,) = json.loads(read["contents"][0]["text"])["servers"]
        assert (found["name"], found["state"]) == ("a", "not started")
        with pytest.raises(RemoteError, match="not found"):
            await client.request("resources/read", {"uri": STATUS_URI + "/a"})
        assert gateway.members["a"].state()[0] == "not started"
        for method, member in (
            ("resources/list", "resources"),
            ("resources/templates/list", "resourceTemplates"),
        ):
            assert (await client.request(method))[member] == []

    with_client(server, conversation)


def test_the_socket_of_a_gateway_that_was_killed_is_removed(short_path: Any) -> None:
    import socket

    folder = short_path / FOLDER
    folder.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(folder / "1.sock"))
    assert running(str(short_path)) == []
    assert list(folder.iterdir()) == []


def test_a_folder_that_others_may_write_to_is_not_used(tmp_path: Any) -> None:
    folder = tmp_path / FOLDER
    folder.mkdir()
    folder.chmod(0o777)
    server, gateway = gateway_of({"a": NOWHERE})
    with pytest.raises(PermissionError):
        running(str(tmp_path))
    with pytest.raises(PermissionError):
        StatusReporter(str(tmp_path), Health("mcp.json", "stdio", server, gateway))
