"""A toolset declares its settings itself: found, checked, shown and handed on like the server's own."""

from __future__ import annotations

import json
import os
import textwrap
from typing import Any

import pytest
from support.command_line import assert_mistake, names, run, session

DECLARED = """
    from fastrpc.settings import Setting

    LIMIT = Setting("CHEST_LIMIT", "count", 3, "how many are handed out")
    STRICT = Setting("CHEST_STRICT", "guard", False, "refuse what is not known", after="TOOLS")
    PASSWORD = Setting("CHEST_PASSWORD", "secret", "", "opens the chest")
    HOST = Setting("CHEST_HOST", "address", "", "where the chest stands")
    DRAWERS = Setting("DRAWER_*", "flag", True, "one drawer, open or not")
    OPTIONS = {"--limit": LIMIT, "--strict": STRICT}
"""
TOOLS = """
    import os

    from fastrpc import tool

    @tool(name="Settings", effect="read")
    def settings() -> str:
        "What holds for the tools"
        drawer = DRAWERS.read("top-left")
        child = os.environ.get("CHEST_PASSWORD", "not in the environment")
        return f"{LIMIT.read()} {STRICT.read()} {PASSWORD.read()} {drawer}; {child}"
"""
CALL = ("tools/call", {"name": "Settings", "arguments": {}})
WHERE = "~/.claude/scorpiox-env.txt"


def lines_of(text: str) -> dict[str, list[str]]:
    return {line.split()[0]: line.split()[1:] for line in text.splitlines()[1:]}


def home_file(place: Any, text: str) -> None:
    folder = place.parent / "home" / ".claude"
    folder.mkdir(exist_ok=True)
    (folder / "scorpiox-env.txt").write_text(text)


