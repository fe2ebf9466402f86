"""Lists show each caller what its class may see, in every version; what a class sees is kept."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest
from support.in_memory import every_version, in_loop, with_client
from support.list_filters import ALL, METHODS, OPEN, Caller, shop, shows, team_of
from support.upstream import UPSTREAM

from fastrpc import DefinitionError, ListItem, Server, ToolError, tracebacks
from fastrpc.definitions.tool import Tool
from fastrpc.engine import list_filter
from fastrpc.protocol.versions import LATEST_SESSION_VERSION, SESSION_VERSIONS, STATELESS, VERSIONS
from fastrpc.testing import Client


class Counting:
    """A filter that notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def __call__(self, team: str, item: ListItem) -> bool:
        self.asked.append((team, item.uri or item.name))
        return shows(team, item)


# --- what is shown ----------------------------------------------------------------------------------------


@every_version
@pytest.mark.parametrize("page_size", [1, 2, 1000])
def test_each_class_sees_its_own_lists_page_by_page(version: str, page_size: int) -> None:
    app = shop(page_size=page_size)
    app.filter_lists(shows, classify=team_of)

    async def run() -> None:
        caller = Caller(app, version)
        for _ in range(3):
            for principal, expected in (("ada", ALL), ("bob", OPEN), ("grace", ALL), ("", OPEN)):
                caller.principal = principal
                for method in METHODS:
                    assert await caller.list(method) == expected[method]

    in_loop(run)


def test_a_cursor_of_another_class_shows_nothing_that_is_hidden() -> None:
    app = shop(page_size=2)
    app.filter_lists(shows, classify=team_of)

    async def run() -> None:
        staff, guest = Caller(app, STATELESS, "ada"), Caller(app, STATELESS, "bob")
        _, cursor = await staff.page("tools/list")  # behind secret_0
        assert await guest.page("tools/list", cursor) == (["open_2"], None)
        _, cursor = await guest.page("tools/list")  # behind open_1
        assert await staff.page("tools/list", cursor) == (["secret_1", "open_2"], None)

    in_loop(run)


def test_a_filter_learns_what_an_entry_is() -> None:
    app = shop()
    seen: dict[str, ListItem] = {}

    @app.tool
    def unstated() -> str:
        return ""

    def note(principal: str, item: ListItem) -> bool:
        seen[item.uri or item.name] = item
        return True

    app.filter_lists(note)

    async def run() -> None:
        for method in METHODS:
            await Caller(app, STATELESS).list(method)

    in_loop(run)

    def told(key: str) -> tuple[str, str, str | None, str | None]:
        return seen[key].kind, seen[key].name, seen[key].uri, seen[key].effect

    assert told("open_0") == ("tool", "open_0", None, "read")
    assert told("unstated") == ("tool", "unstated", None, None)
    assert told("docs://open/0") == ("resource", "docs://open/0", "docs://open/0", None)
    assert told("open://{x}") == ("resource_template", "read", "open://{x}", None)
    assert told("open_prompt") == ("prompt", "open_prompt", None, None)
    assert repr(seen["open_0"]) == "ListItem('tool', 'open_0', uri=None, effect='read')"


def test_without_classify_each_principal_is_a_class() -> None:
    app = shop()
    app.filter_lists(lambda principal, item: item.name == f"open_{principal}")

    async def run() -> None:
        for principal, expected in (("0", ["open_0"]), ("1", ["open_1"]), ("", [])):
            assert await Caller(app, LATEST_SESSION_VERSION, principal).list("tools/list") == expected

    in_loop(run)


def test_all_of_several_filters_must_show_an_entry() -> None:
    app = shop()
    app.filter_lists(shows, classify=team_of)
    app.filter_lists(lambda principal, item: principal != "ada" or not item.name.endswith("_0"))

    async def run() -> None:
        for principal, expected in (
            ("ada", ["open_1", "secret_1", "open_2"]),
            ("grace", ALL["tools/list"]),
            ("bob", OPEN["tools/list"]),
        ):
            assert await Caller(app, STATELESS, principal).list("tools/list") == expected

    in_loop(run)


