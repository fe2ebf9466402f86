"""The report of the benchmarks: what is committed is what the record gives, and nothing is typed in.

The renderer is shown a small made-up record: servers that are not built, a void row, bars that hold and
bars that are missed. Nothing is measured here.
"""

from __future__ import annotations

import json
import os
import re
import sys
from typing import Any
from xml.etree import ElementTree

import pytest

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.append(os.path.join(REPOSITORY, "benchmarks"))

import drawing  # noqa: E402
import figures  # noqa: E402
import merging  # noqa: E402
import report  # noqa: E402
from record import Record, short  # noqa: E402
from roster import Peer  # noqa: E402
from workloads import ROWS  # noqa: E402
from workloads.w12 import OVER_HTTP, SHAPES  # noqa: E402

ROW = {row.name: row for row in ROWS}
# Two rounds of each peer, or why there are none.
RUNS: dict[str, dict[str, Any]] = {
    "W1": {"c": (5.0, 5.0), "fastrpc": (5.5, 5.3), "mcp": (500.0, 510.0), "rmcp": "void"},
    "W1-two": {"c": (40.0, 40.0), "fastrpc": (16.0, 18.0), "mcp": (600.0, 600.0), "rmcp": "void"},
    "W2": {
        "c": (6e6, 6e6),
        "fastrpc": (4e6, 5e6),
        "fastrpc-async": (1e6, 1e6),
        "mcp": (2500.0, 2500.0),
        "mcp-plain": (2000.0, 2000.0),
        "rmcp": (9e4, 1e5),
    },
    "W4-64k": {"c": (900.0, 900.0), "fastrpc": (1000.0, 1020.0), "mcp": (80.0, 81.0), "rmcp": (300.0, 310.0)},
    "W6": {"c": (6.0, 6.0), "fastrpc": (400.0, 400.0), "mcp": (7e4, 7e4), "rmcp": (200.0, 200.0)},
    "W8": {"bare": (8.0, 8.0), "c": (0.5, 0.6), "fastrpc": (12.0, 12.4), "mcp": (460.0, 470.0)},
    "W9": {"c": (1.0, 1.0), "fastrpc": (17.0, 17.0)},
    "W9-calls": {"c": (0, 0), "fastrpc": "void"},
    "W5-tools-10": {"fastrpc": (0.2, 0.2)},
    "W5-tools-1000": {"fastrpc": (0.21, 0.21)},
    "W12-context": {
        "fastrpc-plain": (5e6, 5e6),
        "fastrpc": (4e6, 4.5e6),
        "mcp": (1900.0, 1900.0),
        "rmcp-pipes": (8e4, 8e4),
    },
    "W12-thread": {"fastrpc-plain": (5e6, 5e6), "fastrpc": (5e4, 5e4), "fastmcp": "void"},
    "eof": {"c": (72, 72), "fastrpc": (72, 72), "mcp": (38, 34)},
}
FURTHER = {"peak_rss_kb": 2048, "list_ns_per_tool": 80.0, "start_ms": 20.5, "parse_error": "yes"}
NOT_BUILT = "not built: no go on this machine"
PAGE = "before\n<!-- report:{} -->\nold\n<!-- /report -->\nbehind\n"


def document(from_wheel: bool = False) -> dict[str, Any]:
    """A record as run.py writes it, of figures that no one measured."""
    rows = []
    for name, by_peer in RUNS.items():
        row = ROW[name]
        runs = {
            peer: [{"void": "a wrong answer"}] if values == "void" else [run(row.figure, v) for v in values]
            for peer, values in by_peer.items()
        }
        peers = [Peer(peer, {}, from_wheel=from_wheel) for peer in runs]
        if row.with_sdks:
            peers.append(Peer("go-sdk", {}, NOT_BUILT))
            runs["go-sdk"] = []
        rows += [figures.slim(figures.summary(row, peer, runs)) for peer in peers]
    return {
        "created": "2026-01-02T03:04:05Z",
        "commit": "0123456789abcdef",
        "changed_files": True,
        "machine": {"processor": "A Processor", "cpus": 2, "load_before": 0.25},
        "versions": {
            "python": "3.11.7 (main)",
            "fastrpc": {"version": "0.1.0", "source": "installed"},
            "mcp": {"version": "2.3.0"},
        },
        "options": {"rounds": 2, "seconds": 0.1, "starts": 5},
        "rows": rows,
    }


