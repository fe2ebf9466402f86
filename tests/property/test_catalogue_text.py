"""Whatever a server lists is shown: nothing in it breaks the text or the page, or reaches a terminal raw."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fastrpc.cli._catalogue import TITLES, shown
from fastrpc.cli._inspect_page import page_of

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=8)
    | st.sampled_from(["\x1b[2J", "a\r\nb", "<b>"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "properties", "required", "enum", "items", "anyOf", "default", "description"]
            )
            | st.text(max_size=4),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
MEMBERS = ["name", "title", "description", "uri", "uriTemplate", "mimeType", "annotations", "arguments"]
ENTRIES = st.lists(
    st.dictionaries(st.sampled_from([*MEMBERS, "inputSchema", "outputSchema"]), VALUES, max_size=6),
    max_size=3,
)
CATALOGUES = st.fixed_dictionaries(dict.fromkeys(TITLES, ENTRIES))


@given(CATALOGUES, st.booleans())
def test_every_catalogue_is_lines_of_printable_text(catalogue: Any, is_whole: bool) -> None:
    for line in shown(catalogue, is_whole=is_whole):
        assert "\x1b" not in line
        assert "\n" not in line
        assert "\r" not in line


class Tags(HTMLParser):
    """Keeps the names of all tags."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def handle_starttag(self, tag: str, attributes: Any) -> None:
        self.names.add(tag)


@given(
    CATALOGUES, st.dictionaries(st.sampled_from(["name", "title", "version", "description"]), VALUES), VALUES
)
def test_no_text_of_a_server_becomes_a_tag_of_the_page(
    catalogue: Any, server: Any, instructions: Any
) -> None:
    report = {
        "protocolVersion": "2026-07-28",
        "supportedVersions": ["2026-07-28"],
        "serverInfo": server,
        "capabilities": {},
        "instructions": instructions,
        **catalogue,
    }
    tags = Tags()
    tags.feed(page_of(report))
    assert "b" not in tags.names
