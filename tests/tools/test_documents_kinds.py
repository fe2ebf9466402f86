"""What pages of other people's kinds hold besides paragraphs: nothing of it is lost without a word."""

from __future__ import annotations

import os

import pytest
from fastrpc.tools.agent import _documents
from support import page_loss
from support.article import BASE, PROSE, limited, page, within

pytestmark = pytest.mark.usefixtures("patience")

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "fixtures", "kinds")
KINDS = sorted(name.removesuffix(".html") for name in os.listdir(FOLDER) if name.endswith(".html"))


# --- whole pages --------------------------------------------------------------------------------------------


def read(kind: str) -> str:
    with open(os.path.join(FOLDER, f"{kind}.html"), encoding="utf-8") as file:
        return file.read()


@pytest.mark.parametrize("kind", KINDS)
def test_no_word_number_row_or_image_of_a_page_is_lost(kind: str) -> None:
    """ReadDocs: what a page's main content shows is in the Markdown, or a notice in brackets "
    "represents it."""
    html = read(kind)
    loss = page_loss.lost(html, _documents.to_markdown(html, BASE).text)
    assert not loss.words, loss.examples
    assert (loss.code, loss.row, loss.image) == (0, 0, 0)


@pytest.mark.parametrize("kind", KINDS)
def test_what_surrounds_the_content_of_a_page_is_left_out(kind: str) -> None:
    import bs4

    html = read(kind)
    text = _documents.to_markdown(html, BASE).text
    for element in bs4.BeautifulSoup(html, "html.parser").select("[data-surrounding]"):
        for piece in element.stripped_strings:
            assert len(piece) < 3 or piece not in text


def test_the_measure_of_what_is_lost_sees_a_number_that_ran_into_another() -> None:
    rows = "<tr><th>a</th><th>b</th></tr><tr><td>c</td><td>d</td></tr>"
    html = f"<main><p>1<sup>2</sup> of 34</p><table>{rows}</table></main>"
    assert not page_loss.lost(html, "1^2 of 34\n\n| a | b |\n| c | d |").words
    loss = page_loss.lost(html, "12 of\n\n| a | b | x |\n\nc d")
    assert sorted(loss.words) == ["1", "2", "34"]
    assert (loss.row, loss.rows) == (1, 2)


# --- tables -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        ("<p>two:</p><pre>x = 1\n  y = '`'</pre>", "two:<br>`x = 1`<br>``   y = '`' ``"),
        ("<table><tr><th>k<th>v<tr><td>1<td>2</table>", "k \\| v<br>1 \\| 2"),
        ("<h4>Head</h4>text", "Head<br>text"),
        ("<ul><li>x<ul><li>y</ul><li>z</ul>", "- x<br>- y<br>- z"),
        ("<ol start=3><li>x<li>y</ol>", "3. x<br>4. y"),
        ("one<hr>two", "one<br>two"),
        ("<table><tr><td><table><tr><td><table><tr><td>deep</table></table></table>", "deep"),
    ],
)
def test_a_table_with_an_odd_cell_stays_a_table(cell: str, shown: str) -> None:
    """ReadDocs: a table of parameters stays one whatever a cell of it holds."""
    rows = f"<tr><td>a<td>int<td>one</tr><tr><td>b<td>str<td>{cell}</td></tr><tr><td>c<td>str<td>two</tr>"
    for head in ("<tr><th>Name<th>Type<th>Text</tr>", "<tr><td>Name<td>Type<td>Text</tr>"):
        assert within(f"<table>{head}{rows}</table>").split("\n") == [
            "| Name | Type | Text |",
            "| --- | --- | --- |",
            "| a | int | one |",
            f"| b | str | {shown} |",
            "| c | str | two |",
        ]


@pytest.mark.parametrize(
    "html",
    [
        "<table><tr><td><h2>Left</h2></td><td><h2>Right</h2></td></tr></table>",
        f"<table><tr><td>a<td>b<tr><td>c<td>d<tr><td><h2>Left</h2><td>{PROSE * 50}</table>",
        "<table role=presentation><tr><th>Left<th>Right</tr></table>",
    ],
)
def test_a_table_without_headers_that_is_not_regular_lays_out_a_page(html: str) -> None:
    assert "|" not in within(html)