def run(figure: str, value: float) -> dict[str, Any]:
    return {**FURTHER, figure: value}


@pytest.fixture
def repository(tmp_path: Any) -> Any:
    """Documents with empty places, and a record."""
    for path, blocks in report.DOCUMENTS.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text("".join(PAGE.format(name) for name in blocks), encoding="utf-8")
    (tmp_path / "record.json").write_text(json.dumps(document()), encoding="utf-8")
    return tmp_path


def rendered(repository: Any, *options: str) -> int:
    code: int = report.main(
        ["--record", str(repository / "record.json"), "--repository", str(repository), *options]
    )
    return code


def line_of(text: str, start: str) -> str:
    return next(line for line in text.splitlines() if line.startswith(start))


# ---------------------------------------------------------------------------------- what is committed


def test_the_committed_tables_and_charts_are_what_the_record_gives(capsys: Any) -> None:
    assert report.main(["--check"]) == 0, capsys.readouterr().out


def test_the_record_stays_small_enough_to_commit() -> None:
    assert os.path.getsize(report.RECORD) < 300_000


def test_every_chart_of_the_folder_is_rendered() -> None:
    folder = os.path.join(REPOSITORY, "benchmarks", "charts")
    with open(report.RECORD, encoding="utf-8") as file:
        record = Record(json.load(file))
    assert sorted(os.listdir(folder)) == sorted(f"{name}.svg" for name in report.charts_of(record))


# ------------------------------------------------------------------------------------------ documents


def test_what_is_beside_the_blocks_is_kept_and_what_was_in_them_is_gone(repository: Any) -> None:
    assert rendered(repository) == 0
    text = (repository / "README.md").read_text(encoding="utf-8")
    assert text.startswith("before\n<!-- report:figures -->\n| ")
    assert text.endswith("<!-- /report -->\nbehind\n")
    assert "old" not in text


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("README.md", "| 5.4 |", "| 4.4 |"),
        ("benchmarks/README.md", "holds", "shines"),
        ("benchmarks/charts/latency.svg", "5.4", "4.4"),
    ],
)
def test_the_check_sees_what_was_typed_in(
    repository: Any, path: str, old: str, new: str, capsys: Any
) -> None:
    assert rendered(repository, "--check") == 1
    assert "is not what the record gives" in capsys.readouterr().out
    assert rendered(repository) == 0
    assert rendered(repository, "--check") == 0
    file = repository / path
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), encoding="utf-8")
    capsys.readouterr()
    assert rendered(repository, "--check") == 1
    assert capsys.readouterr().out.startswith(path)
    assert new in file.read_text(encoding="utf-8"), "a check writes nothing"


def test_a_document_without_its_place_and_a_missing_record_are_errors(repository: Any, capsys: Any) -> None:
    (repository / "README.md").write_text("no place here\n", encoding="utf-8")
    assert rendered(repository) == 1
    assert "README.md: expected <!-- report:figures -->" in capsys.readouterr().err
    (repository / "record.json").unlink()
    assert rendered(repository) == 1
    assert "record.json" in capsys.readouterr().err


# --------------------------------------------------------------------------------------------- tables


