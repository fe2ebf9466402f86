"""`fastrpc swap --run` and `fastrpc compare` with real processes: servers for the originals, unedited."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fastrpc import Client
from fastrpc.errors import ConnectionLost, UsageError
from fastrpc.swap import launch
from fastrpc.swap.launch import PACKAGES, VARIABLE

FASTRPC = [sys.executable, "-m", "fastrpc"]
FOR_FASTMCP = """\
from fastmcp import FastMCP

mcp = FastMCP("Demo", instructions="Add.")


@mcp.tool
def add(a: int, b: int) -> int:
    "Add two numbers"
    return a + b


@mcp.tool
def where() -> list[str]:
    import fastmcp, sys
    return [type(mcp).__module__, fastmcp.__version__, sys.argv[0]]


def main():
    mcp.run()


if __name__ == "__main__":
    main()
"""
FOR_SDK = """\
import mcp.types
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.prompts import base

server = MCPServer("Demo", version="1")


@server.tool()
def add(a: int, b: int) -> int:
    "Add two numbers"
    return a + b


@server.resource("greeting://{name}")
def greeting(name: str) -> str:
    "Greet"
    return f"Hello, {name}!"


@server.prompt()
def greet(name: str) -> list[base.Message]:
    "Greet"
    return [base.UserMessage(f"Greet {name}")]


if __name__ == "__main__":
    server.run()
