"""The threshold of the garbage collector in a process that serves."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from fastrpc.garbage import NEW_CONTAINERS, collect_seldom


@pytest.fixture(autouse=True)
def thresholds() -> Iterator[tuple[int, ...]]:
    before = gc.get_threshold()
    yield before
    gc.set_threshold(*before)


@pytest.mark.parametrize(
    ("given", "becomes"), [(700, NEW_CONTAINERS), (2_000, NEW_CONTAINERS), (50_000, 50_000), (0, 0)]
)
def test_only_a_threshold_that_is_lower_is_raised(given: int, becomes: int) -> None:
    gc.set_threshold(given)
    collect_seldom()
    assert gc.get_threshold()[0] == becomes


def test_a_collector_that_is_switched_off_stays_off() -> None:
    gc.disable()
    try:
        collect_seldom()
        assert not gc.isenabled()
    finally:
        gc.enable()
