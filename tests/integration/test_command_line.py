"""The `fastrpc` command as a person and a client meet it: real processes, exit codes, one line a mistake."""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
import textwrap
import time

import pytest
from support.command_line import SECONDS, names, run, session
from support.forked_selftest import selftests

from fastrpc.cli._arguments import typed
from fastrpc.errors import UsageError

# --- the command itself -------------------------------------------------------------------------------


def test_the_version_is_the_packages_own(place):
    import fastrpc

    assert run(place, "--version").stdout == f"fastrpc {fastrpc.__version__}\n"


def test_a_reader_that_goes_away_is_no_traceback(place):
    command = f"{sys.executable} -m fastrpc config --json | true"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=SECONDS, cwd=place)
    assert done.stderr == ""


# --- serve --------------------------------------------------------------------------------------------


def test_serve_answers_on_stdout_and_says_nothing_else(place, words):
    answers, said = session(place, [words], ("tools/list", {}))
    assert names(answers[1]) == ["word_count", "fail", "where"]
    assert answers[0]["result"]["serverInfo"]["name"] == "words"
    assert said == ""


def test_serve_imports_nothing_that_only_other_commands_need(place, words):
    answers, _ = session(place, [words], ("tools/call", {"name": "where", "arguments": {}}))
    bare = [sys.executable, "-c", "import sys; print(*sys.modules)"]  # an editable install brings some
    before = subprocess.run(bare, capture_output=True, text=True, timeout=SECONDS, cwd=place).stdout.split()
    modules = set(answers[1]["result"]["content"][0]["text"].split("\n")) - set(before)
    assert "fastrpc.cli.serve" in modules
    assert not {"argparse", "difflib", "shlex", "configparser", "pathlib"} & modules


def test_options_of_serve_reach_the_server(place, words):
    other = place / "other folder"
    other.mkdir()
    arguments = ["--cwd", str(other), "--log-level=info", "--name", "mine", "--trace", "wire.log", words]
    answers, _ = session(place, arguments, ("tools/call", {"name": "where", "arguments": {}}))
    assert answers[0]["result"]["serverInfo"]["name"] == "mine"
    assert answers[1]["result"]["content"][0]["text"].split("\n")[:2] == [str(other), "info"]
    trace = other / "wire.log"
    assert "initialize" in trace.read_text()
    assert trace.stat().st_mode & 0o777 == 0o600


def test_the_toolset_started_in_the_root_folder_works_in_the_home_folder(place, toolset):
    session("/", ["--trace", "wire.log"], ("ping", {}))
    assert (place.parent / "home" / "wire.log").exists()


def test_several_targets_are_served_together(place, words):
    (place / "more.py").write_text(
        "from fastrpc import Server\nx = Server('x')\n@x.tool\ndef extra() -> str: return '1'\n"
    )
    answers, _ = session(place, ["words.py", "more.py:x"], ("tools/list", {}))
    assert names(answers[1]) == ["word_count", "fail", "where", "extra"]


def test_without_a_target_the_configured_toolset_is_served(place, toolset):
    answers, said = session(place, [], ("tools/list", {}))
    assert names(answers[1]) == ["First", "Second-One"]
    assert said == ""


def test_a_switch_removes_a_tool_from_the_list_and_from_the_calls(place, toolset):
    """Every tool: `TOOL_<NAME>=0` removes a tool from the list and from the calls."""
    call = ("tools/call", {"name": "Second-One", "arguments": {"count": 1}})
    answers, said = session(place, [], ("tools/list", {}), call, TOOL_SECOND_ONE="Off")
    assert names(answers[1]) == ["First"]
    assert answers[2]["error"]["code"] == -32602
    assert said == ""


def test_a_switch_in_the_repository_works_too(place, toolset):
    (place / ".scorpiox").mkdir()
    (place / ".scorpiox" / "scorpiox-env.txt").write_text("TOOL_FIRST=no\n")
    answers, _ = session(place, [], ("tools/list", {}))
    assert names(answers[1]) == ["Second-One"]


def test_a_switch_that_fits_no_tool_is_a_warning_unless_the_tool_was_published(place, toolset):
    _, said = session(place, [], ("tools/list", {}), TOOL_FRIST="0", TOOL_THIRD="0")
    assert said == "fastrpc: warning: environment: TOOL_FRIST has no effect: no tool has that name\n"