"""


@pytest.fixture
def server(tmp_path: Path) -> Path:
    (tmp_path / "demo_server.py").write_text(FOR_FASTMCP)
    return tmp_path / "demo_server.py"


def answer_of(command: list[str], cwd: Path, **variables: str) -> list[Any]:
    """Return what the tools `add` and `where` of a server answer that `fastrpc swap` runs."""
    env = {**os.environ, **variables}
    with Client.sync([*FASTRPC, "swap", "--run", "--", *command], cwd=str(cwd), env=env) as client:
        total = client.call_tool("add", {"a": 1, "b": 2}).text
        return [total, *json.loads(client.call_tool("where", {}).text)]


def test_a_file_runs_without_an_edit(server: Path, tmp_path: Path) -> None:
    total, module, version, name = answer_of([sys.executable, "demo_server.py"], tmp_path)
    assert (total, module, name) == ("3", "fastrpc.compat.server", "demo_server.py")
    assert version[0].isdigit()
    assert server.read_text() == FOR_FASTMCP


def test_a_module_runs(server: Path, tmp_path: Path) -> None:
    total, module, *_ = answer_of([sys.executable, "-m", "demo_server"], tmp_path)
    assert (total, module) == ("3", "fastrpc.compat.server")


def test_a_console_script_runs(server: Path, tmp_path: Path) -> None:
    script = tmp_path / "demo-server"
    script.write_text(f"#!{sys.executable}\nimport sys\nfrom demo_server import main\nsys.exit(main())\n")
    script.chmod(0o755)
    total, module, *_ = answer_of(["./demo-server"], tmp_path)
    assert (total, module) == ("3", "fastrpc.compat.server")


@pytest.mark.parametrize(
    ("package", "arguments"),
    [
        ("fastmcp", "demo_server.py --no-banner"),
        ("fastmcp", "demo_server.py:mcp --transport stdio"),
        ("fastmcp", "demo_server.py:make"),
        ("mcp", "demo_server.py -t stdio"),
    ],
)
def test_the_originals_own_command_runs_a_file(
    package: str, arguments: str, server: Path, tmp_path: Path
) -> None:
    server.write_text(f"{FOR_FASTMCP}\n\nasync def make():\n    return mcp\n")
    script = tmp_path / package
    script.write_text(f"#!{sys.executable}\nimport sys\nfrom {package}.cli import app\nsys.exit(app())\n")
    script.chmod(0o755)
    answers = answer_of([f"./{package}", "run", *arguments.split(), "--", "own"], tmp_path)
    assert answers[0] == "3"
    assert answers[-1].endswith("demo_server.py")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("dev x.py", "fastrpc serves 'fastmcp run FILE' only"),
        ("run x.py --reload", "no --reload"),
        ("run", "expected one Python file, got none"),
        ("run x.py --port any", "--port: expected a number, got any"),
        ("run nowhere.py", "no such file"),
        ("run demo_server.py:none", "it has no none"),
    ],
)
def test_what_the_originals_command_has_besides_is_refused(
    arguments: str, said: str, server: Path, tmp_path: Path
) -> None:
    code = f"import sys\nsys.argv = ['fastmcp', *{arguments.split()}]\n"
    done = run(f"{code}from fastmcp.cli import app\nsys.exit(app())", tmp_path)
    assert said in done.stderr
    assert done.returncode == 2


def test_the_command_takes_the_place_of_this_process(tmp_path: Path) -> None:
    with subprocess.Popen(
        [*FASTRPC, "swap", "--run", "--", sys.executable, "-c", "import os; print(os.getpid())"],
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert int(process.stdout.read()) == process.pid


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("print('no server')", True),
        ("import json, subprocess, sys; subprocess.run([sys.executable, '-c', 'import fastmcp'])", True),
        ("import fastmcp; assert fastmcp.FastMCP", False),
        ("import mcp.server.lowlevel", False),
    ],
)
def test_a_command_of_which_nothing_was_swapped_says_so(code: str, says: bool) -> None:
    done = subprocess.run(
        [*FASTRPC, "swap", "--run", "--", sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert ("nothing was swapped in -c: it has imported neither fastmcp nor mcp" in done.stderr) is says


def test_a_package_of_the_programs_own_is_named_where_nothing_was_swapped(tmp_path: Path) -> None:
    (tmp_path / "mcp").mkdir()
    (tmp_path / "mcp" / "__init__.py").write_text("own = 5\n")
    code = "import sys; sys.path.insert(0, '.'); import mcp; assert mcp.own == 5"
    done = subprocess.run(
        [*FASTRPC, "swap", "--run", "--", sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        cwd=tmp_path,
    )
    assert "nothing was swapped in -c: it has its own packages with these names" in done.stderr


def test_a_program_that_starts_no_python_is_warned_of(tmp_path: Path) -> None:
    program = tmp_path / "node"
    program.write_text("#!/bin/sh\nexit 0\n")
    program.chmod(0o755)
    done = subprocess.run(
        [*FASTRPC, "swap", "--run", "--", str(program)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "is not Python: fastrpc replaces nothing in it" in done.stderr


def test_beside_the_sdk_2_the_package_of_1_is_not_there(tmp_path: Path) -> None:
    pytest.importorskip("mcp")
    done = run(
        "try:\n    from mcp.server.fastmcp import FastMCP\n"
        "except ImportError as error:\n    print(type(error).__name__, error.name)\n"
        "try:\n    import mcp.server.fastmcp.tools\nexcept ModuleNotFoundError:\n    print('nor a part')\n"
        "from mcp.server.mcpserver import MCPServer\nprint(MCPServer.__module__)",
        tmp_path,
    )
    lines = done.stdout.splitlines()
    assert lines == ["ModuleNotFoundError mcp.server.fastmcp", "nor a part", "fastrpc.compat.server"], (
        done.stderr
    )


def test_a_served_module_has_the_file_of_the_original(tmp_path: Path) -> None:
    pytest.importorskip("mcp")
    done = run(
        "import mcp, mcp.server, mcp.server.lowlevel, inspect, os\n"
        "for module in (mcp, mcp.server, mcp.server.lowlevel):\n"
        "    assert os.path.isfile(module.__file__), module\n"
        "print(inspect.getfile(mcp))",
        tmp_path,
    )
    assert done.stdout.strip().endswith(os.path.join("mcp", "__init__.py")), done.stderr


def run(code: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run code of Python as `fastrpc swap --run` would."""
    env = {**launch.environment([sys.executable]), **variables}
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_types_are_those_of_the_installed_sdk_and_the_rest_of_it_is_not_imported(tmp_path: Path) -> None:
    pytest.importorskip("mcp")
    done = run(
        "import mcp.types, mcp, sys; from mcp import Tool, types\n"
        "assert Tool is mcp.types.Tool is types.Tool and Tool.model_fields\n"
        "assert 'starlette' not in sys.modules and 'httpx' not in sys.modules\n"
        "import mcp.server.stdio\n"
        "print(mcp.server.stdio.stdio_client.__module__, mcp.__version__)",
        tmp_path,
    )
    assert done.stdout.startswith("fastrpc.compat."), done.stderr


