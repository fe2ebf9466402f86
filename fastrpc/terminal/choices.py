"""The questions that a person is asked, each with options to choose from. Independent of the channel; no
I/O."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class Choice:
    """A question and the options to choose from.

    `hints` explain the options, in the same order; an empty hint is not shown. With `several` more than one
    option, or none, may be chosen; with `free` a text of the person's own may be given instead, and there may
    be no options. Raises ValueError if there is nothing to choose from, or two options are equal.
    """

    __slots__ = ("free", "hints", "options", "several", "text")

    def __init__(
        self,
        text: str,
        options: Sequence[str],
        hints: Sequence[str] = (),
        *,
        several: bool = False,
        free: bool = False,
    ) -> None:
        self.text = text
        self.several = several and bool(options)
        self.free = free
        self.options = list(options)
        self.hints = [*hints, *("" for _ in self.options[len(hints) :])]
        if not (self.options or free) or len(set(self.options)) < len(self.options):
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
        may = " (several may be chosen)" if choice.several else ""
        own = "\n   - or a text of the user's own" if choice.options and choice.free else ""
        blocks.append(f"{number}. {choice.text}{may}\n{options}{own}".rstrip())
    return "\n\n".join(blocks)
