"""ReadDocs in the real Chromium: pages of a loopback server, well-behaved and not, and what is no page."""

from __future__ import annotations

import gzip
import os
import re
import time

import pytest
from support import chromium
from support.chromium import ARTICLE, PARAGRAPH, Reader, facts_of, text_of
from support.ports import refusing_port
from support.web_server import Visit, Web

pytestmark = pytest.mark.long

# --- the result -----------------------------------------------------------------------------------------


def test_a_result_is_title_final_address_and_main_content(read: Reader, web: Web) -> None:
    """ReadDocs: a result is title, final URL and main content."""
    web.page("/new", f"<nav>Home About</nav><main>{ARTICLE}</main><footer>(c) nobody</footer>", "Tides")
    web.redirect("/old", "/new#top")
    result = read(web.url("/old"))
    title, address, empty, *content = text_of(result).split("\n")
    assert (title, address, empty) == ("Tides", web.url("/new#top"), "")
    text = "\n".join(content)
    assert PARAGRAPH.strip() in text
    assert "About" not in text
    assert "nobody" not in text
    assert facts_of(result) == {
        "url": web.url("/new#top"),
        "status": 200,
        "title": "Tides",
        "content_type": "text/html; charset=utf-8",
        "format": "markdown",
        "via": "browser",
        "offset": 0,
        "next_offset": None,
        "total_characters": facts_of(result)["total_characters"],
    }
    assert result.is_error is False


def test_markdown_is_the_default_and_text_and_html_are_there(read: Reader, web: Web) -> None:
    """ReadDocs: `format` is markdown unless given, else text or html."""
    url = web.page(
        "/x", f"<main><h2>Deep</h2><p>{PARAGRAPH}<b>bold</b> <a href='a/b'>link</a></p></main>", "T"
    )
    markdown, text, html = (text_of(read(url, format=name)) for name in (None, "text", "html"))
    assert "## Deep" in markdown
    assert "**bold**" in markdown
    assert f"[link]({web.url('/a/b')})" in markdown
    assert "Deep" in text
    assert "**" not in text
    assert "<" not in text
    assert "<h2>Deep</h2>" in html
    assert web.url("/a/b") in html


def test_a_page_that_renders_by_script_comes_back_rendered(read: Reader, web: Web) -> None:
    """ReadDocs: a page that renders by script comes back rendered."""
    web.answer(
        "/data.json",
        lambda visit: (time.sleep(0.4), visit.respond('["Amsel", "Drossel"]', "application/json")),
    )
    url = web.page(
        "/app",
        """<div id="root"></div><script>setTimeout(async () => {
        const names = await (await fetch("/data.json")).json();
        document.getElementById("root").innerHTML = "<h1>Birds</h1>" + names.map(n => `<p>${n}</p>`).join("");
        document.title = "Birds"; history.pushState({}, "", "/app/birds"); }, 100)</script>""",
    )
    shown = text_of(read(url))
    assert shown.startswith(f"Birds\n{web.url('/app/birds')}\n")
    assert "Amsel" in shown
    assert "Drossel" in shown


def test_what_hangs_in_shadow_roots_shows_where_it_is(read: Reader, web: Web) -> None:
    url = web.page(
        "/shadow",
        f"""<main><x-box><p>between</p></x-box><p>{PARAGRAPH}</p></main><script>
        customElements.define("x-box", class extends HTMLElement {{ constructor() {{ super();
        this.attachShadow({{mode: "open"}}).innerHTML = "<p>before</p><slot></slot><p>after</p>";
        }} }})</script>""",
    )
    shown = text_of(read(url))
    assert re.search(r"before\s+between\s+after", shown)


def test_arabic_combining_marks_and_emoji_pass_unchanged(read: Reader, web: Web) -> None:
    """ReadDocs: any Unicode passes unchanged through the browser."""
    words = "السَّلامُ عليكم é e\u0301 👩‍👩‍👧‍👦 \u202bيمين\u202c"
    assert words in text_of(
        read(web.page("/ar", f'<main dir="rtl"><p>{words} {PARAGRAPH}</p></main>', words))
    )
    assert words in text_of(read(web.add("/ar.txt", words, "text/plain; charset=utf-8")))
    shown = text_of(
        read(
            web.add("/1256", "<title>مرحبا</title><p>بكم".encode("cp1256"), "text/html; charset=windows-1256")
        )
    )
    assert "مرحبا" in shown
    assert "بكم" in shown


