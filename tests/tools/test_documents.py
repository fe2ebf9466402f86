"""What a page becomes: ten page shapes, and all that is broken, hostile or too large."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Coroutine
from typing import Any

import pytest
from fastrpc.tools.agent import _documents
from fastrpc.tools.agent._documents import markdown as documents_markdown
from support import page_cases
from support.waiting import until

from fastrpc import ToolError, processes

BASE = "https://a.example/folder/page.html"
PROSE = "The tide comes in twice a day, and whoever lives by the sea keeps a table of it. "


def markdown(html: str, url: str = BASE) -> str:
    return _documents.to_markdown(html, url).text


def article(inner: str) -> str:
    """A page with enough prose around something."""
    return f"<body><main><h1>Tides</h1><p>{PROSE * 4}</p>{inner}<p>{PROSE}</p></main></body>"


def within(inner: str) -> str:
    """What happens to something inside an article."""
    text = markdown(article(inner))
    return text.partition(PROSE * 3)[2].partition("\n\n")[2].rpartition("\n\n")[0]


def wait(work: Coroutine[Any, Any, Any]) -> Any:
    async def ended() -> Any:
        try:
            return await work
        finally:
            await processes.close()

    return asyncio.run(ended())


# --- the ten shapes -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=page_cases.SHAPES)
def case(request: pytest.FixtureRequest) -> page_cases.Case:
    return page_cases.Case(request.param)


def test_a_page_becomes_its_main_content_as_markdown(
    case: page_cases.Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ReadDocs: navigation, scripts and cookie banners are left out; headings, lists, tables, code and
    absolute links are kept.
    ReadDocs: a page of any of ten shapes becomes its main content.
    """
    monkeypatch.setattr(documents_markdown, "SECONDS", 100.0)  # the machine may be busy with other things
    document = _documents.to_markdown(case.html, case.url)
    missing = [
        f"{kind}: {what}" for kind, what, met in page_cases.verdicts(document.text, case.expected) if not met
    ]
    assert not missing, document.text[:5000]
    assert document.title == case.expected["title"]


def test_the_text_of_a_page_holds_the_same_without_marks(case: page_cases.Case) -> None:
    """ReadDocs: text and clean HTML hold the same content as Markdown."""
    text = _documents.to_text(case.html, case.url).text
    squeezed = re.sub(r"\s+", " ", text)
    for heading in case.expected["headings"]:
        assert re.search(rf"^{re.escape(heading.lstrip('# '))}$", text, re.MULTILINE)
    for code in case.expected.get("code", ()):
        assert all(line in text for line in code["text"].split("\n"))
    for row in case.expected.get("rows", ()):
        assert "\t".join(row) in text.replace("4 to 14", "4 to 14").replace("Child\n4", "Child 4")
    for name, _ in case.expected.get("links", ()):
        assert name in squeezed
    for left in case.expected["leave"]:
        assert left not in squeezed
    assert "](http" not in text


def test_the_html_of_a_page_is_its_main_content_with_nothing_that_runs(case: page_cases.Case) -> None:
    html = _documents.to_html(case.html, case.url).text
    names = set(re.findall(r"<([a-z0-9]+)", html))
    allowed = (
        "h1 h2 h3 h4 p ul ol li blockquote pre code table thead tbody tr th td a img strong em del br hr"
    )
    assert names <= set(allowed.split())
    assert set(re.findall(r"<\w+ (\w+)=", html)) <= {"class", "href", "src", "start"}
    for left in case.expected["leave"]:
        assert left not in html
    if case.name != "large":  # nothing is lost on the way
        assert markdown(f"<main>{html}</main>", case.url) == markdown(case.html, case.url)


def test_arabic_emoji_and_both_forms_of_accents_are_unchanged() -> None:
    """ReadDocs: Arabic, emoji and combining marks pass unchanged through pages."""
    text = "العربيّةُ ١٢٣ \u200fمن\u200e v2 👩🏽‍🌾 é e\u0301 ﷺ שלום"
    for convert in (_documents.to_markdown, _documents.to_text, _documents.to_html):
        assert text in convert(article(f"<p dir=rtl>{text}</p>"), BASE).text


