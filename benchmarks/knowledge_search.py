"""Measures the search of the knowledge toolset: what it finds, beside plain FTS5, and how fast.

    python benchmarks/knowledge_search.py quality        hit@5, recall@10, MRR of every searcher
    python benchmarks/knowledge_search.py speed          100,000 entries: search, import, 25 writers
    python benchmarks/knowledge_search.py all --write    both, kept in results/ and README.md
    python benchmarks/knowledge_search.py missed NAME    the questions that this searcher does not answer

Needs no network: 395 questions over 5,723 sections of Python's documentation lie in data/knowledge, with
their licence. Every other question is held out: what is tried on the first half is believed where the
second agrees. FASTRPC_BENCHMARK_MODEL names a folder with a model, as `--embeddings-folder` does: then
`quality` also tells by which weights words and meaning find most (ten minutes more); without it what needs
one stays as it was. For speed the sections are put together anew, the same way each time. Searchers take
turns and ratios are taken question by question, so a busy machine harms them little. No part of the guard.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import datetime
import json
import lzma
import multiprocessing
import os
import platform
import random
import re
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

from knowledge_searchers import FUNCTION_WORDS, MODEL, SEARCHERS, words_of  # noqa: E402

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from knowledge_searchers import Entry, Searcher

    Question = tuple[str, frozenset[str]]

DATA = os.path.join(HERE, "data", "knowledge")
RESULTS = os.path.join(HERE, "results", "knowledge_search.json")
README = os.path.join(HERE, "README.md")
ENTRIES = 100_000
ASKED = 200  # questions for the times
GREPPED = 3
WRITERS, WRITES = 25, 20
BY_HAND = "FTS5"
MEASURES = ("hit@5", "recall@10", "MRR")
TIMES = ("p50, ms", "p95, ms", "of FTS5", "1,000 of 10", "import, s", "writes a second")
HALVES = ("tuned", "held out")
KS = (5, 10, 20, 60)
WEIGHTS = tuple(part / 10 for part in range(11))  # of meaning; what words weigh is the rest
LEARNED = "ours, with a model"


def sections() -> list[Entry]:
    with lzma.open(os.path.join(DATA, "sections.jsonl.xz"), "rt", encoding="utf-8") as file:
        return [(one["id"], one["title"], one["text"]) for one in map(json.loads, file)]


def questions() -> list[Question]:
    with open(os.path.join(DATA, "questions.jsonl"), encoding="utf-8") as file:
        return [(one["question"], frozenset(one["entries"])) for one in map(json.loads, file)]


def many(count: int) -> Iterator[Entry]:
    """Entries of one section's title and pieces of two others, as many as are wanted."""
    titles, pieces = [], []
    for _, title, text in sections():
        words = text.split()
        titles.append(title)
        pieces += [" ".join(words[start : start + 40]) for start in range(0, len(words), 40)]
    choice = random.Random(35).choice
    for number in range(count):
        yield str(number), choice(titles), f"{choice(pieces)}\n\n{choice(pieces)}"


def scores(searcher: Searcher, asked: list[Question]) -> dict[str, float]:
    return of_ranks([searcher.search(question, 10) for question, _ in asked], asked)


def of_ranks(ranked: list[list[str]], asked: list[Question]) -> dict[str, float]:
    """How often one of the first five answers, how much is among the first ten, and how far up."""
    hits = recalled = reciprocal = 0.0
    for names, (_, answers) in zip(ranked, asked, strict=True):
        found = [name in answers for name in names[:10]]
        hits += any(found[:5])
        recalled += sum(found) / min(len(answers), 10)
        reciprocal += next((1 / rank for rank, right in enumerate(found, 1) if right), 0.0)
    values = (100 * hits / len(asked), 100 * recalled / len(asked), reciprocal / len(asked))
    return {name: round(value, 3) for name, value in zip(MEASURES, values, strict=True)}


def quality(names: list[str]) -> dict[str, Any]:
    """What each searcher finds; and how words and meaning are best fused, where one of them has a model."""
    entries, asked = sections(), questions()
    found: dict[str, Any] = {"quality": {}}
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            searcher = SEARCHERS[name](os.path.join(folder, "store"))
            searcher.add(entries)
            found["quality"][name] = {half: scores(searcher, asked[at::2]) for at, half in enumerate(HALVES)}
            if name == LEARNED:
                found["fusion"] = fusion(searcher, asked)
            searcher.close()
    return found


