"""Rate limits: the generic cell rate algorithm, one state for all processes that were forked later."""

from __future__ import annotations

import os
import threading

import pytest

from fastrpc._core.rate_limiter import RateTable

HOUR_NS = 3_600_000_000_000


def test_a_burst_is_allowed_at_once_and_the_next_request_says_how_long_it_has_to_wait() -> None:
    limit = RateTable().limit("ada", HOUR_NS, 3)
    assert [limit.take() for _ in range(3)] == [0, 0, 0]
    wait = limit.take()
    assert 0.9 * HOUR_NS < wait <= HOUR_NS
    assert limit.take() <= wait


def test_what_is_refused_takes_nothing_and_what_is_given_back_can_be_taken_again() -> None:
    limit = RateTable().limit("ada", HOUR_NS, 1)
    assert limit.take() == 0
    waits = [limit.take() for _ in range(10)]
    assert all(0 < wait <= HOUR_NS for wait in waits)
    limit.give_back()
    assert limit.take() == 0


def test_time_that_passes_allows_requests_again() -> None:
    limit = RateTable().limit("ada", 1, 1)
    assert all(limit.take() == 0 for _ in range(1000))


def test_a_key_has_one_limit_whoever_asks_for_it_and_keys_have_limits_of_their_own() -> None:
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
    assert sum(map(int, os.read(reading, 1000).split())) == 1000
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
    assert all(wait == HOUR_NS for wait in taken if wait)


def test_a_limit_whose_time_has_passed_makes_room_for_others() -> None:
    table = RateTable(64)
    assert all(table.limit(f"caller {number}", 1, 1).take() == 0 for number in range(10_000))


@pytest.mark.parametrize("cells", [0, 63, 65, 100])
def test_the_number_of_cells_is_a_power_of_two(cells: int) -> None:
    with pytest.raises(ValueError, match="expected a power of two from 64 on"):
        RateTable(cells)


@pytest.mark.parametrize(("interval", "burst"), [(0, 1), (1, 0), (-1, 1), (HOUR_NS, 1 << 61)])
def test_a_rate_that_is_none_is_refused(interval: int, burst: int) -> None:
    with pytest.raises(ValueError, match="out of range"):
        RateTable().limit("ada", interval, burst)