# --- never lose the content ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "html",
    [
        f"<body class='has-sidebar cookie-banner-open'><div id='page-nav-layout'><p>{PROSE}</p></div></body>",
        f"<main></main><div><p>{PROSE}</p></div>",
        f"<main><p>x</p></main><div class='page'><p>{PROSE * 9}</p></div>",
        f"<div class='sidebar'><p>{PROSE}</p></div>",
        f"<aside><p>{PROSE * 5}</p></aside>",
        f"<div aria-hidden='true'><p>{PROSE * 5}</p></div>",
        f"<header><h1>Tides</h1><p>{PROSE * 5}</p></header>",
        f"<form><div><p>{PROSE}</p></div></form>",
        f"<div role=dialog><p>{PROSE * 5}</p></div>",
        f"<table><tr><td><table><tr><td>{PROSE}</td></tr></table></td></tr></table>",
        f"<frameset><frame src='a'><noframes>{PROSE}</noframes></frameset>",
        f"<noscript>{PROSE}</noscript><div id=root></div>",
        f"<div class='cookie-consent'><p>{PROSE}</p></div>",
        f"<li>{PROSE}",
        PROSE,
        f"<title>t</title><nav><p>{PROSE}</p></nav>",
    ],
)
def test_where_a_page_is_made_in_an_odd_way_its_text_is_still_there(html: str) -> None:
    assert PROSE.strip() in markdown(html)


@pytest.mark.parametrize("name", ["sidebar", "modal-open", "nav", "cookies-off related", "share"])
def test_what_holds_most_of_the_text_is_content_whatever_its_name(name: str) -> None:
    text = markdown(f"<div class='{name}'><p>Most. {PROSE * 30}</p></div><div><p>Some. {PROSE * 4}</p></div>")
    assert "Some." in text
    assert "Most." in text


def test_a_page_that_is_only_links_keeps_them() -> None:
    html = "<ul>" + "".join(f"<li><a href='/{n}'>Story {n}</a></li>" for n in range(30)) + "</ul>"
    text = markdown(html)
    assert "- [Story 0](https://a.example/0)" in text
    assert "- [Story 29](https://a.example/29)" in text


def test_a_forum_page_of_many_articles_keeps_all() -> None:
    html = "".join(f"<article class='post'><h2>Post {n}</h2><p>{PROSE}</p></article>" for n in range(8))
    text = markdown(f"<nav>Site</nav><div>{html}</div>")
    assert all(f"## Post {n}" in text for n in range(8))
    assert "Site" not in text


def test_the_pages_heading_above_its_content_is_kept() -> None:
    html = f"<div class='hero'><h1>Tides</h1></div><main><p>{PROSE * 4}</p></main>"
    assert markdown(html).startswith("# Tides\n\n")


@pytest.mark.parametrize(
    "box",
    [
        "<div class=zx81><p>We use cookies to improve things.</p><button>Accept all</button></div>",
        "<div class=q><p>نستخدم ملفات تعريف الارتباط</p><a href=#>موافق</a></div>",
        "<div id=onetrust-banner-sdk><p>We use cookies to improve things.</p></div>",
        f"<div class=consent-wall><p>We use cookies. {'For this and that. ' * 200}</p>"
        "<button>Reject all</button></div>",
        "<div style='color: red; display:none'>We use cookies to improve things.</div>",
        "<div hidden>We use cookies to improve things.</div>",
        "<section class=CookieBanner>We use cookies to improve things.</section>",
    ],
)
def test_a_banner_that_asks_for_consent_is_left_out(box: str) -> None:
    """ReadDocs: banners that ask for consent are left out."""
    text = markdown(f"<body>{box}<main><h1>Tides</h1><p>{PROSE * 4}</p></main></body>")
    assert "cookies" not in text
    assert "ملفات" not in text
    assert PROSE.strip() in text


def test_an_article_about_cookies_is_no_banner() -> None:
    html = article("<h2>Cookie consent</h2><p>How cookies work. <a href='/x'>Accept all</a> is a button.</p>")
    assert "How cookies work." in markdown(html)


def test_remarks_inside_an_article_are_kept() -> None:
    assert "Mind the gap" in within("<aside class='admonition note'><p>Mind the gap</p></aside>")
    assert "Mind the gap" not in within("<aside class='promo'><p>Mind the gap</p></aside>x")


