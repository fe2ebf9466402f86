"""Changes one place of a module at a time and says whether the module's tests see it: `make mutate`.

    python tests/mutation/run.py                            # 60 mutants, by the seed of the record
    python tests/mutation/run.py --seed 7 --mutants 20      # others
    python tests/mutation/run.py --only shell --show        # of some modules, only shown

The mutants are made by Cosmic Ray's operators; which of the thousands, the seed says. Each is tried by the
files of tests that `modules.py` names for its module, in a separate tree; the checkout is never changed. A
mutant is killed where a test fails or crashes, or where they take ten times as long as without it. One that
no test can see is shown equivalent in `modules.py`. Exit code 1 below the bar of 90 %. For Linux and macOS;
it runs in an environment of its own (`make mutate` makes it), the tests in the project's. Costs some minutes.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import difflib
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names
from modules import EQUIVALENT, MODULES, is_equivalent

REPOSITORY = Path(__file__).resolve().parent.parent.parent
PYTHON = str(REPOSITORY / ".venv" / "bin" / "python")
SEED, MUTANTS, BAR = 34, 60, 0.9
LEAST_SECONDS, TIMES_AS_LONG = 60.0, 10
KILLED, ALIVE, EQUAL = "killed", "alive", "equivalent"
LIKELY = re.compile(
    r"core/(AddNot|ExceptionReplacer|NumberReplacer|RemoveDecorator|Replace(And|Or|True|False|Break|Continue)With\w+"
    r"|ReplaceBinaryOperator_(Add_Sub|Sub_Add|Mul_Div|Div_Mul|BitOr_BitAnd|BitAnd_BitOr)|ZeroIterationForLoop"
    r"|ReplaceComparisonOperator_(Eq_NotEq|NotEq_Eq|Lt_LtE|LtE_Lt|Gt_GtE|GtE_Gt|In_NotIn|NotIn_In|Is_IsNot|IsNot_Is)"
    r"|ReplaceUnaryOperator_\w+)"
)
"""Of the operators those whose changes somebody could make by mistake: `==` becomes `!=`, but not `<`."""
SEEN = (1, 2)  # pytest's exit codes for a test that fails, and for a file that cannot be imported
PIN = "import fastrpc  # before `python -m` puts the working directory, and the checkout, first\n"


@dataclasses.dataclass(frozen=True)
class Mutant:
    module: str
    operator: str
    occurrence: int
    line: int

    def source(self) -> str:
        """The module's source with this change."""
        changed = mutate_code(text_of(self.module), get_operator(self.operator)(), self.occurrence)
        assert changed is not None
        return str(changed)

    def diff(self) -> list[str]:
        """The lines that go, with ``-``, and those that come, with ``+``."""
        lines = difflib.ndiff(text_of(self.module).splitlines(), self.source().splitlines())
        return [f"{line[0]} {line[2:].strip()}" for line in lines if line[0] in "+-"]


def text_of(module: str) -> str:
    return (REPOSITORY / module).read_text(encoding="utf-8")


def lines_without_effect(text: str) -> set[int]:
    """The lines that only type checkers read: annotations, and what is below ``if TYPE_CHECKING``."""
    found: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        for part in parts_for_type_checkers(node):
            found |= set(range(part.lineno, (part.end_lineno or part.lineno) + 1))
    return found


def parts_for_type_checkers(node: ast.AST) -> list[ast.expr | ast.stmt]:
    parts: list[ast.expr | ast.stmt | None] = []
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            parts = [node.returns, *(each.annotation for each in every)]
        case ast.AnnAssign():
            parts = [node.annotation]
        case ast.If(test=ast.Name(id="TYPE_CHECKING")) | ast.Assign(targets=[ast.Name(id="TYPE_CHECKING")]):
            parts = [node]
    return [part for part in parts if part is not None]


def mutants_of(module: str) -> list[Mutant]:
    """Every change that Cosmic Ray knows for a module."""
    text = text_of(module)
    nodes, dull, found = list(ast_nodes(get_ast(text))), lines_without_effect(text), []
    for name in sorted(filter(LIKELY.fullmatch, operator_names())):
        operator = get_operator(name)
        if not operator.arguments():
            places = [place for node in nodes for place in operator().mutation_positions(node)]
            found += [
                Mutant(module, name, number, start[0])
                for number, (start, _) in enumerate(places)
                if start[0] not in dull
            ]
    return found