def test_no_cookies_and_no_storage_carry_over(read: Reader, web: Web) -> None:
    """ReadDocs: each call has a fresh context: no cookies and no storage carry over."""

    def answer(visit: Visit) -> None:
        visit.respond(
            f"<main><p>sent: {visit.headers.get('Cookie')}</p><p id=s></p></main><script>"
            "s.textContent = 'kept: ' + localStorage.getItem('seen'); localStorage.setItem('seen', 'yes');"
            "</script>",
            set_cookie="seen=yes; Max-Age=3600",
        )

    url = web.answer("/", answer)
    for _ in range(2):
        shown = text_of(read(url))
        assert "sent: None" in shown
        assert "kept: null" in shown


def test_pictures_media_and_fonts_are_not_loaded(read: Reader, web: Web) -> None:
    web.add(
        "/style.css",
        "body { background: url(/b.png) } @font-face { font-family: f; src: url(/f.woff) }",
        "text/css",
    )
    url = web.page(
        "/",
        f'<img src="/a.png"><video src="/v.mp4" autoplay></video>{ARTICLE}',
        head='<link rel="stylesheet" href="/style.css">',
    )
    read(url)
    assert [web.count(path) for path in ("/style.css", "/a.png", "/b.png", "/v.mp4", "/f.woff")] == [
        1,
        0,
        0,
        0,
        0,
    ]


# --- what is no HTML ------------------------------------------------------------------------------------


def test_text_is_decoded_by_its_charset_and_decompressed(read: Reader, web: Web) -> None:
    russian = "Привет, мир. " * 500
    packed = gzip.compress(russian.encode("koi8-r"))
    assert russian in text_of(
        read(web.add("/a", packed, "text/plain; charset=koi8-r", content_encoding="gzip"))
    )
    assert "naïve café" in text_of(read(web.add("/b", "naïve café".encode("latin-1"), "text/plain")))
    assert "naïve café" in text_of(read(web.add("/c", "naïve café".encode("utf-16"), "text/plain")))


def test_large_text_arrives_whole(read: Reader, web: Web) -> None:
    lines = "".join(f"{number} ق 🙂\n" for number in range(200_000))
    facts = facts_of(read(web.add("/lines", lines, "text/plain; charset=utf-8")))
    assert facts["total_characters"] == len(lines.strip("\n"))


def test_a_pdf_is_read_as_text(read: Reader, web: Web) -> None:
    """ReadDocs: a PDF is read as text."""
    result = read(web.add("/paper.pdf", chromium.pdf("High water at noon"), "application/pdf"))
    assert "High water at noon" in text_of(result)
    assert facts_of(result)["content_type"] == "application/pdf"
    hidden = web.add("/paper", chromium.pdf("By any name"), "application/octet-stream")
    assert "By any name" in text_of(read(hidden))


@pytest.mark.parametrize(
    ("media", "body", "headers", "says"),
    [
        ("application/zip", b"PK\3\4\0\0", {}, "is a download (application/zip)"),
        ("application/octet-stream", bytes(range(256)), {}, "is a download (application/octet-stream)"),
        ("image/png", b"\x89PNG\r\n", {}, "is a download (image/png), not a page or text. ReadImage"),
        ("video/mp4", b"words", {}, "is a download (video/mp4)"),
        ("text/html", b"<p>hi", {"content_disposition": "attachment; filename=x.html"}, "is a download"),
    ],
)
@pytest.mark.parametrize("via", ["browser", "http"])
def test_downloads_are_errors(
    read: Reader,
    web: Web,
    monkeypatch: pytest.MonkeyPatch,
    via: str,
    media: str,
    body: bytes,
    headers: dict[str, str],
    says: str,
) -> None:
    """ReadDocs: a download is an error."""
    if via == "http":
        monkeypatch.setenv("FASTRPC_BROWSER", "/no/such/browser")
    assert f"{web.url('/file')} {says}" in read.refused(web.add("/file", body, media, **headers))


