"""The errors of rules: at load, with the position in the source, or in an evaluation, with a short message.

A rule that does not load is its author's fault (`RuleError`). A rule that cannot be evaluated received values
for which it was not written (`EvaluationError`); then the guard denies.
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
        before = source[:offset]
        return cls(message, before.count("\n") + 1, offset - before.rfind("\n"))


class RuleSyntaxError(RuleError):
    """The source is not an expression, or uses a part of CEL that rules do not have."""


class RuleTypeError(RuleError):
    """The expression uses an unknown name, or an operation that a value's type does not allow."""


class EvaluationError(FastrpcError):
    """An expression has no value for these values: something is missing, of another type, or out of range."""


class StepsExceeded(EvaluationError):
    """The evaluation has used all its steps. It ends: ``||`` does not continue with another operand."""
