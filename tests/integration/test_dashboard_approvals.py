"""The approvals page, in depth: commands with their parts marked, characters that deceive, four eyes, two
approvers at once, and pages that read no more rows than they show."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import event, insert
from support.dashboard_browser import Browser, question

from fastrpc.dashboard.pages import approvals as page_of_approvals
from fastrpc.guard.approvals.store import Approval, ApprovalStore, new_approval
from fastrpc.guard.shell.highlight import highlighted
from fastrpc.storage.database import Database
from fastrpc.storage.schema import approvals

pytest_plugins = ["support.guard_database", "support.dashboard"]
Ask = Callable[..., Approval]
Visit = Callable[..., Browser]


# --- commands ---------------------------------------------------------------------------------------------

PARTS = [
    (
        "git -C /srv status --short",
        ["program git", "option -C", "path /srv", "word status", "option --short"],
    ),
    (
        "cd /tmp && ls -la | wc -l > /dev/null 2>&1 # why",
        [
            *(
                "program cd",
                "path /tmp",
                "operator &&",
                "program ls",
                "option -la",
                "operator |",
                "program wc",
            ),
            *("option -l", "redirection > /dev/null", "redirection 2>&1", "comment # why"),
        ],
    ),
    ("rm -- -rf", ["program rm", "option --", "word -rf"]),
    ("rm -- x; ls -l", ["program rm", "option --", "word x", "operator ;", "program ls", "option -l"]),
    ("r\\m '-r'f x", ["program r\\m", "option '-r'f", "word x"]),
    ("ls \\\nx", None),
    ("echo # rm\nrm x", ["program echo", "comment # rm", "operator \n", "program rm", "word x"]),
    ("rm $HOME", None),
    ("a=1 rm", None),
    ("echo `id`", None),
    ("", None),
]


@pytest.mark.parametrize(("line", "expected"), PARTS)
def test_the_parts_of_a_command_are_those_that_bash_reads_or_none(
    line: str, expected: list[str] | None
) -> None:
    found = highlighted(line)
    assert (
        None if found is None else [f"{part.kind} {line[part.start : part.end]}" for part in found]
    ) == expected


def test_a_command_is_shown_whole_with_its_parts_marked_and_what_bash_runs(visit: Visit, ask: Ask) -> None:
    line = "cat 'a <b>.txt' && r\\m -rf /srv 2>&1"
    waiting = ask("run", {"command": line, "note": line})
    browser = visit()
    for path in ("/", f"/approvals/{waiting.id}"):
        page = browser.get(path).text
        shown = re.findall(r'<div class="command">.*?<pre[^>]*>(.*?)</pre>', page, re.DOTALL)
        assert len(shown) == 1
        text = re.sub(r"<[^>]+>", "", shown[0]).replace("&lt;", "<").replace("&gt;", ">")
        assert text.replace("&#39;", "'").replace("&amp;", "&") == line
        assert '<span class="part program">r\\m</span>' in shown[0]
        assert '<span class="part option">-rf</span>' in shown[0]
        assert '<span class="part path">/srv</span>' in shown[0]
        assert '<span class="part redirection">2&gt;&amp;1</span>' in shown[0]
    assert "<code>rm</code>" in page  # as bash reads it


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("curl $(cat x) | sh", page_of_approvals.NOT_UNDERSTOOD),
        ("rm 'x", page_of_approvals.NOT_UNDERSTOOD),
        ("x" * 3000, page_of_approvals.NOT_UNDERSTOOD),
        ("r\u043c x", page_of_approvals.ESCAPED),
        ("ls \u202e-la", page_of_approvals.ESCAPED),
        ("ls \ud800", page_of_approvals.ESCAPED),
        ("ls \0", page_of_approvals.NOT_UNDERSTOOD),
    ],
)
def test_of_a_command_that_is_not_understood_no_part_is_marked_and_the_page_says_so(
    visit: Visit, ask: Ask, line: str, why: str
) -> None:
    waiting = ask("run", {"command": line})
    page = visit().get(f"/approvals/{waiting.id}").text
    assert 'class="part' not in page
    assert why.replace("'", "&#39;") in page


def test_the_characters_that_are_escaped_are_named(visit: Visit, ask: Ask) -> None:
    waiting = ask("run", {"to": "p\u0430ypal", "x": "a\u202e \U000e0041 \\u0430"})
    page = visit().get(f"/approvals/{waiting.id}").text
    named = re.findall(r'<mark dir="ltr">([^<]+)</mark> <bdi>([^<]+)</bdi>', page)
    assert named == [
        ("\\u0430", "CYRILLIC SMALL LETTER A"),
        ("\\u202e", "RIGHT-TO-LEFT OVERRIDE"),
        ("\\udb40\\udc41", "TAG LATIN CAPITAL LETTER A"),
    ]


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, *("[" * depth + "]" * depth for depth in (101, 950)), "NaN", "1e999", '"\\ud800"'],
    ids=lambda text: f"{text[:9]}-{len(text)}",
)
def test_a_changed_value_that_is_not_strict_json_is_said_beside_its_field(
    visit: Visit, ask: Ask, store: ApprovalStore, text: str
) -> None:
    waiting = ask("order", {"count": 20}, may_edit=True)
    answer = visit().send(f"/approvals/{waiting.id}/edit", arg_count=text, confirmed="yes")
    assert (answer.status_code, "expected JSON" in answer.text) == (400, True)
    assert store.get(waiting.id).state == "waiting"


# --- who ----------------------------------------------------------------------------------------------------


def test_four_eyes_are_shown_before_anyone_clicks(visit: Visit, ask: Ask) -> None:
    critical = ask(caller="ada#1", owner="ada", risk="critical", approvers=("bob", "eve"))
    plain = ask("other")
    bob, ada = visit("bob"), visit("ada")
    for path in ("/", f"/approvals/{critical.id}"):
        page = bob.get(path).text
        assert "four eyes" in page
        assert "Only these may approve it:" in page
        assert f"{critical.id}/approve" in page
        page = ada.get(path).text
        assert "four eyes" in page
        assert f"{critical.id}/approve" not in page
    assert "four eyes" not in bob.get(f"/approvals/{plain.id}").text


@pytest.mark.parametrize("turn", range(5))
def test_of_two_approvers_at_once_one_decides_and_the_other_learns_who(
    visit: Visit, ask: Ask, store: ApprovalStore, turn: int
) -> None:
    waiting = ask("wipe", {"place": "/srv"})
    people = {"ada": "approve", "bob": "reject"}
    browsers = {person: visit(person) for person in people}
    ready, answers = threading.Barrier(2), {}

    def decide(person: str) -> None:
        ready.wait(30)
        answers[person] = browsers[person].send(f"/approvals/{waiting.id}/{people[person]}", comment="mine")

    threads = [threading.Thread(target=decide, args=(person,)) for person in people]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    decided = store.get(waiting.id)
    assert decided.decided_by in people
    assert decided.state == {"approve": "approved", "reject": "rejected"}[people[decided.decided_by]]
    other = next(person for person in people if person != decided.decided_by)
    assert answers[decided.decided_by].status_code == 303
    assert answers[other].status_code == 409
    assert f"by {decided.decided_by}" in answers[other].text


# --- many -------------------------------------------------------------------------------------------------


def fill(database: Database, store: ApprovalStore, count: int) -> None:
    now = store.clock()
    rows = [
        vars(new_approval(question(arguments={"n": n}, timeout_seconds=1e6), now - n // 3))
        for n in range(count)
    ]
    with database.changing() as connection:
        connection.execute(insert(approvals), rows)


def test_a_page_of_many_asks_the_database_as_often_as_one_of_few_and_reads_its_own_rows_alone(
    visit: Visit, store: ApprovalStore, database: Database
) -> None:
    browser = visit()
    asked: list[tuple[str, Any]] = []

    def note(connection: Any, cursor: Any, statement: str, parameters: Any, *others: Any) -> None:
        asked.append((statement, parameters))

    def statements(path: str) -> list[tuple[str, Any]]:
        asked.clear()
        assert browser.get(path).status_code == 200
        return list(asked)

    fill(database, store, 100)
    with database.reading() as connection:
        engine = connection.engine
    event.listen(engine, "before_cursor_execute", note)
    try:
        few = statements("/")
        fill(database, store, 9_900)
        many = statements("/")
        last = re.findall(r'href="\?after=(ap_\w+)"', browser.last)[0]
        older = statements(f"/?after={last}")
    finally:
        event.remove(engine, "before_cursor_execute", note)
    assert len(many) == len(few)
    assert len(older) == len(few) + 1
    on_approvals = [each for each in many + older if "FROM fastrpc_approvals" in each[0]]
    assert len(on_approvals) == 5
    with database.reading() as connection:
        for statement, parameters in on_approvals:
            rows = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
            for step in [row[-1] for row in rows if "fastrpc_approvals" in row[-1]]:
                by_id = "sqlite_autoindex_fastrpc_approvals_1 (id=?)" in step
                assert by_id or "COVERING INDEX fastrpc_approvals_newest (state=?" in step, step


# --- alerts -----------------------------------------------------------------------------------------------


def test_notifications_are_offered_by_a_button_that_scripts_show(visit: Visit) -> None:
    browser = visit()
    assert re.search(r'<button type="button"[^>]* data-notify hidden>', browser.get("/").text)
    script = browser.get("/static/dashboard.js").text
    assert "requestPermission" in script
    assert json.dumps("[data-notify]") in script
