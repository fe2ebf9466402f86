"""The sequence diagrams of docs/architecture.md: drawn from the names of the code, which must be there.

python -m meta.test_call_paths       in tests/: draws them into the page anew
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest
from meta.test_house import text_of

PAGE = "docs/architecture.md"
WIDTH = 25
MOST_ROOMS = 4

CONNECTION, PLAN, ENCODER, RECORDER = "_core/connection", "_core/plan", "_core/encoder", "_core/recorder"
PENDING, TASK, CONTEXT = "_core/pending", "_core/task", "_core/context"
CALL, ADMISSION, RESPONSES = "engine/call", "engine/admission", "engine/responses"


class Step(NamedTuple):
    """A function of one file calls a function of another, or of the same; "" as a name is a remark."""

    caller: str
    called: str
    name: str
    remark: str = ""


def within(room: str, name: str, remark: str = "") -> Step:
    return Step(room, room, name, remark)


PATHS = {
    "A call that ends at once": (
        within(CONNECTION, "handle_message"),
        within(CONNECTION, "serve"),
        Step(CONNECTION, PLAN, "bind"),
        within(CONNECTION, "go"),
        within(CONNECTION, "ask_guard"),
        Step(CONNECTION, PLAN, "invoke"),
        within(CONNECTION, "conclude"),
        within(CONNECTION, "finish"),
        Step(CONNECTION, ENCODER, "put_text"),
        Step(CONNECTION, RECORDER, "put"),
    ),
    "A coroutine that waits": (
        within(CONNECTION, "serve"),
        within(CONNECTION, "go"),
        within(CONNECTION, "conclude"),
        Step(CONNECTION, PENDING, "begin"),
        Step(PENDING, TASK, "begun"),
        within(PENDING, "wait"),
        Step(PENDING, CONTEXT, "limit"),
        Step("", "", "", "the event loop runs the task"),
        Step(TASK, PENDING, "__call__", "on_done"),
        Step(PENDING, CONTEXT, "leave"),
        Step(PENDING, CONNECTION, "finish"),
    ),
    "A call that waits for an approval": (
        within(CONNECTION, "serve"),
        within(CONNECTION, "go"),
        within(CONNECTION, "ask_guard"),
        Step(CONNECTION, CALL, "call_deferred"),
        within(CALL, "defer"),
        within(CALL, "await_decision"),
        Step("", "", "", "a person decides"),
        within(CALL, "_decided"),
        Step(CALL, ADMISSION, "place"),
        Step(ADMISSION, CALL, "start"),
        within(CALL, "function_ended"),
        Step(CALL, RESPONSES, "call_returned"),
    ),
}


def rooms_of(steps: tuple[Step, ...]) -> list[str]:
    """The files of a path, in the order in which it comes to them."""
    return list(dict.fromkeys(room for step in steps for room in (step.caller, step.called) if room))


def drawn(steps: tuple[Step, ...]) -> str:
    """Draw a path as a sequence diagram: a column for each file."""
    rooms = rooms_of(steps)
    lines = ["".join(file_of(room).ljust(WIDTH) for room in rooms).rstrip()]
    for step in steps:
        bars = ["│".ljust(WIDTH) for _ in rooms]
        if not step.name:
            lines.append(f"·  {step.remark}")
            continue
        first, last = rooms.index(step.caller), rooms.index(step.called)
        text = step.name + (f" ({step.remark})" if step.remark else "")
        if first == last:
            bars[first] = f"│ {text}".ljust(WIDTH)
        else:
            left, right = min(first, last), max(first, last)
            room = (right - left) * WIDTH
            arrow = (
                f"├─ {text} ".ljust(room - 1, "─") + "►" if first < last else f"│◄─ {text} ".ljust(room, "─")
            )
            end = "│" if first < last else "┤"
            bars[left : right + 1] = [arrow + end.ljust(WIDTH)]
        lines.append("".join(bars).rstrip())
    return "\n".join(lines)


def file_of(room: str) -> str:
    return room + (".pyx" if room.startswith("_core") else ".py")


def source_of(room: str) -> str:
    return text_of(f"fastrpc/{file_of(room)}")


def page_with_diagrams(page: str) -> str:
    """Return the page with each diagram as it is drawn now."""
    for title, steps in PATHS.items():
        pattern = rf"(\*\*{re.escape(title)}\*\*.*?```text\n).*?(\n```)"
        page, count = re.subn(
            pattern, lambda found, steps=steps: found[1] + drawn(steps) + found[2], page, flags=re.S
        )
        assert count == 1, f"{PAGE} has no diagram for {title}"
    return page


def test_the_page_has_the_diagrams_as_they_are_drawn_from_the_code() -> None:
    page = text_of(PAGE)
    assert page_with_diagrams(page) == page


@pytest.mark.parametrize("title", PATHS)
def test_each_function_of_a_diagram_is_in_its_file_and_the_one_before_names_it(title: str) -> None:
    for step in PATHS[title]:
        if step.name:
            defined = rf"^ *(?:async )?(?:def|cpdef [\w* ]*|cdef [\w* ]*) ?\b{step.name}\("
            assert re.search(defined, source_of(step.called), re.M), (step.called, step.name)
            named = "on_done" if step.name == "__call__" else step.name
            assert re.search(rf"\b{named}\b", source_of(step.caller)), (step.caller, named)


@pytest.mark.parametrize("title", PATHS)
def test_a_call_is_followed_through_few_files(title: str) -> None:
    assert len(rooms_of(PATHS[title])) <= MOST_ROOMS


if __name__ == "__main__":
    path = Path(__file__).parents[2] / PAGE
    path.write_text(page_with_diagrams(path.read_text("utf-8")), "utf-8")