def test_a_missing_name_is_an_import_error_that_names_it(tmp_path: Path) -> None:
    done = run("from fastmcp import Nothing", tmp_path)
    assert "ImportError: fastrpc has no Nothing of fastmcp" in done.stderr
    done = run("import fastmcp\nassert not hasattr(fastmcp, 'Nothing')\nfastmcp.Nothing", tmp_path)
    assert "AttributeError: fastrpc has no Nothing of fastmcp" in done.stderr
    done = run("import fastmcp.nothing.at_all", tmp_path)
    assert "ImportError" in done.stderr


def test_names_of_annotations_may_be_subscripted(tmp_path: Path) -> None:
    done = run(
        "from mcp.server.context import CallNext, HandlerResult, ServerRequestContext\n"
        "def f(a: ServerRequestContext[int, str], b: CallNext | None) -> HandlerResult: pass\n"
        "print('fine')",
        tmp_path,
    )
    assert done.stdout == "fine\n", done.stderr


def test_a_star_brings_what_the_original_brings(tmp_path: Path) -> None:
    done = run("from mcp.server.mcpserver import *\nprint(MCPServer.__module__, Icon.__module__)", tmp_path)
    assert done.stdout.startswith("fastrpc.compat.server mcp"), done.stderr


def test_a_module_of_the_users_own_with_that_name_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "fastmcp.py").write_text("mine = True\n")
    (tmp_path / "mcp").mkdir()
    (tmp_path / "mcp" / "__init__.py").write_text("mine = True\n")
    done = run("import fastmcp, mcp\nprint(fastmcp.mine, mcp.mine)", tmp_path)
    assert done.stdout == "True True\n", done.stderr


def test_a_folder_with_that_name_does_not_hide_the_original(tmp_path: Path) -> None:
    (tmp_path / "fastmcp").mkdir()
    done = run("from fastmcp import FastMCP\nprint(FastMCP.__module__)", tmp_path)
    assert done.stdout == "fastrpc.compat.server\n", done.stderr


def test_another_sitecustomize_still_runs(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "sitecustomize.py").write_text("import sys\nsys.other_one_ran = True\n")
    env = launch.environment([sys.executable], {**os.environ, "PYTHONPATH": str(tmp_path / "other")})
    code = "import sys, sitecustomize\nprint(sys.other_one_ran, sitecustomize.__file__)"
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", str(tmp_path / "other" / "sitecustomize.py")]


def test_processes_of_the_server_are_served_too_and_may_not_need_it(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys, multiprocessing\n"
        "inner = 'from fastmcp import FastMCP; print(FastMCP.__module__)'\n"
        "subprocess.run([sys.executable, '-c', inner], check=True)\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool: print(pool.map(abs, [-1]))\n"
    )
    (tmp_path / "parent.py").write_text(code)
    done = run("import runpy; runpy.run_path('parent.py', run_name='__main__')", tmp_path)
    assert done.stdout.splitlines()[0] == "fastrpc.compat.server", done.stderr
    assert done.stdout.splitlines()[-1] == "[1]"