def fusion(searcher: Any, asked: list[Question]) -> dict[str, Any]:
    """How much is found by each K and weight of the two orders; and what the best of one half, by hit@5 and
    MRR, finds in the other."""
    from fastrpc.tools.knowledge._search import fusion as fusing

    orders, found, before = both_orders(searcher, asked), [], (fusing.K, fusing.WORDS, fusing.MEANING)
    for k in KS:
        for weight in WEIGHTS:
            fusing.K, fusing.WORDS, fusing.MEANING = k, 1 - weight, weight
            scored = [fusing.fused(*each) for each in orders]
            ranked = [sorted(fused, key=lambda id, fused=fused: -fused[id]) for fused in scored]
            of_halves = {half: of_ranks(ranked[at::2], asked[at::2]) for at, half in enumerate(HALVES)}
            found.append({"k": k, "weight": weight, **of_halves})
    fusing.K, fusing.WORDS, fusing.MEANING = before
    chosen = {}
    for half, other in (HALVES, HALVES[::-1]):
        best = max(found, key=lambda one: (one[half]["hit@5"], one[half]["MRR"]))
        chosen[half] = {"k": best["k"], "weight": best["weight"], **best[other]}
    return {"all": found, "chosen on": chosen}


def both_orders(searcher: Any, asked: list[Question]) -> list[tuple[list[Any], list[Any]]]:
    """What each question finds by words, and what by meaning, the best 50 first."""
    from fastrpc.tools.knowledge._models import meaning_of
    from fastrpc.tools.knowledge._store import readings, vectors
    from fastrpc.tools.knowledge._store.entries import own_numbers
    from fastrpc.tools.knowledge._store.meaning import Place

    place, orders = Place(readings.ENTRIES, ""), []
    with searcher.store.database.reading() as connection:
        own = own_numbers(connection, searcher.reader, "all")
        names = dict(connection.exec_driver_sql("SELECT number, source FROM knowledge_entries").all())
        for question, _ in asked:
            meaning, _ = meaning_of(question)
            near = vectors.nearest(connection, meaning, place, own)
            by_words = super(type(searcher), searcher).search(question, vectors.NEAREST)
            orders.append((by_words, [names[number] for number in near]))
    return orders


def speed(names: list[str]) -> dict[str, dict[str, float]]:
    entries = list(many(ENTRIES))
    asked = random.Random(35).sample([question for question, _ in questions()], ASKED)
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        opened = {}
        for name in names:
            opened[name] = SEARCHERS[name](os.path.join(folder, f"store {len(opened)}"))
            began = time.perf_counter()
            opened[name].add(entries)
            found[name] = {"import, s": time.perf_counter() - began}
        for name, measured in search_times(opened, asked).items():
            found[name] |= measured
        for searcher in opened.values():
            searcher.close()
        for number, name in enumerate(names):
            found[name]["writes a second"] = writes_a_second(name, os.path.join(folder, f"written {number}"))
        found["grep -r"] = grep_times(entries, asked[:GREPPED], os.path.join(folder, "files"))
    return {name: {what: round(value, 3) for what, value in one.items()} for name, one in found.items()}


def search_times(opened: dict[str, Searcher], asked: list[str]) -> dict[str, dict[str, float]]:
    times: dict[str, list[float]] = {name: [] for name in opened}
    large: dict[str, list[float]] = {name: [] for name in opened}
    for question in [*asked[:10], *asked]:  # the first ten warm up
        for name, searcher in opened.items():
            times[name].append(milliseconds(searcher, question, 10))
            large[name].append(milliseconds(searcher, question, 1000))
    found = {}
    for name in opened:
        mine, by_hand, pages = times[name][10:], times[BY_HAND][10:], large[name][10:]
        found[name] = {
            "p50, ms": statistics.median(mine),
            "p95, ms": statistics.quantiles(mine, n=20)[-1],
            "of FTS5": statistics.median(one / other for one, other in zip(mine, by_hand, strict=True)),
            "1,000 of 10": statistics.median(one / other for one, other in zip(pages, mine, strict=True)),
        }
    return found


def milliseconds(searcher: Searcher, question: str, limit: int) -> float:
    began = time.perf_counter()
    searcher.search(question, limit)
    return 1000 * (time.perf_counter() - began)


def writes_a_second(name: str, path: str) -> float:
    """Of 25 processes that write at once, each entry durably in a transaction of its own."""
    SEARCHERS[name](path).close()
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager:
        start = manager.Barrier(WRITERS)
        with concurrent.futures.ProcessPoolExecutor(WRITERS, context) as pool:
            spans = list(pool.map(written, [(name, path, number, start) for number in range(WRITERS)]))
    return WRITERS * WRITES / (max(end for _, end in spans) - min(begin for begin, _ in spans))


def written(job: tuple[str, str, int, Any]) -> tuple[float, float]:
    name, path, number, start = job
    searcher = SEARCHERS[name](path)
    entries = [(f"{number}.{one}", title, text) for one, title, text in many(WRITES)]
    start.wait()
    began = time.time()
    for entry in entries:
        searcher.add([entry])
    ended = time.time()
    searcher.close()
    return began, ended


