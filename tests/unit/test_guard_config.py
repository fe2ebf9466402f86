"""The guard's configuration: what a file means, and what is said of each mistake in one."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from fastrpc.guard.policy.config import GuardConfig
from fastrpc.guard.policy.file import read
from fastrpc.guard.policy.sections import GuardConfigError


def configured(folder: Path, text: str, name: str = "guard.toml") -> GuardConfig:
    path = folder / name
    path.write_text(text)
    return read(str(path))


def mistake(folder: Path, text: str, name: str = "guard.toml") -> str:
    with pytest.raises(GuardConfigError) as caught:
        configured(folder, text, name)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "[clases.agent]\n",
            "guard.toml, line 1: clases: no such key (did you mean classes, claims, callers?)",
        ),
        ("\n[expose]\ntols = []\n", "guard.toml, line 3: expose.tols: no such key (did you mean tools?)"),
        ("[expose]\ntools = 'x'\n", "guard.toml, line 2: expose.tools: expected an array of texts, got 'x'"),
        (
            "[expose]\ntools = ['']\n",
            "guard.toml, line 2: expose.tools: a name or glob has 1 to 256 characters",
        ),
        ("[classes.a]\nrate = '5'\n", "line 2: classes.a.rate: expected a rate such as 60/minute, got '5'"),
        ("[classes.a]\nrate = '0/minute'\n", "expected a rate such as 60/minute, got '0/minute'"),
        ("[[rules]]\nwhen = 'true'\n", "guard.toml, line 1: rules[0]: give either then or risk"),
        ("[[rules]]\nthen = 'deny'\n", "guard.toml, line 1: rules[0]: when is missing"),
        (
            "[[rules]]\nwhen = 'true'\nthen = 'denied'\n",
            "line 3: rules[0].then: expected deny, ask or allow, got 'denied' (did you mean deny?)",
        ),
        (
            "[[rules]]\nwhen = 'a'\nthen = 'deny'\n[[rules]]\nid = 'rule-1'\nwhen = 'b'\nthen = 'deny'\n",
            "guard.toml, line 5: rules[1].id: another rule is called rule-1",
        ),
        (
            "[[rules]]\nwhen = 'true'\nthen = 'ask'\nphase = 'list'\n",
            "guard.toml, line 4: rules[0].phase: a rule of the phase list can only hide: then = 'deny'",
        ),
        (
            "[risk]\nwipe = 'huge'\n",
            "line 2: risk.wipe: expected none, low, medium, high or critical, got 'huge'",
        ),
        (
            "[approvals]\ntimeout_seconds = 0\n",
            "approvals.timeout_seconds: expected a number of seconds above 0",
        ),
        (
            "[approvals]\nkeep_days = 0\n",
            "line 2: approvals.keep_days: expected a number of days above 0, got 0",
        ),
        ("[approvals]\ntimeout_seconds = true\n", "expected a number of seconds above 0, got True"),
        (
            "[audit]\nmode = 'loud'\n",
            "guard.toml, line 2: audit.mode: expected group, strict or off, got 'loud'",
        ),
        ("[audit]\nkeep_days = 0\n", "line 2: audit.keep_days: expected a number of days above 0, got 0"),
        ("[audit]\nkeep_bytes = 1.5\n", "audit.keep_bytes: expected a number of bytes above 0, got 1.5"),
        (
            "[audit]\nkeyfile = 'x'\n",
            "guard.toml, line 2: audit.keyfile: no such key (did you mean key_file?)",
        ),
        (
            "[audit]\n[[audit.targets]]\n",
            "guard.toml, line 2: audit.targets[0]: give one of folder, syslog, webhook",
        ),
        (
            "[[audit.targets]]\nfolder = 'a'\n[[audit.targets]]\nfolder = 'b'\nsyslog = '/dev/log'\n",
            "guard.toml, line 3: audit.targets[1]: give one of folder, syslog, webhook",
        ),
        (
            "[[audit.targets]]\nsyslog = 'localhost'\n",
            "line 2: audit.targets[0].syslog: expected the path of a socket, or HOST:PORT, got 'localhost'",
        ),
        (
            "[[audit.targets]]\nwebhook = 'https://a/b'\n",
            "line 1: audit.targets[0]: a webhook needs a secret; other targets have none",
        ),
        (
            "[[audit.targets]]\nwebhook = 'https://a/b'\nsecret = 'hunter2'\n",
            "line 3: audit.targets[0].secret: expected env:NAME, file:PATH or {{vault:name}}",
        ),
        ("defaults = 3\n", "guard.toml, line 1: defaults: expected a table, got 3"),
        ("rules = 3\n", "guard.toml, line 1: rules: expected an array of tables, got 3"),
        ("= 3\n", "guard.toml: not TOML: "),
        (
            "database = 'postgresql://u:hunter2@h/d'\n",
            "database: expected env:NAME, file:PATH or {{vault:name}}",
        ),
        ("[defaults]\nclass = 'a b'\n", "defaults.class: expected a name of letters, digits"),
        ("[[claims]]\nequals = 'b'\nclass = 'c'\n", "guard.toml, line 1: claims[0]: claim is missing"),
        ("[[claims]]\nclaim = 'a'\nequals = 'b'\n", "guard.toml, line 1: claims[0]: class is missing"),
        (
            "[[claims]]\nclaim = 'a'\nclass = 'b'\n",
            "claims[0]: expected one of equals, contains, matches, present, got none",
        ),
        (
            "[[claims]]\nclaim = 'a'\nclass = 'b'\nequals = 1\npresent = true\n",
            "claims[0]: expected one of equals, contains, matches, present, got equals and present",
        ),
        (
            "[[claims]]\nclaim = 'a'\nclass = 'b'\nequals = []\n",
            "line 4: claims[0].equals: expected a text, a number or a boolean, got []",
        ),
        ("[[claims]]\nclam = 'a'\nclaim = 'a'\nclass = 'b'\n", "line 2: claims[0].clam: no such key"),
        ("[[claims]]\nclaim = 'a'\nclass = 'a:b'\n", "claims[0].class: expected a name of letters, digits"),
    ],
)
def test_a_mistake_is_named_with_its_line_what_was_expected_and_what_came(
    tmp_path: Path, text: str, said: str
) -> None:
    found = mistake(tmp_path, text)
    assert said in found
    assert "hunter2" not in found


def test_a_file_that_is_none_or_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(GuardConfigError, match="No such file"):
        read(str(tmp_path / "missing.toml"))
    os.mkfifo(tmp_path / "pipe.toml")
    with pytest.raises(GuardConfigError, match=r"pipe\.toml"):
        read(str(tmp_path / "pipe.toml"))
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(GuardConfigError, match="not UTF-8"):
        read(str(tmp_path / "bytes.toml"))
    (tmp_path / "large.toml").write_text("#" * (1024 * 1024 + 1))
    with pytest.raises(GuardConfigError, match="longer than"):
        read(str(tmp_path / "large.toml"))


def test_the_table_guard_of_fastrpc_toml_is_a_configuration(tmp_path: Path) -> None:
    found = configured(tmp_path, "[other]\nx = 1\n[guard.expose]\ntools = ['search']\n", "fastrpc.toml")
    assert found.expose.tools is not None
    assert found.expose.tools.texts == ("search",)
    said = mistake(tmp_path, "[guard.expose]\ntols = []\n", "fastrpc.toml")
    assert "fastrpc.toml, line 2: guard.expose.tols: no such key" in said
    assert "there is no table [guard]" in mistake(tmp_path, "[other]\n", "fastrpc.toml")


def test_what_a_configuration_says_without_a_word(tmp_path: Path) -> None:
    found = configured(tmp_path, "")
    assert (found.default_class, found.user_class, found.hides) == ("default", "local", True)
    assert (found.unknown_risk, found.approvals.least, found.approvals.timeout_seconds) == (
        "high",
        "high",
        300.0,
    )
    assert (found.audit.mode, found.allows("stdio"), found.allows("http")) == ("group", True, True)
    assert found.version == configured(tmp_path, "").version != configured(tmp_path, "# x").version


# --- secrets ----------------------------------------------------------------------------------------------

TOKENS = '[[tokens]]\nid = "claude"\ntoken = "{{vault:claude_token}}"\n'


def vault(folder: Path, text: str, mode: int = 0o600) -> None:
    (folder / "vault").write_text(text)
    (folder / "vault").chmod(mode)


HOOK = '[[audit.targets]]\nwebhook = "URL"\nsecret = "{{vault:hook}}"\n'


def test_checkpoints_go_to_folders_syslog_and_webhooks(tmp_path: Path) -> None:
    vault(tmp_path, "hook = a-secret-of-the-hook\n")
    places = "".join(
        f"[[audit.targets]]\n{place}\n"
        for place in ("folder = '/other'", "syslog = '/dev/log'", "syslog = '[::1]:514'")
    )
    found = configured(tmp_path, places + HOOK.replace("URL", "https://a.example/b")).audit
    assert [target.name for target in found.targets] == [
        "the folder /other",
        "syslog at /dev/log",
        "syslog at ::1:514",
        "the webhook https://a.example/b",
    ]
    said = mistake(tmp_path, HOOK.replace("URL", "ftp://a/b"))
    assert "line 2: audit.targets[0].webhook: webhook: expected an http or https URL" in said


def test_how_long_records_are_kept_and_where(tmp_path: Path) -> None:
    found = configured(
        tmp_path, "[audit]\nfolder = '/a/b'\nkey_file = '~/key.pem'\nkeep_days = 1.5\nkeep_bytes = 1_000\n"
    ).audit
    assert (found.folder, found.key_file) == ("/a/b", os.path.expanduser("~/key.pem"))
    assert (found.keep_days, found.keep_bytes) == (1.5, 1000)


def test_a_secret_comes_from_the_vault_a_file_or_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault(tmp_path, "# secrets\nother = 1\nclaude_token = 'a-token-of-the-vault'\n")
    assert configured(tmp_path, TOKENS).tokens == [("claude", "a-token-of-the-vault")]
    (tmp_path / "token").write_text("a-token-of-a-file\nrest\n")
    (tmp_path / "token").chmod(0o600)
    of_file = TOKENS.replace("{{vault:claude_token}}", "file:token")
    assert configured(tmp_path, of_file).tokens == [("claude", "a-token-of-a-file")]
    monkeypatch.setenv("CLAUDE_TOKEN", "a-token-of-the-environment")
    of_environment = TOKENS.replace("{{vault:claude_token}}", "env:CLAUDE_TOKEN")
    for _ in range(2):  # the second time it is not in the environment any more
        found = configured(tmp_path, of_environment)
        assert found.tokens == [("claude", "a-token-of-the-environment")]
        assert "CLAUDE_TOKEN" not in os.environ


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("{{vault:nothing}}", "there is no nothing"),
        ("env:NOT_SET_ANYWHERE", "the environment variable NOT_SET_ANYWHERE is not set"),
        ("file:nowhere", "No such file"),
        (
            "s3cret-itself-in-the-file",
            "expected env:NAME, file:PATH or {{vault:name}}, not the secret itself",
        ),
    ],
)
def test_a_secret_that_is_not_there_is_named_and_none_is_shown(
    tmp_path: Path, reference: str, said: str
) -> None:
    vault(tmp_path, "claude_token = hunter2hunter2hunter2\n")
    found = mistake(tmp_path, TOKENS.replace("{{vault:claude_token}}", reference))
    assert said in found
    assert "tokens" in found
    assert "hunter2" not in found
    assert "s3cret" not in found


def test_a_vault_that_others_can_read_is_refused(tmp_path: Path) -> None:
    vault(tmp_path, "claude_token = x\n", 0o644)
    assert "others may use the file (mode 0644): chmod 600" in mistake(tmp_path, TOKENS)


# --- mcp-server.json --------------------------------------------------------------------------------------

SOPHON: dict[str, Any] = {
    "enabled": True,
    "transports": {
        "stdio": {"enabled": True},
        "sse": {"enabled": False, "path": "/mcp/sse"},
        "streamableHttp": {"enabled": True, "path": "/mcp/http"},
    },
    "auth": {"tokens": [{"id": "claude-desktop", "token": "{{vault:mcp_claude_token}}"}]},
    "expose": {"tools": ["memory.*", "workflow.list"], "resources": ["documents/*"]},
}


def test_the_file_of_sophon_is_read_as_it_is(tmp_path: Path) -> None:
    vault(tmp_path, "mcp_claude_token = a-token-for-claude-desktop\n")
    found = configured(tmp_path, json.dumps(SOPHON), "mcp-server.json")
    assert found.tokens == [("claude-desktop", "a-token-for-claude-desktop")]
    assert found.expose.tools is not None
    assert found.expose.resources is not None
    assert [
        found.expose.tools.match(name) for name in ("memory.search", "workflow.list", "workflow.run")
    ] == [
        True,
        True,
        False,
    ]
    assert found.expose.resources.match_uri("sophon://documents/doc_1")
    assert not found.expose.resources.match_uri("sophon://memory/1")
    assert (found.allows("stdio"), found.allows("http")) == (True, True)
    assert found.every_caller is not None
    assert (found.every_caller.text, found.counts_requests, found.hides) == ("60/minute", True, False)


@pytest.mark.parametrize(
    ("change", "stdio", "http"),
    [
        ({"enabled": False}, False, False),
        ({"transports": {"stdio": {"enabled": True}}}, True, False),
        ({"transports": {"sse": {"enabled": True, "path": "/x"}}}, False, True),
    ],
)
def test_what_the_file_of_sophon_does_not_enable_is_not_served(
    tmp_path: Path, change: dict[str, Any], stdio: bool, http: bool
) -> None:
    text = json.dumps({**SOPHON, "auth": {"tokens": []}, **change})
    found = configured(tmp_path, text, "mcp-server.json")
    assert (found.allows("stdio"), found.allows("http")) == (stdio, http)


def test_a_mistake_in_the_file_of_sophon_is_named(tmp_path: Path) -> None:
    text = json.dumps({**SOPHON, "exposed": {}})
    assert "mcp-server.json: exposed: no such key (did you mean expose?)" in mistake(
        tmp_path, text, "mcp-server.json"
    )
    assert "mcp-server.json: not JSON" in mistake(tmp_path, "{", "mcp-server.json")
