"""Runs public servers on their own framework and, with nothing but their imports swapped, on fastrpc.

    python tests/swap/run.py                  everything (`make swap`)
    python tests/swap/run.py --only git       the servers in whose name or framework this occurs
    python tests/swap/run.py --record         and write what was found into results.json and docs/compat.md
    python tests/swap/run.py --render         write docs/compat.md from results.json, run nothing
    python tests/swap/run.py --show           print every difference, not only how many there are

`servers.toml` has the servers, pinned, and the requests that each gets; `installing` gets them from the
registry. Each is started twice on its own framework and twice by ``fastrpc swap --run``;
`fastrpc.swap.comparison` says what differs, and what of it is so by choice. A server that does not
start, or differs in more, fails the run if it did not do so in the recorded one. One after the other, as
times are measured: about a quarter of an hour once all is installed. Needs CPython 3.11 or later.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import os
import re
import shlex
import sys
import tempfile
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from swap.installing import CACHE, NotInstalled, fastrpc_for, programs_of  # noqa: E402
from swap.observing import ENVIRONMENT, run_server  # noqa: E402
from swap.report import BY_CHOICE, DIFFERENT, NOT_STARTED, RESULTS, SAME, render, results  # noqa: E402
from swap.roster import Entry, entries  # noqa: E402

from fastrpc.swap.comparison import Difference, differences, real  # noqa: E402

NOT_INSTALLED, NO_ORIGINAL = "not installed", "original does not start"
MEASURED = ("start_ms", "list_ms", "call_ms", "rss_mb")
MOST_SHOWN, LONGEST = 12, 400
REFUSED = re.compile(
    r"validation error|unknown (tool|prompt|resource)|(field|property|argument)s? required|missing required"
    r"|is a required property|not found|-3260[12]",
    re.IGNORECASE,
)
"""In the answers by which frameworks refuse requests for unknown names, or with arguments that do not fit."""
LISTS = ("tools", "resources", "resourceTemplates", "prompts")
WHOLE = ("instructions", "serverInfo", "capabilities", "protocolVersion")


def tried(entry: Entry, fastrpc: list[str]) -> tuple[dict[str, Any], list[Difference]]:
    """Run one server on both; return what goes into the results, and all differences."""
    found: dict[str, Any] = {
        "name": entry.name,
        "package": entry.package,
        "framework": entry.framework,
        "on": [one for one in entry.also if one.startswith(("mcp==", "fastmcp=="))],
        "python": entry.python,
    }
    try:
        programs = programs_of(entry)
        swap = [*(fastrpc or fastrpc_for(entry.python)), "swap", "--run", "--"]
    except NotInstalled as reason:
        return {**found, "verdict": NOT_INSTALLED, "failure": str(reason)}, []
    folder = os.path.join(tempfile.gettempdir(), "fastrpc-swap", entry.name)  # below no one's repository
    served = os.path.join(CACHE, "logs", f"{entry.name}.served")
    command, env = entry.filled(folder, programs)
    placed = entry.placed(folder)

    def run(words: list[str], log: str) -> dict[str, Any]:
        os.makedirs(os.path.join(CACHE, "logs"), exist_ok=True)
        path = os.path.join(CACHE, "logs", f"{entry.name}.{log}")
        return run_server(placed, words, {**ENVIRONMENT, "FASTRPC_SWAP_REPORT": served, **env}, folder, path)

    original, again = run(command, "original"), run(command, "original")
    if original.get("failure") or again.get("failure"):
        reason = original.get("failure") or again["failure"]
        return {**found, "verdict": NO_ORIGINAL, "failure": reason}, []
    found["counts"] = {name: len(original[name]) for name in ("tools", "resources", "prompts")}
    found["requests"] = len(original["answers"])
    found["reached"] = sum(map(reaches_code, original["answers"]))
    with contextlib.suppress(FileNotFoundError):
        os.unlink(served)
    swapped = run([*swap, *command], "swapped")
    if not swapped.get("failure") and not os.path.exists(served):
        swapped["failure"] = "it has imported neither fastmcp nor mcp"
    if swapped.get("failure"):
        return {**found, "verdict": NOT_STARTED, "failure": swapped["failure"]}, []
    found["original"] = measured(original, again)
    found["swapped"] = measured(swapped, run([*swap, *command], "swapped"))
    all_found = differences(steady(original, again), swapped)
    faults = real(all_found)
    found["verdict"] = verdict(all_found)
    found["choices"] = dict(collections.Counter(one.reason for one in all_found if one.reason))
    found["kinds"] = dict(collections.Counter(kind_of(one.place) for one in faults))
    found["differences"] = [shown(one) for one in faults[:MOST_SHOWN]]
    return found, all_found


def steady(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """The observation of the first run, with the answers of the second as the last ones: one that is not the
    same in both (a time, an id) says nothing."""
    pairs = zip(first["answers"], second["answers"], strict=True)
    answers = [{**one, "last": other.get("result", other.get("error"))} for one, other in pairs]
    return {**first, "answers": answers}


def measured(first: dict[str, Any], second: dict[str, Any]) -> dict[str, float]:
    """The smaller figure of two runs: the first one may have compiled and read files."""
    figures = ((name, [each[name] for each in (first, second) if each.get(name)]) for name in MEASURED)
    return {name: round(min(found), 3) for name, found in figures if found}


def reaches_code(answer: dict[str, Any]) -> bool:
    """Whether an answer comes from the server's own code: its framework has not refused the request."""
    said = json.dumps(answer.get("error") or answer.get("result"))
    is_refused = "error" in answer or (answer.get("result") or {}).get("isError")
    return not (is_refused and REFUSED.search(said))


