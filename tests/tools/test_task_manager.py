"""TaskManager: its check lists and data, what each action does and refuses, and long lists; over the wire."""

from __future__ import annotations

import asyncio
import json
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastrpc.tools.agent import _state, _text
from fastrpc.tools.agent._contract import CONTRACT
from fastrpc.tools.agent._task_list import ranges
from fastrpc.tools.agent.task_manager import task_manager
from support.in_memory import with_client

from fastrpc import Server, ToolError
from fastrpc.protocol.versions import VERSIONS
from fastrpc.testing import CallResult, Client


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "project" / ".git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setenv("FASTRPC_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.delenv("FASTRPC_STRUCTURED", raising=False)
    yield tmp_path / "state"
    _state.close()


def talk(conversation: Any, version: str = "2025-11-25") -> Any:
    app = Server("test")
    app.add_tool(task_manager)
    return with_client(app, conversation, version)


def call(action: str, version: str = "2025-11-25", **arguments: Any) -> CallResult:
    result: CallResult = talk(lambda client: client.call("TaskManager", action=action, **arguments), version)
    return result


def do(action: str, **arguments: Any) -> str:
    """Return the text of an answer that is not an error."""
    result = call(action, **arguments)
    assert not result.is_error, result.text
    return result.text


def refused(action: str, **arguments: Any) -> str:
    before = everything()
    result = call(action, **arguments)
    assert result.is_error
    assert everything() == before, "a refused call has changed something"
    return result.text


def everything() -> list[Any]:
    with _state.reading() as db:
        return [
            [tuple(row) for row in db.execute(f"SELECT * FROM {table}").fetchall()]
            for table in ("projects", "tasks", "steps")
        ]


def a_shop() -> None:
    do("create", text="Build the shop")
    do("add", text="find a place")
    do("add", text="order shelves")
    do("create", text="Tax return")
    do("add", text="collect receipts")


# --- the contract -----------------------------------------------------------------------------------------


def test_the_schema_is_the_published_one_with_the_actions_as_a_choice() -> None:
    """TaskManager: the schema shows `query` as required."""
    listed = talk(lambda client: client.tools())[0]["inputSchema"]
    published = CONTRACT["TaskManager"]["parameters"]
    assert [*listed["properties"]] == [*published]
    assert listed["required"] == ["action", "query"]
    actions = ["create", "add", "complete", "list", "pending", "switch"]
    assert listed["properties"]["action"]["enum"] == actions
    assert listed["properties"]["query"] == {"type": "string", "description": "The search query"}


@pytest.mark.parametrize("query", [{}, {"query": ""}, {"query": None}, {"query": "whatever"}])
def test_the_query_may_be_missing_where_it_is_not_used(query: dict[str, Any]) -> None:
    """TaskManager: a call without `query` is accepted where it is not used."""
    assert do("create", text="Build the shop", **query) == "Task 1: Build the shop (current)"
    assert do("add", text="order shelves", **query).endswith("\n  - [ ] 1. order shelves")
    assert do("complete", step_id=1, **query).endswith("\n  - [x] 1. order shelves")
    assert do("switch", task_id=1, **query).startswith("Task 1")


@pytest.mark.parametrize("version", VERSIONS)
def test_the_structured_content_says_what_the_text_says(version: str) -> None:
    """TaskManager: answers are Markdown check lists with ids, `structuredContent` says the same as data."""
    a_shop()
    result = call("complete", version, step_id=2)
    assert result.text == "Task 1: Build the shop\n  - [ ] 1. find a place\n  - [x] 2. order shelves"
    steps = [
        {"id": 1, "text": "find a place", "done": False},
        {"id": 2, "text": "order shelves", "done": True},
    ]
    task = {"id": 1, "name": "Build the shop", "current": False, "done": False, "steps": steps}
    expected = {"tasks": [task], "task_id": 1, "step_id": 2}
    assert result.meta["fastrpc/facts"] == expected
    assert result.structured == (expected if version >= "2025-06-18" else None)


# --- actions ----------------------------------------------------------------------------------------------


def test_a_new_task_becomes_the_current_one_and_ids_count_up() -> None:
    """TaskManager: create makes a new task, which becomes the current one."""
    assert do("create", text="Build the shop") == "Task 1: Build the shop (current)"
    assert do("create", text="Tax return") == "Task 2: Tax return (current)"
    assert do("list") == "Task 1: Build the shop\nTask 2: Tax return (current)"


def test_steps_go_to_the_current_task_or_to_the_one_that_is_named() -> None:
    """TaskManager: add gives a step to the current task or to the one that is named."""
    a_shop()
    assert do("add", text="print the form") == (
        "Task 2: Tax return (current)\n  - [ ] 3. collect receipts\n  - [ ] 4. print the form"
    )
    assert do("add", text="open", task_id=1).endswith(
        "  - [ ] 1. find a place\n  - [ ] 2. order shelves\n  - [ ] 5. open"
    )