def test_the_readmes_table_has_a_figure_or_the_word_for_its_absence() -> None:
    text = report.figures(Record(document()))
    assert line_of(text, "| **fastrpc** |") == "| **fastrpc** | 5.4 | 4.5 M | 12.2 | 2 |"
    assert line_of(text, "| mcp 2.3 (Python) |") == "| mcp 2.3 (Python) | 505 | 2,500 | 465 | 2 |"
    assert line_of(text, "| fastmcp (Python) |") == "| fastmcp (Python) | – | – | – | – |"
    assert len([line for line in text.splitlines() if line.startswith("| ")]) == 2 + 6
    assert "go-sdk" not in text
    assert "Medians of 2 rounds, taken 2026-01-02." in text
    assert "A Processor, 2 cores" in text


def test_a_plain_tool_comes_before_plain_ones_and_a_coroutine_before_coroutines() -> None:
    text = report.peers(Record(document()))
    kinds = [line.split(" | ")[1] for line in text.splitlines() if line.startswith("| ")][2:]
    assert kinds == sorted(kinds, reverse=True)
    assert set(kinds) == {"plain", "async"}
    names = [line.split(" | ")[0].strip("|* ") for line in text.splitlines() if line.startswith("| ")][2:]
    assert (names[0], names[kinds.index("async")]) == ("fastrpc", "fastrpc async")
    assert "not measured yet" in line_of(text, "| fastrpc async")
    without = document()
    without["rows"] = [entry for entry in without["rows"] if entry["peer"] != "fastrpc-async"]
    text = report.peers(Record(without))
    assert "fastrpc async" in text, "an older record has its place"


def test_what_a_tool_costs_as_people_write_it_is_beside_the_same_tools_of_sdks() -> None:
    text = report.shapes(Record(document()))
    assert line_of(text, "| echo, plain") == "| echo, plain | 4.5 M |  | 2,000 | – | – |"
    assert (
        line_of(text, "| echo with a Context")
        == f"| {SHAPES['context'].title} | 4.25 M | 0.85× of 5 M | 1,900 | – | 80 k |"
    )
    assert (
        line_of(text, "| echo on a worker")
        == f"| {SHAPES['thread'].title} | 50 k | 0.01× of 5 M | – | void | – |"
    )
    assert line_of(text, "| ping") == "| ping | not measured yet |  |  |  |  |"
    assert "fastmcp (Python), W12-thread: void, a wrong answer." in text
    shown = [line for line in text.splitlines() if line.startswith("| ")]
    assert len(shown) == 2 + 1 + len(SHAPES) + 1 + len(OVER_HTTP)


def test_every_shape_is_held_to_be_ahead_of_the_best_sdks_echo() -> None:
    record = Record(document())
    line = line_of(report.bars(record), "| W12 |")
    assert "| the slowest shape, W12-thread, to the best SDK's echo (W2) | 50 k calls/s |" in line
    assert line.endswith("| rmcp stdio (Rust) 95 k | 0.526 | ≥ 1× |  | **missed** |")
    assert "W12 against the best SDK (0.526×, at least 1×)" in report.summary(record)
    faster = document()
    for entry in faster["rows"]:
        if (entry["row"], entry["peer"]) == ("W12-thread", "fastrpc"):
            entry["figure"]["median"] = 2e5
    assert line_of(report.bars(Record(faster)), "| W12 |").endswith("| 2.11 | ≥ 1× |  | holds |")
    faster["rows"] = [entry for entry in faster["rows"] if not entry["row"].startswith("W12")]
    assert "| W12 |" not in report.bars(Record(faster))