def test_lists_in_a_batch_are_filtered() -> None:
    app = shop()
    app.filter_lists(shows, classify=team_of)

    dispatcher = app.connect()
    dispatcher.adopt_version("2025-03-26")
    asked = ",".join(f'{{"jsonrpc":"2.0","id":{id},"method":"{each}"}}' for id, each in enumerate(METHODS))
    for dispatcher.principal in ("ada", "bob", "ada"):
        dispatcher.connection.receive(f"[{asked}]".encode())
        answered = dispatcher.connection.output.take()
        assert b"open_2" in answered
        assert b"open_prompt" in answered
        assert b"docs://open/2" in answered
        assert (b"secret" in answered) is (dispatcher.principal == "ada")


# --- a page of a provider ---------------------------------------------------------------------------------


class Rows:
    """Lists two pages of a table; the odd rows are secret."""

    def list(self, cursor: str | None) -> tuple[list[str], str | None]:
        at = int(cursor or 0)
        return [f"db://open/{at}", f"db://secret/{at + 1}"], "2" if at == 0 else None

    def read(self, uri: str) -> str:
        return uri


ROWS = ["db://open/0", "db://secret/1", "db://open/2", "db://secret/3"]


@every_version
def test_what_a_provider_lists_is_filtered(version: str) -> None:
    app = shop(page_size=2)
    app.resources("db")(Rows)
    app.filter_lists(shows, classify=team_of)

    async def run() -> None:
        caller = Caller(app, version)
        for principal, of_shop, of_rows in (
            ("ada", ALL, ROWS),
            ("bob", OPEN, ROWS[::2]),
            ("ada", ALL, ROWS),
        ):
            caller.principal = principal
            assert await caller.list("resources/list") == of_shop["resources/list"] + of_rows

    in_loop(run)


def test_a_provider_that_follows_hidden_resources_only_is_listed_first() -> None:
    app = Server("t")
    app.add_resource("docs://secret", "")
    app.resources("db")(Rows)
    app.filter_lists(shows, classify=team_of)

    async def run() -> None:
        assert (await Caller(app, STATELESS, "bob").page("resources/list"))[0] == ["db://open/0"]

    in_loop(run)


def test_the_client_is_not_told_why_the_filter_of_a_provider_failed() -> None:
    app = Server("t")
    app.resources("db")(Rows)
    app.filter_lists(broken)

    async def run() -> None:
        error = await Caller(app, STATELESS, "bob").error("resources/list")
        assert (error["code"], error["message"]) == (-32603, "Internal error; see the server's log")

    in_loop(run)


# --- kept -------------------------------------------------------------------------------------------------


def test_a_filter_is_asked_once_for_each_class_and_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    app = shop()
    counting = Counting()
    app.filter_lists(counting, classify=team_of)
    described: list[str] = []
    descriptor = Tool.descriptor

    def counted(tool: Tool, version: str) -> dict[str, Any]:
        described.append(version)
        return descriptor(tool, version)

    monkeypatch.setattr(Tool, "descriptor", counted)

    async def run() -> None:
        for _ in range(3):
            for version in VERSIONS:
                for principal in ("ada", "grace", "bob", "nobody"):
                    caller = Caller(app, version, principal)
                    assert len(await caller.list("tools/list")) == (5 if team_of(principal) == "staff" else 3)

    in_loop(run)
    assert sorted(counting.asked) == sorted(
        (team, name) for team in ("staff", "guest") for name in ALL["tools/list"]
    )
    assert len(described) == len(VERSIONS) * (5 + 3)


def test_only_the_classes_that_were_used_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_filter, "MOST_CLASSES", 2)
    app = shop()
    asked: list[str] = []

    def note(principal: str, item: ListItem) -> bool:
        asked.append(principal)
        return True

    app.filter_lists(note)

    async def run() -> None:
        caller = Caller(app, STATELESS)
        for caller.principal in "abacab":
            await caller.list("prompts/list")

    in_loop(run)
    assert "".join(asked[::2]) == "abcb"


