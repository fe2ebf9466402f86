"""What the extra `[knowledge]` installs is all that the toolset needs, on a machine without time zones of its
own too: a server that finds nothing else answers every tool, and says of the rest which extra has it."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest
from support.guarded_folder import variables

from fastrpc import Client

tomllib = pytest.importorskip("tomllib", reason="Python 3.11 brings it")
Requirement: Any = pytest.importorskip("packaging.requirements", reason="pip install packaging").Requirement
REPOSITORY = Path(__file__).parents[2]


def installed(extra: str) -> Iterator[str]:
    """Return the names of what is installed with an extra, and with what that needs."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    left = [*project["dependencies"], *project["optional-dependencies"][extra]]
    known = set()
    while left:
        needed = Requirement(left.pop())
        for one in (*needed.extras, ""):
            if (needed.name, one) in known or (needed.marker and not needed.marker.evaluate({"extra": one})):
                continue
            known.add((needed.name, one))
            if not one:
                yield needed.name
            left += _with_extra(distribution(needed.name).requires or (), one)


def _with_extra(requirements: Iterable[str], extra: str) -> list[str]:
    """Return what a distribution requires with one of its extras, "" for none, without their markers."""
    found = []
    for requirement in map(Requirement, requirements):
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
            requirement.marker = None
            found.append(str(requirement))
    return found


def folder_of(extra: str, place: Path) -> Path:
    """Make a folder in which Python finds fastrpc, and what its extra installs, alone."""
    (place / "fastrpc").mkdir(parents=True)
    for each in (REPOSITORY / "fastrpc").iterdir():
        (place / "fastrpc" / each.name).symlink_to(each)
    (place / "fastrpc" / "tools").symlink_to(REPOSITORY / "tools")
    for name in installed(extra):
        found = distribution(name)
        tops = {file.parts[0] for file in found.files or () if file.parts[0] not in ("..", "__pycache__")}
        for top in tops:
            if not (place / top).exists():
                (place / top).symlink_to(str(found.locate_file(top)))
    return place


def test_the_toolset_needs_nothing_but_what_its_extra_installs(tmp_path: Path) -> None:
    place = folder_of("knowledge", tmp_path / "installed")
    serve = [sys.executable, "-S", "-m", "fastrpc", "serve", "fastrpc.tools.knowledge"]
    alone = variables(tmp_path, PYTHONPATH=str(place), PYTHONTZPATH="", PYTHONDONTWRITEBYTECODE="1")
    with Client.sync(serve, env=alone, cwd=str(tmp_path)) as client:
        for name, arguments in (
            ("datetime.now", {"timezone": "Europe/Berlin"}),
            ("datetime.now", {}),
            ("memory.write", {"content": "Ada runs in Paris."}),
            ("memory.search", {"query": "running"}),
            ("memory.traverse", {"entity": "Ada"}),
            ("document.add", {"name": "a.md", "content": "# Running\n\nAda runs."}),
            ("document.query", {"query": "running"}),
            ("insights.query", {"metric": "calls", "chart": True}),
            ("workflow.list", {}),
            ("agent.list", {}),
        ):
            done = client.call_tool(name, arguments)
            assert not done.is_error, f"{name}: {done.text}"
        for name, arguments, extra in (
            ("document.add", {"name": "a.html", "content": "<html><p>Ada"}, "documents"),
            ("workflow.runs", {}, "workflows"),
        ):
            said = client.call_tool(name, arguments).text
            assert re.search(rf"pip install ['\"]fastrpc-mcp\[{extra}\]['\"]", said), said