def test_a_header_over_several_columns_is_in_each_and_the_footer_is_last() -> None:
    html = (
        "<table><thead><tr><th rowspan=2>Name<th colspan=2>Size</tr><tr><th>min<th>max</tr></thead>"
        "<tfoot><tr><td>all<td>1<td>9</tr></tfoot><tbody><tr><td>a<td>1<td>2</tr></tbody></table>"
    )
    assert within(html).split("\n") == [
        "| Name | Size / min | Size / max |",
        "| --- | --- | --- |",
        "| a | 1 | 2 |",
        "| all | 1 | 9 |",
    ]


def test_an_empty_corner_is_part_of_the_header() -> None:
    html = "<table><tr><td></td><th>EU<th>US</tr><tr><th>Water<td>up<td>down</tr></table>"
    assert within(html).split("\n")[0] == "|  | EU | US |"


def test_what_is_in_a_table_outside_its_rows_is_kept() -> None:
    html = (
        "<table><tr><td>a</td><td>b</td></tr><td>c</td><td>d</td></tr>"
        "<tr><form><td>e</td><td>f</td></form></tr>lost?<table><tr><td>g</td></tr></table></table>"
    )
    shown = within(html)
    assert shown.split("\n")[-4:] == ["| a | b |", "| --- | --- |", "| c | d |", "| e | f |"]
    assert "lost?" in shown
    assert "g" in shown.split()


def test_columns_that_are_left_out_are_counted() -> None:
    cells = "".join(f"<td>{number}" for number in range(230))
    assert within(f"<table><tr>{cells}</tr></table>").endswith("[30 more columns of the table are left out.]")


def test_boxes_of_a_table_are_ticked_or_not() -> None:
    html = (
        "<table><tr><th>a<th>b<tr><td><input type=checkbox checked disabled><td><input type=checkbox></table>"
    )
    assert within(html).split("\n")[2] == "| [x] | [ ] |"


# --- lists --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("html", "shown"),
    [
        ("<ol><li>a<li value=10>b<li>c</ol>", "1. a\n10. b\n11. c"),
        ("<ol reversed><li>a<li>b</ol>", "2. a\n1. b"),
        ("<ol reversed start=9><li>a<li>b<li value=3>c<li>d</ol>", "9. a\n8. b\n3. c\n2. d"),
        ("<ol start=0><li>a<li>b</ol>", "0. a\n1. b"),
        ("<ol type=a start=3><li>a<li><p>b</p><p>bb</p></ol>", "- c. a\n- d. b\n\n  bb"),
        ("<ol type=A start=27><li>a</ol>", "- AA. a"),
        ("<ol class=lowerroman start=4><li>a<li><pre>b</pre></ol>", "- iv. a\n- v.\n\n  ```\n  b\n  ```"),
        ("<ol style='list-style-type: upper-roman'><li>a<li value=x>b</ol>", "- I. a\n- II. b"),
        ("<ol type=a><li>a<ol><li>b<li>c</ol><li>d</ol>", "- a. a\n  1. b\n  2. c\n- b. d"),
        ("<ol start=99999999><li>a</ol>", "1. a"),
    ],
)
def test_items_have_the_numbers_that_a_browser_shows(html: str, shown: str) -> None:
    """ReadDocs: `value`, `start`, `reversed` and `type` of numbered lists are kept."""
    assert within(html) == shown
    marks = [line.split()[0] for line in shown.split("\n") if line.lstrip()[:1].isdigit()]
    text = _documents.to_text(page(html), BASE).text
    assert all(f"{mark} " in text for mark in marks)


def test_a_list_of_many_items_takes_time_in_proportion() -> None:
    html = f"<ol>{'<li>x' * 40_000}</ol>"
    assert within(html).endswith("\n40000. x")


# --- formulas -----------------------------------------------------------------------------------------------

X_SQUARED = "<msup><mi>x</mi><mn>2</mn></msup>"