@pytest.mark.parametrize("with_target", [False, True])
def test_tools_false_empties_the_list_and_keeps_the_capability(place, toolset, words, with_target):
    """Every tool: `TOOLS=false` empties the list, and the capability `tools` stays."""
    answers, _ = session(place, [words] if with_target else [], ("tools/list", {}), TOOLS="false")
    assert names(answers[1]) == []
    assert "tools" in answers[0]["result"]["capabilities"]


def test_switches_leave_tools_of_other_targets_alone(place, toolset, words):
    answers, _ = session(place, ["chest", words], ("tools/list", {}), TOOL_FAIL="0", TOOL_FIRST="0")
    assert names(answers[1]) == ["Second-One", "word_count", "fail", "where"]


def test_a_bad_settings_file_is_a_warning_on_stderr_and_the_server_starts(place, words):
    (place / ".claude").mkdir()
    (place / ".claude" / "scorpiox-env.txt").write_text("NONSENSE=1\nFASTRPC_STATE_DIR=/evil\n")
    answers, said = session(place, [words], ("ping", {}))
    assert answers[1]["result"] == {}
    assert said.splitlines() == [
        "fastrpc: warning: ./.claude/scorpiox-env.txt:2: FASTRPC_STATE_DIR is ignored here: "
        "a file in the working directory may not name a folder",
        "fastrpc: warning: ./.claude/scorpiox-env.txt:1: unknown key NONSENSE",
    ], "what is unknown shows when the target, which might know it, has been loaded"


def test_a_module_of_the_working_directory_is_not_taken_for_the_toolset_or_a_library(place, toolset):
    """A cloned repository may hold any name; only targets that are named may be loaded from it."""
    for name in ("json", "orjson", "uvloop", "chest", "fastrpc_extra"):
        (place / f"{name}.py").write_text("import os; os.write(2, b'EVIL'); raise SystemExit(7)")
    script = (
        "import sys; sys.path[:] = filter(None, sys.path); sys.argv[0] = 'fastrpc';"
        "from fastrpc.__main__ import main; sys.exit(main())"
    )
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    lines = [
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "First", "arguments": {}}},
    ]
    for arguments, text in (
        (["serve"], "".join(json.dumps(line) + "\n" for line in lines)),
        (["call", "First"], ""),
    ):
        done = subprocess.run(
            [sys.executable, "-c", script, *arguments],
            input=text,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            cwd=place,
        )
        assert "EVIL" not in done.stderr
        assert "said nothing" in done.stdout, done.stderr
        assert done.returncode == 0


def test_on_a_terminal_serve_says_what_it_waits_for_and_how_to_connect(place, words):
    ours, theirs = pty.openpty()
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "fastrpc", "serve", words],
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=place,
            text=True,
        )
        os.close(theirs)
        assert process.stderr is not None
        said = [process.stderr.readline() for _ in range(7)]
        time.sleep(0.2)
        os.write(ours, b"\x04")
        out, rest = process.communicate(timeout=SECONDS)
    finally:
        os.close(ours)
    assert out == ""
    assert rest == ""
    assert process.returncode == 0
    assert "waits for an MCP client on standard input" in said[0]
    install, tools, call = (shlex.split(said[line])[-len(command) :] for line, command in (
        (2, ["install-client", "claude-code", words]),
        (5, ["tools", words]),
        (6, ["call", "TOOL", "key=value", "--target", words]),
    ))  # fmt: skip
    assert install == ["install-client", "claude-code", words]
    assert run(place, *install, "--print").returncode == 0
    assert "word_count" in run(place, *tools).stdout
    assert run(place, "call", "word_count", "text=a b", *call[3:]).stdout == "2\n"


# --- tools, call, config ------------------------------------------------------------------------------


def test_tools_prints_a_table_with_the_first_line_of_each_description(place, words):
    done = run(place, "tools", words)
    assert done.stdout.splitlines()[:3] == [
        "tool        effect  arguments                    description",
        "word_count  read    text [times] [loud] [words]  Count words.",
        "fail        exec    reason                       Fail.",
    ]


