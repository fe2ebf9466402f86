"""How `fastrpc swap --run` starts a server, and what the originals' commands do then."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import pytest

from fastrpc.errors import UsageError
from fastrpc.swap import launch, run_command
from fastrpc.swap.import_hook import ServedModules


@pytest.mark.parametrize(
    "command",
    [
        ["env", "-i", "python", "server.py"],
        ["/usr/bin/env", "A=1", "--ignore-environment", "python", "server.py"],
        ["env", "A=1", "-u", "B", "python", "-I", "server.py"],
        ["python", "-I", "server.py"],
    ],
)
def test_a_command_that_ignores_the_variables_is_refused(command: list[str]) -> None:
    with pytest.raises(UsageError, match="leave out"):
        launch.environment(command, {})


@pytest.mark.parametrize("command", [["env", "A=1", "python", "server.py"], ["env"]])
def test_env_itself_is_no_hindrance(command: list[str]) -> None:
    assert "FASTRPC_SWAP" in launch.environment(command, {})


@pytest.mark.parametrize(
    ("first_line", "is_uv"),
    [
        ("#!/usr/bin/env -S uv run --script", True),
        ("#!/usr/bin/env -S uv run -q --script", True),
        ("#!/bin/sh", False),
    ],
)
def test_uv_takes_our_interpreter_for_a_script_that_has_its_dependencies_inside(
    tmp_path: Any, first_line: str, is_uv: bool
) -> None:
    script = tmp_path / "server.py"
    script.write_text(f"{first_line}\n# /// script\n# dependencies = []\n# ///\n")
    script.chmod(0o755)
    assert ("UV_PYTHON" in launch.environment([str(script)], {})) is is_uv


def configured(folder: Any, **members: Any) -> Any:
    found = {"source": {"path": "server.py", "entrypoint": "app"}, **members}
    (folder / "fastmcp.json").write_text(json.dumps(found))
    return folder


def test_a_configuration_says_the_file_the_options_and_the_arguments(tmp_path: Any, monkeypatch: Any) -> None:
    deployment = {"transport": "http", "port": 9000, "env": {"A_VARIABLE": "x"}, "args": ["--a"], "cwd": "."}
    monkeypatch.setenv("A_VARIABLE", "")
    monkeypatch.chdir(configured(tmp_path, deployment=deployment))
    place, _, rest = run_command._parsed(["run"])
    assert place == "fastmcp.json"
    found = run_command._configured(place, {"port": 1}, rest)
    assert found == (f"{tmp_path}/server.py:app", {"transport": "http", "port": 1}, ["--a"])
    assert os.environ["A_VARIABLE"] == "x"


def test_a_configuration_without_a_source_is_refused(tmp_path: Any) -> None:
    (tmp_path / "fastmcp.json").write_text("{}")
    with pytest.raises(UsageError, match="no configuration"):
        run_command._configured(str(tmp_path / "fastmcp.json"), {}, [])


def test_options_of_the_environment_are_those_of_uv(monkeypatch: Any) -> None:
    started: list[Any] = []
    monkeypatch.setattr(os, "execvp", lambda program, words: started.append(words))
    monkeypatch.setattr(sys, "argv", ["/bin/fastmcp"])
    words = ["run", "--with", "httpx", "server.py", "--python=3.12", "--", "--with", "own"]
    run_command._start_in_environment(words)
    assert started == [
        [
            *("uv", "run", "--with", "fastmcp", "--with", "httpx", "--python=3.12"),
            *("fastmcp", "run", "server.py", "--", "--with", "own"),
        ]
    ]
    run_command._start_in_environment(["run", "server.py"])
    assert len(started) == 1


def test_without_uv_such_options_are_refused(monkeypatch: Any) -> None:
    def missing(program: str, words: list[str]) -> None:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(os, "execvp", missing)
    with pytest.raises(UsageError, match="needs uv"):
        run_command._start_in_environment(["run", "--python", "3.12", "server.py"])


def test_the_package_can_be_run_by_its_name() -> None:
    code = ServedModules().get_code("fastmcp.__main__")
    assert code is not None
    assert "app" in code.co_names
    assert ServedModules().get_code("fastmcp") is None


def test_a_module_of_another_release_says_which_one_is_installed_and_which_to_install() -> None:
    """The SDK that the tests have is one of 2.x."""
    said = r"fastmcp': it is a module of mcp 1\.x, and mcp 2\..* is installed\. Install 'mcp==1\.\*'"
    with pytest.raises(ModuleNotFoundError, match=said):
        ServedModules().find_spec("mcp.server.fastmcp")