def test_a_page_that_starts_a_download_stays_a_page(read: Reader, web: Web, shelter: str) -> None:
    web.add("/setup.bin", bytes(range(256)) * 100, "application/octet-stream")
    url = web.page("/", f"{ARTICLE}<script>location = '/setup.bin'</script>", "Get it")
    assert text_of(read(url)).startswith("Get it\n")
    assert not [name for _, _, names in os.walk(shelter) for name in names if "setup" in name]


# --- errors are never content ---------------------------------------------------------------------------


@pytest.mark.parametrize("via", ["browser", "http"])
@pytest.mark.parametrize(
    ("status", "phrase"),
    [(404, "Not Found"), (401, "Unauthorized"), (410, "Gone"), (500, "Internal Server Error")],
)
def test_an_http_error_names_its_status(
    read: Reader, web: Web, monkeypatch: pytest.MonkeyPatch, via: str, status: int, phrase: str
) -> None:
    """ReadDocs: an HTTP error is an error that names its status."""
    if via == "http":
        monkeypatch.setenv("FASTRPC_BROWSER", "/no/such/browser")
    url = web.add("/x", f"<p>{ARTICLE}", status=status, www_authenticate='Basic realm="x"')
    assert read.refused(url) == f"{url} answered {status} {phrase}."


def test_an_odd_status_and_an_empty_answer_are_errors(read: Reader, web: Web) -> None:
    assert read.refused(web.add("/x", b"", status=299 + 300)) == f"{web.url('/x')} answered 599."
    web.answer("/none", lambda visit: visit.begin(None, 204))
    assert read.refused(web.url("/none")) == f"{web.url('/none')} answered 204 No Content."


@pytest.mark.parametrize("via", ["browser", "http"])
def test_what_cannot_be_reached_is_a_sentence(
    read: Reader, web: Web, monkeypatch: pytest.MonkeyPatch, via: str
) -> None:
    if via == "http":
        monkeypatch.setenv("FASTRPC_BROWSER", "/no/such/browser")
    with refusing_port() as port:
        said = read.refused(f"http://127.0.0.1:{port}/")
    assert re.fullmatch(r"The page could not be loaded: .*connection.*\.", said)
    assert "redirects without end" in read.refused(web.redirect("/round", "/round"))
    assert read.refused("http://no-such-host.invalid/").startswith("The page could not be loaded: ")


CHALLENGES = {
    "cloudflare": (403, "Just a moment...", "Checking your browser before accessing the site."),
    "cloudflare, in place": (200, "Just a moment...", "<script>window._cf_chl_opt = {}</script>"),
    "a captcha": (200, "Shop", '<form><div class="g-recaptcha" data-sitekey="x"></div></form>'),
    "another's words": (200, "Shop", "<p>Please verify you are human by completing the action below.</p>"),
    "datadome": (200, "shop.example", '<script src="https://geo.captcha-delivery.com/c.js"></script>'),
}


@pytest.mark.parametrize("name", CHALLENGES)
@pytest.mark.parametrize("format", ["markdown", "html"])
def test_a_challenge_page_is_an_error(read: Reader, web: Web, name: str, format: str) -> None:
    """ReadDocs: a challenge page is an error and never returned as content."""
    status, title, body = CHALLENGES[name]
    page = f"<title>{title}</title><body>{body}</body>"
    url = web.add("/", page, status=status, server="cloudflare")
    sentence = read.refused(url, format=format)
    assert f"answered {status} with a challenge page" in sentence


def test_an_article_about_challenge_pages_is_content(read: Reader, web: Web) -> None:
    long = "<p>Sites show “Just a moment…” while checking your browser; verify you are human.</p>" * 30
    assert "verify you are human" in text_of(
        read(web.page("/", f"<main>{long}</main>", "Just a moment... explained"))
    )