# --- links and images ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("html", "shown"),
    [
        ("<a href='../up'>x</a>", "[x](https://a.example/up)"),
        ("<a href='//b.example/y'>x</a>", "[x](https://b.example/y)"),
        ("<a href='?q=a b'>x</a>", "[x](https://a.example/folder/page.html?q=a%20b)"),
        ("<a href='/wiki/Foo_(bar)'>x</a>", "[x](https://a.example/wiki/Foo_(bar))"),
        ("<a href='/a)b'>x</a>", "[x](https://a.example/a%29b)"),
        ("<a href='\n/new\nline\n'>x</a>", "[x](https://a.example/newline)"),
        ("<a href='/كاتب'>ليلى</a>", "[ليلى](https://a.example/كاتب)"),
        ("<a href='#here'>x</a>", "x"),
        (f"<a href='{BASE}#here'>x</a>", "x"),
        ("<a href='javascript:alert(1)'>x</a>", "x"),
        ("<a href=' JaVaScRiPt:alert(1)'>x</a>", "x"),
        ("<a href='data:text/html,hello'>x</a>", "x"),
        ("<a href='http://[broken'>x</a>", "x"),
        ("<a href='mailto:a@b.example'>x</a>", "[x](mailto:a@b.example)"),
        ("<a href='/card'><div><h3>Head</h3><p>Body</p></div></a>", "### [Head](https://a.example/card)"),
        ("<b></b><a href='/empty'></a><i> </i>x", "x"),
        ("<img src='i.png' alt='An image'>", "![An image](https://a.example/folder/i.png)"),
        ("<img src='data:image/png;base64,AAAA' alt='An image'>x", "x"),
        ("<img src='data:image/png;base64,AAAA' data-src='/l.png' alt=L>", "![L](https://a.example/l.png)"),
        ("<img srcset='/s.png 1x, /m.png 2x' alt=S>", "![S](https://a.example/s.png)"),
        ("<img src='/pixel.gif' width=1 height=1>x", "x"),
        ("<img src='/line.png' alt=''>x", "x"),
        ("<img class=emoji src='/1f600.png' alt='😀'>", "😀"),
    ],
)
def test_links_and_images_are_absolute_or_left_out(html: str, shown: str) -> None:
    """ReadDocs: links and images are absolute or left out."""
    assert within(f"<p>{html}</p>").split("\n")[0] == shown


def test_links_are_relative_to_the_pages_base() -> None:
    html = f"<head><base href='/elsewhere/'></head>{article('<p><a href=x>x</a></p>')}"
    assert "[x](https://a.example/elsewhere/x)" in markdown(html)


# --- code, tables, lists ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("html", "language"),
    [
        ("<pre><code class='language-python'>x = 1\ny = 2</code></pre>", "python"),
        ("<pre><code class='lang-c++ hljs'>x = 1\ny = 2</code></pre>", "c++"),
        ("<pre class='brush: js'>x = 1\ny = 2</pre>", "js"),
        ("<div class='highlight highlight-source-shell'><pre>x = 1\ny = 2</pre></div>", "shell"),
        (
            "<div class='sourceCode'><pre class='sourceCode haskell'><code>x = 1\ny = 2</code></pre></div>",
            "haskell",
        ),
        ("<pre data-lang='rust'>x = 1\ny = 2</pre>", "rust"),
        ("<pre class='language-none'>x = 1\ny = 2</pre>", ""),
        ("<pre><code class='hljs ruby'>x = 1\ny = 2</code></pre>", "ruby"),
        ("<pre>x = 1<br>y = 2</pre>", ""),
        ("<pre><div class='token-line'>x = 1</div><div class='token-line'>y = 2</div></pre>", ""),
        ("<pre><span class='line'>x = 1</span><span class='line'>y = 2</span></pre>", ""),
        ("<pre><span class='line'>x = 1</span>\n<span class='line'>y = 2</span></pre>", ""),
        ("<pre><span class='lineno'>1 </span>x = 1\n<span class='lineno'>2 </span>y = 2\n</pre>", ""),
        (
            "<table class='highlight js-file-line-container'>"
            "<tr><td class='blob-num' data-line-number=1></td><td class='blob-code'>x = 1</td></tr>"
            "<tr><td class='blob-num'></td><td class='blob-code'>y = 2</td></tr></table>",
            "",
        ),
        ("<pre>\r\nx = 1\r\ny = 2\r\n</pre>", ""),
    ],
)
def test_code_is_exact_whatever_the_highlighter_made_of_it(html: str, language: str) -> None:
    """ReadDocs: code blocks stay exact."""
    assert within(html) == f"```{language}\nx = 1\ny = 2\n```"


