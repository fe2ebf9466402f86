"""What the system refuses a command: one line on standard error and an exit code, never a traceback."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pkgutil import iter_modules
from typing import Any

import fastrpc.tools
import pytest

from fastrpc.cli import COMMANDS, shipped_toolset, toolset_commands
from fastrpc.cli._extras import MODULES, needed
from fastrpc.cli.completion import _help_of

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOOLS = "from fastrpc import tool\n\n@tool(effect='read')\ndef f(a: int = 1) -> int:\n    'x'\n    return a\n"
BAD = b"\xff\xfe"
ODD = "-a [b*?\n"
OTHERS = toolset_commands()
EVERY_COMMAND = [*COMMANDS, *OTHERS]
TOOLSETS = [name for _, name, _ in iter_modules(fastrpc.tools.__path__) if shipped_toolset(name)]
ENDLESS_OR_FAR = {("approvals", "watch"), ("contracts", "install"), ("dashboard", "serve")}
"""These wait for what comes, and fetch."""


def actions_of(command: str) -> list[str]:
    """Return the words that a command has for what it does, from its usage."""
    usage = _help_of(command, OTHERS).partition("\n\n")[0]
    ways = "|".join(re.findall(rf"fastrpc {command} (.*)", usage)).split("|")
    return list(dict.fromkeys(re.findall(r"(?m)^ *([a-z]+)(?: |$)", "\n".join(ways))))


ACTIONS = [
    *((command, action) for command in EVERY_COMMAND for action in actions_of(command)),
    *((name, command) for name in TOOLSETS for command in toolset_commands(f"fastrpc.tools.{name}")),
]
"""What is behind ``fastrpc``, where it is two words; derived, so that a new one is tried too."""
EVERY_WORD = [*((command,) for command in EVERY_COMMAND), *ACTIONS]


@pytest.fixture
def run(tmp_path: Any) -> Any:
    (tmp_path / "t.py").write_text(TOOLS)

    def run(
        *arguments: str | bytes,
        full: bool = False,
        closed: int | None = None,
        is_left: bool = False,
        has_no_room: bool = False,
        is_nowhere: bool = False,
        **environment: str | None,
    ) -> tuple[int, str, str]:
        """Return the exit code, what is written and what is said. `full`: the output is on a full disk;
        `closed`: this descriptor is closed; `is_left`: no one reads the output;
        `has_no_room`: no file gets longer than 4 KiB; `is_nowhere`: the working directory is removed."""
        variables: dict[str, str | None] = {
            **os.environ,
            "PYTHONPATH": REPOSITORY,
            "FASTRPC_STATE_DIR": str(tmp_path / "state"),
            **environment,
        }
        reader, pipe = os.pipe()
        os.close(reader)
        words = [sys.executable, "-m", "fastrpc", *arguments]
        if closed is not None:
            words = ["/bin/sh", "-c", f'exec "$@" {closed}>&-', "sh", *words]
        if has_no_room:
            words = ["/bin/sh", "-c", 'ulimit -f 8; exec "$@"', "sh", *words]
        if is_nowhere:
            words = ["/bin/sh", "-c", 'mkdir gone; cd gone; rmdir ../gone; exec "$@"', "sh", *words]
        with open("/dev/full", "wb") as nowhere, open(pipe, "wb") as left:
            done = subprocess.run(
                words,
                stdin=subprocess.DEVNULL,
                stdout=nowhere if full else left if is_left else subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=tmp_path,
                env={name: value for name, value in variables.items() if value is not None},
                timeout=60,
                check=False,
            )
        return done.returncode, (done.stdout or b"").decode("utf-8", "replace"), done.stderr.decode()

    return run


def assert_short(code: int, said: str) -> None:
    assert "Traceback" not in said
    assert "Exception ignored" not in said
    assert 0 <= code < 120


needs_full = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no /dev/full")


@pytest.mark.long
@needs_full
@pytest.mark.parametrize("command", EVERY_COMMAND)
def test_a_full_disk_that_the_output_goes_to_is_one_line(command: str, run: Any) -> None:
    code, _, said = run(command, "--help", full=True)
    assert_short(code, said)
    assert (code, said) == (1, "fastrpc: standard output: No space left on device\n")


@needs_full
@pytest.mark.parametrize(
    "arguments",
    [
        ("list", "t.py"),
        ("list", "t.py", "--json"),
        ("tools", "t.py"),
        ("call", "t.py", "f"),
        ("inspect", "t.py"),
        ("config",),
        ("completion", "bash"),
        ("demo",),
        ("--version",),
        ("--help",),
    ],
)
def test_results_that_find_no_room_are_one_line(arguments: tuple[str, ...], run: Any) -> None:
    code, _, said = run(*arguments, full=True)
    assert_short(code, said)
    assert code == 1
    assert said.endswith("fastrpc: standard output: No space left on device\n")


def test_every_action_of_a_command_is_known_here() -> None:
    assert {("token", "rotate"), ("audit", "prove"), ("knowledge", "import"), ("completion", "zsh")} <= {
        *ACTIONS
    }
    assert not [action for action in ACTIONS if action[0] == "demo"]


@pytest.mark.long
@pytest.mark.parametrize("words", EVERY_WORD, ids=" ".join)
def test_arguments_that_are_no_names_of_anything_end_a_command_in_words(
    words: tuple[str, ...], run: Any
) -> None:
    for arguments in ((BAD,), (ODD,), ("--config", BAD), ("t.py", BAD))[: 4 if len(words) == 1 else 2]:
        code, _, said = run(*words, *arguments)
        assert_short(code, said)


def test_an_argument_that_is_not_utf8_is_quoted(run: Any) -> None:
    for arguments in (
        ("call", "t.py", "f", b"a=\xff"),
        ("call", "t.py", "f", b"\xff=1"),
        ("call", "t.py", BAD),
    ):
        code, _, said = run(*arguments)
        assert_short(code, said)
        assert code
        assert said.startswith("fastrpc: ")


@pytest.mark.long
@pytest.mark.parametrize("command", EVERY_COMMAND)
def test_folders_in_the_place_of_files_and_no_home_end_a_command_in_words(
    command: str, run: Any, tmp_path: Any
) -> None:
    for arguments in ((str(tmp_path),), ("--config", str(tmp_path)), ("--token-file", str(tmp_path))):
        code, _, said = run(command, *arguments, HOME=None)
        assert_short(code, said)


PLACES: dict[str, dict[str, str | None]] = {
    "no home": {"HOME": None, "FASTRPC_STATE_DIR": None, "XDG_STATE_HOME": None},
    "no folder as home": {"HOME": "/dev/null", "FASTRPC_STATE_DIR": None, "XDG_STATE_HOME": None},
    "no folder for state": {"FASTRPC_STATE_DIR": "/dev/null/state"},
    "no folder for temporary files": {"TMPDIR": "/dev/null"},
    "a relative home with an odd name": {"HOME": "a [b*?\n", "FASTRPC_STATE_DIR": None},
    "a state folder that is no UTF-8": {"FASTRPC_STATE_DIR": os.fsdecode(BAD)},
    "a locale of ASCII": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
}


@pytest.mark.long
@pytest.mark.parametrize(
    ("words", "place"),
    [
        *(((command,), place) for command in EVERY_COMMAND for place in PLACES),
        *((words, "a state folder that is no UTF-8") for words in ACTIONS if words not in ENDLESS_OR_FAR),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_whatever_a_command_finds_around_it_it_ends_in_words(
    words: tuple[str, ...], place: str, run: Any
) -> None:
    code, _, said = run(*words, **PLACES[place])
    assert_short(code, said)
    if len(words) == 1 and "HOME" in PLACES[place]:
        code, out, _ = run(*words, "--help", **PLACES[place])
        assert (code, bool(out)) == (0, True)


@pytest.mark.long
@pytest.mark.parametrize(
    "words", [words for words in EVERY_WORD if words not in ENDLESS_OR_FAR], ids=" ".join
)
def test_a_working_directory_that_is_gone_is_said(words: tuple[str, ...], run: Any) -> None:
    code, _, said = run(*words, is_nowhere=True)
    assert_short(code, said)
    assert "No such file" not in said or "the working directory: No such file" in said


INTERRUPTING = """
import os, signal, sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["INTERRUPTED"]:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Finder())
"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("words", "module"),
    [
        *(((command,), f"fastrpc.cli.{command.replace('-', '_')}") for command in COMMANDS),
        (("state",), "fastrpc.tools.agent._state.command"),
        (("knowledge", "stats"), "fastrpc.tools.knowledge._moving_commands"),
        (("serve", "t.py", "--http", "127.0.0.1:0", "--no-auth"), "uvicorn.config"),
        (("gateway", "one.json", "--http", "127.0.0.1:0", "--no-auth"), "uvicorn.config"),
    ],
)
def test_ctrl_c_is_the_end_and_nothing_is_said(
    words: tuple[str, ...], module: str, run: Any, tmp_path: Any
) -> None:
    (tmp_path / "sitecustomize.py").write_text(INTERRUPTING)
    (tmp_path / "one.json").write_text('{"mcpServers": {"one": {"command": "true"}}}')
    path = f"{tmp_path}{os.pathsep}{REPOSITORY}"
    assert run(*words, PYTHONPATH=path, INTERRUPTED=module) == (130, "", "")