@pytest.mark.parametrize(
    ("mathml", "tex"),
    [
        ("<mfrac><mn>1</mn><mn>2</mn></mfrac>", r"\frac{1}{2}"),
        ("<mfrac linethickness=0><mi>n</mi><mi>k</mi></mfrac>", r"\binom{n}{k}"),
        ("<mn>2</mn><mo>&#x2064;</mo><mfrac><mn>1</mn><mn>2</mn></mfrac>", r"2\frac{1}{2}"),
        ("<msup><mi>x</mi><mn>10</mn></msup>", "x^{10}"),
        ("<msup><msup><mi>x</mi><mn>2</mn></msup><mn>3</mn></msup>", "{x^2}^3"),
        ("<msub><mi>a</mi><mrow><mi>i</mi><mi>j</mi></mrow></msub>", "a_{i j}"),
        ("<msubsup><mo>∫</mo><mn>0</mn><mi>∞</mi></msubsup><mi>f</mi>", "∫_0^∞f"),
        ("<munderover><mo>∑</mo><mrow><mi>i</mi><mo>=</mo><mn>1</mn></mrow><mn>12</mn>"
         "</munderover>", "∑_{i=1}^{12}"),
        ("<munder><mi>lim</mi><mrow><mi>x</mi><mo>→</mo><mn>0</mn></mrow></munder>"
         "<mi>x</mi>", r"\lim_{x→0}x"),
        ("<msqrt><mi>x</mi><mo>+</mo><mn>1</mn></msqrt>", r"\sqrt{x+1}"),
        ("<mroot><mi>x</mi><mn>3</mn></mroot>", r"\sqrt[3]{x}"),
        ("<mover><mi>x</mi><mo>¯</mo></mover>", r"\bar{x}"),
        ("<mover><mo>=</mo><mtext>def</mtext></mover>", r"\overset{\text{def}}{=}"),
        (
            "<mo>(</mo><mtable><mtr><mtd><mn>1</mn></mtd><mtd></mtd></mtr>"
            "<mtr><mtd><mn>0</mn></mtd><mtd><mn>4</mn></mtd></mtr></mtable><mo>)</mo>",
            r"(\begin{matrix}1 & \\ 0 & 4\end{matrix})",
        ),
        ("<mfenced open='[' separators=';'><mn>1</mn><mn>2</mn></mfenced>", "[1;2)"),
        (
            "<mmultiscripts><mi>C</mi><mn>6</mn><none/><mprescripts/><none/><mn>14</mn></mmultiscripts>",
            "{}^{14}C_6",
        ),
        ("<mtext>if </mtext><mi>sin</mi><mi>x</mi><mo>&lt;</mo><mn>10</mn>"
         "<mo>%</mo>", r"\text{if }\sin x<10\%"),
        ("<menclose notation='updiagonalstrike'><mn>5</mn></menclose><mphantom><mn>6</mn>"
         "</mphantom>", r"\cancel{5}"),
        ("<mi mathvariant='double-struck'>R</mi><mi>max2</mi>", r"\mathbb{R}\mathrm{max2}"),
        (f"<semantics><mrow>{X_SQUARED}</mrow>"
         f"<annotation encoding='application/x-tex'>x^{{2}}</annotation></semantics>", "x^{2}"),
        ("<mfrac><mn>1</mn></mfrac><msup></msup>", r"\frac{1}{}{}"),
    ],
)  # fmt: skip
def test_a_formula_keeps_its_structure(mathml: str, tex: str) -> None:
    """ReadDocs: formulas come as TeX, the page's own or made of its MathML."""
    assert within(f"<p>so <math>{mathml}</math>.</p>") == f"so ${tex}$."


@pytest.mark.parametrize(
    "html",
    [
        f"<span class=katex><span class=katex-mathml><math>{X_SQUARED}</math></span>"
        "<span class=katex-html aria-hidden=true><span>x2</span></span></span>",
        "<span class=MathJax_Preview>?</span><span class=MathJax><nobr aria-hidden=true>x2</nobr>"
        f"<span class=MJX_Assistive_MathML><math>{X_SQUARED}</math></span></span>"
        "<script type='math/tex'>x^2</script>",
        "<mjx-container class=MathJax><mjx-math aria-hidden=true>x2</mjx-math>"
        f"<mjx-assistive-mml><math>{X_SQUARED}</math></mjx-assistive-mml></mjx-container>",
        "<mjx-container><svg><g data-latex='x^2'></g></svg></mjx-container>",
        f"<span class=mwe-math-element><span class=mwe-math-mathml-inline style='display: none'>"
        f"<math>{X_SQUARED}"
        "</math></span>"
        "<img class=mwe-math-fallback-image-inline aria-hidden=true alt='x^2' src=/x.svg></span>",
        "<img class=math src=/x.png alt='x^2'>",
        "<script type='math/tex; mode=display'>x^2</script>",
        f"<script type='math/mml'><math>{X_SQUARED}</math></script>",
        f"<math alttext='x squared'>{X_SQUARED}</math>",
        "<math alttext='{\\displaystyle x^2}'><mi>x2</mi></math>",
    ],
)
def test_of_the_forms_in_which_typesetters_leave_a_formula_one_is_kept(html: str) -> None:
    assert within(f"<p>so {html} is</p>") == "so $x^2$ is"