def test_over_http_every_shape_is_held_to_be_ahead_of_the_best_sdk() -> None:
    found = document()
    for name, by_peer in {
        "W11": {"fastrpc": (9e4, 9e4), "rmcp": (3e4, 3e4), "mcp": (2e3, 2e3)},
        "W12-http-waiting": {"fastrpc-plain": (9e4, 9e4), "fastrpc": (6e4, 6e4), "rmcp": (25e3, 25e3)},
    }.items():
        runs = {peer: [run(ROW[name].figure, value) for value in values] for peer, values in by_peer.items()}
        entries = [figures.slim(figures.summary(ROW[name], Peer(peer, {}), runs)) for peer in runs]
        found["rows"] += entries
    record = Record(found)
    text = report.bars(record)
    assert line_of(text, "| W12-http |").endswith("| rmcp (Rust) 30 k | 2 | ≥ 1× |  | holds |")
    assert line_of(text, "| W12-http-waiting | times").endswith(
        "| rmcp (Rust) 25 k | 2.4 | ≥ 1× |  | holds |"
    )
    assert line_of(text, "| W12 |").endswith("**missed** |"), "rows over HTTP are not taken to W2"


def with_clients() -> dict[str, Any]:
    """The same record with rows of clients."""
    found = document()
    for name, by_peer in {
        "W13-sync": {"load-client": (5.0, 5.0), "fastrpc": (10.0, 11.0), "mcp": (500.0, 520.0)},
        "W13-async": {"load-client": (5.0, 5.0), "fastrpc": (35.0, 35.0), "mcp": (500.0, 500.0)},
        "W13-256": {"load-client": (2e6, 2e6), "fastrpc": (3e5, 3e5), "mcp": (2000.0, 2000.0)},
        "W13-memory-async": {"fastrpc": (4.0, 4.0), "mcp": "void"},
    }.items():
        runs = {
            peer: [{"void": "a wrong answer"}]
            if values == "void"
            else [{**run(ROW[name].figure, value), "p99": 3 * value, "loop": "uvloop"} for value in values]
            for peer, values in by_peer.items()
        }
        found["rows"] += [figures.slim(figures.summary(ROW[name], Peer(peer, {}), runs)) for peer in runs]
    return found


def test_clients_are_in_a_separate_table_each_figure_beside_its_bar() -> None:
    record = Record(with_clients())
    text = report.clients(record)
    assert line_of(text, "| C load client |") == (
        "| C load client | uvloop | 5 | 15 | – | – | 2 M | – | – | – |"
    )
    assert line_of(text, "| **fastrpc**, no event loop |").endswith(
        "| 10.5 | 31.5 | 2.1× (≤ 2.5×: holds) | 48.6× (≥ 40×: holds) | – | – | – | – |"
    )
    assert line_of(text, "| **fastrpc**, in an event loop |").endswith(
        "| 35 | 105 | 7× (≤ 6×: **missed**) | 14.3× | 300 k | 150× (≥ 100×: holds) | 4 | – |"
    )
    assert line_of(text, "| mcp 2.3 (Python) |").endswith("| 500 | 1,500 | 100× | – | 2,000 | – | void | – |")
    assert "mcp 2.3 (Python), W13-memory-async: void, a wrong answer." in text
    assert "load client" not in report.peers(record), "it serves nothing"
    assert line_of(report.bars(record), "| W13-256 | times better than mcp").endswith(
        "| mcp 2.3 (Python) 2,000 | 150 | ≥ 100× | ≥ 200× | holds |"
    )
    assert "W13-async (7×, at most 6×)" in report.summary(record)


def test_clients_that_were_not_measured_have_no_figures() -> None:
    lines = [line for line in report.clients(Record(document())).splitlines() if line.startswith("| ")][2:]
    assert len(lines) == len(report.CLIENTS)
    assert all(set(line.split(" | ")[1:]) <= {"–", "– |"} for line in lines)


def test_published_servers_are_in_a_table_with_what_each_costs_before_and_after() -> None:
    found = document()
    row = ROW["W17-git"]
    further = {"start_ms": 300.0, "list_ms": 4.0, "rss_mb": 60.0}
    runs: dict[str, Any] = {
        "original": [{row.figure: 2000.0, **further}],
        "fastrpc": [{row.figure: 500.0, **further, "start_ms": 150.0}],
    }
    found["rows"] += [figures.slim(figures.summary(row, Peer(peer, {}), runs)) for peer in runs]
    record = Record(found)
    text = report.swapped(record)
    assert line_of(text, "| mcp-server-git |") == (
        "| mcp-server-git | 300 → 150 (0.5×) | 4 → 4 (1×) | 2 → 0.5 (0.25×) | 60 → 60 (1×) |"
    )
    assert line_of(text, "| mcp-server-time |").count("not measured yet") == 4
    assert line_of(report.bars(record), "| W17-git |").endswith(
        "| its own framework 2,000 | 0.25 | ≤ 1× |  | holds |"
    )


