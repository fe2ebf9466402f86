"""No test that runs beside others puts an upper bound on how long something took: a machine can be busy.

Looked for in the sources: an assertion that what the clock says, or a name that was made of what it said, is
below something that is not made of the clock itself. What a function called `cost` or `ratio` returns counts
as said by a clock, and is looked for in every comparison. So is a loop that looks so many times, with a pause
between, whether something has come about: its pauses are a deadline. Two forms are no such bound and are let
through: a `deadline` that is seconds away and only says that waiting has an end (at least 5 s, where the
number can be seen), and what is compared with the clock on both sides, since both grow on a busy machine.
What is marked `alone` may hold such a bound; a helper may not, for whoever calls it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent.parent
CLOCK = re.compile(
    r"\b((monotonic|perf_counter|process_time|thread_time)(_ns)?|time\.time|loop(\(\))?\.time)\(\)"
)
MEASURED = re.compile(r"(?<![a-z])(costs?|ratios?)(_of)?\(")
NAMES = re.compile(r"monotonic|perf_counter|process_time|thread_time|\.time\b|cost|ratio|sleep\(")
"""Where none of them occurs no clock is read, and nothing has to be parsed."""
LEAST_SECONDS = 5.0  # of a deadline

Function = ast.FunctionDef | ast.AsyncFunctionDef


def is_alone(function: Function) -> bool:
    return any("mark.alone" in ast.unparse(decorator) for decorator in function.decorator_list)


def functions(tree: ast.Module) -> Iterator[Function]:
    """The outermost ones that do not run alone: those inside them belong to them."""
    for node in tree.body:
        for each in node.body if isinstance(node, ast.ClassDef) else [node]:
            if isinstance(each, Function) and not is_alone(each):
                yield each


def assigned(function: Function) -> Iterator[tuple[str, str]]:
    """Each name and what is put into it."""
    for node in ast.walk(function):
        targets, value = [], None
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        elif isinstance(node, ast.NamedExpr | ast.AnnAssign | ast.AugAssign):
            targets, value = [node.target], node.value
        elif (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "append"
        ):
            targets, value = [node.func.value], node.args[0]
        if value is None:
            continue
        for target in targets:
            for name in ast.walk(target):
                if isinstance(name, ast.Name):
                    yield name.id, ast.unparse(value)


class Clocked:
    """The names in a function that the clock is in."""

    def __init__(self, function: Function, constants: dict[str, str]) -> None:
        self.moments: set[str] = set()  # what the clock said
        self.spans: set[str] = set()  # how long something took
        self.measured: set[str] = set()  # of these, what another function has measured
        self.deadlines: dict[str, float] = {}  # and the seconds until then, where they can be seen
        defaults = defaults_of(function)
        values = [*assigned(function)]
        for _ in range(4):  # from name to name
            for name, value in values:
                if self.is_measured(value):
                    self.measured.add(name)
                if self.is_span(value):
                    self.spans.add(name)
                elif self.mentions(value):
                    self.moments.add(name)
                if found := re.fullmatch(rf"[\w.()]*{CLOCK.pattern} \+ (?P<seconds>[\w.]+)", value):
                    seconds = defaults.get(found["seconds"], found["seconds"])
                    seconds = constants.get(seconds, seconds)
                    visible = re.fullmatch(r"[\d.]+", seconds)
                    self.deadlines[name] = float(seconds) if visible else LEAST_SECONDS

    def mentions(self, source: str) -> bool:
        return bool(CLOCK.search(source) or MEASURED.search(source)) or has(source, self.moments | self.spans)

    def is_span(self, source: str) -> bool:
        return (
            self.is_measured(source) or has(source, self.spans) or (" - " in source and self.mentions(source))
        )

    def is_measured(self, source: str) -> bool:
        return bool(MEASURED.search(source)) or has(source, self.measured)

    def is_bounded(self, low: str, high: str) -> bool:
        """Return whether `low < high` says that something was over in time."""
        if high in self.deadlines:
            return self.deadlines[high] < LEAST_SECONDS
        return bool(CLOCK.search(low) or self.is_span(low)) and not self.mentions(high)


def constants_of(tree: ast.Module) -> dict[str, str]:
    return {
        ast.unparse(node.targets[0]): ast.unparse(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
    }


def defaults_of(function: Function) -> dict[str, str]:
    positional = [*function.args.posonlyargs, *function.args.args]
    named = positional[len(positional) - len(function.args.defaults) :]
    return {
        name.arg: ast.unparse(default) for name, default in zip(named, function.args.defaults, strict=True)
    }


def has(source: str, names: set[str]) -> bool:
    return any(re.search(rf"\b{name}\b", source) for name in names)


def bounds(test: ast.expr) -> Iterator[tuple[str, str]]:
    """Each lower and higher side of the comparisons in an assertion."""
    for node in ast.walk(test):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            for operator, left, right in zip(node.ops, sides, sides[1:], strict=False):
                if isinstance(operator, ast.Lt | ast.LtE):
                    yield ast.unparse(left), ast.unparse(right)
                elif isinstance(operator, ast.Gt | ast.GtE):
                    yield ast.unparse(right), ast.unparse(left)


def seconds_of_looks(node: ast.For) -> float | None:
    """Return how long a loop pauses at most that ends early when it has found something; None of others."""
    looks = re.fullmatch(r"range\(([\d_]+)\)", ast.unparse(node.iter))
    inner = [each for part in node.body for each in ast.walk(part)]
    calls = [ast.unparse(each) for each in inner if isinstance(each, ast.Call)]
    pauses = [float(found[1]) for each in calls if (found := re.fullmatch(r"[\w.]*sleep\(([\d.]+)\)", each))]
    if looks is None or not pauses or not any(isinstance(each, ast.Break | ast.Return) for each in inner):
        return None
    return int(looks[1]) * max(pauses)


def found_in(source: str) -> list[str]:
    """The functions that do not run alone with an upper bound on time, and the bounds."""
    if not NAMES.search(source):
        return []  # without parsing it, which takes long
    found, tree = [], ast.parse(source)
    constants = constants_of(tree)
    for name in (node.module for node in tree.body if isinstance(node, ast.ImportFrom)):
        if (helper := TESTS / f"{(name or '').replace('.', '/')}.py").exists():
            constants = {**constants_of(ast.parse(helper.read_text(encoding="utf-8"))), **constants}
    lines = source.splitlines()
    for function in functions(tree):
        if not NAMES.search("\n".join(lines[function.lineno - 1 : function.end_lineno])):
            continue
        clocked = Clocked(function, constants)
        for node in ast.walk(function):
            if isinstance(node, ast.Assert):
                found += [
                    f"{function.name}: {low} < {high}"
                    for low, high in bounds(node.test)
                    if clocked.is_bounded(low, high)
                ]
            elif isinstance(node, ast.For) and (seconds := seconds_of_looks(node)):
                found += [f"{function.name}: {ast.unparse(node.iter)}"] * (seconds < LEAST_SECONDS)
            elif isinstance(node, ast.If):
                found += [
                    f"{function.name}: {low} < {high}"
                    for pair in bounds(node.test)
                    for low, high in (pair, pair[::-1])
                    if clocked.is_measured(low) and not clocked.mentions(high)
                ]
    return found


def test_no_test_that_runs_beside_others_bounds_the_time_that_something_takes() -> None:
    found = []
    for path in sorted(TESTS.rglob("*.py")):
        if "node_modules" not in path.parts:
            name = path.relative_to(TESTS).as_posix()
            found += [f"{name}: {each}" for each in found_in(path.read_text(encoding="utf-8"))]
    assert not found, "\n".join(found)


PLANTED = """
import time, pytest
SHORT = 2.0
{mark}
def test_it():
    async def conversation():
{body}
    run(conversation)
