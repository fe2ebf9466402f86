"""What pages show only when something is pressed, draw by a style, or bring by a script, is in the text."""

from __future__ import annotations

import pytest
from support.article import limited, within

pytestmark = pytest.mark.usefixtures("patience")


# --- what folds ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "html",
    [
        "<h3><button aria-expanded=false aria-controls=a class=trigger>Why?</button></h3>"
        "<div id=a role=region hidden>Because.</div>",
        "<p class=q aria-expanded=false data-bs-target='#a'>Why?</p><div id=a class='d-none'>Because.</div>",
        "<div class=expand-control>Why?</div>"
        "<div class='expand-content expand-hidden' style='display:none;'>Because.</div>",
        "<dl class=spoiler><dt>Why?</dt><dd style='display: none'>Because.</dd></dl>",
        "<ul><li><a href='#a'>Why?</a></li></ul><div id=a class=tab-pane style='display:none'>Because.</div>",
        "<div role=tablist><button role=tab aria-controls=a>Why?</button></div>"
        "<div id=a role=tabpanel class='panel hidden'>Because.</div>",
    ],
)
def test_what_a_page_shows_when_it_is_unfolded_is_read(html: str) -> None:
    """ReadDocs: answers of accordions, spoilers and panels are read though the page hides them."""
    shown = within(html)
    assert "Why?" in shown
    assert "Because." in shown


@pytest.mark.parametrize(
    "html",
    [
        "<button aria-expanded=false aria-controls=a>Menu</button><div id=a class=menu hidden>Left out</div>",
        "<nav><a aria-expanded=false href='#a'>More</a><div id=a hidden>Left out</div></nav>",
        "<div class=modal-content style='display:none'>Left out</div>",
        "<div class=note style='display:none'>Left out</div>",
    ],
)
def test_menus_and_what_is_hidden_without_a_way_to_it_stay_hidden(html: str) -> None:
    assert "Left out" not in within(f"{html}x")


# --- what waits for a script --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("html", "shown"),
    [
        ("<img data-hi-res-src='/real.jpg' alt=L>", "![L](https://a.example/real.jpg)"),
        ("<img src='/spacer.gif' data-image-x='/real.webp?w=9 2x' alt=L>",
         "![L](https://a.example/real.webp?w=9)"),
        ("<img data-url-of-page='/page' alt=L>x", "x"),
        ("<div class=lazy></div><noscript>No scripts!<img src='/real.jpg' alt=L></noscript>",
         "![L](https://a.example/real.jpg)"),
        ("<div><img data-src='/real.jpg' alt=L></div><noscript><img src='/real.jpg' alt=M></noscript>",
         "![L](https://a.example/real.jpg)"),
        ("<div data-id=1></div><noscript><iframe src='/film' title=F></iframe></noscript>",
         "[frame: F: <https://a.example/film>]"),
        ("x<noscript><img width=1 height=1 src='/count'></noscript>", "x"),
        ("<iframe data-src='/film'></iframe>", "[frame: <https://a.example/film>]"),
        ("<iframe src='about:blank' data-lazy-src='/film'></iframe>", "[frame: <https://a.example/film>]"),
        ("<video controls data-src='/m.mp4'></video>", "[video: <https://a.example/m.mp4>]"),
        ("<video><source data-src='/m.mp4'></video>", "[video: <https://a.example/m.mp4>]"),
        ("<lite-youtube videoid=x1 playlabel=Talk></lite-youtube>",
         "[video: Talk: <https://www.youtube.com/watch?v=x1>]"),
        ("<p>Seen <time datetime=2024-02-03></time>.</p>", "Seen 2024-02-03."),
    ],
)  # fmt: skip
def test_what_a_script_would_bring_is_named_by_its_address(html: str, shown: str) -> None:
    """ReadDocs: images, frames and videos that wait for a script are in the text by their addresses."""
    assert within(f"<div>{html}</div>") == shown