def test_each_figure_is_beside_its_bar_and_its_result() -> None:
    text = report.bars(Record(document()))
    assert line_of(text, "| W1 |").endswith(
        "| C reference 5 | 1.08 (1.06 to 1.1) | ≤ 1.15× | ≤ 1.03× | holds |"
    )
    assert line_of(text, "| W1-two |").endswith("| 0.425 (0.4 to 0.45) |  | ≤ 0.5× | reached |")
    assert line_of(text, "| W2 | echo").endswith("| 0.75 (0.667 to 0.833) | ≥ 0.85× | ≥ 1.1× | **missed** |")
    assert "| W2 | times better than the best SDK |  | rmcp stdio (Rust) 95 k | 47.2 (44.4 to 50) |" in text
    assert "| W2 | times better than mcp |  | mcp (Python), plain 2,000 | 2,250 (2,000 to 2,500) |" in text
    assert line_of(text, "| W2 async | echo").endswith("| C reference 6 M | 0.167 |  |  |  |")
    assert "| W2 async | times better than the best SDK |  | mcp 2.3 (Python) 2,500 | 400 | ≥ 1× |" in text
    assert "| W2 async | times better than mcp |  | mcp 2.3 (Python) 2,500 | 400 |  |  |  |" in text
    assert "≥ 1,500× | ≥ 2,500× | holds |" in text
    assert line_of(text, "| W6 | echo").endswith("| ≤ 5,000 µs | ≤ 500 µs | holds, reached |")
    assert line_of(text, "| W6 | times").endswith("| 0.5 | ≥ 1× |  | **missed** |")
    assert line_of(text, "| W9 |").endswith("| 17 MB |  |  | ≤ 16 MB | ≤ 11 MB | **missed** |")
    assert line_of(text, "| W9-calls |").endswith("| void |  |  |  |  | no verdict |")


def test_the_summary_counts_what_holds_and_names_what_does_not() -> None:
    text = report.summary(Record(document()))
    assert "commit `0123456789` with files changed, A Processor, 2 cores, load 0.25 when it began" in text
    assert "**9 of 13 bars hold.** Missed: W2 (0.75×, at least 0.85×), " in text
    assert "W6 against the best SDK (0.5×, at least 1×), W9 (17 MB, at most 16 MB), W12 " in text
    assert "are reached**: W1-two, W6. Not: W1 (1.08×, for 1.03×), " in text
    assert "Not measured yet: W3, W3-256, " in text
    assert "Without a verdict: W8 (start-up counts from a wheel only); W9-calls (a wrong answer)." in text


def test_start_up_has_a_verdict_from_a_wheel_only() -> None:
    assert line_of(report.bars(Record(document())), "| W8 |").endswith("|  |  | none |")
    text = report.bars(Record(document(from_wheel=True)))
    assert line_of(text, "| W8 |").endswith(
        "| python -c pass 8 | 1.52 (1.5 to 1.55) | ≤ 2× | ≤ 1.2× | holds |"
    )


@pytest.mark.parametrize(
    ("value", "bar", "said"),
    [
        (1.03, 1.15, {"bar": 1.15, "holds": True, "goal": 1.03, "reached": True}),
        (1.04, 1.15, {"bar": 1.15, "holds": True, "goal": 1.03, "reached": False}),
        (1.16, 1.15, {"bar": 1.15, "holds": False, "goal": 1.03, "reached": False}),
        (1.0, None, {"goal": 1.03, "reached": True}),
    ],
)
def test_a_bar_and_a_goal_are_judged_apart(value: float, bar: float | None, said: dict[str, Any]) -> None:
    assert figures.verdict(ROW["W1"], value, bar) == said


