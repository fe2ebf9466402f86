"""The ladder that asks a person: the client in each version, what is in the way, and the time limit.

The terminal is tried for real in tests/integration/test_ask_terminal.py; here its menu is, without one.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from support.in_memory import with_client
from support.server_requests import Raw, cancelled, with_raw

from fastrpc import Context, Server
from fastrpc import human_input as ladder
from fastrpc.human_input import Choice, Outcome, ask_person, limit_seconds, listed
from fastrpc.protocol.versions import ELICITATION, SESSION_VERSIONS, STATELESS, VERSIONS
from fastrpc.terminal.keys import Keys
from fastrpc.terminal.menu import Menu
from fastrpc.terminal.text import plain, width, wrapped
from fastrpc.testing import Client, RemoteError

DATABASE = Choice("Which database?", ["PostgreSQL", "SQLite"])
COLOUR = Choice("Which colour?", ["red", "green"], ["like a rose"])


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ASK_TERMINAL", "FASTRPC_ASK_SECONDS"):
        monkeypatch.delenv(name, raising=False)


def server(*choices: Choice, **options: Any) -> Server:
    """A server whose tool `ask` shows what a person has said."""
    app = Server("t")

    async def asks(ctx: Context) -> str:
        outcome = await ask_person(ctx, choices or [DATABASE], **options)
        return f"{outcome.how} {outcome.action} {outcome.answers} {outcome.sentence}".strip()

    app.add_tool(asks, name="ask")
    return app


def said(app: Server, **options: Any) -> str:
    async def conversation(client: Client) -> str:
        return (await client.call("ask")).text

    return str(with_client(app, conversation, **options))


# --- the client -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ELICITATION)
def test_the_client_is_asked_all_at_once_in_its_version(version: str) -> None:
    """AskUserQuestion: an older client that declares elicitation gets `elicitation/create` with one form, a
    single-select field for each question.
    """

    async def conversation(client: Client) -> None:
        result = await client.call("ask")
        assert result.text == "client accept ['SQLite', 'green']"
        (question,) = client.questions
        assert question["method"] == "elicitation/create"
        assert question["params"]["message"] == "1. Which database?\n2. Which colour?"
        first, second = question["params"]["requestedSchema"]["properties"].values()
        assert first == {
            "type": "string",
            "title": "Which database?",
            "enum": ["PostgreSQL", "SQLite"],
        }
        assert second["title"] == "Which colour?"
        if version == ELICITATION[0]:
            assert (second["enum"], second["enumNames"]) == (["red", "green"], ["red: like a rose", "green"])
        else:
            titled = [{"const": "red", "title": "red: like a rose"}, {"const": "green", "title": "green"}]
            assert second["oneOf"] == titled
        assert question["params"]["requestedSchema"]["required"] == ["question_1", "question_2"]

    answer = {"question_1": "SQLite", "question_2": "green"}
    with_client(server(DATABASE, COLOUR), conversation, version=version, on_elicit=answer)


@pytest.mark.parametrize("version", ELICITATION)
@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (False, "client decline [] The user declined to answer."),
        (None, "client cancel [] The user dismissed the question without an answer."),
    ],
    ids=["no", "away"],
)
def test_a_no_is_said_plainly_and_no_answer_made_up(version: str, given: Any, shown: str) -> None:
    assert said(server(), version=version, on_elicit=lambda params: given) == shown


@pytest.mark.parametrize("version", VERSIONS)
def test_a_client_that_cannot_be_asked_leaves_the_question_unasked(version: str) -> None:
    text = said(server(), version=version)
    assert text.startswith("none unasked [] The user could not be asked (")
    assert "elicitation" in text
    assert "ASK_TERMINAL is not set" in text


def test_a_client_that_declares_pages_alone_is_shown_no_form() -> None:
    text = said(server(), capabilities={"elicitation": {"url": {}}}, on_elicit={"question_1": "SQLite"})
    assert text.startswith("none unasked")


@pytest.mark.parametrize("version", [version for version in ELICITATION if version != STATELESS])
def test_a_client_that_declares_forms_and_refuses_them_counts_as_none(version: str) -> None:
    def refuse(params: dict[str, Any]) -> Any:
        raise RemoteError({"code": -32601, "message": "no such thing"})

    text = said(server(), version=version, on_elicit=refuse)
    assert text.startswith("none unasked")
    assert "the client refused elicitation/create: no such thing" in text


def test_an_answer_that_is_not_one_of_the_options_is_not_taken() -> None:
    """AskUserQuestion: an answer that is not one of the options is not taken."""
    text = said(server(), on_elicit={"question_1": "Oracle"})
    assert text.startswith("none unasked [] ")
    assert "Oracle" in text


def test_a_message_of_the_callers_own_is_above_the_form() -> None:
    async def conversation(client: Client) -> None:
        await client.call("ask")
        assert client.questions[0]["params"]["message"] == "Before I go on:"

    app = server(message="Before I go on:")
    with_client(app, conversation, on_elicit={"question_1": "SQLite"})


@pytest.mark.parametrize("version", ELICITATION)
def test_any_text_passes_unchanged(version: str) -> None:
    options = ["نعم، بالتأكيد", "e\u0301 and \u00e9", "👨‍👩‍👧‍👦", "\x1b[31m"]
    for option in options:
        app = server(Choice("هل أنت متأكد؟", options))
        assert said(app, version=version, on_elicit={"question_1": option}) == f"client accept {[option]}"


def test_without_a_client_no_one_is_asked() -> None:
    outcome = asyncio.run(ask_person(Context(), [DATABASE]))
    assert (outcome.how, outcome.action) == ("none", "unasked")
    assert "there is no client" in outcome.sentence


# --- time -----------------------------------------------------------------------------------------------


def test_a_question_that_no_one_answers_in_time_is_withdrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """AskUserQuestion: a question that was not answered in time is withdrawn."""
    monkeypatch.setenv("FASTRPC_ASK_SECONDS", "0.05")

    async def conversation(client: Raw) -> None:
        calling = asyncio.ensure_future(client.call("ask"))
        question = await client.question()
        assert (await calling).text == "client timeout [] The user did not answer within 0.05 s."
        assert cancelled(client) == [question["id"]]

    with_raw(server(), conversation)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("", 300.0), ("soon", 300.0), ("-1", 300.0), ("12.5", 12.5), ("0", 0.0), ("86400", 590.0)],
)
def test_the_time_limit_is_a_setting(monkeypatch: pytest.MonkeyPatch, text: str, seconds: float) -> None:
    """AskUserQuestion: the time limit is five minutes, and a setting."""
    monkeypatch.setenv("FASTRPC_ASK_SECONDS", text)
    assert limit_seconds() == seconds


def test_the_longest_time_limit_ends_before_the_clients_own() -> None:
    from fastrpc.client_requests import ANSWER_SECONDS

    assert ladder.LONGEST_SECONDS < ANSWER_SECONDS


@pytest.mark.parametrize("version", [SESSION_VERSIONS[-1], STATELESS])
def test_with_no_time_no_one_is_asked(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.setenv("FASTRPC_ASK_SECONDS", "0")
    text = said(server(), version=version, on_elicit={"question_1": "SQLite"})
    assert text == "none unasked [] The user could not be asked (FASTRPC_ASK_SECONDS is 0)."


def test_a_client_that_wants_progress_hears_that_the_person_still_thinks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ladder, "PROGRESS_SECONDS", 0.02)
    reports: list[dict[str, Any]] = []

    async def slowly(params: dict[str, Any]) -> Any:
        while len(reports) < 2:
            await asyncio.sleep(0.01)
        return {"question_1": "SQLite"}

    async def conversation(client: Client) -> None:
        result = await client.call("ask", on_progress=reports.append)
        assert result.text.startswith("client accept")
        count = len(reports)
        assert [report["total"] for report in reports] == [300] * count
        assert "waiting for the user's answer" in reports[0]["message"]
        await asyncio.sleep(0.1)
        assert len(reports) == count
        assert "_report_progress" not in repr(asyncio.all_tasks())

    with_client(server(), conversation, on_elicit=slowly)


def test_a_cancelled_call_withdraws_its_question() -> None:
    """AskUserQuestion: a cancelled call withdraws its question."""

    async def conversation(client: Raw) -> None:
        id, future = client.begin("tools/call", {"name": "ask", "arguments": {}})
        question = await client.question()
        client.cancel(id)
        while not cancelled(client):
            await asyncio.sleep(0)
        assert cancelled(client) == [question["id"]]
        assert future.cancelled()

    with_raw(server(), conversation)


# --- choices --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [[], ["a", "a"]])
def test_options_are_at_least_one_and_all_different(options: list[str]) -> None:
    with pytest.raises(ValueError, match="at least one, all different"):
        Choice("?", options)


def test_questions_are_written_for_an_agent_to_ask_itself() -> None:
    assert listed([DATABASE, COLOUR]) == (
        "1. Which database?\n   - PostgreSQL\n   - SQLite\n\n"
        "2. Which colour?\n   - red: like a rose\n   - green"
    )


def test_an_outcome_tells_what_happened() -> None:
    assert Outcome("client", "accept", ["x"]).accepted
    assert Outcome("client", "decline").sentence == "The user declined to answer."


# --- the menu: keys -------------------------------------------------------------------------------------


def keys_of(*data: bytes) -> list[str]:
    keys = Keys()
    return [key for piece in data for key in keys.feed(piece)]


@pytest.mark.parametrize(
    ("data", "keys"),
    [
        (b"\x1b[A\x1b[B\x1bOA\x1bOB", ["up", "down", "up", "down"]),
        (b"\x1b[1;5A", ["up"]),
        (b"\x1b[H\x1b[F\x1b[1~\x1b[4~\x1b[5~\x1b[6~", ["home", "end", "home", "end", "page up", "page down"]),
        (b"\r\n\x03\x04", ["enter", "enter", "decline", "cancel"]),
        (b"12", ["1", "2"]),
        ("٣".encode(), ["٣"]),
        (b"xyz \xff\xc3", ["space"]),
        (b"\x1b[200~\x1b[31", []),
        (b"\x1bx1", ["1"]),
        (b"\x1b\x1b[A", ["cancel", "up"]),
    ],
)
def test_bytes_are_keys(data: bytes, keys: list[str]) -> None:
    assert keys_of(data) == keys
    assert keys_of(*(bytes([byte]) for byte in data)) == keys


def test_an_escape_is_a_key_once_nothing_follows() -> None:
    keys = Keys()
    assert keys.feed(b"\x1b") == []
    assert keys.waits
    assert keys.end() == ["cancel"]
    assert not keys.waits
    keys.feed(b"\x1b[")
    assert keys.end() == []


def menu_after(menu: Menu, *keys: str, columns: int = 80, rows: int = 24) -> Menu:
    menu.draw(columns, rows)
    for key in keys:
        menu.press(key)
        menu.draw(columns, rows)
    return menu


@pytest.mark.parametrize(
    ("keys", "answer"),
    [
        ([], 1),
        (["down"], 2),
        (["up"], 30),
        (["down", "down", "up"], 2),
        (["end"], 30),
        (["end", "home"], 1),
        (["3"], 3),
        (["1", "2"], 12),
        (["3", "1"], 1),
        (["0"], 1),
        (["1", "down", "2"], 2),
        (["١", "٥"], 15),
    ],
)
def test_arrows_and_numbers_move_the_mark_and_enter_takes_it(keys: list[str], answer: int) -> None:
    menu = Menu([Choice("Which?", [f"option {number}" for number in range(1, 31)])])
    menu_after(menu, *keys, "enter")
    assert menu.action == "accept"
    assert menu.answers == [f"option {answer}"]


def test_several_questions_come_one_after_the_other_and_one_can_go_back() -> None:
    menu = Menu([DATABASE, COLOUR])
    menu_after(menu, "down", "enter", "left", "left", "up", "enter", "2")
    assert menu.action == ""
    menu_after(menu, "enter")
    assert menu.answers == ["PostgreSQL", "green"]


@pytest.mark.parametrize("key", ["decline", "cancel"])
def test_a_no_ends_the_menu(key: str) -> None:
    assert menu_after(Menu([DATABASE, COLOUR]), "enter", key).action == key


# --- the menu: lines ------------------------------------------------------------------------------------


def shown(menu: Menu, columns: int = 80, rows: int = 24) -> list[str]:
    lines = [text for text, _ in menu.draw(columns, rows)]
    assert len(lines) == rows
    assert all(width(line) < columns for line in lines)
    return lines


def test_the_menu_shows_question_options_and_keys() -> None:
    lines = shown(Menu([COLOUR, DATABASE]), rows=8)
    assert lines[:5] == ["Which colour?", "", "> 1. red: like a rose", "  2. green", ""]
    assert lines[-1].startswith("Question 1 of 2. Up/Down or a number, Enter: take")


def test_a_long_list_scrolls_with_the_mark() -> None:
    menu = Menu([Choice("Which?", [f"option {number}" for number in range(1, 51)])])
    assert "  7. option 7" not in " ".join(shown(menu, rows=8))
    assert "(more below)" in shown(menu, rows=8)[-1]
    menu_after(menu, *["down"] * 20, rows=8)
    assert "> 21. option 21" in shown(menu, rows=8)
    assert "(more above and below)" in shown(menu, rows=8)[-1]
    menu_after(menu, "end", rows=8)
    assert "> 50. option 50" in shown(menu, rows=8)
    assert "(more above)" in shown(menu, rows=8)[-1]


def test_what_is_out_of_sight_is_shown_before_it_can_be_taken() -> None:
    menu = Menu([Choice("a long question " * 60, ["yes", "no"])])
    assert not any(line.startswith("> ") for line in shown(menu, 40, 10))
    menu_after(menu, "enter", columns=40, rows=10)
    assert menu.action == ""
    assert "> 1. yes" in shown(menu, 40, 10)
    menu_after(menu, "page up", "page up", columns=40, rows=10)
    assert "> 1. yes" not in shown(menu, 40, 10)
    assert menu_after(menu, "enter", "enter", columns=40, rows=10).action == "accept"


@pytest.mark.parametrize("size", [(80, 24), (20, 6), (10, 3), (200, 60), (3, 2), (1, 1)])
@pytest.mark.parametrize(
    "text",
    [
        "قاعدة البيانات المناسبة لهذا المشروع الكبير جدا",
        "数据库" * 30,
        "👨‍👩‍👧‍👦" * 20,
        "e\u0301" * 100,
        "one\n\ntwo\r\nthree",
        "x" * 500,
        "❤\ufe0f and 🇪🇬",
    ],
)
def test_any_text_fits_any_terminal(size: tuple[int, int], text: str) -> None:
    columns, rows = size
    menu = Menu([Choice(text, [text, "no"])])
    for key in ("down", "up", "enter"):
        lines = menu.draw(columns, rows)
        assert len(lines) <= rows
        assert columns < 10 or all(width(line) < columns for line, _ in lines)
        menu.press(key)


def test_lines_break_at_blanks_and_never_inside_a_character() -> None:
    assert wrapped("one two three", 8) == ["one two", "three"]
    assert wrapped("abcdefgh", 3) == ["abc", "def", "gh"]
    assert wrapped("数据库", 4) == ["数据", "库"]
    family = "👨‍👩‍👧‍👦"
    assert wrapped(family * 2, 9) == [family, family]
    assert wrapped("e\u0301e\u0301e\u0301", 2) == ["e\u0301e\u0301", "e\u0301"]
    assert wrapped("a  b", 10) == ["a  b"]
    assert wrapped("", 10) == [""]


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("\x1b[2J\x1b]52;c;aGk=\x07", "␛[2J␛]52;c;aGk=␇"),
        ("a\x00b\x7f\x9b31m", "a␀b␡\ufffd31m"),
        ("tab\there\rand\nthere", "tab here and there"),
        ("\u202eevil\u2066", "evil"),
        ("\u2028\ud800", "\ufffd\ufffd"),
        ("سلام\u200f 👨‍👩‍👧 e\u0301", "سلام\u200f 👨‍👩‍👧 e\u0301"),
    ],
)
def test_control_characters_are_shown_and_not_sent(text: str, sent: str) -> None:
    assert plain(text) == sent


def test_nothing_that_is_drawn_holds_a_control_character() -> None:
    every = "".join(map(chr, [*range(0x20), *range(0x7F, 0xA0), 0x202E, 0x2028]))
    menu = Menu([Choice(every, [every + "1", "2"], [every])], message=every)
    for text, _ in menu.draw(80, 60):
        assert not any(character < " " or "\x7f" <= character <= "\x9f" for character in text)
