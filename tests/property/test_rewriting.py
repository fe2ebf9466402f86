"""`fastrpc.swap.rewriting` changes import statements and nothing else, wherever they are."""

from __future__ import annotations

import ast

from hypothesis import given
from hypothesis import strategies as st

from fastrpc.swap.rewriting import rewrite

NAMES = {
    "fastmcp": ["FastMCP", "Context", "Client", "Gone"],
    "fastmcp.server.context": ["Context", "Gone"],
    "mcp.server.fastmcp": ["FastMCP", "Context", "Image", "Icon"],
    "mcp.server.fastmcp.prompts": ["base", "Gone"],
    "mcp": ["ClientSession", "types", "Tool", "stdio_client"],
    "mcp.types": ["Tool", "TextContent"],
    "os": ["path"],
}
LINE = st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp")), max_size=20)
OTHER = st.one_of(
    LINE.map(lambda text: f"# {text}"),
    LINE.map(lambda text: f"x = {text!r}"),
    st.just("z = '''\nfrom fastmcp import FastMCP\n'''"),
    st.just("def f(): return 1"),
    st.just(""),
)


@st.composite
def imports(draw: st.DrawFn) -> str:
    """An import statement in one of the forms that people write."""
    module = draw(st.sampled_from(sorted(NAMES)))
    names = draw(st.lists(st.sampled_from(NAMES[module]), min_size=1, max_size=3, unique=True))
    written = [name if draw(st.booleans()) else f"{name} as _{name}" for name in names]
    comment = draw(LINE.map(lambda text: f"  # {text}" if text else ""))
    form = draw(st.sampled_from(["line", "brackets", "lines"]))
    if form == "line":
        return f"from {module} import {', '.join(written)}{comment}"
    if form == "brackets":
        return f"from {module} import ({', '.join(written)}){comment}"
    listed = "".join(f"    {name},{comment}\n" for name in written)
    return f"from {module} import ({comment}\n{listed})"


@st.composite
def bodies(draw: st.DrawFn) -> tuple[list[str], str]:
    statements = draw(st.lists(st.one_of(imports(), OTHER), max_size=8))
    return statements, draw(st.sampled_from(["\n", "\r\n"]))


@given(bodies())
def test_each_import_is_rewritten_by_itself_and_the_rest_is_unchanged(body: tuple[list[str], str]) -> None:
    statements, line_end = body
    whole = "".join(f"{statement}\n" for statement in statements).replace("\n", line_end).encode()
    alone = [
        rewrite(f"{statement}\n".replace("\n", line_end).encode()).source if "import" in statement else
        f"{statement}\n".replace("\n", line_end).encode()
        for statement in statements
    ]  # fmt: skip
    result = rewrite(whole).source
    assert result == b"".join(alone)
    ast.parse(result)


@given(bodies())
def test_the_names_that_are_bound_stay_the_same_and_nothing_is_left_to_do(
    body: tuple[list[str], str],
) -> None:
    statements, line_end = body
    source = "".join(f"{statement}\n" for statement in statements).replace("\n", line_end).encode()
    result = rewrite(source).source
    assert sorted(bound_in(result)) == sorted(bound_in(source))
    assert rewrite(result).source == result


def bound_in(source: bytes) -> list[str]:
    return [
        alias.asname or alias.name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    ]
