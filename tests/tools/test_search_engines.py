"""What WebSearch is made of: pages of engines, texts, addresses, redirects, merging, the breaker."""

from __future__ import annotations

import asyncio
import base64
import os
import socket
from typing import Any

import pytest
from fastrpc.tools.agent import _search
from fastrpc.tools.agent._search import _network, _text
from fastrpc.tools.agent._search._breaker import FAILURES, SECONDS, Breaker
from fastrpc.tools.agent._search._engine import Blocked, Failed, Hit, Page, language_of
from fastrpc.tools.agent._search._merge import merge
from fastrpc.tools.agent._search._urls import canonical, shown, unwrap
from hypothesis import given
from hypothesis import strategies as st
from support.search_engines import CAPTCHAS, fixture, fixture_path

ENGINES = list(_search.PUBLISHED)

# --- the engines' pages -----------------------------------------------------------------------------------

GUIDE = "https://example.org/guide?a=1"
PAGES = {
    "duckduckgo": [
        ("The & Guide <2>", "https://www.example.org/guide?a=1", "How to begin with it, in two lines."),
        (
            "دليلُ المبتدئين 👩‍💻 می‌خواهم",
            "https://ar.example/%D9%85%D9%82%D8%A7%D9%84",
            "مرحبًا بكم في الدليل، cafe\u0301 é",
        ),
        (
            "Third, with an escaped slash",
            "https://three.example/a%2Fb?q=x%26y",
            "No decoding of addresses.",
        ),
    ],
    "bing": [
        ("The Guide", "https://example.org/guide/?a=1#intro", "Everything about the guide."),
        ("Second of Bing", "https://bing-two.example/page", "Jan 1, 2026 · Its second page."),
        ("Third of Bing", "https://bing-three.example/", "Without a caption."),
    ],
    "brave": [
        ("The Guide", GUIDE, "2 days ago - What Brave says of it."),
        ("Second of Brave", "https://brave-two.example/", "Its second page."),
    ],
    "google": [
        ("The Guide – Example", GUIDE, "Google’s words about the guide."),
        ("Second of Google", "https://google-two.example/caf%C3%A9", "Its second page."),
    ],
    "mojeek": [
        ("First of Mojeek", "https://mojeek-one.example/", "An index of its own."),
        ("The Guide", "http://www.example.org:80/guide/?a=1#top", "Found by a crawler."),
    ],
    "yahoo": [
        ("The Guide", GUIDE, "What Yahoo says of it."),
        ("Second of Yahoo", "https://yahoo-two.example/a%20b", "Its second page."),
    ],
    "yandex": [
        ("Первая страница", "https://yandex-one.example/страница", "Текст первой страницы."),
        ("The Guide", GUIDE, "Found by Yandex."),
    ],
    "startpage": [
        ("The Guide – Example", GUIDE, "What Startpage says of it."),
        ("Second of Startpage", "https://startpage-two.example/#/route", "Its second page."),
    ],
    "qwant": [
        ("The Guide", GUIDE, "What Qwant says of it: 5 < 6"),
        ("Second of Qwant", "https://qwant-two.example/", ""),
    ],
    "wikipedia": [
        ("Guide (example)", "https://en.wikipedia.org/wiki/Guide_(example)", 'A guide is "a book" that'),
        (
            "عين & قاف",
            "https://en.wikipedia.org/wiki/%D8%B9%D9%8A%D9%86_%26_%D9%82%D8%A7%D9%81",
            "مقالة عن الحروف",
        ),
    ],
    "searxng": [
        ("The Guide", GUIDE, "What the instance says of it."),
        ("Second 🙂 \ufffd of SearXNG", "https://searxng-two.example/", "line one line two line three"),
    ],
}


def page_of(engine: str, kind: str = "", status: int = 200, body: bytes | None = None) -> Page:
    url = _search.load(engine).request("query").url
    headers = {"content-type": "text/html; charset=utf-8"}
    return Page(url, status, headers, fixture(engine, kind) if body is None else body)


def read(engine: str, page: Page, query: str = "query") -> list[tuple[str, str, str]]:
    return [(hit.title, hit.url, hit.snippet) for hit in _search.load(engine).read(page, query)]


def test_there_are_the_eleven_published_engines_each_with_a_page_of_its_shape() -> None:
    """WebSearch: there are eleven engines, by name."""
    assert _search.names() == ENGINES == list(PAGES) == list(CAPTCHAS)
    assert len(ENGINES) == 11
    for name in ENGINES:
        assert _search.load(name).name == name
        assert os.path.exists(fixture_path(name))


