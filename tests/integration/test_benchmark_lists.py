"""What the benchmarks measure is what ships: lists, the shell and starts are those of `fastrpc serve`.

All servers of W3 list the same bytes, and those are the real server's. Each is started once.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import pytest
from support.skips import not_prepared

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BENCHMARKS = os.path.join(REPOSITORY, "benchmarks")
sys.path.append(BENCHMARKS)

roster = pytest.importorskip("roster", reason="the benchmarks are not here")
import descriptors  # noqa: E402
from workloads import ROWS  # noqa: E402

OF_THE_COMMAND = (
    *(roster.LIST, roster.SERVE, roster.SHELL),
    *(roster.START_LIST, roster.START_SERVE, roster.START_HTTP),
)
BEHIND_A_GUARD = (
    roster.GUARDED,
    roster.GUARDED_HTTP,
    roster.GUARDED_RULE,
    roster.GUARDED_RULE_ONLY,
    roster.GUARDED_RULES,
)
"""`fastrpc serve FILE --guard`."""
OF_SERVERS_OF_OTHERS = (roster.SWAPPED,)
OF_A_USERS_FILE = (
    roster.ECHO,
    roster.PAYLOAD,
    roster.SLEEP,
    roster.SLEEP_SYNC,
    roster.START,
    roster.STATELESS,
)
BUILT = os.path.exists(os.path.join(BENCHMARKS, ".cache", "build", "server"))
needs_the_reference = pytest.mark.skipif(not BUILT, reason=not_prepared("the C reference"))


@pytest.fixture(scope="module")
def fastrpc() -> Any:
    return roster.peer_of("fastrpc", sys.executable)


def test_lists_the_shell_and_starts_are_those_of_the_command(fastrpc: Any) -> None:
    python = os.path.dirname(sys.executable)
    for asked in OF_THE_COMMAND:
        if asked in fastrpc.commands:  # not over HTTP where the extra is not installed
            command, options = fastrpc.commands[asked][0], fastrpc.commands[asked][1:]
            assert command == os.path.join(python, "fastrpc") or options[:2] == ["-m", "fastrpc"]
            assert "serve" in options


def test_every_row_is_of_the_command_or_of_a_file_as_users_write_it(fastrpc: Any) -> None:
    of_files = {
        *OF_A_USERS_FILE,
        roster.PROXY,
        roster.PROXY_HTTP,
        roster.PROXY_GUARDED,
        roster.HTTP,
        roster.HTTP_SESSION,
        roster.HTTP_LOG,
        roster.HTTP_ASGI,
        roster.FORM,
    }
    of_files |= set(map(roster.many, roster.MANY_TOOLS))
    of_files |= {name(shape) for shape in roster.SHAPES for name in (roster.shaped, roster.shaped_over_http)}
    clients = {name for name in fastrpc.commands if name.startswith(roster.CLIENT)}
    for row in ROWS:
        others = {*OF_THE_COMMAND, *OF_SERVERS_OF_OTHERS, *BEHIND_A_GUARD, *clients}
        assert row.server in of_files | others, row.name
    for asked in of_files & set(fastrpc.commands):
        file = next(word for word in fastrpc.commands[asked] if word.endswith(".py"))
        with open(file, encoding="utf-8") as source:
            assert "app.run(" in source.read(), file


def test_what_the_others_list_is_what_fastrpc_lists(fastrpc: Any) -> None:
    assert descriptors.difference(fastrpc) == "", "python benchmarks/descriptors.py writes it anew"


@needs_the_reference
def test_all_list_the_same_to_the_byte(fastrpc: Any) -> None:
    answer = descriptors.answer_of(fastrpc)
    for name in ("c", "c-ready", "python-loop"):
        assert descriptors.answer_of(roster.peer_of(name, sys.executable)) == answer


def test_what_is_listed_is_not_the_users_own(
    fastrpc: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    skill = tmp_path / ".claude" / "skills" / "own"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: own\ndescription: Of the user.\n---\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TOOL_BASH", "0")
    monkeypatch.setenv("ADDITIONAL_SKILLS", str(skill.parent))
    monkeypatch.chdir(tmp_path)
    assert descriptors.difference(roster.peer_of("fastrpc", sys.executable)) == ""


def test_a_server_that_lists_otherwise_is_not_measured(fastrpc: Any, tmp_path: Any) -> None:
    tools = descriptors.kept()
    tools[3]["annotations"] = {}
    answers = [{"id": 1, "result": {}}, {"id": 2, "result": {"tools": tools}}]
    (tmp_path / "liar.py").write_text(
        f"import json\nfor answer in {answers!r}:\n    print(json.dumps(answer))\n"
    )
    peer = roster.Peer("liar", {roster.LIST: [sys.executable, str(tmp_path / "liar.py")]})
    assert descriptors.difference(peer) == "other descriptors than descriptors.json: WebSearch"
    row = next(row for row in ROWS if row.name == "W3")
    assert row.measure(row, peer, None) == {"void": descriptors.difference(peer)}


def test_a_server_that_does_not_answer_says_so(tmp_path: Any) -> None:
    script = "import sys; sys.exit('there is no such thing')"
    peer = roster.Peer("silent", {roster.LIST: [sys.executable, "-c", script]})
    assert descriptors.difference(peer) == "no answer to tools/list: there is no such thing"


def test_the_file_is_written_as_it_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    with open(descriptors.FILE, encoding="utf-8") as file:
        before = file.read()
    monkeypatch.setattr(descriptors, "FILE", str(tmp_path / "descriptors.json"))
    descriptors.write(json.loads(before))
    assert (tmp_path / "descriptors.json").read_text(encoding="utf-8") == before