@pytest.fixture(params=["a file", "a package", "the toolset"])
def target(request: Any, place: Any, monkeypatch: Any) -> list[str]:
    """The arguments that serve a toolset with settings: a file, a package by name, or the configured one."""
    if request.param == "a file":
        (place / "chests.py").write_text(textwrap.dedent(DECLARED) + textwrap.dedent(TOOLS))
        return ["chests.py"]
    folder = place.parent / "site" / "chests"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "_settings.py").write_text(textwrap.dedent(DECLARED))
    (folder / "one.py").write_text("from ._settings import *\n" + textwrap.dedent(TOOLS))
    paths = [str(folder.parent), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
    if request.param == "a package":
        return ["chests"]
    monkeypatch.setenv("FASTRPC_TOOLSET", "chests")
    return []


def test_a_tool_reads_what_files_and_the_environment_say(place: Any, target: list[str]) -> None:
    home_file(place, "CHEST_LIMIT=7\nCHEST_PASSWORD=open-sesame\nDRAWER_TOP-LEFT=off\n")
    answers, said = session(place, target, CALL, CHEST_STRICT="yes")
    text = answers[1]["result"]["content"][0]["text"]
    assert text == "7 True open-sesame False; not in the environment", "children would inherit a secret"
    assert said == ""
    answers, _ = session(place, target, CALL, CHEST_LIMIT="8", CHEST_PASSWORD="from-outside")
    assert answers[1]["result"]["content"][0]["text"] == "8 False from-outside False; from-outside"


def test_a_misspelt_or_wrong_line_is_one_warning(place: Any, target: list[str]) -> None:
    home_file(place, "CHEST_LIMTI=7\nCHEST_LIMIT=many\nNONSENSE=1\n")
    for arguments in (["serve", *target], ["tools", *target], ["config", *target]):
        assert run(place, *arguments).stderr.splitlines() == [
            f"fastrpc: warning: {WHERE}:1: unknown key CHEST_LIMTI (did you mean CHEST_LIMIT?)",
            f"fastrpc: warning: {WHERE}:2: CHEST_LIMIT: expected a whole number from 1 up, got 'many'",
            f"fastrpc: warning: {WHERE}:3: unknown key NONSENSE",
        ]
    home_file(place, "")
    answers, said = session(place, target, CALL, CHEST_LIMIT="0")
    assert said.splitlines() == [
        "fastrpc: warning: environment: CHEST_LIMIT: expected a whole number from 1 up, got '0'"
    ]
    assert answers[1]["result"]["content"][0]["text"].startswith("3 "), "the default holds"


def test_a_cloned_repository_may_not_lower_a_guard_of_a_toolset_nor_give_a_secret(
    place: Any, target: list[str]
) -> None:
    home_file(place, "CHEST_STRICT=1\n")
    (place / ".claude").mkdir()
    (place / ".claude" / "scorpiox-env.txt").write_text("CHEST_STRICT=0\nCHEST_PASSWORD=guessed-by-them\n")
    answers, said = session(place, target, CALL)
    assert answers[1]["result"]["content"][0]["text"].startswith("3 True  True")
    assert "CHEST_STRICT stays on" in said
    assert "CHEST_PASSWORD is ignored here" in said
    assert "guessed" not in said


def test_config_shows_the_settings_of_what_is_served_and_masks_secrets(place: Any, target: list[str]) -> None:
    home_file(place, "CHEST_PASSWORD=open-sesame\nCHEST_HOST=http://me:open-sesame@there/\nPLAN_ENFORCE=1\n")
    done = run(place, "config", *target, CHEST_LIMIT="8")
    assert (done.returncode, done.stderr) == (0, "")
    shown = lines_of(done.stdout)
    assert shown["CHEST_LIMIT"] == ["8", "environment"]
    assert shown["CHEST_PASSWORD"] == ["********", f"{WHERE}:1"]
    assert shown["CHEST_HOST"] == ["http://****@there/", f"{WHERE}:2"]
    assert list(shown)[:2] == ["TOOLS", "CHEST_STRICT"], "each is shown where it asks to be"
    assert "PLAN_ENFORCE" not in shown, "the agent's tools are not served"
    assert "FASTRPC_LOG_LEVEL" in shown
    whole = run(place, "config", "--json", *target)
    assert json.loads(whole.stdout)["CHEST_PASSWORD"]["value"] == "********"
    assert "open-sesame" not in done.stdout + whole.stdout


def test_a_secret_of_a_toolset_is_masked_in_the_log(place: Any) -> None:
    (place / "chests.py").write_text(
        textwrap.dedent(DECLARED).replace("CHEST_PASSWORD", "CHEST_WORD")
        + textwrap.dedent("""
    from fastrpc import tool

    @tool(name="Settings", effect="read")
    def settings() -> str:
        raise RuntimeError(f"the chest does not open with {PASSWORD.read()}")
    """)
    )
    home_file(place, "CHEST_WORD=open-sesame\n")
    _, said = session(place, ["chests.py"], CALL)
    assert "the chest does not open with ****" in said


def test_settings_of_tools_that_a_server_took_over_count_too(place: Any) -> None:
    (place / "app.py").write_text(
        "from fastrpc import Server\nimport fastrpc.tools.agent.list_bg_tasks as tasks\n"
        "app = Server('mine')\napp.include(tasks)\n"
    )
    home_file(place, "PLAN_ENFORCE=1\n")
    assert lines_of(run(place, "config", "app.py").stdout)["PLAN_ENFORCE"] == ["true", f"{WHERE}:1"]


@pytest.mark.parametrize(
    ("declared", "complaint"),
    [
        ("Setting('CHEST', 'nmuber', 1, '')", "setting CHEST: kind: expected one of flag, "),
        ("Setting('A B', 'count', 1, '')", "setting: expected a name of letters, digits and _, got 'A B'"),
        ("Setting('FASTRPC_TOKEN', 'text', '', '')", "the setting FASTRPC_TOKEN is already declared"),
        ("Setting('TOOL_X', 'count', 1, '')", "the setting TOOL_X is already declared with another meaning"),
    ],
)
def test_a_declaration_that_cannot_hold_is_a_usage_error(
    place: Any, words: str, declared: str, complaint: str
):
    with open(words, "a") as file:
        file.write(f"\nfrom fastrpc.settings import Setting\nONE = {declared}\n")
    done = run(place, "serve", words)
    assert_mistake(done, complaint)


def test_an_authors_own_settings_mean_nothing_here(place: Any, words: str) -> None:
    with open(words, "a") as file:
        file.write("\nSETTINGS = {'debug': 1}\n")
    answers, said = session(place, [words], ("tools/list", {}))
    assert names(answers[1])
    assert said == ""


def test_settings_that_cannot_be_imported_are_one_line(place: Any, toolset: Any) -> None:
    (toolset / "_settings.py").write_text("import nothing_of_that_name\n")
    assert_mistake(run(place, "config"), "chest._settings: ModuleNotFoundError: No module named")
    assert_mistake(run(place, "serve"), "chest._settings: ModuleNotFoundError: No module named")


def test_a_setting_of_bytes_takes_what_it_has_by_default(place: Any) -> None:
    done = run(place, "config", FASTRPC_IMAGE_MEMORY_BYTES=str(8 * 1024**3))
    assert done.stderr == ""
    assert lines_of(done.stdout)["FASTRPC_IMAGE_MEMORY_BYTES"] == ["8589934592", "environment"]


def test_a_guard_whose_text_cannot_be_read_is_up(monkeypatch: Any) -> None:
    from fastrpc.settings import Setting

    guard = Setting("CHEST_GUARD", "guard", False, "")
    assert guard.read() is False
    monkeypatch.setenv("CHEST_GUARD", "perhaps")
    assert guard.read() is True


@pytest.mark.parametrize("given", [("--limit", "8", "--strict"), ("--limit=8", "--strict")])
def test_an_option_of_the_toolset_sets_its_setting(
    place: Any, target: list[str], given: tuple[str, ...]
) -> None:
    if target == ["chests.py"]:  # which has no module _settings
        assert_mistake(run(place, "serve", *target, *given), "unknown option '--limit'")
        return
    answers, said = session(place, [*target, *given], CALL, CHEST_LIMIT="2")
    assert answers[1]["result"]["content"][0]["text"].startswith("8 True ")
    assert said == ""


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--limit", "many"], "--limit: expected a whole number from 1 up, got 'many'"),
        (["--limit"], "--limit needs a value"),
        (["--strict=1"], "--strict takes no value"),
        (["--lmit", "3"], "unknown option '--lmit'"),
    ],
)
def test_a_wrong_option_of_the_toolset_is_one_line(
    place: Any, target: list[str], given: list[str], said: str
) -> None:
    if target == ["chests.py"]:
        said = "unknown option"
    assert_mistake(run(place, "serve", *target, *given), said)