@needs_full
def test_a_token_that_cannot_be_shown_is_revoked(run: Any) -> None:
    code, _, said = run("token", "create", "--owner", "ada", full=True)
    assert_short(code, said)
    lines = [line for line in said.splitlines() if "waiting for" not in line]  # a busy machine's
    assert lines[0].endswith("of ada is revoked: it cannot be shown")
    assert lines[1:] == ["fastrpc: standard output: No space left on device"]
    assert '"status": "revoked"' in run("token", "list", "--json")[1]


@pytest.mark.long
@needs_full
@pytest.mark.parametrize("words", ACTIONS, ids=" ".join)
def test_an_action_with_no_output_ends_in_words(words: tuple[str, ...], run: Any) -> None:
    for how in ({"full": True}, {"closed": 1}):
        code, _, said = run(*words, *(["--nope"] if words in ENDLESS_OR_FAR else []), **how)
        assert_short(code, said)
        assert said.count("\n") <= 1


@pytest.mark.long
@pytest.mark.parametrize("closed", [0, 1])
@pytest.mark.parametrize("command", EVERY_COMMAND)
def test_a_closed_descriptor_is_no_end_but_in_words(command: str, closed: int, run: Any) -> None:
    for arguments in ((command,), (command, "--help")):
        code, out, said = run(*arguments, closed=closed)
        assert_short(code, said)
        if "--help" in arguments and command != "serve":
            words = "" if closed == 0 else "fastrpc: standard output: Bad file descriptor\n"
            assert (code, said, bool(out)) == (closed, words, closed == 0)