def test_a_challenge_that_lets_the_browser_in_gives_the_page(read: Reader, web: Web) -> None:
    def answer(visit: Visit) -> None:
        if "passed" in (visit.headers.get("Cookie") or ""):
            visit.respond(f"<title>Tides</title><main>{ARTICLE}</main>")
        else:
            visit.respond(
                "<title>Just a moment...</title><script>setTimeout(() => {"
                "document.cookie = 'passed=1'; location.reload() }, 200)</script>",
                status=503,
                server="cloudflare",
            )

    result = read(web.answer("/", answer))
    assert text_of(result).startswith("Tides\n")
    assert facts_of(result)["status"] == 200


# --- only http and https --------------------------------------------------------------------------------


SECRET = "root:x:0"


@pytest.mark.parametrize("via", ["browser", "http"])
@pytest.mark.parametrize(
    "target", ["file:///etc/passwd", "data:text/html,hello", "chrome://version", "ftp://127.0.0.1/"]
)
def test_a_redirect_to_another_scheme_is_refused(
    read: Reader, web: Web, monkeypatch: pytest.MonkeyPatch, target: str, via: str
) -> None:
    """ReadDocs: a redirect to another scheme is refused."""
    if via == "http":
        monkeypatch.setenv("FASTRPC_BROWSER", "/no/such/browser")
    scheme = target.partition(":")[0]
    expected = f"The page redirects to an address of {scheme}:, and only http and https are read."
    assert read.refused(web.redirect("/", target)) == expected


@pytest.mark.parametrize(
    "body",
    [
        '<iframe src="file:///etc/passwd"></iframe>',
        '<iframe src="data:text/html,<p>hidden</p>"></iframe>',
        '<iframe src="chrome://version"></iframe>',
        '<iframe src="view-source:file:///etc/passwd"></iframe>',
        '<iframe src="/to-file"></iframe>',
        '<object data="file:///etc/passwd"></object><embed src="file:///etc/passwd">',
        '<script src="file:///etc/passwd"></script><link rel="stylesheet" href="file:///etc/passwd">',
        '<meta http-equiv="refresh" content="0;url=file:///etc/passwd">',
        '<script>location = "file:///etc/passwd"</script>',
        '<script>location = "chrome://version"</script>',
        '<script>location = "data:text/html,<p>hidden</p>"</script>',
        '<script>window.open("file:///etc/passwd")</script>',
        '<script>fetch("file:///etc/passwd").then(r => r.text()).then(t => document.body.append(t))</script>',
        '<script>let x = new XMLHttpRequest(); x.open("GET", "file:///etc/passwd", false); try { x.send(); } '
        "catch (error) {} document.body.append(x.responseText)</script>",
        '<script>navigator.serviceWorker.register("/worker.js")</script>',
    ],
)
def test_nothing_of_other_schemes_comes_in_through_a_page(read: Reader, web: Web, body: str) -> None:
    """ReadDocs: nothing of other schemes comes in through frames and what a page loads."""
    web.redirect("/to-file", "file:///etc/passwd")
    shown = text_of(read(web.page("/", f"<main>{ARTICLE}{body}</main>", "Tides")))
    assert shown.startswith(f"Tides\n{web.url('/')}\n")
    assert SECRET not in shown
    assert "hidden" not in shown
    assert web.count("/worker.js") == 0


@pytest.mark.parametrize(
    "body",
    ['location = "about:blank"', "location = URL.createObjectURL(new Blob(['<p>x'], {type: 'text/html'}))"],
)
def test_a_page_that_goes_to_another_scheme_is_refused(read: Reader, web: Web, body: str) -> None:
    sentence = read.refused(web.page("/", f"{ARTICLE}<script>{body}</script>"))
    assert re.fullmatch(
        r"The page went on to an address of (about|blob):, and only http and https are read\.", sentence
    )


