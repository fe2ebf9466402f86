"""The contracts toolset on an engine that a command starts: a child that does one thing at a time, and ends.

The server is a real one; the engine is a stand-in that plays the fault (`support.standin_engine`).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Coroutine, Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from support.bridged import ADDRESS, READS, SECONDS, SOURCES, TOKEN, Bridged, deployment, in_loop, on_stage
from support.child_processes import gone, is_alive
from support.standin_engine import (
    CHAIN,
    COUNTER_SOURCE,
    StdioEngine,
    answers,
    artifact,
    cuts,
    drops,
    fails,
    loses,
    refuses,
    says,
    waits,
    writes,
)
from support.waiting import until

FAULTS = [drops(), loses(), cuts()]
CALLS = {**READS, "compile": {"sources": SOURCES}}
MINE = {"id": "mine", "rpc_url": "http://127.0.0.1:1", "chain_id": 99}


async def works_again(session: Bridged, verb: str = "compile") -> None:
    """Call until it is done: how long a child takes to start is not what such a test is about."""
    deadline = time.monotonic() + 20
    while not (await session.envelope(verb, **CALLS[verb]))["ok"]:
        assert time.monotonic() < deadline


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[StdioEngine]:
    engine = StdioEngine(tmp_path / "engine")
    yield engine
    for pid in engine.pids():
        gone(pid)  # none outlives its server


class Shared:
    """A stand-in and a server that is bridged to it, for tests whose state others do not see."""

    def __init__(self, folder: Path) -> None:
        self.engine = StdioEngine(folder / "engine")
        self.session = Bridged(folder, self.engine.setting)
        self._loop = asyncio.new_event_loop()

    def __enter__(self) -> Shared:
        self._loop.run_until_complete(self.session.client.connect())
        return self

    def __exit__(self, *error: Any) -> None:
        self._loop.run_until_complete(self.session.client.close())
        self._loop.close()

    def run(self, test: Coroutine[Any, Any, None]) -> None:
        """Run a test, with an engine that nothing has been asked of."""
        self.engine.forget()
        self._loop.run_until_complete(asyncio.wait_for(test, SECONDS))


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    with Shared(tmp_path_factory.mktemp("stage")) as stage:
        yield stage
        pids = stage.engine.pids()
    for pid in pids:
        gone(pid)


# --- a session --------------------------------------------------------------------------------------------


@in_loop
async def test_every_verb_is_done_by_one_child(tmp_path: Path, engine: StdioEngine) -> None:
    async with Bridged(tmp_path, engine.setting) as session:
        assert engine.pids() == [], "it is started by the first call"
        assert (await session.data("compile", sources=SOURCES))["artifacts"][0]["name"] == "Counter"
        assert (await session.data("test", sources=SOURCES))["passed"] == 1
        to = (await session.data("deploy", **deployment()))["address"]
        await session.data("call", to=to, chain_id=CHAIN, contract="Counter", method="set", args=[9])
        simulated = await session.data("simulate", to=to, chain_id=CHAIN, data="0x3fa4f245")
        assert int(simulated["result"], 16) == 9
        lookup = await session.data("registry_lookup", idempotency_key="k", chain_id=CHAIN)
        assert (lookup["found"], lookup["address"]) == (True, to)
        assert (await session.data("chain_register", **MINE))["id"] == "mine"
        assert "mine" in [each["id"] for each in (await session.data("chain_list"))["chains"]]
        assert len(engine.pids()) == 1


@on_stage
async def test_integers_in_arguments_keep_every_digit(stage: Shared) -> None:
    engine, session = stage.engine, stage.session
    most = 2**256 - 1
    await session.data("deploy", **{**deployment("most"), "constructor_args": [most]})
    (sent,) = [each for each in engine.asked if each["method"] == "tachyon_deploy"]
    assert sent["params"]["constructor_args"] == [str(most)]


@on_stage
async def test_a_failure_of_the_engine_is_one_though_it_does_not_say_so(stage: Shared) -> None:
    """It never sets isError for an envelope that is not ok."""
    engine, session = stage.engine, stage.session
    engine.on("tachyon_compile", fails("COMPILER_FORGE_FAILED", "no", details={"line": 3}))
    error = await session.error("compile", sources=SOURCES)
    expected = {"code": "COMPILER_FORGE_FAILED", "message": "no", "retry": False, "details": {"line": 3}}
    assert error == expected


@on_stage
async def test_parameters_that_the_engine_cannot_read_are_reported(stage: Shared) -> None:
    engine, session = stage.engine, stage.session
    engine.on("tachyon_compile", refuses(-32602, "sources: what is this"))
    error = await session.error("compile", sources=SOURCES)
    assert error["code"] in ("INVALID_REQUEST", "ENGINE_PROTOCOL")
    assert "sources: what is this" in error["message"]
    await session.data("compile", sources=SOURCES)


# --- the child --------------------------------------------------------------------------------------------


@in_loop
async def test_a_token_is_not_in_the_environment_of_the_child(tmp_path: Path, engine: StdioEngine) -> None:
    async with Bridged(tmp_path, engine.setting, token=TOKEN) as session:
        await session.data("chain_list")
        for pid in engine.pids():
            with open(f"/proc/{pid}/environ", "rb") as environ, open(f"/proc/{pid}/cmdline", "rb") as cmdline:
                assert TOKEN.encode() not in environ.read() + cmdline.read()


@in_loop
async def test_the_child_ends_with_the_server(tmp_path: Path, engine: StdioEngine) -> None:
    async with Bridged(tmp_path, engine.setting) as session:
        await session.data("chain_list")
        (pid,) = engine.pids()
    await until(lambda: not is_alive(pid))


@in_loop
async def test_the_child_ends_with_a_server_that_was_killed(tmp_path: Path, engine: StdioEngine) -> None:
    """Even in the middle of a compile."""
    async with Bridged(tmp_path, engine.setting) as session:
        engine.on("tachyon_compile", waits())
        compiling = asyncio.ensure_future(session.data("compile", sources=SOURCES))
        await until(engine.methods)
        await session.data("chain_list")
        pids = engine.pids()
        assert len(pids) == 2
        session.kill()
        await until(lambda: not any(map(is_alive, pids)))
        await asyncio.gather(compiling, return_exceptions=True)


@pytest.mark.parametrize("command", ["no-such-program-4711", "sh -c true", "sh -c 'echo hello'", "'"])
@in_loop
async def test_a_command_that_is_not_an_engine_is_reported(command: str, tmp_path: Path) -> None:
    async with Bridged(tmp_path, f"stdio:{command}") as session:
        error = await session.error("compile", sources=SOURCES)
        assert error["code"] in ("ENGINE_UNAVAILABLE", "ENGINE_PROTOCOL")


@in_loop
async def test_an_engine_that_does_not_begin_is_left_after_the_time(
    tmp_path: Path, engine: StdioEngine
) -> None:
    engine.on("initialize", waits())
    async with Bridged(tmp_path, engine.setting, engine_seconds="1") as session:
        assert (await session.error("compile", sources=SOURCES))["code"] in (
            "ENGINE_TIMEOUT",
            "ENGINE_UNAVAILABLE",
        )
        engine.release()
        await works_again(session)


# --- its end in the middle --------------------------------------------------------------------------------


@in_loop
async def test_reads_are_repeated_by_a_new_child(tmp_path: Path, engine: StdioEngine) -> None:
    async with Bridged(tmp_path, engine.setting) as session:
        for fault, (verb, arguments) in zip(cycle(FAULTS), READS.items(), strict=False):
            engine.on(f"tachyon_{verb}", fault)
            await session.data(verb, **arguments)
        assert len(engine.pids()) == len(READS) + 1


@in_loop
async def test_what_does_something_is_not_repeated(tmp_path: Path, engine: StdioEngine) -> None:
    others: dict[str, dict[str, Any]] = {
        "compile": {"sources": SOURCES},
        "test": {"sources": SOURCES},
        "chain_register": MINE,
    }
    async with Bridged(tmp_path, engine.setting) as session:
        for fault, (verb, arguments) in zip(FAULTS, others.items(), strict=True):
            engine.on(f"tachyon_{verb}", fault)
            error = await session.error(verb, **arguments)
            assert (error["code"], error["retry"]) == ("ENGINE_UNAVAILABLE", True), verb
            await session.data(verb, **arguments)
            assert engine.methods().count(f"tachyon_{verb}") == 2


@in_loop
async def test_a_deployment_whose_answer_was_lost_is_looked_up(tmp_path: Path, engine: StdioEngine) -> None:
    async with Bridged(tmp_path, engine.setting) as session:
        engine.on("tachyon_deploy", loses())
        assert (await session.data("deploy", **deployment("made")))["existing"] is True
        engine.on("tachyon_deploy", drops())
        for _ in range(2):
            error = await session.error("deploy", **deployment("lost"))
            assert "outcome unknown" in error["message"]
            assert error["retry"] is False
        assert engine.methods().count("tachyon_deploy") == 2
        assert engine.methods().count("tachyon_registry_lookup") == 3


@in_loop
async def test_a_call_whose_answer_was_lost_is_not_sent_again(tmp_path: Path, engine: StdioEngine) -> None:
    async with Bridged(tmp_path, engine.setting) as session:
        engine.on("tachyon_call", drops())
        error = await session.error(
            "call", to=ADDRESS, chain_id=CHAIN, contract="Counter", method="set", args=[9]
        )
        assert "outcome unknown" in error["message"]
        assert (error["retry"], engine.methods().count("tachyon_call")) == (False, 1)


@in_loop
async def test_a_child_that_dies_between_calls_costs_no_call(tmp_path: Path, engine: StdioEngine) -> None:
    async with Bridged(tmp_path, engine.setting) as session:
        await session.data("chain_list")
        (pid,) = engine.pids()
        os.kill(pid, signal.SIGKILL)
        await until(lambda: not is_alive(pid))
        await asyncio.sleep(0.1)  # for the server to notice
        assert (await session.data("compile", sources=SOURCES))["artifacts"]


@in_loop
async def test_registered_chains_are_registered_with_a_new_child(tmp_path: Path, engine: StdioEngine) -> None:
    async with Bridged(tmp_path, engine.setting) as session:
        await session.data("chain_register", **MINE)
        os.kill(engine.pids()[0], signal.SIGKILL)
        assert "mine" in [each["id"] for each in (await session.data("chain_list"))["chains"]]
    async with Bridged(tmp_path, engine.setting) as session:  # a new server, too
        assert "mine" in [each["id"] for each in (await session.data("chain_list"))["chains"]]
    registered = [each["params"] for each in engine.asked if each["method"] == "tachyon_chain_register"]
    assert [each["chain_id"] for each in registered] == [99, 99, 99]


# --- one thing at a time ----------------------------------------------------------------------------------


@on_stage
async def test_lists_and_lookups_do_not_wait_for_a_compile(stage: Shared) -> None:
    engine, session = stage.engine, stage.session
    await session.data("chain_register", **MINE)
    engine.on("tachyon_compile", waits())
    compiling = asyncio.ensure_future(session.data("compile", sources=SOURCES))
    await until(lambda: "tachyon_compile" in engine.methods())
    listed = await session.data("chain_list")
    assert "mine" in [each["id"] for each in listed["chains"]]
    for verb in ("artifact_get", "registry_lookup"):
        await session.data(verb, **READS[verb])
    assert not compiling.done()
    engine.release()
    await compiling


@in_loop
async def test_what_was_made_meanwhile_is_found_after_it(tmp_path: Path, engine: StdioEngine) -> None:
    """An engine reads what it has made at its start, so a second child does not see what the first makes."""
    async with Bridged(tmp_path, engine.setting) as session:
        engine.on("tachyon_compile", waits())
        compiling = asyncio.ensure_future(session.data("compile", sources=SOURCES, project_id="later"))
        await until(lambda: "tachyon_compile" in engine.methods())
        await session.data("chain_list")
        engine.release()
        await compiling
        found = await session.data("artifact_get", name="Counter", project_id="later")
        assert found["artifact"]["name"] == "Counter"
        engine.on("tachyon_compile", waits())
        compiling = asyncio.ensure_future(session.data("compile", sources=SOURCES))
        await until(lambda: engine.methods().count("tachyon_compile") == 2)
        assert (await session.data("artifact_get", name="Counter", project_id="later")) == found
        engine.release()
        await compiling
        await session.data("deploy", **deployment())
        assert (await session.data("registry_lookup", idempotency_key="k", chain_id=CHAIN))["found"]


@on_stage
async def test_a_chain_that_is_registered_during_a_compile_is_known_after_it(stage: Shared) -> None:
    engine, session = stage.engine, stage.session
    engine.on("tachyon_compile", waits())
    compiling = asyncio.ensure_future(session.data("compile", sources=SOURCES))
    await until(lambda: "tachyon_compile" in engine.methods())
    await session.data("chain_register", **{**MINE, "id": "later", "chain_id": 98})
    engine.release()
    await compiling
    assert "later" in [each["id"] for each in (await session.data("chain_list"))["chains"]]
    await session.data("simulate", to=ADDRESS, chain_id="later")


@on_stage
async def test_a_cancelled_compile_does_not_hold_up_the_next_call(stage: Shared) -> None:
    engine, session = stage.engine, stage.session
    engine.on("tachyon_compile", waits())
    compiling = asyncio.ensure_future(session.data("compile", sources=SOURCES))
    await until(engine.methods)
    compiling.cancel()
    await session.data("chain_list")
    await session.data("compile", sources=SOURCES)


# --- lines ------------------------------------------------------------------------------------------------

NO_ENVELOPES = {
    "a list": says(["ok"]),
    "no ok": says({"data": {}}),
    "no data": says({"ok": True}),
    "NaN": says({"ok": True, "data": {"artifacts": [], "project_id": float("nan")}}),
}


@on_stage
async def test_what_is_no_envelope_is_an_error(stage: Shared) -> None:
    engine, session = stage.engine, stage.session
    for name, play in NO_ENVELOPES.items():
        engine.on("tachyon_compile", play)
        assert (await session.error("compile", sources=SOURCES))["code"] == "ENGINE_PROTOCOL", name
        await session.data("compile", sources=SOURCES)


@in_loop
async def test_a_line_in_the_place_of_an_answer_is_no_hang(tmp_path: Path, engine: StdioEngine) -> None:
    lines = ["panic: runtime error\n", '{"hello": 1}\n', '{"jsonrpc": "2.0", "id": "\ud83d", "result": []}\n']
    engine.on("tachyon_compile", *(writes(instead=line) for line in lines))

    async def compiled(session: Bridged) -> dict[str, Any]:
        return await session.envelope("compile", sources=SOURCES)

    async with contextlib.AsyncExitStack() as stack:
        sessions = [
            await stack.enter_async_context(Bridged(tmp_path, engine.setting, engine_seconds="1"))
            for _ in lines
        ]
        for found in await asyncio.gather(*map(compiled, sessions)):
            assert found["error"]["code"] in ("ENGINE_PROTOCOL", "ENGINE_TIMEOUT", "ENGINE_UNAVAILABLE")
        await asyncio.gather(*map(works_again, sessions))


@on_stage
async def test_lines_that_are_no_messages_are_passed_over_or_an_error(stage: Shared) -> None:
    engine, session = stage.engine, stage.session
    for before in ("starting up\n", "\n", "{}\n", "[1, 2\n"):
        engine.on("tachyon_compile", writes(before=before))
        found = await session.envelope("compile", sources=SOURCES)
        assert found["ok"] or found["error"]["code"] in ("ENGINE_PROTOCOL", "ENGINE_UNAVAILABLE")
        await session.data("compile", sources=SOURCES)


@on_stage
async def test_what_it_writes_to_its_errors_stops_nothing(stage: Shared) -> None:
    engine, session = stage.engine, stage.session
    engine.on("tachyon_compile", writes(errors=1_000_000))
    await session.data("compile", sources=SOURCES)


@on_stage
async def test_a_request_that_is_too_long_for_the_engine_is_refused_here(stage: Shared) -> None:
    engine, session = stage.engine, stage.session
    for size in (2**20, 2**20 - 300, 3 * 2**20):
        long = {"src/Long.sol": COUNTER_SOURCE.ljust(size, "/")}
        error = await session.error("compile", sources=long)
        assert (error["code"], error["retry"]) == ("INVALID_REQUEST", False)
        assert "sources" in error["message"]
        assert "1 MiB" in error["message"]
    assert "tachyon_compile" not in engine.methods()
    await session.data("compile", sources={"src/Long.sol": COUNTER_SOURCE.ljust(2**20 - 5_000, "/")})


@on_stage
async def test_what_a_text_becomes_in_a_line_is_what_counts(stage: Shared) -> None:
    """Escaped, it may be longer than it was: the engine would end at the line."""
    engine, session = stage.engine, stage.session
    for letter in ("é", '"', "\x01", "😀"):
        for size in (170_000, 340_000, 520_000):
            text = COUNTER_SOURCE + letter * size
            found = await session.envelope("compile", sources={"src/Counter.sol": text})
            assert found["ok"] or found["error"]["code"] == "INVALID_REQUEST", (letter, size)
    assert len(engine.pids()) == 1


@on_stage
async def test_an_answer_of_several_mib_is_read(stage: Shared) -> None:
    engine, session = stage.engine, stage.session
    code = "0x" + "60" * 3_000_000
    engine.on("tachyon_artifact_get", answers({"artifact": artifact(bytecode=code)}))
    found = await session.data("artifact_get", name="Counter")
    assert found["artifact"]["bytecode"] == code


@in_loop
async def test_an_engine_that_is_slow_is_left_after_the_time(tmp_path: Path, engine: StdioEngine) -> None:
    async with Bridged(tmp_path, engine.setting, engine_seconds="1") as session:
        engine.on("tachyon_compile", waits())
        assert (await session.error("compile", sources=SOURCES))["code"] == "ENGINE_TIMEOUT"
        await works_again(session, "chain_list")
        engine.release()
        await works_again(session)
