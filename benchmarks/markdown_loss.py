"""What is lost on the way from saved pages to Markdown, beside other converters: words, code, rows, images.

    python benchmarks/markdown_loss.py FOLDER...           a table, of every *.html in the folders
    python benchmarks/markdown_loss.py FOLDER --show 20    the pages on which ours loses most, and what
    python benchmarks/markdown_loss.py FOLDER --only ours  of one converter alone

Pages are not kept here: take those that documentation packages hold (Debian's *-doc, `rustup doc`). The
pages of tests/fixtures/kinds are of this project's own hand, in the form that wikis, forums, shops and others
generate. A page is lost whole where a converter raises. No part of the guard.
"""

from __future__ import annotations

import argparse
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE), os.path.join(os.path.dirname(HERE), "tests")]

from support import page_loss  # noqa: E402

import markdown_comparison as comparison  # noqa: E402

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

URL = "https://a.example/folder/page.html"
CONVERTERS = {
    "ours": comparison.ours_and_markdownify,
    "trafilatura": comparison.by_trafilatura,
    "html2text": comparison.by_html2text,
    "markdownify": comparison.by_markdownify,
    "html-to-markdown": comparison.by_html_to_markdown,
}


def pages(folders: list[str]) -> Iterator[tuple[str, str]]:
    for folder in folders:
        for name in sorted(os.listdir(folder)):
            if name.endswith((".html", ".htm", ".xhtml")):
                with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
                    yield name, file.read()


def losses(convert: Callable[[str, str], str], found: list[tuple[str, str]]) -> dict[str, page_loss.Loss]:
    all_losses = {}
    for name, html in found:
        try:
            markdown = convert(html, URL)
        except Exception as error:  # a converter may raise anything
            print(f"{name}: {error!r:.200}", file=sys.stderr)
            markdown = ""
        all_losses[name] = page_loss.lost(html, markdown)
    return all_losses


def row(name: str, found: dict[str, page_loss.Loss]) -> list[str]:
    every = found.values()
    words = sum(loss.total for loss in every)
    missing = sum(loss.words.total() for loss in every)
    whole = sum(not loss.words for loss in every)
    surplus = sum(loss.surplus for loss in every)

    def part(of: str, all_of: str) -> str:
        return f"{sum(getattr(loss, of) for loss in every)} of {sum(getattr(loss, all_of) for loss in every)}"

    return [
        name, f"{missing} of {words}", f"{whole} of {len(found)}", f"{100 * surplus / words:.0f} %",
        part("code", "codes"), part("row", "rows"), part("image", "images"),
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="+")
    parser.add_argument("--only", choices=CONVERTERS)
    parser.add_argument("--show", type=int, default=0, metavar="PAGES")
    options = parser.parse_args()
    found = list(pages(options.folder))
    rows = [["", "words lost", "pages without loss", "words too many", "lines of code", "rows", "images"]]
    for name, convert in CONVERTERS.items():
        if options.only in (None, name):
            results = losses(convert, found)
            rows.append(row(name, results))
            if name == "ours":
                show(results, options.show)
    print(comparison.table(rows))


def show(results: dict[str, page_loss.Loss], most: int) -> None:
    worst = sorted(results.items(), key=lambda item: -item[1].words.total() / max(item[1].total, 1))
    for name, loss in worst[:most]:
        lost = ", ".join(f"{word} {count}" for word, count in loss.words.most_common(12))
        others = (
            f"code {loss.code}/{loss.codes}, rows {loss.row}/{loss.rows}, images {loss.image}/{loss.images}"
        )
        print(f"{name}: {loss.words.total()} of {loss.total} words ({lost}); {others}")
        print(*loss.examples, sep="\n    ")


if __name__ == "__main__":
    main()