def test_tools_json_is_what_a_client_of_the_newest_version_gets(place, words):
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
    }
    answers, _ = session(place, [words], ("tools/list", {"_meta": meta}))
    assert json.loads(run(place, "tools", "--json", words).stdout) == answers[1]["result"]["tools"]


def test_call_prints_the_result_of_a_real_session(place, words):
    done = run(
        place, "call", "word_count", "text=to be", "times=3", "loud=true", 'words=["a"]', "--target", words
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "9!\n", "")
    whole = run(place, "call", "word_count", "--arguments", '{"text": "سلام لك"}', "--target", words)
    assert (whole.returncode, whole.stdout) == (0, "2\n")
    piped = run(place, "call", "word_count", "--arguments", "-", "--target", words, text='{"text": "a"}')
    assert (piped.returncode, piped.stdout) == (0, "1\n")


def test_a_result_that_is_an_error_is_printed_and_the_exit_code_is_1(place, words):
    done = run(place, "call", "fail", "reason=because", "--target", words)
    assert done.returncode == 1
    assert "because" in done.stdout


def test_a_server_that_dies_in_a_call_is_one_line_and_exit_code_1(place):
    code = "import os\nfrom fastrpc import tool\n@tool\ndef die() -> str: os._exit(9)\n"
    (place / "dying.py").write_text(code)
    done = run(place, "call", "die", "--target", "dying.py")
    assert done.returncode == 1
    lost = "fastrpc: the connection to the server dying.py is lost: it ended with exit code 9\n"
    assert done.stderr.endswith(lost)


def test_a_call_that_lasts_too_long_is_given_up(place):
    code = (
        "import asyncio\nfrom fastrpc import tool\n@tool\nasync def wait() -> None: await asyncio.sleep(60)\n"
    )
    (place / "slow.py").write_text(code)
    done = run(place, "call", "wait", "--time-limit", "0.5", "--target", "slow.py")
    assert done.returncode == 1
    assert "tools/call: no answer within 0.5 s" in done.stderr


