"""ReadDocs without a browser: what it takes, what it says, the parts of long pages.

Pages in the real Chromium are in tests/integration/test_read_docs_pages.py.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import pytest
from fastrpc.tools import _reach
from fastrpc.tools.agent import _browser, _page_cache, _web_address
from fastrpc.tools.agent._browser import folder as browser_folder
from fastrpc.tools.agent.read_docs import read_docs
from support import chromium
from support.chromium import ARTICLE, PARAGRAPH, Reader, facts_of, text_of
from support.web_server import Web

from fastrpc import Context, Server, ToolError
from fastrpc.testing import Client


@pytest.fixture(scope="module")
def browser_loop(shelter: str) -> Iterator[chromium.Loop]:
    """The same whether or not there is a Chromium: none is used here."""
    loop = chromium.Loop()
    yield loop
    loop.close()


@pytest.fixture
def read(read: Reader, monkeypatch: pytest.MonkeyPatch) -> Reader:
    """ReadDocs without a browser."""
    monkeypatch.setenv("FASTRPC_BROWSER", "/no/such/browser")
    return read


# --- without a browser ----------------------------------------------------------------------------------


def test_without_a_browser_it_reads_by_http_and_says_so(read: Reader, web: Web) -> None:
    """ReadDocs: without a browser it reads by plain HTTP, and the result says so."""
    web.page("/page", f"<nav>About</nav><main>{ARTICLE}</main>", "Tides")
    result = read(web.redirect("/", "/page"))
    title, address, note, _, *content = text_of(result).split("\n")
    assert (title, address) == ("Tides", web.url("/page"))
    why = "FASTRPC_BROWSER names /no/such/browser, which is not a program"
    assert note == f"[read by plain HTTP, scripts did not run: {why}]"
    assert PARAGRAPH.strip() in "\n".join(content)
    assert facts_of(result)["via"] == "http"
    assert "By HTTP" in text_of(read(web.add("/x.pdf", chromium.pdf("By HTTP"), "application/pdf")))


def test_a_browser_that_does_not_start_is_done_without(
    read: Reader, web: Web, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = str(tmp_path / "broken")
    with open(broken, "w") as file:
        file.write(f"#!/bin/sh\necho >> {broken}.starts\necho 'FATAL: no display' >&2\nexit 1\n")
    os.chmod(broken, 0o755)
    monkeypatch.setenv("FASTRPC_BROWSER", broken)
    monkeypatch.setattr(_browser, "_browsers", {})
    monkeypatch.setattr(_browser, "_refusal", (0.0, "", ""))
    url = web.page("/", ARTICLE, "Tides")
    assert f"scripts did not run: {broken} does not start: " in text_of(read(url))
    with open(f"{broken}.starts") as file:
        starts = file.read()
    assert starts
    assert "does not start" in text_of(read(url))  # remembered for a while
    with open(f"{broken}.starts") as file:
        assert file.read() == starts


def test_without_playwright_it_reads_by_http(read: Reader, web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "playwright" else find(name)
    )
    monkeypatch.setenv("FASTRPC_BROWSER", sys.executable)
    monkeypatch.setattr(_browser, "_browsers", {})
    monkeypatch.setattr(_browser, "_refusal", (0.0, "", ""))
    assert "playwright is not installed" in text_of(read(web.page("/", ARTICLE)))
    monkeypatch.setattr(_browser, "_refusal", (0.0, "", ""))


@pytest.mark.parametrize(
    ("data", "media", "text"),
    [
        ("é".encode(), "text/html", "é"),
        ("é".encode("latin-1"), "text/html", "é"),
        ("\ufeffé".encode(), "text/html; charset=latin-1", "é"),
        ('<meta charset="windows-1256">س'.encode("cp1256"), "text/html", '<meta charset="windows-1256">س'),
        (
            "<?xml version='1.0' encoding='koi8-r'?>я".encode("koi8-r"),
            "text/xml",
            "<?xml version='1.0' encoding='koi8-r'?>я",
        ),
        ("“".encode("cp1252"), "text/html; charset=ISO-8859-1", "“"),
        ("é".encode(), 'text/html; charset="no-such"', "é"),
    ],
)
def test_bytes_are_decoded_as_browsers_do(data: bytes, media: str, text: str) -> None:
    from fastrpc.tools.agent._fetch import text_of as decoded

    assert decoded(data, media) == text


def test_an_address_with_arabic_in_it_is_found(read: Reader, web: Web) -> None:
    web.add("/%D9%85%D8%B1%D8%AD%D8%A8%D8%A7", "found", "text/plain")
    assert "found" in text_of(read(web.url("/مرحبا")))


# --- long pages -----------------------------------------------------------------------------------------


@pytest.fixture
def book(web: Web, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("FASTRPC_RESULT_CHARACTERS", "3000")
    paragraphs = "".join(
        f"<p>Paragraph {number} begins. {PARAGRAPH}Its end {number}.</p>" for number in range(30)
    )
    return web.page("/book", f"<main>{paragraphs}</main>", "Book")


def test_a_long_page_is_cut_at_a_paragraph_and_goes_on_without_a_second_download(
    read: Reader, web: Web, book: str
) -> None:
    """ReadDocs: a long page is cut at a paragraph, and `offset` goes on without a second download."""
    offset, parts, seen = 0, 0, ""
    while offset is not None:
        result = read(book, offset=offset) if offset else read(book)
        text, facts = text_of(result), facts_of(result)
        assert len(text) < 3000
        assert facts["offset"] == offset
        content = text.split("\n\n", 1)[1].rpartition("\n[characters ")[0].strip("\n")
        assert content.startswith("Paragraph")
        assert content.endswith(".")
        seen += content
        offset, parts = facts["next_offset"], parts + 1
        assert ("goes on]" in text) is (offset is not None)
    assert parts > 3
    assert [seen.count(f"Its end {number}.") for number in range(30)] == [1] * 30
    assert web.count("/book") == 1


def test_without_an_offset_the_page_is_read_anew(read: Reader, web: Web, book: str) -> None:
    read(book)
    read(book)
    assert web.count("/book") == 2


def test_the_final_address_goes_on_too(read: Reader, web: Web, book: str) -> None:
    moved = web.redirect("/moved", "/book")
    first = facts_of(read(moved))
    assert facts_of(read(first["url"], offset=first["next_offset"]))["offset"] == first["next_offset"]
    assert web.count("/book") == 1


def test_a_copy_that_is_gone_is_read_again_and_said_so(
    read: Reader, web: Web, book: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    offset = facts_of(read(book))["next_offset"]
    monkeypatch.setattr(_page_cache, "_pages", {})
    assert "[no copy of the page was left" in text_of(read(book, offset=offset))
    assert web.count("/book") == 2


def test_an_offset_beyond_the_page_is_refused(read: Reader, book: str) -> None:
    assert re.match(
        r"offset: expected less than \d+, .*; got 99999999\.", read.refused(book, offset=99_999_999)
    )
    assert read.refused(book, offset=-1) == "offset: expected 0 or more, got -1."


def test_copies_are_few_and_go_with_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_page_cache, "_pages", {})
    for number in range(_page_cache.KEEP_PAGES + 10):
        page = _page_cache.Page("", "x", {"format": "text"}, [])
        _page_cache.put({f"http://a/{number}", f"http://b/{number}"}, page)
    assert len(_page_cache._pages) == 2 * _page_cache.KEEP_PAGES
    assert _page_cache.get("http://a/0", "text") is None
    assert _page_cache.get(f"http://b/{number}", "text") is page
    assert _page_cache.get(f"http://b/{number}", "html") is None
    _page_cache.put(
        {"big"}, _page_cache.Page("", "x" * (_page_cache.KEEP_CHARACTERS + 1), {"format": "text"}, [])
    )
    assert list(_page_cache._pages) == [("big", "text")]
    _page_cache._pages["big", "text"].read_at -= _page_cache.KEEP_SECONDS + 1
    assert _page_cache.get("big", "text") is None


def test_a_line_without_end_is_cut_between_characters(
    read: Reader, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FASTRPC_RESULT_CHARACTERS", "1400")
    family = "👩‍👩‍👧‍👦"
    url = web.add("/line", family * 300, "text/plain; charset=utf-8")
    result = read(url)
    shown = text_of(result).split("\n\n", 1)[1].partition("\n")[0]
    assert shown == family * (len(shown) // len(family))
    assert facts_of(result)["next_offset"] == len(shown)


# --- what is no HTML ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("media", "body"),
    [
        ("text/plain", "plain\n\n  indented"),
        ("application/json", '{"a": [1, 2]}'),
        ("application/vnd.api+json; charset=utf-8", '{"data": null}'),
        ("text/markdown", "# Not *rendered*"),
        ("text/csv", "a,b\n1,2"),
        ("application/xml", "<?xml version='1.0'?><a>b</a>"),
        ("application/rss+xml", "<rss><channel/></rss>"),
        ("text/x-python", "def f():\n    pass"),
        ("application/octet-stream", "fn main() {}"),
        ("application/x-unheard-of", "words"),
    ],
)
def test_plain_text_is_read_as_it_is(read: Reader, web: Web, media: str, body: str) -> None:
    """ReadDocs: plain text is read as it is."""
    result = read(web.add("/file", body, media))
    title, address, _, shown = text_of(result).split("\n", 3)
    assert (title, address, shown) == ("(no title)", web.url("/file"), "\n" + body)
    assert facts_of(result)["content_type"] == media


# --- only http and https --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "FILE:/etc/passwd",
        "data:text/html,<h1>hi</h1>",
        "chrome://version",
        "about:blank",
        "view-source:http://127.0.0.1/",
        "javascript:alert(1)",
        "javascript:1",
        "ftp://127.0.0.1/x",
        "blob:http://127.0.0.1/x",
        "ws://127.0.0.1/",
        "chrome-extension://x/y",
    ],
)
def test_other_schemes_are_refused(url: str) -> None:
    """ReadDocs: only http and https are read."""
    with pytest.raises(ToolError, match=r"^url: expected an http or https address, got .*: is refused\.$"):
        asyncio.run(read_docs(url, Context()))


@pytest.mark.parametrize(
    "url", ["", "   ", "http://", "https:///", "http://?x", "ht\ttp://a/", "http://a\n/", "x" * 20000]
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ToolError, match=r"^url: expected "):
        asyncio.run(read_docs(url, Context()))


def test_an_address_without_a_scheme_is_https_and_on_this_machine_http(read: Reader, web: Web) -> None:
    from fastrpc.tools.agent._web_address import address_of

    assert address_of(" example.com/docs ") == "https://example.com/docs"
    assert address_of("example.com:8080") == "https://example.com:8080"
    assert address_of("//example.com/a b") == "https://example.com/a%20b"
    assert address_of("HTTP:\\\\example.com") == "http://example.com"
    web.add("/x", "here", "text/plain")
    assert "here" in text_of(read(f"localhost:{web.port}/x"))


# --- who may reach what ---------------------------------------------------------------------------------


def reach_of(app: Server) -> Any:
    """What a call of a tool of this server may reach."""
    inner = next(iter(app._mounts), app)

    @inner.tool
    async def reach(ctx: Context) -> str:
        return repr(_reach.of(ctx).networks)

    async def ask() -> str:
        async with Client(app) as client:
            text: str = (await client.call("reach")).text
            return text

    return asyncio.run(ask())


def test_callers_over_http_reach_public_addresses_and_others_everything() -> None:
    alone, served = Server("alone"), Server("served")
    served.asgi(auth=None)
    assert (reach_of(alone), reach_of(served)) == ("None", "()")
    assert _reach.of(Context()) == _reach.of(None) == (None, False)


def test_a_server_that_is_mounted_in_one_over_http_is_over_http_too() -> None:
    host, inner, innermost = Server("host"), Server("inner"), Server("innermost")
    inner.mount(innermost)
    host.mount(inner)
    assert not innermost.over_http
    assert reach_of(inner) == "None"
    host.asgi(auth=None)
    assert inner.over_http
    assert innermost.over_http
    other = Server("other")
    other.mount(Server("in other"))
    other.asgi(auth=None)
    assert reach_of(other) == "()"


@pytest.mark.parametrize(
    ("setting", "here", "over_http"),
    [
        ("", None, ()),
        ("  ,", None, ()),
        (" all ", None, None),
        ("PUBLIC", (), ()),
        ("10.1.0.0/16, fd12::/16,", ("10.1.0.0/16", "fd12::/16"), ("10.1.0.0/16", "fd12::/16")),
        ("public,127.0.0.1", ("127.0.0.1",), ("127.0.0.1",)),
    ],
)
def test_the_setting_says_what_may_be_reached(
    setting: str, here: Any, over_http: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FASTRPC_REACH", setting)
    served = Server("served")
    served.asgi(auth=None)
    assert (reach_of(Server("here")), reach_of(served)) == (repr(here), repr(over_http))


def test_the_sandbox_gives_way_only_for_those_who_run_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FASTRPC_BROWSER_SANDBOX", raising=False)
    mine, theirs, wide = _reach.Reach(), _reach.Reach((), True), _reach.Reach(None, True)
    assert [_browser._sandbox(reach) for reach in (mine, theirs, wide)] == ["on", "must", "must"]
    monkeypatch.setenv("FASTRPC_BROWSER_SANDBOX", "0")
    assert [_browser._sandbox(reach) for reach in (mine, theirs, wide)] == ["off", "off", "off"]
    monkeypatch.setenv("FASTRPC_BROWSER_SANDBOX", "1")
    assert _browser._sandbox(mine) == "must"


@pytest.mark.parametrize("setting", ["none", "all,10.0.0.0/8", "10.1.2.3/8", "example.com", "*"])
def test_with_a_setting_that_means_nothing_nothing_is_read(
    setting: str, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FASTRPC_REACH", setting)
    with pytest.raises(ToolError, match=r"^FASTRPC_REACH: expected public, all, or networks such as "):
        asyncio.run(read_docs(web.page("/", ARTICLE), Context()))
    assert web.requests == []


def test_a_copy_of_a_page_is_not_for_those_who_may_reach_less(
    read: Reader, web: Web, book: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    offset = facts_of(read(book))["next_offset"]
    monkeypatch.setenv("FASTRPC_REACH", "public")
    place = f"127.0.0.1:{web.port}"
    assert read.refused(book, offset=offset).startswith(
        f"The page could not be loaded: {place} is not a public "
    )
    monkeypatch.setenv("FASTRPC_REACH", "127.0.0.0/8")
    assert "[no copy of the page was left" in text_of(read(book, offset=offset))
    assert web.count("/book") == 2


@pytest.mark.parametrize(
    ("address", "place"),
    [
        ("http://a/", ("a", 80)),
        ("https://a", ("a", 443)),
        ("https://u:p@a:8?b:9", ("a", 8)),
        ("http://[::1]#:3", ("::1", 80)),
        ("https://[::1]:65535/x@y:4", ("::1", 65535)),
        ("chrome-error://chromewebdata/", ("chromewebdata", 80)),
        ("about:blank", ("", 80)),
    ],
)
def test_host_and_port_of_an_address(address: str, place: tuple[str, int]) -> None:
    assert _web_address.place_of(address) == place


# --- the browser's life ---------------------------------------------------------------------------------


def test_the_browser_is_found_by_its_usual_names_or_by_the_setting(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ReadDocs: the browser is chromium, chromium-browser or google-chrome, or that of `FASTRPC_BROWSER`."""
    for name in ("google-chrome", "chromium-browser", "chromium"):
        program = tmp_path / name
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.delenv("FASTRPC_BROWSER", raising=False)
        assert _browser.find() == str(program)
    monkeypatch.setenv("FASTRPC_BROWSER", str(tmp_path / "google-chrome"))
    assert _browser.find() == str(tmp_path / "google-chrome")
    monkeypatch.setenv("FASTRPC_BROWSER", "chromium-browser")
    assert _browser.find() == str(tmp_path / "chromium-browser")


def test_folders_of_the_dead_are_removed_and_those_of_the_living_stay(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(browser_folder, "LONGEST_BASE", 1000)
    living = browser_folder.Folder()
    names = ("dead", "new", "abandoned")
    paths = [tmp_path / f"{browser_folder.PREFIX}{name}" for name in names]
    for path in paths:
        (path / "deep").mkdir(parents=True)
    (paths[0] / "lock").write_text("")
    os.utime(paths[2], (1, 1))
    (tmp_path / f"{browser_folder.PREFIX}link").symlink_to("/etc")
    other = browser_folder.Folder()
    assert [path.exists() for path in paths] == [False, True, False]
    assert os.path.isdir(living.path)
    assert os.path.exists("/etc/passwd")
    living.remove()
    other.remove()
    other.remove()
    assert not os.path.exists(living.path)