def test_user_name_and_password_are_used_and_never_shown(
    read: Reader, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(visit: Visit) -> None:
        if visit.headers.get("Authorization"):
            visit.respond(f"<title>In</title><main>{ARTICLE}<a href='/more'>more</a></main>")
        else:
            visit.respond("no", status=401, www_authenticate='Basic realm="x"')

    web.answer("/in", answer)
    address = web.url("/in").replace("//", "//somebody:hunter2@")
    for browser in ("", "/no/such/browser"):
        monkeypatch.setenv("FASTRPC_BROWSER", browser)
        result = read(address)
        assert text_of(result).startswith(f"In\n{web.url('/in')}\n")
        assert "hunter2" not in text_of(result) + str(result.meta)
        assert "hunter2" not in read.refused(address.replace("/in", "/missing"))


# --- pages that misbehave -------------------------------------------------------------------------------


def test_dialogs_popups_and_prompts_hold_nothing_up(read: Reader, web: Web) -> None:
    chromium.need(whole=True)
    web.page("/other", "other")
    url = web.page(
        "/",
        f"""{ARTICLE}<p id="end"></p><script>
        onbeforeunload = (event) => {{ event.preventDefault(); return "stay" }};
        alert("hello"); const sure = confirm("sure?"), name = prompt("name?");
        open("/other"); open("/other", "_blank", "popup");
        navigator.geolocation.getCurrentPosition(() => place("known"), () => place("denied"));
        function place(what) {{
            document.getElementById("end").textContent = `place ${{what}}, ${{sure}}, ${{name}}`;
        }}
        </script>""",
    )
    assert "place denied, false, null" in text_of(read(url))
    assert web.count("/other") == 0


def test_a_script_without_end_is_an_error_and_its_process_is_gone(
    read: Reader, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FASTRPC_PATIENCE_SECONDS", "10")
    sentence = read.refused(web.page("/", f"{ARTICLE}<script>for (;;);</script>"))
    # A busy machine has used up some of the five seconds by then, or has them all to start a browser.
    assert re.fullmatch(r"The page (was not complete|did not become readable) within [0-5] s\.", sentence)
    monkeypatch.undo()
    assert "Tides" in text_of(read(web.page("/good", ARTICLE, "Tides")))


def test_a_page_that_never_stays_is_an_error(read: Reader, web: Web) -> None:
    url = web.page("/", "<script>setTimeout(() => location = '/?' + Math.random(), 5)</script>")
    assert read.refused(url) == "The page keeps redirecting to other pages."
    assert web.count("/") < 500  # each takes the browser some ms, and its refusal a busy machine some more


def test_a_page_that_takes_too_much_memory_is_an_error(read: Reader, web: Web) -> None:
    hog = "const kept = []; for (let n = 0; n < 4000; n++) kept.push(new Uint8Array(1 << 20).fill(1));"
    assert read.refused(web.page("/", f"{ARTICLE}<script>{hog}</script>")).startswith(
        "The page took more memory"
    )
    assert "Tides" in text_of(read(web.page("/good", ARTICLE, "Tides")))


@pytest.mark.parametrize("via", ["browser", "http"])
def test_a_document_beyond_the_limit_is_an_error(
    read: Reader, web: Web, monkeypatch: pytest.MonkeyPatch, via: str
) -> None:
    if via == "http":
        monkeypatch.setenv("FASTRPC_BROWSER", "/no/such/browser")

    def endless(visit: Visit) -> None:
        visit.begin("text/plain")
        visit.for_ever(b"x" * (1 << 20), 0)

    assert read.refused(web.answer("/", endless)) == "The page is larger than 20 MiB."


def test_a_document_that_grows_too_large_by_script_is_an_error(read: Reader, web: Web) -> None:
    script = "const more = document.createElement('p'); more.hidden = true; document.body.append(more);"
    script += "more.textContent = 'x'.repeat(21 << 20)"
    assert read.refused(web.page("/", f"<script>{script}</script>")) == "The page is larger than 20 MiB."


@pytest.mark.parametrize("via", ["browser", "http"])
@pytest.mark.parametrize("kind", ["silent", "endless page", "endless events"])
def test_what_does_not_end_is_a_time_out_before_the_client_loses_patience(
    read: Reader, web: Web, monkeypatch: pytest.MonkeyPatch, via: str, kind: str
) -> None:
    """ReadDocs: a page that does not end is a time-out before the client loses patience."""
    if via == "http":
        monkeypatch.setenv("FASTRPC_BROWSER", "/no/such/browser")
    monkeypatch.setenv("FASTRPC_PATIENCE_SECONDS", "4")

    def answer(visit: Visit) -> None:
        if kind != "silent":
            visit.begin("text/html" if kind == "endless page" else "text/event-stream")
            visit.for_ever(b"data: and on\n\n")
        visit.web.over.wait(20)

    sentence = read.refused(web.answer("/", answer))
    assert re.fullmatch(
        r"The page (did not answer|was not complete|did not answer or was not complete) within [0-2] s\.",
        sentence,
    )


def test_what_a_page_loads_besides_cannot_hold_it_up_for_ever(
    read: Reader, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:

    ended: list[bool] = []
    web.answer("/slow.js", lambda visit: ended.append(visit.web.over.wait(110)))
    url = web.page("/", f'<main>{ARTICLE}</main><script async src="/slow.js"></script>', "Tides")
    assert text_of(read(url)).startswith("Tides\n")
    assert web.count("/slow.js") == 1
    assert not ended


def test_wait_ms_is_how_long_the_page_has(read: Reader, web: Web) -> None:
    """ReadDocs: `wait_ms` is how long the page has; without it, until the page is quiet."""
    later = "setTimeout(() => p.textContent = 'late', Number(location.search.slice(1)))"
    url = web.page("/", f"{ARTICLE}<p id=p>early</p><script>{later}</script>")
    assert "early" in text_of(read(f"{url}?60000", wait_ms=0))
    assert "late" in text_of(read(f"{url}?1500", wait_ms=2000))


def test_a_wait_of_odd_length_is_refused_or_bounded(
    read: Reader, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = web.page("/", ARTICLE)
    assert read.refused(url, wait_ms=-1) == "wait_ms: expected 0 to 45000 milliseconds, got -1."
    monkeypatch.setenv("FASTRPC_PATIENCE_SECONDS", "8")
    assert "[wait_ms 99999 is taken as 1000, the longest]" in text_of(read(url, wait_ms=99_999))


# --- frames -----------------------------------------------------------------------------------------------


def test_a_frame_of_the_same_origin_is_read_where_it_is(read: Reader, web: Web) -> None:
    """ReadDocs: the text of a frame that the page itself may read is in its place; of others, "
    "the address."""
    web.page("/deep/inner", "<p>inside the frame <a href='next'>on</a></p><iframe src='/third'></iframe>")
    web.page("/third", "<p>inside the second frame</p><script>document.body.append('by script')</script>")
    web.page("/tracker", "<p>nobody sees this</p>")
    url = web.page(
        "/outer",
        f"<main><h1>Tides</h1><p>{PARAGRAPH}</p><iframe src='/deep/inner'></iframe><p>after it</p>"
        "<iframe srcdoc='<p>written in the page</p>'></iframe>"
        "<iframe src='/tracker' width=1 height=1></iframe>"
        "<iframe src='/tracker' hidden></iframe>"
        f"<iframe title='A film' src='{web.url('/third').replace('127.0.0.1', 'localhost')}'>"
        f"</iframe></main>",
    )
    shown = text_of(read(url))
    assert re.search(
        r"inside the frame \[on\]\(http://127[^ ]*/deep/next\)\s+inside the second frame\s+by "
        r"script\s+after it",
        shown,
    )
    assert "written in the page" in shown
    assert "nobody sees this" not in shown
    assert re.search(r"\[frame: A film: <http://localhost:\d+/third>\]", shown)


def test_a_page_that_frames_itself_is_read_in_bounded_time(read: Reader, web: Web) -> None:
    url = web.page("/self", f"<main><p>{PARAGRAPH}</p>{'<iframe src=/self?1></iframe>' * 4}</main>")
    shown = text_of(read(url))
    assert PARAGRAPH.strip() in shown