@pytest.mark.long
@pytest.mark.parametrize("command", EVERY_COMMAND)
def test_a_reader_that_goes_away_is_no_mistake(command: str, run: Any) -> None:
    for arguments in ((command, "--help"), (command,)):
        code, _, said = run(*arguments, is_left=True)
        assert_short(code, said)
        assert "Broken pipe" not in said


def test_where_there_is_no_room_the_former_file_stays_and_no_half_is_left(run: Any, tmp_path: Any) -> None:
    former = json.dumps({"mcpServers": {}, "others": "x" * 8000})
    (tmp_path / "made").mkdir()
    config, page = tmp_path / "made" / "mcp.json", tmp_path / "made" / "page.html"
    config.write_text(former)
    page.write_text("the former page")
    for arguments, place in (
        (("inspect", "t.py", "--html", str(page)), str(page)),
        (("install-client", "cursor", "t.py", "--file", str(config)), str(config)),
    ):
        code, _, said = run(*arguments, has_no_room=True)
        assert_short(code, said)
        assert (code, said.count("\n")) == (2, 1)
        assert place in said
        assert "File too large" in said
    assert sorted(each.name for each in (tmp_path / "made").iterdir()) == ["mcp.json", "page.html"]
    assert (config.read_text(), page.read_text()) == (former, "the former page")
    assert run("inspect", "t.py", "--html", str(page)) == (0, "", "")
    assert page.read_text() != "the former page"


