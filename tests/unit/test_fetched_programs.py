"""Programs that tests run where the system has none: when they are fetched, and who finds them."""

from __future__ import annotations

import importlib.util
import os
import runpy
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support import chromium, programs

FETCH = os.path.join(programs.REPOSITORY, ".ci", "programs", "fetch.py")


@pytest.fixture
def fetch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module, in a separate folder, without a program of the system's."""
    spec = importlib.util.spec_from_file_location("fetch_programs", FETCH)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "HERE", tmp_path / "pins")
    monkeypatch.setattr(module, "FOLDER", tmp_path / "programs")
    monkeypatch.setattr(module, "BIN", tmp_path / "programs" / "bin")
    monkeypatch.setattr(module, "PLACES", str(tmp_path / "system"))
    (tmp_path / "pins").mkdir()
    (tmp_path / "system").mkdir()
    return module


def program(folder: Path, name: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("#!/bin/sh\necho its own words\n", encoding="ascii")
    (folder / name).chmod(0o755)


def test_a_program_is_fetched_once_and_anew_when_its_pins_change(
    fetch: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fetched: list[Path] = []
    monkeypatch.setattr(fetch, "PROGRAMS", {"one": (fetched.append, ("one",))})
    assert [fetch.main(), fetch.main()] == [0, 0]
    assert fetched == [tmp_path / "programs" / "one"]
    (tmp_path / "pins" / "one.txt").write_text("one==2", encoding="ascii")
    assert fetch.main() == 0
    assert len(fetched) == 2


@pytest.mark.parametrize("how", ["name", "place"])
def test_what_the_system_has_is_not_fetched(
    fetch: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, how: str
) -> None:
    program(tmp_path / "system", "one")
    named = "one" if how == "name" else f"{tmp_path}/sys*/one"
    monkeypatch.setattr(fetch, "PROGRAMS", {"one": (lambda folder: pytest.fail("fetched"), ("other", named))})
    assert fetch.main() == 0


def test_one_that_cannot_be_had_is_named_leaves_nothing_and_keeps_no_other_back(
    fetch: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    def half(folder: Path) -> None:
        (folder / "part").touch()
        fetch.run(["sh", "-c", "echo no such package >&2; exit 3"])

    (tmp_path / "system" / "sh").symlink_to("/bin/sh")
    monkeypatch.setattr(fetch, "PROGRAMS", {"one": (half, ()), "two": (lambda folder: None, ())})
    assert fetch.main() == 1
    said = capfd.readouterr()
    assert said.err == "fetch.py: one could not be fetched: sh ended with 3: no such package\n"
    assert said.out.split() == ["two", str(tmp_path / "programs" / "two")]
    assert sorted(os.listdir(tmp_path / "programs")) == ["bin", "two"]


def test_a_program_that_is_offered_is_given_its_arguments(fetch: Any) -> None:
    fetch.BIN.mkdir(parents=True)
    fetch.offer("say", "/bin/echo", "two words")
    done = subprocess.run([fetch.BIN / "say", "a  b", "*"], capture_output=True, text=True, check=True)
    assert done.stdout == "two words a  b *\n"


def test_the_systems_program_is_found_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for folder, name in ((ours, "one"), (ours, "both"), (theirs, "both")):
        program(folder, name)
    monkeypatch.setattr(programs, "FOLDER", str(ours))
    monkeypatch.setenv("PATH", str(theirs))
    programs.extend_path()
    programs.extend_path()
    assert os.environ["PATH"] == f"{theirs}{os.pathsep}{ours}"
    found = [shutil.which(name) for name in ("one", "both")]
    assert found == [str(ours / "one"), str(theirs / "both")]
    assert [programs.is_fetched(path) for path in found] == [True, False]


def test_a_test_that_wants_a_whole_browser_does_without_the_one_from_npm(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(programs, "FOLDER", str(tmp_path / "ours"))
    monkeypatch.setenv("PATH", str(tmp_path / "ours"))
    monkeypatch.delenv("FASTRPC_BROWSER", raising=False)
    with pytest.raises(pytest.skip.Exception, match=r"^Chromium is not installed: "):
        chromium.need()
    program(tmp_path / "ours", "chromium")
    chromium.need()
    with pytest.raises(pytest.skip.Exception, match=r"^A Chromium that has windows is not installed: "):
        chromium.need(whole=True)
    program(tmp_path / "theirs", "google-chrome")
    monkeypatch.setenv("PATH", f"{tmp_path / 'theirs'}")
    chromium.need(whole=True)


def test_test_data_that_are_named_are_not_fetched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FASTRPC_DATA_DIR", str(tmp_path))
    named = runpy.run_path(FETCH)
    assert all(map(named["of_the_system"], named["PROGRAMS"]["published"][1]))
    monkeypatch.setenv("FASTRPC_DATA_DIR", str(tmp_path / "none"))
    named = runpy.run_path(FETCH)
    assert not any(map(named["of_the_system"], named["PROGRAMS"]["published"][1]))


def test_the_methods_of_a_schema_are_those_that_its_unions_name(fetch: Any) -> None:
    ping = {"required": ["method"], "properties": {"method": {"const": "ping"}}}
    call = {
        "required": ["method", "params"],
        "properties": {"method": {"const": "call"}, "params": {"$ref": "#/$defs/P"}},
    }
    types = {
        "Ping": ping,
        "Call": call,
        "P": {"required": ["name"], "properties": {"name": {}, "arguments": {}}},
        "ClientRequest": {"anyOf": [{"$ref": "#/$defs/Ping"}, {"$ref": "#/$defs/Call"}]},
        "CallResult": {"properties": {"content": {}}},
    }
    found = fetch.methods_of({"$defs": types})
    assert found["ClientRequest"] == {
        "ping": {"def": "Ping", "params_required": False, "required": [], "props": []},
        "call": {
            "def": "Call",
            "params_required": True,
            "required": ["name"],
            "props": ["arguments", "name"],
        },
    }
    assert found["ServerRequest"] == {}
    assert found["results"] == {"CallResult": {"required": [], "props": ["content"]}}


def test_a_numbers_bounds_and_default_are_numbers_in_the_schemas(fetch: Any) -> None:
    bounds = {"default": {"type": "integer"}, "minimum": {"type": "integer"}, "title": {"type": "string"}}
    found = fetch.with_numbers({"$defs": {"NumberSchema": {"properties": bounds}}})
    types = {name: each["type"] for name, each in found["$defs"]["NumberSchema"]["properties"].items()}
    assert types == {"default": "number", "minimum": "number", "title": "string"}
    assert fetch.with_numbers({"definitions": {"Other": {}}}) == {"definitions": {"Other": {}}}