def chosen(seed: int, most: int, only: str) -> list[Mutant]:
    """As many of all modules' mutants, by chance; a module has as good a chance as any other."""
    chance, drawn = random.Random(seed), []
    pools = {module: mutants_of(module) for module in sorted(MODULES) if only in module}
    for _ in range(most):
        pool = pools[chance.choice(sorted(name for name, pool in pools.items() if pool))]
        drawn.append(pool.pop(chance.randrange(len(pool))))
    return sorted(drawn, key=lambda each: (each.module, each.line))


def tree(folder: Path, module: str, source: str) -> None:
    """Make a folder for PYTHONPATH: links to the package, but for the one file."""
    place, real = folder, REPOSITORY
    parts = Path(module).parts
    for part, following in pairwise(parts):
        place, real = place / part, real / part
        place.mkdir()
        for name in os.listdir(real):
            if name != following:
                (place / name).symlink_to(real / name)
    (folder / module).write_text(source, encoding="utf-8")
    (folder / "sitecustomize.py").write_text(PIN, encoding="ascii")


def tried(module: str, source: str, seconds: float) -> int | None:
    """Return pytest's exit code for a module with this source; None where it took longer."""
    with tempfile.TemporaryDirectory(prefix="fastrpc-mutant-") as name:
        tree(Path(name), module, source)
        command = [PYTHON, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *MODULES[module].split()]
        environment = {**os.environ, "PYTHONPATH": name, "PYTHONDONTWRITEBYTECODE": "1", "CI": ""}
        run = subprocess.Popen(
            command,
            cwd=REPOSITORY,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            return run.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(run.pid, 9)
            run.wait()
            return None


def seconds_for(module: str) -> float:
    """How long a mutant of a module may take; ends the run where its tests fail without any change."""
    began = time.monotonic()
    if code := tried(module, text_of(module), 3600):
        sys.exit(f"run.py: {MODULES[module]}: exit code {code} for {module} as it is")
    return max(LEAST_SECONDS, TIMES_AS_LONG * (time.monotonic() - began))


def outcome(mutant: Mutant, seconds: float) -> str:
    if is_equivalent(mutant.module, mutant.diff()):
        return EQUAL
    code = tried(mutant.module, mutant.source(), seconds)
    if code is not None and code > 0 and code not in SEEN:  # below 0: a signal has ended it, a crash
        sys.exit(f"run.py: pytest's exit code is {code} for {mutant}")
    return ALIVE if code == 0 else KILLED


def outdated() -> list[tuple[str, str, str]]:
    """The changes that were shown equivalent, of lines that a module no longer has."""
    lines = {module: {line.strip() for line in text_of(module).splitlines()} for module in MODULES}
    return [each for each in EQUIVALENT if each[1].removeprefix("- ") not in lines[each[0]]]


def main() -> int:
    parser = argparse.ArgumentParser(description="Try whether tests see what is changed.")
    parser.add_argument("--seed", type=int, default=SEED, help="which mutants (%(default)s)")
    parser.add_argument("--mutants", type=int, default=MUTANTS, help="how many (%(default)s)")
    parser.add_argument("--only", default="", help="of modules with this in their path")
    parser.add_argument("--show", action="store_true", help="show them, and try none")
    options = parser.parse_args()
    if found := outdated():
        sys.exit(f"modules.py: no such line: {found}")
    mutants = chosen(options.seed, options.mutants, options.only)
    if options.show:
        for each in mutants:
            print(f"{each.module}:{each.line}", *each.diff(), sep="\n    ")
        return 0
    modules = sorted({each.module for each in mutants})
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        limits = dict(zip(modules, threads.map(seconds_for, modules), strict=True))
        came = []
        for each, word in zip(
            mutants, threads.map(lambda each: outcome(each, limits[each.module]), mutants), strict=True
        ):
            came.append(word)
            print(f"{word:10} {each.module}:{each.line}", flush=True)
            if word == ALIVE:
                print(*(f"    {line}" for line in each.diff()), sep="\n", flush=True)
    share = 1 - came.count(ALIVE) / len(came)
    counts = ", ".join(f"{came.count(word)} {word}" for word in (KILLED, EQUAL, ALIVE))
    print(f"seed {options.seed}: {len(came)} mutants of {len(modules)} modules: {counts}: {share:.0%}")
    return int(share < BAR)


if __name__ == "__main__":
    sys.exit(main())
