"""A tool's result whose text is not the JSON of its structured content."""

from __future__ import annotations

from fastrpc import ToolResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    Shape = TypeVar("Shape")


def answer(content: Any, structured: Shape) -> Shape:
    """Return a result with this content, a text or blocks, and this structured content. Type checkers see it
    as the structured content, whose type the tool's annotation names."""
    found: Any = ToolResult(content, structured=structured)
    return found  # type: ignore[no-any-return]


def noted(text: str, structured: Shape, notes: list[str]) -> Shape:
    """Return an answer with notes, each a sentence or empty, at the end of its text and of the `note` in its
    structured content."""
    notes = list(filter(None, notes))
    if notes:
        found: Any = structured
        found["note"] = " ".join(notes)
    return answer("\n".join([text, *(f"[{each}]" for each in notes)]), structured)
