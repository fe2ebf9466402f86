"""Skills that come, change and go under a running server: the list follows, and the client is notified."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support import process_list
from support.http_client import Serving, request
from support.stdio import SECONDS, STATELESS_META, Process, TimedOut, serve
from support.waiting import eventually

TOLD = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}


@pytest.fixture
def folders(tmp_path: Any) -> Any:
    for name in ("home", "work", "state"):
        (tmp_path / name).mkdir()
    return tmp_path


HURRIED = """
import sys
import fastrpc.__main__
from fastrpc.tools.agent import invoke_skill
invoke_skill.LOOK_SECONDS = 0.1
sys.exit(fastrpc.__main__.main())
"""
"""The command; its server looks ten times a second, not once."""


@contextlib.contextmanager
def served(folders: Any, **more: Any) -> Iterator[Process]:
    environment = {
        "HOME": str(folders / "home"),
        "FASTRPC_STATE_DIR": str(folders / "state"),
        "ADDITIONAL_SKILLS": None,
        **more.pop("environment", {}),
    }
    with serve(environment=environment, folder=str(folders / "work"), **more) as process:
        yield process


@pytest.fixture
def server(folders: Any) -> Iterator[Process]:
    """One that looks often."""
    with served(folders, command=[sys.executable, "-c", HURRIED, "serve"]) as process:
        yield process


@pytest.fixture
def usual_server(folders: Any) -> Iterator[Process]:
    with served(folders) as process:
        yield process


def put(folders: Any, name: str, description: str) -> Any:
    """Write a skill, whole at once: the server may look at any time."""
    folder = folders / "work" / ".claude" / "skills" / name
    folder.mkdir(parents=True, exist_ok=True)
    (folders / "new").write_text(text_of(name, description))
    (folders / "new").rename(folder / "SKILL.md")
    return folder


def text_of(name: str, description: str) -> str:
    return f"---\nname: {name}\ndescription: {description}\n---\nThe body.\n"


@contextlib.contextmanager
def stopped(server: Process) -> Iterator[None]:
    """Have a server look at nothing meanwhile."""

    def states() -> set[str]:
        tasks = f"/proc/{server.pid}/task"
        stats = [process_list.read(f"{tasks}/{task}/stat") for task in os.listdir(tasks)]
        return {stat.rpartition(b")")[2].split()[0].decode() for stat in stats if stat}

    server.signal(signal.SIGSTOP)
    eventually(lambda: states() == {"T"})
    yield
    server.signal(signal.SIGCONT)


def catalogue(server: Process) -> str:
    tools = server.request("tools/list")["result"]["tools"]
    return next(str(tool["description"]) for tool in tools if tool["name"] == "InvokeSkill")


def test_a_client_that_says_nothing_is_notified_within_a_few_seconds(
    usual_server: Process, folders: Any
) -> None:
    """InvokeSkill: folders are looked at while a client is connected, and `notifications/tools/list_changed`
    follows a change.
    """
    server = usual_server
    server.initialize()
    assert "create-skill" in catalogue(server)
    time.sleep(0.5)  # the loop begins to run in a quiet moment
    skill = put(folders, "deploy", "To production.")
    assert server.answer() == TOLD
    assert catalogue(server).endswith("- deploy: To production.")
    later = os.stat(skill / "SKILL.md").st_mtime + 5
    with stopped(server):
        put(folders, "deploy", "To staging.")
        os.utime(skill / "SKILL.md", (later, later))
    assert server.answer() == TOLD
    assert catalogue(server).endswith("- deploy: To staging.")
    (skill / "SKILL.md").unlink()
    assert server.answer() == TOLD
    assert "deploy" not in catalogue(server)


def listed(ask: Callable[[], str], text: str) -> None:
    """Ask for lists until one has a text: a second later, or a few on a busy machine."""
    deadline = time.monotonic() + SECONDS
    while text not in ask():
        assert time.monotonic() < deadline, f"no list has {text!r}"
        time.sleep(0.05)


def test_the_first_list_is_no_older_than_the_folder(server: Process, folders: Any) -> None:
    """InvokeSkill: the first list is as new as the folders."""
    server.initialize()
    put(folders, "first", "New.")
    assert catalogue(server).endswith("- first: New.")


def test_a_skill_is_in_the_lists_soon_after_it_is_there(server: Process, folders: Any) -> None:
    server.initialize()
    for number in range(3):
        put(folders, f"skill-{number}", "New.")
        listed(lambda: catalogue(server), f"- skill-{number}: New.")


def test_a_client_that_never_pauses_sees_a_new_skill(server: Process, folders: Any) -> None:
    server.initialize()
    put(folders, "early", "New.")
    deadline = time.monotonic() + SECONDS
    while "- early: New." not in catalogue(server):
        pass
    put(folders, "late", "New.")
    while "- late: New." not in catalogue(server):
        assert time.monotonic() < deadline


def test_a_client_that_begins_late_is_notified(server: Process, folders: Any) -> None:
    time.sleep(1.0)  # the server has started meanwhile, and had its quiet moment
    server.initialize()
    for number in range(100):  # until it has looked for the first time, which nothing tells
        put(folders, f"deploy-{number}", "To production.")
        with contextlib.suppress(TimedOut):
            assert server.answer(seconds=0.5) == TOLD
            return
    pytest.fail("it was not told")


def test_a_list_of_2026_07_28_has_a_new_skill_though_no_one_listens(server: Process, folders: Any) -> None:
    def ask() -> str:
        tools = server.request("tools/list", {"_meta": STATELESS_META})["result"]["tools"]
        return next(str(tool["description"]) for tool in tools if tool["name"] == "InvokeSkill")

    ask()
    time.sleep(0.5)
    for number in range(2):
        put(folders, f"skill-{number}", "New.")
        listed(ask, f"- skill-{number}: New.")


def test_a_list_over_http_has_a_new_skill(folders: Any) -> None:
    environment = {"HOME": str(folders / "home"), "FASTRPC_STATE_DIR": str(folders / "state")}
    options = ("serve", "--http", "127.0.0.1:0")
    with Serving(*options, folder=folders / "work", **environment) as served:
        session = served.session()

        def stateless() -> str:
            return served.stateless_request("tools/list", {}).body.decode()

        def of_session() -> str:
            return session.send(request("tools/list", {})).body.decode()

        for number, ask in enumerate((stateless, of_session)):
            assert f"skill-{number}" not in ask()
            put(folders, f"skill-{number}", "New.")
            listed(ask, f"- skill-{number}: New.")


def test_what_reads_as_before_is_not_announced(server: Process, folders: Any) -> None:
    """InvokeSkill: nothing is announced when nothing reads differently."""
    skill = put(folders, "steady", "Same.")
    server.initialize()
    assert "steady" in catalogue(server)
    time.sleep(0.5)
    put(folders, "steady", "Same.")  # a new mtime, the same words
    (skill / "notes.md").write_text("beside it")
    server.assert_silent(0.6)


def test_the_description_follows_the_mtime_alone(server: Process, folders: Any) -> None:
    """InvokeSkill: the description changes only when the mtime of a folder or of a `SKILL.md` does."""
    skill = put(folders, "steady", "First.")
    stamp = os.stat(skill / "SKILL.md").st_mtime_ns - 1_000_000_000  # no one writes it any more
    os.utime(skill / "SKILL.md", ns=(stamp, stamp))
    server.initialize()
    assert "steady: First." in catalogue(server)
    with stopped(server):
        (skill / "SKILL.md").write_text(text_of("steady", "Other."))
        os.utime(skill / "SKILL.md", ns=(stamp, stamp))
    put(folders, "marker", "The folders have been looked at.")
    listed(lambda: catalogue(server), "- marker: The folders have been looked at.")
    assert "steady: First." in catalogue(server)
    os.utime(skill / "SKILL.md", ns=(stamp + 1, stamp + 1))
    listed(lambda: catalogue(server), "steady: Other.")


def test_a_subscriber_of_2026_07_28_is_notified(server: Process, folders: Any) -> None:
    server.ask("subscriptions/listen", {"_meta": STATELESS_META, "notifications": {"toolsListChanged": True}})
    assert server.answer()["method"] == "notifications/subscriptions/acknowledged"
    assert server.request("tools/list", {"_meta": STATELESS_META})["result"]["tools"]
    time.sleep(0.5)
    put(folders, "modern", "New.")
    message = server.answer()
    assert message["method"] == TOLD["method"]
    tools = server.request("tools/list", {"_meta": STATELESS_META})["result"]["tools"]
    assert any("- modern: New." in tool["description"] for tool in tools)


def test_a_skill_can_be_invoked_the_moment_it_is_there(server: Process, folders: Any) -> None:
    server.initialize()
    put(folders, "مهارة", "جديدة.")
    result = server.call("InvokeSkill", skill_name="مهارة", arguments="x")
    assert result["content"][0]["text"].startswith("The body.\n\nARGUMENTS: x\n\nSkill folder: ")


def test_nothing_is_looked_at_when_the_tool_is_switched_off(folders: Any) -> None:
    command = [sys.executable, "-c", HURRIED, "serve"]
    with served(folders, command=command, environment={"TOOL_INVOKESKILL": "0"}) as server:
        server.initialize()
        tools = server.request("tools/list")["result"]["tools"]
        assert "InvokeSkill" not in [tool["name"] for tool in tools]
        time.sleep(0.5)
        put(folders, "unseen", "New.")
        server.assert_silent(0.6)
