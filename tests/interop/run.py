"""Tries `fastrpc.Client` against servers that no one here wrote, over each transport, in each version.

    python tests/interop/run.py                  everything (`make interop`)
    python tests/interop/run.py --only go        the servers in whose folder, SDK, name or package this occurs
    python tests/interop/run.py --record         and write what was run into results.json and docs/interop.md
    python tests/interop/run.py --render         write docs/interop.md from results.json, run nothing

The servers come from their registries in pinned versions (`packages`), and what each must answer is in
`roster`. Every version is pinned in turn: the server refuses it, answers with another one, or every step of
`conversation` is taken in it. Some are tried through `Server.proxy` too. A step that fails and that no note
of the roster explains fails the run; a server that is not installed is named, and fails it in CI. Takes about
ten minutes once all is installed.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from interop import packages  # noqa: E402
from interop.conversation import ALWAYS, SECONDS, STATELESS, NotOffered, Step, Talk  # noqa: E402
from interop.report import RESULTS, render, results  # noqa: E402
from interop.roster import SERVERS, THROUGH_THE_PROXY, Server, Way  # noqa: E402
from support.ports import free_port, is_open  # noqa: E402
from support.skips import in_ci  # noqa: E402
from support.waiting import eventually  # noqa: E402

from fastrpc import Server as OwnServer  # noqa: E402
from fastrpc.errors import ClientError, HttpStatusError, RemoteError, RequestTimeout  # noqa: E402
from fastrpc.protocol.versions import LATEST_SESSION_VERSION, VERSIONS  # noqa: E402

LAST_WORDS = 2000


@dataclass
class Outcome:
    """The result of one server over one transport in one version."""

    server: str
    package: str
    sdk: str
    transport: str
    version: str
    came_of_it: str = ""
    """`spoken`, `refused`, `other version`, `not installed`, or `failed` if there was no session."""
    detail: str = ""
    steps: dict[str, str] = field(default_factory=dict)
    """By name: ``ok``, ``not offered``, ``note: `` or ``FAILED: `` with the reason."""

    @property
    def is_well(self) -> bool:
        return self.came_of_it != "failed" and not any(
            each.startswith("FAILED") for each in self.steps.values()
        )


# ---------------------------------------------------------------------------------------- its process


@contextlib.contextmanager
def folder_with_a_note() -> Iterator[str]:
    """A folder for servers of files and of git, with a note in it."""
    with tempfile.TemporaryDirectory() as folder:
        place = os.path.join(os.path.realpath(folder), "served")
        os.mkdir(place)
        with open(os.path.join(place, "note.txt"), "w", encoding="utf-8") as file:
            file.write("a note\n")
        subprocess.run(["git", "init", "--quiet", place], check=True, timeout=30)
        yield place


def filled(text: str, **values: str) -> str:
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", value)
    return text


@contextlib.contextmanager
def served(way: Way, folder: str) -> Iterator[str]:
    """Run a server over HTTP; yield its URL once it takes connections. Raises AssertionError."""
    port = str(free_port())
    command = [filled(word, port=port, folder=folder) for word in way.command()]
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=environment_of(way, folder, port),
            start_new_session=True,
        )
        try:
            eventually(lambda: is_open(int(port)) or process.poll() is not None)
            if process.poll() is not None:
                said.seek(0)
                words = said.read().decode("utf-8", "replace")[-LAST_WORDS:]
                raise AssertionError(f"it ended with {process.returncode}: {words}")
            yield f"http://127.0.0.1:{port}{way.path}"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextlib.contextmanager
def without_stderr() -> Iterator[None]:
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def environment_of(way: Way, folder: str, port: str = "") -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FASTRPC_")}
    added = {name: filled(value, port=port, folder=folder) for name, value in way.environment.items()}
    return {**kept, **added}


# ---------------------------------------------------------------------------------------------- a run


def tried(server: Server, only_version: str, is_direct: bool) -> Iterator[Outcome]:
    """Yield the result of a server over each transport in each version, and through the proxy."""
    versions = [version for version in VERSIONS if only_version in version]
    for way in server.ways:
        spoken = []
        for version in versions:
            outcome = asyncio.run(outcome_of(server, way, version))
            if outcome.came_of_it == "spoken":
                spoken.append(version)
            yield outcome
        for version in versions if server.through_proxy and not is_direct else ():
            # To a server that it starts, and to one without 2026-07-28, a proxy speaks an older version.
            may_be_stateless = STATELESS in spoken and not way.is_stdio
            behind = version if version != STATELESS or may_be_stateless else LATEST_SESSION_VERSION
            yield asyncio.run(outcome_of(server, way, version, behind))


async def outcome_of(server: Server, way: Way, version: str, behind: str = "") -> Outcome:
    """Return the result of one run; with `behind` through a proxy, which speaks that version to the
    server."""
    transport = f"{way.transport}, {THROUGH_THE_PROXY}" if behind else way.transport
    outcome = Outcome(server.name, server.package, server.sdk, transport, version)
    try:
        packages.install(server.folder)
    except packages.NotBuilt as reason:
        outcome.came_of_it, outcome.detail = "not installed", str(reason)
        return outcome
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(folder_with_a_note())
        options: dict[str, object] = {}
        if way.is_stdio:
            target: object = [filled(word, folder=folder) for word in way.command()]
            options = {"cwd": folder, "env": environment_of(way, folder)}
        else:
            try:
                target = stack.enter_context(served(way, folder))
            except AssertionError as error:
                outcome.came_of_it, outcome.detail = "failed", str(error)
                return outcome
        if behind:
            stack.enter_context(without_stderr())  # a proxy passes on what the server behind it writes there
            if not way.is_stdio:
                options["protocol_version"] = behind
            target, options = OwnServer.proxy(target, name="proxy", **options), {}
        elif way.is_stdio:
            options["stderr"] = False
        talk = Talk(target, folder, version=version, **options)
        await converse(outcome, server, talk, behind or version)
    return outcome


async def converse(outcome: Outcome, server: Server, talk: Talk, spoken: str) -> None:
    """Connect and take all steps that a server has in the version that it speaks; the result of it goes into
    the outcome."""
    try:
        await asyncio.wait_for(talk.client.connect(), 2 * SECONDS)
    except (ClientError, OSError, asyncio.TimeoutError) as error:
        outcome.came_of_it = "refused" if is_refusal(error) else "failed"
        outcome.detail = f"{type(error).__name__}: {error}"
        return
    try:
        if talk.client.version != outcome.version:
            outcome.came_of_it, outcome.detail = "other version", talk.client.version
            return
        outcome.came_of_it = "spoken"
        for step in (*ALWAYS, *server.steps):
            if not step.versions or spoken in step.versions:
                found = await taken(outcome, server, talk, step)
                if outcome.steps.get(step.name, "ok") == "ok":  # some are taken twice, with other arguments
                    outcome.steps[step.name] = found
    finally:
        await asyncio.wait_for(talk.client.close(), 2 * SECONDS)


async def taken(outcome: Outcome, server: Server, talk: Talk, step: Step) -> str:
    """Take one step; return the result of it."""
    try:
        await asyncio.wait_for(step.take(talk), 2 * SECONDS)
    except NotOffered:
        return "not offered"
    except Exception as error:
        for note in server.notes:
            if note.explains(step.name, outcome.transport, outcome.version):
                return f"note: {note.text}"
        return f"FAILED: {type(error).__name__}: {error}"
    return "ok"


def is_refusal(error: Exception) -> bool:
    """Whether a server has said that it does not speak a version or has no such method, or says nothing to
    the first request of 2026-07-28."""
    is_silent = isinstance(error, RequestTimeout) and "server/discover" in str(error)
    return isinstance(error, (RemoteError, HttpStatusError)) or is_silent or "does not speak" in str(error)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--only", metavar="TEXT", default="", help="in a server's folder, SDK, name or package"
    )
    parser.add_argument("--version", metavar="VERSION", default="", help="only this one")
    parser.add_argument("--direct", action="store_true", help="not through the proxy")
    parser.add_argument("--record", action="store_true", help="write results.json and docs/interop.md")
    parser.add_argument("--render", action="store_true", help="write docs/interop.md from results.json")
    options = parser.parse_args()
    if options.render:
        render()
        return 0
    chosen = [one for one in SERVERS if options.only in f"{one.folder} {one.sdk} {one.name} {one.package}"]
    if not chosen:
        parser.error("--only names no server")
    outcomes = []
    for server in chosen:
        for outcome in tried(server, options.version, options.direct):
            outcomes.append(outcome)
            print(line_of(outcome), flush=True)
    if options.record:
        record(outcomes, is_whole=not (options.only or options.version or options.direct))
        render()
    failing = [one for one in outcomes if not one.is_well or (in_ci() and one.came_of_it == "not installed")]
    print(f"{len(outcomes)} runs, {len(failing)} failing")
    return 1 if failing else 0


def record(outcomes: list[Outcome], is_whole: bool) -> None:
    """Write all outcomes, or these in the place of the earlier ones of the same runs."""
    found = [asdict(one) for one in outcomes]
    if not is_whole:
        later = {key_of(one): one for one in found}
        found = [later.pop(key_of(one), one) for one in results()] + list(later.values())
    with open(RESULTS, "w", encoding="utf-8") as file:
        json.dump(found, file, indent=1, ensure_ascii=False)
        file.write("\n")


def key_of(outcome: dict[str, object]) -> tuple[object, ...]:
    return tuple(outcome[member] for member in ("server", "package", "transport", "version"))


def line_of(outcome: Outcome) -> str:
    head = f"{outcome.sdk}: {outcome.server}, {outcome.transport}, {outcome.version}: {outcome.came_of_it}"
    if outcome.detail:
        head += f" ({outcome.detail:.300})"
    if outcome.steps:
        well = [name for name, found in outcome.steps.items() if found == "ok"]
        head += f", {len(well)} of {len(outcome.steps)} steps"
    others = [f"    {name}: {found:.400}" for name, found in outcome.steps.items() if found != "ok"]
    return "\n".join([head, *others])


if __name__ == "__main__":
    began = time.monotonic()
    code = main()
    print(f"took {time.monotonic() - began:.0f} s")
    sys.exit(code)
