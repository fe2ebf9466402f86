"""What the system refuses a command: one line on standard error and an exit code, never a traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from fastrpc.cli import COMMANDS, toolset_commands
from fastrpc.cli._extras import MODULES, needed

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOOLS = "from fastrpc import tool\n\n@tool(effect='read')\ndef f(a: int = 1) -> int:\n    'x'\n    return a\n"
BAD = b"\xff\xfe"
EVERY_COMMAND = [*COMMANDS, *toolset_commands()]


@pytest.fixture
def run(tmp_path: Any) -> Any:
    (tmp_path / "t.py").write_text(TOOLS)

    def run(
        *arguments: str | bytes,
        full: bool = False,
        closed: int | None = None,
        is_left: bool = False,
        has_no_room: bool = False,
        **environment: str | None,
    ) -> tuple[int, str, str]:
        """Return the exit code, what is written and what is said. `full`: the output is on a full disk;
        `closed`: this descriptor is closed; `is_left`: nobody reads the output;
        `has_no_room`: no file gets longer than 4 KiB."""
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


@needs_full
@pytest.mark.parametrize("command", EVERY_COMMAND)
def test_a_full_disk_behind_the_output_is_one_line(command: str, run: Any) -> None:
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


@pytest.mark.parametrize("command", EVERY_COMMAND)
def test_arguments_that_are_no_utf8_end_a_command_in_words(command: str, run: Any) -> None:
    for arguments in ((BAD,), ("t.py", BAD), ("--config", BAD)):
        code, _, said = run(command, *arguments)
        assert_short(code, said)


def test_an_argument_that_is_no_utf8_is_quoted(run: Any) -> None:
    for arguments in (
        ("call", "t.py", "f", b"a=\xff"),
        ("call", "t.py", "f", b"\xff=1"),
        ("call", "t.py", BAD),
    ):
        code, _, said = run(*arguments)
        assert_short(code, said)
        assert code
        assert said.startswith("fastrpc: ")


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
    "a locale of ASCII": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("command", EVERY_COMMAND)
def test_whatever_a_command_finds_around_it_it_ends_in_words(command: str, place: str, run: Any) -> None:
    for arguments in ((command,), (command, "--help")):
        code, out, said = run(*arguments, **PLACES[place])
        assert_short(code, said)
        assert "--help" not in arguments or (code == 0 and out)


@pytest.mark.parametrize("closed", [0, 1])
@pytest.mark.parametrize("command", EVERY_COMMAND)
def test_a_closed_descriptor_is_no_end_but_in_words(command: str, closed: int, run: Any) -> None:
    for arguments in ((command,), (command, "--help")):
        code, out, said = run(*arguments, closed=closed)
        assert_short(code, said)
        if "--help" in arguments and command != "serve":
            words = "" if closed == 0 else "fastrpc: standard output: Bad file descriptor\n"
            assert (code, said, bool(out)) == (closed, words, closed == 0)


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
CONFIG = '{"mcpServers": {"far": {"url": "http://127.0.0.1:9/mcp"}}}'


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
    blocking = tmp_path / "blocking"
    blocking.mkdir()
    (blocking / "sitecustomize.py").write_text(BLOCKER)
    (tmp_path / "far.json").write_text(CONFIG)
    (tmp_path / "token").write_text("a-token-of-the-tests-that-is-long\n")
    (tmp_path / "token").chmod(0o600)
    code, _, said = run(*arguments, PYTHONPATH=f"{blocking}{os.pathsep}{REPOSITORY}", BLOCKED=modules)
    assert_short(code, said)
    assert f"fastrpc-mcp[{extra}]" in said
    assert code or arguments[0] == "gateway"  # which goes on with its other servers


@pytest.mark.parametrize(("extra", "module"), [(extra, name) for extra in MODULES for name in MODULES[extra]])
def test_each_optional_module_has_its_extra(extra: str, module: str) -> None:
    words = needed(ModuleNotFoundError(f"No module named '{module}.inner'", name=f"{module}.inner"))
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
