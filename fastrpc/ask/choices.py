"""What a person is asked: questions with options to choose one from, however they are put. No I/O."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class Choice:
    """A question and the options to choose one from.

    `hints` explain options, in their order, where they are no empty text. Raises ValueError for options
    that are not at least one, or not different.
    """

    __slots__ = ("hints", "options", "text")

    def __init__(self, text: str, options: Sequence[str], hints: Sequence[str] = ()) -> None:
        self.text = text
        self.options = list(options)
        self.hints = [*hints, *("" for _ in self.options[len(hints) :])]
        if not self.options or len(set(self.options)) < len(self.options):
            raise ValueError(f"options: expected at least one, all different, got {self.options!r:.80}")

    def shown(self, number: int) -> str:
        """Return an option as a person reads it."""
        option, hint = self.options[number], self.hints[number]
        return f"{option}: {hint}" if hint else option


def listed(choices: Sequence[Choice]) -> str:
    """Return questions as a text that an agent can put to the person itself."""
    blocks = []
    for number, choice in enumerate(choices, 1):
        options = "\n".join(f"   - {choice.shown(option)}" for option in range(len(choice.options)))
        blocks.append(f"{number}. {choice.text}\n{options}")
    return "\n\n".join(blocks)
