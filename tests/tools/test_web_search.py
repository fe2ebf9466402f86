"""WebSearch and `fastrpc search-check` as a whole; a loopback server replaces the engines."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from fastrpc.tools.agent import _search
from fastrpc.tools.agent import _text as result_text
from fastrpc.tools.agent._search import _asking, _network
from fastrpc.tools.agent._search import _command as search_command
from fastrpc.tools.agent._search._breaker import FAILURES, SECONDS, Breaker
from fastrpc.tools.agent._search._merge import merge
from fastrpc.tools.agent.web_search import web_search
from support.loop_clock import LoopClock
from support.search_engines import StandIn, search_engines
from support.waiting import until

from fastrpc import ToolError, ToolResult, UsageError

ENGINES = list(_search.PUBLISHED)
LIMITS = (_asking.EARLY_SECONDS, _asking.ENGINE_SECONDS, _asking.SEARCH_SECONDS)


@pytest.fixture(autouse=True)
def alone(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings and breakers of its own for each test, and time limits that a busy machine keeps."""
    for name in list(os.environ):
        if name.startswith(("FASTRPC_", "http", "HTTP", "all_proxy", "ALL_PROXY")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("FASTRPC_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setattr(_asking, "BREAKER", Breaker())
    for limit in ("EARLY_SECONDS", "ENGINE_SECONDS", "SEARCH_SECONDS"):
        monkeypatch.setattr(_asking, limit, 30.0)


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    with search_engines() as server:
        monkeypatch.setenv("FASTRPC_SEARCH_ADDRESS", server.address)
        yield server


def call(query: str = "query") -> ToolResult:
    result: ToolResult = asyncio.run(web_search(query))
    return result


def text(result: ToolResult) -> str:
    return str(result.content)


def facts(result: ToolResult) -> dict[str, Any]:
    found: dict[str, Any] = (result.meta or {})["fastrpc/facts"]
    return found


def outcomes(result: ToolResult) -> dict[str, str]:
    return {name: engine["outcome"] for name, engine in facts(result)["engines"].items()}


def closing(result: ToolResult) -> str:
    return text(result).splitlines()[-1]


# --- whole searches ---------------------------------------------------------------------------------------


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_an_engine_of_ddgs_that_ddgs_no_longer_has_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_search.load("mojeek"), "module", "no_such_engine")
    monkeypatch.setenv("FASTRPC_SEARCH_ENGINES", "mojeek,bing")
    with search_engines() as server:
        monkeypatch.setenv("FASTRPC_SEARCH_ADDRESS", server.address)
        result = call()
    assert outcomes(result) == {"mojeek": "error", "bing": "ok"}


def test_a_new_engine_is_one_file(tmp_path: Any, engines: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    """WebSearch: a new engine is one file."""
    (tmp_path / "aardvark.py").write_text(
        "from fastrpc.tools.agent._search.wikipedia import Wikipedia\n"
        "class Aardvark(Wikipedia):\n"
        "    name = 'aardvark'\n"
        "    def read(self, page, query):\n"
        "        raise ValueError('a mistake')\n"
        "ENGINE = Aardvark()\n"
    )
    monkeypatch.setattr(_search, "__path__", [*_search.__path__, str(tmp_path)])
    assert _search.names() == [*ENGINES, "aardvark"]
    engines.modes["aardvark"] = "failing"
    result = call()
    assert closing(result).endswith("searxng ok 2, aardvark error]")
    assert facts(result)["engines"]["aardvark"]["reason"] == "ValueError: a mistake"


def test_all_engines_are_asked_and_one_list_comes_back(engines: StandIn) -> None:
    """WebSearch: all engines are asked at once and one list comes back, of at most 10 entries, each with
    title, URL, snippet and the engines that found it.
    """
    result = call()
    lines = text(result).splitlines()
    assert result.is_error is False
    assert lines[:4] == [
        "1. The Guide",
        "   https://example.org/guide/?a=1#intro",
        "   Everything about the guide.",
        "   (bing, brave, duckduckgo, google, qwant, searxng, startpage, yahoo, mojeek, yandex)",
    ]
    assert [line.split(".")[0] for line in lines if line[:1].isdigit()] == [str(n) for n in range(1, 11)]
    assert lines[-1] == (
        "[engines: duckduckgo ok 3, bing ok 3, brave ok 2, google ok 2, mojeek ok 2, yahoo ok 2, "
        "yandex ok 2, startpage ok 2, qwant ok 2, wikipedia ok 2, searxng ok 2]"
    )
    assert result.structured is None
    found = facts(result)
    assert found["query"] == "query"
    assert len(found["results"]) == 10
    assert found["results"][0] == {
        "title": "The Guide",
        "url": "https://example.org/guide/?a=1#intro",
        "snippet": "Everything about the guide.",
        "engines": [
            "bing",
            "brave",
            "duckduckgo",
            "google",
            "qwant",
            "searxng",
            "startpage",
            "yahoo",
            "mojeek",
            "yandex",
        ],
    }
    assert set(found["engines"]["bing"]) == {"outcome", "results", "milliseconds", "reason"}


def test_the_facts_are_structured_where_that_is_asked_for(
    engines: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """WebSearch: its facts are structured where that is asked for."""
    monkeypatch.setenv("FASTRPC_STRUCTURED", "1")
    result = call()
    assert result.structured["results"] == facts(result)["results"]
    json.dumps(result.structured)


@pytest.mark.parametrize("query", ["خبز  بلدي", "👩‍💻 & 50% = a+b?#/\\", "cafe\u0301 é", "可愛い 'x' \"y\""])
def test_a_query_reaches_every_engine_unchanged(engines: StandIn, query: str) -> None:
    """WebSearch: Arabic, emoji and combining marks reach every engine unchanged."""
    result = call(query)
    assert set(outcomes(result).values()) == {"ok"}
    words = " ".join(query.split())
    for engine in ENGINES:
        (asked,) = [request for request in engines.asked(engine) if request.path != "/"]
        assert words in asked.fields.values(), engine
        assert asked.headers["User-Agent"].startswith("Mozilla/5.0 (compatible; fastrpc/")
        assert (asked.method == "POST") is (engine in ("duckduckgo", "startpage"))
    assert facts(result)["query"] == words


def test_arabic_joiners_and_combining_marks_come_back_unchanged(
    engines: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """WebSearch: Arabic, joiners and combining marks come back unchanged."""
    monkeypatch.setenv("FASTRPC_SEARCH_ENGINES", "duckduckgo")
    block = text(call("دليل")).split("\n\n")[1]
    assert block == (
        "2. دليلُ المبتدئين 👩‍💻 می‌خواهم\n   https://ar.example/%D9%85%D9%82%D8%A7%D9%84\n"
        "   مرحبًا بكم في الدليل، cafe\u0301 é\n   (duckduckgo)"
    )


def test_startpage_gets_the_token_of_its_first_page_and_ddgs_sets_the_cookies(engines: StandIn) -> None:
    call()
    assert engines.asked("startpage")[1].fields["sc"] == "Token20"
    assert "arc=us" in engines.asked("mojeek")[0].headers["Cookie"]
    assert engines.asked("startpage")[1].headers["Referer"] == "https://www.startpage.com/"


def test_another_user_agent_may_be_set(engines: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FASTRPC_SEARCH_USER_AGENT", "somebody/1.0")
    call()
    assert {request.headers["User-Agent"] for request in engines.requests} == {"somebody/1.0"}


def test_the_setting_chooses_the_engines_and_their_order(
    engines: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """WebSearch: `FASTRPC_SEARCH_ENGINES` chooses the engines."""
    monkeypatch.setenv("FASTRPC_SEARCH_ENGINES", " Mojeek, bing,mojeek,,nosuch ")
    assert closing(call()) == "[engines: mojeek ok 2, bing ok 3, nosuch unknown]"
    assert {request.engine for request in engines.requests} == {"mojeek", "bing"}


def test_settings_that_leave_nothing_to_ask_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FASTRPC_SEARCH_ENGINES", "nosuch")
    with pytest.raises(
        ToolError, match=r"^FASTRPC_SEARCH_ENGINES: expected some of duckduckgo, bing.*'nosuch'"
    ):
        call()
    monkeypatch.setenv("FASTRPC_SEARCH_ENGINES", "bing")
    monkeypatch.setenv("FASTRPC_SEARCH_ADDRESS", "file:///etc")
    with pytest.raises(ToolError, match="FASTRPC_SEARCH_ADDRESS: expected an address with http"):
        call()


def test_searxng_is_asked_at_its_address_and_named_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """WebSearch: an instance of SearXNG is asked at its URL."""
    monkeypatch.setenv("FASTRPC_SEARCH_ENGINES", "searxng")
    assert closing(call()) == "[engines: searxng not set]"
    assert call().is_error is True
    monkeypatch.setenv("FASTRPC_SEARXNG_URL", "gopher://x")
    assert closing(call()) == "[engines: searxng bad address]"
    with search_engines() as server:
        monkeypatch.setenv("FASTRPC_SEARXNG_URL", f"{server.address}/searxng/")
        assert closing(call()) == "[engines: searxng ok 2]"
        assert server.requests[0].fields == {"q": "query", "format": "json"}


MODES = {
    "gzip": "ok",
    "empty": "empty",
    "captcha": "blocked",
    "redirect": "blocked",
    "elsewhere": "error",
    "circle": "error",
    "blocked": "blocked",
    "busy": "blocked",
    "failing": "error",
    "broken": "error",
    "changed": "error",
    "huge": "error",
    "bomb": "error",
    "dropped": "error",
}


@pytest.mark.parametrize("mode", MODES)
def test_whatever_an_engine_does_has_a_name(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each engine in each mode; and what one does, the others do not notice.

    WebSearch: the closing line tells each engine's outcome: ok, empty, blocked, timeout or error.
    """
    with search_engines(everyone=mode, wikipedia="ok") as server:
        monkeypatch.setenv("FASTRPC_SEARCH_ADDRESS", server.address)
        result = call()
    assert outcomes(result) == dict.fromkeys(ENGINES, MODES[mode]) | {"wikipedia": "ok"}
    assert result.is_error is False
    if MODES[mode] != "ok":
        assert f"bing {MODES[mode]}," in closing(result)
        assert "wikipedia ok 2" in closing(result)


@pytest.mark.parametrize("mode", ["hang", "stall"])
def test_an_engine_that_does_not_answer_times_out_alone(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """WebSearch: each engine has its own task and limit: one that hangs times out alone."""
    ended: list[str] = []
    ask = _asking._ask

    async def noted(engine: Any, *rest: Any) -> Any:
        outcome = await ask(engine, *rest)
        ended.append(engine.name)
        return outcome

    async def search() -> ToolResult:
        clock = LoopClock()
        monkeypatch.setattr(_asking, "time", clock)
        monkeypatch.setattr(_asking, "_ask", noted)
        searching = asyncio.ensure_future(web_search("query"))
        await until(lambda: set(ended) == {"qwant", "wikipedia"})
        clock.advance(30)
        return await searching

    monkeypatch.setattr(_network, "TIME_OUTS", {})

    with search_engines(everyone=mode, wikipedia="ok", qwant="ok") as server:
        monkeypatch.setenv("FASTRPC_SEARCH_ADDRESS", server.address)
        result = asyncio.run(search())
    assert outcomes(result) == dict.fromkeys(ENGINES, "timeout") | {"wikipedia": "ok", "qwant": "ok"}


def test_the_answer_does_not_wait_for_the_last_when_enough_have_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """WebSearch: the answer comes when enough engines have answered."""
    monkeypatch.setattr(_asking, "EARLY_SECONDS", 0.1)
    for limit in ("ENGINE_SECONDS", "SEARCH_SECONDS"):
        monkeypatch.setattr(_asking, limit, 600.0)
    with search_engines(bing="hang", google="hang") as server:
        monkeypatch.setenv("FASTRPC_SEARCH_ADDRESS", server.address)
        result = call()
    found = outcomes(result)
    assert found["bing"] == found["google"] == "timeout"
    assert (
        list(found.values()).count("ok") >= _asking.EARLY_ENGINES
    )  # on a busy machine not all of the others


def test_who_answers_late_is_waited_for_while_there_is_not_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """WebSearch: the answer waits for late engines while there is not enough."""
    monkeypatch.setattr(_asking, "EARLY_SECONDS", 0.1)
    monkeypatch.setenv("FASTRPC_SEARCH_ENGINES", "bing,brave,mojeek,wikipedia")
    with search_engines(delay=0.3, bing="slow", brave="ok", mojeek="ok", wikipedia="blocked") as server:
        monkeypatch.setenv("FASTRPC_SEARCH_ADDRESS", server.address)
        assert outcomes(call()) == {"bing": "ok", "brave": "ok", "mojeek": "ok", "wikipedia": "blocked"}


def test_the_limits_are_those_that_are_published() -> None:
    """WebSearch: an engine has 5 s, the search 8 s; three failures in a row cost an hour."""
    assert LIMITS == (2.5, 5.0, 8.0)
    assert (FAILURES, SECONDS) == (3, 3600.0)


def test_a_search_is_over_before_the_clients_patience_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """WebSearch: the whole search has a limit, and no call outlasts the client's patience."""
    monkeypatch.setenv("FASTRPC_PATIENCE_SECONDS", "0.5")
    with search_engines(everyone="hang") as server:
        monkeypatch.setenv("FASTRPC_SEARCH_ADDRESS", server.address)
        result = call()
    assert result.is_error is True


def test_no_results_though_engines_answered_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """WebSearch: no results though engines answered is no error."""
    with search_engines(everyone="blocked", mojeek="empty") as server:
        monkeypatch.setenv("FASTRPC_SEARCH_ADDRESS", server.address)
        result = call("كلمة نادرة")
    assert result.is_error is False
    assert text(result).startswith('No results for "كلمة نادرة".\n[engines: duckduckgo blocked, bing blocked')
    assert "mojeek empty" in closing(result)
    assert facts(result)["results"] == []


def test_all_failed_is_an_error_that_names_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """WebSearch: if all engines failed, the result is an error that names each."""
    with search_engines(everyone="failing", bing="blocked") as server:
        monkeypatch.setenv("FASTRPC_SEARCH_ADDRESS", server.address)
        result = call()
    assert result.is_error is True
    assert text(result).startswith(
        'No search engine answered "query".\n[engines: duckduckgo error, bing blocked,'
    )


def test_an_engine_that_fails_three_times_is_dropped_for_an_hour_and_named(
    engines: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """WebSearch: an engine that fails three times in a row is dropped for an hour and named in the closing
    line.
    """
    clock = Clock()
    monkeypatch.setattr(_asking, "BREAKER", Breaker(clock))
    engines.modes["bing"] = "failing"
    for _ in range(3):
        assert "bing error" in closing(call())
    assert len(engines.asked("bing")) == 3
    assert "bing dropped for 60 min" in closing(call())
    clock.now += 1800
    assert "bing dropped for 30 min" in closing(call())
    assert len(engines.asked("bing")) == 3
    clock.now += 1800
    assert "bing error" in closing(call())
    assert "bing dropped for 60 min" in closing(call())
    clock.now += 3600
    engines.modes["bing"] = "ok"
    for _ in range(2):
        assert "bing ok 3" in closing(call())


def test_a_timeout_counts_with_the_breaker_and_a_cancelled_search_does_not(
    engines: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FASTRPC_SEARCH_ENGINES", "bing,mojeek")
    engines.modes["bing"] = "hang"

    async def cancelled() -> None:
        search = asyncio.create_task(web_search("query"))
        while not engines.asked("bing"):
            await asyncio.sleep(0.01)
        search.cancel()
        with pytest.raises(asyncio.CancelledError):
            await search
        assert asyncio.all_tasks() == {asyncio.current_task()}

    for _ in range(3):
        engines.requests.clear()
        asyncio.run(cancelled())
    assert _asking.BREAKER.shown("bing") == "closed"
    monkeypatch.setattr(_asking, "ENGINE_SECONDS", 0.3)
    call()
    assert _asking.BREAKER.shown("bing") == "closed (1 of 3 failures)"


def test_a_network_that_is_away_is_not_the_fault_of_the_engines(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # no one listens there, nor can anybody else begin to
        monkeypatch.setenv("FASTRPC_SEARCH_ADDRESS", f"http://127.0.0.1:{held.getsockname()[1]}")
        for _ in range(FAILURES + 1):
            result = call()
            assert set(outcomes(result).values()) == {"error"}
            assert result.is_error is True
    assert _asking.BREAKER.shown("bing") == "closed"


def test_the_proxy_of_the_environment_is_used_but_not_for_the_substitute(
    engines: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("https_proxy", engines.address.replace("//", "//somebody:secret@"))
    monkeypatch.setenv("no_proxy", "bing.com")
    monkeypatch.setenv("FASTRPC_SEARCH_ENGINES", "mojeek,bing")
    assert set(outcomes(call()).values()) == {"ok"}
    engines.requests.clear()
    monkeypatch.delenv("FASTRPC_SEARCH_ADDRESS")
    monkeypatch.setattr(_network.socket, "getaddrinfo", lambda host, *rest: found(host))

    def found(host: str) -> Any:
        if host != "127.0.0.1":
            raise OSError("no such name")
        return [(_network.socket.AF_INET, 1, 6, "", ("127.0.0.1", 0))]

    result = call()
    (asked,) = engines.requests
    assert (asked.method, asked.path) == ("CONNECT", "www.mojeek.com:443")
    assert asked.headers["Proxy-Authorization"] == "Basic c29tZWJvZHk6c2VjcmV0"
    reasons = {name: engine["reason"] for name, engine in facts(result)["engines"].items()}
    assert reasons["bing"] == "no connection: www.bing.com: no such name"
    assert reasons["mojeek"].startswith("no connection: 502")


def test_a_result_stays_within_its_size(engines: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    """WebSearch: the size of a result is bounded."""
    monkeypatch.setenv("FASTRPC_RESULT_CHARACTERS", "1500")
    result = call()
    shown_results = len(facts(result)["results"])
    assert 1 <= shown_results < 10
    assert len(text(result)) < 1500
    assert text(result).splitlines()[-2] == f"[{10 - shown_results} more left out: a result is not longer]"


def test_the_longest_results_stay_within_the_usual_size() -> None:
    """Ten pages whose every text is as long as allowed, in a script that costs most."""
    letters = "ع" * 5000
    rows = [(letters, f"https://x{number}.example/{'y' * 1900}", letters) for number in range(10)]
    from fastrpc.tools.agent import web_search as module
    from fastrpc.tools.agent._search._engine import tidy

    entries = merge({"bing": tidy(rows, "https://www.bing.com/")})
    assert len(entries) == 10
    assert result_text.fits("\n\n".join(module._block(1, entry) for entry in entries))


@pytest.mark.parametrize("query", ["", " \t\n", "\u3000"])
def test_an_empty_query_is_refused(query: str) -> None:
    """WebSearch: an empty query is refused."""
    with pytest.raises(ToolError, match=r"^query: expected the words to search for, got an empty text"):
        call(query)


def test_a_query_has_a_length(engines: StandIn) -> None:
    """WebSearch: a query that is too long is refused."""
    assert call("ع" * 500).is_error is False
    with pytest.raises(ToolError, match=r"^query: expected at most 500 characters, got 501"):
        call("x" * 501)


def test_searches_at_once_do_not_disturb_each_other(engines: StandIn) -> None:
    async def many() -> list[ToolResult]:
        return await asyncio.gather(*(web_search(f"query {number}") for number in range(8)))

    results = asyncio.run(many())
    assert {text(result) for result in results} == {text(results[0])}
    assert [facts(result)["query"] for result in results] == [f"query {number}" for number in range(8)]


def test_a_name_server_that_is_silent_holds_neither_a_search_nor_the_end_of_the_process() -> None:
    program = (
        "import asyncio, socket, sys, time\n"
        "socket.getaddrinfo = lambda *a, **k: time.sleep(60)\n"
        "from fastrpc.tools.agent._search import _asking\n"
        "_asking.ENGINE_SECONDS = 0.5\n"
        "found = asyncio.run(_asking.search('x', ['bing', 'mojeek', 'bing']))\n"
        "print([outcome.shown() for outcome in found])\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True
    )
    assert run.stdout == "['bing timeout', 'mojeek timeout']\n"


def test_the_module_of_the_tool_imports_none_of_its_libraries() -> None:
    """WebSearch: no library of it is imported before the first search."""
    program = (
        "import sys; import fastrpc.tools.agent.web_search\n"
        "heavy = {'asyncio', 'httpcore', 'ssl', 'lxml', 'ddgs', 'primp', 'json', 'anyio'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True
    )
    assert run.stdout == "[]\n"


# --- fastrpc search-check ---------------------------------------------------------------------------------


def test_search_check_shows_what_became_of_each_engine(
    engines: StandIn, capsys: pytest.CaptureFixture[str]
) -> None:
    """WebSearch: `fastrpc search-check` tries each engine and prints a table."""
    engines.modes.update(bing="blocked", google="redirect", yandex="changed", mojeek="empty")
    assert search_command.main(["دليل", "المبتدئين"]) == 0
    shown_lines = capsys.readouterr().out.splitlines()
    assert shown_lines[0].startswith("Not the engines themselves: http://127.0.0.1:")
    assert shown_lines[1].split() == ["engine", "outcome", "results", "ms", "breaker", "reason"]
    rows = {line.split()[0]: line.split() for line in shown_lines[2:13]}
    assert list(rows) == ENGINES
    assert rows["duckduckgo"][1:3] == ["ok", "3"]
    assert rows["duckduckgo"][3].isdigit()
    assert rows["duckduckgo"][4:] == ["closed"]
    assert " ".join(rows["bing"]).endswith("closed (1 of 3 failures) HTTP 403")
    assert rows["mojeek"][1:3] == ["empty", "0"]
    assert rows["google"][1:3] == ["blocked", "-"]
    assert "perhaps its form has changed" in " ".join(rows["yandex"])
    assert shown_lines[-1] == '7 of 11 engines found results for "دليل المبتدئين".'
    assert {request.fields["q"] for request in engines.asked("bing")} == {"دليل المبتدئين"}


def test_search_check_fails_when_no_engine_works(capsys: pytest.CaptureFixture[str]) -> None:
    with search_engines(everyone="failing", mojeek="empty") as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("FASTRPC_SEARCH_ADDRESS", server.address)
        assert search_command.main([]) == 1
        assert server.asked("bing")[0].fields["q"] == "open source"
    assert "0 of 11 engines found results" in capsys.readouterr().out


def test_search_check_refuses_what_it_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="--nosuch"):
        search_command.main(["--nosuch"])
    monkeypatch.setenv("FASTRPC_SEARCH_ENGINES", "nosuch")
    with pytest.raises(UsageError, match=r"FASTRPC_SEARCH_ENGINES: expected some of"):
        search_command.main(["x"])
