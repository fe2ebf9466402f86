"""Agents as folders: served as tools and resources, watched, masked, one broken one beside others."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from support.guarded_folder import variables
from support.waiting import eventually

from fastrpc import Client, RemoteError

SERVE = [sys.executable, "-m", "fastrpc", "serve", "fastrpc.tools.knowledge", "--agents"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "agents"
    agent(found, "ada", soul="# Ada\nPrecise.", config=json.dumps({"model": "m", "max_tokens": 4000}))
    return found


def agent(folder: Path, id: str, soul: str = "", config: str = "", name: str = "config.json") -> Path:
    place = folder / id
    place.mkdir(parents=True)
    if soul:
        (place / "SOUL.md").write_text(soul)
    if config:
        (place / name).write_text(config)
    return place


def test_agents_are_listed_and_read_with_their_secrets_masked(tmp_path: Path, folder: Path) -> None:
    secrets = {"api_key": "sk-abc123def456", "headers": {"Authorization": "Bearer abc.def123"}, "n": 3}
    place = agent(
        folder, "bob", "Bob here", json.dumps({**secrets, "credentials": {"user": ["u", "hunter2"]}})
    )
    (place / "TOOLS.md").write_text("use the shell")
    agent(folder, "carl", config='url: "https://u:pw123456@host/x"\n', name="config.yaml")
    with Client.sync([*SERVE, str(folder)], env=variables(tmp_path)) as client:
        listed = client.call_tool("agent.list", {})
        assert listed.text == "3 agents:\nada: Ada\nbob: Bob here\ncarl: no SOUL.md"
        assert listed.structured["agents"][0]["uris"] == [
            "knowledge://agents/ada/SOUL.md", "knowledge://agents/ada/config",
        ]  # fmt: skip
        got = client.call_tool("agent.get", {"id": "bob"})
        assert got.structured["config"] == {
            "api_key": "****",
            "headers": {"Authorization": "****"},
            "n": 3,
            "credentials": {"user": ["****"] * 2},
        }
        assert got.structured["tools"] == "use the shell"
        assert "# TOOLS.md\nuse the shell" in got.text
        uris = {each["uri"] for each in client.list_resources()}
        assert {"knowledge://agents/bob/TOOLS.md", "knowledge://agents/carl/config"} <= uris
        assert client.read_resource("knowledge://agents/ada/SOUL.md").text == "# Ada\nPrecise."
        config = client.read_resource("knowledge://agents/carl/config").text
        assert json.loads(config) == {"url": "https://****@host/x"}
        for missing in ("ada/BOOT.md", "ada/config.json", "../x/SOUL.md", "zoe/SOUL.md", "ada/../bob/config"):
            with pytest.raises(RemoteError):
                client.read_resource(f"knowledge://agents/{missing}")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "config.json",
            '{"password": "hunter2",',
            "agent eve: config.json: expected JSON, broken at line 1, column 24",
        ),
        ("config.json", "[1]", "agent eve: config.json: expected names and values, got list"),
        ("config.json", "[" * 100_000, "agent eve: config.json: expected JSON, broken at its values"),
        ("config.toml", "a = \n", "agent eve: config.toml: expected TOML, broken at line 1, column 5"),
        ("config.yaml", "a: [\n", "agent eve: config.yaml: expected YAML, broken at line 2, column 1"),
        (
            "config.yaml",
            "a: &x [1]\nb: *x\n",
            "agent eve: config.yaml: expected YAML, broken at its values",
        ),
        ("config.yaml", "a: 2020-99-99\n", "agent eve: config.yaml: expected YAML, broken at its values"),
        ("config.json", "x" * (1024 * 1024 + 1), "agent eve: config.json: larger than 1,048,576 bytes"),
    ],
)
def test_a_broken_config_is_one_clear_error_beside_others(
    tmp_path: Path, folder: Path, name: str, text: str, message: str
) -> None:
    agent(folder, "eve", "Eve", text, name)
    with Client.sync([*SERVE, str(folder)], env=variables(tmp_path)) as client:
        assert client.call_tool("agent.list", {}).text == f"2 agents:\nada: Ada\neve: {message}"
        got = client.call_tool("agent.get", {"id": "eve"})
        assert got.is_error
        assert got.text == message
        with pytest.raises(RemoteError, match="agent eve"):
            client.read_resource("knowledge://agents/eve/config")
        assert client.read_resource("knowledge://agents/eve/SOUL.md").text == "Eve"
        assert not client.call_tool("agent.get", {"id": "ada"}).is_error


def test_links_lead_nowhere_and_special_files_are_not_waited_for(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "SOUL.md").write_text("outside")
    (folder / "linked").symlink_to(tmp_path / "outside")
    place = agent(folder, "mallory", "Mallory")
    (place / "BOOT.md").symlink_to(tmp_path / "outside" / "SOUL.md")
    os.mkfifo(place / "TOOLS.md")
    with Client.sync([*SERVE, str(folder)], env=variables(tmp_path)) as client:
        assert [each["id"] for each in client.call_tool("agent.list", {}).structured["agents"]] == [
            "ada",
            "mallory",
        ]
        assert client.call_tool("agent.get", {"id": "linked"}).is_error
        for name in ("linked/SOUL.md", "mallory/BOOT.md", "mallory/TOOLS.md"):
            with pytest.raises(RemoteError) as caught:
                client.read_resource(f"knowledge://agents/{name}")
            assert "outside" not in str(caught.value)


def test_clients_learn_what_has_changed(tmp_path: Path, folder: Path) -> None:
    uri, told = "knowledge://agents/ada/SOUL.md", []
    with Client.sync(
        [*SERVE, str(folder)],
        env=variables(tmp_path),
        version="2025-11-25",
        on_notification=lambda sent: told.append(sent.get("params", {}).get("uri", sent["method"])),
    ) as client:

        def was_told(what: str) -> bool:
            client.ping()
            return what in told

        client.list_resources()
        client.subscribe(uri)
        (folder / "ada" / "SOUL.md").write_text("# Ada, changed")
        eventually(lambda: was_told(uri))
        assert told == [uri]
        agent(folder, "new", "New")
        eventually(lambda: was_told("notifications/resources/list_changed"))
        assert "knowledge://agents/new/SOUL.md" in [each["uri"] for each in client.list_resources()]


def test_without_a_folder_there_are_no_agents(tmp_path: Path) -> None:
    with Client.sync(SERVE[:-1], env=variables(tmp_path)) as client:
        assert client.call_tool("agent.list", {}).structured == {"count": 0, "agents": []}
        assert client.call_tool("agent.get", {"id": "ada"}).text == "id: there is no agent ada."
    with Client.sync([*SERVE, str(tmp_path / "none")], env=variables(tmp_path)) as client:
        assert "none: No such file or directory" in client.call_tool("agent.list", {}).text