# --- what is not installed ------------------------------------------------------------------------------

BLOCKER = "import os, sys\nfor name in os.environ['BLOCKED'].split(','):\n    sys.modules[name] = None\n"
URL = "http://127.0.0.1:9/mcp"
EVERY_MODULE = [module for modules in MODULES.values() for module in modules]
CONFIG = '{"mcpServers": {"far": {"url": "http://127.0.0.1:9/mcp"}}}'


HALF = "half a surrogate pair"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("call", "t.py", "g", b"a=\xff"), f"arguments.a: expected a text, got one with {HALF}: "),
        (("call", "t.py", "g", '{"a": "\\ud800"}'), f"arguments.a: expected a text, got one with {HALF}: "),
        (("call", "t.py", b"a://\xff"), f"uri: expected a text, got one with {HALF}: "),
        (("call", "t.py", "--resource", b"\xff"), f"uri: expected a text, got one with {HALF}: "),
        (
            ("compare", "--calls", "calls.json", "--", sys.executable, "sdk.py"),
            f"arguments.a: expected a text, got one with {HALF}: ",
        ),
    ],
)
def test_a_value_that_json_cannot_hold_is_one_line(
    arguments: tuple[str | bytes, ...], said: str, run: Any, tmp_path: Any
) -> None:
    (tmp_path / "t.py").write_text(TOOLS + "\n@tool\ndef g(a: str) -> str:\n    'x'\n    return a\n")
    (tmp_path / "calls.json").write_text('[{"tool": "g", "arguments": {"a": "\\ud800"}}]')
    (tmp_path / "sdk.py").write_text(
        "from mcp.server import MCPServer\napp = MCPServer('x')\n\n@app.tool()\n"
        "def g(a: str) -> str:\n    'x'\n    return a\n\napp.run()\n"
    )
    code, _, shown = run(*arguments)
    assert_short(code, shown)
    assert (code, shown.startswith(f"fastrpc: {said}"), shown.count("\n")) == (2, True, 1)