def grep_times(entries: list[Entry], asked: list[str], folder: str) -> dict[str, float]:
    """Any word of the question in any file, in a folder for every thousand; what it finds has no order."""
    for number, (name, title, text) in enumerate(entries):
        place = os.path.join(folder, str(number // 1000))
        if number % 1000 == 0:
            os.makedirs(place)
        with open(os.path.join(place, name), "w", encoding="utf-8") as file:
            file.write(f"{title}\n\n{text}\n")
    times = []
    for question in asked:
        words = [word for word in words_of(question) if word not in FUNCTION_WORDS]
        began = time.perf_counter()
        subprocess.run(["grep", "-rliwE", "|".join(words), folder], stdout=subprocess.DEVNULL, check=False)
        times.append(1000 * (time.perf_counter() - began))
    return {"p50, ms": statistics.median(times)}


def table(lines: list[list[str]]) -> str:
    head, *body = lines
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *body))


def rendered(results: dict[str, Any]) -> str:
    """What README.md shows of these results."""
    found = [["", *(f"{measure}, {half}" for half in HALVES for measure in MEASURES)]]
    for name, halves in results["quality"].items():
        found.append([name, *(f"{halves[half][measure]:.3g}" for half in HALVES for measure in MEASURES)])
    times = [["", *TIMES]]
    for name, measured in results["speed"].items():
        times.append([name, *(f"{measured[what]:.4g}" if what in measured else "–" for what in TIMES)])
    tried = [["K", *(f"{weight:g}" for weight in WEIGHTS)]]
    for k in KS:
        row = [one for one in results["fusion"]["all"] if one["k"] == k]
        tried.append([str(k), *(" ".join(f"{one[half]['hit@5']:.3g}" for half in HALVES) for one in row)])
    said = [
        f"the best of the half {half}, K {one['k']} and {one['weight']:g}, has hit@5 {one['hit@5']:.3g}, "
        f"recall@10 {one['recall@10']:.3g} and MRR {one['MRR']:.3g} in the other"
        for half, one in results["fusion"]["chosen on"].items()
    ]
    fused = f"hit@5, tuned and held out, by K and by the weight of meaning of 1: {'; '.join(said)}."
    machine = f"{results['cores']} cores, CPython {results['python']}, SQLite {results['sqlite']}"
    taken = f"Taken {results['taken']}, {machine}."
    return "\n\n".join((taken, table(found), fused, table(tried), table(times)))


def filled(page: str, text: str) -> str:
    return re.sub(
        r"(<!-- knowledge-search -->\n).*?(\n<!-- /knowledge-search -->)",
        lambda match: match[1] + text + match[2],
        page,
        flags=re.DOTALL,
    )


def kept() -> dict[str, Any]:
    with open(RESULTS, encoding="utf-8") as file:
        results: dict[str, Any] = json.load(file)
    return results


def write(results: dict[str, Any]) -> None:
    with open(RESULTS, "w", encoding="utf-8") as file:
        json.dump(results, file, indent=1)
        file.write("\n")
    with open(README, encoding="utf-8") as file:
        page = filled(file.read(), rendered(results))
    with open(README, "w", encoding="utf-8") as file:
        file.write(page)


def show_missed(name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        searcher = SEARCHERS[name](os.path.join(folder, "store"))
        searcher.add(sections())
        for question, answers in questions():
            found = searcher.search(question, 5)
            if not answers.intersection(found):
                wanted = ", ".join(sorted(answers))
                print(question, f"  wanted: {wanted}", f"  found: {', '.join(found)}", sep="\n")
        searcher.close()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["quality", "speed", "all", "missed"])
    parser.add_argument("searcher", nargs="*", choices=[[], *SEARCHERS], default=[])
    parser.add_argument(
        "--write", action="store_true", help="what was measured takes the place of what is kept"
    )
    options = parser.parse_args()
    names = list(dict.fromkeys([BY_HAND, *(options.searcher or SEARCHERS)]))
    if not os.environ.get(MODEL):
        names = [name for name in names if name != LEARNED]
    if options.what == "missed":
        for name in options.searcher:
            show_missed(name)
        return
    results: dict[str, Any] = {
        "taken": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
    }
    before = kept()
    results = {**before, **results}
    if options.what in ("quality", "all"):
        measured = quality(names)
        results |= measured | {"quality": before["quality"] | measured["quality"]}
    if options.what in ("speed", "all"):
        results["speed"] = before["speed"] | speed([name for name in names if name != LEARNED])
    print(rendered(results))
    if options.write:
        write(results)


if __name__ == "__main__":
    main()