def test_a_formula_without_structure_says_so() -> None:
    html = "<p><span class=katex><span class=katex-html aria-hidden=true>x2</span></span></p>"
    assert within(html) == "[formula typeset without its structure: x2]"


@pytest.mark.parametrize(
    "opening", ["<mfrac><mn>1</mn>", "<msqrt>", "<mmultiscripts><mi>x</mi>", "<msup>", "<mtable><mtr><mtd>"]
)
def test_a_formula_of_any_depth_keeps_what_lies_deepest(opening: str) -> None:
    text = within(f"<p><math>{opening * 300}<mi>deepest</mi></math></p>")
    assert "deepest" in text
    assert len(text) < 20_000


@pytest.mark.parametrize(
    ("html", "shown"),
    [
        ("10<sup>3</sup> H<sub>2</sub>O CO<sub>2</sub>", "10^3 H2O CO2"),
        ("x<sub>10</sub> a<sub>ij</sub> <var>x</var><sub>1</sub> 10<sub>2</sub>", "x_10 a_ij *x*_1 10_2"),
        ("2<sup>n/2+1</sup> 2<sup>1</sup>⁄<sub>2</sub> m", "2^(n/2+1) 2 1⁄2 m"),
        ("1<sup>st</sup> so<sup>[1]</sup> word<sup><a href='#f'>1</a></sup>", "1st so[1] word^1"),
        ("word<sup>2)</sup> <b>a</b> <x-y>z</x-y>", "word^2) **a** z"),
        ("She said <q>no <q>never</q></q>.", "She said “no “never””."),
        ("<ruby>漢<rt>かん</rt></ruby><ruby>東<rp>[</rp><rt>とう</rt><rp>]</rp></ruby>", "漢(かん)東[とう]"),
        (
            "<abbr title='Request for Comments'>RFC</abbr> and <abbr title=x>RFC</abbr>",
            "RFC (Request for Comments) and RFC",
        ),
        ("On <relative-time>Jan 1</relative-time> it <x-y>began</x-y>.", "On Jan 1 it began."),
        ("<del>5</del> <ins>6</ins> <kbd><kbd>Ctrl</kbd>+<kbd>C</kbd></kbd>", "~~5~~ 6 `Ctrl+C`"),
        ("a<wbr>b", "ab"),
    ],
)  # fmt: skip
def test_what_a_browser_shows_by_place_or_marks_is_said_by_a_sign(html: str, shown: str) -> None:
    assert within(f"<p>{html}</p>") == shown