# --- what is drawn ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("html", "shown"),
    [
        ("Now <span style='text-decoration: line-through'>99</span> 79", "Now ~~99~~ 79"),
        ("Now <span class='price line-through'>99</span> 79", "Now ~~99~~ 79"),
        ("State <svg role=img aria-label=Passed width=16></svg>", "State Passed"),
        ("State <i class='fa fa-times' title=No></i>", "State No"),
        ("State <span class=icon role=img aria-label=Yes></span>", "State Yes"),
        ("Rated <span role=img aria-label='4 of 5'><i class=star></i><i class=star></i></span>",
         "Rated 4 of 5"),
        ("Ask <a class=__cf_email__ data-cfemail=0f6e4f6d216c>[hidden]</a>", "Ask [a@b.c](mailto:a@b.c)"),
        ("Ask <span data-cfemail=0f6>[hidden]</span>", "Ask [hidden]"),
        ("State <i class=icon title=No aria-hidden=true></i>", "State"),
        ("<svg role=img width=400><title>Sales</title><desc>From 1 to 5</desc><text>Q1</text></svg>",
         "[drawing: Sales | From 1 to 5; Q1]"),
        ("<img src=/i.png alt='A bird' title='It sings'>", '![A bird](https://a.example/i.png "It sings")'),
        ("<img src=/i.png title='It sings'>", "![It sings](https://a.example/i.png)"),
        ("<img src=/i.png alt=Bird title=bird>", "![Bird](https://a.example/i.png)"),
        ("x<sup>n+1</sup> a<sub>i-1</sub> 10<sup>-3</sup> Ca<sup>2+</sup>", "x^(n+1) a_(i-1) 10^-3 Ca^2+"),
        ("<b>f(<i>*args</i>, <i>**options</i>)</b>", r"**f(*\*args*, *\*\*options*)**"),
        ("so<sup class=noprint>[citation needed]</sup>", "so[citation needed]"),
        ("<ruby><rb>東</rb><rtc><rt>とう</rt></rtc></ruby>", "東(とう)"),
        ("<select><optgroup label=Old><option>A<option>B</optgroup><optgroup label=New><option>C</select>",
         "[choice: Old: A | B | New: C]"),
    ],
)  # fmt: skip
def test_what_a_style_or_a_sign_says_is_said_in_the_text(html: str, shown: str) -> None:
    """ReadDocs: struck prices, signs with a name, descriptions of drawings and images keep what they say."""
    assert within(f"<p>{html}</p>") == shown


@pytest.mark.parametrize(
    ("html", "shown"),
    [
        ("<ul><li><span role=checkbox aria-checked=true></span>done<li><button role=checkbox"
         " aria-checked=false></button>open</ul>", "- [x] done\n- [ ] open"),
        ("<ul><li class=checked data-inline-task-id=1>done<li data-inline-task-id=2>open</ul>",
         "- [x] done\n- [ ] open"),
        ("<fieldset><legend>Size</legend><input type=radio checked><label>M</label> <input type=radio>"
         "<label>L</label></fieldset>", "**Size**\n\n[x] M [ ] L"),
        ("<ul><li><div role=checkbox aria-checked=true>done</div><li>"
         "<div class='checkbox checkbox-off'></div> <span>open</span></ul>", "- [x] done\n- [ ] open"),
        ("<input type=checkbox id=toggle><label for=toggle>Text</label>", "Text"),
        ("<div role=group>Size <span role=radio aria-checked=true>M</span> <span role=radio"
         " aria-checked=false>L</span></div>", "Size [x] M [ ] L"),
        ("<p><button role=switch aria-checked=true>Dark</button>x</p>", "x"),
    ],
)  # fmt: skip
def test_boxes_of_every_making_are_ticked_or_not(html: str, shown: str) -> None:
    assert within(html) == shown


@pytest.mark.parametrize(
    ("html", "shown"),
    [
        ("<table><tr><th>Plan<th>A<tr><td>Login<td><svg aria-hidden=true></svg>"
         "<span class=sr-only>Included</span></table>", "| Login | Included |"),
        ("<p><span class=visually-hidden>4 of 5 stars</span><i class=star></i></p>", "4 of 5 stars"),
        ("<a href=/code><svg></svg><span class=sr-only>Source</span></a>", "[Source](https://a.example/code)"),
    ],
)  # fmt: skip
def test_words_for_who_cannot_see_are_read_where_nothing_else_is_said(html: str, shown: str) -> None:
    assert within(html).split("\n")[-1] == shown