def test_no_more_bytes_are_kept_than_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    app = shop()
    app.filter_lists(lambda principal, item: True)

    async def run() -> None:
        caller = Caller(app, STATELESS)
        for number in range(200):
            caller.principal = str(number)
            await caller.list("tools/list")
        lists = app.runtime.filters.caller_lists
        assert lists is not None
        page = sum(len(page) for page in lists.view("199").pages.values())
        assert lists._size == sum(view.size for view in lists._views.values()) >= 199 * page
        monkeypatch.setattr(list_filter, "MOST_BYTES", 10 * page)
        caller.principal = "200"
        await caller.list("tools/list")
        assert 0 < lists._size <= 10 * page
        monkeypatch.setattr(list_filter, "MOST_BYTES", 1)
        for caller.principal in ("201", "202"):
            assert await caller.list("tools/list") == ALL["tools/list"]
        assert len(lists._views) == 1

    in_loop(run)


def test_what_is_made_for_a_class_that_was_dropped_meanwhile_is_not_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(list_filter, "MOST_CLASSES", 1)
    app = shop()
    app.filter_lists(shows)
    first = app.runtime.filters.view_of("first")
    second = app.runtime.filters.view_of("second")
    lists = app.runtime.filters.caller_lists
    assert first
    assert second
    assert lists
    assert first.entries(app.registries.tools) == second.entries(app.registries.tools)
    assert lists._size == second.size > 0


def test_a_caller_that_comes_into_another_class_sees_its_lists_at_once() -> None:
    app = shop()
    teams = {"ada": "guest"}
    app.filter_lists(shows, classify=teams.__getitem__)

    async def run() -> None:
        caller = Caller(app, LATEST_SESSION_VERSION, "ada")
        for _ in range(2):
            assert await caller.list("tools/list") == OPEN["tools/list"]
        teams["ada"] = "staff"
        assert await caller.list("tools/list") == ALL["tools/list"]

    in_loop(run)


def test_what_is_added_or_removed_is_in_the_lists_of_all_who_see_it() -> None:
    app = shop()
    app.filter_lists(shows, classify=team_of)

    async def run() -> None:
        staff, guest = Caller(app, STATELESS, "ada"), Caller(app, STATELESS, "bob")
        for caller in (staff, guest):
            await caller.list("tools/list")
        app.add_tool(lambda: "", name="secret_2")
        app.remove_tool("open_0")
        assert await staff.list("tools/list") == [*ALL["tools/list"][1:], "secret_2"]
        assert await guest.list("tools/list") == OPEN["tools/list"][1:]

    in_loop(run)


@pytest.mark.parametrize("version", [LATEST_SESSION_VERSION, STATELESS])
def test_a_filter_that_is_added_later_holds_for_connections_that_have_lists_already(version: str) -> None:
    app = shop()

    async def run() -> None:
        caller = Caller(app, version, "bob")
        for _ in range(3):
            assert await caller.list("tools/list") == ALL["tools/list"]
        assert "did you mean" in str(await caller.ask("tools/call", name="secret_00"))
        app.filter_lists(shows, classify=team_of)
        assert await caller.list("tools/list") == OPEN["tools/list"]
        assert "secret_0," not in str(await caller.ask("tools/call", name="secret_00"))

    in_loop(run)


# --- lists_changed ----------------------------------------------------------------------------------------


def test_lists_changed_has_filters_asked_anew_and_clients_told() -> None:
    app = shop()
    is_open = False
    app.filter_lists(lambda principal, item: is_open or "secret" not in (item.uri or item.name))
    changed = [f"notifications/{name}/list_changed" for name in ("tools", "resources", "prompts")]

    async def converse(client: Client) -> None:
        nonlocal is_open
        for _ in range(2):
            assert [tool["name"] for tool in await client.tools()] == OPEN["tools/list"]
        is_open = True
        app.lists_changed()
        while len(client.notifications) < len(changed):
            await asyncio.sleep(0.002)
        assert [notification["method"] for notification in client.notifications] == changed
        assert [tool["name"] for tool in await client.tools()] == ALL["tools/list"]
        assert [prompt["name"] for prompt in await client.prompts()] == ALL["prompts/list"]

    with_client(app, converse)