def test_a_record_keeps_each_rounds_figure_and_nothing_else_of_the_runs() -> None:
    entry = next(entry for entry in document()["rows"] if (entry["row"], entry["peer"]) == ("W1", "fastrpc"))
    assert entry["rounds"] == [5.5, 5.3]
    assert "runs" not in entry


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0"), (0.5494, "0.549"), (5.351, "5.35"), (99.96, "100"), (999.4, "999"), (999.6, "1,000"),
        (2712, "2,710"), (9_999, "10 k"), (82_524, "82.5 k"), (999_400, "999 k"), (4_651_133, "4.65 M"),
    ],
)  # fmt: skip
def test_figures_are_shown_with_three_digits(value: float, shown: str) -> None:
    assert short(value) == shown


# --------------------------------------------------------------------------------------------- charts


def picture(name: str, record: Record | None = None) -> tuple[ElementTree.Element, list[str]]:
    root = ElementTree.fromstring(drawing.svg(report.CHARTS[name](record or Record(document()))))
    return root, [element.text or "" for element in root.iter() if element.tag.endswith("text")]


def bars_of(root: ElementTree.Element) -> list[float]:
    return [
        float(element.get("width", "0"))
        for element in root.iter()
        if element.tag.endswith("rect") and element.get("class") != "page"
    ]


@pytest.mark.parametrize("name", sorted(report.CHARTS))
def test_a_chart_fits_its_page_in_both_colour_schemes(name: str) -> None:
    root, words = picture(name)
    width, height = (float(number) for number in root.get("viewBox", "").split()[2:])
    for element in root.iter():
        if element.tag.endswith("text") and element.get("text-anchor") == "start":
            letter = 8.6 if "title" in element.get("class", "") else 6.9
            assert float(element.get("x", "0")) + letter * len(element.text or "") <= width, element.text
            assert float(element.get("y", "0")) < height
    style = next(element.text or "" for element in root.iter() if element.tag.endswith("style"))
    assert "prefers-color-scheme: dark" in style
    assert next(element.text for element in root.iter() if element.tag.endswith("title"))
    assert not any("None" in word or "nan" in word for word in words)


@pytest.mark.parametrize("name", sorted(report.CHARTS))
def test_the_figures_in_a_title_are_those_of_its_bars(name: str) -> None:
    """A ratio of medians of rounds, above bars that are medians themselves, seemed to contradict them."""
    with open(report.RECORD, encoding="utf-8") as file:
        chart = report.CHARTS[name](Record(json.load(file)))
    texts = [group.heading for group in chart.groups]
    texts += [f"{bar.name} {bar.shown}" for group in chart.groups for bar in group.bars]
    figures_shown = set(" ".join(texts).split())
    for figure in re.findall(r"\d[\d.,]*\d|\d", chart.title):
        assert figure in figures_shown, f"{figure}: {chart.title}"


def test_bars_are_as_long_as_their_figures_and_carry_them() -> None:
    root, words = picture("latency")
    widths = bars_of(root)
    assert len(widths) == 3
    assert widths == sorted(widths)
    assert [word for word in words if word in ("5", "5.4", "505")] == ["5", "5.4", "505"]
    assert words.count("void") == 1
    assert words.count("not built") == 1
    assert min(words.index("void"), words.index("not built")) > words.index("505")
    faster = document()
    entry = next(each for each in faster["rows"] if (each["row"], each["peer"]) == ("W1", "fastrpc"))
    entry["figure"]["median"] = 4.0
    _, words = picture("latency", Record(faster))
    assert words.index("4") < words.index("5")
    assert any(re.search(r"fastrpc 4 µs", word) for word in words)


