"""`fastrpc install-client`: what it enters and leaves as it was, and that it takes out what it entered."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from fastrpc import UsageError, json_text
from fastrpc.cli import install_client
from fastrpc.cli._client_files import KEPT_COPIES
from fastrpc.cli._clients import CLIENTS
from fastrpc.cli.install_client import main
from fastrpc.json_text import NotJson, parse, put, take

ENTRY = {"command": "/bin/fastrpc", "args": ["serve"]}
COMMENTED = """\
// what I use
{
    "inputs": [],   // none
    "servers": {
        "other": { "type": "http", "url": "https://example.org/a//b" }, /* keep
        this */
    },
}
"""


@pytest.fixture
def home(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def servers_in(path: Any, client: str) -> Any:
    """The servers in a client's file, each as `command`, `args` and `env` whatever the client calls them."""
    text = path.read_text(encoding="utf-8")
    section = CLIENTS[client].section
    if client == "codex":
        tomllib = pytest.importorskip("tomllib", reason="reads the file with the standard library of 3.11")
        return tomllib.loads(text).get(section, {})
    if client == "goose":
        servers = yaml.safe_load(text).get(section) or {}
        assert all(entry.get("name") == name for name, entry in servers.items())
        return {name: renamed(entry, cmd="command", envs="env") for name, entry in servers.items()}
    servers = parse(text).plain[section]
    if client == "opencode":
        found = {name: renamed(entry, environment="env") for name, entry in servers.items()}
        for entry in found.values():
            if entry["type"] == "local":
                entry["command"], *entry["args"] = entry["command"]
        return found
    return servers


def renamed(entry: dict[str, Any], **names: str) -> dict[str, Any]:
    return {names.get(key, key): value for key, value in entry.items() if value != {}}


# One server of somebody else's, in each client's form.
OTHERS = {
    "codex": 'model = "x"  # mine\n\n[mcp_servers.other]\ncommand = "o"\n\n[tools]\nweb = true\n',
    "goose": (
        "GOOSE_MODEL: x  # mine\nextensions:\n    # the first\n    other:\n        name: other\n"
        "        type: builtin\n\n    # the end\nGOOSE_MODE: auto\n"
    ),
    "opencode": COMMENTED.replace("servers", "mcp").replace('"http"', '"remote"'),
}


def with_another_server(client: str) -> str:
    return OTHERS.get(client) or COMMENTED.replace("servers", CLIENTS[client].section)


