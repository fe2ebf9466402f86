"""The tool AskUserQuestion: asks the person to choose, and returns the choice or that none was made.

`fastrpc.human_input` asks the person. This module parses the questions, strictly in meaning and leniently in
the forms that models write, and formats the outcome.
"""

from __future__ import annotations

from fastrpc import Context, ToolError, ToolResult, tool

from ._result import result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated, Any, NoReturn

    from fastrpc.human_input import Choice
else:
    from fastrpc.typing_forms import Annotated

FORM = '{"questions":[{"text":"Which database?","options":["PostgreSQL","SQLite"]}]}'

QUESTIONS = 20
OPTIONS = 50
TEXT = 2_000
OPTION = 500
ALL_TEXTS = 12_000
"""The most characters of a question, of an option, of all together, so that they fit a result."""


@tool(name="AskUserQuestion", effect="write")
async def ask_user_question(
    questions_json: Annotated[str, "JSON string with questions and options"], ctx: Context
) -> ToolResult:
    """Ask interactive multiple-choice questions via TUI"""
    from fastrpc.human_input import ask_person, listed

    choices = choices_of(questions_json)
    outcome = await ask_person(ctx, choices)
    facts = {"how": outcome.how, "action": outcome.action}
    if outcome.accepted:
        pairs = zip(choices, outcome.answers, strict=True)
        answers = {"answers": [{"question": choice.text, "selected": chosen} for choice, chosen in pairs]}
        return result(_json(answers), facts, structured=answers)
    several = len(choices) > 1
    if outcome.action == "unasked":
        what = "questions are" if several else "question is"
        ask = "Ask the user yourself, in your next message, and wait for the reply:"
        return result(f"{outcome.sentence} The {what} unanswered. {ask}\n\n{listed(choices)}", facts)
    what = "questions stay" if several else "question stays"
    return result(f"{outcome.sentence} The {what} unanswered: nothing was chosen.", facts)


def choices_of(text: str) -> list[Choice]:
    """Return the questions in a JSON text. Raises ToolError, which shows the form.

    Also accepted: the list of questions alone, or one question alone; ``question`` for ``text``; options as
    objects with a ``label``, and a ``description`` that explains it. Other members than these and
    ``multiSelect`` and ``freeText`` are ignored.
    """
    value = _parsed(text)
    if isinstance(value, dict) and "questions" in value:
        value, place = value["questions"], "questions"
    elif isinstance(value, dict) and "options" in value:
        value, place = [value], "questions"
    elif isinstance(value, list):
        place = "questions"
    else:
        _refuse(f"expected an object with questions, got {_shown(value)}")
    if not isinstance(value, list) or not 1 <= len(value) <= QUESTIONS:
        got = f"{len(value)}" if isinstance(value, list) else _shown(value)
        _refuse(f"{place}: expected a list of 1 to {QUESTIONS}, got {got}")
    choices = [_choice_of(question, f"{place}[{number}]") for number, question in enumerate(value)]
    total = sum(len("".join((choice.text, *choice.options, *choice.hints))) for choice in choices)
    if total > ALL_TEXTS:
        _refuse(f"all texts together: expected at most {ALL_TEXTS:,} characters, got {total:,}")
    return choices


def _parsed(text: str) -> Any:
    import json

    try:
        return json.loads(text, strict=False)  # models write raw line breaks into strings
    except json.JSONDecodeError as error:
        _refuse(f"not JSON: {error.msg} at line {error.lineno}, column {error.colno}")
    except RecursionError:
        _refuse("not readable: nested too deeply")
    except ValueError as error:  # an integer of too many digits
        _refuse(f"not readable: {error}")


def _choice_of(question: Any, place: str) -> Choice:
    from fastrpc.human_input import Choice

    if not isinstance(question, dict):
        _refuse(f"{place}: expected an object with text and options, got {_shown(question)}")
    name = "text" if "text" in question or "question" not in question else "question"
    if name not in question:
        _refuse(f"{place}.text: required, missing")
    text = _text_of(question[name], f"{place}.{name}", TEXT)
    free = question.get("freeText") is True
    if "options" not in question and not free:
        _refuse(f"{place}.options: required, missing")
    options = question.get("options", [])
    if not isinstance(options, list) or not (0 if free else 1) <= len(options) <= OPTIONS:
        got = f"{len(options)}" if isinstance(options, list) else _shown(options)
        _refuse(f"{place}.options: expected a list of 1 to {OPTIONS}, got {got}")
    labels: dict[str, str] = {}
    for number, option in enumerate(options):
        label, hint = _option_of(option, f"{place}.options[{number}]")
        if label in labels:
            _refuse(f"{place}.options[{number}]: {_shown(label)} occurs twice")
        labels[label] = hint
    several = question.get("multiSelect") is True
    return Choice(text, list(labels), list(labels.values()), several=several, free=free)


def _option_of(option: Any, place: str) -> tuple[str, str]:
    if not isinstance(option, dict):
        return _text_of(option, place, OPTION), ""
    if "label" not in option:
        _refuse(f"{place}: expected a string, or an object with a label, got {_shown(option)}")
    label = _text_of(option["label"], f"{place}.label", OPTION)
    hint = option.get("description") or ""
    return label, _text_of(hint, f"{place}.description", TEXT) if hint else ""


def _text_of(value: Any, place: str, limit: int) -> str:
    if not isinstance(value, str):
        _refuse(f"{place}: expected a string, got {_shown(value)}")
    if not value.strip():
        _refuse(f"{place}: expected a text, got none")
    if len(value) > limit:
        _refuse(f"{place}: expected at most {limit:,} characters, got {len(value):,}")
    if any("\ud800" <= character <= "\udfff" for character in value):
        _refuse(f"{place}: holds half a surrogate pair, which is not text")
    return value


def _shown(value: Any) -> str:
    """Return the received text, for an error."""
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else "a list"
    text = _json(value)
    return text if len(text) <= 80 else f"{text[:79]}…"


def _json(value: Any) -> str:
    import json

    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "backslashreplace").decode()


def _refuse(problem: str) -> NoReturn:
    raise ToolError(f"questions_json: {problem}. The form is {FORM}")