@pytest.mark.parametrize("engine", ENGINES)
def test_an_engines_page_is_read_exactly(engine: str) -> None:
    """WebSearch: the page of each engine is read exactly."""
    assert read(engine, page_of(engine)) == PAGES[engine]


@pytest.mark.parametrize("engine", ["google", "yandex"])
def test_the_page_for_browsers_with_scripts_is_read_to_the_same(engine: str) -> None:
    assert read(engine, page_of(engine, "scripts")) == PAGES[engine]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_page_that_says_there_is_nothing_is_empty(engine: str) -> None:
    assert read(engine, page_of(engine, "empty")) == []


@pytest.mark.parametrize("engine", ENGINES)
def test_a_captcha_is_a_block(engine: str) -> None:
    with pytest.raises(Blocked):
        read(engine, page_of(engine, "captcha"))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "body", [b"", b"\xff\xfe\x00<<", b"{}", b"[]", b"null", b'{"data": 1}', b"<p>All is new here</p>"]
)
def test_a_page_of_an_unknown_shape_is_an_error_and_not_no_results(engine: str, body: bytes) -> None:
    """WebSearch: a page of an unknown shape is an error and not "no results"."""
    with pytest.raises(Failed):
        read(engine, page_of(engine, body=body))


@pytest.mark.parametrize("engine", ENGINES)
def test_the_status_decides_before_the_page(engine: str) -> None:
    for status in (401, 403, 429):
        with pytest.raises(Blocked, match=str(status)):
            read(engine, page_of(engine, status=status))
    for status in (404, 500, 503):
        with pytest.raises(Failed, match=str(status)):
            read(engine, page_of(engine, status=status))


def test_the_words_of_the_query_are_no_sign_of_anything() -> None:
    page = page_of("mojeek", "empty")
    page.body = page.body.replace(b"query", b"captcha solver")
    assert read("mojeek", page, "captcha solver") == []
    changed = page_of("bing", body=b"<body><h1>captcha solver</h1><p>new shape</p></body>")
    with pytest.raises(Failed):
        read("bing", changed, "Captcha  solver")


# --- texts ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "plain"),
    [
        (" a \r\n\t b\u2028c\x00\x07\x85d ", "a b c d"),
        ("x" * 20, "x" * 20),
        ("x" * 21, "x" * 19 + "…"),
        ("one two three four five", "one two three four…"),
        ("1234567890123456 👩‍💻👩‍💻", "1234567890123456…"),
        ("123456789012345678👩‍💻", "123456789012345678…"),
        ("12345678901234567e\u0301e\u0301x", "12345678901234567e\u0301…"),
        ("م‌ی‏‎ e\u0301 é", "م‌ی‏‎ e\u0301 é"),
        ("\ud800", "\ufffd"),
    ],
)
def test_a_text_becomes_one_bounded_line_and_keeps_its_characters(given: str, plain: str) -> None:
    assert _text.plain(given, 20) == plain


@pytest.mark.parametrize(
    ("query", "language"),
    [
        ("hello", "en"),
        ("café", "en"),
        ("مرحبا", "ar"),
        ("x привет", "ru"),
        ("検索エンジン", "ja"),
        ("搜索", "zh"),
    ],
)
def test_wikipedia_is_asked_in_the_language_of_the_script(query: str, language: str) -> None:
    assert language_of(query) == language
    url = _search.load("wikipedia").request(query).url
    assert url == f"https://{language}.wikipedia.org/w/api.php"


# --- addresses --------------------------------------------------------------------------------------------

TARGET = "https://example.org/a?b=1&c=%D9%85"
ENCODED = base64.urlsafe_b64encode(TARGET.encode()).decode().rstrip("=")
ESCAPED = "https%3A%2F%2Fexample.org%2Fa%3Fb%3D1%26c%3D%25D9%2585"


@pytest.mark.parametrize(
    "wrapped",
    [
        f"https://www.bing.com/ck/a?!&&p=1&u=a1{ENCODED}&ntb=1",
        f"https://www.google.com/url?q={ESCAPED}&sa=U",
        f"https://www.google.de/url?sa=t&url={ESCAPED}",
        f"https://duckduckgo.com/l/?uddg={ESCAPED}&rut=1",
        f"https://r.search.yahoo.com/_ylt=A/RV=2/RO=10/RU={ESCAPED}/RK=2/RS=x-",
        f"https://duckduckgo.com/l/?uddg=https%3A%2F%2Fgoogle.com%2Furl%3Fq%3D{ESCAPED.replace('%', '%25')}",
    ],
)
def test_the_address_that_an_engine_redirects_to_is_found(wrapped: str) -> None:
    """WebSearch: redirects of engines are undone."""
    assert unwrap(wrapped) == TARGET
    assert shown(wrapped, "https://engine.example/") == TARGET
    assert canonical(wrapped) == canonical(TARGET)