def test_words_for_who_cannot_see_are_left_out_beside_what_is_seen() -> None:
    html = "<p><a href=/a>a page<span class=sr-only>, opens anew</span></a></p>"
    assert within(html) == "[a page](https://a.example/a)"
    assert within("<h2>A<a href='#a'><span class=sr-only>Section A</span></a></h2>") == "## A"


# --- elements of a page's own making ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("html", "shown"),
    [
        ("<div role=table><div role=rowgroup><div role=row><span role=columnheader>Name</span>"
         "<span role=columnheader>Age</span></div></div><div role=row><span role=cell>Al</span>"
         "<span role=cell>30</span></div></div>", "| Name | Age |\n| --- | --- |\n| Al | 30 |"),
        ("<div role=grid><div role=row><div role=gridcell>1</div></div></div>", "1"),
        ("<div role=list><div role=listitem>one</div><div role=listitem>two</div></div>", "- one\n- two"),
        ("<div role=heading aria-level=4>Part</div>x", "#### Part\n\nx"),
        ("<amp-img src=/a.jpg alt=A width=9></amp-img>", "![A](https://a.example/a.jpg)"),
        ("<amp-video src=/a.mp4></amp-video>", "[video: <https://a.example/a.mp4>]"),
        ("<x-card><template shadowrootmode=open><h2><slot name=t>No title</slot></h2><p>Says "
         "<slot>nothing</slot>.</p><p><slot name=u>Unset</slot></p></template><span slot=t>Title</span>"
         "light</x-card>",
         "## Title\n\nSays light.\n\nUnset"),
        ("<x-card>light<template shadowrootmode=open><slot></slot></template></x-card>", "light"),
        ("<div class=mermaid>graph LR\n  A --> B</div>", "```\ngraph LR\n  A --> B\n```"),
        ("<dialog open><p>Shown</p></dialog>", "Shown"),
        ("<button><b>200</b><p>Done</p></button>", "**200**\n\nDone"),
        ("<h3 class=tsd-anchor-link><code>Optional</code> size</h3>", "### `Optional` size"),
    ],
)  # fmt: skip
def test_elements_of_a_pages_own_making_are_what_their_roles_and_names_say(html: str, shown: str) -> None:
    """ReadDocs: tables, lists and headings of divisions, shadow roots, diagrams keep their structure."""
    assert within(html) == shown


def test_a_comparison_says_which_lines_are_added_and_taken_out() -> None:
    cells = "".join(
        f"<tr><td class=blob-num><td class=blob-code><span data-code-marker='{mark}'>{line}</span></tr>"
        for mark, line in ((" ", "same"), ("-", "old"), ("+", "new"))
    )
    assert within(f"<table>{cells}</table>") == "```\n same\n-old\n+new\n```"


def test_line_numbers_in_code_of_their_own_are_left_out() -> None:
    html = "<table><tr><td><pre class=lines>1\n2</pre></td><td><pre>if x:\n    y()</pre></td></tr></table>"
    assert within(html) == "```\nif x:\n    y()\n```"


# --- code and tables ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "html",
    [
        "<div class=fragment><div class=line><span class=lineno>1</span>if x:</div>"
        "<div class=line><span class=lineno>2</span>    y()</div></div>",
        "<div class=fragment><div class=line>if x:</div>\n<div class=line>    y()</div>\n</div>",
        "<div class='syntaxhighlighter py'><table><tr><td class=gutter><div class=line>1</div>"
        "<div class=line>2</div></td><td class=code><div class=line><code>if x:</code></div>"
        "<div class=line><code>    y()</code></div></td></tr></table></div>",
        "<div class=CodeMirror-code><div><div><div class=CodeMirror-linenumber>1</div></div><pre>if x:</pre>"
        "</div><div><pre>    y()</pre></div></div>",
        "<div style='white-space: pre'>if x:\n    y()</div>",
        "<pre>if x:<div class=where>    y()</div></pre>",
        "<pre><span class=codeLine><span class=codeLineContent>if x:</span><br></span>"
        "<span class=codeLine><span class=codeLineContent>    y()</span><br></span></pre>",
    ],
)
def test_code_that_is_made_of_divisions_keeps_its_lines_and_their_indentation(html: str) -> None:
    """ReadDocs: code of Doxygen, SyntaxHighlighter and editors stays code."""
    assert within(html) == "```\nif x:\n    y()\n```"


