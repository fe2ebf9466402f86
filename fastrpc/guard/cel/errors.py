"""What goes wrong with a rule: at load, with the place in its source, or in an evaluation, in a few words.

A rule that does not load is its author's fault (`RuleError`); one that cannot be evaluated met values that it
was not written for (`EvaluationError`), and the guard takes that for a no.
"""

from __future__ import annotations

from fastrpc.errors import FastrpcError


class RuleError(FastrpcError, ValueError):
    """A rule that cannot be loaded: `message`, and its `line` and `column` (characters, counted from 1)."""

    def __init__(self, message: str, line: int = 1, column: int = 1) -> None:
        super().__init__(f"line {line}, column {column}: {message}")
        self.message = message
        self.line = line
        self.column = column

    @classmethod
    def at(cls, source: str, offset: int, message: str) -> RuleError:
        """Return the error about what stands at an offset of the source."""
        before = source[:offset]
        return cls(message, before.count("\n") + 1, offset - before.rfind("\n"))


class RuleSyntaxError(RuleError):
    """The source is no expression, or one of the parts of CEL that rules do not have."""


class RuleTypeError(RuleError):
    """The expression names what is not there, or does with a value what its type does not allow."""


class EvaluationError(FastrpcError):
    """An expression has no value for these values: something is missing, of another type, or out of range."""


class StepsExceeded(EvaluationError):
    """The evaluation has taken all its steps. It ends there: no ``||`` goes on without what has failed."""
