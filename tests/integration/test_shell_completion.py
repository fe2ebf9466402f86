"""`fastrpc completion`: each shell, started for real, completes commands, options, clients and files."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time

import pytest
from support.skips import not_installed
from support.waiting import SECONDS

from fastrpc.cli import COMMANDS
from fastrpc.cli._clients import CLIENTS
from fastrpc.cli.serve import OPTIONS


def script(shell: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "fastrpc", "completion", shell],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout


def need(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(not_installed(shell))


@pytest.fixture(params=["bash", "fish"])
def complete(request, tmp_path):
    """A function that returns what a shell offers for a line that ends at the cursor."""
    need(request.param)
    (tmp_path / "tools.py").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "script").write_text(script(request.param))

    def bash(line: str) -> set[str]:
        words = " ".join(f"'{word}'" for word in line.split(" "))
        last = len(line.split(" ")) - 1
        call = f"COMP_WORDS=({words}); COMP_CWORD={last}; _fastrpc"
        code = f'source ./script; {call}; printf "%s\\n" "${{COMPREPLY[@]}}"'
        return offered(["bash", "--norc", "-c", code])

    def fish(line: str) -> set[str]:
        code = f'source ./script; complete -C "{line}"'
        return {word.partition("\t")[0].rstrip("/") for word in offered(["fish", "--no-config", "-c", code])}

    def offered(command: list[str]) -> set[str]:
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env={**os.environ, "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.stderr == ""
        return set(done.stdout.split("\n")) - {""}

    return bash if request.param == "bash" else fish


def test_commands_are_completed(complete) -> None:
    assert set(COMMANDS) <= complete("fastrpc ")
    assert complete("fastrpc inst") == {"install-client"}


def test_every_option_of_serve_is_completed(complete) -> None:
    assert set(OPTIONS) - {"--help"} <= complete("fastrpc serve --")
    assert complete("fastrpc config --js") == {"--json"}


def test_options_of_the_toolsets_commands_are_completed(complete) -> None:
    assert {"--show", "--clean"} <= complete("fastrpc state --")


def test_clients_and_shells_are_completed(complete) -> None:
    assert complete("fastrpc install-client c") == {name for name in CLIENTS if name.startswith("c")}
    assert complete("fastrpc completion ") == {"bash", "zsh", "fish"}


def test_files_and_folders_are_completed(complete) -> None:
    assert complete("fastrpc serve to") == {"tools.py"}
    assert complete("fastrpc serve --cwd fo") == {"folder"}
    assert complete("fastrpc serve --cwd too") == set()


def test_zsh_completes_a_command_an_option_and_a_file(tmp_path) -> None:
    need("zsh")
    (tmp_path / "my_tools.py").touch()
    (tmp_path / "script").write_text(script("zsh"))
    leader, follower = pty.openpty()
    shell = subprocess.Popen(
        ["zsh", "-f", "-i"],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        cwd=tmp_path,
        env={**os.environ, "HOME": str(tmp_path), "TERM": "dumb", "PS1": "> "},
        start_new_session=True,
    )
    os.close(follower)
    try:
        os.write(leader, b"autoload -U compinit; compinit -D -u; source ./script; echo re'a'dy\n")
        wait_for(leader, r"\nready")
        for typed, completed in (
            (b"fastrpc instal", r"fastrpc install-client "),
            (b"fastrpc serve --tok", r"fastrpc serve --token-file "),
            (b"fastrpc install-client curs", r"fastrpc install-client cursor "),
            (b"fastrpc tools my_", r"fastrpc tools my_tools\.py "),
        ):
            os.write(leader, typed + b"\t")
            wait_for(leader, completed)
            os.write(leader, b"\x15")  # Ctrl-U: away with the line
    finally:
        shell.kill()
        shell.wait(SECONDS)
        os.close(leader)


def wait_for(descriptor: int, pattern: str) -> None:
    """Read what a shell writes until a pattern has come."""
    shown = ""
    deadline = time.monotonic() + SECONDS
    while not re.search(pattern, re.sub(r"\x1b\[[\d;?]*[A-Za-z]|.\x08", "", shown)):
        assert time.monotonic() < deadline, shown
        if select.select([descriptor], [], [], 0.5)[0]:
            shown += os.read(descriptor, 65536).decode(errors="replace")


def test_a_shell_that_is_not_known_is_named() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "fastrpc", "completion", "tcsh"],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == "fastrpc: completion: expected one of bash, zsh, fish; got 'tcsh'\n"