def test_code_keeps_blank_lines_tabs_entities_and_fences() -> None:
    code = "\tif a &lt; b &amp;&amp; c:\n\n\n\t\tprint('```')  # العربيّة\n  *a* _b_ \\"
    shown = within(f"<pre><code>{code}</code></pre>")
    assert shown == f"````\n{code.replace('&lt;', '<').replace('&amp;', '&')}\n````"


def test_a_cell_that_spans_rows_is_repeated_and_bars_do_not_end_a_cell() -> None:
    html = (
        "<table><tr><th>a<th>b<th>c<tr><td rowspan=2>1<td>2|3<td><p>x</p><p>y</p>"
        "<tr><td colspan=2><ul><li>p<li>q</ul></table>"
    )
    lines = within(html).split("\n")
    assert lines[2:] == ["| 1 | 2\\|3 | x<br>y |", "| 1 | - p<br>- q |  |"]


def test_a_span_beyond_reason_does_not_make_a_table_of_a_billion_cells() -> None:
    cells = "<td colspan=99999 rowspan=99999>x</td><td>y</td>"
    shown = within(f"<table>{f'<tr>{cells}</tr>' * 50}</table>")
    assert "| x |" in shown
    assert shown.split("\n")[-1].count("|") < 250


def test_a_table_that_only_lays_out_a_page_is_none() -> None:
    html = "<table><tr><td><h2>Left</h2><p>one</p></td><td><pre>two\nthree</pre></td></tr></table>"
    assert within(html) == "## Left\n\none\n\n```\ntwo\nthree\n```"


def test_exponents_formulas_and_who_is_quoted_stay_readable() -> None:
    assert within("<p>10<sup>3</sup> ms, H<sub>2</sub>O, so<sup>[1]</sup></p>") == "10^3 ms, H2O, so[1]"
    assert within("<p>so <math alttext='{\\displaystyle x=1}'><mi>x</mi></math> is</p>") == "so $x=1$ is"
    quoted = "<blockquote><div><cite>Marta wrote:</cite>It runs.</div></blockquote>"
    assert within(quoted) == "> *Marta wrote:*\n>\n> It runs."


def test_text_that_looks_like_a_mark_is_guarded_and_other_text_is_not() -> None:
    html = (
        "<p># no heading</p><p>1. no list</p><p>- no item</p><p>&gt; no quote</p><p>2 * 3 * 4, a_b_c, [x]</p>"
    )
    assert (
        within(html)
        == "\\# no heading\n\n1\\. no list\n\n\\- no item\n\n\\> no quote\n\n2 * 3 * 4, a_b_c, [x]"
    )


# --- broken, hostile, large ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "html",
    [
        "",
        " \n",
        "\0",
        "<!--",
        "<!-- -->",
        "<html>",
        "<frameset>",
        "<?xml version='1.0' encoding='utf-16'?><html><body></body></html>",
        "<svg><title>x</title></svg>",
        "<select><option>",
        "<table><tr></table>",
        "<ul></ul><ol><li></ol>",
        "<body><script>document.write('x')</script>",
    ],
)
def test_nothing_becomes_nothing(html: str) -> None:
    assert markdown(html) == ""


@pytest.mark.parametrize(
    ("html", "shown"),
    [
        ("<p>one<p>two", "one\n\ntwo"),
        ("<b>one<p>two</b> three", "**one**\n\ntwo three"),
        ("<ul><li>a<ul><li>b</ul><li>c", "- a\n  - b\n- c"),
        ("<li>a<li>b", "- a\n- b"),
        ("</div></p>one</li></ul>", "one"),
        ("<p>o\0ne", "one"),
        ("<p>one \ud800 two", "one ? two"),
        ("<p>&#0;&#xD800;&#x1F600;", "\ufffd\ufffd😀"),
        ("<em>one <em>two</em></em>", "*one two*"),
        ("<a href=/x>one <a href=/y>two</a></a>", "[one](https://a.example/x) [two](https://a.example/y)"),
    ],
)
def test_broken_html_becomes_what_a_reader_would_see(html: str, shown: str) -> None:
    assert markdown(f"<body>{html}") == shown