def test_an_interrupted_call_is_cancelled_and_leaves_no_server_behind(place):
    code = """
        import asyncio, os
        from fastrpc import tool
        @tool
        async def wait() -> None:
            open("began", "w").write(str(os.getpid()))
            try:
                await asyncio.sleep(60)
            finally:
                open("ended", "w").close()
    """
    (place / "slow.py").write_text(textwrap.dedent(code))
    process = subprocess.Popen(
        [sys.executable, "-m", "fastrpc", "call", "wait", "--target", "slow.py"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=place,
    )
    deadline = time.monotonic() + SECONDS
    while not ((place / "began").exists() and (place / "began").read_text()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, said = process.communicate(timeout=SECONDS)
    assert (process.returncode, out, said) == (130, b"", b"")
    assert (place / "ended").exists()
    with pytest.raises(ProcessLookupError):
        os.kill(int((place / "began").read_text()), 0)


SCHEMA = {
    "properties": {
        "text": {"type": "string"},
        "count": {"type": "integer"},
        "ratio": {"type": "number"},
        "flag": {"type": "boolean"},
        "items": {"type": "array"},
        "either": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        "maybe": {"type": ["number", "null"]},
        "anything": {},
        "choice": {"enum": ["1", "2"]},
    }
}


@pytest.mark.parametrize(
    ("pair", "value"),
    [
        ("text=5", "5"),
        ("text=a=b", "a=b"),
        ("text=", ""),
        ("text=null", "null"),
        ('text="quoted"', '"quoted"'),
        ("count=5", 5),
        ("count=-5", -5),
        ("ratio=5", 5),
        ("ratio=0.5", 0.5),
        ("flag=true", True),
        ('items=[1, "x"]', [1, "x"]),
        ("either=5", 5),
        ("either=five", "five"),
        ("either=true", "true"),
        ("maybe=null", None),
        ('anything={"a": 1}', {"a": 1}),
        ("anything=word", "word"),
        ("anything=NaN", "NaN"),
        ("choice=1", "1"),
    ],
)
def test_key_value_words_are_typed_by_the_schema(pair, value):
    (found,) = typed([pair], "t", SCHEMA).values()
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    "pairs",
    [
        ["x"],
        ["count=x"],
        ["count=0.5"],
        ["count=true"],
        ["flag=1"],
        ["ratio=NaN"],
        ["items=x"],
        ["count=1", "count=2"],
        ["=1"],
    ],
)
def test_a_word_that_does_not_fit_the_schema_is_a_usage_error(pairs):
    with pytest.raises(UsageError):
        typed(pairs, "t", SCHEMA)


def test_config_shows_each_setting_its_value_and_where_it_came_from(place):
    (place.parent / "home" / ".claude").mkdir()
    (place.parent / "home" / ".claude" / "scorpiox-env.txt").write_text("\nMODEL=sonnet\nTOOL_BASH=0\n")
    lines = run(place, "config", STREAMING="off").stdout.splitlines()
    rows = {line.split()[0]: re.split("  +", line)[1:] for line in lines}
    assert rows["MODEL"] == ["sonnet", "~/.claude/scorpiox-env.txt:2"]
    assert rows["TOOL_BASH"] == ["false", "~/.claude/scorpiox-env.txt:3"]
    assert rows["STREAMING"] == ["false", "environment"]
    assert rows["TOOLS"] == ["true", "default"]
    whole = json.loads(run(place, "config", "--json", STREAMING="off").stdout)
    assert whole["STREAMING"]["value"] is False
    assert whole["MODEL"]["origin"] == "~/.claude/scorpiox-env.txt:2"


# --- selftest -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def selftest():
    """Return how to run a selftest that need not import all of fastrpc anew: its exit code and its words."""
    with selftests() as run_selftest:
        yield run_selftest


@pytest.mark.long
def test_selftest_holds_for_a_toolset_that_keeps_its_contract(place, toolset):
    done = run(place, "selftest", TOOL_FIRST="0", TOOLS="0")  # switches do not count
    assert done.returncode == 0, done.stdout
    assert "2 of 3 published tools present\nnot in this release: Third\n" in done.stdout
    assert "First: said hi" in done.stdout
    assert done.stdout.endswith("All checks hold.\n")
    assert done.stderr == ""


@pytest.mark.long
@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("first.py", '"""Say it."""', '"""Say it not."""', "First: description is 'Say it not.'"),
        ("first.py", 'effect="read"', 'effect="write"', "First: effect is 'write'"),
        ("first.py", "text: Anno", "speech: Anno", "parameter 'text' is missing"),
        ("first.py", "[str,", "[int,", "type of 'text' is 'integer'"),
        ("first.py", '"What to say"]', '"What"]', "description of 'text' is 'What'"),
        ("first.py", ' = "nothing"', "", "required is ['text'], published as []"),
        ("first.py", ' = "nothing"', ' = "nothing", more: str = ""', "parameter 'more' was never published"),
        ("first.py", 'name="First"', 'name="Fist"', "First: its module is there, the tool is not"),
        ("first.py", "return f", "raise ValueError; return f", "First: {"),
        ("second.py", "from typing", "print('noise')\nfrom typing", "importing wrote 'noise"),
        ("__init__.py", '["first", "second"]', '["second", "first"]', "published as ['First', 'Second-One']"),
        ("_contract.py", '"Third"', '"Thrid"', None),
    ],
)
def test_selftest_fails_on_every_drift_and_says_which(place, toolset, selftest, file, old, new, said):
    path = toolset / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    code, shown = selftest(place)
    if said is None:  # a tool that is not there yet is no drift, whatever it is called
        assert code == 0, shown
    else:
        assert code == 1, shown
        assert [line for line in shown.splitlines() if line.startswith("FAIL") and said in line], shown


def test_a_tool_that_came_after_what_was_published_is_no_drift(place, toolset, selftest):
    first = (toolset / "first.py").read_text()
    (toolset / "late.py").write_text(first.replace('name="First"', 'name="Late"'))
    package = (toolset / "__init__.py").read_text()
    (toolset / "__init__.py").write_text(package.replace('["first", ', '["late", "first", '))
    code, shown = selftest(place)
    assert code == 0, shown
    assert "ok    contract  Late came later, and breaks nothing that was published\n" in shown
    assert "3 tools listed as described" in shown


