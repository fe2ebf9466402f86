"""Gathers the pages of the documentation's site for Zensical: ``python .ci/site/pages.py FOLDER``.

The pages of docs/ are copied, and so are the README, which is the first page, and the others in
`FROM_ELSEWHERE`; `reference.py` and `commands.py` make the rest from the sources. A link to a file that is no
page leads to the repository; one to a file that does not exist raises LookupError. Zensical checks the links
between pages (`make docs`).
A page in Arabic says so above its text, so that the theme writes it from right to left.
"""

from __future__ import annotations

import posixpath
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import commands
import reference

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
REPOSITORY = "https://github.com/fastrpc/fastrpc"
FROM_ELSEWHERE = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "benchmarks/README.md": "benchmarks.md",
}
PICTURES = ("benchmarks/charts/*.svg", "docs/pictures/*.*")
LINK = re.compile(r"(?<=\]\()(?![a-z+]+:|#)([^)#\s]+)(#[^)\s]*)?(?=\))")
FENCE = re.compile(r"^( *)(`{3,}|~{3,}).*?^\1\2 *$", re.DOTALL | re.MULTILINE)


def sources() -> dict[str, str]:
    """Return the files of the repository that are pages and pictures, each with its path in the site."""
    written = {path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/**/*.md")}
    found = (path for pattern in PICTURES for path in ROOT.glob(pattern))
    pictures = {path.relative_to(ROOT).as_posix() for path in found}
    return {
        **FROM_ELSEWHERE,
        **{path: path.removeprefix("docs/") for path in sorted(written)},
        **{path: path.removeprefix("benchmarks/").removeprefix("docs/") for path in sorted(pictures)},
    }


def outside_fences(text: str) -> Iterator[tuple[str, bool]]:
    """Cut a page into what is text and what is code, which each part says of itself: True for text."""
    end = 0
    for fence in FENCE.finditer(text):
        yield text[end : fence.start()], True
        yield fence[0], False
        end = fence.end()
    yield text[end:], True


def linked(text: str, path: str, pages: dict[str, str]) -> str:
    """Return a page, the file `path` of the repository, with links that lead somewhere from the site.

    Raises LookupError for a link to a file that there is not.
    """

    def moved(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), link[1]))
        if target in pages:
            return posixpath.relpath(pages[target], posixpath.dirname(pages[path])) + (link[2] or "")
        if not (ROOT / target).exists():
            raise LookupError(f"{path}: a link to {link[1]}, which is not there")
        kind = "tree" if (ROOT / target).is_dir() else "blob"
        return f"{REPOSITORY}/{kind}/main/{target}{link[2] or ''}"

    return "".join(LINK.sub(moved, part) if is_text else part for part, is_text in outside_fences(text))


def without_escapes(text: str) -> str:
    """Return a page without the backslashes that GitHub needs before bars in a table's code."""

    def in_code(row: re.Match[str]) -> str:
        return re.sub(r"`[^`]+`", lambda code: code[0].replace(r"\|", "|"), row[0])

    return "".join(
        re.sub(r"^\|.*\|$", in_code, part, flags=re.MULTILINE) if is_text else part
        for part, is_text in outside_fences(text)
    )


def gathered() -> Iterator[tuple[str, str]]:
    """Yield each page: its path in the site, and its text."""
    pages = sources()
    for path, page in pages.items():
        if page.endswith(".md"):
            text = linked((ROOT / path).read_text(encoding="utf-8"), path, pages)
            yield page, f"---\nlang: ar\n---\n\n{text}" if page.startswith("ar/") else text
    yield from reference.pages()
    yield from commands.pages()


def configuration(pages: list[str]) -> str:
    """Return Zensical's configuration, with the pages that were made in its `nav`.

    Their titles are whole paths there: several modules have a `Client`.
    """
    text = (HERE / "zensical.toml").read_text(encoding="utf-8")
    for place, folder in (("REFERENCE", "reference/"), ("COMMANDS", "commands/")):
        titles = {page: page.removeprefix(folder).removesuffix(".md").replace("/", ".") for page in pages}
        made = (f'{{ "{titles[page]}" = "{page}" }},' for page in pages if page.startswith(folder))
        text = text.replace(f"{place}\n", f"{' '.join(made)}\n")
    return text


def write(folder: Path) -> None:
    """Make a folder that Zensical builds the site from."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(HERE / "overrides", folder / "overrides")
    (folder / "pages").mkdir()
    shutil.copy(HERE / "site.css", folder / "pages" / "site.css")
    pages = dict(gathered())
    for page, text in pages.items():
        path = folder / "pages" / page
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(without_escapes(text), encoding="utf-8")
    for source, picture in sources().items():
        if not picture.endswith(".md"):
            (folder / "pages" / picture).parent.mkdir(exist_ok=True)
            shutil.copy(ROOT / source, folder / "pages" / picture)
    (folder / "zensical.toml").write_text(configuration(list(pages)), encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
