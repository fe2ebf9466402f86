"""What is counted of calls: quantiles within their error, names within their bound, a readable table."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastrpc import diagnostics
from fastrpc.telemetry.observers import Observers
from fastrpc.telemetry.statistics import (
    MOST_NAMES,
    MOST_UNPROVEN,
    OTHERS,
    UNKNOWN,
    Histogram,
    Statistics,
    StatisticsPrinter,
    duration_text,
)

DURATIONS = st.floats(0.1, 6e10)  # 100 ns to 17 hours


@dataclass
class Call:
    """What `Statistics` looks at of a CallRecord."""

    name: str = "add"
    outcome: str = "ok"
    total_us: float = 10.0
    kind: str = "tool"


def taken(*calls: Call) -> Statistics:
    statistics = Statistics()
    statistics.take(calls)  # type: ignore[arg-type]
    return statistics


def rows(statistics: Statistics) -> dict[str, list[str]]:
    """The cells of each line of the table, by name; columns are two spaces apart at least."""
    lines = [line.split() for line in statistics.table().splitlines()[1:]]
    return {cells[1]: cells for cells in lines}


@given(st.lists(DURATIONS, min_size=1, max_size=300), st.sampled_from([0.0, 0.5, 0.9, 0.99, 1.0]))
def test_a_quantile_is_within_5_percent_of_the_exact_one(durations: list[float], share: float) -> None:
    histogram = Histogram()
    for duration in durations:
        histogram.add(duration)
    exact = sorted(durations)[max(1, ceil(share * len(durations))) - 1]  # nearest rank
    assert histogram.quantile(share) == pytest.approx(exact, rel=0.05)
    assert min(durations) <= histogram.quantile(share) <= max(durations)


def test_durations_beyond_the_histogram_are_counted_at_its_ends() -> None:
    histogram = Histogram()
    assert histogram.quantile(0.5) == 0
    for duration in (-1.0, 0.0, 1e-9, 1e30):
        histogram.add(duration)
    assert histogram.count == 4
    assert histogram.quantile(0.5) <= 2**-3
    assert histogram.quantile(1.0) >= 2**35


def test_the_table_has_calls_errors_by_outcome_and_quantiles() -> None:
    calls = [Call(total_us=us) for us in range(1, 101)]
    failed = [Call(outcome=outcome) for outcome in ("tool_error", "timeout", "tool_error", "input_required")]
    resource = Call("docs://a", total_us=2_500_000, kind="resource")
    found = taken(resource, *calls, *failed, Call("multiply", total_us=1234))
    assert found.calls == 106
    lines = found.table().splitlines()
    assert lines[0].split() == ["kind", "name", "calls", "errors", "p50", "p99", "not", "ok"]
    assert lines[0].startswith("kind      name      calls  errors  ")
    assert lines[1].startswith("tool      add         104       3  ")
    assert lines[1].endswith("2 tool_error, 1 timeout, 1 input_required")
    assert lines[2].split() == ["tool", "multiply", "1", "0", "1.23", "ms", "1.23", "ms"]
    assert lines[3].split() == ["resource", "docs://a", "1", "0", "2.50", "s", "2.50", "s"]
    assert Statistics().table() == ""


@pytest.mark.parametrize(
    ("duration_us", "text"),
    [
        (0.1234, "0.12 µs"),
        (9.996, "10.0 µs"),
        (99.96, "100 µs"),
        (999.7, "1.00 ms"),
        (12_345, "12.3 ms"),
        (5e9, "5000 s"),
    ],
)
def test_a_duration_is_shown_with_three_digits(duration_us: float, text: str) -> None:
    assert duration_text(duration_us) == text


def test_names_that_nothing_has_are_counted_together() -> None:
    found = rows(taken(*(Call(f"made up {n}", "unknown") for n in range(10_000)), Call()))
    assert set(found) == {UNKNOWN, "add"}
    assert found[UNKNOWN][2:4] == ["10,000", "10,000"]


def test_distinct_names_are_bounded_and_made_up_ones_do_not_push_out_real_ones() -> None:
    statistics = taken(
        *(Call(f"made-up-{n}", outcome) for n in range(5_000) for outcome in ("invalid", "protocol_error")),
        *(Call(f"tool{n}") for n in range(100)),
    )
    found = rows(statistics)
    assert len(found) <= MOST_UNPROVEN + 100 + 1
    assert all(found[f"tool{n}"][2] == "1" for n in range(100))
    statistics.take([Call(f"docs://{n}", kind="resource") for n in range(5_000)])  # type: ignore[misc]
    found = rows(statistics)
    assert len(found) <= MOST_NAMES + 4
    assert OTHERS in found
    assert statistics.calls == 15_100


def test_a_name_whose_first_call_was_invalid_keeps_its_row_and_makes_room_for_others() -> None:
    calls = [Call(f"tool{n}", outcome) for n in range(100) for outcome in ("invalid", "ok", "ok")]
    found = rows(taken(*calls))
    assert len(found) == 100
    assert found["tool99"][2:4] == ["3", "1"]


def test_names_are_masked_escaped_and_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICE_TOKEN", "hunter2-hunter2")
    table = taken(Call("docs://x?key=hunter2-hunter2"), Call("two\nlines\x1b[2J"), Call("long" * 100)).table()
    assert "hunter2" not in table
    assert "docs://x?key=****" in table
    assert "two\\nlines\\x1b[2J" in table
    assert len(table.splitlines()) == 4
    assert max(map(len, table.splitlines())) < 120


def test_text_goes_to_standard_error_and_waits_for_a_reader_only_so_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import os

    monkeypatch.setattr(diagnostics, "WAIT_SECONDS", 0.05)
    read, write = os.pipe()
    with open(read, "rb"), open(write, "w") as pipe:
        monkeypatch.setattr("sys.stderr", pipe)
        assert diagnostics.write_text("one µs\n")
        assert os.read(read, 100) == "one µs\n".encode()
        os.set_blocking(write, False)
        try:
            while True:
                os.write(write, bytes(65536))
        except BlockingIOError:
            pass
        os.set_blocking(write, True)
        assert not diagnostics.write_text("nobody reads this\n")


def test_draining_hands_over_what_there_is_though_more_keeps_coming() -> None:
    class WithoutThread(Observers):
        def _begin(self) -> None:
            pass

    observers = WithoutThread()
    recorder = observers.recorder

    def write(count: int) -> None:
        for _ in range(count):
            recorder.write("tool", "t", b"1", "", "ok", 1, 2, 3, 4, 5)

    batches: list[int] = []

    def observe(records: object) -> None:
        batches.append(len(records))  # type: ignore[arg-type]
        assert len(batches) < 100
        write(1024)

    observers.functions.append(observe)
    write(3000)
    observers.drain()
    assert 3000 <= sum(batches) <= 8192


def test_draining_waits_for_an_observer_that_hangs_only_so_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastrpc.telemetry.observers.DRAIN_SECONDS", 0.05)
    observers = Observers()
    with observers._draining:
        observers.drain()


def test_where_there_is_no_sigusr1_the_end_prints_all_the_same(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("fastrpc.telemetry.statistics.SIGNAL", 0)
    observers = Observers()
    report = StatisticsPrinter(observers)
    observers.recorder.write("tool", "add", b"1", "", "timeout", 1, 2, 3, 4, 5)
    report.end()
    report.end()
    printed = capsys.readouterr().err
    assert printed.startswith("fastrpc: calls: 1 (process ")
    assert printed.endswith("1 timeout\n")
    assert printed.count("fastrpc:") == 1
    assert observers.functions == []


def test_records_that_were_dropped_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    observers = Observers()
    report = StatisticsPrinter(observers)
    with observers._draining:
        for _ in range(8192 + 7):
            observers.recorder.write("tool", "add", b"1", "", "ok", 1, 2, 3, 4, 5)
    report.end()
    assert ": 8,192 (process " in (printed := capsys.readouterr().err)
    assert "; 7 more were dropped, uncounted" in printed
