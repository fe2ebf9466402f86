"""Settings: which source wins, what a cloned repository may not do, and what a mistake is answered with."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest
from fastrpc.tools.agent import _settings as agent

from fastrpc.settings import SETTINGS, Configuration, Setting, declared_in, load, settle, switch

AGENT = declared_in(agent)
EVERY = (*SETTINGS, *(setting for setting in AGENT if not setting.name.endswith("*")))


def load_all(*sources, settings: tuple[Setting, ...] | None = None, **more) -> Configuration:
    """Load the server's settings and those of the agent's tools, or `settings` alone."""
    if settings is not None:
        return load(*sources, settings=settings, **more)
    found = load(*sources, **more)
    found.declare(AGENT)
    settle(found)
    return found


@pytest.fixture
def folders(tmp_path):
    """Return a function that writes settings files and loads the configuration."""
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()

    def run(files: dict[str, str] | None = None, environ: dict[str, str] | None = None, **more):
        for path, text in (files or {}).items():
            whole = (home if path.startswith("~") else work) / path[2:] / "scorpiox-env.txt"
            whole.parent.mkdir(exist_ok=True)
            whole.write_bytes(text.encode() if isinstance(text, str) else text)
        return load_all(environ or {}, str(home), str(work), **more)

    run.home, run.work = home, work
    return run


def test_without_any_source_every_setting_has_its_default_and_nothing_is_said(folders):
    settings = folders()
    assert settings.warnings == []
    assert {value.origin for value in settings} == {"default"}
    assert [value.setting.name for value in settings] == [setting.name for setting in EVERY]
    assert settings["TOOLS"] is True
    assert settings["FASTRPC_PATIENCE_SECONDS"] == 55
    assert settings["FASTRPC_STATE_DIR"] == f"{folders.home}/.local/state/fastrpc"


def test_the_state_folder_follows_xdg_but_not_a_relative_one(folders):
    assert folders(environ={"XDG_STATE_HOME": "/var/x"})["FASTRPC_STATE_DIR"] == "/var/x/fastrpc"
    assert folders(environ={"XDG_STATE_HOME": "x"})["FASTRPC_STATE_DIR"].startswith(str(folders.home))


LADDER = [
    ("~/.scorpiox", "~/.scorpiox/scorpiox-env.txt:1"),
    ("~/.claude", "~/.claude/scorpiox-env.txt:1"),
    ("./.claude", "./.claude/scorpiox-env.txt:1"),
    ("./.scorpiox", "./.scorpiox/scorpiox-env.txt:1"),
    ("environment", "environment"),
    ("option", "command line"),
]


@pytest.mark.parametrize("height", range(len(LADDER)))
def test_each_source_wins_over_all_below_it(folders, height):
    """Configuration: from lowest to highest a setting comes from the default, `~/.scorpiox`, `~/.claude`,
    `./.claude`, `./.scorpiox`, the environment, the command line.
    """
    files, environ, options = {}, {}, {}
    for place, _ in LADDER[: height + 1]:
        if place == "environment":
            environ["MODEL"] = place
        elif place == "option":
            options["MODEL"] = place
        else:
            files[place] = f"MODEL={place}"
    settings = folders(files, environ, options=options)
    place, origin = LADDER[height]
    assert (settings["MODEL"], settings.origin("MODEL")) == (place, origin)
    assert settings.warnings == []


def test_lines_are_trimmed_and_comments_cut_as_the_published_example_has_them(folders):
    """Configuration: a file holds `KEY=VALUE` a line, `#` begins a comment, and both sides are trimmed."""
    settings = folders(
        {
            "~/.scorpiox": (
                "\ufeff# MCP settings\r\n"
                "\r\n"
                "TOOLS=true                  # Enable MCP tool serving (default: true)\r\n"
                "  MODEL =  sonnet \t# a comment\r\n"
                "ADDITIONAL_SKILLS=/a#b, /c\n"
            )
        }
    )
    assert settings.warnings == []
    assert settings["TOOLS"] is True
    assert settings["MODEL"] == "sonnet"
    assert settings["ADDITIONAL_SKILLS"] == ("/a#b", "/c")
    assert settings.origin("MODEL") == "~/.scorpiox/scorpiox-env.txt:4"


PATIENCE = "FASTRPC_PATIENCE_SECONDS: expected a number of seconds, 0 or more"


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("TOOSL=false", "unknown key TOOSL (did you mean TOOLS?)"),
        ("SOMETHING_ELSE=1", "unknown key SOMETHING_ELSE"),
        ("\x1b[2J=1", r"unknown key '\x1b[2J'"),
        ("TOOLS=perhaps", "TOOLS: expected true or false, got 'perhaps'"),
        ("TOOLS=", "TOOLS: expected true or false, got ''"),
        ("TOOL_BASH=\x1b[2J", r"TOOL_BASH: expected true or false, got '\x1b[2J'"),
        ("FASTRPC_PATIENCE_SECONDS=nan", f"{PATIENCE}, got 'nan'"),
        ("FASTRPC_PATIENCE_SECONDS=-1", f"{PATIENCE}, got '-1'"),
        ("FASTRPC_MAX_IN_FLIGHT=0", "FASTRPC_MAX_IN_FLIGHT: expected a whole number from 1 up, got '0'"),
        ("FASTRPC_THREADS=1_0", "FASTRPC_THREADS: expected a whole number from 1 up, got '1_0'"),
        (
            "FASTRPC_LOG_LEVEL=loud",
            "FASTRPC_LOG_LEVEL: expected one of debug, info, warning, error, critical, got 'loud'",
        ),
        ("TOOLS", "expected KEY=VALUE"),
        ("=1", "expected KEY=VALUE"),
        ("K" * 65 + "=1", "the key is longer than 64 characters"),
        ("MODEL=" + "x" * 513, "the value is longer than 512 characters"),
        ("MODEL=a\0b", "the value contains a NUL character"),
    ],
)
def test_a_bad_line_is_one_warning_with_file_and_line_and_the_rest_counts(folders, line, complaint):
    """Configuration: an unknown key or a bad value is one warning with file and line, and the rest of the
    file counts.
    """
    settings = folders({"~/.scorpiox": f"# first\n{line}\nSTREAMING=off\n"})
    assert settings.warnings == [f"~/.scorpiox/scorpiox-env.txt:2: {complaint}"]
    assert settings["STREAMING"] is False
    assert settings["TOOLS"] is True


def test_keys_and_values_at_their_limits_are_taken(folders):
    """Configuration: a key has at most 64 characters, a value at most 512."""
    key = "TOOL_" + "K" * 59
    settings = folders({"~/.scorpiox": f"{key}=0\nMODEL={'x' * 512}"})
    assert settings.warnings == []
    assert settings[key] is False
    assert len(settings["MODEL"]) == 512
    arabic = folders({"~/.scorpiox": f"MODEL={'ش' * 512}"})
    assert arabic.warnings == []
    assert len(arabic["MODEL"]) == 512, "characters are counted, not bytes"


def test_a_bad_value_in_the_environment_is_a_warning_and_an_empty_one_is_none(folders):
    settings = folders(environ={"TOOLS": "gcc", "STREAMING": "", "PATH": "/bin", "FASTRPC_DATA_DIR": "/x"})
    assert settings.warnings == ["environment: TOOLS: expected true or false, got 'gcc'"]
    assert settings["TOOLS"] is True
    assert settings.origin("STREAMING") == "default"


@pytest.mark.parametrize("text", ["0", "false", "no", "off", "FALSE", "Off", "nO"])
def test_every_spelling_of_off_switches_a_tool_off(folders, text):
    """Every tool: `0`, `false`, `no` and `off`, in any case, switch it off."""
    assert not folders(environ={"TOOL_BASH": text}).is_on("TOOL_", "Bash")
    assert not folders({"./.claude": f"TOOL_BASH={text}"}).is_on("TOOL_", "Bash")


def test_hyphens_and_dots_of_a_tools_name_are_underscores_in_its_switch(folders):
    """Every tool: a hyphen or a dot of its name is `_` in the name of its switch."""
    assert switch("TOOL_", "my-tool.v2") == "TOOL_MY_TOOL_V2"
    for key in ("TOOL_MY-TOOL", "TOOL_MY_TOOL", "TOOL_my-tool"):
        settings = folders({"~/.claude": f"{key}=no"})
        assert not settings.is_on("TOOL_", "my-tool")
        assert settings.is_on("TOOL_", "other")


@pytest.mark.parametrize("key", ["TOOLS", "TOOL_BASH", "STREAMING", "SKILL_CREATE_SKILL"])
def test_a_working_directory_cannot_switch_back_on_what_a_home_file_switched_off(folders, key):
    """Configuration: a file of the working directory may switch things off, and not back on what a home file
    switched off.
    """
    settings = folders({"~/.claude": f"{key}=off", "./.scorpiox": f"{key}=on"})
    assert settings[key] is False
    assert settings.origin(key) == "~/.claude/scorpiox-env.txt:1"
    assert settings.warnings == [
        f"./.scorpiox/scorpiox-env.txt:1: {key} stays off: ~/.claude/scorpiox-env.txt:1 switched it off"
    ]


def test_a_working_directory_may_switch_off_and_on_again_what_is_its_own(folders):
    settings = folders({"./.claude": "TOOL_BASH=0", "./.scorpiox": "TOOL_BASH=1\nTOOLS=0"})
    assert settings.warnings == []
    assert settings.is_on("TOOL_", "Bash")
    assert settings["TOOLS"] is False


def test_the_environment_has_the_last_word_over_all_files(folders):
    """Configuration: the environment wins over all files."""
    off = folders({"./.scorpiox": "TOOL_BASH=1"}, {"TOOL_BASH": "0"})
    assert not off.is_on("TOOL_", "Bash")
    on = folders({"~/.scorpiox": "TOOL_BASH=0", "./.scorpiox": "TOOL_BASH=0"}, {"TOOL_BASH": "1"})
    assert on.is_on("TOOL_", "Bash")


def test_a_working_directory_may_not_give_a_permission(folders):
    """Configuration: a cloned repository is not the user: it may not allow the use of the terminal."""
    settings = folders({"./.claude": "ASK_TERMINAL=1", "./.scorpiox": "ASK_TERMINAL=0"})
    assert settings["ASK_TERMINAL"] is False
    assert settings.warnings == [
        "./.claude/scorpiox-env.txt:1: ASK_TERMINAL stays off: "
        "a file in the working directory may not give a permission"
    ]
    (folders.work / ".scorpiox" / "scorpiox-env.txt").unlink()
    kept = folders({"~/.claude": "ASK_TERMINAL=1"})
    assert kept["ASK_TERMINAL"] is True, "the user has given it"
    assert kept.origin("ASK_TERMINAL") == "./.claude/scorpiox-env.txt:1"
    withdrawn = folders({"./.claude": "ASK_TERMINAL=0"})
    assert withdrawn["ASK_TERMINAL"] is False
    assert withdrawn.warnings == []


def test_a_working_directory_may_not_raise_a_guard_that_the_user_took_away(folders):
    settings = folders({"~/.claude": "PLAN_ENFORCE=0", "./.claude": "PLAN_ENFORCE=1"})
    assert settings["PLAN_ENFORCE"] is False
    assert len(settings.warnings) == 1


def test_what_the_environment_switched_off_stays_off_whatever_the_files_say(folders):
    """Configuration: nor does a file switch back on what the environment switched off."""
    for key in ("TOOLS", "TOOL_BASH", "SKILL_CREATE_SKILL", "STREAMING", "ASK_TERMINAL"):
        files = dict.fromkeys(("~/.scorpiox", "~/.claude", "./.claude", "./.scorpiox"), f"{key}=1")
        settings = folders(files, {key: "off"})
        assert (settings[key], settings.origin(key)) == (False, "environment")


def test_a_working_directory_may_raise_a_guard_but_not_lower_it(folders):
    """Configuration: a file of the working directory may raise a guard and not lower it."""
    settings = folders({"./.claude": "PLAN_ENFORCE=1\nFASTRPC_BROWSER_SANDBOX=0"})
    assert settings["PLAN_ENFORCE"] is True
    assert settings["FASTRPC_BROWSER_SANDBOX"] is True
    assert settings.warnings == [
        "./.claude/scorpiox-env.txt:2: FASTRPC_BROWSER_SANDBOX stays on: "
        "a file in the working directory may not lower a guard"
    ]
    assert folders({"~/.claude": "FASTRPC_BROWSER_SANDBOX=0"})["FASTRPC_BROWSER_SANDBOX"] is False


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("module", "code"),
        ("program", "a program"),
        ("folder", "a folder"),
        ("folders", "folders"),
        ("address", "an address"),
        ("secret", "a secret"),
    ],
)
def test_a_working_directory_may_not_name_what_is_run_read_or_trusted(folders, kind, words):
    """Configuration: keys that name a program, a folder, an address or a secret are ignored in the working
    directory, with a warning.
    """
    settings = (Setting("KEY", kind, "mine", "for the test"),)
    found = folders({"./.claude": "KEY=/evil"}, settings=settings)
    assert found["KEY"] == "mine"
    assert found.warnings == [
        "./.claude/scorpiox-env.txt:1: KEY is ignored here: "
        f"a file in the working directory may not name {words}"
    ]
    (folders.work / ".claude" / "scorpiox-env.txt").unlink()
    for files, environ in (({"~/.claude": "KEY=/kept"}, {}), ({}, {"KEY": "/kept"})):
        allowed = folders(files, environ, settings=settings)
        assert allowed["KEY"] in ("/kept", ("/kept",))
        assert allowed.warnings == []


def test_every_known_key_that_reaches_outside_is_held_back(folders):
    """The table itself: a key of such a purpose with a harmless kind would be taken.

    Configuration: every known key that reaches outside is among those that are ignored there.
    """
    purpose = re.compile(
        "(DIR|FOLDER|FILE|PATH|URL|ADDRESS|PROXY|PROGRAM|COMMAND|BROWSER|TOOLSET|SKILLS|TOKEN|SECRET|PASSWORD|KEY)$"
    )
    keys = [setting.name for setting in EVERY if purpose.search(setting.name)]
    assert {"FASTRPC_TOOLSET", "FASTRPC_STATE_DIR", "FASTRPC_BROWSER", "ADDITIONAL_SKILLS"} <= set(keys)
    settings = folders({"./.scorpiox": "".join(f"{key}=/evil\n" for key in keys)})
    assert len(settings.warnings) == len(keys)
    assert not [value for value in settings if "evil" in value.text()]


def test_the_home_folder_as_working_directory_is_the_users_own(folders):
    (folders.home / ".claude").mkdir()
    (folders.home / ".claude" / "scorpiox-env.txt").write_text("FASTRPC_STATE_DIR=/mine\nNONSENSE=1\n")
    settings = load_all({}, str(folders.home), str(folders.home))
    assert settings["FASTRPC_STATE_DIR"] == "/mine"
    assert settings.warnings == ["~/.claude/scorpiox-env.txt:2: unknown key NONSENSE"]


def test_what_is_no_readable_file_is_a_warning_and_never_waits(folders):
    for folder in (".claude", ".scorpiox"):
        (folders.work / folder).mkdir()
    os.mkfifo(folders.work / ".claude" / "scorpiox-env.txt")
    (folders.work / ".scorpiox" / "scorpiox-env.txt").mkdir()
    assert folders().warnings == [
        "./.claude/scorpiox-env.txt: a FIFO, not a regular file",
        "./.scorpiox/scorpiox-env.txt: a folder, not a regular file",
    ]


def test_a_file_of_another_size_or_coding_is_bounded(folders):
    big = folders({"~/.claude": "#" * 300_000})
    assert big.warnings == ["~/.claude/scorpiox-env.txt: larger than 256 KiB"]
    odd = folders({"~/.claude": b"MODEL=\xff\xfe\nSTREAMING=0"})
    assert odd["STREAMING"] is False
    arabic = folders({"~/.claude": "MODEL=نموذج"})
    assert arabic["MODEL"] == "نموذج"


def test_secrets_and_passwords_in_addresses_are_masked(folders):
    table = (Setting("TOKEN", "secret", None, "a token"), Setting("ENGINE", "address", "", "an engine"))
    environ = {"TOKEN": "abc123", "ENGINE": "https://me:abc123@host/p@th"}
    values = {value.setting.name: value for value in folders(environ=environ, settings=table)}
    assert values["TOKEN"].shown() == "********"
    assert values["ENGINE"].shown() == "https://****@host/p@th"
    assert folders(settings=table).values["TOKEN"].shown() == "-"


def test_export_hands_on_what_files_and_options_decided_but_no_secret(folders):
    table = (*EVERY, Setting("TOKEN", "secret", None, "a token"))
    files = {"~/.claude": "TOKEN=abc\nSTREAMING=no\nTOOL_BASH=0\nFASTRPC_PATIENCE_SECONDS=2.5"}
    environ = {"MODEL": "kept"}
    settings = folders(files, environ, options={"FASTRPC_LOG_LEVEL": "INFO"}, settings=table)
    settings.export(environ)
    assert environ == {
        "MODEL": "kept",
        "STREAMING": "0",
        "TOOL_BASH": "0",
        "FASTRPC_PATIENCE_SECONDS": "2.5",
        "FASTRPC_LOG_LEVEL": "info",
    }


def test_a_switch_of_another_spelling_reaches_code_that_reads_the_environment(folders):
    environ = {"SKILL_create-skill": "off", "TOOL_web-search": "0", "TOOL_WEB_SEARCH": "1"}
    settings = folders(environ=environ)
    settings.export(environ)
    assert environ["SKILL_CREATE_SKILL"] == "0"
    assert settings.is_on("TOOL_", "web-search"), "the name as it is documented counts first"
    assert environ["TOOL_WEB_SEARCH"] == "1"


@pytest.fixture
def run(folders):
    """Return a function that runs the program in the folders, with what it reads on its standard input."""

    def start(*arguments: str, send: bytes = b"", **environ: str):
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("TOOL", "FASTRPC_"))
        }
        kept |= {"HOME": str(folders.home), "FASTRPC_STATE_DIR": str(folders.home / "state"), **environ}
        return subprocess.run(
            [sys.executable, "-m", "fastrpc", *arguments],
            input=send,
            capture_output=True,
            timeout=30,
            cwd=folders.work,
            env=kept,
        )

    return start


SESSION = b"".join(
    json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"
    for message in (
        {
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2024-11-05",
                "capabilities": {},
                "clientInfo": {"name": "test", "version": "1"},
            },
        },
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
        {"id": 3, "method": "tools/call", "params": {"name": "ListBgTasks", "arguments": {}}},
    )
)


def served(done):
    """The capabilities, the names of the tools and the answer to the call of a session."""
    answers = {answer["id"]: answer for answer in map(json.loads, done.stdout.splitlines())}
    tools = [tool["name"] for tool in answers[2]["result"]["tools"]]
    return answers[1]["result"]["capabilities"], tools, answers[3]


def test_whatever_is_in_the_files_the_server_starts_and_each_bad_line_is_one_warning(folders, run):
    """Configuration: whatever is in the files, the server starts."""
    bad = b"NONSENSE=1\nTOOLS=perhaps\nno equals\nMODEL=a\0b\n\xff\xfe=\xff\n" + b"K" * 70 + b"=1\n"
    folders(
        {"~/.scorpiox": bad, "~/.claude": bad, "./.claude": bad, "./.scorpiox": bad + b"FASTRPC_BROWSER=/x\n"}
    )
    done = run("serve", send=SESSION)
    assert done.returncode == 0, done.stderr
    _capabilities, tools, answer = served(done)
    assert "ListBgTasks" in tools
    assert answer["result"]["isError"] is False
    lines = done.stderr.decode().splitlines()
    assert len(lines) == 4 * 6 + 1, done.stderr
    for place in ("~/.scorpiox", "~/.claude", "./.claude", "./.scorpiox"):
        numbers = [line.split(":")[3] for line in lines if line.startswith(f"fastrpc: warning: {place}/")]
        assert numbers == ["1", "2", "3", "4", "5", "6"] + ["7"] * (place == "./.scorpiox"), place


def test_tools_false_leaves_an_empty_list_and_the_capability(folders, run):
    """Configuration: `TOOLS=false` in a file empties the list, too, and leaves the capability."""
    for files, environ in (
        ({}, {"TOOLS": "FALSE"}),
        ({"./.scorpiox": "TOOLS=off"}, {}),
        ({"./.scorpiox": "TOOLS=1", "~/.claude": "TOOLS=no"}, {}),
    ):
        folders(files)
        capabilities, tools, answer = served(run("serve", send=SESSION, **environ))
        assert "tools" in capabilities
        assert tools == []
        assert answer["error"]["code"] == -32602


@pytest.mark.parametrize("place", ["~/.scorpiox", "~/.claude", "./.claude", "./.scorpiox", "environment"])
def test_a_switch_in_any_of_the_five_places_takes_a_tool_from_the_list_and_the_calls(folders, run, place):
    """Configuration: `TOOL_<NAME>` removes a tool from the list and the calls in whichever of the five places
    it is set.
    """
    environ = {"TOOL_LISTBGTASKS": "No"} if place == "environment" else {}
    if not environ:
        folders({place: "TOOL_ListBgTasks=No"})
    _, tools, answer = served(run("serve", send=SESSION, **environ))
    assert "Bash" in tools
    assert "ListBgTasks" not in tools
    assert answer["error"]["code"] == -32602


def test_the_command_prints_every_setting_with_its_value_and_its_origin(folders, run):
    """Configuration: `fastrpc config` prints every setting with its value and where it came from."""
    folders({"~/.claude": "TOOL_WEB-SEARCH=off\nMODEL=sonnet", "./.scorpiox": "SKILL_CREATE_SKILL=0"})
    done = run("config", STREAMING="false")
    rows = [line.split() for line in done.stdout.decode().splitlines()[1:]]
    found = {row[0]: (row[1], row[-1]) for row in rows if row}
    assert set(found) >= {setting.name for setting in EVERY}
    assert found["MODEL"] == ("sonnet", "~/.claude/scorpiox-env.txt:2")
    assert found["STREAMING"] == ("false", "environment")
    assert found["TOOL_WEB_SEARCH"] == ("false", "~/.claude/scorpiox-env.txt:1")
    assert found["SKILL_CREATE_SKILL"] == ("false", "./.scorpiox/scorpiox-env.txt:1")
    assert found["TOOLS"] == ("true", "default")


def test_every_setting_is_named_in_the_documentation():
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "..", "..", "docs", "configuration.md"), encoding="utf-8") as file:
        text = file.read()
    assert [setting.name for setting in EVERY if f"`{setting.name}`" not in text] == []


def test_importing_and_loading_brings_in_no_module_that_costs():
    code = (
        "import sys, os; before = set(sys.modules); import fastrpc.settings as c; c.load();"
        "print(sorted(set(sys.modules) - before - {'__future__'}))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert out.stdout.strip() == "['fastrpc', 'fastrpc.environment', 'fastrpc.settings']"