@pytest.mark.parametrize(
    "other",
    [
        "http://example.org/page?q=1",
        "HTTPS://WWW.Example.ORG:443/page/?q=1",
        "http://www.example.org:80/page?q=1#part",
        "https://example.org./page?q=1&utm_source=x&UTM_Medium=y",
        "https://example.org/page?fbclid=1&q=1&gclid=2&msclkid=3&yclid=4&srsltid=5",
        "https://example.org/%70age?q=%31#:~:text=words",
    ],
)
def test_one_page_has_one_key(other: str) -> None:
    """WebSearch: a canonical URL has one entry."""
    assert canonical(other) == "https://example.org/page?q=1"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://example.org/a", "https://example.org/A"),
        ("https://example.org/a?q=1", "https://example.org/a?q=2"),
        ("https://example.org/a%2Fb", "https://example.org/a/b"),
        ("https://example.org:8443/", "https://example.org/"),
        ("https://app.example/#/one", "https://app.example/#/two"),
        ("https://www.com/", "https://com/"),
    ],
)
def test_different_pages_have_different_keys(one: str, other: str) -> None:
    assert canonical(one) != canonical(other)


def test_names_in_other_scripts_and_escapes_in_either_case_are_the_same() -> None:
    assert canonical("https://BÜCHER.example/é") == canonical("https://xn--bcher-kva.example/%c3%a9")


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "ftp://example.org/",
        "https://user:secret@example.org/",
        "https://",
        "https://[bad/",
        "https://example.org:port/",
        "https://example.org/" + "x" * 2000,
    ],
)
def test_what_is_no_address_of_a_page_is_left_out(address: str) -> None:
    assert shown(address, "https://engine.example/") == ""


def test_a_shown_address_keeps_what_it_needs_and_loses_what_tracks() -> None:
    base = "https://engine.example/search?q=x"
    assert shown("/about us\n#part", base) == "https://engine.example/about%20us#part"
    assert shown("//example.org/?utm_source=a&b=%2F&fbclid=c", base) == "https://example.org/?b=%2F"
    assert shown("https://example.org/\u202egnp\x00", base) == "https://example.org/%E2%80%AEgnp%00"


PIECES = st.sampled_from(
    [
        "www.",
        "example.org",
        "google.com",
        "/url?q=",
        "https://",
        "http%3A%2F%2F",
        "HTTP://",
        ":80",
        ":443",
        "/",
        "?a=1",
        "&utm_source=x",
        "#/r",
        "#x",
        "%",
        "%2",
        "%41",
        "%c3%a9",
        "é",
        "م",
        "👩\u200d💻",
        "..",
        "@",
        "[",
        " ",
        "\n",
        "&",
        "duckduckgo.com/l/?uddg=",
        "bing.com/ck/a?u=a1aHR0cHM6Ly9hLmI",
        "/RU=https%3a//x.y/RK=2",
        "r.search.yahoo.com",
    ]
)
ADDRESSES = st.one_of(st.text(), st.lists(PIECES, max_size=9).map("".join)).map(
    lambda rest: f"https://{rest}"
)


@given(st.one_of(st.text(), ADDRESSES))
def test_the_key_of_a_key_is_itself(address: str) -> None:
    assert canonical(canonical(address)) == canonical(address)


@given(ADDRESSES)
def test_a_shown_address_is_plain_and_leads_to_the_same_page(address: str) -> None:
    url = shown(address, "https://engine.example/")
    assert not url or url.startswith(("http://", "https://"))
    assert url.isprintable()
    assert " " not in url
    assert shown(url, "https://engine.example/") in (url, "")


# --- merging ----------------------------------------------------------------------------------------------

HITS = st.lists(
    st.builds(
        Hit,
        st.sampled_from(["one", "two", "three"]),
        st.sampled_from([f"{scheme}://{name}.example/" for scheme in ("http", "https") for name in "abcdef"]),
        st.sampled_from(["", "text"]),
    ),
    max_size=8,
)