# --- what is no text ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("html", "shown"),
    [
        (
            "<picture><source srcset='/a.avif 1x, /b.avif 2x'><source srcset='/a.webp'>"
            "<img src='/a.jpg' alt='A bird'>"
            "</picture>",
            "![A bird](https://a.example/a.jpg)",
        ),
        ("<picture><source srcset='/a.webp'><img alt=''></picture>", "![](https://a.example/a.webp)"),
        ("<img src='/blank.gif' data-src='/real.jpg' alt=L>", "![L](https://a.example/real.jpg)"),
        ("<img src='/loading-dock.jpg' alt=L>", "![L](https://a.example/loading-dock.jpg)"),
        ("<img src='data:,' alt=L><noscript><img src='/real.jpg' alt=L>"
         "</noscript>", "![L](https://a.example/real.jpg)"),
        ("<div class=lightbox-wrapper><img src=/a.jpg alt=L></div>", "![L](https://a.example/a.jpg)"),
        (
            "<img src=/m.png alt=Map usemap=#m><map name=m><area href=/n alt=North>"
            "<area href=/s alt=South></map>",
            "![Map](https://a.example/m.png)\n\n[North](https://a.example/n), [South](https://a.example/s)",
        ),
        ("<iframe src='/embed?a=1' title='A film'></iframe>", "[frame: A film: "
                                                              "<https://a.example/embed?a=1>]"),
        ("<iframe srcdoc='<p>a &amp;amp; b</p><script>c</script><iframe src=/d></iframe>'>"
         "</iframe>", "a & b"),
        ("x<iframe src=/t width=1 height=1></iframe><iframe src='about:blank'></iframe>", "x"),
        ("x<iframe src='https://www.googletagmanager.com/ns.html'></iframe><iframe src=/t hidden>"
         "</iframe>", "x"),
        ("<video controls><source src=/m.mp4>"
         "<track src=x>no film</video>", "[video: <https://a.example/m.mp4>]"),
        ("<audio src='blob:x' controls title=Talk></audio>", "[audio: Talk]"),
        ("<object data=/x.pdf>get it</object>", "[object: <https://a.example/x.pdf>]"),
        ("<object><p>instead</p></object>", "instead"),
        ("<object data=/g.svg type='image/svg+xml'>a graph</object>", "![a graph](https://a.example/g.svg)"),
        ("<embed src=/x.swf>behind", "[object: <https://a.example/x.swf>]\n\nbehind"),
        ("<svg width=400><title>Sales</title><g><text>Q1</text><text>10</text></g>"
         "</svg>", "[drawing: Sales | Q1; 10]"),
        ("x<svg viewBox='0 0 24 24'><title>Icon</title></svg><svg aria-hidden=true><text>n</text>"
         "</svg>", "x"),
        ("<a href=/g><svg width=16><title>Source</title></svg></a>", "[Source](https://a.example/g)"),
        ("<canvas aria-label='Sales by month'></canvas>", "[drawing: Sales by month]"),
        ("Size <select><option>S<option selected>M<option>L</select>", "Size [choice: S | M (chosen) | L]"),
        ("<select>" + "<option>o" * 40 + "</select>", f"[choice: {'o | ' * 30}10 more]"),
        ("Pieces <input type=number value=42><input type=hidden value=7>"
         "<input type=password value=8>", "Pieces 42"),
        ("<textarea>a\nb</textarea>", "```\na\nb\n```"),
        ("<progress value=70 max=100></progress> <meter value=0.6>60 %</meter>", "70 of 100 60 %"),
        ("<label><input type=radio checked> Blue</label>", "[x] Blue"),
    ],
)  # fmt: skip
def test_what_is_no_text_is_said_or_its_address_given(html: str, shown: str) -> None:
    """ReadDocs: what a page shows in frames, media, drawings and fields is in the text, or its address is."""
    assert within(f"<div>{html}</div>") == shown


@pytest.mark.parametrize(
    "html",
    [
        "<div><ul role=tablist><li role=tab>A</li><li role=tab>B</li></ul>"
        "<div><div role=tabpanel><p>one</p></div><div role=tabpanel hidden><p>two</p></div></div></div>",
        "<div role=tablist><button role=tab aria-controls=a>A</button>"
        "<button role=tab aria-controls=b>B</button></div>"
        "<div id=a role=tabpanel><p>one</p></div><div id=b role=tabpanel style='display: none'>"
        "<p>two</p></div>",
        "<ul class='nav nav-tabs' role=tablist><li><a id=x role=tab href=#a>A</a></li><li>"
        "<a id=y role=tab>B</a></li></ul>"
        "<div class=tab-pane id=a role=tabpanel><p>one</p></div>"
        "<div class=tab-pane role=tabpanel aria-labelledby=y>"
        "<p>two</p></div>",
        "<div class='tabbed-set tabbed-alternate'><input type=radio><input type=radio>"
        "<div class=tabbed-labels><label>A</label><label>B</label></div><div class=tabbed-content>"
        "<div class=tabbed-block><p>one</p></div><div class=tabbed-block><p>two</p></div></div></div>",
    ],
)  # fmt: skip
def test_every_panel_is_shown_below_the_label_of_its_tab(html: str) -> None:
    assert within(html) == "**A**\n\none\n\n**B**\n\ntwo"


def test_buttons_that_are_headings_or_fold_the_text_are_read() -> None:
    html = (
        "<div class=accordion><h3><button aria-expanded=false>How much?</button></h3><p>Ten.</p>"
        "<button class=faq-question aria-expanded=false>How long?</button><p>A day.</p>"
        "<button>Copy</button></div>"
    )
    assert within(html) == "### How much?\n\nTen.\n\n**How long?**\n\nA day."


