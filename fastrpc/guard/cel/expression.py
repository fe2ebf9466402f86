"""A compiled rule: what it reads, its type, its value for some values, and the trace of an evaluation.

An evaluation takes about a microsecond and stores nothing; any number of threads may share an expression.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastrpc.errors import excerpt
from fastrpc.guard.cel.checker import check
from fastrpc.guard.cel.compiler import MOST_TRACED, Run, compiled
from fastrpc.guard.cel.errors import EvaluationError
from fastrpc.guard.cel.parser import parse
from fastrpc.guard.cel.types import Type
from fastrpc.guard.cel.values import MOST_STEPS, PLAIN, VALUES, Frame, as_bool, json_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc._core.call_gate import Screen
    from fastrpc.guard.cel.atoms import Atoms
    from fastrpc.guard.cel.syntax import Node


ARGUMENTS = "args"
"""The variable with the bound arguments of a call; other variables are JSON values."""


class Expression:
    """The result of `fastrpc.guard.cel.compile`."""

    def __init__(
        self, source: str, declared: Mapping[str, Type], choices: frozenset[str] = frozenset()
    ) -> None:
        self.source = source
        self._tree = parse(source)
        reads = check(source, self._tree, declared)
        self.type: Type = self._tree.type
        """The type of its value. A rule's `kind` is "bool", or "dyn" if only known at run time."""
        self.variables = frozenset(reads.members)
        """The variables that it reads: an evaluation needs no others."""
        self.whole = frozenset(reads.whole)
        """The variables among them that it reads as a whole, not only by naming members."""
        self._members = {name: frozenset(members) for name, members in reads.members.items()}
        self._choices = choices if ARGUMENTS in self.whole else choices & self.members(ARGUMENTS)
        """The arguments that it reads and that may be, or contain, members of enums."""
        self._slots = [None] * reads.slots
        self._run = compiled(source, self._tree)
        if self._choices:
            self._run = self._with_json_values(self._run)
        self._atoms: Atoms | None = None

    def prepared(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return values in the form that the expression sees: members of enums in arguments become JSON."""
        arguments = values.get(ARGUMENTS)
        if not self._choices or not isinstance(arguments, Mapping):
            return values
        seen = {
            name: json_value(arguments[name])
            for name in self._choices
            if name in arguments and type(arguments[name]) not in PLAIN
        }
        return {**values, ARGUMENTS: {**arguments, **seen}} if seen else values

    def _with_json_values(self, run: Run) -> Run:
        def prepared_run(frame: Frame) -> Any:
            frame[VALUES] = self.prepared(frame[VALUES])
            return run(frame)

        return prepared_run

    def screen(self, values: Mapping[str, Any]) -> Screen:
        """Return the screen by which the gate recognises that the expression, a condition, is certainly
        false. `values` are its variables except the arguments."""
        from fastrpc._core.call_gate import Evaluation
        from fastrpc.guard.cel.screening import screen_of

        known = dict(values)

        def value_of(node: Node) -> object:
            try:
                return compiled(self.source, node)([known, MOST_STEPS, None, *self._slots])
            except Exception:  # as for the whole condition: then nothing is certain
                return None

        quick = screen_of(self._tree, value_of)
        members = None if ARGUMENTS in self.whole else tuple(self.members(ARGUMENTS))
        return Evaluation(quick, self._run, [None, MOST_STEPS, None, *self._slots], known, members)

    def members(self, variable: str) -> frozenset[str]:
        """Return the direct members of a variable that the expression names; see `whole`."""
        return self._members.get(variable, frozenset())

    def evaluate(self, values: Mapping[str, Any]) -> Any:
        """Return the value of the expression; raise `EvaluationError` if it has none for these values.

        `values` holds the `variables`, of JSON's types. No other exception is raised for any values.
        """
        try:
            return self._run([values, MOST_STEPS, None, *self._slots])
        except EvaluationError:
            raise
        except Exception as error:
            # raised by the methods of a value, or by one that contains itself
            raise EvaluationError(f"the values cannot be evaluated: {type(error).__name__}") from error

    def test(self, values: Mapping[str, Any]) -> bool:
        """Return `evaluate` of a rule; a value other than true and false is an `EvaluationError`, too."""
        return as_bool(self.evaluate(values), "the rule")

    @property
    def atoms(self) -> Atoms:
        """The parts that decide the expression, which is a condition; made at first use."""
        if self._atoms is None:
            from fastrpc.guard.cel.atoms import Atoms

            self._atoms = Atoms(self.source, self._tree, self._slots)
        return self._atoms

    def explain(self, values: Mapping[str, Any]) -> list[tuple[str, Any]]:
        """Return what an evaluation read, compared and called, in the order of evaluation: the source and the
        value of each.

        At most 20, each once. Values are short: lists and maps are shown by their size, a long string is
        truncated, and a failure is "error: …". Parts that the evaluation did not reach are missing.
        """
        trace: list[tuple[str, Any]] = []
        run = compiled(self.source, self._tree, is_traced=True)
        try:
            run([self.prepared(values), MOST_STEPS, trace, *self._slots])
        except Exception as error:
            if not isinstance(error, EvaluationError):
                trace.append((excerpt(self.source), f"error: {type(error).__name__}"))
        return trace[:MOST_TRACED]