def test_selftest_makes_the_checks_of_the_toolset_itself(place, toolset, selftest):
    (toolset / "_selftest.py").write_text(
        "def findings():\n    return [(True, 'a door'), (False, 'no key')]\n"
    )
    code, shown = selftest(place)
    assert code == 1
    assert "ok    toolset   a door\nFAIL  toolset   no key\n" in shown


@pytest.mark.long
def test_selftest_fails_when_a_module_cannot_be_imported_and_when_no_tool_is_there(place, toolset, selftest):
    (toolset / "_helper.py").write_text("import no_such_module")
    done = run(place, "selftest")
    assert done.returncode == 1
    assert "chest._helper: ModuleNotFoundError" in done.stdout
    for name in ("_helper.py", "first.py", "second.py"):
        (toolset / name).unlink()
    assert selftest(place)[0] == 1


# --- demo ---------------------------------------------------------------------------------------------


def test_demo_prints_the_conversation_times_many_calls_and_ends_cleanly(place, toolset):
    done = run(place, "demo", TOOL_FIRST="0")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert 'client  First  text="hello"' in done.stdout
    assert re.search(r"^server  said hello +\d+\.\d ms$", done.stdout, re.MULTILINE)
    assert re.search(
        r"20,000 calls of a trivial tool.* [\d,]+ calls per second\.$", done.stdout, re.MULTILINE
    )
    assert "ends with exit code 0" in done.stdout
    assert "\x1b" not in done.stdout
    assert os.listdir(place) == []


@pytest.mark.parametrize(
    "step",
    [
        'conversation.call("First", {"text": "hello"}, says="goodbye")',
        'conversation.call("First", {"text": "hello"}, fails=True)',
        'conversation.call("First", {"text": "hello"}, progress=True)',
        'conversation.call("First", {"text": 5, "x": []})',
        'conversation.call("Missing", {})',
        'conversation.check(False, "no")',
        'conversation.kill(); conversation.call("First", {})',
        'conversation.cancel("First", {"text": "too fast to cancel"}, 3)',
    ],
)
def test_demo_fails_loudly_when_a_step_goes_wrong(place, toolset, step):
    (toolset / "_demo.py").write_text(f"def play(conversation):\n    {step}\n")
    done = run(place, "demo")
    assert done.returncode == 1, done.stdout
    assert "fastrpc: the demo failed: " in done.stderr
    assert "Traceback" not in done.stderr
    assert "calls per second" not in done.stdout


def test_demo_uses_colours_on_a_terminal_only(place, toolset):
    ours, theirs = pty.openpty()
    environ = {name: value for name, value in os.environ.items() if name != "NO_COLOR"} | {"TERM": "xterm"}
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "fastrpc", "demo"],
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            cwd=place,
            env=environ,
        )
        os.close(theirs)
        shown = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:  # Linux: the other end is closed
                break
            if not part:
                break
            shown += part
        assert process.wait(SECONDS) == 0
    finally:
        os.close(ours)
    assert b"\x1b[34mclient\x1b[0m" in shown


def test_the_demo_waits_for_a_log_message_whatever_else_the_server_tells_of_before_it(capsys):
    from types import SimpleNamespace

    from fastrpc.cli.demo import Conversation

    told = [
        {"method": "notifications/tools/list_changed", "params": {}},
        {"method": "notifications/message", "params": {"data": "look at the build"}},
    ]
    conversation = Conversation("/", "pid", {})
    conversation.client = SimpleNamespace(
        set_log_level=lambda level: None, wait=lambda seconds: conversation.hear(told.pop(0))
    )
    conversation.wait_for_log("look at the build", seconds=10)
    assert not told
    assert "look at the build" in capsys.readouterr().out


@pytest.mark.long
def test_the_shipped_tools_pass_their_own_selftest(place):
    checked = run(place, "selftest")
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_shipped_tools_pass_their_own_demo(place):
    shown = run(place, "demo")
    assert shown.returncode == 0, shown.stdout + shown.stderr
    for name in ("Bash", "BackgroundBash", "ReadBgOutput", "ListBgTasks", "KillBgTask"):
        assert f"client  {name}" in shown.stdout