"""


@pytest.mark.parametrize(
    ("body", "is_found"),
    [
        ("began = time.monotonic(); work(); assert time.monotonic() - began < 2", True),
        ("began = time.monotonic(); work(); assert 0.1 < time.monotonic() - began <= LIMIT", True),
        ("began = time.perf_counter(); work(); took = time.perf_counter() - began; assert took < 2", True),
        ("began = loop.time(); work(); assert 2 > loop.time() - began", True),
        ("began = time.time(); took = []; took.append(time.time() - began); assert max(took) < 2", True),
        ("deadline = time.monotonic() + 0.5\n        while on(): assert time.monotonic() < deadline", True),
        ("deadline = loop().time() + SHORT\n        while on(): assert loop().time() < deadline", True),
        ("deadline = time.monotonic() + 20\n        while on(): assert time.monotonic() < deadline", False),
        ("began = time.monotonic(); work(); assert time.monotonic() - began > 0.1", False),
        ("began = time.monotonic(); work(); assert count() < 5 + 15 * (time.monotonic() - began)", False),
        ("began = time.time(); work(); assert began + 30 <= due() <= time.time() + 30", False),
        ("assert costs.best_cost(line) / ordinary < 5", True),
        ("ratio = ratio_of(line)\n        if ratio > 5: over.append(line)", True),
        ("began = time.monotonic(); assert best_cost(line) < 5 * best_cost(ordinary)", False),
        ("for _ in range(400):\n            if done: break\n            await asyncio.sleep(0.01)", True),
        ("for _ in range(4000):\n            if done: break\n            await asyncio.sleep(0.01)", False),
        ("for _ in range(40):\n            look()\n            await asyncio.sleep(0.01)", False),
    ],
)
def test_a_bound_is_found_where_one_is_planted(body: str, is_found: bool) -> None:
    indented = f"        {body}"
    assert bool(found_in(PLANTED.format(mark="", body=indented))) is is_found
    assert not found_in(PLANTED.format(mark="@pytest.mark.alone", body=indented))