def test_streams_of_changes_hear_that_lists_have_changed() -> None:
    app = shop()
    app.filter_lists(shows, classify=team_of)

    async def converse(client: Client) -> None:
        async with client.listen(tools=True, prompts=True) as stream:
            app.lists_changed()
            methods = [(await stream.__anext__())["method"] for _ in range(2)]
            assert methods == ["notifications/tools/list_changed", "notifications/prompts/list_changed"]

    with_client(app, converse, STATELESS)


# --- filters that fail ------------------------------------------------------------------------------------


def broken(*arguments: Any) -> Any:
    raise ValueError("the secret reason")


async def later(*arguments: Any) -> bool:
    return True


FAILING: dict[str, tuple[Any, Any, str]] = {
    "shows raises": (broken, team_of, "ValueError: the secret reason"),
    "classify raises": (shows, broken, "ValueError: the secret reason"),
    "shows exits": (lambda team, item: sys.exit(3), team_of, "SystemExit"),
    "shows refuses": (lambda team, item: refuse(), team_of, "ToolError: the secret reason"),
    "shows returns no bool": (lambda team, item: 1, team_of, "shows: expected True or False, got 1"),
    "shows returns nothing": (lambda team, item: None, team_of, "expected True or False, got None"),
    "shows is a coroutine": (later, team_of, "expected True or False, got <coroutine"),
    "classify is a coroutine": (shows, later, "classify: expected a class, got <coroutine"),
    "a class cannot be hashed": (shows, lambda principal: [principal], "unhashable type"),
}


def refuse() -> bool:
    raise ToolError("the secret reason")


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
@pytest.mark.parametrize("version", [LATEST_SESSION_VERSION, STATELESS])
@pytest.mark.parametrize("name", FAILING)
def test_a_list_whose_filter_fails_is_an_error_and_the_log_says_why(
    name: str, version: str, caplog: pytest.LogCaptureFixture
) -> None:
    function, classify, logged = FAILING[name]
    tracebacks._places.clear()  # the same failure of another test is only counted
    app = shop()
    app.filter_lists(function, classify=classify)

    async def run() -> None:
        caller = Caller(app, version, "ada")
        for _ in range(2):
            for method in METHODS:
                error = await caller.error(method)
                assert (error["code"], error["message"]) == (-32603, "Internal error; see the server's log")
        error = await caller.error("tools/call", name="open_00")
        assert error["message"] == "Unknown tool: open_00"  # and nothing is suggested: no list is at hand
        assert (await caller.ask("tools/call", name="open_0"))["result"]["isError"] is False

    in_loop(run)
    tracebacks.flush()
    assert logged in caplog.text


@pytest.mark.parametrize(("function", "classify"), [(5, None), (None, team_of), (shows, "team")])
def test_what_is_no_function_is_refused_at_once(function: Any, classify: Any) -> None:
    with pytest.raises(DefinitionError, match=r"filter_lists: (shows|classify): expected a function, got"):
        shop().filter_lists(function, classify=classify)


# --- servers of servers -----------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [LATEST_SESSION_VERSION, STATELESS])
def test_filters_of_host_and_mounted_server_both_hold(version: str) -> None:
    inner, app = shop(), Server("host")
    inner.resources("db")(Rows)
    inner_items: set[str] = set()

    def shows_inner(team: str, item: ListItem) -> bool:
        inner_items.add(item.uri or item.name)
        return shows(team, item)

    inner.filter_lists(shows_inner, classify=team_of)
    middle = Server("middle")
    middle.mount(inner, "in")
    app.mount(middle, "mid")
    app.add_tool(lambda: "", name="own")

    async def run() -> None:
        staff, guest = Caller(app, version, "ada"), Caller(app, version, "bob")

        async def both(method: str, prefix: str, *own: str, rows: bool = False) -> None:
            for caller, keys, those in ((staff, ALL, ROWS), (guest, OPEN, ROWS[::2])):
                expected = [prefix + key for key in keys[method]] + (those if rows else [])
                assert sorted(await caller.list(method)) == sorted([*expected, *own])

        for _ in range(2):
            await both("tools/list", "mid_in_", "own")
            await both("prompts/list", "mid_in_")
            await both("resources/list", "", rows=True)
            await both("resources/templates/list", "")
        assert inner_items == {key for keys in ALL.values() for key in keys} | set(ROWS)
        app.filter_lists(lambda principal, item: item.name != "mid_in_open_1")
        assert "mid_in_open_1" not in await staff.list("tools/list")
        inner.filter_lists(lambda principal, item: item.name != "open_2")
        assert await guest.list("tools/list") == ["mid_in_open_0", "own"]

    in_loop(run)