def test_step_ids_are_unique_over_all_tasks_of_the_project() -> None:
    """TaskManager: step ids are unique over all tasks of the project."""
    a_shop()
    data = call("list").structured
    assert [[step["id"] for step in task["steps"]] for task in data["tasks"]] == [[1, 2], [3]]


def test_completing_a_step_leaves_the_others_and_the_task_as_they_are() -> None:
    """TaskManager: complete with a step id completes that step and no other."""
    a_shop()
    assert do("complete", step_id=1) == (
        "Task 1: Build the shop\n  - [x] 1. find a place\n  - [ ] 2. order shelves"
    )
    assert do("complete", step_id=2, task_id=1).startswith("Task 1: Build the shop\n")
    assert "(done)" not in do("list")


def test_completing_without_a_step_completes_the_task_with_its_open_steps() -> None:
    """TaskManager: complete without a step id completes the whole task."""
    a_shop()
    do("complete", step_id=1)
    assert do("complete", task_id=1) == (
        "Task 1: Build the shop (done)\n  - [x] 1. find a place\n  - [x] 2. order shelves"
    )
    assert do("complete") == "Task 2: Tax return (current, done)\n  - [x] 3. collect receipts"


def test_completing_twice_says_so_and_changes_nothing() -> None:
    """TaskManager: completing twice changes nothing."""
    a_shop()
    do("complete", step_id=1)
    do("complete", task_id=2)
    before = everything()
    assert do("complete", step_id=1).endswith("\nStep 1 was done already.")
    assert do("complete", task_id=2).endswith("\nTask 2 was done already.")
    assert call("complete", task_id=2).structured["notes"] == ["Task 2 was done already."]
    assert everything() == before


def test_a_step_for_a_completed_task_opens_it_again_and_what_was_done_stays() -> None:
    """TaskManager: nothing is overwritten as a whole, and completed steps stay."""
    a_shop()
    do("complete")
    assert do("add", text="pay") == (
        "Task 2: Tax return (current)\n  - [x] 3. collect receipts\n  - [ ] 4. pay\n"
        "Task 2 was done and is open again."
    )


def test_switching_by_id_and_by_words_of_the_name() -> None:
    """TaskManager: switch takes an id or a query."""
    a_shop()
    assert do("switch", task_id=1).startswith("Task 1: Build the shop (current)")
    assert do("switch", query="RETURN tax").startswith("Task 2: Tax return (current)")
    assert do("list").splitlines()[0] == "Task 1: Build the shop"
    assert do("switch", query="nothing like it", task_id=1).startswith("Task 1")


def test_a_whole_name_wins_over_names_that_contain_it() -> None:
    for name in ("Shop window", "shop", "Build the shop"):
        do("create", text=name)
    assert do("switch", query="Shop").startswith("Task 2: shop (current)")


def test_an_ambiguous_query_is_refused_with_the_candidates() -> None:
    """TaskManager: an ambiguous query is refused with the candidates."""
    for name in ("Shop window", "Tax", "Build the shop"):
        do("create", text=name)
    said = refused("switch", query="shop")
    assert said == (
        'query: "shop" matches 2 tasks. Name one with task_id:\nTask 1: Shop window\nTask 3: Build the shop'
    )
    for number in range(30):
        do("create", text=f"shop {number}")
    assert refused("switch", query="shop").endswith("\n[12 more]")


def test_listing_what_matches() -> None:
    """TaskManager: list shows the tasks and steps whose text matches."""
    a_shop()
    assert do("list", query="SHOP") == (
        "Task 1: Build the shop\n  - [ ] 1. find a place\n  - [ ] 2. order shelves"
    )
    assert do("list", query="receipts collect") == "Task 2: Tax return (current)\n  - [ ] 3. collect receipts"
    assert do("list", query="shelves") == "Task 1: Build the shop\n  - [ ] 2. order shelves"
    assert do("list", query="nothing like it") == "No tasks match the query."
    everything = do("list")
    assert do("list", query="") == do("list", query="*") == everything
    assert do("list", task_id=2) == "Task 2: Tax return (current)\n  - [ ] 3. collect receipts"


def test_pending_shows_open_steps_and_open_tasks_without_steps() -> None:
    """TaskManager: pending shows open steps."""
    a_shop()
    do("create", text="Sleep")
    do("create", text="Nothing left")
    do("add", text="only step")
    do("complete", step_id=4)
    do("complete", step_id=1)
    do("create", text="Over")
    do("complete")
    assert do("pending") == (
        "Task 1: Build the shop\n  - [ ] 2. order shelves\n"
        "Task 2: Tax return\n  - [ ] 3. collect receipts\nTask 3: Sleep"
    )
    assert do("pending", query="shelves") == "Task 1: Build the shop\n  - [ ] 2. order shelves"
    assert do("pending", query="find") == "No open steps match the query."
    assert do("pending", task_id=4) == "No open steps."