def test_a_chart_of_rows_that_were_not_measured_says_so() -> None:
    _, words = picture("flight")
    assert words.count("took no part") == 6
    root, words = picture("tools")
    assert words.count("–") == 4
    assert len(bars_of(root)) == 8


# --------------------------------------------------------------------------------------- measured anew


def newer(*names: str, faster: float = 2.0) -> dict[str, Any]:
    """A later run of these rows, all of whose figures are this many times the first's."""
    found = document()
    found |= {"created": "2026-03-04T05:06:07Z", "commit": "fedcba9876543210", "changed_files": False}
    found["options"] = {**found["options"], "rounds": 3}
    found["rows"] = [entry for entry in found["rows"] if entry["row"] in names]
    for entry in found["rows"]:
        if "figure" in entry:
            entry["figure"] = {key: value * faster for key, value in entry["figure"].items()}
            entry["rounds"] = [value * faster for value in entry["rounds"]]
    return found


def test_rows_that_are_measured_anew_take_the_place_of_theirs_and_name_their_run() -> None:
    both = merging.merged(document(), newer("W2", "W12-context"), ROW)
    record, old = Record(both), Record(document())
    assert record.figure("W2", "fastrpc") == 2 * old.figure("W2", "fastrpc")
    assert record.figure("W1", "fastrpc") == old.figure("W1", "fastrpc")
    assert len(both["rows"]) == len(document()["rows"])
    assert record.rows == [name for name in ROW if name in old.rows], "in the order of the suite"
    text = report.summary(record)
    assert "Taken 2026-01-02 at commit `0123456789` with files changed, A Processor, 2 cores" in text
    assert "Later: W2, W12-context, taken 2026-03-04 at commit `fedcba9876`, A Processor, 2 cores" in text
    assert "Medians of 2 to 3 rounds, taken 2026-01-02 and 2026-03-04." in report.figures(record)
    assert json.loads(json.dumps(both)) == both


def test_a_run_whose_rows_were_all_measured_anew_is_forgotten() -> None:
    once = merging.merged(document(), newer("W2"), ROW)
    twice = merging.merged(once, {**newer("W2"), "created": "2026-05-06T00:00:00Z"}, ROW)
    assert [run.day for run in Record(twice).runs] == ["2026-01-02", "2026-05-06"]
    assert "2026-03-04" not in json.dumps(twice)
    everything = newer(*RUNS)
    assert merging.merged(once, everything, ROW) == everything
    rest = newer(*(set(RUNS) - {"W2"}))
    turned = merging.merged(once, {**rest, "created": "2026-05-06T00:00:00Z"}, ROW)
    assert (turned["created"][:10], turned["later"][0]["created"][:10]) == ("2026-03-04", "2026-05-06")
    assert Record(turned).runs[0].rows == {"W2"}


def test_a_row_that_the_suite_has_no_longer_leaves_the_record() -> None:
    suite = {name: row for name, row in ROW.items() if name != "W6"}
    assert "W6" not in Record(merging.merged(document(), newer("W2"), suite)).rows


def test_rows_that_stay_are_judged_by_the_bars_of_today_from_their_own_rounds() -> None:
    old = document()
    for entry in old["rows"]:
        if (entry["row"], entry["peer"]) == ("W2", "fastrpc"):
            before, entry["times_sdks"] = entry["times_sdks"], [{"which": "mcp", "peer": "mcp"}]
    both = merging.merged(old, newer("W1"), ROW)
    after = next(each for each in both["rows"] if (each["row"], each["peer"]) == ("W2", "fastrpc"))
    assert after["times_sdks"] == before


def test_a_row_that_would_lose_a_server_is_named() -> None:
    run = newer("W2", "W1")
    run["rows"] = [entry for entry in run["rows"] if entry["peer"] not in ("rmcp", "go-sdk")]
    assert merging.lost(document(), run) == ["W2 was measured without rmcp, which the record had"]