def test_the_filter_of_a_server_that_is_mounted_twice_is_asked_once_for_each_entry() -> None:
    inner, app = shop(), Server("host")
    asked: list[str] = []

    def note(principal: str, item: ListItem) -> bool:
        asked.append(item.name)
        return True

    inner.filter_lists(note)
    for registry in (inner.registries.resources, inner.registries.templates):
        registry.replace([entry.key for entry in registry], [])  # their addresses have no prefix
    app.mount(inner, "a")
    app.mount(inner, "b")

    async def run() -> None:
        assert len(await Caller(app, STATELESS).list("tools/list")) == 2 * len(ALL["tools/list"])

    in_loop(run)
    assert sorted(asked) == sorted(2 * ALL["tools/list"])


def test_a_server_with_a_filter_that_is_mounted_later_brings_it() -> None:
    inner, app = shop(), Server("host")
    inner.filter_lists(shows, classify=team_of)

    async def run() -> None:
        caller = Caller(app, STATELESS, "bob")
        for _ in range(2):
            assert await caller.list("tools/list") == []
        app.mount(inner)
        assert await caller.list("tools/list") == OPEN["tools/list"]

    in_loop(run)


def test_what_a_proxy_passes_on_is_filtered() -> None:
    app = Server.proxy([sys.executable, "-c", UPSTREAM + "\napp.run()"])
    app.filter_lists(lambda principal, item: principal == "ada" or item.name in ("add", "fail"))

    async def converse(client: Client) -> None:
        assert [tool["name"] for tool in await client.tools()] == ["add", "fail"]
        assert await client.prompts() == []
        caller = Caller(app, LATEST_SESSION_VERSION, "ada")
        assert len(await caller.list("tools/list")) > 5
        assert await caller.list("prompts/list")
        caller.principal = "bob"
        assert await caller.list("tools/list") == ["add", "fail"]
        assert (await client.call("add", a=1)).text == "3"

    with_client(app, converse)


# --- caching hints ----------------------------------------------------------------------------------------


@pytest.fixture(params=["own", "mounted", "none"])
def public(request: pytest.FixtureRequest) -> tuple[Server, str]:
    """A server whose lists anybody may keep, and the hint that they must carry."""
    app = shop(cache_scope="public")
    if request.param == "own":
        app.filter_lists(shows, classify=team_of)
    elif request.param == "mounted":
        inner = Server("inner")
        inner.filter_lists(shows, classify=team_of)
        app.mount(inner)
    return app, "public" if request.param == "none" else "private"


def test_lists_that_depend_on_the_caller_may_be_kept_for_it_alone(public: tuple[Server, str]) -> None:
    app, expected = public
    app.resources("db")(Rows)

    async def run() -> None:
        caller = Caller(app, STATELESS, "bob")
        for method in METHODS:
            result = (await caller.ask(method))["result"]
            assert (result["cacheScope"], result["ttlMs"]) == (expected, 60_000)
        discovered = (await caller.ask("server/discover"))["result"]
        assert discovered["cacheScope"] == "public"
        for version in SESSION_VERSIONS:
            assert "cacheScope" not in (await Caller(app, version, "bob").ask("tools/list"))["result"]

    in_loop(run)
