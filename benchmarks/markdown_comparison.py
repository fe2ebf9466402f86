"""Compares libraries that turn HTML into Markdown, on the ten page shapes of tests/fixtures/pages.

    python benchmarks/markdown_comparison.py            prints the tables of docs/markdown.md
    python benchmarks/markdown_comparison.py --write    puts them there
    python benchmarks/markdown_comparison.py --failed NAME   what a candidate does not meet

Each candidate is tried alone and, where it only converts, behind our own choice of the main content. One
that is not installed is left out, so install them all in an environment of their own. Figures for the time
are the best of three, for the import the median of five fresh processes. No part of the guard.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import re
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), os.path.join(os.path.dirname(HERE), "tests")]

from support import page_cases  # noqa: E402

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

PAGE = os.path.join(os.path.dirname(HERE), "docs", "markdown.md")


def by_markdownify(html: str, url: str) -> str:
    import markdownify

    return markdownify.markdownify(html, heading_style="ATX")


def by_html2text(html: str, url: str) -> str:
    import html2text

    converter = html2text.HTML2Text(baseurl=url, bodywidth=0)
    converter.mark_code = False
    converter.backquote_code_style = True
    return converter.handle(html)


def by_html_to_markdown(html: str, url: str) -> str:
    import html_to_markdown

    options = html_to_markdown.ConversionOptions(
        base_url=url,
        extract_metadata=False,
        preprocessing=html_to_markdown.PreprocessingOptions(enabled=True, preset="aggressive"),
    )
    return html_to_markdown.convert(html, options).content or ""


def by_htmd(html: str, url: str) -> str:
    import htmd

    return htmd.convert_html(html, htmd.create_options_with_skip_tags(["script", "style", "nav", "footer"]))


def by_trafilatura(html: str, url: str) -> str:
    import trafilatura

    return (
        trafilatura.extract(
            html,
            url=url,
            output_format="markdown",
            include_links=True,
            include_images=True,
            include_tables=True,
            include_formatting=True,
            favor_recall=True,
        )
        or ""
    )


def by_markitdown(html: str, url: str) -> str:
    import io

    import markitdown

    return (
        markitdown.MarkItDown(enable_plugins=False)
        .convert_stream(io.BytesIO(html.encode()), file_extension=".html", url=url)
        .markdown
    )


def by_readability(html: str, url: str) -> str:
    import markdownify
    import readability

    document = readability.Document(html, url=url)
    heading = f"<h1>{document.short_title()}</h1>"
    return markdownify.markdownify(heading + document.summary(html_partial=True), heading_style="ATX")


def by_resiliparse(html: str, url: str) -> str:
    from resiliparse.extract.html2text import extract_plain_text

    return extract_plain_text(
        html, preserve_formatting=True, main_content=True, list_bullets=True, alt_texts=True, links=True
    )


def cleaned(html: str, url: str) -> str:
    from tools.agent._documents import page as documents_page
    from tools.agent._documents import writer as documents_writer

    page = documents_page.read(html, url)
    return "\n".join(documents_writer.write(page.content, page.base))


def ours_and_markdownify(html: str, url: str) -> str:
    from tools.agent._documents import markdown as documents_markdown

    return documents_markdown.markdown_of(html, url)[1]


def ours_and_html2text(html: str, url: str) -> str:
    return by_html2text(cleaned(html, url), url)


def ours_and_html_to_markdown(html: str, url: str) -> str:
    import html_to_markdown

    options = html_to_markdown.ConversionOptions(
        extract_metadata=False, bullets="-", autolinks=False, compact_tables=True
    )
    return html_to_markdown.convert(cleaned(html, url), options).content or ""


def ours_and_htmd(html: str, url: str) -> str:
    import htmd

    return htmd.convert_html(cleaned(html, url))


# name -> (how, the package whose version counts, the module to import, what it says of maintenance)
CANDIDATES: dict[str, tuple[Callable[[str, str], str], str, str]] = {
    "markdownify": (by_markdownify, "markdownify", "markdownify"),
    "html2text": (by_html2text, "html2text", "html2text"),
    "html-to-markdown": (by_html_to_markdown, "html-to-markdown", "html_to_markdown"),
    "htmd-py": (by_htmd, "htmd-py", "htmd"),
    "trafilatura": (by_trafilatura, "trafilatura", "trafilatura"),
    "markitdown": (by_markitdown, "markitdown", "markitdown"),
    "readability-lxml + markdownify": (by_readability, "readability-lxml", "readability"),
    "resiliparse": (by_resiliparse, "resiliparse", "resiliparse.extract.html2text"),
    "ours + markdownify": (ours_and_markdownify, "markdownify", "markdownify"),
    "ours + html2text": (ours_and_html2text, "html2text", "html2text"),
    "ours + html-to-markdown": (ours_and_html_to_markdown, "html-to-markdown", "html_to_markdown"),
    "ours + htmd-py": (ours_and_htmd, "htmd-py", "htmd"),
}


def installed(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def score(convert: Callable[[str, str], str], case: page_cases.Case) -> tuple[int, int, list[str]]:
    """Return how many expectations are met, of how many, and which are not."""
    try:
        markdown = convert(case.html, case.url)
    except Exception as error:  # a candidate may raise anything
        markdown = ""
        print(f"{case.name}: {error!r:.200}", file=sys.stderr)
    found = list(page_cases.verdicts(markdown, case.expected))
    if not markdown.strip():
        found = [(kind, what, False) for kind, what, _ in found]
    return (
        sum(met for *_, met in found),
        len(found),
        [f"{kind}: {what!r}" for kind, what, met in found if not met],
    )


def seconds(convert: Callable[[str, str], str], case: page_cases.Case) -> float:
    best = 1e9
    for _ in range(3):
        began = time.perf_counter()
        try:
            convert(case.html, case.url)
        except Exception:
            return float("nan")
        best = min(best, time.perf_counter() - began)
    return best


def import_ms(module: str) -> float:
    code = f"import time; began = time.perf_counter(); import {module}; print(time.perf_counter() - began)"
    times = []
    for _ in range(5):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        times.append(float(done.stdout) * 1000)
    return sorted(times)[2]


def deep_page(convert: Callable[..., str], name: str) -> str:
    """What becomes of 3,000 elements inside each other; tried in a process of its own, as some crash."""
    code = (
        f"import sys; sys.path[:0] = {[*sys.path[:2], HERE]!r}; import markdown_comparison as comparison; "
        "html = '<p>before the deep part</p>' + '<div>' * 3000 + '<p>deep</p>' + '</div>' * 3000; "
        f"markdown = comparison.CANDIDATES[{name!r}][0](html, 'https://a.example/') + '\\n'; "
        "print('kept' if 'deep\\n' in markdown else 'lost')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    if done.returncode < 0:
        return "crash"
    return done.stdout.strip() or done.stderr.strip().split("\n")[-1].split(":")[0]


def needs(package: str) -> str:
    """Requirements that are always installed, themselves and what they need."""
    found: set[str] = set()
    waiting = [package]
    while waiting:
        for line in importlib.metadata.requires(waiting.pop()) or []:
            name = re.split(r"[ \[<>=!~;(]", line, maxsplit=1)[0].lower()
            if "extra ==" not in line and name not in found and installed(name):
                found.add(name)
                waiting.append(name)
    return str(len(found))


def licence_of(package: str) -> str:
    about = importlib.metadata.metadata(package)
    named = about.get("License-Expression") or ""
    for classifier in about.get_all("Classifier") or []:
        if classifier.startswith("License :: OSI Approved") and not named:
            named = classifier.rpartition(":: ")[2]
    return named or "?"


def rows() -> tuple[list[list[str]], list[list[str]]]:
    cases = [page_cases.Case(name) for name in page_cases.SHAPES]
    scores = [["", *(page_cases.SHAPES[case.name] for case in cases), "all"]]
    facts = [["", "version", "licence", "Python", "needs", "import, ms", "2 MB, s", "3,000 deep"]]
    for name, (convert, package, module) in CANDIDATES.items():
        version = installed(package)
        if version is None:
            print(f"{package} is not installed", file=sys.stderr)
            continue
        results = [score(convert, case)[:2] for case in cases]
        met, wanted = map(sum, zip(*results, strict=True))
        scores.append([name, *(f"{part}/{whole}" for part, whole in results), f"{100 * met / wanted:.0f} %"])
        python = importlib.metadata.metadata(package).get("Requires-Python") or "any"
        slow = seconds(convert, cases[-1])
        facts.append(
            [
                name,
                version,
                licence_of(package),
                python,
                needs(package),
                f"{import_ms(module):.0f}",
                f"{slow:.2f}",
                deep_page(convert, name),
            ]
        )
    return scores, facts


def table(lines: list[list[str]]) -> str:
    head, *body = lines
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *body))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--failed", metavar="NAME")
    options = parser.parse_args()
    if options.failed:
        for name in page_cases.SHAPES:
            met, wanted, missing = score(CANDIDATES[options.failed][0], page_cases.Case(name))
            print(f"{name}: {met}/{wanted}", *missing, sep="\n  ")
        return
    scores, facts = rows()
    for mark, lines in (("scores", scores), ("facts", facts)):
        print(table(lines), end="\n\n")
        if options.write:
            put(mark, table(lines))


def put(mark: str, text: str) -> None:
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    page = re.sub(
        rf"(<!-- comparison:{mark} -->\n).*?(<!-- /comparison -->)",
        lambda match: f"{match[1]}{text}\n{match[2]}",
        page,
        flags=re.DOTALL,
    )
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(page)


if __name__ == "__main__":
    main()