def test_an_empty_project() -> None:
    result = call("list")
    assert (result.text, result.structured) == ("No tasks.", {"tasks": [], "notes": ["No tasks."]})
    assert do("pending") == "No open steps."
    assert refused("complete") == "task_id: there is no current task, so name one. Tasks: none."
    assert refused("add", text="x").startswith("task_id: there is no current task")
    assert refused("switch", query="x") == 'query: no task\'s name matches "x". Tasks: none.'


# --- refusals ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("action", ["create", "add"])
@pytest.mark.parametrize(
    ("text", "got"),
    [
        ({}, "nothing"),
        ({"text": None}, "nothing"),
        ({"text": ""}, "an empty text"),
        ({"text": " \n\t"}, "an empty text"),
        ({"text": "x" * 5000}, "5,000"),
    ],
)
def test_a_text_that_is_missing_empty_or_too_long_is_refused(
    action: str, text: dict[str, Any], got: str
) -> None:
    """TaskManager: empty and overlong texts are refused."""
    do("create", text="a task")
    said = refused(action, **text)
    assert said.startswith("text: expected ")
    assert said.endswith(f"got {got}.")


@pytest.mark.parametrize("id", [0, -1, 9, 10**30])
def test_unknown_ids_are_refused_with_those_that_exist(id: int) -> None:
    """TaskManager: an unknown id is an error with the ids that exist."""
    a_shop()
    for action, arguments in (("complete", {}), ("add", {"text": "x"}), ("switch", {}), ("list", {})):
        assert refused(action, task_id=id, **arguments) == f"task_id: there is no task {id}. Tasks: 1-2."
    for action in ("complete", "list", "pending"):
        assert refused(action, step_id=id) == f"step_id: there is no step {id}. Steps: 1-3."


def test_a_step_of_another_task_is_refused() -> None:
    a_shop()
    for action in ("complete", "list"):
        said = refused(action, step_id=3, task_id=1)
        assert said == "step_id: step 3 belongs to task 2, not to task 1."


def test_an_unknown_action_is_refused_with_those_that_exist() -> None:
    said = refused("delete")
    assert said.startswith('action: expected one of "create", "add", "complete", "list"')
    assert said.endswith('got "delete"')


def test_switching_needs_to_know_where_to() -> None:
    a_shop()
    assert refused("switch") == "switch needs task_id, or query with a task's name. Tasks: 1-2."
    assert refused("switch", query=" ").startswith("switch needs task_id")


# --- texts ------------------------------------------------------------------------------------------------

TEXTS = [
    "بناء المتجر",
    "مُحَمَّد والتشكيل",
    unicodedata.normalize("NFD", "Größe über café"),
    unicodedata.normalize("NFC", "Größe über café"),
    "👩‍👩‍👧‍👦 family 🇸🇦",
    "zero\u200bwidth \u202eturned\u202c \x00 nul",
    '"quotes" \\ <b>&amp;</b> ${HOME} $1',
    "  outer space  ",
]


@pytest.mark.parametrize("text", TEXTS)
def test_texts_pass_unchanged(text: str) -> None:
    """TaskManager: any Unicode passes unchanged."""
    assert do("create", text=text) == f"Task 1: {text} (current)"
    assert do("add", text=text).endswith(f"\n  - [ ] 1. {text}")
    data = call("list").structured
    assert data["tasks"][0]["name"] == text
    assert data["tasks"][0]["steps"][0]["text"] == text


def test_half_of_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(ToolError, match="text: expected the task's name, got half of a surrogate pair"):
        task_manager("create", text="broken \ud83d")


def test_searching_takes_composed_and_decomposed_letters_for_the_same() -> None:
    composed, decomposed = unicodedata.normalize("NFC", "Café"), unicodedata.normalize("NFD", "Café")
    do("create", text=decomposed)
    assert do("list", query=composed.upper()) == f"Task 1: {decomposed} (current)"
    do("create", text="بناء المتجر")
    assert do("switch", query="المتجر") == "Task 2: بناء المتجر (current)"


def test_a_text_of_several_lines_stays_one_entry() -> None:
    do("create", text="two\nlines")
    do("add", text="first\n  - [x] 9. second")
    result = call("list")
    assert result.text == "Task 1: two\n  lines (current)\n  - [ ] 1. first\n          - [x] 9. second"
    assert result.structured["tasks"][0]["steps"][0]["text"] == "first\n  - [x] 9. second"


# --- long lists -------------------------------------------------------------------------------------------


