"""AskUserQuestion: what it reads, what it refuses, and what it tells of each outcome, over the wire."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fastrpc.tools.agent import _text
from fastrpc.tools.agent import ask_user_question as module
from support.in_memory import with_client
from support.server_requests import Raw, with_stateless_client

from fastrpc import Server, ToolError
from fastrpc.protocol.versions import ELICITATION, RICH_INPUT_REQUESTS, STATELESS, VERSIONS
from fastrpc.terminal.choices import Choice
from fastrpc.terminal.keys import Keys
from fastrpc.terminal.menu import Menu
from fastrpc.testing import CallResult, Client

FORM = '{"questions":[{"text":"Which database?","options":["PostgreSQL","SQLite"]}]}'
TWO = (
    '{"questions":[{"text":"Which database?","options":["PostgreSQL","SQLite"]},'
    '{"text":"Tests?","options":["yes","no"]}]}'
)


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ASK_TERMINAL", "FASTRPC_ASK_SECONDS", "FASTRPC_STRUCTURED"):
        monkeypatch.delenv(name, raising=False)


def server() -> Server:
    app = Server("t")
    app.add_tool(module.ask_user_question)
    return app


def ask(questions: str, **options: Any) -> CallResult:
    async def conversation(client: Client) -> CallResult:
        return await client.call("AskUserQuestion", questions_json=questions)

    result: CallResult = with_client(server(), conversation, **options)
    return result


def facts(result: CallResult) -> Any:
    return result.meta["fastrpc/facts"]


# --- several options, and texts ---------------------------------------------------------------------------

SEVERAL = json.dumps(
    [
        {
            "text": "Which?",
            "options": ["a", {"label": "b", "description": "2nd"}, "c"],
            "multiSelect": True,
        },
        {"text": "Why?", "freeText": True},
        {"text": "Where?", "options": ["here", "there"], "freeText": True},
    ]
)


def selected(result: CallResult) -> list[Any]:
    return [each["selected"] for each in json.loads(result.text)["answers"]]


@pytest.mark.parametrize("version", ELICITATION)
def test_several_options_and_texts_are_answered_in_every_version(version: str) -> None:
    has_lists = version in RICH_INPUT_REQUESTS
    chosen = {"question_1": ["c", "a"]} if has_lists else {"question_1_1": True, "question_1_3": True}
    answers = chosen | {"question_2_text": " it fits ", "question_3": "here", "question_3_text": ""}
    result = ask(SEVERAL, version=version, on_elicit=answers)
    assert [each["selected"] for each in json.loads(result.text)["answers"]] == [
        ["a", "c"],
        "it fits",
        "here",
    ]
    none = {} if has_lists else {"question_1_1": False}
    answers = none | {"question_3": "here", "question_3_text": "far"}
    assert selected(ask(SEVERAL, version=version, on_elicit=answers)) == [[], "", "far"]


def test_a_form_of_several_options_and_texts_says_so() -> None:
    asked: list[Any] = []

    def answer(params: Any) -> str:
        asked.append(params["requestedSchema"])
        return "decline"

    ask(SEVERAL, version="2025-11-25", on_elicit=answer)
    (schema,) = asked
    assert schema["required"] == []
    assert schema["properties"]["question_1"]["type"] == "array"
    assert schema["properties"]["question_1"]["items"]["anyOf"][1] == {"const": "b", "title": "b: 2nd"}
    assert schema["properties"]["question_2_text"] == {"type": "string", "title": "Why?"}
    assert "question_2" not in schema["properties"]


def test_without_a_person_the_text_says_that_several_may_be_chosen() -> None:
    text = ask(SEVERAL).text
    assert "1. Which? (several may be chosen)\n   - a\n   - b: 2nd\n   - c\n\n2. Why?\n\n3. Where?" in text
    assert text.endswith("   - there\n   - or a text of the user's own")


def test_the_menu_of_a_terminal_takes_several_options_with_the_space_bar() -> None:
    menu = Menu([Choice("Which?", ["a", "b", "c"], several=True), Choice("One?", ["x", "y"])])
    keys = Keys()
    for key in keys.feed(b" \x1b[B \x1b[B  "):
        menu.press(key)
    lines = [line for line, _ in menu.draw(80, 24)]
    assert [line.strip() for line in lines if "[" in line] == ["1. [x] a", "2. [x] b", "> 3. [ ] c"]
    assert any("Space: choose" in line for line in lines)
    for key in keys.feed(b"\r \r"):
        menu.press(key)
    assert (menu.action, menu.answers) == ("accept", [["a", "b"], "x"])


# --- outcomes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ELICITATION)
def test_the_answers_come_as_text_and_structured(version: str) -> None:
    """AskUserQuestion: the answer is `{"answers":[{"question","selected"}]}`, as text and structured."""
    result = ask(TWO, version=version, on_elicit={"question_1": "SQLite", "question_2": "no"})
    answers = {
        "answers": [
            {"question": "Which database?", "selected": "SQLite"},
            {"question": "Tests?", "selected": "no"},
        ]
    }
    assert result.text == json.dumps(answers, separators=(",", ":"))
    assert result.structured == answers
    assert not result.is_error
    assert facts(result) == {"how": "client", "action": "accept"}


@pytest.mark.parametrize("version", ELICITATION)
@pytest.mark.parametrize(
    ("given", "action", "text"),
    [
        (False, "decline", "The user declined to answer. The questions stay unanswered: nothing was chosen."),
        (
            None,
            "cancel",
            "The user dismissed the question without an answer. "
            "The questions stay unanswered: nothing was chosen.",
        ),
    ],
    ids=["decline", "cancel"],
)
def test_declined_and_cancelled_are_said_plainly(version: str, given: Any, action: str, text: str) -> None:
    """AskUserQuestion: declined and cancelled are said plainly, and no answer is invented."""
    result = ask(TWO, version=version, on_elicit=lambda params: given)
    assert result.text == text
    assert result.structured is None
    assert facts(result) == {"how": "client", "action": action}


@pytest.mark.parametrize("version", VERSIONS)
def test_where_no_one_can_be_asked_the_questions_come_back_as_text(version: str) -> None:
    """AskUserQuestion: if the user cannot be asked, the questions come back as text, marked as unanswered."""
    result = ask(TWO, version=version)
    first, _, questions = result.text.partition("\n\n")
    assert first.startswith("The user could not be asked (")
    assert first.endswith(
        "The questions are unanswered. Ask the user yourself, in your next message, and wait for the reply:"
    )
    assert questions == ("1. Which database?\n   - PostgreSQL\n   - SQLite\n\n2. Tests?\n   - yes\n   - no")
    assert not result.is_error
    assert result.structured is None
    assert facts(result) == {"how": "none", "action": "unasked"}


def test_a_question_that_timed_out_has_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FASTRPC_ASK_SECONDS", "0.05")

    async def never(params: Any) -> Any:
        import asyncio

        await asyncio.sleep(10)

    result = ask(FORM, on_elicit=never)
    assert result.text == (
        "The user did not answer within 0.05 s. The question stays unanswered: nothing was chosen."
    )
    assert facts(result) == {"how": "client", "action": "timeout"}


def test_the_newest_client_learns_what_input_is_required() -> None:
    """AskUserQuestion: a client of 2026-07-28 gets `input_required` with an elicitation."""

    async def conversation(client: Raw) -> None:
        call = {"name": "AskUserQuestion", "arguments": {"questions_json": FORM}}
        result = await client.request("tools/call", call)
        assert result["resultType"] == "input_required"
        ((key, question),) = result["inputRequests"].items()
        assert question["method"] == "elicitation/create"
        assert question["params"]["requestedSchema"]["properties"]["question_1"]["enum"] == [
            "PostgreSQL",
            "SQLite",
        ]
        answer = {"action": "accept", "content": {"question_1": "PostgreSQL"}}
        again = {"requestState": result["requestState"], "inputResponses": {key: answer}}
        result = await client.request("tools/call", {**call, **again})
        assert result["structuredContent"]["answers"][0]["selected"] == "PostgreSQL"
        assert client.version == STATELESS

    with_stateless_client(server(), conversation)


def test_facts_are_structured_where_a_program_asks_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """AskUserQuestion: its facts are in `_meta`, and structured on request."""
    monkeypatch.setenv("FASTRPC_STRUCTURED", "1")
    assert ask(FORM).structured == {"how": "none", "action": "unasked"}
    answers = {"answers": [{"question": "Which database?", "selected": "SQLite"}]}
    assert ask(FORM, on_elicit={"question_1": "SQLite"}).structured == answers


def test_any_text_passes_unchanged_both_ways() -> None:
    """AskUserQuestion: any Unicode passes unchanged."""
    texts = ["ما قاعدة البيانات؟", "نعم\u200f", "e\u0301 \u00e9", "👨‍👩‍👧‍👦 🏴󠁧󠁢󠁥󠁮󠁧󠁿", "«\x1b[1m»"]
    for ascii_only in (True, False):
        text = json.dumps([{"text": texts[0], "options": texts}], ensure_ascii=ascii_only)
        for chosen in texts:
            result = ask(text, on_elicit={"question_1": chosen})
            assert result.structured == {"answers": [{"question": texts[0], "selected": chosen}]}
            assert json.loads(result.text) == result.structured


# --- what is read ---------------------------------------------------------------------------------------


def read(text: str) -> list[tuple[str, list[str], list[str]]]:
    return [(choice.text, choice.options, choice.hints) for choice in module.choices_of(text)]


@pytest.mark.parametrize(
    "text",
    [
        '{"questions":[{"text":"A?","options":["x","y"]}]}',
        '[{"text":"A?","options":["x","y"]}]',
        '{"text":"A?","options":["x","y"]}',
        '{"questions":[{"question":"A?","options":["x","y"],"header":"A","multiSelect":false}]}',
        '[{"question":"A?","options":[{"label":"x"},{"label":"y","description":null}]}]',
        ' {"questions": [ {"text": "A?", "options": ["x", {"label": "y", "description": ""}], "id": 7} ] }\n',
    ],
)
def test_the_variants_that_models_write_are_taken(text: str) -> None:
    """AskUserQuestion: the variants of that form that models write are taken."""
    assert read(text) == [("A?", ["x", "y"], ["", ""])]


def test_descriptions_explain_options_and_are_no_part_of_the_answer() -> None:
    text = '[{"text":"A?","options":[{"label":"x","description":"the first"},"y"]}]'
    assert read(text) == [("A?", ["x", "y"], ["the first", ""])]
    result = ask(text, on_elicit={"question_1": "x"})
    assert result.structured == {"answers": [{"question": "A?", "selected": "x"}]}


def test_two_questions_may_be_the_same() -> None:
    question = '{"text":"Again?","options":["yes","no"]}'
    result = ask(f"[{question},{question}]", on_elicit={"question_1": "yes", "question_2": "no"})
    assert [answer["selected"] for answer in result.structured["answers"]] == ["yes", "no"]


def test_a_line_break_inside_a_string_is_taken_as_it_is() -> None:
    assert read('[{"text":"A\nor B?","options":["x"]}]') == [("A\nor B?", ["x"], [""])]


LONG = "x" * 600


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "not JSON: Expecting value at line 1, column 1"),
        ("Which database?", "not JSON: Expecting value at line 1, column 1"),
        ('{"questions":[\n{"text":"A?" "options":[]}]}', "not JSON: Expecting ',' delimiter at line 2"),
        ("[" * 100_000, "not readable: nested too deeply"),
        ("7", "expected an object with questions, got 7"),
        ("{}", "expected an object with questions, got an object"),
        ('"A?"', 'expected an object with questions, got "A?"'),
        ('{"questions":"A?"}', 'questions: expected a list of 1 to 20, got "A?"'),
        ('{"questions":[]}', "questions: expected a list of 1 to 20, got 0"),
        (
            json.dumps([{"text": "A?", "options": ["x"]}] * 21),
            "questions: expected a list of 1 to 20, got 21",
        ),
        ('["A?"]', 'questions[0]: expected an object with text and options, got "A?"'),
        ('[{"options":["x"]}]', "questions[0].text: required, missing"),
        ('[{"text":7,"options":["x"]}]', "questions[0].text: expected a string, got 7"),
        ('[{"text":" \\n","options":["x"]}]', "questions[0].text: expected a text, got none"),
        ('[{"text":"A?","options":["x"]},{"text":"B?"}]', "questions[1].options: required, missing"),
        ('[{"text":"A?","options":[]}]', "questions[0].options: expected a list of 1 to 50, got 0"),
        ('[{"text":"A?","options":"x, y"}]', 'questions[0].options: expected a list of 1 to 50, got "x, y"'),
        (
            json.dumps([{"text": "A?", "options": list(map(str, range(51)))}]),
            "questions[0].options: expected a list of 1 to 50, got 51",
        ),
        ('[{"text":"A?","options":["x",2]}]', "questions[0].options[1]: expected a string, got 2"),
        ('[{"text":"A?","options":["x",null]}]', "questions[0].options[1]: expected a string, got null"),
        ('[{"text":"A?","options":["x",["y"]]}]', "questions[0].options[1]: expected a string, got a list"),
        ('[{"text":"A?","options":[{"name":"x"}]}]', "or an object with a label, got an object"),
        (
            '[{"text":"A?","options":[{"label":7}]}]',
            "questions[0].options[0].label: expected a string, got 7",
        ),
        ('[{"text":"A?","options":["x",""]}]', "questions[0].options[1]: expected a text, got none"),
        ('[{"text":"A?","options":["x","x"]}]', 'questions[0].options[1]: "x" occurs twice'),
        ('[{"text":"A?","options":[],"multiSelect":true}]', "expected a list of 1 to 50, got 0"),
        ('[{"text":"A?","options":"x","freeText":true}]', "questions[0].options: expected a list"),
        (
            json.dumps([{"text": "A?", "options": [LONG]}]),
            "questions[0].options[0]: expected at most 500 characters, got 600",
        ),
        (
            json.dumps([{"text": LONG * 4, "options": ["x"]}]),
            "questions[0].text: expected at most 2,000 characters, got 2,400",
        ),
        (
            json.dumps([{"text": LONG * 2, "options": ["x"]}] * 11),
            "all texts together: expected at most 12,000 characters, got 13,211",
        ),
        (
            '[{"text":"\\ud83d","options":["x"]}]',
            "questions[0].text: holds half a surrogate pair, which is not text",
        ),
        (
            '[{"text":"A?","options":["\\ude00"]}]',
            "questions[0].options[0]: holds half a surrogate pair, which is not text",
        ),
        (f'[{{"text":{"9" * 5000},"options":["x"]}}]', "not readable: "),
    ],
)
def test_what_is_wrong_is_said_with_its_place_and_the_form_is_shown(text: str, problem: str) -> None:
    """AskUserQuestion: bad JSON or a bad shape is an error that shows the form."""
    with pytest.raises(ToolError) as caught:
        module.choices_of(text)
    message = str(caught.value)
    assert message.startswith("questions_json: ")
    assert problem in message
    assert message.endswith(f"The form is {FORM}")
    assert len(message) < 500


@pytest.mark.parametrize("version", VERSIONS)
def test_bad_questions_are_an_error_and_no_one_is_asked(version: str) -> None:
    """AskUserQuestion: bad questions are a result with `isError`, and no one is asked."""

    async def conversation(client: Client) -> None:
        result = await client.call("AskUserQuestion", questions_json='{"questions":[{"text":"A?"}]}')
        assert result.is_error
        assert result.text == f"questions_json: questions[0].options: required, missing. The form is {FORM}"
        assert client.questions == []

    with_client(server(), conversation, version=version, on_elicit={"question_1": "x"})


def test_the_form_that_is_shown_is_one_that_is_taken() -> None:
    """AskUserQuestion: it takes `{"questions":[{"text","options"}]}`, the form that its errors show."""
    assert module.FORM == FORM
    assert read(FORM) == [("Which database?", ["PostgreSQL", "SQLite"], ["", ""])]


def test_the_longest_questions_fit_a_result() -> None:
    """AskUserQuestion: the longest questions fit a result."""
    options = ["ش" * 7 + chr(0x4E00 + number) + "\u0651" * 2 for number in range(50)]
    result = ask(json.dumps([{"text": "س" * 100, "options": options}] * 20))
    assert not result.is_error
    assert result.text.count("ش" * 7) == 1000
    assert _text.fits(result.text)
