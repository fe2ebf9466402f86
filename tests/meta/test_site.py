"""The site of the documentation (`make docs`): what is in it, and what is made of the sources for it.

Links between pages and to their headings are checked by the generator when the site is built.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

import fastrpc
from fastrpc.cli import COMMANDS

if sys.version_info < (3, 11):
    pytest.skip("griffelib is of Python 3.11", allow_module_level=True)

REPOSITORY = Path(__file__).resolve().parent.parent.parent
sys.path.append(str(REPOSITORY / ".ci" / "site"))

import commands  # noqa: E402
import pages  # noqa: E402
import public_names  # noqa: E402
import reference  # noqa: E402
import screenshots  # noqa: E402

CONFIGURATION = (REPOSITORY / ".ci" / "site" / "zensical.toml").read_text(encoding="utf-8")
OPTION = re.compile(r"(?<![\w-])--?[a-zA-Z][\w-]*")


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    return dict(reference.pages())


def section(text: str, path: str) -> str:
    """What a page says of one name, up to the next heading."""
    return text.partition(f"{{ #{path} }}\n")[2].partition("\n## ")[0].partition("\n### ")[0]


# --------------------------------------------------------------------------------- what is in the site


def test_every_page_is_in_the_navigation_once_and_nothing_else_is() -> None:
    listed = re.findall(r'"([\w/-]+\.md)"', CONFIGURATION.partition("nav = [")[2].partition("\n]\n")[0])
    written = [page for page in pages.sources().values() if page.endswith(".md")]
    assert {path.name for path in (REPOSITORY / "docs").rglob("*.md")} <= {
        Path(page).name for page in written
    }
    assert sorted(listed) == sorted(written)


def test_the_navigation_has_the_seven_parts() -> None:
    parts = re.findall(r'^  \{ "([^"]+)" = ', CONFIGURATION, re.MULTILINE)
    assert parts == [
        "Start",
        "Guides",
        "Toolsets",
        "Reference",
        "How it is built",
        "Benchmarks",
        "Changelog",
    ]


def test_the_pages_that_are_made_take_the_places_in_the_navigation() -> None:
    made = ["tools.md", "reference/fastrpc.md", "reference/fastrpc.testing/Client.md", "commands/call.md"]
    text = pages.configuration(made)
    assert '\n{ "fastrpc" = "reference/fastrpc.md" }, ' in text
    assert '{ "fastrpc.testing.Client" = "reference/fastrpc.testing/Client.md" },\n' in text
    assert '\n{ "call" = "commands/call.md" },\n' in text


def test_a_page_in_arabic_says_so_and_no_other_does() -> None:
    for page, text in pages.gathered():
        assert text.startswith("---\nlang: ar\n---\n") == page.startswith("ar/"), page


# --------------------------------------------------------------------------------------------- links


@pytest.mark.parametrize(
    ("path", "link", "leads_to"),
    [
        ("docs/tools.md", "http.md#tokens", "http.md#tokens"),
        ("docs/tools.md", "#a-heading", "#a-heading"),
        ("docs/tools.md", "https://example.com/a.md", "https://example.com/a.md"),
        ("docs/stability.md", "../CHANGELOG.md", "changelog.md"),
        ("docs/http.md", "../README.md#install", "index.md#install"),
        (
            "docs/http.md",
            "../examples/agent-guard.toml",
            f"{pages.REPOSITORY}/blob/main/examples/agent-guard.toml",
        ),
        ("docs/ar/tools.md", "../compat.md", "../compat.md"),
        ("README.md", "docs/http.md", "http.md"),
        ("README.md", "examples", f"{pages.REPOSITORY}/tree/main/examples"),
        ("README.md", "benchmarks/charts/http.svg", "charts/http.svg"),
        ("docs/command-line.md", "pictures/dev.svg", "pictures/dev.svg"),
        ("CONTRIBUTING.md", "docs/pictures/site.png", "pictures/site.png"),
        ("benchmarks/README.md", "charts/http.svg", "charts/http.svg"),
        ("benchmarks/README.md", "../docs/compat.md#public-servers", "compat.md#public-servers"),
    ],
)
def test_a_link_leads_from_the_site_where_it_leads_from_the_file(path: str, link: str, leads_to: str) -> None:
    assert pages.linked(f"see [it]({link}).", path, pages.sources()) == f"see [it]({leads_to})."


def test_a_link_to_no_file_is_an_error_that_names_page_and_link() -> None:
    with pytest.raises(LookupError, match=r"docs/tools\.md: .*\.\./nowhere\.md"):
        pages.linked("[it](../nowhere.md)", "docs/tools.md", pages.sources())


def test_links_in_code_are_left_as_they_are() -> None:
    text = "```md\n[it](nowhere.md)\n```\n"
    assert pages.linked(text, "docs/tools.md", pages.sources()) == text


def test_a_bar_in_the_code_of_a_table_loses_its_backslash_and_no_other_does() -> None:
    text = "| `a \\| b` | c \\| d |\n\n`x \\| y`\n"
    assert pages.without_escapes(text) == "| `a | b` | c \\| d |\n\n`x \\| y`\n"


# ----------------------------------------------------------------------------------------- reference


def test_every_public_name_has_an_entry(made: dict[str, str]) -> None:
    text = "\n".join(made.values())
    for name in set(fastrpc.__all__) - {"Meta"}:
        assert f"{{ #fastrpc.{name} }}" in text, name
    assert "`msgspec.Meta`" in made["reference/fastrpc.md"]
    for module in public_names.modules():
        assert f"reference/{module}.md" in made


def test_an_entry_has_parameters_types_defaults_and_errors(made: dict[str, str]) -> None:
    mount = section(made["reference/fastrpc/Server.md"], "fastrpc.Server.mount")
    assert "mount(other, prefix='') -> None" in mount
    assert "| `other` | `Server` |  |" in mount
    assert "| `prefix` | `str` | `''` |" in mount
    assert "**Raises** [`DefinitionError`](../fastrpc.md#fastrpc.DefinitionError)" in mount


def test_options_that_are_unpacked_are_in_the_table(made: dict[str, str]) -> None:
    table = section(made["reference/fastrpc/Server.md"], "fastrpc.Server.tool")
    for option in ("effect", "timeout_seconds", "description", "costs"):
        assert re.search(rf"^\| `{option}` \| `[^`]+` \| `…` \|$", table, re.MULTILINE), option


def test_what_is_compiled_has_types_too(made: dict[str, str]) -> None:
    assert re.search(
        r"^\| `principal` \| `str`", section(made["reference/fastrpc.md"], "fastrpc.CallInfo"), re.M
    )


def test_a_name_is_described_once_and_linked_elsewhere(made: dict[str, str]) -> None:
    anchors = re.findall(r"\{ #([\w.]+) \}", "\n".join(made.values()))
    assert sorted(anchors) == sorted(set(anchors))
    assert "[fastrpc.Client](fastrpc/Client.md#fastrpc.Client)" in made["reference/fastrpc.client.md"]


def test_no_two_pages_differ_by_case_alone(made: dict[str, str]) -> None:
    """A file system that ignores case would keep one of them."""
    assert len({page.lower() for page in made}) == len(made)


def test_a_docstring_becomes_markdown() -> None:
    docstring = "``x < 1``, `Text` or <y> (see docs/http.md):\n* one\n* two"
    assert reference.in_markdown(docstring, "reference/fastrpc.md") == (
        "`x < 1`, [`Text`](fastrpc.md#fastrpc.Text) or &lt;y> (see [docs/http.md](../http.md)):\n\n"
        "* one\n* two\n"
    )


def test_a_public_name_without_a_docstring_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(public_names.public()["fastrpc.Text"], "docstring", None)
    with pytest.raises(LookupError, match=r"fastrpc\.Text: a public name without a docstring"):
        public_names.entries.__wrapped__()


def test_a_public_method_without_a_docstring_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    mount = public_names.public()["fastrpc.Server"].members["mount"]
    monkeypatch.setattr(mount, "docstring", None)
    with pytest.raises(LookupError, match=r"fastrpc\.Server: mount without a docstring"):
        public_names.entries.__wrapped__()


def test_a_method_that_a_class_overrides_has_the_docstring_of_its_base(made: dict[str, str]) -> None:
    path = "fastrpc.compat.fastmcp.Namespace.list_tools"
    text = "\n".join(made.values())
    assert "Return the tools to show in place of those given." in section(text, path)


# ------------------------------------------------------------------------------------------ commands


def test_every_command_has_a_page_with_every_option_of_its_help() -> None:
    made = dict(commands.pages())
    assert {f"commands/{name}.md" for name in COMMANDS} < set(made)
    assert "commands/knowledge-import.md" in made
    for words in commands.commands():
        page = made[f"commands/{'-'.join(words)}.md"]
        shown = commands.help_of(*words).partition("options:")[2]
        assert "`-h, --help`" in page
        missing = set(OPTION.findall(shown)) - set(OPTION.findall(page))
        assert not missing, words


def test_the_options_of_an_action_are_on_the_page_of_its_command() -> None:
    audit = commands.page_of(("audit",))
    assert "## fastrpc audit search\n" in audit
    assert "| `--since TIME` |" in audit.partition("## fastrpc audit search\n")[2].partition("\n## ")[0]


def test_a_help_text_becomes_tables() -> None:
    lines = (
        "options:",
        "  -a, --all     what is",
        "                there",
        "  --long-option-name NAME",
        "                one of server-",
        "                side|none",
    )
    assert commands.in_markdown(["\n".join(lines)], 2) == (
        "## Options\n\n| | |\n| --- | --- |\n| `-a, --all` | what is there |\n"
        "| `--long-option-name NAME` | one of server-side\\|none |\n"
    )


def test_the_width_of_the_terminal_does_not_matter_and_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    wide = commands.help_of("call")
    assert "COLUMNS" not in os.environ
    monkeypatch.setenv("COLUMNS", "40")
    assert commands.help_of("call") == wide
    assert os.environ["COLUMNS"] == "40"


# --------------------------------------------------------------------------------------- screenshots

PICTURES = REPOSITORY / "docs" / "pictures"
MAKERS = {"help": screenshots.help_picture, "dev": screenshots.view_picture}


@pytest.mark.parametrize("name", MAKERS)
def test_a_screenshot_shows_what_the_program_prints_now(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("textual", reason="the view is drawn by it: pip install textual")
    for variable in [each for each in os.environ if each.startswith("FASTRPC_")]:
        monkeypatch.delenv(variable)
    kept = (PICTURES / f"{name}.svg").read_text(encoding="utf-8")
    shown = screenshots.text_of(kept)
    assert screenshots.text_of(MAKERS[name]()) == shown, "make docs makes it anew"
    expected = {"help": ("install-client", "fastrpc new notes"), "dev": ("find_notes", "Call it again")}
    assert all(words in shown for words in expected[name])


def test_screenshots_are_small_load_nothing_and_are_shown_in_a_page() -> None:
    written = "".join(path.read_text(encoding="utf-8") for path in (*REPOSITORY.glob("docs/**/*.md"),))
    written += (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for path in PICTURES.iterdir():
        assert path.stat().st_size < (60_000 if path.name.startswith("dashboard-") else 200_000)
        assert f"pictures/{path.name})" in written
        if path.suffix == ".svg":
            assert "url(http" not in path.read_text(encoding="utf-8")


def test_the_pictures_of_the_dashboard_are_four_and_what_their_script_makes() -> None:
    made = (REPOSITORY / ".ci" / "site" / "dashboard_pictures.py").read_text(encoding="utf-8")
    kept = {path.name for path in PICTURES.glob("dashboard-*")}
    assert kept == set(re.findall(r'folder / "(dashboard-\w+\.png)"', made))
    assert len(kept) == 4


def test_without_chromium_the_picture_of_the_site_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(screenshots, "FETCHED", tmp_path)
    kept = tmp_path / "site.png"
    kept.write_bytes(b"kept")
    assert not screenshots.take_site(tmp_path, kept)
    assert kept.read_bytes() == b"kept"
