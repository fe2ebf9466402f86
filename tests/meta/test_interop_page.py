"""docs/interop.md shows what `make interop` has recorded, and nothing that was recorded there failed."""

from __future__ import annotations

import pytest
from interop import report

from fastrpc.protocol.versions import VERSIONS


def test_the_page_is_what_the_results_give() -> None:
    with open(report.PAGE, encoding="utf-8") as file:
        page = file.read()
    assert report.filled(page, report.results()) == page, "run: python tests/interop/run.py --render"


def test_no_step_failed_and_every_version_was_tried_everywhere() -> None:
    for key, runs in report.grouped(report.results(), "server", "package", "transport").items():
        assert [run["version"] for run in runs] == list(VERSIONS), key
        for run in runs:
            assert run["came_of_it"] in ("spoken", "refused", "other version"), run
            wrong = {name: found for name, found in run["steps"].items() if found.startswith("FAILED")}
            assert not wrong, (key, run["version"], wrong)


@pytest.mark.parametrize("sdk", ["Python 1", "Python 2", "TypeScript v1", "TypeScript v2", "Go 1", "Rust 3"])
def test_each_official_sdk_was_spoken_to_over_stdio_and_http(sdk: str) -> None:
    spoken = {
        run["transport"]
        for run in report.results()
        if run["sdk"].startswith(sdk) and run["came_of_it"] == "spoken"
    }
    assert {"stdio", "Streamable HTTP"} <= spoken


def test_a_cell_counts_what_was_offered_and_points_at_notes() -> None:
    steps = {"a": "ok", "b": "not offered", "c": "note: Slow."}
    notes: list[str] = ["Other."]
    assert report.cell({"came_of_it": "spoken", "steps": steps}, notes) == "1 of 2 [2]"
    assert notes == ["Other.", "Slow."]
    assert report.cell({"came_of_it": "refused", "steps": {}, "detail": "x"}, notes) == "refused"
    assert report.cell({"came_of_it": "failed", "steps": {}, "detail": "gone"}, notes) == "failed gone"