def fill(tasks: int, steps: int, text: str) -> None:
    with _state.changing() as db:
        db.execute("INSERT INTO projects VALUES (1, ?, 1)", (str(Path.cwd().resolve()),))
        for task in range(1, tasks + 1):
            db.execute("INSERT INTO tasks VALUES (1, ?, ?, 0, NULL)", (task, f"task {task}"))
            ids = range((task - 1) * steps + 1, task * steps + 1)
            rows = [(id, task, f"{text} {id}") for id in ids]
            db.executemany("INSERT INTO steps VALUES (1, ?, ?, ?, 0, NULL)", rows)


@pytest.mark.parametrize("text", ["a step", 'a step with "quotes" and\ttabs \\ \x01', "خ" * 400])
@pytest.mark.parametrize("action", ["list", "pending"])
def test_a_long_list_is_cut_and_says_how_to_go_on(action: str, text: str) -> None:
    """TaskManager: a long list stays below the limits of a result and says how to go on."""
    fill(3, 1000, text)
    arguments: dict[str, Any] = {"task_id": 1}
    seen: list[int] = []
    for _ in range(60):
        result = call(action, **arguments)
        data = result.structured
        for shown in (result.text, json.dumps(data, ensure_ascii=False)):
            assert len(shown) < 30_000
            assert _text.tokens_of(shown) < 20_000
        steps = data["tasks"][0]["steps"]
        seen += [step["id"] for step in steps]
        left = 1000 - seen[-1]
        if not left:
            break
        following = seen[-1] + 1
        rest = f"{left:,} more step{'' if left == 1 else 's'} of task 1"
        told = f"{rest}: {action} with task_id 1 and step_id {following} goes on."
        assert told in result.text.splitlines()
        assert told in data["notes"]
        arguments["step_id"] = following
    assert seen == list(range(1, 1001))


def test_a_list_of_many_tasks_is_cut_and_says_what_is_left_out() -> None:
    fill(2000, 0, "")
    result = call("list")
    shown = len(result.structured["tasks"])
    assert 100 < shown < 2000
    rest = f"{2000 - shown:,} more tasks, {shown + 1} to 2000"
    told = f"{rest}: list with task_id shows one, query narrows the list."
    assert result.text.splitlines()[-1] == told
    assert len(result.text) < 30_000


def test_a_change_of_a_long_task_shows_the_steps_around_it() -> None:
    fill(2, 500, "a step")
    text = do("complete", step_id=250)
    lines = text.splitlines()
    assert "  - [x] 250. a step 250" in lines
    assert len(lines) < 50
    assert "239 steps before: list with task_id 1." in lines
    assert "221 more steps of task 1: list with task_id 1 and step_id 279 goes on." in lines
    assert do("add", task_id=1, text="the last").splitlines()[-2:] == [
        "  - [ ] 1001. the last",
        "490 steps before: list with task_id 1.",
    ]


def test_the_longest_texts_fit_one_by_one() -> None:
    longest = "خ" * 4096
    do("create", text=longest)
    for _ in range(6):
        do("add", text=longest)
    result = call("list")
    steps = result.structured["tasks"][0]["steps"]
    assert 1 <= len(steps) < 6
    assert f"list with task_id 1 and step_id {len(steps) + 1} goes on." in result.text


@pytest.mark.parametrize(
    ("ids", "text"),
    [([], ""), ([3], "3"), ([1, 2, 3, 5, 7, 8], "1-3, 5, 7-8"), (range(1, 200, 2), None)],
)
def test_ids_are_shown_as_ranges(ids: Any, text: str | None) -> None:
    shown = ranges(ids)
    assert shown == text if text is not None else shown.endswith("77, 79 …")


# --- at once ----------------------------------------------------------------------------------------------


def test_calls_of_one_client_at_once_all_count() -> None:
    async def conversation(client: Client) -> list[CallResult]:
        await client.call("TaskManager", action="create", text="a task")
        calls = [client.call("TaskManager", action="add", text=f"step {number}") for number in range(40)]
        return await asyncio.gather(*calls)

    results = talk(conversation)
    assert sorted(result.structured["step_id"] for result in results) == list(range(1, 41))
    assert len(call("list").structured["tasks"][0]["steps"]) == 40


def test_a_damaged_state_is_an_error_of_the_call_and_stays_as_it_is(state: Path) -> None:
    state.mkdir()
    (state / "state.sqlite3").write_bytes(b"not a database at all" * 100)
    for arguments in ({"action": "list"}, {"action": "create", "text": "x"}):
        result = call(**arguments)
        assert result.is_error
        assert f"{state}/state.sqlite3 is damaged" in result.text
    assert (state / "state.sqlite3").read_bytes() == b"not a database at all" * 100
    assert [path.name for path in state.iterdir()] == ["state.sqlite3"]