@given(st.dictionaries(st.sampled_from(ENGINES), HITS, max_size=5), st.randoms())
def test_the_order_of_answers_does_not_matter(lists: dict[str, list[Hit]], chance: Any) -> None:
    """WebSearch: the order in which engines answer does not matter."""

    def seen(found: dict[str, list[Hit]]) -> list[Any]:
        return [(entry.title, entry.url, entry.snippet, entry.engines, entry.score) for entry in merge(found)]

    shuffled = list(lists.items())
    chance.shuffle(shuffled)
    assert seen(dict(shuffled)) == seen(lists)
    keys = [canonical(entry.url) for entry in merge(lists)]
    assert len(set(keys)) == len(keys)
    assert set(keys) == {canonical(hit.url) for hits in lists.values() for hit in hits}
    for entry in merge(lists):
        assert entry.engines
        assert len(set(entry.engines)) == len(entry.engines)


def test_a_page_scores_the_sum_of_its_reciprocal_ranks() -> None:
    """WebSearch: results are merged by reciprocal rank."""
    hits = [Hit(name, f"https://{name}.example/", "") for name in "abc"]
    entries = merge(
        {"one": hits, "two": [hits[2], hits[1]], "three": [Hit("B", "http://b.example", "words")]}
    )
    assert [entry.title for entry in entries] == ["B", "c", "a"]
    assert [entry.score for entry in entries] == pytest.approx(
        [1 / 61 + 1 / 62 + 1 / 62, 1 / 61 + 1 / 63, 1 / 61]
    )
    best = entries[0]
    assert (best.title, best.url, best.snippet) == ("B", "http://b.example", "words")
    assert best.engines == ["three", "one", "two"]


def test_an_engine_that_lists_a_page_twice_counts_once() -> None:
    hits = [Hit("a", "https://a.example/", ""), Hit("a again", "http://www.a.example", "")]
    (entry,) = merge({"one": hits})
    assert entry.score == 1 / 61


# --- the breaker ------------------------------------------------------------------------------------------


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_three_failures_in_a_row_open_the_breaker_for_an_hour() -> None:
    clock = Clock()
    breaker = Breaker(clock)
    for _ in range(FAILURES - 1):
        assert breaker.enter("bing")
        breaker.failed("bing")
    assert breaker.shown("bing") == "closed (2 of 3 failures)"
    breaker.answered("bing")  # not in a row
    assert breaker.shown("bing") == "closed"
    for _ in range(FAILURES):
        assert breaker.enter("bing")
        breaker.failed("bing")
    assert not breaker.enter("bing")
    assert breaker.enter("brave")
    clock.now += SECONDS - 1
    assert breaker.shown("bing") == "open for 0 min"
    assert not breaker.enter("bing")


@pytest.mark.parametrize("answer", [True, False])
def test_after_the_hour_one_search_tries_and_decides(answer: bool) -> None:
    """WebSearch: after that hour one search tries the engine, and decides."""
    clock = Clock()
    breaker = Breaker(clock)
    for _ in range(FAILURES):
        breaker.failed("bing")
    clock.now += SECONDS
    assert breaker.shown("bing") == "half open"
    assert breaker.enter("bing")
    assert not breaker.enter("bing")  # one at a time
    breaker.left("bing")  # cancelled: nothing is known yet
    assert breaker.enter("bing")
    (breaker.answered if answer else breaker.failed)("bing")
    assert breaker.enter("bing") is answer
    assert breaker.seconds_left("bing") == (0 if answer else SECONDS)


def test_a_redirect_stays_with_the_engine() -> None:
    network, bing = _network.Network("query"), _search.load("bing")
    url = "https://www.bing.com/search?q=x"
    assert network._redirected(bing, url, "/search?q=y") == "https://www.bing.com/search?q=y"
    assert network._redirected(bing, url, "https://cn.bing.com/") == "https://cn.bing.com/"
    for target in ("https://notbing.com/", "https://bing.com.example/", "http://www.bing.com/", "file:///x"):
        with pytest.raises(Failed, match="redirected to"):
            network._redirected(bing, url, target)
    with pytest.raises(Blocked):
        network._redirected(bing, url, "https://www.bing.com/challenge/verify")


def test_addresses_of_both_families_are_tried_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [
        *((socket.AF_INET, 1, 6, "", (f"192.0.2.{number}", 0)) for number in (1, 2, 3, 1)),
        (socket.AF_INET6, 1, 6, "", ("2001:db8::1", 0, 0, 0)),
    ]
    monkeypatch.setattr(_network.socket, "getaddrinfo", lambda *arguments: found)
    addresses = asyncio.run(_network.look_up("engine.example"))
    assert addresses == ["192.0.2.1", "2001:db8::1", "192.0.2.2", "192.0.2.3"]