def verdict(found: list[Difference]) -> str:
    if real(found):
        return DIFFERENT
    return BY_CHOICE if found else SAME


def kind_of(place: str) -> str:
    """What a difference is about, without a name: ``tools: add: inputSchema.properties.a`` is about an input
    schema, ``tool add: error text`` about an error's text."""
    head, *rest = place.split(": ")
    if not rest:
        return head if head.split(".")[0] in WHOLE else "answer"
    if head not in LISTS:
        return re.split(r"[.\[]", rest[-1])[0]
    return re.split(r"[.\[]", rest[1])[0] if len(rest) > 1 else f"{head}, missing or added"


def shown(one: Difference) -> dict[str, Any]:
    """A difference as it is recorded: its values cut."""
    found = one.as_json()
    for side in ("original", "swapped"):
        text = json.dumps(found.get(side), ensure_ascii=False)
        if len(text) > LONGEST:
            found[side] = text[:LONGEST] + "…"
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", metavar="TEXT", default="", help="in a server's name or framework")
    parser.add_argument("--record", action="store_true", help="write results.json and docs/compat.md")
    parser.add_argument("--render", action="store_true", help="write docs/compat.md from results.json")
    parser.add_argument("--show", action="store_true", help="print every difference")
    parser.add_argument(
        "--fastrpc", metavar="COMMAND", default="", help="swap with it, not with this checkout"
    )
    options = parser.parse_args()
    if options.render:
        render()
        return 0
    chosen = [one for one in entries() if options.only.lower() in f"{one.name} {one.framework}".lower()]
    if not chosen:
        parser.error("--only names no server")
    before = {one["name"]: one["verdict"] for one in results()}
    outcomes, worse = [], []
    for entry in chosen:
        outcome, found = tried(entry, shlex.split(options.fastrpc))
        outcomes.append(outcome)
        print(line_of(outcome), flush=True)
        for one in found if options.show else ():
            print("   ", json.dumps(shown(one), ensure_ascii=False))
        if is_worse(outcome["verdict"], before.get(entry.name, "")):
            worse.append(entry.name)
        if options.record:
            record(outcome)
    if options.record:
        render()
    count = collections.Counter(one["verdict"] for one in outcomes)
    print(", ".join(f"{number} {name}" for name, number in count.most_common()))
    if worse:
        print("worse than recorded: " + ", ".join(worse))
    return 1 if worse else 0


def is_worse(verdict: str, before: str) -> bool:
    """Whether a verdict is worse than the recorded one. One that is not there says nothing of fastrpc."""
    rank = {NOT_STARTED: 0, DIFFERENT: 1, BY_CHOICE: 2, SAME: 2}
    return verdict in rank and before in rank and rank[verdict] < rank[before]


def record(outcome: dict[str, Any]) -> None:
    """Write one outcome in the place of the earlier one; those of servers that left the list go."""
    found = {one["name"]: one for one in [*results(), outcome]}
    kept = [found[entry.name] for entry in entries() if entry.name in found]
    with open(RESULTS, "w", encoding="utf-8") as file:
        json.dump(kept, file, indent=1, ensure_ascii=False)
        file.write("\n")


def line_of(outcome: dict[str, Any]) -> str:
    head = f"{outcome['name']} ({outcome['framework']}): {outcome['verdict']}"
    if outcome.get("failure"):
        return f"{head}: {outcome['failure']:.300}"
    kinds = [f"{number} {kind}" for kind, number in outcome.get("kinds", {}).items()]
    times = [outcome[side].get("start_ms", 0) for side in ("original", "swapped")]
    if not outcome.get("reached", 1):
        kinds.append("no request reaches its code")
    return f"{head}, start {times[0]:.0f} to {times[1]:.0f} ms" + (f"; {', '.join(kinds)}" if kinds else "")


if __name__ == "__main__":
    sys.exit(main())