# --- every client -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("client", CLIENTS)
def test_a_server_is_entered_with_its_whole_path_and_started_by_it(
    client: str, home: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([client, "--cwd", str(home), "--env", "A=b=c"]) == 0
    path = capsys.readouterr().out.splitlines()[0].partition(" entered in ")[2]
    assert path.startswith(str(home))
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    ((name, entry),) = servers_in(home / path, client).items()
    assert name == "fastrpc"
    assert entry["env"] == {"A": "b=c"}
    assert os.path.isabs(entry["command"])
    assert entry["args"][-2:] == ["--cwd", str(home)]
    started = subprocess.run(
        [entry["command"], *entry["args"]],
        input=b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n',
        capture_output=True,
        timeout=30,
        env={"HOME": str(home), "PATH": "/usr/bin:/bin"},
        check=False,
    )
    assert json.loads(started.stdout)["id"] == 1


@pytest.mark.parametrize("client", CLIENTS)
def test_removing_it_gives_the_file_back_as_it_was(
    client: str, home: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    before = with_another_server(client)
    path = home / "given"
    path.write_text(before)
    assert main([client, "--file", str(path)]) == 0
    assert set(servers_in(path, client)) == {"other", "fastrpc"}
    for line in before.splitlines():
        assert line.rstrip(", ") in path.read_text()
    assert main([client, "--file", str(path), "--remove"]) == 0
    assert path.read_text() == before
    copies = [(home / entry).read_text() for entry in os.listdir(home) if entry.endswith(".bak")]
    assert len(copies) == 2
    assert before in copies
    capsys.readouterr()


@pytest.mark.parametrize("client", CLIENTS)
def test_what_is_shown_is_what_is_written_and_nothing_is(
    client: str, home: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([client, "--print"]) == 0
    place, _, shown = capsys.readouterr().out.partition("\n")
    assert os.listdir(home) == []
    assert main([client]) == 0
    path = place.partition(": ")[2]
    with open(path) as file:
        assert file.read().split() == shown.split()


@pytest.mark.parametrize("client", CLIENTS)
def test_entering_it_twice_changes_nothing_the_second_time(
    client: str, home: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([client]) == 0
    capsys.readouterr()
    assert main([client]) == 0
    assert "is already in" in capsys.readouterr().out
    assert not [name for _, _, names in os.walk(home) for name in names if name.endswith(".bak")]


@pytest.mark.parametrize("client", CLIENTS)
def test_an_entry_of_the_same_name_is_replaced(client: str, home: Any) -> None:
    path = str(home / "file")
    assert main([client, "--file", path, "--env", "OLD=1"]) == 0
    assert main([client, "--file", path]) == 0
    assert "env" not in servers_in(home / "file", client)["fastrpc"]


@pytest.mark.parametrize("client", CLIENTS)
def test_a_file_that_cannot_be_read_is_named_and_left_alone(client: str, home: Any) -> None:
    if client == "codex" and sys.version_info < (3, 11):
        pytest.skip("CPython 3.10 cannot read TOML")
    path = home / "broken"
    before = '{"mcpServers": {]\n'
    path.write_text(before)
    said = {"codex": "not TOML", "goose": "cannot be changed safely"}.get(client, "line 1, column 17")
    with pytest.raises(UsageError, match=said):
        main([client, "--file", str(path)])
    assert path.read_text() == before
    assert os.listdir(home) == ["broken"]


@pytest.mark.parametrize("client", CLIENTS)
def test_lines_that_end_in_cr_lf_keep_their_ends_and_new_ones_get_them(client: str, home: Any) -> None:
    before = with_another_server(client).replace("\n", "\r\n").encode()
    path = home / "given"
    path.write_bytes(before)
    assert main([client, "--file", str(path)]) == 0
    after = path.read_bytes()
    assert after.count(b"\r\n") == after.count(b"\n") > before.count(b"\n")
    assert set(servers_in(path, client)) == {"other", "fastrpc"}
    assert main([client, "--file", str(path), "--remove"]) == 0
    assert path.read_bytes() == before


def test_a_file_with_both_line_ends_keeps_each(home: Any) -> None:
    path = home / "given"
    path.write_bytes(b'{\r\n  "a": 1,\n  "mcpServers": {}\n}\r\n')
    assert main(["cursor", "--file", str(path)]) == 0
    after = path.read_bytes()
    assert after.startswith(b'{\r\n  "a": 1,\n  "mcpServers"')
    assert after.endswith(b"}\r\n")


def test_the_newest_copies_are_kept_and_no_one_elses(home: Any) -> None:
    path = home / "file"
    path.write_text("{}")
    (home / "file.old.bak").write_text("mine")
    older = [f"file.20200101-0000{second:02}.bak" for second in range(KEPT_COPIES + 3)]
    for name in older:
        (home / name).write_text(name)
    assert main(["cursor", "--file", str(path)]) == 0
    left = sorted(name for name in os.listdir(home) if name.endswith(".bak") and name != "file.old.bak")
    assert len(left) == KEPT_COPIES
    assert left[:-1] == older[-KEPT_COPIES + 1 :]
    assert (home / left[-1]).read_text() == "{}"
    assert (home / "file.old.bak").read_text() == "mine"


# --- servers over HTTP ------------------------------------------------------------------------------------

URL = "https://mcp.example.com/mcp"
REFERENCES = {
    "claude-code": "Bearer ${TOKEN}",
    "vscode": "Bearer ${env:TOKEN}",
    "cursor": "Bearer ${env:TOKEN}",
    "gemini": "Bearer ${TOKEN}",
    "opencode": "Bearer {env:TOKEN}",
    "windsurf": "Bearer ${env:TOKEN}",
}


@pytest.mark.parametrize("client", CLIENTS)
def test_a_server_over_http_is_entered_by_its_url_or_behind_a_bridge(client: str, home: Any) -> None:
    path = home / "file"
    assert main([client, "--http", URL, "--file", str(path)]) == 0
    entry = servers_in(path, client)["fastrpc"]
    if client == "claude-desktop":
        assert entry["args"][-2:] == ["bridge", URL]
    else:
        assert URL in [entry.get(name) for name in ("url", "httpUrl", "serverUrl", "uri")]
        assert not {"command", "args", "headers"} & set(entry)
    assert main([client, "--http", URL, "--file", str(path), "--remove"]) == 0
    assert "fastrpc" not in path.read_text()


@pytest.mark.parametrize("client", CLIENTS)
def test_a_token_is_referred_to_and_never_written(client: str, home: Any) -> None:
    path = home / "file"
    arguments = [client, "--http", URL, "--token-env", "TOKEN", "--file", str(path)]
    if client in REFERENCES:
        assert main(arguments) == 0
        assert servers_in(path, client)["fastrpc"]["headers"] == {"Authorization": REFERENCES[client]}
    elif client == "codex":
        assert main(arguments) == 0
        assert servers_in(path, client)["fastrpc"] == {"url": URL, "bearer_token_env_var": "TOKEN"}
    else:
        with pytest.raises(UsageError, match="reads no token from the environment: give --token-file FILE"):
            main(arguments)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_token_in_a_file_is_read_by_a_bridge(
    client: str, home: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    (home / "token").write_text("secret-of-the-file\n")
    assert main([client, "--http", URL, "--token-file", "token", "--file", "file"]) == 0
    entry = servers_in(home / "file", client)["fastrpc"]
    assert entry["args"][-4:] == ["bridge", URL, "--token-file", str(home / "token")]
    assert "secret-of-the-file" not in (home / "file").read_text()


# --- names, targets, links ----------------------------------------------------------------------------------


def test_a_target_is_named_by_its_whole_path_and_gives_the_name(
    home: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    (home / "my shop.py").touch()
    assert main(["cursor", "my shop.py:app"]) == 0
    ((name, entry),) = servers_in(home / ".cursor" / "mcp.json", "cursor").items()
    assert name == "my shop"
    assert entry["args"] == ["serve", f"{home}/my shop.py:app"]


@pytest.mark.parametrize(
    ("installed", "package"),
    [
        ({"http": False, "schema": False, "tools": False}, "fastrpc-mcp"),
        ({"http": True, "schema": False, "tools": True}, "fastrpc-mcp[http,tools]"),
    ],
)
def test_what_uvx_has_unpacked_is_entered_as_a_call_of_uvx_with_the_same_extras(
    installed: dict[str, bool],
    package: str,
    home: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (home / "bin").mkdir()
    runner = home / "bin" / "uvx"
    runner.write_text("#!/bin/sh\n")
    runner.chmod(0o755)
    monkeypatch.setenv("PATH", str(home / "bin"))
    monkeypatch.setattr(sys, "prefix", f"{home}/.cache/uv/archive-v0/x1")
    monkeypatch.setattr(install_client, "extras", lambda: installed)
    assert main(["cursor", "--print"]) == 0
    shown = json.loads(capsys.readouterr().out.partition("\n")[2])
    entry = shown["mcpServers"]["fastrpc"]
    assert [entry["command"], *entry["args"]] == [str(runner), "--from", package, "fastrpc", "serve"]


def test_a_link_stays_one_and_the_mode_stays(home: Any) -> None:
    (home / "real").write_text("{}")
    os.chmod(home / "real", 0o640)
    (home / "link").symlink_to(home / "real")
    assert main(["cursor", "--file", str(home / "link")]) == 0
    assert os.path.islink(home / "link")
    assert stat.S_IMODE(os.stat(home / "real").st_mode) == 0o640
    assert "fastrpc" in (home / "real").read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["emacs"], "client: expected one of claude-code"),
        (["cursor", "--env", "novalue"], "--env: expected NAME=VALUE"),
        (["cursor", "--cwd", "/no/such"], "--cwd: '/no/such' is not a folder"),
        (["curser"], "got 'curser'; did you mean 'cursor'"),
        (["cursor", "--http", "mcp.example.com"], "--http: expected a URL such as"),
        (["cursor", "--http", "https://me:word@mcp.example.com/"], "no name or password in the address"),
        (["cursor", "shop.py", "--http", URL], "for a server that already runs: a target is only for"),
        (["cursor", "--token-file", "token"], "--token-file needs --http too"),
        (["cursor", "--http", URL, "--token-file", "/no/such"], "--token-file: '/no/such' is not a file"),
        (["cursor", "--http", URL, "--token-env", "a b"], "--token-env: expected the name of a variable"),
    ],
)
def test_a_mistake_is_named(arguments: list[str], said: str, home: Any) -> None:
    with pytest.raises(UsageError, match=said):
        main(arguments)
    assert os.listdir(home) == []


# --- YAML as text -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# nothing yet\n",
        "---\nextensions: {}  # none\n",
        "extensions:\nGOOSE_MODE: auto",
        "extensions:\n  'fastrpc':\n    type: stdio\n    args:\n    - a\n\n    # of mine\n  b: {type: x}\n",
        "a:\n  - extensions:\n      x: 1\nextensions:\n      deep:\n        text: |\n\n          fastrpc:\n",
    ],
)
def test_a_block_of_yaml_takes_an_entry_and_keeps_the_rest(text: str, home: Any) -> None:
    path = home / "config.yaml"
    path.write_text(text)
    expected = yaml.safe_load(text) or {}
    assert main(["goose", "--file", str(path)]) == 0
    after = yaml.safe_load(path.read_text())
    assert after["extensions"].pop("fastrpc")["type"] == "stdio"
    before = expected.get("extensions") or {}
    before.pop("fastrpc", None)
    assert after == {**expected, "extensions": before}


@pytest.mark.parametrize(
    "text",
    [
        "extensions: {a: {}}\n",
        "- a\n- b\n",
        "extensions:\n\ta: 1\n",
        "{}\n",
        "extensions:\nextensions:\n",
        "word\n",
    ],
)
def test_another_form_of_yaml_is_refused_and_left_alone(text: str, home: Any) -> None:
    path = home / "config.yaml"
    path.write_text(text)
    with pytest.raises(UsageError, match="cannot be changed safely"):
        main(["goose", "--file", str(path)])
    assert path.read_text() == text


# --- JSON as text -----------------------------------------------------------------------------------------

LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
DOCUMENTS = st.dictionaries(
    st.sampled_from(["mcpServers", "a", "b", 'q"\\', "\u0645"]),
    st.dictionaries(
        st.sampled_from(["other", "fastrpc", "x y"]), st.dictionaries(st.text(max_size=3), LEAVES)
    ),
)
LAYOUTS = st.sampled_from([None, 0, 1, 2, 4, "\t"])


@given(DOCUMENTS, LAYOUTS, st.booleans())
def test_whatever_the_file_holds_only_our_entry_changes(
    document: dict[str, Any], layout: Any, ascii_only: bool
) -> None:
    text = json.dumps(document, indent=layout, ensure_ascii=ascii_only)
    entered = put(text, "mcpServers", "fastrpc", ENTRY)
    expected = json.loads(text)
    expected.setdefault("mcpServers", {})["fastrpc"] = ENTRY
    assert json.loads(entered) == expected
    gone = json.loads(take(entered, "mcpServers", "fastrpc"))
    del expected["mcpServers"]["fastrpc"]
    assert gone == expected
    if "mcpServers" in document and document["mcpServers"] and "fastrpc" not in document["mcpServers"]:
        assert "".join(take(entered, "mcpServers", "fastrpc").split()) == "".join(text.split())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  \n",
        "\ufeff{}",
        "{/* a */}",
        "{ // a\n}",
        '{"a": 1}',
        '{"a": 1,}',
        '{\n\t"a": [1, 2,],\n}',
        "{\r\n}",
    ],
)
def test_odd_but_sound_texts_take_an_entry(text: str) -> None:
    entered = put(text, "s", "n", {"x": 1})
    assert parse(entered).plain["s"] == {"n": {"x": 1}}
    assert "/* a */" not in text or "/* a */" in entered
    assert "// a" not in text or "// a" in entered


@pytest.mark.parametrize(
    "text",
    ["[]", '"x"', "{", '{"a" 1}', "{'a': 1}", '{"a": }', '{"a": 1 "b": 2}', "{} {}", '{"s": []}', "nul",
     '{"a": 01}', "[" * 200],
)  # fmt: skip
def test_what_is_no_object_of_objects_is_refused(text: str) -> None:
    with pytest.raises(NotJson):
        put(text, "s", "n", {})


def test_a_comment_that_looks_like_a_member_is_none() -> None:
    text = '{\n  // "s": {"n": 1},\n  "s": {}\n}'
    assert take(text, "s", "n") == text
    assert json_text.parse(text).plain == {"s": {}}
