"""The questions that a person is asked, each with options to choose from. Independent of the channel; no
I/O."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class Choice:
    """A question and the options to choose from.

    `hints` explain the options, in the same order; an empty hint is not shown. Raises ValueError if there are
    no options, or two of them are equal.
    """

    __slots__ = ("hints", "options", "text")

    def __init__(self, text: str, options: Sequence[str], hints: Sequence[str] = ()) -> None:
        self.text = text
        self.options = list(options)
        self.hints = [*hints, *("" for _ in self.options[len(hints) :])]
        if not self.options or len(set(self.options)) < len(self.options):
            raise ValueError(f"options: expected at least one, all different, got {self.options!r:.80}")

    def shown(self, number: int) -> str:
        """Return an option as it is shown to a person, with its hint."""
        option, hint = self.options[number], self.hints[number]
        return f"{option}: {hint}" if hint else option


def listed(choices: Sequence[Choice]) -> str:
    """Return the questions as text, for an agent to ask them itself."""
    blocks = []
    for number, choice in enumerate(choices, 1):
        options = "\n".join(f"   - {choice.shown(option)}" for option in range(len(choice.options)))
        blocks.append(f"{number}. {choice.text}\n{options}")
    return "\n\n".join(blocks)
