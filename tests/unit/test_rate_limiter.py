"""Rate limits: no stretch of time as long as the window has more requests, over all processes."""

from __future__ import annotations

import os
import threading
import time

import pytest

from fastrpc._core.rate_limiter import RateTable

HOUR_NS = 3_600_000_000_000
MS_NS = 1_000_000


def test_as_many_as_there_may_be_are_allowed_at_once_and_the_next_says_how_long_it_has_to_wait() -> None:
    limit = RateTable().limit("ada", HOUR_NS, 3)
    assert [limit.take() for _ in range(3)] == [0, 0, 0]
    assert 0.99 * HOUR_NS < limit.take() <= 1.06 * HOUR_NS


def test_what_is_refused_takes_nothing_and_what_is_given_back_can_be_taken_again() -> None:
    limit = RateTable().limit("ada", HOUR_NS, 2)
    assert (limit.take(), limit.take()) == (0, 0)
    assert all(limit.take() > 0 for _ in range(10))
    limit.give_back()
    assert limit.take() == 0
    assert limit.take() > 0


def test_no_stretch_as_long_as_the_window_has_more_requests_than_allowed() -> None:
    window_ns, allowed = 40 * MS_NS, 8
    limit, taken = RateTable().limit("ada", window_ns, allowed), []
    while len(taken) < 10 * allowed:
        before = time.monotonic_ns()
        if limit.take() == 0:
            taken.append((before, time.monotonic_ns()))
    for first, last in zip(taken, taken[allowed:], strict=False):
        assert last[1] - first[0] >= window_ns


def test_a_request_that_waits_as_long_as_asked_is_allowed() -> None:
    limit = RateTable().limit("ada", 20 * MS_NS, 2)
    for _ in range(10):
        while wait := limit.take():
            time.sleep(wait / 1e9)
            assert limit.take() == 0


def test_a_key_has_one_limit_whoever_asks_for_it_and_keys_have_separate_limits() -> None:
    table = RateTable()
    assert table.limit("ada", HOUR_NS, 1).take() == 0
    assert table.limit("ada", HOUR_NS, 1).take() > 0
    assert table.limit("grace", HOUR_NS, 1).take() == 0


def test_processes_that_were_forked_later_share_the_limit() -> None:
    limit = RateTable().limit("ada", HOUR_NS, 1000)
    reading, writing = os.pipe()
    children = []
    for _ in range(4):
        child = os.fork()
        if child == 0:
            allowed = sum(limit.take() == 0 for _ in range(800))
            os.write(writing, b"%d\n" % allowed)
            os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    os.close(writing)
    assert 1000 <= sum(map(int, os.read(reading, 1000).split())) <= 1003
    os.close(reading)


def test_threads_take_no_more_than_there_is() -> None:
    limit = RateTable().limit("ada", HOUR_NS, 500)
    allowed = []

    def take() -> None:
        allowed.append(sum(limit.take() == 0 for _ in range(300)))

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(allowed) == 500


def test_a_table_that_is_full_of_limits_in_use_allows_no_further_key() -> None:
    table = RateTable(64)
    taken = [table.limit(f"caller {number}", HOUR_NS, 1).take() for number in range(2000)]
    assert 32 <= taken.count(0) <= 64
    assert all(wait == HOUR_NS // 20 for wait in taken if wait)


def test_a_limit_whose_window_has_passed_makes_room_for_others() -> None:
    table = RateTable(64)
    for number in range(500):
        limit = table.limit(f"caller {number}", 1000, 1)
        while limit.take():
            pass


@pytest.mark.parametrize("cells", [0, 63, 65, 100])
def test_the_number_of_cells_is_a_power_of_two(cells: int) -> None:
    with pytest.raises(ValueError, match="expected a power of two from 64 on"):
        RateTable(cells)


@pytest.mark.parametrize(("window", "count"), [(999, 1), (HOUR_NS, 0), (-1, 1), (HOUR_NS, 1 << 31)])
def test_a_rate_that_is_none_is_refused(window: int, count: int) -> None:
    with pytest.raises(ValueError, match="out of range"):
        RateTable().limit("ada", window, count)
