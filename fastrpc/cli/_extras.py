"""Finds out which extras are installed, and which one a missing module belongs to.

`extras` reads the metadata of about twenty packages, which takes 10 ms; `needed` is a table.
"""

from __future__ import annotations

MODULES = {
    "schema": ("jsonschema_rs",),
    "http": ("httptools", "uvicorn", "httpx", "httpcore", "idna", "jwt", "cryptography"),
    "tools": ("ddgs", "lxml", "markdownify", "PIL", "playwright", "pypdf"),
    "guard": ("alembic", "re2", "rfc8785", "sqlalchemy", "tomli", "tree_sitter", "tree_sitter_bash"),
    "knowledge": ("Stemmer", "tzdata", "yaml"),
    "documents": ("xberg",),
    "workflows": ("croniter", "dbos", "jinja2", "watchfiles"),
    "embeddings": ("numpy",),
    "postgresql": ("psycopg",),
    "oauth": ("keyring", "mcp"),
    "openapi": ("openapi_pydantic",),
    "view": ("rich", "textual"),
    "contracts": ("eth_abi", "eth_hash"),
    "vyper": ("vyper",),
}
"""The modules of each extra; one of several extras stands with the first that needs it."""


def needed(error: ImportError) -> str | None:
    """Return what is missing, and the extra that brings it; None for a module of no extra."""
    module = (error.name or "").partition(".")[0]
    extra = next((extra for extra, modules in MODULES.items() if module in modules), None)
    if extra is None:
        return None
    return f"{module} is not installed: pip install 'fastrpc-mcp[{extra}]'"


def extras() -> dict[str, bool]:
    """Return for each extra whether all of its packages are installed."""
    from importlib.metadata import PackageNotFoundError, distribution, requires
    from re import match

    installed: dict[str, bool] = {}
    for requirement in requires("fastrpc-mcp") or ():
        found = match(r"([\w.-]+).*; extra == .(\w+)", requirement)
        if found is None or found[2] in ("all", "dev"):
            continue
        try:
            distribution(found[1])
            installed.setdefault(found[2], True)
        except PackageNotFoundError:
            installed[found[2]] = False
    return dict(sorted(installed.items()))