@pytest.mark.parametrize(
    "opening", ["<div>", "<ul><li>", "<blockquote>", "<b>", "<table><tr><td>", "<a href=x>", "<pre>"]
)
@pytest.mark.parametrize("depth", [300, 10_000])
def test_a_page_of_any_depth_keeps_what_lies_deepest(opening: str, depth: int) -> None:
    html = f"<p>the beginning</p>{opening * depth}the deepest<p>the end</p>"
    for convert in (_documents.to_markdown, _documents.to_text, _documents.to_html):
        text = convert(html, BASE).text
        assert "the beginning" in text
        assert "the deepest" in text


def test_what_takes_too_long_to_convert_goes_on_as_plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    from fastrpc.tools.agent._documents import markdown as documents_markdown

    monkeypatch.setattr(documents_markdown, "SECONDS", 0.0)
    monkeypatch.setattr(documents_markdown, "BATCH", 100)
    text = markdown(article("<h2>Later</h2>" * 3))
    assert "from here on it is plain text" in text
    assert text.endswith(PROSE.strip())


def test_a_page_without_end_is_cut_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from fastrpc.tools.agent._documents import writer as documents_writer

    monkeypatch.setattr(documents_writer, "LONGEST", 10_000)
    text = markdown(f"<main>{f'<p>{PROSE}</p>' * 1000}</main>")
    assert len(text) < 12_000
    assert text.endswith("[The rest of the page is left out.]")


def test_a_page_of_20_mb_is_read_in_bounded_time() -> None:
    rubbish = "<script>" + "x = 1;\n" * 1_500_000 + "</script>"
    html = f"<main><h1>Tides</h1>{f'<p>{PROSE}</p>' * 100_000}</main>{rubbish}"
    assert len(html) > 19_000_000
    document = wait(_documents.convert(html, BASE, "text"))
    assert document.text.startswith(f"Tides\n\n{PROSE.strip()}\n\n")


# --- the process --------------------------------------------------------------------------------------------


def test_the_process_answers_what_the_function_does() -> None:
    page = page_cases.Case("arabic")

    async def all_three() -> list[_documents.Document]:
        return [await _documents.convert(page.html, page.url, name) for name in ("markdown", "text", "html")]

    for document, convert in zip(wait(all_three()), _documents.FORMATS.values(), strict=True):
        here = convert(page.html, page.url)
        assert (document.title, document.text) == (here.title, here.text)


def test_too_little_memory_is_an_error_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_documents, "MEMORY", 120 * 1024 * 1024)
    with pytest.raises(ToolError, match=r"^The page could not be read: "):
        wait(_documents.convert(article("<p>x</p>" * 400_000), BASE))


def test_too_little_time_is_an_error_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_documents, "SECONDS", 1)
    with pytest.raises(ToolError, match=r"more than 1 s|SIGKILL|SIGXCPU"):
        wait(_documents.convert(article("<p>x <b>y</b></p>" * 300_000), BASE))


def test_a_caller_may_allow_less_time() -> None:
    with pytest.raises(ToolError, match=r"more than 1 s|SIGKILL|SIGXCPU"):
        wait(_documents.convert(article("<p>x <b>y</b></p>" * 300_000), BASE, seconds=0.5))


def test_nothing_of_the_working_directory_is_imported(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("lxml", "json", "markdownify", "fastrpc"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('from the working directory')")
    monkeypatch.chdir(tmp_path)
    assert wait(_documents.convert("<p>one</p>", BASE)).text == "one"


def test_a_cancelled_conversion_leaves_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHON_OF_THIS_TEST", str(os.getpid()))  # the reader's environment has Python's names

    async def cancelled() -> None:
        html = article("<p>x <b>y</b></p>" * 200_000)
        call = asyncio.ensure_future(_documents.convert(html, BASE))
        await until(_workers)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await until(lambda: not _workers())

    wait(cancelled())


def _workers() -> list[str]:
    """The command lines of our own workers."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/cmdline", encoding="utf-8", errors="replace") as file:
                command = file.read()
            with open(f"/proc/{name}/environ", encoding="utf-8", errors="replace") as file:
                mine = f"PYTHON_OF_THIS_TEST={os.getpid()}\0" in file.read()
        except OSError:
            continue
        if "_documents import worker" in command and mine:
            found.append(command)
    return found


def test_importing_the_module_imports_no_library() -> None:
    code = (
        "import sys, fastrpc.tools.agent._documents; "
        "print([name for name in ('lxml', 'bs4', 'markdownify', 'pypdf', 'asyncio') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    assert done.stdout.strip() == "[]", done.stderr
