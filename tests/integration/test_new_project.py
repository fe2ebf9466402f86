"""`fastrpc new`: what it makes works as printed, and nothing that exists is changed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.command_line import SECONDS, assert_mistake, run
from support.terminal import on_terminal

FILES = {
    *("server.py", "test_server.py", "pyproject.toml", "README.md", "guard.toml", "Dockerfile"),
    *(".mcp.json", ".vscode/mcp.json", ".gitignore", ".dockerignore"),
}


def files_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_the_projects_tests_pass_and_its_server_is_called_and_guarded(place):
    made = run(place, "new", "notes")
    assert (made.returncode, made.stderr) == (0, "")
    folder = place / "notes"
    assert files_in(folder) == FILES
    assert "@" not in "".join((folder / each).read_text().replace("@app.", "") for each in FILES)
    tested = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", "."],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert "2 passed" in tested.stdout, tested.stdout
    for line in made.stdout.splitlines():
        if line.startswith("  fastrpc call "):
            called = run(folder, "call", "server.py", "add_note", "title=tea", "text=Buy tea.")
            assert called.stdout == "There are 2 notes.\n"
    checked = run(folder, "guard", "check", "guard.toml", "server.py")
    assert (checked.returncode, checked.stderr) == (0, "")
    server = json.loads((folder / ".mcp.json").read_text())["mcpServers"]["notes"]
    assert server == {"command": "fastrpc", "args": ["serve", "server.py"]}


def test_what_is_not_wanted_is_left_out(place):
    assert run(place, "new", "notes", "--no-guard", "--no-docker").returncode == 0
    folder = place / "notes"
    assert files_in(folder) == FILES - {"guard.toml", "Dockerfile", ".dockerignore"}
    assert 'dependencies = ["fastrpc-mcp"]' in (folder / "pyproject.toml").read_text()
    assert "guard" not in (folder / "README.md").read_text()


def test_a_person_at_a_terminal_is_asked_for_what_no_option_says(place):
    with on_terminal(place, "new", "notes", "--docker", shows_output=True) as there:
        there.until("(guard.toml)? [Y/n] ")
        there.type("n\n")
        there.until("Made notes.")
        assert there.end()[0] == 0
    assert "guard.toml" not in files_in(place / "notes")
    assert "Dockerfile" in files_in(place / "notes")


def test_an_answer_that_is_neither_yes_nor_no_is_asked_again(place):
    with on_terminal(place, "new", "notes", "--docker", shows_output=True) as there:
        there.until("(guard.toml)? [Y/n] ")
        there.type("\x1b[A\n")
        there.until("Please answer y or n")
        there.until("(guard.toml)? [Y/n] ")
        there.type("NO\n")
        there.until("Made notes.")
        assert there.end()[0] == 0
    assert "guard.toml" not in files_in(place / "notes")


@pytest.mark.parametrize("key", ["\x03", "\x04"], ids=["Ctrl-C", "Ctrl-D"])
def test_a_person_who_leaves_the_questions_makes_nothing_and_sees_no_traceback(place, key):
    with on_terminal(place, "new", "notes", shows_output=True) as there:
        there.until("(guard.toml)? [Y/n] ")
        there.type_until_it_ends(key)
        assert "Traceback" not in there.rest()
        assert there.end()[0] == 130
    assert list(place.iterdir()) == []


@pytest.mark.parametrize(("name", "meant"), [("My Notes", "my-notes"), ("Café_Noir", "cafe-noir")])
def test_a_name_that_is_refused_leads_to_one_that_is_not(place, name, meant):
    assert_mistake(run(place, "new", name), f"did you mean '{meant}'?")
    assert_mistake(run(place, "new", "日本"), "got '日本'\n")


@pytest.mark.parametrize("name", ["", "Notes", "my notes", "../notes", "1st", "a" * 61, "a\n", "notes-"])
def test_a_name_that_is_none_is_refused_and_nothing_is_made(place, name):
    assert_mistake(
        run(place, "new", "--", name), "NAME: expected a small letter, then small letters and digits"
    )
    assert list(place.iterdir()) == []


@pytest.mark.parametrize("kind", ["folder", "file", "link"])
def test_what_exists_is_not_changed(place, kind):
    path = place / "notes"
    if kind == "folder":
        path.mkdir()
    elif kind == "file":
        path.write_text("mine")
    else:
        path.symlink_to("nowhere")
    assert_mistake(run(place, "new", "notes"), "notes exists already")
    assert [each.name for each in place.iterdir()] == ["notes"]


def test_a_folder_that_cannot_be_written_is_one_line(place):
    assert_mistake(
        run(place, "new", "notes", "--folder", "missing"), "missing/notes: No such file or directory"
    )
    (place / "file").write_text("")
    assert_mistake(run(place, "new", "notes", "--folder", "file"), "file/notes: Not a directory")


def test_guard_init_writes_a_policy_once(place):
    made = run(place, "guard", "init")
    assert made.returncode == 0
    assert run(place, "guard", "check", "guard.toml").returncode == 0
    before = (place / "guard.toml").read_text()
    assert_mistake(run(place, "guard", "init"), "guard init: guard.toml: File exists")
    assert (place / "guard.toml").read_text() == before
    assert run(place, "guard", "init", os.path.join(str(place), "other.toml")).returncode == 0
    assert_mistake(run(place, "guard", "check"), "guard check: FILE is missing")
