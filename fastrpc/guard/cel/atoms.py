"""The atoms of a condition: the parts that decide it, their states, and what would have made it false.

An atom is a part of a condition other than ``&&``, ``||``, ``!`` or ``? :``: a comparison, a call, a member,
a macro as a whole. The states of the atoms (true, false, or the text of an error) determine the outcome.

A `Way` to make a condition false has the states that some atoms need, as conditions. It is found by
evaluating values at the bounds of the comparisons (`example`). If no value can be tried, it is found from the
states alone, of atoms that share no path with others. Any other values at its paths that meet its needs make
the condition false, too. Imported when a call is refused, or to explain it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import Any, NamedTuple

from fastrpc.guard.cel import syntax
from fastrpc.guard.cel.compiler import Run, compiled
from fastrpc.guard.cel.errors import EvaluationError
from fastrpc.guard.cel.values import MOST_STEPS

State = bool | str
"""True, False, or the text of the error."""
Outcome = Callable[[Sequence[State]], State]
"""Returns the state of a condition with these states of its atoms."""
Path = tuple[str | int, ...]
"""A variable, and the members that lead from it to a value."""

OPPOSITES = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
MOST_CHANGED = 3
"""How many paths, or atoms, a way may change."""
MOST_TRIED = 4000
MOST_WAYS = 5
LONGEST_SIZE = 1000


class Absent:
    """The type of `ABSENT`, which represents a missing value."""

    def __repr__(self) -> str:
        return "absent"


ABSENT = Absent()


class Atom(NamedTuple):
    """`negation` is the condition that the atom is false; `paths` are those that it reads."""

    text: str
    negation: str
    paths: frozenset[Path]
    node: syntax.Node
    run: Run

    def need(self, state: State) -> str:
        """Return the condition that the atom has a state."""
        return self.text if state is True else self.negation


class Way(NamedTuple):
    """A way to make a condition false: other values at `paths` that meet all `needs`, such as those of
    `example`; None: no values were tried."""

    paths: tuple[Path, ...]
    needs: tuple[str, ...]
    example: Mapping[Path, Any] | None
    atoms: frozenset[int]
    """The atoms whose states change."""


class Atoms:
    """The atoms of the checked tree of a source. `slots` are those of an evaluation's frame."""

    def __init__(self, source: str, tree: syntax.Node, slots: Sequence[Any]) -> None:
        self._source = source
        self._slots = slots
        self.atoms: list[Atom] = []
        self._numbers: dict[str, int] = {}
        self.outcome = self._combined(tree)
        """Returns the state of the condition with these states of its atoms."""
        self.paths = sorted({path for atom in self.atoms for path in atom.paths}, key=text_of)

    def states(self, values: Mapping[str, Any]) -> list[State]:
        """Return the states of the atoms, in their order."""
        return [self._state(atom.run, values) for atom in self.atoms]

    def read(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return only the values that the atoms read, as far as they exist."""
        found: dict[str, Any] = {}
        for path in self.paths:
            _copy(values, found, path)
        return found

    def ways(self, values: Mapping[str, Any] | None, states: Sequence[State]) -> list[Way]:
        """Return what would make the condition false, the ways with the fewest atoms first; `values` None:
        they are not known, but the states are."""
        found = [] if values is None else self._tried(values, states)
        known = {way.atoms for way in found}
        found += [way for way in self._by_states(states) if way.atoms not in known]
        smallest = [way for way in found if not any(each.atoms < way.atoms for each in found)]
        return sorted(smallest, key=lambda way: len(way.atoms))[:MOST_WAYS]

    # --- what a condition is made of ----------------------------------------------------------------------

    def _combined(self, node: syntax.Node) -> Outcome:
        """Return the function from the states to the outcome of a part, and add its atoms."""
        if isinstance(node, syntax.Logical):
            parts = [self._combined(part) for part in node.parts]
            return _logical(parts, node.operator == "||")
        if isinstance(node, syntax.Unary) and node.operator == "!":
            operand = self._combined(node.operand)
            return _conditional(operand, lambda states: False, lambda states: True)
        if isinstance(node, syntax.Conditional):
            return _conditional(*map(self._combined, node.children()))
        if isinstance(node, syntax.LiteralNode) and isinstance(node.value, bool):
            value = node.value
            return lambda states: value
        number = self._number(node)
        return lambda states: states[number]

    def _number(self, node: syntax.Node) -> int:
        text = self._source[node.start : node.end]
        if text not in self._numbers:
            self._numbers[text] = len(self.atoms)
            run = compiled(self._source, node)
            self.atoms.append(Atom(text, self._negation(node, text), frozenset(_paths(node)), node, run))
        return self._numbers[text]

    def _negation(self, node: syntax.Node, text: str) -> str:
        if isinstance(node, syntax.Binary) and node.operator in OPPOSITES:
            behind = self._source[node.at + len(node.operator) : node.end]
            return f"{self._source[node.start : node.at]}{OPPOSITES[node.operator]}{behind}"
        return f"!({text})" if isinstance(node, syntax.Binary) else f"!{text}"

    def _state(self, run: Run, values: Mapping[str, Any]) -> State:
        try:
            value = self._value(run, values)
        except EvaluationError as error:
            return f"error: {error}"
        return value if isinstance(value, bool) else "error: this is neither true nor false"

    def _value(self, run: Run, values: Mapping[str, Any]) -> Any:
        try:
            return run([values, MOST_STEPS, None, *self._slots])
        except EvaluationError:
            raise
        except Exception as failure:  # as in `Expression.evaluate`
            raise EvaluationError(f"the values cannot be evaluated: {type(failure).__name__}") from None

    # --- what would change it -----------------------------------------------------------------------------

    def _tried(self, values: Mapping[str, Any], states: Sequence[State]) -> list[Way]:
        """Return the ways that are found by trying other values, with as few paths as possible."""
        pools = {path: self._pool(path, values) for path in self.paths}
        tries = 0
        for count in range(1, MOST_CHANGED + 1):
            found: dict[frozenset[int], Way] = {}
            for paths in combinations([path for path in self.paths if pools[path]], count):
                for chosen in product(*(pools[path] for path in paths)):
                    tries += 1
                    if tries > MOST_TRIED:
                        return list(found.values())
                    way = self._way_by(values, states, dict(zip(paths, chosen, strict=True)))
                    if way is not None:
                        found.setdefault(way.atoms, way)
            if found:
                return list(found.values())
        return []

    def _way_by(
        self, values: Mapping[str, Any], states: Sequence[State], example: dict[Path, Any]
    ) -> Way | None:
        """Return the way of these other values; None if the condition is not false with them."""
        others: Any = values
        for path, value in example.items():
            others = _changed(others, path, value)
        now = self.states(others)
        if self.outcome(now) is not False:
            return None
        paths = tuple(example)
        touched = [number for number, atom in enumerate(self.atoms) if _overlap(atom.paths, paths)]
        if any(isinstance(now[number], str) for number in touched):
            return None
        changed = frozenset(number for number in touched if now[number] != states[number])
        first = sorted(touched, key=lambda number: number not in changed)
        return Way(paths, tuple(self.atoms[each].need(now[each]) for each in first), example, changed)

    def _by_states(self, states: Sequence[State]) -> list[Way]:
        """Return the ways through atoms that share no path with another one: the smallest sets."""
        free = [number for number, atom in enumerate(self.atoms) if atom.paths and self._is_alone(number)]
        for count in range(1, MOST_CHANGED + 1):
            found = []
            for numbers in combinations(free[:24], count):
                for wanted in product(*(_others_of(states[number]) for number in numbers)):
                    now = list(states)
                    for number, state in zip(numbers, wanted, strict=True):
                        now[number] = state
                    if self.outcome(now) is False:
                        needs = tuple(self.atoms[each].need(now[each]) for each in numbers)
                        paths = {path for each in numbers for path in self.atoms[each].paths}
                        ordered = tuple(sorted(paths, key=text_of))
                        found.append(Way(ordered, needs, None, frozenset(numbers)))
            if found:
                return found
        return []

    def _is_alone(self, number: int) -> bool:
        own = self.atoms[number].paths
        return not any(_overlap(atom.paths, own) for each, atom in enumerate(self.atoms) if each != number)

    def _pool(self, path: Path, values: Mapping[str, Any]) -> list[Any]:
        """Return other values for a path, at the bounds of the atoms' comparisons with it."""
        now = value_at(values, path)
        found: list[Any] = []
        for atom in self.atoms:
            if path in atom.paths:
                found += self._bounds(atom.node, path, now, values)
        pool: list[Any] = []
        for each in found:
            if not _is_same(each, now) and not any(_is_same(each, other) for other in pool):
                pool.append(each)
        return pool

    def _bounds(self, node: syntax.Node, path: Path, now: Any, values: Mapping[str, Any]) -> Iterator[Any]:
        if path_of(node) == path:
            yield from (ABSENT,) if isinstance(node, syntax.Select) and node.is_test else (True, False)
        elif isinstance(node, syntax.Binary):
            for mine, other in ((node.left, node.right), (node.right, node.left)):
                try:
                    bound = self._value(compiled(self._source, other), values)
                except EvaluationError:
                    continue
                if isinstance(mine, syntax.CallNode) and mine.name == "size" and path in _paths(mine):
                    yield from _sized(now, bound)
                elif path_of(mine) == path and node.operator == "in":
                    yield from _members(now, bound, is_element=mine is node.left)
                elif path_of(mine) == path:
                    yield from _near(bound)
        elif isinstance(node, syntax.CallNode) and node.target is not None and path_of(node.target) == path:
            for argument in node.arguments:
                if isinstance(argument, syntax.LiteralNode) and isinstance(argument.value, str):
                    yield from (argument.value, "")


# --- outcomes ---------------------------------------------------------------------------------------------


def _logical(parts: list[Outcome], settling: bool) -> Outcome:
    """Return ``||`` (settled by a true part) or ``&&`` (by a false one) as a function of states."""

    def outcome(states: Sequence[State]) -> State:
        found = [part(states) for part in parts]
        if settling in [each for each in found if isinstance(each, bool)]:
            return settling
        return next((each for each in found if isinstance(each, str)), not settling)

    return outcome


def _conditional(condition: Outcome, yes: Outcome, no: Outcome) -> Outcome:
    def outcome(states: Sequence[State]) -> State:
        found = condition(states)
        return found if isinstance(found, str) else yes(states) if found else no(states)

    return outcome


def _others_of(state: State) -> tuple[bool, ...]:
    return (False, True) if isinstance(state, str) else (not state,)


# --- paths ------------------------------------------------------------------------------------------------


def path_of(node: syntax.Node) -> Path | None:
    """Return the path that a node reads, None if the node is not only a path."""
    members: list[str | int] = []
    while not isinstance(node, syntax.NameNode):
        if isinstance(node, syntax.Select):
            members.append(node.member)
        elif isinstance(node, syntax.IndexNode) and isinstance(node.index, syntax.LiteralNode):
            if not isinstance(node.index.value, str | int):
                return None
            members.append(node.index.value)
        else:
            return None
        node = node.operand
    return None if node.slot is not None else (node.name, *reversed(members))


def _paths(node: syntax.Node) -> Iterator[Path]:
    """Yield the longest paths that a node reads."""
    path = path_of(node)
    if path is not None:
        yield path
    else:
        for child in node.children():
            yield from _paths(child)


def text_of(path: Path) -> str:
    """Return a path in the syntax of rules."""
    text = str(path[0])
    for each in path[1:]:
        is_name = isinstance(each, str) and each.isidentifier()
        text += f".{each}" if is_name else f'["{each}"]' if isinstance(each, str) else f"[{each}]"
    return text


def value_at(values: Any, path: Path) -> Any:
    """Return the value at a path, `ABSENT` if it is missing."""
    for each in path:
        if isinstance(values, Mapping):
            values = values.get(each, ABSENT)
        elif isinstance(values, list | tuple) and isinstance(each, int) and 0 <= each < len(values):
            values = values[each]
        else:
            return ABSENT
    return values


def _changed(values: Any, path: Path, value: Any) -> Any:
    """Return a copy of values with another value at a path."""
    if not path:
        return value
    first, *rest = path
    if isinstance(values, list | tuple) and isinstance(first, int) and 0 <= first < len(values):
        return [*values[:first], _changed(values[first], tuple(rest), value), *values[first + 1 :]]
    inner = values if isinstance(values, Mapping) else {}
    if not rest and value is ABSENT:
        return {key: each for key, each in inner.items() if key != first}
    return {**inner, first: _changed(inner.get(first, {}), tuple(rest), value)}


def _copy(values: Any, into: dict[str, Any], path: Path) -> None:
    """Copy the value at a path: of maps on it only the member on it, lists as a whole."""
    for at, each in enumerate(path):
        if not isinstance(values, Mapping) or each not in values:
            return
        values = values[each]
        key = str(each)
        inner = into.get(key)
        if at == len(path) - 1 or not isinstance(values, Mapping):
            into[key] = values
            return
        if inner is values:  # another path reads all of it
            return
        into = into.setdefault(key, {})


def _overlap(some: Iterable[Path], others: Iterable[Path]) -> bool:
    """Whether a path of some leads through one of the others, or the other way round."""
    return any(one[: len(other)] == other or other[: len(one)] == one for one in some for other in others)


# --- values to try ----------------------------------------------------------------------------------------


def _near(bound: Any) -> Iterator[Any]:
    """Yield the bound of a comparison, and the adjacent values."""
    if isinstance(bound, bool):
        yield from (bound, not bound)
    elif isinstance(bound, int | float):
        yield from (bound, bound + 1, bound - 1)
    elif isinstance(bound, str):
        yield from (bound, f"{bound}x", "")
    else:
        yield bound


def _members(now: Any, bound: Any, *, is_element: bool) -> Iterator[Any]:
    """Yield elements of a list that a path is an element of, or lists with and without an element."""
    if is_element and isinstance(bound, list | tuple | dict):
        numbers = [each for each in bound if isinstance(each, int | float)]
        texts = [each for each in bound if isinstance(each, str)]
        yield from bound
        yield from [max(numbers) + 1] if numbers else []
        yield from [f"{max(texts, key=len)}x"] if texts else []
    elif not is_element and isinstance(now, list | tuple):
        yield [each for each in now if not _is_same(each, bound)]
        yield [*now, bound]


def _sized(now: Any, bound: Any) -> Iterator[Any]:
    """Yield texts or lists whose size is near a number."""
    if isinstance(bound, int) and not isinstance(bound, bool) and 0 <= bound <= LONGEST_SIZE:
        for size in (bound, bound + 1, max(0, bound - 1)):
            if isinstance(now, str):
                yield (now + "x" * size)[:size]
            elif isinstance(now, list | tuple):
                yield ([*now] + [None] * size)[:size]


def _is_same(one: Any, other: Any) -> bool:
    """Whether two values are the same; true and 1 are not."""
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)