def run_bare(code: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run code by an interpreter that has no packages installed."""
    env = {**launch.environment([sys.executable]), **variables}
    base = getattr(sys, "_base_executable", sys.executable)
    command = [base, "-S", "-c", f"import sitecustomize\n{code}"]
    return subprocess.run(command, cwd="/", env=env, capture_output=True, text=True, timeout=60, check=False)


def test_another_python_reports_what_to_install_and_only_when_it_imports_an_original() -> None:
    built_for_another = {VARIABLE: os.pathsep.join([".cpython-27.so", "/nowhere"])}
    assert run_bare("print('fine')", **built_for_another).stdout == "fine\n"
    done = run_bare("import fastmcp", **built_for_another)
    assert f"is Python {sys.version_info[0]}.{sys.version_info[1]} " in done.stderr
    assert ".cpython-27.so" in done.stderr
    assert "install fastrpc-mcp" in done.stderr


def test_an_environment_without_fastrpc_borrows_it_and_nothing_else() -> None:
    done = run_bare(
        "import sys\n"
        "assert not any('site-packages' in place for place in sys.path), sys.path\n"
        "from fastmcp import FastMCP\n"
        "FastMCP('x').tool(lambda: 1, name='one')\n"
        "try:\n    import pydantic\nexcept ImportError:\n    print(FastMCP.__module__)\n"
    )
    assert done.stdout == "fastrpc.compat.server\n", done.stderr


def test_both_copies_of_what_the_two_sides_agree_on_are_the_same() -> None:
    path = Path(launch.__file__).parent / "site_folder" / "sitecustomize.py"
    text = path.read_text()
    assert f'VARIABLE = "{VARIABLE}"' in text
    assert f"PACKAGES = {json.dumps(PACKAGES)}".replace("[", "(").replace("]", ")") in text


@pytest.mark.parametrize("options", [["-I"], ["-E"], ["-sE"], ["-W", "error", "-I"]])
def test_an_interpreter_that_ignores_variables_is_refused(options: list[str], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="-I or -E"):
        launch.environment([sys.executable, *options, "server.py"])
    script = tmp_path / "script"
    script.write_text(f"#!{sys.executable} {' '.join(options)}\n")
    script.chmod(0o755)
    with pytest.raises(UsageError, match="give the script to Python"):
        launch.environment([str(script)])


@pytest.mark.parametrize("words", [["-m", "x", "-E"], ["-c", "-E"], ["x.py", "-I"], ["-u", "x.py"], []])
def test_options_after_the_script_are_its_own(words: list[str]) -> None:
    assert launch.environment([sys.executable, *words])[VARIABLE]


@pytest.mark.parametrize(
    ("command", "is_chosen"),
    [
        ("uvx mcp-server-time", True),
        ("uv tool run mcp-server-time", True),
        ("uvx --python 3.12 mcp-server-time", False),
        ("uv run server.py", True),
        ("uv run --project /elsewhere server.py", False),
        ("python server.py", False),
    ],
)
def test_uv_takes_the_python_of_fastrpc_unless_a_project_has_one(
    command: str, is_chosen: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("UV_PYTHON", raising=False)
    assert ("UV_PYTHON" in launch.environment(command.split())) is is_chosen
    (tmp_path / "pyproject.toml").touch()
    if command.startswith("uv run"):
        assert "UV_PYTHON" not in launch.environment(command.split())


def test_a_command_that_does_not_exist_is_a_mistake(tmp_path: Path) -> None:
    done = subprocess.run(
        [*FASTRPC, "swap", "--run", "--", "no-such-command"], capture_output=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith(b"fastrpc: no-such-command: ")


def test_a_server_that_ends_reports_its_own_exit_code(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("from fastmcp import Nothing\n")
    command = [*FASTRPC, "swap", "--run", "--", sys.executable, str(tmp_path / "broken.py")]
    with pytest.raises(ConnectionLost, match="fastrpc has no Nothing"), Client.sync(command):
        pass


# --- fastrpc compare ----------------------------------------------------------------------------------------

CALLS = [
    {"tool": "add", "arguments": {"a": 1, "b": 2}},
    {"tool": "add", "arguments": {"a": "x"}},
    {"resource": "greeting://you"},
    {"prompt": "greet", "arguments": {"name": "you"}},
]


def compare(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [*FASTRPC, "compare", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120, check=False)


def test_a_server_of_the_sdk_is_compared_with_itself_on_fastrpc(tmp_path: Path) -> None:
    pytest.importorskip("mcp.server.mcpserver")
    (tmp_path / "server.py").write_text(FOR_SDK)
    (tmp_path / "calls.json").write_text(json.dumps(CALLS))
    done = compare(
        "--calls", "calls.json", "--repeat", "2", "--json", "--", sys.executable, "server.py", cwd=tmp_path
    )
    report = json.loads(done.stdout)
    assert [place for place in report["differences"] if not place["reason"]] == []
    assert done.returncode == 0, done.stderr
    assert [len(report[side]["answers"]) for side in ("original", "swapped")] == [4, 4]
    assert report["swapped"]["seconds"].keys() == {"start", "list", "call"}
    shown = compare("--", sys.executable, "server.py", cwd=tmp_path)
    assert shown.stdout.startswith("no differences that a client or a model would act on\n")
    assert "by choice" in shown.stdout


def test_a_real_difference_is_code_1_and_shows_both(tmp_path: Path) -> None:
    pytest.importorskip("mcp.server.mcpserver")
    text = FOR_SDK + "\n"
    text = text.replace('"Add two numbers"', 'f"Add"').replace("@server.tool()", "@server.tool(title=T)")
    text = "import sys\nT = 'fast' if 'fastrpc' in sys.modules else 'slow'\n" + text.replace(
        "title=T", "description=T"
    )
    text = text.replace("server = MCPServer", "T = MCPServer.__module__\nserver = MCPServer")
    (tmp_path / "server.py").write_text(text)
    done = compare("--", sys.executable, "server.py", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "1 difference that a client or a model would act on\n  tools: add: description\n" in done.stdout


def test_a_server_that_runs_on_one_side_only_is_code_1(tmp_path: Path) -> None:
    pytest.importorskip("mcp.server.mcpserver")
    (tmp_path / "server.py").write_text(FOR_SDK.replace("import Context,", "import Gone as Context,"))
    done = compare("--", sys.executable, "server.py", cwd=tmp_path)
    assert done.returncode == 1
    assert "the original, it does not run: " in done.stdout
    assert "on fastrpc, it does not run: " in done.stdout


def test_a_server_that_never_answers_is_waited_for_as_long_as_is_said(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text("import time\ntime.sleep(600)\n")
    done = compare("--timeout", "0.5", "--", sys.executable, "server.py", cwd=tmp_path)
    assert done.returncode == 1
    for which in ("the original", "on fastrpc"):
        assert f"{which}, it does not run: initialize: no answer within 0.5 s\n" in done.stdout


def test_a_server_that_imports_no_original_is_not_compared(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text("from fastrpc import Server\nServer('x').run()\n")
    done = compare("--", sys.executable, "server.py", cwd=tmp_path)
    assert done.returncode == 1
    assert "neither fastmcp nor mcp" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [[], ["--repeat", "0", "--", "x"], ["--calls", "none", "--", "x"], ["--protocol", "1", "--", "x"]],
)
def test_a_wrong_command_line_is_code_2(arguments: list[str], tmp_path: Path) -> None:
    assert compare(*arguments, cwd=tmp_path).returncode == 2


def test_calls_are_checked_before_a_server_starts(tmp_path: Path) -> None:
    (tmp_path / "calls.json").write_text('[{"name": "add"}]')
    done = compare("--calls", "calls.json", "--", "x", cwd=tmp_path)
    assert done.returncode == 2
    assert 'a member "tool", "resource" or "prompt"' in done.stderr