def test_code_says_exponents_and_images() -> None:
    html = "<pre>x<sup>2</sup> 10<sup>n-1</sup> <img alt=':)' src=/s.gif></pre>"
    assert within(html) == "```\nx^2 10^(n-1) :)\n```"


def test_a_tables_captions_keep_links_and_exponents_also_in_a_cell() -> None:
    caption = "<caption>In m<sup>2</sup>, <i>see</i> <a href=/n>notes</a></caption>"
    row = "<tr><td>1<td>2</tr>"
    shown = within(f"<table>{caption}<caption>Two</caption>{row}</table>")
    assert shown.split("\n\n")[:2] == ["*In m^2, see [notes](https://a.example/n)*", "*Two*"]
    inner = within(f"<table><tr><th>a<th>b</tr><tr><td>x<td><table>{caption}{row}</table></tr></table>")
    assert inner.split("\n")[-1] == "| x | In m^2, see [notes](https://a.example/n)<br>1 \\| 2 |"


# --- what is taken for a surrounding ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "html",
    [
        "<section class=related-work><h2>Related Work</h2><p>Kept: 5 words of it.</p></section>",
        "<div class=promo-code>Kept: 5 words of it.</div>",
        "<div class=share-price>Kept: 5 words of it.</div>",
        "<div class=overlay-network>Kept: 5 words of it.</div>",
        "<article><p>x</p><footer>Kept: 5 words of it.</footer></article>",
        "<menu><li>Kept: 5 words of it.</li></menu>",
        "<aside class=onebox><h3><a href=/a>Kept: 5 words of it.</a></h3></aside>",
        "<h1 class=with-breadcrumbs><a href=/a>Kept: 5 words of it.</a></h1>",
    ],
)
def test_what_a_page_is_about_does_not_make_a_part_of_it_a_surrounding(html: str) -> None:
    assert "Kept: 5 words of it." in within(html)


@pytest.mark.parametrize(
    "html",
    [
        "<section class=related><h2><a href=/a>Left out</a></h2><p>Some words about it.</p></section>",
        "<div class=share>Left out<button>Send</button></div>",
        "<div class=subscription><p>Left out</p><form></form></div>",
        "<footer>Left out</footer>",
        "<article><p>x</p><footer><a href=/a>Left out</a></footer></article>",
        "<menu><li><button>Left out</button></li></menu>",
        "<h1>x<button>Left out</button></h1>",
    ],
)
def test_what_is_there_to_be_used_is_left_out(html: str) -> None:
    assert "Left out" not in within(f"{html}x")


# --- hostile ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "html",
    [
        f"<p>{'<span class=sr-only>x</span>' * 30_000}",
        f"<h2>{'<button>x</button>' * 30_000}",
        f"<span style='{'text-decoration:' * 20_000}'>x</span>",
        f"<pre>{'a' * 500_000}{'<div></div>' * 30_000}</pre>",
        "<img data-" + "src" * 100_000 + "=x>",
        "<div role=table>" * 1_000 + "<div role=row><div role=cell>x</div></div>" * 10_000,
        "<b><template shadowrootmode=open>" * 600 + "<slot></slot>x" * 10_000,
        "<span role=img aria-label=x>" * 1_000 + "<i></i>" * 30_000,
        "<span role=checkbox aria-checked=true>" * 1_000 + "<i></i>" * 30_000,
    ],
    ids=["read aloud", "buttons", "styles", "lines", "attributes", "roles", "slots", "signs", "boxes"],
)
def test_what_is_shown_otherwise_takes_time_in_proportion(html: str) -> None:
    """Each takes less than a second; with a step for each pair it was ten and more."""
    with limited(5):
        within(html)