def test_a_value_that_json_cannot_hold_does_not_end_the_repl(tmp_path: Any) -> None:
    (tmp_path / "t.py").write_text(TOOLS + "\n@tool\ndef g(a: str) -> str:\n    'x'\n    return a\n")
    done = subprocess.run(
        [sys.executable, "-m", "fastrpc", "repl", "t.py"],
        input=b'call g {"a": "\\ud800"}\ncall g a=after\n',
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": REPOSITORY},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, b"after\n")
    assert done.stderr.decode().startswith(f"fastrpc: arguments.a: expected a text, got one with {HALF}: ")


def without(folder: Any, *modules: str) -> dict[str, str]:
    """Return the environment of a process in which these modules are not installed."""
    blocking = folder / "blocking"
    blocking.mkdir()
    (blocking / "sitecustomize.py").write_text(BLOCKER)
    return {"PYTHONPATH": f"{blocking}{os.pathsep}{REPOSITORY}", "BLOCKED": ",".join(modules)}


@pytest.mark.parametrize(
    ("modules", "extra", "arguments"),
    [
        ("httptools", "http", ("list", URL)),
        ("httptools", "http", ("call", URL, "f")),
        ("httptools", "http", ("inspect", URL)),
        ("httptools", "http", ("repl", URL)),
        ("httptools", "http", ("bridge", URL)),
        ("httptools", "http", ("list", "--config", "far.json", "far")),
        ("httptools", "http", ("gateway", "far.json")),
        ("httptools", "http", ("gateway", "status", "--http", URL)),
        ("httptools", "http", ("serve", "t.py", "--http", "127.0.0.1:0", "--token-file", "token")),
        ("uvicorn", "http", ("serve", "t.py", "--http", "127.0.0.1:0", "--token-file", "token")),
        ("mcp,keyring", "oauth", ("list", URL, "--auth", "oauth")),
        ("sqlalchemy", "guard", ("token", "list")),
        ("sqlalchemy", "guard", ("approvals", "list")),
    ],
)
def test_a_missing_library_is_named_with_its_extra(
    modules: str, extra: str, arguments: tuple[str, ...], run: Any, tmp_path: Any
) -> None:
    (tmp_path / "far.json").write_text(CONFIG)
    (tmp_path / "token").write_text("a-token-of-the-tests-that-is-long\n")
    (tmp_path / "token").chmod(0o600)
    code, _, said = run(*arguments, **without(tmp_path, modules))
    assert_short(code, said)
    assert f"fastrpc-mcp[{extra}]" in said
    assert code or arguments[0] == "gateway"  # which goes on with its other servers


@pytest.mark.long
@pytest.mark.parametrize("words", [*((command,) for command in COMMANDS), *ACTIONS], ids=" ".join)
def test_help_needs_no_library(words: tuple[str, ...], run: Any, tmp_path: Any) -> None:
    code, shown, said = run(*words, "--help", **without(tmp_path, *EVERY_MODULE))
    assert (code, said) == (0, "")
    assert shown.startswith("usage: fastrpc ")


def test_completion_needs_no_library(run: Any, tmp_path: Any) -> None:
    code, shown, said = run("completion", "bash", **without(tmp_path, *EVERY_MODULE))
    assert (code, said) == (0, "")
    assert " audit) options='--" in shown


@pytest.mark.parametrize("command", ["serve", "tools"])
def test_the_knowledge_toolset_is_not_served_without_its_library(
    command: str, run: Any, tmp_path: Any
) -> None:
    code, shown, said = run(command, "fastrpc.tools.knowledge", **without(tmp_path, "sqlalchemy"))
    assert_short(code, said)
    assert (code, shown) == (2, "")
    assert "fastrpc-mcp[knowledge]" in said


@pytest.mark.parametrize(("extra", "module"), [(extra, name) for extra in MODULES for name in MODULES[extra]])
def test_each_optional_module_has_its_extra(extra: str, module: str) -> None:
    error = ModuleNotFoundError(f"No module named '{module}.inner'", name=f"{module}.inner")
    with pytest.raises(ModuleNotFoundError):  # several extras bring some: the part that imports it is of one
        exec("raise error", {"__name__": f"fastrpc.{extra}.part", "error": error})
    words = needed(error)
    assert words == f"{module} is not installed: pip install 'fastrpc-mcp[{extra}]'"
    assert needed(ModuleNotFoundError("No module named 'own'", name="own")) is None


def test_each_requirement_of_an_extra_is_in_the_table() -> None:
    from importlib.metadata import packages_distributions, requires
    from re import match

    named = {module for modules in MODULES.values() for module in modules}
    distributions = packages_distributions()
    for requirement in requires("fastrpc-mcp") or ():
        found = match(r"([\w.-]+).*; .*extra == .(\w+)", requirement)
        if found is None or found[2] in ("all", "dev") or found[1] == "fastrpc-mcp":
            continue
        modules = {
            name for name, owners in distributions.items() if found[1].lower() in map(str.lower, owners)
        }
        assert not modules or modules & named, requirement
