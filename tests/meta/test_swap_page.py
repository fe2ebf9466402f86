"""docs/compat.md shows what `make swap` has recorded, of every server in its list."""

from __future__ import annotations

import pytest
from swap import report
from swap.roster import entries


def test_the_page_is_what_the_results_give() -> None:
    with open(report.PAGE, encoding="utf-8") as file:
        page = file.read()
    assert report.filled(page, report.results()) == page, "run: python tests/swap/run.py --render"


def test_every_server_of_the_list_was_tried_as_it_is_pinned() -> None:
    pytest.importorskip("tomllib", reason="reads the file with the standard library of 3.11")
    assert [one["package"] for one in report.results()] == [entry.package for entry in entries()]


def test_every_server_is_pinned_with_its_framework_and_gets_a_request() -> None:
    pytest.importorskip("tomllib", reason="reads the file with the standard library of 3.11")
    found = entries()
    assert len({entry.name for entry in found}) == len(found) >= 55
    for entry in found:
        assert "==" in entry.package, entry.name
        assert any(one.startswith("mcp==") for one in entry.also), entry.name
        assert entry.calls, entry.name
