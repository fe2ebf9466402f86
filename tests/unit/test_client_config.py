"""Files with servers, as MCP clients write them: what is read, what is expanded, and what is refused."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from fastrpc.client.config import ServerEntry, entries_of, entry_of, find_config, read_config
from fastrpc.errors import InvalidConfig


def written(tmp_path: Any, text: Any) -> str:
    path = tmp_path / ".mcp.json"
    path.write_text(text if isinstance(text, str) else json.dumps(text))
    return str(path)


def parts(entry: ServerEntry) -> dict[str, Any]:
    return {name: getattr(entry, name) for name in ServerEntry.__slots__}


def test_the_servers_of_a_file_are_read_in_their_order(tmp_path: Any) -> None:
    servers = {
        "shop": {
            "command": "python",
            "args": ["shop.py"],
            "env": {"A": "1", "B": 2, "C": True},
            "cwd": "/s",
        },
        "far": {"type": "http", "url": "https://example.org/mcp", "headers": {"X-Key": "k"}},
        "old": {"type": "sse", "url": "https://example.org/sse"},
    }
    found = read_config(written(tmp_path, {"mcpServers": servers}))
    assert list(found) == ["shop", "far", "old"]
    assert parts(found["shop"]) == {
        "command": "python",
        "args": ["shop.py"],
        "env": {"A": "1", "B": "2", "C": "true"},
        "cwd": "/s",
        "url": "",
        "headers": {},
        "transport": "stdio",
        "auth": None,
        "enabled": True,
        "allowed": [],
        "denied": [],
    }
    assert (found["far"].url, found["far"].headers) == ("https://example.org/mcp", {"X-Key": "k"})
    assert [entry.transport for entry in found.values()] == ["stdio", "http", "sse"]


def test_comments_trailing_commas_and_the_section_of_vs_code_are_read(tmp_path: Any) -> None:
    text = '// mine\n{"inputs": [], "servers": {"a": {"command": "a", "args": ["x",],},},}'
    assert read_config(written(tmp_path, text))["a"].args == ["x"]


@pytest.mark.parametrize(
    ("raw", "command", "url"),
    [
        ({"type": "local", "command": ["a", "b"], "environment": {"X": "1"}}, ["a", "b"], ""),
        ({"type": "stdio", "cmd": "a", "args": ["b"], "envs": {"X": "1"}}, ["a", "b"], ""),
        ({"httpUrl": "http://h/mcp"}, [""], "http://h/mcp"),
        ({"serverUrl": "http://h/mcp"}, [""], "http://h/mcp"),
        ({"type": "streamable_http", "uri": "http://h/mcp"}, [""], "http://h/mcp"),
    ],
)
def test_the_names_that_other_clients_have_for_a_member_are_known(raw: Any, command: Any, url: str) -> None:
    entry = entry_of(raw)
    assert [entry.command, *entry.args] == command
    assert entry.url == url
    assert entry.env == ({"X": "1"} if entry.command else {})


@pytest.mark.parametrize("raw", [{"command": "a", "disabled": True}, {"command": "a", "enabled": False}])
def test_an_entry_can_be_switched_off(raw: Any) -> None:
    assert not entry_of(raw).enabled


def test_a_token_that_fastmcp_writes_as_auth_is_a_header_unless_there_is_one() -> None:
    entry = entry_of({"url": "https://x.example/mcp", "auth": "${TOKEN}"}).expanded({"TOKEN": "t0"})
    assert entry.options == {"headers": {"Authorization": "Bearer t0"}}
    own = {"authorization": "Bearer own"}
    assert entry_of({"url": "https://x.example/mcp", "auth": "t0", "headers": own}).headers == own


def test_a_login_by_oauth_is_an_option_of_the_url_alone() -> None:
    entry = entry_of({"url": "https://x.example/mcp", "auth": "oauth", "headers": {"A": "b"}}).expanded({})
    assert entry.options == {"headers": {"A": "b"}, "auth": "oauth"}
    assert entry_of({"url": "https://x.example/mcp", "auth": {"kind": "other"}}).options == {}
    assert entry_of({"command": "x", "auth": "oauth"}).auth is None


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("${HOST}", "h"),
        ("a${HOST}b${HOST}", "ahbh"),
        ("${PORT:-80}", "80"),
        ("${HOST:-x}", "h"),
        ("${EMPTY:-x}", "x"),
        ("${EMPTY}", ""),
        ("${PORT:-}", ""),
        ("${env:HOST}", "h"),
        ("$HOST {x} }", "h {x} }"),
        ("Bearer $HOST/$HOST$", "Bearer h/h$"),
        ("$EMPTY", ""),
        ("$TEXT", "${HOST}"),
        ("pa$word $1 $$ $X", "pa$word $1 $$ $X"),
        ("${NONE:-$HOST}", "$HOST"),
        ("{env:HOST}:{env:PORT:-80}", "h:80"),
        ('{"$schema": {}}', '{"$schema": {}}'),
        ("${PORT:-${HOST}}", "h"),
        ("${PORT:-a${NONE:-${HOST}b}c}d", "ahbcd"),
        ("${HOST:-${NONE}}", "h"),
        ("${env:PORT:-${env:HOST}}", "h"),
        ("${TEXT}", "${HOST}"),
        ("${/}x", "/x"),
    ],
)
def test_variables_are_expanded_in_every_member(text: str, expanded: str) -> None:
    raw = {"command": text or "c", "args": [text], "env": {"A": text}, "cwd": text, "headers": {"H": text}}
    known = {"HOST": "h", "EMPTY": "", "TEXT": "${HOST}"}
    entry = entry_of(raw).expanded(known)
    assert entry.command == entry.args[0] == entry.env["A"] == entry.cwd == entry.headers["H"] == expanded
    assert entry_of({"url": f"http://{text}/"}).expanded(known).url == f"http://{expanded}/"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("${input:token}", "${input:token}: is a question to a person"),
        ("Bearer ${input:token}", "${input:token}: is a question to a person"),
        ("${PORT:-${input:token}}", "${input:token}: is a question to a person"),
        ("${PORT:-${NONE}}", "${NONE}: the environment variable NONE is not set"),
        ("${workspaceFolder}/x", "workspaceFolder is not set (it is an editor's; write the path)"),
        ("${workspaceFolder:shop}", "is replaced only by an editor"),
        ("${command:pick}", "is replaced only by an editor"),
        ("${config:a.b}", "is replaced only by an editor"),
        ("${{ secrets.KEY }}", "${{ secrets.KEY }: expected ${VAR}"),
        ("${user_config.key}", "expected ${VAR}"),
        ("${}", "${}: expected ${VAR}"),
        ("${a b}", "${a …: expected ${VAR}"),
        ("${HOST-x}", "${HOST…: expected ${VAR}"),
        ("${HOST:=the-secret}", "${HOST…: expected ${VAR}"),
        ("${HOST:the-secret}", "${HOST…: expected ${VAR}"),
        ("${env:HOST|the-secret}", "${env:HOST…: expected ${VAR}"),
        ("${NONE:-${HOST-the-secret}}", "${HOST…: expected ${VAR}"),
        ("${HOST the-secret", "${HOST …: expected ${VAR}"),
        ("${1}", "expected ${VAR}"),
        ("x${", "${: expected ${VAR}"),
        ("${HOST", "${HOST: expected ${VAR}"),
        ("${HOST:-the-secret", "${HOST:-…: the closing brace is missing"),
        ("${HOST:-" * 40 + "}" * 40, "more than 32 variables inside one another"),
        ("$NONE", "$NONE: the environment variable NONE is not set"),
        ("Bearer $NONE", "$NONE: the environment variable NONE is not set"),
        ("$the_secret", "$…: this environment variable is not set"),
        ("{env:NONE}", "{env:NONE}: the environment variable NONE is not set"),
        ("${HOST}{file:~/.key}", "{file:~/.key}: files are not read"),
    ],
)
@pytest.mark.parametrize("member", ["command", "args", "env", "cwd", "url", "headers"])
def test_what_is_no_variable_is_refused_wherever_it_is(text: str, said: str, member: str) -> None:
    value: Any = {"args": [text], "env": {"A": text}, "headers": {"A": text}}.get(member, text)
    raw = {"command": "c", member: value} if member != "url" else {member: value}
    with pytest.raises(InvalidConfig) as caught:
        entry_of(raw).expanded({"HOST": "h"})
    assert said in str(caught.value)
    assert str(caught.value).startswith(f"{member}: ")
    assert not re.search("the.secret", str(caught.value))


def test_a_shell_reads_the_variables_of_its_script_itself() -> None:
    script = "run --key $KEY --home $HOME $NONE"
    for arguments in (["-c", script], ["-lc", script]):
        assert entry_of({"command": "sh", "args": arguments}).expanded({"HOME": "/h"}).args == arguments
    entry = entry_of({"command": "run", "args": ["$KEY", "in $HOME"], "env": {"KEY": "k"}})
    assert entry.expanded({"HOME": "/h"}).args == ["$KEY", "in /h"]


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ({"command": "c", "url": "http://x"}, "expected either command or url"),
        ({"url": "ws://x", "type": "ws"}, "type: expected stdio, http, streamable-http or sse, got 'ws'"),
        ({"command": "c", "type": "http"}, "type: http needs a url"),
        ({"url": "http://x", "transport": "stdio"}, "type: stdio needs a command"),
        ({"command": "c", "disabled": "true"}, "disabled: expected true or false, got a string"),
        ({"command": "c", "enabled": 0}, "enabled: expected true or false, got a number"),
        ({"command": "c", "envFile": ".env"}, "envFile: is not supported"),
        ({"command": "c", "excludeTools": "drop"}, "excludeTools: expected an array of strings"),
        ({"command": "c", "exclude_tags": ["a"]}, "exclude_tags: is not known"),
        ({"command": "c", "allowToolList": ["a"]}, "allowToolList: is not known"),
    ],
)
def test_an_entry_that_would_do_something_else_than_it_says_is_refused(raw: Any, said: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        entry_of(raw)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "raw",
    [
        ["c", "--token", "the-secret"],
        {"command": {"c": "the-secret"}},
        {"command": "c", "args": "--token the-secret"},
        {"command": "c", "args": {"token": "the-secret"}},
        {"command": "c", "args": [["--token", "the-secret"]]},
        {"command": "c", "env": ["KEY=the-secret"]},
        {"command": "c", "env": {"KEY": ["the-secret"]}},
        {"url": ["http://x/?key=the-secret"]},
        {"url": "http://x", "headers": "Authorization: the-secret"},
    ],
)
def test_a_value_of_a_wrong_type_is_not_shown(raw: Any) -> None:
    for servers in ({"a": raw}, [raw]):
        with pytest.raises(InvalidConfig, match=r"expected an? .*, got an? ") as caught:
            entries_of(servers)
        assert "the-secret" not in str(caught.value)


@pytest.mark.parametrize("nothing", [0, False, "", {}])
def test_arguments_are_an_array_even_where_there_are_none(nothing: Any) -> None:
    with pytest.raises(InvalidConfig, match="args: expected an array of strings, got"):
        entry_of({"command": "c", "args": nothing})


@pytest.mark.parametrize(
    ("raw", "transport"),
    [
        ({"command": "c", "type": "local"}, "stdio"),
        ({"url": "http://x", "type": "streamable-http"}, "http"),
        ({"url": "http://x", "type": "streamableHttp"}, "http"),
        ({"url": "http://x", "transport": "sse"}, "sse"),
        ({"command": "c", "url": "http://x", "type": "http"}, "http"),
        ({"command": "c", "url": "http://x", "type": "stdio"}, "stdio"),
    ],
)
def test_a_type_says_which_transport_it_is(raw: Any, transport: str) -> None:
    entry = entry_of(raw)
    assert entry.transport == transport
    assert bool(entry.command) == (transport == "stdio") != bool(entry.url)


def test_the_tools_that_an_entry_lets_be_used() -> None:
    both = entry_of({"command": "c", "includeTools": ["a", "b"], "excludeTools": ["b"]}).expanded({})
    assert [both.offers(tool) for tool in "abc"] == [True, False, False]
    assert entry_of({"command": "c", "tools": ["*"]}).offers("x")
    assert not entry_of({"command": "c", "disabled_tools": ["x"]}).offers("x")
    assert not entry_of({"command": "c", "enabledTools": []}).offers("x")
    globs = entry_of({"command": "c", "includeTools": ["get_*", "x[1]"], "excludeTools": ["*_all"]})
    assert [globs.offers(tool) for tool in ("get_a", "get_all", "x[1]", "x1")] == [True, False, True, False]
    assert globs.unmatched(["get_a", "x1"]) == ["x[1]", "*_all"]


def test_each_list_of_tools_of_an_entry_counts() -> None:
    lists = {"includeTools": ["a", "b", "c"], "tools": ["*"], "enabled_tools": ["a", "b"]}
    entry = entry_of({"command": "c", **lists, "excludeTools": ["a"], "disabled_tools": ["x"]}).expanded({})
    assert [entry.offers(tool) for tool in "abcx"] == [False, True, False, False]
    for members in ({"alwaysAllow": ["a"]}, {"autoApprove": ["a"]}, {"trust": True}, {"timeout": 5}):
        assert not entry_of({"command": "c", **members}).is_restricted


def test_a_variable_that_is_not_set_is_named_when_its_entry_is_used(tmp_path: Any) -> None:
    servers = {"a": {"command": "a", "env": {"K": "${NO_SUCH_VARIABLE}"}}, "b": {"command": "b"}}
    found = read_config(written(tmp_path, {"mcpServers": servers}))
    assert found["b"].expanded({}).command == "b"
    with pytest.raises(InvalidConfig, match="environment variable NO_SUCH_VARIABLE is not set"):
        found["a"].expanded({})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "line 1, column 2"),
        ("[]", "expected an object with mcpServers or servers"),
        ("{}", "neither mcpServers nor servers"),
        ('{"mcpServers": []}', "mcpServers: expected an object"),
        ('{"mcpServers": {"a": 5}}', "a: expected an object, got a number"),
        ('{"mcpServers": {"a": {}}}', "a: expected a command or a url"),
        ('{"mcpServers": {"a": {"command": " "}}}', "a: expected a command or a url"),
        ('{"mcpServers": {"a": {"command": 5}}}', "a: command: expected a string, got a number"),
        ('{"mcpServers": {"a": {"command": "c", "args": "x"}}}', "a: args: expected an array of strings"),
        (
            '{"mcpServers": {"a": {"command": "c", "env": {"N": []}}}}',
            "env: N: expected a string, got an array",
        ),
        ('{"mcpServers": {"a": {"command": "c", "cwd": 5}}}', "a: cwd: expected a string, got a number"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_file(tmp_path: Any, text: str, said: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(InvalidConfig) as caught:
        read_config(path)
    assert str(caught.value).startswith(path)
    assert said in str(caught.value)


def test_a_file_that_is_missing_or_not_text_is_an_error_with_its_name(tmp_path: Any) -> None:
    for name, content in (("missing", None), ("binary", b"\xff\xfe")):
        if content is not None:
            (tmp_path / name).write_bytes(content)
        with pytest.raises(InvalidConfig, match=name):
            read_config(str(tmp_path / name))


def test_the_nearest_file_above_a_folder_is_found(tmp_path: Any) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    path = written(tmp_path, "{}")
    assert find_config(str(inner)) == path
    (tmp_path / "a" / ".mcp.json").write_text("{}")
    assert find_config(str(inner)) == str(tmp_path / "a" / ".mcp.json")


def test_an_entry_shows_no_secrets() -> None:
    entry = ServerEntry("run", ["x"], {"TOKEN": "hunter2"}, headers={"Authorization": "hunter2"})
    assert "hunter2" not in repr(entry)