# --- what is taken for a surrounding ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "html",
    [
        "<section id=sharing><h2>Sharing</h2><p>Kept: 5 words of it.</p></section>",
        "<section id=cookies><h2>Cookies<a class=headerlink href=#cookies>¶</a></h2>"
        "<p>Kept: 5 words of it.</p></section>",
        "<div class=section id=menus><h2>Menus</h2><p>Kept: 5 words of it.</p></div>",
        "<dl><dt id=nav>nav</dt><dd id=footer>Kept: 5 words of it.</dd></dl>",
        "<div id=footer-margin class=box-important><p>Kept: 5 words of it.</p></div>",
        "<table><tr class='memitem:a14a296ea4e2ad446712f2310bec60766'><td>Kept: 5 words of it.<td>x</table>",
        "<div class='desc:ad5b201f097a'><p>Kept: 5 words of it.</p></div>",
        "<div class=sidebar><p>Kept: 5 words of it.</p></div>",
        "<div class=menu><p>Kept: 5 words of it.</p></div>",
        "<div class='text-right pagination-right'>Kept: 5 words of it.</div>",
        "<div class='hidden md:block'>Kept: 5 words of it.</div><div class='d-none d-md-block'>x</div>",
        "<div class=hidden-print>Kept: 5 words of it.</div>",
        "<aside class=quote><blockquote>Kept: 5 words of it.</blockquote></aside>",
        "<p><span aria-hidden=true>Kept: 5 words of it.</span>"
        " <span class=visually-hidden>Read aloud</span></p>",
        "<x-y><template shadowrootmode=open><p>Kept: 5 words of it.</p></template></x-y>",
        "<pre><span class=share>Kept: 5 words of it.</span>\n</pre>",
    ],
)  # fmt: skip
def test_a_name_does_not_make_content_a_surrounding(html: str) -> None:
    """ReadDocs: a part of the text is not left out for a word in its class or id."""
    assert "Kept: 5 words of it." in within(html)


@pytest.mark.parametrize(
    "html",
    [
        "<div class=sidebar><a href=/a>Left out</a></div>",
        "<div id=sidebar><h3>Recent</h3><a href=/a>Left out</a></div>",
        "<div id=footer><p>Left out</p></div>",
        "<div id=share-buttons><a href=/a>Left out</a></div>",
        "<div class=pagination>Left out</div>",
        "<div class=hidden>Left out</div>",
        "<aside><a href=/a>Left out</a></aside>",
        "<div class=ad-slot-3>Left out</div>",
    ],
)
def test_what_leads_elsewhere_is_left_out(html: str) -> None:
    assert "Left out" not in within(html)


def test_what_is_above_the_densest_part_of_a_page_is_kept() -> None:
    above = f"<p>Signature: 12 words. {'Above it all. ' * 9}</p>"
    html = f"<body><div>{above}</div><div>{f'<p>{PROSE}</p>' * 99}</div>"
    assert "Signature: 12 words." in _documents.to_markdown(html, BASE).text


# --- hostile ------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize(
    "html",
    [
        "<div role=tablist>" + "<div role=tab>x</div>" * 5000 + "</div>" + "<div role=tabpanel "
                                                                           "hidden>y</div>" * 5000,
        "<td>" + "<svg><title>x</title></svg>" * 5000,
        "<table><tr><td>a<td>b<tr><td>c<td>d<tr><td>e<td>" * 600,
        "<iframe srcdoc='<iframe srcdoc=&quot;x&quot;>'></iframe>" * 3000,
        "<map>" + "<area href=/x alt=x>" * 20_000 + "</map>",
        "<picture>" + "<source srcset=x><img>" * 5000 + "</picture>",
        "<p><span class=katex><span style='display:none'>" * 600 + "<math>" * 2000,
        f"<table><tr><th rowspan=30000 colspan=200>{'x' * 5000}</tr>{'<tr><td>y</tr>' * 3000}</table>",
        "<math><mtext>" + "\\" * 100_000,
        "<ol reversed>" * 1500 + "<li>x",
        "<p><span class=math>" + "<math><mn>1</mn></math>" * 20_000,
        "<p>" + "a<sub>" * 3000 + "<abbr title=x>ab</abbr>" * 3000,
    ],
)  # fmt: skip
def test_what_is_made_to_take_long_takes_little(html: str) -> None:
    """Each takes a second or so; where time grew with the square of the length it would be minutes."""
    with limited(60):
        text = _documents.to_markdown(page(html), BASE).text
    assert PROSE.strip() in text
    assert len(text) < 5_000_000
